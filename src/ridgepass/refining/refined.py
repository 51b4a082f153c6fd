"""Preconditioned conjugate gradients, one step for each pass over the rows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgepass.kernels import TINY, Float64, column_norms
from ridgepass.refining.sums import UNIT, Preparation, Totals
from ridgepass.snapshot import Kept, array, entry, number, part, whole

Correct = Callable[[Float64], Float64]  # (K̂ + γI)⁻¹·vectors
# Of what rounding may do at worst; the iteration goes on until then, though the certificate gains
# nothing any more.
EXPECTED = 1e-4
# For residuals r, corrections z of them, and rᵀz: how much of each z to add, θ, and −log of the
# probability that this choice had before the first row.
Shares = Callable[[Float64, Float64, Float64], tuple[Float64, Float64]]


@dataclass(frozen=True, eq=False)
class Refined:
    """Where the iteration for one alpha stands, for every target; in scaled columns.

    The answer is ``point + step``. Of ``point``, the iterate z, the residual r = c − (K + γI)z is
    known exactly; ``step`` is θ(K̂ + γI)⁻¹r, the next correction as far as the sketch knows it, with
    a θ up to one that cannot raise (x − z)ᵀ(K + γI)(x − z) whatever K is. (``"tracked"``
    has no bound for that: its θ is one, or what probes make of it.) No iterate's
    energy is above that of the answer before it, since that lies in the space the iterate is best
    in.

    Attributes
    ----------
    alpha : float
        The ridge parameter γ.
    passes : int
        Passes over the rows that it rests on, the first one included.
    point, residual, direction, step : ndarray of shape (n_features, n_targets)
        z, r, what the next pass multiplies by, and the step.
    power : ndarray of shape (n_targets,)
        rᵀ(K̂ + γI)⁻¹r.
    error : ndarray of shape (n_targets,)
        Bounds the rounding of r.
    asked : ndarray of shape (n_targets,)
        ‖r‖ when it last came from the rows themselves. The iteration brings r up to date, and
        rounding adds up with that.
    stalled : ndarray of bool of shape (n_targets,)
        For which targets the rows themselves have no better r to give.
    point_surprise, surprise : ndarray of shape (n_targets,)
        −log of the probability that the choices of θ had which led to the point, and with that of
        the step to the answer: what probes are to prove of it pays for them.
    """

    alpha: float
    passes: int
    stalled: NDArray[np.bool_]
    point: Float64
    residual: Float64
    direction: Float64
    step: Float64
    power: Float64
    error: Float64
    asked: Float64
    point_surprise: Float64
    surprise: Float64

    @property
    def answer(self) -> Float64:
        """Coefficients of the scaled columns."""
        return self.point + self.step

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return sum(getattr(self, name).nbytes for name in (*_VECTORS, *_NUMBERS))

    @property
    def drowned(self) -> bool:
        """Whether rounding is all that can be expected of every residual."""
        return not bool((_stands(self.residual, self.error) & ~self.stalled).any())

    @property
    def finished(self) -> bool:
        """Whether another pass would find nothing but rounding."""
        return bool(self.stalled.all())

    @classmethod
    def plain(
        cls, alpha: float, passes: int, point: Float64, residual: Float64, error: Float64
    ) -> "Refined":
        """Return coefficients as they are, without a step beyond them."""
        none, power = np.zeros_like(point), np.zeros(point.shape[1])
        asked = column_norms(residual)
        stalled = np.zeros(len(asked), dtype=bool)
        numbers = power, error, asked, power, power
        return cls(alpha, passes, stalled, point, residual, none, none, *numbers)

    @classmethod
    def begun(
        cls,
        alpha: float,
        point: Float64,
        residual: Float64,
        error: Float64,
        correct: Correct,
        shares: Shares,
        before: "Refined | None" = None,
    ) -> "Refined":
        """Start from coefficients whose residual one pass has found; ``before`` gave them."""
        asked, passes = column_norms(residual), 2
        stalled = ~_stands(residual, error)
        if before is not None:
            passes = before.passes + 1
            stalled |= before.stalled | (asked >= before.asked / 2)
        known = np.isfinite(residual).all(axis=0) & np.isfinite(error)
        residual, error = np.where(known, residual, 0.0), np.where(known, error, np.inf)
        here = cls.plain(alpha, passes, point, residual, error)
        if before is not None:
            here = replace(here, point_surprise=before.surprise, surprise=before.surprise)
        correction = correct(residual)
        step, power, surprise = _step(residual, error, correction, shares)
        surprise = surprise + here.surprise
        found = replace(here, direction=correction, step=step, power=power, surprise=surprise)
        return found._unless_it_overflows(here, stalled)

    def advanced(
        self, image: Float64, image_error: Float64, correct: Correct, shares: Shares
    ) -> "Refined":
        """Take a step, given (K + γI)·direction."""
        curved = np.einsum("dt,dt->t", self.direction, image)
        goes = _stands(self.residual, self.error) & ~self.stalled
        goes &= (curved > 0) & (self.power > 0)
        length = np.divide(self.power, curved, out=np.zeros_like(curved), where=goes)
        point, moved = self.point + length * self.direction, length * image
        residual = self.residual - moved
        error = self.error + length * image_error
        error += 4 * UNIT * (column_norms(self.residual) + column_norms(moved))
        error += np.where(length > 0, 2 * TINY * math.sqrt(len(image)), 0.0)  # underflow
        correction = correct(residual)
        step, power, surprise = _step(residual, error, correction, shares)
        turn = np.divide(power, self.power, out=np.zeros_like(power), where=self.power > 0)
        found = replace(
            self,
            passes=self.passes + 1,
            point=point,
            residual=residual,
            direction=correction + turn * self.direction,
            step=step,
            power=power,
            error=error,
            surprise=self.point_surprise + surprise,
        )
        return found._unless_it_overflows(self, self.stalled)

    def paying(self, price: float) -> "Refined":
        """Return the same, for which choices by the probes have cost so much more."""
        if price == 0.0:
            return self
        point, answer = self.point_surprise + price, self.surprise + price
        return replace(self, point_surprise=point, surprise=answer)

    def _unless_it_overflows(self, before: "Refined", stalled: NDArray[np.bool_]) -> "Refined":
        """Return this, but targets for which a number overflows stay where they were."""
        sound = np.isfinite(self.answer).all(axis=0) & np.isfinite(self.power)
        sound &= ~np.isnan(self.error)
        for vectors in (self.residual, self.direction):
            sound &= np.isfinite(vectors).all(axis=0)
        kept = {
            name: np.where(sound, getattr(self, name), getattr(before, name))
            for name in (*_VECTORS, *_NUMBERS)
        }
        return replace(self, stalled=stalled | ~sound, **kept)

    def squared_error(self, target_mass: Float64, cross: Float64) -> Float64:
        """Return ‖b − Ax̂‖² for the answer x̂, with ‖A·step‖² as the preconditioner has it.

        All else needs no rows: Kz = c − r − γz.
        """
        rest = self.residual + self.alpha * self.point
        kept = np.einsum("dt,dt->t", self.point, cross + rest)
        along = np.einsum("dt,dt->t", self.step, self.residual)  # θ·rᵀ(K̂ + γI)⁻¹r
        share = np.divide(along, self.power, out=np.zeros_like(along), where=self.power > 0)
        added = share * along - self.alpha * np.square(self.step).sum(axis=0)
        taken = 2 * np.einsum("dt,dt->t", self.step, rest)
        error: Float64 = target_mass - kept - taken + np.maximum(added, 0.0)
        return error

    def snapshot(self) -> Kept:
        """Return it as plain data."""
        kept: Kept = {"alpha": self.alpha, "passes": self.passes, "stalled": self.stalled}
        for name in (*_VECTORS, *_NUMBERS):
            kept[name] = np.ascontiguousarray(getattr(self, name))
        if not self.surprise.any():  # as files had it before there were such choices
            del kept["surprise"], kept["point_surprise"]
        return kept

    @classmethod
    def restored(cls, kept: Kept, n_features: int, n_targets: int) -> "Refined":
        """Return what a snapshot was taken of, or raise ValueError."""
        alpha = number(entry(kept, "alpha"), "alpha")
        if not 0 <= alpha < np.inf:
            raise ValueError("alpha is not a finite number of at least zero")
        passes = whole(entry(kept, "passes"), "passes", least=2)
        arrays = {}
        for name in (*_VECTORS, *_NUMBERS):
            shape = (n_features, n_targets) if name in _VECTORS else (n_targets,)
            found = kept.get(name, np.zeros(n_targets)) if name in _CHOICES else entry(kept, name)
            arrays[name] = array(found, name, np.dtype(np.float64), shape)
            if name in _CHOICES and not (arrays[name] >= 0).all():
                raise ValueError(f"{name} is negative")
        stalled = array(entry(kept, "stalled"), "stalled", np.dtype(bool), (n_targets,))
        return cls(alpha, passes, stalled, **arrays)


_VECTORS = ("point", "residual", "direction", "step")
_CHOICES = ("point_surprise", "surprise")
_NUMBERS = ("power", "error", "asked", *_CHOICES)


def _stands(residual: Float64, error: Float64) -> NDArray[np.bool_]:
    """Tell which residuals are more than the rounding that is to be expected of them."""
    return np.asarray(column_norms(residual) > EXPECTED * error)


def _step(
    residual: Float64, error: Float64, correction: Float64, shares: Shares
) -> tuple[Float64, Float64, Float64]:
    """Return θ·correction, rᵀ·correction, and −log of the probability of that θ."""
    power = np.einsum("dt,dt->t", residual, correction)
    share, surprise = shares(residual, correction, power)
    sound = (power > 0) & (share > 0) & _stands(residual, error)
    return np.where(sound, np.minimum(share, 1.0), 0.0) * correction, power, surprise


@dataclass(frozen=True, eq=False)
class Refinement:
    """What further passes have found out, until the next row.

    Attributes
    ----------
    mean, target_mean : ndarray of shape (n_features,), (n_targets,)
        The means of rows and targets, without the rounding of the first pass.
    mean_error, target_mean_error : float, ndarray of shape (n_targets,)
        Bound what is left of it, the former for columns divided by their scale.
    mass : float
        At least ‖A‖_F².
    by_alpha : mapping of float to Refined
        A better solution for each alpha that was asked for.
    scale, scale_error : ndarray of shape (n_features,) or None, float
        With ``standardize``, deviations that a pass has measured again, and how far they are off at
        most, relative to them. None where the first pass knows them as well.
    diagonal : ndarray of shape (n_features,) or None
        That of K, to precondition by, if the first pass has kept none.
    """

    mean: Float64
    target_mean: Float64
    mean_error: float
    target_mean_error: Float64
    mass: float
    by_alpha: Mapping[float, Refined]
    scale: Float64 | None = None
    scale_error: float = 0.0
    diagonal: Float64 | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        own = self.mean.nbytes + self.target_mean.nbytes + self.target_mean_error.nbytes
        own += sum(one.nbytes for one in (self.scale, self.diagonal) if one is not None)
        return own + sum(refined.nbytes for refined in self.by_alpha.values())

    def snapshot(self) -> Kept:
        """Return it as plain data."""
        kept: Kept = {}
        if self.scale is not None:
            kept |= {"scale": self.scale, "scale_error": self.scale_error}
        if self.diagonal is not None:
            kept["diagonal"] = self.diagonal
        return kept | {
            "mean": self.mean,
            "target_mean": self.target_mean,
            "mean_error": self.mean_error,
            "target_mean_error": self.target_mean_error,
            "mass": self.mass,
            "alphas": [self.by_alpha[alpha].snapshot() for alpha in sorted(self.by_alpha)],
        }

    @classmethod
    def of(
        cls,
        preparation: Preparation,
        totals: Totals,
        by_alpha: Mapping[float, Refined],
        scale: Float64 | None = None,
        scale_error: float = 0.0,
        diagonal: Float64 | None = None,
    ) -> "Refinement":
        """Take the means from the sums of a pass; it may have found another scale too."""
        shift, error, prepared = totals.shift, totals.shift_error, preparation.scale
        if prepared is not None:
            shift = shift * prepared
            error += TINY * float(column_norms(1 / prepared[:, None])[0])  # where that underflows
        stretch = 1.0
        if prepared is not None and scale is not None:
            stretch = max(float((prepared / scale).max()), 1.0)
        return cls(
            mean=preparation.mean + shift,
            target_mean=preparation.target_mean + totals.target_shift,
            mean_error=error * stretch,
            target_mean_error=totals.target_shift_error,
            mass=(totals.mass + totals.mass_error) * stretch**2,
            by_alpha=by_alpha,
            scale=scale,
            scale_error=scale_error,
            diagonal=diagonal,
        )

    @classmethod
    def restored(cls, kept: Kept, n_features: int, n_targets: int) -> "Refinement":
        """Return what a snapshot was taken of, or raise ValueError."""
        found = part(kept, "refinement")
        double = np.dtype(np.float64)
        alphas = entry(found, "alphas")
        if not isinstance(alphas, list) or not alphas:
            raise ValueError("alphas is not a list of at least one")
        refined = [Refined.restored(part(one, "alphas"), n_features, n_targets) for one in alphas]
        scale, scale_error = None, 0.0
        if "scale" in found:
            scale = array(found["scale"], "scale", double, (n_features,))
            scale_error = number(entry(found, "scale_error"), "scale_error")
            if not (scale > 0).all():
                raise ValueError("scale is not above zero")
        diagonal = None
        if "diagonal" in found:
            diagonal = array(found["diagonal"], "diagonal", double, (n_features,))
            if not (diagonal >= 0).all():
                raise ValueError("diagonal is negative")
        return cls(
            diagonal=diagonal,
            scale=scale,
            scale_error=scale_error,
            mean=array(entry(found, "mean"), "mean", double, (n_features,)),
            target_mean=array(entry(found, "target_mean"), "target_mean", double, (n_targets,)),
            mean_error=number(entry(found, "mean_error"), "mean_error"),
            target_mean_error=array(
                entry(found, "target_mean_error"), "target_mean_error", double, (n_targets,)
            ),
            mass=number(entry(found, "mass"), "mass"),
            by_alpha={one.alpha: one for one in refined},
        )
