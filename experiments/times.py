"""How long training and a query take, against the sketch size, the columns and the rows."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from experiments.algorithms import ALGORITHMS, PUBLISHED, named
from experiments.errors import sizes_of
from experiments.scale import Scale
from ridgepass.datasets import Synthetic

BY_SIZE, BY_FEATURES, BY_ROWS = "ℓ", "d", "n"


@dataclass(frozen=True)
class Cell:
    """What is timed: one algorithm at one size of everything, on an axis of the figure."""

    against: str
    algorithm: str
    form: str
    size: int
    n_features: int
    n_rows: int

    @property
    def title(self) -> str:
        """A name to tell it by."""
        sizes = f"ℓ = {self.size}, d = {self.n_features}, n = {self.n_rows}"
        return f"{self.algorithm} {self.form} against {self.against}: {sizes}"


@dataclass(frozen=True)
class Time(Cell):
    """One training of a cell and the first query after it, in seconds."""

    repeat: int
    train: float
    query: float


def cells(scale: Scale) -> Iterator[Cell]:
    """Yield what is to be timed."""
    for algorithm in ALGORITHMS:
        name, form, d, n = algorithm.name, algorithm.form, scale.n_features, scale.n_rows
        one_by_one = name == "rr" and form == PUBLISHED
        for size in sizes_of(algorithm, scale):
            yield Cell(BY_SIZE, name, form, size, d, n)
        fixed = scale.timed_size if algorithm.sized else 0
        for features in scale.timed_features:
            # An inverse takes six times as long as what ridgepass does with a d×d matrix.
            most = scale.most_features_squared // (2 if form == PUBLISHED else 1)
            if not algorithm.squares or features <= most:
                yield Cell(BY_FEATURES, name, form, fixed, features, scale.few_rows)
        for rows in scale.timed_rows:
            if not one_by_one or rows <= scale.most_rows_one_by_one:
                yield Cell(BY_ROWS, name, form, fixed, d, rows)


def measure(cell: Cell, scale: Scale) -> list[Time]:
    """Time one cell on the paper's HR, as often as the scale says."""
    algorithm = named(cell.algorithm, cell.form)
    A, b = Synthetic.high_rank(cell.n_features, seed=0).sample(cell.n_rows)
    alpha = 4.0 * Synthetic.high_rank(cell.n_features).effective_rank  # where ridge does best
    algorithm.train(A[:8], b[:8], cell.size, 0, alpha)  # loads what is loaded at first use
    found: list[Time] = []
    begin = time.perf_counter()
    while len(found) < scale.repeats and (
        (spent := time.perf_counter() - begin) < scale.seconds
        or (len(found) < scale.least_timings and spent < scale.patience)
    ):
        repeat = len(found)
        start = time.perf_counter()
        trained = algorithm.train(A, b, cell.size, repeat, alpha)
        middle = time.perf_counter()
        coef = trained.solve(alpha)
        end = time.perf_counter()
        if not np.isfinite(coef).all():
            raise ArithmeticError(f"{cell} has given coefficients that are not finite")
        found.append(Time(*vars(cell).values(), repeat, middle - start, end - middle))
    return found
