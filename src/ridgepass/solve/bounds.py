"""Two ways to bound the distance of a solution from exact ridge."""

from typing import NamedTuple

import numpy as np

from ridgepass.kernels import Float64, binary_scales, column_norms, unit_roundoff
from ridgepass.sketch import Dense, LowRank
from ridgepass.solve.dense import DenseSolver
from ridgepass.solve.low_rank import LowRankSolver
from ridgepass.solve.tracked import TrackedSolver
from ridgepass.solve.worst_case import known, worst_case


class Bounds(NamedTuple):
    """Of ‖x̂ − x‖, of ‖x̂ − x‖/‖x‖ and of √((x̂ − x)·(K + γI)(x̂ − x)), for every target."""

    absolute: Float64
    relative: Float64
    energy: Float64

    def is_less(self, other: "Bounds") -> bool:
        """Whether any bound of any target is less than the other's."""
        return any(bool((one < two).any()) for one, two in zip(self, other, strict=True))


def error_bounds(
    solver: LowRankSolver | DenseSolver | TrackedSolver,
    alpha: float,
    coef: Float64,
    cross_error: Float64,
    moved: float,
    target_norms: Float64,
) -> tuple[Float64, Float64]:
    """Bound ‖x̂ − x‖ and ‖x̂ − x‖/‖x‖ for every target.

    Parameters
    ----------
    solver : LowRankSolver, DenseSolver or TrackedSolver
        What gave x̂.
    alpha : float
        The ridge parameter.
    coef : ndarray of shape (n_features, n_targets)
        x̂.
    cross_error : ndarray of shape (n_targets,)
        At least ‖c − Aᵀb‖.
    moved : float
        What rounding of the rows may have changed AᵀA by, in the spectral norm.
    target_norms : ndarray of shape (n_targets,)
        ‖b‖.
    """
    if isinstance(solver, TrackedSolver):
        sketch = solver.covariance.certain
        if sketch is None:
            return by_lengths(solver, alpha, coef, cross_error, target_norms)
        return by_worst_case(sketch, solver.cross, alpha, coef, cross_error, moved)
    shift, bound = solver.covariance.shift, solver.covariance_error(alpha) + moved
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        by_cross = over(cross_error, np.full_like(cross_error, alpha + shift))
        solving = solver.error_norms(alpha, coef) + by_cross
    lemma = by_lemma(alpha, shift, bound, column_norms(coef), solving)
    if isinstance(solver, DenseSolver) or solver.covariance.loss_bound is None:
        return lemma
    # The lemma divides rounding by alpha + shift, the other by alpha: where alpha is tiny it wins.
    worst = by_worst_case(solver.covariance, solver.cross, alpha, coef, cross_error, moved)
    return np.fmin(lemma[0], worst[0]), np.fmin(lemma[1], worst[1])


def by_lengths(
    solver: TrackedSolver, alpha: float, coef: Float64, cross_error: Float64, target_norms: Float64
) -> tuple[Float64, Float64]:
    """Bound them where nothing else is certain: exact ridge is of bounded length.

    ‖(K + γI)⁻¹c‖ is at most ‖c‖/γ, and ‖(K + γI)⁻¹Aᵀb‖ at most ‖b‖/(2√γ). It is at least
    ‖c‖/(‖K‖ + γ).
    """
    if alpha == 0:
        return np.full(coef.shape[1], np.inf), np.full(coef.shape[1], np.inf)
    length, gamma = column_norms(solver.cross), np.float64(alpha)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        most = np.fmin((length + cross_error) / gamma, 0.5001 * target_norms / np.sqrt(gamma))
        least = np.maximum(length - cross_error, 0.0) / (1.0001 * solver.covariance.mass + gamma)
        absolute = column_norms(coef) + most
        relative = over(absolute, least)
    return known(absolute), known(relative)


