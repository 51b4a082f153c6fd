"""Checks of what users hand over: one clear error each, raised before anything changes."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgepass.kernels import Float64, Rows

# Rows are looked at in pieces of about this many numbers, so that a check costs no memory.
CHUNK = 1 << 16


def as_rows(A: ArrayLike, name: str = "A") -> Rows:
    """Return A as a two-dimensional array of floats; `check_finite` looks at its numbers."""
    rows = _as_floats(A, name)
    if rows.ndim == 1:
        raise ValueError(
            f"{name} has one dimension: reshape a single row with {name}.reshape(1, -1), "
            f"a single column with {name}.reshape(-1, 1)"
        )
    if rows.ndim != 2:
        raise ValueError(f"{name} has {rows.ndim} dimensions: give a table of rows and columns")
    if rows.shape[1] == 0:
        raise ValueError(f"{name} has no columns: give at least one feature")
    if rows.shape[0] == 0:
        raise ValueError(f"{name} has no rows: leave the batch out")
    return rows


def as_targets(b: ArrayLike, n_rows: int, name: str = "b") -> tuple[Float64, bool]:
    """Return b as float64 columns, and whether it was a single target."""
    targets = _as_floats(b, name)
    if targets.ndim not in (1, 2):
        raise ValueError(f"{name} has {targets.ndim} dimensions: give one column per target")
    if len(targets) != n_rows:
        raise ValueError(f"{name} has {len(targets)} rows but A has {n_rows}: give one each")
    single = targets.ndim == 1
    # C order, since the order of a sum of squares depends on it.
    columns = np.ascontiguousarray(targets.reshape(n_rows, -1), np.float64)
    if columns.shape[1] == 0:
        raise ValueError(f"{name} has no columns: give at least one target")
    check_finite(columns, name, np.dtype(np.float64))
    return columns, single


def check_finite(rows: NDArray[Any], name: str, dtype: np.dtype[Any]) -> None:
    """Raise for NaN, infinity, or numbers whose squares, summed up, would overflow ``dtype``."""
    limit = math.sqrt(float(np.finfo(dtype).max)) * 1e-6
    step = max(1, CHUNK // max(1, rows.shape[1]))
    for start in range(0, len(rows), step):
        chunk = rows[start : start + step]
        with np.errstate(all="ignore"):
            squares = float(np.vdot(chunk, chunk))  # one pass; NaN and infinity show in the sum
        if squares <= limit**2:
            continue
        bad = np.argwhere(~(np.abs(chunk.astype(np.float64)) <= limit))
        if not len(bad):
            continue
        i, j = bad[0]
        value = chunk[i, j]
        where = f"{name} has {value:g} in row {start + i}, column {j} of the batch"
        if np.isfinite(value):
            raise ValueError(
                f"{where}, whose square overflows {dtype.name}: divide the column by a constant"
                + ("" if dtype == np.float64 else ", or use dtype='float64'")
            )
        raise ValueError(f"{where}: drop such rows or fill them in first")


def as_alphas(alpha: float | Sequence[float] | Float64) -> tuple[list[float], bool]:
    """Return alphas as a list, and whether there was only one."""
    values = np.asarray(alpha)
    if values.dtype.kind not in "fiu" or values.ndim > 1 or values.size == 0:
        raise ValueError(f"alpha={alpha!r} is not a number or a sequence of numbers")
    for value in values.ravel():
        if not (value >= 0 and np.isfinite(value)):
            raise ValueError(f"alpha={value:g} is not a finite number of at least zero")
    return [float(value) for value in values.ravel()], values.ndim == 0


def as_sketch_size(sketch_size: int) -> int:
    """Return the sketch size as an int of at least two."""
    try:
        size = operator.index(sketch_size)
    except TypeError:
        raise ValueError(f"sketch_size={sketch_size!r} is not a whole number") from None
    if size < 2:
        raise ValueError(f"sketch_size={size} is too small: give at least 2")
    return size


def as_dtype(dtype: Any) -> np.dtype[Any] | None:
    """Return float32, float64 or None, which stands for the dtype of the first batch."""
    if dtype is None:
        return None
    for supported in (np.dtype(np.float32), np.dtype(np.float64)):
        if dtype in (supported, supported.name, supported.type):
            return supported
    raise ValueError(f"dtype={dtype!r} is not supported: give 'float32', 'float64' or None")


def _as_floats(values: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has dtype {array.dtype}: convert it to numbers first, "
            f"for example with {name}.astype(float)"
        )
    short = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if short else np.float64, copy=False)
