import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_reading import dense, plain_features
from scipy import sparse

from ridgepass.data.columns import Columns, Feature, OneHot, Vector
from ridgepass.data.encode import GROUP, encode, has_categories, is_number, is_vector, targets
from ridgepass.data.missing import Place

HERE = Place("the file", 10)
FLOATS = st.floats(-60000, 60000, width=16)
WHOLE = st.integers(0, 100)
NUMBERS = {
    pa.int8(): WHOLE,
    pa.uint16(): WHOLE,
    pa.int64(): st.integers(-(2**53), 2**53),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float16(): FLOATS,
    pa.float32(): FLOATS,
    pa.float64(): st.floats(allow_nan=True, allow_infinity=False),
    pa.bool_(): st.booleans(),
    pa.decimal128(20, 2): st.decimals(-1000, 1000, places=2),
    pa.decimal256(40, 3): st.decimals(-1000, 1000, places=3),
    pa.null(): st.none(),
    pa.dictionary(pa.int8(), pa.int32()): WHOLE,
    pa.dictionary(pa.int32(), pa.float64()): FLOATS,
}
WORDS = st.sampled_from(["a", "b", "", "ü", "NA", "a=b"])
TEXTS = {
    pa.string(): WORDS,
    pa.large_string(): WORDS,
    pa.string_view(): WORDS,
    pa.dictionary(pa.int8(), pa.string()): WORDS,
    pa.dictionary(pa.uint32(), pa.large_string()): WORDS,
    pa.int16(): WHOLE,
    pa.bool_(): st.booleans(),
}
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]


def optional(values):
    return st.one_of(st.none(), values)


@st.composite
def arrays(draw, kind, values, n_rows):
    """An array with nulls that may be a slice of a longer one."""
    before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    size = before + n_rows + after
    found = draw(st.lists(values, min_size=size, max_size=size))
    if pa.types.is_float16(kind):
        found = [None if value is None else np.float16(value) for value in found]
    return pa.array(found, kind).slice(before, n_rows)


@st.composite
def batches(draw, most_categories=4):
    n_rows, features, columns = draw(st.integers(0, 6)), [], {}
    for i in range(draw(st.integers(1, 5))):
        name, what = f"c{i}", draw(st.sampled_from(["number", "text", "list"]))
        if what == "number":
            kind = draw(st.sampled_from(list(NUMBERS)))
            features.append(Feature(name))
            values = NUMBERS[kind]
        elif what == "text":
            kind = draw(st.sampled_from(list(TEXTS)))
            known = draw(
                st.lists(
                    st.one_of(WORDS, st.just("true"), WHOLE.map(str)),
                    unique=True,
                    min_size=1,
                    max_size=most_categories,
                )
            )
            extra = [f"other {k}" for k in range(most_categories - 4)]
            features.append(OneHot(name, (*known, *extra)))
            values = TEXTS[kind]
        else:
            inner = draw(st.sampled_from([k for k in NUMBERS if not pa.types.is_dictionary(k)]))
            length = draw(st.integers(1, 3))
            make = draw(st.sampled_from([*LISTS, lambda k, n=length: pa.list_(k, n)]))
            kind, item = make(inner), NUMBERS[inner]
            if pa.types.is_float16(inner):
                item = item.map(np.float16)
            features.append(Vector(name, length))
            values = st.lists(optional(item), min_size=length, max_size=length)
        columns[name] = draw(arrays(kind, optional(values), n_rows))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return batch, Columns(tuple(features), dtype=dtype)


def assert_same_numbers(found, wanted):
    # Arrow rounds decimals a second time.
    np.testing.assert_allclose(found, wanted, rtol=2 * np.finfo(wanted.dtype).eps, atol=0)


@given(batches())
def test_dense_is_what_a_plain_reading_gives(given_batch):
    batch, columns = given_batch
    X, unknown = encode(batch, columns, HERE)
    with np.errstate(over="ignore"):
        wanted, strange = plain_features(batch.to_pylist(), columns)
    assert not sparse.issparse(X) or columns.is_sparse
    assert X.dtype == wanted.dtype
    assert_same_numbers(dense(X), wanted)
    assert unknown == strange


