"""AᵀA as a followed subspace knows it: exactly on that subspace, with a tail for all the rest.

K = AᵀA is known where a basis Ω (orthonormal rows) has been followed: Y = ΩK and M = ΩKΩᵀ. Its
Nyström approximation YᵀM⁻¹Y is exact on Ω, so what it leaves out, E = K − YᵀM⁻¹Y, has EΩᵀ = 0 and
lives outside Ω. There a tail stands for it: K̂ = YᵀM⁻¹Y + (I − P)·T·(I − P) with P = ΩᵀΩ and a
diagonal T. docs/tracked.md derives all of it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ridgepass.kernels import (
    DOUBLE,
    FEW_VECTORS,
    Float64,
    Part,
    Rows,
    apply,
    apply_transposed,
    binary_scales,
    column_norms,
    is_sparse,
    panel,
    panels,
    top_eigenpairs,
)
from ridgepass.sketch.base import LowRank

# How much of the tail is taken from E's diagonal for each part of ‖E‖²_F that the variation of that
# diagonal explains. It did nearly as well as the better of a scalar and a diagonal on all data that
# we have: mixed, correlated, uneven and sparse columns.
DIAGONAL_SLOPE = 2.0
PANEL = 1 << 18  # numbers at a time, so that what is done to them stays in the cache
JITTER = 1e-14  # relative to each diagonal entry: M is positive but for rounding
# Below this share of the vectors that tell of E, what lies outside Ω is too little to measure.
LEAST_OUTSIDE = 1e-10
# Roundings of the largest eigenvalue below which no starting point is kept: K is not known there.
LEAST_RIDGE = 1e3
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)

Solve = Callable[[Float64], Float64]


@dataclass(frozen=True)
class MixedRows:
    """The rows mix·vstack(parts)·diag(columns)/unit, left implicit.

    ``rough`` multiplies in the parts' own dtype, not in float64.
    """

    parts: tuple[Part, ...]
    mix: Float64 | None = None
    columns: Float64 | None = None
    unit: float = 1.0
    rough: bool = False

    def project(self, vectors: Float64) -> Float64:
        """Return rows·vectors."""
        if self.columns is not None:
            vectors = self.columns[:, None] * vectors
        if self.rough:
            (part,) = self.parts
            scale = binary_scales(vectors)
            found = _thin(part, (vectors / scale).astype(part.dtype)) * scale
        else:
            found = apply(self.parts, vectors)
        found = found / self.unit
        return found if self.mix is None else self.mix @ found

    def lift(self, weights: Float64) -> Float64:
        """Return rowsᵀ·weights."""
        weights = (weights if self.mix is None else self.mix.T @ weights) / self.unit
        if self.rough:
            (part,) = self.parts
            scale = binary_scales(weights)
            found = _thin(part.T, (weights / scale).astype(part.dtype)) * scale
        else:
            found = apply_transposed(self.parts, weights)
        return found if self.columns is None else self.columns[:, None] * found

    def walk(
        self, factor: Float64 | None = None, width: int | None = None
    ) -> Iterator[tuple[slice, Any]]:
        """Yield ``factor``·rows, some columns at a time."""
        mix = self.mix
        if factor is not None:
            mix = factor if mix is None else factor @ mix
        if mix is not None:
            mix = mix / self.unit
            mix = mix.astype(self.parts[0].dtype) if self.rough else mix
        sizes = [part.shape[0] for part in self.parts]
        cuts = None if mix is None else np.split(mix, np.cumsum(sizes)[:-1], axis=1)
        for span in panels(self.parts[0].shape[1], width or panel_width(max(sizes))):
            if cuts is None:
                (part,) = self.parts
                rows = part[:, span] * part.dtype.type(1 / self.unit)
            else:
                rows = 0.0
                for cut, part in zip(cuts, self.parts, strict=True):
                    chunk = panel(part, span)
                    rows = rows + ((chunk.T @ cut.T).T if is_sparse(chunk) else cut @ chunk)
            yield span, rows if self.columns is None else rows * self.columns[span]

    def gram(self) -> Float64:
        """Return rows·rowsᵀ: rows are divided before they are multiplied, and so are in range."""
        total: Any = 0.0
        for _, rows in self.walk():
            part = rows if self.rough else rows.astype(np.float64, copy=False)
            total = total + (part @ part.T).astype(np.float64)  # half the work, as NumPy does it
        return np.asarray(total)

    def rescaled(self, columns: Float64) -> "MixedRows":
        """Return the same with columns multiplied."""
        together = columns if self.columns is None else self.columns * columns
        return replace(self, columns=together, rough=False)


@dataclass(frozen=True)
class Followed:
    """What is followed of K, divided by a unit, and what is known of the rest.

    Attributes
    ----------
    basis, image : MixedRows
        Ω and Y = ΩK.
    middle : ndarray of shape (size, size)
        M = ΩYᵀ.
    starts, start_images : ndarray of shape (n_features, n_targets)
        Where solutions start from, w, and h = Kw; zeros for none.
    mixed : bool
        Whether the starting points are those of mixtures of the targets: they then tell of the
        tail, and solutions start from zero.
    diagonal : ndarray of shape (n_features,)
        That of K.
    rank : int
        At least the rank of K.
    unit : float
        K is this many times what all of these are of: a power of two, so that squares of K are in
        range.
    share, outside : float, ndarray of shape (n_features,) or None
        The diagonal's share of the tail, and what share of each column's squares E has, if that is
        to be taken from before.
    tail, largest_tail : float or None, float
        The tail as one number where no starting point tells it, if it is known in another way; and
        what it is at most.
    rounding : float
        Unit roundoff of the rows.
    n_sums : int
        The longest sum, of squares.
    """

    basis: MixedRows
    image: MixedRows
    middle: Float64
    starts: Float64
    start_images: Float64
    diagonal: Float64
    rank: int
    mixed: bool = False
    unit: float = 1.0
    share: float = 0.0
    outside: Float64 | None = None
    tail: float | None = None
    largest_tail: float = math.inf
    rounding: float = DOUBLE
    n_sums: int = 0


class TrackedCovariance:
    """K̂, and what solves with it.

    Methods with an underscore work in the units of `Followed`, and so do their γ; all others in
    those of the data.
    """

    shift: ClassVar[float] = 0.0
    error: ClassVar[float] = math.inf
    loss_bound: ClassVar[None] = None
    cross: ClassVar[None] = None
    certain: LowRank | None = None  # a sketch of the same rows that bounds its own error

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        # By its diagonal: leading directions may be many times the others.
        self._scale = 1 / np.sqrt(np.maximum(np.diagonal(followed.middle), SMALLEST_NORMAL))
        scaled = followed.middle * np.outer(self._scale, self._scale)
        scaled[np.diag_indices_from(scaled)] += JITTER
        self._factor = _cholesky_factor(scaled)

    @cached_property
    def squares(self) -> Float64:
        """YYᵀ."""
        return self.followed.image.gram()

    @property
    def mass(self) -> float:
        """‖A‖_F², the trace of K."""
        return self.followed.unit * float(self.followed.diagonal.sum())

    @property
    def mass_rounding(self) -> float:
        """Bound the rounding of ``mass``: squares are summed up in float64."""
        return (self.followed.n_sums + 8) * DOUBLE * self.mass

    def rescaled(self, columns: Float64, column_mass: Float64) -> "TrackedCovariance":
        """Return the same for A·diag(columns)."""
        old = self.followed
        inverse = np.divide(1.0, columns, out=np.zeros_like(columns), where=columns > 0)
        basis = old.basis.rescaled(inverse)
        mix = orthonormal_mix(basis.gram())
        basis, image = (
            replace(rows, mix=mix if rows.mix is None else mix @ rows.mix)
            for rows in (basis, old.image.rescaled(columns))
        )
        down, up = inverse[:, None], columns[:, None]
        return TrackedCovariance(
            replace(
                old,
                basis=basis,
                image=image,
                middle=_symmetric(mix @ old.middle @ mix.T),
                starts=down * old.starts,
                start_images=up * old.start_images,
                diagonal=np.square(columns) * old.diagonal,
                outside=None,
            )
        )

    def multiply(self, vectors: Float64, alpha: float = math.inf) -> Float64:
        """Return K̂·vectors with the tail for ``alpha``."""
        scale = binary_scales(vectors)
        vectors = vectors / scale
        tails, outside = self._tails(alpha / self.followed.unit), self._out(vectors)
        rest = self._out((tails * outside.T).T) if np.ndim(tails) else tails * outside
        product: Float64 = self.followed.unit * (scale * (self._low(vectors) + rest))
        return product

    def tails(self, alpha: float) -> float | Float64:
        """Return T for solving at ``alpha``: one number, or one for each column."""
        return self.followed.unit * self._tails(alpha / self.followed.unit)

    def inverse(self, alpha: float) -> Solve:
        """Return what multiplies by (K̂ + alpha·I)⁻¹."""
        invert, unit = self._inverse(alpha / self.followed.unit), self.followed.unit
        return lambda vectors: invert(vectors / unit)

    def solution(self, alpha: float, cross: Float64) -> Float64:
        """Return coefficients for Aᵀb, from the starting points on."""
        gamma, scaled = alpha / self.followed.unit, cross / self.followed.unit
        if self.followed.mixed:
            return self._inverse(gamma)(scaled)
        return self._solution(gamma, scaled)[0]

    def moved(self, alpha: float, cross: Float64) -> tuple[Float64, Float64]:
        """Return w and h for starting points at the solution for ``alpha``, w of unit length."""
        followed, least = self.followed, LEAST_RIDGE * self.followed.rounding
        gamma = max(alpha / followed.unit, least * float(np.diagonal(followed.middle).max()))
        steps, rest = self._from_starts(gamma, cross / followed.unit)
        delta, image = self._step(gamma, rest)
        point = steps * followed.starts + delta
        norms = column_norms(point)
        per = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > SMALLEST_NORMAL)
        image = steps * followed.start_images + image
        return per * point, followed.unit * (per * image)

    def _step(self, gamma: float, rest: Float64) -> tuple[Float64, Float64]:
        """Return δ with (K̂ + γI)δ near ``rest``, and K̂δ.

        Y is taken for MΩ, which costs no Gram matrix of Y.
        """
        followed, tails = self.followed, self._tails(gamma)
        basis, image, middle = followed.basis, followed.image, followed.middle
        ridges = tails + gamma if isinstance(tails, float) else (tails + gamma)[:, None]
        within = _dividing(middle + gamma * np.eye(len(middle)))
        size = binary_scales(rest)
        left = rest / size
        inside = basis.project(left)
        weights = within(inside)
        outside = (left - basis.lift(inside)) / ridges
        if not isinstance(tails, float):
            outside = self._out(outside)
        delta = basis.lift(weights) + outside
        tailed = outside * (ridges - gamma)
        if not isinstance(tails, float):
            tailed = self._out(tailed)
        low = image.lift(weights + self._divide(image.project(outside)))
        return size * delta, size * (low + tailed)

    def root(self) -> Float64:
        """Return what makes R of Y such that RᵀR is YᵀM⁻¹Y."""
        return self._root / math.sqrt(self.followed.unit)

    @cached_property
    def eigenpairs(self) -> tuple[Float64, Float64]:
        """The eigenvalues of YᵀM⁻¹Y, descending, and what makes its eigenvectors of Y, as rows."""
        root, unit = self._root, self.followed.unit
        values, vectors = top_eigenpairs(root @ self.squares @ root.T, len(root))
        values = self._sound(values)
        return unit * values, (vectors / np.sqrt(values)).T @ root / unit

    def _sound(self, values: Float64) -> Float64:
        """Return eigenvalues that can be divided by: a direction of less is lost in rounding."""
        least = (4 * self.followed.rounding) ** 2 * float(values.max(initial=0.0))
        return np.maximum(values, max(least, SMALLEST_NORMAL))

    def leading(
        self, crossed: Float64, gram: Float64, factor: float
    ) -> tuple[Float64, Float64, Float64]:
        """Return the leading eigenvectors of YᵀM⁻¹Y + XᵀX, as many as there are in the basis.

        As what makes them of Y and of factor·X, and their eigenvalues. ``crossed`` is factor·XYᵀ
        and ``gram`` factor²·XXᵀ.
        """
        root, size, unit = self._root, len(self._root), self.followed.unit
        near = factor * math.sqrt(unit)  # one, or nearly
        inner, mixed = root @ self.squares @ root.T, crossed / unit @ root.T / near
        stacked = np.block([[inner, mixed.T], [mixed, gram / near**2]])
        values, vectors = top_eigenpairs(stacked, size)
        values = self._sound(values[:size])
        mix = (vectors / np.sqrt(values)).T
        return mix[:, :size] @ root / unit, mix[:, size:] / near, unit * values

    def quadratic(self, columns: Float64) -> Float64:
        """Estimate xᵀKx for each column x."""
        scale = binary_scales(columns)
        columns = columns / scale
        low, outside, tails = self._low(columns), self._out(columns), self._tails(math.inf)
        found: Float64 = np.einsum("dt,dt->t", columns, low)
        found = found + np.einsum("dt,dt->t", (tails * outside.T).T, outside)
        return scale * (scale * self.followed.unit * np.maximum(found, 0.0))

    def measured_share(self, probes: Rows, images: Float64) -> float:
        """Return how much of the tail should be E's diagonal; the rest is one number for all.

        A diagonal is right where columns are uneven or sparse. Where E has large eigenvalues that
        no diagonal shows, it falls far short of them, and solutions become too long. What tells is
        how much of ‖E‖²_F the variation of the diagonal explains; ‖Eφ‖² of Gaussian vectors φ, of
        which ``probes`` has a row each, is ‖E‖²_F on average.
        """
        if not len(probes):
            return 0.0
        points = probes.astype(np.float64).T
        lost = self._parts_outside(points, images.T / self.followed.unit)[1]
        return diagonal_share(self._diagonal, float(np.square(lost).sum(axis=0).mean()))

    def with_tail(self, share: float, outside: Float64 | None) -> "TrackedCovariance":
        """Return the same with another tail."""
        return TrackedCovariance(replace(self.followed, share=share, outside=outside))

    def outside_shares(self) -> Float64:
        """Return what share of each column's squares E has."""
        whole = self.followed.diagonal
        return np.divide(self._diagonal, whole, out=np.zeros_like(whole), where=whole > 0)

    @cached_property
    def _left(self) -> float:
        """At least the trace of E, which no eigenvalue of it exceeds: K̂ has at least that of M."""
        inside = float(np.trace(self.followed.middle))
        return max(float(self.followed.diagonal.sum()) - inside, 0.0)

    @cached_property
    def _diagonal(self) -> Float64:
        """That of E."""
        followed = self.followed
        if followed.outside is not None:
            return followed.outside * followed.diagonal
        kept = np.empty_like(followed.diagonal)
        for span, rows in followed.image.walk(self._root):
            kept[span] = np.einsum("ij,ij->j", rows, rows)
        return np.maximum(followed.diagonal - kept, 0.0)

    def _parts_outside(self, points: Float64, images: Float64) -> tuple[Float64, Float64]:
        """Return (I − P)·points, and E·points, which lies outside too."""
        basis, image = self.followed.basis, self.followed.image
        count = points.shape[1]
        inside = basis.project(np.hstack([points, images]))
        seen = image.project(points)
        # P·Ep = Ωᵀ(Ωh − Yp), which is zero but for what a turn has put into h.
        lifted = basis.lift(np.hstack([inside[:, :count], inside[:, count:] - seen]))
        left = images - image.lift(self._divide(seen)) - lifted[:, count:]
        return points - lifted[:, :count], left

    @cached_property
    def _measured(self) -> tuple[float, float, float, float]:
        """The sums that τ is made of: a unit u, ‖p‖², ‖Ep‖²/u² and p·Ep/u of all p outside Ω.

        p are the starting points.
        """
        points = self.followed.starts
        if not points.any():
            return 1.0, 0.0, 0.0, 0.0
        inside, images = self._parts_outside(points, self.followed.start_images)
        size = float(np.abs(images).max(initial=0.0))
        scale = size if size > 0 else 1.0
        images, left = images / scale, float(np.square(inside).sum())
        return (
            scale,
            left if left > LEAST_OUTSIDE * float(np.square(points).sum()) else 0.0,
            float(np.square(images).sum()),
            float((inside * images).sum()),
        )

    def _tail(self, gamma: float) -> float:
        """Return τ, the tail as one number: what solves best for vectors whose solution is known.

        (E + γI)u = g + γu =: v, and v/(τ + γ) is nearest to u for τ + γ = ‖v‖²/(u·v). For large γ
        that is the quotient u·g/‖u‖²; for small γ it is ‖g‖²/(u·g), which is larger, as what must
        be solved for is richer in the large directions of E than its solution is.
        """
        scale, point, image, both = self._measured
        if point > 0 and math.isinf(gamma):
            found = scale * both / point
        elif point > 0 and both + gamma / scale * point > 0:
            ridge = gamma / scale
            found = scale * (image + ridge * both) / (both + ridge * point)
        elif self.followed.tail is not None:
            return self.followed.tail
        else:
            n_outside = self.followed.rank - len(self._scale)
            return self._left / n_outside if n_outside > 0 else 0.0
        return min(max(found, 0.0), self._left, self.followed.largest_tail)

    def _tails(self, gamma: float) -> float | Float64:
        share, tail = self.followed.share, self._tail(gamma)
        return tail if share == 0.0 else share * self._diagonal + (1 - share) * tail

    def _solution(self, gamma: float, cross: Float64) -> tuple[Float64, Float64, Float64, Float64]:
        """Return x̂ = t·w + δ, t, δ, and what δ solves for: c − t(h + γw).

        t is the exact line search along w: t = w·c / w·(h + γw).
        """
        steps, rest = self._from_starts(gamma, cross)
        delta = self._inverse(gamma)(rest)
        return steps * self.followed.starts + delta, steps, delta, rest

    def _from_starts(self, gamma: float, cross: Float64) -> tuple[Float64, Float64]:
        """Return t and c − t(h + γw)."""
        point, image = self.followed.starts, self.followed.start_images
        curved = np.maximum(np.einsum("dt,dt->t", point, image), 0.0)
        below = curved + gamma * np.einsum("dt,dt->t", point, point)
        along = np.einsum("dt,dt->t", point, cross)
        steps = np.divide(along, below, out=np.zeros_like(below), where=below > 0)
        return steps, cross - steps * (image + gamma * point)

    def _inverse(self, gamma: float) -> Solve:
        tails = self._tails(gamma)
        if isinstance(tails, float):
            invert = self._with_scalar_tail(gamma, tails)
        else:
            invert = self._with_diagonal_tail(gamma, tails)

        def in_range(vectors: Float64) -> Float64:
            size = binary_scales(vectors)
            return size * invert(vectors / size)

        return in_range

    def _with_scalar_tail(self, gamma: float, tail: float) -> Solve:
        """Eliminate all but z = a + M⁻¹Fu, where δ = Ωᵀa + u with Ωu = 0, and F = Y − MΩ.

        With ρ = τ + γ and κ = γ/ρ: ((1 − κ)M² + γM + κYYᵀ)z = (1 − κ)MΩr + κYr.
        """
        followed, ridge = self.followed, tail + gamma
        basis, image, middle = followed.basis, followed.image, followed.middle
        share, twice = gamma / ridge, middle @ middle
        solve = _dividing((1 - share) * twice + gamma * middle + share * self.squares)
        within = _dividing(middle + gamma * np.eye(len(middle)))
        crossed = self.squares - twice  # FFᵀ

        def invert(vectors: Float64) -> Float64:
            inside, images = basis.project(vectors), image.project(vectors)
            both = middle @ inside
            z = solve((1 - share) * both + share * images)
            beside = (images - both - crossed @ z) / ridge  # Fu
            a = within(inside - beside)
            lifted = basis.lift(a - (inside - middle @ z) / ridge)
            result: Float64 = (vectors - image.lift(z)) / ridge + lifted
            return result

        return invert

    def _with_diagonal_tail(self, gamma: float, tails: Float64) -> Solve:
        """Eliminate the same with R = T + γ in place of ρ, and multipliers that keep Ωu = 0.

        u = R⁻¹(s + Ωᵀμ) with s = (I − P)r − Fᵀz. Fu = f − Hz, where H is FR⁻¹Fᵀ without its part
        along R⁻½Ωᵀ, and (M² + γM + γH)z = MΩr + γf.
        """
        followed, ridges = self.followed, tails + gamma
        basis, image, middle = followed.basis, followed.image, followed.middle
        inner, mixed, outer = self._grams(1 / np.sqrt(ridges))
        mixed = mixed - inner @ middle  # ΩR⁻¹Fᵀ
        outer = outer - middle @ mixed - (mixed + inner @ middle).T @ middle  # FR⁻¹Fᵀ
        project = _dividing(inner)
        outer = _symmetric(outer - mixed.T @ project(mixed))
        solve = _dividing(middle @ middle + gamma * middle + gamma * outer)
        within = _dividing(middle + gamma * np.eye(len(middle)))

        def invert(vectors: Float64) -> Float64:
            inside = basis.project(vectors)
            outside = vectors - basis.lift(inside)
            divided = outside / ridges[:, None]
            along = basis.project(divided)
            f = image.project(divided) - middle @ along - mixed.T @ project(along)
            z = solve(middle @ inside + gamma * f)
            a = within(inside - (f - outer @ z))
            rest = outside - image.lift(z) + basis.lift(middle @ z)
            held = project(basis.project(rest / ridges[:, None]))
            result: Float64 = basis.lift(a) + (rest - basis.lift(held)) / ridges[:, None]
            return result

        return invert

    def _grams(self, columns: Float64) -> tuple[Float64, Float64, Float64]:
        """Return ΩC²Ωᵀ, ΩC²Yᵀ and YC²Yᵀ for C = diag(columns)."""
        followed = self.followed
        size = len(followed.middle)
        inner, mixed, outer = (np.zeros((size, size)) for _ in range(3))
        width = panel_width(size)
        both = zip(followed.basis.walk(width=width), followed.image.walk(width=width), strict=True)
        for (span, ours), (_, theirs) in both:
            dtype = ours.dtype if followed.basis.rough else np.float64
            one, other = (
                part.astype(dtype, copy=False) * columns[span].astype(dtype)
                for part in (ours, theirs)
            )
            inner += one @ one.T
            mixed += one @ other.T
            outer += other @ other.T
        return inner, mixed, outer

    @cached_property
    def _root(self) -> Float64:
        root: Float64 = solve_triangular(self._factor, np.diag(self._scale), lower=True)
        return root

    def _low(self, vectors: Float64) -> Float64:
        """Return YᵀM⁻¹Y·vectors."""
        image = self.followed.image
        return image.lift(self._divide(image.project(vectors)))

    def _divide(self, weights: Float64) -> Float64:
        """Return M⁻¹·weights."""
        scale = self._scale[:, None]
        divided: Float64 = scale * cho_solve((self._factor, True), scale * weights)
        return divided

    def _out(self, vectors: Float64) -> Float64:
        """Return (I − P)·vectors."""
        basis = self.followed.basis
        return vectors - basis.lift(basis.project(vectors))


