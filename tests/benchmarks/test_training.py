"""Training beside one product, and memory, each in a process of its own."""

import sys

import pytest

from benchmarks import memory, training


class Slow:
    def work(self):
        return self.other() + 1

    def other(self):
        return 1


def test_seconds_inside_methods_are_gathered_and_the_methods_put_back():
    before = Slow.work
    with training.timed(Slow, ("work", "other")) as seconds:
        assert Slow().work() == 2
        assert Slow().other() == 1
    assert len(seconds) == 2  # the call within the first is a part of it
    assert Slow.work is before


@pytest.mark.slow
@pytest.mark.parametrize("all_cores", [False, True])
def test_training_apart(all_cores):
    case = training.Case(size=8, dtype="float32", n_rows=4096, d=64, seconds=0.0)
    found = training.measure_apart(case, all_cores)
    assert found.training > found.product > 0
    assert 0 < found.moving < 1
    assert found.threads >= 1 if all_cores else found.threads == 1
    ratio, moving = training.compared(case, 4.0, all_cores=False)
    assert "n = 4096, d = 64, ℓ = 8, one thread" in ratio.what
    assert moving.unit == " %"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_apart():
    cases = [memory.Case("tracked", n, 100, 2000, 8, "float32") for n in (200, 400)]
    *peaks, flat = memory.compared(cases, slice(2))
    assert [figure.met for figure in peaks] == [True, True]
    assert "tracked, intercept" in peaks[0].what
    assert flat.what == "the same, 400 rows / 200 rows"
