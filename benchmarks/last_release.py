"""Tracked beside the method of the last release, anchored, run from that release's own source.

They learn the same sparse rows, each in a process of its own, and then read them again until a
relative error of one in a thousand is certified. So does RFD, whose passes have K's diagonal too.
"""

import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import ridgepass
from benchmarks.peers.reference import exact_ridge
from benchmarks.peers.storage import Rows, write
from benchmarks.peers.workloads import FULL, Workload
from ridgepass import RidgeStream

ROOT = Path(__file__).parent.parent
COMMIT = "7a898c5"
TRACKED, RFD, ANCHORED = "tracked", "rfd", "anchored"
GOAL, MOST_PASSES = 1e-3, 24
TRAININGS = 3  # of which the fastest counts
SIZE = 64
SPARSE = tuple(one for one in FULL if one.name in ("sparse-medium", "sparse-large"))


@dataclass(frozen=True)
class Learned:
    """Seconds of training and one query, what its answer errs by, and what passes certify.

    ``certified`` has the relative error certified after each pass, the sketch's first, up to the
    one that reaches the goal.
    """

    seconds: float
    coef_error: float
    certified: tuple[float, ...]

    @property
    def passes(self) -> float:
        """How often the rows are read, the sketch's pass included; infinite if too often."""
        return len(self.certified) if self.certified[-1] <= GOAL else math.inf


@cache
def compared(workload: Workload, size: int = SIZE) -> dict[str, Learned]:
    """Return what each method does with a workload; a second call in one run measures nothing."""
    with tempfile.TemporaryDirectory(prefix="ridgepass-release-") as place:
        rows, release = Path(place) / "rows", Path(place) / "release"
        for folder in (rows, release):
            folder.mkdir()
        write(workload, rows)
        take_out(release)
        exact = exact_ridge(Rows(rows), workload.alpha)
        found = {}
        own, theirs = ROOT / "src", release / "src"
        for method, source in ((TRACKED, own), (RFD, own), (ANCHORED, theirs)):
            said, coef = run_apart(method, source, rows, workload.alpha, size)
            error = float(np.linalg.norm(coef - exact) / np.linalg.norm(exact))
            found[method] = Learned(said["seconds"], error, tuple(said["certified"]))
    return found


def take_out(folder: Path) -> None:
    """Unpack the last release's source, as ``git archive | tar -x`` does."""
    command = ["git", "-C", str(ROOT), "archive", COMMIT, "src"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()
        sys.exit(f"the last release is compared with, and taken out of git for that: {reason}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def run_apart(
    method: str, source: Path, rows: Path, alpha: float, size: int
) -> tuple[dict[str, object], np.ndarray]:
    """Run a method of the ridgepass in ``source``; return what it says, and its coefficients."""
    coef_file = rows / "coef"
    command = [sys.executable, "-m", "benchmarks.last_release", method, str(rows), str(coef_file)]
    done = subprocess.run(
        [*command, repr(alpha), str(size)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    said = json.loads(done.stdout)
    if not Path(said["imported"]).is_relative_to(source):
        raise ImportError(f"ridgepass was imported from {said['imported']}, not from {source}")
    return said, np.load(coef_file.with_suffix(".npy"), allow_pickle=False)


def measure(
    method: str, rows: Rows, alpha: float, size: int
) -> tuple[dict[str, object], np.ndarray]:
    """Train and refine in this process, by what both releases know."""
    batches, seconds = list(rows.parts()), math.inf
    for _ in range(TRAININGS):
        begin = time.perf_counter()
        stream = RidgeStream(method, sketch_size=size, alpha=alpha)
        for A, b in batches:
            stream.update(A, b)
        coef = stream.solve(alpha)
        seconds = min(seconds, time.perf_counter() - begin)
    certified = [float(stream.certificate(alpha).relative)]
    while certified[-1] > GOAL and len(certified) < MOST_PASSES:
        stream.refine(batches, alpha, passes=1)
        certified.append(float(stream.certificate(alpha).relative))
    said = {"seconds": seconds, "certified": certified, "imported": ridgepass.__file__}
    return said, coef


def main() -> None:
    """Run as a program, started by `run_apart`."""
    method, rows, coef_file, alpha, size = sys.argv[1:]
    said, coef = measure(method, Rows(Path(rows)), float(alpha), int(size))
    np.save(coef_file, coef, allow_pickle=False)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
