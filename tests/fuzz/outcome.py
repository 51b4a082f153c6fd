"""What a configuration came to: counts, and what failed."""

import sys
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.exceptions import NotFittedError

import ridgepass


class Outcome:
    """Counts by kind, and failures as (kind, sentence)."""

    def __init__(self):
        self.counts = Counter()
        self.failures = []
        self.notes = []

    def fail(self, kind, text):
        self.failures.append((kind, text))

    def describe(self):
        return " | ".join(self.notes)


# In memory where there is such a folder: models are written by the thousand.
_MEMORY = Path("/dev/shm")
_FOLDER = tempfile.TemporaryDirectory(
    prefix="ridgepass-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None
)
_PATH = Path(_FOLDER.name) / "model.ridge"


def image(model):
    """Return the bytes that a model is saved as; None if it has learned nothing."""
    try:
        model.save(_PATH)
    except NotFittedError:
        return None
    return _PATH.read_bytes()


def restored(content):
    """Return the model that was saved as these bytes."""
    _PATH.write_bytes(content)
    return ridgepass.load(_PATH)


def is_broken(error):
    """Whether an error says that a model is broken; by name, so that older versions run too."""
    return any(kind.__name__ == "BrokenModelError" for kind in type(error).__mro__)


@contextmanager
def quiet():
    """Say nothing of warnings, nor of interrupts in a destructor, which Python ignores."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = hook
