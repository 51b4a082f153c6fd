"""Rows come again from anywhere: files, tables, batches."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Ridge

import ridgepass
from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.data import batches
from store.models import to_bytes

N_ROWS, N_FEATURES, ALPHA = 300, 30, 50.0
NAMES = [f"x{i}" for i in range(N_FEATURES)]
ENOUGH = 60


def make_frame():
    rng = np.random.default_rng(0)
    spread = 4 * np.exp(-np.arange(N_FEATURES) / 6)
    X = rng.standard_normal((N_ROWS, N_FEATURES)) * spread + rng.standard_normal(N_FEATURES)
    frame = pd.DataFrame(X, columns=NAMES)
    frame["y"] = X @ rng.standard_normal(N_FEATURES) + 3 + 0.1 * rng.standard_normal(N_ROWS)
    frame["w"] = rng.integers(0, 4, N_ROWS) / 2
    return frame


FRAME = make_frame()
X, Y, W = FRAME[NAMES], FRAME["y"], FRAME["w"]


def new(**options):
    return StreamingRidge(ALPHA, **{"method": "rfd", "sketch_size": 8, **options})


def assert_near(found, wanted, tolerance=1e-8):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


def assert_same(left, right):
    np.testing.assert_array_equal(left.coef_, right.coef_)
    assert left.intercept_ == right.intercept_
    assert left.certificate().passes == right.certificate().passes
    assert left.certificate().relative == right.certificate().relative


@pytest.fixture
def folder(tmp_path):
    """The rows in every kind of file."""
    for i in range(3):
        part = FRAME[100 * i : 100 * (i + 1)].reset_index(drop=True)
        part.to_parquet(tmp_path / f"{i}.parquet")
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    np.save(tmp_path / "rows.npy", X.to_numpy())
    np.save(tmp_path / "targets.npy", Y.to_numpy())
    np.save(tmp_path / "all.npy", FRAME.to_numpy())
    dump_svmlight_file(X.to_numpy(), Y, str(tmp_path / "rows.svm"), zero_based=False)
    return tmp_path


def as_batches(step=70):
    return [
        (X[i : i + step], Y[i : i + step], W[i : i + step].to_numpy())
        for i in range(0, N_ROWS, step)
    ]


# What `refine` is given after fit(X, Y, W), with the weights in a column or beside the rows.
SOURCES = {
    "arrays": lambda folder: ((X, Y, W), {}),
    "batches": lambda folder: ((as_batches(),), {}),
    "tuple of batches": lambda folder: ((tuple(as_batches(7)),), {}),
    "Batches": lambda folder: ((batches(FRAME, "y", weight="w", batch_rows=11),), {}),
    "folder": lambda folder: ((folder / "*.parquet", "y"), {"weight": "w"}),
    "files": lambda folder: (
        ([str(folder / f"{i}.parquet") for i in range(3)], "y"),
        {"weight": "w", "batch_rows": 13},
    ),
    "pandas": lambda folder: ((FRAME, "y"), {"weight": "w"}),
    "polars": lambda folder: ((pl.from_pandas(FRAME), "y"), {"weight": "w"}),
    "table": lambda folder: ((pa.Table.from_pandas(FRAME), "y"), {"weight": "w"}),
    "dataset": lambda folder: (
        (pa.dataset.dataset([str(folder / f"{i}.parquet") for i in range(3)]), "y"),
        {"weight": "w"},
    ),
    "duckdb": lambda folder: (
        (duckdb.read_parquet(str(folder / "*.parquet")), "y"),
        {"weight": "w"},
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_bits(folder, kind):
    wanted = new().fit(X, Y, W).refine(X, Y, W, passes=3)
    assert wanted.certificate().passes == 4
    arguments, options = SOURCES[kind](folder)
    model = new().fit(X, Y, W).refine(*arguments, passes=3, **options)
    assert_same(model, wanted)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_comes_to_exact_ridge(folder, kind):
    arguments, options = SOURCES[kind](folder)
    model = new(standardize=True).fit(X, Y, W).refine(*arguments, passes=ENOUGH, **options)
    exact = Ridge(ALPHA).fit(X / model.scale_, Y, W)
    assert_near(model.coef_ * model.scale_, exact.coef_)
    assert_near(model.intercept_, exact.intercept_)


def test_text_comes_to_the_same(folder):
    model = new().fit(X, Y, W).refine(folder / "rows.csv", "y", weight="w", passes=ENOUGH)
    assert_near(model.coef_, Ridge(ALPHA).fit(X, Y, W).coef_)


def test_arrays_in_files(folder):
    plain = X.to_numpy()
    wanted = new().fit(plain, Y).refine(plain, Y, passes=3)
    trained = new().fit(plain, Y)
    path = folder / "rows.npy"
    assert_same(trained.refine(path, str(folder / "targets.npy"), passes=3), wanted)
    in_one = new().fit(plain, Y)
    assert_same(in_one.refine(folder / "all.npy", str(N_FEATURES), exclude="31", passes=3), wanted)


def test_sparse_text(folder):
    rows = sparse.csr_array(X.to_numpy())
    wanted = new().fit(rows, Y).refine(rows, Y, passes=3)
    model = new().fit(rows, Y).refine(folder / "rows.svm", passes=3)
    assert_near(model.coef_, wanted.coef_, 1e-12)
    assert model.certificate().passes == 4


BARE = {
    "parquet": ("*.parquet", {"target": "y", "weight": "w"}),
    "one file": ("1.parquet", {"target": "y", "exclude": "w"}),
    "csv": ("rows.csv", {"target": "y", "weight": "w"}),
    "some columns": ("rows.csv", {"target": "y", "features": NAMES[:20]}),
    "npy": ("all.npy", {"target": str(N_FEATURES), "weight": str(N_FEATURES + 1)}),
    "svmlight": ("rows.svm", {}),
}


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("kind", BARE)
def test_a_path_alone_will_do(folder, kind, saved):
    pattern, options = BARE[kind]
    path = folder / pattern
    model = new().fit_stream(path, **options)
    wanted = new().fit_stream(path, **options).refine(batches(path, **options), passes=3)
    if saved:
        model.save(folder / "model.ridge")
        model = ridgepass.load(folder / "model.ridge")
    assert_same(model.refine(path, passes=3), wanted)
    assert model.certificate().passes == 4
    model.refine(str(path), passes=ENOUGH)
    rows = FRAME[100:200] if kind == "one file" else FRAME
    columns = NAMES[:20] if kind == "some columns" else NAMES
    exact = Ridge(ALPHA).fit(rows[columns], rows["y"], rows["w"] if "weight" in options else None)
    assert_near(model.coef_, exact.coef_)


@pytest.mark.parametrize(
    "again",
    [
        lambda: FRAME,
        lambda: pl.from_pandas(FRAME),
        lambda: pa.Table.from_pandas(FRAME),
        lambda: duckdb.from_df(FRAME),
    ],
)
def test_a_table_alone_will_do(again):
    model = new().fit_stream(FRAME, target="y", weight="w").refine(again(), passes=3)
    assert_same(model, new().fit(X, Y, W).refine(X, Y, W, passes=3))


def with_gaps():
    """Text, and numbers that are missing here and there."""
    rng = np.random.default_rng(5)
    frame = FRAME.copy()
    frame["kind"] = np.array(["ash", "elm", "00", "oak"])[np.arange(N_ROWS) % 4]
    for name in ("x0", "x3"):
        frame.loc[rng.random(N_ROWS) < 0.2, name] = np.nan
    return frame


def filled(frame, nulls):
    """What training makes of it, written out."""
    if nulls == "drop":
        frame = frame.dropna()
    numbers = frame[NAMES].fillna(frame[NAMES].mean() if nulls == "mean" else 0.0)
    kinds = pd.get_dummies(frame["kind"]).astype(float)
    return pd.concat([numbers, kinds], axis=1).to_numpy(), frame["y"], frame["w"]


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("nulls", ["mean", "drop", "zero"])
def test_missing_values_and_groups_as_in_training(tmp_path, nulls, ending, saved):
    frame, path = with_gaps(), tmp_path / f"gaps.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    model = new(sketch_size=10).fit_stream(
        path, target="y", weight="w", one_hot="kind", nulls=nulls
    )
    if saved:
        model.save(tmp_path / "model.ridge")
        model = ridgepass.load(tmp_path / "model.ridge")
    model.refine(path, passes=ENOUGH)
    rows, targets, weights = filled(frame, nulls)
    exact = Ridge(ALPHA).fit(rows, targets, weights)
    assert_near(model.coef_, exact.coef_)
    assert_near(model.intercept_, exact.intercept_)
    assert model.certificate().relative < 1e-9
    assert model.refine(path, "y", weight="w", one_hot="kind", nulls=nulls, alphas=[20.0])
    assert model.certificate(20.0).passes == 2


def test_a_saved_and_refined_model_goes_on_from_the_path(folder):
    path = folder / "*.parquet"
    model = StreamingRidgeCV([20.0, ALPHA], cv=3, method="rfd", sketch_size=8)
    model.fit_stream(path, target="y", weight="w").refine(path, passes=2)
    model.save(folder / "model.ridge")
    twin = ridgepass.load(folder / "model.ridge")
    assert_same(twin.refine(path, passes=2), model.refine(path, passes=2))
    assert twin.certificate().passes == 5


def test_classifiers_read_labels_from_batches_and_numbers_from_files(folder):
    kinds = (Y > 3).astype(int)
    model = StreamingRidgeClassifier(ALPHA, method="rfd", sketch_size=8).fit(X, kinds)
    wanted = StreamingRidgeClassifier(ALPHA, method="rfd", sketch_size=8).fit(X, kinds)
    wanted.refine(X, kinds, passes=2)
    FRAME.assign(y=kinds).to_parquet(folder / "kinds.parquet")
    model.refine(folder / "kinds.parquet", "y", exclude="w", passes=2)
    np.testing.assert_array_equal(model.coef_, wanted.coef_)


def test_a_reader_does_for_one_pass():
    def reader():
        return pa.Table.from_pandas(FRAME).to_reader(max_chunksize=77)

    model = new().fit(X, Y, W)
    content = to_bytes(model)
    with pytest.raises(ValueError, match="can be read only once: give passes=1, or files"):
        model.refine(reader(), "y", weight="w", passes=2)
    assert to_bytes(model) == content
    model.refine(reader(), "y", weight="w")
    assert_same(model, new().fit(X, Y, W).refine(X, Y, W))
    model.refine(batches(reader(), "y", weight="w"), passes=1)
    assert model.certificate().passes == 3


@pytest.mark.parametrize(
    ("arguments", "options", "error", "what"),
    [
        (("rows.npy",), {}, ValueError, "another kind of files than in training: give those"),
        (("rows.svm",), {}, ValueError, "another kind of files than in training: give those"),
        (("no-such.csv",), {}, FileNotFoundError, "no-such.csv"),
        (("no-target.csv",), {}, ValueError, "no column 'y'"),
        (("no-weight.csv",), {}, ValueError, "no column 'w'"),
        (("no-feature.csv",), {}, ValueError, "no column 'x3'"),
        (("rows.csv", "z"), {}, ValueError, "'z'"),
        (("rows.csv", "y"), {"features": "x*"}, ValueError, "not the rows .* more than 234 rows"),
        (("rows.csv", "y"), {"exclude": "w"}, ValueError, "not the rows .* more than 234 rows"),
        (("fewer.csv",), {}, ValueError, "not the rows that the model has learned from"),
        (("gap.csv",), {}, ValueError, "column 'x2' has no value in row 8"),
        (("text.csv",), {}, ValueError, "column 'x2'"),
        (("rows.csv", "y"), {"target": "y"}, ValueError, "y and target are the same"),
        (("rows.csv", "y"), {"nonsense": 1}, TypeError, "nonsense"),
    ],
)
def test_files_that_will_not_do(folder, monkeypatch, arguments, options, error, what):
    FRAME.drop(columns="y").to_csv(folder / "no-target.csv", index=False)
    FRAME.drop(columns="w").to_csv(folder / "no-weight.csv", index=False)
    FRAME.drop(columns="x3").to_csv(folder / "no-feature.csv", index=False)
    FRAME[:250].to_csv(folder / "fewer.csv", index=False)
    holes = FRAME.copy()
    holes.loc[7, "x2"] = np.nan
    holes.to_csv(folder / "gap.csv", index=False)
    FRAME.assign(x2="a").to_csv(folder / "text.csv", index=False)
    monkeypatch.chdir(folder)
    model = new().fit_stream("rows.csv", target="y", weight="w").refine("rows.csv")
    content = to_bytes(model)
    with pytest.raises(error, match=what):
        model.refine(*arguments, **options)
    assert to_bytes(model) == content
    assert model.certificate().passes == 2


def test_a_target_file_must_be_named_again(folder):
    path, targets = folder / "rows.npy", str(folder / "targets.npy")
    model = new().fit_stream(path, target=targets)
    with pytest.raises(ValueError, match="in a file of their own: name it again as target"):
        model.refine(path)
    assert model.certificate().passes == 1
    assert_same(model.refine(path, targets), new().fit_stream(path, targets).refine(X.values, Y))


def test_a_model_of_arrays_knows_no_columns(folder):
    model = new().fit(X, Y, W)
    for source in (folder / "rows.csv", FRAME):
        with pytest.raises(ValueError, match="say which column is the target"):
            model.refine(source)
    assert model.certificate().passes == 1


def test_a_model_of_files_takes_arrays(folder):
    model = new().fit_stream(folder / "*.parquet", target="y", weight="w").refine(X, Y, W)
    assert_same(model, new().fit(X, Y, W).refine(X, Y, W))


def test_arrays_as_one_batch():
    for batch in ((X, Y), (X, Y, W)):
        assert_same(new().fit(*batch).refine(batch), new().fit(*batch).refine(*batch))


def test_a_target_that_is_remembered_brings_the_other_columns_with_it(folder):
    path = folder / "*.parquet"
    model = new().fit_stream(path, target="y", weight="w").refine(path, target="y", batch_rows=50)
    assert_same(model, new().fit(X, Y, W).refine(X, Y, W))


def test_an_alpha_is_not_alphas():
    with pytest.raises(TypeError, match="did you mean alphas"):
        new().fit(X, Y).refine(X, Y, alpha=1.0)
    with pytest.raises(ValueError, match="alphas is empty"):
        new().fit(X, Y).refine(X, Y, alphas=[])
