"""Ridge regression that chooses its alpha in the same pass."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ridgepass import validation
from ridgepass.estimators.batch import Origin
from ridgepass.estimators.folds import Deal, FoldedLearned, same_deal
from ridgepass.estimators.inputs import check_rows, check_targets, check_weights, errors_of
from ridgepass.estimators.learned import Learned
from ridgepass.estimators.regressor import RidgeRegressor, StreamingRidge
from ridgepass.estimators.settings import Settings
from ridgepass.kernels import Float64

# Without alphas, four to a decade over this range of the largest eigenvalue of XᵀX.
GRID = np.geomspace(1e-5, 10.0, 25)


@dataclass(frozen=True)
class Choice:
    """Alphas and what speaks for them: minus the mean squared error expected on new rows."""

    alphas: Float64
    scores: Float64

    @property
    def alpha(self) -> float:
        """The alpha with the best score; the largest of equals."""
        return float(max(self.alphas[self.scores == self.scores.max()]))


class StreamingRidgeCV(RidgeRegressor):
    """Ridge regression in one pass that chooses alpha with no second one.

    Parameters
    ----------
    alphas : sequence of float or None, default=None
        The alphas to choose from. None takes 25 of them, four to a decade, from 1e-5 to ten
        times the largest eigenvalue of XᵀX as the model sees it (centred, weighted, scaled).
    cv : int, list of (train, test) or None, default=None
        None is generalised cross-validation from the sketch's spectrum and the exact moments: as
        cheap as a plain fit. A number k is k-fold cross-validation within the pass: rows are dealt
        out in turn to k sketches, each training set is the merger of k − 1 of them, and a fold's
        error comes from its own moments and sketch. It holds k sketches. A list of row numbers, as
        ``list(splitter.split(X, y))`` gives it, says which row goes to which fold, the rows counted
        from the start of the stream, also those of weight zero.
    sketch_size, memory, method, fit_intercept, standardize, feature_scale, probes, dtype, \
random_state
        As in :class:`StreamingRidge`. With ``cv=k`` a ``memory`` budget is for all k sketches and
        their merger.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen, from all rows so far; chosen when first asked for after training.
    alphas_ : ndarray of shape (n_alphas,)
        What it was chosen from.
    scores_ : ndarray of shape (n_alphas,)
        Minus the mean squared error expected on new rows, averaged over the targets.
    coef_, intercept_, n_features_in_, feature_names_in_, method_, sketch_size_, n_samples_seen_, \
