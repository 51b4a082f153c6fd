import os

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from plain_reading import number, read_all

from ridgepass.data.opening import open_source

N_ROWS = 60
RNG = np.random.default_rng(0)


def _copy(table, path, options):
    with duckdb.connect() as database:
        database.register("given", table)
        database.execute(f"copy (select * from given) to '{path}' ({options})")


def _ipc(table, path, new):
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=9)


# What each writer makes of an Arrow table; text formats take no lists.
BINARY = {
    "pyarrow.parquet": lambda t, p: pa.parquet.write_table(t, p, row_group_size=17),
    "pyarrow.feather": lambda t, p: pa.feather.write_feather(t, p),
    "pyarrow.arrow": lambda t, p: _ipc(t, p, pa.ipc.new_file),
    "pyarrow.arrows": lambda t, p: _ipc(t, p, pa.ipc.new_stream),
    "pandas.parquet": lambda t, p: t.to_pandas().to_parquet(p),
    "pandas.feather": lambda t, p: t.to_pandas().to_feather(p),
    "polars.parquet": lambda t, p: pl.from_arrow(t).write_parquet(p, row_group_size=17),
    "polars.ipc": lambda t, p: pl.from_arrow(t).write_ipc(p, compression="zstd"),
    "polars.arrows": lambda t, p: pl.from_arrow(t).write_ipc_stream(p),
    "duckdb.parquet": lambda t, p: _copy(t, p, "format parquet"),
}
TEXT = {
    "pyarrow.csv": lambda t, p: pa.csv.write_csv(t, p),
    "pandas.csv": lambda t, p: t.to_pandas().to_csv(p, index=False),
    "pandas.csv.gz": lambda t, p: t.to_pandas().to_csv(p, index=False),
    "pandas.tsv": lambda t, p: t.to_pandas().to_csv(p, index=False, sep="\t"),
    "polars.csv": lambda t, p: pl.from_arrow(t).write_csv(p, separator=";"),
    "duckdb.csv": lambda t, p: _copy(t, p, "header, delimiter '|'"),
    "duckdb.csv.gz": lambda t, p: _copy(t, p, "header, compression gzip"),
}
WHOLE = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]
KINDS = {
    **{str(kind): pa.array(RNG.integers(0, 100, N_ROWS), kind) for kind in WHOLE},
    "uint64": pa.array([2**60 + i for i in range(N_ROWS)], pa.uint64()),
    "float": pa.array(RNG.standard_normal(N_ROWS), pa.float32()),
    "double": pa.array(RNG.standard_normal(N_ROWS)),
    "bool": pa.array(RNG.random(N_ROWS) < 0.5),
    "decimal": pa.array(range(N_ROWS)).cast(pa.decimal128(20, 0)).cast(pa.decimal128(22, 2)),
    "whole with nulls": pa.array([None if i % 7 == 3 else i for i in range(N_ROWS)]),
    "double with nulls": pa.array([None if i % 5 == 3 else i / 3 for i in range(N_ROWS)]),
    "bool with nulls": pa.array([None if i % 5 == 3 else i % 2 == 0 for i in range(N_ROWS)]),
    "double with nan": pa.array([np.nan if i % 5 == 3 else i / 3 for i in range(N_ROWS)]),
}
LISTS = {
    "list": pa.array(RNG.standard_normal((N_ROWS, 3)).tolist()),
    "large list": pa.array(RNG.standard_normal((N_ROWS, 2)).tolist(), pa.large_list(pa.float32())),
    "fixed list": pa.array(RNG.standard_normal((N_ROWS, 2)).tolist(), pa.list_(pa.float64(), 2)),
    "list with nulls": pa.array(
        [None if i % 7 == 2 else [1.0, None] if i % 5 == 1 else [i / 7, 2.0] for i in range(N_ROWS)]
    ),
}
WORDS = [
    None if i % 9 == 4 else ["Köln", "NA", "a,b", 'say "x"', "two\nlines"][i % 5]
    for i in range(N_ROWS)
]
WORD_KINDS = {
    "string": pa.string(),
    "large string": pa.large_string(),
    "string view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int16(), pa.string()),
}


