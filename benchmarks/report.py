"""One line per figure: what was measured, what was asked for, whether it is met."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured number with its target, if any; ``at_most`` tells which side is good."""

    what: str
    measured: float
    target: float | None
    at_most: bool = True
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is reached, or none was set."""
        if self.target is None:
            return True
        return self.measured <= self.target if self.at_most else self.measured >= self.target

    def row(self) -> str:
        """Return the figure as a row of a Markdown table."""
        measured = f"{self.measured:.3g}{self.unit}"
        if self.target is None:
            return f"| {self.what} | {measured} | | |"
        sign = "≤" if self.at_most else "≥"
        met = "yes" if self.met else "**no**"
        return f"| {self.what} | {measured} | {sign} {self.target:.3g}{self.unit} | {met} |"


HEADER = "| figure | measured | target | met |\n|---|---|---|---|"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def fastest(*works: Callable[[], object], seconds: float = 0.0) -> list[float]:
    """Return the least seconds of each work.

    They take turns, at least once and for at least ``seconds`` in all, so that a busy spell of the
    machine does not fall on one of them alone.
    """
    best = [float("inf")] * len(works)
    begin = time.perf_counter()
    while True:
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
        if time.perf_counter() - begin >= seconds:
            return best
