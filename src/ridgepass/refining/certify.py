"""The certificate of coefficients whose residual is known."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ridgepass.kernels import Float64, column_norms
from ridgepass.query import Query
from ridgepass.refining.refined import Refined, Refinement
from ridgepass.refining.sums import UNIT
from ridgepass.sketch import LowRank
from ridgepass.solve import Certificate, by_residual, error_bounds, leverages
from ridgepass.solve.worst_case import known


def certify(
    query: Query,
    means: Refinement,
    found: Refined,
    *,
    unchanged: Callable[[], bool],
    intercept_error: Float64 | None = None,
) -> Certificate:
    """Bound the distance of an answer from exact ridge, for every target.

    Parameters
    ----------
    query : Query
        What the first pass knows of AᵀA.
    means : Refinement
        The means, and what is left of their rounding.
    found : Refined
        The answer.
    unchanged : callable
        Whether the sketch is still what ``query`` looked at.
    intercept_error : ndarray of shape (n_targets,), optional
        How far the intercept is from the one that goes with the coefficients.
    """
    alpha, solver, coef = found.alpha, query.solver, found.answer
    first = error_bounds(solver, alpha, coef, query.cross_error, query.moved)
    absolute, relative, energy = by_residual(
        solver, alpha, found.residual, found.error, found.step, coef, query.moved
    )
    # What the first pass knows holds for any coefficients; of the exact method it knows all.
    absolute, relative = np.fmin(absolute, first[0]), np.fmin(relative, first[1])
    norms = column_norms(coef)
    rounding = 4 * UNIT * norms  # of the sum, and of going to original units and back
    absolute, energy = absolute + rounding, energy + rounding * np.sqrt(means.mass + alpha)
    relative = relative + 4 * UNIT * (1 + relative)
    offset = _intercept_error(query, means, norms, absolute)
    if intercept_error is not None:  # it is the same for every row, and centred rows sum up to zero
        energy = np.hypot(energy, np.sqrt(query.weight) * intercept_error)
        offset = offset + intercept_error
    covariance = solver.covariance
    by_sketch = None
    if alpha > 0 and isinstance(covariance, LowRank) and covariance.loss_bound is not None:
        by_sketch = partial(_leverages, covariance, alpha, query.moved, unchanged)
    return Certificate(
        alpha=alpha,
        covariance_bound=solver.covariance_error(alpha) + query.moved,
        coef_bound=absolute,
        relative=relative,
        energy_bound=known(energy),
        mean=means.mean if query.centred else None,
        scale=query.scale,
        offset=offset,
        rounding=(len(coef) + 8) * UNIT * norms,
        n_features=len(coef),
        passes=found.passes,
        leverages=by_sketch,
    )


def _leverages(
    covariance: LowRank,
    alpha: float,
    moved: float,
    unchanged: Callable[[], bool],
    vectors: Float64,
) -> Float64:
    """Ask the sketch, unless it has changed meanwhile: a certificate is for good, views are not."""
    found = leverages(covariance, alpha, moved, vectors) if unchanged() else None
    if found is None or not unchanged():
        found = np.square(column_norms(vectors) / np.sqrt(alpha))
    return found


def _intercept_error(query: Query, means: Refinement, norms: Float64, absolute: Float64) -> Float64:
    """Bound what rounding of the means does to any prediction."""
    if not query.centred:
        return np.zeros_like(norms)
    finite = np.isfinite(absolute)
    reach = norms + np.where(finite, absolute, 0.0)
    mean = means.mean if query.scale is None else means.mean / query.scale
    size = np.abs(means.target_mean) + float(column_norms(mean[:, None])[0]) * reach
    error = means.target_mean_error + means.mean_error * reach + (len(mean) + 8) * UNIT * size
    return np.where(finite, error, np.inf)
