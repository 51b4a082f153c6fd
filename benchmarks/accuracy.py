"""Print how far each method is from exact ridge; a run with every default is also written down."""

import argparse
import csv
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from scipy.stats import gmean

from benchmarks.__main__ import versions
from benchmarks.report import HEADER, Figure, table
from benchmarks.streams import OTHERS, PAPER, REORDERED, Shape, Split
from ridgepass import RidgeStream

RESULTS = Path(__file__).parent / "results"
METHODS = ("exact", "fd", "rfd", "isvd", "2lfd", "rp", "cs", "tracked")
RIVALS = ("rfd", "tracked")  # what the other streams, other alphas and certificates are about
SIZES, SIZES_OF_OTHERS = (32, 64, 128, 256, 512), (32, 128, 512)
SEEDS, SEEDS_OF_OTHERS = 5, 2
FACTORS = {0.1: "alpha/10", 1.0: "alpha", 10.0: "10·alpha"}
ALPHAS = 2.0 ** np.arange(25)
CERTIFICATES = """\
Error, estimate and bound are ‖x̂ − x‖ as it is, as it is estimated and as it is certified, each over
‖x‖; relative is the certified bound of the quotient, which needs no ‖x‖. Bounds hold with
confidence 1 − 1e-6, the certain ones of rfd always.
"""
SMALL_ERROR = 0.2  # below which what is certified should be below one


@dataclass(frozen=True)
class Cell:
    """A method on some data at ``factor`` times the alpha chosen for the data."""

    data: str
    method: str
    size: int
    factor: float


@dataclass(frozen=True)
class Errors:
    """What one pass erred by, or the means over several.

    ``coef`` is ‖x̂ − x‖/‖x‖ with x exact ridge; ``test`` is the mean squared error on the test rows
    over that of x. ``bound`` is the certified bound of ‖x̂ − x‖, over ‖x‖ too, and ``relative`` that
    of the quotient, with the confidence that certificates have by default; ``certain_bound`` and
    ``certain_relative`` are the same for certain. ``estimate`` is that of ‖x̂ − x‖, over ‖x‖.
    """

    coef: float
    test: float
    bound: float
    relative: float
    certain_bound: float
    certain_relative: float
    estimate: float

    @property
    def least_certified(self) -> float:
        """The smallest of all bounds of ``coef``."""
        return min(self.bound, self.relative, self.certain_bound, self.certain_relative)


Measured = list[tuple[Cell, Errors]]
Means = dict[Cell, Errors]


def best_alpha(data: str, shape: Shape) -> float:
    """Return the paper's γ: the power of two with which exact ridge does best on held-out rows."""
    split = shape.draw(data, seed=0)
    return float(ALPHAS[split.test_errors(split.exact_ridge(ALPHAS)).argmin()])


def train(method: str, size: int, seed: int, alpha: float, split: Split) -> RidgeStream:
    hint = {"alpha": alpha} if method == "tracked" else {}
    return RidgeStream(method, sketch_size=size, seed=seed, **hint).update(split.A, split.b)


def measure(
    data: str, seed: int, alpha: float, methods: Sequence[str], sizes: Sequence[int], shape: Shape
) -> Measured:
    """Train every method at every size on one draw of the data."""
    split = shape.draw(data, seed)
    alphas = [factor * alpha for factor in FACTORS]
    exact = split.exact_ridge(alphas)
    lengths, least = np.linalg.norm(exact, axis=1), split.test_errors(exact)
    measured = []
    for method in methods:
        for size in sizes:
            if method != "exact" or size == sizes[0]:  # exact ridge has no size
                stream = train(method, size, seed, alpha, split)
                found = stream.solve(alphas)
                coef = np.linalg.norm(found - exact, axis=1) / lengths
                test = split.test_errors(found) / least
                proofs = [certified(stream, *pair) for pair in zip(alphas, lengths, strict=True)]
            measured += [
                (Cell(data, method, size, factor), Errors(float(error), float(ratio), *proof))
                for factor, error, ratio, proof in zip(FACTORS, coef, test, proofs, strict=True)
            ]
    return measured


