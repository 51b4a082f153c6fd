import subprocess
import sys

import numpy as np

from ridgepass.resources import peak_memory


def test_the_peak_is_this_process_s_own():
    before = peak_memory()
    ballast = np.ones(50_000_000)
    assert peak_memory() >= max(before, ballast.nbytes)
    code = "from ridgepass.resources import peak_memory; print(peak_memory())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 1e6 < int(done.stdout) < ballast.nbytes / 2
