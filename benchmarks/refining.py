"""What reading the rows again buys: errors and certificates by pass, and what a pass costs.

`figures` is a part of ``make bench``; `report` is the table of errors that comes with it.
"""

import copy
import tempfile
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from sklearn.linear_model import Ridge

from benchmarks import last_release
from benchmarks.files import ALPHA, SIZE, SPEED_ROWS, D, rows
from benchmarks.last_release import ANCHORED, RFD, TRACKED
from benchmarks.report import Figure, fastest, table
from benchmarks.streams import Shape, Split
from ridgepass import RidgeStream, StreamingRidge
from ridgepass.data import batches

RESULTS = Path(__file__).parent / "results" / "refining.md"
# The paper's γ, and of New York's temperatures the power of two that does best on held-out rows.
FIRST = (("LR", 4096.0), ("HR", 32768.0), ("TEMP", 65536.0))
FEWEST = {"LR": 5, "HR": 4, "TEMP": 4}  # what the last release needed at MIDDLE
# The powers of two that do best on held-out rows of these draws.
SMALLER = (("LR", 2048.0), ("HR", 4096.0))
SIZES, MIDDLE = (32, 128, 512), 128
PASSES, JUDGED = 6, slice(1, 5)  # of the certificates of passes 2 to 5 the loosest is told
MOST_PASSES = 50
IN_A_ROW = 4
TIME = 20.0  # seconds for a figure


def figures() -> Iterator[Figure]:
    """Yield how many passes are needed, and what one takes from memory and from files."""
    for data, alpha in FIRST:
        what = f"passes in all to a certified 0.1 %, tracked, ℓ = {MIDDLE}, {data}"
        yield Figure(what, passes_to_goal(Shape().draw(data, seed=0), alpha), FEWEST[data])
    yield from beside_last_release()
    yield beside_products()
    for what, n_features, as_columns in (
        (f"an embedding of {D:,} float32", D, False),
        (f"an embedding of {4 * D:,} float32", 4 * D, False),
        (f"{D:,} columns of float64", D, True),
    ):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.parquet"
            write(file, n_features, as_columns)
            yield from beside_reading(file, f"Parquet, {what}, ℓ = {SIZE}")


def beside_last_release() -> Iterator[Figure]:
    """Yield the passes over the larger sparse workloads; a rival's are counted up to a limit."""
    most = last_release.MOST_PASSES
    for workload in last_release.SPARSE:
        found = last_release.compared(workload)
        what = f"passes in all to a certified 0.1 %, tracked, ℓ = {last_release.SIZE}"
        yield Figure(f"{what}, {workload.described}", found[TRACKED].passes, most)
        ratio = found[TRACKED].passes / min(found[ANCHORED].passes, most)
        yield Figure(f"the same / the last release's anchored, at most {most}", ratio, 0.5)
        yield Figure("the same, passes of RFD", found[RFD].passes, None)


def passes_to_goal(split: Split, alpha: float) -> float:
    """Return how often the rows are read, the sketch's pass included."""
    found = islice(refined(split, alpha, MIDDLE), MOST_PASSES)
    reached = (n for n, (_, bound) in enumerate(found, 1) if bound <= last_release.GOAL)
    return next(reached, float("inf"))


def beside_products() -> Figure:
    """Compare with the least that any step of an iteration costs, A times one vector and back.

    Passes come several in a row, as a user has them, since the first one sets up the corrector.
    """
    (data, alpha), *_ = FIRST
    split = Shape().draw(data, seed=0)
    A, b = split.A, split.b
    stream = sketched(split, alpha, MIDDLE)
    right, left = np.ones(A.shape[1]), np.ones(A.shape[0])
    ours, theirs = fastest(
        # A copy, as a stream goes on from where it stands and reads nothing once it is exact.
        lambda: stream.copy().refine([(A, b)], alpha, passes=IN_A_ROW),
        lambda: [(A @ right, A.T @ left) for _ in range(IN_A_ROW)],
        seconds=TIME,
    )
    what = f"seconds of a refining pass, {data} in memory, ℓ = {MIDDLE} / of A @ v and A.T @ u"
    return Figure(what, ours / theirs, 3)


