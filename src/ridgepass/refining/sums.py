"""One more look at all rows: two thin products, and what tells whether they are the same rows."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgepass.kernels import Float64, column_norms, unit_roundoff

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
    """

    mean: Float64
    target_mean: Float64
    scale: Float64 | None
    centred: bool


@dataclass(frozen=True, eq=False)
class Totals:
    """What a pass has summed up, of rows and targets centred on their exact means.

    Attributes
    ----------
    n_rows, weight, mass : int, float, float
        Rows, the sum of their weights, and ‖A‖_F².
    mass_error : float
        Bounds the rounding of ``mass``.
    lifted : ndarray of shape (n_features, n_vectors)
        Aᵀ(b − Av) for each vector v, without b where that was not asked for.
    lifted_error : ndarray of shape (n_vectors,)
        Bounds the rounding of ``lifted``.
    check, check_error : ndarray of shape (n_features,), float
        Aᵀ(b·signs), and its rounding.
    target_mass : ndarray of shape (n_targets,)
        ‖b‖².
    shift, shift_error : ndarray of shape (n_features,), float
        How far the mean is from ``Preparation.mean``, divided by the scale, and the rounding of
        that.
    target_shift, target_shift_error : ndarray of shape (n_targets,)
        The same for the targets.
    chain : int
        The longest sum, for rounding.
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
    shift: Float64
    shift_error: float
    target_shift: Float64
    target_shift_error: Float64
    chain: int


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
        self._lifted = np.zeros((n_features, n_vectors + 2))
        self._sums = np.zeros(n_vectors + 2)
        self._squares = np.zeros(n_vectors)
        self._target_sums = np.zeros(len(signs))
        self._target_squares = np.zeros(len(signs))
        self._set_up()

    @abstractmethod
    def _set_up(self) -> None:
        """Settle the length of a block, and make room for one."""

    @abstractmethod
    def add(self, rows: Any, targets: Float64, weights: Float64 | None) -> None:
        """Take in a batch of rows of positive weight."""

    @abstractmethod
    def _flush(self) -> None:
        """Sum up the rows that wait."""

    @abstractmethod
    def _lift(self) -> tuple[Float64, float, float]:
        """Return Aᵀ times all columns, ‖A‖_F², and at least ‖A‖_F as rounding has it."""

    def _columns(self, products: Float64, targets: Float64, weights: Float64) -> Float64:
        """Sum up a block's targets and return the columns to be lifted."""
        rest = -products
        rest[:, self._at] += targets[:, self._from]
        self.n_rows += len(rest)
        self._n_blocks += 1
        self._weight += float(weights.sum())
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
        lifted, mass, size = self._lift()
        weight, n_features = self._weight, len(lifted)
        sums, lifted, shift = self._sums[:-1], lifted[:, :-1], lifted[:, -1]
        target_mass, target_shift = self._target_squares, self._target_sums
        squares, root = self._squares, math.sqrt(weight)
        chain = self.block_rows + self._n_blocks + 8
        spread = np.sqrt(target_mass)
        # As sums about a place near the means: each term of the sums is one of these at most.
        rest = np.sqrt(squares)
        product = (n_features + 8) * UNIT * size * column_norms(self.vectors)
        taken = np.zeros_like(rest)
        taken[self._at] = spread[self._from]
        rounding = 4 * chain * UNIT * size
        lifted_error = rounding * rest + size * (product + 4 * UNIT * taken)
        check_error = rounding * float(np.abs(self.signs) @ spread)
        target_shift_error = np.zeros_like(spread)
        shift_error = 0.0
        if self.preparation.centred and weight > 0:
            shift, target_shift = shift / weight, target_shift / weight
            lifted = lifted - np.outer(shift, sums)
            mass = max(mass - weight * float(shift @ shift), 0.0)
            target_mass = np.maximum(target_mass - weight * np.square(target_shift), 0.0)
            shift_error = rounding / root
            target_shift_error = 4 * chain * UNIT * spread / root
        else:
            shift, target_shift = np.zeros(n_features), np.zeros_like(spread)
        return Totals(
            n_rows=self.n_rows,
            weight=weight,
            mass=mass,
            mass_error=(4 * chain + self._longest) * UNIT * size**2,
            lifted=lifted[:, :-1],
            lifted_error=lifted_error,
            check=lifted[:, -1],
            check_error=check_error,
            target_mass=target_mass,
            shift=shift,
            shift_error=shift_error,
            target_shift=target_shift,
            target_shift_error=target_shift_error,
            chain=chain,
        )