def certified(stream: RidgeStream, alpha: float, length: float) -> list[float]:
    """Return the bounds of `Errors` and its estimate, ``length`` being ‖x‖."""
    usual, certain = stream.certificate(alpha), stream.certificate(alpha, confidence=1)
    found = [usual.coef_bound / length, usual.relative]
    found += [certain.coef_bound / length, certain.relative, usual.estimate / length]
    return [float(number) for number in found]


def averaged(measured: Measured) -> Means:
    """Return the means over the seeds."""
    gathered = defaultdict(list)
    for cell, errors in measured:
        gathered[cell].append(astuple(errors))
    return {cell: Errors(*np.mean(rows, axis=0).tolist()) for cell, rows in gathered.items()}


def cells(means: Means, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the pairs of data and sketch size measured, in the order of the tables."""
    found = {(cell.data, cell.size) for cell in means if cell.data in names}
    return sorted(found, key=lambda pair: (names.index(pair[0]), pair[1]))


def gains(means: Means, grid: list[tuple[str, int]], factor: float) -> list[float]:
    """Return how many times less tracked errs than RFD, for each pair of data and size."""
    return [
        means[Cell(data, "rfd", size, factor)].coef
        / means[Cell(data, "tracked", size, factor)].coef
        for data, size in grid
    ]


def least_error(means: Means, data: str, size: int) -> str:
    """Return the sketch that errs least at alpha."""
    errors = {
        cell.method: errors.coef
        for cell, errors in means.items()
        if (cell.data, cell.size, cell.factor) == (data, size, 1.0) and cell.method != "exact"
    }
    return min(errors, key=errors.__getitem__)


def figures(means: Means, measured: Measured) -> Iterator[Figure]:
    """Yield tracked against RFD, all sketches and exact ridge, and its certificates."""
    if grid := cells(means, PAPER):
        for factor, alpha in FACTORS.items():
            ratios = gains(means, grid, factor)
            what = f"coefficient error, rfd / tracked, {len(grid)} cells of the paper's data, at"
            target = 4.0 if factor == 1 else 1.0
            yield Figure(f"{what} {alpha}: geometric mean", gmean(ratios), target, at_most=False)
            yield Figure(f"{what} {alpha}: least", min(ratios), 1.0, at_most=False)
        # A cell in which both are all but exact can have any ratio, and carry the mean of all.
        felt = [pair for pair in grid if means[Cell(pair[0], "rfd", pair[1], 1.0)].coef > 1e-3]
        what = f"the same at alpha, {len(felt)} cells where rfd errs by over 0.1 %: geometric mean"
        yield Figure(what, gmean(gains(means, felt, 1.0)), 4.0, at_most=False)
        won = sum(least_error(means, *cell) == "tracked" for cell in grid)
        yield Figure("cells where tracked errs least of all sketches", won, len(grid), False)
        worst = max(means[Cell(data, "tracked", size, 1.0)].test for data, size in grid)
        yield Figure("test error, tracked beyond exact: most", 100 * (worst - 1), 0.3, unit=" %")
    if others := cells(means, OTHERS):
        for factor, alpha in FACTORS.items():
            what = f"coefficient error, rfd / tracked, other streams, at {alpha}: least"
            yield Figure(what, min(gains(means, others, factor)), 1.0, at_most=False)
    tracked = [(cell, errors) for cell, errors in measured if cell.method == "tracked"]
    if usual := [e for cell, e in tracked if cell.data in PAPER and cell.factor == 1.0]:
        yield from of_certificates(usual, "the paper's data at alpha", 4.0, 1.0)
    yield from of_certificates([e for _, e in tracked], "all streams and alphas", None, None)
    rivals = [errors for cell, errors in measured if cell.method in RIVALS]
    tightest = max(errors.coef / errors.least_certified for errors in rivals)
    yield Figure("coefficient error / certified, rfd and tracked: largest", tightest, 1.0)


def of_certificates(
    found: Sequence[Errors], where: str, middle: float | None, largest: float | None
) -> Iterator[Figure]:
    """Yield how near certificates and estimates come to the truth; each run counts by itself."""
    runs = f"tracked, {where}, {len(found)} runs"
    ratios = [errors.bound / errors.coef for errors in found]
    yield Figure(f"certified / coefficient error, {runs}: median", float(np.median(ratios)), middle)
    small = [errors for errors in found if errors.coef < SMALL_ERROR]
    what = f"certified ‖x̂ − x‖/‖x‖, {runs}, {len(small)} with an error below {SMALL_ERROR:g}: most"
    yield Figure(what, max((errors.bound for errors in small), default=0.0), largest)
    what = f"certified relative error, {runs}, {len(small)} of them: most"
    yield Figure(what, max((errors.relative for errors in small), default=0.0), largest)
    ratios = [errors.estimate / errors.coef for errors in found]
    for name, share in (("least", 0.0), ("median", 0.5), ("most", 1.0)):
        what = f"estimate / coefficient error, {runs}: {name}"
        yield Figure(what, float(np.quantile(ratios, share)), None)


def by_method(means: Means, field: str, style: str) -> str:
    """Return the table of the paper's data; the least coefficient error of a sketch is bold."""
    methods = [m for m in METHODS if any(cell.method == m for cell in means)]
    rows = []
    for data, size in cells(means, PAPER):
        row, best = [data, str(size)], least_error(means, data, size) if field == "coef" else ""
        for method in methods:
            number = format(getattr(means[Cell(data, method, size, 1.0)], field), style)
            row.append(f"**{number}**" if method == best else number)
        rows.append(row)
    return table(["data", "ℓ", *methods], rows)


def by_alpha(means: Means, names: Sequence[str]) -> str:
    """Return the table of RFD and tracked at each alpha."""
    head = [f"{method}, {alpha}" for alpha in FACTORS.values() for method in (*RIVALS, "ratio")]
    rows = []
    for data, size in cells(means, names):
        row = [data, str(size)]
        for factor in FACTORS:
            theirs, ours = (means[Cell(data, m, size, factor)].coef for m in RIVALS)
            row += [f"{theirs:.2g}", f"{ours:.2g}", f"{theirs / ours:.2f}"]
        rows.append(row)
    return table(["data", "ℓ", *head], rows)


def by_certificate(means: Means) -> str:
    """Return the table of errors beside what is estimated and certified, at alpha.

    Of RFD also what is certain; of tracked next to nothing is.
    """
    usual = {"error": "coef", "estimate": "estimate", "bound": "bound", "relative": "relative"}
    certain = {"certain bound": "certain_bound", "certain relative": "certain_relative"}
    fields_of = {"rfd": usual | certain, "tracked": usual}
    head = [f"{method}, {what}" for method in RIVALS for what in fields_of[method]]
    rows = []
    for data, size in cells(means, PAPER + OTHERS):
        row = [data, str(size)]
        for method in RIVALS:
            found = means[Cell(data, method, size, 1.0)]
            row += [f"{getattr(found, field):.2g}" for field in fields_of[method].values()]
        rows.append(row)
    return table(["data", "ℓ", *head], rows)


def report(
    measured: Measured, alphas: dict[str, float], given: list[str], shape: Shape, line: str
) -> str:
    """Return the whole of it as Markdown."""
    means = averaged(measured)
    place = "New York, 2013" if shape.temperature_file is None else shape.temperature_file.name
    by_hand = f"given for {', '.join(given)}, otherwise " if given else ""
    listed = ", ".join(f"{data} {alpha:g}" for data, alpha in alphas.items())
    parts = [
        f"n = {shape.n_rows}, d = {shape.n_features}, TEMP from {place}. alpha is {by_hand}the "
        f"power of two with which exact ridge does best on held-out rows of seed 0: {listed}.\n"
    ]
    compared = {cell.method for cell in means} >= set(RIVALS)
    if compared:
        rows = "\n".join(figure.row() for figure in figures(means, measured))
        parts.append(f"{HEADER}\n{rows}\n")
    if cells(means, PAPER):
        parts += ["## Coefficient error\n", by_method(means, "coef", ".2g")]
        parts += ["## Test error over exact ridge's\n", by_method(means, "test", ".4f")]
    if compared:
        parts += ["## At other alphas\n", by_alpha(means, PAPER)]
        parts += ["## On other streams\n", by_alpha(means, OTHERS)]
        parts += ["## Error and certificate\n", CERTIFICATES, by_certificate(means)]
    return "\n".join([*parts, f"{line}\n"])


def write_csv(measured: Measured, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for kind in (Cell, Errors) for field in fields(kind)])
        for cell, errors in averaged(measured).items():
            writer.writerow([*astuple(cell), *(f"{number:.6g}" for number in astuple(errors))])


