"""How much worse bias² and variance may become when a sketch stands in for the data.

Each function bounds ``B²(x̂) / B²(x)`` or ``V(x̂) / V(x)``, the sketched over the exact part of the
risk, whatever the true coefficients and the noise. With ``D = K - K̂``, ``M = K + alpha I`` and
``M̂ = K̂ + alpha I`` the proofs rest on two identities of Lemma 3:

* the sketched bias is ``(I - N) z``, where ``z`` is the exact bias and ``N = A M̂⁻¹ D Aᵀ / alpha``;
* the variances are ``s² ‖A M̂⁻¹ Aᵀ‖_F²`` and ``s² ‖A M⁻¹ Aᵀ‖_F²``, so that ``M̂ ⪰ c M`` bounds their
  ratio by ``1 / c²``.
"""

from __future__ import annotations

import math

from ridgepass.theory._arguments import nonnegative, positive
from ridgepass.theory.risk import RiskFactors

_ERROR = "pass the norm of K - K̂"
_ALPHA = "raise the ridge penalty"
_EPS = "pass the relative error promised"


def risk_factors(
    covariance_error: float, alpha: float, spectral_norm: float, *, as_printed: bool = False
) -> RiskFactors:
    """Bound the risk of any sketch by its covariance error: Lemma 3.

    Parameters
    ----------
    covariance_error : float
        ``‖K - K̂‖₂`` or a bound on it, for any positive semi-definite ``K̂``.
    alpha : float
        Ridge penalty, positive.
    spectral_norm : float
        ``‖A‖₂``, the largest singular value of the data.
    as_printed : bool
        Return the paper's formula, whose bias is not a bound.

    Returns
    -------
    RiskFactors
        ``(1 + m)²`` and ``(1 + ‖A‖₂² / alpha)²``, where ``m = ‖A‖₂² ‖K - K̂‖₂ / alpha²``.

    Notes
    -----
    The print has ``1 + m²`` for the bias. Its proof bounds ``‖N - I‖²`` by ``‖N‖² + 1``, which
    fails as soon as ``N`` has a negative direction. One column with ``K = 1``, ``K̂ = 1.1`` and
    ``alpha = 1`` has ``N = -0.1 / 2.1``: the ratio is 1.097, the print gives 1.01. It can fail
    when ``K̂ ⪯ K``, too, if the two do not commute. ``‖N‖ <= m`` gives ``(1 + m)²``.

    The variance is right as printed, and needs no full column rank: ``M̂ ⪰ alpha I`` gives
    ``A M̂⁻¹ Aᵀ ⪯ A Aᵀ / alpha``.

    Examples
    --------
    >>> risk_factors(covariance_error=0.5, alpha=1.0, spectral_norm=1.0)
    RiskFactors(bias2=2.25, variance=4.0)
    >>> risk_factors(covariance_error=0.5, alpha=1.0, spectral_norm=1.0, as_printed=True)
    RiskFactors(bias2=1.25, variance=4.0)
    """
    eps, s = _ratios(covariance_error, alpha, spectral_norm)
    m = eps * s
    return RiskFactors(1.0 + m * m if as_printed else _square(1.0 + m), _square(1.0 + s))


def sharp_risk_factors(covariance_error: float, alpha: float, spectral_norm: float) -> RiskFactors:
    """Bound the risk of any sketch by factors that tend to 1 with its error: not in the paper.

    Parameters
    ----------
    covariance_error : float
        ``‖K - K̂‖₂`` or a bound on it, for any positive semi-definite ``K̂``.
    alpha : float
        Ridge penalty, positive.
    spectral_norm : float
        ``‖A‖₂``, the largest singular value of the data.

    Returns
    -------
    RiskFactors
        Never above `risk_factors`. With ``ε = covariance_error / alpha`` and ``s = ‖A‖₂² / alpha``:
        ``(1 + ε s / √((1 + s)(1 - ε)))²`` and ``1 / (1 - ε)²`` where those are defined and smaller.

    Notes
    -----
    ``M ⪰ alpha I`` gives ``D ⪯ ε M``, hence ``M̂ = M - D ⪰ (1 - ε) M``: this is the variance. For
    the bias, ``‖A M̂^(-1/2)‖² <= s / ((1 + s)(1 - ε))`` by the same order, ``‖M̂^(-1/2)‖² <= 1 /
    alpha``, and the product with ``‖D‖ ‖A‖ / alpha`` bounds ``‖N‖``.

    Examples
    --------
    >>> sharp_risk_factors(covariance_error=0.5, alpha=1.0, spectral_norm=7.0)
    RiskFactors(bias2=34.81, variance=4.0)
    """
    eps, s = _ratios(covariance_error, alpha, spectral_norm)
    variance = 1.0 + s
    m = eps * s
    if eps < 1.0:
        variance = min(variance, 1.0 / (1.0 - eps))
        m /= max(1.0, math.sqrt((1.0 + s) * (1.0 - eps)))
    return RiskFactors(_square(1.0 + m), _square(variance))


