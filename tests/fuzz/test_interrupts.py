"""What the fuzzer would say of a half-taken batch, of a lock that is not released, and so on."""

import signal
import time

import numpy as np
import pytest

from fuzz import interrupts
from fuzz.interrupts import Case, CtrlC, Injection, Own, Stopped, Timer
from fuzz.outcome import Outcome, quiet

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")


def make_case(name, seed=0):
    """Return a case of this name whose model has rows already."""
    while True:
        case = Case(np.random.default_rng(seed), Outcome())
        if case.name == name and case.ready and case.old is not None:
            return case
        seed += 1


def work():
    return sum(len(str(i)) for i in range(20))


def test_every_place_can_be_chosen_and_is_the_same_each_time():
    with Injection() as first:
        work()
    with Injection() as second:
        work()
    assert first.count == second.count > 20
    for at in range(1, first.count + 1):
        stop = Injection(at, Stopped)
        with pytest.raises(Stopped), stop:
            work()
        assert stop.fired


@pytest.mark.parametrize("kind", [Timer, CtrlC])
def test_timers_ring(kind):
    stop = kind(0.01, Stopped)
    with pytest.raises(KeyboardInterrupt), stop:
        time.sleep(60)
    assert stop.fired
    assert kind is Timer or stop.finish()


class HalfTaken(Case):
    """Learns from the first of its rows only, and fails."""

    def call(self, model, *companions):
        X, y, *weights = self.rest[0]
        self._learn(model, (X[:1], y[:1], *(w if np.ndim(w) == 0 else w[:1] for w in weights)))
        raise Own


def test_a_half_taken_batch_is_found():
    seed = 0
    with quiet():
        case = make_case("partial_fit", seed)
        while len(case.table) - case.n_seen < 3 or case.table.weights is not None:
            seed += 1
            case = make_case("partial_fit", seed)
        case.__class__ = HalfTaken
        interrupts._interrupt(case, Injection(at=0))
    ((kind, text),) = case.out.failures
    assert kind == "interrupt"
    assert "neither the old one nor the new" in text


def test_a_call_that_does_not_come_back_is_found(monkeypatch):
    monkeypatch.setattr(interrupts, "HANGS_AFTER", 0.05)
    monkeypatch.setattr(interrupts, "probe", lambda: time.sleep(60))
    with quiet():
        case = make_case("merge")
        interrupts._interrupt(case, Injection(at=1, error=Own))
    assert [kind for kind, _ in case.out.failures] == ["hang"]


class BrokenModelError(RuntimeError):
    pass


def test_a_broken_model_must_say_so_in_every_call(monkeypatch):
    def broken(*_, **__):
        raise BrokenModelError

    with quiet():
        case = make_case("partial_fit")
        model = case.fresh()
        # It breaks, and then says so in some calls only.
        for name in ("save", "predict", "at"):
            monkeypatch.setattr(model, name, broken, raising=True)
        case.check(model, [], None, Own(), "here")
    assert {kind for kind, _ in case.out.failures} == {"broken model"}
    said = " ".join(text for _, text in case.out.failures)
    assert "partial_fit of a broken model goes through" in said
    assert "predict of a broken model" not in said
