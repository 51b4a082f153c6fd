"""Peak memory of reading, each case in a process of its own."""

import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

PROBE = """
import sys
from pathlib import Path
import numpy as np, duckdb, pyarrow as pa, pyarrow.parquet, pyarrow.dataset, pyarrow.ipc
from ridgepass import StreamingRidge

def status(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

kind, given, n_rows, result = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
d = 40
warm = pa.table({f"x{i}": np.arange(50.0) for i in range(3)})
StreamingRidge().fit_stream(warm, target="x0").coef_

def batches():
    rng = np.random.default_rng(0)
    for _ in range(n_rows // 10_000):
        columns = {f"x{i}": rng.standard_normal(10_000) for i in range(d)}
        yield pa.RecordBatch.from_pydict(columns)

if kind == "duckdb":
    duckdb.sql("set threads = 1")
    duckdb.sql("set enable_progress_bar = false")
    columns = ", ".join(f"sin(range * {i + 1}) as x{i}" for i in range(d))
    source = duckdb.sql(f"select {columns} from range({n_rows})")
elif kind == "reader":
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(d)])
    source = pa.RecordBatchReader.from_batches(schema, batches())
elif kind == "dataset":
    source = pa.dataset.dataset(given)
else:
    source = given
before = status("VmRSS")
target = "0" if given.endswith(".npy") else "x0"
one_hot = {"t": ["a word", "another"]} if kind == "text" else None
model = StreamingRidge().fit_stream(source, target=target, one_hot=one_hot)
assert model.n_samples_seen_ == n_rows, model.n_samples_seen_
result.write_text(str(status("VmHWM") - before))
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's account of the process"),
]


@pytest.fixture
def peak(tmp_path):
    def measure(kind, given, n_rows):
        result = tmp_path / "peak"  # standard output is anybody's: DuckDB may show a bar there
        command = [sys.executable, "-c", PROBE, kind, str(given), str(n_rows), str(result)]
        subprocess.run(command, capture_output=True, check=True)
        return int(result.read_text())

    return measure


def columns(n_rows, d=40):
    rng = np.random.default_rng(0)
    return {f"x{i}": rng.standard_normal(n_rows) for i in range(d)}


@pytest.mark.parametrize("kind", ["duckdb", "reader"])
def test_streams_are_not_materialised(peak, kind):
    n_rows = 800_000  # 256 MB
    assert peak(kind, "", n_rows) < 90e6


def write_one_batch(table, path, new):
    with new(path, table.schema) as writer:
        writer.write_table(table)


def with_text(table):
    """Few numbers, and text as polars keeps it: too long to stand beside its length."""
    words = pa.array(["a word", "another", "some longer text " * 40])
    text = words.take(np.arange(len(table)) % 3).cast(pa.string_view())
    return table.select([f"x{i}" for i in range(10)]).append_column("t", text)


WRITERS = {
    "parquet": lambda t, p: pa.parquet.write_table(t, p, row_group_size=len(t), compression="none"),
    "dataset.parquet": lambda t, p: pa.parquet.write_table(t, p, row_group_size=20_000),
    "arrow": lambda t, p: pl.from_arrow(t).write_ipc(p, compression="uncompressed"),
    "one batch.arrow": lambda t, p: write_one_batch(t, p, pa.ipc.new_file),
    "one batch.arrows": lambda t, p: write_one_batch(t, p, pa.ipc.new_stream),
    "text.arrow": lambda t, p: write_one_batch(with_text(t), p, pa.ipc.new_file),
    "npy": lambda t, p: np.save(p, np.column_stack([t[name] for name in t.schema.names])),
    "csv": lambda t, p: pa.csv.write_csv(t, p),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_files_are_not_read_at_once(tmp_path, peak, kind):
    given = {"dataset.parquet": "dataset", "text.arrow": "text"}.get(kind, "file")
    peaks, path = [], tmp_path / f"a.{kind}"
    for n_rows in (30_000, 120_000) if kind == "csv" else (200_000, 800_000):
        WRITERS[kind](pa.table(columns(n_rows)), str(path))
        peaks.append(peak(given, path, n_rows))
    assert path.stat().st_size > (80e6 if kind == "csv" else 200e6)
    # Of 150 MB more; what readers hold at once depends on how busy the machine is.
    assert peaks[1] < peaks[0] + 60e6
    assert peaks[1] < 220e6


def test_wide_files_take_a_page_of_each_column(tmp_path, peak):
    d, n_rows = 2000, 20_000
    base = np.random.default_rng(0).standard_normal(n_rows)
    table = pa.table({f"x{i}": base + i for i in range(d)})
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(table, path, compression="none", use_dictionary=False,
                           data_page_size=16 << 10, write_batch_size=512)  # fmt: skip
    # The exact model of 2,000 features takes 32 MB, and solving as much again.
    assert peak("file", path, n_rows) < 260e6
