"""Stream the paper's HR data through FDrr, RFDrr and our own sketch, beside exact ridge.

Each method runs in a process of its own, so that its memory can be measured.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ridgepass.datasets import Synthetic
from ridgepass.kernels import Float64
from ridgepass.resources import peak_memory
from ridgepass.stream import RidgeStream

# Each with the passes it takes over the rows.
RUNS = {
    "rr, exact": ("exact", 1),
    "FDrr": ("fd", 1),
    "RFDrr": ("rfd", 1),
    "tracked": ("tracked", 1),
    "  2 passes": ("tracked", 2),
    "  4 passes": ("tracked", 4),
}


@dataclass(frozen=True)
class Options:
    """Sizes of the demo."""

    rows: int
    features: int
    sketch_size: int
    alpha: float


def run_demo(rows: int, features: int, sketch_size: int, alpha: float) -> None:
    """Print how each method does."""
    options = Options(rows, features, sketch_size, alpha)
    for name, least in {"rows": 1, "features": 2, "sketch_size": 2, "alpha": 1e-9}.items():
        if not getattr(options, name) >= least:
            raise ValueError(f"--{name.replace('_', '-')} must be at least {least:g}")
    print(
        f"HR data of the paper: {options.rows:,} rows x {options.features:,} features, "
        f"streamed in batches of 1,000; sketch size {options.sketch_size}, "
        f"alpha {options.alpha:g}\n"
    )
    print(
        f"{'method':<11}{'error':>10}{'estimate':>10}{'certified':>11}{'test MSE':>10}"
        f"{'fit s':>8}{'query ms':>10}{'model MB':>10}{'peak MB':>9}",
        flush=True,
    )
    exact: Float64 | None = None
    for title, (method, passes) in RUNS.items():
        result = run_apart(method, passes, options)
        coef = np.array(result["coef"])
        exact = coef if exact is None else exact
        error = float(np.linalg.norm(coef - exact) / np.linalg.norm(exact))
        print(
            f"{title:<11}{error:>10.2g}{result['estimate']:>10.2g}{result['certified']:>11.2g}"
            f"{result['test_mse']:>10.4f}"
            f"{result['fit_seconds']:>8.2f}{1000 * result['query_seconds']:>10.1f}"
            f"{result['model_bytes'] / 1e6:>10.1f}{result['peak_bytes'] / 1e6:>9.0f}",
            flush=True,
        )
    print(
        "\nerror:     |x - exact| / |exact|, against the first line"
        "\nestimate:  what the method itself takes it to be, from the rows it has read"
        "\ncertified: what it proves of it, but for one case in a million"
        "\nfit s:     learning and all passes, without making the rows"
        "\nmodel MB:  what the model holds on to; it does not grow with the rows"
        "\npeak MB:   the most memory ever used, beyond the program and its batches of rows"
    )


def run_apart(method: str, passes: int, options: Options) -> dict[str, Any]:
    """Run one method in a fresh process."""
    task = json.dumps({"method": method, "passes": passes, **asdict(options)})
    command = [sys.executable, "-m", "ridgepass.demo", task]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def run(method: str, passes: int, options: Options) -> dict[str, Any]:
    """Fit, refine, query and test one method."""
    data = Synthetic.high_rank(options.features)

    def batches(n_rows: int, part: int) -> Iterator[tuple[Float64, Float64]]:
        return data.batches(n_rows, 1000, part)

    for A, b in batches(2000, 1):  # two batches live at a time; they are not the model's
        RidgeStream(method, sketch_size=2).update(A[:4, :4], b[:4]).solve(1.0)
    before = peak_memory()

    stream = RidgeStream(method, sketch_size=options.sketch_size, alpha=options.alpha)
    fit_seconds = 0.0
    for A, b in batches(options.rows, 0):
        start = time.perf_counter()
        stream.update(A, b)
        fit_seconds += time.perf_counter() - start
    for _ in range(1, passes):
        clock, start = Clock(batches(options.rows, 0)), time.perf_counter()
        stream.refine(clock, options.alpha)
        fit_seconds += time.perf_counter() - start - clock.seconds
    start = time.perf_counter()
    coef = stream.solve(options.alpha)
    query_seconds = time.perf_counter() - start
    peak, proof = peak_memory() - before, stream.certificate(options.alpha)
    errors = [np.square(A @ coef - b) for A, b in batches(2048, 1)]
    return {
        "coef": coef.tolist(),
        "certified": proof.relative,
        "estimate": proof.relative_estimate,
        "test_mse": float(np.concatenate(errors).mean()),
        "fit_seconds": fit_seconds,
        "query_seconds": query_seconds,
        "model_bytes": stream.nbytes,
        "peak_bytes": peak,
    }


class Clock:
    """Counts the seconds that making rows takes, which no method is to blame for."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self.rows, self.seconds = rows, 0.0

    def __iter__(self) -> Iterator[Any]:
        while True:
            start = time.perf_counter()
            batch = next(self.rows, None)
            self.seconds += time.perf_counter() - start
            if batch is None:
                return
            yield batch


if __name__ == "__main__":  # one method, for `run_apart`
    task = json.loads(sys.argv[1])
    json.dump(run(task.pop("method"), task.pop("passes"), Options(**task)), sys.stdout)
