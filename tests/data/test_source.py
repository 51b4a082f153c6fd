"""Any batch size, and any place to go on from, give the same rows and bitwise the same model."""

import gzip
import threading
import time
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest
from plain_reading import assert_same_rows, dense, read_all
from sklearn.datasets import dump_svmlight_file

from ridgepass import StreamingRidge
from ridgepass.data.opening import open_source
from ridgepass.data.source import AHEAD, Position, read_ahead
from same_bits import assert_same_bits

N_ROWS = 90


def make_table(seed):
    rng = np.random.default_rng(seed)
    holes = rng.random((N_ROWS, 2)) < 0.15
    x = np.where(holes[:, 0], np.nan, rng.standard_normal(N_ROWS))
    return pa.table(
        {
            "x": x,
            "k": pa.array(rng.integers(0, 9, N_ROWS), mask=holes[:, 1]),
            "c": pa.array(rng.choice(["a", "b", "c"], N_ROWS)).dictionary_encode(),
            "y": rng.standard_normal(N_ROWS),
            "w": rng.integers(0, 3, N_ROWS) / 2,
        }
    )


def _csv(table, path, blank=False):
    pa.csv.write_csv(table, path)
    if blank:
        lines = path.read_bytes().replace(b"\n", b"\n\n\n")
        path.write_bytes(b"\n" + lines + b"\n\n")


def _gz(table, path):
    plain = path.with_suffix("")
    pa.csv.write_csv(table, plain)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()


def _ipc(table, path, new):
    with new(str(path), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=13):
            writer.write_batch(batch)


def _plain_numbers(table):
    return np.column_stack([table["x"], table["k"].to_pandas(), table["w"], table["y"]])


def _svm(table, path):
    rows = np.nan_to_num(_plain_numbers(table))
    rows[::4] = 0.0
    rows[0, 0] = 1.0
    dump_svmlight_file(rows[:, :-1], rows[:, -1], str(path), zero_based=True)


WRITERS = {
    "parquet": lambda t, p: pa.parquet.write_table(t, p, row_group_size=11),
    "csv": _csv,
    "csv.gz": _gz,
    "tsv": lambda t, p: p.write_text(t.to_pandas().to_csv(index=False, sep="\t")),
    "blank.csv": lambda t, p: _csv(t, p, blank=True),
    "arrow": lambda t, p: _ipc(t, p, pa.ipc.new_file),
    "arrows": lambda t, p: _ipc(t, p, pa.ipc.new_stream),
    "npy": lambda t, p: np.save(p, _plain_numbers(t)),
    "svm": _svm,
}


def opened(folder, kind, nulls):
    if kind == "svm":
        return open_source(folder, nulls=nulls)
    if kind == "npy":
        return open_source(folder, target="-1", weight="2", nulls=nulls)
    return open_source(folder, target="y", weight="w", one_hot="c", nulls=nulls)


@pytest.fixture(params=WRITERS)
def kind(request):
    return request.param


@pytest.fixture
def folder(tmp_path, kind):
    for i, rows in enumerate([slice(0, 40), slice(40, 40), slice(40, 41), slice(41, N_ROWS)]):
        table = make_table(0)[rows]
        if len(table) or kind not in ("npy", "svm", "tsv"):
            WRITERS[kind](table, tmp_path / f"{i}.{kind}")
    return tmp_path


def learn(source, start=None, batch_rows=None, model=None, at_most=None):
    model = model or StreamingRidge(method="rfd", sketch_size=3)
    end = start
    with closing(source.chunks(start, batch_rows)) as chunks:
        for i, chunk in enumerate(chunks):
            if i == at_most:
                break
            model._learn(chunk, source)
            end = chunk.end
    return model, end


@pytest.mark.parametrize("nulls", ["drop", "zero", "mean"])
def test_any_batch_size_gives_bitwise_the_same_model(folder, kind, nulls):
    wanted, _ = learn(opened(folder, kind, nulls))
    rows = read_all(opened(folder, kind, nulls))
    for batch_rows in (1, 2, 7, 40, 1000):
        source = opened(folder, kind, nulls)
        found = read_all(source, batch_rows=batch_rows)
        assert max(found.sizes) <= batch_rows
        assert found.n_read == N_ROWS
        assert_same_rows(found, rows)
        model, _ = learn(opened(folder, kind, nulls), batch_rows=batch_rows)
        assert_same_bits(model._learned.stream, wanted._learned.stream)
        np.testing.assert_array_equal(model.coef_, wanted.coef_)


