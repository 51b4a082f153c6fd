"""Frequent Directions and its two relatives: one kernel, three shrink rules."""

import math
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from ridgepass.blocks import Block
from ridgepass.kernels import (
    DOUBLE,
    Float64,
    Rows,
    add_mix,
    column_squares,
    mix_into,
    orthogonal_mix,
    smallest_number,
    stacked_gram,
    top_eigenpairs,
    unit_roundoff,
)
from ridgepass.sketch.base import LowRank, Sketch, stretched
from ridgepass.sketch.shrink import Plan, Rounding, Shrink
from ridgepass.snapshot import Kept

# The old rows are orthogonal up to rounding, so their part of the Gram matrix is known without
# looking. Now and then it is measured all the same: errors in it would otherwise add up.
REMEASURE_EVERY = 32
# Thin products are slow: two blocks at once, for the same flops, save 14 % of the time at ℓ = 16
# and 5 % at 64, but nothing from 128 on, where the longer buffer would also weigh more.
PAIRED_UP_TO = 64
# Sparse rows cost little beside one pass over the dense sketch: many blocks share that pass.
# The Gram matrix of all of them must stay small: about a thousand rows, 4 to 16 times ℓ.
SPARSE_ROWS = 1024


class FrequentDirections(Sketch):
    """Algorithm 2, lines 3 to 5, in blocks of ℓ rows (Liberty 2013; Ghashami et al. 2016).

    ``rows`` is B = ΣVᵀ with orthogonal rows and ``squares`` is Σ². ``removed`` is Δ, the sum of all
    σ²_{ℓ+1}, and 0 ⪯ AᵀA − BᵀB ⪯ Δ·I; ``lost`` is the trace of that difference. Once columns have
    been rescaled, Δ is what to expect and Δ + ``allowance`` the bound.
    """

    KEEPS: ClassVar[tuple[str, ...]] = (
        "rows",
        "squares",
        "removed",
        "allowance",
        "lost",
        "updates",
        "rounding",
    )

    def __init__(
        self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int = 0
    ) -> None:
        super().__init__(n_features, sketch_size, dtype, seed)
        self.block_rows = sketch_size * (2 if sketch_size <= PAIRED_UP_TO else 1)
        self.sparse_block_rows = sketch_size * min(max(SPARSE_ROWS // sketch_size, 4), 16)
        self.rows: Rows = np.zeros((sketch_size, n_features), dtype)
        self.squares = np.zeros(sketch_size)
        self.removed = 0.0
        self.allowance = 0.0
        self.lost = 0.0
        self.updates = 0
        self.rounding = Rounding()

    def absorb(self, block: Block) -> None:
        """Take in rows, in blocks of ``sketch_size``."""
        if len(block):
            self.carry_out(self.plan(block), block)

    def plan(self, block: Block, *, exact: bool = False, columns: Float64 | None = None) -> Plan:
        """Work out what a block will change.

        One Gram matrix of the old and the new rows tells that of each ℓ rows and the sketch before
        them, so several times ℓ rows cost a single pass over the wide ones. A row that stands for
        the distance of means goes along with the last of them.
        """
        size = self.sketch_size
        gram, cancelled = self.gram(block, exact=exact, columns=columns)
        edges = [*range(size, size + max(block.n_rows, 1), size), len(gram)]
        joint = gram[: edges[1], : edges[1]]
        step = self.shrink(joint)
        plan = self.plan_of(step, cancelled)
        for start, stop in pairwise(edges[1:]):  # line 3
            seen, new = slice(0, start), slice(start, stop)
            joint = np.diag(np.append(plan.squares, np.zeros(stop - start)))
            joint[size:, size:] = gram[new, new]
            joint[size:, :size] = gram[new, seen] @ plan.mix.T
            joint[:size, size:] = joint[size:, :size].T
            step = self.shrink(joint)
            plan = plan.then(self.plan_of(step))
        return plan

    def gram(
        self, block: Block, *, exact: bool = False, columns: Float64 | None = None
    ) -> tuple[Float64, float]:
        """Return the Gram matrix of the old rows stacked on a block, and the trace it lost.

        Implicit centring is a difference, and errs by roundings of what it takes off.
        """
        due = self.updates % REMEASURE_EVERY == REMEASURE_EVERY - 1
        measure = exact or due or columns is not None
        size = self.sketch_size
        if self.updates:
            known = None if measure else np.diag(self.squares)
            parts = (self.rows, *block.parts)
            gram = stacked_gram(parts, known=known, exact=exact, columns=columns)
        else:  # the old rows are zeros
            new = stacked_gram(block.parts, exact=exact, columns=columns)
            gram = np.pad(new, (size, 0))
        if not block.is_implicit:
            return gram, 0.0
        stored = np.diagonal(gram)[size:].copy()
        if block.factors is not None:
            stored[: len(block.factors)] *= np.square(block.factors)
        below = block.fold(gram[size:])
        left, corner = below[:, :size], block.fold(below[:, size:].T)
        lost = max(float(stored.sum() - np.trace(corner)), 0.0)
        return np.block([[gram[:size, :size], left.T], [left, corner]]), lost

    def shrink(self, gram: Float64, *, n_vectors: int | None = None, n_zeros: int = 0) -> Shrink:
        """Do lines 4 and 5 for the sketch stacked on one block, given their Gram matrix.

        ``n_zeros`` rows at the top are known to be zeros.
        """
        size, wanted = self.sketch_size, n_vectors or self.sketch_size
        n_found = min(wanted, len(gram) - n_zeros)
        values, vectors = top_eigenpairs(gram[n_zeros:, n_zeros:], n_found)  # line 4
        if n_zeros:
            values = np.append(values, np.zeros(n_zeros))
            vectors = np.pad(vectors, ((n_zeros, 0), (0, wanted - n_found)))
        cut = max(float(values[size]), 0.0)
        return Shrink(values, vectors, cut, self._keep(values[:size], cut))  # line 5

    def plan_of(self, step: Shrink, cancelled: float = 0.0) -> Plan:
        """Return the plan of one shrink; ``cancelled`` is what its Gram matrix lost by centring."""
        rounding = self._storing(step.values, cancelled)
        return Plan(step.mix, step.squares, step.cut, step.lost, rounding)

    def _storing(self, values: Float64, cancelled: float = 0.0) -> Rounding:
        """Return the rounding of one rotation of rows whose squared singular values are given."""
        top, total = max(float(values[0]), 0.0), max(float(values.sum()), 0.0) + cancelled
        size = unit_roundoff(self.dtype) * (math.sqrt(top) * math.sqrt(total) + cancelled)
        # Each entry of B moves by u of itself, BᵀB by 2u‖B‖₂‖B‖_F; the eigenvectors' norms move as
        # much again (3.4u in all measured over 5,000 shrinks). Squares may also underflow.
        underflow = self.n_features * len(values) * smallest_number(self.dtype)
        chain = math.sqrt(self.n_features) + 2 * math.sqrt(len(values))
        return Rounding(8 * size + underflow, chain * size)

    def carry_out(self, plan: Plan, block: Block) -> None:
        """Change the sketch as planned, in place."""
        mix = self.unfold(plan.mix, block)
        if self.updates:
            mix_into(self.rows, mix, self.rows, *block.parts)
        else:
            add_mix(self.rows, mix[:, self.sketch_size :], *block.parts)
        self.squares = plan.squares
        self.removed += plan.removed
        self.lost += plan.lost
        self.rounding += plan.rounding
        self.updates += 1

    def unfold(self, mix: Float64, block: Block) -> Float64:
        """Turn a mix of the old rows stacked on a block's into one of what is stored."""
        if not block.is_implicit:
            return mix
        size = self.sketch_size
        return np.hstack([mix[:, :size], block.unfold(mix[:, size:])])

    def merge(self, other: Self) -> None:
        """Stack and shrink; Δ adds (Ghashami et al. 2016, mergeability)."""
        self.absorb(Block.of(other.rows.astype(self.dtype, copy=False)))
        self.take_losses(other)

    def take_losses(self, other: "FrequentDirections") -> None:
        """Count what another has lost of rows that are taken in."""
        self.removed += other.removed
        self.allowance += other.allowance
        self.lost += other.lost
        self.rounding += other.rounding

    def rescale(self, ratio: Float64, column_mass: Float64) -> None:
        """Multiply the columns of all rows so far."""
        kept, known = column_squares(self.rows, np.ones(self.sketch_size)), self.removed
        lost = column_mass - kept + self.rounding.bound
        bound = stretched(known + self.allowance, ratio, lost)
        np.multiply(self.rows, ratio, out=self.rows, casting="same_kind")
        gram = stacked_gram((self.rows,), exact=True)
        plan = self._measured(gram)
        mix_into(self.rows, plan.mix, self.rows)
        self.squares = plan.squares
        largest, mean = float(np.square(ratio).max()), float(np.square(ratio).mean())
        self.removed *= mean
        self.allowance = bound - self.removed
        self.lost *= largest
        self.rounding = self.rounding.times(largest) + self._storing(self.squares)

    def covariance(self, block: Block, columns: Float64 | None = None) -> LowRank:
        """Return K̂ as if ``block`` were the last, leaving the sketch as it is."""
        # float32 training leaves rows orthogonal to about 1e-6; a query can afford to measure.
        exact = self.dtype != np.float64
        if len(block):
            plan = self.plan(block, exact=exact, columns=columns)
        elif exact:
            plan = self._measured(stacked_gram((self.rows,), exact=True))
        else:
            plan = self._standing()
        return self._covariance(plan, block, DOUBLE, columns)

    def covariance_of(
        self,
        values: Float64,
        vectors: Float64,
        cancelled: float,
        block: Block,
        columns: Float64 | None = None,
    ) -> LowRank:
        """Return K̂ with all directions of a block, given eigenpairs of ``gram(block)``."""
        rounding = self._storing(values, cancelled)
        plan = Plan(vectors.T, np.maximum(values, 0.0), rounding=rounding)
        return self._covariance(plan, block, DOUBLE, columns)

    def _covariance(
        self, plan: Plan, block: Block, unit: float, columns: Float64 | None = None
    ) -> LowRank:
        """Return K̂ as it will be after ``plan``."""
        removed = self.removed + plan.removed
        shift = self._shift(removed)
        # Once more, for rows that are taken for orthogonal.
        rounding = (self.rounding + plan.rounding + self._storing(plan.squares)).bound
        error = max(shift, removed + self.allowance - shift) + rounding
        mass = float(plan.squares.sum()) + self.lost + plan.lost
        mix = plan.mix if not len(block) else self.unfold(plan.mix, block)
        stored = (self.rows, *block.parts) if len(block) else (self.rows,)
        return LowRank(
            stored,
            mix,
            plan.squares,
            shift,
            error,
            mass,
            columns=columns,
            kept_loss=self._kept_loss(removed),
            largest_loss=removed,
            loss_bound=removed + self.allowance,
            rounding=rounding,
            unit=unit,
        )

    @property
    def mass(self) -> float:
        """‖A‖_F² of all blocks."""
        return float(self.squares.sum()) + self.lost

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.rows.nbytes + self.squares.nbytes

    @classmethod
    def shapes(cls, n_features: int, sketch_size: int) -> Kept:
        """Return the shapes of the arrays in a snapshot."""
        return {"rows": (sketch_size, n_features), "squares": (sketch_size,)}

    def _standing(self) -> Plan:
        """Plan to change nothing."""
        return Plan(np.eye(self.sketch_size), self.squares)

    def _measured(self, gram: Float64) -> Plan:
        """Plan to make the rows orthogonal, given their Gram matrix."""
        squares, mix = orthogonal_mix(gram, np.eye(self.sketch_size))
        return Plan(mix, squares)

    def _keep(self, values: Float64, cut: float) -> Float64:
        """Σ² of the kept directions: Algorithm 2, line 5."""
        return np.maximum(values - cut, 0.0)

    def _shift(self, removed: float) -> float:
        """Return the scalar added to BᵀB in every direction."""
        return 0.0

    def _kept_loss(self, removed: float) -> float:
        """Return what a direction has lost that was kept throughout."""
        return removed


class RobustFrequentDirections(FrequentDirections):
    """Algorithm 3: half of what was removed is added back in every direction (Luo et al. 2019)."""

    def _shift(self, removed: float) -> float:
        return removed / 2  # Algorithm 3, line 6


class IncrementalSVD(FrequentDirections):
    """Truncation without shrinkage; the paper's competitor iSVDrr.

    No bound holds in advance, but each truncation removes at most σ²_{ℓ+1} in any direction, so
    the same Δ certifies it afterwards.
    """

    def _keep(self, values: Float64, cut: float) -> Float64:
        return np.maximum(values, 0.0)

    def _kept_loss(self, removed: float) -> float:
        return 0.0
