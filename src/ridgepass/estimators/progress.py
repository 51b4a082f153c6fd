"""How far passes have come, for people who wait."""

import sys
import time
from typing import Any

from ridgepass.refining import Progress, Watch

EVERY = 10.0  # seconds between lines within a pass


class Lines:
    """Prints a line on standard error after each pass, and now and then within it."""

    def __init__(self) -> None:
        self.said = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Take note of a batch or a pass."""
        now, text = time.monotonic(), f"pass {progress.number}: {progress.rows:,} rows"
        if progress.relative is not None:
            text += f", certified error {progress.relative:.2g}"
        elif now - self.said < EVERY:
            return
        self.said = now
        sys.stderr.write(f"{text}\n")


def as_watch(progress: Any) -> Watch | None:
    """Return what is to be told of progress: nobody, a printer, or what a user gave."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return Lines()
    if not callable(progress):
        raise TypeError(f"progress={progress!r} cannot be called: give True, False or a function")
    watch: Watch = progress
    return watch
