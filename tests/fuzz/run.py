"""One configuration, from its seed and number alone."""

import traceback

import numpy as np

from fuzz.failed_calls import run_failed_calls
from fuzz.interrupts import run_interrupts
from fuzz.outcome import Outcome, quiet
from fuzz.training import run_training
from fuzz.verifying import run_verify

# What a configuration is about, and its share of all.
KINDS = {
    "training": (run_training, 0.7),
    "verify": (run_verify, 0.12),
    "failed calls": (run_failed_calls, 0.08),
    "interrupts": (run_interrupts, 0.1),
}


def kind_of(rng):
    """Draw what a configuration is about."""
    names, chances = list(KINDS), np.array([share for _, share in KINDS.values()])
    return str(rng.choice(names, p=chances / chances.sum()))


def run(seed, number, kind=None):
    """Run a configuration; what is raised in it is a failure as well."""
    rng, out = np.random.default_rng([seed, number]), Outcome()
    kind = kind or kind_of(rng)
    out.notes.append(kind)
    out.counts["configurations"] += 1
    out.counts[f"{kind} configurations"] += 1
    with quiet():
        try:
            KINDS[kind][0](rng, out)
        except Exception as error:
            place = traceback.format_exc(limit=-3)
            out.fail("error in a configuration", f"{type(error).__name__}: {error}\n{place}")
    return out
