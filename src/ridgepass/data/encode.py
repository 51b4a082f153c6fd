"""From Arrow record batches to arrays, with NaN for what is missing."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from ridgepass.data.columns import Columns, Feature, OneHot, Vector
from ridgepass.data.missing import Place
from ridgepass.kernels import Float64

# Columns are turned into rows this many at a time, so that both sides stay in the cache.
GROUP = 32


def is_number(kind: pa.DataType) -> bool:
    """Whether a column is taken as numbers; one that is empty throughout counts too."""
    types = pa.types
    if types.is_dictionary(kind):
        return is_number(kind.value_type)
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column is lists of numbers."""
    types = pa.types
    lists = (
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    return any(test(kind) for test in lists) and is_number(kind.value_type)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column is text, perhaps kept in a dictionary."""
    types = pa.types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return any(
        test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view)
    )


def has_categories(kind: pa.DataType) -> bool:
    """Whether values of a column can be told apart by their text."""
    types = pa.types
    if types.is_dictionary(kind):
        return has_categories(kind.value_type)
    return is_number(kind) or is_text(kind) or types.is_temporal(kind)


def is_short(kind: pa.DataType) -> bool:
    """Whether float32 holds a column without loss."""
    value = kind.value_type if is_vector(kind) else kind
    return bool(pa.types.is_float16(value) or pa.types.is_float32(value))


def encode(batch: pa.RecordBatch, columns: Columns, place: Place) -> tuple[Any, int]:
    """Return the features of some rows, and how often a category was not known.

    A single column of lists is not copied.
    """
    if columns.is_sparse:
        return _encode_sparse(batch, columns, place)
    dtype = np.dtype(columns.dtype)
    first = columns.features[0]
    if len(columns.features) == 1 and isinstance(first, Vector):
        return vectors(batch.column(first.name), first, dtype, place), 0
    rows = np.empty((batch.num_rows, columns.width), dtype)
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    start, unknown = 0, 0
    waiting: list[NDArray[Any]] = []
    for feature in columns.features:
        column = given[feature.name]
        if type(feature) is Feature:
            waiting.append(numbers(column, dtype))
            start += 1
            if len(waiting) < GROUP:
                continue
        if waiting:
            rows[:, start - len(waiting) : start] = np.array(waiting).T
            waiting = []
        stop = start + feature.width
        if isinstance(feature, Vector):
            rows[:, start:stop] = vectors(column, feature, dtype, place)
            start = stop
        elif isinstance(feature, OneHot):
            codes, strange = category_codes(column, feature)
            rows[:, start:stop] = 0.0
            _mark(rows[:, start:stop], codes)
            unknown += strange
            start = stop
    if waiting:
        rows[:, start - len(waiting) : start] = np.array(waiting).T
    return rows, unknown


def numbers(column: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return one number a row."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    wanted = pa.float32() if dtype == np.float32 else pa.float64()
    if column.type != wanted:
        # Unsafe only in that integers beyond 2**53 are rounded, as NumPy rounds them.
        column = column.cast(wanted, safe=False)
    found: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found


def vectors(column: pa.Array, feature: Vector, dtype: np.dtype[Any], place: Place) -> NDArray[Any]:
    """Return one list a row, all of the feature's length; a missing list is all missing."""
    length = feature.length
    if not pa.types.is_fixed_size_list(column.type):
        lengths = pc.list_value_length(column)
        wrong = pc.index(pc.not_equal(lengths, length), True).as_py()
        if wrong >= 0:
            raise ValueError(
                f"column {feature.name!r} has a list of {lengths[wrong].as_py()} numbers in "
                f"{place.row(wrong)}, and {length} before: all lists must have one length"
            )
    elif column.type.list_size != length:
        raise ValueError(
            f"column {feature.name!r} of {place.name} has lists of {column.type.list_size} "
            f"numbers, and {length} before: all lists must have one length"
        )
    inside = numbers(column.flatten(), dtype).reshape(-1, length)
    if not column.null_count:
        return inside
    rows = np.full((len(column), length), np.nan, dtype)
    rows[column.is_valid().to_numpy(zero_copy_only=False)] = inside
    return rows


def category_codes(column: pa.Array, feature: OneHot) -> tuple[NDArray[np.intp], int]:
    """Return each row's category, -1 for one not known and -2 for none; and how many are -1."""
    known = pa.array(feature.categories, pa.string())
    is_dictionary = pa.types.is_dictionary(column.type)
    entries = as_text(column.dictionary if is_dictionary else column)
    places = pc.index_in(entries, value_set=known).fill_null(-1)
    # An entry of a dictionary may be null, as may a reference to one.
    places = pc.if_else(entries.is_null(), -2, places)
    if is_dictionary:
        places = pc.take(places, column.indices).fill_null(-2)
    codes = places.to_numpy(zero_copy_only=False).astype(np.intp)
    return codes, int(np.count_nonzero(codes == -1))


def as_text(column: pa.Array) -> pa.Array:
    """Return categories as text, so that 3 in one file is 3 in another."""
    if pa.types.is_dictionary(column.type):
        return pc.take(as_text(column.dictionary), column.indices)
    if pa.types.is_float16(column.type):  # which Arrow does not write out
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):  # NaN is no category
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return canonical(column if column.type == pa.string() else column.cast(pa.string()))


def canonical(text: pa.Array) -> pa.Array:
    """Return one spelling for what libraries write as 3 or 3.0, and as true, True or TRUE."""
    text = pc.replace_substring_regex(text, r"^(-?[0-9]+)\.0+$", r"\1")
    for word in ("true", "false"):
        text = pc.replace_substring_regex(text, f"^(?i){word}$", word)
    return text


def _mark(rows: Any, codes: NDArray[np.intp]) -> None:
    (at,) = np.nonzero(codes >= 0)
    rows[at, codes[at]] = 1.0
    rows[codes == -2] = np.nan


def _encode_sparse(batch: pa.RecordBatch, columns: Columns, place: Place) -> tuple[Any, int]:
    dtype, n_rows = np.dtype(columns.dtype), batch.num_rows
    data, at_row, at_column, start, unknown = [], [], [], 0, 0
    for feature in columns.features:
        column = batch.column(feature.name)
        if isinstance(feature, OneHot):
            codes, strange = category_codes(column, feature)
            unknown += strange
            (rows,) = np.nonzero(codes != -1)
            # A row without a category gets one NaN, which stands for all of them.
            data.append(np.where(codes[rows] >= 0, 1.0, np.nan).astype(dtype))
            at_row.append(rows)
            at_column.append(start + np.maximum(codes[rows], 0))
        else:
            values = (
                vectors(column, feature, dtype, place)
                if isinstance(feature, Vector)
                else numbers(column, dtype)[:, None]
            )
            rows, inside = np.nonzero(values)
            data.append(values[rows, inside])
            at_row.append(rows)
            at_column.append(start + inside)
        start += feature.width
    place_of = np.concatenate(at_row), np.concatenate(at_column)
    shape = n_rows, columns.width
    return sparse.csr_array((np.concatenate(data), place_of), shape=shape), unknown


def targets(batch: pa.RecordBatch, names: tuple[str, ...]) -> Float64:
    """Return one column as a vector, several as a table."""
    wide = np.dtype(np.float64)
    columns = [numbers(batch.column(name), wide) for name in names]
    return columns[0] if len(columns) == 1 else np.ascontiguousarray(np.array(columns).T)
