"""Dense rows, copied once and centred in place."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ridgepass.blocks import Block
from ridgepass.centring import Mean, shift_factor
from ridgepass.intake.base import Batch, Intake
from ridgepass.kernels import Float64, Rows, apply_transposed, is_sparse
from ridgepass.snapshot import array


class DenseIntake(Intake):
    """Copies each row once, less the running mean; centres a full block in place."""

    def __init__(self, block_rows: int, n_features: int, *args: Any, **options: Any) -> None:
        super().__init__(block_rows, n_features, *args, **options)
        # np.empty costs no memory until a row is written, so blocks that are views never pay.
        self._rows: Rows = np.empty((self._room, n_features), self.dtype)

    @property
    def _room(self) -> int:
        """Rows of the buffer: a block, and one for the distance of means."""
        return self.block_rows + self.centre

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers, whether filled or not."""
        return super().nbytes + self._room * self.n_features * self.dtype.itemsize

    def feed(self, batch: Batch) -> Iterator[Block]:
        """Yield each block that is full now; whole blocks that need no change are views."""
        rows = batch.rows
        as_is = not is_sparse(rows) and rows.dtype == self.dtype and rows.flags.c_contiguous
        plain = as_is and batch.weights is None and not self.touches_rows
        start, n_rows = 0, rows.shape[0]
        while start < n_rows:
            stop = min(start + self.block_rows - self.filled, n_rows)
            here = slice(start, stop)
            if plain and self.filled == 0 and stop - start == self.block_rows:
                self.weight += self.block_rows
                yield Block(rows[here], batch.targets[here])
            else:
                self._keep(batch, here)
                if self.filled == self.block_rows:
                    yield self._finish()
            start = stop

    def pending(self) -> Block:
        """Return the waiting rows with centring and weights left implicit."""
        rows, roots = self._rows[: self.filled], self._roots()
        if not self.centre or not self.filled:
            return Block(rows, self._centred_targets(0), roots)
        offset = self.offset()
        shift = self._shift(offset)
        n_shifts = int(shift is not None)
        targets = self._centred_targets(n_shifts)
        return Block(rows, targets, roots, offset[None], shift, n_shifts)

    def waiting(self) -> Batch:
        """Return the rows that wait, less their reference, in original units."""
        rows: Rows = self._rows[: self.filled]
        targets, weights = self._targets[: self.filled], self._waiting_weights()
        if self.scaling is not None:
            rows = rows * self.scaling.units
        if not self.centre:
            return Batch(rows, targets, weights)
        return Batch(rows, targets, weights, self.reference, self.target_reference)

    def change_units(self, before: Float64 | float) -> None:
        """Bring waiting rows from the units before to the present ones."""
        ratio = np.divide(before, self.units)
        if (ratio != 1.0).any():
            waiting = self._rows[: self.filled]
            np.multiply(waiting, ratio, out=waiting, casting="same_kind")

    def offset(self) -> Float64:
        """Return the mean of the waiting rows less their reference, in units."""
        if not self.filled or not self.centre:
            return np.zeros(self.n_features)
        weights = self._weights[: self.filled, None]
        offset = apply_transposed((self._rows[: self.filled],), weights)[:, 0]
        offset /= weights.sum()
        return offset

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
        if self.centre:
            np.subtract(chunk, reference, out=taken, casting="same_kind")
        else:
            taken[:] = chunk
        if self.scaling is not None:
            np.divide(taken, self.scaling.units, out=taken, casting="same_kind")
        self._keep_targets(batch, here)
        self.filled += len(chunk)

    def _waiting_mean(self) -> Mean:
        return self._mean(self.offset())

    def _mean(self, offset: Float64) -> Mean:
        return Mean(self.reference, offset * self.units)

    def _shift(self, offset: Float64) -> Float64 | None:
        """Return the row for the distance of means, in units; None before there is any."""
        factor = shift_factor(self.weight, self.waiting_weight)
        if factor == 0.0:
            return None
        return (factor * self.feature_mean.distance_to(self._mean(offset)) / self.units)[None]

    def _finish(self) -> Block:
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
            rows *= roots[:, None].astype(self.dtype)
        rows = self._rows[: self.filled + n_shifts]
        block = Block(rows, self._centred_targets(n_shifts), n_shifts=n_shifts)
        ratio, before = self._new_units(block, mean)
        if ratio is not None:
            np.multiply(rows, ratio, out=rows, casting="same_kind")
            offset = offset * ratio
        self._join_means(offset, mean)
        return Block(rows, block.targets, n_shifts=n_shifts, rescaling=before)
