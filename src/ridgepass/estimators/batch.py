"""What goes into a stream, and what the first of it settles."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ridgepass.estimators.inputs import Names
from ridgepass.estimators.labels import Labels, Signs
from ridgepass.kernels import Float64
from ridgepass.snapshot import Kept, count, entry, flag, float_type, json_bytes, json_of


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

    @property
    def idle(self) -> bool:
        """Whether no row has any weight."""
        return self.weights is not None and not self.weights.any()


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

    def snapshot(self) -> Kept:
        """Return it as plain data."""
        return {
            "n_features": self.n_features,
            "n_targets": self.n_targets,
            "dtype": self.dtype.name,
            "names": None if self.names is None else json_bytes(self.names.tolist()),
            "column": self.column,
            "labels": None if self.labels is None else self.labels.snapshot(),
        }

    @classmethod
    def restored(cls, kept: Any) -> Self:
        """Return what a snapshot was taken of, or raise ValueError."""
        n_features = count(entry(kept, "n_features"), "n_features")
        n_targets = count(entry(kept, "n_targets"), "n_targets")
        column = flag(entry(kept, "column"), "column")
        names, labels = entry(kept, "names"), entry(kept, "labels")
        if column and n_targets != 1:
            raise ValueError(f"a column of targets has {n_targets} columns")
        if names is not None:
            names = _restored_names(names, n_features)
        if labels is not None:
            labels = Labels.restored(labels)
            if n_targets != labels.n_targets:
                raise ValueError(f"{len(labels.classes)} classes have {n_targets} targets")
        dtype = float_type(entry(kept, "dtype"), "dtype")
        return cls(n_features, n_targets, dtype, names, column, labels)


def _restored_names(kept: Any, n_features: int) -> NDArray[Any]:
    names = json_of(kept, "names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("names is not a list of strings")
    if len(names) != n_features:
        raise ValueError(f"{n_features} features have {len(names)} names")
    return np.array(names, dtype=object)
