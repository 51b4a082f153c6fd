"""Ridge regression for scikit-learn."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.linear_model import Ridge

from ridgepass.estimators.base import StreamingEstimator
from ridgepass.estimators.batch import Origin, Targets
from ridgepass.estimators.inputs import check_targets, check_weights
from ridgepass.kernels import Float64


class RidgeRegressor(RegressorMixin, MultiOutputMixin, StreamingEstimator):
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
        """
        return self._train(X, y, sample_weight, whole=False)

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
        Rows of the sketch. The model holds about 2·sketch_size·n_features numbers (3 up to a size
        of 64).
    memory : int, float, str or None, default=None
        A budget for the fitted model, in bytes or as text: ``"512MB"``, ``"1.5 GiB"``. Given one,
        ``sketch_size`` is ignored: the sketch gets as many rows as fit, though no more than there
        are features, and ``method="auto"`` is exact if that fits. Counted are the model, its
        unfinished block of rows and, for the exact method, the copy of XᵀX that a query takes; not
        counted are the batches, the coefficients, and what the anchors of many targets take while
        they move. Sparse rows wait in longer blocks, which stay within the budget if at most one
        number in 32 is not zero.
    method : str, default="auto"
        How XᵀX is remembered: ``"exact"``, ``"fd"``, ``"rfd"``, ``"isvd"``, ``"2lfd"``, ``"rp"``,
        ``"cs"`` or ``"anchored"``; see :class:`ridgepass.RidgeStream`. ``"auto"`` is ``"exact"`` up
        to 8·sketch_size features, with ``memory`` as told there, and ``"anchored"`` beyond; or
        ``"rfd"`` where there are more targets than rows in the sketch.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which alpha does not shrink.
    standardize : bool, default=False
        Whether alpha treats features as if each had been divided by its standard deviation.
        Coefficients come in the units of X all the same.
    feature_scale : array_like of shape (n_features,) or None, default=None
        What features are divided by instead, if known beforehand.
    dtype : {None, "float32", "float64"}, default=None
        What the sketch is kept in. None is float32 if the first batch is, else float64.
    random_state : int, RandomState instance or None, default=None
        Seed of the random methods ``"2lfd"``, ``"rp"`` and ``"cs"``. None takes a new one for each
        fit.

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
    pandas, polars and Arrow tables are taken as they are; a call that raises leaves the model as it
    was. Several threads may predict with one model.

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
    ('anchored', 2000)
    >>> print(f"{model.score(X, y):.3f}")
    0.994
    >>> print(f"within {model.certificate().relative:.1%} of exact ridge")
    within 11.8% of exact ridge
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
        self.dtype = dtype
        self.random_state = random_state
