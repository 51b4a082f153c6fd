"""The certificate of coefficients that come from elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ridgepass import validation
from ridgepass.estimators.budget import EXACT_UP_TO
from ridgepass.estimators.inputs import (
    Names,
    check_rows,
    check_targets,
    check_weights,
    errors_of,
    read_rows,
)
from ridgepass.estimators.progress import as_watch
from ridgepass.estimators.sources import open_batches, read_batches
from ridgepass.intake import Batch
from ridgepass.kernels import Float64, is_sparse
from ridgepass.refining import Progress, Refined, Refinement, certify
from ridgepass.refining.passes import new_pass
from ridgepass.refining.sums import UNIT, Pass, Preparation, ridge_residual
from ridgepass.solve import Certificate
from ridgepass.stream import RidgeStream

NAME = "verify"


def verify(
    coef: ArrayLike,
    intercept: ArrayLike | None,
    source: Any,
    alpha: float,
    *,
    target: Any = None,
    scale: ArrayLike | None = None,
    fit_intercept: bool | None = None,
    sketch_size: int = 64,
    progress: bool | Callable[[Progress], None] | None = None,
    **options: Any,
) -> Certificate:
    """Certify how far any coefficients are from exact ridge, in one pass over the data.

    Wherever they come from: scikit-learn, gradient descent, Spark, another language. The pass finds
    their residual r = Xᵀ(y − Xw − b) − alpha·w exactly, and keeps a small sketch of the rows, which
    tells in which directions r weighs little. Without a sketch the bound would be ‖r‖/alpha.

    Parameters
    ----------
    coef : array_like of shape (n_features,) or (n_targets, n_features)
        The coefficients w.
    intercept : float, array_like of shape (n_targets,), or None
        The intercept b; None for ridge without one.
    source : (X, y), (X, y, sample_weight), path, table, `ridgepass.data.Batches` or batches
        The data: arrays as a tuple, what `ridgepass.data.batches` takes or returns, or an iterable
        of ``(X, y)`` or ``(X, y, sample_weight)``.
    alpha : float
        The ridge parameter of ‖y − Xw − b‖² + alpha·‖w‖². Where squares are averaged over n rows,
        as with ``SGDRegressor``, it is n times theirs; docs/refining.md tells of others.
    target : str or list of str, optional
        The columns to predict, if ``source`` is files or a table.
    scale : array_like of shape (n_features,), optional
        If alpha penalises the coefficients of columns that were divided by this: the bounds are
        then for ``coef * scale``.
    fit_intercept : bool, optional
        Whether exact ridge is to have an intercept. By default unless ``intercept`` is None: say
        False for a model without one that gives its intercept as zero. Any other intercept is then
        all error.
    sketch_size : int, default=64
        Rows of the sketch; larger ones give tighter bounds. Up to eight times as many features XᵀX
        is kept as it is.
    progress : bool or callable, optional
        True prints a line on standard error now and then; a callable is handed a
        `ridgepass.refining.Progress` after each batch.
    **options
        Of `ridgepass.data.batches`, if ``source`` is files or a table.

    Returns
    -------
    Certificate
        With ``coef_bound`` and ``relative``, which are about the coefficients alone; ``offset``,
        how far the intercept is from the one that goes with them; and ``energy_bound`` and
        ``prediction_bound(X)``, in which both count.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> import ridgepass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 40))
    >>> y = X @ rng.standard_normal(40) + 3.0
    >>> theirs = Ridge(alpha=10.0, solver="lsqr", tol=1e-3).fit(X, y)
    >>> proof = ridgepass.verify(theirs.coef_, theirs.intercept_, (X, y), alpha=10.0)
    >>> print(f"within {proof.relative:.3%} of exact ridge")
    within 0.022% of exact ridge
    """
    with errors_of(NAME):
        coefs = _as_coefs(coef)
        value, size = validation.as_alpha(alpha), validation.as_sketch_size(sketch_size)
        if value == 0:
            raise ValueError("alpha=0 has no certificate: give a larger alpha")
        centred = intercept is not None if fit_intercept is None else fit_intercept
        checking = _Checking(
            coefs,
            _as_intercepts(intercept, np.atleast_2d(coefs).shape[0]),
            RidgeStream(
                "exact" if coefs.shape[-1] <= EXACT_UP_TO * size else "fd",
                sketch_size=size,
                fit_intercept=centred,
                feature_scale=scale,
            ),
        )
        watch = as_watch(progress)
        for batch in read_batches(open_batches(source, target, options)):
            checking.add(*batch)
            if watch is not None:
                watch(Progress(1, checking.n_rows))
        certificate = checking.certificate(value)
        if watch is not None:
            watch(Progress(1, checking.n_rows, float(np.max(certificate.relative))))
        return certificate


class _Checking:
    """A pass with somebody's coefficients, and a sketch of the same rows."""

    def __init__(self, coefs: Float64, intercept: Float64, stream: RidgeStream) -> None:
        self.stream, self.intercept = stream, intercept
        self.single = coefs.ndim == 1
        self.coefs = np.atleast_2d(coefs).T
        self.names: Names = None
        self.sums: Pass | None = None
        stream._names = ("X", "y", "sample_weight")

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self.stream.n_rows

    def add(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Take in a batch."""
        n_features, n_targets = self.coefs.shape
        first = self.sums is None
        rows, names = check_rows(NAME, X, None if first else n_features, self.names)
        if rows.shape[1] != n_features:
            raise ValueError(
                f"X has {rows.shape[1]} features and coef is for {n_features}: give the columns "
                "that coef is for"
            )
        self.names = names if first else self.names
        targets = check_targets(y, rows.shape[0]).reshape(rows.shape[0], -1)
        if targets.shape[1] != n_targets:
            raise ValueError(
                f"y has {targets.shape[1]} columns and coef is for {n_targets}: give one row of "
                "coefficients for each target"
            )
        targets = targets[:, 0] if self.single else targets
        weights = check_weights(sample_weight, rows.shape[0])
        self.stream.update(rows, targets, weights)
        if self.stream.n_rows:
            batch = self.stream.again((rows, targets, weights))
            self.sums = self.sums or self._begun(batch)
            self.sums.add(batch.rows, batch.targets, batch.weights)

    def _begun(self, batch: Batch) -> Pass:
        """Begin to sum up about the mean of the first rows, which is near that of all."""
        stream, n_targets, scale = self.stream, self.coefs.shape[1], self.stream.feature_scale
        # With their weights: the place of a row that hardly counts may be far off.
        means = stream._seen.intake.means()
        preparation = Preparation(*means, scale, stream.fit_intercept)
        scaled = self.coefs if scale is None else self.coefs * scale[:, None]
        return new_pass(
            is_sparse(batch.rows), preparation, scaled, np.arange(n_targets), np.zeros(n_targets)
        )

    def certificate(self, alpha: float) -> Certificate:
        """Return the proof, once all rows are in."""
        if self.sums is None:
            raise ValueError("the source has no rows, or none with a weight: give some")
        query, totals = self.stream.refining([alpha]).query, self.sums.finish()
        point = self.sums.vectors
        residual, error = ridge_residual(totals.lifted, totals.lifted_error, alpha, point)
        found = Refined.plain(alpha, 1, point, residual, error)
        means = Refinement.of(self.sums.preparation, totals, {alpha: found})
        best = means.target_mean - means.mean @ self.coefs if query.centred else 0.0
        off = np.abs(self.intercept - best) + 4 * UNIT * np.abs(self.intercept)
        certificate = certify(
            query,
            means,
            found,
            unchanged=lambda: True,  # nobody else has this stream
            intercept_error=off,
        )
        certificate = certificate.of_target(0) if self.single else certificate
        read = partial(read_rows, owner=NAME, n_features=len(self.coefs), names=self.names)
        return replace(certificate, read=read)


def _as_coefs(coef: Any) -> Float64:
    coefs = np.asarray(coef)
    if coefs.dtype.kind not in "biuf" or coefs.ndim not in (1, 2) or 0 in coefs.shape:
        raise ValueError(
            f"coef has shape {coefs.shape} and dtype {coefs.dtype}: give numbers of shape "
            "(n_features,) or (n_targets, n_features)"
        )
    if not np.isfinite(coefs).all():
        raise ValueError("coef contains NaN or infinity: there is nothing to certify")
    return coefs.astype(np.float64)


def _as_intercepts(intercept: Any, n_targets: int) -> Float64:
    """Return one intercept for each target."""
    values = np.zeros(1) if intercept is None else np.atleast_1d(np.asarray(intercept))
    fits = values.dtype.kind in "biuf" and values.shape in ((1,), (n_targets,))
    if not fits or not np.isfinite(values).all():
        raise ValueError(
            f"intercept={intercept!r} does not fit: give a finite number, or one for each target"
        )
    return np.broadcast_to(values.astype(np.float64), (n_targets,))
