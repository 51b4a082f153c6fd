"""What goes into a stream, and what the first of it settles."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgepass.estimators.inputs import Names
from ridgepass.estimators.labels import Labels, Signs
from ridgepass.kernels import Float64


@dataclass(frozen=True)
class Targets:
    """A batch's y as numbers, and its weights.

    Attributes
    ----------
    values : ndarray or Signs, of shape (n_rows,) or (n_rows, n_targets)
        What is regressed on.
    weights : ndarray of shape (n_rows,) or None
        None for weights of one.
    column : bool
        Whether a single intercept is an array, as scikit-learn has it for y of shape (n, 1).
    labels : Labels or None
        The classes of a classifier.
    """

    values: Float64 | Signs
    weights: Float64 | None
    column: bool = False
    labels: Labels | None = None


@dataclass(frozen=True, eq=False)
class Origin:
    """What later batches must agree with.

    Attributes
    ----------
    n_features, n_targets : int
        Columns of X and of y.
    dtype : dtype
        Of X.
    names : ndarray or None
        Feature names.
    column, labels
        As in `Targets`.
    """

    n_features: int
    n_targets: int
    dtype: np.dtype[Any]
    names: Names
    column: bool
    labels: Labels | None

    @classmethod
    def of(cls, rows: Any, names: Names, targets: Targets) -> "Origin":
        """Take down what a first batch settles."""
        n_targets = 1 if targets.values.ndim == 1 else targets.values.shape[1]
        return cls(rows.shape[1], n_targets, rows.dtype, names, targets.column, targets.labels)
