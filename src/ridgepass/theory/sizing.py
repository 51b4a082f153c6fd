"""How large a sketch, or a penalty, promises a wanted error: Theorems 1 and 2."""

from __future__ import annotations

import math
from typing import SupportsIndex

from numpy.typing import ArrayLike

from ridgepass.theory._arguments import nonnegative, positive, whole
from ridgepass.theory.coefficients import _TAIL, _share, _tails, fd_covariance_bound

_EPS = "ask for a relative error above 0"
_ALPHA = "raise the ridge penalty"
_MOST_ROWS = 2.0**53


def _rows(eps: float, alpha: float, tail: float, k: int, share: float) -> int | None:
    """Return the fewest rows whose bound, as computed, is at most `eps`; None beyond 2**53."""
    wanted = tail / alpha / eps / share
    if not wanted < _MOST_ROWS:
        return None
    gap = max(1, math.ceil(wanted))
    while tail / gap / share / alpha > eps:
        gap += 1
    while gap > 1 and tail / (gap - 1) / share / alpha <= eps:
        gap -= 1
    return k + gap


def sketch_size_for(
    eps: float, alpha: float, tail: float, k: SupportsIndex = 0, *, robust: bool = False
) -> int:
    """Return the smallest sketch that promises relative error `eps`: Theorems 1 and 2.

    Parameters
    ----------
    eps : float
        Wanted bound on ``‖x̂ - x‖ / ‖x‖``.
    alpha : float
        Ridge penalty, positive.
    tail : float
        ``‖A - A_k‖_F²``.
    k : int
        The rank at which `tail` was taken.
    robust : bool
        False for Frequent Directions (Theorem 1), True for the robust variant (Theorem 2).

    Returns
    -------
    int
        The least integer ``ℓ > k`` with ``ℓ >= tail / (alpha * eps) + k``, the fraction halved
        if `robust`. Roundings are settled by `relative_error_bound`, which is at most `eps` as
        computed at ℓ, and above it at ``ℓ - 1``.

    Examples
    --------
    >>> sketch_size_for(eps=0.1, alpha=2.0, tail=5.0, k=3)
    28
    >>> sketch_size_for(eps=0.1, alpha=2.0, tail=5.0, k=3, robust=True)
    16
    """
    rank = whole("k", k, 0)
    error, penalty = positive("eps", eps, _EPS), positive("alpha", alpha, _ALPHA)
    rows = _rows(error, penalty, nonnegative("tail", tail, _TAIL), rank, _share(robust))
    if rows is None:
        raise ValueError(
            f"eps={error!r} needs more than 2**53 rows: raise eps or alpha, or take a larger k."
        )
    return rows


def best_sketch_size_for(
    eps: float, alpha: float, singular_values: ArrayLike, *, robust: bool = False
) -> int:
    """Return the smallest `sketch_size_for` over every rank `k`.

    Parameters
    ----------
    eps : float
        Wanted bound on ``‖x̂ - x‖ / ‖x‖``.
    alpha : float
        Ridge penalty, positive.
    singular_values : array-like of shape (p,)
        All singular values of ``A``, in any order. The answer is never above ``p + 1``.
    robust : bool
        False for Theorem 1, True for Theorem 2.

    Returns
    -------
    int
        The smallest ℓ for which either theorem, at its best `k`, promises `eps`.

    Examples
    --------
    >>> best_sketch_size_for(eps=0.5, alpha=2.0, singular_values=[100.0, 1.0, 1.0, 1.0])
    4
    """
    error, penalty = positive("eps", eps, _EPS), positive("alpha", alpha, _ALPHA)
    share = _share(robust)
    tails = _tails(singular_values).tolist()
    sizes = (_rows(error, penalty, tail, k, share) for k, tail in enumerate(tails))
    return min(size for size in sizes if size is not None)  # the last tail is 0: never empty


def alpha_for(
    eps: float,
    sketch_size: SupportsIndex,
    tail: float,
    k: SupportsIndex = 0,
    *,
    robust: bool = False,
) -> float:
    """Return the smallest penalty at which a sketch promises error `eps`: Theorems 1 and 2.

    Parameters
    ----------
    eps : float
        Wanted bound on ``‖x̂ - x‖ / ‖x‖``.
    sketch_size : int
        Rows of the sketch, the paper's ℓ.
    tail : float
        ``‖A - A_k‖_F²``.
    k : int
        The rank at which `tail` was taken, below `sketch_size`.
    robust : bool
        False for Theorem 1, True for Theorem 2.

    Returns
    -------
    float
        ``tail / (eps * (sketch_size - k))``, halved if `robust`; 0 if there is no tail, when every
        penalty will do.

    Examples
    --------
    >>> alpha_for(eps=0.25, sketch_size=5, tail=12.0, k=1)
    12.0
    """
    error = positive("eps", eps, _EPS)
    bound = fd_covariance_bound(tail, sketch_size, k) / _share(robust)
    if bound == 0.0:
        return 0.0
    alpha = max(bound / error, math.ulp(0.0))
    if math.isinf(alpha):
        raise ValueError(f"eps={error!r} needs a penalty beyond the largest float: raise eps.")
    while bound / alpha > error:
        alpha = math.nextafter(alpha, math.inf)
    return alpha
