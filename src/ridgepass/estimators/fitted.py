"""What a fitted streaming estimator can be asked."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ridgepass import validation
from ridgepass.estimators.inputs import check_rows, errors_of, read_rows
from ridgepass.estimators.learned import Learned, Solution
from ridgepass.estimators.path import RidgePath
from ridgepass.estimators.settings import as_alpha
from ridgepass.kernels import Float64
from ridgepass.query import CONFIDENCE
from ridgepass.solve import Certificate

# float32 rows are widened for a product in pieces of about this many numbers.
PIECE = 1 << 20


class FittedModel(BaseEstimator, ABC):
    """Attributes and answers, all of them from ``_learned``, which training sets as a whole.

    ``coef_`` and ``intercept_`` are solved for when first asked for after training, and kept:
    solving after each of many small batches would cost more than training.
    """

    _learned: Learned | None = None
    # What else training from the start sets back.
    _FORGETS: ClassVar[dict[str, Any]] = {}

    @abstractmethod
    def _alpha_in_use(self) -> float:
        """Return the alpha that ``coef_`` is for, checked."""

    @property
    def coef_(self) -> Float64:
        """Coefficients in the units of X, of shape (n_features,) or (n_targets, n_features)."""
        return self._solution().coef

    @property
    def intercept_(self) -> float | Float64:
        """The intercept, zero without ``fit_intercept``."""
        intercept: float | Float64 = self._solution().intercept
        return intercept

    @property
    def n_features_in_(self) -> int:
        """Features seen in training."""
        return self._trained().origin.n_features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Feature names seen in training, if all were strings."""
        names = self._trained().origin.names
        if names is None:
            raise AttributeError(f"{type(self).__name__} was fitted without feature names")
        return names

    @property
    def method_(self) -> str:
        """The method in use."""
        return self._trained().plan.method

    @property
    def sketch_size_(self) -> int:
        """The sketch size in use."""
        return self._trained().plan.sketch_size

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from, without those of weight zero."""
        learned = self._trained()
        with learned.lock:
            return learned.n_rows

    @property
    def scale_(self) -> Float64:
        """What features are divided by before alpha applies to them."""
        learned = self._trained()
        with learned.lock:
            scale = learned.stream.scale
        if scale is None:
            raise AttributeError(f"{type(self).__name__} was fitted without scaling")
        return scale

    def at(self, alpha: float) -> Self:
        """Return a fitted copy with another alpha, from the same stream.

        No row is read again, and the stream is not copied unless one of the two is trained on.

        Parameters
        ----------
        alpha : float
            The ridge parameter.

        Returns
        -------
        estimator
            Of the same class, with the same parameters but for alpha.
        """
        learned = self._trained()
        with errors_of(self):
            as_alpha(alpha)
        sibling: Self = clone(self).set_params(alpha=alpha)
        sibling._adopt(learned)
        return sibling

    def path(self, alphas: Sequence[float] | Float64) -> RidgePath:
        """Return coefficients, intercepts and error bounds for many alphas.

        Parameters
        ----------
        alphas : sequence of float
            Ridge parameters, in any order.

        Returns
        -------
        RidgePath
            With ``alphas``, ``coefs``, ``intercepts``, ``coef_bounds`` and ``relative_bounds``.
        """
        learned = self._trained()
        with errors_of(self):
            values, _ = validation.as_alphas(np.atleast_1d(alphas))
            return learned.path(values)

    def certificate(
        self, alpha: float | None = None, confidence: float = CONFIDENCE
    ) -> Certificate:
        """Bound how far the coefficients are from exact ridge on the same rows.

        Parameters
        ----------
        alpha : float, optional
            Another alpha than the estimator's.
        confidence : float
            The least probability that the bounds are to hold with, over the drawing of the probes.
            One is for what is certain alone.

        Returns
        -------
        Certificate
            With ``coef_bound``, ``relative``, their ``estimate`` and ``relative_estimate``,
            ``prediction_bound(X)`` and ``coefficient_bounds()``. Where features are scaled, the
            first four are for ``coef_ * scale_``.
        """
        learned = self._trained()
        with errors_of(self):
            value = self._alpha_in_use() if alpha is None else as_alpha(alpha)
            found = learned.certificate(value, confidence)
        origin = learned.origin
        owner, names = type(self).__name__, origin.names
        return replace(
            found, read=partial(read_rows, owner=owner, n_features=origin.n_features, names=names)
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to a file, for :func:`ridgepass.load`.

        The model that is read back predicts, goes on learning and merges to the same bits as this
        one. A file that is there already is replaced at once and only when the new one is complete;
        the same model always gives the same bytes (see docs/model-file.md).

        Parameters
        ----------
        path : str or path-like
            The file, by custom with the ending ``.ridge``.

        Notes
        -----
        Parameters are kept as they are, but for a generator as ``random_state``, which becomes
        None: the seed that was drawn from it is kept with what was learned.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import ridgepass
        >>> X, y = np.eye(4), np.arange(4.0)
        >>> model = ridgepass.StreamingRidge(alpha=0.1).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "model.ridge"
        ...     model.save(path)
        ...     again = ridgepass.load(path)
        >>> bool((again.predict(X) == model.predict(X)).all())
        True
        """
        from ridgepass.store import save  # here, since files are no business of this layer

        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a row to have learned from."""
        learned = self._learned
        if learned is None:
            return False
        with learned.lock:
            return learned.broken or learned.n_rows > 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # A shallow copy shares what was learned, and must count as one of its owners.
        if self._learned is not None:
            self._adopt(self._learned)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _trained(self) -> Learned:
        check_is_fitted(self)
        learned = self._whole()
        assert learned is not None
        return learned

    def _whole(self, which: str = "") -> Learned | None:
        """Return what was learned, if anything; raise if it is broken."""
        learned = self._learned
        if learned is not None:
            with learned.lock:  # another thread may be in the middle of a change
                learned.check_whole(f"{which}{type(self).__name__}")
        return learned

    def _adopt(self, learned: Learned, **further: Any) -> None:
        """Use what was learned, from now on as one of its owners; set further attributes with it.

        In one step, since an interrupt may come between any two.
        """
        with learned.lock:
            learned.owners[self] = None
        self.__dict__.update(further, _learned=learned)

    def _begin_with(self, learned: Learned) -> None:
        """Use what was learned from the start, forgetting all before."""
        self._adopt(learned, **self._FORGETS)

    def _solution(self) -> Solution:
        learned = self._trained()
        with errors_of(self):
            return learned.solution(self, self._alpha_in_use())

    def _decision(self, X: Any) -> Float64:
        """Return ⟨row, coefficients⟩ + intercept, of shape (n_rows,) or (n_rows, n_targets)."""
        origin = self._trained().origin
        with errors_of(self):
            rows, _ = check_rows(self, X, origin.n_features, origin.names)
        model = self._solution()
        scores: Float64 = _product(rows, model.coef.T) + model.intercept
        return scores

    def _dress(self, plain: Any) -> Any:
        """Give a plain scikit-learn estimator these coefficients."""
        model = self._solution()
        plain.set_params(alpha=model.alpha, fit_intercept=self._trained().settings.fit_intercept)
        plain.coef_ = np.array(model.coef, order="C")
        plain.intercept_ = (
            np.array(model.intercept) if np.ndim(model.intercept) else model.intercept
        )
        plain.n_features_in_ = self.n_features_in_
        if self._trained().origin.names is not None:
            plain.feature_names_in_ = self.feature_names_in_.copy()
        return plain


def _product(rows: Any, coef: Float64) -> Float64:
    """Multiply in float64, as the certificate promises, without a wide copy of all rows."""
    if sparse.issparse(rows) or rows.dtype == coef.dtype:
        return np.asarray(rows @ coef)
    step = max(1, PIECE // rows.shape[1])
    parts = [
        rows[start : start + step].astype(np.float64) @ coef for start in range(0, len(rows), step)
    ]
    return np.concatenate(parts)
