"""Bounds for coefficients whose residual is known, since the rows were read once more."""

import numpy as np

from ridgepass.kernels import Float64, column_norms
from ridgepass.sketch import Dense, LowRank, TrackedCovariance
from ridgepass.solve.bounds import over, sum_rounding, worst_from
from ridgepass.solve.dense import DenseSolver
from ridgepass.solve.low_rank import LowRankSolver
from ridgepass.solve.tracked import TrackedSolver
from ridgepass.solve.worst_case import known


def by_residual(
    solver: LowRankSolver | DenseSolver | TrackedSolver,
    alpha: float,
    residual: Float64,
    residual_error: Float64,
    step: Float64,
    coef: Float64,
    moved: float,
) -> tuple[Float64, Float64, Float64]:
    """Bound y = x̂ − x, where x̂ = z + p̂ and z has the residual r = c − (K + γI)z.

    Exact ridge is x = z + p with (K + γI)p = r, so that y = p̂ − p. Returns at least ‖y‖, ‖y‖/‖x‖
    and √(yᵀ(K + γI)y) for every target.

    Parameters
    ----------
    solver : LowRankSolver, DenseSolver or TrackedSolver
        What is known of K.
    alpha : float
        The ridge parameter γ.
    residual, residual_error : ndarray of shape (n_features, n_targets), (n_targets,)
        r, and at least the norm of its error.
    step, coef : ndarray of shape (n_features, n_targets)
        p̂ and x̂.
    moved : float
        What rounding of the rows may have changed AᵀA by, in the spectral norm.
    """
    if alpha == 0:
        infinite = np.full(step.shape[1], np.inf)
        return infinite, infinite, infinite
    norms, whole = column_norms(step), column_norms(coef)
    covariance: LowRank | Dense | TrackedCovariance = solver.covariance
    if isinstance(covariance, TrackedCovariance) and covariance.certain is not None:
        covariance = covariance.certain
    if isinstance(covariance, TrackedCovariance):
        # The residual tells of z whatever K is; of K itself no more is certain than its trace.
        alone = (column_norms(residual) + residual_error) / alpha
        most = np.sqrt(1.0001 * covariance.mass + moved + alpha)
        absolute = known(alone + norms)
        energy = known(np.sqrt(alpha) * alone + _times(most, norms))
        return absolute, known(over(absolute, whole - absolute)), energy
    bound, root = covariance.loss_bound, np.sqrt(alpha)
    middle, doubt = (
        (covariance.shift, covariance.error) if bound is None else (bound / 2, bound / 2)
    )
    doubt += moved + (0.0 if isinstance(covariance, Dense) else covariance.rounding)
    chain = sum_rounding(covariance, len(step))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        left = residual - covariance.multiply(step) - (alpha + middle) * step
        size = (alpha + covariance.mass) * norms + column_norms(residual)
        residual_error = residual_error + covariance.underflow(step)
        slack = residual_error + chain * size
        absolute = known((column_norms(left) + slack + _times(doubt, norms)) / alpha)
        # The residual tells of z whatever K is, and however much rounding the sketch has.
        alone = (column_norms(residual) + residual_error) / alpha
        added = np.sqrt(curvature_bound(covariance, alpha, step, moved))
        energy = np.fmin(absolute * root, alone * root + added)
        absolute, relative = np.fmin(absolute, alone + norms), np.full_like(absolute, np.inf)
        if isinstance(solver, DenseSolver) and (column_norms(left) > slack).any():
            found = _corrected(solver, alpha, left, slack, norms, coef, doubt)
            absolute, relative, energy = found or (absolute, relative, energy)
        if isinstance(covariance, LowRank) and bound is not None:
            energy = np.fmin(energy, _energy(covariance, alpha, residual, step, moved, chain))
            energy += residual_error / root
            start, off, furthest, share = worst_from(covariance, alpha, residual, step, coef)
            reach = column_norms(start) + furthest
            slack = residual_error + chain * ((alpha + covariance.mass) * reach + size)
            slack = (slack + (covariance.rounding + moved) * reach) / alpha
            absolute = np.fmin(np.fmin(absolute, off + furthest + slack), energy / root)
            slack = off + (1 + share) * slack  # it is exact ridge that is off by it, not x̂
            relative = share + over(slack * (1 + share), whole - slack)
        relative = np.fmin(relative, over(absolute, whole - absolute))
    return known(absolute), known(relative), known(energy)


