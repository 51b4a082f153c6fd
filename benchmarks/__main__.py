"""Print the table of figures; ``--only`` runs a part of it.

How far each method is from exact ridge takes longer and is apart: ``make bench-accuracy``. So is
how often bounds fail: ``make bench-calibration``.
"""

import argparse
import platform
import sys
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_info

from benchmarks import estimators, files, kernel, memory, refining, scaling, sparse, training
from benchmarks.report import HEADER

RESULTS = Path(__file__).parent / "results" / "bench.md"
PARTS = {
    "kernel": kernel,
    "training": training,
    "memory": memory,
    "sparse": sparse,
    "estimators": estimators,
    "files": files,
    "refining": refining,
    "scaling": scaling,
}


def versions(command: str) -> str:
    """Return what the figures were measured with; leave where BLAS is not pinned to one thread."""
    threads = {pool["num_threads"] for pool in threadpool_info()}
    if threads != {1}:
        sys.exit(f"BLAS has more than one thread here: run `{command}`, which pins it to one")
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"{platform.machine()}, one BLAS thread"
    )


def main() -> None:
    """Run the benchmarks from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="run this part (repeatable)")
    chosen = parser.parse_args().only or list(PARTS)
    line = versions("make bench")
    print(f"{line}\n\n{HEADER}", flush=True)
    figures = []
    for name in chosen:
        for figure in PARTS[name].figures():
            print(figure.row(), flush=True)
            figures.append(figure)
    if "refining" in chosen:
        print(f"\n{(text := refining.report())}", flush=True)
        refining.RESULTS.write_text(f"{text}\n{line}\n", encoding="utf-8")
    missed = sum(not figure.met for figure in figures)
    print(f"\n{missed} of the targets missed" if missed else "\nevery target met")
    if chosen == list(PARTS):
        rows = "\n".join(figure.row() for figure in figures)
        RESULTS.write_text(f"{HEADER}\n{rows}\n\n{line}\n")


if __name__ == "__main__":
    main()
