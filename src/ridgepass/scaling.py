"""Units for the columns, so that alpha treats features alike."""

from typing import ClassVar, NamedTuple

import numpy as np

from ridgepass.kernels import Float64
from ridgepass.snapshot import Kept, put_each, take_each

# A column that varies by less than this share of its mean is constant, but for rounding.
CONSTANT = 64 * float(np.finfo(np.float64).eps)
LEAST = 1e-140  # so is one whose squares could not be told from zero
STALE = 4.0  # times its unit: a column whose deviation has grown so far gets a new one at once


class Rescaling(NamedTuple):
    """A change of units: what columns are multiplied by, and their squares before."""

    ratio: Float64
    column_mass: Float64


class Scaling:
    """Sketch each column in a unit near its standard deviation; solve in exactly that deviation.

    A sketch spends its rows on the largest columns, so columns must be scaled before it, when
    their deviations are not yet known. Units are therefore set when a column first varies, and
    anew when it has outgrown its unit or the number of blocks has doubled. The deviations
    themselves are kept exactly; a query corrects the units to them, so that the problem solved does
    not depend on the units, nor on the batches, nor on how parts were merged.

    Parameters
    ----------
    n_features : int
        Columns.
    given : ndarray of shape (n_features,), optional
        Deviations to use in place of those of the data, from the start and for good.
    """

    KEEPS: ClassVar = ("units", "squares", "is_set", "n_blocks")

    def __init__(self, n_features: int, given: Float64 | None = None) -> None:
        self.given = given
        self.units: Float64 = np.ones(n_features) if given is None else given
        self.squares: Float64 = np.zeros(n_features)  # sums about the mean, in original units
        self.is_set = np.zeros(n_features, dtype=bool)  # which units are deviations
        self.n_blocks = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.units.nbytes + self.squares.nbytes + self.is_set.nbytes

    def snapshot(self) -> Kept:
        """Return the units as plain data, valid until they change; given ones never do."""
        return {} if self.given is not None else take_each(self, self.KEEPS)

    def restore(self, kept: Kept) -> None:
        """Take up a snapshot in a fresh object, or raise ValueError."""
        if self.given is None:
            put_each(self, self.KEEPS, kept)

    def including(self, squares: Float64) -> Float64:
        """Return the sums of squares with a block's added, given in the present units."""
        total: Float64 = self.squares + squares * np.square(self.units)
        return total

    def deviations(self, squares: Float64, weight: float, mean: Float64) -> Float64:
        """Return what columns are divided by: one for those that vary by no more than rounding."""
        if self.given is not None:
            return self.given
        found: Float64 = np.sqrt(squares / weight)
        return np.where(found > np.maximum(CONSTANT * np.abs(mean), LEAST), found, 1.0)

    def units_for(self, deviations: Float64) -> Float64:
        """Return the units to look at the sketch in, with columns that had none yet in theirs.

        Such a column is empty so far, up to rounding, so that the change is free. So do columns
        that have outgrown theirs.
        """
        if self.given is not None:
            return self.units
        fits = self.is_set & (deviations <= STALE * self.units)
        return np.where(fits, self.units, deviations)

    def update(
        self, squares: Float64, weight: float, mean: Float64
    ) -> tuple[Float64 | None, Rescaling | None]:
        """Add a block's squares, given in the present units, and choose new units if it is time.

        ``weight`` and ``mean`` are those of all rows with the block. Returns old over new units for
        the block, and the same for all before it. None means that nothing changes.
        """
        if self.given is not None:
            return None, None
        before = self.squares / np.square(self.units)
        self.squares = self.including(squares)
        self.n_blocks += 1
        doubled = self.n_blocks & (self.n_blocks - 1) == 0
        ratio = self._set_units(self.deviations(self.squares, weight, mean), everywhere=doubled)
        if ratio is None:
            return None, None
        return ratio, _rescaling(np.where(before > 0, ratio, 1.0), before)

    def merge(
        self, other: "Scaling", shift: Float64, weight: float, mean: Float64
    ) -> tuple[Rescaling | None, Rescaling | None]:
        """Add another's sums and the squares of the row between the means, in original units.

        ``weight`` and ``mean`` are those of both together. Returns what brings the columns of this
        stream and of the other to the units of both.
        """
        if self.given is not None:
            return None, None
        mine, theirs = (part.squares / np.square(part.units) for part in (self, other))
        units = np.where(self.is_set, self.units, np.where(other.is_set, other.units, 1.0))
        ratio = np.where(mine > 0, self.units / units, 1.0)
        self.is_set = self.is_set | other.is_set
        self.units = units
        self.squares = self.squares + other.squares + np.square(shift)
        self.n_blocks += other.n_blocks
        doubled = self.n_blocks.bit_length() > (self.n_blocks - other.n_blocks).bit_length()
        deviations = self.deviations(self.squares, weight, mean)
        fresh = self._set_units(deviations, everywhere=doubled)
        if fresh is not None:
            ratio = np.where(mine > 0, ratio * fresh, 1.0)
        other_ratio = np.where(theirs > 0, other.units / self.units, 1.0)
        return _rescaling(ratio, mine), _rescaling(other_ratio, theirs)

    def _set_units(self, deviations: Float64, *, everywhere: bool) -> Float64 | None:
        """Set the units of columns that have none, or of all; return old over new."""
        varies = deviations != 1.0
        if everywhere:
            fresh = varies
        else:
            fresh = varies & (~self.is_set | (deviations > STALE * self.units))
        if not fresh.any():
            return None
        units = np.where(fresh, deviations, self.units)
        ratio: Float64 = self.units / units
        self.units = units
        self.is_set = self.is_set | fresh
        return ratio


def _rescaling(ratio: Float64, column_mass: Float64) -> Rescaling | None:
    return None if (ratio == 1.0).all() else Rescaling(ratio, column_mass)
