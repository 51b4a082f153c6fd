"""Solutions from a subspace whose image is known exactly, and a tail for all the rest.

K = AᵀA is known where a basis Ω (orthonormal rows) has been followed: Y = ΩK and M = ΩKΩᵀ. Its
Nyström approximation YᵀM⁻¹Y is exact on Ω, so what it leaves out, E = K − YᵀM⁻¹Y, has EΩᵀ = 0 and
lives outside Ω. There a tail stands for it: K̂ = YᵀM⁻¹Y + (I − P)·T·(I − P) with P = ΩᵀΩ and a
diagonal T. Solutions start from an anchor as in `ridgepass.solve.anchored`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from ridgepass.kernels import (
    Float64,
    Part,
    apply,
    apply_transposed,
    binary_scales,
    column_norms,
    gram,
    is_sparse,
    mixed_column_squares,
    panel,
    panels,
    stacked_gram,
    top_eigenpairs,
)
from ridgepass.solve.outside import Outside

# How much of the tail is taken from E's diagonal for each part of ‖E‖²_F that the variation of that
# diagonal explains. It did nearly as well as the better of a scalar and a diagonal on all data that
# we have: mixed, correlated, uneven and sparse columns.
DIAGONAL_SLOPE = 2.0
LEAST_DIAGONAL = 0.1  # a smaller share of it is not worth its cost
PANEL = 1024  # columns at a time
JITTER = 1e-14  # relative to each diagonal entry: M is positive but for rounding
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class MixedRows:
    """The rows mix·vstack(parts), left implicit."""

    parts: tuple[Part, ...]
    mix: Float64

    def project(self, vectors: Float64) -> Float64:
        """Return rows·vectors."""
        return self.mix @ apply(self.parts, vectors)

    def lift(self, weights: Float64) -> Float64:
        """Return rowsᵀ·weights."""
        return apply_transposed(self.parts, self.mix.T @ weights)

    def column_squares(self, mix: Float64) -> Float64:
        """Return the squares of each column of mix·rows."""
        return mixed_column_squares(mix @ self.mix, self.parts)

    def gram(self) -> Float64:
        """Return rows·rowsᵀ, mixed before they are multiplied: only then are all in range."""
        cuts = np.cumsum([part.shape[0] for part in self.parts])[:-1]
        factors, total = np.split(self.mix, cuts, axis=1), np.zeros((len(self.mix),) * 2)
        for span in panels(self.parts[0].shape[1], PANEL):
            mixed = np.zeros((len(self.mix), span.stop - span.start))
            for factor, part in zip(factors, self.parts, strict=True):
                chunk = panel(part, span)
                mixed += (chunk.T @ factor.T).T if is_sparse(chunk) else factor @ chunk
            total += mixed @ mixed.T
        return total


@dataclass(frozen=True)
class Tracked:
    """What is followed of K, divided by a unit, and what is known of its tail.

    Attributes
    ----------
    basis, image : MixedRows
        Ω and Y = ΩK.
    middle, squares : ndarray of shape (size, size)
        M = ΩYᵀ and YYᵀ.
    point, point_image : ndarray of shape (n_features, n_targets)
        The anchors w and h = Kw.
    gauges, gauge_images : ndarray of shape (n_features, n_gauges)
        Gaussian vectors and their images, to measure ‖E‖_F by.
    diagonal : ndarray of shape (n_features,)
        That of K.
    rank : int
        At least the rank of K.
    unit : float
        K is this many times what all of these are of: a power of two, so that squares of K are in
        range.
    """

    basis: MixedRows
    image: MixedRows
    middle: Float64
    squares: Float64
    point: Float64
    point_image: Float64
    gauges: Float64
    gauge_images: Float64
    diagonal: Float64
    rank: int
    unit: float = 1.0


class TrackedSolver:
    """x̂ = t·w + δ with δ = (K̂ + γI)⁻¹(c − t(h + γw)), for any number of alphas γ.

    Methods with an underscore work in the units of `Tracked`, and so do their γ; all others in
    those of the data.

    Parameters
    ----------
    tracked : Tracked
        What is followed.
    cross : ndarray of shape (n_features, n_targets)
        Aᵀb exactly.
    """

    def __init__(self, tracked: Tracked, cross: Float64) -> None:
        self.tracked, self.exact_cross = tracked, cross
        self._cross = cross / tracked.unit
        # By its diagonal: leading directions may be many times the others.
        self._scale = 1 / np.sqrt(np.maximum(np.diagonal(tracked.middle), SMALLEST_NORMAL))
        scaled = tracked.middle * np.outer(self._scale, self._scale)
        scaled[np.diag_indices_from(scaled)] += JITTER
        self._factor = cholesky(scaled, lower=True)
        point, image = tracked.point, tracked.point_image
        self._along = np.einsum("dt,dt->t", point, self._cross)
        self._squared = np.einsum("dt,dt->t", point, point)
        self._curved = np.maximum(np.einsum("dt,dt->t", point, image), 0.0)

    def solve(self, alphas: Sequence[float]) -> Float64:
        """Return coefficients of shape (n_alphas, n_features, n_targets)."""
        return np.stack([self._solution(alpha / self.tracked.unit)[0] for alpha in alphas])

    def moved(self, alpha: float) -> tuple[Float64, Float64]:
        """Return w and h for anchors at the solution for ``alpha``, with w of unit length."""
        tracked, gamma = self.tracked, alpha / self.tracked.unit
        point, delta, rest = self._solution(gamma)
        norms = column_norms(point)
        per = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > SMALLEST_NORMAL)
        # K̂δ is what δ solves for, but for γδ.
        image = self._steps(gamma) * tracked.point_image + rest - gamma * delta
        return per * point, tracked.unit * (per * image)

    def tails(self, alpha: float) -> float | Float64:
        """Return T for solving at ``alpha``: one number, or one for each column."""
        return self.tracked.unit * self._tails(alpha / self.tracked.unit)

    def multiply(self, alpha: float, vectors: Float64) -> Float64:
        """Return K̂·vectors with the tail for ``alpha``."""
        tails, outside = self._tails(alpha / self.tracked.unit), self._out(vectors)
        rest = self._out((tails * outside.T).T) if np.ndim(tails) else tails * outside
        product: Float64 = self.tracked.unit * (self._low(vectors) + rest)
        return product

    def inverse(self, alpha: float) -> Callable[[Float64], Float64]:
        """Return what multiplies by (K̂ + alpha·I)⁻¹."""
        invert, unit = self._inverse(alpha / self.tracked.unit), self.tracked.unit
        return lambda vectors: invert(vectors / unit)

    def root(self) -> Float64:
        """Return what makes R of Y such that RᵀR is YᵀM⁻¹Y."""
        return self._root() / math.sqrt(self.tracked.unit)

    def eigenvectors(self) -> tuple[Float64, Float64]:
        """Return the eigenvalues of YᵀM⁻¹Y, and what makes its eigenvectors of Y, as rows."""
        root, unit = self._root(), self.tracked.unit
        values, vectors = top_eigenpairs(root @ self.tracked.squares @ root.T, len(root))
        values = np.maximum(values, SMALLEST_NORMAL)
        return unit * values, (vectors / np.sqrt(values)).T @ root / unit

    @cached_property
    def diagonal_share(self) -> float:
        """How much of the tail is E's diagonal; the rest is one number for all columns.

        A diagonal is right where columns are uneven or sparse. Where E has large eigenvalues that
        no diagonal shows, it falls far short of them, and solutions become too long. What tells is
        how much of ‖E‖²_F the variation of the diagonal explains; gauges measure ‖E‖_F.
        """
        tracked, diagonal = self.tracked, self._diagonal
        largest = float(diagonal.max(initial=0.0))
        if not tracked.gauges.shape[1] or largest == 0.0:
            return 0.0
        images = self._out(tracked.gauge_images - self._low(tracked.gauges)) / largest
        diagonal = diagonal / largest
        squares = float(diagonal @ diagonal)
        whole = max(float(np.square(images).sum(axis=0).mean()), squares)
        uneven = squares - float(diagonal.sum()) ** 2 / len(diagonal)
        share = min(DIAGONAL_SLOPE * uneven / whole, 1.0)
        return share if share >= LEAST_DIAGONAL else 0.0

    @cached_property
    def _left(self) -> float:
        """The trace of E, which no eigenvalue of it exceeds."""
        trace = float(np.trace(self._divide(self.tracked.squares)))
        return max(float(self.tracked.diagonal.sum()) - trace, 0.0)

    @cached_property
    def _diagonal(self) -> Float64:
        """That of E."""
        tracked = self.tracked
        return np.maximum(tracked.diagonal - tracked.image.column_squares(self._root()), 0.0)

    @cached_property
    def _outside(self) -> Outside:
        """What the anchors tell of E: u = (I − P)w, and Ew = Eu, which is outside too."""
        tracked = self.tracked
        image = self._out(tracked.point_image - self._low(tracked.point))
        return Outside.of(self._out(tracked.point), image, float(self._squared.sum()))

    def _tail(self, gamma: float) -> float:
        """Return τ, the tail as one number."""
        found = self._outside.tail(gamma)
        if found is None:
            n_outside = self.tracked.rank - len(self._scale)
            return self._left / n_outside if n_outside > 0 else 0.0
        return min(max(found, 0.0), self._left)

    def _tails(self, gamma: float) -> float | Float64:
        share, tail = self.diagonal_share, self._tail(gamma)
        return tail if share == 0.0 else share * self._diagonal + (1 - share) * tail

    def _steps(self, gamma: float) -> Float64:
        """Return t for each target: the line search along its anchor."""
        below = self._curved + gamma * self._squared
        steps: Float64 = np.divide(self._along, below, out=np.zeros_like(below), where=below > 0)
        return steps

    def _solution(self, gamma: float) -> tuple[Float64, Float64, Float64]:
        """Return x̂, δ, and what δ solves for."""
        tracked, steps = self.tracked, self._steps(gamma)
        rest = self._cross - steps * (tracked.point_image + gamma * tracked.point)
        delta = self._inverse(gamma)(rest)
        return steps * tracked.point + delta, delta, rest

    def _inverse(self, gamma: float) -> Callable[[Float64], Float64]:
        tails = self._tails(gamma)
        if isinstance(tails, float):
            invert = self._with_scalar_tail(gamma, tails)
        else:
            invert = self._with_diagonal_tail(gamma, tails)

        def in_range(vectors: Float64) -> Float64:
            size = binary_scales(vectors)
            return size * invert(vectors / size)

        return in_range

    def _with_scalar_tail(self, gamma: float, tail: float) -> Callable[[Float64], Float64]:
        """Eliminate all but z = a + M⁻¹Fu, where δ = Ωᵀa + u with Ωu = 0, and F = Y − MΩ.

        With ρ = τ + γ and κ = γ/ρ: ((1 − κ)M² + γM + κYYᵀ)z = (1 − κ)MΩr + κYr.
        """
        tracked, ridge = self.tracked, tail + gamma
        basis, image, middle = tracked.basis, tracked.image, tracked.middle
        share, twice = gamma / ridge, middle @ middle
        solve = _cholesky((1 - share) * twice + gamma * middle + share * tracked.squares)
        within = _cholesky(middle + gamma * np.eye(len(middle)))
        crossed = tracked.squares - twice  # FFᵀ

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

    def _with_diagonal_tail(self, gamma: float, tails: Float64) -> Callable[[Float64], Float64]:
        """Eliminate the same with R = T + γ in place of ρ, and multipliers that keep Ωu = 0.

        u = R⁻¹(s + Ωᵀμ) with s = (I − P)r − Fᵀz. Fu = f − Hz, where H is FR⁻¹Fᵀ without its part
        along R⁻½Ωᵀ, and (M² + γM + γH)z = MΩr + γf.
        """
        tracked, ridges = self.tracked, tails + gamma
        basis, image, middle = tracked.basis, tracked.image, tracked.middle
        inner, mixed, outer = self._grams(1 / np.sqrt(ridges))
        mixed = mixed - inner @ middle  # ΩR⁻¹Fᵀ
        outer = outer - middle @ mixed - (mixed + inner @ middle).T @ middle  # FR⁻¹Fᵀ
        project = _cholesky(inner)
        outer = _symmetric(outer - mixed.T @ project(mixed))
        solve = _cholesky(middle @ middle + gamma * middle + gamma * outer)
        within = _cholesky(middle + gamma * np.eye(len(middle)))

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
        basis, image, unit = self.tracked.basis, self.tracked.image, self.tracked.unit
        ours, theirs = basis.mix, image.mix * unit  # Y is in range, and so are C and YC/unit
        shared = [
            [gram(a, b, exact=True, columns=columns / math.sqrt(unit)) for b in image.parts]
            for a in basis.parts
        ]
        return (
            ours @ stacked_gram(basis.parts, exact=True, columns=columns) @ ours.T,
            ours @ np.block(shared) @ theirs.T,
            theirs @ stacked_gram(image.parts, exact=True, columns=columns / unit) @ theirs.T,
        )

    def _root(self) -> Float64:
        root: Float64 = solve_triangular(self._factor, np.diag(self._scale), lower=True)
        return root

    def _low(self, vectors: Float64) -> Float64:
        """Return YᵀM⁻¹Y·vectors."""
        image = self.tracked.image
        return image.lift(self._divide(image.project(vectors)))

    def _divide(self, weights: Float64) -> Float64:
        """Return M⁻¹·weights."""
        scale = self._scale[:, None]
        divided: Float64 = scale * cho_solve((self._factor, True), scale * weights)
        return divided

    def _out(self, vectors: Float64) -> Float64:
        """Return (I − P)·vectors."""
        basis = self.tracked.basis
        return vectors - basis.lift(basis.project(vectors))


def _symmetric(matrix: Float64) -> Float64:
    half: Float64 = (matrix + matrix.T) / 2
    return half


def _cholesky(matrix: Float64) -> Callable[[Float64], Float64]:
    """Return what divides by a positive matrix, factorised in units of its diagonal."""
    unit = 1 / np.sqrt(np.maximum(np.diagonal(matrix), SMALLEST_NORMAL))
    factor = cho_factor(_symmetric(matrix) * np.outer(unit, unit), lower=True)
    return lambda weights: unit[:, None] * cho_solve(factor, unit[:, None] * weights)
