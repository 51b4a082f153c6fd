"""Solutions that start from an anchor and leave only the rest to the sketch."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ridgepass.anchor import Anchor
from ridgepass.kernels import Float64, column_norms, top_eigenpairs, unit_roundoff
from ridgepass.sketch import LowRank
from ridgepass.sketch.base import inverse_roots
from ridgepass.solve.outside import Outside

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
# Roundings of the largest eigenvalue below which no anchor is kept.
LEAST_RIDGE = 1e3


class AnchoredSolver:
    """x̂ = t·w + δ with δ = (K̂ + γI)⁻¹(c − t(h + γw)), for any number of alphas γ.

    K̂ = Qᵀ·diag(values)·Q + tail·(I − QᵀQ), where the rows of Q are orthonormal: they diagonalise
    Σ² + L. t is the exact line search along the anchor, t = w·c / w·(h + γw).

    Parameters
    ----------
    covariance : LowRank
        A sketch that keeps account of its losses.
    cross : ndarray of shape (n_features, n_targets)
        Aᵀb exactly.
    anchor : Anchor
        w and h, with all rows in h that are in the sketch.
    """

    def __init__(self, covariance: LowRank, cross: Float64, anchor: Anchor) -> None:
        if covariance.losses is None:
            raise TypeError("an anchor needs a sketch that keeps account of its losses")
        self.losses = covariance.losses
        self.covariance, self.anchor = covariance, anchor
        self.exact_cross = self.cross = cross
        roots = inverse_roots(covariance.squares, covariance.unit)
        present = roots > 0
        spectrum = np.where(np.outer(present, present), self.losses, 0.0)
        spectrum[np.diag_indices_from(spectrum)] += covariance.squares
        values, turn = top_eigenpairs(spectrum, len(spectrum))
        self._turn = turn.T * roots  # Q = turn·S
        point, image = anchor.point, anchor.image
        vectors = np.hstack([cross, image, point])
        images, scale = self._images(vectors)
        inside = self._turn @ images
        self._cross, self._image, self._point = np.split(inside * scale, 3, axis=1)
        # Subtracted as vectors: as squares, what is little would drown in rounding.
        outside = (vectors / scale - self.lift(inside)) * scale
        self._parts = np.split(outside, 3, axis=1)
        self._along = np.einsum("dt,dt->t", point, cross)
        self._squared = np.einsum("dt,dt->t", point, point)
        seen = np.einsum("dt,dt->t", point, image)
        # wᵀAᵀAw is at least ‖Bw‖², whatever became of h.
        n_targets = cross.shape[1]
        least = np.square(images[:, -n_targets:] * scale[-n_targets:]).sum(axis=0)
        self._curved = np.maximum(seen, least)
        self._outside = Outside.of(self._parts[2], self._parts[1], self._squared.sum())
        unit = unit_roundoff(np.dtype(np.float64))
        self._there = values > 32 * unit * values.max(initial=0.0)
        self.values: Float64 = np.where(self._there, values, 0.0)

    def project(self, vectors: Float64) -> Float64:
        """Return Q·vectors."""
        images, scale = self._images(vectors)
        inside: Float64 = self._turn @ images
        return inside * scale

    def _images(self, vectors: Float64) -> tuple[Float64, Float64]:
        """Return S·vectors, and what to multiply them by: h times S might overflow."""
        size = np.abs(vectors).max(axis=0, initial=0.0)
        scale = np.where(size > 0, size, 1.0)
        return self.covariance.project(vectors / scale), scale

    def lift(self, weights: Float64) -> Float64:
        """Return Qᵀ·weights."""
        return self.covariance.lift(self._turn.T @ weights)

    def steps(self, alpha: float) -> Float64:
        """Return t for each target."""
        below = self._curved + alpha * self._squared
        steps: Float64 = np.divide(self._along, below, out=np.zeros_like(below), where=below > 0)
        return steps

    def rest(self, alpha: float) -> Float64:
        """Return c − t(h + γw), what the sketch is left to solve for."""
        anchor = self.anchor
        return self.cross - self.steps(alpha) * (anchor.image + alpha * anchor.point)

    def anchors(self, alpha: float) -> Iterator[tuple[Float64, Float64, Float64]]:
        """Yield t·w, t(h + γw) and its error for each anchor that a certificate may start from."""
        zero = np.zeros_like(self.cross)
        yield zero, zero, np.zeros(zero.shape[1])
        anchor, steps = self.anchor, self.steps(alpha)
        image = steps * (anchor.image + alpha * anchor.point)
        yield steps * anchor.point, image, np.abs(steps) * anchor.bound(self.covariance.mass)

    def solve(self, alphas: Sequence[float]) -> Float64:
        """Return coefficients of shape (n_alphas, n_features, n_targets)."""
        weights = []
        for alpha in alphas:
            weights.append(self._more(alpha) * self._inner_rest(alpha))
        coefs = np.stack(np.hsplit(self.lift(np.hstack(weights)), len(alphas)))
        for coef, alpha in zip(coefs, alphas, strict=True):
            coef += self.rest(alpha) / (self.tail(alpha) + alpha)
            coef += self.steps(alpha) * self.anchor.point
        return coefs

    def corrector(self, alpha: float) -> Callable[[Float64], Float64]:
        """Return what multiplies by (K̂ + alpha·I)⁻¹, to precondition by."""
        more, ridge = self._more(alpha), self.tail(alpha) + alpha
        return lambda vectors: self.lift(more * self.project(vectors)) + vectors / ridge

    def _more(self, alpha: float) -> Float64:
        """Return by how much (K̂ + alpha·I)⁻¹ in the directions of Q exceeds that outside."""
        tail = self.tail(alpha)
        more: Float64 = 1 / (self._spectrum(tail) + alpha) - 1 / (tail + alpha)
        return more[:, None]

    def _inner_rest(self, alpha: float) -> Float64:
        """Return Q·rest."""
        return self._cross - self.steps(alpha) * (self._image + alpha * self._point)

    def moved(self, alpha: float) -> tuple[Float64, Float64, Float64, float]:
        """Return w, h, the error of h, and τ, for an anchor at the solution for ``alpha``.

        Only the direction of w matters; it becomes a unit vector, so that each target has the same
        say in τ and no target's units overflow.
        """
        # Closer to zero AᵀA is not known, and h would be noise.
        alpha = max(alpha, LEAST_RIDGE * self.covariance.unit * self.values.max())
        anchor, steps = self.anchor, self.steps(alpha)
        (point,) = self.solve([alpha])
        norms = column_norms(point)
        # Without a subnormal one, whose inverse overflows; at zero an anchor is exact too.
        per = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > SMALLEST_NORMAL)
        delta = point - steps * anchor.point
        move = self.rest(alpha) - alpha * delta  # K̂δ
        error = np.abs(steps) * anchor.bound(self.covariance.mass)
        error += self._doubt(delta, move)
        point, image = per * point, per * (steps * anchor.image + move)
        cross, image_part, point_part = self._parts
        tail = self.tail(alpha)
        delta = (cross - steps * (image_part + alpha * point_part)) / (tail + alpha)
        point_part = per * (steps * point_part + delta)
        image_part = per * (steps * image_part + tail * delta)
        outside = Outside.of(point_part, image_part, np.square(point).sum())
        return point, image, per * error, self._clipped(outside.tail(alpha))

    def shifted(self, point: Float64) -> tuple[Float64, Float64]:
        """Return h, and its error, for an anchor at any other point."""
        delta = point - self.anchor.point
        inside = self.project(delta)
        tail = self.tail(np.inf)
        more = (self._spectrum(tail) - tail)[:, None]
        move = self.lift(more * inside) + tail * delta
        error = self.anchor.bound(self.covariance.mass) + self._doubt(delta, move)
        return self.anchor.image + move, error

    def _doubt(self, delta: Float64, image: Float64) -> Float64:
        """Bound ‖image − AᵀAδ‖, since AᵀAδ is within Δ/2·‖δ‖ of (BᵀB + Δ/2)δ."""
        cov, norms = self.covariance, column_norms(delta)
        half = (cov.loss_bound or 0.0) / 2
        middle = cov.multiply(delta) + half * delta
        chain = (len(delta) + sum(cov.mix.shape)) * unit_roundoff(np.dtype(np.float64))
        rounding = (cov.rounding + chain * (cov.mass + half)) * norms + chain * column_norms(image)
        return column_norms(middle - image) + half * norms + rounding

    def tail(self, alpha: float) -> float:
        """Return τ for solving at ``alpha``."""
        return self._clipped(self._outside.tail(alpha))

    def _spectrum(self, tail: float) -> Float64:
        """Return K̂ in the directions of Q; those that are not there count as outside."""
        return np.where(self._there, self.values, tail)

    def _clipped(self, tail: float | None) -> float:
        most = self.covariance.largest_loss
        return self.covariance.tail if tail is None else min(max(tail, 0.0), most)

    def covariance_error(self, alpha: float) -> float:
        """Return at least ‖AᵀA − K̂‖₂."""
        cov, bound = self.covariance, self.covariance.loss_bound or 0.0
        known = np.append(np.linalg.eigvalsh(self.losses), self.tail(alpha))
        return float(max(known.max(), bound - known.min())) + cov.rounding

    def quadratic(self, coefs: Float64) -> Float64:
        """Estimate xᵀAᵀAx, of shape (n_alphas, n_targets), for coefficients of any origin."""
        along = np.einsum("kdt,dt->kt", coefs, self.anchor.point)
        steps = np.divide(along, self._squared, out=np.zeros_like(along), where=self._squared > 0)
        delta = coefs - steps[:, None, :] * self.anchor.point
        columns = np.moveaxis(delta, 1, 0).reshape(delta.shape[1], -1)
        inside = np.square(self.project(columns))
        outside = np.maximum(np.square(columns).sum(axis=0) - inside.sum(axis=0), 0.0)
        rest = (self.values @ inside + self.tail(np.inf) * outside).reshape(len(coefs), -1)
        mixed = np.einsum("kdt,dt->kt", delta, self.anchor.image)
        found: Float64 = np.square(steps) * self._curved + 2 * steps * mixed + rest
        return np.maximum(found, 0.0)

    def degrees_of_freedom(self, alphas: Sequence[float], rank: int) -> Float64:
        """Estimate tr(AᵀA(AᵀA + alpha·I)⁻¹) for each alpha; AᵀA has this rank."""
        ridges, values = np.asarray(alphas), self.values[self.values > 0]
        inside: Float64 = (values[:, None] / (values[:, None] + ridges)).sum(axis=0)
        n_outside = max(rank - len(values), 0)
        left = max(self.covariance.mass - float(values.sum()), 0.0)
        mean = left / n_outside if n_outside else 0.0
        total = mean + ridges
        outside: Float64 = np.divide(mean, total, out=np.zeros_like(total), where=total > 0)
        return inside + n_outside * outside

    def largest_eigenvalue(self) -> float:
        """Estimate ‖AᵀA‖₂."""
        return float(self.values.max(initial=0.0))