def by_lemma(
    alpha: float, shift: float, covariance_bound: float, coef_norms: Float64, solving: Float64
) -> tuple[Float64, Float64]:
    """Bound them from a bound of ‖K − K̂‖₂ alone.

    Lemma 1 gives ‖x̃ − x‖ ≤ ε‖x‖ with ε = ‖K − K̂‖/(λ_min(K̂) + alpha), where x̃ = (K̂ + alpha·I)⁻¹c
    and λ_min(K̂) is at least ``shift``. With the two solutions exchanged it gives
    ‖x̃ − x‖ ≤ ‖K − K̂‖‖x̃‖/alpha, since K has no negative eigenvalue. The rest is the triangle
    inequality; ``solving`` is at least ‖x̂ − x̃‖.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        absolute = solving + covariance_bound * (coef_norms + solving) / np.float64(alpha)
        lemma = np.float64(covariance_bound) / (shift + alpha)
        through = lemma + over(solving * (1 + lemma), coef_norms - solving)
        relative = np.fmin(through, over(absolute, coef_norms - absolute))
    return known(absolute), known(relative)


def by_worst_case(
    covariance: LowRank,
    cross: Float64,
    alpha: float,
    coef: Float64,
    cross_error: Float64,
    moved: float,
) -> tuple[Float64, Float64]:
    """Bound them over all K that are possible, for a sketch with 0 ⪯ K − BᵀB ⪯ Δ·I.

    Exact ridge solves (K + γI)x = c, but for rounding, which moves x by no more than itself over γ.
    The worst x is known.
    """
    if alpha == 0:
        return np.full(coef.shape[1], np.inf), np.full(coef.shape[1], np.inf)
    chain, norms = sum_rounding(covariance, len(coef)), column_norms(coef)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        start, off, furthest, share = worst_from(covariance, alpha, cross, coef, coef)
        size = (alpha + covariance.mass) * (column_norms(start) + furthest)
        slack = cross_error + chain * (size + column_norms(cross))
        slack = (slack + covariance.underflow(start)) / alpha
        # Rounding of AᵀA itself counts with x as the sketch has it, or as it is.
        rounding = (covariance.rounding + moved) / alpha
        absolute = off + furthest + slack + rounding * (column_norms(start) + furthest)
        slack = off + (1 + share) * slack
        share = share * (1 + rounding) + rounding
        relative = share + over(slack * (1 + share), norms - slack)
        relative = np.fmin(relative, over(absolute, norms - absolute))
    return known(absolute), known(relative)


def worst_from(
    covariance: LowRank, alpha: float, rest: Float64, start: Float64, coef: Float64
) -> tuple[Float64, Float64, Float64, Float64]:
    """Return p̂ corrected where the sketch is loud, by how much, and the worst case from there."""
    loud = _loud(covariance, alpha, rest, start)
    start = start + loud
    residual = _residual(covariance, alpha, rest, start)
    furthest, share = worst_case(covariance, alpha, residual, start, coef + loud)
    return start, column_norms(loud), furthest, share


def sum_rounding(covariance: LowRank | Dense, n_features: int) -> float:
    """Bound the rounding of a residual relative to its parts: sums over features and over rows."""
    rows = covariance.pending if isinstance(covariance, Dense) else covariance.mix
    return (n_features + sum(rows.shape) + 4) * unit_roundoff(np.dtype(np.float64))


def _residual(covariance: LowRank, alpha: float, rest: Float64, start: Float64) -> Float64:
    """Return r − Mp̂."""
    return rest - covariance.multiply(start) - alpha * start


def _loud(covariance: LowRank, alpha: float, rest: Float64, start: Float64) -> Float64:
    """Return M⁻¹(r − Mp̂) in the directions that exceed all that is in doubt a thousandfold.

    Little as it is, its residual there would drown that of faint directions, to which the sketch's
    rows are orthogonal only up to rounding. So p̂ is corrected by it before the worst is looked for.
    """
    squares = covariance.squares
    loud = squares > 1e3 * (alpha + (covariance.loss_bound or 0.0))
    roots = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=loud)[:, None]
    residual = _residual(covariance, alpha, rest, start)
    unit = binary_scales(residual)
    images = roots * covariance.project(residual / unit)
    return unit * covariance.lift(roots * (images / (squares + alpha)[:, None]))


def relative_to_exact(
    absolute: Float64, norms: Float64, along: Float64, spread: Float64
) -> Float64:
    """Bound ‖x̂ − x‖/‖x‖, given ‖x̂ − x‖ ≤ ``absolute`` and x·x̂ ≥ ``along`` − ``spread``·‖x‖.

    ``norms`` is ‖x̂‖. Write X for ‖x‖. The second inequality makes X at least
    along/(norms + spread), and ‖x̂ − x‖² at most X² + 2·spread·X − D with D = 2·along − norms².
    Over X² that grows up to X = D/spread, and absolute²/X² falls: the bound is where they meet, or
    if they meet beyond D/spread, what there is: 1 + spread²/D.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        known_along = 2 * along - np.square(norms)
        summed = np.square(absolute) + known_along
        meeting = summed / (spread + np.sqrt(np.square(spread) + summed))
        most = np.sqrt(1 + np.square(spread) / known_along)
        met = np.where(meeting * spread <= known_along, over(absolute, meeting), most)
        plain = over(absolute, np.where(along > 0, along / (norms + spread), 0.0))
        return np.fmin(plain, np.where(known_along > 0, met, np.inf))


def over(above: Float64, below: Float64) -> Float64:
    """Divide: 0/x is 0 and x/0 is infinity."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(above == 0, 0.0, np.where(below > 0, above / below, np.inf))
