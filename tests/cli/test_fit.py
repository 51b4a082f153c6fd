import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from command import ridgepass, run_well, summary
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Ridge
from tables import ALPHA, FEATURES, WRITERS, dense, exact, make_frame

import ridgepass as package

OPTIONS = ["--target", "price", "--weight", "weight", "--one-hot", "city", "--alpha", ALPHA]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_any_writer_gives_exact_ridge(tmp_path, name):
    frame, file = make_frame(), tmp_path / f"rows.{name.partition('.')[2]}"
    WRITERS[name](frame, file)
    facts = summary("fit", file.name, *OPTIONS, "-o", "m.ridge", cwd=tmp_path)
    model, reference = package.load(tmp_path / "m.ridge"), exact(frame)
    assert list(model.feature_names_in_) == FEATURES
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-9)
    assert facts["rows"] == len(frame)
    assert facts["features"] == len(FEATURES)
    score = reference.score(dense(frame), frame["price"], frame["weight"])
    assert facts["training_r2"] == pytest.approx(score, rel=1e-9)


def test_directories_globs_and_hive_partitions(tmp_path):
    frame = make_frame()
    for year in (2020, 2021):
        for part in range(2):
            folder = tmp_path / "data" / f"year={year}"
            folder.mkdir(parents=True, exist_ok=True)
            rows = frame[(2 * (year - 2020) + part) * 75 :][:75]
            rows.to_parquet(folder / f"{part}.parquet")
    (tmp_path / "data" / "_SUCCESS").write_text("")
    options = ["--target", "price", "--exclude", "city,weight", "-o", "m.ridge"]
    whole = summary("fit", "data", *options, cwd=tmp_path)
    by_directory = (tmp_path / "m.ridge").read_bytes()
    summary("fit", "data/**/*.parquet", *options, cwd=tmp_path)
    assert (tmp_path / "m.ridge").read_bytes() == by_directory
    assert whole["rows"] == 300
    model = package.load(tmp_path / "m.ridge")
    assert list(model.feature_names_in_) == ["size", "rooms", "new", "year"]
    X = np.column_stack([frame["size"], frame["rooms"], frame["new"], np.repeat([0, 1], 150)])
    np.testing.assert_allclose(
        model.coef_, Ridge(1.0).fit(X.astype(float), frame["price"]).coef_, rtol=1e-8
    )


@pytest.mark.parametrize("kind", ["fixed", "lists"])
def test_an_embedding_column_is_as_many_features(tmp_path, kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 50)).astype(np.float32)
    y = X @ rng.standard_normal(50)
    values = pa.array(X.ravel())
    column = (
        pa.FixedSizeListArray.from_arrays(values, 50)
        if kind == "fixed"
        else pa.ListArray.from_arrays(np.arange(0, 20001, 50, dtype=np.int32), values)
    )
    pa.parquet.write_table(pa.table({"embedding": column, "y": y}), tmp_path / "e.parquet")
    options = ["--target", "y", "--sketch-size", "5", "-o", "m.ridge"]
    facts = summary("fit", "e.parquet", *options, cwd=tmp_path)
    assert facts["features"] == 50
    assert facts["method"] == "tracked"
    model = package.load(tmp_path / "m.ridge")
    assert model.feature_names_in_[7] == "embedding[7]"
    same = package.StreamingRidge(1.0, sketch_size=5).fit(X, y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert facts["certified_error"] == pytest.approx(same.certificate().relative)


def test_arrays_and_svmlight(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 6)), rng.standard_normal(200)
    expected = Ridge(1.0).fit(X, y).coef_
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "both.npy", np.column_stack([X, y]))
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    for arguments in (
        ["X.npy", "--target", "y.npy"],
        ["both.npy", "--target=-1"],
        ["both.npy", "--target", "6"],
        ["rows.svm"],
    ):
        summary("fit", *arguments, "-o", "m.ridge", cwd=tmp_path)
        np.testing.assert_allclose(package.load(tmp_path / "m.ridge").coef_, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["csv", "gzip", "arrow"])
def test_standard_input(tmp_path, kind):
    frame = make_frame()
    if kind == "arrow":
        sink, table = pa.BufferOutputStream(), pa.Table.from_pandas(frame)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
        sent = sink.getvalue().to_pybytes()
    else:
        path = tmp_path / f"rows.csv{'.gz' if kind == 'gzip' else ''}"
        frame.to_csv(path, index=False)
        sent = path.read_bytes()
    options = [*OPTIONS, "-o", "m.ridge"]
    options[options.index("city")] = "city=Bonn,NA,Rome"
    summary("fit", "-", *options, cwd=tmp_path, stdin=sent)
    np.testing.assert_allclose(
        package.load(tmp_path / "m.ridge").coef_, exact(frame).coef_, rtol=1e-9
    )


