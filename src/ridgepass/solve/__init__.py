"""From a sketched AᵀA and c to coefficients and their certificate."""

from ridgepass.kernels import Float64
from ridgepass.sketch import Dense, LowRank
from ridgepass.solve.certificate import Certificate, certify
from ridgepass.solve.dense import DenseSolver
from ridgepass.solve.low_rank import LowRankSolver


def factorise(covariance: LowRank | Dense, cross: Float64) -> LowRankSolver | DenseSolver:
    """Prepare to solve for many alphas."""
    if isinstance(covariance, Dense):
        return DenseSolver(covariance, cross)
    return LowRankSolver(covariance, cross)


__all__ = ["Certificate", "DenseSolver", "LowRankSolver", "certify", "factorise"]
