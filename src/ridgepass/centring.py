"""Running means, and the row that their movement adds to a centred stream."""

import math
from typing import Any

import numpy as np

from ridgepass.kernels import Float64, Rows


class RunningMean:
    """A weighted mean kept to twice the working precision: ``high`` plus ``low``.

    Blocks come centred on their own mean. What that leaves out is √(n·m/(n+m))·(μ_block − μ), one
    row for each block of weight m after a stream of weight n: with it, the sum of squares about the
    common mean is complete (Chan, Golub & LeVeque 1979). Features whose mean is a million times
    their spread lose nothing, since only differences from ``high`` are ever formed.
    """

    def __init__(self, start: Rows, dtype: np.dtype[Any]) -> None:
        # Rounded to the rows' dtype: differences of float32 rows from it are then rounded once.
        self.high: Rows = np.array(start, dtype=dtype)
        self.low: Float64 = np.zeros(self.high.shape)

    @property
    def value(self) -> Float64:
        """The mean in float64."""
        mean: Float64 = self.high + self.low
        return mean

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.high.nbytes + self.low.nbytes

    def distance(self, offset: Float64) -> Float64:
        """Return μ_block − μ, where ``offset`` is μ_block − ``high``."""
        gap: Float64 = offset - self.low
        return gap

    def distance_to(self, other: "RunningMean") -> Float64:
        """Return the other mean less this one."""
        high: Float64 = np.subtract(other.high, self.high, dtype=np.float64)
        return high + (other.low - self.low)

    def moved(self, share: float, distance: Float64) -> Float64:
        """Return the mean with a block of this share of the weight, leaving this one alone."""
        value: Float64 = self.high + (self.low + share * distance)
        return value

    def move(self, share: float, distance: Float64) -> None:
        """Take in a block of this share of the weight, whose mean is ``distance`` away."""
        low = self.low + share * distance
        high = (self.high + low).astype(self.high.dtype)
        self.low = low - (high.astype(np.float64) - self.high)
        self.high = high


def shift_factor(before: float, weight: float) -> float:
    """√(n·m/(n+m)): what the distance of means is multiplied by to make a row."""
    return math.sqrt(weight) * math.sqrt(before / (before + weight)) if before > 0 else 0.0
