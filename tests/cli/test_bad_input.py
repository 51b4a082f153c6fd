import hashlib
import os
import resource
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from command import COMMAND, complaint, ridgepass, summary
from tables import make_frame

import ridgepass as package
from ridgepass.store.layout import DIGITS, NO_DIGITS

FIT = ["--target", "price", "--exclude", "city", "-o", "m.ridge"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    make_frame().to_parquet(folder / "rows.parquet")
    make_frame().to_csv(folder / "rows.csv", index=False)
    summary("fit", "rows.parquet", *FIT, cwd=folder)
    return folder


@pytest.fixture
def folder(trained, tmp_path):
    """A folder with data, and with a model that must survive whatever fails."""
    return shutil.copytree(trained, tmp_path, dirs_exist_ok=True)


def test_columns_that_are_not_there(folder):
    said = complaint("fit", "rows.csv", "--target", "prise", "-o", "m.ridge", cwd=folder)
    assert "rows.csv has no column 'prise': did you mean 'price'" in said
    said = complaint("fit", "rows.csv", *FIT, "--weight", "weigth", cwd=folder)
    assert "'weight'" in said
    said = complaint("fit", "rows.csv", *FIT, "--features", "nothing_*", cwd=folder)
    assert "nothing_*" in said
    said = complaint("fit", "rows.csv", "--exclude", "city", "-o", "m.ridge", cwd=folder)
    assert "--target" in said


def test_text_without_one_hot(folder):
    said = complaint("fit", "rows.parquet", "-t", "price", "-o", "m.ridge", cwd=folder)
    for part in ("'city'", "rows.parquet", "--one-hot city", "--exclude city"):
        assert part in said


def test_ragged_lists(folder):
    lists = pa.array([[1.0, 2.0]] * 6 + [[1.0]] + [[3.0, 4.0]] * 5)
    pa.parquet.write_table(pa.table({"e": lists, "price": np.arange(12.0)}), folder / "e.parquet")
    said = complaint("fit", "e.parquet", "-t", "price", "-o", "m.ridge", cwd=folder)
    for part in ("'e'", "list of 1", "row 7", "e.parquet"):
        assert part in said


def test_schema_changes_between_files(folder):
    frame = make_frame().drop(columns="city")
    changes = {
        "fewer": frame.drop(columns="rooms"),
        "more": frame.assign(extra=1.0),
        "text": frame.assign(rooms=frame["rooms"].astype(str)),
    }
    frame.to_parquet(folder / "first.parquet")
    for name, changed in changes.items():
        changed.to_parquet(folder / f"{name}.parquet")
        options = ["-t", "price", "-o", "m.ridge"]
        said = complaint("fit", "first.parquet", f"{name}.parquet", *options, cwd=folder)
        assert f"{name}.parquet" in said
        assert ("extra" if name == "more" else "rooms") in said


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather", "rows.csv.gz", "rows.npy"])
def test_truncated_files(folder, name, share):
    if name == "rows.feather":
        make_frame().to_feather(folder / "rows.feather")
    elif name == "rows.csv.gz":
        make_frame().to_csv(folder / name, index=False)
    elif name == "rows.npy":
        np.save(folder / name, np.random.default_rng(0).standard_normal((100, 4)))
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(share * len(whole))])
    options = ["-t", "0", "-o", "m.ridge"] if name == "rows.npy" else FIT
    assert name in complaint("fit", name, *options, cwd=folder)


def test_missing_values_are_placed(folder):
    frame = make_frame()
    frame.loc[123, "rooms"] = np.nan
    frame.to_parquet(folder / "holes.parquet")
    said = complaint("fit", "rows.parquet", "holes.parquet", *FIT, "-q", cwd=folder)
    for part in ("'rooms'", "row 124", "holes.parquet", "--nulls"):
        assert part in said
    frame = make_frame()
    frame.loc[7, "price"] = np.nan
    frame.to_parquet(folder / "holes.parquet")
    said = complaint("fit", "holes.parquet", *FIT, "--nulls", "zero", cwd=folder)
    assert "'price'" in said
    assert "row 8" in said


def test_paths_that_cannot_be_read(folder):
    for name in ("nowhere.csv", "no*.csv", "nowhere/rows.parquet"):
        assert name in complaint("fit", name, *FIT, cwd=folder)
    (folder / "empty").mkdir()
    assert "empty" in complaint("fit", "empty", *FIT, cwd=folder)
    (folder / "notes.txt").write_text("x,y\n1,2\n")
    assert "--format" in complaint("fit", "notes.txt", *FIT, cwd=folder)
    assert "rows.parquet" in complaint("fit", "rows.parquet", "./rows.parquet", *FIT, cwd=folder)
    assert "one format" in complaint("fit", "rows.parquet", "rows.csv", *FIT, cwd=folder)
    if os.getuid() != 0:
        (folder / "rows.csv").chmod(0)
        assert "ermission" in complaint("fit", "rows.csv", *FIT, cwd=folder)


def test_places_that_cannot_be_written(folder):
    options = FIT[:-1]
    assert "nowhere" in complaint("fit", "rows.csv", *options, "nowhere/m.ridge", cwd=folder)
    (folder / "taken").mkdir()
    assert "taken" in complaint("fit", "rows.csv", *options, "taken", cwd=folder)
    assert "input" in complaint("fit", "rows.csv", *options, "rows.csv", cwd=folder)
    said = complaint("predict", "m.ridge", "rows.csv", "-o", "rows.csv", cwd=folder)
    assert "input" in said
    assert ".csv" in complaint("predict", "m.ridge", "rows.csv", "-o", "p.what", cwd=folder)


