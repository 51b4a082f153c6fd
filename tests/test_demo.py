import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_demo_prints_error_certificate_time_and_memory():
    options = {"rows": 600, "features": 64, "sketch-size": 16, "alpha": 100}
    command = ["-m", "ridgepass", "demo", *(f"--{name}={value}" for name, value in options.items())]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    names = ("rr", "FDrr", "RFDrr", "anchored", "  2 passes", "  4 passes")
    table = [line for line in done.stdout.splitlines() if line.startswith(names)]
    assert len(table) == 6
    rows = {line[:10].strip(): [float(x) for x in line[10:].split()] for line in table}
    assert rows["rr, exact"][0] == 0
    for name in ("FDrr", "RFDrr", "anchored", "2 passes", "4 passes"):
        error, certified = rows[name][:2]
        assert 0 < error <= certified
        assert rows[name][5] < rows["rr, exact"][5]
    assert rows["4 passes"][1] < rows["2 passes"][1] < rows["anchored"][1]


@pytest.mark.slow
def test_bad_options_are_one_line_and_exit_code_2():
    command = [sys.executable, "-m", "ridgepass", "demo", "--sketch-size=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--sketch-size must be at least 2" in done.stderr
    assert "Traceback" not in done.stderr
