"""Training as it is by default against one product of the same rows: on one thread, on all cores.

Each case runs in a process of its own. Its rows are a few batches that come twice, so that fewer
gigabytes of them are made; the product is of the same batches. (Rows that come many times are no
stream: the basis learns some of them by heart, and the others are new beside these.)
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks.report import Figure
from ridgepass import RidgeStream
from ridgepass.sketch import TrackedSubspace

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
BASE_ROWS, BATCH_ROWS = 16384, 2048
ALPHA = 1000.0
MOVING = ("settle", "_turn")  # moves and turns that are due, and turns to a new block
# By sketch size: training over the product at most, on one thread and on all cores.
TARGETS = {64: (4.0, 4.6), 256: (2.8, 3.2)}
MOST_MOVING = 15.0  # per cent of training


@dataclass(frozen=True)
class Case:
    """Sizes, and for how many seconds product and training take turns."""

    size: int
    dtype: str
    n_rows: int = 32768
    d: int = 16384
    seconds: float = 40.0


@dataclass(frozen=True)
class Measured:
    """The least seconds of each, the share of moves and turns in all trainings, and the threads."""

    product: float
    training: float
    moving: float
    threads: int


def figures() -> Iterator[Figure]:
    for size, (one, every) in TARGETS.items():
        for dtype in ("float64", "float32"):
            yield from compared(Case(size, dtype), one, all_cores=False)
            yield from compared(Case(size, dtype), every, all_cores=True)


def compared(case: Case, target: float, all_cores: bool) -> Iterator[Figure]:
    """Yield the ratio, and what of it goes into moves and turns."""
    found = measure_apart(case, all_cores)
    threads = "one thread" if found.threads == 1 else f"{found.threads} threads"
    where = f"{case.dtype}, n = {case.n_rows}, d = {case.d}, ℓ = {case.size}, {threads}"
    what = "training, tracked, intercept, 24 probes"
    yield Figure(f"{what} / one product A·Vᵀ, {where}", found.training / found.product, target)
    yield Figure(f"moves and turns in {what}, {where}", 100 * found.moving, MOST_MOVING, unit=" %")


def measure_apart(case: Case, all_cores: bool) -> Measured:
    """Measure in a fresh process, whose BLAS has one thread or as many as there are cores."""
    others = {name: value for name, value in os.environ.items() if name not in THREADS}
    threads = {} if all_cores else dict.fromkeys(THREADS, "1")
    command = [sys.executable, "-m", "benchmarks.training", json.dumps(asdict(case))]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=others | threads
    )
    return Measured(**json.loads(done.stdout))


def measure(case: Case) -> Measured:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((BASE_ROWS, case.d), dtype=case.dtype)
    targets = rng.standard_normal(BASE_ROWS)
    starts = range(0, BASE_ROWS, BATCH_ROWS)
    batches = [(base[i : i + BATCH_ROWS], targets[i : i + BATCH_ROWS]) for i in starts]
    n_batches = case.n_rows // BATCH_ROWS
    V, product = base[: case.size].copy(), np.empty((BATCH_ROWS, case.size), case.dtype)

    def multiply() -> Iterator[None]:
        for A, _ in islice(cycle(batches), n_batches):
            np.matmul(A, V.T, out=product)
            yield

    def train() -> Iterator[None]:
        stream = RidgeStream("tracked", sketch_size=case.size, fit_intercept=True, alpha=ALPHA)
        for A, b in islice(cycle(batches), n_batches):
            stream.update(A, b)
            yield

    products, trainings = [], []
    with timed(TrackedSubspace, MOVING) as moving:
        begin = time.perf_counter()
        while not products or time.perf_counter() - begin < case.seconds:
            products.append(step_seconds(multiply()))
            trainings.append(step_seconds(train()))
    threads = max(pool["num_threads"] for pool in threadpool_info())
    spent = sum(map(sum, trainings))
    return Measured(least_of(products), least_of(trainings), sum(moving) / spent, threads)


def step_seconds(steps: Iterator[None]) -> list[float]:
    """Return how long each step takes."""
    found, begin = [], time.perf_counter()
    for _ in steps:
        end = time.perf_counter()
        found.append(end - begin)
        begin = end
    return found


def least_of(runs: list[list[float]]) -> float:
    """Return the sum over the steps of the least that each took: a step is the same in all runs.

    One run of several seconds is never free of what else the machine does; of each step one is.
    """
    return float(np.min(runs, axis=0).sum())


@contextmanager
def timed(owner: type, names: tuple[str, ...]) -> Iterator[list[float]]:
    """Gather the seconds of every call of some methods; one within another counts as a part."""
    seconds: list[float] = []
    depth = 0

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal depth
            depth += 1
            begin = time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                depth -= 1
                if depth == 0:
                    seconds.append(time.perf_counter() - begin)

        return call

    before = {name: getattr(owner, name) for name in names}
    for name, method in before.items():
        setattr(owner, name, watched(method))
    try:
        yield seconds
    finally:
        for name, method in before.items():
            setattr(owner, name, method)


if __name__ == "__main__":
    print(json.dumps(asdict(measure(Case(**json.loads(sys.argv[1]))))))
