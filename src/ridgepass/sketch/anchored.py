"""Frequent Directions that shrink only their tail and keep account of what they lost where."""

from typing import Any, ClassVar, Self

import numpy as np

from ridgepass.blocks import Block
from ridgepass.kernels import Float64, unit_roundoff
from ridgepass.kernels import gram as inner_products
from ridgepass.sketch.base import LowRank, faint, inverse_roots
from ridgepass.sketch.frequent_directions import FrequentDirections
from ridgepass.sketch.shrink import Plan, Shrink
from ridgepass.snapshot import Kept, entry, number

# Share of the kept directions that a shrink takes from. A tenth did a little better on stationary
# streams and worse on streams that change in blocks, two fifths the other way round.
TAIL = 0.2


class AnchoredFrequentDirections(FrequentDirections):
    """K̂ = Vᵀ(Σ² + L)V + τ(I − VᵀV), the sketch that an anchor leans on.

    E = AᵀA − BᵀB is what the shrinks removed, 0 ⪯ E ⪯ Δ·I. ``losses`` is L ≈ VEVᵀ. τ, for
    directions outside the sketch, is ``tail_share`` of Δ once an anchor has measured it, and before
    that a half, as in RFD: what the trace leaves for them on average is far too little for the
    directions of Aᵀb where rows are fewer than columns. Shrinking only the last fifth of the kept
    directions is Desai, Ghashami & Phillips' (2016) parameterised FD: Δ is still the sum of all
    cuts.
    """

    KEEPS: ClassVar[tuple[str, ...]] = (*FrequentDirections.KEEPS, "losses")

    def __init__(
        self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int = 0
    ) -> None:
        super().__init__(n_features, sketch_size, dtype, seed)
        self.losses: Float64 = np.zeros((sketch_size, sketch_size))
        self.tail_share: float | None = None

    def finished(self) -> LowRank:
        """Return K̂ of all blocks so far, good enough to move an anchor.

        That need not be measured as a query is, but where float32 leaves directions in doubt.
        """
        nothing = Block.of(self.rows[:0])
        if (faint(self.squares, self._unit) & (self.squares > 0)).any():
            return self.covariance(nothing)
        return self._covariance(self._standing(), nothing, self._unit)

    def learn_tail(self, tail: float) -> None:
        """Remember what an anchor has just told about directions outside the sketch."""
        self.tail_share = tail / self.removed if self.removed > 0 else None

    def merge(self, other: Self) -> None:
        """Stack and shrink; what the other lost adds in the directions that are kept."""
        mine, theirs = self._known_tail(), other._known_tail()
        super().merge(other)
        shared = inner_products(self.rows, other.rows, exact=True)
        shared *= inverse_roots(self.squares, self._unit)[:, None]
        shared *= inverse_roots(other.squares, other._unit)
        self.losses = self.losses + _seen_from(shared, other.losses, theirs)
        self.learn_tail(mine + theirs)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return super().nbytes + self.losses.nbytes

    @classmethod
    def shapes(cls, n_features: int, sketch_size: int) -> Kept:
        """Return the shapes of the arrays in a snapshot."""
        return super().shapes(n_features, sketch_size) | {"losses": (sketch_size, sketch_size)}

    def snapshot(self) -> Kept:
        """Return what the sketch holds as plain data, valid until it changes."""
        share = self.tail_share
        return super().snapshot() | {"tail_share": None if share is None else float(share)}

    def restore(self, kept: Kept, n_targets: int = 0) -> None:
        """Take up a snapshot in a fresh sketch, or raise ValueError."""
        share = entry(kept, "tail_share")
        self.tail_share = None if share is None else number(share, "tail_share")
        super().restore(kept, n_targets)

    def _keep(self, values: Float64, cut: float) -> Float64:
        n_shrunk = max(1, round(TAIL * self.sketch_size))
        squares = np.maximum(values, 0.0)
        squares[-n_shrunk:] = np.maximum(squares[-n_shrunk:] - cut, 0.0)
        return squares

    def _account(self, step: Shrink, gram: Float64, before: Plan) -> Float64:
        size = self.sketch_size
        kept = np.maximum(step.values[:size], 0.0)
        old = inverse_roots(np.maximum(np.diagonal(gram)[:size], 0.0), self._unit)
        # C = V'Vᵀ = Σ'⁻¹Uᵀ(gram's first columns)Σ⁻¹, and Uᵀ·gram = Σ'²Uᵀ.
        cosines = np.sqrt(kept)[:, None] * step.vectors[:size, :size].T * old
        lost = _seen_from(cosines, before.accounted, self._tail(before))
        lost[np.diag_indices(size)] += kept - step.squares
        return lost

    def _tail(self, plan: Plan) -> float:
        removed = self.removed + plan.removed
        if self.tail_share is not None:
            return min(self.tail_share, 1.0) * removed
        return removed / 2

    def _known_tail(self) -> float:
        return self._tail(self._standing())

    @property
    def _unit(self) -> float:
        return unit_roundoff(self.dtype)


def _seen_from(cosines: Float64, losses: Float64, tail: float) -> Float64:
    """Return CLCᵀ + τ(I − CCᵀ): L of some directions in terms of others."""
    seen = losses.copy()
    seen[np.diag_indices_from(seen)] -= tail
    seen = cosines @ seen @ cosines.T
    seen[np.diag_indices_from(seen)] += tail
    return seen
