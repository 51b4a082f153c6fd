"""The certificate of coefficients whose residual is known."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ridgepass.kernels import TINY, Float64, binary_scales, column_norms, underflow
from ridgepass.query import Query
from ridgepass.refining.refined import Refined, Refinement
from ridgepass.refining.sums import UNIT
from ridgepass.sketch import LowRank
from ridgepass.solve import Certificate, by_residual, error_bounds, leverages
from ridgepass.solve.bounds import over
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
        How far the intercept is from the one that goes with the coefficients, as the means have it:
        their rounding is added here. By default it is that one.
    """
    alpha, solver, coef = found.alpha, query.solver, found.answer
    scale, scale_error = query.scale, query.scale_error
    if means.scale is not None:
        scale, scale_error = means.scale, means.scale_error
    norms, residual_error, moved = column_norms(coef), found.error, query.moved
    if scale_error > 0:
        # Exact ridge has exact scales. In these the residual is another: what is lifted and what
        # is multiplied both change by no more than the scales.
        residual = column_norms(found.residual) + (alpha + 2 * means.mass) * norms
        residual_error = residual_error + scale_error * (1 + scale_error) * residual
        moved += scale_error * (2 + scale_error) * means.mass
    first = error_bounds(solver, alpha, coef, query.cross_error, query.moved)
    unit = _power_of_two(found)
    absolute, relative, energy = by_residual(
        solver,
        alpha,
        found.residual / unit,
        residual_error / unit,
        found.step / unit,
        coef / unit,
        moved,
    )
    absolute, energy = absolute * unit, energy * unit
    # What the first pass knows holds for any coefficients; of the exact method it knows all.
    absolute, relative = np.fmin(absolute, first[0]), np.fmin(relative, first[1])
    # Of the sum that each pass adds to, and of going to original units and back.
    rounding = (4 * found.passes * UNIT + scale_error) * norms
    lost = query.lost_coefs(len(coef), scale)
    slack = (len(coef) + 16) * UNIT  # of the bounds themselves, which are norms and sums of a few
    with np.errstate(over="ignore", invalid="ignore"):
        most = np.sqrt(means.mass + alpha)
        tiny = np.where(absolute > 0, 4 * TINY, 0.0)
        energy = (
            (1 + slack + scale_error) * np.fmin(energy, most * absolute)
            + most * (rounding + lost)
            + tiny
        )
        absolute = (1 + slack + scale_error) * absolute + rounding + lost + tiny
        steps = slack + 4 * found.passes * UNIT + scale_error
        relative = relative + steps * np.square(1 + relative)
        relative = relative + over(lost * (1 + relative), norms)
        relative = np.where(absolute == 0, 0.0, relative)
        offset = _intercept_error(query, means, scale, norms, absolute)
        if intercept_error is not None:
            offset = offset + intercept_error
        # It is the same for every row, and centred rows sum up to zero. Others need not.
        away = math.sqrt(query.weight) * (1 + query.longest_sum * UNIT) * offset
        whole = (1 + 4 * UNIT) * (np.hypot(energy, away) if query.centred else energy + away)
    covariance, mean = solver.covariance, means.mean.view()
    mean.flags.writeable = False  # it is the model's
    by_sketch = None
    if alpha > 0 and isinstance(covariance, LowRank) and covariance.loss_bound is not None:
        by_sketch = partial(_leverages, covariance, alpha, moved, unchanged)
    return Certificate(
        alpha=alpha,
        covariance_bound=solver.covariance_error(alpha) + moved,
        coef_bound=known(absolute),
        relative=known(relative),
        energy_bound=known(whole),
        coef_energy=known(energy),
        mean=mean if query.centred else None,
        scale=scale,
        offset=known(offset) + np.where(query.target_mass > 0, underflow(len(coef) + 8), 0.0),
        rounding=known((len(coef) + 8) * UNIT * norms + lost),
        n_features=len(coef),
        passes=found.passes,
        leverages=by_sketch,
        rests_on="passes",
    )


def _power_of_two(found: Refined) -> Float64:
    """Return what to divide each target by if squares of its energy would leave the range.

    All bounds are in proportion to residual and coefficients, and no bit is lost.
    """
    root = math.sqrt(found.alpha) or 1.0
    size = (column_norms(found.residual) + found.error) / root + root * column_norms(found.step)
    within = ~np.isfinite(size) | ((size > 1e-100) & (size < 1e100))
    return np.where(within, 1.0, binary_scales(size[None]))


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


def _intercept_error(
    query: Query, means: Refinement, scale: Float64 | None, norms: Float64, absolute: Float64
) -> Float64:
    """Bound what rounding of the means does to any prediction; ``scale`` is the answer's."""
    if not query.centred:
        return np.zeros_like(norms)
    finite = np.isfinite(absolute)
    reach = norms + np.where(finite, absolute, 0.0)
    mean = means.mean if scale is None else means.mean / scale
    size = np.abs(means.target_mean) + float(column_norms(mean[:, None])[0]) * reach
    error = means.target_mean_error + means.mean_error * reach + (len(mean) + 8) * UNIT * size
    error += np.where(reach > 0, (len(mean) + 8) * TINY, 0.0)
    return np.where(finite, error, np.inf)
