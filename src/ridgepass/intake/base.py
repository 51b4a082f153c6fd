"""What dense and sparse intake share: targets, weights, means and units.

Every sum in the package runs over these blocks, so any split of the same rows into batches gives
bitwise the same state.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ridgepass.blocks import Block
from ridgepass.centring import Mean, shift_factor
from ridgepass.kernels import Float64, Rows, column_squares
from ridgepass.scaling import Rescaling, Scaling
from ridgepass.snapshot import Kept, array, entry, part, put_each, take_each


class Batch(NamedTuple):
    """Rows and targets on their way in; with origins, these are already subtracted."""

    rows: Any
    targets: Float64
    weights: Float64 | None = None
    origin: Rows | None = None
    target_origin: Rows | None = None

    @classmethod
    def present(cls, rows: Any, targets: Float64, weights: Float64 | None) -> "Batch":
        """Return a batch without the rows of no weight."""
        if weights is None or weights.all():
            return cls(rows, targets, weights)
        there = weights > 0
        return cls(rows[there], targets[there], weights[there])


class Intake(ABC):
    """Holds the rows of the block that is not yet full, and what preparing a block needs.

    Parameters
    ----------
    block_rows : int
        Rows in a block.
    n_features, n_targets : int
        Columns of A and of b.
    dtype : dtype
        What rows are converted to; targets are float64.
    centre : bool
        Whether blocks are centred, for a model with an intercept.
    scaling : Scaling or None
        The columns' units.
    """

    KEEPS: ClassVar = (
        "filled",
        "started",
        "weight",
        "feature_mean",
        "target_mean",
        "offset_mass",
        "target_offset_mass",
        "reference",
        "target_reference",
    )

    def __init__(
        self,
        block_rows: int,
        n_features: int,
        n_targets: int,
        dtype: np.dtype[Any],
        *,
        centre: bool = False,
        scaling: Scaling | None = None,
    ) -> None:
        self.block_rows = block_rows
        self.n_features = n_features
        self.dtype = dtype
        self.centre = centre
        self.scaling = scaling
        self.filled = 0
        self.started = False
        self.weight = 0.0  # of the rows in finished blocks
        self.feature_mean = Mean.at(np.zeros(n_features if centre else 1), dtype)
        self.target_mean = Mean.at(np.zeros(n_targets if centre else 1), np.dtype(np.float64))
        # Σ weight·‖μ_block − reference‖² of finished blocks: what centring may have rounded.
        self.offset_mass = 0.0
        self.target_offset_mass: Float64 = np.zeros(n_targets)
        # What waiting rows and targets are stored relative to: the mean when their block began.
        self.reference = self.feature_mean.high
        self.target_reference = self.target_mean.high
        self._targets: Float64 = np.empty((block_rows, n_targets))
        self._weights: Float64 = np.empty(block_rows)

    @abstractmethod
    def feed(self, batch: Batch) -> Iterator[Block]:
        """Yield each block that is full now, finished; keep the rest.

        A yielded block is valid until the next one is asked for.
        """

    @abstractmethod
    def pending(self) -> Block:
        """Return the rows that wait as the block they would be, changing nothing."""

    @abstractmethod
    def waiting(self) -> Batch:
        """Return the rows that wait as the batch that brings them back."""

    @abstractmethod
    def change_units(self, before: Float64 | float) -> None:
        """Bring waiting rows from the units before to the present ones."""

    @abstractmethod
    def offset(self) -> Float64:
        """Return the mean of the waiting rows less what they are stored relative to, in units."""

    def snapshot(self) -> Kept:
        """Return what waits, and the means, as plain data, valid until the next row."""
        kept = take_each(self, self.KEEPS) | {
            "waiting_targets": self._targets[: self.filled],
            "waiting_weights": self._weights[: self.filled],
            "waiting_rows": self._snapshot_rows(),
        }
        return kept if self.scaling is None else kept | {"scaling": self.scaling.snapshot()}

    def restore(self, kept: Kept) -> None:
        """Take up a snapshot in a fresh intake, or raise ValueError."""
        put_each(self, self.KEEPS, kept)
        if self.filled >= self.block_rows:
            raise ValueError(f"{self.filled} rows wait for a block of {self.block_rows}")
        for buffer, name in ((self._targets, "targets"), (self._weights, "weights")):
            waiting = buffer[: self.filled]
            name = f"waiting_{name}"
            waiting[:] = array(entry(kept, name), name, waiting.dtype, waiting.shape)
        if not (self._weights[: self.filled] > 0).all():
            raise ValueError("waiting_weights are not all above zero")
        self._restore_rows(entry(kept, "waiting_rows"))
        if self.scaling is not None:
            self.scaling.restore(part(entry(kept, "scaling"), "scaling"))

    @abstractmethod
    def _snapshot_rows(self) -> Any:
        """Return the waiting rows as plain data."""

    @abstractmethod
    def _restore_rows(self, kept: Any) -> None:
        """Take up ``filled`` rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers, whether filled or not."""
        means = self.feature_mean.nbytes + self.target_mean.nbytes
        scaling = 0 if self.scaling is None else self.scaling.nbytes
        return self._targets.nbytes + self._weights.nbytes + means + scaling

    @property
    def touches_rows(self) -> bool:
        """Whether rows are changed before they are sketched, weights apart."""
        return self.centre or self.scaling is not None

    @property
    def units(self) -> Float64 | float:
        """What each column is divided by on its way in."""
        return 1.0 if self.scaling is None else self.scaling.units

    @property
    def waiting_weight(self) -> float:
        """Weight of the rows that wait."""
        return float(self._weights[: self.filled].sum())

    def target_offset(self) -> Float64:
        """Return the mean of the waiting targets less their reference."""
        if not self.filled or not self.centre:
            return np.zeros(self._targets.shape[1])
        offset: Float64 = self._weights[: self.filled] @ self._targets[: self.filled]
        return offset / self.waiting_weight

    def start_at(self, row: Rows, target: Rows) -> None:
        """Choose what features and targets are measured from until the first block is full."""
        if self.centre and not self.started:
            self.feature_mean = Mean.at(row, self.dtype)
            self.target_mean = Mean.at(target, np.dtype(np.float64))
        self.started = True

    def means(self) -> tuple[Float64, Float64]:
        """Return the means of features and targets over all rows, the waiting ones included."""
        if not self.centre:
            return np.zeros(self.n_features), np.zeros(self._targets.shape[1])
        if not self.filled:
            return self.feature_mean.value, self.target_mean.value
        share = self.waiting_weight / self.total_weight()
        return (
            self.feature_mean.joined(self._waiting_mean(), share).value,
            self.target_mean.joined(self._waiting_target_mean(), share).value,
        )

    def total_weight(self) -> float:
        """Return the weight of all rows, the waiting ones included."""
        return self.weight + self.waiting_weight

    @abstractmethod
    def _waiting_mean(self) -> Mean:
        """Return the mean of the waiting rows."""

    def _waiting_target_mean(self) -> Mean:
        """Return the mean of the waiting targets."""
        return Mean(self.target_reference, self.target_offset())

    def _begin_block(self) -> None:
        """Settle what the rows of a block are stored relative to, before the first comes."""
        if self.filled == 0:
            self.reference, self.target_reference = self.feature_mean.high, self.target_mean.high

    def _waiting_weights(self) -> Float64 | None:
        """Return the weights of the waiting rows, or None where all are one."""
        weights = self._weights[: self.filled]
        return None if (weights == 1.0).all() else weights

    def _roots(self) -> Float64 | None:
        """Return √weights of the waiting rows, or None where all are one."""
        weights = self._waiting_weights()
        return None if weights is None else np.sqrt(weights)

    def _keep_targets(self, batch: Batch, here: slice) -> None:
        taken = slice(self.filled, self.filled + here.stop - here.start)
        reference = self.target_reference
        if batch.target_origin is not None:
            reference = reference - batch.target_origin
        np.subtract(batch.targets[here], reference, out=self._targets[taken])
        self._weights[taken] = 1.0 if batch.weights is None else batch.weights[here]

    def _centred_targets(self, n_shifts: int) -> Float64:
        """Return the waiting targets centred and weighted, with the shift's below them."""
        result = np.empty((self.filled + n_shifts, self._targets.shape[1]))
        inside, offset = result[: self.filled], self.target_offset()
        np.subtract(self._targets[: self.filled], offset, out=inside)
        factor = shift_factor(self.weight, self.waiting_weight)
        distance = self.target_mean.distance_to(self._waiting_target_mean())
        result[self.filled :] = factor * distance
        roots = self._roots()
        if roots is not None:
            inside *= roots[:, None]
        return result

    def _join_means(self, offset: Float64, mean: Mean) -> None:
        """Count the waiting rows as finished, given their mean and ``offset`` in units."""
        weight = self.waiting_weight
        if self.centre:
            self.offset_mass += weight * float(offset @ offset)
            self.target_offset_mass += weight * np.square(self.target_offset())
            share = weight / (self.weight + weight)
            self.feature_mean = self.feature_mean.joined(mean, share)
            self.target_mean = self.target_mean.joined(self._waiting_target_mean(), share)
        self.weight += weight
        self.filled = 0

    def _new_units(self, block: Block, own: Mean) -> tuple[Float64 | None, Rescaling | None]:
        if self.scaling is None:
            return None, None
        mean = np.zeros(self.n_features)
        if self.centre:
            share = self.waiting_weight / self.total_weight()
            mean = self.feature_mean.joined(own, share).value
        return self.scaling.update(block_squares(block), self.total_weight(), mean)


def block_squares(block: Block) -> Float64:
    """Return the sum of squares of each column of a block, in float64."""
    n_stored = block.rows.shape[0]
    weights = np.ones(n_stored) if block.factors is None else np.square(block.factors)
    total = column_squares(block.rows, weights, None if block.mean is None else block.mean[0])
    if block.shift is not None:
        total += np.square(block.shift[0].astype(np.float64))
    return total
