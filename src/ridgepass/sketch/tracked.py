"""A slowly moving subspace whose image under AᵀA is followed exactly, block by block."""

from typing import Any, Literal

import numpy as np
from scipy.linalg import block_diag, cholesky, solve_triangular

from ridgepass.blocks import Block
from ridgepass.kernels import (
    Float64,
    Rows,
    apply,
    apply_transposed,
    column_squares,
    is_sparse,
    mix_into,
    panels,
    stacked_gram,
    top_eigenpairs,
    unit_roundoff,
)
from ridgepass.sketch.frequent_directions import IncrementalSVD
from ridgepass.solve.tracked import MixedRows, Tracked, TrackedSolver

LEAST_BLOCK = 128  # rows: thinner products are slow, and as many moves are not needed
# Anchors move, and the basis turns, when the rows have grown by so much.
MOVE_GROWTH = 1.1
TURN_GROWTH = 1.5
# A block is new if its share of squares outside the basis is this many times the running share of
# the blocks before, and a little more.
NEW_FACTOR = 2.0
NEW_SHARE = 0.02
FADING = 0.2  # weight of the latest block in that share
PANEL = 1024  # columns at a time, so that what is added to them stays in the cache
N_GAUGES = 8


class TrackedSubspace:
    """Follows H = K·T for T = [basis | anchors | gauges], where K = AᵀA: two products a block.

    While all rows fit, K = BᵀB is kept as it is (``start``). From then on nothing is ever shrunk:
    new rows go into the image exactly. Now and then the basis turns to the leading directions of
    K̂, and its image with it as far as K̂ knows K; that is the only error.

    Parameters
    ----------
    n_features, sketch_size : int
        Columns of A, and rows of the basis.
    dtype : dtype
        Of the basis and its image. The images of anchors and gauges are summed up in float64.
    n_targets : int
        One anchor for each.
    alpha : float, optional
        Where the anchors are kept; None for the mean eigenvalue of K.
    seed : int
        Of the gauges.
    sparse : bool
        Whether rows will be sparse: arrays then lie by columns, as these meet them.
    """

    def __init__(
        self,
        n_features: int,
        sketch_size: int,
        dtype: np.dtype[Any],
        n_targets: int = 1,
        alpha: float | None = None,
        seed: int = 0,
        *,
        sparse: bool = False,
    ) -> None:
        self.n_features, self.sketch_size, self.dtype = n_features, sketch_size, np.dtype(dtype)
        self.n_targets, self.alpha = n_targets, alpha
        self.block_rows = max(sketch_size, LEAST_BLOCK)
        n_more = n_targets + N_GAUGES
        order: Literal["C", "F"] = "F" if sparse else "C"
        self.points: Rows = np.zeros((sketch_size + n_more, n_features), self.dtype, order)
        rng = np.random.Generator(np.random.Philox(seed))
        self.points[sketch_size + n_targets :] = rng.standard_normal((N_GAUGES, n_features))
        self.image: Rows = np.zeros((sketch_size, n_features), self.dtype, order)
        # Images of anchors and gauges.
        self.further: Float64 = np.zeros((n_more, n_features), np.float64, order)
        self.middle: Float64 = np.zeros((sketch_size, sketch_size))
        self.diagonal: Float64 = np.zeros(n_features)
        self.n_rows = 0
        self.start: IncrementalSVD | None = IncrementalSVD(n_features, sketch_size, self.dtype)
        self.outside: float | None = None
        self.due_move, self.due_turn = 2 * sketch_size, 0
        self.n_moves = self.n_turns = 0

    @property
    def basis(self) -> Rows:
        """Ω, with orthonormal rows."""
        return self.points[: self.sketch_size]

    @property
    def mass(self) -> float:
        """‖A‖_F² of all blocks."""
        return self.start.mass if self.start is not None else float(self.diagonal.sum())

    def absorb(self, block: Block) -> Float64:
        """Take in one block; return its Aᵀb."""
        cross = self._take(block)
        self.n_rows += block.n_rows
        return cross

    def settle(self, cross: Float64) -> None:
        """Turn the basis and move the anchors if it is time; ``cross`` is Aᵀb of all blocks."""
        if self.start is None and self.n_rows >= self.due_turn:
            self._turn(self.solver(cross))
        if self.start is None and self.n_rows >= self.due_move:
            self._move(self.solver(cross))

    def solver(self, cross: Float64, block: Block | None = None) -> TrackedSolver:
        """Return what solves with K̂ of all blocks, and of rows that wait if there are any.

        ``cross`` is Aᵀb of all of them.
        """
        size, n_targets = self.sketch_size, self.n_targets
        more = self.points[size:].astype(np.float64).T
        middle, further, diagonal = self.middle, self.further.T, self.diagonal
        parts, mix = (self.image,), np.eye(size)
        if block is not None and len(block):
            products = block.apply(self.points.T.astype(np.float64))
            inside = products[:, :size]
            middle = middle + inside.T @ inside
            further = further + block.lift(products[:, size:])
            diagonal = diagonal + block.column_squares()
            parts, mix = (self.image, *block.parts), np.hstack([mix, block.unfold(inside.T)])
        unit = float(np.ldexp(1.0, int(np.frexp(np.diagonal(middle).max())[1])))
        image = MixedRows(parts, mix / unit)
        return TrackedSolver(
            Tracked(
                basis=MixedRows((self.basis,), np.eye(size)),
                image=image,
                middle=middle / unit,
                squares=image.gram() if len(parts) > 1 else _gram(self.image, unit),
                point=more[:, :n_targets],
                point_image=further[:, :n_targets] / unit,
                gauges=more[:, n_targets:],
                gauge_images=further[:, n_targets:] / unit,
                diagonal=diagonal / unit,
                rank=min(self.n_rows + (0 if block is None else len(block)), self.n_features),
                unit=unit,
            ),
            cross,
        )

    def merge(self, other: "TrackedSubspace", cross: Float64, theirs: Float64) -> None:
        """Take in another, of any size, which stays as it is; ``cross`` and ``theirs`` are Aᵀb.

        Both hand over their K̂; the basis becomes its leading directions.
        """
        if other.start is not None:
            if other.start.updates:
                self._take(Block.of(other.start.rows.astype(self.dtype)))
        elif self.start is not None:
            self._join_from_start(self.start, other, theirs)
        else:
            self._join(other, self.solver(cross), other.solver(theirs))
        self.n_rows += other.n_rows
        if self.start is None:
            self.due_turn = min(self.due_turn, self.n_rows)

    def rescale(self, ratio: Float64) -> None:
        """Multiply the columns of all rows so far; zero leaves a column out."""
        if self.start is not None:
            self.start.rescale(ratio, np.full_like(ratio, np.inf))
            return
        inverse = np.divide(1.0, ratio, out=np.zeros_like(ratio), where=ratio > 0)
        self.points[:] = self.points * inverse
        self.image[:] = self.image * ratio
        self.further *= ratio
        self.diagonal *= np.square(ratio)
        self._orthonormalise()

    def _take(self, block: Block) -> Float64:
        if self.start is not None:
            return self._begin(self.start, block)
        squares = block.column_squares()
        products, outside = self._products(block, float(squares.sum()))
        if self.outside is not None and outside > NEW_FACTOR * self.outside + NEW_SHARE:
            # What the tail is needs no targets: the anchors carry them.
            self._turn_to(block, self.solver(np.zeros((self.n_features, self.n_targets))))
            products, outside = self._products(block, float(squares.sum()))
        before = outside if self.outside is None else self.outside
        self.outside = (1 - FADING) * before + FADING * outside
        self.diagonal += squares
        return self._add(block, products)

    def _begin(self, start: IncrementalSVD, block: Block) -> Float64:
        """Take in a block while all rows may fit; begin to follow where they no longer do."""
        size, rows = self.sketch_size, start.rows
        gram, cancelled = start.gram(block)
        step = start.shrink(gram)
        full = step.values[size] > 64 * unit_roundoff(self.dtype) * step.values[0]
        if full:  # K is still known in full
            more = self.points[size:].astype(np.float64)
            images = apply_transposed((rows,), apply((rows,), more.T))
            images += block.lift(block.apply(more.T))
            self.further[:] = images.T
            self.diagonal = column_squares(rows, np.ones(size)) + block.column_squares()
        start.carry_out(start.plan_of(step, cancelled), block)
        if full:
            roots = np.sqrt(start.squares)[:, None]
            self.points[:size], self.image[:] = start.rows / roots, start.rows * roots
            self.middle = np.diag(start.squares)
            self.start = None
            self._postpone_turn(block.n_rows)
        return block.cross()

    def _products(self, block: Block, mass: float) -> tuple[Rows, float]:
        """Return the block's rows times all points, and its share of squares outside the basis."""
        if block.is_implicit or is_sparse(block.rows):
            products: Rows = block.apply(self.points.T)
        else:
            products = block.rows @ self.points.T
        inside = products[:, : self.sketch_size]
        return products, 1.0 - float(np.vdot(inside, inside)) / mass if mass > 0 else 0.0

    def _add(self, block: Block, products: Rows) -> Float64:
        """Add a block to all images; return its Aᵀb."""
        size, n_more = self.sketch_size, len(self.further)
        inside = products[:, :size].astype(np.float64)
        self.middle += inside.T @ inside
        cross = np.zeros((self.n_features, block.targets.shape[1]))
        weights = np.hstack([products, block.targets.astype(products.dtype)])
        if block.is_implicit or is_sparse(block.rows):
            block.add_lift(self.image.T, weights[:, :size])
            block.add_lift(self.further.T, weights[:, size : size + n_more])
            block.add_lift(cross, weights[:, size + n_more :])
            return cross
        weights = np.ascontiguousarray(weights.T)
        buffer = np.empty((len(weights), PANEL), self.dtype)
        for span in panels(self.n_features, PANEL):
            rows, term = block.rows[:, span], buffer[:, : span.stop - span.start]
            np.matmul(weights, rows, out=term)
            self.image[:, span] += term[:size]
            self.further[:, span] += term[size : size + n_more]
            cross[span] = term[size + n_more :].T
        return cross

    def _alpha(self) -> float:
        return self.alpha or self.mass / self.n_features

    def _move(self, solver: TrackedSolver) -> None:
        """Take the anchors to the solution so far."""
        point, image = solver.moved(self._alpha())
        if np.isfinite(point).all() and np.isfinite(image).all():
            size = self.sketch_size
            self.points[size : size + self.n_targets] = point.T
            self.further[: self.n_targets] = image.T
        self.due_move = int(MOVE_GROWTH * self.n_rows) + 1
        self.n_moves += 1

    def _turn(self, solver: TrackedSolver) -> None:
        """Make the eigenvectors V of YᵀM⁻¹Y the basis.

        Their image is K̂V: their eigenvalues times V, and the tail times what of V lies outside the
        basis before.
        """
        values, mix = solver.eigenvectors()
        along = mix @ self.middle  # VΩᵀ
        tails = np.broadcast_to(solver.tails(self._alpha()), self.n_features)
        uneven = np.ptp(tails) > 0
        held, tailed = np.zeros_like(along), np.zeros_like(along)
        for span in panels(self.n_features, PANEL) if uneven else ():
            inside = self.basis[:, span].astype(np.float64)
            beyond = mix @ self.image[:, span] - along @ inside
            held += (beyond * tails[span]) @ inside.T
            tailed += (beyond * tails[span]) @ beyond.T
        if not uneven:
            tailed = tails[0] * (np.eye(len(along)) - along @ along.T)
        narrow, its_along = mix.astype(self.dtype), along.astype(self.dtype)
        for span in panels(self.n_features, PANEL):
            before = self.basis[:, span].copy()
            turned = narrow @ self.image[:, span]
            rest = (turned - its_along @ before) * tails[span].astype(self.dtype)
            if uneven:
                rest -= held.astype(self.dtype) @ before
            self.points[: self.sketch_size, span] = turned
            self.image[:, span] = values[:, None].astype(self.dtype) * turned + rest
        self.middle = np.diag(values) + (tailed + tailed.T) / 2
        self._postpone_turn()

    def _turn_to(self, block: Block, solver: TrackedSolver) -> None:
        """Make the leading directions of K̂ and a new block the basis."""
        mix = block_diag(solver.root(), block.unfold(np.eye(len(block))))
        stacked = MixedRows((self.image, *block.parts), mix)
        self._follow(stacked, [solver])

    def _join(self, other: "TrackedSubspace", mine: TrackedSolver, theirs: TrackedSolver) -> None:
        """Make the leading directions of two K̂ the basis, and bring anchors to one place."""
        size, n_targets = self.sketch_size, self.n_targets
        share = other.n_rows / (self.n_rows + other.n_rows)
        points = [one.tracked.point for one in (mine, theirs)]
        point = (1 - share) * points[0] + share * points[1]
        image = np.zeros_like(point)
        for solver, before, alpha in (
            (mine, points[0], self._alpha()),
            (theirs, points[1], other._alpha()),
        ):
            tracked = solver.tracked
            image += tracked.unit * tracked.point_image + solver.multiply(alpha, point - before)
        mix = block_diag(mine.root(), theirs.root())
        stacked = MixedRows((self.image, other.image), mix)
        self._follow(stacked, [mine, theirs])
        self.points[size : size + n_targets] = point.T
        self.further[:n_targets] = image.T
        self.further[n_targets:] += other.further[n_targets:]
        self.diagonal += other.diagonal
        self.due_move = 0

    def _join_from_start(
        self, start: IncrementalSVD, other: "TrackedSubspace", cross: Float64
    ) -> None:
        """Go on from where the other is, and take in the few rows there were."""
        rows, size = start.rows, self.sketch_size
        self.start = None
        solver = other.solver(cross)
        self._follow(MixedRows((other.image,), solver.root()), [solver])
        self.points[size : size + self.n_targets] = other.points[
            other.sketch_size : other.sketch_size + self.n_targets
        ]
        self.further[:] = other.further
        self.diagonal = other.diagonal.copy()
        self.outside, self.due_move = other.outside, 0
        if start.updates:
            self._take(Block.of(rows))

    def _follow(self, stacked: MixedRows, solvers: list[TrackedSolver]) -> None:
        """Make the leading directions of some rows the basis; its image is what each K̂ gives."""
        size, gram = self.sketch_size, stacked.gram()
        values, vectors = top_eigenpairs(gram, min(size, len(gram)))
        values = values[: vectors.shape[1]]
        there = values > 64 * unit_roundoff(self.dtype) * values[0]
        basis = stacked.lift(vectors[:, there] / np.sqrt(values[there])).T
        if len(basis) < size:  # any others will do
            rng = np.random.Generator(np.random.Philox(size))
            others = rng.standard_normal((size - len(basis), self.n_features))
            basis = np.linalg.qr(np.vstack([basis, others]).T)[0].T
        image = np.zeros((size, self.n_features))
        for solver in solvers:
            image += solver.multiply(self._alpha_of(solver), basis.T).T
        self.points[:size], self.image[:] = basis, image
        middle = basis @ image.T
        self.middle = (middle + middle.T) / 2
        self._postpone_turn()

    def _alpha_of(self, solver: TrackedSolver) -> float:
        tracked = solver.tracked
        return self.alpha or tracked.unit * float(tracked.diagonal.mean())

    def _orthonormalise(self) -> None:
        """Make the rows of the basis orthonormal, and take the image and M along."""
        size = self.sketch_size
        inner = stacked_gram((self.basis,), exact=True)
        factor = cholesky(inner, lower=True)
        mix = solve_triangular(factor, np.eye(size), lower=True)
        mix_into(self.points[:size], mix, self.points[:size])
        mix_into(self.image, mix, self.image)
        middle = mix @ self.middle @ mix.T
        self.middle = (middle + middle.T) / 2

    def _postpone_turn(self, n_more: int = 0) -> None:
        self.due_turn = int(TURN_GROWTH * (self.n_rows + n_more)) + 1
        self.n_turns += 1


def _gram(rows: Rows, unit: float) -> Float64:
    """Return rows·rowsᵀ/unit², where only the quotient is sure to be in range."""
    total = np.zeros((len(rows), len(rows)))
    inverse = rows.dtype.type(1 / unit)
    for span in panels(rows.shape[1], PANEL):
        part = rows[:, span] * inverse
        total += part @ part.T  # which NumPy does with half the work
    return total
