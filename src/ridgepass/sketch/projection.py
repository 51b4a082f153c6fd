"""Random projections of A and b: dense signs, and the CountSketch."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from ridgepass.blocks import Block
from ridgepass.kernels import (
    CONVERSION_PANEL,
    Float64,
    Part,
    Rows,
    add_mix,
    apply_transposed,
    column_squares,
    is_sparse,
    orthogonal_mix,
    panel,
    panels,
    stacked_gram,
    top_eigenpairs,
)
from ridgepass.sketch.base import LowRank, Sketch
from ridgepass.snapshot import Kept, array, entry


class Projection(Sketch):
    """C = ΠA and Πb for a random Π with E[ΠᵀΠ] = I.

    The columns of Π for a block are drawn from the seed and the block's number alone, so they
    need no state and do not depend on how the rows arrived. Nothing is known of the error.
    """

    KEEPS: ClassVar[tuple[str, ...]] = ("rows", "draws")
    is_random: ClassVar[bool] = True
    columns_apart: ClassVar[bool] = True

    def __init__(
        self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int = 0
    ) -> None:
        super().__init__(n_features, sketch_size, dtype, seed)
        self.block_rows = sketch_size
        self.sparse_block_rows = 8 * sketch_size  # one pass over C for many sparse rows
        self.rows: Rows = np.zeros((sketch_size, n_features), dtype)
        self.targets: Float64 | None = None
        self.draws = 0

    @abstractmethod
    def _columns(self, n_rows: int, *, merging: bool = False) -> Float64:
        """Draw the columns of Π for the next block; a shorter block gets the first of them."""

    @abstractmethod
    def _project_into(self, out: Rows, columns: Float64, rows: tuple[Part, ...]) -> None:
        """Add ``columns @ vstack(rows)`` to ``out``."""

    def _projection(self, n_rows: int) -> Float64:
        """Return the columns of Π for the next block.

        The first ℓ rows of all are kept as they are: that is unbiased too, and exact until more
        rows come.
        """
        columns = self._columns(n_rows)
        if self.draws == 0:
            kept = min(n_rows, self.sketch_size)
            columns[:, :kept] = np.eye(self.sketch_size, kept)
        return columns

    def absorb(self, block: Block) -> None:
        """Take in one block."""
        self._add(self._projection(len(block)), block)

    def _add(self, columns: Float64, block: Block) -> None:
        self._project_into(self.rows, block.unfold(columns), block.parts)
        self.targets = self._projected(columns, block.targets)
        self.draws += 1

    def merge(self, other: Self) -> None:
        """Add the other's sketch, its rows with fresh random signs.

        Without them two streams that share a seed would be projected alike, and the cross terms of
        their rows would not vanish in expectation. Another size is projected to this one's.
        """
        if other.targets is None:
            return
        if other.sketch_size != self.sketch_size:
            for start in range(0, other.sketch_size, self.block_rows):
                taken = slice(start, start + self.block_rows)
                rows = np.ascontiguousarray(other.rows[taken], self.dtype)
                self._add(self._columns(len(rows), merging=True), Block(rows, other.targets[taken]))
            return
        signs = self._generator(merging=True).choice([-1.0, 1.0], self.sketch_size)
        self.rows += signs[:, None] * other.rows
        self.targets = self._projected(np.diag(signs), other.targets)
        self.draws += 1

    def rescale(self, ratio: Float64, column_mass: Float64) -> None:
        """Multiply the columns of all rows so far."""
        np.multiply(self.rows, ratio, out=self.rows, casting="same_kind")

    def covariance(self, block: Block, columns: Float64 | None = None) -> LowRank:
        """Return CᵀC and Cᵀ(Πb) as if ``block`` were the last."""
        drawn = self._projection(len(block))
        if self.sketch_size >= self.n_features:
            return self._square_covariance(block, drawn, columns)
        stored = (self.rows, *block.parts)
        mix = np.hstack([np.eye(self.sketch_size), block.unfold(drawn)])
        gram = stacked_gram(stored, exact=True, columns=columns)
        squares, mix_orthogonal = orthogonal_mix(gram, mix)
        cross = apply_transposed(stored, mix.T @ self._projected(drawn, block.targets))
        if columns is not None:
            cross *= columns[:, None]
        mass = float(squares.sum())  # an estimate; the certificate is infinite whatever it is
        return LowRank(stored, mix_orthogonal, squares, 0.0, np.inf, mass, cross, columns)

    def _square_covariance(self, block: Block, drawn: Float64, columns: Float64 | None) -> LowRank:
        """Return the same from the d×d matrix CᵀC, where that is the smaller one."""
        rows = self.rows.astype(np.float64)
        self._project_into(rows, block.unfold(drawn), block.parts)
        if columns is not None:
            rows *= columns
        values, vectors = top_eigenpairs(rows.T @ rows, self.n_features)
        squares = np.maximum(values, 0.0)
        directions = np.ascontiguousarray(vectors.T)
        directions *= np.sqrt(squares)[:, None]
        cross = rows.T @ self._projected(drawn, block.targets)
        mix, mass = np.eye(self.n_features), float(squares.sum())
        return LowRank((directions,), mix, squares, 0.0, np.inf, mass, cross)

    @property
    def mass(self) -> float:
        """‖A‖_F² of all blocks, as expected of the projection."""
        return float(column_squares(self.rows, np.ones(self.sketch_size)).sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.rows.nbytes + (0 if self.targets is None else self.targets.nbytes)

    @classmethod
    def shapes(cls, n_features: int, sketch_size: int) -> Kept:
        """Return the shapes of the arrays in a snapshot."""
        return {"rows": (sketch_size, n_features)}

    def snapshot(self) -> Kept:
        """Return what the sketch holds as plain data, valid until it changes."""
        return super().snapshot() | {"targets": self.targets}

    def restore(self, kept: Kept, n_targets: int = 0) -> None:
        """Take up a snapshot in a fresh sketch, or raise ValueError."""
        targets, shape = entry(kept, "targets"), (self.sketch_size, n_targets)
        if targets is not None:
            self.targets = array(targets, "targets", np.dtype(np.float64), shape)
        super().restore(kept, n_targets)

    def _projected(self, columns: Float64, targets: Float64) -> Float64:
        projected: Float64 = columns @ targets
        return projected if self.targets is None else self.targets + projected

    def _generator(self, *, merging: bool = False) -> np.random.Generator:
        counter = (self.draws << 64) + (merging << 128)  # merges share no number with blocks
        return np.random.Generator(np.random.Philox(key=self.seed, counter=counter))


class SignProjection(Projection):
    """Π of independent entries ±1/√ℓ; the paper's RPrr.

    The paper prints ±√ℓ, with which E[ΠᵀΠ] would be ℓ²·I.
    """

    def _columns(self, n_rows: int, *, merging: bool = False) -> Float64:
        words = -(-self.sketch_size // 64)
        bits = self._generator(merging=merging).integers(
            256, size=(n_rows, 8 * words), dtype=np.uint8
        )
        signs = np.unpackbits(bits, axis=1, count=self.sketch_size)
        columns: Float64 = (2.0 * signs.T - 1.0) / np.sqrt(self.sketch_size)
        return columns

    def _project_into(self, out: Rows, columns: Float64, rows: tuple[Part, ...]) -> None:
        add_mix(out, columns, *rows)


class CountSketch(Projection):
    """Π with one random sign in a random place of each column; the paper's CSrr."""

    def _columns(self, n_rows: int, *, merging: bool = False) -> Float64:
        generator = self._generator(merging=merging)
        pairs = generator.integers(2 * self.sketch_size, size=n_rows)
        columns = np.zeros((self.sketch_size, n_rows))
        columns[pairs // 2, np.arange(n_rows)] = 1.0 - 2.0 * (pairs % 2)
        return columns

    def _project_into(self, out: Rows, columns: Float64, rows: tuple[Part, ...]) -> None:
        start = 0
        for part in rows:
            stop = start + part.shape[0]
            scatter = sparse.csr_array(columns[:, start:stop].astype(out.dtype))
            for span in panels(self.n_features, CONVERSION_PANEL):
                product = scatter @ panel(part, span)
                out[:, span] += product.toarray() if is_sparse(product) else product
            start = stop
