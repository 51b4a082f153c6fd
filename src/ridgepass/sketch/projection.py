"""Random projections of A and b: dense signs, and the CountSketch."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse

from ridgepass.kernels import (
    CONVERSION_PANEL,
    Float64,
    Rows,
    add_mix,
    apply_transposed,
    orthogonal_mix,
    panels,
    stacked_gram,
)
from ridgepass.sketch.base import LowRank, Sketch


class Projection(Sketch):
    """C = ΠA and Πb for a random Π with E[ΠᵀΠ] = I.

    The columns of Π for a block are drawn from the seed and the block's number alone, so they
    need no state and do not depend on how the rows arrived. Nothing is known of the error.
    """

    def __init__(
        self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int = 0
    ) -> None:
        super().__init__(n_features, sketch_size, dtype, seed)
        self.block_rows = sketch_size
        self.rows: Rows = np.zeros((sketch_size, n_features), dtype)
        self.targets: Float64 | None = None
        self.draws = 0

    @abstractmethod
    def _columns(self, n_rows: int) -> Float64:
        """Draw the columns of Π for the next block; a shorter block gets the first of them."""

    @abstractmethod
    def _project_into(self, columns: Float64, rows: Rows) -> None:
        """Add ``columns @ rows`` to C."""

    def absorb(self, rows: Rows, targets: Float64) -> None:
        """Take in one block."""
        columns = self._columns(len(rows))
        self._project_into(columns, rows)
        self.targets = self._projected(columns, targets)
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
                self.absorb(rows, other.targets[taken])
            return
        signs = self._generator(merging=True).choice([-1.0, 1.0], self.sketch_size)
        self.rows += signs[:, None] * other.rows
        self.targets = self._projected(np.diag(signs), other.targets)
        self.draws += 1

    def covariance(self, rows: Rows, targets: Float64) -> LowRank:
        """Return CᵀC and Cᵀ(Πb) as if ``rows`` were the last block."""
        columns = self._columns(len(rows))
        stored = (self.rows, rows)
        mix = np.hstack([np.eye(self.sketch_size), columns])
        squares, mix_orthogonal = orthogonal_mix(stacked_gram(stored, exact=True), mix)
        cross = apply_transposed(stored, mix.T @ self._projected(columns, targets))
        return LowRank(stored, mix_orthogonal, squares, 0.0, np.inf, np.inf, cross)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.rows.nbytes + (0 if self.targets is None else self.targets.nbytes)

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

    def _columns(self, n_rows: int) -> Float64:
        words = -(-self.sketch_size // 64)
        bits = self._generator().integers(256, size=(n_rows, 8 * words), dtype=np.uint8)
        signs = np.unpackbits(bits, axis=1, count=self.sketch_size)
        columns: Float64 = (2.0 * signs.T - 1.0) / np.sqrt(self.sketch_size)
        return columns

    def _project_into(self, columns: Float64, rows: Rows) -> None:
        add_mix(self.rows, columns, rows)


class CountSketch(Projection):
    """Π with one random sign in a random place of each column; the paper's CSrr."""

    def _columns(self, n_rows: int) -> Float64:
        generator = self._generator()
        pairs = generator.integers(2 * self.sketch_size, size=n_rows)
        columns = np.zeros((self.sketch_size, n_rows))
        columns[pairs // 2, np.arange(n_rows)] = 1.0 - 2.0 * (pairs % 2)
        return columns

    def _project_into(self, columns: Float64, rows: Rows) -> None:
        scatter = sparse.csr_array(columns.astype(self.dtype))
        for part in panels(self.n_features, CONVERSION_PANEL):
            self.rows[:, part] += scatter @ rows[:, part]
