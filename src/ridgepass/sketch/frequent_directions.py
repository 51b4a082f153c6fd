"""Frequent Directions and its two relatives: one kernel, three shrink rules."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ridgepass.kernels import (
    GRAM_PANEL,
    Float64,
    Rows,
    gram,
    mix_into,
    smallest_number,
    stacked_gram,
    top_eigenpairs,
    unit_roundoff,
)
from ridgepass.sketch.base import LowRank, Sketch

# The old rows are orthogonal up to rounding, so their part of the Gram matrix is known without
# looking. Now and then it is measured all the same: errors in it would otherwise add up.
REMEASURE_EVERY = 16
# Standard deviations allowed for rounding errors that are taken to be independent.
CONFIDENCE = 4.0


@dataclass
class Rounding:
    """How far rounding may have moved BᵀB, in the spectral norm, beside what Δ accounts for.

    Each shrink stores every number once more. In a stream that repeats itself those errors do not
    cancel (measured), so they are counted in full; ``stored`` is their sum. The many additions
    inside a product err like a random walk (Higham & Mary 2019); ``summed`` is the root of the sum
    of their squares.
    """

    stored: float = 0.0
    summed: float = 0.0

    def __add__(self, other: "Rounding") -> "Rounding":
        return Rounding(self.stored + other.stored, math.hypot(self.summed, other.summed))

    @property
    def bound(self) -> float:
        """The allowance made for it."""
        return self.stored + CONFIDENCE * self.summed


@dataclass(frozen=True)
class Shrink:
    """One step of lines 4 and 5 of Algorithm 2, as small matrices only.

    Attributes
    ----------
    values : ndarray
        Σ'², the squared singular values of the old rows and the block together, descending.
    vectors : ndarray
        Left singular vectors of the leading ones.
    cut : float
        σ²_{ℓ+1}.
    squares : ndarray of shape (sketch_size,)
        The new Σ².
    """

    values: Float64
    vectors: Float64
    cut: float
    squares: Float64

    @property
    def mix(self) -> Float64:
        """ΣΣ'⁻¹Uᵀ, which turns the stacked rows into the new ΣVᵀ; no entry exceeds one."""
        kept = self.values[: len(self.squares)]
        ratio = np.divide(self.squares, kept, out=np.zeros_like(kept), where=kept > 0)
        mix: Float64 = np.sqrt(ratio)[:, None] * self.vectors[:, : len(ratio)].T
        return mix


class FrequentDirections(Sketch):
    """Algorithm 2, lines 4 and 5, in blocks of ℓ rows (Liberty 2013; Ghashami et al. 2016).

    ``rows`` is B = ΣVᵀ with orthogonal rows, ``squares`` is Σ², ``removed`` is Δ, the sum of all
    σ²_{ℓ+1}, and 0 ⪯ AᵀA − BᵀB ⪯ Δ·I.
    """

    def __init__(
        self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int = 0
    ) -> None:
        super().__init__(n_features, sketch_size, dtype, seed)
        self.block_rows = sketch_size
        self.rows: Rows = np.zeros((sketch_size, n_features), dtype)
        self.squares = np.zeros(sketch_size)
        self.removed = 0.0
        self.shrinks = 0
        self.rounding = Rounding()

    def absorb(self, rows: Rows, targets: Float64 | None = None) -> None:
        """Take in one block."""
        self.apply_shrink(self.shrink(rows), rows)

    def shrink(self, rows: Rows, *, n_vectors: int | None = None, exact: bool = False) -> Shrink:
        """Work out one step for the old rows stacked on ``rows``, changing nothing."""
        size = self.sketch_size
        values, vectors = top_eigenpairs(self._stacked_gram(rows, exact), n_vectors or size)  # 4
        cut = max(float(values[size]), 0.0)
        return Shrink(values, vectors, cut, self._keep(values[:size], cut))  # line 5

    def apply_shrink(self, step: Shrink, rows: Rows) -> None:
        """Carry out ``step`` in place."""
        mix_into(self.rows, step.mix, (self.rows, rows))
        self.squares = step.squares
        self.removed += step.cut
        self.shrinks += 1
        self.rounding += self.step_rounding(step)

    def merge(self, other: Self) -> None:
        """Stack and shrink; Δ adds (Ghashami et al. 2016, mergeability)."""
        self.absorb(other.rows.astype(self.dtype, copy=False))
        self.removed += other.removed
        self.rounding += other.rounding

    def covariance(self, rows: Rows, targets: Float64 | None = None) -> LowRank:
        """Return K̂ as if ``rows`` were the last block, leaving the sketch as it is."""
        # float32 training leaves rows orthogonal to about 1e-6; a query can afford to measure.
        exact = self.dtype != np.float64
        if len(rows):
            step = self.shrink(rows, exact=exact)
            removed = self.removed + step.cut
            slack = (self.rounding + self.step_rounding(step)).bound
            return self._low_rank((self.rows, rows), step.mix, step.squares, removed, slack)
        mix, squares = np.eye(self.sketch_size), self.squares
        if exact:
            squares, vectors = top_eigenpairs(gram(self.rows, self.rows, exact=True), len(squares))
            mix = vectors.T
        return self._low_rank((self.rows,), mix, squares, self.removed, self.rounding.bound)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.rows.nbytes + self.squares.nbytes

    def _keep(self, values: Float64, cut: float) -> Float64:
        """Σ² of the kept directions: Algorithm 2, line 5."""
        return np.maximum(values - cut, 0.0)

    def _shift(self, removed: float) -> float:
        """Return the scalar added to BᵀB in every direction."""
        return 0.0

    def _low_rank(
        self, rows: tuple[Rows, ...], mix: Float64, squares: Float64, removed: float, slack: float
    ) -> LowRank:
        shift = self._shift(removed)
        return LowRank(rows, mix, squares, shift, max(shift, removed - shift) + slack)

    def _stacked_gram(self, rows: Rows, exact: bool) -> Float64:
        measure = exact or self.shrinks % REMEASURE_EVERY == REMEASURE_EVERY - 1
        known = None if measure else np.diag(self.squares)
        return stacked_gram((self.rows, rows), known=known, exact=exact)

    def step_rounding(self, step: Shrink) -> Rounding:
        """Return the allowance for the rounding of one step."""
        top, total = max(float(step.values[0]), 0.0), max(float(step.values.sum()), 0.0)
        size = unit_roundoff(self.dtype) * math.sqrt(top) * math.sqrt(total)
        # Each entry of B moves by u of itself: BᵀB by 2u‖B‖₂‖B‖_F. Squares may also underflow.
        underflow = self.n_features * len(step.values) * smallest_number(self.dtype)
        chain = math.sqrt(min(GRAM_PANEL, self.n_features)) + 2 * math.sqrt(len(step.values))
        return Rounding(2 * size + underflow, chain * size)


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
