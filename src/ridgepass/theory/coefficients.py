"""From the error of a sketch to the error of ridge coefficients and predictions.

Throughout, ``K = A.T @ A`` is the exact covariance of the data and ``K̂`` its approximation:
``C.T @ C`` for Frequent Directions, plus ``shift * I`` for the robust variant. `alpha` is the ridge
penalty that the paper writes γ, and `sketch_size` the number of sketch rows that it writes ℓ. A
`tail` is ``‖A - A_k‖_F²``: the sum of the squared singular values of ``A`` after the first `k`.
"""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from ridgepass.kernels import column_norms
from ridgepass.theory._arguments import (
    Floats,
    finite_array,
    nonnegative,
    positive,
    rank_below,
    spectral_norm,
    whole,
)

_TAIL = "pass the sum of squared singular values after the first k"
_ALPHA = "raise the ridge penalty"


class BestBound(NamedTuple):
    """A covariance bound and the rank `k` that gives it."""

    bound: float
    k: int


def _share(robust: bool) -> float:
    # The robust variant gives back half of what was shrunk: eq. (2) is half of eq. (1).
    return 2.0 if robust else 1.0


def fd_covariance_bound(tail: float, sketch_size: SupportsIndex, k: SupportsIndex = 0) -> float:
    """Bound ``‖K - K̂‖₂`` for Frequent Directions: eq. (1).

    Parameters
    ----------
    tail : float
        ``‖A - A_k‖_F²``.
    sketch_size : int
        Rows of the sketch, the paper's ℓ.
    k : int
        Any rank with ``0 <= k < sketch_size``.

    Returns
    -------
    float
        ``tail / (sketch_size - k)``.

    Notes
    -----
    Algorithms 2 and 3 keep ℓ rows and take off the square of singular value ℓ+1. Each such step
    removes at least ℓ+1 times that from ``‖A‖_F²``, so for them the bound with ``sketch_size + 1``
    in place of `sketch_size` holds as well.

    Examples
    --------
    >>> fd_covariance_bound(12.0, sketch_size=5, k=1)
    3.0
    """
    size, rank = rank_below(sketch_size, k)
    return nonnegative("tail", tail, _TAIL) / (size - rank)


def rfd_covariance_bound(tail: float, sketch_size: SupportsIndex, k: SupportsIndex = 0) -> float:
    """Bound ``‖K - K̂‖₂`` for Robust Frequent Directions: eq. (2), half of eq. (1).

    Parameters
    ----------
    tail : float
        ``‖A - A_k‖_F²``.
    sketch_size : int
        Rows of the sketch, the paper's ℓ.
    k : int
        Any rank with ``0 <= k < sketch_size``.

    Returns
    -------
    float
        ``tail / (2 * (sketch_size - k))``.

    Examples
    --------
    >>> rfd_covariance_bound(12.0, sketch_size=5, k=1)
    1.5
    """
    return fd_covariance_bound(tail, sketch_size, k) / _share(robust=True)


def _tails(singular_values: ArrayLike) -> Floats:
    """Squared tails after the first 0, 1, ..., p singular values."""
    values = finite_array("singular_values", singular_values, ndim=1)
    if (values < 0.0).any():
        raise ValueError("singular_values must be at least 0: pass them as an SVD returns them.")
    with np.errstate(over="ignore"):  # a tail beyond the largest float is infinite, and never best
        rising = np.cumsum(np.square(np.sort(values)))
    return np.concatenate([rising[::-1], [0.0]])


def best_covariance_bound(
    singular_values: ArrayLike, sketch_size: SupportsIndex, *, robust: bool = False
) -> BestBound:
    """Return the smallest of the bounds of eq. (1) or (2) over every ``k < sketch_size``.

    Parameters
    ----------
    singular_values : array-like of shape (p,)
        All singular values of ``A``, in any order.
    sketch_size : int
        Rows of the sketch, the paper's ℓ.
    robust : bool
        Whether the sketch is Robust Frequent Directions.

    Returns
    -------
    BestBound
        The bound, and the smallest `k` that reaches it.

    Examples
    --------
    >>> best_covariance_bound([10.0, 1.0, 1.0, 1.0], sketch_size=4)
    BestBound(bound=1.0, k=1)
    """
    size = whole("sketch_size", sketch_size, 1)
    tails = _tails(singular_values)[:size]
    bounds = tails / (_share(robust) * (size - np.arange(tails.size)))
    k = int(np.argmin(bounds))
    return BestBound(float(bounds[k]), k)


