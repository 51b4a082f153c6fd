"""Passes over dense and over sparse rows."""

import math
from typing import Any

import numpy as np
from scipy import sparse

from ridgepass.kernels import Float64, apply, apply_transposed, column_norms, is_sparse
from ridgepass.refining.sums import Pass, Preparation

# Rows wait until there are about this many numbers of them: few enough to stay in the cache from
# the first product to the second.
BLOCK = 1 << 18
LONGEST = 512  # rows of a block, for the sake of rounding
# A sparse block costs SciPy a result of all features, however few of them its rows have.
SPARSE_ROWS = (1 << 10, 1 << 15)


class DensePass(Pass):
    """Rows are written out as they are to be multiplied, into a block that stays in the cache."""

    def _set_up(self) -> None:
        n_features = len(self.vectors)
        self.block_rows = min(max(8, BLOCK // n_features), LONGEST)
        self._rows: Float64 = np.empty((self.block_rows, n_features))
        self._targets: Float64 = np.empty((self.block_rows, len(self.signs)))
        self._weights: Float64 = np.empty(self.block_rows)
        self._filled = 0

    def add(self, rows: Any, targets: Float64, weights: Float64 | None) -> None:
        """Take in a batch of rows of positive weight."""
        start, n_rows = 0, rows.shape[0]
        while start < n_rows:
            stop = min(n_rows, start + self.block_rows - self._filled)
            here, there = slice(start, stop), slice(self._filled, self._filled + stop - start)
            self._prepare(rows[here], self._rows[there])
            np.subtract(targets[here], self.preparation.target_mean, out=self._targets[there])
            self._weights[there] = 1.0 if weights is None else weights[here]
            self._filled, start = there.stop, stop
            if self._filled == self.block_rows:
                self._flush()

    def _prepare(self, rows: Any, out: Float64) -> None:
        chunk = rows.toarray() if is_sparse(rows) else rows
        if self.preparation.centred and chunk.dtype == out.dtype:
            np.subtract(chunk, self.preparation.mean, out=out)
        else:  # to float64 first: NumPy is slow to subtract and convert at once
            out[:] = chunk
            if self.preparation.centred:
                out -= self.preparation.mean
        self._has_rows = self._has_rows or bool(out.any())
        if self.preparation.scale is not None:
            out /= self.preparation.scale

    def _flush(self) -> None:
        if not self._filled:
            return
        rows, weights = self._rows[: self._filled], self._weights[: self._filled]
        products = apply((rows,), self.vectors)
        columns = self._columns(products, self._targets[: self._filled], weights)
        self._lifted += apply_transposed((rows,), columns)
        self._longest = max(self._longest, rows.size)
        if (weights == 1.0).all():  # BLAS takes a fifth of the time
            self._mass += float(np.vdot(rows, rows))
        else:
            self._mass += float(weights @ np.einsum("ij,ij->i", rows, rows))
        if self.preparation.measures:
            self._column_squares += weights @ np.square(rows)
        self._filled = 0

    def _lift(self, lost: float) -> tuple[Float64, float, float]:
        return self._lifted, self._mass, math.sqrt(self._mass + lost)


class SparsePass(Pass):
    """Rows are multiplied as they are; what centring and scaling do to them is done to the sums."""

    def _set_up(self) -> None:
        n_features = len(self.vectors)
        least, most = SPARSE_ROWS
        self.block_rows = min(max(least, n_features // 32), most)
        scale, mean = self.preparation.scale, self.preparation.mean
        self._mean = mean if scale is None else mean / scale
        self._offset = self._mean @ self.vectors
        self._by_rows = np.ascontiguousarray(self.vectors)  # as SciPy multiplies
        self._has_rows = self._has_rows or bool(mean.any())
        self._pieces: list[tuple[Any, Float64, Float64]] = []
        self._filled = 0

    def add(self, rows: Any, targets: Float64, weights: Float64 | None) -> None:
        """Take in a batch of rows of positive weight; nothing of it is kept but copies."""
        rows, start = sparse.csr_array(rows), 0
        by_row = np.ones(rows.shape[0]) if weights is None else weights
        while start < rows.shape[0]:
            stop = min(rows.shape[0], start + self.block_rows - self._filled)
            piece = rows[start:stop], targets[start:stop], by_row[start:stop]
            self._filled, start = self._filled + stop - start, stop
            if self._filled == self.block_rows:
                self._pieces.append(piece)
                self._flush()
            else:  # it waits, and the caller may write the next batch into the same arrays
                whole, *others = piece
                self._pieces.append((whole.copy(), *(part.copy() for part in others)))

    def _flush(self) -> None:
        if not self._filled:
            return
        parts = zip(*self._pieces, strict=True)
        rows, targets, weights = next(parts), np.concatenate(next(parts)), next(parts)
        block, by_row = sparse.vstack(rows, format="csr", dtype=np.float64), np.concatenate(weights)
        block.sum_duplicates()  # their squares would not sum up to that of the entry
        block.eliminate_zeros()  # sums of squares pair their terms, and zeros may be stored or not
        self._has_rows = self._has_rows or bool(block.data.any())
        if self.preparation.scale is not None:
            block.data /= self.preparation.scale[block.indices]
        products = block @ self._by_rows - self._offset
        columns = self._columns(products, targets - self.preparation.target_mean, by_row)
        self._lifted += block.T @ columns
        self._longest = max(self._longest, block.nnz)
        by_entry = np.repeat(by_row, np.diff(block.indptr))
        squares = by_entry * np.square(block.data)
        self._mass += float(squares.sum())
        if self.preparation.measures:
            self._column_squares += np.bincount(block.indices, squares, block.shape[1])
        self._pieces.clear()
        self._filled = 0

    def _base(self) -> Float64 | float:
        return self._mean

    def _lift(self, lost: float) -> tuple[Float64, float, float]:
        lifted = self._lifted - np.outer(self._mean, self._sums)
        away = float(column_norms(self._mean[:, None])[0]) * math.sqrt(self._weight)
        size = math.sqrt(self._mass + lost) + away
        # ‖A − 1·meanᵀ‖² = ‖A‖² − 2·sum(A)·mean + weight·‖mean‖², and sum(A) = sums + weight·mean.
        mass = self._mass - 2 * float(lifted[:, -1] @ self._mean) - away * away
        return lifted, max(mass, 0.0), size


def new_pass(
    sparse_rows: bool, preparation: Preparation, vectors: Float64, targets: Any, signs: Float64
) -> Pass:
    """Begin a pass over dense or sparse rows."""
    kind = SparsePass if sparse_rows else DensePass
    return kind(preparation, vectors, targets, signs)
