"""How far a solution can be from exact ridge, from what is known after the stream."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ridgepass.kernels import Float64, column_norms, is_sparse, underflow, unit_roundoff
from ridgepass.validation import as_rows, check_finite

# Leverages are asked for in pieces of about this many numbers.
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
    coef_energy : float, ndarray of shape (n_targets,) or None
        At least √(‖A(x̂ − x)‖² + alpha·‖x̂ − x‖²), the part of ``energy_bound`` that the coefficients
        have alone. It goes with ``leverages``.
    leverages : callable or None
        Returns at least a·(AᵀA + alpha·I)⁻¹a for columns a, where that is known.
    confidence : float
        With what probability the bounds hold: one if they are certain.
    rests_on : str
        What they rest on: "exact rows", the "sketch", "probes" or further "passes".
    estimate : float, ndarray of shape (n_targets,) or None
        Of ‖x̂ − x‖₂, by probes: no bound, and often several times nearer.
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
    coef_energy: float | Float64 | None = field(default=None, repr=False)
    leverages: Callable[[Float64], Float64] | None = field(default=None, repr=False)
    confidence: float = 1.0
    rests_on: str = "sketch"
    estimate: float | Float64 | None = None
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
            one row), or the root of its leverage times ``coef_energy``, whichever is less; and what
            the intercept and rounding may add.
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
        if self.leverages is not None and self.coef_energy is not None:
            roots = np.sqrt(self._leverages(self.leverages, given, mean, scale))
            bounds = np.fmin(bounds, np.multiply.outer(roots, self.coef_energy))
        bounds += np.multiply.outer(lengths, self.rounding)
        # What norms and sums of so many numbers may fall short of, and products that underflow.
        lost = np.where(np.add(self.coef_bound, self.rounding) > 0, underflow(self.n_features), 0.0)
        slack = 1 + (self.n_features + 16) * unit_roundoff(np.dtype(np.float64))
        whole: Float64 = slack * (bounds + self.offset) + lost
        return whole

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
        names = (
            *("coef_bound", "relative", "energy_bound", "offset", "rounding", "coef_energy"),
            "estimate",
        )
        values = {name: getattr(self, name) for name in names}
        one: dict[str, Any] = {
            name: float(np.atleast_1d(value)[index])
            for name, value in values.items()
            if value is not None
        }
        return replace(self, **one)


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
