"""Arrow files: every type as Arrow itself reads it, and files that change while they are read."""

import datetime
import decimal
import os

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pytest

from ridgepass.data import arrow_table
from ridgepass.data.arrow_table import ArrowTable
from ridgepass.data.files import File

N_ROWS = 203


def _texts(rng, kind):
    words = ["", "a", "twelve chars", "just over twelve", "ä" * 9, "long " * 30]
    return pa.array([words[i] for i in rng.integers(0, len(words), N_ROWS)], kind)


def _with_nulls(rng, array, share=0.3):
    mask = pa.array(rng.random(len(array)) < share)
    return pa.compute.if_else(mask, pa.scalar(None, array.type), array)


def _lists(rng, kind):
    lengths = rng.integers(0, 4, N_ROWS)
    return pa.array([rng.integers(0, 99, n).tolist() for n in lengths], kind)


def make_columns(rng):
    numbers = pa.array(rng.integers(0, 100, N_ROWS))
    days = [datetime.date(2020, 1, 1 + i % 28) for i in range(N_ROWS)]
    columns = {
        "int8": numbers.cast(pa.int8()),
        "uint64": numbers.cast(pa.uint64()),
        "half": pa.array(rng.random(N_ROWS).astype(np.float16)),
        "float": pa.array(rng.random(N_ROWS, np.float32)),
        "double": pa.array(rng.random(N_ROWS)),
        "bool": pa.array(rng.random(N_ROWS) > 0.5),
        "decimal": pa.array([decimal.Decimal(i) / 4 for i in range(N_ROWS)], pa.decimal128(9, 2)),
        "date": pa.array(days),
        "time": pa.array(days).cast(pa.timestamp("us")),
        "bytes": pa.array([bytes([i]) * 3 for i in range(N_ROWS)], pa.binary(3)),
        "text": _texts(rng, pa.string()),
        "large text": _texts(rng, pa.large_string()),
        "view": _texts(rng, pa.string_view()),
        "binary": _texts(rng, pa.string()).cast(pa.binary()),
        "list": _lists(rng, pa.list_(pa.float64())),
        "large list": _lists(rng, pa.large_list(pa.int16())),
        "array": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(3 * N_ROWS)), 3),
        "words": _texts(rng, pa.string()).dictionary_encode(),
        "codes": numbers.dictionary_encode(),
    }
    with_nulls = {
        f"{name}, nulls": _with_nulls(rng, column)
        for name, column in columns.items()
        if name != "view"  # which Arrow has no such function for
    }
    nested = {
        "nothing": pa.nulls(N_ROWS),
        "view, nulls": pa.array(
            [None if i % 3 == 0 else f"number {i} of many more" for i in range(N_ROWS)],
            pa.string_view(),
        ),
        "lists of text": pa.array([[f"a{i}", None, "b" * i] for i in range(N_ROWS)]),
        "lists of arrays": pa.array(
            [[[True, None], [False, True]][: i % 3] for i in range(N_ROWS)],
            pa.list_(pa.list_(pa.bool_(), 2)),
        ),
        "lists of words": pa.array(
            [["x", "y"][: i % 3] for i in range(N_ROWS)],
            pa.list_(pa.dictionary(pa.int8(), pa.string())),
        ),
        "struct": pa.array([{"a": i, "b": str(i)} for i in range(N_ROWS)]),
        "list view": pa.array([[i, i] for i in range(N_ROWS)], pa.list_view(pa.int64())),
        "runs": pa.compute.run_end_encode(pa.array(np.arange(N_ROWS) // 10)),
        "map": pa.array([[("k", i)] for i in range(N_ROWS)], pa.map_(pa.string(), pa.int64())),
    }
    return columns | with_nulls | nested


COLUMNS = make_columns(np.random.default_rng(0))


def write(path, table, *, stream=False, rows=None, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return ArrowTable(File(str(path), "arrow"))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("how", ["file", "stream", "packed", "batches"])
def test_every_type_from_any_row_on(tmp_path, name, how):
    expected = pa.table({"first": np.arange(float(N_ROWS)), "x": COLUMNS[name]})
    options = {
        "file": {},
        "stream": {"stream": True},
        "packed": {"compression": "lz4"},
        "batches": {"rows": 50},
    }[how]
    found = write(tmp_path / "x", expected, **options)
    for start in (0, 1, 8, 13, 49, 50, 101, 202, 203):
        for at_most in (7, 64, 1000):
            pieces = list(found.read(["x"], start, at_most))
            assert sum(len(piece) for piece in pieces) == N_ROWS - start
            rows = [value for piece in pieces for value in piece.column("x").to_pylist()]
            assert rows == COLUMNS[name].slice(start).to_pylist()


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("words", [False, True])
def test_values_are_read_piece_by_piece_unless_packed(
    tmp_path, monkeypatch, compression, stream, words
):
    columns = {
        "x": np.arange(1000.0),
        **({"w": COLUMNS["words"].take([0] * 1000)} if words else {}),
    }
    table = write(tmp_path / "x", pa.table(columns), stream=stream, compression=compression)
    read, sizes = arrow_table._Map.read, []

    def noted(self, buffer, start, n_bytes):
        sizes.append(n_bytes)
        assert self.holds(buffer)
        return read(self, buffer, start, n_bytes)

    monkeypatch.setattr(arrow_table._Map, "read", noted)
    assert len(list(table.read(["x"], 0, 40))) == 25
    assert sizes == ([] if compression else [40 * 8] * 25)


def test_only_numbers_and_text_are_read_piece_by_piece():
    plain = {name for name, column in COLUMNS.items() if arrow_table._is_plain(column.type)}
    assert set(COLUMNS) - plain == {"struct", "list view", "runs", "map"}


@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_polars_writes(tmp_path, stream, compression):
    frame = pl.DataFrame(
        {
            "x": np.arange(1000.0),
            "s": [f"a long string, number {i}" if i % 3 else None for i in range(1000)],
            "c": pl.Series(["one", "two", None, "three"] * 250, dtype=pl.Categorical),
            "l": [[1.0, float(i)] for i in range(1000)],
            "a": pl.Series([[i, 2 * i] for i in range(1000)], dtype=pl.Array(pl.Int32, 2)),
        }
    )
    path = tmp_path / "x.arrow"
    (frame.write_ipc_stream if stream else frame.write_ipc)(path, compression=compression)
    found = ArrowTable(File(str(path), "arrow"))
    for start in (0, 5, 333, 999):
        pieces = list(found.read(frame.columns, start, 70))
        rows = [row for piece in pieces for row in piece.to_pylist()]
        assert rows == frame.slice(start).to_dicts()


@pytest.mark.parametrize("deltas", [False, True])
def test_dictionaries_that_change_in_a_stream(tmp_path, deltas):
    kind = pa.dictionary(pa.int8(), pa.string())
    words = [["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"] if deltas else ["x", "y", "z"]]
    schema, path = pa.schema([("c", kind)]), tmp_path / "x.arrows"
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
    expected = []
    with pa.ipc.new_stream(str(path), schema, options=options) as writer:
        for known in words * (1 if deltas else 5):
            indices = pa.array(np.arange(20) % len(known), pa.int8())
            column = pa.DictionaryArray.from_arrays(indices, pa.array(known))
            writer.write_batch(pa.record_batch([column], schema=schema))
            expected += column.to_pylist()
    table = ArrowTable(File(str(path), "arrow"))
    pieces = list(table.read(["c"], 0, 7))
    assert [value for piece in pieces for value in piece.column(0).to_pylist()] == expected


def test_the_values_of_a_dictionary_are_read_once(tmp_path, monkeypatch):
    words = pa.array([f"word number {i % 100}" for i in range(1000)]).dictionary_encode()
    table = write(tmp_path / "x", pa.table({"c": words}), rows=100)
    taken, texts = arrow_table._Map.taken, []

    def counted(self, array):
        texts.append(pa.types.is_string(array.type))
        return taken(self, array)

    monkeypatch.setattr(arrow_table._Map, "taken", counted)
    assert len(list(table.read(["c"], 0, 10))) == 100
    assert sum(texts) == 1


CUT = {
    "one batch": {},
    "batches": {"rows": 500},
    "stream": {"stream": True},
    "stream of batches": {"stream": True, "rows": 500},
    "packed": {"compression": "zstd", "rows": 500},
    "packed stream": {"stream": True, "compression": "zstd", "rows": 500},
}


@pytest.mark.parametrize("how", CUT)
@pytest.mark.parametrize("size", [0, 1, 4096, 10_000])
def test_a_file_cut_off_while_it_is_read_is_named(tmp_path, how, size):
    """Touching a map of it would end this process."""
    rng = np.random.default_rng(0)
    expected = pa.table({"x": rng.random(20_000), "t": [f"text {i}" * 3 for i in range(20_000)]})
    path = tmp_path / "a.arrow"
    pieces = write(path, expected, **CUT[how]).read(["x", "t"], 0, 100)
    kept = [next(pieces), next(pieces)]
    os.truncate(path, size)
    with pytest.raises(ValueError, match=r"a\.arrow (was changed while it was|cannot be) read"):
        kept += list(pieces)
    rows = pa.Table.from_batches(kept)
    assert rows.equals(expected.slice(0, len(rows)))


def test_a_file_that_grows_again_is_read_to_its_end(tmp_path):
    """Only what is there counts: the rows then differ, which the command tells by the time."""
    path = tmp_path / "a.arrow"
    table = write(path, pa.table({"x": np.arange(20_000.0)}))
    pieces = table.read(["x"], 0, 100)
    next(pieces)
    size = path.stat().st_size
    os.truncate(path, 4096)
    os.truncate(path, size)
    assert sum(len(piece) for piece in pieces) == 19_900


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (pa.string(), 10**6),
        (pa.string(), -5),
        (pa.large_string(), 2**40),
        (pa.list_(pa.float64()), 10**6),
        (pa.list_(pa.float64()), -1),
        (pa.string_view(), 10**6),
        (pa.string_view(), -7),
    ],
)
@pytest.mark.parametrize("at", [0, 5, 20])
def test_places_outside_of_a_column_are_an_error(tmp_path, kind, wrong, at):
    values = ["a text of many characters"] * 20
    if pa.types.is_list(kind):
        values = [[1.0, 2.0]] * 20
    path = tmp_path / "a.arrow"
    write(path, pa.table({"x": pa.array(values, kind)}))
    large = np.int64 if pa.types.is_large_string(kind) else np.int32
    with open(path, "rb") as file:
        found = arrow_table._Map(file, str(path))
        batch = pa.ipc.open_file(found.source).get_batch(0)
        place = batch.column(0).buffers()[1].address - found.buffer.address
    if pa.types.is_string_view(kind):
        place += 16 * min(at, 19) + 12  # where the text lies in its buffer
    else:
        place += at * np.dtype(large).itemsize
    content = bytearray(path.read_bytes())
    number = np.array(wrong, large).tobytes()
    content[place : place + len(number)] = number
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.arrow cannot be read: .*file is whole$"):
        list(ArrowTable(File(str(path), "arrow")).read(["x"], 0, 100))


def test_only_rows_of_a_file_without_columns(tmp_path):
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(str(path), pa.schema([])) as writer:
        writer.write_batch(
            pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 5, [None]))
        )
    table = ArrowTable(File(str(path), "arrow"))
    table.add_constants({"year": pa.scalar(2020)})
    assert [len(piece) for piece in table.read(["year"], 0, 3)] == [3, 2]
