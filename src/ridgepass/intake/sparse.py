"""Sparse rows, centred without being filled in."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgepass.blocks import Block
from ridgepass.centring import Mean, shift_factor
from ridgepass.intake.base import Batch, Intake
from ridgepass.kernels import Float64
from ridgepass.snapshot import Kept, array, entry


class SparseIntake(Intake):
    """Keeps sparse rows as given; centring stays implicit, so that nothing fills in.

    Subtracting an implicit mean cancels where a column's mean is large against its spread. In a
    column of which zeros hold half of the weight the squared mean is at most the variance, which
    does no harm. The few others (no more than twice the entries of a row) are centred in place.
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
            self._begin_block()
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
        return Batch(self._stacked(), targets, weights, None, self.target_reference)

    def change_units(self, before: Float64 | float) -> None:
        """Leave waiting rows as they were given."""

    def offset(self) -> Float64:
        """Return zeros, since waiting rows are stored as they were given."""
        return np.zeros(self.n_features)

    def _snapshot_rows(self) -> Kept:
        rows = self._stacked()
        index = _index_type(rows.nnz, self.n_features)
        return {
            "data": rows.data,
            "indices": rows.indices.astype(index, copy=False),
            "indptr": rows.indptr.astype(index, copy=False),
        }

    def _restore_rows(self, kept: Any) -> None:
        shape = self.filled, self.n_features
        data = array(entry(kept, "data"), "data", np.dtype(np.float64), (None,))
        index = _index_type(len(data), self.n_features)
        indices = array(entry(kept, "indices"), "indices", index, data.shape)
        indptr = array(entry(kept, "indptr"), "indptr", index, (self.filled + 1,))
        _check_places(indices, indptr, self.n_features)
        self._pieces = [sparse.csr_array((data, indices, indptr), shape)] if self.filled else []

    def _stacked(self) -> Any:
        if not self._pieces:
            return sparse.csr_array((0, self.n_features))
        return sparse.csr_array(sparse.vstack(self._pieces, format="csr"))

    def _waiting_mean(self) -> Mean:
        return self._block()[2]

    def _finish(self) -> Block:
        block, offset, mean = self._block()
        ratio, before = self._new_units(block, mean)
        if ratio is not None:
            block.rows.data[:] *= np.repeat(ratio, np.diff(block.rows.indptr))
            offset = offset * ratio
            for row in (block.mean, block.shift):
                if row is not None:
                    row *= ratio
        self._join_means(offset, mean)
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

    def _block(self) -> tuple[Block, Float64, Mean]:
        """Return the waiting rows as a block, their implicit mean in units, and their mean."""
        rows, roots = self._stacked(), self._roots()
        units = np.broadcast_to(self.units, (self.n_features,))
        if not self.centre or not self.filled:
            stored = _in_columns(rows.data / units[rows.indices], rows, self.dtype)
            zeros = np.zeros(self.n_features)
            return Block(stored, self._centred_targets(0), roots), zeros, Mean(zeros, zeros)
        offset, start, filled_in, rows = self._centre(rows)
        own = Mean(start, offset)
        mean = (np.where(filled_in, 0.0, offset) / units)[None].astype(self.dtype)
        row = shift_factor(self.weight, self.waiting_weight) * self.feature_mean.distance_to(own)
        shift = None if self.weight == 0.0 else (row / units)[None].astype(self.dtype)
        n_shifts = int(shift is not None)
        stored = _in_columns(rows.data / units[rows.indices], rows, self.dtype)
        block = Block(stored, self._centred_targets(n_shifts), roots, mean, shift, n_shifts)
        return block, mean[0], own

    def _centre(self, rows: Any) -> tuple[Float64, Float64, NDArray[np.bool_], Any]:
        """Centre the columns of which zeros hold less than half of the weight.

        Returns μ_block less what each column is measured from, that, which columns are centred, and
        the rows.
        """
        weights, weight = self._weights[: self.filled], self.waiting_weight
        at_row, columns = np.repeat(np.arange(self.filled), np.diff(rows.indptr)), rows.indices
        by_entry, start = weights[at_row], np.zeros(self.n_features)
        offset = np.bincount(columns, by_entry * rows.data, self.n_features) / weight
        filled_in = np.bincount(columns, by_entry, self.n_features) > weight / 2
        (heavy,) = np.nonzero(filled_in)
        if not len(heavy):
            return offset, start, filled_in, rows
        inside = rows[:, heavy].toarray()
        start[heavy] = inside[0]
        inside -= start[heavy]
        offset[heavy] = weights @ inside / weight
        inside -= offset[heavy]
        light = ~filled_in[columns]
        data = np.concatenate([rows.data[light], inside.ravel()])
        all_rows, every = np.arange(self.filled), np.tile(heavy, self.filled)
        at_row = np.concatenate([at_row[light], np.repeat(all_rows, len(heavy))])
        place = at_row, np.concatenate([columns[light], every])
        return offset, start, filled_in, sparse.csr_array((data, place), shape=rows.shape)


def _in_columns(data: Float64, like: Any, dtype: np.dtype[Any]) -> Any:
    """Return numbers in the places of ``like``, by columns."""
    parts = data.astype(dtype), like.indices, like.indptr
    return sparse.csr_array(parts, shape=like.shape).tocsc()


def _canonical(rows: Any) -> Any:
    """Return float64 rows of our own with sorted columns, no duplicates and no stored zeros."""
    own = rows.astype(np.float64)
    own.sum_duplicates()
    own.eliminate_zeros()
    return own


def _index_type(n_entries: int, n_features: int) -> np.dtype[Any]:
    """Return what a snapshot has places in: as short as they may be, for the same file always."""
    short = max(n_entries, n_features) <= np.iinfo(np.int32).max
    return np.dtype(np.int32 if short else np.int64)


def _check_places(indices: NDArray[Any], indptr: NDArray[Any], n_features: int) -> None:
    """Raise unless rows are in canonical form: SciPy would read and write wherever they point."""
    falling = indptr[1:] < indptr[:-1]  # not by differences, which could wrap around
    if indptr[0] != 0 or falling.any() or indptr[-1] != len(indices):
        raise ValueError("indptr does not cut the entries into rows")
    if len(indices) and not (indices.min() >= 0 and indices.max() < n_features):
        raise ValueError(f"indices has a column beyond {n_features}")
    rising = np.diff(indices) > 0
    starts = indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    if not rising.all():
        raise ValueError("indices has columns out of order")
