"""Checks of what users hand over: one clear error each, raised before anything changes."""

import math
import operator
from collections.abc import Container, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ridgepass.kernels import Float64, panels
from ridgepass.threads import each

# Rows are looked at in pieces of about this many numbers, so that a check costs no memory.
CHUNK = 1 << 16
CHUNKS = 16  # that a thread takes at a time
LEAST_ALPHA, LARGEST_ALPHA = 1e-300, 1e300


def as_rows(A: Any, name: str = "A") -> Any:
    """Return A as a two-dimensional array of floats, sparse (by rows) if A is.

    `check_finite` looks at its numbers.
    """
    rows = _as_sparse_floats(A, name) if sparse.issparse(A) else _as_floats(A, name)
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


def as_targets(
    b: ArrayLike, n_rows: int, name: str = "b", of_rows: str = "A"
) -> tuple[Float64, bool]:
    """Return b as float64 columns, and whether it was a single target."""
    targets = _as_floats(b, name)
    if targets.ndim not in (1, 2):
        raise ValueError(f"{name} has {targets.ndim} dimensions: give one column per target")
    if len(targets) != n_rows:
        raise ValueError(
            f"{name} has {len(targets)} rows but {of_rows} has {n_rows}: give one each"
        )
    single = targets.ndim == 1
    # C order, since the order of a sum of squares depends on it.
    columns = np.ascontiguousarray(targets.reshape(n_rows, -1), np.float64)
    if columns.shape[1] == 0:
        raise ValueError(f"{name} has no columns: give at least one target")
    check_finite(columns, name, np.dtype(np.float64))
    return columns, single


def check_finite(
    rows: Any,
    name: str,
    dtype: np.dtype[Any],
    weights: Float64 | None = None,
    scale: Float64 | None = None,
) -> None:
    """Raise for NaN, infinity, or numbers whose squares, summed up, would overflow ``dtype``.

    The numbers that count are √weight·entry/scale, and without the weight where that is below one:
    rows wait unweighted.
    """
    limit, largest = largest_number(dtype), float(np.finfo(dtype).max) / 4
    largest_root = 1.0 if weights is None else max(math.sqrt(float(weights.max())), 1.0)
    least_scale = 1.0 if scale is None else min(float(scale.min()), 1.0)
    quick_limit = limit / largest_root * least_scale
    by_row = sparse.issparse(rows)
    step = len(rows.data) or 1 if by_row else max(1, CHUNK // max(1, rows.shape[1]))
    suspects: list[int] = []

    def look(span: slice) -> None:
        for start in range(span.start, span.stop, step):
            chunk = rows.data if by_row else rows[start : start + step]
            with np.errstate(all="ignore"):
                squares = float(np.vdot(chunk, chunk))  # NaN and infinity show in the sum
            if not squares <= quick_limit**2:
                suspects.append(start)

    each(look, panels(1 if by_row else len(rows), CHUNKS * step))
    for start in sorted(suspects):
        chunk = rows.data if by_row else rows[start : start + step]
        sizes = given = np.abs(chunk.astype(np.float64))
        if by_row:
            at_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
            at_column = rows.indices
        else:
            at_row, at_column = np.ogrid[start : start + len(chunk), : rows.shape[1]]
        with np.errstate(over="ignore"):
            if weights is not None:
                sizes = sizes * np.sqrt(np.maximum(weights, 1.0))[at_row]
            if scale is not None:
                sizes = sizes / scale[at_column]
            # Rows become ``dtype`` before they are divided.
            bad = np.argwhere(~((sizes <= limit) & (given <= largest)))
        if len(bad) and by_row:
            (i,) = bad[0]
            _refuse(chunk[i], at_row[i], at_column[i], name, dtype)
        if len(bad):
            i, j = bad[0]
            _refuse(chunk[i, j], start + i, j, name, dtype)


def largest_number(dtype: np.dtype[Any]) -> float:
    """Return the largest entry that rows may have: a trillion of its squares do not overflow."""
    return math.sqrt(float(np.finfo(dtype).max)) * 1e-6


def _refuse(value: Any, row: int, column: int, name: str, dtype: np.dtype[Any]) -> NoReturn:
    where = f"{name} has {value:g} in row {row}, column {column} of the batch"
    if np.isfinite(value):
        raise ValueError(
            f"{where}, and sums of such squares overflow {dtype.name}: divide the column (or the "
            "weights, or multiply the scale) by a constant"
            + ("" if dtype == np.float64 else ", or use dtype='float64'")
        )
    raise ValueError(f"{where}: drop such rows or fill them in first")


def as_alphas(alpha: float | Sequence[float] | Float64) -> tuple[list[float], bool]:
    """Return alphas as a list, and whether there was only one."""
    values = np.asarray(alpha)
    if values.size == 0:
        raise ValueError("there is no alpha: pass at least one")
    if values.dtype.kind not in "fiu" or values.ndim > 1:
        raise ValueError(f"alpha={alpha!r} is not a number or a sequence of numbers")
    found = [float(value) + 0.0 for value in values.ravel()]  # no -0.0
    for value in found:
        if not (value >= 0 and np.isfinite(value)):
            raise ValueError(f"alpha={value:g} is not a finite number of at least zero")
        if 0 < value < LEAST_ALPHA:
            raise ValueError(f"alpha={value:g} is too small to divide by: pass 0 or a larger one")
        if value > LARGEST_ALPHA:
            raise ValueError(f"alpha={value:g} is too large: pass at most {LARGEST_ALPHA:g}")
    return found, values.ndim == 0


def as_alpha(alpha: float) -> float:
    """Return one alpha."""
    (value, *_), one = as_alphas(alpha)
    if not one:
        raise ValueError(f"alpha={alpha!r} is not a single number: give each alpha in turn")
    return value


def as_probes(probes: Any) -> int:
    """Return a number of probes."""
    if not isinstance(probes, int | np.integer) or isinstance(probes, bool) or probes < 0:
        raise ValueError(f"probes={probes!r}: pass a whole number of at least 0 (0 for none)")
    return int(probes)


def as_confidence(confidence: Any) -> float:
    """Return the probability that a bound is to hold with."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float | np.number):
        raise ValueError(f"confidence={confidence!r}: pass a number above 0, of at most 1")  # noqa: TRY004
    if not 0 < confidence <= 1:
        raise ValueError(f"confidence={confidence:g}: pass a number above 0, of at most 1")
    return float(confidence)


def as_passes(passes: Any) -> int:
    """Return a number of passes over the rows."""
    if not isinstance(passes, int | np.integer) or isinstance(passes, bool) or passes < 1:
        raise ValueError(f"passes={passes!r} is no number of passes: give one from 1 on")
    return int(passes)


def as_tolerance(tol: Any) -> float | None:
    """Return the certified relative error that will do, if there is one."""
    if tol is None:
        return None
    number = isinstance(tol, int | float | np.number) and not isinstance(tol, bool)
    if not number or not 0 < tol < math.inf:
        raise ValueError(f"tol={tol!r} is no tolerance: give a number above zero, such as 1e-3")
    return float(tol)


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


def as_bool(value: Any, name: str) -> bool:
    """Return an option that is on or off."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} is neither True nor False")  # noqa: TRY004
    return bool(value)