def _thin(matrix: Rows, vectors: Rows) -> Float64:
    """Return matrix·vectors in their dtype, then in float64; a few vectors one by one."""
    if vectors.shape[1] > FEW_VECTORS:
        return (matrix @ vectors).astype(np.float64)
    found = np.empty((matrix.shape[0], vectors.shape[1]))
    for column, vector in enumerate(np.ascontiguousarray(vectors.T)):
        found[:, column] = matrix @ vector
    return found


def panel_width(n_rows: int) -> int:
    """Return how many columns of so many rows to look at together."""
    return max(1024, PANEL // max(n_rows, 1))


def diagonal_share(diagonal: Float64, whole: float) -> float:
    """Return how much of ‖E‖²_F the variation of E's diagonal explains, doubled, but at most one.

    ``whole`` is the mean of ‖Eφ‖² over Gaussian vectors φ, which is ‖E‖²_F on average.
    """
    squares = float(diagonal @ diagonal)
    if squares == 0.0:
        return 0.0
    uneven = squares - float(diagonal.sum()) ** 2 / len(diagonal)
    return min(DIAGONAL_SLOPE * uneven / max(whole, squares), 1.0)


def orthonormal_mix(gram: Float64) -> Float64:
    """Return what makes rows orthonormal, given their Gram matrix; zeros stay what they are."""
    squares = np.diagonal(gram)
    there = squares > SMALLEST_NORMAL
    unit = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(gram)), where=there)
    factor = _cholesky_factor(gram * np.outer(unit, unit) + np.diag(~there).astype(np.float64))
    mix: Float64 = solve_triangular(factor, np.diag(unit), lower=True)
    return mix


def _symmetric(matrix: Float64) -> Float64:
    half: Float64 = (matrix + matrix.T) / 2
    return half


def _dividing(matrix: Float64) -> Solve:
    """Return what divides by a positive matrix, factorised in units of its diagonal."""
    unit = 1 / np.sqrt(np.maximum(np.diagonal(matrix), SMALLEST_NORMAL))
    factor = _cholesky_factor(_symmetric(matrix) * np.outer(unit, unit))
    return lambda weights: unit[:, None] * cho_solve((factor, True), unit[:, None] * weights)


def _cholesky_factor(matrix: Float64) -> Float64:
    """Return the factor of a matrix with a diagonal of ones that is positive but for rounding."""
    more = 0.0
    while True:
        try:
            shifted = matrix + more * np.eye(len(matrix)) if more else matrix
            factor: Float64 = cholesky(shifted, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            more = max(100 * more, JITTER)
            if more > 1.0:
                raise
        else:
            return factor
