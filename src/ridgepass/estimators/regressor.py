"""Ridge regression for scikit-learn."""

from contextlib import closing
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin, clone
from sklearn.linear_model import Ridge

from ridgepass.estimators.batch import Origin, Targets
from ridgepass.estimators.inputs import CheckedRows, check_targets, check_weights, errors_of
from ridgepass.estimators.refinable import Refinable
from ridgepass.estimators.sources import as_batch, is_opened, open_batches
from ridgepass.kernels import Float64


class RidgeRegressor(RegressorMixin, MultiOutputMixin, Refinable):
    """What regressors share, however they come by their alpha."""

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from these rows alone, forgetting all before.

        Parameters
        ----------
        X : array_like, sparse matrix or frame of shape (n_samples, n_features)
            Rows: NumPy, SciPy CSR or CSC, pandas, polars, or anything with ``__arrow_c_stream__``.
        y : array_like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array_like of shape (n_samples,) or float, optional
            Weights of at least zero.

        Returns
        -------
        self
            The estimator.
        """
        return self._train(X, y, sample_weight, whole=True)

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows, one or any number.

        Parameters
        ----------
        X : array_like, sparse matrix or frame of shape (n_samples, n_features)
            Rows, with the same columns in every batch.
        y : array_like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array_like of shape (n_samples,) or float, optional
            Weights of at least zero.

        Returns
        -------
        self
            The estimator.

        Notes
        -----
        A batch that cannot be taken in raises before anything changes. Ctrl-C waits until the batch
        is in. A second one, or anything else that is raised in the middle, leaves a model that
        raises :class:`ridgepass.BrokenModelError` from then on: load the last one that was saved,
        or call `fit`.
        """
        return self._train(X, y, sample_weight, whole=False)

    def fit_stream(self, source: Any, target: Any = None, **options: Any) -> Self:
        """Learn from files, or from any other stream of rows, forgetting all before.

        Memory does not grow with the rows. If reading fails or is interrupted, the estimator stays
        as it was.

        Parameters
        ----------
        source : str, path, list of them, stream of Arrow batches, or iterable of batches
            What `ridgepass.data.batches` takes, or returns; or an iterable of ``(X, y)`` or
            ``(X, y, sample_weight)``.
        target : str or list of str, optional
            What to predict: the columns' names.
        **options
            Of `ridgepass.data.batches`: ``features``, ``exclude``, ``weight``, ``one_hot``,
            ``nulls``, ``format``, ``batch_rows``, ``n_features``, ``zero_based``.

        Returns
        -------
        self
            The estimator.

        Examples
        --------
        >>> import duckdb
        >>> from ridgepass import StreamingRidge
        >>> rows = duckdb.sql("select range as x, 3 * range + 1 as y from range(1000)")
        >>> model = StreamingRidge(alpha=1.0).fit_stream(rows, target="y")
        >>> print(f"{model.intercept_:.2f} {model.coef_[0]:.2f}")
        1.00 3.00
        """
        fresh = clone(self)
        with errors_of(self):
            rows = open_batches(source, target, options)
            if is_opened(rows):
                with closing(rows.chunks()) as chunks:
                    for chunk in chunks:
                        fresh._learn(chunk, rows.source)
            else:
                for batch in rows:
                    fresh.partial_fit(*as_batch(batch))
            if fresh._learned is None or not fresh._learned.n_rows:
                raise ValueError(
                    "the stream has no rows, or none with a weight: there is nothing to learn from"
                )
        self._begin_with(fresh._learned)
        return self

    def _learn(self, chunk: Any, source: Any) -> None:
        """Learn from a chunk of `ridgepass.data`, which has checked it."""
        if chunk.y is None:
            raise ValueError("there is nothing to predict: say which column is the target")
        if not chunk.X.shape[0]:
            return
        first = self._learned is None
        if self._learned is not None:
            names = self._learned.origin.names
        else:
            given = source.feature_names
            names = None if given is None else np.array(given, dtype=object)
        self._train(CheckedRows(chunk.X, names), chunk.y, chunk.weights, whole=False)
        if first and self._learned is not None:
            self._learned.columns = source.describe()

    def predict(self, X: Any) -> Float64:
        """Predict targets.

        Parameters
        ----------
        X : array_like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            In float64.
        """
        return self._decision(X)

    def training_score(self) -> float:
        """Return R² on the rows learned from, averaged over the targets; no row is read again.

        Returns
        -------
        float
            Exact for ``method="exact"``, and after `refine` but for its last step; otherwise
            estimated from the sketch and exact moments. Without an intercept it is about zero
            instead of the mean.
        """
        learned = self._trained()
        with errors_of(self), learned.lock:
            scores = learned.stream.training_r_squared(self._alpha_in_use())
        return float(np.mean(scores))

    def to_sklearn(self) -> Ridge:
        """Return a plain `sklearn.linear_model.Ridge` with these coefficients.

        Returns
        -------
        sklearn.linear_model.Ridge
            It predicts the same, and needs ridgepass no more.
        """
        return self._dress(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]))

    def _read_targets(
        self, y: Any, sample_weight: Any, n_rows: int, known: Origin | None, **how: Any
    ) -> Targets:
        values = check_targets(y, n_rows)
        column = values.ndim == 2 and values.shape[1] == 1
        if column:
            values = np.ascontiguousarray(values[:, 0])
        return Targets(values, check_weights(sample_weight, n_rows), column)


