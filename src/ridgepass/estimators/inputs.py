"""What estimators are handed over, checked before anything changes.

Errors name the estimator, the row and, where known, the column by its name.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from ridgepass.frames import open_frame
from ridgepass.kernels import Float64
from ridgepass.validation import CHUNK

Names = NDArray[Any] | None


@contextmanager
def errors_of(estimator: Any) -> Iterator[None]:
    """Say which estimator an error comes from."""
    try:
        yield
    except (ValueError, TypeError) as error:
        name = estimator if isinstance(estimator, str) else type(estimator).__name__
        if name in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows known to be finite floats, of which `check_rows` looks at the shape and names only."""

    rows: Any
    names: Names


def check_rows(
    estimator: Any, X: Any, n_features: int | None = None, names: Names = None
) -> tuple[Any, Names]:
    """Return X as floats, uncopied if it can be, and its feature names.

    Parameters
    ----------
    estimator : object or str
        Whose name errors bear.
    X : array_like, sparse matrix or frame
        The rows.
    n_features : int or None
        How many columns they must have; None for the first batch.
    names : ndarray or None
        The names that the columns must have, of those that have any.
    """
    owner = estimator if isinstance(estimator, str) else type(estimator).__name__
    checked = isinstance(X, CheckedRows)
    frame = None if checked else open_frame(X)
    given = X.names if checked else None if frame is None else frame.feature_names
    if n_features is not None:
        check_names(owner, names, given)
    if checked:
        _check_width(owner, X.rows, n_features)
        return X.rows, given
    data = X if frame is None else frame.values()
    _check_numbers(data, "X")
    rows = check_array(
        data,
        accept_sparse=("csr", "csc"),
        dtype=_float_of(data),
        ensure_all_finite=False,
        estimator=owner,
        input_name="X",
    )
    _check_width(owner, rows, n_features)
    check_finite(rows, "X", given if given is not None else names)
    return rows, given


def _check_numbers(data: Any, name: str) -> None:
    """Raise for arrays whose missing values would be taken for numbers."""
    if isinstance(data, np.ndarray) and data.dtype.kind in "mM":
        raise ValueError(
            f"{name} has dtype {data.dtype}: convert times to numbers first, for example to days "
            "since the first one"
        )
    if np.ma.is_masked(data):
        raise ValueError(f"{name} has masked values: drop such rows or fill them in first")


def read_rows(X: Any, *, owner: str, n_features: int, names: Names) -> Any:
    """Return X as rows with the columns of training."""
    with errors_of(owner):
        return check_rows(owner, X, n_features, names)[0]


def check_targets(y: Any, n_rows: int) -> Float64:
    """Return y as float64 of shape (n_rows,) or (n_rows, n_targets)."""
    check_given(y)
    frame = open_frame(y)
    data = y if frame is None else frame.values()
    _check_numbers(data, "y")
    targets = check_array(
        data,
        ensure_2d=False,
        dtype=np.float64,
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name="y",
    )
    if targets.ndim == 0:
        raise ValueError("y is a single number: give one target for each row of X")
    check_length(len(targets), n_rows)
    columns = targets.reshape(n_rows, -1)
    if columns.shape[1] == 0:
        raise ValueError("y has no columns: give at least one target")
    check_finite(columns, "y", None)
    return np.asarray(targets)


def check_weights(sample_weight: Any, n_rows: int) -> Float64 | None:
    """Return weights as float64 of shape (n_rows,), or None if there are none."""
    if sample_weight is None:
        return None
    weights = check_array(
        sample_weight,
        ensure_2d=False,
        dtype=np.float64,
        ensure_all_finite=False,
        ensure_min_samples=0,
        input_name="sample_weight",
    )
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({n_rows},): give one weight for "
            "each row of X"
        )
    check_finite(weights[:, None], "sample_weight", None)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"sample_weight has {weights[row]:g} in row {row} of this batch: weights must not be "
            "negative"
        )
    return np.asarray(weights)


