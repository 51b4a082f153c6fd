"""One shrink of Frequent Directions as small matrices, and what it leaves to account for."""

import math
from dataclasses import dataclass, field

import numpy as np

from ridgepass.kernels import Float64

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

    def times(self, factor: float) -> "Rounding":
        """Return what it is after BᵀB was multiplied."""
        return Rounding(self.stored * factor, self.summed * factor)

    @property
    def bound(self) -> float:
        """The allowance made for it."""
        return self.stored + CONFIDENCE * self.summed


@dataclass(frozen=True)
class Shrink:
    """Lines 4 and 5 of Algorithm 2 for one block, as small matrices only.

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
    def lost(self) -> float:
        """Trace of what the shrink removes."""
        return max(float(self.values.sum() - self.squares.sum()), 0.0)

    @property
    def mix(self) -> Float64:
        """ΣΣ'⁻¹Uᵀ, which turns the stacked rows into the new ΣVᵀ; no entry exceeds one."""
        kept = self.values[: len(self.squares)]
        ratio = np.divide(self.squares, kept, out=np.zeros_like(kept), where=kept > 0)
        mix: Float64 = np.sqrt(ratio)[:, None] * self.vectors[:, : len(ratio)].T
        return mix


@dataclass(frozen=True)
class Plan:
    """What some rows will change: B becomes ``mix @ [B; rows]``, the rest grows."""

    mix: Float64
    squares: Float64
    removed: float = 0.0
    lost: float = 0.0
    rounding: Rounding = field(default_factory=Rounding)

    def then(self, later: "Plan") -> "Plan":
        """Join with the plan for the next block, made for the outcome of this one."""
        size = len(self.squares)
        mix = np.hstack([later.mix[:, :size] @ self.mix, later.mix[:, size:]])
        removed, lost = self.removed + later.removed, self.lost + later.lost
        rounding = self.rounding + later.rounding
        return Plan(mix, later.squares, removed, lost, rounding)