def fd_risk_factors(
    eps: float, alpha: float, spectral_norm: float, *, as_printed: bool = False
) -> RiskFactors:
    """Bound the risk of Frequent Directions that promise `eps`: Theorem 1.

    Parameters
    ----------
    eps : float
        Relative error promised by Theorem 1: at least ``‖K - K̂‖₂ / alpha``.
    alpha : float
        Ridge penalty, positive.
    spectral_norm : float
        ``‖A‖₂``, the largest singular value of the data.
    as_printed : bool
        Return the paper's formula, whose bias is not a bound.

    Returns
    -------
    RiskFactors
        ``(1 + eps s)²`` and ``(1 + s)²``, where ``s = ‖A‖₂² / alpha``.

    Notes
    -----
    The print has ``1 + (eps s)²`` for the bias, from Lemma 3. Frequent Directions keep ``K̂ ⪯ K``,
    so that it takes a stream made for the purpose to exceed it; the tests hold one.

    Examples
    --------
    >>> fd_risk_factors(eps=0.5, alpha=1.0, spectral_norm=1.0)
    RiskFactors(bias2=2.25, variance=4.0)
    """
    penalty = positive("alpha", alpha, _ALPHA)
    return risk_factors(
        positive("eps", eps, _EPS) * penalty, penalty, spectral_norm, as_printed=as_printed
    )


def rfd_risk_factors(
    eps: float, alpha: float, spectral_norm: float, *, as_printed: bool = False
) -> RiskFactors:
    """Bound the risk of Robust Frequent Directions that promise `eps`: Theorem 2.

    Parameters
    ----------
    eps : float
        Relative error promised by Theorem 2: at least ``‖K - K̂‖₂ / alpha``.
    alpha : float
        Ridge penalty, positive.
    spectral_norm : float
        ``‖A‖₂``, the largest singular value of the data.
    as_printed : bool
        Return the paper's formulas; its bias is a bound only when ``eps s >= 2/3``.

    Returns
    -------
    RiskFactors
        ``(1 + eps s)²`` and ``((1 + s) / (1 + s/2))²``, where ``s = ‖A‖₂² / alpha``. The second
        is below 4 and below ``1 + s``. It holds for robust sketches, not for every ``K̂``.

    Notes
    -----
    The print has ``1 + 4 (eps s)²`` for the bias. That is at least ``(1 + eps s)²``, and so a
    bound, exactly when ``eps s >= 2/3``; below, a robust sketch can exceed it.

    The print has ``1 + s`` for the variance, without Lemma 3's square. It holds, though not by
    Lemma 3. What is shrunk, ``K - CᵀC``, lies between 0 and twice the shift, so ``K̂`` is at least
    ``K - shift I`` and at least ``shift I``; their mean gives ``K̂ ⪰ K / 2``. Then ``A M̂⁻¹ Aᵀ ⪯
    A (K/2 + alpha I)⁻¹ Aᵀ``, whose eigenvalues exceed the exact ones at most by the factor at
    ``‖A‖₂``. And ``(1 + s)² <= (1 + s)(1 + s/2)²``.

    Examples
    --------
    >>> rfd_risk_factors(eps=0.5, alpha=1.0, spectral_norm=2.0)
    RiskFactors(bias2=9.0, variance=2.77...)
    >>> rfd_risk_factors(eps=0.5, alpha=1.0, spectral_norm=2.0, as_printed=True)
    RiskFactors(bias2=17.0, variance=5.0)
    """
    penalty = positive("alpha", alpha, _ALPHA)
    error, s = _ratios(positive("eps", eps, _EPS) * penalty, penalty, spectral_norm)
    m = error * s
    if as_printed:
        return RiskFactors(1.0 + 4.0 * m * m, 1.0 + s)
    return RiskFactors(_square(1.0 + m), _square((1.0 + s) / (1.0 + s / 2.0)))