@pytest.mark.parametrize("nulls", ["drop", "mean"])
@pytest.mark.parametrize("batch_rows", [4, 23, None])
def test_reading_goes_on_from_the_end_of_any_chunk(folder, kind, nulls, batch_rows):
    wanted = read_all(opened(folder, kind, nulls))
    chunks = list(opened(folder, kind, nulls).chunks(batch_rows=batch_rows))
    done = 0
    for chunk in [None, *chunks]:
        start = None if chunk is None else Position(*tuple(chunk.end))  # as a checkpoint has it
        done += 0 if chunk is None else chunk.X.shape[0]
        rest = list(opened(folder, kind, nulls).chunks(start, 9))
        if done == len(wanted.y):
            assert sum(piece.X.shape[0] for piece in rest) == 0
            continue
        X = np.concatenate([dense(piece.X) for piece in rest])
        np.testing.assert_array_equal(X, wanted.X[done:])
        np.testing.assert_array_equal(np.concatenate([p.y for p in rest]), wanted.y[done:])
        assert rest[-1].end == chunks[-1].end


@pytest.mark.parametrize("stops", [(1,), (3, 2), (5, 1, 4)])
def test_a_model_that_was_stopped_and_went_on_is_bitwise_the_same(folder, kind, stops):
    wanted, _ = learn(opened(folder, kind, "drop"))
    model = end = None
    for at_most in (*stops, None):
        source = opened(folder, kind, "drop")
        model, end = learn(source, end, 6, model, at_most)
    assert_same_bits(model._learned.stream, wanted._learned.stream)


def test_progress_never_goes_back(folder, kind):
    source = opened(folder, kind, "zero")
    assert source.n_bytes == sum(path.stat().st_size for path in folder.iterdir())
    found = read_all(source, batch_rows=7)
    assert found.n_bytes == sorted(found.n_bytes)
    assert found.n_bytes[-1] <= source.n_bytes
    known = kind in ("parquet", "arrow", "npy")
    assert source.n_rows == (N_ROWS if known else None)


@pytest.mark.parametrize("batch_rows", [0, -1, 2.5, "many"])
def test_batch_sizes_that_make_no_sense(batch_rows):
    source = open_source(pa.table({"x": [1.0]}))
    with pytest.raises(ValueError, match=r"batch_rows=.* is no number of rows"):
        source.chunks(batch_rows=batch_rows)


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "ridgepass-reader"]


def test_a_reader_works_ahead_and_no_further():
    made = []

    def numbers():
        for i in range(100):
            made.append(i)
            yield i

    with closing(read_ahead(numbers())) as ahead:
        assert next(ahead) == 0
        deadline = time.monotonic() + 60  # on a busy machine, of which this is no test
        while len(made) < AHEAD + 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert len(made) == AHEAD + 2  # one with us, some waiting, one in hand
        assert next(ahead) == 1
    assert not readers()


@pytest.mark.parametrize("how", ["close", "break", "raise", "forget"])
def test_a_reader_ends_when_nobody_needs_it(how, monkeypatch):
    monkeypatch.setattr("ridgepass.data.source.PATIENCE", 60.0)

    def endless():
        while True:
            yield 0

    ahead = read_ahead(endless())
    assert next(ahead) == 0
    if how == "close":
        ahead.close()
    elif how == "break":
        for _ in ahead:
            break
        del ahead
    elif how == "raise":
        with pytest.raises(KeyError), closing(ahead):
            raise KeyError
    else:
        del ahead
    assert not readers()


def test_a_reader_that_is_stuck_keeps_nobody(monkeypatch):
    monkeypatch.setattr("ridgepass.data.source.PATIENCE", 0.2)
    let_go = threading.Event()

    def stuck():
        yield 0
        let_go.wait(60)
        yield 1

    ahead = read_ahead(stuck())
    assert next(ahead) == 0
    ahead.close()
    assert readers()  # nobody waited for it
    let_go.set()
    for thread in readers():
        thread.join(60)
    assert not readers()


def test_errors_of_a_reader_arrive_intact_after_what_came_before():
    class OddError(Exception):
        pass

    trouble = OddError("here")

    def failing():
        yield 1
        yield 2
        raise trouble

    ahead = read_ahead(failing())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(OddError) as caught:
        next(ahead)
    assert caught.value is trouble
    assert any(entry.name == "failing" for entry in caught.traceback)
    assert not readers()


def test_errors_before_the_first_row_and_none_at_all():
    assert list(read_ahead(iter([]))) == []
    with pytest.raises(ZeroDivisionError):
        list(read_ahead(1 // 0 for _ in range(3)))
    assert list(read_ahead(iter([None, False]))) == [None, False]
    assert not readers()
