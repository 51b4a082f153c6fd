"""A basis Ω and its image Y turned to other directions V and to what K̂ makes of them, in place."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ridgepass.kernels import Float64, Rows, panels
from ridgepass.sketch.tracked_covariance import MixedRows, panel_width
from ridgepass.threads import each, summed


@dataclass(frozen=True)
class NewRows:
    """A few rows X that V are made of too, though K̂ has none of them.

    Attributes
    ----------
    rows : MixedRows
        factor·X, found anew for every panel: written out they would be as large as Ω.
    factor : float
        So that no product is out of range.
    by : ndarray of shape (size, n_rows)
        What makes V of ``rows``, beside what makes it of Y.
    taken : ndarray of shape (size, n_rows)
        VXᵀ.
    """

    rows: MixedRows
    factor: float
    by: Float64
    taken: Float64


@dataclass(frozen=True)
class Turn:
    """V = by·Y, or with new rows by·Y + new.by·new.rows: eigenvectors of YᵀM⁻¹Y + XᵀX.

    Attributes
    ----------
    values : ndarray of shape (size,)
        Their eigenvalues.
    by : ndarray of shape (size, size)
        What makes V of Y.
    along : ndarray of shape (size, size)
        VΩᵀ.
    new : NewRows, optional
        Rows X.
    """

    values: Float64
    by: Float64
    along: Float64
    new: NewRows | None = None

    def carry_out(
        self, basis: Rows, image: Rows, tails: float | Float64, kept: Float64 | None = None
    ) -> Float64:
        """Set Ω to V and Y to K̂V, with T as the tail; return VK̂Vᵀ.

        ``kept`` is set to the diagonal of YᵀM⁻¹Y + XᵀX as far as V has it.
        """
        walk = _Walk(self, basis, image)
        if isinstance(tails, float):
            outside = tails * (np.eye(len(self.along)) - self.along @ self.along.T)
            walk.with_scalar_tail(tails, kept)
        else:
            own_tails = tails.astype(basis.dtype)
            within, outside = walk.outside(own_tails)
            walk.with_diagonal_tail(own_tails, within, kept)
        middle = np.diag(self.values) + outside
        if self.new is not None:
            middle -= self.new.taken @ self.new.taken.T
        half: Float64 = (middle + middle.T) / 2
        return half


class _Walk:
    """A turn in the arrays' own dtype, some columns at a time."""

    def __init__(self, turn: Turn, basis: Rows, image: Rows) -> None:
        self.basis, self.image, self.dtype = basis, image, basis.dtype
        # Products lie as the arrays do: else each would be transposed on its way into them.
        self.order: Literal["C", "F"] = "F" if basis.strides[0] < basis.strides[1] else "C"
        self.spans = list(panels(basis.shape[1], panel_width(len(basis))))
        # Of float32 rows near 1e-20, Y is so small that what divides by it would overflow.
        largest = float(np.abs(turn.by).max(initial=0.0))
        in_range = largest < math.sqrt(np.finfo(self.dtype).max)
        self.unit = 1.0 if in_range else math.ldexp(1.0, -math.frexp(largest)[1])
        by = self.unit * turn.by
        self.values, self.by, self.along = self._own(turn.values, by, turn.along)
        self.new = None if turn.new is None else turn.new.rows.walk()
        if turn.new is not None:
            self.new_by, self.taken = self._own(turn.new.by, turn.new.taken / turn.new.factor)

    def _own(self, *arrays: Rows) -> list[Rows]:
        return [array.astype(self.dtype) for array in arrays]

    def _product(self, by: Rows, rows: Rows) -> Rows:
        out = np.empty((len(by), rows.shape[1]), self.dtype, self.order)
        return np.matmul(by, rows, out=out)

    def new_rows(self, span: slice) -> Rows | None:
        """Return factor·X, if there are new rows."""
        if self.new is None:
            return None
        rows: Rows = self.new.at(span).astype(self.dtype, copy=False)
        return rows

    def turned(self, span: slice, new: Rows | None) -> Rows:
        """Return V, given new rows."""
        image = self.image[:, span]
        if self.unit != 1.0:
            image = image / self.dtype.type(self.unit)
        found = self._product(self.by, image)
        if new is not None:
            found += self._product(self.new_by, new)
        return found

    def outside(self, tails: Rows) -> list[Float64]:
        """Return V(I − P)TΩᵀ and V(I − P)T(I − P)Vᵀ; Y becomes V."""
        roots = np.sqrt(tails)

        def measure(span: slice) -> Rows:
            turned, before = self.turned(span, self.new_rows(span)), self.basis[:, span]
            self.image[:, span] = turned
            # Its difference, not that of its squares: where T is large it may be next to nothing.
            turned -= self._product(self.along, before)
            turned *= roots[span]
            square = turned @ turned.T
            turned *= roots[span]
            return np.stack([turned @ before.T, square])

        return list(summed(measure, self.spans, 2 * len(self.along) ** 2))

    def with_scalar_tail(self, tail: float, kept: Float64 | None) -> None:
        """Set Ω and Y: K̂V is (values + τ)·V − τ·VΩᵀΩ, less what X has in it."""
        factors, by = self._own(self.values + tail, -tail * self.along)

        def turn(span: slice) -> None:
            image, new = self._product(by, self.basis[:, span]), self.new_rows(span)
            if new is not None:
                image -= self._product(self.taken, new)
            self._put(span, self.turned(span, new), image, factors, kept)

        each(turn, self.spans)

    def with_diagonal_tail(self, tails: Rows, within: Float64, kept: Float64 | None) -> None:
        """Set the same, Y being V: K̂V is values·V + V(I − P)T − V(I − P)TΩᵀΩ, less X's."""
        size, both = len(within), np.vstack([self.along, *self._own(within)])

        def turn(span: slice) -> None:
            turned, found = self.image[:, span], self._product(both, self.basis[:, span])
            image, inside = found[:size], found[size:]
            np.subtract(turned, image, out=image)
            image *= tails[span]
            image -= inside
            new = self.new_rows(span)
            if new is not None:
                image -= self._product(self.taken, new)
            self._put(span, turned, image, self.values, kept)

        each(turn, self.spans)

    def _put(
        self, span: slice, turned: Rows, image: Rows, factors: Rows, kept: Float64 | None
    ) -> None:
        if kept is not None:
            kept[span] = self.values @ np.square(turned)
        self.basis[:, span] = turned
        turned *= factors[:, None]
        turned += image
        self.image[:, span] = turned
