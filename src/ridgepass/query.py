"""What a stream answers from, looked at once for all questions until the next row."""

import math
from dataclasses import dataclass

import numpy as np

from ridgepass.kernels import Float64, column_norms, unit_roundoff
from ridgepass.solve import Certificate, DenseSolver, LowRankSolver, certify, factorise
from ridgepass.state import State


@dataclass(frozen=True)
class Query:
    """A factorised sketch with the rows of an unfinished block, and what is known of its rounding.

    Attributes
    ----------
    solver : LowRankSolver or DenseSolver
        For the columns divided by ``scale``.
    mean, target_mean : ndarray of shape (n_features,), (n_targets,)
        What rows and targets were centred on; zeros without an intercept.
    scale : ndarray of shape (n_features,) or None
        What columns are divided by.
    weight : float
        Sum of the rows' weights.
    target_mass : ndarray of shape (n_targets,)
        Squares of the centred targets.
    displacement : float
        Bounds what rounding did to the rows before they were sketched, in the Frobenius norm.
    cross_error : ndarray of shape (n_targets,)
        Bounds the error of Aᵀb.
    mean_steps : float
        Bounds the error of the means, in units of their columns' spread.
    """

    solver: LowRankSolver | DenseSolver
    mean: Float64
    target_mean: Float64
    scale: Float64 | None
    weight: float
    target_mass: Float64
    displacement: float
    cross_error: Float64
    mean_steps: float

    @classmethod
    def of(cls, state: State) -> "Query":
        """Look at a state without changing it."""
        intake = state.intake
        block = intake.pending()
        moments = state.moments.including(block)
        covariance, cross = state.sketch.covariance(block), moments.cross
        mass, scale = covariance.mass, None
        displacement = state.displacement(mass, block)
        cross_error = moments.cross_rounding(mass) + displacement * np.sqrt(moments.target_mass)
        cross_error += math.sqrt(mass) * state.target_displacement(moments.target_mass)
        if intake.scaling is not None:
            scale = intake.deviations()
            columns = intake.scaling.units / scale
            if (columns != 1.0).any():
                covariance, cross = covariance.rescaled(columns), columns[:, None] * cross
                displacement *= float(columns.max())
                cross_error *= float(columns.max())
        mean, target_mean = intake.means()
        return cls(
            solver=factorise(covariance, cross),
            mean=mean,
            target_mean=target_mean,
            scale=scale,
            weight=intake.total_weight(),
            target_mass=moments.target_mass,
            displacement=displacement,
            cross_error=cross_error,
            mean_steps=state.mean_steps(),
        )

    def certificate(self, alpha: float) -> Certificate:
        """Bound the distance from exact ridge, for every target."""
        (coef,) = self.solver.solve([alpha])
        covariance, moved, norms = self.solver.covariance, self.displacement, column_norms(coef)
        bound = covariance.error + (2 * math.sqrt(covariance.mass) + 3 * moved) * moved
        return certify(
            alpha=alpha,
            shift=covariance.shift,
            covariance_bound=bound,
            coef_norms=norms,
            solving=self.solver.error_norms(alpha, coef)
            + _per(self.cross_error, alpha + covariance.shift),
            mean=self.mean if self.mean_steps else None,
            scale=self.scale,
            offset=self._intercept_error(norms),
            rounding=(len(coef) + 8) * unit_roundoff(np.dtype(np.float64)) * norms,
            n_features=len(coef),
        )

    def _intercept_error(self, coef_norms: Float64) -> Float64:
        """Bound what rounding does to mean(b) − mean(A)·coef."""
        if not self.mean_steps:
            return np.zeros_like(coef_norms)
        unit, mass = unit_roundoff(np.dtype(np.float64)), self.solver.covariance.mass
        mean = self.mean if self.scale is None else self.mean / self.scale
        spread = np.sqrt(self.target_mass / self.weight)
        spread += math.sqrt(mass / self.weight) * coef_norms
        size = np.abs(self.target_mean) + float(column_norms(mean[:, None])[0]) * coef_norms
        error: Float64 = self.mean_steps * spread + (len(mean) + 8) * unit * size
        return error


def _per(error: Float64, ridge: float) -> Float64:
    """Divide by what may be zero, as for alpha=0 with method="exact"."""
    return np.divide(error, ridge, out=np.full_like(error, np.inf), where=ridge > 0)
