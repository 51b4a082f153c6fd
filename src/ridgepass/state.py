"""What a stream holds once the number of columns is known."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ridgepass.blocks import Block
from ridgepass.centring import shift_factor
from ridgepass.intake import Batch, DenseIntake, Intake, SparseIntake
from ridgepass.kernels import DOUBLE, TINY, Float64, Rows, smallest_number, unit_roundoff
from ridgepass.moments import Moments
from ridgepass.probes import Probes
from ridgepass.scaling import Rescaling, Scaling
from ridgepass.sketch import Sketch, TrackedSubspace
from ridgepass.sketch.legacy import AnchoredFrequentDirections
from ridgepass.snapshot import Kept, entry, flag, like, own_arrays, put_each, take, take_each
from ridgepass.threads import alone

FEW_NUMBERS = 1 << 17  # a batch of fewer is sooner taken in than the number of threads is set


@dataclass
class State:
    """A sketch, exact moments, and the rows that wait for their block to fill up.

    Attributes
    ----------
    sketch, moments, intake : Sketch, Moments, Intake
        What is remembered, what is kept exactly, and what waits.
    single : bool
        Whether the targets are one column without an axis of its own.
    carried, target_carried : ndarray
        What rounding did to rows and targets before they came to this stream's own blocks: at least
        Σ(Ã − A)² for the rows that mergers brought, and for what was left out of columns that had
        been constant. For each column in original units with ``standardize``, else one number in
        the present units; one number for each target.
    rounded : bool
        Whether rows were rounded on their way into the sketch.
    own_probes : Probes or None
        What measures residuals, unless the sketch follows that itself.
    n_probes : int
        How many of them there were at first.
    """

    sketch: Sketch
    moments: Moments
    intake: Intake
    single: bool
    carried: Float64
    target_carried: Float64
    rounded: bool = False
    own_probes: Probes | None = None
    n_probes: int = 0

    @classmethod
    def empty(
        cls,
        sketch: Sketch,
        n_targets: int,
        *,
        single: bool,
        is_sparse: bool,
        centre: bool,
        scaling: Scaling | None,
        probes: Probes | None = None,
    ) -> "State":
        """Return the state of no rows."""
        kind = SparseIntake if is_sparse else DenseIntake
        block_rows = sketch.sparse_block_rows if is_sparse else sketch.block_rows
        intake = kind(
            block_rows, sketch.n_features, n_targets, sketch.dtype, centre=centre, scaling=scaling
        )
        moments = Moments.empty(sketch.n_features, n_targets)
        carried = np.zeros(sketch.n_features if intake.standardizes else 1)
        return cls(
            sketch,
            moments,
            intake,
            single,
            carried,
            np.zeros(n_targets),
            own_probes=None if sketch.needs_targets else probes,
            n_probes=0 if probes is None else len(probes.points),
        )

    @property
    def has_probes(self) -> bool:
        """Whether residuals can be measured: probes were asked for, and no merger dropped them."""
        if isinstance(self.sketch, TrackedSubspace):
            return self.sketch.has_probes
        return self.own_probes is not None

    @property
    def probes(self) -> Probes | None:
        """What measures residuals; of a sketch's own, views that are valid until it changes."""
        return self.sketch.probes if isinstance(self.sketch, TrackedSubspace) else self.own_probes

    @property
    def is_sparse(self) -> bool:
        """Whether rows are kept sparse."""
        return isinstance(self.intake, SparseIntake)

    @property
    def n_features(self) -> int:
        """Columns of A."""
        return len(self.moments.cross)

    @property
    def n_targets(self) -> int:
        """Columns of b."""
        return len(self.moments.target_mass)

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return self.moments.n_rows + self.intake.filled

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        carried = self.carried.nbytes + self.target_carried.nbytes
        more = carried + (0 if self.own_probes is None else self.own_probes.nbytes)
        return self.sketch.nbytes + self.moments.nbytes + self.intake.nbytes + more

    def snapshot(self) -> Kept:
        """Return all that is held as plain data, valid until the state changes."""
        kept: Kept = {
            "dtype": self.sketch.dtype.name,
            "is_sparse": self.is_sparse,
            "single": self.single,
        }
        kept |= take_each(self, ("rounded", "moments", "sketch", "intake"))
        if self.carried.any() or self.target_carried.any():
            kept |= take_each(self, ("carried", "target_carried"))
        if self.own_probes is not None:
            kept["probes"] = take(self.own_probes)
        if isinstance(self.sketch, AnchoredFrequentDirections):
            kept["anchor"] = self.sketch.anchor()
        return kept

    def restore(self, kept: Kept) -> None:
        """Take up a snapshot in an empty state of the same options, or raise ValueError."""
        self.rounded = flag(entry(kept, "rounded"), "rounded")
        self.moments = like(self.moments, entry(kept, "moments"), "moments")
        self.sketch.restore(entry(kept, "sketch"), self.n_targets)
        self.intake.restore(entry(kept, "intake"))
        if self.moments.n_rows and not self.intake.weight > 0:
            raise ValueError("rows have no weight")
        if isinstance(self.sketch, AnchoredFrequentDirections):
            self.sketch.take_anchor(entry(kept, "anchor"), self.n_targets)
        if self.own_probes is not None:  # they were dropped where there are none
            found = kept.get("probes")
            self.own_probes = None if found is None else like(self.own_probes, found, "probes")
        if "carried" in kept:
            put_each(self, ("carried", "target_carried"), kept)
        elif self.intake.standardizes and "offset_squares" not in entry(kept, "intake"):
            # Versions 1 and 2 of the model file have deviations of rows that were rounded before.
            size = self.intake.scaling.squares + self.intake.offset_squares  # type: ignore[union-attr]
            self.carried = np.square(8 * unit_roundoff(self.sketch.dtype)) * size

    def check_shape(self, n_features: int, n_targets: int, single: bool) -> None:
        """Raise unless rows and targets of this shape belong to the stream."""
        if n_features != self.n_features:
            raise ValueError(
                f"these rows have {n_features} features, the stream has {self.n_features}: "
                "give the same columns in every batch"
            )
        if n_targets != self.n_targets or single != self.single:
            raise ValueError(
                f"these targets have shape {_shape(n_targets, single)}, the stream's have "
                f"{_shape(self.n_targets, self.single)}: give the same targets in every batch"
            )

    def absorb(self, batch: Batch) -> None:
        """Take in a batch."""
        own_arrays(self)
        narrowed = batch.rows.dtype.itemsize > self.sketch.dtype.itemsize
        weighted = batch.weights is not None and bool((batch.weights != 1.0).any())
        self.rounded |= narrowed or self.intake.touches_rows or weighted
        first = batch.rows[:1]
        row = first if isinstance(first, np.ndarray) else first.toarray()
        self.intake.start_at(row[0], batch.targets[0])
        if batch.rows.shape[0] * self.n_features > FEW_NUMBERS:
            self._by_own_threads(partial(self._feed, batch))
        else:
            self._feed(batch)

    def _feed(self, batch: Batch) -> None:
        self._settle_intake()
        for block in self.intake.feed(batch):
            self._by_own_threads(partial(self._finish, block))

    def _by_own_threads(self, action: Callable[[], None]) -> None:
        """Do something with our own threads where the sketch is made for them.

        Its sums are then the same on any number of threads, in whatever batches the rows come.
        """
        if self.sketch.threads_itself:
            alone(action)
        else:
            action()

    def _finish(self, block: Block) -> None:
        """Take in a whole block."""
        if block.rescaling is not None:
            self._rescale(block.rescaling)
        self._take(block)
        self.sketch.settle(self.moments.cross)
        self._settle_intake()

    def _settle_intake(self) -> None:
        """Tell the intake in which form the next block may come."""
        centres = self.sketch.centres
        self.intake.settle(centres, self.sketch.mass if centres else 0.0)

    def _take(self, block: Block) -> None:
        """Take in one block."""
        cross = self.sketch.absorb(block)
        if self.own_probes is not None:
            self.own_probes.absorb(block)
        self.moments.update(block, cross)

    def _rescale(self, change: Rescaling) -> None:
        """Bring all finished blocks to new units."""
        self.carried = self.carried + self._stretched_underflow(change.ratio)
        self.carried = self.carried + rescale(self.sketch, self.moments, change)
        if self.own_probes is not None:
            self.own_probes = self.own_probes.rescaled(change.ratio)

    def _stretched_underflow(self, ratio: Float64) -> Float64:
        """Return what underflow has lost in columns that are now multiplied, in original units."""
        before = ratio * self.intake.units
        return np.where(ratio > 1.0, self._underflow() * np.square(np.maximum(before, 1.0)), 0.0)

    def merge(self, other: "State") -> None:
        """Take in another stream, which stays as it is."""
        own_arrays(self)
        wider = other.sketch.dtype.itemsize > self.sketch.dtype.itemsize
        self.rounded |= other.rounded or wider
        self.carried = self.carried + other.moved_squares()
        moved = other.target_displacement(other.moments.target_mass)
        self.target_carried = self.target_carried + np.square(moved)
        # An empty stream measures from where the other does.
        if other.n_rows:
            self.intake.start_at(other.intake.feature_mean.high, other.intake.target_mean.high)
        if other.moments.n_rows:
            self._by_own_threads(partial(self._merge_blocks, other))
        if other.intake.filled:
            self.absorb(other.intake.waiting())

    def _merge_blocks(self, other: "State") -> None:
        """Take in what the other has sketched."""
        mine, theirs = self.intake, other.intake
        units = mine.units
        distance = mine.feature_mean.distance_to(theirs.feature_mean)
        target_distance = mine.target_mean.distance_to(theirs.target_mean)
        factor = shift_factor(mine.weight, theirs.weight)
        sketch, moments = other.sketch, other.moments
        weights, probes = (mine.weight, theirs.weight), other.own_probes
        if mine.scaling is not None and theirs.scaling is not None:
            mean = mine.feature_mean.joined(theirs.feature_mean, *weights).value
            weight = mine.weight + theirs.weight
            here, there = mine.scaling.merge(theirs.scaling, factor * distance, weight, mean)
            if here is not None:
                self._rescale(here)
            if there is not None:
                sketch, moments = copy.deepcopy((sketch, moments))
                self.carried = self.carried + rescale(sketch, moments, there)
                probes = None if probes is None else probes.rescaled(there.ratio)
        is_first = not self.moments.n_rows
        self.sketch.merge(sketch)
        self.moments.merge(moments)
        if self.own_probes is not None:
            self.own_probes = self.own_probes.merged(probes, alone=is_first)
        if mine.centre:
            if factor > 0.0:
                row = (factor * distance / mine.units)[None].astype(self.sketch.dtype)
                bridge = Block(row, factor * target_distance[None], n_shifts=1)
                self._take(bridge)
            mine.feature_mean = mine.feature_mean.joined(theirs.feature_mean, *weights)
            mine.target_mean = mine.target_mean.joined(theirs.target_mean, *weights)
        mine.weight += theirs.weight
        # Waiting rows are rounded once more: errors of the same rows add, not their squares.
        self.carried = np.square(np.sqrt(self.carried) + np.sqrt(mine.change_units(units)))
        self.sketch.settle(self.moments.cross)

    def moved_squares(self, mass: float | None = None, offset: Rows | None = None) -> Float64:
        """Return at least Σ(Ã − A)², where Ã are the rows as sketched and A as they should be.

        Each entry is rounded when the running mean is taken off, when its block is centred, and
        when it is weighted and scaled; means are off by the rounding of a sum over a block. With
        ``standardize`` there is one number for each column, in original units, in which what the
        deviation is off by counts too; otherwise one in the present units.

        Parameters
        ----------
        mass, offset : float, ndarray of shape (n_features,)
            If at hand: ‖A‖_F² in the present units with the waiting rows as the last block, and
            what is taken off these to centre them.
        """
        if not self.rounded:
            return self.carried
        intake, steps = self.intake, self._steps()
        if not intake.standardizes:
            if mass is None:
                size = self.sketch.mass + intake.waiting_mass()
            else:
                taken = 0.0 if offset is None else float(np.vdot(offset, offset))
                size = mass + intake.waiting_weight * taken
            size += intake.offset_mass
            return self.carried + steps**2 * size + self._underflow() * self.n_features
        squares, offsets = self.column_squares(), intake.offset_squares_with_waiting()
        # s₂ − s₁²/w is off by roundings of s₂, and so is the deviation's square. Each block's are
        # added to those before, and its weight to theirs.
        roots = np.sqrt(squares)
        doubt = self._sum_steps() * np.divide(
            squares + offsets, roots, out=np.zeros_like(roots), where=roots > 0
        )
        doubt += 2 * self.moments.n_blocks * DOUBLE * roots
        underflow = self._underflow() * np.square(np.maximum(intake.units, 1.0))
        return self.carried + 2 * (steps**2 * (squares + offsets) + np.square(doubt)) + underflow

    def column_squares(self) -> Float64:
        """Return the squares of each column about the mean, in original units, for standardize."""
        scaling = self.intake.scaling
        assert scaling is not None
        if not self.intake.filled:
            return scaling.squares
        return scaling.squares + self.intake.waiting_squares()

    def target_displacement(self, target_mass: Float64) -> Float64:
        """Bound ‖b̃ − b‖ for the targets, whose squares in finished blocks are ``target_mass``."""
        if not self.rounded:
            return np.sqrt(self.target_carried)
        intake = self.intake
        size = target_mass + intake.target_offset_mass + intake.waiting_target_mass()
        steps = 8 * (intake.block_rows + 8) * DOUBLE * self._growth()
        own = steps**2 * size + self._underflow() * (size > 0)
        bound: Float64 = np.sqrt(self.target_carried + own)
        return bound

    def _steps(self) -> float:
        """Count the roundings that an entry may go through, in units of itself."""
        # At the least a row is converted, and its weight's root too before they are multiplied.
        storing = 6 if self.intake.touches_rows else 4
        storing += 4 if self.sketch.centres else 0  # means are sums in the rows' own dtype
        means = self._sum_steps() if self.intake.centre else 0.0
        return storing * unit_roundoff(self.sketch.dtype) + means

    def _sum_steps(self) -> float:
        """Bound the rounding of a mean, in units of its column's spread."""
        return 4 * (self.intake.block_rows + 4) * DOUBLE * self._growth()

    def _growth(self) -> float:
        """Return how often the rounding of a block's mean counts: also in all means after it.

        A block of weight w after W counts with w/(W + w), whose sum grows like the logarithm.
        """
        return math.sqrt(1.0 + math.log1p(self.moments.n_blocks))

    def _underflow(self) -> float:
        """Return the squares that numbers too small for their type may have lost in one column."""
        n_rows = self.n_rows + self.moments.n_blocks
        weight = self.intake.total_weight()
        # Rows are stored both without their weight and with it.
        stored = smallest_number(self.sketch.dtype) ** 2 * (n_rows + weight)
        # A mean loses n·tiny over the weight, and is taken off all rows.
        mean = TINY * n_rows * (TINY * n_rows / weight) if weight > 0 else 0.0
        return stored + mean + TINY * n_rows


def rescale(sketch: Sketch, moments: Moments, change: Rescaling) -> Float64:
    """Bring a stream's sums to new units.

    Returns the squares, in original units, of what is left out: columns that have varied by no more
    than rounding may now be multiplied by anything, and with them what a sketch has rounded
    elsewhere. Sketches whose columns have nothing to do with each other keep them.
    """
    ratio, left_out = change.ratio, np.zeros_like(change.first_squares)
    if change.first.any() and not sketch.columns_apart:
        ratio, left_out = np.where(change.first, 0.0, ratio), change.first_squares
    sketch.rescale(ratio, change.column_mass)
    moments.rescale(change.ratio)
    return left_out


def _shape(n_targets: int, single: bool) -> str:
    return "(n_rows,)" if single else f"(n_rows, {n_targets})"