def check_given(y: Any) -> None:
    """Raise if there is no y, in words that scikit-learn looks for."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")


def check_length(n_targets: int, n_rows: int) -> None:
    """Raise unless there is one target for each row."""
    if n_targets != n_rows:
        raise ValueError(f"X has {n_rows} rows but y has {n_targets}: give one target for each")


def check_names(owner: str, known: Names, given: Names) -> None:
    """Compare feature names with those of the first batch, as scikit-learn does."""
    if known is given:
        return
    if known is None:
        _warn(f"X has feature names, but {owner} was fitted without feature names")
    elif given is None:
        _warn(f"X does not have valid feature names, but {owner} was fitted with feature names")
    elif not np.array_equal(known, given):
        message = "The feature names should match those that were passed during fit.\n"
        unseen, missing = sorted(set(given) - set(known)), sorted(set(known) - set(given))
        if unseen:
            message += f"Feature names unseen at fit time:\n{_bullets(unseen)}"
        if missing:
            message += f"Feature names seen at fit time, yet now missing:\n{_bullets(missing)}"
        if not (unseen or missing):
            message += "Feature names must be in the same order as they were in fit.\n"
        raise ValueError(message)


def check_finite(rows: Any, what: str, names: Names) -> None:
    """Raise for NaN and infinity, saying where."""
    place = place_of_bad(rows)
    if place is None:
        return
    row, column, value = place
    found = "NaN" if np.isnan(value) else "infinity"
    where = f"row {row}"
    if rows.shape[1] > 1 or what == "X":
        label = column if names is None else repr(names[column])
        where += f", {'column' if what == 'X' else 'target'} {label}"
    raise ValueError(
        f"{what} contains {found} in {where} of this batch: drop such rows or fill them in first"
    )


def place_of_bad(rows: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of the first number that is not finite, if there is one."""
    if bool(sparse.issparse(rows)):
        place = _first_bad(rows.data[None])
        if place is None:
            return None
        entry = place[1]
        major = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        minor = int(rows.indices[entry])
        row, column = (major, minor) if rows.format == "csr" else (minor, major)
        return row, column, float(rows.data[entry])
    # Along the memory, since a chunk of the other order would be gathered number by number.
    turned = not rows.flags.c_contiguous and rows.flags.f_contiguous
    place = _first_bad(rows.T if turned else rows)
    if place is None:
        return None
    row, column = place[::-1] if turned else place
    return row, column, float(rows[row, column])


def _first_bad(rows: NDArray[Any]) -> tuple[int, int] | None:
    """Return row and column of the first number that is not finite, without a copy of all."""
    if rows.dtype.kind != "f" or rows.size == 0:
        return None
    n_rows, n_columns = rows.shape
    height, width = max(1, CHUNK // n_columns), max(1, min(n_columns, CHUNK))
    for top in range(0, n_rows, height):
        for left in range(0, n_columns, width):
            part = rows[top : top + height, left : left + width]
            # One pass in BLAS: NaN and infinity show in the sum of squares, as may an overflow.
            if np.isfinite(np.vdot(part, part)):
                continue
            bad = np.argwhere(~np.isfinite(part))
            if len(bad):
                return top + int(bad[0, 0]), left + int(bad[0, 1])
    return None


def _check_width(owner: str, rows: Any, n_features: int | None) -> None:
    if n_features is not None and rows.shape[1] != n_features:
        raise ValueError(
            f"X has {rows.shape[1]} features, but {owner} is expecting {n_features} features as "
            "input: give the same columns as in training"
        )


def _float_of(data: Any) -> Any:
    """Return the dtype that X is converted to: float32 for short floats, else float64."""
    kind = getattr(data, "dtype", None)
    short = isinstance(kind, np.dtype) and kind.kind == "f" and kind.itemsize <= 4
    return np.float32 if short else np.float64


def _bullets(names: list[str], at_most: int = 5) -> str:
    lines = [f"- {name}\n" for name in names[:at_most]]
    return "".join(lines) + ("- ...\n" if len(names) > at_most else "")


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)
