"""How a streaming estimator learns and merges."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

from ridgepass.estimators.batch import Origin, Targets
from ridgepass.estimators.fitted import FittedModel
from ridgepass.estimators.inputs import check_names, check_rows, errors_of
from ridgepass.estimators.learned import Learned
from ridgepass.estimators.settings import MATTER_TO_MERGE, Settings, as_alpha
from ridgepass.guard import Change, change_in_place, no_change


class StreamingEstimator(FittedModel):
    """Training for a linear model of one alpha.

    All checks come before any change: a call that fails leaves the estimator as it was, whatever it
    had learned. A change that is cut short is known to be (see `ridgepass.guard`). Subclasses store
    their parameters in ``__init__``, as scikit-learn wants it.
    """

    alpha: Any
    sketch_size: Any
    memory: Any
    method: Any
    fit_intercept: Any
    standardize: Any
    feature_scale: Any
    dtype: Any
    random_state: Any
    probes: Any

    @abstractmethod
    def _read_targets(
        self, y: Any, sample_weight: Any, n_rows: int, known: Origin | None, **how: Any
    ) -> Targets:
        """Check y and the weights of a batch; ``known`` is None for the first one."""

    def _alpha_in_use(self) -> float:
        return as_alpha(self.alpha)

    def _likely_alpha(self) -> float | None:
        """Return the alpha that starting points are kept at."""
        return self._alpha_in_use()

    def _check_parameters(self) -> None:
        """Check, before training, what `Settings` does not."""
        self._alpha_in_use()

    def merge(self, other: Self) -> Self:
        """Take in what another estimator has learned, as if both streams had been one.

        Parameters
        ----------
        other : estimator of the same class
            Stays as it is. Its alpha and sketch size may be others; its method, scaling and kind of
            intercept may not. One that has learned nothing changes nothing.

        Returns
        -------
        self
            Which need not have been fitted.

        Notes
        -----
        Models that cannot be merged raise before anything changes. Ctrl-C waits until all is taken
        in. A second one, or anything else that is raised in the middle, leaves a model that raises
        :class:`ridgepass.BrokenModelError` from then on, and ``other`` as it is.
        """
        with errors_of(self):
            if type(other) is not type(self):
                raise TypeError(f"cannot merge with {type(other).__name__}: give the same class")
            if other is self:
                raise ValueError("cannot merge with itself: its rows would count twice")
            mine, theirs = self._whole(), other._whole("the other ")
            if theirs is None:
                return self
            settings = Settings.of(self) if mine is None else mine.settings
            self._check_mergeable(other, settings, theirs)
            if mine is None:
                self._check_parameters()
                fresh = self._start(settings, theirs.origin, method=theirs.plan.method)
                with theirs.lock:
                    self._train_fresh(fresh, fresh.merging(theirs))
            else:
                # In one order, or two threads that merge crosswise would wait for each other.
                first, second = sorted((mine, theirs), key=id)
                with first.lock, second.lock:
                    self._change(mine, lambda own: own.merging(theirs))
        return self

    def _train(self, X: Any, y: Any, sample_weight: Any, *, whole: bool, **how: Any) -> Self:
        """Learn from a batch, or afresh from the ``whole`` data."""
        with errors_of(self):
            self._check_parameters()
            settings = Settings.of(self)
            learned = None if whole else self._whole()
            known = None if learned is None else learned.origin
            if learned is not None:
                _check_unchanged(learned.settings, settings)
            n_features, names = (None, None) if known is None else (known.n_features, known.names)
            rows, names = check_rows(self, X, n_features, names)
            targets = self._read_targets(y, sample_weight, rows.shape[0], known, whole=whole, **how)
            if targets.idle and whole:
                raise ValueError(
                    "every sample_weight is zero, so there is nothing to learn from: "
                    "give some row a positive weight"
                )
            if learned is None:
                fresh = self._start(settings, Origin.of(rows, names, targets))
                self._train_fresh(fresh, fresh.updating(rows, targets))
            else:
                self._change(learned, lambda own: own.updating(rows, targets))
        return self

    def _start(self, settings: Settings, origin: Origin, method: str | None = None) -> Learned:
        """Return something to learn with, which has seen nothing."""
        plan = settings.plan(origin.n_features, origin.n_targets, origin.dtype, method)
        stream = settings.new_stream(plan, self._likely_alpha())
        return Learned(stream, settings, plan, origin)

    def _train_fresh(self, fresh: Learned, change: Change) -> None:
        """Train what `_start` has made, and use it from then on."""
        fresh.seed(self.random_state)  # only now: a call that fails must draw none
        change()
        self._begin_with(fresh)

    def _change(self, learned: Learned, prepare: Callable[[Learned], Change]) -> None:
        """Change what this estimator has learned, and nobody else's.

        ``prepare`` checks everything and returns the change.
        """
        with learned.lock:
            change = prepare(learned)
            if change is no_change:
                return
            own = learned.for_training(self)
            if own is learned:
                change_in_place(own, change)
            else:
                prepare(own)()
                self._replace(learned, own)

    def _replace(self, learned: Learned, own: Learned) -> None:
        """Go on with another: hold the lock of the one before."""
        self._adopt(own)
        if own is not learned:
            learned.owners.pop(self, None)

    def _check_mergeable(self, other: Self, settings: Settings, theirs: Learned) -> None:
        method = settings.method if self._learned is None else self._learned.plan.method
        if method not in ("auto", theirs.plan.method):
            text = f"method {method!r} cannot take in {theirs.plan.method!r}: "
            if "auto" in (settings.method, theirs.settings.method):
                text += "'auto' chose by sketch_size and memory, so use the same for all parts, or "
            raise ValueError(f"{text}use one method for all parts")
        different = set(settings.differences(theirs.settings)) & set(MATTER_TO_MERGE)
        if different:
            raise ValueError(
                f"the two differ in {', '.join(sorted(different))}: use one setting for all parts"
            )
        if self._learned is not None:
            check_names(type(self).__name__, self._learned.origin.names, theirs.origin.names)


def _check_unchanged(before: Settings, now: Settings) -> None:
    changed = before.differences(now)
    if changed:
        raise ValueError(
            f"{', '.join(changed)} changed after training began: "
            "call fit to begin again, or set it back"
        )
