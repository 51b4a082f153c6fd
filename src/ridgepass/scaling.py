"""Units for the columns, so that alpha treats features alike."""

from typing import NamedTuple

import numpy as np

from ridgepass.kernels import Float64


class Rescaling(NamedTuple):
    """A change of units: what columns are multiplied by, and their squares before."""

    ratio: Float64
    column_mass: Float64


class Scaling:
    """Sketch each column in a unit near its standard deviation; solve in exactly that deviation.

    A sketch spends its rows on the largest columns, so columns must be scaled before it, when
    their deviations are not yet known. Units are therefore set when a column first varies, and
    anew whenever the number of blocks has doubled. The deviations themselves are kept exactly; a
    query corrects the units to them, so that the problem solved does not depend on the units, nor
    on the batches, nor on how parts were merged.

    Parameters
    ----------
    n_features : int
        Columns.
    given : ndarray of shape (n_features,), optional
        Deviations to use in place of those of the data, from the start and for good.
    """

    def __init__(self, n_features: int, given: Float64 | None = None) -> None:
        self.given = given
        self.units: Float64 = np.ones(n_features) if given is None else given
        self.squares: Float64 = np.zeros(n_features)  # sums about the mean, in original units
        self.n_blocks = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.units.nbytes + self.squares.nbytes

    def including(self, squares: Float64) -> Float64:
        """Return the sums of squares with a block's added, given in the present units."""
        total: Float64 = self.squares + squares * np.square(self.units)
        return total

    def deviations(self, squares: Float64, weight: float) -> Float64:
        """Return what columns are divided by: one for those that never vary."""
        if self.given is not None:
            return self.given
        found: Float64 = np.sqrt(squares / weight)
        return np.where(found > 0, found, 1.0)

    def update(self, squares: Float64, weight: float) -> tuple[Float64 | None, Rescaling | None]:
        """Add a block's squares, given in the present units, and choose new units if it is time.

        ``weight`` is that of all rows with the block. Returns old over new units for the block, and
        the same for all before it. None means that nothing changes.
        """
        if self.given is not None:
            return None, None
        varied, before = self.squares > 0, self.squares / np.square(self.units)
        self.squares = self.including(squares)
        self.n_blocks += 1
        doubled = self.n_blocks & (self.n_blocks - 1) == 0
        fresh = np.ones_like(varied) if doubled else ~varied & (self.squares > 0)
        if not fresh.any():
            return None, None
        units = np.where(fresh, self.deviations(self.squares, weight), self.units)
        ratio: Float64 = self.units / units
        self.units = units
        return ratio, _rescaling(np.where(varied, ratio, 1.0), before)

    def merge(self, other: "Scaling", shift: Float64) -> Rescaling | None:
        """Add another's sums and the squares of the row between the means, in original units.

        Returns what brings the other's columns to these units.
        """
        if self.given is not None:
            return None
        new_here = (self.squares == 0) & (other.squares > 0)
        self.units = np.where(new_here, other.units, self.units)
        ratio: Float64 = np.where(other.squares > 0, other.units / self.units, 1.0)
        self.squares = self.squares + other.squares + np.square(shift)
        self.n_blocks += other.n_blocks
        return _rescaling(ratio, other.squares / np.square(other.units))


def _rescaling(ratio: Float64, column_mass: Float64) -> Rescaling | None:
    return None if (ratio == 1.0).all() else Rescaling(ratio, column_mass)