def as_feature_scale(scale: ArrayLike | None) -> Float64 | None:
    """Return what columns are divided by."""
    if scale is None:
        return None
    values = _as_floats(scale, "feature_scale").astype(np.float64)
    if values.ndim != 1 or not ((values >= 1e-100) & (values <= 1e100)).all():
        raise ValueError(
            "feature_scale must hold one number above zero, between 1e-100 and 1e100, for each "
            "feature"
        )
    return values


def as_weights(weights: ArrayLike, n_rows: int, name: str = "weights") -> Float64:
    """Return weights as float64, all finite and at least zero."""
    values = _as_floats(weights, name).astype(np.float64, copy=False)
    if values.ndim == 0:
        values = np.full(n_rows, float(values))
    if values.shape != (n_rows,):
        raise ValueError(f"{name} has shape {values.shape}, not ({n_rows},): give one for each row")
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        raise ValueError(
            f"{name} has {values[bad[0]]:g} in row {bad[0]}: give finite numbers of at least zero"
        )
    largest = largest_number(np.dtype(np.float64)) ** 2
    if values.max(initial=0.0) > largest:
        raise ValueError(
            f"{name} has {values.max():g} in row {values.argmax()}, and sums of such weights "
            "overflow: divide all weights, and alpha, by a constant"
        )
    return values


def as_seed(seed: int | None, name: str = "seed") -> int:
    """Return a seed; None draws one."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ValueError(f"{name}={seed!r} is not a whole number from 0 to 2**64 - 1 or None")
    return int(seed)


def _as_floats(values: ArrayLike, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values: drop such rows or fill them in first")
    array = np.asarray(values)
    # NumPy multiplies unaligned numbers without BLAS, which gives other bits.
    return np.require(array, _float_dtype(array.dtype, name), ["ALIGNED"])


def _as_sparse_floats(values: Any, name: str) -> Any:
    rows = sparse.csr_array(values)
    rows = rows.astype(_float_dtype(rows.dtype, name), copy=False)
    if rows.has_canonical_format:
        return rows
    rows = rows.copy()
    rows.sum_duplicates()  # so that what is checked is what counts
    return rows


def _float_dtype(dtype: np.dtype[Any], name: str) -> type[np.floating[Any]]:
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has dtype {dtype}: convert it to numbers first, "
            f"for example with {name}.astype(float)"
        )
    return np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64


def as_method(method: Any, known: Iterable[str], gone: Container[str]) -> str:
    """Return a method's name."""
    if isinstance(method, str) and method in gone:
        raise ValueError(f"method={method!r} is gone: use method='tracked', which errs less")
    names = list(known)
    if not isinstance(method, str) or method not in names:
        raise ValueError(f"method={method!r} is unknown: choose one of {', '.join(names)}")
    return method
