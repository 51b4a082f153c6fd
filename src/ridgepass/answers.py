"""What a stream is asked: coefficients, their certificate, and the errors of models."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from ridgepass import validation
from ridgepass.guard import Guarded
from ridgepass.kernels import Float64
from ridgepass.query import CONFIDENCE, Query, check_range
from ridgepass.refining import Refined, Refinement, certify
from ridgepass.solve import Certificate, DenseSolver
from ridgepass.state import State


class Answers(Guarded):
    """The questions of `ridgepass.RidgeStream`, none of which changes what it has learned."""

    method: str
    standardize: bool
    feature_scale: Float64 | None
    _raw_state: State | None
    _answers: Query | None
    _refinement: Refinement | None

    @property
    def scale(self) -> Float64 | None:
        """What the columns are divided by; None where they are not."""
        if not self._scales:
            return None
        refined = None if self._refinement is None else self._refinement.scale
        return self._query().scale if refined is None else refined

    def solve(self, alpha: float | Sequence[float] | Float64) -> Float64:
        """Return ridge coefficients, for one alpha or for many at once.

        Parameters
        ----------
        alpha : float or sequence of float
            The ridge parameter, the paper's γ.

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, n_targets)
            With a leading axis when ``alpha`` is a sequence.
        """
        alphas, one = validation.as_alphas(alpha)
        query = self._solvable(min(alphas))
        with np.errstate(over="ignore", invalid="ignore"):
            coefs = self._coefs(query, alphas)
            for coef, value in zip(coefs, alphas, strict=True):
                scale = self.scale if self._refined(value) is not None else query.scale
                if scale is not None:
                    coef /= scale[:, None]
        check_range(coefs)
        if self._seen.single:
            coefs = coefs[..., 0]
        return coefs[0] if one else coefs

    def _coefs(self, query: Query, alphas: Sequence[float]) -> Float64:
        """Return coefficients of the scaled columns, refined ones where there are any."""
        refined = {alpha: self._refined(alpha) for alpha in alphas}
        found = {alpha: one.answer for alpha, one in refined.items() if one is not None}
        if not found:
            return query.solve(alphas)
        others = [alpha for alpha in refined if alpha not in found]
        if others:
            found |= zip(others, query.solve(others), strict=True)
        return np.stack([found[alpha] for alpha in alphas])

    def intercept(self, coef: Float64) -> Float64:
        """Return the intercept that goes with coefficients.

        Parameters
        ----------
        coef : ndarray
            What ``solve`` returned, or any other coefficients of that shape.

        Returns
        -------
        ndarray
            The shape of ``coef`` without the axis of the features: mean(b) − mean(A)·coef, or zeros
            without ``fit_intercept``.
        """
        query = self._query()
        means = query if self._refinement is None else self._refinement
        axis = -1 if self._seen.single else -2
        targets = means.target_mean[0] if self._seen.single else means.target_mean
        with np.errstate(over="ignore", invalid="ignore"):
            found: Float64 = targets - np.tensordot(coef, means.mean, axes=(axis, 0))
        check_range(found)
        return found

    def certificate(self, alpha: float, confidence: float = CONFIDENCE) -> Certificate:
        """Bound the distance of ``solve(alpha)`` from exact ridge on the rows seen.

        With ``fit_intercept`` that is ridge on centred rows and targets. With a scaling the bounds
        are for the coefficients of the scaled columns, ``solve(alpha) * scale``. Infinite for the
        random projections ``"rp"`` and ``"cs"``, of which nothing is known, unless ``refine`` has
        looked at the rows again or there are probes.

        Parameters
        ----------
        alpha : float
            The ridge parameter.
        confidence : float
            The least probability that the bounds are to hold with, over the drawing of the probes.
            One is for what is certain alone, and so are all bounds of a stream without probes.
        """
        value, confidence = validation.as_alpha(alpha), validation.as_confidence(confidence)
        query = self._solvable(value)
        refined, unchanged = self._refined(value), partial(self.answers_from, query)
        if refined is None or self._refinement is None:
            certificate = query.certificate(value, confidence, unchanged)
        else:
            certificate = certify(
                query, self._refinement, refined, confidence=confidence, unchanged=unchanged
            )
        return certificate.of_target(0) if self._seen.single else certificate

    def passes(self, alpha: float) -> int:
        """Return how many passes over the rows ``solve(alpha)`` rests on."""
        refined = self._refined(alpha)
        return 1 if refined is None else refined.passes

    @property
    def refinement(self) -> Refinement | None:
        """What passes after the first have found out; None since the last row, or without any."""
        return None if self._state is None else self._refinement

    def _refined(self, alpha: float) -> Refined | None:
        found = self.refinement
        return None if found is None else found.by_alpha.get(alpha)

    def generalised_error(self, alphas: Sequence[float] | Float64) -> Float64:
        """Estimate the mean squared error on new rows by generalised cross-validation.

        Parameters
        ----------
        alphas : sequence of float
            Ridge parameters.

        Returns
        -------
        ndarray of shape (n_alphas,) or (n_alphas, n_targets)
            From the sketch's spectrum and the exact moments; no row is read again.
        """
        values, _ = validation.as_alphas(alphas)
        scores = self._solvable(min(values)).generalised_error(values)
        return scores[:, 0] if self._seen.single else scores

    def mean_squared_error(self, coefs: Float64, intercepts: Float64) -> Float64:
        """Estimate the mean squared error of any models on the rows seen.

        Parameters
        ----------
        coefs, intercepts : ndarray
            As ``solve`` gives them for several alphas, and ``intercept`` for these.

        Returns
        -------
        ndarray of shape (n_models,) or (n_models, n_targets)
            Exact for ``method="exact"``, otherwise estimated from sketch and moments.
        """
        if self._seen.single:
            coefs, intercepts = coefs[..., None], intercepts[..., None]
        errors = self._query().mean_squared_error(coefs, intercepts)
        return errors[:, 0] if self._seen.single else errors

    def r_squared(self, coefs: Float64, intercepts: Float64) -> Float64:
        """Estimate R² of any models on the rows seen, about zero if there is no intercept.

        Parameters and shapes are those of `mean_squared_error`; NaN for targets that do not vary.
        """
        query = self._query()
        mass = query.target_mass[0] if self._seen.single else query.target_mass
        errors = query.weight * self.mean_squared_error(coefs, intercepts)
        shares = np.divide(errors, mass, out=np.full_like(errors, np.nan), where=mass > 0)
        return 1.0 - shares

    def training_r_squared(self, alpha: float) -> float | Float64:
        """Return R² of ``solve(alpha)`` on the rows seen, about zero if there is no intercept.

        Exact for ``method="exact"``, and at an alpha that was refined but for its last step;
        otherwise estimated. A number, or one for each target.
        """
        value = validation.as_alpha(alpha)
        refined = self._refined(value)
        if refined is None:
            coefs = self.solve([value])
            scores = self.r_squared(coefs, self.intercept(coefs))[0]
            return float(scores) if self._seen.single else scores
        query = self._query()
        mass = query.target_mass
        errors = np.maximum(refined.squared_error(mass, query.solver.exact_cross), 0.0)
        shares = np.divide(errors, mass, out=np.full_like(errors, np.nan), where=mass > 0)
        return 1.0 - (float(shares[0]) if self._seen.single else shares)

    def largest_eigenvalue(self) -> float:
        """Estimate ‖AᵀA‖₂ of the rows as solved for: centred, weighted and scaled."""
        return self._query().solver.largest_eigenvalue()

    @property
    def _scales(self) -> bool:
        return self.standardize or self.feature_scale is not None

    @property
    def _state(self) -> State | None:
        """What the stream holds; all that looks at it or changes it comes this way."""
        self.check_whole("RidgeStream", "restore the last snapshot, or begin with a new stream")
        return self._raw_state

    @property
    def _seen(self) -> State:
        state = self._state
        if state is None or not state.n_rows:
            raise ValueError("no rows yet: call update(A, b) first")
        return state

    def _query(self) -> Query:
        """Look at the sketch once for all questions until the next row."""
        answers = self._answers
        if answers is None:
            self._answers = answers = Query.of(self._seen)
        return answers

    def answers_from(self, query: Query) -> bool:
        """Whether no row has come since ``query`` was made."""
        return self._answers is query

    def _solvable(self, smallest_alpha: float) -> Query:
        query = self._query()
        solver = query.solver
        if not isinstance(solver, DenseSolver) and smallest_alpha + solver.tail() <= 0:
            raise ValueError(
                f"alpha=0 has no solution with method={self.method!r}, whose AᵀA is singular: "
                "choose alpha > 0, or method='exact'"
            )
        return query
