"""Two-level Frequent Directions (Huang 2018): what the first level removes is sampled and kept."""

from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import block_diag

from ridgepass.blocks import Block
from ridgepass.intake import Batch, DenseIntake
from ridgepass.kernels import Float64, Rows, mix_into, orthogonal_mix, stacked_gram, top_eigenpairs
from ridgepass.sketch.base import LowRank, Sketch
from ridgepass.sketch.frequent_directions import FrequentDirections
from ridgepass.sketch.shrink import Shrink
from ridgepass.snapshot import Kept


class TwoLevelFrequentDirections(Sketch):
    """The sketch is BᵀB + QᵀQ: FD of the rows, and FD of a sample of what that FD removed.

    A shrink removes the rows √min(σᵢ², σ²_{ℓ+1})·vᵢ. Each is taken with a probability proportional
    to its squared norm over all the mass removed so far, and reweighted, so that E[QᵀQ] is the
    removed part as long as the second level has not shrunk.
    """

    KEEPS: ClassVar[tuple[str, ...]] = ("first", "second", "waiting")
    is_random: ClassVar[bool] = True

    def __init__(
        self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int = 0
    ) -> None:
        super().__init__(n_features, sketch_size, dtype, seed)
        second_size = sketch_size // 2
        self.first = FrequentDirections(n_features, sketch_size - second_size, dtype)
        self.second = FrequentDirections(n_features, second_size, dtype)
        self.waiting = DenseIntake(second_size, n_features, 0, dtype)
        self.block_rows = self.sparse_block_rows = self.first.sketch_size

    def absorb(self, block: Block) -> None:
        """Take in one block."""
        step, cancelled = self._shrink(block)
        sample = self.first.unfold(self._sample(step), block)
        sampled = np.empty((len(sample), self.n_features), self.dtype)
        mix_into(sampled, sample, self.first.rows, *block.parts)
        self.first.carry_out(self.first.plan_of(step, cancelled), block)
        self._keep(sampled)

    def merge(self, other: Self) -> None:
        """Merge level by level; what the first levels lost adds, before the sample is drawn."""
        self.first.lost += other.first.lost
        self.first.removed += other.first.removed
        self.first.allowance += other.first.allowance
        self.first.rounding += other.first.rounding
        for start in range(0, other.first.sketch_size, self.block_rows):
            rows = other.first.rows[start : start + self.block_rows]
            self.absorb(Block.of(rows.astype(self.dtype, copy=False)))
        self.second.merge(other.second)
        self._keep(other._waiting_rows())

    def rescale(self, ratio: Float64, column_mass: Float64) -> None:
        """Multiply the columns of all rows so far."""
        self.first.rescale(ratio, column_mass)
        self.second.rescale(ratio, np.full_like(column_mass, np.inf))
        waiting = self._waiting_rows()
        np.multiply(waiting, ratio, out=waiting, casting="same_kind")

    def covariance(self, block: Block, columns: Float64 | None = None) -> LowRank:
        """Return K̂ as if ``block`` were the last, leaving the sketch as it is."""
        kept = np.eye(self.first.sketch_size, self.first.sketch_size + len(block))
        sample, kept_squares = kept[:0], self.first.squares
        removed, lost, rounding = self.first.removed, self.first.lost, self.first.rounding
        if len(block):
            step, cancelled = self._shrink(block, columns)
            kept, sample, kept_squares = step.mix, self._sample(step), step.squares
            plan = self.first.plan_of(step, cancelled)
            removed, lost = removed + plan.removed, lost + plan.lost
            rounding += plan.rounding
        kept, sample = self.first.unfold(kept, block), self.first.unfold(sample, block)
        waiting = self._waiting_rows()
        stored = (self.first.rows, *block.parts, self.second.rows, waiting)
        n_second = self.second.sketch_size + len(waiting)
        q_mix = block_diag(sample, np.eye(n_second))
        # 0 ⪯ K − BᵀB ⪯ Δ·I and 0 ⪯ QᵀQ ⪯ ‖Q‖₂²·I bound the difference on either side.
        gram = stacked_gram(stored, exact=True, columns=columns)
        q_top = max(float(top_eigenpairs(q_mix @ gram @ q_mix.T, 1)[0][0]), 0.0)
        b_mix = np.pad(kept, ((0, 0), (0, n_second)))
        squares, mix = orthogonal_mix(gram, np.vstack([b_mix, q_mix]))
        mass = lost + float(kept_squares.sum())
        error = max(q_top, removed + self.first.allowance) + rounding.bound
        return LowRank(
            stored,
            mix,
            squares,
            0.0,
            error,
            mass,
            columns=columns,
            kept_loss=removed / 2,  # the sample stands for some of it
            largest_loss=removed,
            rounding=rounding.bound,
        )

    @property
    def mass(self) -> float:
        """‖A‖_F² of all blocks."""
        return self.first.mass

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.first.nbytes + self.second.nbytes + self.waiting.nbytes

    @classmethod
    def shapes(cls, n_features: int, sketch_size: int) -> Kept:
        """Return the shapes of the arrays in a snapshot."""
        second_size = sketch_size // 2
        return {
            "first": FrequentDirections.shapes(n_features, sketch_size - second_size),
            "second": FrequentDirections.shapes(n_features, second_size),
        }

    def _shrink(self, block: Block, columns: Float64 | None = None) -> tuple[Shrink, float]:
        """Shrink the first level with one block, keeping the vectors of what is removed too."""
        gram, cancelled = self.first.gram(block, columns=columns)
        return self.first.shrink(gram, n_vectors=len(gram)), cancelled

    def _sample(self, step: Shrink) -> Float64:
        """Draw removed rows of ``step``; return how they are mixed of its stacked rows."""
        masses = removed_masses(step)
        total = self.first.lost + float(masses.sum())
        if total == 0.0:
            return step.vectors.T[:0]
        probability = np.minimum(1.0, self.second.sketch_size * (masses / total))
        key = np.random.Philox(key=self.seed, counter=self.first.updates << 64)
        chosen = np.random.Generator(key).random(len(masses)) < probability
        weight = masses[chosen] / step.values[chosen] / probability[chosen]
        sample: Float64 = np.sqrt(weight)[:, None] * step.vectors.T[chosen]
        return sample

    def _waiting_rows(self) -> Rows:
        rows: Rows = self.waiting.waiting().rows
        return rows

    def _keep(self, rows: Rows) -> None:
        for block in self.waiting.feed(Batch(rows, np.empty((len(rows), 0)))):
            self.second.absorb(block)


def removed_masses(step: Shrink) -> Float64:
    """min(σᵢ², σ²_{ℓ+1}): the squared norms of the rows that a shrink removes."""
    return np.clip(step.values, 0.0, step.cut)
