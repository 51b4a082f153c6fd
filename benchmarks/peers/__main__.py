"""Print ridgepass beside its peers; a run with every default is also written down."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.__main__ import versions
from benchmarks.peers.contenders import BY_KEY, Contender
from benchmarks.peers.ledger import ROOT, Ledger, Row
from benchmarks.peers.reference import Judge
from benchmarks.peers.storage import Rows, text_bytes, write, write_text
from benchmarks.peers.supervise import Limits, measure_apart
from benchmarks.peers.tables import better_choices, workload_table, write_csv
from benchmarks.peers.workloads import SCALES, Workload

RESULTS = ROOT / "benchmarks" / "results"
KEPT = ROOT / "build" / "peers"
TEXT_LIMIT = 4e9
TOOLS = ("ridgepass", "scikit-learn", "river", "vowpalwabbit", "pandas")
ZERO = "zero"
DIVERGED = 1e6  # coefficients this far off are no answer, however soon they come
NOTES = """\
Every contender runs alone in a fresh process, one BLAS thread, and reads the same files, which are
in the page cache. Seconds run from opening the rows to coefficients in hand, tuning included.
Memory is the peak beyond what the process had after its imports, rows read included. Coefficient
error is ‖x̂ − x‖/‖x‖ against exact ridge x at the same alpha, from conjugate gradients in float64
whose residual proves eleven digits; test error is the mean squared error on rows held out over that
of x. No intercept anywhere. Best of each column in bold.

- Passes: lsqr reads the rows twice an iteration. SGDRegressor tuned: ten pairs of schedule and rate
  learn side by side in one pass, judged on the last tenth of the rows; then five passes with the
  best. Its alpha is alpha/n.
- IncrementalPCA and the stacked SVD get sparse rows made dense, a block at a time. Ridge on
  components takes a second pass.
- river learns dense rows in mini-batches of 32 and sparse ones from dictionaries, whose penalty
  reaches only the features of a row: another problem than ridge. Its l2 is 2·alpha/n.
- ridgepass: tracked follows its 24 probes, as by default; rfd has none, as in the paper.
- Vowpal Wabbit reads text, and works in float32. Writing the text is not counted, parsing it is.
  With --bfgs its l2 is 2·alpha, and it may take 50 passes. Its defaults have no penalty; at ridge's
  (2·alpha/n) its adaptive steps mostly err more, or diverge.
"""


def measure(
    workload: Workload, contenders: Sequence[Contender], limits: Limits, ledger: Ledger
) -> list[Row]:
    """Return a row for each contender, and one for predicting zero."""
    keys = [ZERO, *(contender.key for contender in contenders)]
    kept = {key: ledger.find(workload.name, key) for key in keys}
    wanted = [contender for contender in contenders if kept[contender.key] is None]
    if wanted or kept[ZERO] is None:
        with tempfile.TemporaryDirectory(prefix="ridgepass-peers-") as name:
            folder = Path(name)
            tell(f"{workload.name}: writing {workload.described}")
            write(workload, folder)
            rows = Rows(folder)
            tell(f"{workload.name}: exact ridge")
            judge = Judge(workload, rows)
            zero = judge.errors(np.zeros(workload.n_features))
            kept[ZERO] = Row(workload.name, ZERO, coef_error=zero.coef, test_error=zero.test)
            ledger.keep(kept[ZERO])
            for contender in wanted:
                row = measure_one(workload, contender, rows, judge, limits)
                kept[contender.key] = row
                ledger.keep(row)
    return [kept[key] for key in keys]


def measure_one(
    workload: Workload, contender: Contender, rows: Rows, judge: Judge, limits: Limits
) -> Row:
    if contender.reads_text:
        if (size := text_bytes(workload)) > TEXT_LIMIT:
            reason = f"its text would take {size / 1e9:.2g} GB of disk"
            return Row(workload.name, contender.key, reason=reason)
        if not rows.text.exists():
            tell(f"{workload.name}: writing text for {contender.label}")
            write_text(rows, rows.text)
    tell(f"{workload.name}: {contender.label}")
    coef_file = rows.folder / "coef.npy"
    coef_file.unlink(missing_ok=True)
    found = measure_apart(contender.key, rows.folder, coef_file, workload.alpha, limits)
    if reason := found.get("reason"):
        tell(f"  {reason}")
        return Row(workload.name, contender.key, reason=reason)
    errors = judge.errors(np.load(coef_file, allow_pickle=False))
    tell(f"  {found['seconds']:.3g} s, coefficient error {errors.coef:.2g}")
    if errors.coef > DIVERGED:
        reason = f"diverged: coefficient error {errors.coef:.1g}"
        return Row(workload.name, contender.key, reason=reason)
    return Row(
        workload.name,
        contender.key,
        found["seconds"],
        found["bytes"] / 1e6,
        found["passes"],
        errors.coef,
        errors.test,
    )


def report(found: dict[Workload, list[Row]], limits: Limits, line: str) -> str:
    """Return the whole of it as Markdown."""
    most = f"{limits.seconds:.0f} s, or at {limits.bytes / 1e9:.3g} GB of memory"
    text = [
        NOTES,
        f"A contender is stopped after {most} (its imports included), and early\n"
        "where its first pass is on the way to well over the time.\n",
    ]
    for workload, (zero, *rows) in found.items():
        text.append(f"## {workload.name}\n\n{workload.described}. Predicting zero: coefficient ")
        text[-1] += f"error 1, test error / exact {zero.test_error:.4g}.\n"
        text.append(workload_table(rows))
    text.append("## Where a peer is the better choice\n")
    for workload, (_, *rows) in found.items():
        told = "".join(f"\n  - {sentence}" for sentence in better_choices(rows))
        text.append(f"- {workload.name}, d = {workload.n_features:,}:{told}")
    return "\n".join([*text, f"\n{line}\n"])


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def names(scale: str) -> list[str]:
    return [workload.name for workload in SCALES[scale]]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    every = names("full")
    made.add_argument("--scale", choices=SCALES, default="full")
    made.add_argument("--only", choices=every, nargs="+", default=every, metavar="WORKLOAD")
    made.add_argument("--contenders", choices=BY_KEY, nargs="+", default=list(BY_KEY))
    made.add_argument("--time-limit", type=float, default=Limits.seconds, metavar="SECONDS")
    made.add_argument("--memory-limit", type=float, default=Limits.bytes / 1e9, metavar="GB")
    made.add_argument("--kept", type=Path, default=KEPT, help="folder of rows already measured")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    options = parser().parse_args(arguments)
    tools = ", ".join(f"{tool} {version(tool)}" for tool in TOOLS)
    line = f"{versions('make bench-peers')}, {tools}"
    workloads = [w for w in SCALES[options.scale] if w.name in options.only]
    if not workloads:
        sys.exit(f"--scale {options.scale} has only {', '.join(names(options.scale))}")
    limits = Limits(options.time_limit, options.memory_limit * 1e9)
    ledger = Ledger(options.kept, (options.scale, limits, line))
    contenders = [BY_KEY[key] for key in options.contenders]
    found = {workload: measure(workload, contenders, limits, ledger) for workload in workloads}
    print(text := report(found, limits, line))
    options.kept = KEPT  # changes no number
    if options == parser().parse_args([]):
        (RESULTS / "peers.md").write_text(text, encoding="utf-8")
        write_csv([row for _, *rows in found.values() for row in rows], RESULTS / "peers.csv")


if __name__ == "__main__":
    # Asked to end, it still removes the rows it wrote.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    main()
