"""Start a contender in a process of its own, and stop it at its limits of time and memory."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PAUSE = 0.05
PAGE = os.sysconf("SC_PAGESIZE")


@dataclass(frozen=True)
class Limits:
    """What a contender may take: seconds, and bytes of resident memory with its imports."""

    seconds: float = 180.0
    bytes: float = 4e9


class StoppedError(Exception):
    """A process went over one of its limits."""


def measure_apart(
    contender: str, folder: Path, coef_file: Path, alpha: float, limits: Limits
) -> dict[str, object]:
    """Return what the worker says, or ``reason``: why it was stopped, or how it failed."""
    command = [sys.executable, "-m", "benchmarks.peers.worker", contender]
    command += [str(folder), str(coef_file), "--alpha", repr(alpha)]
    command += ["--time-limit", repr(limits.seconds), "--memory-limit", repr(limits.bytes)]
    try:
        code, output, errors = watched(command, limits)
    except StoppedError as stop:
        return {"reason": str(stop)}
    if code != 0:
        sys.stderr.write(errors)
        last = errors.strip().rpartition("\n")[2]
        kind = last.partition(":")[0] if code > 0 else f"signal {-code}"
        return {"reason": f"failed: {kind}"}  # its sentence may hold a path, and is on stderr
    return json.loads(output.strip().rpartition("\n")[2])


def watched(command: list[str], limits: Limits) -> tuple[int, str, str]:
    """Run a command; return its exit code, output and errors.

    Resident memory is what is watched: a limit of the address space would count what a process
    reserves and never touches.
    """
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    try:
        while True:
            try:
                output, errors = process.communicate(timeout=PAUSE)
            except subprocess.TimeoutExpired:
                if time.perf_counter() - begin > limits.seconds:
                    raise StoppedError(f"stopped after {limits.seconds:.0f} s") from None
                if resident(process.pid) > limits.bytes:
                    raise StoppedError(f"stopped at {limits.bytes / 1e9:.3g} GB") from None
            else:
                return process.returncode, output, errors
    finally:
        process.kill()
        process.communicate()


def resident(pid: int) -> int:
    """Return the bytes a process has in memory; none if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE
    except (OSError, IndexError):
        return 0
