import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from ridgepass.data.arrow_table import ArrowTable
from ridgepass.data.files import File
from ridgepass.data.tables import ParquetTable, buffer_size

N_ROWS = 100


@pytest.fixture
def table():
    words = pa.array(["a", "b", None, "c"] * 25).dictionary_encode()
    return pa.table({"x": pa.array(range(N_ROWS)), "w.v": np.arange(N_ROWS) / 7, "c": words})


def write_ipc(table, path, *, stream=False, rows=7, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema, options=options) as writer:
        for batch in table.to_batches(max_chunksize=rows):
            writer.write_batch(batch)
            writer.write_batch(batch.slice(0, 0))


WRITERS = {
    "one group": lambda t, p: pa.parquet.write_table(t, p),
    "small groups": lambda t, p: pa.parquet.write_table(t, p, row_group_size=7),
    "small pages": lambda t, p: pa.parquet.write_table(t, p, data_page_size=16, write_batch_size=4),
    "ipc file": lambda t, p: write_ipc(t, p),
    "ipc stream": lambda t, p: write_ipc(t, p, stream=True),
    "ipc zstd": lambda t, p: write_ipc(t, p, compression="zstd"),
    "feather lz4": lambda t, p: pa.feather.write_feather(t, p, chunksize=30),
    "one batch": lambda t, p: write_ipc(t, p, rows=N_ROWS),
}


def opened(path, kind):
    what = "parquet" if kind in ("one group", "small groups", "small pages") else "arrow"
    file = File(str(path), what)
    return ParquetTable(file) if what == "parquet" else ArrowTable(file)


@pytest.mark.parametrize("kind", WRITERS)
def test_any_columns_from_any_row_on(table, tmp_path, kind):
    path = tmp_path / "x"
    WRITERS[kind](table, str(path))
    found = opened(path, kind)
    assert found.schema.names == ["x", "w.v", "c"]
    assert found.n_rows == (None if kind == "ipc stream" else N_ROWS)
    for start in (0, 1, 6, 7, 8, 13, 50, 99, 100):
        for columns in (["x"], ["c", "x"], ["w.v", "c", "x"]):
            pieces = list(found.read(columns, start, 5))
            assert all(0 < piece.num_rows <= 5 for piece in pieces)
            assert all(piece.schema.names == columns for piece in pieces)
            rows = [row for piece in pieces for row in piece.to_pylist()]
            assert rows == table.select(columns).slice(start).to_pylist()


@pytest.mark.parametrize("kind", WRITERS)
def test_columns_that_come_from_directories(table, tmp_path, kind):
    path = tmp_path / "x"
    WRITERS[kind](table, str(path))
    found = opened(path, kind)
    found.add_constants({"year": pa.scalar(2020), "x": pa.scalar("not this one")})
    assert found.schema.names == ["x", "w.v", "c", "year"]
    for start in (0, 8, 99, 100):
        pieces = list(found.read(["year"], start, 5))
        assert all(0 < piece.num_rows <= 5 for piece in pieces)
        years = [year for piece in pieces for year in piece.column(0).to_pylist()]
        assert years == [2020] * (N_ROWS - start)
    mixed = pa.Table.from_batches(found.read(["year", "x"], 90, 100))
    assert mixed.to_pydict() == {"year": [2020] * 10, "x": list(range(90, 100))}


@pytest.mark.parametrize("kind", WRITERS)
def test_files_without_rows(table, tmp_path, kind):
    path = tmp_path / "x"
    WRITERS[kind](table.slice(0, 0), str(path))
    found = opened(path, kind)
    found.add_constants({"year": pa.scalar(2020)})
    assert list(found.read(["x", "year"], 0, 5)) == []
    assert list(found.read(["year"], 0, 5)) == []


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9, 0.99])
def test_truncated_files_are_named(tmp_path, kind, share):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.standard_normal(2000), "y": rng.standard_normal(2000)})
    path = tmp_path / "x"
    WRITERS[kind](table, str(path))
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=f"^{path} cannot be read.*check that the file is whole"):
        list(opened(path, kind).read(["x", "y"], 0, 100))


@pytest.mark.parametrize("kind", ["one group", "ipc file", "ipc zstd"])
def test_damage_in_the_middle_is_an_error(tmp_path, kind):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.standard_normal(5000)})
    path = tmp_path / "x"
    if kind == "one group":
        pa.parquet.write_table(table, path, write_page_checksum=True, compression="zstd")
    else:
        WRITERS[kind](table, str(path))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 600] = bytes(600)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{path} cannot be read.*file is whole$"):
        list(opened(path, kind).read(["x"], 0, 100))


@pytest.mark.parametrize("what", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "content", [b"x", b"a,b\n1,2\n" * 20, bytes(1000), b"ARROW1\0\0" + bytes(99)]
)
def test_wrong_formats(tmp_path, what, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    kind = ParquetTable if what == "parquet" else ArrowTable
    with pytest.raises(ValueError, match=f"^{path} cannot be read as {what.capitalize()}: "):
        kind(File(str(path), what))


def test_pandas_keeps_its_index_in_a_column(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=pd.Index([5, 9, 2], name="id"))
    frame.to_parquet(tmp_path / "named.parquet")
    frame.rename_axis(None).to_parquet(tmp_path / "bare.parquet")
    frame.reset_index().to_parquet(tmp_path / "without.parquet")
    index = {
        name: ParquetTable(File(str(tmp_path / f"{name}.parquet"), "parquet")).index
        for name in ("named", "bare", "without")
    }
    assert index == {"named": {"id"}, "bare": {"__index_level_0__"}, "without": set()}


def test_buffers_of_many_columns_stay_small():
    assert buffer_size(1) == 1 << 20
    assert buffer_size(5000) * 5000 <= 48 << 20
    assert buffer_size(10**6) == 1 << 13
