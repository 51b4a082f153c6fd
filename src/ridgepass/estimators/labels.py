"""Class labels as targets of minus one and one, and back."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from ridgepass.estimators.inputs import check_finite, check_given, check_length
from ridgepass.kernels import Float64
from ridgepass.snapshot import Kept, entry, flag, json_bytes, json_of

_NUMERIC = "biuf"


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes, in the order of ``classes_``.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted. With ``multilabel``, the numbers of the columns of y.
    multilabel : bool
        Whether y is a table of zeros and ones, a row having any number of labels.
    """

    classes: NDArray[Any]
    multilabel: bool = False

    @classmethod
    def of_targets(cls, y: NDArray[Any]) -> "Labels":
        """Return the labels that occur in y, as `fit` finds them."""
        if y.ndim == 2:
            return cls(np.arange(y.shape[1]), multilabel=True)
        check_classification_targets(y)
        return cls(_sorted(y, "y"))

    @classmethod
    def of_classes(cls, classes: Any) -> "Labels":
        """Return the labels that a stream will have, as `partial_fit` is told."""
        labels = column_or_1d(np.asarray(classes))
        if len(labels) == 0:
            raise ValueError("classes is empty: give all labels that y will ever have")
        return cls(_sorted(labels, "classes"))

    def __str__(self) -> str:
        return _listed(self.classes)

    @property
    def n_targets(self) -> int:
        """Columns of the targets that they are encoded as."""
        return len(self.classes) if self.multilabel or len(self.classes) > 2 else 1

    def snapshot(self) -> Kept:
        """Return the labels as plain data: numbers, code points of strings, or JSON of objects."""
        kind, classes = self.classes.dtype.kind, self.classes
        values: NDArray[Any] = classes
        if kind == "U":
            kept = classes.astype(classes.dtype.newbyteorder("="), copy=False)
            values = np.ascontiguousarray(kept).view(np.uint32).reshape(len(kept), -1)
        elif kind == "O":
            values = json_bytes([_plain(label) for label in classes.tolist()])
        return {"kind": kind, "classes": values, "multilabel": self.multilabel}

    @classmethod
    def restored(cls, kept: Any) -> Self:
        """Return the labels that a snapshot was taken of, or raise ValueError."""
        multilabel = flag(entry(kept, "multilabel"), "multilabel")
        classes = _restored_classes(entry(kept, "kind"), entry(kept, "classes"))
        expected = np.arange(len(classes)) if multilabel else _sorted(classes, "classes")
        if not len(classes) or not np.array_equal(classes, expected):
            raise ValueError("classes are not in order")
        if multilabel and len(classes) < 2:
            raise ValueError("a table of labels has a single column")
        return cls(classes, multilabel)

    def same_as(self, other: "Labels") -> bool:
        """Whether both have the same classes."""
        alike = self.multilabel == other.multilabel and len(self.classes) == len(other.classes)
        return alike and bool(np.all(self.classes == other.classes))

    def positions(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Return where each label stands in ``classes``."""
        kinds = {self.classes.dtype.kind, y.dtype.kind}
        if kinds <= set(_NUMERIC) or (len(kinds) == 1 and "O" not in kinds):
            found = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
            found = np.where(self.classes[found] == y, found, -1)
        else:
            table = {label: i for i, label in enumerate(self.classes.tolist())}
            found = np.array([table.get(label, -1) for label in y.tolist()], dtype=np.intp)
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise ValueError(
                f"y has label {y.tolist()[row]!r} in row {row} of this batch, which is not among "
                f"the classes {self}: give all labels in classes= at the first "
                "partial_fit"
            )
        return found.astype(np.intp, copy=False)

    def encode(self, y: NDArray[Any]) -> "Float64 | Signs":
        """Return ±1: one column per class, or a single one for the second of two."""
        if self.multilabel:
            return np.where(y == 0, -1.0, 1.0)
        positions = self.positions(y)
        if len(self.classes) <= 2:
            return np.where(positions == 1, 1.0, -1.0)
        return Signs(positions, len(self.classes))

    def decode(self, scores: Float64) -> NDArray[Any]:
        """Return the labels that decision values stand for."""
        if self.multilabel:
            return (scores > 0).astype(int)
        chosen = np.argmax(scores, axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        return np.asarray(self.classes[chosen])

    def weights(self, class_weight: Any, y: NDArray[Any]) -> Float64 | None:
        """Return the weight of each row's class, None if all are one."""
        if class_weight is None:
            return None
        if isinstance(class_weight, str):
            return np.asarray(compute_sample_weight(class_weight, y), dtype=np.float64)
        if self.multilabel:
            raise ValueError(
                "class_weight cannot be a dict where a row has several labels: "
                "use None, 'balanced', or sample_weight"
            )
        known = self.classes.tolist()
        strange = [label for label in class_weight if label not in known]
        if strange:
            raise ValueError(
                f"class_weight has a weight for {strange[0]!r}, which is not among the classes "
                f"{self}: leave it out"
            )
        by_class = np.array([class_weight.get(label, 1.0) for label in known], dtype=np.float64)
        return np.asarray(by_class[self.positions(y)])


@dataclass(frozen=True, eq=False)
class Signs:
    """Targets of one for a row's class and minus one for the others, written out in pieces.

    A thousand classes would make them a thousand numbers a row.
    """

    positions: NDArray[np.intp]
    n_classes: int

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes."""
        return len(self.positions), self.n_classes

    def __getitem__(self, rows: slice) -> Float64:
        positions = self.positions[rows]
        targets = np.full((len(positions), self.n_classes), -1.0)
        targets[np.arange(len(positions)), positions] = 1.0
        return targets


def check_class_weight(class_weight: Any, *, whole: bool) -> None:
    """Raise unless it is None, a dict of weights, or "balanced" for data given as a whole."""
    if class_weight is None:
        return
    if isinstance(class_weight, str) and class_weight == "balanced":
        if not whole:
            raise ValueError(
                "class_weight='balanced' needs all labels at once: call fit, or give partial_fit a "
                "dict, for example from sklearn.utils.class_weight.compute_class_weight"
            )
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(  # noqa: TRY004 - scikit-learn raises ValueError for any bad parameter
            f"class_weight={class_weight!r} is not known: give None, 'balanced', or a dict from "
            "label to weight"
        )
    for label, weight in class_weight.items():
        if not (np.isreal(weight) and np.isfinite(weight) and weight >= 0):
            raise ValueError(
                f"class_weight has {weight!r} for class {label!r}: give finite weights of at "
                "least zero"
            )


def check_labels(y: Any, n_rows: int) -> NDArray[Any]:
    """Return y as an array of labels of shape (n_rows,), or of zeros and ones with a column each.

    A single column is taken for labels, with scikit-learn's warning.
    """
    check_given(y)
    if sparse.issparse(y):
        raise ValueError("y is sparse: give labels as a dense array, for example with y.toarray()")
    labels = np.asarray(y)
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "biufUO":
        raise ValueError(
            f"y has {labels.ndim} dimensions and dtype {labels.dtype}: give one label for each "
            "row, or a column of zeros and ones for each label"
        )
    check_length(len(labels), n_rows)
    _check_none_missing(labels)
    if labels.ndim == 1 or labels.shape[1] == 1:
        return np.asarray(column_or_1d(labels, warn=True))
    if labels.dtype.kind not in _NUMERIC or not np.isin(labels, (0, 1)).all():
        raise ValueError(
            "y has several columns that are not all zeros and ones (Unknown label type: "
            "multiclass-multioutput): train one classifier for each column"
        )
    return labels


def _check_none_missing(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f":
        check_finite(labels.reshape(len(labels), -1), "y", None)
    elif labels.dtype.kind == "O":
        for row, label in enumerate(labels.ravel().tolist()):
            missing = type(label).__name__ in ("NoneType", "NAType", "NaTType")
            if missing or (isinstance(label, float) and not np.isfinite(label)):
                raise ValueError(
                    f"y has no label ({label}) in row {row} of this batch: drop such rows"
                )


def _sorted(labels: NDArray[Any], name: str) -> NDArray[Any]:
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise ValueError(
            f"{name} has labels of types {', '.join(kinds)}: give labels of one type"
        ) from None


def _listed(classes: NDArray[Any], at_most: int = 10) -> str:
    shown = ", ".join(repr(label) for label in classes[:at_most].tolist())
    more = len(classes) - at_most
    return f"{shown} and {more} more" if more > 0 else shown


def _plain(label: Any) -> Any:
    """Return a label as a Python number or string."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, np.str_ | str):
        return str(plain)
    if not isinstance(plain, bool | int | float):
        raise ValueError(  # noqa: TRY004 - as for any other label that cannot be used
            f"classes has {label!r}, a {type(label).__name__}, which a file cannot hold: "
            "train with labels that are numbers or strings"
        )
    return plain


def _restored_classes(kind: Any, kept: Any) -> NDArray[Any]:
    if kind == "O":
        labels = json_of(kept, "classes")
        if not isinstance(labels, list):
            raise ValueError("classes is not a list")
        classes = np.empty(len(labels), dtype=object)
        classes[:] = [_plain(label) for label in labels]
        return classes
    if not isinstance(kept, np.ndarray):
        raise ValueError("classes is not an array")  # noqa: TRY004 - bad data, not a bug
    if kind == "U" and kept.dtype == np.uint32 and kept.ndim == 2 and kept.size:
        if kept.max() > sys.maxunicode:
            raise ValueError("classes has characters that do not exist")
        return np.array(kept).view(f"U{kept.shape[1]}")[:, 0]
    if not (kept.dtype.kind == kind and kind in _NUMERIC and kept.ndim == 1):
        raise ValueError("classes is neither numbers nor strings")
    return kept