def write(file: Path, n_features: int, as_columns: bool) -> None:
    """Write about 270 MB; longer rows are several of `files.rows` with the first one's target."""
    X, y = rows(np.random.default_rng(0), SPEED_ROWS // 2 if as_columns else SPEED_ROWS)
    X, y = X.reshape(-1, n_features), y[:: n_features // D]
    if as_columns:
        columns = {f"x{i}": column for i, column in enumerate(X.T.astype(np.float64))}
    else:
        columns = {"embedding": pa.FixedSizeListArray.from_arrays(X.ravel(), n_features)}
    pq.write_table(pa.table(columns | {"y": y}), file)


def beside_reading(file: Path, what: str) -> Iterator[Figure]:
    """Compare with reading alone, of a file that the system keeps in memory.

    ridgepass reads in one thread, beside which a pass computes; pyarrow may use every core. Its
    first reading takes several times as long as the next ones, so a few turns are needed.
    """
    model = StreamingRidge(ALPHA, sketch_size=SIZE).fit_stream(file, target="y")
    ours, reading, by_pyarrow = fastest(
        lambda: copy.deepcopy(model).refine(file, "y", passes=1),
        lambda: exhaust(batches(file, target="y")),
        lambda: exhaust(pyarrow.dataset.dataset(file).to_batches()),
        seconds=2 * TIME,
    )
    pace = f"rows a second of a refining pass, {what}"
    yield Figure(f"{pace} / of just reading the file", reading / ours, 0.5, at_most=False)
    yield Figure(f"{pace} / of pyarrow alone", by_pyarrow / ours, 0.5, at_most=False)


def exhaust(pieces: Iterable[object]) -> None:
    for _ in pieces:
        pass


def sketched(split: Split, alpha: float, size: int) -> RidgeStream:
    return RidgeStream("tracked", sketch_size=size, alpha=alpha).update(split.A, split.b)


def refined(split: Split, alpha: float, size: int) -> Iterator[tuple[np.ndarray, float]]:
    """Yield coefficients and the certified relative error after each pass, the sketch's first."""
    stream = sketched(split, alpha, size)
    while True:
        yield stream.solve(alpha), float(stream.certificate(alpha).relative)
        stream.refine([(split.A, split.b)], alpha, passes=1)


def conjugate_gradients(split: Split, alpha: float) -> Iterator[np.ndarray]:
    """Yield coefficients after each pass without a sketch; the first one is for c = Aᵀb."""
    A, x = split.A, np.zeros(split.A.shape[1])
    residual = direction = A.T @ split.b
    power = residual @ residual
    yield x
    while True:
        image = A.T @ (A @ direction) + alpha * direction
        length = power / (direction @ image)
        x = x + length * direction
        yield x
        residual = residual - length * image
        power, before = residual @ residual, power
        direction = residual + power / before * direction


def lsqr(split: Split, alpha: float) -> Iterator[np.ndarray]:
    """Yield scikit-learn's coefficients after each pass; the first one is for Aᵀb here too."""
    yield np.zeros(split.A.shape[1])
    for steps in count(1):
        model = Ridge(alpha, solver="lsqr", fit_intercept=False, tol=0.0, max_iter=steps)
        yield model.fit(split.A, split.b).coef_


def case(split: Split, data: str, alpha: float) -> tuple[list[list[str]], float]:
    """Return the rows of one alpha, and how many times the error is certified, at the most."""
    (exact,) = split.exact_ridge([alpha])

    def error(coef: np.ndarray) -> float:
        return float(np.linalg.norm(coef - exact) / np.linalg.norm(exact))

    lines, loosest = [], 0.0
    for size in SIZES:
        pairs = [(error(x), bound) for x, bound in islice(refined(split, alpha, size), PASSES)]
        cells = [f"{found:.2g} ({bound:.2g})" for found, bound in pairs]
        lines.append([data, f"{alpha:g}", f"tracked, ℓ = {size}", *cells])
        if size == MIDDLE:
            loosest = max(bound / found for found, bound in pairs[JUDGED])
    for name, method in (("conjugate gradients", conjugate_gradients), ("lsqr", lsqr)):
        cells = [f"{error(x):.2g}" for x in islice(method(split, alpha), PASSES)]
        lines.append([data, f"{alpha:g}", name, *cells])
    return lines, loosest


def report() -> str:
    """Return the errors by pass as Markdown, with how passes are counted."""
    shape, lines, ratios = Shape(), [], []
    for data, alpha in FIRST + SMALLER:
        added, loosest = case(shape.draw(data, seed=0), data, alpha)
        lines += added
        ratios.append(f"{data} at {alpha:g} {loosest:.2g}")
    head = ["data", "alpha", "method", "pass 1", *(str(n) for n in range(2, PASSES + 1))]
    return (
        f"Coefficient error ‖x̂ − x‖/‖x‖ by passes over the rows, x being exact ridge; in brackets "
        f"what is certified with confidence 1 − 1e-6. n = {shape.n_rows}, d = {shape.n_features}, "
        f"seed 0, TEMP from New York, 2013.\n\n{table(head, lines)}\n"
        "- Pass 1 is the sketch's for tracked, and for the others that of Aᵀb, after which they "
        "stand at zero. Every further pass multiplies each row by a vector, and the row by that.\n"
        "- lsqr is scikit-learn's `Ridge(solver='lsqr', tol=0, max_iter=k)` with k + 1 passes. "
        "SciPy's code takes A and Aᵀ in turn, so it reads the rows twice in a step; that is "
        "counted as one pass. But for rounding its steps are those of conjugate gradients.\n"
        "- Passes are counted, not seconds. The sketch's pass computes far more than any other: "
        "with the rows in memory conjugate gradients reach the same error sooner.\n"
        "- Once rounding is all that is left, tracked reads no more rows.\n"
        f"- Certified over true error, the largest of passes 2 to 5 at ℓ = {MIDDLE}: "
        f"{', '.join(ratios)}.\n\n"
        "## Sparse rows\n\n"
        f"What is certified after each pass, up to 0.1 %, at ℓ = {last_release.SIZE}: tracked, "
        f"RFD, and the last release's anchored, with at most {last_release.MOST_PASSES} passes.\n\n"
        f"{on_sparse()}"
    )


def on_sparse() -> str:
    """Return the table of what is certified on the larger sparse workloads."""
    lines = []
    for workload in last_release.SPARSE:
        for method, found in last_release.compared(workload).items():
            by_pass = ", ".join(f"{bound:.2g}" for bound in found.certified)
            passes = f"{found.passes:.0f}" if found.passes < float("inf") else "more"
            error = f"{found.coef_error:.2g}"
            lines.append([workload.described, method, error, passes, by_pass])
    head = ["data", "method", "error after pass 1", "passes", "certified after each"]
    return table(head, lines)
