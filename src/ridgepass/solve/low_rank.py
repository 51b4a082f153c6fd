"""Solutions of (SᵀS + shift·I + alpha·I) x = c for S with few orthogonal rows."""

from collections.abc import Sequence

import numpy as np

from ridgepass.kernels import Float64, column_norms, unit_roundoff
from ridgepass.sketch import LowRank


class LowRankSolver:
    """Look at the sketch once, then solve for any number of alphas.

    (SᵀS + g·I)⁻¹c = (c − Sᵀ(Σ² + g·I)⁻¹Sc)/g, which is lines 8 and 9 of Algorithm 2 with
    S = ΣVᵀ in place of V: nothing is divided by a singular value that may be zero.
    """

    def __init__(self, covariance: LowRank, cross: Float64) -> None:
        self.covariance = covariance
        self.cross = cross
        self.projected = covariance.project(cross)  # line 8

    def solve(self, alphas: Sequence[float]) -> Float64:
        """Return coefficients of shape (n_alphas, n_features, n_targets)."""
        return self._solve(self.cross, self.projected, alphas)

    def error_norms(self, alpha: float, coef: Float64) -> Float64:
        """Bound the distance of ``coef`` from the solution without rounding, for each target.

        The residual is solved for in turn, since most of it lies in the leading directions, where
        ‖residual‖/alpha would be far too much.
        """
        cov = self.covariance
        residual = self.cross - self._multiply(alpha, coef)
        (correction,) = self._solve(residual, cov.project(residual), [alpha])
        left = residual - self._multiply(alpha, correction)
        # The residuals' own rounding: their longest sums run over the features and the rows.
        chain = (len(coef) + sum(cov.mix.shape)) * unit_roundoff(np.dtype(np.float64))
        size = (alpha + cov.shift + float(cov.squares.sum())) * column_norms(coef)
        rounding = chain * (size + column_norms(self.cross))
        with np.errstate(over="ignore"):
            norms: Float64 = column_norms(correction) + (column_norms(left) + rounding) / (
                alpha + cov.shift
            )
        return norms

    def _multiply(self, alpha: float, coef: Float64) -> Float64:
        """Return (K̂ + alpha·I)·coef."""
        cov = self.covariance
        return cov.lift(cov.project(coef)) + (alpha + cov.shift) * coef

    def _solve(self, cross: Float64, projected: Float64, alphas: Sequence[float]) -> Float64:
        cov = self.covariance
        ridges = np.asarray(alphas)[:, None] + cov.shift
        shares = projected[:, None, :] / (cov.squares[:, None] + ridges.T)[:, :, None]
        inside = cov.lift(shares.reshape(len(cov.mix), -1)).reshape(len(cross), len(ridges), -1)
        coefs = cross[:, None, :] - inside  # line 9
        coefs /= ridges[None]
        return np.moveaxis(coefs, 1, 0)
