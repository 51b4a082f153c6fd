"""Peak memory, each case in a process of its own."""

import subprocess
import sys

import pytest

from ridgepass.estimators.budget import sketch_bytes

PROBE = """
import sys
import numpy as np
from pathlib import Path
from ridgepass import RidgeStream

def status(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

method, dtype = sys.argv[1:3]
n_rows, batch_rows, d, size, probes = map(int, sys.argv[3:])
batch = np.empty((batch_rows, d), dtype)
np.random.default_rng(0).standard_normal(out=batch, dtype=dtype)
targets = np.ones(batch_rows)
RidgeStream(method, sketch_size=2).update(batch[:9, :9], targets[:9]).certificate(1.0)
before = status("VmRSS")
model = RidgeStream(method, sketch_size=size, probes=probes)
while model.n_rows < n_rows:
    model.update(batch, targets)
model.solve(1.0)
model.certificate(1.0)
print(status("VmHWM") - before)
"""


def peak(*arguments):
    command = [sys.executable, "-c", PROBE, *map(str, arguments)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's account of the process")
@pytest.mark.parametrize("method", ["2lfd", "cs", "fd", "isvd", "rfd", "rp"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch_rows", [50, 512])
def test_peak_memory_is_two_sketches_whatever_the_length(method, dtype, batch_rows):
    d, size = 40_000, 128
    limit = 1.25 * 2 * size * d * (4 if dtype == "float32" else 8) + 16e6
    short = peak(method, dtype, 300, batch_rows, d, size, 0)
    long = peak(method, dtype, 1500, batch_rows, d, size, 0)
    assert long <= limit
    assert long <= 1.1 * short + 4e6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's account of the process")
@pytest.mark.parametrize("method", ["rfd", "tracked"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_peak_memory_is_what_a_budget_counts_with(method, dtype):
    d, size, itemsize = 40_000, 128, 4 if dtype == "float32" else 8
    limit = 1.25 * sketch_bytes(method, size, d, 1, itemsize, 24) + 16e6
    short = peak(method, dtype, 400, 100, d, size, 24)
    long = peak(method, dtype, 1600, 100, d, size, 24)
    assert long <= limit
    assert long <= 1.1 * short + 4e6
