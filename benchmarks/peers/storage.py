"""The rows of a workload on disk: written once, read in parts or whole by every contender."""

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.peers.workloads import TRAIN, Matrix, Part, Workload

TOO_SLOW = 1.1  # times the limit; a little over it, a contender may yet make good
TEXT_BYTES = 13  # of a value with its column, about
ABOUT, TARGETS, TEXT = "about.json", "targets.npy", "rows.txt"


class CannotRunError(Exception):
    """A contender cannot do this workload; the message tells why, for the table."""


def write(workload: Workload, folder: Path) -> None:
    """Write the training rows: arrays a part at a time, and the targets."""
    targets = []
    for i, (A, b) in enumerate(workload.parts(TRAIN)):
        if workload.sparse:
            sparse.save_npz(folder / f"{i:05}.npz", A, compressed=False)
        else:
            np.save(folder / f"{i:05}.npy", A, allow_pickle=False)
        targets.append(b)
    np.save(folder / TARGETS, np.concatenate(targets), allow_pickle=False)
    shape = {"n_rows": workload.n_rows, "n_features": workload.n_features}
    (folder / ABOUT).write_text(json.dumps(shape | {"sparse": workload.sparse}), encoding="ascii")


def write_text(rows: "Rows", path: Path) -> None:
    """Write the rows as Vowpal Wabbit reads them, columns by their numbers."""
    dense = "%.7g | " + " ".join(f"{j}:%.7g" for j in range(rows.n_features)) + "\n"
    with path.open("w", encoding="ascii") as file:
        for A, b in rows.parts():
            if not rows.sparse:
                for row, target in zip(A.tolist(), b.tolist(), strict=True):
                    file.write(dense % (target, *row))
                continue
            for i, target in enumerate(b.tolist()):
                where = slice(A.indptr[i], A.indptr[i + 1])
                pairs = zip(A.indices[where].tolist(), A.data[where].tolist(), strict=True)
                features = " ".join(f"{j}:{value:.7g}" for j, value in pairs)
                file.write(f"{target:.7g} | {features}\n")


def text_bytes(workload: Workload) -> int:
    """Return about how long the text is."""
    return workload.n_rows * (workload.nonzeros or workload.n_features) * TEXT_BYTES


class Rows:
    """The rows in a folder; counts how often they are read.

    With a ``time_limit`` in seconds, reading in batches gives up after a tenth of it if one pass is
    on the way to well over the limit. ``memory_limit`` in bytes is for contenders that know what
    they need.
    """

    def __init__(
        self, folder: Path, time_limit: float = math.inf, memory_limit: float = math.inf
    ) -> None:
        about = json.loads((folder / ABOUT).read_text(encoding="ascii"))
        self.n_rows, self.n_features = about["n_rows"], about["n_features"]
        self.sparse, self.folder = about["sparse"], folder
        self.time_limit, self.memory_limit = time_limit, memory_limit
        self.targets = np.load(folder / TARGETS, allow_pickle=False)
        self.passes = 0.0

    @property
    def text(self) -> Path:
        """The file for Vowpal Wabbit."""
        return self.folder / TEXT

    def parts(self) -> Iterator[Part]:
        """Yield rows and targets as they were written."""
        start = 0
        for path in sorted(self.folder.glob("?????.np[yz]")):
            A = sparse.load_npz(path) if self.sparse else np.load(path, allow_pickle=False)
            yield A, self.targets[start : start + A.shape[0]]
            start += A.shape[0]

    def batches(self, max_rows: int | None = None) -> Iterator[Part]:
        """Yield rows and targets in one pass, at most ``max_rows`` at a time."""
        begin, done = time.perf_counter(), 0
        for A, b in self.parts():
            step = max_rows or len(b)
            for start in range(0, len(b), step):
                yield A[start : start + step], b[start : start + step]
                done += len(b[start : start + step])
                seconds = time.perf_counter() - begin
                whole = seconds * self.n_rows / done
                if seconds > self.time_limit / 10 and whole > TOO_SLOW * self.time_limit:
                    raise CannotRunError(f"one pass would take {whole:.0f} s")
        self.passes += 1

    def whole(self) -> tuple[Matrix, np.ndarray]:
        """Return all rows in memory."""
        if self.sparse:
            return sparse.vstack([A for A, _ in self.parts()], format="csr"), self.targets
        whole, start = None, 0
        for A, b in self.parts():
            if whole is None:
                whole = np.empty((self.n_rows, self.n_features), A.dtype)
            whole[start : start + len(b)] = A
            start += len(b)
        return whole, self.targets
