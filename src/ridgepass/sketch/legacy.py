"""Model files of ``method="anchored"``, which was before "tracked": they predict as they did."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ridgepass.blocks import Block
from ridgepass.kernels import DOUBLE, Float64, stacked_gram, unit_roundoff
from ridgepass.sketch.base import LowRank, inverse_roots
from ridgepass.sketch.frequent_directions import FrequentDirections
from ridgepass.sketch.shrink import Plan, Shrink
from ridgepass.sketch.tracked_covariance import (
    LEAST_OUTSIDE,
    Followed,
    MixedRows,
    TrackedCovariance,
)
from ridgepass.snapshot import Kept, array, entry, number

TAIL = 0.2  # share of the kept directions that a shrink took from


class AnchoredFrequentDirections(FrequentDirections):
    """A sketch B = ΣV with an account L ≈ V(AᵀA − BᵀB)Vᵀ of its losses, and one anchor a target.

    It is read, and neither learns nor merges. Its K̂ = Vᵀ(Σ² + L)V + τ(I − VᵀV) is a tracked one
    with the basis V, on which it took K̂ for AᵀA.
    """

    KEEPS: ClassVar[tuple[str, ...]] = (*FrequentDirections.KEEPS, "losses")
    read_only: ClassVar[bool] = True

    def __init__(
        self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int = 0
    ) -> None:
        super().__init__(n_features, sketch_size, dtype, seed)
        self.losses: Float64 = np.zeros((sketch_size, sketch_size))
        self.tail_share: float | None = None
        self.point = self.image = np.zeros((n_features, 1))

    @classmethod
    def shapes(cls, n_features: int, sketch_size: int) -> Kept:
        """Return the shapes of the arrays in a snapshot."""
        return super().shapes(n_features, sketch_size) | {"losses": (sketch_size, sketch_size)}

    def snapshot(self) -> Kept:
        """Return what the sketch holds as plain data."""
        return super().snapshot() | {"tail_share": self.tail_share}

    def anchor(self) -> Kept:
        """Return what lay beside the sketch."""
        return {"point": self.point, "image": self.image}

    def restore(self, kept: Kept, n_targets: int = 0) -> None:
        """Take up a snapshot in a fresh sketch, or raise ValueError."""
        share = entry(kept, "tail_share")
        self.tail_share = None if share is None else number(share, "tail_share")
        super().restore(kept, n_targets)

    def take_anchor(self, kept: Any, n_targets: int) -> None:
        """Take up the anchor that lay beside the sketch."""
        shape = self.n_features, n_targets
        double = np.dtype(np.float64)
        self.point = array(entry(kept, "point"), "point", double, shape)
        self.image = array(entry(kept, "image"), "image", double, shape)

    def covariance(  # type: ignore[override]
        self, block: Block, columns: Float64 | None = None
    ) -> "AnchoredCovariance":
        """Return K̂ as if ``block`` were the last."""
        plan, losses = self._plan(block, columns)
        low = self._covariance(plan, block, DOUBLE, columns)
        image = self.image + block.lift(block.apply(self.point)) if len(block) else self.image
        point, image = in_units(columns, self.point, image)
        return AnchoredCovariance(low, losses, self._tail(plan.removed), point, image)

    def _plan(self, block: Block, columns: Float64 | None) -> tuple[Plan, Float64]:
        """Work out what a block will change, and what will have been lost."""
        size, exact = self.sketch_size, self.dtype != np.float64
        if not len(block) and not exact and columns is None:
            return self._standing(), self.losses
        if not len(block):
            plan = self._measured(stacked_gram((self.rows,), exact=True, columns=columns))
            return plan, carried(self.losses, self.squares, plan.mix, plan.squares)
        gram, cancelled = self.gram(block, exact=exact, columns=columns)
        edges = [*range(size, size + max(block.n_rows, 1), size), len(gram)]
        joint = gram[: edges[1], : edges[1]]
        step = self.shrink(joint)
        losses = self._account(step, joint, self.losses, 0.0)
        plan = self.plan_of(step, cancelled)
        for start, stop in pairwise(edges[1:]):
            new = slice(start, stop)
            joint = np.diag(np.append(plan.squares, np.zeros(stop - start)))
            joint[size:, size:] = gram[new, new]
            joint[size:, :size] = gram[new, :start] @ plan.mix.T
            joint[:size, size:] = joint[size:, :size].T
            step = self.shrink(joint)
            losses = self._account(step, joint, losses, plan.removed)
            plan = plan.then(self.plan_of(step))
        return plan, losses

    def _account(self, step: Shrink, gram: Float64, losses: Float64, removed: float) -> Float64:
        """Return CLCᵀ + τ(I − CCᵀ) with C = V'Vᵀ, and what the shrink takes."""
        size = self.sketch_size
        kept = np.maximum(step.values[:size], 0.0)
        unit, tail = unit_roundoff(self.dtype), self._tail(removed)
        old = inverse_roots(np.maximum(np.diagonal(gram)[:size], 0.0), unit)
        cosines = np.sqrt(kept)[:, None] * step.vectors[:size, :size].T * old
        lost: Float64 = cosines @ (losses - tail * np.eye(size)) @ cosines.T
        lost[np.diag_indices(size)] += tail + kept - step.squares
        return lost

    def _keep(self, values: Float64, cut: float) -> Float64:
        n_shrunk = max(1, round(TAIL * self.sketch_size))
        squares = np.maximum(values, 0.0)
        squares[-n_shrunk:] = np.maximum(squares[-n_shrunk:] - cut, 0.0)
        return squares

    def _tail(self, removed: float) -> float:
        """Return τ where no anchor has told it."""
        share = 0.5 if self.tail_share is None else min(self.tail_share, 1.0)
        return share * (self.removed + removed)


