"""Run the paper's experiments: tables as CSV, figures as PNG and SVG, claims as a table.

What has been measured is kept in build/paper, so that a run that was stopped goes on from there.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_info

from experiments import errors, figures, report
from experiments.claims import check
from experiments.results import ROOT, Results
from experiments.run import Run, bars
from experiments.scale import PAPER, SCALES

KEPT = ROOT / "build" / "paper"


def options() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    add = parser.add_argument
    add("--scale", choices=SCALES, default=PAPER.name, help="full: over an hour; small: minutes")
    add("--temperatures", type=Path, metavar="FILE", help="CSV of hour, temperature for TEMP")
    add("--output", type=Path, metavar="FOLDER", help="where tables and figures go")
    add("--workers", type=int, default=2, help="processes for the errors; times use one")
    add("--accept", action="store_true", help="let the verdicts be those to be kept from now on")
    return parser


def main() -> None:
    """Measure, draw, check; leave with an error where a claim has stopped holding."""
    parser = options()
    given = parser.parse_args()
    scale = SCALES[given.scale]
    if {pool["num_threads"] for pool in threadpool_info()} != {1}:
        sys.exit("BLAS has more than one thread here: run `make paper`, which pins it to one")
    if given.workers < 1:
        parser.error("--workers must be at least 1")
    if given.accept and given.temperatures is not None:
        parser.error("--accept is for the default temperatures: leave --temperatures out")
    try:
        errors.shape_of(scale, given.temperatures).draw("TEMP", seed=0)
    except (OSError, ValueError, TypeError, csv.Error) as problem:
        parser.error(f"--temperatures {given.temperatures}: {problem}")
    own = "" if given.temperatures is None else "own-"
    committed = scale is PAPER and not own
    default = ROOT / "experiments" / "results" if committed else KEPT / f"{own}results-{scale.name}"
    folder: Path = given.output or default
    folder.mkdir(parents=True, exist_ok=True)

    begin = time.perf_counter()
    with bars() as progress:
        run = Run(scale, given.temperatures, KEPT, given.workers, progress)
        run.results().save(folder)
    results = Results.load(folder)  # the report is of the tables as they are read
    figures.draw(results, folder)
    checked = check(results, scale)
    place = "New York, 2013" if given.temperatures is None else given.temperatures.name
    text = report.markdown(results, checked, scale, place)
    (folder / "claims.md").write_text(text, encoding="utf-8")
    print(text)
    print(f"{time.perf_counter() - begin:.0f} s; tables and figures are in {shown(folder)}")
    if given.accept:
        report.accept(checked, scale)
    elif given.temperatures is None:
        if worse := report.stopped_holding(checked, scale):
            sys.exit("claims that held and have stopped holding:\n" + "\n".join(worse))
        print("every claim stands as it did before")


def shown(folder: Path) -> str:
    """Return a path the way a reader types it."""
    return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)


if __name__ == "__main__":
    main()
