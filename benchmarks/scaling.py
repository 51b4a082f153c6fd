"""Cost per row against n, d and ℓ: a plot and a fitted exponent for each."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.report import Figure
from ridgepass import RidgeStream

PLOT = Path(__file__).parent / "results" / "scaling.svg"
SWEEPS = {
    # what varies: (values, the fixed ones, the exponent of cost per row, and how far off it may be)
    "n": ([2**14, 2**16, 2**18, 1_000_000], {"d": 256, "ell": 32}, 0.0, 0.03),
    "d": ([2**k for k in range(11, 17)], {"n": 1024, "ell": 64}, 1.0, 0.1),
    "ell": ([16, 32, 64, 128, 256, 512], {"n": 2048, "d": 16384}, 1.0, 0.1),
}
NAMES = {"n": "rows n", "d": "features d", "ell": "sketch size ℓ"}


def figures() -> Iterator[Figure]:
    curves = {}
    for name, (values, fixed, exponent, slack) in SWEEPS.items():
        costs = [best_seconds_per_row(**{**fixed, name: value}) for value in values]
        curves[name] = (values, costs)
        slope = fitted_exponent(values, costs)
        where = ", ".join(f"{NAMES[key].split()[-1]} = {value}" for key, value in fixed.items())
        span = f"{values[0]:,} … {values[-1]:,}"
        yield Figure(
            f"exponent of the cost per row in {NAMES[name]} = {span} ({where})",
            slope,
            exponent + slack,
        )
    draw(curves)


def fitted_exponent(values: list[int], costs: list[float]) -> float:
    return float(np.polyfit(np.log(values), np.log(costs), 1)[0])


def best_seconds_per_row(n: int, d: int, ell: int) -> float:
    return min(seconds_per_row(n, d, ell) for _ in range(3))


def seconds_per_row(n: int, d: int, ell: int) -> float:
    rng = np.random.default_rng(0)
    batch_rows = min(n, max(8 * ell, 2**24 // d))
    A, b = rng.standard_normal((batch_rows, d)), rng.standard_normal(batch_rows)
    model = RidgeStream("fd", sketch_size=ell, probes=0)
    model.update(A[: 4 * ell], b[: 4 * ell])  # memory is touched, the sketch is full
    rows, start = 0, time.perf_counter()
    while rows < n:
        taken = min(batch_rows, n - rows)
        model.update(A[:taken], b[:taken])
        rows += taken
    return (time.perf_counter() - start) / n


def draw(curves: dict[str, tuple[list[int], list[float]]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ridgepass"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(11, 3.2), layout="constrained")
    for axis, (name, (values, costs)) in zip(axes, curves.items(), strict=True):
        micros = np.array(costs) * 1e6
        exponent = SWEEPS[name][2]
        ideal = micros[-1] * (np.array(values) / values[-1]) ** exponent
        label = "flat" if exponent == 0 else "linear"
        axis.loglog(values, ideal, color="0.7", linestyle="--", label=label)
        fitted = f"FD, exponent {fitted_exponent(values, costs):.2f}"
        axis.loglog(values, micros, marker="o", color="#1f5fa8", label=fitted)
        axis.set_ylim(micros.min() / 3, micros.max() * 3)
        axis.minorticks_off()
        axis.set_xticks(values, [short(value) for value in values])
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_yticks(
            [
                tick
                for tick in (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
                if micros.min() / 3 < tick < micros.max() * 3
            ]
        )
        axis.set_xlabel(NAMES[name])
        axis.legend(frameon=False, loc="upper left")
    axes[0].set_ylabel("microseconds per row")
    figure.suptitle("Cost of one row, float64, one BLAS thread", fontsize="medium")
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, metadata={"Date": None})


def short(value: int) -> str:
    """Write 16384 as 16k and a million as 1M."""
    for size, letter in ((10**6, "M"), (1024, "k")):
        if value >= size and value % size == 0:
            return f"{value // size}{letter}"
    return str(value)