def relative_error_bound(
    covariance_error: float, alpha: float, smallest_eigenvalue: float = 0.0
) -> float:
    """Bound ``‖x̂ - x‖ / ‖x‖``, the relative error of the coefficients: Lemma 1.

    Parameters
    ----------
    covariance_error : float
        ``‖K - K̂‖₂`` or a bound on it.
    alpha : float
        Ridge penalty. It may be 0 only if `smallest_eigenvalue` is positive.
    smallest_eigenvalue : float
        Smallest eigenvalue of ``K̂``, or anything below it; the shift of a robust sketch will do.

    Returns
    -------
    float
        ``covariance_error / (smallest_eigenvalue + alpha)``.

    Notes
    -----
    Lemma 2: the bound is attained when ``K̂`` and ``K - K̂`` are both multiples of the identity.

    The lemma does not care which of the two matrices is the approximation. With the two exchanged
    it bounds the same error relative to ``‖x̂‖``, which is known, by the smallest eigenvalue of
    ``K``. So with ``smallest_eigenvalue=0`` the value returned is good for either norm.

    Examples
    --------
    >>> relative_error_bound(covariance_error=3.0, alpha=10.0, smallest_eigenvalue=2.0)
    0.25
    """
    error = nonnegative("covariance_error", covariance_error, "pass the norm of K - K̂")
    penalty = nonnegative("alpha", alpha, _ALPHA)
    least = nonnegative("smallest_eigenvalue", smallest_eigenvalue, "K̂ is never indefinite")
    return error / positive("alpha + smallest_eigenvalue", penalty + least, _ALPHA)


def prediction_bound(
    relative_error: float, coef_norm: float, rows: ArrayLike
) -> np.float64 | Floats:
    """Bound ``|⟨x̂, a'⟩ - ⟨x, a'⟩|`` for each row ``a'``: Theorems 1 and 2.

    Parameters
    ----------
    relative_error : float
        Bound on ``‖x̂ - x‖ / ‖x‖``.
    coef_norm : float
        ``‖x‖``; or ``‖x̂‖``, if `relative_error` is relative to that (see `relative_error_bound`).
    rows : array-like of shape (d,) or (m, d)
        One new row, or several.

    Returns
    -------
    float or ndarray of shape (m,)
        ``relative_error * coef_norm * ‖a'‖``, one for each row.

    Examples
    --------
    >>> float(prediction_bound(0.5, coef_norm=2.0, rows=[3.0, 4.0]))
    5.0
    >>> prediction_bound(0.5, coef_norm=2.0, rows=[[3.0, 4.0], [0.0, 1.0]])
    array([5., 1.])
    """
    array = finite_array("rows", rows, ndim=1 if np.ndim(rows) == 1 else 2)
    norms = column_norms(array.T)  # of a single row: its only norm
    bounds: np.float64 | Floats = _coefficient_error(relative_error, coef_norm) * norms
    return bounds


def predictions_norm_bound(relative_error: float, coef_norm: float, rows: ArrayLike) -> float:
    """Bound ``‖A' x̂ - A' x‖`` over all rows of ``A'`` together: Theorems 1 and 2.

    Parameters
    ----------
    relative_error : float
        Bound on ``‖x̂ - x‖ / ‖x‖``.
    coef_norm : float
        ``‖x‖``; or ``‖x̂‖``, if `relative_error` is relative to that (see `relative_error_bound`).
    rows : array-like of shape (m, d)
        New rows, the paper's ``A'``.

    Returns
    -------
    float
        ``relative_error * coef_norm * ‖A'‖₂``. It is never above the norm of the bounds that
        `prediction_bound` gives to the rows one by one.

    Examples
    --------
    >>> predictions_norm_bound(0.5, coef_norm=2.0, rows=[[3.0, 0.0], [0.0, 4.0]])
    4.0
    """
    array = finite_array("rows", rows, ndim=2)
    return _coefficient_error(relative_error, coef_norm) * spectral_norm(array)


def _coefficient_error(relative_error: float, coef_norm: float) -> float:
    error = nonnegative("relative_error", relative_error, "pass a bound on the relative error")
    return error * nonnegative("coef_norm", coef_norm, "pass the norm of the coefficients")
