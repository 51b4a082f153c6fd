"""The furthest that exact ridge can be from some coefficients, for all that a sketch knows.

A sketch with 0 ⪯ E ⪯ Δ·I for E = AᵀA − BᵀB leaves many AᵀA possible. With M = BᵀB + γI, exact
ridge is the p with (M + E)p = r; for a given p there is such an E if and only if v = r − Mp has
‖v‖² ≤ Δ·p·v. The possible p are thus an ellipsoid, and the point of it furthest from given
coefficients is the worst case, which Lagrange's dual gives exactly (one quadratic constraint).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgepass.kernels import Float64, column_norms, unit_roundoff
from ridgepass.sketch import LowRank

# Every multiplier gives a bound; the best of these is within a per cent or two of the least.
MULTIPLIERS = np.geomspace(1e-6, 1e6, 121)[:, None]


def worst_case(
    covariance: LowRank, alpha: float, residual: Float64, start: Float64, coef: Float64
) -> tuple[Float64, Float64]:
    """Bound ‖y‖ and ‖y‖/‖x̂ + y‖ for all y such that p̂ + y is possible.

    Parameters
    ----------
    covariance : LowRank
        With a ``loss_bound``, Δ.
    alpha : float
        The ridge parameter γ, above zero.
    residual : ndarray of shape (n_features, n_targets)
        r − Mp̂.
    start : ndarray of shape (n_features, n_targets)
        p̂.
    coef : ndarray of shape (n_features, n_targets)
        x̂, which the second bound is relative to: p̂, or an iterate and p̂.

    Returns
    -------
    tuple of ndarray of shape (n_targets,)
        Infinite where nothing can be said.
    """
    residual = residual / alpha
    size = np.maximum(column_norms(residual), np.maximum(column_norms(start), column_norms(coef)))
    unit = np.where((size > 0) & np.isfinite(size), size, 1.0)
    ellipsoid = _Ellipsoid.of(covariance, alpha, residual / unit, start / unit, coef / unit)
    with np.errstate(all="ignore"):
        square, relative = ellipsoid.largest()
        absolute = unit * np.sqrt(square)
    relative = np.where(coef.any(axis=0), relative, np.where(absolute > 0, np.inf, 0.0))
    return known(absolute), known(relative)


@dataclass(frozen=True)
class _Ellipsoid:
    """All y, in the eigenvectors of M and divided by γ throughout.

    Attributes
    ----------
    loss : numpy.float64
        Δ/γ.
    spectrum : ndarray of shape (rank,)
        M/γ in the directions of the sketch; it is one in all others.
    inside, outside : dict
        Products of each pair of residual (r), start (p) and coef (x), for every direction of the
        sketch and for all others together.
    doubt : dict
        How much of the former may belong to the latter, for squares.
    length : ndarray of shape (n_targets,)
        ‖x̂‖², of which those two parts are the sum but for rounding.
    """

    loss: np.float64
    spectrum: Float64
    inside: dict[str, Float64]
    outside: dict[str, Float64]
    doubt: dict[str, Float64]
    length: Float64

    @classmethod
    def of(
        cls, covariance: LowRank, alpha: float, residual: Float64, start: Float64, coef: Float64
    ) -> "_Ellipsoid":
        vectors = {"r": residual, "p": start, "x": coef}
        images = covariance.project(np.hstack([residual, start, coef]))
        squares = covariance.squares[:, None]
        unit = np.divide(images, np.sqrt(squares), out=np.zeros_like(images), where=squares > 0)
        parts = dict(zip(vectors, np.split(unit, 3, axis=1), strict=True))
        # The length of each direction is known up to rounding of the largest only.
        top = 8 * covariance.unit * covariance.squares.max(initial=0.0)
        share = np.divide(top, squares[:, 0], out=np.zeros(len(squares)), where=squares[:, 0] > 0)
        inside, outside, doubt = {}, {}, {}
        for pair in ("rr", "pp", "xx", "rp", "rx", "px"):
            one, other = pair[0], pair[1]
            inside[pair] = parts[one] * parts[other]
            rest = (vectors[one] * vectors[other]).sum(axis=0) - inside[pair].sum(axis=0)
            if one == other:
                outside[pair] = np.maximum(rest, 0.0)
                doubt[pair] = np.minimum(share, 1.0) @ inside[pair]
            else:
                most = np.sqrt(outside[one * 2] * outside[other * 2])
                outside[pair] = np.clip(rest, -most, most)
        with np.errstate(over="ignore"):
            loss = np.float64(covariance.loss_bound or 0.0) / alpha
        length = np.square(coef).sum(axis=0)
        return cls(loss, 1 + covariance.squares / alpha, inside, outside, doubt, length)

    def largest(self) -> tuple[Float64, Float64]:
        """Return at least ‖y‖² and at least ‖y‖/‖x̂ + y‖.

        ‖y‖ ≤ θ‖x̂ + y‖ for all y if for some multiplier squared − linear·κ + quadratic·κ² ≤ 0, where
        κ = θ²/(1 − θ²) for θ below one and κ = θ²/(θ² − 1) above.
        """
        squared, linear, quadratic = self._dual((1 + MULTIPLIERS) / (1 + self.loss), 1.0)
        largest: Float64 = np.fmin.reduce(squared, axis=0)
        root = np.sqrt(np.square(linear) - 4 * quadratic * squared)
        least = np.fmin.reduce(np.where(linear > 0, 2 * squared / (linear + root), np.inf), axis=0)
        below = np.where(least < np.inf, np.sqrt(least / (1 + least)), np.inf)
        squared, linear, quadratic = self._dual(MULTIPLIERS / (1 + self.loss), -1.0)
        root = np.sqrt(np.square(linear) - 4 * quadratic * squared)
        most = np.fmax.reduce((linear + root) / (2 * quadratic), axis=0)
        above = np.where(most > 1, np.sqrt(most / (most - 1)), np.inf)
        return largest, np.fmin(below, above)

    def _dual(self, multiplier: Float64, sign: float) -> tuple[Float64, Float64, Float64]:
        """Return the largest of sign·‖y‖² + multiplier·(Δ·p·v − ‖v‖²) over all y whatsoever.

        And two sums more: with −κ(2x̂·y + ‖x̂‖²) added, the largest becomes the first − the
        second·κ + the third·κ². Each has shape (n_multipliers, n_targets).
        """
        k, loss = multiplier, self.loss

        def below(m: Float64) -> Float64:
            value: Float64 = k * m * (m + loss) - sign
            return value

        def total(pair: str, weight: Callable[[Float64], Float64], side: float = 1.0) -> Float64:
            """Sum over all directions; what is in doubt errs to the given side."""
            elsewhere = weight(np.ones(1))
            one, other = pair[0], pair[1]
            doubt = np.sqrt(self.doubt[one * 2] * self.doubt[other * 2])
            value: Float64 = weight(self.spectrum) @ self.inside[pair]
            return value + elsewhere * self.outside[pair] + side * np.abs(elsewhere) * doubt

        squared = (
            total("rr", lambda m: k * (k * loss**2 + 4 * sign) / (4 * below(m)))
            + total("rp", lambda m: k * loss * (k * loss * m - 2 * sign) / (2 * below(m)))
            + total("pp", lambda m: np.square(k * loss * m) / (4 * below(m)))
        )
        whole = {p: self.inside[p].sum(axis=0) + self.outside[p] for p in ("rr", "pp", "xx")}
        linear = self.length + k * (
            total("rx", lambda m: (loss + 2 * m) / below(m), side=-1.0)
            - total("px", lambda m: loss * m / below(m))
        )
        quadratic = total("xx", lambda m: 1 / below(m))
        # What the sums may be off by: they have a term for each direction, of either sign.
        steps = 8 * (len(self.spectrum) + 8) * unit_roundoff(np.dtype(np.float64))
        rounding = steps * (1 + 1 / np.abs(below(np.ones(1))))
        size = whole["rr"] + (1 + k) * loss**2 * whole["pp"]
        mixed = np.sqrt(whole["xx"]) * ((2 + loss) * np.sqrt(whole["rr"]) + np.sqrt(size))
        return (
            squared + rounding * k * (1 + loss**2 * k) * size,
            linear - rounding * (whole["xx"] + k * mixed),
            quadratic + rounding * whole["xx"],
        )


def known(bound: Float64) -> Float64:
    """Return infinity for what overflowed into nothing."""
    return np.where(np.isnan(bound), np.inf, bound)