class StreamingRidge(RidgeRegressor):
    """Ridge regression in one pass, in memory that does not grow, with a certificate of its error.

    Minimises ‖y − Xw − b‖² + alpha·‖w‖², as :class:`sklearn.linear_model.Ridge` does. With
    ``method="exact"`` the result is the same to rounding; with a sketch it is near it, and
    `certificate` says how near at most.

    Parameters
    ----------
    alpha : float, default=1.0
        The ridge parameter, at least zero. It takes effect when coefficients are asked for: after
        ``set_params(alpha=...)``, or with `at`, no row is read again.
    sketch_size : int, default=256
        Rows of the sketch. The model holds about 3·sketch_size·n_features numbers.
    memory : int, float, str or None, default=None
        A budget for the fitted model, in bytes or as text: ``"512MB"``, ``"1.5 GiB"``. Given one,
        ``sketch_size`` is ignored: the sketch gets as many rows as fit, though no more than there
        are features, and ``method="auto"`` is exact if that fits. Counted are the model, its
        unfinished block of rows and, for the exact method, the copy of XᵀX that a query takes; not
        counted are the batches and the coefficients. Sparse rows wait in longer blocks, which stay
        within the budget if at most one number in 32 is not zero.
    method : str, default="auto"
        How XᵀX is remembered: ``"exact"``, ``"fd"``, ``"rfd"``, ``"isvd"``, ``"2lfd"``, ``"rp"``,
        ``"cs"`` or ``"tracked"``; see :class:`ridgepass.RidgeStream`. ``"auto"`` is ``"exact"`` up
        to 8·sketch_size features, with ``memory`` as told there, and ``"tracked"`` beyond.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which alpha does not shrink.
    standardize : bool, default=False
        Whether alpha treats features as if each had been divided by its standard deviation.
        Coefficients come in the units of X all the same.
    feature_scale : array_like of shape (n_features,) or None, default=None
        What features are divided by instead, if known beforehand.
    probes : int, default=24
        Random vectors that measure how far the answer is from solving the equation of exact ridge:
        `certificate` then has an estimate, and a bound that holds with any probability asked for.
        Each costs about as much time as a row of the sketch, and 12 bytes a feature (16 in
        float64). 0 is for none, and for certificates that are certain only; ``"tracked"`` then
        makes its own choices by eight, and may err more. The exact method needs none.
    dtype : {None, "float32", "float64"}, default=None
        What the sketch is kept in. None is float32 if the first batch is, else float64.
    random_state : int, RandomState instance or None, default=None
        Seed of the probes, and of the random methods ``"2lfd"``, ``"rp"`` and ``"cs"``. None takes
        a new one for each fit for those methods, and for probes always the same: those of all parts
        of a merger must be the same vectors. Whoever gets rows from somebody who may have chosen
        them to fool the probes passes a number of their own.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients, read-only; solved for when first asked for after training.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept, zero without ``fit_intercept``.
    n_features_in_ : int
        Features seen in training.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the first batch had names that are all strings.
    method_ : str
        The method that ``"auto"`` came to.
    sketch_size_ : int
        The sketch size that ``memory`` came to; without meaning for the exact method.
    n_samples_seen_ : int
        Rows learned from, without those of weight zero.
    scale_ : ndarray of shape (n_features_in_,)
        What features are divided by, if they are.

    See Also
    --------
    StreamingRidgeClassifier : The same for class labels.
    ridgepass.RidgeStream : The stream beneath, without scikit-learn's conventions.

    Notes
    -----
    Any split of the same rows into batches gives bitwise the same model. Dense and sparse rows,
    pandas, polars and Arrow tables are taken as they are; bad input raises and leaves the model as
    it was. Several threads may predict with one model.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgepass.estimators import StreamingRidge
    >>> rng = np.random.default_rng(0)
    >>> w = rng.standard_normal(600)
    >>> model = StreamingRidge(alpha=10.0, sketch_size=64)
    >>> for _ in range(20):
    ...     X = rng.standard_normal((100, 600)) * np.exp(-np.arange(600) / 20)
    ...     y = X @ w + 5.0
    ...     model = model.partial_fit(X, y)
    >>> model.method_, model.n_samples_seen_
    ('tracked', 2000)
    >>> print(f"{model.score(X, y):.3f}")
    0.994
    >>> print(f"within {model.certificate().relative:.1%} of exact ridge")
    within 0.9% of exact ridge
    >>> print(f"{model.at(1000.0).score(X, y):.3f}")
    0.617
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
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
        self.alpha = alpha
        self.sketch_size = sketch_size
        self.memory = memory
        self.method = method
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.feature_scale = feature_scale
        self.probes = probes
        self.dtype = dtype
        self.random_state = random_state
