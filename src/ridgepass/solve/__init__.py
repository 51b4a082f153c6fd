"""From a sketched AᵀA and c to coefficients and their certificate."""

from typing import TypeAlias

from ridgepass.anchor import Anchor
from ridgepass.kernels import Float64
from ridgepass.sketch import Dense, LowRank
from ridgepass.solve.anchored import AnchoredSolver
from ridgepass.solve.bounds import error_bounds
from ridgepass.solve.certificate import Certificate
from ridgepass.solve.dense import DenseSolver
from ridgepass.solve.low_rank import LowRankSolver
from ridgepass.solve.residual import by_residual, curvature_bound, leverages

Solver: TypeAlias = LowRankSolver | AnchoredSolver | DenseSolver


def factorise(covariance: LowRank | Dense, cross: Float64, anchor: Anchor | None = None) -> Solver:
    """Prepare to solve for many alphas."""
    if isinstance(covariance, Dense):
        return DenseSolver(covariance, cross)
    if anchor is not None:
        return AnchoredSolver(covariance, cross, anchor)
    return LowRankSolver(covariance, cross)


__all__ = [
    "AnchoredSolver",
    "Certificate",
    "DenseSolver",
    "LowRankSolver",
    "Solver",
    "by_residual",
    "curvature_bound",
    "error_bounds",
    "factorise",
    "leverages",
]
