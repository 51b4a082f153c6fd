"""Passes over rows that can be read again, each with a better answer and a proof of it."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ridgepass.intake import Batch
from ridgepass.kernels import Float64, binary_scales
from ridgepass.probes import Probes
from ridgepass.query import CONFIDENCE, Query
from ridgepass.refining.certify import certify, probes_in
from ridgepass.refining.passes import new_pass
from ridgepass.refining.refined import Correct, Refined, Refinement, Shares
from ridgepass.refining.same_rows import (
    check_row_count,
    check_same_rows,
    check_same_scale,
    signs_for,
)
from ridgepass.refining.sums import UNIT, Pass, Preparation, Totals, ridge_residual
from ridgepass.sketch import TrackedCovariance
from ridgepass.solve import DenseSolver, LowRankSolver, curvature_bound

Read = Callable[[], Iterable[Batch]]

# Steps beyond what passes have measured are halved up to so many times, where probes see that they
# are too long. Before the first row, 2⁻ʲ of one in twenty is taken to be halved j times.
MOST_HALVINGS = 20
HALVES = 0.05
WHOLE = -math.log1p(-HALVES)


class Progress(NamedTuple):
    """How far refining has come.

    Attributes
    ----------
    number : int
        The pass under way or just finished, of the alpha that has had most; the first refining one
        is 2.
    rows : int
        Rows of it that were read.
    relative : float or None
        After a pass: the certified relative error, the largest of all targets and alphas.
    """

    number: int
    rows: int
    relative: float | None = None


Watch = Callable[[Progress], None]


class Refining:
    """One alpha or several, refined in the same passes.

    Parameters
    ----------
    query : Query
        What the first pass has left.
    before : Refinement or None
        What earlier calls have found; it stays as it is.
    alphas : sequence of float
        Which alphas to refine.
    sparse : bool
        Whether rows are to be multiplied as sparse ones.
    confidence : float
        The least probability with which what is reported as certified holds.
    """

    def __init__(
        self,
        query: Query,
        before: Refinement | None,
        alphas: Sequence[float],
        *,
        sparse: bool,
        confidence: float = CONFIDENCE,
    ) -> None:
        self.query, self.sparse, self.confidence = query, sparse, confidence
        self.alphas = list(dict.fromkeys(alphas))
        self.refinement = self._before = before
        self._diagonal = None if before is None else before.diagonal  # of K
        self._correct: dict[float, Correct] = {}
        self._certified: tuple[Refinement | None, float] | None = None

    def relative(self) -> float:
        """Return the certified relative error, the largest of all targets and alphas."""
        if self._certified is None or self._certified[0] is not self.refinement:
            found = max(float(np.max(self._relative(alpha))) for alpha in self.alphas)
            self._certified = self.refinement, found
        return self._certified[1]

    def run(
        self, read: Read, *, passes: int, tol: float | None = None, watch: Watch | None = None
    ) -> Refinement | None:
        """Read the rows ``passes`` times, or fewer if ``tol`` or the limit of rounding is reached.

        Returns what is known then, also of alphas that were not asked for; the same as before if no
        pass was needed. Should reading fail, ``refinement`` has what was found until then.
        """
        done = 0
        while done < passes and not (tol is not None and self.relative() <= tol):
            if self.finished():
                break
            done += 1
            self._pass(read, watch, 0.0 if tol is None else stopping_price(done))
        return self.refinement

    def joined(self, now: Refinement | None) -> Refinement | None:
        """Return what was found with what others have found meanwhile, at other alphas."""
        found = self.refinement
        if found is None or now is None or now is self._before:
            return found
        mine = {alpha: found.by_alpha[alpha] for alpha in self.alphas if alpha in found.by_alpha}
        return replace(found, by_alpha={**now.by_alpha, **mine})

    def finished(self) -> bool:
        """Whether another pass would find nothing but rounding."""
        known = [self._known(alpha) for alpha in self.alphas]
        return all(one is not None and one.finished for one in known)

    def _known(self, alpha: float) -> Refined | None:
        return None if self.refinement is None else self.refinement.by_alpha.get(alpha)

    def _relative(self, alpha: float) -> float | Float64:
        found = self._known(alpha)
        if found is None or self.refinement is None:
            return self.query.certificate(alpha, self.confidence).relative
        return certify(self.query, self.refinement, found, confidence=self.confidence).relative

    def _pass(self, read: Read, watch: Watch | None, price: float) -> None:
        n_targets = len(self.query.target_mass)
        known = {alpha: self._known(alpha) for alpha in self.alphas}
        fresh = [alpha for alpha, found in known.items() if found is None]
        starts = dict(zip(fresh, self.query.solve(fresh), strict=True)) if fresh else {}
        # Where rounding has caught up with a residual, the rows are asked for a new one.
        starts |= {a: found.answer for a, found in known.items() if found and found.drowned}
        vectors, targets = [], []
        for alpha, found in known.items():
            begins = alpha in starts
            vectors.append(starts[alpha] if found is None or begins else found.direction)
            targets.append(np.arange(n_targets) if begins else np.full(n_targets, -1))
        number = 1 + max(1 if found is None else found.passes for found in known.values())
        # By columns, as they are multiplied, so that there is no second copy.
        together = np.vstack([one.T for one in vectors]).T
        sums = self._sums(read, together, np.concatenate(targets), number, watch)
        with np.errstate(over="ignore", invalid="ignore"):
            totals = sums.finish()
        check_same_rows(self.query, totals, sums.signs)
        scale, scale_error = self._scale(sums.preparation, totals)
        if self._diagonal is None and self._wants_diagonal and totals.deviations is not None:
            diagonal = totals.weight * np.square(totals.deviations)
            self._diagonal = diagonal if np.isfinite(diagonal).all() else None
        products, stretch = totals.lifted, 1.0
        if scale is not None and sums.preparation.measures:
            # In columns of another length the same predictions come from other coefficients.
            ratio = scale / np.asarray(sums.preparation.scale)
            products, stretch = products / ratio[:, None], float((1 / ratio).max())
            starts = {alpha: start * ratio[:, None] for alpha, start in starts.items()}
        lifted = np.hsplit(products, len(known))
        errors = np.split(totals.lifted_error * stretch, len(known))
        by_alpha = {} if self.refinement is None else dict(self.refinement.by_alpha)
        with np.errstate(over="ignore", invalid="ignore"):
            for (alpha, found), product, error in zip(known.items(), lifted, errors, strict=True):
                correct, shares = self._corrector(alpha), self._shares(alpha, scale)
                if found is None or alpha in starts:
                    start = starts[alpha]
                    residual, error = ridge_residual(product, error, alpha, start)
                    now = Refined.begun(
                        alpha, start, residual, error, correct, shares, before=found
                    )
                else:
                    residual, error = ridge_residual(product, error, alpha, found.direction)
                    now = found.advanced(-residual, error, correct, shares)
                by_alpha[alpha] = now.paying(price)
        self.refinement = Refinement.of(
            sums.preparation, totals, by_alpha, scale, scale_error, self._diagonal
        )
        if watch is not None:
            watch(Progress(number, totals.n_rows, self.relative()))

    def _sums(
        self, read: Read, vectors: Float64, targets: Any, number: int, watch: Watch | None
    ) -> Pass:
        """Read all rows once."""
        query = self.query
        signs = signs_for(query.target_mass)
        scale, first = query.scale, self.refinement is None
        if self.refinement is not None and self.refinement.scale is not None:
            scale = self.refinement.scale
        measures = first and (query.measured is not None or self._wants_diagonal)
        preparation = Preparation(query.mean, query.target_mean, scale, query.centred, measures)
        sums, rows = new_pass(self.sparse, preparation, vectors, targets, signs), 0
        for batch in read():
            rows += batch.rows.shape[0]
            check_row_count(rows, query.n_rows)
            with np.errstate(over="ignore", invalid="ignore"):  # bounds are infinite then
                sums.add(batch.rows, batch.targets, batch.weights)
            if watch is not None:
                watch(Progress(number, rows))
        return sums

    def _scale(self, preparation: Preparation, totals: Totals) -> tuple[Float64 | None, float]:
        """Return deviations that are known better than the first pass knew them, if there are."""
        query = self.query
        if self.refinement is not None:
            return self.refinement.scale, self.refinement.scale_error
        measured, errors = query.measured, totals.deviation_errors
        if totals.deviations is None or errors is None or measured is None:
            return None, 0.0
        error = float(errors[measured].max(initial=0.0))
        # And what the measured deviation is multiplied by is rounded.
        error += 4 * UNIT
        doubt = error + query.scale_error
        check_same_scale(query, totals.deviations, errors, measured, doubt)
        ratio = np.where(measured, totals.deviations, 1.0)
        if not error < query.scale_error:
            return None, 0.0
        return np.asarray(preparation.scale) * ratio, error

    def _corrector(self, alpha: float) -> Correct:
        solver = self.query.solver
        if not self._correct:
            if isinstance(solver, DenseSolver) and len(self.alphas) > 1:
                found = solver.correctors(self.alphas)
            else:
                found = [self._new_corrector(one) for one in self.alphas]
            self._correct = dict(zip(self.alphas, found, strict=True))
        return self._correct[alpha]

    @property
    def _wants_diagonal(self) -> bool:
        """Whether K's diagonal makes a better preconditioner: other sketches have their own."""
        return isinstance(self.query.solver, LowRankSolver)

    def _new_corrector(self, alpha: float) -> Correct:
        solver, diagonal = self.query.solver, self._diagonal
        if isinstance(solver, LowRankSolver) and diagonal is not None and alpha > 0:
            return solver.corrector_with_diagonal(alpha, diagonal)
        return solver.corrector(alpha)

    def _shares(self, alpha: float, scale: Float64 | None) -> Shares:
        """Return how much of a correction to add: none of them may make an answer worse by far."""
        query = self.query
        covariance = query.solver.covariance
        if not isinstance(covariance, TrackedCovariance):

            def by_curvature(
                residual: Float64, correction: Float64, power: Float64
            ) -> tuple[Float64, Float64]:
                # The best for a curvature halfway between the least and the most: at the most it
                # still does not raise the energy.
                curved = curvature_bound(covariance, alpha, correction, query.moved, share=0.5)
                found = np.divide(power, curved, out=np.zeros_like(power), where=curved > 0)
                return found, np.zeros_like(power)

            return by_curvature
        probes = probes_in(query, scale) if alpha > 0 else None
        if probes is None:
            return lambda residual, correction, power: (np.ones_like(power), np.zeros_like(power))
        return partial(_shares_by_probes, probes, alpha)


