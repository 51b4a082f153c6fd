"""Dense rows, copied once and centred in place."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from ridgepass.blocks import Block
from ridgepass.centring import Mean, shift_factor
from ridgepass.intake.base import Batch, Intake
from ridgepass.kernels import (
    Float64,
    Rows,
    add_column_sums,
    apply_transposed,
    column_squares,
    is_sparse,
    panels,
    unit_roundoff,
)
from ridgepass.snapshot import array
from ridgepass.threads import each

PIECE = 1 << 20  # numbers that a thread copies at a time
# What is added up at a time: it is read twice, the second time from the cache.
SUM_ROWS, SUM_COLUMNS = 64, 4096


class DenseIntake(Intake):
    """Copies each row once, less the running mean; centres a full block in place."""

    KEEPS_STANDARDIZING: ClassVar[tuple[str, ...]] = (*Intake.KEEPS_STANDARDIZING, "sums")

    def __init__(self, block_rows: int, n_features: int, *args: Any, **options: Any) -> None:
        super().__init__(block_rows, n_features, *args, **options)
        # With standardize: Σ w(x − reference) and Σ w(x − reference)² of the waiting rows as given.
        self.sums: Float64 = np.zeros((2, n_features if self.standardizes else 0))
        # np.empty costs no memory until a row is written, so blocks that are views never pay.
        self._rows: Rows = np.empty((self._room, n_features), self.dtype)

    @property
    def _room(self) -> int:
        """Rows of the buffer: a block, and one for the distance of means."""
        return self.block_rows + self.centre

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers, whether filled or not."""
        rows = self._room * self.n_features * self.dtype.itemsize
        return super().nbytes + rows + self.sums.nbytes

    def feed(self, batch: Batch) -> Iterator[Block]:
        """Yield each block that is full now; whole blocks that need no change are views."""
        rows = batch.rows
        as_is = not is_sparse(rows) and rows.dtype == self.dtype and rows.flags.c_contiguous
        as_is = as_is and batch.weights is None and batch.origin is None
        for here in self._pieces_of(batch):
            whole = as_is and self.filled == 0 and here.stop - here.start == self.block_rows
            if whole and not self.touches_rows:
                self.weight += self.block_rows
                yield Block(rows[here], batch.targets[here])
                continue
            block = self._finish_view(batch, here) if whole and self.as_they_are else None
            if block is None:
                self._keep(batch, here)
                if self.filled == self.block_rows:
                    block = self._finish()
            if block is not None:
                yield block

    def pending(self) -> Block:
        """Return the waiting rows with centring and weights left implicit."""
        rows, roots = self._rows[: self.filled], self._roots()
        if not self.centre or not self.filled:
            return Block(rows, self._centred_targets(0), roots).balanced()
        offset = self.offset()
        shift = self._shift(offset)
        n_shifts = int(shift is not None)
        targets = self._centred_targets(n_shifts)
        return Block(rows, targets, roots, offset[None], shift, n_shifts).balanced()

    def waiting(self) -> Batch:
        """Return the rows that wait, less their reference, in original units."""
        rows: Rows = self._rows[: self.filled]
        targets, weights = self._targets[: self.filled], self._waiting_weights()
        if self.scaling is not None:
            rows = rows * self.scaling.units
        if not self.centre:
            return Batch(rows, targets, weights)
        return Batch(rows, targets, weights, self.reference, self.target_reference)

    def change_units(self, before: Float64 | float) -> Float64 | float:
        """Bring waiting rows from the units before to the present ones."""
        ratio = np.divide(before, self.units)
        if not self.filled or (ratio == 1.0).all():
            return 0.0
        waiting = self._rows[: self.filled]
        np.multiply(waiting, ratio, out=waiting, casting="same_kind")
        squares = column_squares(waiting, self._weights[: self.filled]) * np.square(self.units)
        # The ratio is rounded, and its product.
        return np.where(ratio == 1.0, 0.0, np.square(2 * unit_roundoff(self.dtype)) * squares)

    def offset(self) -> Float64:
        """Return the mean of the waiting rows less their reference, in units."""
        if not self.filled or not self.centre:
            return np.zeros(self.n_features)
        if self.standardizes:
            means: Float64 = self._waiting_means() / self.units
            return means
        weights = self._weights[: self.filled, None]
        offset = apply_transposed((self._rows[: self.filled],), weights)[:, 0]
        offset /= weights.sum()
        return offset

    def waiting_squares(self) -> Float64:
        """Return each column's squares that the waiting rows add, about the mean of all rows."""
        if not self.filled or not self.centre or not self.standardizes:
            whole: Float64 = self.sums[1].copy()
            return whole
        means = self._waiting_means()
        about = self.sums[1] - self.waiting_weight * np.square(means)
        factor = shift_factor(self.weight, self.waiting_weight)
        shift = factor * self.feature_mean.distance_to(Mean(self.reference, means))
        squares: Float64 = np.maximum(about, 0.0) + np.square(shift)
        return squares

    def waiting_mass(self) -> float:
        """Return the weighted squares of the waiting rows as they are stored, in units."""
        return float(column_squares(self._rows[: self.filled], self._weights[: self.filled]).sum())

    def _waiting_means(self) -> Float64:
        if not self.filled or not self.centre:
            return np.zeros(self.n_features)
        means: Float64 = self.sums[0] / self.waiting_weight
        return means

    def _sum_waiting(self) -> None:
        rows = self._rows[: self.filled] * self.units
        self.sums = np.zeros((2, self.n_features))
        add_column_sums(self.sums, rows, self._weights[: self.filled], np.zeros(self.n_features))

    def _snapshot_rows(self) -> Rows:
        return self._rows[: self.filled]

    def _restore_rows(self, kept: Any) -> None:
        # The buffer is made when a row comes: a model that only predicts needs none.
        self._rows = array(kept, "waiting_rows", self.dtype, (self.filled, self.n_features))

    def _keep(self, batch: Batch, here: slice) -> None:
        self._begin_block()
        if len(self._rows) < self._room:
            restored, self._rows = self._rows, np.empty((self._room, self.n_features), self.dtype)
            self._rows[: self.filled] = restored[: self.filled]
        chunk = batch.rows[here].toarray() if is_sparse(batch.rows) else batch.rows[here]
        taken = self._rows[self.filled : self.filled + len(chunk)]
        reference = self.reference
        if batch.origin is not None:
            reference = np.subtract(reference, batch.origin, dtype=np.float64)

        def copy(span: slice) -> None:
            if self.centre:
                np.subtract(chunk[span], reference, out=taken[span], casting="same_kind")
            else:
                taken[span] = chunk[span]
            if self.scaling is not None:
                np.divide(taken[span], self.scaling.units, out=taken[span], casting="same_kind")

        each(copy, panels(len(chunk), max(1, PIECE // self.n_features)))
        self._keep_targets(batch, here)
        if self.standardizes:
            weights = self._weights[self.filled : self.filled + len(chunk)]
            origin = np.broadcast_to(reference, self.n_features)
            add_column_sums(self.sums, chunk, weights, origin)
        self.filled += len(chunk)

    def _move_rows(self, distance: Float64) -> None:
        rows = self._rows[: self.filled]
        if self.standardizes:
            self.offset_squares = self.offset_squares + self.sums[1]
            weight = self.waiting_weight
            self.sums[1] += 2 * distance * self.sums[0] + weight * np.square(distance)
            self.sums[0] += weight * distance
        else:
            self.offset_mass += self.waiting_mass()
        np.add(rows, distance / self.units, out=rows, casting="same_kind")

    def _waiting_mean(self) -> Mean:
        return self._mean(self.offset())

    def _mean(self, offset: Float64) -> Mean:
        return Mean(
            self.reference, self._waiting_means() if self.standardizes else offset * self.units
        )

    def _shift(self, offset: Float64) -> Float64 | None:
        """Return the row for the distance of means, in units; None before there is any."""
        factor = shift_factor(self.weight, self.waiting_weight)
        if factor == 0.0:
            return None
        return (factor * self.feature_mean.distance_to(self._mean(offset)) / self.units)[None]

    def _finish(self) -> Block:
        """Return the full block, centred and weighted."""
        if self.centre and not self.standardizes and self.implicit:
            block = self._finish_implicitly(self._rows[: self.filled])
            if block is not None:
                return block
        return self._finish_in_place()

    def _finish_view(self, batch: Batch, here: slice) -> Block | None:
        """Return a whole block of a batch without a copy of its rows, if that can be."""
        self._begin_block()
        self._keep_targets(batch, here)
        self.filled = self.block_rows
        block = self._finish_implicitly(batch.rows[here])
        self.filled = 0
        return block

    def _finish_implicitly(self, rows: Rows) -> Block | None:
        """Return the full block with its mean still in the rows, and its weights beside them.

        That saves two looks at all rows, and half of the digits are at most lost to it. None where
        the mean is larger than that: rows have moved far since the block began. Sums in the rows'
        own dtype err by less than a rounding of each row does, as they are divided by their number.
        """
        n_rows, weight, roots = self.filled, self.waiting_weight, self._roots()
        shares, offset = np.ones(n_rows, self.dtype), np.zeros(self.n_features)
        squares = np.zeros(self.n_features)
        if roots is not None:  # over the largest, since weights may exceed the dtype
            shares = (self._weights[:n_rows] / self._weights[:n_rows].max()).astype(self.dtype)

        def add_up(span: slice) -> None:
            for some in panels(n_rows, SUM_ROWS):
                inside = rows[some, span]
                offset[span] += shares[some] @ inside
                if roots is None:
                    squares[span] += np.einsum("ij,ij->j", inside, inside)
                else:
                    squares[span] += column_squares(inside, self._weights[some])

        each(add_up, panels(self.n_features, SUM_COLUMNS))
        offset /= float(shares.sum(dtype=np.float64))
        squares = np.maximum(squares - weight * np.square(offset), 0.0)
        if not weight * float(offset @ offset) <= float(squares.sum()):
            return None
        mean, shift = self._mean(offset), self._shift(offset)
        n_shifts = int(shift is not None)
        if shift is not None:
            shift = shift.astype(self.dtype)
            squares += np.square(shift[0], dtype=np.float64)
        block = Block(
            rows,
            self._centred_targets(n_shifts),
            factors=roots,
            mean=offset.astype(self.dtype)[None],
            shift=shift,
            n_shifts=n_shifts,
            squares=squares,
        )
        self._join_means(offset, mean)
        return block

    def _finish_in_place(self) -> Block:
        """Centre and weight the full block in place."""
        rows, n_shifts, offset = self._rows[: self.filled], 0, self.offset()
        mean = self._mean(offset)
        if self.centre:
            shift = self._shift(offset)
            rows -= offset.astype(self.dtype)
            if shift is not None:
                self._rows[self.filled] = shift[0]
                n_shifts = 1
        roots = self._roots()
        if roots is not None:
            with np.errstate(over="ignore"):
                factors = roots.astype(self.dtype)
            # Weights may exceed the dtype, of rows that do not.
            factors = factors if np.isfinite(factors).all() else roots
            np.multiply(rows, factors[:, None], out=rows, casting="same_kind")
        rows = self._rows[: self.filled + n_shifts]
        targets = self._centred_targets(n_shifts)
        ratio, before = self._new_units(mean, self.waiting_squares())
        if ratio is not None:
            np.multiply(rows, ratio, out=rows, casting="same_kind")
            offset = offset * ratio
        self._join_means(offset, mean)
        self.sums[:] = 0.0
        return Block(rows, targets, n_shifts=n_shifts, rescaling=before)
