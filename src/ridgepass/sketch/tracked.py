"""A slowly moving subspace whose image under AᵀA is followed exactly, block by block."""

from typing import Any

import numpy as np

from ridgepass.blocks import Block
from ridgepass.kernels import (
    Float64,
    Rows,
    apply,
    apply_transposed,
    column_squares,
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
    """

    def __init__(
        self,
        n_features: int,
        sketch_size: int,
        dtype: np.dtype[Any],
        n_targets: int = 1,
        alpha: float | None = None,
        seed: int = 0,
    ) -> None:
        self.n_features, self.sketch_size, self.dtype = n_features, sketch_size, np.dtype(dtype)
        self.n_targets, self.alpha = n_targets, alpha
        self.block_rows = max(sketch_size, LEAST_BLOCK)
        n_more = n_targets + N_GAUGES
        self.points: Rows = np.zeros((sketch_size + n_more, n_features), self.dtype)
        rng = np.random.Generator(np.random.Philox(seed))
        self.points[sketch_size + n_targets :] = rng.standard_normal((N_GAUGES, n_features))
        self.image: Rows = np.zeros((sketch_size, n_features), self.dtype)
        self.further: Float64 = np.zeros((n_more, n_features))  # images of anchors and gauges
        self.middle: Float64 = np.zeros((sketch_size, sketch_size))
        self.cross: Float64 = np.zeros((n_features, n_targets))
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

    def absorb(self, block: Block) -> None:
        """Take in one block."""
        if self.start is not None:
            self._begin(self.start, block)
        else:
            products, outside = self._products(block)
            if self.outside is not None and outside > NEW_FACTOR * self.outside + NEW_SHARE:
                self._turn_to(block)
                products, outside = self._products(block)
            before = outside if self.outside is None else self.outside
            self.outside = (1 - FADING) * before + FADING * outside
            self._add(block, products)
        self.n_rows += block.n_rows
        if self.start is None and self.n_rows >= self.due_turn:
            self._turn()
        if self.start is None and self.n_rows >= self.due_move:
            self._move()

    def solver(self) -> TrackedSolver:
        """Return what solves with K̂ of all blocks so far."""
        size, n_targets = self.sketch_size, self.n_targets
        more = self.points[size:].astype(np.float64).T
        unit = float(np.ldexp(1.0, int(np.frexp(np.diagonal(self.middle).max())[1])))
        return TrackedSolver(
            Tracked(
                basis=MixedRows((self.basis,), np.eye(size)),
                image=MixedRows((self.image,), np.eye(size) / unit),
                middle=self.middle / unit,
                squares=_gram(self.image, unit),
                point=more[:, :n_targets],
                point_image=self.further[:n_targets].T / unit,
                gauges=more[:, n_targets:],
                gauge_images=self.further[n_targets:].T / unit,
                diagonal=self.diagonal / unit,
                rank=min(self.n_rows, self.n_features),
                unit=unit,
            ),
            self.cross,
        )

    def _begin(self, start: IncrementalSVD, block: Block) -> None:
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
            self.diagonal = column_squares(rows, np.ones(size))
            self.diagonal += np.square(block.dense()).sum(axis=0)
        start.carry_out(start.plan_of(step, cancelled), block)
        self.cross += block.cross()
        if full:
            roots = np.sqrt(start.squares)[:, None]
            self.points[:size], self.image[:] = start.rows / roots, start.rows * roots
            self.middle = np.diag(start.squares)
            self.start = None
            self._postpone_turn(block.n_rows)

    def _products(self, block: Block) -> tuple[Rows, float]:
        """Return the block's rows times all points, and its share of squares outside the basis."""
        products = block.rows @ self.points.T
        inside = products[:, : self.sketch_size]
        whole = float(np.vdot(block.rows, block.rows))
        return products, 1.0 - float(np.vdot(inside, inside)) / whole if whole > 0 else 0.0

    def _add(self, block: Block, products: Rows) -> None:
        """Add a block to all images, to Aᵀb, and to the diagonal of K."""
        size, n_more = self.sketch_size, len(self.further)
        inside = products[:, :size].astype(np.float64)
        self.middle += inside.T @ inside
        weights = np.hstack([products, block.targets.astype(self.dtype)])
        weights = np.ascontiguousarray(weights.T)
        buffer = np.empty((len(weights), PANEL), self.dtype)
        for span in panels(self.n_features, PANEL):
            rows, term = block.rows[:, span], buffer[:, : span.stop - span.start]
            np.matmul(weights, rows, out=term)
            self.image[:, span] += term[:size]
            self.further[:, span] += term[size : size + n_more]
            self.cross[span] += term[size + n_more :].T
            self.diagonal[span] += np.einsum("ij,ij->j", rows, rows)

    def _alpha(self) -> float:
        return self.alpha or self.mass / self.n_features

    def _move(self) -> None:
        """Take the anchors to the solution so far."""
        point, image = self.solver().moved(self._alpha())
        if np.isfinite(point).all() and np.isfinite(image).all():
            size = self.sketch_size
            self.points[size : size + self.n_targets] = point.T
            self.further[: self.n_targets] = image.T
        self.due_move = int(MOVE_GROWTH * self.n_rows) + 1
        self.n_moves += 1

    def _turn(self) -> None:
        """Make the eigenvectors V of YᵀM⁻¹Y the basis.

        Their image is K̂V: their eigenvalues times V, and the tail times what of V lies outside the
        basis before.
        """
        solver = self.solver()
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

    def _turn_to(self, block: Block) -> None:
        """Make the leading directions of K̂ and a new block the basis."""
        solver, size = self.solver(), self.sketch_size
        mix = np.zeros((size + len(block), size + len(block)))
        mix[:size, :size], mix[size:, size:] = solver.root(), np.eye(len(block))
        gram = stacked_gram((self.image, block.rows), exact=True)
        values, vectors = top_eigenpairs(mix @ gram @ mix.T, size)
        turned = ((vectors / np.sqrt(values[:size])).T @ mix).astype(self.dtype)
        basis = turned[:, :size] @ self.image + turned[:, size:] @ block.rows
        wide = basis.astype(np.float64)
        image = solver.multiply(self._alpha(), wide.T).T
        self.points[:size], self.image[:] = basis, image
        middle = wide @ image.T
        self.middle = (middle + middle.T) / 2
        self._postpone_turn()

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
