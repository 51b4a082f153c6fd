"""How far a solution can be from exact ridge, from what is known after the stream."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ridgepass.kernels import Float64, column_norms, is_sparse, unit_roundoff
from ridgepass.validation import as_rows, check_finite

# Leverages are asked for in pieces of about this many numbers.
PIECE = 1 << 20


@dataclass(frozen=True)
class Certificate:
    """Bounds that hold for the rows seen, with nothing unknown in them, rounding included.

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
        At least √(‖A(x̂ − x)‖² + alpha·‖x̂ − x‖²): how far predictions for the rows seen are from
        exact ridge's, taken together, and a little more. What is known of the intercept's error
        counts too.
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
    leverages : callable or None
        Returns at least a·(AᵀA + alpha·I)⁻¹a for columns a, where that is known.
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
    leverages: Callable[[Float64], Float64] | None = field(default=None, repr=False)
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
            one row), or the root of its leverage times ``energy_bound``, whichever is less; and
            rounding.
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
        bounds = np.where(np.isnan(bounds), 0.0, bounds)  # nothing times infinity
        if self.leverages is not None:
            roots = np.sqrt(self._leverages(self.leverages, given, mean, scale))
            bounds = np.fmin(bounds, np.multiply.outer(roots, self.energy_bound))
        bounds += np.multiply.outer(lengths, self.rounding)
        return bounds + self.offset

    def _leverages(
        self, known: Callable[[Float64], Float64], rows: Any, mean: Float64, scale: Float64
    ) -> Float64:
        """Ask for some rows at a time, as sparse ones are written out."""
        step = max(1, PIECE // self.n_features)
        parts = []
        for start in range(0, rows.shape[0], step):
            chunk = rows[start : start + step]
            chunk = chunk.toarray() if is_sparse(chunk) else chunk
            parts.append(known(np.ascontiguousarray(((chunk - mean) / scale).T)))
        return np.concatenate(parts)

    def of_target(self, index: int) -> "Certificate":
        """Return the certificate of one target, with floats for arrays."""
        names = ("coef_bound", "relative", "energy_bound", "offset", "rounding")
        one: dict[str, Any] = {
            name: float(np.atleast_1d(getattr(self, name))[index]) for name in names
        }
        return replace(self, **one)


def _sparse_distances(rows: Any, mean: Float64, scale: Float64) -> tuple[Float64, Float64]:
    """Return ‖a/scale‖ and at least ‖(a − mean)/scale‖ for sparse rows a."""
    scaled, centre = rows.multiply(1 / scale).tocsr(), mean / scale
    squares = np.asarray(scaled.power(2).sum(axis=1)).ravel()
    lengths, away = np.sqrt(squares), float(column_norms(centre[:, None])[0])
    rounding = 4 * (len(mean) + 4) * unit_roundoff(np.dtype(np.float64))
    slack = rounding * np.square(lengths + away)
    distances = np.sqrt(np.maximum(squares - 2 * (scaled @ centre) + away**2, 0.0) + slack)
    return lengths, distances
