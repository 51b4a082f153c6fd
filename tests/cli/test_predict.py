import io
import subprocess

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from command import COMMAND, complaint, ridgepass, run_well
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Ridge
from tables import ALPHA, WRITERS, dense, exact, make_frame

import ridgepass as package
from ridgepass import StreamingRidge, StreamingRidgeClassifier

OPTIONS = ["--target", "price", "--weight", "weight", "--one-hot", "city", "--alpha", ALPHA]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a model trained on Parquet."""
    folder = tmp_path_factory.mktemp("trained")
    make_frame().to_parquet(folder / "train.parquet")
    run_well("fit", "train.parquet", *OPTIONS, "-o", "m.ridge", cwd=folder)
    return folder


@pytest.mark.parametrize("name", ["polars.parquet", "pandas.csv.gz", "duckdb.csv", "polars.arrow"])
def test_rows_of_other_files_without_target_in_another_order(trained, tmp_path, name):
    frame, file = make_frame(200, seed=1), tmp_path / f"new.{name.partition('.')[2]}"
    WRITERS[name](frame[["city", "new", "rooms", "size"]], file)
    run_well("predict", trained / "m.ridge", file, "-o", "p.parquet", cwd=tmp_path)
    found = pd.read_parquet(tmp_path / "p.parquet")
    expected = exact(make_frame()).predict(dense(frame))
    np.testing.assert_allclose(found["prediction"], expected, rtol=1e-9)
    assert list(found) == ["prediction"]


@pytest.mark.parametrize("end", [".csv", ".parquet", ".arrow", ".feather"])
def test_bounds_hold_exact_ridge_in_every_format(tmp_path, end):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 40)) * np.exp(-np.arange(40) / 4)
    y = X @ rng.standard_normal(40) + 0.1 * rng.standard_normal(500)
    names = [f"x{i}" for i in range(40)]
    frame = pd.DataFrame(X, columns=names).assign(y=y, id=np.arange(500))
    frame.to_parquet(tmp_path / "rows.parquet")
    options = [
        "--target",
        "y",
        "--exclude",
        "id",
        "--method",
        "rfd",
        "--sketch-size",
        "12",
        "-o",
        "m.ridge",
    ]
    run_well("fit", "rows.parquet", *options, cwd=tmp_path)
    output = f"p{end}"
    run_well(
        "predict", "m.ridge", "rows.parquet", "--bounds", "--keep", "id", "-o", output, cwd=tmp_path
    )
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}.get(end, pd.read_feather)
    found = read(tmp_path / output)
    assert list(found) == ["id", "prediction", "lower", "upper"]
    np.testing.assert_array_equal(found["id"], frame["id"])
    truth = Ridge(1.0).fit(X, y).predict(X)
    assert (found["lower"] <= truth).all()
    assert (truth <= found["upper"]).all()
    assert (found["lower"] < found["prediction"]).all()
    assert np.abs(found["prediction"] - truth).max() > 1e-6


def test_pipelines_of_csv_and_arrow(trained):
    def through(command):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.replace("ridgepass", COMMAND)],
            cwd=trained,
            capture_output=True,
            check=True,
        )
        return done.stdout

    expected = exact(make_frame()).predict(dense(make_frame()))
    make_frame().drop(columns=["price", "weight"]).to_csv(trained / "rows.csv", index=False)
    piped = through("cat rows.csv | ridgepass predict m.ridge - | cat")
    assert piped.startswith(b"prediction\n")
    np.testing.assert_allclose(pd.read_csv(io.BytesIO(piped))["prediction"], expected)
    table = pa.Table.from_pandas(make_frame())
    with pa.ipc.new_stream(str(trained / "rows.arrows"), table.schema) as writer:
        writer.write_table(table, max_chunksize=64)
    piped = through("cat rows.arrows | ridgepass predict m.ridge - --output-format arrow -o -")
    found = pa.ipc.open_stream(piped).read_all()
    np.testing.assert_allclose(found["prediction"].to_numpy(), expected)


def test_whoever_has_seen_enough_is_left_in_peace(trained, tmp_path):
    pd.concat([make_frame()] * 500).to_parquet(tmp_path / "long.parquet")
    command = f"{COMMAND} predict {trained / 'm.ridge'} long.parquet | head -2"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert done.stdout.count("\n") == 2
    assert done.stderr == ""


def test_unseen_categories_are_zeros_and_counted(trained, tmp_path):
    frame = make_frame(50, seed=2)
    frame["city"] = "Oslo"
    frame.to_csv(tmp_path / "new.csv", index=False)
    done = ridgepass("predict", trained / "m.ridge", "new.csv", cwd=tmp_path)
    assert "warning: 50 values are of no category seen in training" in done.stderr.decode()
    found = pd.read_csv(io.BytesIO(done.stdout))["prediction"]
    np.testing.assert_allclose(found, exact(make_frame()).predict(dense(frame)))


def test_rows_with_missing_values_keep_their_place(trained, tmp_path):
    frame = make_frame(50, seed=2)
    frame.loc[[3, 4, 49], "size"] = np.nan
    frame.to_parquet(tmp_path / "new.parquet")
    options = ["--nulls", "drop", "--keep", "rooms"]
    done = ridgepass("predict", trained / "m.ridge", "new.parquet", *options, cwd=tmp_path)
    assert "3 rows with missing values have no prediction" in done.stderr.decode()
    found = pd.read_csv(io.BytesIO(done.stdout))
    np.testing.assert_array_equal(found["rooms"], frame["rooms"])
    np.testing.assert_array_equal(found["prediction"].isna(), frame["size"].isna())
    expected = exact(make_frame()).predict(dense(frame.dropna()))
    np.testing.assert_allclose(found["prediction"].dropna(), expected)


def test_means_of_training_fill_new_rows(tmp_path):
    frame = make_frame()[["size", "rooms", "price"]]
    frame.to_parquet(tmp_path / "rows.parquet")
    run_well("fit", "rows.parquet", "-t", "price", "--nulls", "mean", "-o", "m.ridge", cwd=tmp_path)
    frame[["rooms"]].assign(size=np.nan).to_parquet(tmp_path / "new.parquet")
    found = run_well("predict", "m.ridge", "new.parquet", cwd=tmp_path)
    filled = frame[["size", "rooms"]].assign(size=frame["size"].mean())
    expected = Ridge(1.0).fit(frame[["size", "rooms"]], frame["price"]).predict(filled)
    np.testing.assert_allclose(pd.read_csv(io.BytesIO(found))["prediction"], expected)


def test_several_targets_and_another_alpha(tmp_path):
    frame = make_frame()[["size", "rooms", "price", "weight"]]
    frame.to_parquet(tmp_path / "rows.parquet")
    run_well("fit", "rows.parquet", "-t", "price,weight", "-o", "m.ridge", cwd=tmp_path)
    options = ["--alpha", "50", "--bounds"]
    found = pd.read_csv(
        io.BytesIO(run_well("predict", "m.ridge", "rows.parquet", *options, cwd=tmp_path))
    )
    expected = Ridge(50.0).fit(frame[["size", "rooms"]], frame[["price", "weight"]])
    np.testing.assert_allclose(
        found[["prediction_price", "prediction_weight"]],
        expected.predict(frame[["size", "rooms"]]),
    )
    assert (found["lower_weight"] <= found["prediction_weight"]).all()


def test_models_from_python(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 5)), rng.standard_normal(100)
    StreamingRidge(1.0).fit(X, y).save(tmp_path / "m.ridge")
    expected = Ridge(1.0).fit(X, y).predict(X)
    np.save(tmp_path / "X.npy", X)
    dump_svmlight_file(X, y, str(tmp_path / "X.svm"), zero_based=False)
    values = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 5)
    pa.parquet.write_table(pa.table({"anything": values}), tmp_path / "X.parquet")
    for name in ("X.npy", "X.svm", "X.parquet"):
        found = pd.read_csv(io.BytesIO(run_well("predict", "m.ridge", name, cwd=tmp_path)))
        np.testing.assert_allclose(found["prediction"], expected)
    frame = pd.DataFrame(X, columns=list("abcde"))
    StreamingRidge(1.0).fit(frame, y).save(tmp_path / "m.ridge")
    frame[list("edcba")].to_csv(tmp_path / "X.csv", index=False)
    found = pd.read_csv(io.BytesIO(run_well("predict", "m.ridge", "X.csv", cwd=tmp_path)))
    np.testing.assert_allclose(found["prediction"], expected)


def test_labels_of_a_classifier(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    labels = np.where(X[:, 0] > 0, "elm", "oak")
    model = StreamingRidgeClassifier(1.0).fit(X, labels)
    model.save(tmp_path / "m.ridge")
    np.save(tmp_path / "X.npy", X)
    found = pd.read_csv(io.BytesIO(run_well("predict", "m.ridge", "X.npy", cwd=tmp_path)))
    np.testing.assert_array_equal(found["prediction"], model.predict(X))


def test_a_trained_model_goes_on_in_python(trained):
    model = package.load(trained / "m.ridge")
    frame = make_frame(100, seed=5)
    named = pd.DataFrame(dense(frame), columns=model.feature_names_in_)
    model.partial_fit(named, frame["price"], frame["weight"])
    both = pd.concat([make_frame(), frame])
    np.testing.assert_allclose(model.coef_, exact(both).coef_, rtol=1e-9)


def test_a_confidence_without_bounds_is_refused(trained):
    said = complaint("predict", "m.ridge", "train.parquet", "--confidence", "0.9", cwd=trained)
    assert "add --bounds" in said


@pytest.mark.parametrize("probes", ["0", "24"])
def test_bounds_that_nothing_narrows_come_with_a_warning(tmp_path, probes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 40))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(40)]).assign(y=X[:, 0])
    frame.to_parquet(tmp_path / "rows.parquet")
    options = ["--method", "tracked", "--sketch-size", "8", "--probes", probes, "-o", "m.ridge"]
    run_well("fit", "rows.parquet", "--target", "y", *options, cwd=tmp_path)
    done = ridgepass("predict", "m.ridge", "rows.parquet", "--bounds", "-o", "p.csv", cwd=tmp_path)
    assert ("there are no probes" in done.stderr.decode()) == (probes == "0")
