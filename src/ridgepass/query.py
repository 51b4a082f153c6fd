"""What a stream answers from, looked at once for all questions until the next row."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ridgepass.blocks import Block
from ridgepass.kernels import (
    DOUBLE,
    Float64,
    binary_scales,
    column_norms,
    underflow,
    unit_roundoff,
)
from ridgepass.probes import Probes
from ridgepass.scaling import Rescaling
from ridgepass.sketch import Dense, ExactCovariance, LowRank, Sketch, TrackedCovariance
from ridgepass.solve import Certificate, DenseSolver, Solver, error_bounds, factorise
from ridgepass.solve.bounds import Bounds, over, relative_to_exact, sum_rounding
from ridgepass.solve.directions import Width, Widths, by_distance, by_ellipsoid, by_leverage
from ridgepass.solve.worst_case import known
from ridgepass.state import State

# Squared errors come as a difference; below this share of the targets' squares they are taken for
# rounding, so that models which all fit perfectly are equals.
NOISE = 1e-10
CONFIDENCE = 1 - 1e-6  # with which certificates hold unless another is asked for
# Shares of the doubt: of residuals, and of how long exact ridge is; the rest is for ‖AᵀA − K̂‖.
RESIDUAL_DOUBT, LENGTH_DOUBT = 0.85, 0.05
DISTANCE_DOUBT = 1 - RESIDUAL_DOUBT - LENGTH_DOUBT
NO_PROBES = "there are no probes: only what is certain bounds the error, and nothing estimates it"
PROBES_DROPPED = "merging parts (or cv's folds) with different probes has dropped the probes: "
SAME_PROBES = "fit all parts with one random_state (--seed) and one number of probes"
SAME_UNITS = (
    "standardize=True measures each part's columns by themselves; in Python, pass all parts one "
    "feature_scale instead"
)


def _remark(state: State) -> str:
    """Return what a certificate should say besides."""
    if isinstance(state.sketch, ExactCovariance) or state.has_probes:
        return ""
    if state.n_probes == 0:
        return NO_PROBES
    return PROBES_DROPPED + (SAME_UNITS if state.intake.standardizes else SAME_PROBES)


def _in_units(state: State, fresh: Float64) -> tuple[Sketch, Float64]:
    """Return a sketch whose columns can be multiplied by ``fresh``, and the squares it leaves out.

    As when a block is finished: columns that have varied by no more than rounding are left out.
    """
    scaling, sketch = state.intake.scaling, state.sketch
    assert scaling is not None
    change = Rescaling.of(fresh, scaling.squares, scaling.units, ~scaling.is_set)
    if change is None or sketch.columns_apart or not change.first.any():
        return sketch, np.zeros_like(fresh)
    sketch = copy.deepcopy(sketch)
    sketch.rescale(np.where(change.first, 0.0, 1.0), change.column_mass)
    return sketch, change.first_squares


def _probes_of(
    state: State,
    block: Block,
    fresh: Float64 | None,
    columns: Float64 | None,
    surprise: float,
) -> Probes | None:
    """Return the probes with the waiting rows, columns multiplied by what is given.

    ``surprise`` is that of choices which were made for a question alone.
    """
    probes, scaling = state.probes, state.intake.scaling
    if probes is None:
        return None
    if fresh is not None and scaling is not None:
        # A column that has been zero so far may have any number in a probe.
        probes = probes.rescaled(np.where(scaling.squares > 0, fresh, 1.0))
        block = block.in_units(fresh)
    if probes is state.own_probes:
        probes = probes.including(block)
    elif len(block):  # these are nobody's but ours
        probes.absorb(block)
    probes = replace(probes, surprise=probes.surprise + surprise)
    return probes if columns is None else probes.rescaled(columns)


@dataclass(frozen=True)
class Query:
    """A factorised sketch with the rows of an unfinished block, and what is known of its rounding.

    Attributes
    ----------
    solver : LowRankSolver, DenseSolver or TrackedSolver
        For the columns divided by ``scale``.
    mean, target_mean : ndarray of shape (n_features,), (n_targets,)
        What rows and targets were centred on; zeros without an intercept.
    scale : ndarray of shape (n_features,) or None
        What columns are divided by.
    n_rows, n_blocks, weight : int, int, float
        Number of the rows and of their blocks, and sum of their weights.
    longest_sum : int
        Rows of the longest block and number of blocks, of which any sum is made.
    target_mass : ndarray of shape (n_targets,)
        Squares of the centred targets.
    displacement : float
        Bounds what rounding did to the rows before they were sketched, in the Frobenius norm.
    cross_error : ndarray of shape (n_targets,)
        Bounds the error of Aᵀb.
    target_displacement : ndarray of shape (n_targets,)
        Bounds the same for the targets.
    scale_error : float
        Bounds how far any scale is from the exact deviation, relative to it. What that does to the
        scaled rows is in ``displacement`` already.
    measured : ndarray of bool of shape (n_features,) or None
        With ``standardize``: which columns are divided by their deviation.
    centred : bool
        Whether there is an intercept.
    find_probes : callable
        Returns ``probes``. Most questions do without.
    longest_block : int
        Rows of the longest block.
    remark : str
        What a certificate should say besides.
    """

    solver: Solver
    mean: Float64
    target_mean: Float64
    scale: Float64 | None
    n_rows: int
    n_blocks: int
    weight: float
    longest_sum: int
    target_mass: Float64
    displacement: float
    target_displacement: Float64
    cross_error: Float64
    scale_error: float
    measured: NDArray[np.bool_] | None
    centred: bool
    find_probes: Callable[[], Probes | None]
    longest_block: int
    remark: str = ""

    @cached_property
    def probes(self) -> Probes | None:
        """What measures the residual of any answer, the waiting rows included."""
        return self.find_probes()

    @classmethod
    def of(cls, state: State) -> "Query":
        """Look at a state without changing it."""
        intake, sketch, scaling = state.intake, state.sketch, state.intake.scaling
        block = intake.pending()
        moments = state.moments.including(block)
        cross, fresh, columns = moments.cross, None, None
        (mean, target_mean), weight = intake.means(), intake.total_weight()
        scale = None if scaling is None else scaling.given
        moved, varies, scale_error = None, None, 0.0
        if scaling is not None and scale is None:
            squares, moved = state.column_squares(), state.moved_squares()
            scale, varies = scaling.deviations(squares, weight, mean)
            units = scaling.units_for(scale)
            if (units != scaling.units).any():
                fresh = scaling.units / units
                sketch, left_out = _in_units(state, fresh)
                moved = moved + left_out
            columns = units / scale
            scale_error = float(np.sqrt(moved[varies] / squares[varies]).max(initial=0.0))
        covariance = sketch.covariance(block, fresh)
        if columns is not None and (columns != 1.0).any():
            covariance = covariance.rescaled(columns, squares / np.square(units))
        stretch = 1.0
        if columns is not None:
            ratio = columns if fresh is None else columns * fresh
            cross, stretch = ratio[:, None] * cross, float(ratio.max())
        surprise = covariance.surprise if isinstance(covariance, TrackedCovariance) else 0.0
        mass = covariance.mass
        if moved is None:
            displacement = math.sqrt(float(state.moved_squares(mass, intake.offset())[0]))
        else:
            displacement = float(column_norms((np.sqrt(moved) / scale)[:, None])[0])
        target_displacement = state.target_displacement(moments.target_mass)
        cross_error = moments.cross_rounding(mass, stretch)
        cross_error += sketch.cross_unit * math.sqrt(mass) * np.sqrt(moments.target_mass_bound)
        cross_error += displacement * np.sqrt(moments.target_mass_bound)
        cross_error += math.sqrt(mass) * target_displacement
        for array in (mean, scale):
            if array is not None:
                array.flags.writeable = False
        return cls(
            solver=factorise(covariance, cross),
            mean=mean,
            target_mean=target_mean,
            scale=scale,
            n_rows=state.n_rows,
            n_blocks=moments.n_blocks,
            weight=weight,
            longest_sum=moments.longest_block + moments.n_blocks,
            target_mass=moments.target_mass,
            displacement=displacement,
            target_displacement=target_displacement,
            cross_error=cross_error,
            scale_error=scale_error,
            measured=varies,
            centred=intake.centre,
            find_probes=partial(_probes_of, state, block, fresh, columns, surprise),
            longest_block=moments.longest_block,
            remark=_remark(state),
        )

    @np.errstate(over="ignore", invalid="ignore")
    def solve(self, alphas: Sequence[float]) -> Float64:
        """Return coefficients of the scaled columns, or raise ValueError if they overflow."""
        coefs = self.solver.solve(alphas)
        check_range(coefs)
        return coefs

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # bounds are infinite then
    def certificate(
        self,
        alpha: float,
        confidence: float = 1.0,
        unchanged: Callable[[], bool] = lambda: False,
    ) -> Certificate:
        """Bound the distance from exact ridge, for every target.

        Below a ``confidence`` of one, probes may bound it too. ``unchanged`` tells whether the
        sketch is still what this query looked at.
        """
        (coef,) = self.solver.solve([alpha])
        absolute, relative = error_bounds(
            self.solver, alpha, coef, self.cross_error, self.moved, np.sqrt(self.target_mass)
        )
        norms, longest = known(column_norms(coef)), self.longest_possible(alpha)
        energy = longest * absolute
        rests_on = "exact" if isinstance(self.solver, DenseSolver) else "sketch"
        rest = self.solver.exact_cross - alpha * coef
        probed = self.probed(alpha, rest, coef, self.cross_error)
        certain = Bounds(absolute, relative, energy)
        found = self.improved(certain, alpha, coef, probed, confidence)
        absolute, relative, energy = found
        rests_on = "probes" if (absolute < certain.absolute).any() else rests_on
        lost = self.lost_coefs(len(coef), self.scale)
        by_units = np.zeros_like(norms)
        if self.scale_error > 0:  # exact ridge has exact scales, and is another in the model's
            by_units = self.scale_error * (norms + absolute)
            relative = relative + self.scale_error * (1 + relative)
        slack = by_units + lost
        widths = partial(self._widths, alpha, coef, absolute, energy, slack, confidence)
        absolute = absolute + slack
        relative = relative + over(lost * (1 + relative), norms)
        relative = np.where(absolute == 0, 0.0, relative)
        offset = self._intercept_error(norms, absolute)
        energy = np.hypot(energy + longest * slack, math.sqrt(self.weight) * offset)
        estimate, relative_estimate = self._estimate(alpha, coef, probed), None
        if estimate is not None:
            estimate = np.fmin(estimate, known(absolute))
            relative_estimate = np.fmin(known(over(estimate, norms)), known(relative))
        return Certificate(
            alpha=alpha,
            covariance_bound=self.solver.covariance_error(alpha) + self.moved,
            coef_bound=known(absolute),
            relative=known(relative),
            energy_bound=known(energy),
            mean=self.mean if self.centred else None,
            scale=self.scale,
            offset=known(offset) + np.where(self.target_mass > 0, underflow(len(coef) + 8), 0.0),
            rounding=(len(coef) + 8) * DOUBLE * norms + lost,
            n_features=len(coef),
            confidence=confidence if found.is_less(certain) else 1.0,
            rests_on=rests_on,
            estimate=estimate,
            relative_estimate=relative_estimate,
            widths=Widths(widths, unchanged),
            remark=self.remark,
        )

    def improved(
        self,
        certain: Bounds,
        alpha: float,
        coef: Float64,
        probed: "Probed | None",
        confidence: float,
        ratio: Float64 | None = None,
    ) -> Bounds:
        """Return the least bounds that hold with a confidence, given those that are certain.

        ``probed`` is what probes say of the residual, if anything. ``ratio`` brings coefficients to
        the units of this query, if they are in others.
        """
        if probed is None or confidence == 1.0:
            return certain
        doubt = 1.0 - confidence
        residual = probed.bound(RESIDUAL_DOUBT * doubt)
        absolute = np.fmin(certain.absolute, residual / alpha)
        relative = np.fmin(certain.relative, over(absolute, column_norms(coef) - absolute))
        least, most = (1.0, 1.0) if ratio is None else (float(ratio.min()), float(ratio.max()))
        if ratio is not None:
            coef = coef * ratio[:, None]
            most *= 1 + self.scale_error
        length_doubt = LENGTH_DOUBT * doubt
        found = self.relative_bound(alpha, coef, most * absolute, length_doubt, probed.surprise)
        relative = np.fmin(relative, most / least * found)
        return Bounds(absolute, relative, np.fmin(certain.energy, residual / math.sqrt(alpha)))

    def _estimate(self, alpha: float, coef: Float64, probed: "Probed | None") -> Float64 | None:
        """Estimate ‖x̂ − x‖ for every target; None if nothing measures it.

        (K + γI)(x − x̂) is the residual, which lies mostly outside the sketch. There K is between
        zero and a few times the tail: halfway between γ and γ + tail, in logarithms, did best.
        """
        solver = self.solver
        if isinstance(solver, DenseSolver):
            residual = solver.exact_cross - solver.covariance.multiply(coef) - alpha * coef
            return known(over(column_norms(residual), np.full(coef.shape[1], alpha)))
        if probed is None:
            return None
        return self.estimate(alpha, probed)

    def estimate(self, alpha: float, probed: "Probed") -> Float64:
        """Estimate how far coefficients are from exact ridge, given what probes say of them."""
        roots = math.sqrt(alpha), math.sqrt(alpha + self.solver.typical_tail())
        return known(probed.estimate / roots[0] / roots[1])

    def probed(
        self,
        alpha: float,
        rest: Float64,
        coef: Float64,
        rest_error: Float64,
        moved: float | None = None,
        surprise: float | Float64 = 0.0,
    ) -> "Probed | None":
        """Return what probes say of the residual rest − K·coef; None if there are none.

        ``rest_error`` bounds the error of ``rest``, for every target, and ``moved`` what rounding
        of the rows has changed AᵀA by. ``surprise`` is what coefficients owe to the probes besides
        the sketch's choices.
        """
        if self.probes is None or not alpha > 0:
            return None
        found = column_norms(self.probes.residuals(rest, coef))
        moved = self.moved if moved is None else max(moved, self.moved)
        return Probed(self, found, coef, rest, rest_error, moved, surprise)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # NaN bounds nothing
    def relative_bound(
        self,
        alpha: float,
        coef: Float64,
        absolute: Float64,
        doubt: float,
        surprise: float | Float64 = 0.0,
    ) -> Float64:
        """Return at least ‖x̂ − x‖/‖x‖, x being exact ridge, but with probability ``doubt``.

        For any v, x·(K + γI)v = c·v. For v near (K + γI)⁻¹x̂ probes tell how far (K + γI)v is from
        x̂, and so how x lies to x̂.

        Parameters
        ----------
        alpha : float
            The ridge parameter.
        coef : ndarray of shape (n_features, n_targets)
            x̂, or any that does not depend on the probes.
        absolute : ndarray of shape (n_targets,)
            At least ‖x̂ − x‖.
        doubt : float
            Between zero and one.
        surprise : float or ndarray of shape (n_targets,)
            As in `Probed`.
        """
        # x̂ over a power of two near it, and times γ, so that v is in range.
        units, cross = binary_scales(coef), self.solver.exact_cross
        images = alpha * (coef / units)
        norms, summing = column_norms(images), (len(coef) + 8) * DOUBLE
        cross_error = self.cross_error + summing * column_norms(cross)
        vectors = self.solver.solve_for(alpha, images)
        # As it is, and so long that c·v is ‖x̂‖²: the better for x̂ that are too short or too long,
        # and for those that are nearly x. And once from zero: where the tail is a diagonal, that is
        # better than from the starting point.
        wanted = norms * (norms / alpha) * units / np.einsum("dt,dt->t", cross, vectors)
        scaled = vectors * np.where(wanted > 0, wanted, 1.0)
        from_zero = self.solver.corrector(alpha)(images)
        found = np.full_like(absolute, np.inf)
        for v, share in ((vectors, 0.45), (scaled, 0.45), (from_zero, 0.1)):
            lengths = column_norms(v)
            error = 4 * DOUBLE * (norms + alpha * lengths)
            probed = self.probed(alpha, images - alpha * v, v, error, surprise=surprise)
            assert probed is not None
            along = (np.einsum("dt,dt->t", cross, v) - lengths * cross_error) / units
            bound = relative_to_exact(
                absolute / units,
                (1 + summing) * norms / alpha,
                along / alpha,
                probed.bound(share * doubt) / alpha,
            )
            found = np.fmin(found, bound)
        return found

    def distance(self, doubt: float) -> float:
        """Return at least ‖AᵀA − K̂‖₂ but with probability ``doubt``, K̂ being the tracked one.

        For the leading v of E = K − K̂, ‖EΦ‖₂ ≥ ‖v·EΦ‖ = ‖E‖₂·‖v·Φ‖, which is χ.
        """
        probes, covariance = self.probes, self.solver.covariance
        if probes is None or not isinstance(covariance, TrackedCovariance):
            return math.inf
        points = probes.points.astype(np.float64).T
        left = probes.images.T - covariance.multiply(points)
        unit = float(binary_scales(left).max())
        found = unit * float(np.linalg.norm(left / unit, 2))
        found += probes.image_rounding(covariance.mass, self.longest_block, self.n_sums)
        return float(probes.factor(doubt)) * found + self.moved

    @property
    def n_sums(self) -> int:
        """Rows that sums are made of: data, and one for the means with each block."""
        return self.n_rows + self.n_blocks

    def _widths(
        self,
        alpha: float,
        coef: Float64,
        absolute: Float64,
        energy: Float64,
        slack: Float64,
        confidence: float,
    ) -> list[Width]:
        """Return what is known of single directions."""
        covariance = self.solver.covariance
        if isinstance(covariance, TrackedCovariance):
            if self.probes is None or confidence == 1.0:
                return []
            distance = self.distance(DISTANCE_DOUBT * (1.0 - confidence))
            return by_distance(covariance, alpha, distance, energy, slack)
        if not isinstance(covariance, LowRank) or covariance.loss_bound is None or alpha == 0:
            return []
        found, cross = by_leverage(covariance, alpha, self.moved, energy, slack), self.solver.cross
        reach, length = column_norms(coef) + absolute, column_norms(cross)
        size = (alpha + covariance.mass) * reach + length
        error = self.cross_error + sum_rounding(covariance, len(coef)) * size
        error = error + (covariance.rounding + self.moved) * reach
        uneven = 16 * covariance.unit * covariance.squares.max(initial=0.0) / alpha
        error = (error + uneven * length) / alpha
        return found + by_ellipsoid(covariance, alpha, cross, coef, slack + error)

    def lost_coefs(self, n_features: int, scale: Float64 | None) -> Float64:
        """Bound what coefficients lose that are too small for their type, in original units."""
        largest = 1.0 if scale is None else max(float(scale.max()), 1.0)
        return np.where(self.target_mass > 0, underflow(n_features, largest), 0.0)

    @property
    def moved(self) -> float:
        """What rounding of the rows may have changed AᵀA by, in the spectral norm."""
        return (2 * math.sqrt(self.solver.covariance.mass) + 3 * self.displacement) * (
            self.displacement
        )

    def longest_possible(self, alpha: float) -> float:
        """Return at least √‖AᵀA + alpha·I‖₂: what a unit vector's energy is at most."""
        covariance = self.solver.covariance
        if isinstance(covariance, LowRank) and covariance.loss_bound is not None:
            top = float(covariance.squares.max(initial=0.0)) + covariance.loss_bound
            top += covariance.rounding
        else:
            top = covariance.mass * (1 + 1e-4)  # whose own rounding is far below that
            top += covariance.error if isinstance(covariance, Dense) else 0.0
        return math.sqrt(top + self.moved + alpha)

    def generalised_error(self, alphas: Sequence[float]) -> Float64:
        """Estimate the mean squared error on new rows, of shape (n_alphas, n_targets).

        Generalised cross-validation (Golub, Heath & Wahba 1979): the mean squared error on the rows
        seen over the squared share of degrees of freedom left. Both come from the sketch's spectrum
        and the exact moments.
        """
        centred = int(self.centred)
        rank = min(self.n_rows - centred, len(self.mean))
        used = self.solver.degrees_of_freedom(alphas, rank) + centred
        left = 1 - used / self.n_rows
        inside = self._squared_errors(self.solver.solve(alphas)) / self.weight
        share = np.square(np.maximum(left, 0.0))[:, None]
        return np.divide(inside, share, out=np.full_like(inside, np.inf), where=share > 0)

    def mean_squared_error(self, coefs: Float64, intercepts: Float64) -> Float64:
        """Estimate the mean squared error of any models on the rows seen.

        Parameters
        ----------
        coefs : ndarray of shape (n_models, n_features, n_targets)
            In original units.
        intercepts : ndarray of shape (n_models, n_targets)
            Zeros without an intercept.
        """
        scaled = coefs if self.scale is None else coefs * self.scale[:, None]
        bias = self.target_mean - np.tensordot(coefs, self.mean, axes=(1, 0)) - intercepts
        errors: Float64 = self._squared_errors(scaled) / self.weight + np.square(bias)
        return errors

    def _squared_errors(self, coefs: Float64) -> Float64:
        """Estimate ‖b − Ax‖² of centred rows for coefficients of the scaled columns."""
        cross = np.einsum("kdt,dt->kt", coefs, self.solver.exact_cross)
        found: Float64 = self.target_mass - 2 * cross + self.solver.quadratic(coefs)
        return np.maximum(found, NOISE * self.target_mass)

    def _intercept_error(self, coef_norms: Float64, coef_bound: float | Float64) -> Float64:
        """Bound what rounding of the means does to any prediction.

        A mean moves by at most the displacement of the rows over √weight, and a little whenever a
        block joins it; with it move both the intercept and the distance of a row from it.
        """
        if not self.centred:
            return np.zeros_like(coef_norms)
        unit, root = unit_roundoff(np.dtype(np.float64)), math.sqrt(self.weight)
        mean = self.mean if self.scale is None else self.mean / self.scale
        reach = coef_norms + np.where(np.isfinite(coef_bound), coef_bound, 0.0)
        size = np.abs(self.target_mean) + float(column_norms(mean[:, None])[0]) * reach
        moved = (self.target_displacement + self.displacement * reach) / root
        spread = np.sqrt(self.target_mass) + math.sqrt(self.solver.covariance.mass) * reach
        joined = 4 * self.n_blocks * unit * spread / root
        error: Float64 = moved + joined + (len(mean) + 8) * unit * size
        return np.where(np.isfinite(coef_bound), error, np.inf)


