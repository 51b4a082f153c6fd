"""The certificate of coefficients whose residual is known."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ridgepass.kernels import TINY, Float64, binary_scales, column_norms, underflow
from ridgepass.probes import Probes
from ridgepass.query import DISTANCE_DOUBT, Probed, Query
from ridgepass.refining.refined import Refined, Refinement
from ridgepass.refining.sums import UNIT
from ridgepass.sketch import LowRank, TrackedCovariance
from ridgepass.solve import Certificate, by_residual, error_bounds
from ridgepass.solve.bounds import Bounds, over
from ridgepass.solve.directions import Width, Widths, by_distance, by_leverage
from ridgepass.solve.worst_case import known

SAME_SCALE = 1e-3  # deviations that differ by less are as good as the same to the probes


def certify(
    query: Query,
    means: Refinement,
    found: Refined,
    *,
    confidence: float = 1.0,
    unchanged: Callable[[], bool] = lambda: False,
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
    confidence : float
        The least probability that the bounds are to hold with; one for what is certain.
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
    lengths = np.sqrt(query.target_mass)
    first = error_bounds(solver, alpha, coef, query.cross_error, query.moved, lengths)
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
    probed = _probed(query, means, found, residual_error, moved)
    certain, ratio = Bounds(absolute, relative, energy), _ratio(query, means.scale)
    bounds = query.improved(certain, alpha, coef, probed, confidence, ratio)
    absolute, relative, energy = bounds
    rests_on = "probes" if (absolute < certain.absolute).any() else "passes"
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
    mean = means.mean.view()
    mean.flags.writeable = False  # it is the model's
    widths = partial(_widths, query, alpha, moved, energy, rounding + lost, confidence)
    estimate = relative_estimate = None
    if probed is not None:
        estimate = np.fmin(query.estimate(alpha, probed), known(absolute))
        relative_estimate = np.fmin(known(over(estimate, norms)), known(relative))
    return Certificate(
        alpha=alpha,
        covariance_bound=solver.covariance_error(alpha) + moved,
        coef_bound=known(absolute),
        relative=known(relative),
        energy_bound=known(whole),
        mean=mean if query.centred else None,
        scale=scale,
        offset=known(offset) + np.where(query.target_mass > 0, underflow(len(coef) + 8), 0.0),
        rounding=known((len(coef) + 8) * UNIT * norms + lost),
        n_features=len(coef),
        passes=found.passes,
        widths=Widths(widths, unchanged),
        confidence=confidence if bounds.is_less(certain) else 1.0,
        rests_on=rests_on,
        estimate=estimate,
        relative_estimate=relative_estimate,
        remark=query.remark,
    )


def _probed(
    query: Query, means: Refinement, found: Refined, residual_error: Float64, moved: float
) -> Probed | None:
    """Return what probes say of the answer: its residual is that of z less (K + γI)·step."""
    probes = probes_in(query, means.scale)
    query = replace(query, find_probes=lambda: probes)
    rest, surprise = found.residual - found.alpha * found.step, found.surprise
    return query.probed(found.alpha, rest, found.step, residual_error, moved, surprise)


def probes_in(query: Query, scale: Float64 | None) -> Probes | None:
    """Return the probes in the units that passes have found, if they measure residuals there."""
    ratio = _ratio(query, scale)
    if query.probes is None or ratio is None:
        return query.probes
    if not (np.abs(ratio - 1) < SAME_SCALE).all():
        return None  # the first pass had other units, and what it has rounded counts in them
    return query.probes.rescaled(ratio)


def _ratio(query: Query, scale: Float64 | None) -> Float64 | None:
    """Return what brings coefficients to the units of the first pass, if passes found others."""
    return None if scale is None or query.scale is None else query.scale / scale


def _widths(
    query: Query, alpha: float, moved: float, energy: Float64, slack: Float64, confidence: float
) -> list[Width]:
    """Return what is known of single directions."""
    covariance = query.solver.covariance
    if isinstance(covariance, TrackedCovariance) and confidence < 1.0:
        distance = query.distance(DISTANCE_DOUBT * (1.0 - confidence)) + moved
        return by_distance(covariance, alpha, distance, energy, slack)
    if isinstance(covariance, LowRank) and alpha > 0:
        return by_leverage(covariance, alpha, moved, energy, slack)
    return []


def _power_of_two(found: Refined) -> Float64:
    """Return what to divide each target by if squares of its energy would leave the range.

    All bounds are in proportion to residual and coefficients, and no bit is lost.
    """
    root = math.sqrt(found.alpha) or 1.0
    size = (column_norms(found.residual) + found.error) / root + root * column_norms(found.step)
    within = ~np.isfinite(size) | ((size > 1e-100) & (size < 1e100))
    return np.where(within, 1.0, binary_scales(size[None]))


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
