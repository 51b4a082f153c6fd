"""Peak memory beyond the input batch, each measured in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Figure
from ridgepass import RidgeStream


@dataclass(frozen=True)
class Case:
    """A stream of so many rows, all drawn into the same batch, and a query at its end."""

    method: str
    n_rows: int
    batch_rows: int
    d: int
    size: int
    dtype: str

    @property
    def limit(self) -> float:
        """What it may take in bytes: tracked keeps basis and image, and a block waits."""
        rows = 3 if self.method == "tracked" else 2
        return 1.25 * rows * self.size * self.d * np.dtype(self.dtype).itemsize + 64e6

    @property
    def options(self) -> dict[str, Any]:
        """What the stream is made with: tracked as by default, the paper's without probes."""
        own = {"alpha": 1000.0, "fit_intercept": True}
        return {"sketch_size": self.size, **(own if self.method == "tracked" else {"probes": 0})}


WIDE = {"d": 131072, "size": 128, "dtype": "float32"}
ROWS_OF_TRACKED = 32768


def figures() -> Iterator[Figure]:
    for method in ("rfd", "tracked"):
        # From the ninth block of tracked on, after which no array is touched for the first time.
        rows = ((2000, 100), (4000, 100), (4096, 1024))
        yield from compared([Case(method, n, batch, **WIDE) for n, batch in rows], slice(2))
    for dtype in ("float64", "float32"):
        for size in (64, 256):
            rows = (ROWS_OF_TRACKED, 2 * ROWS_OF_TRACKED)
            cases = [Case("tracked", n, 1024, 16384, size, dtype) for n in rows]
            yield from compared(cases, slice(2))


def compared(cases: list[Case], alike: slice) -> Iterator[Figure]:
    """Yield the peak of each, and how the two that differ in their number of rows compare."""
    peaks = []
    for case in cases:
        peaks.append(measure_apart(case))
        name = "RFD" if case.method == "rfd" else f"{case.method}, intercept"
        yield Figure(
            f"peak memory beyond a batch of {case.batch_rows}, {name}, d = {case.d}, "
            f"ℓ = {case.size}, {case.dtype}, {case.n_rows} rows and a query",
            peaks[-1] / 1e6,
            case.limit / 1e6,
            unit=" MB",
        )
    few, many = cases[alike]
    less, more = peaks[alike]
    yield Figure(f"the same, {many.n_rows} rows / {few.n_rows} rows", more / less, 1.02)


def measure_apart(case: Case) -> int:
    """Return the bytes that a fresh process needs beyond its start and one batch."""
    command = [sys.executable, "-m", "benchmarks.memory", json.dumps(asdict(case))]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(case: Case) -> int:
    rng = np.random.default_rng(0)
    batch = np.empty((case.batch_rows, case.d), case.dtype)
    rng.standard_normal(out=batch, dtype=case.dtype)  # all its memory is touched
    targets = rng.standard_normal(case.batch_rows)
    first = RidgeStream(case.method, **case.options | {"sketch_size": 2})
    first.update(batch[:9, :4], targets[:9]).solve(1.0)
    before = status("VmRSS")
    model = RidgeStream(case.method, **case.options)
    while model.n_rows < case.n_rows:
        model.update(batch, targets)
        rng.standard_normal(out=batch, dtype=case.dtype)  # or all rows would fit into a sketch
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
    print(measure(Case(**json.loads(sys.argv[1]))))
