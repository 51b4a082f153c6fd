"""Comparing streams to the last bit."""

import numpy as np
from scipy import sparse

from ridgepass.intake import Intake

# Unused rows are noise; how often a basis was turned is for tests; and whether blocks may come with
# their mean is asked before every batch.
LEFT_OUT = {"_rows", "_targets", "_weights", "n_moves", "n_turns", "implicit"}


def everything(model):
    """All numbers a stream holds, for comparing to the last bit."""
    found = []

    def collect(value):
        if isinstance(value, np.ndarray):
            found.append(value.copy())
        elif isinstance(value, int | float):
            found.append(value)
        elif hasattr(value, "__dict__"):
            for name, part in sorted(vars(value).items()):
                if name not in LEFT_OUT:
                    collect(part)
        if isinstance(value, Intake):
            for part in value.waiting():
                collect(part.toarray() if sparse.issparse(part) else part)

    collect(model._state)
    return found


def assert_unchanged(before, model):
    for kept, now in zip(before, everything(model), strict=True):
        np.testing.assert_array_equal(kept, now)


def assert_same_bits(left, right):
    assert_unchanged(everything(left), right)
