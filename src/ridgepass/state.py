"""What a stream holds once the number of columns is known."""

import copy
import math
from dataclasses import dataclass

import numpy as np

from ridgepass.anchor import Anchor
from ridgepass.blocks import Block
from ridgepass.centring import shift_factor
from ridgepass.intake import Batch, DenseIntake, Intake, SparseIntake
from ridgepass.kernels import Float64, Rows, smallest_number, unit_roundoff
from ridgepass.moments import Moments
from ridgepass.scaling import Rescaling, Scaling
from ridgepass.sketch import AnchoredFrequentDirections, Sketch
from ridgepass.snapshot import Kept, entry, flag, like, take, take_each
from ridgepass.solve import AnchoredSolver


@dataclass
class State:
    """A sketch, exact moments, and the rows that wait for their block to fill up."""

    sketch: Sketch
    moments: Moments
    intake: Intake
    single: bool
    rounded: bool = False  # whether rows were rounded on their way into the sketch
    anchor: Anchor | None = None
    anchor_alpha: float | None = None  # where the anchor is kept; None for the mean eigenvalue

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
        alpha: float | None = None,
    ) -> "State":
        """Return the state of no rows."""
        kind = SparseIntake if is_sparse else DenseIntake
        block_rows = sketch.sparse_block_rows if is_sparse else sketch.block_rows
        intake = kind(
            block_rows, sketch.n_features, n_targets, sketch.dtype, centre=centre, scaling=scaling
        )
        moments, anchor = Moments.empty(sketch.n_features, n_targets), None
        if isinstance(sketch, AnchoredFrequentDirections):
            anchor = Anchor.empty(sketch.n_features, n_targets, sketch.sketch_size)
        return cls(sketch, moments, intake, single, anchor=anchor, anchor_alpha=alpha)

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
        anchor = 0 if self.anchor is None else self.anchor.nbytes
        return self.sketch.nbytes + self.moments.nbytes + self.intake.nbytes + anchor

    def snapshot(self) -> Kept:
        """Return all that is held as plain data, valid until the state changes."""
        kept: Kept = {
            "dtype": self.sketch.dtype.name,
            "is_sparse": self.is_sparse,
            "single": self.single,
        }
        kept |= take_each(self, ("rounded", "moments", "sketch", "intake"))
        return kept if self.anchor is None else kept | {"anchor": take(self.anchor)}

    def restore(self, kept: Kept) -> None:
        """Take up a snapshot in an empty state of the same options, or raise ValueError."""
        self.rounded = flag(entry(kept, "rounded"), "rounded")
        self.moments = like(self.moments, entry(kept, "moments"), "moments")
        self.sketch.restore(entry(kept, "sketch"), self.n_targets)
        self.intake.restore(entry(kept, "intake"))
        if self.moments.n_rows and not self.intake.weight > 0:
            raise ValueError("rows have no weight")
        if self.anchor is not None:
            self.anchor = like(self.anchor, entry(kept, "anchor"), "anchor")

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
        narrowed = batch.rows.dtype.itemsize > self.sketch.dtype.itemsize
        weighted = batch.weights is not None and bool((batch.weights != 1.0).any())
        self.rounded |= narrowed or self.intake.touches_rows or weighted
        first = batch.rows[:1]
        row = first if isinstance(first, np.ndarray) else first.toarray()
        self.intake.start_at(row[0], batch.targets[0])
        for block in self.intake.feed(batch):
            if block.rescaling is not None:
                self._rescale(block.rescaling)
            self._take(block)
            if self.anchor is not None and self.moments.n_rows >= self.anchor.due:
                self._move_anchor(self.anchor)

    def _take(self, block: Block) -> None:
        """Take in one block."""
        self.sketch.absorb(block)
        if self.anchor is None or not self.anchor.placed:
            self.moments.update(block)
            return
        # One look at the rows for both sums.
        along = block.apply(self.anchor.point)
        cross, image = np.hsplit(block.lift(np.hstack([block.targets, along])), 2)
        self.moments.update(block, cross)
        self.anchor.follow(block, image)

    def _move_anchor(self, anchor: Anchor) -> None:
        """Take the anchor to the solution so far."""
        sketch = self.sketch
        assert isinstance(sketch, AnchoredFrequentDirections)
        solver = AnchoredSolver(sketch.finished(), self.moments.cross, anchor)
        covariance = solver.covariance
        if covariance.mass > 0:
            alpha = self.anchor_alpha or covariance.mass / self.n_features
            point, image, error, tail = solver.moved(alpha)
            anchor.place(point, image, error)
            sketch.learn_tail(tail)
        anchor.postpone(self.moments.n_rows)

    def _rescale(self, change: Rescaling) -> None:
        """Bring all finished blocks to new units."""
        self.sketch.rescale(*change)
        self.moments.rescale(change.ratio)
        if self.anchor is not None:
            self.anchor = self.anchor.rescaled(change.ratio, float(change.column_mass.sum()))
        self.intake.offset_mass *= max(float(change.ratio.max()), 1.0) ** 2

    def merge(self, other: "State") -> None:
        """Take in another stream, which stays as it is."""
        wider = other.sketch.dtype.itemsize > self.sketch.dtype.itemsize
        self.rounded |= other.rounded or wider
        # An empty stream measures from where the other does.
        if other.n_rows:
            self.intake.start_at(other.intake.feature_mean.high, other.intake.target_mean.high)
        if other.moments.n_rows:
            self._merge_blocks(other)
        if other.intake.filled:
            self._count_offsets(other.intake)
            self.absorb(other.intake.waiting())

    def _merge_blocks(self, other: "State") -> None:
        """Take in what the other has sketched."""
        mine, theirs = self.intake, other.intake
        units = mine.units
        distance = mine.feature_mean.distance_to(theirs.feature_mean)
        target_distance = mine.target_mean.distance_to(theirs.target_mean)
        factor = shift_factor(mine.weight, theirs.weight)
        sketch, moments, anchor = other.sketch, other.moments, other.anchor
        offset_mass = theirs.offset_mass
        share = theirs.weight / (mine.weight + theirs.weight)
        if mine.scaling is not None and theirs.scaling is not None:
            mean = mine.feature_mean.joined(theirs.feature_mean, share).value
            weight = mine.weight + theirs.weight
            here, there = mine.scaling.merge(theirs.scaling, factor * distance, weight, mean)
            if here is not None:
                self._rescale(here)
            if there is not None:
                sketch, moments = copy.deepcopy((sketch, moments))
                sketch.rescale(*there)
                moments.rescale(there.ratio)
                anchor = (
                    None
                    if anchor is None
                    else anchor.rescaled(there.ratio, float(there.column_mass.sum()))
                )
                offset_mass *= float(there.ratio.max()) ** 2
        alone = not self.moments.n_rows
        if self.anchor is not None and anchor is not None:
            if alone:
                self.anchor = copy.deepcopy(anchor)
            else:
                self._join_anchor(self.anchor, anchor, sketch, moments)
        self.sketch.merge(sketch)
        self.moments.merge(moments)
        if mine.centre:
            if factor > 0.0:
                row = (factor * distance / mine.units)[None].astype(self.sketch.dtype)
                bridge = Block(row, factor * target_distance[None], n_shifts=1)
                self._take(bridge)
            mine.offset_mass += offset_mass
            mine.target_offset_mass += theirs.target_offset_mass
            mine.feature_mean = mine.feature_mean.joined(theirs.feature_mean, share)
            mine.target_mean = mine.target_mean.joined(theirs.target_mean, share)
        mine.weight += theirs.weight
        mine.change_units(units)
        if self.anchor is not None and not alone:
            self._move_anchor(self.anchor)

    def _join_anchor(self, mine: Anchor, theirs: Anchor, sketch: Sketch, moments: Moments) -> None:
        """Bring two anchors to one point, as far as each side's sketch knows the way."""
        share = moments.n_rows / (self.moments.n_rows + moments.n_rows)
        point = (1 - share) * mine.point + share * theirs.point
        sums = []
        for part, sums_of, anchor in ((self.sketch, self.moments, mine), (sketch, moments, theirs)):
            assert isinstance(part, AnchoredFrequentDirections)
            sums.append(AnchoredSolver(part.finished(), sums_of.cross, anchor).shifted(point))
        (here, error), (there, more) = sums
        mine.place(point, here + there, error + more)

    def _count_offsets(self, theirs: Intake) -> None:
        """Remember how far waiting rows were from what they were stored relative to."""
        offset, weight = theirs.offset() * theirs.units / self.intake.units, theirs.waiting_weight
        self.intake.offset_mass += weight * float(offset @ offset)
        self.intake.target_offset_mass += weight * np.square(theirs.target_offset())

    def displacement(self, mass: float, offset: Rows | None) -> float:
        """Bound ‖Ã − A‖_F, where Ã are the rows as sketched and A as they should be.

        Each entry is rounded when the running mean is taken off, when its block is centred, and
        when it is weighted and scaled; means err by a sum over a block. ``mass`` is ‖A‖_F², and
        ``offset`` the mean of the waiting rows as they are stored.
        """
        if not self.rounded:
            return 0.0
        dtype, offset_mass = self.sketch.dtype, self.intake.offset_mass
        if offset is not None:
            offset_mass += self.intake.waiting_weight * float(np.vdot(offset, offset))
        count = (self.n_rows + self.moments.n_blocks) * self.n_features
        underflow = smallest_number(dtype) * math.sqrt(count)
        return self._steps() * math.sqrt(mass + offset_mass) + underflow

    def target_displacement(self, target_mass: Float64) -> Float64:
        """Bound the same for the targets, whose squares sum up to ``target_mass``."""
        if not self.rounded:
            return np.zeros(self.n_targets)
        intake = self.intake
        waiting = intake.waiting_weight * np.square(intake.target_offset())
        steps = 8 * (intake.block_rows + 8) * unit_roundoff(np.dtype(float))
        bound: Float64 = steps * np.sqrt(target_mass + intake.target_offset_mass + waiting)
        return bound

    def mean_steps(self) -> float:
        """Bound the error of the means, in units of their columns' spread; zero without any."""
        if not self.intake.centre:
            return 0.0
        return 4 * (self.intake.block_rows + 4) * unit_roundoff(np.dtype(np.float64))

    def _steps(self) -> float:
        """Count the roundings that an entry may go through, in units of itself."""
        storing = 6 if self.intake.touches_rows else 2
        return storing * unit_roundoff(self.sketch.dtype) + self.mean_steps()


def _shape(n_targets: int, single: bool) -> str:
    return "(n_rows,)" if single else f"(n_rows, {n_targets})"
