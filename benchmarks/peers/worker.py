"""Run one contender in this process, and print what it took as one line of JSON."""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.memory import status
from benchmarks.peers.contenders import BY_KEY, Contender
from benchmarks.peers.storage import CannotRunError, Rows
from ridgepass.resources import peak_memory


def measure(contender: Contender, rows: Rows, alpha: float, coef_file: Path) -> dict[str, object]:
    """Return seconds, bytes and passes, or the reason why there are none."""
    contender.load()
    before, begin = status("VmRSS"), time.perf_counter()
    try:
        coef = contender.fit(rows, alpha)
    except CannotRunError as error:
        return {"reason": str(error)}
    except MemoryError as error:
        return {"reason": str(error).partition(" for ")[0].lower() or "out of memory"}
    seconds, peak = time.perf_counter() - begin, peak_memory() - before
    if not np.isfinite(coef).all():
        return {"reason": "diverged"}
    np.save(coef_file, coef, allow_pickle=False)
    return {"seconds": seconds, "bytes": peak, "passes": rows.passes}


def main() -> None:
    """Run as a program, started by ``benchmarks.peers.supervise``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender", choices=BY_KEY)
    parser.add_argument("folder", type=Path)
    parser.add_argument("coef_file", type=Path)
    parser.add_argument("--alpha", type=float, required=True)
    parser.add_argument("--time-limit", type=float, required=True)
    parser.add_argument("--memory-limit", type=float, required=True)
    options = parser.parse_args()
    rows = Rows(options.folder, options.time_limit, options.memory_limit)
    found = measure(BY_KEY[options.contender], rows, options.alpha, options.coef_file)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
