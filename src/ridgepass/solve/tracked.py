"""Solutions from a followed subspace: from starting points whose image is known, with K̂."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ridgepass.kernels import Float64
from ridgepass.sketch import TrackedCovariance


class TrackedSolver:
    """x̂ = t·w + δ with δ = (K̂ + γI)⁻¹(c − t(h + γw)), for any number of alphas γ.

    Parameters
    ----------
    covariance : TrackedCovariance
        K̂, with the starting points w and their images h.
    cross : ndarray of shape (n_features, n_targets)
        c = Aᵀb exactly.
    """

    def __init__(self, covariance: TrackedCovariance, cross: Float64) -> None:
        self.covariance = covariance
        self.exact_cross = self.cross = cross

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_solve"}

    def solve(self, alphas: Sequence[float]) -> Float64:
        """Return coefficients of shape (n_alphas, n_features, n_targets)."""
        return np.stack([self._solve(alpha) for alpha in alphas])

    @cached_property
    def _solve(self) -> Callable[[float], Float64]:
        return self.covariance.solving(self.cross)

    def corrector(self, alpha: float) -> Callable[[Float64], Float64]:
        """Return what multiplies by (K̂ + alpha·I)⁻¹, to precondition by."""
        return self.covariance.inverse(alpha)

    def solve_for(self, alpha: float, vectors: Float64) -> Float64:
        """Return v with (K + alpha·I)v near each of the vectors, as many as there are targets."""
        return self.covariance.solving(vectors)(alpha)

    def tail(self) -> float:
        """Return the least that K̂ has in any direction outside the basis."""
        return float(np.min(self.covariance.tails))

    def typical_tail(self) -> float:
        """Estimate what AᵀA has in directions that matter outside the basis."""
        return float(np.mean(self.covariance.tails))

    def covariance_error(self, alpha: float) -> float:
        """Return infinity: how far K̂ is from AᵀA is not known for certain."""
        return np.inf

    def quadratic(self, coefs: Float64) -> Float64:
        """Estimate xᵀAᵀAx, of shape (n_alphas, n_targets), for coefficients of any origin.

        Exactly along the starting points, and as K̂ has it for the rest.
        """
        followed = self.covariance.followed
        starts, images = followed.starts, followed.unit * followed.start_images
        flat = np.moveaxis(coefs, 1, 0).reshape(coefs.shape[1], -1)
        if followed.mixed or not starts.any():
            return self.covariance.quadratic(flat).reshape(len(coefs), -1)
        squared = np.einsum("dt,dt->t", starts, starts)
        along = np.einsum("kdt,dt->kt", coefs, starts)
        steps = np.divide(along, squared, out=np.zeros_like(along), where=squared > 0)
        delta = coefs - steps[:, None, :] * starts
        flat = np.moveaxis(delta, 1, 0).reshape(delta.shape[1], -1)
        rest = self.covariance.quadratic(flat).reshape(len(coefs), -1)
        curved = np.maximum(np.einsum("dt,dt->t", starts, images), 0.0)
        mixed = np.einsum("kdt,dt->kt", delta, images)
        found: Float64 = np.square(steps) * curved + 2 * steps * mixed + rest
        return np.maximum(found, 0.0)

    def degrees_of_freedom(self, alphas: Sequence[float], rank: int) -> Float64:
        """Estimate tr(AᵀA(AᵀA + alpha·I)⁻¹) for each alpha; AᵀA has this rank."""
        ridges, values = np.asarray(alphas), self.covariance.eigenpairs[0]
        inside: Float64 = (values[:, None] / (values[:, None] + ridges)).sum(axis=0)
        n_outside = max(rank - len(values), 0)
        left = max(self.covariance.mass - float(values.sum()), 0.0)
        mean = left / n_outside if n_outside else 0.0
        total = mean + ridges
        outside: Float64 = np.divide(mean, total, out=np.zeros_like(total), where=total > 0)
        return inside + n_outside * outside

    def largest_eigenvalue(self) -> float:
        """Estimate ‖AᵀA‖₂."""
        return float(self.covariance.eigenpairs[0][0])
