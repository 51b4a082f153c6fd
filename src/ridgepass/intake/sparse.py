"""Sparse rows, centred without being filled in."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ridgepass.blocks import Block
from ridgepass.centring import shift_factor
from ridgepass.intake.base import Batch, Intake
from ridgepass.kernels import Float64, Rows


class SparseIntake(Intake):
    """Keeps sparse rows as given; centring stays implicit, so that nothing fills in.

    Subtracting an implicit mean cancels where a column's mean is large against its spread. In a
    column with a zero among m rows the squared mean is at most m times the variance, which does no
    harm; a column without zeros can be centred in place.
    """

    def __init__(self, block_rows: int, n_features: int, *args: Any, **options: Any) -> None:
        super().__init__(block_rows, n_features, *args, **options)
        self._pieces: list[Any] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers, whether filled or not."""
        arrays = (part for p in self._pieces for part in (p.data, p.indices, p.indptr))
        return super().nbytes + sum(int(part.nbytes) for part in arrays)

    def feed(self, batch: Batch) -> Iterator[Block]:
        """Yield each block that is full now."""
        rows = batch.rows if batch.origin is None else batch.rows + batch.origin.astype(np.float64)
        given = sparse.csr_array(rows)
        start, n_rows = 0, given.shape[0]
        while start < n_rows:
            stop = min(start + self.block_rows - self.filled, n_rows)
            here = slice(start, stop)
            self._pieces.append(_canonical(given[here]))
            self._keep_targets(batch, here)
            self.filled += stop - start
            if self.filled == self.block_rows:
                yield self._finish()
            start = stop

    def pending(self) -> Block:
        """Return the waiting rows with centring and weights left implicit."""
        return self._block()[0]

    def waiting(self) -> Batch:
        """Return the rows that wait as they were given."""
        targets, weights = self._targets[: self.filled], self._waiting_weights()
        return Batch(self._stacked(), targets, weights, None, self.target_mean.high)

    def rebase(self, high: Rows, target_high: Rows, units: Float64 | float) -> None:
        """Measure waiting targets from their mean's new place; rows are kept as given."""
        self._targets[: self.filled] += target_high - self.target_mean.high

    def _stacked(self) -> Any:
        if not self._pieces:
            return sparse.csr_array((0, self.n_features))
        return sparse.csr_array(sparse.vstack(self._pieces, format="csr"))

    def _feature_distance(self) -> Float64:
        return self._block()[2]

    def _finish(self) -> Block:
        block, offset, distance = self._block()
        ratio, before = self._new_units(block, distance)
        if ratio is not None:
            block.rows.data[:] *= np.repeat(ratio, np.diff(block.rows.indptr))
            offset = offset * ratio
            for row in (block.mean, block.shift):
                if row is not None:
                    row *= ratio
        self._move_means(offset, distance)
        self._pieces.clear()
        return Block(
            block.rows,
            block.targets,
            block.factors,
            block.mean,
            block.shift,
            block.n_shifts,
            before,
        )

    def _block(self) -> tuple[Block, Float64, Float64]:
        """Return the waiting rows as a block, μ_block in units, and μ_block − μ."""
        rows = self._stacked()
        columns, data = rows.indices, rows.data  # a copy of the pieces', free to change
        units = np.broadcast_to(self.units, (rows.shape[1],))
        roots = self._roots()
        if not self.centre or not self.filled:
            data /= units[columns]
            block = Block(rows.astype(self.dtype).tocsc(), self._centred_targets(0), roots)
            return block, np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
        weights = self._weights[: self.filled]
        weight = float(weights.sum())
        by_entry = np.repeat(weights, np.diff(rows.indptr))
        full = np.bincount(columns, minlength=len(units)) == self.filled
        start = np.where(full, rows[:1].toarray()[0], 0.0)
        data -= start[columns]
        sums = np.bincount(columns, weights=by_entry * data, minlength=len(units))
        offset = sums / weight
        data -= np.where(full, offset, 0.0)[columns]
        data /= units[columns]
        distance = self.feature_mean.distance(offset + (start - self.feature_mean.high))
        mean = (np.where(full, 0.0, offset) / units)[None].astype(self.dtype)
        factor = shift_factor(self.weight, weight)
        shift = None if factor == 0.0 else (factor * distance / units)[None].astype(self.dtype)
        n_shifts = int(shift is not None)
        targets = self._centred_targets(n_shifts)
        stored = rows.astype(self.dtype).tocsc()
        return Block(stored, targets, roots, mean, shift, n_shifts), mean[0], distance


def _canonical(rows: Any) -> Any:
    """Return float64 rows of our own with sorted columns, no duplicates and no stored zeros."""
    own = rows.astype(np.float64)
    own.sum_duplicates()
    own.eliminate_zeros()
    return own
