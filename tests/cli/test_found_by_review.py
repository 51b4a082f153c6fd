"""What a stranger found when trying the command, kept as tests."""

import io
import os
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from command import COMMAND, complaint, ridgepass, run_well, summary
from sklearn.linear_model import Ridge

import ridgepass as package
from ridgepass.cli.app import run
from ridgepass.cli.progress import Watch


def _predictions(*arguments, cwd, stdin=None):
    return pd.read_csv(io.BytesIO(run_well("predict", *arguments, cwd=cwd, stdin=stdin)))


def test_bounds_hold_for_rows_wider_than_those_of_training(tmp_path):
    rng = np.random.default_rng(0)
    X, names = rng.standard_normal((500, 20)), [f"x{i}" for i in range(20)]
    y = X @ rng.standard_normal(20)
    short = X.astype(np.float32)
    pd.DataFrame(short, columns=names).assign(y=y).to_parquet(tmp_path / "short.parquet")
    pd.DataFrame(X, columns=names).to_parquet(tmp_path / "wide.parquet")
    np.save(tmp_path / "short.npy", short)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "wide.npy", X)
    truth = Ridge(1.0, solver="cholesky").fit(short.astype(float), y).predict(X)
    for training, new in (
        (["short.parquet", "-t", "y"], "wide.parquet"),
        (["short.npy", "-t", "y.npy"], "wide.npy"),
    ):
        run_well("fit", *training, "-o", "m.ridge", cwd=tmp_path)
        found = _predictions("m.ridge", new, "--bounds", cwd=tmp_path)
        slack = 1e-12 * np.abs(truth)  # of scikit-learn's own rounding
        assert (found["lower"] <= truth + slack).all()
        assert (truth - slack <= found["upper"]).all()


def test_targets_in_a_file_of_their_own_are_inputs_too(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.standard_normal((60_000, 40)))
    np.save(tmp_path / "y.npy", rng.standard_normal(60_000))
    command = ["fit", "X.npy", "-t", "y.npy", "--method", "fd", "--sketch-size", "8"]
    assert "input" in complaint(*command, "-o", "y.npy", cwd=tmp_path)
    saving = ["-o", "m.ridge", "-q", "--checkpoint", "m.part", "--every", "1ms"]
    _stop_once_there_is(tmp_path / "m.part", [*command, *saving], tmp_path)
    np.save(tmp_path / "y.npy", np.zeros(60_000))
    assert "y.npy has changed" in complaint(*command, *saving, "--resume", cwd=tmp_path)


def _stop_once_there_is(path, command, folder):
    for _ in range(100):
        running = subprocess.Popen(
            [COMMAND, *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while running.poll() is None and not path.exists():
            time.sleep(0.0005)
        running.send_signal(signal.SIGINT)
        if running.wait() == 130 and path.exists():
            return
        path.unlink(missing_ok=True)
    pytest.fail("the run was always over before it could be stopped")


def test_kept_keys_come_out_as_they_went_in(tmp_path):
    lines = ["id,zip,x,y", "1234567890123456701,00012,1,2", "1234567890123456702,,2,4"]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    options = ["-t", "y", "--features", "x", "-o", "m.ridge"]
    run_well("fit", "rows.csv", *options, cwd=tmp_path)
    said = run_well("predict", "m.ridge", "rows.csv", "--keep", "id,zip", cwd=tmp_path).decode()
    assert said.splitlines()[1].replace('"', "").startswith("1234567890123456701,00012,")
    assert said.splitlines()[2].replace('"', "").startswith("1234567890123456702,,")
    frame = pd.DataFrame({"x": [1.0, 2.0], "prediction": [1, 2], "l": [[1.0], [2.0]]})
    frame.to_parquet(tmp_path / "rows.parquet")
    for name, reason in {"prediction": "rename", "l": ".parquet"}.items():
        assert reason in complaint(
            "predict", "m.ridge", "rows.parquet", "--keep", name, cwd=tmp_path
        )
    frame.assign(prediction=["a", "b"]).rename(columns={"prediction": "key"}).to_parquet(
        tmp_path / "a.parquet"
    )
    frame.rename(columns={"prediction": "key"}).to_parquet(tmp_path / "b.parquet")
    said = complaint("predict", "m.ridge", "a.parquet", "b.parquet", "--keep", "key", cwd=tmp_path)
    assert "'key'" in said
    assert "b.parquet" in said


def test_categories_are_the_same_in_every_format(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"level": rng.integers(0, 3, 90), "flag": rng.random(90) > 0.5})
    frame["y"] = frame["level"] + frame["flag"] + rng.standard_normal(90)
    frame["level"] = frame["level"].astype("Int64")
    frame.loc[5, "level"] = None
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.astype({"level": "float64"}).to_csv(tmp_path / "floats.csv", index=False)
    options = ["-t", "y", "--one-hot", "level,flag", "--nulls", "zero", "-o", "m.ridge"]
    answers = []
    for training in ("rows.parquet", "rows.csv", "floats.csv"):
        summary("fit", training, *options, cwd=tmp_path)
        names = list(package.load(tmp_path / "m.ridge").feature_names_in_)
        assert names == ["level=0", "level=1", "level=2", "flag=false", "flag=true"]
        for new in ("rows.parquet", "rows.csv", "floats.csv"):
            done = ridgepass("predict", "m.ridge", new, cwd=tmp_path)
            assert done.stderr == b""
            answers.append(pd.read_csv(io.BytesIO(done.stdout))["prediction"])
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-12)


