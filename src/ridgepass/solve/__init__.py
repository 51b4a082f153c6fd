"""From a sketched AᵀA and c to coefficients and their certificate."""

from typing import TypeAlias

from ridgepass.kernels import Float64
from ridgepass.sketch import Dense, LowRank, TrackedCovariance
from ridgepass.solve.bounds import error_bounds
from ridgepass.solve.certificate import Certificate
from ridgepass.solve.dense import DenseSolver
from ridgepass.solve.low_rank import LowRankSolver
from ridgepass.solve.residual import by_residual, curvature_bound
from ridgepass.solve.tracked import TrackedSolver

Solver: TypeAlias = LowRankSolver | DenseSolver | TrackedSolver


def factorise(covariance: LowRank | Dense | TrackedCovariance, cross: Float64) -> Solver:
    """Prepare to solve for many alphas."""
    if isinstance(covariance, TrackedCovariance):
        return TrackedSolver(covariance, cross)
    if isinstance(covariance, Dense):
        return DenseSolver(covariance, cross)
    return LowRankSolver(covariance, cross)


__all__ = [
    "Certificate",
    "DenseSolver",
    "LowRankSolver",
    "Solver",
    "TrackedSolver",
    "by_residual",
    "curvature_bound",
    "error_bounds",
    "factorise",
]
