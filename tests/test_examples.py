"""The examples run, at a size for tests."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = {
    "linear_probe.py": [
        "--classes",
        "20",
        "--dimensions",
        "64",
        "--rows",
        "2000",
        "--sketch-size",
        "7",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example(path):
    command = [sys.executable, str(path), *SMALL[path.name]]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if path.name == "linear_probe.py":
        accuracies = [float(found) for found in re.findall(r"accuracy (0\.\d+|1\.0+)", printed)]
        assert len(accuracies) == 14
        assert max(accuracies[:7]) > 0.3  # guessing gives 0.05