def test_partitions_are_categories_whatever_other_files_there_are(tmp_path):
    for month, y in {"01": 1.0, "02": 5.0, "AA": 9.0}.items():
        folder = tmp_path / "data" / f"month={month}"
        folder.mkdir(parents=True)
        pd.DataFrame({"x": [1.0, 2.0], "y": [y, y]}).to_parquet(folder / "0.parquet")
    options = ["-t", "y", "--one-hot", "month", "--alpha", "0.001", "-o", "m.ridge"]
    run_well("fit", "data", *options, cwd=tmp_path)
    done = ridgepass("predict", "m.ridge", "data/month=02", cwd=tmp_path)
    assert done.stderr == b""
    np.testing.assert_allclose(pd.read_csv(io.BytesIO(done.stdout))["prediction"], 5.0, rtol=0.01)


def test_nan_is_no_category(tmp_path):
    table = pa.table({"c": [1.0, float("nan"), 2.0], "y": [1.0, 2.0, 3.0]})
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    options = ["-t", "y", "--one-hot", "c", "-o", "m.ridge"]
    said = complaint("fit", "rows.parquet", *options, cwd=tmp_path)
    assert "'c=1'" in said or "'c'" in said
    assert "row 2" in said
    assert (
        summary("fit", "rows.parquet", *options, "--nulls", "zero", cwd=tmp_path)["features"] == 2
    )


def test_models_that_only_look_alike_do_not_merge(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", rng.standard_normal((50, 5)))
    for name, features in {"a": "0,1", "b": "2,3"}.items():
        options = ["--target=-1", "--features", features, "-o", f"{name}.ridge"]
        run_well("fit", "rows.npy", *options, cwd=tmp_path)
    said = complaint("merge", "a.ridge", "b.ridge", "-o", "c.ridge", cwd=tmp_path)
    assert "other columns" in said
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0], "y": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "1.parquet")
    (frame * 10).to_parquet(tmp_path / "2.parquet")
    for name in ("1", "2"):
        options = ["-t", "y", "--nulls", "mean", "--alpha", name, "-o", f"{name}.ridge"]
        run_well("fit", f"{name}.parquet", *options, cwd=tmp_path)
    done = ridgepass("merge", "1.ridge", "2.ridge", "-o", "12.ridge", cwd=tmp_path)
    assert b"2.ridge has alpha 2; that of 1.ridge is kept" in done.stderr
    run_well("merge", "2.ridge", "1.ridge", "-o", "21.ridge", cwd=tmp_path)
    means = [package.load(tmp_path / f"{m}.ridge")._learned.columns["means"] for m in ("12", "21")]
    assert means[0] == pytest.approx(means[1])
    assert means[0] == pytest.approx([11.0])


def test_line_breaks_within_quotes_through_a_pipe(tmp_path):
    text = '"' + "\n".join(["many lines"] * 20) + '"'
    rows = [f"{i},{text},{2 * i}" for i in range(8000)]
    sent = "\n".join(["a,c,y", *rows]).encode()
    options = ["-t", "y", "--exclude", "c", "-o", "m.ridge"]
    assert summary("fit", "-", *options, cwd=tmp_path, stdin=sent)["rows"] == 8000


