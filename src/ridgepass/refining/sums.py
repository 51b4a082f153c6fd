"""One more look at all rows: two thin products, and what tells whether they are the same rows."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ridgepass.kernels import (
    Float64,
    apply,
    apply_transposed,
    column_norms,
    is_sparse,
    unit_roundoff,
)

# Rows wait until there are about this many numbers of them: few enough to stay in the cache from
# the first product to the second.
BLOCK = 1 << 18
LONGEST = 512  # rows of a block, for the sake of rounding
# A sparse block costs SciPy a result of all features, however few of them its rows have.
SPARSE_ROWS = (1 << 10, 1 << 15)
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


class DensePass(Pass):
    """Rows are written out as they are to be multiplied, into a block that stays in the cache."""

    def __init__(
        self, preparation: Preparation, vectors: Float64, targets: Any, signs: Float64
    ) -> None:
        super().__init__(preparation, vectors, targets, signs)
        n_features = len(vectors)
        self.block_rows = min(max(8, BLOCK // n_features), LONGEST)
        self._rows: Float64 = np.empty((self.block_rows, n_features))
        self._targets: Float64 = np.empty((self.block_rows, len(signs)))
        self._weights: Float64 = np.empty(self.block_rows)
        self._filled = 0

    def add(self, rows: Any, targets: Float64, weights: Float64 | None) -> None:
        """Take in a batch of rows of positive weight."""
        start, n_rows = 0, rows.shape[0]
        while start < n_rows:
            stop = min(n_rows, start + self.block_rows - self._filled)
            here, there = slice(start, stop), slice(self._filled, self._filled + stop - start)
            self._prepare(rows[here], self._rows[there])
            np.subtract(targets[here], self.preparation.target_mean, out=self._targets[there])
            self._weights[there] = 1.0 if weights is None else weights[here]
            self._filled, start = there.stop, stop
            if self._filled == self.block_rows:
                self._flush()

    def _prepare(self, rows: Any, out: Float64) -> None:
        chunk = rows.toarray() if is_sparse(rows) else rows
        if self.preparation.centred and chunk.dtype == out.dtype:
            np.subtract(chunk, self.preparation.mean, out=out)
        else:  # to float64 first: NumPy is slow to subtract and convert at once
            out[:] = chunk
            if self.preparation.centred:
                out -= self.preparation.mean
        if self.preparation.scale is not None:
            out /= self.preparation.scale

    def _flush(self) -> None:
        if not self._filled:
            return
        rows, weights = self._rows[: self._filled], self._weights[: self._filled]
        products = apply((rows,), self.vectors)
        columns = self._columns(products, self._targets[: self._filled], weights)
        self._lifted += apply_transposed((rows,), columns)
        self._longest = max(self._longest, rows.size)
        if (weights == 1.0).all():  # BLAS takes a fifth of the time
            self._mass += float(np.vdot(rows, rows))
        else:
            self._mass += float(weights @ np.einsum("ij,ij->i", rows, rows))
        self._filled = 0

    def _lift(self) -> tuple[Float64, float, float]:
        return self._lifted, self._mass, math.sqrt(self._mass)


class SparsePass(Pass):
    """Rows are multiplied as they are; what centring and scaling do to them is done to the sums."""

    def __init__(
        self, preparation: Preparation, vectors: Float64, targets: Any, signs: Float64
    ) -> None:
        super().__init__(preparation, vectors, targets, signs)
        n_features = len(vectors)
        least, most = SPARSE_ROWS
        self.block_rows = min(max(least, n_features // 32), most)
        scale = preparation.scale
        self._scale = np.ones(n_features) if scale is None else scale
        self._mean = preparation.mean / self._scale
        self._scaled = self.vectors / self._scale[:, None]
        self._offset = self._mean @ self.vectors
        self._pieces: list[tuple[Any, Float64, Float64]] = []
        self._filled = 0

    def add(self, rows: Any, targets: Float64, weights: Float64 | None) -> None:
        """Take in a batch of rows of positive weight."""
        rows, start = sparse.csr_array(rows), 0
        by_row = np.ones(rows.shape[0]) if weights is None else weights
        while start < rows.shape[0]:
            stop = min(rows.shape[0], start + self.block_rows - self._filled)
            here = slice(start, stop)
            self._pieces.append((rows[here], targets[here], by_row[here]))
            self._filled, start = self._filled + stop - start, stop
            if self._filled == self.block_rows:
                self._flush()

    def _flush(self) -> None:
        if not self._filled:
            return
        parts = zip(*self._pieces, strict=True)
        rows, targets, weights = next(parts), np.concatenate(next(parts)), next(parts)
        block, by_row = sparse.vstack(rows, format="csr", dtype=np.float64), np.concatenate(weights)
        products = block @ self._scaled - self._offset
        columns = self._columns(products, targets - self.preparation.target_mean, by_row)
        self._lifted += block.T @ columns
        self._longest = max(self._longest, block.nnz)
        scaled = block.data / self._scale[block.indices]
        self._mass += float(np.repeat(by_row, np.diff(block.indptr)) @ np.square(scaled))
        self._pieces.clear()
        self._filled = 0

    def _lift(self) -> tuple[Float64, float, float]:
        lifted = self._lifted / self._scale[:, None] - np.outer(self._mean, self._sums)
        away = float(column_norms(self._mean[:, None])[0]) * math.sqrt(self._weight)
        size = math.sqrt(self._mass) + away
        # ‖A − 1·meanᵀ‖² = ‖A‖² − 2·sum(A)·mean + weight·‖mean‖², and sum(A) = sums + weight·mean.
        mass = self._mass - 2 * float(lifted[:, -1] @ self._mean) - away**2
        return lifted, max(mass, 0.0), size


def new_pass(
    sparse_rows: bool, preparation: Preparation, vectors: Float64, targets: Any, signs: Float64
) -> Pass:
    """Begin a pass over dense or sparse rows."""
    kind = SparsePass if sparse_rows else DensePass
    return kind(preparation, vectors, targets, signs)
