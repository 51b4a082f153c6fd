"""Whether a pass saw the rows that a stream was made of."""

import math
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ridgepass.kernels import Float64, column_norms
from ridgepass.query import Query
from ridgepass.refining.sums import UNIT, Totals
from ridgepass.scaling import least_deviation
from ridgepass.sketch import Dense, TrackedCovariance

# Bounds on rounding, several of them rough: the same rows must never be taken for others.
LENIENCE = 4.0
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples are spread evenly between whole numbers


def signs_for(target_mass: Float64) -> Float64:
    """Return what makes one target of all, each with about the same say and no two alike.

    Targets that change places must show, also those of the same mean and variance.
    """
    roots = np.sqrt(target_mass)
    weights: Float64 = 1.0 + np.modf(np.arange(len(roots)) * GOLDEN)[0]
    return np.divide(weights, roots, out=np.zeros_like(roots), where=roots > 0)


def check_row_count(n_rows: int, expected: int) -> None:
    """Raise as soon as there are more rows than there were."""
    if n_rows > expected:
        _refuse(f"there are more than {expected:,} rows")


def check_same_rows(query: Query, totals: Totals, signs: Float64) -> None:
    """Raise unless all that is kept exactly of the rows is as it was, up to rounding.

    Compared are the number of rows, their weight and squares, the means, and Aᵀb with one target
    made of all.
    """
    if totals.n_rows != query.n_rows:
        _refuse(f"there are {totals.n_rows:,} rows, and there were {query.n_rows:,}")
    sums = (totals.mass, totals.check.sum(), totals.target_mass.sum())
    if not np.isfinite(sums).all():
        _refuse("there is NaN or infinity among them")
    # Sums of the stream are as long as its blocks and their number; weights may be of any size.
    steps = 8 * UNIT * (query.longest_sum + totals.chain)
    root = math.sqrt(query.weight)
    if abs(totals.weight - query.weight) > LENIENCE * steps * query.weight:
        _refuse(f"the weights sum up to {totals.weight:g}, and they did to {query.weight:g}")
    spread, moved = np.sqrt(query.target_mass), query.target_displacement
    near = steps * (spread + root * np.abs(query.target_mean)) + root * totals.target_shift_error
    if (root * np.abs(totals.target_shift) > LENIENCE * (near + moved)).any():
        _refuse("the targets' mean is another")
    wide = steps * query.target_mass + (2 * spread + moved) * moved + near**2
    wide += totals.target_mass_error
    if (np.abs(totals.target_mass - query.target_mass) > LENIENCE * wide).any():
        _refuse("the targets' variance is another")
    _check_features(query, totals, steps * root)
    expected = query.solver.exact_cross @ signs
    doubt = float(np.abs(signs) @ query.cross_error) + totals.check_error
    if column_norms((totals.check - expected)[:, None])[0] > LENIENCE * doubt:
        _refuse("targets do not belong to their rows, or columns have changed places")


def check_same_scale(
    query: Query, deviations: Float64, errors: Float64, measured: NDArray[np.bool_], doubt: float
) -> None:
    """Raise unless columns deviate by what they did, and those that were constant still are.

    Deviations are in the units of the query; ``errors`` are those of their squares, and ``doubt``
    of the measured ones with the query's own, all relative.
    """
    other = (np.abs(deviations - 1.0) > LENIENCE * doubt) & measured
    still = least_deviation(query.mean) + query.displacement / math.sqrt(query.weight)
    certain = deviations * (1.0 - LENIENCE * np.sqrt(np.minimum(errors, 1.0)))
    other |= (certain > LENIENCE * still) & ~measured
    if other.any():
        _refuse("the features' variance is another")


def _check_features(query: Query, totals: Totals, steps: float) -> None:
    """Compare means and squares."""
    covariance = query.solver.covariance
    mean = query.mean if query.scale is None else query.mean / query.scale
    away = steps * float(column_norms(mean[:, None])[0])
    root = math.sqrt(query.weight)
    near = away + query.displacement + root * totals.shift_error
    if root * column_norms(totals.shift[:, None])[0] > LENIENCE * near:
        _refuse("the features' means are others")
    if query.measured is not None:
        return  # squares in units that have changed are not kept exactly
    if isinstance(covariance, Dense):
        rounding = len(mean) * covariance.error
    elif isinstance(covariance, TrackedCovariance):
        rounding = covariance.mass_rounding
    elif math.isfinite(covariance.error):
        rounding = len(covariance.squares) * covariance.rounding
    else:
        return  # random projections keep no account of their squares
    moved = (2 * math.sqrt(totals.mass) + query.displacement) * query.displacement
    doubt = moved + rounding + totals.mass_error + near**2
    if abs(totals.mass - covariance.mass) > LENIENCE * doubt:
        _refuse("the features' variance is another")


def _refuse(how: str) -> NoReturn:
    raise ValueError(
        f"these are not the rows that the model has learned from: {how}; "
        "give the same data, or train again"
    )
