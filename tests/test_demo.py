import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_demo_prints_error_certificate_time_and_memory():
    options = {"rows": 600, "features": 256, "sketch-size": 16, "alpha": 100}
    command = ["-m", "ridgepass", "demo", *(f"--{name}={value}" for name, value in options.items())]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    names = ("rr", "FDrr", "RFDrr", "tracked", "  2 passes", "  4 passes")
    table = [line for line in done.stdout.splitlines() if line.startswith(names)]
    assert len(table) == 6
    columns = ("error", "estimate", "certified", "MSE", "fit", "query", "model", "peak")
    rows = {
        line[:10].strip(): dict(zip(columns, map(float, line[10:].split()), strict=True))
        for line in table
    }
    assert rows["rr, exact"]["error"] == 0
    for name in ("FDrr", "RFDrr", "tracked", "2 passes", "4 passes"):
        row = rows[name]
        assert 0 < row["error"] <= row["certified"]
        assert row["error"] / 5 < row["estimate"] < 5 * row["error"]
        assert row["model"] < rows["rr, exact"]["model"]
    certified = [rows[name]["certified"] for name in ("4 passes", "2 passes", "tracked")]
    assert certified == sorted(certified)


@pytest.mark.slow
def test_bad_options_are_one_line_and_exit_code_2():
    command = [sys.executable, "-m", "ridgepass", "demo", "--sketch-size=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--sketch-size must be at least 2" in done.stderr
    assert "Traceback" not in done.stderr