@given(batches(most_categories=100))
def test_sparse_is_what_a_plain_reading_gives_with_one_nan_for_no_category(given_batch):
    batch, columns = given_batch
    X, unknown = encode(batch, columns, HERE)
    with np.errstate(over="ignore"):
        wanted, strange = plain_features(batch.to_pylist(), columns)
    assert sparse.issparse(X) == columns.is_sparse
    assert unknown == strange
    start = 0
    for feature in columns.features:
        here = slice(start, start + feature.width)
        if isinstance(feature, OneHot) and columns.is_sparse:
            found = dense(X)[:, here]
            missing = np.isnan(wanted[:, here]).any(axis=1)
            np.testing.assert_array_equal(np.isnan(found).any(axis=1), missing)
            np.testing.assert_array_equal(found[~missing], wanted[~missing, here])
        else:
            assert_same_numbers(dense(X)[:, here], wanted[:, here])
        start += feature.width


def test_more_columns_than_are_turned_at_a_time():
    n_columns = 2 * GROUP + 5
    values = {f"x{i}": pa.array([float(i), i + 0.5]) for i in range(n_columns)}
    batch = pa.RecordBatch.from_pydict({**values, "v": pa.array([[1.0, 2.0], [3.0, 4.0]])})
    for at in (0, 3, GROUP, GROUP + 1, n_columns):
        features = [Feature(name) for name in values]
        features.insert(at, Vector("v", 2))
        columns = Columns(tuple(features))
        X, _ = encode(batch, columns, HERE)
        np.testing.assert_array_equal(X, plain_features(batch.to_pylist(), columns)[0])


def test_a_null_inside_a_dictionary_is_no_value():
    text = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", None, "z"]))
    batch = pa.RecordBatch.from_arrays([text], names=["c"])
    X, unknown = encode(batch, Columns((OneHot("c", ("a",)),)), HERE)
    np.testing.assert_array_equal(X, [[1.0], [math.nan], [0.0], [math.nan]])
    assert unknown == 1


def test_one_column_of_lists_is_not_copied():
    flat = np.arange(12.0)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(flat), 3)
    X, _ = encode(
        pa.RecordBatch.from_arrays([lists], names=["e"]), Columns((Vector("e", 3),)), HERE
    )
    assert np.shares_memory(X, flat)


def test_lists_of_another_length():
    ragged = pa.RecordBatch.from_pydict({"e": [[1.0, 2.0], None, [1.0]]})
    with pytest.raises(
        ValueError, match="column 'e' has a list of 1 numbers in row 13 of the file, and 2 before"
    ):
        encode(ragged, Columns((Vector("e", 2),)), HERE)
    fixed = pa.RecordBatch.from_pydict({"e": pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2))})
    with pytest.raises(ValueError, match="'e' of the file has lists of 2 numbers, and 3 before"):
        encode(fixed, Columns((Vector("e", 3),)), HERE)


def test_kinds_of_types():
    assert all(map(is_number, NUMBERS))
    assert all(map(has_categories, TEXTS))
    assert is_vector(pa.list_(pa.float32(), 4))
    strange = [pa.binary(), pa.struct([]), pa.map_(pa.string(), pa.int8()), pa.list_(pa.string())]
    for kind in strange:
        assert not any(test(kind) for test in (is_number, is_vector, has_categories))


def test_targets_in_full_precision():
    batch = pa.RecordBatch.from_pydict({"a": [0.1, None], "b": [decimal.Decimal("0.25"), None]})
    one, both = targets(batch, ("a",)), targets(batch, ("a", "b"))
    np.testing.assert_array_equal(one, [0.1, math.nan])
    np.testing.assert_array_equal(both, [[0.1, 0.25], [math.nan, math.nan]])
    assert both.flags.c_contiguous