def progress(futures: dict[Future, str]) -> Iterator[tuple[str, object]]:
    """Yield what each task was and what it found, as they finish, and tell how far it is."""
    begin = time.perf_counter()
    for done, future in enumerate(as_completed(futures), start=1):
        what, seconds = futures[future], time.perf_counter() - begin
        print(f"{done}/{len(futures)} {what}, {seconds:.0f} s", file=sys.stderr)
        yield what, future.result()


def run(options: argparse.Namespace, shape: Shape) -> tuple[Measured, dict[str, float]]:
    """Measure, and return with it the alpha chosen for each of the data."""
    spawn = multiprocessing.get_context("spawn")  # fork would copy the threads of BLAS
    with ProcessPoolExecutor(options.workers, mp_context=spawn) as pool:
        bases = {data: REORDERED.get(data, data) for data in options.data}
        wanted = sorted(set(bases.values()) - set(dict(options.alpha)))
        chosen = progress({pool.submit(best_alpha, base, shape): base for base in wanted})
        by_base = dict(options.alpha) | dict(chosen)
        alphas = {data: by_base[base] for data, base in bases.items()}
        tasks = {}
        for data in options.data:
            of_paper = data in PAPER
            methods = [m for m in options.methods if of_paper or m in RIVALS]
            sizes = options.sizes or (SIZES if of_paper else SIZES_OF_OTHERS)
            seeds = options.seeds if of_paper else min(options.seeds, SEEDS_OF_OTHERS)
            for seed in range(seeds):
                future = pool.submit(measure, data, seed, alphas[data], methods, sizes, shape)
                tasks[future] = f"{data}, seed {seed}"
        found = dict(progress(tasks))
    # In the order of the tasks, so that means round alike whichever finished first.
    return [pair for what in tasks.values() for pair in found[what]], alphas


