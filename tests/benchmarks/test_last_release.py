"""The last release's method, run from its own source."""

import subprocess

import pytest

from benchmarks import last_release
from benchmarks.last_release import ANCHORED, COMMIT, RFD, ROOT, TRACKED, Learned
from benchmarks.peers.workloads import Workload

TINY = Workload("tiny", "Zipf", 1500, 300, 1.0, nonzeros=10)


def has_release():
    command = ["git", "-C", str(ROOT), "cat-file", "-e", f"{COMMIT}^{{commit}}"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not has_release(), reason="the last release is not in this clone")
def test_all_learn_the_same_rows():
    found = last_release.compared(TINY, 16)
    assert list(found) == [TRACKED, RFD, ANCHORED]
    for one in found.values():
        assert one.seconds > 0
        assert 0 < one.coef_error < 1
        assert len(one.certified) <= last_release.MOST_PASSES
        assert one.certified[-1] < one.certified[0]
    assert found[TRACKED].passes <= found[ANCHORED].passes
    assert last_release.compared(TINY, 16) is found


def test_passes_are_counted_up_to_the_goal():
    assert Learned(1.0, 0.1, (2.0, 0.1, 1e-4)).passes == 3
    assert Learned(1.0, 0.1, (2.0, 0.1)).passes == float("inf")


def test_without_the_release_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(last_release, "COMMIT", "0" * 40)
    with pytest.raises(SystemExit, match="taken out of git"):
        last_release.take_out(tmp_path)