class AnchoredCovariance(TrackedCovariance):
    """That K̂, and the sketch beneath, of which more is certain."""

    def __init__(
        self, low: LowRank, losses: Float64, tail: float, point: Float64, image: Float64
    ) -> None:
        self.low = self.certain = low
        self.losses, self.own_tail, self.point, self.image = losses, tail, point, image
        roots = inverse_roots(low.squares, low.unit)
        (there,) = np.nonzero(roots)
        middle = (losses + np.diag(low.squares))[np.ix_(there, there)]
        basis = (roots[:, None] * low.mix)[there]
        unit = float(np.ldexp(1.0, int(np.frexp(np.diagonal(middle).max(initial=1.0))[1])))
        super().__init__(
            Followed(
                basis=MixedRows(low.rows, basis, low.columns),
                image=MixedRows(low.rows, middle @ basis / unit, low.columns),
                middle=middle / unit,
                starts=point,
                start_images=image / unit,
                diagonal=np.full(len(point), low.mass / len(point) / unit),
                rank=len(point),
                unit=unit,
                tail=tail / unit,
                largest_tail=low.largest_loss / unit,
            )
        )

    def solving(self, cross: Float64) -> Callable[[float], Float64]:
        """Return what gives coefficients as they were: with a tail that depended on alpha."""
        followed = self.followed
        none = np.zeros_like(followed.starts)

        def solve(alpha: float) -> Float64:
            gamma = alpha / followed.unit
            image = followed.start_images + gamma * followed.starts
            steps = self.line_search(cross / followed.unit, image)
            rest = cross / followed.unit - steps * image
            tail = self._tail_for(gamma)
            plain = TrackedCovariance(replace(followed, starts=none, start_images=none, tail=tail))
            return steps * followed.starts + plain._inverse(gamma)(rest)

        return solve

    def _tail_for(self, gamma: float) -> float:
        """Return what solves best for u = (I − P)w: (E + γI)u =: v, and τ + γ = ‖v‖²/(u·v)."""
        followed = self.followed
        outside = self._out(followed.starts)
        images = self._out(followed.start_images - self._low(followed.starts)) + gamma * outside
        least = LEAST_OUTSIDE * float(np.square(followed.starts).sum())
        along = float((outside * images).sum())
        if not float(np.square(outside).sum()) > least or not along > 0:
            return self._mean_tail
        found = float(np.square(images).sum()) / along - gamma
        return min(max(found, 0.0), self._left, followed.largest_tail)

    def rescaled(self, columns: Float64, column_mass: Float64) -> "AnchoredCovariance":
        """Return the same for A·diag(columns)."""
        old, new = self.low, self.low.rescaled(columns, column_mass)
        # new.mix is turn·old.mix, whose rows are orthogonal in the metric of the stored rows.
        turn = np.asarray(np.linalg.lstsq(old.mix.T, new.mix.T, rcond=None)[0].T, np.float64)
        losses = carried(self.losses, old.squares, turn, new.squares)
        point, image = in_units(columns, self.point, self.image)
        tail = self.own_tail * float(np.square(columns).mean())
        return AnchoredCovariance(new, losses, tail, point, image)


def in_units(columns: Float64 | None, point: Float64, image: Float64) -> tuple[Float64, Float64]:
    """Return an anchor and its image for A·diag(columns)."""
    return (
        (point, image) if columns is None else (point / columns[:, None], image * columns[:, None])
    )


def carried(losses: Float64, squares: Float64, turn: Float64, new_squares: Float64) -> Float64:
    """Carry L over to rows S' = turn·S·D, with D a change of columns that S' made orthogonal."""
    # V'DVᵀ = Σ'·turn·Σ⁻¹, since turn·SD²Sᵀ = Σ'²·turn.
    change = np.sqrt(new_squares)[:, None] * turn * inverse_roots(squares)
    moved: Float64 = change @ losses @ change.T
    return moved
