"""Units for the columns, so that alpha treats features alike."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ridgepass.kernels import Float64
from ridgepass.snapshot import Kept, put_each, take_each

# A column that varies by less than this share of its mean is constant, but for rounding.
CONSTANT = 64 * float(np.finfo(np.float64).eps)
LEAST = 1e-140  # so is one whose squares could not be told from zero
STALE = 4.0  # times its unit: a column whose deviation has grown so far gets a new one at once


def least_deviation(mean: Float64) -> Float64:
    """Return the deviation up to which columns count as constant."""
    return np.maximum(CONSTANT * np.abs(mean), LEAST)


class Rescaling(NamedTuple):
    """A change of units.

    Attributes
    ----------
    ratio : ndarray of shape (n_features,)
        What columns are multiplied by.
    column_mass : ndarray of shape (n_features,)
        Their squares before, in the units before.
    first : ndarray of bool of shape (n_features,)
        Columns that have varied by no more than rounding until now, and have squares all the same.
        The ratio is of any size there: a sketch whose errors mix columns must leave them out.
    first_squares : ndarray of shape (n_features,)
        Their squares in original units; zeros elsewhere.
    """

    ratio: Float64
    column_mass: Float64
    first: NDArray[np.bool_]
    first_squares: Float64

    @classmethod
    def of(
        cls, ratio: Float64, squares: Float64, units: Float64, first: NDArray[np.bool_]
    ) -> "Rescaling | None":
        """Return the change for columns of these squares so far; None if it changes nothing."""
        ratio = np.where(squares > 0, ratio, 1.0)
        if (ratio == 1.0).all():
            return None
        first = first & (ratio > 1.0)
        return cls(ratio, squares / np.square(units), first, np.where(first, squares, 0.0))


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
    least_unit : float
        No unit is smaller: the largest number that a row may have divided by it does not overflow.
    """

    KEEPS: ClassVar = ("units", "squares", "is_set", "n_blocks")

    def __init__(
        self, n_features: int, given: Float64 | None = None, least_unit: float = 0.0
    ) -> None:
        self.given = given
        self.least_unit = least_unit
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

    def deviations(
        self, squares: Float64, weight: float, mean: Float64
    ) -> tuple[Float64, NDArray[np.bool_]]:
        """Return what columns are divided by, and which of them were measured.

        Columns that vary by no more than rounding are divided by one.
        """
        if self.given is not None:
            return self.given, np.zeros(len(squares), dtype=bool)
        found: Float64 = np.sqrt(squares / weight)
        varies = found > least_deviation(mean)
        return np.where(varies, found, 1.0), varies

    def units_for(self, deviations: Float64) -> Float64:
        """Return the units to look at the sketch in, with columns that had none yet in theirs.

        Such a column is empty so far, up to rounding, so that the change is free. Columns that have
        outgrown their unit get a new one too.
        """
        if self.given is not None:
            return self.units
        fits = self.is_set & (deviations <= STALE * self.units)
        return np.where(fits, self.units, np.maximum(deviations, self.least_unit))

    def update(
        self, squares: Float64, weight: float, mean: Float64
    ) -> tuple[Float64 | None, Rescaling | None]:
        """Add a block's squares, in original units, and choose new units if it is time.

        ``weight`` and ``mean`` are those of all rows with the block. Returns old over new units for
        the block, and the same for all before it. None means that nothing changes.
        """
        if self.given is not None:
            return None, None
        before, units, was_set = self.squares, self.units, self.is_set
        self.squares = before + squares
        self.n_blocks += 1
        doubled = self.n_blocks & (self.n_blocks - 1) == 0
        ratio = self._set_units(*self.deviations(self.squares, weight, mean), everywhere=doubled)
        if ratio is None:
            return None, None
        return ratio, Rescaling.of(ratio, before, units, ~was_set)

    def merge(
        self, other: "Scaling", shift: Float64, weight: float, mean: Float64
    ) -> tuple[Rescaling | None, Rescaling | None]:
        """Add another's sums and the squares of the row between the means, in original units.

        ``weight`` and ``mean`` are those of both together. Returns what brings the columns of this
        stream and of the other to the units of both.
        """
        if self.given is not None:
            return None, None
        mine, units, was_set = self.squares, self.units, self.is_set
        theirs = np.where(other.is_set, np.maximum(other.units, self.least_unit), 1.0)
        self.units = np.where(self.is_set, self.units, theirs)
        self.is_set = self.is_set | other.is_set
        self.squares = mine + other.squares + np.square(shift)
        self.n_blocks += other.n_blocks
        doubled = self.n_blocks.bit_length() > (self.n_blocks - other.n_blocks).bit_length()
        self._set_units(*self.deviations(self.squares, weight, mean), everywhere=doubled)
        return (
            Rescaling.of(units / self.units, mine, units, ~was_set),
            Rescaling.of(other.units / self.units, other.squares, other.units, ~other.is_set),
        )

    def _set_units(
        self, deviations: Float64, varies: NDArray[np.bool_], *, everywhere: bool
    ) -> Float64 | None:
        """Set the units of columns that have none, or of all; return old over new."""
        if everywhere:
            fresh = varies
        else:
            fresh = varies & (~self.is_set | (deviations > STALE * self.units))
        if not fresh.any():
            return None
        units = np.where(fresh, np.maximum(deviations, self.least_unit), self.units)
        ratio: Float64 = self.units / units
        self.units = units
        self.is_set = self.is_set | fresh
        return ratio
