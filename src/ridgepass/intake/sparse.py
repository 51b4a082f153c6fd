"""Sparse rows, centred without being filled in."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgepass.blocks import Block
from ridgepass.centring import Mean, shift_factor
from ridgepass.intake.base import Batch, Intake
from ridgepass.kernels import Float64
from ridgepass.snapshot import Kept, array, entry


class _Waiting(NamedTuple):
    """The waiting rows as a block, and what is known of them.

    ``offset`` is what is taken off them, in units; ``squares`` are each column's about the mean of
    all rows, in original units (with ``standardize`` only).
    """

    block: Block
    offset: Float64
    mean: Mean
    squares: Float64


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
        for here in self._pieces_of(batch):
            self._begin_block()
            self._pieces.append(_canonical(given[here]))
            self._keep_targets(batch, here)
            self.filled += here.stop - here.start
            if self.filled == self.block_rows:
                yield self._finish()

    def pending(self) -> Block:
        """Return the waiting rows with centring and weights left implicit."""
        return self._waiting().block

    def waiting(self) -> Batch:
        """Return the rows that wait as they were given."""
        targets, weights = self._targets[: self.filled], self._waiting_weights()
        return Batch(self._stacked(), targets, weights, None, self.target_reference)

    def change_units(self, before: Float64 | float) -> float:
        """Leave waiting rows as they were given."""
        return 0.0

    def offset(self) -> Float64:
        """Return what is taken off the waiting rows to centre them, in units.

        Of a column that is centred in place, the second time.
        """
        return self._waiting().offset

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

    def waiting_squares(self) -> Float64:
        """Return each column's squares that the waiting rows add, about the mean of all rows."""
        return self._waiting().squares

    def waiting_mass(self) -> float:
        """Return the weighted squares of the waiting rows as they were given, in units."""
        rows = self._stacked()
        units = np.broadcast_to(self.units, (self.n_features,))
        by_entry = np.repeat(self._weights[: self.filled], np.diff(rows.indptr))
        return float(by_entry @ np.square(rows.data / units[rows.indices]))

    def _move_rows(self, distance: Float64) -> None:
        """Leave waiting rows as they were given."""

    def _sum_waiting(self) -> None:
        """Do nothing: sparse rows wait as they were given, and are summed up when asked for."""

    def _waiting_mean(self) -> Mean:
        return self._waiting().mean

    def _finish(self) -> Block:
        block, offset, mean, squares = self._waiting()
        ratio, before = self._new_units(mean, squares)
        if ratio is not None:
            block.rows.data[:] *= np.repeat(ratio, np.diff(block.rows.indptr))
            offset = offset * ratio
            for row in (block.mean, block.shift):
                if row is not None:
                    row *= ratio
        self._join_means(offset, mean)
        self._pieces.clear()
        return replace(block, rescaling=before)

    def _waiting(self) -> _Waiting:
        rows, roots = self._stacked(), self._roots()
        units = np.broadcast_to(self.units, (self.n_features,))
        zeros = np.zeros(self.n_features)
        if not self.centre or not self.filled:
            block = Block(
                _in_columns(rows.data / units[rows.indices], rows, self.dtype),
                self._centred_targets(0),
                roots,
            )
            return _Waiting(block.balanced(), zeros, Mean(zeros, zeros), self._squares(rows))
        offset, start, filled_in, rows = self._centre(rows)
        own, implicit = Mean(start, offset), np.where(filled_in, 0.0, offset)
        mean = (implicit / units)[None].astype(self.dtype)
        row = shift_factor(self.weight, self.waiting_weight) * self.feature_mean.distance_to(own)
        shift = None if self.weight == 0.0 else (row / units)[None].astype(self.dtype)
        n_shifts = int(shift is not None)
        block = Block(
            _in_columns(rows.data / units[rows.indices], rows, self.dtype),
            self._centred_targets(n_shifts),
            roots,
            mean,
            shift,
            n_shifts,
        )
        taken = self.waiting_weight * np.square(implicit)
        squares = np.maximum(self._squares(rows) - taken, 0.0) + np.square(row)
        return _Waiting(block.balanced(), offset / units, own, squares)

    def _squares(self, rows: Any) -> Float64:
        """Return the weighted sum of squares of each column, where that is needed."""
        if not self.standardizes:
            return np.zeros(self.n_features)
        by_entry = np.repeat(self._weights[: self.filled], np.diff(rows.indptr))
        squares = np.bincount(rows.indices, by_entry * np.square(rows.data), self.n_features)
        return squares.astype(np.float64, copy=False)  # whole numbers if there is no entry

    def _centre(self, rows: Any) -> tuple[Float64, Float64, NDArray[np.bool_], Any]:
        """Centre the columns of which zeros hold less than half of the weight.

        Returns μ_block less what each column is measured from, that, which columns are centred, and
        the rows. A centred column is measured from its mean as a first sum gives it, which is near
        all rows that have weight; a second sum finds what the first has rounded.
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
        start[heavy] = offset[heavy]
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
