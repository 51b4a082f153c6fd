"""A small run from the command line to the report."""

import sys

import pytest

from benchmarks.peers import __main__ as program
from benchmarks.peers.contenders import CONTENDERS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
CHOSEN = ("lsqr", "vw-bfgs", "tracked-64")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    # The run of the tests may have BLAS on any number of threads.
    monkeypatch.setattr(program, "versions", lambda command: "versions")
    monkeypatch.setattr(program, "RESULTS", tmp_path / "results")

    def call(*arguments):
        program.main(["--scale", "small", "--kept", str(tmp_path / "kept"), *arguments])
        return capsys.readouterr()

    return call


def test_a_small_run_and_its_continuation(run, monkeypatch, tmp_path):
    arguments = ("--only", "sparse-small", "--contenders", *CHOSEN)
    first = run(*arguments)
    assert "sparse-small: exact ridge" in first.err
    assert first.out.count("## ") == 2
    for label in ("Ridge, lsqr", "Vowpal Wabbit, --bfgs", "**ridgepass** tracked 64"):
        (line,) = [line for line in first.out.splitlines() if label in line and line[0] == "|"]
        seconds, _, passes, error, _ = (
            float(cell.strip("* <")) for cell in line.strip("| ").split(" | ")[1:]
        )
        assert seconds > 0
        assert passes >= 1
        assert error < (1 if "ridgepass" in label else 0.1)
    assert "Where a peer is the better choice" in first.out
    assert "scikit-learn 1." in first.out
    assert str(tmp_path) not in first.out
    monkeypatch.setattr(program, "measure_apart", None)
    again = run(*arguments)
    assert again.out == first.out
    assert again.err == ""
    assert not (tmp_path / "results").exists()


def test_limits_stop_contenders(run):
    arguments = ("--only", "dense-small", "--contenders", "lsqr", "--time-limit", "0.2")
    assert "stopped after 0 s" in run(*arguments).out
    arguments = ("--only", "dense-small", "--contenders", "lsqr", "--memory-limit", "0.02")
    assert "stopped at 0.02 GB" in run(*arguments).out


def test_a_workload_that_the_scale_has_not(run):
    with pytest.raises(SystemExit, match="--scale small has only dense-small, sparse-small"):
        run("--only", "dense-large")


def test_text_that_is_too_long_is_not_written(run, monkeypatch):
    monkeypatch.setattr(program, "TEXT_LIMIT", 1e3)
    out = run("--only", "sparse-small", "--contenders", "vw").out
    assert "its text would take 0.001 GB of disk" in out


def test_every_default_is_written_down(run, monkeypatch, tmp_path, capsys):
    (tmp_path / "results").mkdir()

    def measured(workload, contenders, limits, ledger):
        zero = program.Row(workload.name, "zero", coef_error=1.0, test_error=1.5)
        return [zero, *(program.Row(workload.name, c.key, reason="none") for c in contenders)]

    monkeypatch.setattr(program, "measure", measured)
    program.main([])
    assert (tmp_path / "results" / "peers.md").read_text(encoding="utf-8") in (
        capsys.readouterr().out
    )
    lines = (tmp_path / "results" / "peers.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 6 * len(CONTENDERS)
