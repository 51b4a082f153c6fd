"""What is kept exactly of a stream, in float64: counts, A'b and b'b."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ridgepass.blocks import Block
from ridgepass.kernels import TINY, Float64, underflow, unit_roundoff


@dataclass
class Moments:
    """Sums over the rows seen so far.

    Attributes
    ----------
    n_rows : int
        Rows seen.
    n_blocks, longest_block : int
        Blocks they came in and the rows of the longest, which bound the rounding of the sums.
    cross : ndarray of shape (n_features, n_targets)
        c = Aᵀb, the paper's Algorithm 1, line 5.
    target_mass : ndarray of shape (n_targets,)
        ‖b‖² of each target.
    """

    n_rows: int
    n_blocks: int
    longest_block: int
    cross: Float64
    target_mass: Float64

    @classmethod
    def empty(cls, n_features: int, n_targets: int) -> Self:
        """Return the moments of no rows."""
        return cls(0, 0, 0, np.zeros((n_features, n_targets)), np.zeros(n_targets))

    def update(self, block: Block, cross: Float64 | None = None) -> None:
        """Add one block; ``cross`` is its own Aᵀb, if at hand."""
        self.n_rows += block.n_rows
        self.n_blocks += 1
        self.longest_block = max(self.longest_block, len(block))
        self.cross += block.cross() if cross is None else cross
        # Zero only if all targets are, though squares may be too small for their type.
        self.target_mass += (np.square(block.targets) + TINY * (block.targets != 0)).sum(axis=0)

    def rescale(self, ratio: Float64) -> None:
        """Multiply the columns of all rows so far."""
        self.cross *= ratio[:, None]

    def merge(self, other: "Moments") -> None:
        """Add another stream's sums."""
        self.n_rows += other.n_rows
        self.n_blocks += other.n_blocks
        self.longest_block = max(self.longest_block, other.longest_block)
        self.cross += other.cross
        self.target_mass += other.target_mass

    def including(self, block: Block) -> "Moments":
        """Return these moments with a partial block added, leaving them as they are."""
        result = replace(self, cross=self.cross.copy(), target_mass=self.target_mass.copy())
        if len(block):
            result.update(block)
        return result

    def cross_rounding(self, mass: float, stretch: float = 1.0) -> Float64:
        """Bound the rounding error of each column of ``cross``.

        A sum of products in blocks errs by at most (longest chain of additions)·u·|A|ᵀ|b|, and
        that vector's norm is at most ‖A‖_F‖b‖; ``mass`` is ‖A‖_F². Products too small for their
        type are lost, before columns are multiplied by at most ``stretch``.
        """
        chain, n_features = self.longest_block + self.n_blocks + 2, len(self.cross)
        size = math.sqrt(mass + n_features * self._n_sums * TINY) * np.sqrt(self.target_mass_bound)
        lost = underflow(n_features * self._n_sums, stretch) * (self.target_mass > 0)
        bound: Float64 = chain * unit_roundoff(np.dtype(np.float64)) * size + lost
        return bound

    @property
    def target_mass_bound(self) -> Float64:
        """At least ‖b‖² of each target, whose squares may be too small for their type."""
        bound: Float64 = self.target_mass + self._n_sums * TINY * (self.target_mass > 0)
        return bound

    @property
    def _n_sums(self) -> int:
        """Rows that sums are made of: data, and one for the means with each block."""
        return self.n_rows + self.n_blocks

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.cross.nbytes + self.target_mass.nbytes
