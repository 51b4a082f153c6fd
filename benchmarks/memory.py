"""Peak memory beyond the input batch, each measured in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.report import Figure
from ridgepass import RidgeStream

D, SIZE, DTYPE = 131072, 128, "float32"
ITEMS = 2 * SIZE * D * np.dtype(DTYPE).itemsize


def figures() -> Iterator[Figure]:
    limit = (1.25 * ITEMS + 64e6) / 1e6
    peaks = {}
    for n_rows, batch_rows in ((1000, 100), (4000, 100), (4096, 1024)):
        peaks[n_rows] = peak = measure_apart(n_rows, batch_rows) / 1e6
        yield Figure(
            f"peak memory beyond a batch of {batch_rows}, RFD, d = {D}, ℓ = {SIZE}, {DTYPE}, "
            f"{n_rows} rows and a query",
            peak,
            limit,
            unit=" MB",
        )
    yield Figure("the same, 4000 rows / 1000 rows", peaks[4000] / peaks[1000], 1.02)


def measure_apart(n_rows: int, batch_rows: int) -> int:
    """Return the bytes that a fresh process needs beyond its start and one batch."""
    command = [sys.executable, "-m", "benchmarks.memory", str(n_rows), str(batch_rows)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(n_rows: int, batch_rows: int) -> int:
    rng = np.random.default_rng(0)
    batch = np.empty((batch_rows, D), DTYPE)
    rng.standard_normal(out=batch, dtype=DTYPE)
    targets = rng.standard_normal(batch_rows)
    RidgeStream("rfd", sketch_size=2).update(batch[:4, :4], targets[:4]).solve(1.0)
    before = status("VmRSS")
    model = RidgeStream("rfd", sketch_size=SIZE)
    while model.n_rows < n_rows:
        model.update(batch, targets)
    model.solve(1.0)
    model.certificate(1.0)
    return status("VmHWM") - before


def status(field: str) -> int:
    """Return a line of Linux's account of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


if __name__ == "__main__":
    print(measure(int(sys.argv[1]), int(sys.argv[2])))
