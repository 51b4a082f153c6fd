"""Ridge classification for scikit-learn."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.linear_model import RidgeClassifier

from ridgepass.estimators.batch import Origin, Targets
from ridgepass.estimators.inputs import check_weights
from ridgepass.estimators.labels import Labels, check_class_weight, check_labels
from ridgepass.estimators.learned import Learned
from ridgepass.estimators.refinable import Refinable
from ridgepass.estimators.settings import Settings
from ridgepass.kernels import Float64


class StreamingRidgeClassifier(ClassifierMixin, Refinable):
    """Ridge classification in one pass, in memory that does not grow.

    Ridge regression on targets of one for a row's class and minus one for all others, as
    :class:`sklearn.linear_model.RidgeClassifier` has it; with ``method="exact"`` the result is the
    same to rounding. A thousand classes cost one stream: each is but one more target.

    Parameters
    ----------
    alpha : float, default=1.0
        The ridge parameter, at least zero. It takes effect when coefficients are asked for: after
        ``set_params(alpha=...)``, or with `at`, no row is read again.
    sketch_size : int, default=256
        Rows of the sketch.
    memory : int, float, str or None, default=None
        A budget for the fitted model, in bytes or as text, which sets the sketch size; see
        `StreamingRidge`.
    method : str, default="auto"
        How XᵀX is remembered; see `StreamingRidge`.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which alpha does not shrink.
    standardize : bool, default=False
        Whether alpha treats features as if each had been divided by its standard deviation.
    feature_scale : array_like of shape (n_features,) or None, default=None
        What features are divided by instead, if known beforehand.
    probes : int, default=24
        Random vectors that measure the error, for `certificate`; see `StreamingRidge`.
    dtype : {None, "float32", "float64"}, default=None
        What the sketch is kept in. None is float32 if the first batch is, else float64.
    random_state : int, RandomState instance or None, default=None
        Seed of the probes, and of the random methods ``"2lfd"``, ``"rp"`` and ``"cs"``; see
        `StreamingRidge`.
    class_weight : dict, "balanced" or None, default=None
        Weights by label, one for labels left out. ``"balanced"`` weighs classes by one over their
        frequency, which only `fit` can know.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; for y of zeros and ones with several columns, the columns' numbers.
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Coefficients, read-only; one row in all for two classes.
    intercept_ : float or ndarray of shape (1,) or (n_classes,)
        The intercepts, zero without ``fit_intercept``.
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
    StreamingRidge : The same for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgepass.estimators import StreamingRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.standard_normal((3, 50))
    >>> names = np.array(["ash", "elm", "oak"])
    >>> model = StreamingRidgeClassifier(alpha=10.0)
    >>> for _ in range(10):
    ...     kind = rng.integers(3, size=40)
    ...     X = centres[kind] + rng.standard_normal((40, 50))
    ...     model = model.partial_fit(X, names[kind], classes=names)
    >>> model.predict(centres)
    array(['ash', 'elm', 'oak'], dtype='<U3')
    >>> model.decision_function(centres).shape
    (3, 3)
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
        class_weight: Any = None,
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
        self.class_weight = class_weight

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the decision values."""
        return self._labels().classes

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from these rows alone, forgetting all before.

        Parameters
        ----------
        X : array_like, sparse matrix or frame of shape (n_samples, n_features)
            Rows: NumPy, SciPy CSR or CSC, pandas, polars, or anything with ``__arrow_c_stream__``.
        y : array_like of shape (n_samples,) or (n_samples, n_labels)
            Labels, or a column of zeros and ones for each label.
        sample_weight : array_like of shape (n_samples,) or float, optional
            Weights of at least zero.

        Returns
        -------
        self
            The estimator.
        """
        return self._train(X, y, sample_weight, whole=True)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more rows, one or any number.

        Parameters
        ----------
        X : array_like, sparse matrix or frame of shape (n_samples, n_features)
            Rows, with the same columns in every batch.
        y : array_like of shape (n_samples,) or (n_samples, n_labels)
            Labels, or a column of zeros and ones for each label.
        classes : array_like of shape (n_classes,), optional
            All labels that will ever come. Needed in the first call, unless y has a column for
            each; the same or none later.
        sample_weight : array_like of shape (n_samples,) or float, optional
            Weights of at least zero.

        Returns
        -------
        self
            The estimator.

        Notes
        -----
        What a failure or an interrupt leaves is said in :meth:`StreamingRidge.partial_fit`.
        """
        return self._train(X, y, sample_weight, whole=False, classes=classes)

    def decision_function(self, X: Any) -> Float64:
        """Return the regression's predictions, near one for a row's class.

        Parameters
        ----------
        X : array_like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, of the second.
        """
        return self._decision(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : array_like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels, or zeros and ones as y had them.
        """
        scores = self.decision_function(X)
        return self._labels().decode(scores)

    def to_sklearn(self) -> RidgeClassifier:
        """Return a plain `sklearn.linear_model.RidgeClassifier` with these coefficients.

        Returns
        -------
        sklearn.linear_model.RidgeClassifier
            It predicts the same, and needs ridgepass no more.
        """
        labels = self._labels()
        # Fitted on next to nothing, so that whatever it keeps of the labels is in place.
        y = labels.classes if not labels.multilabel else np.eye(len(labels.classes), dtype=int)
        plain = RidgeClassifier().fit(np.arange(float(len(y)))[:, None], y)
        plain.set_params(class_weight=self.class_weight)
        return self._dress(plain)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _labels(self) -> Labels:
        labels = self._trained().origin.labels
        assert labels is not None
        return labels

    def _read_targets(
        self, y: Any, sample_weight: Any, n_rows: int, known: Origin | None, **how: Any
    ) -> Targets:
        check_class_weight(self.class_weight, whole=how["whole"])
        answers = check_labels(y, n_rows)
        labels = self._agree_on_labels(answers, known, **how)
        weights = check_weights(sample_weight, n_rows)
        by_class = labels.weights(self.class_weight, answers)
        if by_class is not None:
            weights = by_class if weights is None else weights * by_class
        values = labels.encode(answers)
        return Targets(values, weights, column=values.ndim == 1, labels=labels)

    def _read_targets_again(
        self, y: Any, sample_weight: Any, n_rows: int, known: Origin, *, whole: bool
    ) -> Targets:
        # "balanced" needs all labels at once, as it did in training.
        whole = whole and self.class_weight == "balanced"
        targets = self._read_targets(y, sample_weight, n_rows, known, whole=whole)
        if known.labels is None or targets.labels is None or known.labels.same_as(targets.labels):
            return targets
        raise ValueError(
            f"y has the labels {targets.labels}, the classes are {known.labels}: give the labels "
            "of training"
        )

    def _agree_on_labels(
        self, y: NDArray[Any], known: Origin | None, *, whole: bool, classes: Any = None
    ) -> Labels:
        if whole:
            return Labels.of_targets(y)
        before = None if known is None else known.labels
        if classes is None and before is None and y.ndim == 1:
            raise ValueError(
                "classes must be given at the first partial_fit: all labels that will ever come"
            )
        given = None
        if y.ndim == 2:
            given = Labels.of_targets(y)
        elif classes is not None:
            given = Labels.of_classes(classes)
        if before is not None and given is not None and not before.same_as(given):
            raise ValueError(
                f"classes are not those of the first partial_fit, {before}: give the same or none"
            )
        labels = given if before is None else before
        assert labels is not None
        if labels.multilabel != (y.ndim == 2):
            raise ValueError(
                f"y has shape {y.shape}, but the first batch had a column for each label: "
                "give the same in every batch"
            )
        return labels

    def _check_mergeable(self, other: Self, settings: Settings, theirs: Learned) -> None:
        super()._check_mergeable(other, settings, theirs)
        labels = None if self._learned is None else self._learned.origin.labels
        found = theirs.origin.labels
        if labels is not None and found is not None and not labels.same_as(found):
            raise ValueError(
                f"the classes are {labels}, the other's {found}: give both the same classes"
            )
        if self.class_weight != other.class_weight:
            raise ValueError("the two differ in class_weight: use one setting for all parts")
