"""Sparse rows against the same rows made dense: speed, and memory in a process of its own.

And the method that is the default on the larger sparse workloads of `benchmarks.peers`, beside that
of the last release.
"""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import last_release
from benchmarks.memory import status
from benchmarks.report import Figure, fastest
from ridgepass import RidgeStream

D, SIZE, NONZEROS = 100_000, 64, 100
WHERE = f"d = {D}, {NONZEROS} non-zeros a row, ℓ = {SIZE}"
# Of tracked: the largest coefficient error, and seconds over those of the last release's anchored.
TARGETS = {"sparse-medium": (0.40, None), "sparse-large": (0.45, 0.2)}


def figures() -> Iterator[Figure]:
    yield from beside_dense()
    yield from beside_last_release()


def beside_dense() -> Iterator[Figure]:
    rows, targets = sparse_rows(2048)
    dense, n_dense = rows[:256].toarray(), 256
    for intercept in (False, True):
        # Each after its first rows, so that the sketch is full and its memory touched.
        of_sparse = started(intercept, rows[:1024], targets[:1024])
        of_dense = started(intercept, dense, targets[:n_dense])
        by_sparse, by_dense = fastest(
            partial(of_sparse.update, rows, targets),
            partial(of_dense.update, dense, targets[:n_dense]),
            seconds=15,
        )
        kind = "with intercept" if intercept else "no intercept"
        ratio = (by_dense / n_dense) / (by_sparse / rows.shape[0])
        yield Figure(f"rows a second, sparse / dense, RFD, {WHERE}, {kind}", ratio, 8.0, False)
    limit = (1.25 * 2 * SIZE * D * 8 + 64e6) / 1e6
    peaks = [measure_apart(n_batches) / 1e6 for n_batches in (4, 16)]
    for n_batches, peak in zip((4, 16), peaks, strict=True):
        yield Figure(
            f"peak memory beyond a sparse batch of 1000, RFD, {WHERE}, intercept, "
            f"{1000 * n_batches} rows and a query",
            peak,
            limit,
            unit=" MB",
        )


def beside_last_release() -> Iterator[Figure]:
    for workload in last_release.SPARSE:
        found = last_release.compared(workload)
        tracked, anchored = found[last_release.TRACKED], found[last_release.ANCHORED]
        most_error, most_seconds = TARGETS[workload.name]
        where = f"{workload.described}, ℓ = {last_release.SIZE}"
        yield Figure(f"coefficient error, tracked, {where}", tracked.coef_error, most_error)
        yield Figure("the same, the last release's anchored", anchored.coef_error, None)
        yield Figure(f"seconds of training, tracked, {where}", tracked.seconds, None, unit=" s")
        ratio = tracked.seconds / anchored.seconds
        yield Figure("the same / the last release's anchored", ratio, most_seconds)


def sparse_rows(n_rows: int) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    columns = rng.integers(D, size=(n_rows, NONZEROS))
    starts = np.arange(0, n_rows * NONZEROS + 1, NONZEROS)
    values = rng.standard_normal(n_rows * NONZEROS)
    rows = sparse.csr_array((values, columns.ravel(), starts), shape=(n_rows, D))
    rows.sum_duplicates()
    return rows, rng.standard_normal(n_rows)


def started(intercept: bool, rows: Any, targets: np.ndarray) -> RidgeStream:
    options = {"sketch_size": SIZE, "fit_intercept": intercept, "probes": 0}
    return RidgeStream("rfd", **options).update(rows, targets)


def measure_apart(n_batches: int) -> int:
    """Return the bytes that a fresh process needs beyond its start and one batch."""
    command = [sys.executable, "-m", "benchmarks.sparse", str(n_batches)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(n_batches: int) -> int:
    rows, targets = sparse_rows(1000)
    started(True, rows[:9, :9], targets[:9]).solve(1.0)
    before = status("VmRSS")
    model = started(True, rows, targets)
    for _ in range(n_batches - 1):
        model.update(rows, targets)
    model.solve(1.0)
    model.certificate(1.0)
    return status("VmHWM") - before


if __name__ == "__main__":
    print(measure(int(sys.argv[1])))
