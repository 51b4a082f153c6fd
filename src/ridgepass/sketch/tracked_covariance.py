"""AᵀA as a followed subspace knows it: exactly on that subspace, with a tail for all the rest.

K = AᵀA is known where a basis Ω (orthonormal rows) has been followed: Y = ΩK and M = ΩKΩᵀ. Its
Nyström approximation YᵀM⁻¹Y is exact on Ω, so what it leaves out, E = K − YᵀM⁻¹Y, has EΩᵀ = 0 and
lives outside Ω. There a tail stands for it: K̂ = YᵀM⁻¹Y + (I − P)·T·(I − P) with P = ΩᵀΩ and a
diagonal T. docs/tracked.md derives all of it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_solve, lapack, solve_triangular

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
    times_vector,
    top_eigenpairs,
)
from ridgepass.sketch.base import LowRank
from ridgepass.threads import each, summed

# How much of the tail is taken from E's diagonal for each part of E that it is. On all data that we
# have, mixed, correlated, uneven and sparse columns, that did nearly as well as the best share.
DIAGONAL_SLOPE = 3.2
UNEVEN_SLOPE = 2.0  # so much less for each part by which D is even
SPARSE_SLOPE = 2.4  # both where rows are sparse
LEAST_ALONE = 0.5  # where targets have no starting points, a tail that falls short does most harm
NEARLY_ALL = 0.9  # of E in such units: it is its diagonal
PANEL = 1 << 18  # numbers at a time, so that what is done to them stays in the cache
JITTER = 1e-14  # relative to each diagonal entry: M is positive but for rounding
# Below this share of the vectors that tell of E, what lies outside Ω is too little to measure.
LEAST_OUTSIDE = 1e-10
# Roundings of the largest eigenvalue below which no starting point is kept: K is not known there.
LEAST_RIDGE = 300.0
# Roundings of the largest eigenvalue below which a direction is not followed: beside one so much
# larger, what the own dtype rounds off that one is all that it has.
LEAST_FOLLOWED = 16.0
LEAST_SHARE = 1e-200  # of the largest diagonal entry: units of any two are in range together
LARGEST_ALPHA = 1e30  # times the trace of K
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)

Solve = Callable[[Float64], Float64]


@dataclass(frozen=True)
class MixedRows:
    """The rows mix·vstack(parts)·diag(columns)/unit, left implicit, and ``plus`` as many others.

    ``rough`` multiplies in the parts' own dtype, not in float64.
    """

    parts: tuple[Part, ...]
    mix: Float64 | None = None
    columns: Float64 | None = None
    unit: float = 1.0
    rough: bool = False
    plus: "MixedRows | None" = None

    @property
    def n_columns(self) -> int:
        """Columns of each row."""
        return int(self.parts[0].shape[1])

    @property
    def n_terms(self) -> int:
        """Stored rows that each row is a sum of, at most."""
        own = sum(int(part.shape[0]) for part in self.parts)
        return own if self.plus is None else own + self.plus.n_terms

    def project(self, vectors: Float64) -> Float64:
        """Return rows·vectors."""
        if self.plus is not None:
            return replace(self, plus=None).project(vectors) + self.plus.project(vectors)
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
        if self.plus is not None:
            return replace(self, plus=None).lift(weights) + self.plus.lift(weights)
        weights = (weights if self.mix is None else self.mix.T @ weights) / self.unit
        if self.rough:
            (part,) = self.parts
            scale = binary_scales(weights)
            found = _thin_transposed(part, (weights / scale).astype(part.dtype)) * scale
        else:
            found = apply_transposed(self.parts, weights)
        return found if self.columns is None else self.columns[:, None] * found

    def walk(self, factor: Float64 | None = None, width: int | None = None) -> "PanelWalk":
        """Return what yields ``factor``·rows, some columns at a time."""
        mix, sizes = self.mix, [part.shape[0] for part in self.parts]
        if factor is not None:
            mix = factor if mix is None else factor @ mix
        cuts: list[Float64 | None] = [None]
        if mix is not None:
            dtype = self.parts[0].dtype if self.rough else np.dtype(np.float64)
            parts = np.split(mix.T, np.cumsum(sizes)[:-1])
            cuts = [np.ascontiguousarray(part / self.unit, dtype) for part in parts]  # for SciPy
            # Y is taken as it is where rows that wait for their block are added to it.
            if len(mix) == sizes[0] and np.array_equal(parts[0], np.eye(len(mix))):
                cuts[0] = None
        width = width or panel_width(max(sizes))
        plus = None if self.plus is None else self.plus.walk(factor, width)
        return PanelWalk(self, cuts, width, plus)

    def gram(self, *others: Rows) -> Float64:
        """Return rows·rowsᵀ and beside it rows·othersᵀ.

        Rows are divided before they are multiplied, and so are in range.
        """
        walk = self.walk()

        def multiply(span: slice) -> Rows:
            rows = walk.at(span)
            rows = rows if self.rough else rows.astype(np.float64, copy=False)
            found = [rows @ rows.T]  # half the work, as NumPy does it
            return np.hstack(found + [rows @ other[:, span].T for other in others])

        n_rows = walk.n_rows
        return summed(multiply, walk.spans, n_rows * (n_rows + sum(map(len, others))))

    def mixed(self, by: Float64) -> "MixedRows":
        """Return by·rows."""
        mix = by if self.mix is None else by @ self.mix
        return replace(self, mix=mix, plus=self.plus and self.plus.mixed(by))

    def divided(self, unit: float) -> "MixedRows":
        """Return the same divided by a unit."""
        return replace(self, unit=unit * self.unit, plus=self.plus and self.plus.divided(unit))

    def rescaled(self, columns: Float64) -> "MixedRows":
        """Return the same with columns multiplied."""
        together = columns if self.columns is None else self.columns * columns
        plus = self.plus and self.plus.rescaled(columns)
        return replace(self, columns=together, rough=False, plus=plus)


@dataclass(frozen=True)
class PanelWalk:
    """Rows of a `MixedRows`, some columns at a time.

    Attributes
    ----------
    rows : MixedRows
        What they are of.
    cuts : list of ndarray or None
        What each of its parts is multiplied by, with a row for each of theirs; None for 1/unit.
    width : int
        Columns at a time.
    plus : PanelWalk or None
        Others to add.
    """

    rows: MixedRows
    cuts: list[Float64 | None]
    width: int
    plus: "PanelWalk | None"

    @property
    def n_rows(self) -> int:
        """Rows that it yields."""
        cut = self.cuts[0]
        return self.rows.n_terms if cut is None else int(cut.shape[1])

    @cached_property
    def spans(self) -> list[slice]:
        """The panels."""
        return list(panels(self.rows.n_columns, self.width))

    def at(self, span: slice) -> Any:
        """Return the rows in some columns."""
        found: Any = None
        rows = self.rows
        for cut, part in zip(self.cuts, rows.parts, strict=True):
            chunk = panel(part, span)
            if cut is None:
                unit = chunk.dtype.type(rows.unit) if rows.rough else np.float64(rows.unit)
                mixed = chunk if unit == 1.0 else chunk / unit
            elif is_sparse(chunk) or chunk.strides[0] < chunk.strides[1]:  # by columns
                mixed = (chunk.T @ cut).T
            else:
                mixed = cut.T @ chunk
            found = mixed if found is None else found + mixed
        if rows.columns is not None:
            found = found * rows.columns[span]
        return found if self.plus is None else found + self.plus.at(span)

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        for span in self.spans:
            yield span, self.at(span)

    def multiply(self, parts: tuple[Part, ...]) -> Float64:
        """Return vstack(parts)·rowsᵀ; panels are summed up in float64."""

        def products(span: slice) -> Rows:
            rows = self.at(span).T
            return np.concatenate([panel(part, span) @ rows for part in parts])

        return summed(products, self.spans, self.n_rows * sum(part.shape[0] for part in parts))


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
    n_followed : int or None
        How many of the basis were followed, if not all: the others are of rows that wait.
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
    n_followed: int | None = None
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
    # −log of the probability that choices by the probes had which led to this K̂ and which the
    # sketch itself has not made: for rows that wait.
    surprise: float = 0.0

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        # For a γ: answers and their certificates divide by the same.
        self._last_division: tuple[float, Callable[..., Float64]] | None = None
        # By its diagonal: leading directions may be many times the others. Some have nothing, or so
        # little that Y does not hold it.
        sizes = np.diagonal(followed.middle)
        there = sizes > SMALLEST_NORMAL / min(followed.unit, 1.0)
        self._scale = np.zeros(len(sizes))
        np.power(sizes, -0.5, out=self._scale, where=there)
        scaled = followed.middle * np.outer(self._scale, self._scale)
        scaled[np.diag_indices_from(scaled)] += JITTER
        self._factor = _cholesky_factor(scaled)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last_division": None}  # what joblib cannot write

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
        basis, image = (rows.mixed(mix) for rows in (basis, old.image.rescaled(columns)))
        middle = _symmetric(mix @ old.middle @ mix.T)
        unit = float(binary_scales(np.diagonal(middle)[:, None])[0])  # K is of another size now
        down, up = inverse[:, None], columns[:, None] / unit
        return TrackedCovariance(
            replace(
                old,
                basis=basis,
                image=image.divided(unit),
                middle=middle / unit,
                starts=down * old.starts,
                start_images=up * old.start_images,
                diagonal=np.square(columns) / unit * old.diagonal,
                outside=None,
                unit=unit * old.unit,
                tail=None if old.tail is None else old.tail / unit,
                largest_tail=old.largest_tail / unit,
            )
        )

    def multiply(self, vectors: Float64) -> Float64:
        """Return K̂·vectors."""
        scale = binary_scales(vectors)
        vectors = vectors / scale
        tails, outside = self._tails, self._out(vectors)
        rest = self._out((tails * outside.T).T) if np.ndim(tails) else tails * outside
        product: Float64 = self.followed.unit * (scale * (self._low(vectors) + rest))
        return product

    @property
    def tails(self) -> float | Float64:
        """T: one number, or one for each column."""
        return self.followed.unit * self._tails

    @property
    def left_out(self) -> Float64:
        """The diagonal of E."""
        return self.followed.unit * self._diagonal

    def inverse(self, alpha: float) -> Solve:
        """Return what multiplies by (K̂ + alpha·I)⁻¹."""
        if self._is_lost_beside(alpha):
            return lambda vectors: vectors / alpha
        invert, unit = self._inverse(alpha / self.followed.unit), self.followed.unit
        return lambda vectors: invert(vectors / unit)

    def solving(self, cross: Float64) -> Callable[[float], Float64]:
        """Return what gives coefficients for Aᵀb at any alpha, from the starting points on.

        x̂ = t·w + δ with (K̂ + γI)δ = c − t(h + γw). What Ω and Y make of c, h and w is found once
        for all alphas.
        """
        followed, unit = self.followed, self.followed.unit
        size = binary_scales(cross / unit)
        target = cross / unit / size
        starts = () if followed.mixed else (followed.start_images, followed.starts)
        vectors = np.hstack([target, *starts])

        def one_by_one(found: Float64) -> Float64:
            return np.stack(np.split(found, 1 + len(starts), axis=1))

        inside = followed.basis.project(vectors)
        products: tuple[Float64, ...] = ()
        if isinstance(self._tails, float):
            products = one_by_one(inside), one_by_one(followed.image.project(vectors))
        outside = one_by_one(vectors - followed.basis.lift(inside)) if starts else None
        # Directions of rows that wait, where K̂ is no more sure of K than outside.
        n_followed = len(inside) if followed.n_followed is None else followed.n_followed
        beside, held = one_by_one(inside[n_followed:]), np.diagonal(followed.middle)
        held = held[n_followed:, None]

        def solve(alpha: float) -> Float64:
            if self._is_lost_beside(alpha):
                return cross / alpha
            gamma, divide = alpha / unit, self._division(alpha / unit)
            if outside is None:
                return size * divide(target, *(one[0] for one in products))
            image = followed.start_images + gamma * followed.starts
            ridges = np.asarray(self._tails + gamma)[..., None]
            steps = self._steps(
                target,
                image,
                np.vstack([outside[0] / ridges, beside[0] / (held + gamma)]),
                np.vstack(
                    [
                        (outside[1] + gamma * outside[2]) / ridges,
                        (beside[1] + gamma * beside[2]) / (held + gamma),
                    ]
                ),
                ridges,
            )
            factors = np.stack([np.ones_like(steps), -steps, -gamma * steps])
            known = [np.einsum("kt,kst->st", factors, one) for one in products]
            return size * (steps * followed.starts + divide(target - steps * image, *known))

        return solve

    def _steps(
        self,
        cross: Float64,
        image: Float64,
        outside: Float64,
        outside_image: Float64,
        ridges: Rows | float = 1.0,
    ) -> Float64:
        """Return t, so that δ is shortest outside Ω, where K̂ is not sure of K.

        ``image`` is h + γw. The next two are what c and it have outside Ω, divided by ``ridges``,
        which are T + γ or in proportion to it: nearly what they make of δ there. So a starting
        point that is no good is not used. Where it has nothing outside, t is the exact line search.
        """
        whole = image / ridges
        squares = np.einsum("dt,dt->t", outside_image, outside_image)
        along = np.einsum("dt,dt->t", outside, outside_image)
        least = (64 * self.followed.rounding) ** 2 * np.einsum("dt,dt->t", whole, whole)
        there = (squares > least) & (squares > SMALLEST_NORMAL)
        there &= len(self._scale) < len(image)  # else Ω has all directions but for rounding
        steps: Float64 = along / np.where(there, squares, 1.0)
        return steps if there.all() else np.where(there, steps, self.line_search(cross, image))

    def line_search(self, cross: Float64, image: Float64) -> Float64:
        """Return w·c / w·(h + γw), given c and h + γw: the best t if δ were nothing."""
        below = np.maximum(np.einsum("dt,dt->t", self.followed.starts, image), 0.0)
        along = np.einsum("dt,dt->t", self.followed.starts, cross)
        steps: Float64 = np.divide(along, below, out=np.zeros_like(below), where=below > 0)
        return steps

    def _is_lost_beside(self, alpha: float) -> bool:
        """Whether K + alpha·I is alpha·I but for rounding; squares of alpha may be out of range."""
        return alpha > LARGEST_ALPHA * self.mass

    def moved(self, alpha: float, cross: Float64) -> tuple[Float64, Float64]:
        """Return w and h for starting points at the solution for ``alpha``, w of unit length.

        Y is taken for MΩ in solving, which costs no Gram matrix of Y; h is what K̂ makes of w.
        """
        followed, gamma = self.followed, self._ridge_of_moves(alpha)
        cross = cross / binary_scales(cross)  # w is of unit length anyway
        step = self._step if followed.share == 0.0 else self._step_with_diagonal_tail
        steps, delta, image = step(gamma, cross)
        point = steps * followed.starts + delta
        norms = column_norms(point)
        per = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > SMALLEST_NORMAL)
        image = steps * followed.start_images + image
        return per * point, followed.unit * (per * image)

    def _ridge_of_moves(self, alpha: float) -> float:
        """Return γ, no further from K than numbers reach."""
        followed, least = self.followed, LEAST_RIDGE * self.followed.rounding
        alpha = min(alpha, LARGEST_ALPHA * self.mass)
        return max(alpha / followed.unit, least * float(np.diagonal(followed.middle).max()))

    def held_outside(self, alpha: float, points: Float64) -> Float64:
        """Return (T + γ)u for what points that have moved there have outside Ω, u."""
        ridges = np.asarray(self._tails + self._ridge_of_moves(alpha))
        held: Float64 = self.followed.unit * (ridges * self._out(points).T).T
        return held

    def starting_from(self, points: Float64, images: Float64, factor: float) -> "TrackedCovariance":
        """Return the same with other starting points; a diagonal tail is ``factor`` times it."""
        followed = self.followed
        outside = None if followed.outside is None else factor * followed.outside
        images = images / followed.unit
        return TrackedCovariance(
            replace(followed, starts=points, start_images=images, outside=outside)
        )

    def _step(self, gamma: float, cross: Float64) -> tuple[Float64, Float64, Float64]:
        """Return t, δ with (K̂ + γI)δ near c − t(h + γw), and K̂δ, for a scalar tail.

        Everything is made of Ω and Y times w, h and c, and of looks at them the other way.
        """
        followed = self.followed
        basis, image, middle = followed.basis, followed.image, followed.middle
        point, start_image = followed.starts, followed.start_images
        vectors = np.hstack([point, start_image, cross])
        products = basis.project(vectors)
        along, along_image, along_cross = np.split(products, 3, axis=1)
        seen, seen_image, seen_cross = np.split(image.project(vectors), 3, axis=1)
        vectors -= basis.lift(products)
        left, left_image, left_cross = np.split(vectors, 3, axis=1)  # outside Ω
        left_image = left_image + gamma * left
        steps = self._steps(cross, start_image + gamma * point, left_cross, left_image)
        inside = along_cross - steps * (along_image + gamma * along)
        # Y times what is outside Ω, as YΩᵀ is M.
        beside = seen_cross - steps * (seen_image + gamma * seen) - middle @ inside
        weights = dividing(middle + gamma * np.eye(len(middle)))(inside)
        lifted = image.lift(np.hstack([self._divide(seen), weights, self._divide(beside)]))
        low, low_within, low_outside = np.split(lifted, 3, axis=1)
        tail = self._tail = self._tail_of(point, left, start_image - low)
        outside = (left_cross - steps * left_image) / (tail + gamma)
        delta = basis.lift(weights) + outside
        return steps, delta, low_within + low_outside / (tail + gamma) + tail * outside

    def _step_with_diagonal_tail(
        self, gamma: float, cross: Float64
    ) -> tuple[Float64, Float64, Float64]:
        """Return the same where the tail is not one number: u = (I − P)R⁻¹(I − P)·rest outside Ω.

        Four looks at Ω and two at Y, of which those at the same panel are taken together. The first
        two are at c and h + γw, of which ``rest`` is made when t is known.
        """
        followed, tails, middle = self.followed, self._tails, self.followed.middle
        (basis,), (image,) = followed.basis.parts, followed.image.parts
        start_image, n_starts = followed.start_images + gamma * followed.starts, cross.shape[1]
        pair = np.hstack([cross, start_image])
        size, dtype = binary_scales(pair), basis.dtype
        pair /= size
        inside = followed.basis.project(pair)
        left = np.ascontiguousarray(pair.T, dtype)
        own_tails, ridges = np.asarray(tails, dtype), np.asarray(tails + gamma, dtype)
        outside, lifted = (np.empty_like(left) for _ in range(2))
        spans = list(panels(len(cross), panel_width(len(middle))))
        along = np.empty((len(spans), len(left), len(middle)), dtype)

        def lift(rows: Rows, by: Rows, span: slice) -> Rows:
            found = lifted[: len(by), span]
            _by_columns(rows[:, span].T, by, found)
            return found

        def divide(within: Rows, index: int) -> None:
            # R⁻¹(I − P) times both, and Ω times that.
            span, here = spans[index], outside[:, spans[index]]
            np.divide(left[:, span] - lift(basis, within, span), ridges[span], out=here)
            _by_columns(basis[:, span], here, along[index])

        each(partial(divide, np.ascontiguousarray(inside.T, dtype)), range(len(spans)))
        of_cross, of_start = outside[:n_starts], outside[n_starts:]
        of_both = pair[:, :n_starts], pair[:, n_starts:]
        steps = self._steps(*of_both, of_cross.T, of_start.T, ridges[:, None])
        # From here on of c − t(h + γw), in the unit of c.
        outside = of_cross - (steps[:, None] * of_start).astype(dtype)
        crossed = along.sum(axis=0, dtype=np.float64)
        inside = inside[:, :n_starts] - steps * inside[:, n_starts:]
        weights = dividing(middle + gamma * np.eye(len(middle)))(inside)
        tailed, along = np.empty_like(outside), along[:, :n_starts]
        seen = np.empty_like(along)

        def leave(within: Rows, index: int) -> None:
            # u, which is that without its part in Ω; T·u; Y times the one, Ω times the other.
            span, here = spans[index], outside[:, spans[index]]
            here -= lift(basis, within, span)
            np.multiply(here, own_tails[span], out=tailed[:, span])
            _by_columns(image[:, span], here, seen[index])
            _by_columns(basis[:, span], tailed[:, span], along[index])

        def finish(within: Rows, delta: Rows, low: Rows, span: slice) -> None:
            # δ and K̂δ.
            outside[:, span] += lift(basis, delta, span)
            tailed[:, span] -= lift(basis, within, span)
            tailed[:, span] += low_size * lift(image, low, span)

        within = crossed[:n_starts] - steps[:, None] * crossed[n_starts:]
        each(partial(leave, within.astype(dtype)), range(len(spans)))
        known = self._divide(seen.sum(axis=0, dtype=np.float64).T / followed.unit)
        known = (weights + known) / followed.unit
        sizes = binary_scales(known)  # Y may be so small that this is out of range
        low, low_size = (known / sizes).T.astype(dtype, "C"), sizes[:, None]
        delta = np.ascontiguousarray(weights.T, dtype)
        each(partial(finish, along.sum(axis=0), delta, low), spans)
        unit = size[:n_starts]
        return steps * unit / size[n_starts:], unit * outside.T, unit * tailed.T

    def root(self) -> Float64:
        """Return what makes R of Y such that RᵀR is YᵀM⁻¹Y."""
        return self._root / math.sqrt(self.followed.unit)

    @cached_property
    def eigenpairs(self) -> tuple[Float64, Float64]:
        """The eigenvalues of YᵀM⁻¹Y, descending, and what makes its eigenvectors of Y, as rows."""
        root, unit = self._root, self.followed.unit
        values, vectors = top_eigenpairs(root @ self.squares @ root.T, len(root))
        values, roots = self._sound(values)
        return unit * values, (vectors * roots).T @ root / unit

    def _sound(self, values: Float64) -> tuple[Float64, Float64]:
        """Return eigenvalues and one over their roots; zeros for what is lost in rounding."""
        sound = values > LEAST_FOLLOWED * self.followed.rounding * values.max(initial=0.0)
        sound &= values > SMALLEST_NORMAL
        values = np.where(sound, values, 0.0)
        return values, np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=sound)

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
        values, roots = self._sound(values[:size])
        mix = (vectors * roots).T
        return mix[:, :size] @ root / unit, mix[:, size:] / near, unit * values

    def quadratic(self, columns: Float64) -> Float64:
        """Estimate xᵀKx for each column x."""
        scale = binary_scales(columns)
        columns = columns / scale
        low, outside, tails = self._low(columns), self._out(columns), self._tails
        found: Float64 = np.einsum("dt,dt->t", columns, low)
        found = found + np.einsum("dt,dt->t", (tails * outside.T).T, outside)
        return scale * (scale * self.followed.unit * np.maximum(found, 0.0))

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

    @cached_property
    def _tail(self) -> float:
        """τ, the tail as one number."""
        points = self.followed.starts
        if not points.any():
            return self._mean_tail
        inside, images = self._start_products
        lost = self.followed.start_images - self.followed.image.lift(self._divide(images))
        return self._tail_of(points, points - self.followed.basis.lift(inside), lost)

    @cached_property
    def _start_products(self) -> tuple[Float64, Float64]:
        """Ωw and Yw."""
        return self._products(self.followed.starts)

    def _products(self, vectors: Float64) -> tuple[Float64, Float64]:
        """Return Ω·vectors and Y·vectors."""
        return self.followed.basis.project(vectors), self.followed.image.project(vectors)

    def _tail_of(self, points: Float64, outside: Float64, images: Float64) -> float:
        """Return Rayleigh's quotient u·Eu/‖u‖² of what lies outside Ω of some points, u.

        ``images`` are Eu, and may have a part within Ω. Solutions are small where E is large, and
        so are the starting points: this is what E has in the directions that solutions have.
        """
        squares = float(np.square(outside).sum())
        if not squares > LEAST_OUTSIDE * float(np.square(points).sum()):
            return self._mean_tail
        found = float((outside * images).sum()) / squares
        return min(max(found, 0.0), float(self.followed.diagonal.sum()), self.followed.largest_tail)

    @property
    def _mean_tail(self) -> float:
        """The mean eigenvalue of E, where no starting point tells more."""
        if self.followed.tail is not None:
            return self.followed.tail
        n_outside = self.followed.rank - len(self._scale)
        return self._left / n_outside if n_outside > 0 else 0.0

    @cached_property
    def _tails(self) -> float | Float64:
        share = self.followed.share
        if share == 0.0:
            return self._tail
        even = (1 - share) * self._tail if share < 1.0 else 0.0  # four looks at Ω and Y
        return share * self._diagonal + even

    def _inverse(self, gamma: float) -> Solve:
        """Return what multiplies by (K̂ + γI)⁻¹."""
        divide = self._division(gamma)

        def in_range(vectors: Float64) -> Float64:
            size = binary_scales(vectors)
            return size * divide(vectors / size)

        return in_range

    def _division(self, gamma: float) -> Callable[..., Float64]:
        """Return the same for vectors of a size near one."""
        last, tails = self._last_division, self._tails  # another thread may put its own there
        if last is None or last[0] != gamma:
            if isinstance(tails, float):
                last = gamma, self._with_scalar_tail(gamma, tails)
            else:
                last = gamma, self._with_diagonal_tail(gamma, tails)
            self._last_division = last
        return last[1]

    def _with_scalar_tail(self, gamma: float, tail: float) -> Callable[..., Float64]:
        """Eliminate all but z = a + M⁻¹Fu, where δ = Ωᵀa + u with Ωu = 0, and F = Y − MΩ.

        With ρ = τ + γ and κ = γ/ρ: ((1 − κ)M² + γM + κYYᵀ)z = (1 − κ)MΩr + κYr. Ωr and Yr may be
        known.
        """
        followed, ridge = self.followed, tail + gamma
        basis, image, middle = followed.basis, followed.image, followed.middle
        share, twice = gamma / ridge, self._middle_squared
        solve = dividing((1 - share) * twice + gamma * middle + share * self.squares)
        within = dividing(middle + gamma * np.eye(len(middle)))
        crossed = self.squares - twice  # FFᵀ

        def invert(vectors: Float64, *known: Float64) -> Float64:
            inside, images = known or self._products(vectors)
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
        size, grams = len(middle), self._weighted_gram(1 / np.sqrt(ridges))
        inner, outer = grams[:size, :size], grams[size:, size:]
        mixed = grams[:size, size:] - inner @ middle  # ΩR⁻¹Fᵀ
        outer = outer - middle @ mixed - (mixed + inner @ middle).T @ middle  # FR⁻¹Fᵀ
        project = dividing(inner)
        outer = _symmetric(outer - mixed.T @ project(mixed))
        solve = dividing(middle @ middle + gamma * middle + gamma * outer)
        within = dividing(middle + gamma * np.eye(len(middle)))

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

    def _weighted_gram(self, columns: Float64) -> Float64:
        """Return the Gram matrix of [Ω; Y]·diag(columns)."""
        followed, width = self.followed, panel_width(2 * len(self.followed.middle))
        walks = [rows.walk(width=width) for rows in (followed.basis, followed.image)]
        dtype = followed.basis.parts[0].dtype if followed.basis.rough else np.dtype(np.float64)

        def multiply(span: slice) -> Rows:
            rows: Rows = np.concatenate([walk.at(span) for walk in walks], dtype=dtype)
            rows *= columns[span].astype(dtype)
            return rows @ rows.T

        return summed(multiply, walks[0].spans, sum(walk.n_rows for walk in walks) ** 2)

    @cached_property
    def _middle_squared(self) -> Float64:
        squared: Float64 = self.followed.middle @ self.followed.middle
        return squared

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
    """Return matrix·vectors in their dtype, for few rows of many columns; then in float64."""
    columns = np.ascontiguousarray(vectors.T)
    spans = list(panels(matrix.shape[1], panel_width(len(matrix))))
    parts = np.empty((len(spans), len(columns), len(matrix)), matrix.dtype)

    def multiply(index: int) -> None:
        span = spans[index]
        _by_columns(matrix[:, span], columns[:, span], parts[index])

    each(multiply, range(len(spans)))
    found: Float64 = parts.sum(axis=0, dtype=np.float64).T
    return found


def _thin_transposed(matrix: Rows, weights: Rows) -> Float64:
    """Return matrixᵀ·weights in the same way."""
    rows, found = np.ascontiguousarray(weights.T), np.empty((weights.shape[1], matrix.shape[1]))

    def multiply(span: slice) -> None:
        _by_columns(matrix[:, span].T, rows, found[:, span])

    each(multiply, panels(matrix.shape[1], panel_width(len(matrix))))
    return found.T


def _by_columns(matrix: Rows, vectors: Rows, out: Rows) -> None:
    """Set each row of ``out`` to matrix·vector; a few of them one by one, which is faster."""
    if len(vectors) > FEW_VECTORS:
        out[:] = vectors @ matrix.T
    else:
        for row, vector in zip(out, vectors, strict=True):
            row[:] = times_vector(matrix, vector)


def panel_width(n_rows: int) -> int:
    """Return how many columns of so many rows to look at together."""
    return max(2048, PANEL // max(n_rows, 1))


def diagonal_share(
    alone: float, even: float, share: float, *, starts: bool, is_sparse: bool
) -> float:
    """Return how much of the tail should be E's diagonal D; the rest is one number for all.

    D is right where columns are uneven or sparse. Where columns are alike to each other beyond the
    basis, it falls short of E, most in the small columns, and solutions become too long.

    Parameters
    ----------
    alone : float
        How much of E is D. With rows in units of D^½, that is Σ Dᵢ/Σ Eᵢⱼ²/Dᵢ. Sparse rows are
        taken as they are, Σ Dᵢ²/Σ Eᵢⱼ²: columns of few rows are alike by chance, and are many.
    even : float
        How even D is, (Σ D)²/(d·Σ D²). One number is better where it is.
    share : float
        The share before. It is not lowered while E is nearly all diagonal: columns of ones and
        zeros that come one after the other end up even, and their diagonal is right all the same.
    starts : bool
        Whether each target has a starting point.
    is_sparse : bool
        Whether rows are sparse.
    """
    if is_sparse:
        found = SPARSE_SLOPE * (1 - even) * alone
    else:
        found = DIAGONAL_SLOPE * min(UNEVEN_SLOPE * (1 - even), 1.0) * alone
    if not starts and alone < LEAST_ALONE:
        found = 0.0
    return max(min(found, 1.0), share if alone >= NEARLY_ALL else 0.0)


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


def dividing(matrix: Float64) -> Solve:
    """Return what divides by a positive matrix, factorised in units of its diagonal."""
    sizes = np.abs(np.diagonal(matrix))  # below zero by rounding, if squares are hardly in range
    least = max(LEAST_SHARE * float(sizes.max(initial=0.0)), SMALLEST_NORMAL)
    unit = 1 / np.sqrt(np.maximum(sizes, least))
    factor = _cholesky_factor(_symmetric(matrix) * np.outer(unit, unit))
    return lambda weights: unit[:, None] * cho_solve((factor, True), unit[:, None] * weights)


def _cholesky_factor(matrix: Float64) -> Float64:
    """Return the factor of a matrix with a diagonal of ones that is positive but for rounding."""
    factor: Float64
    more = 0.0
    while True:
        shifted = matrix + more * np.eye(len(matrix)) if more else matrix
        factor, info = lapack.dpotrf(shifted, lower=1)
        if info == 0:
            return factor
        if not np.isfinite(matrix).all():
            raise np.linalg.LinAlgError("a matrix to be factorised has entries that are not finite")
        # Where squares are hardly in range, rounding may have made anything of it.
        matrix = np.clip(matrix, -1.0, 1.0)
        more = max(100 * more, JITTER)
