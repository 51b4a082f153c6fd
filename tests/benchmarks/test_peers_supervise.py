"""Contenders in processes of their own, and their limits."""

import sys

import numpy as np
import pytest

from benchmarks.peers.contenders import BY_KEY
from benchmarks.peers.storage import Rows, write
from benchmarks.peers.supervise import Limits, StoppedError, measure_apart, watched
from benchmarks.peers.worker import measure
from benchmarks.peers.workloads import Workload

WORKLOAD = Workload("tiny", "HR", 6000, 1000, 8.0)


def python(code, limits):
    return watched([sys.executable, "-c", code], limits)


def test_a_process_is_stopped_at_its_time():
    with pytest.raises(StoppedError, match="stopped after 1 s"):
        python("import time; time.sleep(600)", Limits(seconds=1))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_is_stopped_at_its_memory_and_not_for_what_it_only_reserves():
    touched = "import time; held = bytearray(b'1') * 400_000_000; time.sleep(600)"
    with pytest.raises(StoppedError, match=r"stopped at 0\.2 GB"):
        python(touched, Limits(seconds=600, bytes=2e8))
    reserved = "import mmap, time; held = mmap.mmap(-1, 400_000_000); time.sleep(0.5)"
    assert python(reserved, Limits(seconds=600, bytes=2e8))[0] == 0


def test_much_output_does_not_block():
    code, output, _ = python("print('x' * 1_000_000)", Limits(seconds=600))
    assert (code, len(output.strip())) == (0, 1_000_000)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_contender_apart(tmp_path):
    write(WORKLOAD, tmp_path)
    coef_file = tmp_path / "coef.npy"
    found = measure_apart("cholesky", tmp_path, coef_file, WORKLOAD.alpha, Limits())
    assert found["seconds"] > 0
    assert found["passes"] == 1
    assert 48e6 < found["bytes"] < 200e6  # the rows, loaded whole, are 48 MB
    A, b = Rows(tmp_path).whole()
    x = np.linalg.solve(A.T @ A + WORKLOAD.alpha * np.eye(1000), A.T @ b)
    assert np.load(coef_file, allow_pickle=False) == pytest.approx(x, abs=1e-9)


def test_a_failure_is_told_without_paths(tmp_path, capsys):
    found = measure_apart("stacked-svd", tmp_path / "none", tmp_path / "coef", 1.0, Limits())
    assert found == {"reason": "failed: FileNotFoundError"}
    assert "about.json" in capsys.readouterr().err


def test_coefficients_that_are_no_numbers_have_diverged(tmp_path, monkeypatch):
    write(Workload("tiny", "HR", 20, 3, 8.0), tmp_path)
    monkeypatch.setattr(
        BY_KEY["lsqr"].load(), "fit", lambda rows, alpha, solver: [1.0, np.nan, 0.0]
    )
    found = measure(BY_KEY["lsqr"], Rows(tmp_path), 1.0, tmp_path / "coef.npy")
    assert found == {"reason": "diverged"}


def test_what_cannot_be_allocated_is_told(tmp_path, monkeypatch):
    write(Workload("tiny", "HR", 20, 3, 8.0), tmp_path)
    monkeypatch.setattr(
        BY_KEY["lsqr"].load(), "fit", lambda rows, alpha, solver: np.empty((10**9, 10**9))
    )
    found = measure(BY_KEY["lsqr"], Rows(tmp_path), 1.0, tmp_path / "coef.npy")
    assert found["reason"].startswith("unable to allocate")