def stopping_price(number: int) -> float:
    """Return what a pass adds to the price of stopping by what probes have proved.

    Before the first row, stopping after the k-th further pass has probability 1/(k(k + 1)).
    """
    return math.log(number + 1) - (math.log(number - 1) if number > 1 else 0.0)


def _shares_by_probes(
    probes: Probes, alpha: float, residual: Float64, correction: Float64, power: Float64
) -> tuple[Float64, Float64]:
    """Return the powers of two θ that make r − θ(K + γI)z shortest, as probes see it.

    Where K̂ is too small, z is too long. A whole step is taken unless it is so twofold.
    """
    units = binary_scales(residual), binary_scales(correction)
    none = np.zeros_like(residual)
    lost = probes.residuals(residual / units[0], none)
    seen = -probes.residuals(-alpha * (correction / units[1]), correction / units[1])
    size = binary_scales(seen)
    along = np.einsum("pt,pt->t", lost, seen / size)
    squares = np.square(seen / size).sum(axis=0)
    best = np.divide(along, squares, out=np.ones_like(along), where=squares > 0)
    halvings = -np.log2(np.maximum(best * (units[0] / size / units[1]), 2.0**-MOST_HALVINGS))
    halvings = np.where(halvings >= 1.0, np.rint(halvings), 0.0)
    surprise = np.where(halvings > 0, halvings * math.log(2) - math.log(HALVES), WHOLE)
    return 2.0**-halvings, surprise
