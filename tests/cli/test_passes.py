"""``fit --passes`` and ``--tol``: the files are read again until the answer is good enough."""

import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command import COMMAND, ridgepass, run_well
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Ridge

import ridgepass as package
from ridgepass.cli.app import run
from ridgepass.cli.progress import Watch
from ridgepass.cli.show import share

N_ROWS, N_FEATURES, ALPHA = 600, 40, 50.0
NUMBERS = [f"x{i}" for i in range(N_FEATURES)]
CITIES = ["Bonn", "NA", "Rome"]
METHOD = ["--method", "tracked", "--sketch-size", "16"]
SKETCHED = [*METHOD, "--alpha", "50"]
TABLE = ["fit", "rows.parquet", "-t", "y", "--exclude", "city,w"]
FIT = [*TABLE, *SKETCHED]
WRITERS = {
    "parquet": lambda frame, path: frame.to_parquet(path),
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "arrow": lambda frame, path: frame.to_feather(path),
}
FORMATS = [*WRITERS, "npy", "svmlight"]


def make_frame(n_rows=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_FEATURES)) * np.exp(-np.arange(N_FEATURES) / 10)
    frame = pd.DataFrame(1 + X, columns=NUMBERS)
    frame["city"] = rng.choice(CITIES, n_rows)
    frame["w"] = rng.random(n_rows) + 0.1
    noise = rng.standard_normal(n_rows)
    frame["y"] = X @ rng.standard_normal(N_FEATURES) + (frame["city"] == "Rome") + noise
    return frame


def write(folder, kind):
    """Write rows and return the arguments of fit, those of ``fit_stream``, and exact ridge's."""
    frame = make_frame()
    X, y = frame[NUMBERS].to_numpy(), frame["y"].to_numpy()
    if kind == "npy":
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        return ["X.npy", "-t", "y.npy"], {"target": "y.npy"}, (X, y, None)
    if kind == "svmlight":
        dump_svmlight_file(X, y, str(folder / "rows.svm"), zero_based=False)
        return ["rows.svm"], {}, (X, y, None)
    WRITERS[kind](frame, folder / f"rows.{kind}")
    arguments = [f"rows.{kind}", "-t", "y", "--one-hot", "city", "--weight", "w"]
    cities = frame["city"].to_numpy()[:, None] == CITIES
    options = {"target": "y", "one_hot": "city", "weight": "w"}
    return arguments, options, (np.hstack([X, cities]), y, frame["w"].to_numpy())


