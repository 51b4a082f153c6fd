"""One more look at all rows: two thin products, and what tells whether they are the same rows."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgepass.kernels import TINY, Float64, column_norms, unit_roundoff

UNIT = unit_roundoff(np.dtype(np.float64))


@dataclass(frozen=True, eq=False)
class Preparation:
    """Makes rows a = (row − mean)/scale and targets b = target − target_mean.

    Attributes
    ----------
    mean, target_mean : ndarray of shape (n_features,), (n_targets,)
        Near the means of all rows, from which the pass finds them exactly; zeros without an
        intercept.
    scale : ndarray of shape (n_features,) or None
        What columns are divided by.
    centred : bool
        Whether there is an intercept.
    measures : bool
        Whether the squares of each column are summed up, to find its deviation.
    """

    mean: Float64
    target_mean: Float64
    scale: Float64 | None
    centred: bool
    measures: bool = False


@dataclass(frozen=True, eq=False)
class Totals:
    """What a pass has summed up, of rows and targets centred on their exact means.

    Each sum is within its error of what exact arithmetic gives, whatever the rows, the weights and
    the place they are summed up about: rounding and underflow are both in it.

    Attributes
    ----------
    n_rows, weight, mass : int, float, float
        Rows, the sum of their weights, and ‖A‖_F².
    mass_error : float
        Bounds the error of ``mass``.
    lifted : ndarray of shape (n_features, n_vectors)
        Aᵀ(b − Av) for each vector v, without b where that was not asked for.
    lifted_error : ndarray of shape (n_vectors,)
        Bounds the error of ``lifted``, in the Euclidean norm as for all that are vectors.
    check, check_error : ndarray of shape (n_features,), float
        Aᵀ(b·signs), and its error.
    target_mass, target_mass_error : ndarray of shape (n_targets,)
        ‖b‖², and its error.
    shift, shift_error : ndarray of shape (n_features,), float
        How far the mean is from ``Preparation.mean``, divided by the scale, and the error of that.
    target_shift, target_shift_error : ndarray of shape (n_targets,)
        The same for the targets.
    chain : int
        The longest sum, for rounding.
    deviations, deviation_errors : ndarray of shape (n_features,) or None
        What columns deviate by, as prepared, if that was asked for; and how far that is off at
        most, relative to it.
    """

    n_rows: int
    weight: float
    mass: float
    mass_error: float
    lifted: Float64
    lifted_error: Float64
    check: Float64
    check_error: float
    target_mass: Float64
    target_mass_error: Float64
    shift: Float64
    shift_error: float
    target_shift: Float64
    target_shift_error: Float64
    chain: int
    deviations: Float64 | None = None
    deviation_errors: Float64 | None = None


def ridge_residual(
    lifted: Float64, error: Float64, alpha: float, vectors: Float64
) -> tuple[Float64, Float64]:
    """Return Aᵀ(b − Av) − alpha·v for what a pass has lifted, and at least the error of that."""
    rounding = 4 * UNIT * (column_norms(lifted) + alpha * column_norms(vectors))
    underflow = np.where(vectors.any(axis=0), TINY * math.sqrt(len(vectors)), 0.0)
    return lifted - alpha * vectors, error + rounding + underflow


class Pass(ABC):
    """Sums over rows that come in batches, in float64 and in blocks that batches do not change.

    Parameters
    ----------
    preparation : Preparation
        What is done to rows.
    vectors : ndarray of shape (n_features, n_vectors)
        What they are multiplied by.
    targets : ndarray of int of shape (n_vectors,)
        Which target a vector's product is taken off; −1 for none.
    signs : ndarray of shape (n_targets,)
        Makes one target of all, to check the rows by.
    """

    block_rows: int

    def __init__(
        self, preparation: Preparation, vectors: Float64, targets: Any, signs: Float64
    ) -> None:
        self.preparation = preparation
        self.vectors: Float64 = np.asfortranarray(vectors)
        self.signs = signs
        self._at = np.flatnonzero(np.asarray(targets) >= 0)
        self._from = np.asarray(targets)[self._at]
        n_features, n_vectors = vectors.shape
        self.n_rows = self._n_blocks = 0
        self._longest = 0  # numbers in a block, of whose squares ‖A‖_F² is summed up
        self._weight = self._mass = 0.0
        self._least = math.inf  # of the weights
        self._lifted = np.zeros((n_features, n_vectors + 2))
        self._sums = np.zeros(n_vectors + 2)
        self._column_squares = np.zeros(n_features if preparation.measures else 0)
        self._squares = np.zeros(n_vectors)
        self._target_sums = np.zeros(len(signs))
        self._target_squares = np.zeros(len(signs))
        self._has_rows = False  # with anything but zeros, before they are divided
        self._has_targets = np.zeros(len(signs), dtype=bool)
        self._set_up()

    @abstractmethod
    def _set_up(self) -> None:
        """Settle the length of a block, and make room for one."""

    @abstractmethod
    def add(self, rows: Any, targets: Float64, weights: Float64 | None) -> None:
        """Take in a batch of rows of positive weight; nothing of it is kept but copies."""

    @abstractmethod
    def _flush(self) -> None:
        """Sum up the rows that wait."""

    @abstractmethod
    def _lift(self, lost: float) -> tuple[Float64, float, float]:
        """Return Aᵀ times all columns, ‖A‖_F², and at least the norm of all that was summed up.

        ``lost`` is what underflow may have taken off the sum of squares.
        """

    def _columns(self, products: Float64, targets: Float64, weights: Float64) -> Float64:
        """Sum up a block's targets and return the columns to be lifted."""
        rest = -products
        rest[:, self._at] += targets[:, self._from]
        self.n_rows += len(rest)
        self._n_blocks += 1
        self._weight += float(weights.sum())
        self._least = min(self._least, float(weights.min()))
        self._has_targets |= targets.any(axis=0)
        self._squares += weights @ np.square(rest)
        self._target_sums += weights @ targets
        self._target_squares += weights @ np.square(targets)
        columns = np.column_stack([rest, targets @ self.signs, np.ones(len(rest))])
        columns *= weights[:, None]
        self._sums += columns.sum(axis=0)
        return columns

    def finish(self) -> Totals:
        """Return the sums of all rows."""
        self._flush()
        n_rows, weight, root = self.n_rows, self._weight, math.sqrt(self._weight)
        chain = self.block_rows + self._n_blocks + 8
        # A product that underflows is off by up to TINY, whatever its factors; none is if one of
        # them is zero. Two products make a term of a sum of squares.
        tiny = TINY if self._has_rows else 0.0
        by_target = np.where(self._has_targets, TINY, 0.0)
        lost = tiny * (weight + n_rows) * 2 * len(self.vectors)
        with np.errstate(over="ignore", invalid="ignore"):
            lifted, mass, size = self._lift(lost)
            spread = np.sqrt(self._target_squares + by_target * (weight + n_rows))
            blur = self._blur(tiny)
            # Sums about a place near the means: Cauchy and Schwarz bound the sum of all terms.
            rounding = 4 * chain * UNIT * size
            errors = self._lifting_errors(size, spread, rounding, blur, tiny)
            mass_steps = 8 * chain + 4 * len(lifted) + self._longest
            mass_error = mass_steps * UNIT * size * size + lost + (4 * size + blur) * blur
            sums, lifted, shift = self._sums[:-1], lifted[:, :-1], lifted[:, -1]
            target_mass, target_shift = self._target_squares, self._target_sums
            target_steps = 4 * chain * UNIT * spread
            target_mass_error = target_steps * spread + by_target * (weight + n_rows)
            target_shift_error, shift_error = np.zeros_like(spread), 0.0
            if self.preparation.centred and weight > 0:
                shift, target_shift = shift / weight, target_shift / weight
                lifted = lifted - np.outer(shift, sums)
                mass = max(mass - weight * float(shift @ shift), 0.0)
                target_mass = np.maximum(target_mass - weight * np.square(target_shift), 0.0)
                shift_error = (rounding + blur) / root
                target_shift_error = target_steps / root + (by_target / weight) * n_rows + by_target
                target_mass_error += 2 * spread * (by_target / root * n_rows + by_target * root)
            else:
                shift, target_shift = np.zeros(len(lifted)), np.zeros_like(spread)
        found, doubt = self._deviations(shift, chain) if self.preparation.measures else (None, None)
        sound = np.isfinite(lifted).all(axis=0) & ~np.isnan(errors)
        errors = np.where(sound, errors, np.inf)  # of what overflowed nothing is known
        return Totals(
            n_rows=n_rows,
            weight=weight,
            mass=mass,
            mass_error=mass_error,
            lifted=lifted[:, :-1],
            lifted_error=errors[:-1],
            check=lifted[:, -1],
            check_error=float(errors[-1]),
            target_mass=target_mass,
            target_mass_error=target_mass_error,
            shift=shift,
            shift_error=shift_error,
            target_shift=target_shift,
            target_shift_error=target_shift_error,
            chain=chain,
            deviations=found,
            deviation_errors=doubt,
        )

    def _deviations(self, shift: Float64, chain: int) -> tuple[Float64, Float64]:
        """Return what columns deviate by, and how far that is off at most, relative to it."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            about = self._column_squares - self._weight * np.square(self._base() + shift)
            found: Float64 = np.sqrt(np.maximum(about, 0.0) / self._weight)
            # Squares are off by roundings of all that was summed up, and of what is taken off.
            doubt = 8 * chain * UNIT * self._column_squares + TINY * (self._weight + self.n_rows)
            return found, np.where(about > doubt, doubt / about, np.inf)

    def _base(self) -> Float64 | float:
        """Return what rows are summed up about, as prepared, beside ``Preparation.mean``."""
        return 0.0

    def _blur(self, tiny: float) -> float:
        """Bound what underflow does to rows and their mean, in the norm that weights rows."""
        if not self.n_rows:
            return 0.0
        root = math.sqrt(self._weight)
        return math.sqrt(len(self.vectors)) * (tiny / root * self.n_rows + tiny * 2 * root)

    def _lifting_errors(
        self, size: float, spread: Float64, rounding: float, blur: float, tiny: float
    ) -> Float64:
        """Bound the error of each lifted column, and of the one to check rows by."""
        n_features, n_targets, n_rows = len(self.vectors), len(self.signs), self.n_rows
        root, norms = math.sqrt(self._weight), column_norms(self.vectors)
        broad, signs = math.sqrt(n_features), np.abs(self.signs)
        taken, has_any = np.zeros_like(norms), np.asarray(self.vectors.any(axis=0))
        taken[self._at] = spread[self._from]
        has_any[self._at] |= self._has_targets[self._from]
        has_any = np.append(has_any, bool((self._has_targets & (signs > 0)).any()))
        tiny_of = np.where(has_any, tiny, 0.0)
        # What is lifted: its norm, its error relative to its parts, and products that underflow.
        together = float(signs @ spread)
        found = np.sqrt(self._squares + tiny_of[:-1] * (self._weight + n_rows))
        rest = np.append(found, together)
        product = (n_features + 8) * UNIT * size * norms + 4 * UNIT * taken
        parts = np.append(product, (n_targets + 4) * UNIT * together)
        terms = np.append(n_features + broad * norms, n_targets)
        # Times its weight w it may underflow, as if it had been off by TINY/w.
        by_weight = math.sqrt(n_rows) / math.sqrt(self._least)
        parts += tiny_of * root * terms + tiny_of * by_weight
        return (rounding + 2 * blur) * rest + size * parts + tiny_of * 2 * broad * (n_rows + 1)