def alpha_of_data(text: str) -> tuple[str, float]:
    data, _, alpha = text.partition("=")
    if data not in set(PAPER + OTHERS) - set(REORDERED):
        raise ValueError(data)
    return data, float(alpha)


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    add, every = parser.add_argument, PAPER + OTHERS
    add("--data", nargs="+", choices=every, default=every)
    add("--methods", nargs="+", choices=METHODS, default=METHODS)
    add("--sizes", nargs="+", type=int, help="sketch sizes")
    add("--seeds", type=int, default=SEEDS, help=f"of other streams at most {SEEDS_OF_OTHERS}")
    add("--n-rows", type=int, default=Shape.n_rows, help="for training")
    add("--n-features", type=int, default=Shape.n_features)
    add("--temperatures", type=Path, help="CSV of hour, temperature; New York, 2013, without it")
    choice = {"type": alpha_of_data, "metavar": "DATA=ALPHA", "help": "instead of choosing"}
    add("--alpha", nargs="+", default=[], **choice)
    add("--workers", type=int, default=2, help="processes")
    options = parser.parse_args()
    line = versions("make bench-accuracy")
    shape = Shape(options.n_rows, options.n_features, options.temperatures)
    measured, alphas = run(options, shape)
    print(text := report(measured, alphas, list(dict(options.alpha)), shape, line))
    options.workers = parser.get_default("workers")  # the one that changes no number
    if options == parser.parse_args([]):
        (RESULTS / "accuracy.md").write_text(text, encoding="utf-8")
        write_csv(measured, RESULTS / "accuracy.csv")


if __name__ == "__main__":
    main()