def distance(model, X, y, weights=None):
    """The relative error that a certificate bounds."""
    exact = Ridge(model.alpha).fit(X, y, weights).coef_
    return np.linalg.norm(model.coef_ - exact) / np.linalg.norm(exact)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to be in, with a table."""
    monkeypatch.chdir(tmp_path)
    make_frame().to_parquet("rows.parquet")
    return tmp_path


@pytest.fixture
def command(folder, capsys):
    """Runs a command in this process: its exit code, and what it says on both outputs."""

    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def facts(command):
    """Runs a command that must succeed without a word, and returns its JSON."""

    def call(*arguments):
        quiet = ["-q"] if arguments[0] == "fit" else []
        code, said, warned = command(*arguments, "--json", *quiet)
        assert (code, warned) == (0, "")
        return json.loads(said)

    return call


@pytest.fixture
def stop_in(monkeypatch, command, ctrl_c):
    """Runs a command that a signal stops while it reads for the pass given."""

    def call(number, sent, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(Watch, "update", _at_pass(number, lambda: signal.raise_signal(sent)))
            return command(*arguments)

    return call


def _at_pass(number, act):
    def update(self, rows, n_bytes):
        if self.label == f"pass {number}:":
            act()

    return update


# What comes out


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_what_refine_gives(folder, facts, kind):
    arguments, options, exact = write(folder, kind)
    command = ["fit", *arguments, *SKETCHED]
    once = facts(*command, "-o", "once.ridge")
    found = facts(*command, "--passes", "3", "-o", "m.ridge")
    model = package.load("m.ridge")
    same = package.StreamingRidge(ALPHA, method="tracked", sketch_size=16, random_state=0)
    same.fit_stream(arguments[0], **options)
    same.refine(arguments[0], options["target"] if kind == "npy" else None, passes=2)
    assert model.coef_.tobytes() == same.coef_.tobytes()
    assert model.intercept_ == same.intercept_
    assert (once["passes"], found["passes"]) == (1, 3)
    assert found["certified_error"] == same.certificate().relative
    assert found["certified_error"] < 0.1 * once["certified_error"]
    assert distance(model, *exact) <= found["certified_error"]
    assert (found["rows"], found["rows_read"]) == (N_ROWS, N_ROWS)


@pytest.mark.parametrize("nulls", ["drop", "zero", "mean"])
def test_missing_values_are_dealt_with_the_same_in_every_pass(folder, command, nulls):
    frame = make_frame()
    frame.loc[::7, "x0"] = np.nan
    frame.loc[::5, "x3"] = np.nan
    frame.to_parquet("rows.parquet")
    code, said, warned = command(
        *FIT, "--nulls", nulls, "--tol", "1e-8", "-o", "m.ridge", "-q", "--json"
    )
    clean = {
        "drop": frame.dropna(),
        "zero": frame.fillna(0.0),
        "mean": frame.fillna(frame[NUMBERS].mean()),
    }[nulls]
    found, dropped = json.loads(said), len(frame) - len(clean)
    assert code == 0
    assert warned.count("\n") == (nulls == "drop")  # how many were dropped, once
    assert found["passes"] > 2
    assert (found["rows"], found["rows_dropped"]) == (len(clean), dropped)
    assert distance(package.load("m.ridge"), clean[NUMBERS], clean["y"]) <= 1e-8


def test_rows_without_a_weight_count_in_no_pass(folder, command):
    frame = make_frame()
    frame.loc[::3, "w"] = 0.0
    frame.to_parquet("rows.parquet")
    weighted = ["fit", "rows.parquet", "-t", "y", "--exclude", "city", "--weight", "w", *SKETCHED]
    code, said, _ = command(*weighted, "--tol", "1e-8", "-o", "m.ridge", "--json")
    assert code == 0
    assert json.loads(said)["rows"] == 400
    X, y, weights = frame[NUMBERS], frame["y"], frame["w"]
    assert distance(package.load("m.ridge"), X, y, weights) <= 1e-8


@pytest.mark.parametrize(
    "options",
    ["--method fd", "--method cs", "--standardize", "--no-intercept", "--dtype float32"],
)
def test_other_models_are_refined_too(folder, facts, options):
    command = [*TABLE, "--sketch-size", "16", "--alpha", "50", *options.split(), "-o", "m.ridge"]
    command += [] if "--method" in command else ["--method", "tracked"]
    once, found = facts(*command), facts(*command, "--passes", "5")
    assert found["passes"] == 5
    before = once["certified_error"]  # None: a random sketch certifies nothing in one pass
    assert found["certified_error"] < (np.inf if before is None else 0.1 * before)


def test_the_alpha_chosen_is_refined(folder, facts):
    command = [*TABLE, *METHOD, "--alpha", "auto", "-o", "m.ridge"]
    once, found = facts(*command), facts(*command, "--passes", "6")
    model = package.load("m.ridge")
    assert isinstance(model, package.StreamingRidgeCV)
    assert found["alpha"] == once["alpha"] == model.alpha_
    assert found["passes"] == model.certificate().passes == 6
    assert found["certified_error"] < 0.1 * once["certified_error"]
    frame = make_frame()
    exact = Ridge(model.alpha_).fit(frame[NUMBERS], frame["y"]).coef_
    error = np.linalg.norm(model.coef_ - exact) / np.linalg.norm(exact)
    assert error <= found["certified_error"]


def test_one_pass_is_as_without_the_option(folder, facts):
    facts(*FIT, "-o", "plain.ridge")
    facts(*FIT, "--passes", "1", "-o", "one.ridge")
    facts(*FIT, "--passes", "2", "-o", "two.ridge")
    plain, one, two = ((folder / f"{n}.ridge").read_bytes() for n in ("plain", "one", "two"))
    assert plain == one != two


def test_the_summary_for_people_tells_the_passes(folder, command):
    _, said, _ = command(*FIT, "-o", "m.ridge", "-q")
    assert "passes" not in said
    code, said, _ = command(*FIT, "--passes", "3", "-o", "m.ridge", "-q")
    assert code == 0
    assert re.search(r"certified error \S+ (for|with) .*, by .*, after 3 passes\b", flat(said))


# When to stop


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_the_first_pass_that_is_good_enough_is_the_last(folder, facts, tol):
    found = facts(*FIT, "--tol", tol, "-o", "m.ridge")
    assert found["certified_error"] <= tol
    before = facts(*FIT, "--passes", found["passes"] - 1, "-o", "before.ridge")
    assert before["passes"] == found["passes"] - 1
    assert before["certified_error"] > tol
    facts(*FIT, "--passes", found["passes"], "-o", "same.ridge")
    assert (folder / "m.ridge").read_bytes() == (folder / "same.ridge").read_bytes()


def test_no_pass_is_wasted_on_what_is_good_enough_already(folder, facts):
    command = [*TABLE, "--method", "exact"]
    facts(*command, "-o", "plain.ridge")
    assert facts(*command, "--tol", "1e-3", "-o", "m.ridge")["passes"] == 1
    assert (folder / "m.ridge").read_bytes() == (folder / "plain.ridge").read_bytes()


def test_a_tolerance_that_is_not_met_is_a_warning(folder, command):
    code, said, warned = command(
        *FIT, "--tol", "1e-9", "--passes", "3", "-o", "m.ridge", "-q", "--json"
    )
    assert code == 0
    assert re.fullmatch(
        r"ridgepass: warning: the certified error is [0-9.e-]+%?, not yet 1e-09: .*--passes.*\n",
        warned,
    )
    assert package.load("m.ridge").certificate().passes == json.loads(said)["passes"] == 3


def test_a_tolerance_that_one_pass_does_not_meet_is_a_warning(folder, command):
    code, _, warned = command(*FIT, "--tol", "1e-9", "--passes", "1", "-o", "m.ridge", "-q")
    assert code == 0
    assert "ridgepass: warning: the certified error is" in warned
    assert package.load("m.ridge").certificate().passes == 1


def test_a_tolerance_without_a_certificate_does_not_pass_for_met(folder, command):
    # `refine` raises; a warning would do as well.
    code, _, warned = command(
        *TABLE, *METHOD, "--alpha", "0", "--tol", "1e-3", "-o", "m.ridge", "-q"
    )
    assert code == 2 or "warning" in warned


def test_more_passes_are_not_advised_where_rounding_is_all_that_is_left(folder, command):
    exact = [*TABLE, "--method", "exact", "--tol", "1e-18", "--passes", "9", "-o", "m.ridge", "-q"]
    code, _, warned = command(*exact)
    assert code == 0
    assert "warning: the certified error is" in warned
    assert package.load("m.ridge").certificate().passes < 9
    assert "give more --passes" not in warned


# What is said on the way


def test_every_pass_is_reported_unless_quiet(folder, command):
    _, _, said = command(*FIT, "--passes", "3", "-o", "m.ridge")
    lines = said.splitlines()
    for number in (2, 3):
        assert f"pass {number}: {N_ROWS} rows" in lines
        assert len([x for x in lines if x.startswith(f"pass {number}: certified error ")]) == 1
    assert "pass 4" not in said
    code, _, said = command(*FIT, "--passes", "3", "-o", "m.ridge", "--quiet")
    assert (code, said) == (0, "")


def test_an_error_above_zero_is_never_shown_as_zero():
    for error in (0.3, 1e-3, 4e-5, 2e-6, 5e-7, 1e-12):
        assert re.search("[1-9]", share(error)), f"{error} reads {share(error)}"


def test_help_tells_of_both_options(tmp_path):
    said = ridgepass("fit", "--help", cwd=tmp_path, env={"COLUMNS": "200"}).stdout.decode()
    assert re.search(r"--passes INT +Passes over the data", said)
    assert re.search(r"--tol FLOAT +Read again until the certified relative error", said)


# What is refused


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--passes", "0"], "--passes 0 is too few"),
        (["--passes", "-2"], "--passes -2 is too few"),
        (["--passes", "x"], "--passes"),
        (["--tol", "0"], "--tol 0 is no tolerance"),
        (["--tol", "-1"], "--tol -1 is no tolerance"),
        (["--tol", "nan"], "--tol nan is no tolerance"),
        (["--tol", "inf"], "--tol inf is no tolerance"),
        (["--tol", "x"], "--tol"),
    ],
)
def test_numbers_that_make_no_sense(folder, command, options, reason):
    code, said, warned = command(*FIT, *options, "-o", "m.ridge")
    assert (code, said) == (2, "")
    assert warned.startswith("ridgepass: error: ")
    assert warned.count("\n") == 1
    assert reason in warned
    assert not (folder / "m.ridge").exists()


class Pipe(io.StringIO):
    """Standard input that tells whether anybody has looked at it."""

    touched = False

    @property
    def buffer(self):
        self.touched = True
        return io.BufferedReader(io.BytesIO(b"x0,y\n1,2\n3,5\n"))


def test_standard_input_is_refused_before_it_is_read(folder, command, monkeypatch):
    pipe = Pipe()
    monkeypatch.setattr(sys, "stdin", pipe)
    for options in (["--passes", "2"], ["--tol", "1e-3"], ["--passes", "5", "--tol", "1e-3"]):
        code, said, warned = command("fit", "-", "-t", "y", "-o", "m.ridge", *options)
        assert (code, said) == (2, "")
        assert warned.startswith("ridgepass: error: standard input cannot be read again")
        assert "--passes" in warned
        assert warned.count("\n") == 1
    assert not pipe.touched
    assert command("fit", "-", "-t", "y", "-o", "m.ridge", "--passes", "1", "-q")[0] == 0
    assert pipe.touched


@pytest.mark.parametrize("number", [2, 3])
def test_a_file_changed_between_passes_is_refused(folder, command, monkeypatch, number):
    def touch():
        os.utime("rows.parquet", ns=(0, 0))

    monkeypatch.setattr(Watch, "update", _at_pass(number, touch))
    code, said, warned = command(*FIT, "--passes", "3", "-o", "m.ridge", "-q")
    assert (code, said) == (2, "")
    assert re.fullmatch(
        r"ridgepass: error: \S+rows\.parquet was changed while it was read, .*\n", warned
    )
    assert not (folder / "m.ridge").exists()


def test_other_rows_are_refused_even_if_their_file_looks_the_same(folder, command, monkeypatch):
    np.save("a.npy", make_frame()[[*NUMBERS, "y"]].to_numpy())

    def change(self, rows, n_bytes):
        times, changed = os.stat("a.npy"), np.load("a.npy")
        changed[7, -1] += 1.0
        np.save("a.npy", changed)
        os.utime("a.npy", ns=(times.st_atime_ns, times.st_mtime_ns))

    monkeypatch.setattr(Watch, "finish", change)
    options = ["-t=-1", *SKETCHED, "-o", "m.ridge", "-q"]
    code, said, warned = command("fit", "a.npy", *options, "--passes", "2")
    assert (code, said) == (2, "")
    assert warned.startswith("ridgepass: error: these are not the rows that the model has learned")
    assert warned.count("\n") == 1
    assert not (folder / "m.ridge").exists()


# Stopping and going on


@pytest.mark.parametrize("kind", FORMATS)
def test_stopped_in_a_pass_it_goes_on_to_the_same_bytes(folder, command, facts, stop_in, kind):
    fit = ["fit", *write(folder, kind)[0], *SKETCHED, "--passes", "4", "-o", "m.ridge"]
    saving = ["--checkpoint", "m.part"]
    facts(*fit)
    whole = (folder / "m.ridge").read_bytes()
    (folder / "m.ridge").unlink()
    code, _, said = stop_in(3, signal.SIGTERM, *fit, *saving, "-q")
    assert code == 130
    assert said.splitlines() == [
        "ridgepass: stopped: the same command with --resume goes on after pass 2"
    ]
    assert not (folder / "m.ridge").exists()
    assert facts("inspect", "m.part")["passes"] == 2
    code, said, warned = command(*fit, *saving, "--resume", "--json")
    assert code == 0
    assert "going on from m.part" in warned
    assert "pass 2" not in warned
    assert "pass 3: certified error" in warned
    assert (folder / "m.ridge").read_bytes() == whole
    assert json.loads(said)["rows_read"] == N_ROWS
    assert not (folder / "m.part").exists()


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("nulls", ["drop", "mean"])
def test_going_on_with_a_tolerance_and_an_alpha_of_its_own(
    folder, command, facts, stop_in, nulls, number
):
    frame = make_frame()
    frame.loc[::7, "x0"] = np.nan
    frame.to_parquet("rows.parquet")
    fit = [*TABLE, *METHOD, "--alpha", "auto", "--nulls", nulls, "--tol", "1e-6", "-o", "m.ridge"]
    assert command(*fit)[0] == 0
    whole = (folder / "m.ridge").read_bytes()
    (folder / "m.ridge").unlink()
    saving = ["--checkpoint", "m.part", "--resume"]
    assert stop_in(number, signal.SIGINT, *fit, *saving)[0] == 130
    assert facts("inspect", "m.part")["passes"] == number - 1
    assert command(*fit, *saving)[0] == 0
    assert (folder / "m.ridge").read_bytes() == whole
    assert not (folder / "m.part").exists()


def test_a_checkpoint_serves_for_more_passes_than_were_asked_for(folder, command, facts, stop_in):
    fit, saving = [*FIT, "-o", "m.ridge"], ["--checkpoint", "m.part", "--resume"]
    facts(*fit, "--passes", "5")
    whole = (folder / "m.ridge").read_bytes()
    assert stop_in(3, signal.SIGINT, *fit, *saving, "--passes", "3")[0] == 130
    assert command(*fit, *saving, "--passes", "5")[0] == 0
    assert (folder / "m.ridge").read_bytes() == whole


def test_a_file_changed_since_the_checkpoint_is_refused(folder, command, stop_in):
    fit = [*FIT, "--passes", "3", "-o", "m.ridge", "--checkpoint", "m.part", "--resume"]
    assert stop_in(3, signal.SIGTERM, *fit)[0] == 130
    os.utime("rows.parquet", ns=(0, 0))
    code, _, warned = command(*fit)
    assert code == 2
    assert "rows.parquet has changed since m.part was written" in warned
    assert not (folder / "m.ridge").exists()


def test_interrupted_without_a_checkpoint_it_leaves_nothing(folder, stop_in):
    before = sorted(os.listdir(folder))
    code, _, said = stop_in(2, signal.SIGINT, *FIT, "--passes", "3", "-o", "m.ridge", "-q")
    assert (code, said) == (130, "ridgepass: interrupted\n")
    assert sorted(os.listdir(folder)) == before


LONG = ["fit", "X.npy", "-t", "y.npy", *SKETCHED, "--passes", "12", "-o", "m.ridge"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """A folder with rows enough to be stopped at, and the model of them."""
    folder, rng = tmp_path_factory.mktemp("long"), np.random.default_rng(0)
    scale = np.exp(-np.arange(60) / 20).astype(np.float32)
    X = rng.standard_normal((30_000, 60), dtype=np.float32) * scale
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", X @ rng.standard_normal(60) + rng.standard_normal(30_000))
    run_well(*LONG, cwd=folder)
    return folder, (folder / "m.ridge").read_bytes()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_real_command_killed_in_a_pass_goes_on(uninterrupted, sent):
    folder, whole = uninterrupted
    command = [*LONG, "--checkpoint", "m.part", "--resume"]
    for _ in range(50):  # a run may be over before the signal is there
        (folder / "m.ridge").unlink()
        running = subprocess.Popen(
            [COMMAND, *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        while (line := running.stderr.readline()) and not line.startswith(b"pass 3: 30,000 rows"):
            pass
        running.send_signal(sent)
        _, said = running.communicate()
        if running.returncode:
            break
    if sent == signal.SIGKILL:
        assert running.returncode == -sent
    else:
        assert running.returncode == 130
        assert b"the same command with --resume goes on after pass" in said
    assert not (folder / "m.ridge").exists()
    assert package.store.read(folder / "m.part").model.certificate().passes >= 2
    done = ridgepass(*command, cwd=folder)
    assert done.returncode == 0
    assert b"going on from m.part" in done.stderr
    assert (folder / "m.ridge").read_bytes() == whole
    assert sorted(os.listdir(folder)) == ["X.npy", "m.ridge", "y.npy"]


# What becomes of a refined model


def test_inspect_shows_the_passes(folder, command, facts):
    fitted = facts(*FIT, "--passes", "3", "-o", "m.ridge")
    found = facts("inspect", "m.ridge")
    for name in ("passes", "certified_error", "training_r2"):
        assert found[name] == fitted[name]
    said = command("inspect", "m.ridge")[1]
    assert re.search(r"certified error \S+ (for|with) .*, by .*, after 3 passes\b", flat(said))
    other = facts("inspect", "m.ridge", "--alpha", "77")
    assert other["passes"] == 1  # it was refined at its own alpha alone
    assert other["alpha"] == 77


def test_intervals_around_predictions_are_much_narrower(folder, command, facts):
    frame = make_frame()
    expected = Ridge(ALPHA).fit(frame[NUMBERS], frame["y"]).predict(frame[NUMBERS])
    found = {}
    for passes in (1, 5):
        facts(*FIT, "--passes", passes, "-o", "m.ridge")
        code, _, warned = command(
            "predict", "m.ridge", "rows.parquet", "--bounds", "-o", "p.parquet", "-q"
        )
        assert (code, warned) == (0, "")
        found[passes] = pd.read_parquet("p.parquet")
        assert (found[passes]["lower"] <= expected).all()
        assert (expected <= found[passes]["upper"]).all()
    once, refined = (found[passes]["upper"] - found[passes]["lower"] for passes in (1, 5))
    assert (refined < 0.02 * once).all()


def test_merged_models_are_of_one_pass_and_say_so(folder, command, facts):
    frame = make_frame()
    fit = [*FIT[2:], "-q", "--json", "--passes"]
    for i, name in enumerate("abc"):
        frame[i * 200 : (i + 1) * 200].to_parquet(f"{name}.parquet")
        facts("fit", f"{name}.parquet", *FIT[2:], "-o", f"{name}1.ridge")
        passes = 1 if name == "c" else 3
        assert command("fit", f"{name}.parquet", *fit, passes, "-o", f"{name}.ridge")[0] == 0
    code, said, warned = command(
        "merge", "a.ridge", "b.ridge", "c.ridge", "-o", "m.ridge", "--json"
    )
    assert code == 0
    assert json.loads(said)["passes"] == 1
    assert re.fullmatch(r"ridgepass: a\.ridge, b\.ridge had read the data again; .*\n", warned)
    plain = facts("merge", "a1.ridge", "b1.ridge", "c1.ridge", "-o", "plain.ridge")
    assert plain["certified_error"] == json.loads(said)["certified_error"]
    assert (folder / "m.ridge").read_bytes() == (folder / "plain.ridge").read_bytes()


def flat(said):
    """Return a table without its line breaks."""
    return " ".join(said.split())
