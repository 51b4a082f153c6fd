"""A small share of the fuzzer, always the same; ``make fuzz`` runs the rest."""

import signal

import numpy as np
import pytest

from fuzz.interrupts import run_all_places
from fuzz.outcome import Outcome, quiet
from fuzz.run import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="interrupts need timers"),
]

SEED, GROUPS, EACH = 15, 8, 80


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_false_bound_and_no_half_taken_batch(group):
    failures = {}
    for number in range(group * EACH, (group + 1) * EACH):
        for kind, text in run(SEED, number).failures:
            failures.setdefault((number, kind), text)
    assert not failures, "\n".join(
        f"{SEED}/{number} {kind}: {text}" for (number, kind), text in failures.items()
    )


# By these seeds: a merge, passes, a stream, batches, folds, and another merge.
@pytest.mark.parametrize("seed", [3, 5, 6, 15, 11, 20])
def test_an_interrupt_at_any_place_leaves_the_old_model_or_the_new_one(seed):
    out = Outcome()
    with quiet():
        run_all_places(np.random.default_rng(seed), out, step=101)
    assert not out.failures, "\n".join(f"{kind}: {text}" for kind, text in out.failures)
    assert out.counts["interrupts"] > 10