def test_a_full_disk(folder):
    def small_files():
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    said = complaint("fit", "rows.csv", *FIT, "-q", cwd=folder, preexec_fn=small_files)
    assert "m.ridge" in said
    said = complaint(
        "predict", "m.ridge", "rows.csv", "-o", "p.csv", "-q", cwd=folder, preexec_fn=small_files
    )
    assert "p.csv" in said
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


def test_wrong_model_files(folder):
    for name in ("rows.csv", "rows.parquet"):
        assert name in complaint("inspect", name, cwd=folder)
    model = (folder / "m.ridge").read_bytes()
    (folder / "cut.ridge").write_bytes(model[:-1])
    (folder / "flipped.ridge").write_bytes(model[:-9] + bytes([model[-9] ^ 1]) + model[-8:])
    (folder / "empty.ridge").write_bytes(b"")
    newer = model.replace(b'"version":"4"', b'"version":"9"', 1)
    assert newer != model
    unsigned = newer[: DIGITS.start] + NO_DIGITS + newer[DIGITS.stop :]
    digits = hashlib.sha256(unsigned).hexdigest().encode()
    (folder / "newer.ridge").write_bytes(unsigned.replace(NO_DIGITS, digits, 1))
    for name in ("cut", "flipped", "empty", "newer"):
        for command in (["inspect"], ["predict"], ["merge", "m.ridge"]):
            rest = {"predict": ["rows.csv"], "merge": ["-o", "x.ridge"]}.get(command[0], [])
            said = complaint(*command, f"{name}.ridge", *rest, cwd=folder)
            assert f"{name}.ridge" in said
            assert ("upgrade" in said) == (name == "newer")


def test_other_features_at_predict(folder):
    make_frame().drop(columns="rooms").to_csv(folder / "fewer.csv", index=False)
    said = complaint("predict", "m.ridge", "fewer.csv", cwd=folder)
    assert "fewer.csv has no column 'rooms'" in said
    make_frame().assign(size="big").to_csv(folder / "text.csv", index=False)
    said = complaint("predict", "m.ridge", "text.csv", cwd=folder)
    assert "'size'" in said
    np.save(folder / "X.npy", np.ones((3, 9)))
    said = complaint("predict", "m.ridge", "X.npy", cwd=folder)
    assert "9 columns" in said
    assert "nope" in complaint("predict", "m.ridge", "rows.csv", "--keep", "nope", cwd=folder)
    assert "mean" in complaint("predict", "m.ridge", "rows.csv", "--nulls", "mean", cwd=folder)


def test_options_that_make_no_sense(folder):
    for options, reason in {
        ("--alpha", "ten"): "--alpha ten",
        ("--alpha", "-1"): "alpha",
        ("--sketch-size", "0"): "sketch_size",
        ("--memory", "lots"): "memory",
        ("--resume",): "--checkpoint",
        ("--checkpoint", "m.ridge"): "m.ridge",
        ("--checkpoint", "x.part", "--every", "often"): "--every often",
    }.items():
        assert reason in complaint("fit", "rows.csv", *FIT, *options, cwd=folder)
    said = complaint("fit", "-", *FIT, "--checkpoint", "x", cwd=folder, stdin=b"price,x\n1,2\n")
    assert "standard input" in said
    assert "empty" in complaint("fit", "-", *FIT, cwd=folder, stdin=b"")
    header = b"price,x,city\n"
    assert "no row" in complaint("fit", "-", *FIT, "-q", cwd=folder, stdin=header)


def test_a_bad_value_deep_in_a_file(folder):
    lines = ["x,price"] + ["1,2"] * 400_000 + ["oops,3"]
    (folder / "deep.csv").write_text("\n".join(lines))
    said = complaint("fit", "deep.csv", "-t", "price", "-o", "m.ridge", "-q", cwd=folder)
    assert "deep.csv" in said
    assert "oops" in said


def test_debugging_shows_the_traceback(folder):
    environment = {**os.environ, "RIDGEPASS_DEBUG": "1"}
    done = ridgepass("inspect", "rows.csv", cwd=folder, env=environment)
    assert done.returncode == 2
    assert b"Traceback" in done.stderr


def test_interrupting_leaves_nothing_behind(folder):
    import signal
    import subprocess

    frame = pd.concat([make_frame()] * 3000)
    frame.to_csv(folder / "long.csv", index=False)
    before = package.load(folder / "m.ridge").n_samples_seen_
    running = subprocess.Popen(
        [COMMAND, "fit", "long.csv", *FIT], cwd=folder, stdout=subprocess.PIPE, stderr=-1
    )
    assert running.stderr.readline().startswith(b"reading")
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 130
    assert said.splitlines()[-1] == b"ridgepass: interrupted"
    assert package.load(folder / "m.ridge").n_samples_seen_ == before


def test_an_error_stays_readable_however_long_a_value_is(folder):
    (folder / "wide.csv").write_text(f"{'x' * 200_000},y\n1,2\n2,3\n")
    said = complaint("fit", "wide.csv", "-t", "price", "-o", "m.ridge", cwd=folder)
    assert said.startswith("wide.csv has no column 'price': it has 'xxx")
    assert said.endswith("xxx', 'y'")
    (folder / "bad.svm").write_text(f"1 1:1\n{'x' * 200_000}\n")
    said = complaint("fit", "bad.svm", "-o", "m.ridge", cwd=folder)
    assert said.startswith("row 2 of bad.svm cannot be read as svmlight: ")
    assert said.endswith("fix that line")
    assert len(said) < 3000