def check_column(path, array):
    source = open_source(path, features="x", nulls="zero")
    values = [value if isinstance(value, list) else [value] for value in array.to_pylist()]
    length = max(map(len, values))
    values = [[None] * length if value == [None] else value for value in values]
    wanted = np.nan_to_num([[number(item) for item in value] for value in values])
    found = read_all(source).X
    short = pa.float32() in (array.type, getattr(array.type, "value_type", None))
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if short else 1e-15)


@pytest.mark.parametrize("writer", [*BINARY, *TEXT])
def test_numbers_from_every_writer(tmp_path, writer):
    write = {**BINARY, **TEXT}[writer]
    for name, array in KINDS.items():
        table = pa.table({"id": pa.array(range(N_ROWS)), "x": array})
        path = str(tmp_path / f"{name}.{writer.partition('.')[2]}")
        write(table, path)
        check_column(path, array)


@pytest.mark.parametrize("writer", BINARY)
def test_lists_from_every_writer(tmp_path, writer):
    for name, array in LISTS.items():
        path = str(tmp_path / f"{name}.{writer.partition('.')[2]}")
        BINARY[writer](pa.table({"id": pa.array(range(N_ROWS)), "x": array}), path)
        check_column(path, array)


@pytest.mark.parametrize("writer", [*BINARY, *TEXT])
def test_categories_from_every_writer(tmp_path, writer):
    write = {**BINARY, **TEXT}[writer]
    known = sorted({word for word in WORDS if word is not None})
    wanted = [[float(word == category) for category in known] for word in WORDS]
    for name, kind in WORD_KINDS.items():
        if name == "string view" and writer.startswith(("pandas", "duckdb", "pyarrow.csv")):
            continue
        array = (
            pa.array(WORDS, pa.string()).cast(kind)
            if name != "dictionary"
            else (pa.array(WORDS).dictionary_encode().cast(kind))
        )
        path = str(tmp_path / f"{name}.{writer.partition('.')[2]}")
        write(pa.table({"id": pa.array(range(N_ROWS)), "x": array}), path)
        source = open_source(path, features="x", one_hot="x", nulls="zero")
        assert source.feature_names == [f"x={word}" for word in known]
        np.testing.assert_array_equal(read_all(source).X, wanted)


def test_half_precision(tmp_path):
    halves = pa.array(np.arange(N_ROWS, dtype=np.float16) / 8)
    for writer in ("pyarrow.parquet", "pyarrow.arrow", "pandas.parquet"):
        path = str(tmp_path / writer)
        BINARY[writer](pa.table({"x": halves}), path)
        source = open_source(path)
        assert source.columns.dtype == "float32"
        np.testing.assert_array_equal(read_all(source).X[:, 0], np.arange(N_ROWS) / 8)


def test_slices_and_empty_batches(tmp_path):
    whole = pa.table({"x": KINDS["whole with nulls"], "e": LISTS["list with nulls"]})
    part = whole.slice(13, 30)
    batches = [
        part.slice(0, 0),
        part.slice(0, 11),
        part.slice(5, 0),
        part.slice(11),
        whole.slice(0, 0),
    ]
    table = pa.concat_tables(batches)
    found = read_all(open_source(table, nulls="zero"))
    np.testing.assert_array_equal(found.X, read_all(open_source(whole, nulls="zero")).X[13:43])


def test_files_of_no_row_and_of_one(tmp_path):
    for i, n_rows in enumerate([0, 1, 0, 0, 3, 1, 0]):
        table = pa.table({"x": pa.array([float(i)] * n_rows), "y": pa.array([1.0] * n_rows)})
        pa.parquet.write_table(table, tmp_path / f"{i}.parquet")
    found = read_all(open_source(tmp_path, target="y"))
    assert found.X[:, 0].tolist() == [1, 4, 4, 4, 5]
    assert [tuple(end) for end in found.ends] == [(1, 1), (4, 3), (5, 1)]