scale_
        As in :class:`StreamingRidge`.

    See Also
    --------
    StreamingRidge : With an alpha of your own.

    Notes
    -----
    Dealing rows out in turn suits rows in any order but for series in which neighbours are nearly
    alike: there each fold has seen its neighbours' values. Use `select` with later rows for those.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgepass import StreamingRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> model = StreamingRidgeCV([0.1, 10.0, 1000.0, 1e5], sketch_size=32)
    >>> for _ in range(10):
    ...     X = rng.standard_normal((200, 300)) * np.exp(-np.arange(300) / 10)
    ...     y = X[:, 0] + rng.standard_normal(200)
    ...     model = model.partial_fit(X, y)
    >>> model.alpha_
    10.0
    >>> model.scores_.shape
    (4,)
    """

    def __init__(
        self,
        alphas: Sequence[float] | Float64 | None = None,
        *,
        cv: int | None = None,
        sketch_size: int = 256,
        memory: int | float | str | None = None,
        method: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = False,
        feature_scale: ArrayLike | None = None,
        probes: int = 24,
        dtype: Any = None,
        random_state: Any = None,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.sketch_size = sketch_size
        self.memory = memory
        self.method = method
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.feature_scale = feature_scale
        self.probes = probes
        self.dtype = dtype
        self.random_state = random_state

    @property
    def alpha_(self) -> float:
        """The alpha chosen."""
        return self._choice().alpha

    @property
    def alphas_(self) -> Float64:
        """What alpha was chosen from."""
        return self._choice().alphas.copy()

    @property
    def scores_(self) -> Float64:
        """Minus the mean squared error expected on new rows, for each alpha."""
        return self._choice().scores.copy()

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from these rows alone, forgetting all before, also what `select` chose.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`StreamingRidge.fit`.

        Returns
        -------
        self
            The estimator.
        """
        return super().fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows, one or any number.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`StreamingRidge.partial_fit`, also what a failure or an interrupt leaves.

        Returns
        -------
        self
            The estimator.
        """
        with errors_of(self):
            learned = self._whole()
            before = learned.deal if isinstance(learned, FoldedLearned) else None
            now = None if self.cv is None else Deal.of(self.cv)
            if learned is not None and not same_deal(before, now):
                raise ValueError(
                    "cv changed after training began: call fit to begin again, or set it back"
                )
        return super().partial_fit(X, y, sample_weight)

    def select(
        self,
        alphas: Sequence[float] | Float64 | None,
        X_val: Any,
        y_val: Any,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose alpha by the error on rows kept aside, as the paper does.

        The choice stands until `fit` or the next `select`, also while `partial_fit` goes on.

        Parameters
        ----------
        alphas : sequence of float or None
            The alphas to choose from; None takes the estimator's.
        X_val : array_like, sparse matrix or frame of shape (n_samples, n_features)
            Rows that were not trained on.
        y_val : array_like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array_like of shape (n_samples,) or float, optional
            Their weights.

        Returns
        -------
        self
            With ``alpha_``, ``alphas_`` and ``scores_`` of this choice.
        """
        learned = self._trained()
        with errors_of(self):
            grid = self._grid(learned, self.alphas if alphas is None else alphas)
            rows, _ = check_rows(self, X_val, learned.origin.n_features, learned.origin.names)
            targets = check_targets(y_val, rows.shape[0]).reshape(rows.shape[0], -1)
            if targets.shape[1] != learned.origin.n_targets:
                raise ValueError(
                    f"y_val has {targets.shape[1]} targets, the model has "
                    f"{learned.origin.n_targets}: give the same targets as in training"
                )
            weights = check_weights(sample_weight, rows.shape[0])
            if weights is not None and not weights.any():
                raise ValueError(
                    "every sample_weight is zero, so there is nothing to choose by: give some row "
                    "a positive weight"
                )
            errors = [_error(model, rows, targets, weights) for model in learned.models(grid)]
        self._selected = Choice(grid, -np.array(errors))
        return self

    def at(self, alpha: float) -> StreamingRidge:
        """Return a fitted `StreamingRidge` with an alpha of your own, from the same stream.

        Parameters
        ----------
        alpha : float
            The ridge parameter.

        Returns
        -------
        StreamingRidge
            The stream is not copied unless one of the two is trained on.
        """
        learned = self._trained()
        options = self.get_params(deep=False)
        del options["alphas"], options["cv"]
        sibling = StreamingRidge(alpha, **options)
        with errors_of(self):
            sibling._alpha_in_use()
        sibling._adopt(learned)
        return sibling

    _selected: Choice | None = None
    _FORGETS: ClassVar[dict[str, Any]] = {"_selected": None}

    def _alpha_in_use(self) -> float:
        return self._choice().alpha

    def _likely_alpha(self) -> float | None:
        """Return the middle of the alphas to choose from; without any, the stream finds its own."""
        if self.alphas is None:
            return None
        grid = _as_grid(self.alphas)
        return float(np.exp(np.log(grid[grid > 0]).mean())) if grid.any() else None

    def _check_parameters(self) -> None:
        if self.alphas is not None:
            _as_grid(self.alphas)
        if self.cv is not None:
            Deal.of(self.cv)

    def _start(self, settings: Settings, origin: Origin, method: str | None = None) -> Learned:
        if self.cv is None:
            return super()._start(settings, origin, method)
        deal = Deal.of(self.cv)
        share = None if settings.memory is None else settings.memory // (deal.n_folds + 1)
        plan = replace(settings, memory=share).plan(
            origin.n_features, origin.n_targets, origin.dtype, method
        )
        alpha = self._likely_alpha()
        folds = [settings.new_stream(plan, alpha) for _ in range(deal.n_folds)]
        return FoldedLearned(folds, deal, settings, plan, origin)

    def _choice(self) -> Choice:
        learned = self._trained()
        if self._selected is not None:
            return self._selected
        with errors_of(self):
            grid = self._grid(learned, self.alphas)
            return Choice(grid, -learned.expected_errors(grid))

    def _grid(self, learned: Learned, alphas: Any) -> Float64:
        if alphas is not None:
            return _as_grid(alphas)
        with learned.lock:
            top = learned.stream.largest_eigenvalue()
        return GRID * (top or 1.0)


def _as_grid(alphas: Any) -> Float64:
    values, _ = validation.as_alphas(np.atleast_1d(alphas))
    return np.array(values)


def _error(model: Any, rows: Any, targets: Float64, weights: Float64 | None) -> float:
    """Return the mean squared error of one model, over rows and targets."""
    coef, intercept = model
    squares = np.square(rows @ coef + intercept - targets).mean(axis=1)
    return float(np.average(squares, weights=weights))
