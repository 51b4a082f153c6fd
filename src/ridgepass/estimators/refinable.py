"""Estimators that can look at their rows again."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ridgepass import validation
from ridgepass.estimators.base import StreamingEstimator
from ridgepass.estimators.batch import Origin, Targets
from ridgepass.estimators.inputs import errors_of
from ridgepass.estimators.learned import Learned
from ridgepass.estimators.progress import as_watch
from ridgepass.estimators.rereading import Rereading
from ridgepass.guard import BrokenModelError
from ridgepass.kernels import Float64
from ridgepass.refining import Progress, Refining

# With a tolerance: passes at most. A sketch that needs more is better made larger.
MOST_PASSES = 20


class Refinable(StreamingEstimator):
    """Adds `refine` to what learns in one pass."""

    def refine(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        passes: int | None = None,
        tol: float | None = None,
        alphas: Sequence[float] | Float64 | None = None,
        progress: bool | Callable[[Progress], None] | None = None,
        target: Any = None,
        **options: Any,
    ) -> Self:
        """Read the training data again: a tight certificate, and a better answer with every pass.

        One pass finds the residual of the coefficients, from which `certificate` tells their error
        with nothing unknown; what was sketched then serves as a preconditioner, so that each pass
        takes off most of the error that is left, down to rounding. Memory, besides the sketch: four
        times that of ``coef_`` for each alpha, and about fifteen times while a pass runs.

        Parameters
        ----------
        X : array_like, sparse matrix, frame, or source
            The rows learned from, in any order: all of them, as in `fit`. Or what
            `ridgepass.data.batches` takes or returns, or a list of ``(X, y)`` or
            ``(X, y, sample_weight)``. Files that the model was trained on need no further word:
            it knows its columns.
        y : array_like, or str
            Their targets; for files and tables the column's name.
        sample_weight : array_like of shape (n_samples,) or float, optional
            Their weights.
        passes : int, optional
            How often to read them: once by default. With ``tol``, at most so often: 20 times by
            default.
        tol : float, optional
            Stop as soon as the certified relative error is no larger, for every target. A warning
            tells if it was not reached.
        alphas : sequence of float, optional
            Refine at these alphas, all in the same passes, for `at` and `path`, and not at the
            estimator's own unless it is among them.
        progress : bool or callable, optional
            True prints a line on standard error after each pass, and every ten seconds. A callable
            is handed a `ridgepass.refining.Progress` after each batch and each pass.
        target : str or list of str, optional
            The same as a name given as ``y``, as `fit_stream` calls it.
        **options
            Of `ridgepass.data.batches`, if X is files or a table.

        Returns
        -------
        self
            Better until it learns from more rows, which it then has not read twice: `partial_fit`
            and `merge` go back to the one pass. If these are not the rows it has learned from, or
            anything else is wrong with them, a ValueError leaves it as it was; if reading fails or
            is interrupted, passes that were finished count.

        Notes
        -----
        The error in the norm that ridge minimises, √(‖X(w − exact)‖² + alpha·‖w − exact‖²), does
        not grow with a pass, but for rounding (with ``method="tracked"`` nothing proves that, but
        probes measure each answer). The certified error usually is two to five times the
        true one, and more where the sketch is far too small for alpha: it can then even rise with a
        pass. No row is read once rounding is all that is left.

        Examples
        --------
        >>> import numpy as np
        >>> from ridgepass import StreamingRidge
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((2000, 600)) * np.exp(-np.arange(600) / 20)
        >>> y = X @ rng.standard_normal(600)
        >>> model = StreamingRidge(alpha=10.0, sketch_size=64).fit(X, y)
        >>> print(f"{model.certificate().relative:.1%} after {model.certificate().passes} pass")
        0.4% after 1 pass
        >>> model = model.refine(X, y, tol=1e-6)
        >>> model.certificate().relative <= 1e-6, model.certificate().passes
        (True, 4)
        """
        learned = self._trained()
        with errors_of(self):
            tol = validation.as_tolerance(tol)
            default = 1 if tol is None else MOST_PASSES
            limit = default if passes is None else validation.as_passes(passes)
            if target is not None:
                if y is not None:
                    raise ValueError("y and target are the same: give one of them")
                y = target
            wanted = [self._alpha_in_use()] if alphas is None else _as_alphas(alphas)
            if tol is not None and min(wanted) == 0:
                raise ValueError(
                    "alpha=0 has no certificate, so that tol is never reached: give passes instead"
                )
            with learned.lock:
                refining = learned.stream.refining(wanted)
            rows = Rereading(self, learned, X, y, sample_weight, options)
            if limit > 1 and not rows.rereadable:
                raise ValueError(
                    "this source can be read only once: give passes=1, or files, arrays, or a list "
                    "of batches"
                )
            try:
                refining.run(rows, passes=limit, tol=tol, watch=as_watch(progress))
            except (OSError, KeyboardInterrupt):
                with suppress(ValueError, BrokenModelError):  # the model has changed meanwhile
                    self._take_up(learned, refining)
                raise
            self._take_up(learned, refining)
        if tol is not None and not refining.relative() <= tol:
            self._warn_missed(refining, tol)
        return self

    def _take_up(self, learned: Learned, refining: Refining) -> None:
        with learned.lock:
            if self._learned is not learned or not learned.stream.answers_from(refining.query):
                raise ValueError(
                    "the model has learned from other rows while these were read: refine it again"
                )
            found = refining.joined(learned.refinement)
            if found is not None and found is not learned.refinement:
                own = learned.for_training(self)
                own.take_up(found)
                self._replace(learned, own)

    def _warn_missed(self, refining: Refining, tol: float) -> None:
        reached = refining.relative()
        how = "give more passes" if not refining.finished() else "rounding allows no more"
        warnings.warn(
            f"{type(self).__name__}: the certified relative error is {reached:.2g}, not yet "
            f"{tol:g}: {how}",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _read_targets_again(
        self, y: Any, sample_weight: Any, n_rows: int, known: Origin, *, whole: bool
    ) -> Targets:
        """Check y and the weights of rows seen before; ``whole`` if these are all of them."""
        return self._read_targets(y, sample_weight, n_rows, known, whole=False)


def _as_alphas(alphas: Any) -> list[float]:
    values = np.atleast_1d(alphas)
    if not values.size:
        raise ValueError("alphas is empty: give at least one, or none for the estimator's own")
    return validation.as_alphas(values)[0]
