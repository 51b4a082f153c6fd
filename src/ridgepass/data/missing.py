"""Missing values: what is said of them, and what is done about them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgepass.estimators.inputs import place_of_bad
from ridgepass.kernels import Float64, is_sparse

POLICIES = ("error", "drop", "zero", "mean")


@dataclass(frozen=True, eq=False)
class Place:
    """Where rows come from.

    Attributes
    ----------
    name : str
        The file.
    before : int
        How many of its rows come before.
    kept : ndarray or None
        Which rows are left, where some were dropped.
    """

    name: str
    before: int
    kept: NDArray[np.intp] | None = None

    def row(self, index: int) -> str:
        """Name one of the rows, counting from one."""
        at = index if self.kept is None else int(self.kept[index])
        return f"row {self.before + at + 1} of {self.name}"


def as_policy(nulls: Any) -> str:
    """Check what a user asks for."""
    if nulls not in POLICIES:
        raise ValueError(f"nulls={nulls!r} is unknown: choose one of {', '.join(POLICIES)}")
    return str(nulls)


def has_missing(values: Any) -> bool:
    """Whether there is a NaN or an infinity anywhere."""
    return _place_of_bad(values) is not None


def missing_rows(values: Any) -> NDArray[np.bool_]:
    """Tell which rows have a NaN."""
    if is_sparse(values):
        at = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        rows = np.zeros(values.shape[0], dtype=bool)
        rows[at[np.isnan(values.data)]] = True
        return rows
    bad: NDArray[np.bool_] = np.isnan(_as_table(values)).any(axis=1)
    return bad


def filled(values: Any, by_column: Float64) -> Any:
    """Return a copy with each NaN replaced by its column's number."""
    result = values.copy()
    if is_sparse(result):
        holes = np.isnan(result.data)
        result.data[holes] = by_column[result.indices[holes]]
        return result
    rows, columns = np.nonzero(np.isnan(result))
    result[rows, columns] = by_column[columns]
    return result


def check_present(values: Any, label: Callable[[int], str], place: Place, remedy: str) -> None:
    """Raise for NaN and infinity, saying where; ``label`` names a column."""
    found = _place_of_bad(values)
    if found is None:
        return
    row, column, value = found
    if np.isnan(value):
        raise ValueError(f"column {label(column)!r} has no value in {place.row(row)}: {remedy}")
    raise ValueError(
        f"column {label(column)!r} is infinite in {place.row(row)}: fix or leave out such rows"
    )


def check_not_infinite(values: Any, label: Callable[[int], str], place: Place) -> None:
    """Raise for infinity alone, where NaN is allowed."""
    numbers = values.data if is_sparse(values) else values
    if np.isinf(numbers).any():
        check_present(filled(values, np.zeros(values.shape[1])), label, place, "")


def _place_of_bad(values: Any) -> tuple[int, int, float] | None:
    return place_of_bad(values if is_sparse(values) else _as_table(values))


def _as_table(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.ndim == 2 else values[:, None]


class ColumnMeans:
    """Means of the values that are there, column by column."""

    def __init__(self, width: int) -> None:
        self.sums = np.zeros(width)
        self.counts = np.zeros(width)

    def update(self, rows: Any) -> None:
        """Add some rows; zeros of sparse rows count as values."""
        if is_sparse(rows):
            holes = np.isnan(rows.data)
            width = len(self.sums)
            self.counts += rows.shape[0] - np.bincount(rows.indices[holes], minlength=width)
            there = rows.data[~holes].astype(np.float64)
            self.sums += np.bincount(rows.indices[~holes], there, minlength=width)
            return
        holes = np.isnan(rows)
        self.counts += len(rows) - np.count_nonzero(holes, axis=0)
        with np.errstate(over="ignore"):  # seen in the means
            self.sums += np.where(holes, 0.0, rows).sum(axis=0, dtype=np.float64)

    @property
    def values(self) -> Float64:
        """The means, zero for columns without a single value."""
        means: Float64 = np.divide(
            self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > 0
        )
        return means
