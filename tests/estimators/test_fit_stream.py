import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from sklearn.linear_model import Ridge

from ridgepass import StreamingRidge, StreamingRidgeCV
from ridgepass.data import batches
from same_bits import assert_same_bits, assert_unchanged, everything

N_ROWS = 500


def make_frame(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((N_ROWS, 4)), columns=list("abcd"))
    frame["y"] = frame["a"] - 2 * frame["b"] + 3 + 0.1 * rng.standard_normal(N_ROWS)
    frame["w"] = rng.random(N_ROWS) + 0.1
    return frame


FRAME = make_frame()
X, Y, W = FRAME[list("abcd")], FRAME["y"], FRAME["w"]


@pytest.fixture
def folder(tmp_path):
    for i in range(5):
        FRAME[100 * i : 100 * (i + 1)].reset_index(drop=True).to_parquet(tmp_path / f"{i}.parquet")
    return tmp_path


@pytest.fixture
def fitted():
    return StreamingRidge().fit(np.eye(3), [1.0, 2.0, 3.0])


def assert_still(model, before):
    assert_unchanged(before, model._learned.stream)
    assert model.n_features_in_ == 3


SOURCES = {
    "folder": lambda folder: folder,
    "pattern": lambda folder: str(folder / "*.parquet"),
    "list": lambda folder: sorted(folder.iterdir()),
    "pandas": lambda folder: FRAME,
    "polars": lambda folder: pl.from_pandas(FRAME),
    "table": lambda folder: pa.Table.from_pandas(FRAME),
    "reader": lambda folder: pa.Table.from_pandas(FRAME).to_reader(max_chunksize=77),
    "dataset": lambda folder: pa.dataset.dataset(folder),
    "duckdb": lambda folder: duckdb.read_parquet(str(folder / "*.parquet")),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("batch_rows", [None, 33])
def test_files_frames_and_streams_give_what_fit_gives(folder, kind, batch_rows):
    source = SOURCES[kind](folder)
    model = StreamingRidge(alpha=2.0)
    assert model.fit_stream(source, target="y", weight="w", batch_rows=batch_rows) is model
    wanted = StreamingRidge(alpha=2.0).fit(X, Y, W)
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    assert model.intercept_ == wanted.intercept_
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
    assert model.n_samples_seen_ == N_ROWS
    exact = Ridge(2.0).fit(X, Y, W)
    np.testing.assert_allclose(model.coef_, exact.coef_)
    np.testing.assert_allclose(model.predict(X), exact.predict(X))


@pytest.mark.parametrize("method", ["exact", "rfd", "tracked", "2lfd"])
def test_bitwise_what_partial_fit_gives(folder, method):
    how = {"method": method, "sketch_size": 2, "random_state": 3}
    model = StreamingRidge(**how).fit_stream(folder, target="y", exclude="w", batch_rows=17)
    wanted = StreamingRidge(**how)
    for start in range(0, N_ROWS, 60):
        wanted.partial_fit(X[start : start + 60], Y[start : start + 60])
    assert_same_bits(model._learned.stream, wanted._learned.stream)


def test_several_targets(folder):
    model = StreamingRidge().fit_stream(folder, target=["y", "w"])
    exact = Ridge().fit(X, FRAME[["y", "w"]])
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-12)


def test_batches_that_are_made_already(folder):
    wanted = StreamingRidge().fit(X, Y, W)
    made = batches(folder, target="y", weight="w")
    np.testing.assert_array_equal(StreamingRidge().fit_stream(made).coef_, wanted.coef_)
    np.testing.assert_array_equal(StreamingRidge().fit_stream(made).coef_, wanted.coef_)
    pairs = [(X[:300], Y[:300], W[:300]), [X[300:], Y[300:], W[300:]]]
    for given in (pairs, iter(pairs), (pair for pair in pairs), tuple(pairs)):
        np.testing.assert_array_equal(StreamingRidge().fit_stream(given).coef_, wanted.coef_)
    with pytest.raises(ValueError, match="StreamingRidge: the batches are made already: give"):
        StreamingRidge().fit_stream(made, target="y")
    with pytest.raises(ValueError, match="the batches are made already"):
        StreamingRidge().fit_stream(pairs, nulls="drop")


def test_earlier_rows_are_forgotten_and_later_ones_can_follow(folder, fitted):
    fitted.fit_stream(folder, target="y", exclude="w")
    assert fitted.n_samples_seen_ == N_ROWS
    fitted.partial_fit(X, Y)
    assert fitted.n_samples_seen_ == 2 * N_ROWS
    wanted = StreamingRidge().partial_fit(X, Y).partial_fit(X, Y)
    np.testing.assert_array_equal(fitted.coef_, wanted.coef_)


def test_the_columns_are_kept_with_the_model(folder):
    model = StreamingRidge().fit_stream(folder, target="y", weight="w", nulls="mean")
    kept = model._learned.columns
    assert kept["targets"] == ["y"]
    np.testing.assert_allclose(kept["means"], X.mean())


