"""Means, and the row that their distance adds to a centred stream.

Blocks come centred on their own mean. What that leaves out is √(n·m/(n+m))·(μ_block − μ), one row
for each block of weight m after a stream of weight n: with it, the sum of squares about the common
mean is complete (Chan, Golub & LeVeque 1979).
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ridgepass.kernels import Float64, Rows


@dataclass(frozen=True, eq=False)
class Mean:
    """A weighted mean kept to twice the working precision: ``high`` plus ``low``.

    Features whose mean is a million times their spread lose nothing, since only differences from
    ``high`` are ever formed. It has the rows' dtype, so that they are rounded once when it is
    subtracted.
    """

    high: Rows
    low: Float64

    @classmethod
    def at(cls, start: Rows, dtype: np.dtype[Any]) -> Self:
        """Return a place to measure from, before there is a mean."""
        return cls(np.array(start, dtype=dtype), np.zeros(len(start)))

    @property
    def value(self) -> Float64:
        """The mean in float64."""
        mean: Float64 = self.high + self.low
        return mean

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.high.nbytes + self.low.nbytes

    def distance_to(self, other: "Mean") -> Float64:
        """Return the other mean less this one."""
        high: Float64 = np.subtract(other.high, self.high, dtype=np.float64)
        return high + (other.low - self.low)

    def joined(self, other: "Mean", weight: float, others: float) -> "Mean":
        """Return the mean of both, given the weight of this one and the other's.

        It is reckoned from the heavier one: a mean that is far off and has no weight must not cost
        the other's digits.
        """
        distance = self.distance_to(other)
        if others <= weight:
            base, low = self.high, self.low + others / (weight + others) * distance
        else:
            base, low = other.high, other.low - weight / (weight + others) * distance
        high = (base + low).astype(self.high.dtype)
        return Mean(high, low - np.subtract(high, base, dtype=np.float64))


def shift_factor(before: float, weight: float) -> float:
    """√(n·m/(n+m)): what the distance of means is multiplied by to make a row."""
    return math.sqrt(weight) * math.sqrt(before / (before + weight)) if before > 0 else 0.0
