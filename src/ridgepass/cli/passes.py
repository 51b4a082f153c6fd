"""Passes after the first: the data is read again until the answer is good enough."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ridgepass.cli.progress import Watch
from ridgepass.cli.show import as_certified, certified, passes_of, say, share
from ridgepass.data import Batches
from ridgepass.estimators.refinable import MOST_PASSES
from ridgepass.refining import Progress


@dataclass(frozen=True)
class Passes:
    """How often the data may be read in all, and the certified error at which to stop sooner."""

    most: int = 1
    tol: float | None = None

    @classmethod
    def of(cls, passes: int | None, tol: float | None, alpha: float | None) -> "Passes":
        """Check what a user gave."""
        if tol is not None and alpha == 0:
            raise ValueError("--alpha 0 has no certificate: give --passes instead of --tol")
        if passes is not None and passes < 1:
            raise ValueError(f"--passes {passes} is too few: give at least 1")
        if tol is not None and not 0 < tol < float("inf"):
            raise ValueError(f"--tol {tol:g} is no tolerance: give a number above zero")
        default = 1 if tol is None else 1 + MOST_PASSES
        return cls(default if passes is None else passes, tol)

    def run(self, model: Any, batches: Batches, *, quiet: bool, keep: Callable[[], None]) -> None:
        """Read again as often as wanted; ``keep`` is called before that, and after each pass."""
        error = None if self.tol is None else certified(model)
        while passes_of(model) < self.most and not self._met(error):
            number = passes_of(model) + 1
            if number == 2:
                keep()
            told: list[Progress] = []
            with Watch(model.n_samples_seen_, None, quiet=quiet, label=f"pass {number}:") as watch:

                def update(progress: Progress, watch: Watch = watch, told: Any = told) -> None:
                    watch.update(progress.rows, 0)
                    told[:] = [progress]

                model.refine(batches, progress=update)
            if not told:
                if not quiet:
                    say(f"pass {number} is not needed: rounding is all that is left")
                break
            error = as_certified(told[0].relative)
            if not quiet:
                say(f"pass {number}: certified error {share(error)}")
            keep()

    def _met(self, error: float | None) -> bool:
        return self.tol is not None and error is not None and error <= self.tol

    def warn(self, model: Any) -> None:
        """Say so if the tolerance was not reached."""
        error = None if self.tol is None else certified(model)
        if self.tol is None or self._met(error):
            return
        remedy = "give more --passes, or a larger --sketch-size"
        if passes_of(model) < self.most:
            remedy = "rounding allows no more"
        say(
            f"ridgepass: warning: the certified error is {share(error)}, not yet "
            f"{share(self.tol)}: {remedy}"
        )