def test_rows_without_weight_may_come_first():
    weighted = FRAME.assign(w=np.where(np.arange(N_ROWS) < 100, 0.0, W))
    model = StreamingRidge().fit_stream(weighted, target="y", weight="w", batch_rows=30)
    assert model.n_samples_seen_ == N_ROWS - 100
    assert model._learned.columns["targets"] == ["y"]
    np.testing.assert_array_equal(
        model.coef_, StreamingRidge().fit(X[100:], Y[100:], W[100:]).coef_
    )


def test_alpha_is_chosen_afresh(folder):
    model = StreamingRidgeCV(alphas=[0.1, 1.0, 1e4]).fit(X, Y)
    model.select([50.0], X, Y)
    assert model.alpha_ == 50.0
    model.fit_stream(folder, target="y", exclude="w")
    assert model.alpha_ in (0.1, 1.0)
    wanted = StreamingRidgeCV(alphas=[0.1, 1.0, 1e4]).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, wanted.coef_)


def damage(folder, how):
    last = folder / "4.parquet"
    if how == "truncated":
        last.write_bytes(last.read_bytes()[:-200])
    elif how == "null":
        FRAME[:9].assign(c=[None] * 8 + [1.0]).to_parquet(last)
    elif how == "text":
        FRAME[:9].assign(c="x").to_parquet(last)
    elif how == "schema":
        FRAME[:9].drop(columns="c").to_parquet(last)
    elif how == "infinite":
        FRAME[:9].assign(y=np.inf).to_parquet(last)
    elif how == "weight":
        FRAME[:9].assign(w=-1.0).to_parquet(last)
    elif how == "empty":
        last.write_bytes(b"")


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("truncated", r"4\.parquet cannot be read as Parquet"),
        ("null", r"column 'c' has no value in row 1 of .*4\.parquet"),
        ("text", r"column 'c' of .*4\.parquet is text"),
        ("schema", r"4\.parquet has no column 'c'"),
        ("infinite", r"column 'y' is infinite in row 1 of .*4\.parquet"),
        ("weight", r"column 'w' has the weight -1 in row 1 of .*4\.parquet"),
        ("empty", r"4\.parquet is empty"),
    ],
)
def test_bad_input_changes_nothing(folder, fitted, how, what):
    before = everything(fitted._learned.stream)
    damage(folder, how)
    with pytest.raises(ValueError, match=rf"StreamingRidge: .*{what}"):
        fitted.fit_stream(folder, target="y", weight="w", batch_rows=20)
    assert_still(fitted, before)
    assert not [t for t in threading.enumerate() if t.name == "ridgepass-reader"]


def test_bad_parameters_change_nothing(folder, fitted):
    before = everything(fitted._learned.stream)
    fitted.set_params(alpha=-1.0)
    with pytest.raises(ValueError, match="alpha"):
        fitted.fit_stream(folder, target="y")
    fitted.set_params(alpha=1.0)
    assert_still(fitted, before)
    assert not [t for t in threading.enumerate() if t.name == "ridgepass-reader"]


@pytest.mark.parametrize(
    ("source", "options", "error", "what"),
    [
        (FRAME, {}, ValueError, "nothing to predict: say which column is the target"),
        (FRAME[:0], {"target": "y"}, ValueError, "the stream has no rows"),
        (FRAME.assign(w=0.0), {"target": "y", "weight": "w"}, ValueError, "none with a weight"),
        ([], {}, ValueError, "the list of sources is empty"),
        (iter([]), {}, ValueError, "the stream has no rows"),
        (X.to_numpy(), {}, TypeError, "an array is no stream"),
        ([X, X], {}, TypeError, "a batch is a DataFrame: give"),
        ({"a": [1.0]}, {}, TypeError, "a batch is a str: give"),
        ([(X,)], {}, TypeError, "a batch is a tuple: give"),
        ([(X, None)], {}, ValueError, "requires y"),
        (3, {}, TypeError, "cannot read rows from a int"),
        ("no.csv", {"target": "y"}, FileNotFoundError, r"no\.csv"),
    ],
)
def test_sources_that_make_no_sense(fitted, source, options, error, what):
    before = everything(fitted._learned.stream)
    with pytest.raises(error, match=what):
        fitted.fit_stream(source, **options)
    assert_still(fitted, before)


def test_batches_of_which_one_fails_change_nothing(fitted):
    before = everything(fitted._learned.stream)

    def failing():
        yield X, Y
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        fitted.fit_stream(failing())
    with pytest.raises(ValueError, match="features"):
        fitted.fit_stream([(X.to_numpy(), Y), (X.to_numpy()[:, 1:], Y)])
    assert_still(fitted, before)


def test_a_reader_that_was_read_says_so():
    rows = batches(pa.Table.from_pandas(FRAME).to_reader(), target="y")
    model = StreamingRidge().fit_stream(rows)
    with pytest.raises(ValueError, match="can be read only once: open it again"):
        model.fit_stream(rows)
    assert model.n_samples_seen_ == N_ROWS