@pytest.mark.parametrize("nulls", ["drop", "zero", "mean"])
def test_missing_values(tmp_path, nulls):
    frame = make_frame()[["size", "rooms", "price"]]
    frame.loc[::7, "size"] = np.nan
    frame.to_parquet(tmp_path / "rows.parquet")
    options = ["-t", "price", "--nulls", nulls, "-o", "m.ridge"]
    facts = summary("fit", "rows.parquet", *options, cwd=tmp_path)
    clean = {
        "drop": frame.dropna(),
        "zero": frame.fillna(0.0),
        "mean": frame.fillna({"size": frame["size"].mean()}),
    }[nulls]
    expected = Ridge(1.0).fit(clean[["size", "rooms"]], clean["price"])
    model = package.load(tmp_path / "m.ridge")
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert facts["rows_dropped"] == (43 if nulls == "drop" else 0)


def test_options_reach_the_model(tmp_path):
    make_frame().to_csv(tmp_path / "rows.csv", index=False)
    options = "--target price --exclude city,weight --alpha auto --standardize --no-intercept"
    facts = summary("fit", "rows.csv", *options.split(), "-o", "m.ridge", cwd=tmp_path)
    model = package.load(tmp_path / "m.ridge")
    assert isinstance(model, package.StreamingRidgeCV)
    assert model.standardize
    assert not model.fit_intercept
    assert facts["alpha"] == model.alpha_
    options = "--target price,size --exclude city --method rfd --sketch-size 2 --dtype float32"
    facts = summary("fit", "rows.csv", *options.split(), "-o", "m.ridge", cwd=tmp_path)
    model = package.load(tmp_path / "m.ridge")
    assert (model.method_, model.sketch_size_, facts["targets"]) == ("rfd", 2, ["price", "size"])
    assert model.coef_.shape == (2, 3)
    options = "--target price --features s*,rooms --memory 100kB --method fd"
    facts = summary("fit", "rows.csv", *options.split(), "-o", "m.ridge", cwd=tmp_path)
    assert facts["features"] == 2


def test_the_summary_for_people(tmp_path):
    make_frame().to_csv(tmp_path / "rows.csv", index=False)
    done = ridgepass("fit", "rows.csv", *OPTIONS, "-o", "m.ridge", cwd=tmp_path)
    said = done.stdout.decode()
    for name in ("rows", "features", "method", "alpha", "certified error", "training R²", "time"):
        assert f"\n{name} " in said
    assert "peak memory" in said
    assert "300 rows" in done.stderr.decode()


def test_a_terminal_gets_a_bar(tmp_path):
    pty = pytest.importorskip("pty")
    import os
    import subprocess

    from command import COMMAND

    pd.concat([make_frame()] * 400).to_csv(tmp_path / "rows.csv", index=False)
    master, slave = pty.openpty()
    done = subprocess.Popen(
        [COMMAND, "fit", "rows.csv", *map(str, OPTIONS), "-o", "m.ridge"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(slave)
    seen = b""
    try:
        while piece := os.read(master, 4096):
            seen += piece
    except OSError:  # the other end is closed
        pass
    out, _ = done.communicate()
    assert done.returncode == 0
    assert b"rows/s" in seen
    assert "certified error" in out.decode()


def test_unknown_categories_are_counted(tmp_path):
    make_frame().to_csv(tmp_path / "rows.csv", index=False)
    options = [
        "--target",
        "price",
        "--weight",
        "weight",
        "--one-hot",
        "city=Bonn,Rome",
        "-o",
        "m.ridge",
        "--json",
    ]
    done = ridgepass("fit", "rows.csv", *options, cwd=tmp_path)
    n_unknown = int((make_frame()["city"] == "NA").sum())
    assert json.loads(done.stdout)["unknown_categories"] == n_unknown
    assert f"warning: {n_unknown} values are of no known category" in done.stderr.decode()


def test_many_categories_stay_sparse(tmp_path):
    rng = np.random.default_rng(0)
    names = rng.integers(0, 500, 3000).astype(str)
    frame = pd.DataFrame({"who": names, "x": rng.standard_normal(3000)})
    frame["y"] = frame["x"] + (names == "7")
    frame.to_parquet(tmp_path / "rows.parquet")
    options = ["--target", "y", "--one-hot", "who", "-o", "m.ridge"]
    facts = summary("fit", "rows.parquet", *options, cwd=tmp_path)
    X = np.column_stack([names[:, None] == np.unique(names), frame["x"]]).astype(float)
    expected = Ridge(1.0).fit(X, frame["y"])
    model = package.load(tmp_path / "m.ridge")
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)
    assert facts["features"] == 1 + len(np.unique(names))
    assert model._learned.stream._state.is_sparse


def test_the_same_command_gives_the_same_bytes(tmp_path):
    make_frame().to_parquet(tmp_path / "rows.parquet")
    options = ["--target", "price", "--exclude", "city", "--method", "cs", "--sketch-size", "3"]
    for name in ("a", "b"):
        run_well("fit", "rows.parquet", *options, "-o", f"{name}.ridge", cwd=tmp_path)
    assert (tmp_path / "a.ridge").read_bytes() == (tmp_path / "b.ridge").read_bytes()
