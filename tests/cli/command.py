"""Running the real command, as a user does."""

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("ridgepass"))


def ridgepass(*arguments, cwd, stdin=None, **how):
    """Run ``ridgepass`` and return what became of it."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], cwd=cwd, input=stdin, capture_output=True, **how
    )


def run_well(*arguments, cwd, stdin=None):
    """Run a command that must succeed, and return its standard output."""
    done = ridgepass(*arguments, cwd=cwd, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def summary(*arguments, cwd, stdin=None):
    """Run a command with ``--json`` and return what it says."""
    quiet = ["-q"] if arguments[0] == "fit" else []
    return json.loads(run_well(*arguments, "--json", *quiet, cwd=cwd, stdin=stdin))


def complaint(*arguments, cwd, stdin=None, **how):
    """Run a command that must fail, and return the one line that says why."""
    before = {path: path.read_bytes() for path in Path(cwd).rglob("*") if _is_readable(path)}
    done = ridgepass(*arguments, cwd=cwd, stdin=stdin, **how)
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert "Traceback" not in said
    assert said.count("\n") == 1, said
    assert said.startswith("ridgepass: error: ")
    after = {path: path.read_bytes() for path in Path(cwd).rglob("*") if _is_readable(path)}
    assert after == before, "a command that fails must leave every file as it was"
    return said.removeprefix("ridgepass: error: ").strip()


def _is_readable(path):
    return path.is_file() and os.access(path, os.R_OK)
