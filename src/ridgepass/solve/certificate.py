"""How far a solution can be from exact ridge, from what is known after the stream."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ridgepass.kernels import Float64, column_norms, is_sparse, underflow, unit_roundoff
from ridgepass.solve.directions import Widths
from ridgepass.validation import as_rows, check_finite

# Rows are asked for in pieces of about this many numbers.
PIECE = 1 << 20


@dataclass(frozen=True)
class Certificate:
    """Bounds that hold for the rows seen, rounding included: for certain, or as often as they say.

    Attributes
    ----------
    alpha : float
        The ridge parameter they are for.
    covariance_bound : float
        At least ‖AᵀA − K̂‖₂, K̂ being what the first pass keeps.
    coef_bound : float or ndarray of shape (n_targets,)
        At least ‖x̂ − x‖₂, x being exact ridge; both for scaled columns, if they are scaled.
    relative : float or ndarray of shape (n_targets,)
        At least ‖x̂ − x‖₂/‖x‖₂.
    energy_bound : float or ndarray of shape (n_targets,)
        At least √(Σ weight·(p̂ − p)² + alpha·‖x̂ − x‖²), where p̂ and p are the predictions of the
        model and of exact ridge for each row seen: how far they are apart, taken together, and a
        little more. With an intercept that is √(‖A(x̂ − x)‖² + alpha·‖x̂ − x‖² + W·e²), where A are
        the centred rows, W is the sum of the weights, and e the distance of the model's intercept
        from the one that goes with x̂, rounding included. If exact ridge has no intercept but the
        model has one, e, then A are the rows as they are, p̂ − p is A(x̂ − x) + e for each, and the
        bound is √(‖A(x̂ − x)‖² + alpha·‖x̂ − x‖²) + √W·|e|, by the triangle inequality.
    passes : int
        How many passes over the rows the bounds rest on.
    mean : ndarray of shape (n_features,) or None
        What rows are centred on, for a model with an intercept.
    scale : ndarray of shape (n_features,) or None
        What columns are divided by.
    offset : float or ndarray of shape (n_targets,)
        What the intercept may add to any prediction: its rounding, and for `ridgepass.verify` its
        distance from the one that goes with the coefficients.
    rounding : float or ndarray of shape (n_targets,)
        What rounding of ⟨a, x̂⟩ may add, for each unit of the length of a.
    n_features : int
        Columns of A.
    widths : Widths or None
        Bounds |a·(x̂ − x)| for single directions a, where more is known than lengths.
    target : int or None
        Which of the targets that knows of this certificate is about; None for all.
    confidence : float
        With what probability all bounds hold, over the drawing of the probes: one if certain.
    rests_on : {"exact", "sketch", "probes", "passes"}
        What ``coef_bound`` rests on: all of AᵀA, what a sketch knows for certain, random probes of
        the residual, or further passes over the rows.
    estimate, relative_estimate : float, ndarray of shape (n_targets,) or None
        Of ‖x̂ − x‖₂ and ‖x̂ − x‖₂/‖x‖₂: no bounds, and often several times nearer, but never above
        ``coef_bound`` and ``relative``. None without probes.
    remark : str
        What is worth knowing besides, such as that a merger has dropped the probes.
    read : callable or None
        Turns what ``prediction_bound`` is given into rows; an estimator checks feature names here.
    """

    alpha: float
    covariance_bound: float
    coef_bound: float | Float64
    relative: float | Float64
    energy_bound: float | Float64
    mean: Float64 | None = field(repr=False)
    scale: Float64 | None = field(repr=False)
    offset: float | Float64
    rounding: float | Float64 = field(repr=False)
    n_features: int
    passes: int = 1
    widths: Widths | None = field(default=None, repr=False)
    target: int | None = field(default=None, repr=False)
    confidence: float = 1.0
    rests_on: str = "sketch"
    estimate: float | Float64 | None = None
    relative_estimate: float | Float64 | None = None
    remark: str = ""
    read: Callable[[Any], Any] | None = field(default=None, repr=False)

    def prediction_bound(self, rows: Any) -> Float64:
        """Bound how far each prediction is from exact ridge's.

        Parameters
        ----------
        rows : array_like or sparse, of shape (n_rows, n_features)
            Where predictions are made.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets)
            ‖(a − mean)/scale‖₂ times ``coef_bound`` for each row a (Theorems 1 and 2, prediction of
            one row), or less where AᵀA is known in its direction; and what the intercept and
            rounding may add.
        """
        table = rows if self.read is None else self.read(rows)
        given = as_rows(table, "rows").astype(np.float64, copy=False)
        if given.shape[1] != self.n_features:
            raise ValueError(
                f"rows has {given.shape[1]} columns, the model has {self.n_features} features: "
                "give the same columns as in training"
            )
        check_finite(given, "rows", given.dtype)
        scale = np.ones(self.n_features) if self.scale is None else self.scale
        mean = np.zeros(self.n_features) if self.mean is None else self.mean
        if is_sparse(given):
            lengths, distances = _sparse_distances(given, mean, scale)
        else:
            lengths = column_norms((given / scale).T)
            distances = column_norms(((given - mean) / scale).T)
        with np.errstate(invalid="ignore"):
            bounds: Float64 = np.multiply.outer(distances, self.coef_bound)
        bounds[distances == 0.0] = 0.0  # also times infinity
        bounds = self._narrowed(bounds, given, mean, scale)
        bounds += np.multiply.outer(lengths, self.rounding)
        # What norms and sums of so many numbers may fall short of, and products that underflow.
        lost = np.where(np.add(self.coef_bound, self.rounding) > 0, underflow(self.n_features), 0.0)
        slack = 1 + (self.n_features + 16) * unit_roundoff(np.dtype(np.float64))
        whole: Float64 = slack * (bounds + self.offset) + lost
        return whole

    def _narrowed(self, bounds: Float64, rows: Any, mean: Float64, scale: Float64) -> Float64:
        """Ask for single directions, some rows at a time, as sparse ones are written out."""
        if self.widths is None:
            return bounds
        step = max(1, PIECE // self.n_features)
        for start in range(0, rows.shape[0], step):
            chunk = rows[start : start + step]
            chunk = chunk.toarray() if is_sparse(chunk) else chunk
            found = self._along(np.ascontiguousarray(((chunk - mean) / scale).T))
            if found is None:
                return bounds
            bounds[start : start + step] = np.fmin(bounds[start : start + step], found)
        return bounds

    def _along(self, vectors: Float64 | None) -> Float64 | None:
        """Return what is known of single directions, of this target if there is but one."""
        found = None if self.widths is None else self.widths(vectors)
        return found if found is None or self.target is None else found[:, self.target]

    def coefficient_bounds(self) -> Float64:
        """Bound how far each coefficient is from exact ridge's, in original units.

        Returns
        -------
        ndarray of shape (n_features,) or (n_targets, n_features)
            As ``coef_``. At most ``coef_bound``, and less for features in whose direction AᵀA is
            known. All of them hold at once.

        Examples
        --------
        >>> import numpy as np
        >>> from ridgepass import StreamingRidge
        >>> X, y = np.eye(3), np.arange(3.0)
        >>> bounds = StreamingRidge().fit(X, y).certificate().coefficient_bounds()
        >>> bounds.shape, bool((bounds < 1e-9).all())
        ((3,), True)
        """
        whole = np.broadcast_to(self.coef_bound, (self.n_features, *np.shape(self.coef_bound)))
        found = self._along(None)
        bounds: Float64 = whole.copy() if found is None else np.fmin(whole, found)
        bounds = (bounds + self.rounding).T
        return bounds if self.scale is None else bounds / self.scale

    def of_target(self, index: int) -> "Certificate":
        """Return the certificate of one target, with floats for arrays."""
        names = ("coef_bound", "relative", "energy_bound", "offset", "rounding")
        values = {name: getattr(self, name) for name in (*names, "estimate", "relative_estimate")}
        one: dict[str, Any] = {
            name: float(np.atleast_1d(value)[index])
            for name, value in values.items()
            if value is not None
        }
        return replace(self, target=index, **one)


def _sparse_distances(rows: Any, mean: Float64, scale: Float64) -> tuple[Float64, Float64]:
    """Return ‖a/scale‖ and at least ‖(a − mean)/scale‖ for sparse rows a."""
    scaled, centre = rows.multiply(1 / scale).tocsr(), mean / scale
    # Each row beside its largest number, since squares of tiny or huge ones leave the range.
    largest = np.maximum(abs(scaled).max(axis=1).toarray().ravel(), np.abs(centre).max())
    unit = np.where(largest > 0, largest, 1.0)
    scaled.data /= np.repeat(unit, np.diff(scaled.indptr))
    squares = np.asarray(scaled.power(2).sum(axis=1)).ravel()
    lengths, away = np.sqrt(squares), column_norms(centre[:, None])[0] / unit
    rounding = 4 * (len(mean) + 4) * unit_roundoff(np.dtype(np.float64))
    slack = rounding * np.square(lengths + away)
    across = (scaled @ centre) / unit
    distances = np.sqrt(np.maximum(squares - 2 * across + np.square(away), 0.0) + slack)
    return unit * lengths, unit * distances