@dataclass(frozen=True)
class Probed:
    """What probes say of a residual r = rest − K·coef, for every target.

    Attributes
    ----------
    query : Query
        What they are of.
    found : ndarray of shape (n_targets,)
        ‖Φᵀr‖.
    coef, rest, rest_error : ndarray
        The coefficients, what their image is taken off, and at least the norm of its error.
    moved : float
        What rounding of the rows may have changed AᵀA by, in the spectral norm.
    surprise : float or ndarray of shape (n_targets,)
        −log of the probability that choices by the probes had which led to the coefficients, beside
        those that led to the sketch.
    """

    query: Query
    found: Float64
    coef: Float64
    rest: Float64
    rest_error: Float64
    moved: float
    surprise: float | Float64 = 0.0

    @property
    def estimate(self) -> Float64:
        """Of ‖r‖."""
        stretch = self._probes.stretch
        typical = float(np.sqrt(np.square(stretch).mean())) / math.sqrt(len(self._probes.points))
        return typical * self.found

    def bound(self, doubt: float) -> Float64:
        """Return at least ‖r‖, but with probability ``doubt`` for any of the targets."""
        query, norms = self.query, column_norms(self.coef)
        mass, longest = query.solver.covariance.mass, query.longest_block
        factor = self._probes.factor(doubt / len(self.found) * np.exp(-self.surprise))
        along = np.maximum(np.einsum("dt,dt->t", self.coef, self.rest), 0.0)
        fitted = math.sqrt(mass) * norms
        for _ in range(2):
            rounding = self._probes.rounding(mass, longest, query.n_sums, self.coef, fitted)
            residual = factor * (self.found + rounding)
            # ‖Ax‖² = x·rest − x·r.
            fitted = np.fmin(fitted, np.sqrt(along + norms * residual))
        return known(residual + self.moved * norms + self.rest_error)

    @property
    def _probes(self) -> Probes:
        assert self.query.probes is not None
        return self.query.probes


def check_range(found: Float64) -> None:
    """Raise ValueError unless coefficients or intercepts are finite."""
    if not np.isfinite(found).all():
        raise ValueError(
            "coefficients overflow, since alpha is tiny beside the squares of the features: "
            "use a larger alpha, or divide the features by a constant"
        )
