"""Bias, variance and risk of ridge coefficients in the fixed-design model ``b = A x + s Z``.

``A``, ``x`` and the noise level ``s`` are fixed; ``Z`` is standard Gaussian. The risk of an
estimate ``x̂`` is the expectation of ``‖A x̂ - A x‖²`` over ``Z``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ridgepass.theory._arguments import Floats, finite_array, nonnegative, positive


@dataclass(frozen=True)
class Risk:
    """A risk in its two parts: section "Risk bound" of the paper.

    Attributes
    ----------
    bias2 : float
        Squared bias, ``‖A (E[x̂] - x)‖²``.
    variance : float
        Variance, ``E ‖A (x̂ - E[x̂])‖²``.

    Examples
    --------
    >>> Risk(bias2=1.0, variance=2.0).total
    3.0
    """

    bias2: float
    variance: float

    @property
    def total(self) -> float:
        """Squared bias plus variance."""
        return self.bias2 + self.variance


@dataclass(frozen=True)
class RiskFactors:
    """Bounds on sketched over exact risk, part by part.

    Attributes
    ----------
    bias2 : float
        Bound on the ratio of the squared biases.
    variance : float
        Bound on the ratio of the variances.

    Examples
    --------
    >>> RiskFactors(bias2=1.5, variance=4.0).total
    4.0
    """

    bias2: float
    variance: float

    @property
    def total(self) -> float:
        """Bound on the ratio of the risks: the larger of the two."""
        return max(self.bias2, self.variance)


def exact_risk(A: ArrayLike, x: ArrayLike, alpha: float, noise: float) -> Risk:
    """Risk of exact ridge coefficients: Lemma 3, its first two equalities.

    Parameters
    ----------
    A : array-like of shape (n, d)
        The data.
    x : array-like of shape (d,)
        The true coefficients.
    alpha : float
        Ridge penalty, positive.
    noise : float
        Standard deviation ``s`` of the noise.

    Returns
    -------
    Risk
        ``alpha² ‖A (K + alpha I)⁻¹ x‖²`` and ``noise² ‖A (K + alpha I)⁻¹ Aᵀ‖_F²``.

    Examples
    --------
    >>> risk = exact_risk([[1.0, 0.0], [0.0, 1.0]], x=[2.0, 0.0], alpha=1.0, noise=2.0)
    >>> round(risk.bias2, 9), round(risk.variance, 9)
    (1.0, 2.0)
    """
    sigma, rows, truth, root = _scaled(A, x, alpha)
    height = np.hypot(sigma, 1.0)
    bias = root * (sigma / height) / height * (rows @ truth)
    kept = np.square(sigma / height)
    return _risk(bias, kept, noise)


def sketched_risk(
    A: ArrayLike,
    x: ArrayLike,
    alpha: float,
    noise: float,
    sketch: ArrayLike,
    shift: float = 0.0,
) -> Risk:
    """Risk of ridge coefficients solved with a sketch: Lemma 3, its next two equalities.

    Parameters
    ----------
    A : array-like of shape (n, d)
        The data.
    x : array-like of shape (d,)
        The true coefficients.
    alpha : float
        Ridge penalty, positive.
    noise : float
        Standard deviation ``s`` of the noise.
    sketch : array-like of shape (r, d)
        The rows ``C`` of the sketch; ``r`` may be 0.
    shift : float
        What a robust sketch adds to its diagonal: ``K̂ = CᵀC + shift I``.

    Returns
    -------
    Risk
        ``‖A ((K̂ + alpha I)⁻¹ K - I) x‖²`` and ``noise² ‖A (K̂ + alpha I)⁻¹ Aᵀ‖_F²``.

    Notes
    -----
    No matrix is inverted. ``A (K̂ + alpha I)⁻¹ Aᵀ`` is assembled as ``P Pᵀ`` from the part of ``A``
    inside the row space of the sketch and the part outside, each divided by the root of its
    eigenvalues. The bias is a difference, good to ``‖A‖₂² / alpha`` roundings: as
    good as the rounding of the sketch itself allows.

    Examples
    --------
    >>> identity = [[1.0, 0.0], [0.0, 1.0]]
    >>> sketched_risk(identity, x=[2.0, 0.0], alpha=1.0, noise=2.0, sketch=[[0.0, 1.0]])
    Risk(bias2=0.0, variance=5.0)
    """
    sigma, rows, truth, root = _scaled(A, x, alpha)
    C = finite_array("sketch", sketch, ndim=2, columns=rows.shape[1])
    floor = 1.0 + nonnegative("shift", shift, "pass the shift of a robust sketch") / root / root
    _, height, basis = np.linalg.svd(C / root, full_matrices=False)
    data = sigma[:, None] * rows
    inside = data @ basis.T
    outside = data - inside @ basis
    P = np.hstack([inside / np.hypot(height, math.sqrt(floor)), outside / math.sqrt(floor)])
    hat = P @ P.T
    signal = data @ truth
    return _risk(root * (hat @ signal - signal), hat, noise)


def _scaled(A: ArrayLike, x: ArrayLike, alpha: float) -> tuple[Floats, Floats, Floats, float]:
    """Singular values and right vectors of ``A / √alpha``, then ``x`` and ``√alpha``."""
    array = finite_array("A", A, ndim=2)
    if array.size == 0:
        raise ValueError(f"A must not be empty, got shape {array.shape}: pass at least one row.")
    truth = finite_array("x", x, ndim=1, columns=array.shape[1])
    root = math.sqrt(positive("alpha", alpha, "the risk is defined for a positive ridge penalty"))
    _, sigma, rows = np.linalg.svd(array / root, full_matrices=False)
    return sigma, rows, truth, root


def _risk(bias: Floats, hat: Floats, noise: float) -> Risk:
    level = nonnegative("noise", noise, "pass the standard deviation of the noise")
    return Risk(float(np.sum(np.square(bias))), level**2 * float(np.sum(np.square(hat))))
