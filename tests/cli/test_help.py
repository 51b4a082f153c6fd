import re
import subprocess
from pathlib import Path

import pytest
from command import COMMAND, complaint, ridgepass

from ridgepass.cli import examples

COMMANDS = ["fit", "predict", "merge", "inspect", "demo"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_example_in_the_help_works_when_pasted(tmp_path, name):
    done = ridgepass(*[name] * bool(name), "--help", cwd=tmp_path, env={"COLUMNS": "80"})
    said = done.stdout.decode()
    assert done.returncode == 0
    assert done.stderr == b""
    pasted = said.partition("An example to paste:")[2]
    assert pasted.count("ridgepass") >= 1
    shell = f"set -euo pipefail\nPATH={Path(COMMAND).parent}:$PATH\n{pasted}"
    ran = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout


def test_every_command_has_an_example():
    for name in COMMANDS:
        assert f"ridgepass {name}" in getattr(examples, name.upper())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(tmp_path, name):
    said = ridgepass(name, "--help", cwd=tmp_path, env={"COLUMNS": "200"}).stdout.decode()
    options = re.findall(r"│ \*? *(--[a-z-]+)(?: -\w)?(?: [A-Z.]+)? {2,}(.*?) *│", said)
    assert options
    for option, text in options:
        assert text, option
        assert not text.startswith("["), option


def test_version(tmp_path):
    from importlib.metadata import version

    assert ridgepass("--version", cwd=tmp_path).stdout.decode().strip() == version("ridgepass")


def test_python_m_is_the_same(tmp_path):
    import sys

    command = [sys.executable, "-m", "ridgepass", "--version"]
    assert subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["fitt"], 'Did you mean "fit"'),
        (["fit", "rows.csv"], "--output"),
        (["fit", "-o", "m.ridge"], "DATA"),
        (["fit", "rows.csv", "-o", "m.ridge", "--bogus"], "--bogus"),
        (["fit", "rows.csv", "-o", "m.ridge", "--sketch-size", "many"], "--sketch-size"),
        (["fit", "rows.csv", "-o", "m.ridge", "--nulls", "ignore"], "ignore"),
        (["predict", "m.ridge"], "DATA"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, arguments, reason):
    assert reason in complaint(*arguments, cwd=tmp_path)
