"""Tables become arrays of floats with names, or errors that name the column."""

import decimal
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from ridgepass.frames import open_frame

VALUES = np.array([[1.0, 0.5, 1.0], [2.0, -0.5, 0.0], [3.0, 2.25, 1.0]])
COLUMNS = {"count": [1, 2, 3], "size": [0.5, -0.5, 2.25], "owner": [True, False, True]}


class Stream:
    """Something that speaks Arrow and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def reader(table):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))


def relation(table):
    return duckdb.from_arrow(table)


KINDS = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "table": lambda columns: pa.table(columns),
    "chunked table": lambda columns: pa.concat_tables(
        [pa.table(columns)[:1], pa.table(columns)[1:]]
    ),
    "record batch": lambda columns: pa.record_batch(columns),
    "reader": lambda columns: reader(pa.table(columns)),
    "stream": lambda columns: Stream(pa.table(columns)),
    "duckdb": lambda columns: relation(pa.table(columns)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_and_names(kind):
    frame = open_frame(KINDS[kind](COLUMNS))
    assert frame.feature_names.dtype == object
    assert frame.feature_names.tolist() == list(COLUMNS)
    values = frame.values()
    np.testing.assert_array_equal(values, VALUES)
    assert values.dtype == np.float64
    assert values.flags.c_contiguous


@pytest.mark.parametrize("kind", KINDS)
def test_short_floats_stay_short(kind):
    short = {"a": np.float32([1, 2]), "b": np.float32([3, 4])}
    assert open_frame(KINDS[kind](short)).values().dtype == np.float32
    mixed = {"a": np.float32([1, 2]), "b": np.array([3, 4])}
    assert open_frame(KINDS[kind](mixed)).values().dtype == np.float64


@pytest.mark.parametrize("kind", ["pandas", "table", "record batch", "reader", "stream"])
def test_half_floats_become_float32(kind):
    values = open_frame(KINDS[kind]({"a": np.float16([1, 2]), "b": np.float32([3, 4])})).values()
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, [[1, 3], [2, 4]])


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_are_not_numbers_are_named(kind):
    columns = {"age": [1, 2], "city": ["Ulm", "Ulm"], "when": np.array([0, 1], "M8[us]")}
    message = r"columns 'city' \(.*\), 'when' \(.*\) are not numbers: drop such columns or encode"
    with pytest.raises(ValueError, match=message):
        open_frame(KINDS[kind](columns)).values()
    with pytest.raises(ValueError, match=r"column 'city' \(.*\) is not numbers"):
        open_frame(KINDS[kind]({"age": [1, 2], "city": ["1", "2"]})).values()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pandas"])
def test_nulls_are_named(kind):
    columns = {"a": pa.array([1, None, 3]), "b": pa.array([1.0, 2.0, 3.0]), "c": [None, True, None]}
    if kind == "polars":
        columns = pl.from_arrow(pa.table(columns))
    with pytest.raises(ValueError, match="columns 'a', 'c' have missing values"):
        open_frame(KINDS[kind](columns)).values()


def test_nulls_of_pandas_are_named():
    table = pd.DataFrame(
        {
            "a": pd.array([1, None], dtype="Int64"),
            "b": [1.0, 2.0],
            "c": pd.Series([1, None], dtype=object),
        }
    )
    with pytest.raises(ValueError, match="columns 'a', 'c' have missing values"):
        open_frame(table).values()
    np.testing.assert_array_equal(
        open_frame(pd.DataFrame({"a": [1, np.nan]})).values()[1], [np.nan]
    )


def test_long_lists_are_cut():
    with pytest.raises(
        ValueError, match=r"columns 'c0' .*, 'c4' \(.*\) and 3 more are not numbers"
    ):
        open_frame(pd.DataFrame({f"c{i}": ["x"] for i in range(8)})).values()


def test_numbers_of_every_pandas_type():
    table = pd.DataFrame(
        {
            "extension": pd.array([1, 2], dtype="Int8"),
            "boolean": pd.array([True, False], dtype="boolean"),
            "arrow": pd.array([0.5, 1.5], dtype=pd.ArrowDtype(pa.float32())),
            "object": pd.Series([1, 2.5], dtype=object),
            "decimal": pd.Series([decimal.Decimal("0.25"), decimal.Decimal(3)], dtype=object),
            "unsigned": np.uint8([7, 8]),
        }
    )
    wanted = [[1, 1, 0.5, 1, 0.25, 7], [2, 0, 1.5, 2.5, 3, 8]]
    np.testing.assert_array_equal(open_frame(table).values(), wanted)
    short = table[["arrow"]].assign(other=pd.array([1.0, 2.0], dtype="Float32"))
    assert open_frame(short).values().dtype == np.float32


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b"], dtype=object),
        pd.Series(["a", "b"], dtype="category"),
        pd.Series([1, 2], dtype="category"),
        pd.Series([1, "b"], dtype=object),
        pd.Series([1j, 2j]),
        pd.to_timedelta([1, 2], unit="s"),
        pd.Series([[1], [2]], dtype=object),
    ],
    ids=["text", "category", "numbered category", "mixed", "complex", "time", "list"],
)
def test_what_pandas_holds_that_is_no_number(column):
    with pytest.raises(ValueError, match=r"column 'odd' .* is not numbers"):
        open_frame(pd.DataFrame({"fine": [1.0, 2.0], "odd": column})).values()


def test_pandas_columns_of_any_label():
    values = np.arange(6.0).reshape(2, 3)
    assert open_frame(pd.DataFrame(values)).feature_names is None
    twice = pd.DataFrame(values, columns=["a", "a", "b"])
    assert open_frame(twice).feature_names.tolist() == ["a", "a", "b"]
    np.testing.assert_array_equal(open_frame(twice).values(), values)
    twice_text = pd.DataFrame([["x", 1.0]], columns=["a", "a"])
    with pytest.raises(ValueError, match="column 'a'"):
        open_frame(twice_text).values()
    with pytest.raises(TypeError, match=r"all input features have string names.*int, str"):
        _ = open_frame(pd.DataFrame(values, columns=["a", 1, 2])).feature_names


def test_sparse_pandas_stays_sparse():
    wanted = np.diag([1.0, 2.0, 3.0])
    table = pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(wanted), columns=list("abc"))
    values = open_frame(table).values()
    assert values.format == "csr"
    np.testing.assert_array_equal(values.toarray(), wanted)
    part = table.assign(d=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(open_frame(part).values()[:, :3], wanted)


def test_pandas_of_one_block_in_rows_is_not_copied():
    table = pd.DataFrame(np.ones((4, 3)), copy=False)
    assert table.to_numpy().flags.c_contiguous
    assert np.shares_memory(open_frame(table).values(), table.to_numpy())


def test_decimals_and_large_integers_of_arrow():
    columns = {"d": pa.array([decimal.Decimal("1.5")]), "i": pa.array([2**62 + 1])}
    for kind in ("table", "duckdb", "stream"):
        values = open_frame(KINDS[kind](columns)).values()
        np.testing.assert_array_equal(values, [[1.5, float(2**62 + 1)]])
    sums = duckdb.sql("select sum(range) as total, 0.5 as half from range(10)")
    np.testing.assert_array_equal(open_frame(sums).values(), [[45.0, 0.5]])


def test_what_is_no_table():
    one = [1.0, 2.0]
    for data in (np.ones((2, 2)), [[1.0]], pd.Series(one), pl.Series(one), pa.array(one)):
        assert open_frame(data) is None
    assert open_frame(pa.chunked_array([one])) is None
    assert open_frame(sparse.csr_array(np.eye(2))) is None
    with pytest.raises(TypeError, match="is not a table of named columns"):
        open_frame(Stream(pa.chunked_array([one])))
    with pytest.raises(TypeError, match=r"call its collect\(\) first"):
        open_frame(pl.LazyFrame({"a": one}))


def test_no_rows():
    for kind in KINDS:
        if kind != "chunked table":
            assert open_frame(KINDS[kind]({"a": np.empty(0)})).values().shape == (0, 1)


def test_without_pyarrow_the_error_tells_what_to_install(monkeypatch):
    stream = Stream(pa.table(COLUMNS))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Stream needs pyarrow: pip install ridgepass\[files\]"):
        open_frame(stream)


@pytest.mark.slow
def test_no_library_is_loaded_before_it_is_used():
    code = """
import sys
import numpy as np
from ridgepass.estimators import StreamingRidge
before = {name for name in ("pandas", "polars", "pyarrow") if name in sys.modules}
StreamingRidge().fit(np.eye(3), np.ones(3)).predict(np.eye(3))
libraries = ("pandas", "polars", "pyarrow", "duckdb")
print(*(name for name in libraries if name in sys.modules and name not in before))
print(*(name for name in ("polars", "duckdb") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