def _corrected(
    solver: DenseSolver,
    alpha: float,
    left: Float64,
    slack: Float64,
    norms: Float64,
    coef: Float64,
    doubt: float,
) -> tuple[Float64, Float64, Float64] | None:
    """Bound them for a p̂ whose residual is more than rounding, by solving for that residual.

    None where rounding of K leaves K + γI singular.
    """
    try:
        correction = solver.corrector(alpha)(left)
    except ValueError:
        return None
    covariance = solver.covariance
    size = column_norms(correction)
    image = covariance.multiply(correction) + alpha * correction
    rest = column_norms(left - image) + slack + doubt * (norms + size)
    rest += sum_rounding(covariance, len(left)) * (alpha + covariance.mass) * size
    absolute = size + rest / alpha
    relative = over(absolute, column_norms(coef + correction) - rest / alpha)
    energy = np.einsum("dt,dt->t", correction, image) + doubt * np.square(size)
    return absolute, relative, np.sqrt(np.maximum(energy, 0.0)) + rest / np.sqrt(alpha)


def curvature_bound(
    covariance: LowRank | Dense, alpha: float, vectors: Float64, moved: float, share: float = 1.0
) -> Float64:
    """Return at least vᵀ(K + γI)v for each vector v; infinity where nothing is known.

    With a ``share`` below one, that of what K may have beyond the sketch is taken.
    """
    bound = covariance.loss_bound
    most = covariance.shift + covariance.error if bound is None else bound
    most += 0.0 if isinstance(covariance, Dense) else covariance.rounding
    # The root first: squares of short vectors underflow.
    norms = _times(np.sqrt(alpha + share * (most + moved)), column_norms(vectors))
    kept = np.einsum("dt,dt->t", vectors, covariance.multiply(vectors))
    return known(kept + np.square(norms))


def _leverages(covariance: LowRank, alpha: float, moved: float, vectors: Float64) -> Float64:
    """Return at least vᵀ(K + γI)⁻¹v for each vector v, since K is at least SᵀS but for rounding.

    ‖v‖²/γ is what holds without a sketch.
    """
    # As unit vectors, since squares of squares overflow.
    norms = column_norms(vectors)
    without: Float64 = np.square(norms / np.sqrt(alpha))
    ridge = alpha - covariance.rounding - moved
    if covariance.loss_bound is None or ridge <= alpha / 2:
        return without
    unit = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    images = covariance.project(unit) / np.sqrt(covariance.squares + ridge)[:, None]
    inside = np.square(images).sum(axis=0)
    # The rows of S are orthogonal only up to rounding of the largest.
    uneven = 8 * covariance.unit * covariance.squares.max(initial=0.0) / ridge
    doubt = sum_rounding(covariance, len(vectors)) + uneven
    share = np.maximum(1.0 - inside, 0.0) + doubt
    found: Float64 = share * np.square(norms / np.sqrt(ridge))
    return np.minimum(found, without)


def _energy(
    covariance: LowRank, alpha: float, residual: Float64, step: Float64, moved: float, chain: float
) -> Float64:
    """Bound the energy of p − p̂ by that of p, what p̂ takes off it, and what it may add itself."""
    whole = _leverages(covariance, alpha, moved, residual)
    taken = np.einsum("dt,dt->t", residual, step)
    most = alpha + (covariance.loss_bound or 0.0) + covariance.rounding + moved
    added = np.square(covariance.project(step)).sum(axis=0)
    added += np.square(np.sqrt(most) * column_norms(step))
    slack = chain * (whole + 2 * np.abs(taken) + added)
    energy: Float64 = np.sqrt(np.maximum(whole - 2 * taken + added, 0.0) + slack)
    return energy


def _times(factor: float, norms: Float64) -> Float64:
    """Multiply: infinity times nothing is nothing."""
    return np.multiply(factor, norms, out=np.zeros_like(norms), where=norms > 0)