def conditioned_variance_factor(
    covariance_error: float,
    alpha: float,
    spectral_norm: float,
    smallest_singular_value: float,
    *,
    as_printed: bool = False,
) -> float:
    """Bound the variance of any sketch by the condition of ``A``: supplement, first lemma.

    Parameters
    ----------
    covariance_error : float
        ``‖K - K̂‖₂`` or a bound on it.
    alpha : float
        Ridge penalty, positive.
    spectral_norm : float
        ``‖A‖₂``, the largest singular value of the data.
    smallest_singular_value : float
        The smallest that is not zero: ``1 / ‖A⁺‖₂``.
    as_printed : bool
        Return the paper's formula, which is not a bound.

    Returns
    -------
    float
        ``(1 + ‖A‖₂ ‖A⁺‖₂ ‖K - K̂‖₂ / alpha)²``.

    Notes
    -----
    The print has ``1 + ‖A‖₂² ‖A⁺‖₂² ‖K - K̂‖₂² / alpha``, which changes with the unit of the data
    while the ratio does not: the penalty should be squared. Then it still lacks the term that
    squaring a sum brings: its proof bounds ``‖N + I‖²`` by ``‖N‖² + 1``.

    Examples
    --------
    >>> conditioned_variance_factor(0.25, 1.0, spectral_norm=2.0, smallest_singular_value=1.0)
    2.25
    """
    eps, _ = _ratios(covariance_error, alpha, spectral_norm)
    least = positive("smallest_singular_value", smallest_singular_value, "leave out the zeros")
    if least > spectral_norm:
        raise ValueError(
            f"smallest_singular_value must be at most spectral_norm, got {least!r} and "
            f"{float(spectral_norm)!r}: exchange them."
        )
    m = eps * (spectral_norm / least)
    return 1.0 + m * m * alpha if as_printed else _square(1.0 + m)


def full_rank_variance_factor(
    covariance_error: float, smallest_singular_value: float, *, as_printed: bool = False
) -> float:
    """Bound the variance of any sketch of full-rank data: supplement, second lemma.

    Parameters
    ----------
    covariance_error : float
        ``‖K - K̂‖₂`` or a bound on it; must be below ``smallest_singular_value²``.
    smallest_singular_value : float
        Singular value ``d`` of ``A``, which must have full column rank: ``1 / ‖A⁺‖₂``.
    as_printed : bool
        Return the paper's formula, which is not a bound.

    Returns
    -------
    float
        ``1 / (1 - η)²``, where ``η = ‖A⁺‖₂² ‖K - K̂‖₂``.

    Notes
    -----
    ``K ⪰ I / ‖A⁺‖²`` gives ``M̂ ⪰ M - D ⪰ (1 - η) M``. The variance is a squared norm, so the
    factor squares; the print has it unsquared. As ``alpha`` tends to 0, ``K̂ = (1 - η) K`` attains
    the square. Without full column rank no such bound holds: `sharp_risk_factors` needs none.

    Examples
    --------
    >>> full_rank_variance_factor(covariance_error=2.0, smallest_singular_value=2.0)
    4.0
    """
    error = nonnegative("covariance_error", covariance_error, _ERROR)
    least = positive("smallest_singular_value", smallest_singular_value, "A needs full column rank")
    eta = error / least / least
    if eta >= 1.0:
        raise ValueError(
            f"covariance_error must be below smallest_singular_value squared, got a ratio of "
            f"{eta:.3g}: take a larger sketch, or use sharp_risk_factors."
        )
    return 1.0 / (1.0 - eta) if as_printed else _square(1.0 / (1.0 - eta))


def _square(value: float) -> float:
    return value * value


def _ratios(covariance_error: float, alpha: float, spectral_norm: float) -> tuple[float, float]:
    """Return ``‖K - K̂‖ / alpha`` and ``‖A‖² / alpha``, which do not depend on the data's unit."""
    penalty = positive("alpha", alpha, _ALPHA)
    error = nonnegative("covariance_error", covariance_error, _ERROR)
    norm = nonnegative("spectral_norm", spectral_norm, "pass the largest singular value")
    return error / penalty, _square(norm / math.sqrt(penalty))
