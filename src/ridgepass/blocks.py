"""Rows in the form in which sketches take them in."""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from ridgepass.kernels import (
    Float64,
    Part,
    Rows,
    add_product,
    apply,
    apply_transposed,
    is_sparse,
    panels,
    product,
)
from ridgepass.scaling import Rescaling
from ridgepass.threads import each

# Of images of sparse rows, so many numbers at a time; all columns if this share has an entry.
SPARSE_NUMBERS, MANY_COLUMNS = 1 << 18, 0.25
LIFT_PANEL = 1024  # columns at a time, so that what is added to them stays in the cache


@dataclass(frozen=True)
class Block:
    """The rows diag(factors)·(rows − 1·meanᵀ) and, below them, shifts; and their targets.

    Centring and weighting stay implicit where carrying them out would cost a copy (a query that
    must leave a pending block as it is) or fill sparse rows in.

    Attributes
    ----------
    rows : ndarray or csc_array of shape (n_stored, n_features)
        Stored rows; a view, valid until the next block.
    targets : ndarray of shape (number of rows in all, n_targets)
        One each, as centred and weighted as the rows.
    factors : ndarray of shape (n_stored,), optional
        Roots of the weights.
    mean : ndarray of shape (1, n_features), optional
        What is subtracted from every stored row.
    shift : ndarray of shape (1, n_features), optional
        One more row.
    n_shifts : int
        How many rows at the end stand for the distance of means rather than for data: ``shift``, or
        without it the last of ``rows``, to which mean and factors do not apply.
    rescaling : Rescaling, optional
        How the columns of everything before this block change first.
    whole : bool
        Whether ``mean`` is the weighted mean of these very rows, not of more.
    squares : ndarray of shape (n_features,), optional
        The squares of each column, if at hand.
    """

    rows: Part
    targets: Float64
    factors: Float64 | None = None
    mean: Rows | None = None
    shift: Rows | None = None
    n_shifts: int = 0
    rescaling: Rescaling | None = None
    whole: bool = True
    squares: Float64 | None = None

    @classmethod
    def of(cls, rows: Part) -> Self:
        """Return rows as they are, without targets."""
        return cls(rows, np.empty((rows.shape[0], 0)))

    def __len__(self) -> int:
        return int(self.rows.shape[0]) + (self.shift is not None)

    @property
    def n_rows(self) -> int:
        """Rows that stand for data."""
        return len(self) - self.n_shifts

    @property
    def _n_data(self) -> int:
        """Stored rows to which mean and factors apply."""
        stored = int(self.rows.shape[0])
        return stored if self.shift is not None else stored - self.n_shifts

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is stored: ``fold(vstack(parts))`` are the rows."""
        below = [row for row in (self.mean, self.shift) if row is not None]
        return (self.rows, np.vstack(below)) if below else (self.rows,)

    @property
    def is_implicit(self) -> bool:
        """Whether the rows differ from what is stored."""
        return self.mean is not None or self.factors is not None

    def balanced(self) -> "Block":
        """Return the same rows, with large factors moved into them where squares would underflow.

        Products of stored rows lose what is too small for their type before they are multiplied by
        the factors. A power of two costs no rounding.
        """
        if self.factors is None or not self.rows.shape[0]:
            return self
        factor, info = float(self.factors.max()), np.finfo(self.rows.dtype)
        n_products = self.rows.shape[0] * self.rows.shape[1]
        lost = math.sqrt(float(info.smallest_subnormal) * n_products / float(info.eps))
        sizes = _row_maxima(self.rows[: self._n_data])
        if factor <= 1.0 or (sizes * self.factors).max() > lost * factor:
            return self
        entry = max(float(sizes.max()), float(info.tiny))
        power = min(math.frexp(factor)[1], info.maxexp // 2 - max(math.frexp(entry)[1], 0))
        unit = self.rows.dtype.type(2.0**power)
        mean = None if self.mean is None else self.mean * unit
        return replace(
            self, rows=self.rows * unit, mean=mean, factors=np.ldexp(self.factors, -power)
        )

    def in_units(self, ratio: Float64) -> "Block":
        """Return the same rows with their columns multiplied, written out anew."""
        rows = self.rows.multiply(ratio).tocsc() if is_sparse(self.rows) else self.rows * ratio
        mean, shift = (None if row is None else row * ratio for row in (self.mean, self.shift))
        return replace(self, rows=rows, mean=mean, shift=shift, squares=None)

    def offset_mass(self) -> float:
        """Return the squares that implicit centring takes off the rows."""
        if self.mean is None:
            return 0.0
        weight = self._n_data if self.factors is None else float(self.factors @ self.factors)
        mean = self.mean.astype(np.float64)
        return weight * float(np.vdot(mean, mean))

    def fold(self, products: Float64) -> Float64:
        """Turn products with ``parts`` (one row each) into products with the block's rows."""
        if not self.is_implicit:
            return products
        n_stored, n_data = self.rows.shape[0], self._n_data
        inside, shifts, below = np.split(products, [n_data, n_stored])
        if self.mean is not None:
            inside, below = inside - below[0], below[1:]
        if self.factors is not None:
            inside = self.factors[:, None] * inside
        return np.vstack([inside, shifts, below])

    def unfold(self, mix: Float64) -> Float64:
        """Turn a mix of the block's rows (one column each) into one of ``parts``."""
        if not self.is_implicit:
            return mix
        n_stored, n_data = self.rows.shape[0], self._n_data
        inside, shifts, below = np.split(mix, [n_data, n_stored], axis=1)
        if self.factors is not None:
            inside = inside * self.factors
        if self.mean is not None:
            below = np.hstack([-inside.sum(axis=1, keepdims=True), below])
        return np.hstack([inside, shifts, below])

    def apply(self, vectors: Rows) -> Float64:
        """Return rows·vectors in float64."""
        return self.fold(apply(self.parts, vectors))

    def lift(self, weights: Float64) -> Float64:
        """Return rowsᵀ·weights in float64."""
        return apply_transposed(self.parts, self.unfold(weights.T).T)

    def cross(self) -> Float64:
        """Return rowsᵀ·targets in float64."""
        return self.lift(self.targets)

    def parted(self, n_rows: int) -> "tuple[Block, Block | None]":
        """Return the first so many stored rows and all others, if any; shifts are with the last."""
        if self._n_data <= n_rows:
            return self, None
        by_rows = self.rows.tocsr() if is_sparse(self.rows) else self.rows
        parts = [by_rows[:n_rows], by_rows[n_rows:]]
        factors = self.factors
        first, rest = (
            replace(
                self,
                rows=rows.tocsc() if is_sparse(rows) else rows,
                targets=self.targets[span],
                factors=None if factors is None else factors[span],
                whole=False,
                squares=None,
            )
            for rows, span in zip(parts, (slice(n_rows), slice(n_rows, None)), strict=True)
        )
        return replace(first, shift=None, n_shifts=0), rest

    def products(self, points: Rows) -> Rows:
        """Return rows·pointsᵀ in the dtype of the points, of shape (n_points, n_features).

        Where the mean is that of these rows, it is taken off their products: no look at it, which
        would cost as much as many sparse rows.
        """
        found: Rows = self.rows @ points.T if is_sparse(self.rows) else product(self.rows, points)
        inside = found[: self._n_data]
        if self.mean is not None and self.whole:
            weights = None if self.factors is None else np.square(self.factors)
            centre = np.average(inside.astype(np.float64, copy=False), axis=0, weights=weights)
            inside -= centre.astype(found.dtype)
        elif self.mean is not None:
            inside -= self.mean.astype(points.dtype) @ points.T
        if self.factors is not None:
            np.multiply(inside, self.factors[:, None], out=inside, casting="same_kind")
        if self.shift is None:
            return found
        return np.vstack([found, self.shift.astype(points.dtype) @ points.T])

    def add_images(self, out: Rows, products: Rows) -> None:
        """Add productsᵀ·rows to ``out``, of shape (n_points, n_features), in its own dtype.

        ``products`` are this block's own. Of sparse rows only the columns that have an entry are
        touched.
        """
        stored, data, target = self.rows.shape[0], self._n_data, out.T
        weights = products[:stored]
        if self.factors is not None:
            weights = weights.copy()
            np.multiply(
                weights[:data], self.factors[:, None], out=weights[:data], casting="same_kind"
            )
        if is_sparse(self.rows):
            self._add_sparse(target, np.ascontiguousarray(weights))
        else:
            shift = None if self.shift is None else self.shift[0].astype(out.dtype)
            add_product(out, weights, self.rows, products[stored:], shift)
        if self.mean is not None and not self.whole:  # else these weights sum up to zero
            target -= self.mean.T * weights[:data].sum(axis=0)
        if self.shift is not None and is_sparse(self.rows):
            target += self.shift.T * products[stored:]

    def _add_sparse(self, target: Rows, weights: Rows) -> None:
        """Add rowsᵀ·weights to ``target`` for sparse rows, some columns at a time."""
        rows = self.rows

        def add(span: slice) -> None:
            starts = rows.indptr[span.start : span.stop + 1]
            first, last = starts[0], starts[-1]
            (columns,) = np.nonzero(np.diff(starts))
            where: Any = span
            if len(columns) < MANY_COLUMNS * (span.stop - span.start):
                starts, where = np.append(starts[columns], last), span.start + columns
            entries = rows.data[first:last], rows.indices[first:last], starts - first
            across = sparse.csr_array(entries, shape=(len(starts) - 1, rows.shape[0]))
            target[where] += across @ weights

        each(add, panels(len(target), max(256, SPARSE_NUMBERS // weights.shape[1])))

    def column_squares(self) -> Float64:
        """Return the squares of each column."""
        if self.squares is not None:
            return self.squares
        if not is_sparse(self.rows):
            total = np.empty(self.rows.shape[1])
            for span in panels(len(total), LIFT_PANEL):
                part = self.rows[:, span].astype(np.float64)
                inside = part[: self._n_data]
                if self.mean is not None:
                    inside -= self.mean[:, span]
                if self.factors is not None:
                    inside *= self.factors[:, None]
                total[span] = np.einsum("ij,ij->j", part, part)
        else:
            rows, n_features = self.rows, self.rows.shape[1]
            weights = np.ones(rows.shape[0]) if self.factors is None else np.square(self.factors)
            by_entry = weights[rows.indices]
            column = np.repeat(np.arange(n_features), np.diff(rows.indptr))
            data = rows.data.astype(np.float64)
            total = np.bincount(column, by_entry * np.square(data), n_features)
            if self.mean is not None:
                mean = self.mean[0].astype(np.float64)
                sums = np.bincount(column, by_entry * data, n_features)
                total = np.maximum(total - mean * (2 * sums - mean * weights.sum()), 0.0)
        if self.shift is not None:
            total = total + np.square(self.shift[0].astype(np.float64))
        return total

    def dense(self) -> Float64:
        """Return the rows written out in float64, as a view where nothing is implicit."""
        rows = self.rows.toarray() if is_sparse(self.rows) else self.rows
        if len(self.parts) > 1:
            rows = np.vstack([rows, *self.parts[1:]])
        return self.fold(rows.astype(np.float64, copy=False))


def _row_maxima(rows: Part) -> Float64:
    """Return the largest absolute value in each row."""
    if is_sparse(rows):
        return np.asarray(abs(rows).max(axis=1).todense(), dtype=np.float64).reshape(-1)
    maxima: Float64 = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)
    return maxima
