"""How far a solution can be from exact ridge, from what is known after the stream."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ridgepass.kernels import Float64, column_norms
from ridgepass.validation import as_rows, check_finite


@dataclass(frozen=True)
class Certificate:
    """Bounds that hold for the rows seen, with nothing unknown in them, rounding included.

    Attributes
    ----------
    alpha : float
        The ridge parameter they are for.
    covariance_bound : float
        At least ‖AᵀA − K̂‖₂.
    coef_bound : float or ndarray of shape (n_targets,)
        At least ‖x̂ − x‖₂, x being exact ridge.
    relative : float or ndarray of shape (n_targets,)
        At least ‖x̂ − x‖₂/‖x‖₂.
    n_features : int
        Columns of A.
    """

    alpha: float
    covariance_bound: float
    coef_bound: float | Float64
    relative: float | Float64
    n_features: int

    def prediction_bound(self, rows: ArrayLike) -> Float64:
        """Bound how far the prediction ⟨a, x̂⟩ is from exact ridge's, for each row a.

        Parameters
        ----------
        rows : array_like of shape (n_rows, n_features)
            Where predictions are made.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets)
            ‖a‖₂ times ``coef_bound`` (Theorems 1 and 2, prediction of one row).
        """
        given = as_rows(rows, "rows").astype(np.float64, copy=False)
        if given.shape[1] != self.n_features:
            raise ValueError(
                f"rows has {given.shape[1]} columns, the model has {self.n_features} features: "
                "give the same columns as in training"
            )
        check_finite(given, "rows", given.dtype)
        norms = column_norms(given.T)
        bounds: Float64 = np.multiply.outer(norms, self.coef_bound)
        return bounds

    def of_target(self, index: int) -> "Certificate":
        """Return the certificate of one target, with floats for arrays."""
        coef_bound = float(np.atleast_1d(self.coef_bound)[index])
        relative = float(np.atleast_1d(self.relative)[index])
        return replace(self, coef_bound=coef_bound, relative=relative)


def certify(
    *,
    alpha: float,
    shift: float,
    covariance_bound: float,
    coef_norms: Float64,
    solving: Float64,
    n_features: int,
) -> Certificate:
    """Bound the distance from x̂ to exact ridge x = (K + alpha·I)⁻¹c.

    Parameters
    ----------
    alpha : float
        The ridge parameter.
    shift : float
        λ_min(K̂) is at least this; RFD's α.
    covariance_bound : float
        At least ‖K − K̂‖₂.
    coef_norms : ndarray of shape (n_targets,)
        ‖x̂‖.
    solving : ndarray of shape (n_targets,)
        At least ‖x̂ − x̃‖, where x̃ = (K̂ + alpha·I)⁻¹c without rounding.
    n_features : int
        Columns of A.

    Notes
    -----
    Lemma 1 gives ‖x̃ − x‖ ≤ ε‖x‖ with ε = ‖K − K̂‖/(λ_min(K̂) + alpha). With the two solutions
    exchanged it gives ‖x̃ − x‖ ≤ ‖K − K̂‖‖x̃‖/alpha, since K has no negative eigenvalue. The rest is
    the triangle inequality.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        absolute = solving + covariance_bound * (coef_norms + solving) / np.float64(alpha)
        lemma = np.float64(covariance_bound) / (shift + alpha)
        by_lemma = lemma + _over(solving * (1 + lemma), coef_norms - solving)
        relative = np.fmin(by_lemma, _over(absolute, coef_norms - absolute))
    absolute = np.where(np.isnan(absolute), np.inf, absolute)
    relative = np.where(np.isnan(relative), np.inf, relative)
    return Certificate(alpha, covariance_bound, absolute, relative, n_features)


def _over(above: Float64, below: Float64) -> Float64:
    """Divide: nothing over anything is nothing, something over nothing is infinite."""
    return np.where(above == 0, 0.0, np.where(below > 0, above / below, np.inf))
