"""How far reading has come: a bar if a terminal watches, plain lines otherwise."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ridgepass.cli.show import amount, duration, printable, say, share

LINE_EVERY = 10.0  # seconds between plain lines
ASK_SHARE = 0.02  # of the time may go into asking for the certified error


class Watch:
    """Shows rows, rows a second, bytes, the time left and the certified error.

    Parameters
    ----------
    n_rows, n_bytes : int or None
        How much there is to read, if known.
    quiet : bool
        Show nothing.
    ask : callable, optional
        Returns the certified error so far, or None; asked only as often as its cost allows.
    done : int
        Rows read before, by a run that this one resumes.
    label : str
        What is being done.
    """

    def __init__(
        self,
        n_rows: int | None,
        n_bytes: int | None,
        *,
        quiet: bool = False,
        ask: Callable[[], float | None] | None = None,
        done: int = 0,
        label: str = "reading",
    ) -> None:
        self.label = label
        self.n_rows, self.n_bytes, self.quiet, self.ask, self.done = (
            n_rows,
            n_bytes,
            quiet,
            ask,
            done,
        )
        self.start = self.said = self.asked = time.monotonic()
        self.cost, self.error = 0.0, ""
        self.first: tuple[float, int, int] | None = None  # when, rows and bytes
        self.bar: Progress | None = None
        self.task: Any = None

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            self.bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[facts]}", markup=False),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(file=sys.stderr),
                transient=True,
            )
            total = self.n_bytes if self.n_bytes is not None else self.n_rows
            self.task = self.bar.add_task(printable(self.label), total=total, facts="")
            self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def update(self, rows: int, n_bytes: int) -> None:
        """Show how far reading has come; rows and bytes are counted from the first file on."""
        if self.quiet:
            return
        if self.bar is None and self.first is None:  # only now, as most errors come before
            size = "" if self.n_bytes is None else f" {amount(self.n_bytes)}"
            total = "" if self.n_rows is None else f" {self.n_rows:,} rows"
            say(f"{self.label}{total}{' in' if total and size else ''}{size}")
        now = time.monotonic()
        self.first = self.first or (now, rows, n_bytes)
        if self.ask is not None and now - self.asked > max(self.cost / ASK_SHARE, 1.0):
            error = self.ask()
            self.error = "" if error is None else f", certified error {share(error)}"
            self.asked = time.monotonic()
            self.cost = self.asked - now
        if self.bar is not None:
            completed = n_bytes if self.n_bytes is not None else rows
            self.bar.update(self.task, completed=completed, facts=self._facts(rows, n_bytes, now))
        elif now - self.said >= LINE_EVERY:
            self.said = now
            left = self._left(n_bytes, rows, now)
            say(f"{self._facts(rows, n_bytes, now)}{left}")

    def finish(self, rows: int, n_bytes: int) -> None:
        """Say how much was read."""
        if not self.quiet and self.bar is None and rows:
            taken = duration(time.monotonic() - self.start)
            self.error = ""  # that of some rows before; the summary has the model's
            say(f"{self._facts(rows, n_bytes, time.monotonic())}, done in {taken}")

    def _facts(self, rows: int, n_bytes: int, now: float) -> str:
        pace = (rows - self.done) / max(now - self.start, 1e-9)
        size = f", {amount(n_bytes)}" if n_bytes else ""
        return f"{rows:,} rows, {pace:,.0f} rows/s{size}{self.error}"

    def _left(self, n_bytes: int, rows: int, now: float) -> str:
        assert self.first is not None
        start, first_rows, first_bytes = self.first
        total, done, first = (
            (self.n_bytes, n_bytes, first_bytes)
            if self.n_bytes
            else (self.n_rows, rows, first_rows)
        )
        if not total or done <= first:
            return ""
        return f", about {duration((now - start) * max(total - done, 0) / (done - first))} left"
