"""A reference solution whose product with AᵀA is followed exactly, row by row."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ridgepass.blocks import Block
from ridgepass.kernels import Float64, column_norms, unit_roundoff

# The anchor moves when the rows have grown by this factor: a little better than 1.2 on stationary
# streams, much better on streams that change in blocks; 1.05 gains little for twice the moves.
GROWTH = 1.1


@dataclass
class Anchor:
    """One vector w for each target, with h ≈ AᵀAw.

    Between moves h follows w exactly. A move takes w to where the sketch believes the solution to
    be, and h with it as far as the sketch knows AᵀA; ``error`` is the account of what it does not.

    Attributes
    ----------
    point, image : ndarray of shape (n_features, n_targets)
        w, of unit length when it is set, and h; zeros before the first move.
    error : ndarray of shape (n_targets,)
        At least ‖h − AᵀAw‖, but for the rounding of h since the last move.
    due : int
        Rows at which to move next.
    chain : int
        Longest sum behind an entry of h, for its rounding.
    offset_mass : float
        What centring took off rows only while they were multiplied, for the same.
    """

    point: Float64
    image: Float64
    error: Float64
    due: int
    chain: int = 0
    offset_mass: float = 0.0

    @classmethod
    def empty(cls, n_features: int, n_targets: int, sketch_size: int) -> Self:
        """Return an anchor at zero, where it is exact; the first move is due after 2ℓ rows."""
        shape = n_features, n_targets
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(n_targets), 2 * sketch_size)

    @property
    def placed(self) -> bool:
        """Whether it has moved."""
        return bool(self.point.any())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.point.nbytes + self.image.nbytes + self.error.nbytes

    def follow(self, block: Block, image: Float64 | None = None) -> None:
        """Take a block X into h; ``image`` is XᵀXw, if at hand."""
        if self.placed:
            self.image += block.lift(block.apply(self.point)) if image is None else image
            self.chain = max(self.chain, len(block)) + 1
            self.offset_mass += block.offset_mass()

    def including(self, block: Block) -> "Anchor":
        """Return the anchor with a partial block added, leaving it as it is."""
        result = replace(self, image=self.image.copy())
        if len(block):
            result.follow(block)
        return result

    def place(self, point: Float64, image: Float64, error: Float64) -> None:
        """Go on from there; ``error`` includes all rounding so far."""
        self.point, self.image, self.error = point, image, error
        self.chain, self.offset_mass = 0, 0.0

    def rescaled(self, ratio: Float64, mass: float) -> "Anchor":
        """Return the anchor of A·diag(ratio), at which all predictions are the same."""
        columns, result = ratio[:, None], replace(self)
        error = float(ratio.max()) * self.bound(mass)
        result.place(self.point / columns, self.image * columns, error)
        return result

    def postpone(self, n_rows: int) -> None:
        """Set when to move next, having done so at ``n_rows``."""
        self.due = int(GROWTH * n_rows) + 1

    def bound(self, mass: float) -> Float64:
        """Return at least ‖h − AᵀAw‖, rounding included; ``mass`` is ‖A‖_F²."""
        steps = (len(self.point) + self.chain + 2) * unit_roundoff(np.dtype(np.float64))
        rounding = steps * math.sqrt(mass) * math.sqrt(mass + self.offset_mass)
        total: Float64 = self.error + rounding * column_norms(self.point)
        return total
