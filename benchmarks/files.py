"""Training from Parquet against training from memory, and the command's peak memory."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Figure, fastest
from ridgepass import StreamingRidge

D, SIZE, ALPHA = 1024, 64, 100.0
SPEED_ROWS = 65_536
GIGABYTE_ROWS = 10**9 // (4 * D)
BATCH = 2048


def figures() -> Iterator[Figure]:
    what = f"Parquet, an embedding of {D:,} floats, ℓ = {SIZE}"
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        X, y = rows(rng, SPEED_ROWS)
        file = Path(folder) / "speed.parquet"
        pq.write_table(table(X, y), file)
        from_memory, from_file = fastest(
            lambda: fit_arrays(X, y), lambda: fit_file(file), seconds=30.0
        )
        yield Figure(f"rows a second, {what} / memory", from_memory / from_file, 0.7, False)
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        for n_gigabytes in (1, 4):
            while len(list(Path(folder).iterdir())) < n_gigabytes:
                write_gigabyte(Path(folder))
            peaks[n_gigabytes] = peak_memory(folder)
            yield Figure(
                f"peak memory of ridgepass fit, {n_gigabytes} GB of {what}",
                peaks[n_gigabytes] / 1e6,
                400,
                unit=" MB",
            )
    yield Figure("the same, 4 GB / 1 GB", peaks[4] / peaks[1], 1.05)


def rows(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n_rows, D), dtype=np.float32)
    X *= np.exp(-np.arange(D) / 200, dtype=np.float32)
    return X, X[:, :50].sum(axis=1) + rng.standard_normal(n_rows)


def table(X: np.ndarray, y: np.ndarray) -> pa.Table:
    return pa.table({"embedding": pa.FixedSizeListArray.from_arrays(X.ravel(), D), "y": y})


def write_gigabyte(folder: Path) -> None:
    """Write a file of one row group, the hardest to read in little memory."""
    number = len(list(folder.iterdir()))
    rng = np.random.default_rng(number)
    X, y = rows(rng, GIGABYTE_ROWS)
    pq.write_table(table(X, y), folder / f"{number}.parquet", row_group_size=GIGABYTE_ROWS)


def fit_arrays(X: np.ndarray, y: np.ndarray) -> None:
    model = StreamingRidge(ALPHA, sketch_size=SIZE)
    for start in range(0, len(X), BATCH):
        model.partial_fit(X[start : start + BATCH], y[start : start + BATCH])
    model.coef_  # noqa: B018 - solved for when asked for


def fit_file(file: Path) -> None:
    model = StreamingRidge(ALPHA, sketch_size=SIZE).fit_stream(file, target="y")
    model.coef_  # noqa: B018 - solved for when asked for


def peak_memory(folder: str) -> int:
    """Return what the command itself says of its peak."""
    options = ["--target", "y", "--sketch-size", str(SIZE), "--alpha", str(ALPHA), "--json"]
    command = [sys.executable, "-m", "ridgepass", "fit", folder, *options]
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [*command, "-o", f"{place}/model.ridge", "--quiet"], check=True, capture_output=True
        )
    return int(json.loads(done.stdout)["peak_memory"])
