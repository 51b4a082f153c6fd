"""Print the table of figures; ``--only`` runs a part of it."""

import argparse
import platform
import sys

import numpy as np
import scipy
from threadpoolctl import threadpool_info

from benchmarks import kernel, memory, scaling
from benchmarks.report import HEADER

PARTS = {"kernel": kernel, "memory": memory, "scaling": scaling}


def main() -> None:
    """Run the benchmarks from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="run this part (repeatable)")
    chosen = parser.parse_args().only or list(PARTS)
    threads = {pool["num_threads"] for pool in threadpool_info()}
    if threads != {1}:
        sys.exit("BLAS has more than one thread here: run `make bench`, which pins it to one")
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"{platform.machine()}, one BLAS thread\n\n{HEADER}",
        flush=True,
    )
    missed = 0
    for name in chosen:
        for figure in PARTS[name].figures():
            print(figure.row(), flush=True)
            missed += not figure.met
    print(f"\n{missed} of the targets missed" if missed else "\nevery target met")


if __name__ == "__main__":
    main()
