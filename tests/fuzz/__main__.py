"""``python -m fuzz``: run configurations for some minutes, on all cores, going on where it was."""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from fuzz.run import run
from fuzz.session import Session, print_counts
from fuzz.state import State


def main():
    """Run, and return whether anything failed."""
    options = _options()
    state = State(options.state, options.seed)
    if options.again:
        options.only = state.failed_before()
    if options.only is not None:
        return _run_alone(options.seed, options.only)
    return Session(state, options).run()


def _options():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--state", type=Path, default=Path("build/fuzz"), help="folder")
    parser.add_argument("--only", type=int, nargs="+", help="run these numbers again, in words")
    parser.add_argument("--again", action="store_true", help="run all that failed before again")
    return parser.parse_args()


def _run_alone(seed, numbers):
    """Run some configurations in this process and say all about them."""
    counts, failed = Counter(), 0
    for number in numbers:
        out = run(seed, number)
        counts.update(out.counts)
        print(f"{seed}/{number}: {out.describe()}")
        for kind, text in out.failures:
            print(f"  {kind}: {text}")
        failed += bool(out.failures)
    print_counts(counts)
    print(f"{failed} of {len(numbers)} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
