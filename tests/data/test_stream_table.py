import gzip
import io

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc
import pytest
from plain_reading import read_all

from ridgepass.data.opening import open_source
from ridgepass.data.stream_table import StreamTable, standard_input

VALUES = {"a": [float(i) for i in range(5000)], "y": [2.0 * i for i in range(5000)]}


class Once:
    """Hands its stream over a single time, as a database cursor does."""

    def __init__(self, table):
        self.reader = table.to_reader(max_chunksize=700)

    def __arrow_c_stream__(self, requested_schema=None):
        reader, self.reader = self.reader, None
        return reader.__arrow_c_stream__(requested_schema)


class Failing:
    def __init__(self, table):
        self.schema, self.batches = table.schema, table.to_batches(max_chunksize=700)

    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            yield from self.batches[:2]
            raise RuntimeError("the database has gone away")

        reader = pa.RecordBatchReader.from_batches(self.schema, batches())
        return reader.__arrow_c_stream__(requested_schema)


SOURCES = {
    "table": lambda: pa.table(VALUES),
    "batch": lambda: pa.RecordBatch.from_pydict(VALUES),
    "pandas": lambda: pd.DataFrame(VALUES),
    "polars": lambda: pl.DataFrame(VALUES),
    "dataset": lambda: pa.dataset.dataset(pa.table(VALUES)),
    "duckdb": lambda: duckdb.from_arrow(pa.table(VALUES)).order("a"),
    "reader": lambda: pa.table(VALUES).to_reader(max_chunksize=700),
    "once": lambda: Once(pa.table(VALUES)),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_its_rows(kind):
    source = open_source(SOURCES[kind](), target="y")
    assert source.feature_names == ["a"]
    again = kind not in ("reader", "once")
    assert source.rereadable == again
    known = kind in ("table", "batch", "pandas", "polars")
    assert source.n_rows == (5000 if known else None)
    found = read_all(source, batch_rows=1234)
    np.testing.assert_array_equal(found.X[:, 0], VALUES["a"])
    np.testing.assert_array_equal(found.y, VALUES["y"])
    assert max(found.sizes) <= 1234
    if again:
        np.testing.assert_array_equal(read_all(source).y, VALUES["y"])
    else:
        with pytest.raises(ValueError, match=r"the .* can be read only once: open it again"):
            read_all(source)


def test_what_can_be_read_once_cannot_be_looked_at_beforehand():
    table = pa.table({"c": ["u", "v"], "x": [1.0, None]})
    with pytest.raises(ValueError, match="only once, so its categories must be told: --one-hot c="):
        open_source(table.to_reader(), one_hot="c")
    source = open_source(table.to_reader(), one_hot={"c": ["u"]}, nulls="zero")
    found = read_all(source)
    assert found.X.tolist() == [[1, 1], [0, 0]]
    assert found.unknown == 1
    with pytest.raises(ValueError, match="nulls='mean' reads the data twice"):
        open_source(table.to_reader(), exclude="c", nulls="mean").chunks()


def test_looking_for_the_length_of_lists_loses_no_rows():
    lists = pa.array([None, None, [1.0, 2.0], [3.0, 4.0]])
    batches = [pa.record_batch({"e": lists.slice(i, 1)}) for i in (0, 1, 2, 3)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    source = open_source(reader, nulls="zero")
    assert read_all(source).X.tolist() == [[0, 0], [0, 0], [1, 2], [3, 4]]


def test_dictionaries_may_differ_from_batch_to_batch():
    parts = [pa.array(words).dictionary_encode() for words in (["b", "a"], ["c"], [None, "a"])]
    batches = [pa.record_batch({"c": part, "x": [1.0] * len(part)}) for part in parts]
    source = open_source(pa.Table.from_batches(batches), one_hot="c", nulls="zero")
    assert source.columns.features[0].categories == ("a", "b", "c")
    np.testing.assert_array_equal(
        read_all(source).X[:, :3], [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]
    )


def test_the_index_of_pandas_is_no_feature():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=pd.Index([7, 1, 5], name="id"))
    assert open_source(frame).feature_names == ["a"]
    assert open_source(frame.rename_axis(None)).feature_names == ["a"]
    assert open_source(frame, features=["id", "a"]).feature_names == ["a", "id"]
    np.testing.assert_array_equal(read_all(open_source(frame, target="id")).y, [7, 1, 5])


def test_errors_of_a_stream_name_it():
    with pytest.raises(ValueError, match=r"the .* Failing cannot be read: .*gone away"):
        read_all(open_source(Failing(pa.table(VALUES)), target="y"))
    with pytest.raises(ValueError, match="the pandas Series cannot be read"):
        open_source(pd.Series([1.0]))
    for source in (3, object(), pl.LazyFrame(VALUES), [pa.table(VALUES)]):
        with pytest.raises(
            TypeError, match=r"cannot read rows from a .*: .*give paths, a data frame"
        ):
            open_source(source)


def test_duckdb_runs_a_query_only_when_it_is_read():
    database = duckdb.connect()
    database.execute("create sequence counted")
    relation = database.sql("select nextval('counted')::double as a, range as y from range(10)")
    source = open_source(relation, target="y")
    np.testing.assert_array_equal(read_all(source).X[:, 0], np.arange(1.0, 11.0))


def test_a_connection_of_duckdb_is_free_after_leaving_early():
    database = duckdb.connect()
    relation = database.sql(
        """select [range::double, 1] as e, (range % 7)::varchar as c,
        case when range % 5 = 0 then null else range end as x from range(50000)"""
    )
    source = open_source(relation, one_hot="c", nulls="mean")
    chunks = source.chunks(batch_rows=2048)
    next(chunks)
    chunks.close()
    assert database.sql("select 1").fetchall() == [(1,)]
    assert read_all(source).X.shape == (50_000, 10)
    with pytest.raises(ValueError, match="column 'c' of the duckdb DuckDBPyRelation is text, not"):
        open_source(relation)
    assert database.sql("select 1").fetchall() == [(1,)]


def test_duckdb_types():
    relation = duckdb.sql(
        """select 1::tinyint a, 2::ubigint b, 3::hugeint c, 1.5::decimal(9, 3) d, 0.5::float e,
        true f, 'u'::enum('u', 'v') g, [1.0::float, 2] h, [1.0::double, 2]::double[2] i"""
    )
    source = open_source(relation, one_hot="g")
    assert read_all(source).X.tolist() == [[1, 2, 3, 1.5, 0.5, 1, 1, 1, 2, 1, 2]]


def piped(data):
    return io.BufferedReader(io.BytesIO(data))


def arrow_stream(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return sink.getvalue()


def test_standard_input():
    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    text = b"a,b\n1,3\n2,4\n"
    for data in (arrow_stream(table), text, gzip.compress(text)):
        found = standard_input(piped(data), None, {})
        assert found.name == "standard input"
        assert not found.rereadable
        assert pa.Table.from_batches(found.read(["a", "b"], 0, 1)).to_pydict() == table.to_pydict()


@pytest.mark.parametrize(
    ("data", "format", "what"),
    [
        (b"", None, "standard input is empty: pipe CSV"),
        (b"PAR1....", None, "cannot be read from a pipe: give its path"),
        (b"ARROW1..", "arrow", "cannot be read from a pipe: give its path"),
        (b"a,b\n", "npy", "standard input cannot be npy"),
        (b"a,b\n1,2\n", "arrow", "standard input cannot be read"),
    ],
)
def test_what_standard_input_cannot_be(data, format, what):
    with pytest.raises(ValueError, match=what):
        standard_input(piped(data), format, {})


@pytest.mark.parametrize("pack", [arrow_stream, None])
def test_a_pipe_that_breaks(pack):
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.standard_normal(5000)})
    if pack is None:
        data = gzip.compress(("a\n" + "\n".join(map(str, table["a"].to_pylist()))).encode())
    else:
        data = pack(table)
    with pytest.raises(ValueError, match="standard input cannot be read"):
        list(standard_input(piped(data[: len(data) // 2]), None, {}).read(["a"], 0, 10**6))


def test_a_dataset_of_parquet_reads_only_what_is_asked_for(tmp_path):
    pa.parquet.write_table(pa.table(VALUES), tmp_path / "a.parquet", row_group_size=999)
    table = StreamTable(pa.dataset.dataset(tmp_path))
    pieces = list(table.read(["y"], 1500, 100))
    assert pieces[0].schema.names == ["y"]
    np.testing.assert_array_equal(
        np.concatenate([piece.column(0) for piece in pieces]), VALUES["y"][1500:]
    )
