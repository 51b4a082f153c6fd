"""Bounds in one direction: how far q·x̂ can be from q·x, for a row or a single coefficient."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ridgepass.kernels import (
    DOUBLE,
    Float64,
    binary_scales,
    column_norms,
)
from ridgepass.sketch import LowRank, TrackedCovariance
from ridgepass.sketch.base import inverse_roots
from ridgepass.sketch.tracked_covariance import MixedRows

# Shares of the largest θ for which K + γI ⪰ θK̂ + (γ − θε)I says anything.
SHARES = (0.9, 0.5, 0.1)

Inverse = Callable[[Float64], Float64]


@dataclass(frozen=True)
class Spectrum:
    """Orthonormal directions V, left implicit, and an eigenvalue for each.

    Attributes
    ----------
    rows : MixedRows
        V.
    values : ndarray of shape (rank,)
        Eigenvalues.
    unit : float
        How nearly orthonormal V is: an error in a direction is this times the largest eigenvalue
        over its own.
    """

    rows: MixedRows
    values: Float64
    unit: float = DOUBLE

    @classmethod
    def of(cls, covariance: LowRank | TrackedCovariance) -> "Spectrum":
        """Return the eigenpairs of SᵀS, or of the Nyström part of K̂."""
        if isinstance(covariance, TrackedCovariance):
            values, by = covariance.eigenpairs
            return cls(covariance.followed.image.mixed(covariance.followed.unit * by), values)
        roots = inverse_roots(covariance.squares, covariance.unit)
        rows = MixedRows(covariance.rows, roots[:, None] * covariance.mix, covariance.columns)
        return cls(rows, np.where(roots > 0, covariance.squares, 0.0), covariance.unit)

    def form(self, inverses: Sequence[Inverse], vectors: Float64 | None) -> Float64:
        """Return at least √(qᵀf(Λ)q) for columns q, or for each unit vector; the least of some f.

        Each falls from f(0) on. Outside V the eigenvalue is zero.
        """
        if vectors is None:
            squares = np.ones(self.rows.n_columns)
            found = [self._root(f, squares, self._held(f)) for f in inverses]
            return np.asarray(np.fmin.reduce(found))
        unit = binary_scales(vectors)
        vectors = vectors / unit
        squares, along = np.square(column_norms(vectors)), np.square(self.rows.project(vectors))
        found = [self._root(f, squares, self._less(f) @ along) for f in inverses]
        return np.asarray(unit * np.fmin.reduce(found))

    def _less(self, inverse: Inverse) -> Float64:
        """Return f(0) − f(Λ)."""
        return float(inverse(np.zeros(1))[0]) - inverse(self.values)

    def _held(self, inverse: Inverse) -> Float64:
        """Return qᵀ(f(0) − f(Λ))q for each unit vector."""
        less = np.maximum(self._less(inverse), 0.0)
        held = np.empty(self.rows.n_columns)
        for span, rows in self.rows.walk():
            held[span] = less @ np.square(rows)
        return held

    def _root(self, inverse: Inverse, squares: Float64, inside: Float64) -> Float64:
        outside, less = float(inverse(np.zeros(1))[0]), self._less(inverse)
        largest = float(self.values.max(initial=0.0))
        little = np.divide(less, self.values, out=np.zeros_like(less), where=self.values > 0)
        terms = self.rows.n_terms + self.rows.n_columns
        doubt = 16 * self.unit * largest * float(little.max(initial=0.0))
        doubt += 4 * (terms + 8) * DOUBLE * outside
        found: Float64 = np.maximum(outside * squares - inside, 0.0) + doubt * squares
        return np.sqrt(np.minimum(found, outside * squares))


@dataclass(frozen=True)
class Width:
    """|q·(x̂ − x)| ≤ |q·centre| + size·√(qᵀf(Λ)q) + slack·‖q‖ for every target and f.

    Attributes
    ----------
    spectrum : Spectrum
        Λ, and its directions.
    inverses : sequence of callable
        f, each of which will do.
    size, slack : ndarray of shape (n_targets,)
        What multiplies the root, and the length of q.
    centre : ndarray of shape (n_features, n_targets) or None
        Zero if None.
    """

    spectrum: Spectrum
    inverses: Sequence[Inverse]
    size: Float64
    slack: Float64
    centre: Float64 | None = None

    def bound(self, vectors: Float64 | None) -> Float64:
        """Return the bound for columns q, or for each unit vector: a row each."""
        roots = self.spectrum.form(self.inverses, vectors)
        lengths = np.ones(len(roots)) if vectors is None else column_norms(vectors)
        found = np.multiply.outer(roots, self.size) + np.multiply.outer(lengths, self.slack)
        if self.centre is not None:
            found += np.abs(self.centre if vectors is None else vectors.T @ self.centre)
        return found


@dataclass(frozen=True)
class Widths:
    """The least of several bounds, made when they are first asked for.

    They hold as long as the sketch is what they are made of: a certificate outlives it, and the
    directions are views.
    """

    make: Callable[[], Sequence[Width]]
    unchanged: Callable[[], bool]

    @cached_property
    def _made(self) -> Sequence[Width]:
        return self.make()

    def __call__(self, vectors: Float64 | None) -> Float64 | None:
        """Return bounds for columns q, or for each unit vector if None; None if they are void."""
        if not self.unchanged():
            return None
        with np.errstate(all="ignore"):
            if not self._made:
                return None
            found = np.fmin.reduce([width.bound(vectors) for width in self._made])
        return np.where(np.isnan(found), np.inf, found) if self.unchanged() else None


def by_leverage(
    covariance: LowRank, alpha: float, moved: float, energy: Float64, slack: Float64
) -> list[Width]:
    """Bound by √(q·(K + γI)⁻¹q) times an energy, since K is at least SᵀS but for rounding."""
    ridge = alpha - covariance.rounding - moved
    if covariance.loss_bound is None or ridge <= alpha / 2:
        return []
    spectrum, size = Spectrum.of(covariance), energy / math.sqrt(ridge)
    return [Width(spectrum, [lambda values: ridge / (values + ridge)], size, slack)]


def by_distance(
    covariance: TrackedCovariance, alpha: float, distance: float, energy: Float64, slack: Float64
) -> list[Width]:
    """Do the same where ‖K − K̂‖₂ is at most ``distance``.

    K is then at least θ(K̂ − ε) for every θ up to one, and K + γI at least θK̂ + (γ − θε)I.
    """
    if not math.isfinite(distance):
        return []
    spectrum, most = Spectrum.of(covariance), min(1.0, alpha / distance) if distance > 0 else 1.0

    def inverse(share: float) -> Inverse:
        factor = share * most
        return lambda values: alpha / (factor * values + (alpha - factor * distance))

    size = energy / math.sqrt(alpha)
    return [Width(spectrum, [inverse(share) for share in SHARES], size, slack)]


def by_ellipsoid(
    covariance: LowRank, alpha: float, rest: Float64, start: Float64, slack: Float64
) -> list[Width]:
    """Bound by the ellipsoid of all p with (SᵀS + E + γI)p = r and 0 ⪯ E ⪯ Δ.

    With M = SᵀS + γI and Q = M(M + Δ), its centre is Q⁻¹(M + Δ/2)r and its half-width along q is
    (Δ/2)·√(r·Q⁻¹r)·√(q·Q⁻¹q). ``start`` is the p̂ that is compared with it.
    """
    loss = covariance.loss_bound
    if loss is None or not math.isfinite(loss):
        return []
    # Over alpha, since squares of K may be out of range.
    spectrum, loss = Spectrum.of(covariance), loss / alpha
    rest = rest / alpha

    def inverse(values: Float64) -> Float64:
        ridges: Float64 = values / alpha + 1
        return 1 / (ridges * (ridges + loss))

    def middle(values: Float64) -> Float64:
        ridges: Float64 = values / alpha + 1
        return (ridges + loss / 2) / (ridges * (ridges + loss))

    outside, unit = float(middle(np.zeros(1))[0]), binary_scales(rest)
    inside = spectrum.rows.project(rest / unit)
    inside *= (middle(spectrum.values) - outside)[:, None]
    centre = outside * rest + unit * spectrum.rows.lift(inside)
    size = loss / 2 * spectrum.form([inverse], rest)
    return [Width(spectrum, [inverse], size, slack, start - centre)]