def test_a_file_changed_while_it_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for i in range(2):
        frame = pd.DataFrame(rng.standard_normal((100, 4))).rename(columns=str)
        frame.to_csv(f"{i}.csv", index=False)
    # After the first batch, as another program might.
    monkeypatch.setattr(Watch, "update", lambda *_: os.utime("0.csv", ns=(0, 0)))
    assert run(["fit", "0.csv", "1.csv", "-t", "3", "-o", "m.ridge"]) == 2
    assert "0.csv was changed while it was read" in capsys.readouterr().err
    assert not (tmp_path / "m.ridge").exists()


def test_directories_behind_links_are_read_once(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "data").mkdir()
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 4.0]})
    frame.to_parquet(tmp_path / "real" / "a.parquet")
    frame.to_parquet(tmp_path / "data" / "b.parquet")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "round").symlink_to(tmp_path / "data")
    assert summary("fit", "data", "-t", "y", "-o", "m.ridge", cwd=tmp_path)["rows"] == 4
    (tmp_path / "nowhere.csv").symlink_to(tmp_path / "gone.csv")
    assert "No such file" in complaint(
        "fit", "nowhere.csv", "-t", "y", "-o", "m.ridge", cwd=tmp_path
    )


def test_sentences_that_were_wrong(tmp_path):
    (tmp_path / "rows.csv").write_text("x,w,y,t\n1,0,2,a\n2,0,4,b\n")
    for options, reason in {
        ("-t", "y,y", "-o", "m.ridge"): "'y' is named twice",
        ("-t", "y", "--weight", "y", "-o", "m.ridge"): "'y' is named twice",
        ("-o", "m.ridge"): "--target",
        ("-t", "y", "-o", "-"): "needs a file",
        ("-t", "y", "--exclude", "t", "--weight", "w", "-o", "m.ridge"): "none with a weight",
        ("-t", "y", "-o", "m.ridge", "--checkpoint", "m.ridge"): "both output and checkpoint",
        ("-t", "y", "-o", "m.ridge", "--every", "often"): "--every often",
    }.items():
        assert reason in complaint("fit", "rows.csv", *options, "-q", cwd=tmp_path)
    assert "needs a file" in complaint("inspect", "-", cwd=tmp_path)


def test_a_comma_in_a_name(tmp_path):
    pd.DataFrame({"a,b": [1.0, 2.0], "x": [1.0, 3.0]}).to_parquet(tmp_path / "rows.parquet")
    facts = summary("fit", "rows.parquet", "-t", r"a\,b", "-o", "m.ridge", cwd=tmp_path)
    assert facts["targets"] == ["a,b"]


def test_parts_of_svmlight_that_agree_on_their_features(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1 3:2\n2 2:1\n")
    (tmp_path / "b.svm").write_text("1 1:1\n2 7:1\n")
    for name in "ab":
        options = ["--n-features", "8", "--no-zero-based", "-o", f"{name}.ridge"]
        assert summary("fit", f"{name}.svm", *options, cwd=tmp_path)["features"] == 8
    assert summary("merge", "a.ridge", "b.ridge", "-o", "c.ridge", cwd=tmp_path)["rows"] == 4
    run_well("fit", "a.svm", "-o", "a.ridge", cwd=tmp_path)
    assert "--n-features" in complaint("predict", "a.ridge", "b.svm", cwd=tmp_path)


def test_no_row_to_predict_for(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n2,4\n")
    run_well("fit", "rows.csv", "-t", "y", "-o", "m.ridge", cwd=tmp_path)
    said = run_well("predict", "m.ridge", "-", "--bounds", cwd=tmp_path, stdin=b"x\n")
    assert said == b"prediction,lower,upper\n"


def test_rows_of_no_weight_are_mentioned(tmp_path):
    (tmp_path / "rows.csv").write_text("x,w,y\n1,0,2\n2,1,4\n3,2,5\n")
    options = ["-t", "y", "--weight", "w", "-o", "m.ridge"]
    done = ridgepass("fit", "rows.csv", *options, cwd=tmp_path)
    assert b"1 rows have a weight of zero" in done.stderr