@pytest.mark.parametrize("format", ["parquet", "csv", "arrow"])
def test_partitions(tmp_path, format):
    for year in (2020, 2021):
        for kind in ("a b", "__HIVE_DEFAULT_PARTITION__"):
            folder = tmp_path / f"year={year}" / f"kind={kind}"
            folder.mkdir(parents=True)
            table = pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]})
            write = {
                "parquet": pa.parquet.write_table,
                "csv": pa.csv.write_csv,
                "arrow": pa.feather.write_feather,
            }[format]
            write(table, str(folder / f"0.{format}"))
    source = open_source(tmp_path, target="y", one_hot="kind", nulls="zero")
    assert source.feature_names == ["x", "year", "kind=a b"]
    assert read_all(source).X.tolist() == [
        [1, 2020, 0], [2, 2020, 0], [1, 2020, 1], [2, 2020, 1],
        [1, 2021, 0], [2, 2021, 0], [1, 2021, 1], [2, 2021, 1],
    ]  # fmt: skip
    only = open_source(tmp_path, features="year")
    assert read_all(only).X[:, 0].tolist() == [2020] * 4 + [2021] * 4
    assert read_all(only, batch_rows=1).sizes == [1] * 8
    assert open_source(tmp_path, target="year", exclude="kind").feature_names == ["x", "y"]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["2020_01", "2020_02"], ["k=2020_01", "k=2020_02"]),
        (["1", "2.5"], ["k"]),
        (["1", "nan"], ["k=1", "k=nan"]),
        (["1" * 30, "2"], ["k"]),
        (["٣", "٤"], ["k=٣", "k=٤"]),
        (["-1", "07"], ["k"]),
    ],
)
def test_what_partitions_are_numbers(tmp_path, values, wanted):
    for value in values:
        folder = tmp_path / f"k={value}"
        folder.mkdir()
        pa.parquet.write_table(pa.table({"x": [1.0]}), folder / "0.parquet")
    one_hot = "k" if len(wanted) > 1 else None
    assert open_source(tmp_path, one_hot=one_hot).feature_names == ["x", *wanted]
    if one_hot:
        with pytest.raises(ValueError, match=r"column 'k' of .* is text"):
            open_source(tmp_path)


def test_pandas_frames_with_an_index_in_files(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}).iloc[[2, 0]]
    frame.to_parquet(tmp_path / "a.parquet")
    assert open_source(tmp_path).feature_names == ["x"]
    assert read_all(open_source(tmp_path)).X.tolist() == [[3], [1]]


def test_names_of_columns_may_be_anything(tmp_path):
    names = ["x[0]", "*", "a b", "größe", "a.b", "a", "", "x'y\"z"]
    table = pa.table({name: [float(i)] for i, name in enumerate(names)})
    for writer in ("pyarrow.parquet", "pyarrow.feather", "polars.parquet", "duckdb.parquet"):
        path = str(tmp_path / f"{writer}")
        chosen = table if writer.startswith("pyarrow") else table.drop_columns([""])
        BINARY[writer](chosen, path)
        for name in chosen.schema.names:
            if name == "*":
                continue
            source = open_source(path, features=[name])
            assert source.feature_names == [name]
            assert read_all(source).X[0, 0] == names.index(name)
        assert open_source(path, target="*", features=["a"]).feature_names == ["a"]


def test_several_targets_and_weights():
    table = pa.table({"x": [1.0, 2.0], "u": [3, 4], "v": [True, False], "w": [0.5, 0.0]})
    found = read_all(open_source(table, target=["v", "u"], weight="w"))
    assert found.X.tolist() == [[1], [2]]
    assert found.y.tolist() == [[1, 3], [0, 4]]
    assert found.weights.tolist() == [0.5, 0.0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table({"x": [1.0]}), path)
    path.chmod(0)
    with pytest.raises(PermissionError):
        open_source(path)


@pytest.mark.parametrize("format", ["parquet", "csv", "arrow", "svmlight", "npy"])
def test_empty_files(tmp_path, format):
    path = tmp_path / f"a.{format}"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=rf"a\.{format} (is empty|has no feature|cannot be read)"):
        open_source(path)
