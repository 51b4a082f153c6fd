"""Solutions of (SᵀS + shift·I + alpha·I) x = c for S with few orthogonal rows."""

from collections.abc import Sequence

import numpy as np

from ridgepass.kernels import Float64, apply, apply_transposed, column_norms, unit_roundoff
from ridgepass.sketch import LowRank


class LowRankSolver:
    """Look at the sketch once, then solve for any number of alphas.

    (SᵀS + g·I)⁻¹c = (c − Sᵀ(Σ² + g·I)⁻¹Sc)/g, which is lines 8 and 9 of Algorithm 2 with
    S = ΣVᵀ in place of V: nothing is divided by a singular value that may be zero.
    """

    def __init__(self, covariance: LowRank, cross: Float64) -> None:
        self.covariance = covariance
        self.cross = cross
        self.projected = covariance.mix @ apply(covariance.rows, cross)  # line 8

    def solve(self, alphas: Sequence[float]) -> Float64:
        """Return coefficients of shape (n_alphas, n_features, n_targets)."""
        cov = self.covariance
        ridges = np.asarray(alphas)[:, None] + cov.shift
        shares = self.projected[:, None, :] / (cov.squares[:, None] + ridges.T)[:, :, None]
        weights = cov.mix.T @ shares.reshape(len(cov.mix), -1)
        inside = apply_transposed(cov.rows, weights).reshape(len(self.cross), len(ridges), -1)
        coefs = self.cross[:, None, :] - inside  # line 9
        coefs /= ridges[None]
        return np.moveaxis(coefs, 1, 0)

    def residual_norms(self, alpha: float, coef: Float64) -> Float64:
        """Bound ‖c − (K̂ + alpha·I)x‖ for each target: what rounding left unsolved."""
        cov = self.covariance
        inner = cov.mix @ apply(cov.rows, coef)
        image = apply_transposed(cov.rows, cov.mix.T @ inner)
        residual = self.cross - image - (alpha + cov.shift) * coef
        # The residual's own rounding: its longest sums run over the features and the rows.
        chain = (len(coef) + sum(cov.mix.shape)) * unit_roundoff(np.dtype(np.float64))
        size = (alpha + cov.shift + float(cov.squares.sum())) * column_norms(coef)
        norms: Float64 = column_norms(residual) + chain * (size + column_norms(self.cross))
        return norms
