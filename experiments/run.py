"""Carry out a run: errors on all cores, then times with the machine to themselves."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from experiments import errors, properties, spectra, times
from experiments.results import Kept, Results, key_of
from experiments.scale import Scale

Tasks = dict[str, Callable[[], list[Any]]]


@dataclass(frozen=True)
class Run:
    """What is measured, where it is kept meanwhile, and who is told of the progress."""

    scale: Scale
    temperatures: Path | None
    folder: Path
    workers: int
    progress: Progress

    def results(self) -> Results:
        """Measure all that is not yet kept, and return the tables."""
        given = self.scale, self.temperatures
        alphas = self._table(
            "alphas", {data: partial(errors.tried_alphas, data, *given) for data in errors.DATA}
        )
        chosen = chosen_alphas(alphas)
        found = self._table(
            "errors",
            {
                f"{data}, draw {repeat}": partial(errors_of, data, repeat, chosen[data], *given)
                for repeat in range(self.scale.repeats)
                for data in errors.DATA
            },
        )
        values = self._table("singular_values", {"all": partial(spectra.singular_values, *given)})
        of_lr = partial(spectra.eigenvalues, self.scale, chosen["LR"], self.temperatures)
        eigenvalues = self._table("eigenvalues", {"LR": of_lr})
        tested = self._table(
            "properties",
            {
                data: partial(properties_of, data, self.scale, chosen, self.temperatures)
                for data in (*errors.DATA, "made")
            },
        )
        # One at a time and with nothing beside it: two processes share the memory's bandwidth.
        timed = self._table(
            "times",
            {
                cell.title: partial(times.measure, cell, self.scale)
                for cell in times.cells(self.scale)
            },
            workers=1,
        )
        return Results(alphas, found, timed, values, eigenvalues, tested)

    def _table(self, table: str, tasks: Tasks, workers: int | None = None) -> pd.DataFrame:
        """Do the tasks that are not kept yet; return what all of them found, in their order."""
        kept = Kept(self.folder, key_of(table, self.scale, temperatures=self.temperatures))
        bar = self.progress.add_task(table.replace("_", " "), total=len(tasks))
        missing = {name: work for name, work in tasks.items() if name not in kept}
        self.progress.advance(bar, len(tasks) - len(missing))
        if missing:
            spawn = multiprocessing.get_context("spawn")  # fork would copy the threads of BLAS
            with ProcessPoolExecutor(workers or self.workers, mp_context=spawn) as pool:
                futures = {pool.submit(work): name for name, work in missing.items()}
                try:
                    for future in as_completed(futures):
                        kept.put(futures[future], future.result())
                        self.progress.advance(bar)
                        self._tell(f"{table}: {futures[future]}")
                except BaseException:  # what is done is kept; what waits need not be done
                    pool.shutdown(cancel_futures=True)
                    raise
        return pd.concat([kept.get(name) for name in tasks], ignore_index=True)

    def _tell(self, line: str) -> None:
        """Print what is done where no bar can be shown, as in a log."""
        if not self.progress.console.is_terminal:
            self.progress.console.print(line, highlight=False, soft_wrap=True)


def chosen_alphas(tried: pd.DataFrame) -> dict[str, float]:
    """Return the alpha of each data set by the paper's procedure: least test error."""
    usual = tried[tried.noise_variance != errors.MORE_NOISE]
    best = usual.loc[usual.groupby("data").prediction_error.idxmin()]
    return {str(data): float(alpha) for data, alpha in zip(best.data, best.alpha, strict=True)}


def errors_of(*arguments: Any) -> list[errors.Error]:
    return list(errors.measure(*arguments))


def properties_of(*arguments: Any) -> list[properties.Property]:
    return list(properties.properties(*arguments))


@contextmanager
def bars() -> Iterator[Progress]:
    """Show a bar for each table."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield progress
