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
from ridgepass.kernels import TINY, Float64, Rows
from ridgepass.scaling import Rescaling, Scaling
from ridgepass.snapshot import Kept, array, entry, part, put_each, take_each

# Until there is a mean, rows are measured from one of them. It may be far from all others, and so
# must have a share in the weight: a row of more than this many times its weight takes its place.
OUTWEIGHED = 4.0
# A mean is small if its square is less than this part of the columns' variances, all together.
SMALL_MEAN = 4.0


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
    KEEPS_STANDARDIZING: ClassVar[tuple[str, ...]] = ("offset_squares",)

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
        self.implicit = False  # whether a block may be handed over with its mean still in the rows
        self.as_they_are = False  # whether rows of the next block are kept as they are
        self.weight = 0.0  # of the rows in finished blocks
        self.feature_mean = Mean.at(np.zeros(n_features if centre else 1), dtype)
        self.target_mean = Mean.at(np.zeros(n_targets if centre else 1), np.dtype(np.float64))
        # Σ weight·‖μ_block − reference‖² of finished blocks: what centring may have rounded.
        self.offset_mass = 0.0
        self.target_offset_mass: Float64 = np.zeros(n_targets)
        # With standardize the same for each column, in original units, whatever units become of it.
        self.offset_squares: Float64 = np.zeros(n_features if self.standardizes else 0)
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
    def change_units(self, before: Float64 | float) -> Float64 | float:
        """Bring waiting rows from the units before to the present ones.

        Returns the squares, in original units, of what that has rounded in each column.
        """

    @abstractmethod
    def offset(self) -> Float64:
        """Return the mean of the waiting rows less what they are stored relative to, in units."""

    @abstractmethod
    def waiting_squares(self) -> Float64:
        """Return each column's squares that the waiting rows add, about the mean of all rows.

        In original units and float64, of the rows as they were given; for ``standardize``.
        """

    @abstractmethod
    def waiting_mass(self) -> float:
        """Return the weighted squares of the waiting rows as they are stored, in units."""

    def waiting_target_mass(self) -> Float64:
        """Return the same for the waiting targets."""
        squares: Float64 = self._weights[: self.filled] @ np.square(self._targets[: self.filled])
        return squares

    @abstractmethod
    def _sum_waiting(self) -> None:
        """Sum up the waiting rows, for a file that does not have their sums."""

    def _waiting_means(self) -> Float64:
        """Return the mean of the waiting rows less what they are stored relative to."""
        return self.offset() * self.units

    def offset_squares_with_waiting(self) -> Float64:
        """Return ``offset_squares`` as it will be once the waiting rows are a block."""
        if not self.centre:
            return self.offset_squares
        added: Float64 = self.waiting_weight * np.square(self._waiting_means())
        return self.offset_squares + added

    def snapshot(self) -> Kept:
        """Return what waits, and the means, as plain data, valid until the next row."""
        kept = take_each(self, self.KEEPS) | {
            "waiting_targets": self._targets[: self.filled],
            "waiting_weights": self._weights[: self.filled],
            "waiting_rows": self._snapshot_rows(),
        }
        if self.standardizes:
            kept |= take_each(self, self.KEEPS_STANDARDIZING)
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
        if self.standardizes and "offset_squares" in kept:
            put_each(self, self.KEEPS_STANDARDIZING, kept)
        elif self.standardizes:  # versions 1 and 2 of the model file had one number for all columns
            self.offset_squares = self.offset_mass * np.square(self.units)
            self.offset_mass = 0.0
            self._sum_waiting()

    @abstractmethod
    def _snapshot_rows(self) -> Any:
        """Return the waiting rows as plain data."""

    @abstractmethod
    def _restore_rows(self, kept: Any) -> None:
        """Take up ``filled`` rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers, whether filled or not."""
        means = self.feature_mean.nbytes + self.target_mean.nbytes + self.offset_squares.nbytes
        scaling = 0 if self.scaling is None else self.scaling.nbytes
        return self._targets.nbytes + self._weights.nbytes + means + scaling

    @property
    def touches_rows(self) -> bool:
        """Whether rows are changed before they are sketched, weights apart."""
        return self.centre or self.scaling is not None

    @property
    def standardizes(self) -> bool:
        """Whether columns are divided by their own deviations."""
        return self.scaling is not None and self.scaling.given is None

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
        weights = self.weight, self.waiting_weight
        return (
            self.feature_mean.joined(self._waiting_mean(), *weights).value,
            self.target_mean.joined(self._waiting_target_mean(), *weights).value,
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

    def settle(self, implicit: bool, mass: float) -> None:
        """Say whether blocks may come with their mean, and what squares all blocks so far have.

        Where the mean is small beside the spread, rows are not even measured from the running one:
        that saves a copy of them.
        """
        self.implicit, self.as_they_are = implicit, False
        if implicit and self.scaling is None and self.centre and self.weight > 0:
            mean = self.feature_mean.value
            self.as_they_are = SMALL_MEAN * self.weight * float(mean @ mean) <= mass

    def _begin_block(self) -> None:
        """Settle what the rows of a block are stored relative to, before the first comes."""
        if self.filled == 0:
            self.reference, self.target_reference = self.feature_mean.high, self.target_mean.high
            if self.as_they_are:
                self.reference = np.zeros_like(self.reference)

    def _pieces_of(self, batch: Batch) -> Iterator[slice]:
        """Cut a batch where a block is full, and before a row that is to be measured from."""
        start, n_rows = 0, batch.rows.shape[0]
        while start < n_rows:
            stop = min(start + self.block_rows - self.filled, n_rows)
            if self.centre and self.weight == 0.0:
                stop = self._measure(batch, start, stop)
            yield slice(start, stop)
            start = stop

    def _measure(self, batch: Batch, start: int, stop: int) -> int:
        """Measure from the row at ``start`` if it is that heavy; return where the next one is."""
        weights = np.ones(stop - start) if batch.weights is None else batch.weights[start:stop]
        measured = weights[0]
        if self.filled:
            measured = _weight_to_measure_from(self._weights[: self.filled])
            if weights[0] > OUTWEIGHED * measured:
                self._measure_from(batch, start)
                measured = weights[0]
        heavier = np.flatnonzero(weights > OUTWEIGHED * measured)
        return start + int(heavier[0]) if len(heavier) else stop

    def _measure_from(self, batch: Batch, index: int) -> None:
        """Measure rows and targets from another one, those that wait too."""
        row, target = batch.rows[index : index + 1], batch.targets[index]
        row = (row if isinstance(row, np.ndarray) else row.toarray())[0]
        row = row if batch.origin is None else row + batch.origin.astype(np.float64)
        target = target if batch.target_origin is None else target + batch.target_origin
        # What they were measured from before has rounded them.
        self.target_offset_mass = self.target_offset_mass + self.waiting_target_mass()
        before, target_before = self.reference, self.target_reference
        self.feature_mean = Mean.at(row, self.dtype)
        self.target_mean = Mean.at(target, np.dtype(np.float64))
        self.reference, self.target_reference = self.feature_mean.high, self.target_mean.high
        self._targets[: self.filled] += target_before - self.target_reference
        self._move_rows(np.subtract(before, self.reference, dtype=np.float64))

    @abstractmethod
    def _move_rows(self, distance: Float64) -> None:
        """Add to all waiting rows, which are stored relative to another place now."""

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
        result[self.filled :] = _weighted(distance, factor)
        roots = self._roots()
        if roots is not None:
            inside[:] = _weighted(inside, roots[:, None])
        return result

    def _join_means(self, offset: Float64, mean: Mean) -> None:
        """Count the waiting rows as finished, given their mean and ``offset`` in units."""
        weight = self.waiting_weight
        if self.centre:
            if self.standardizes:
                self.offset_squares = self.offset_squares + weight * np.square(offset * self.units)
            else:
                self.offset_mass += weight * float(offset @ offset)
            self.target_offset_mass += weight * np.square(self.target_offset())
            target_mean = self._waiting_target_mean()
            self.feature_mean = self.feature_mean.joined(mean, self.weight, weight)
            self.target_mean = self.target_mean.joined(target_mean, self.weight, weight)
        self.weight += weight
        self.filled = 0

    def _new_units(self, own: Mean, squares: Float64) -> tuple[Float64 | None, Rescaling | None]:
        """Choose units with the waiting rows, given their mean and squares.

        Returns old over new units for these rows, and the same for all before; None for no change.
        """
        if self.scaling is None or not self.standardizes:
            return None, None
        mean = np.zeros(self.n_features)
        if self.centre:
            mean = self.feature_mean.joined(own, self.weight, self.waiting_weight).value
        return self.scaling.update(squares, self.total_weight(), mean)


def _weight_to_measure_from(weights: Float64) -> float:
    """Return the weight of the row that rows of these weights are measured from."""
    measured = weights[0]
    while True:
        heavier = np.flatnonzero(weights > OUTWEIGHED * measured)
        if not len(heavier):
            return float(measured)
        measured = weights[heavier[0]]


def _weighted(targets: Float64, factor: Float64 | float) -> Float64:
    """Multiply targets; only zeros become zero, as bounds for zero targets leave underflow out."""
    products: Float64 = targets * factor
    products[(products == 0) & (targets != 0)] = TINY
    return products
