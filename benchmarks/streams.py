"""Data to err on: the paper's three sets, and streams whose rows are not alike over time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.fft import dct
from scipy.linalg import cho_factor, cho_solve

from benchmarks import temperatures
from ridgepass.datasets import Synthetic

Pair = tuple[np.ndarray, np.ndarray]
NOISE = 2.0  # standard deviation, as in the paper's synthetic data


@dataclass(frozen=True)
class Split:
    """Training rows in the order of the stream, and rows held out from all along it."""

    A: np.ndarray
    b: np.ndarray
    A_test: np.ndarray
    b_test: np.ndarray

    def exact_ridge(self, alphas: Iterable[float]) -> np.ndarray:
        """Return a row of coefficients for each alpha, by Cholesky, apart from ridgepass."""
        K, c = self.A.T @ self.A, self.A.T @ self.b
        identity = np.eye(len(K))
        return np.array([cho_solve(cho_factor(K + alpha * identity), c) for alpha in alphas])

    def test_errors(self, coefs: np.ndarray) -> np.ndarray:
        """Return the mean squared error of each row of coefficients on the rows held out."""
        return np.square(self.A_test @ coefs.T - self.b_test[:, None]).mean(axis=0)


@dataclass(frozen=True)
class Shape:
    """What the data of one run have in common; a quarter as many rows are for testing."""

    n_rows: int = 8192
    n_features: int = 2048
    temperature_file: Path | None = None

    def draw(self, name: str, seed: int) -> Split:
        """Return the named data."""
        total = self.n_rows + self.n_rows // 4
        if name in WINDOWS:
            series = temperatures.read(self.temperature_file)
            A, b = windows(total, self.n_features, seed, series, in_order=WINDOWS[name])
        else:
            A, b = MADE[name](total, self.n_features, seed)
        held_out = np.random.default_rng([seed, 2]).choice(
            total, total - self.n_rows, replace=False
        )
        test = np.isin(np.arange(total), held_out)
        return Split(A[~test], b[~test], A[test], b[test])


def windows(
    n_rows: int, n_features: int, seed: int, series: list[np.ndarray], in_order: bool
) -> Pair:
    """Return ``n_features`` differences in a row each, and the next one as its target.

    Windows are drawn without replacement and lie within one place.
    """
    views = [
        np.lib.stride_tricks.sliding_window_view(np.diff(values), n_features + 1)
        for values in series
        if len(values) > n_features + 1
    ]
    counts = [len(view) for view in views]
    if sum(counts) < n_rows:
        raise ValueError(
            f"{n_rows} windows of {n_features} hours are wanted and the temperatures hold "
            f"{sum(counts)}: give a longer series, or ask for fewer rows or features"
        )
    place = np.repeat(np.arange(len(views)), counts)
    start = np.concatenate([np.arange(count) for count in counts])
    chosen = np.random.default_rng([seed, 3]).choice(len(start), n_rows, replace=False)
    if in_order:
        chosen = chosen[np.lexsort((place[chosen], start[chosen]))]
    rows = np.stack([views[place[i]][start[i]] for i in chosen])
    return rows[:, :-1].copy(), rows[:, -1].copy()


def synthetic(
    kind: Callable[[int, int], Synthetic], n_rows: int, n_features: int, seed: int
) -> Pair:
    """Return the paper's LR or HR."""
    return kind(n_features, seed).sample(n_rows)


def sorted_by(
    key: Callable[[np.ndarray, np.ndarray], np.ndarray], n_rows: int, n_features: int, seed: int
) -> Pair:
    """Return LR with its rows in rising order of a key."""
    A, b = synthetic(Synthetic.low_rank, n_rows, n_features, seed)
    order = np.argsort(key(A, b), kind="stable")
    return A[order], b[order]


def row_norms(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.norm(A, axis=1)


def targets(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    return b


def drifting(n_rows: int, n_features: int, seed: int) -> Pair:
    """Return rows of LR's rank whose large directions move on by twice that rank."""
    rng = np.random.default_rng([seed, 4])
    rank, deviations = low_rank_spectrum(n_features)
    A = rng.standard_normal((n_rows, n_features))
    shift = np.arange(n_rows) * 2 * rank // n_rows
    for step in np.unique(shift):
        A[shift == step] *= np.roll(deviations, step)
    coef = np.zeros(n_features)
    coef[: 3 * rank] = rng.standard_normal(len(coef[: 3 * rank]))
    return rotated(A, coef / np.linalg.norm(coef), rng)


def changing_blocks(n_rows: int, n_features: int, seed: int, n_blocks: int = 8) -> Pair:
    """Return blocks of rows of LR's rank, each with its own large directions and scale."""
    rng = np.random.default_rng([seed, 5])
    _, deviations = low_rank_spectrum(n_features)
    A = rng.standard_normal((n_rows, n_features))
    for block in np.array_split(A, n_blocks):
        block *= rng.permutation(deviations) * rng.choice([0.5, 1.0, 2.0])
    return rotated(A, rng.standard_normal(n_features) / np.sqrt(n_features), rng)


def uneven_columns(n_rows: int, n_features: int, seed: int) -> Pair:
    """Return HR with each column in a unit of its own, lognormal with σ = 1."""
    rng = np.random.default_rng([seed, 6])
    A, _ = synthetic(Synthetic.high_rank, n_rows, n_features, seed)
    coef = rng.standard_normal(n_features) / np.sqrt(n_features)
    b = A @ coef + NOISE * rng.standard_normal(n_rows)
    return A * np.exp(rng.standard_normal(n_features)), b


def flat(n_rows: int, n_features: int, seed: int) -> Pair:
    """Return rows without any large direction."""
    rng = np.random.default_rng([seed, 7])
    A = rng.standard_normal((n_rows, n_features))
    return A, A @ rng.standard_normal(n_features) / 20 + NOISE * rng.standard_normal(n_rows)


def repeated_rows(n_rows: int, n_features: int, seed: int) -> Pair:
    """Return rows that come again and again, half as many different ones as there are columns."""
    rng = np.random.default_rng([seed, 8])
    different = rng.standard_normal((n_features // 2, n_features))
    A = different[rng.integers(0, len(different), n_rows)]
    return A, A @ rng.standard_normal(n_features) / 20 + NOISE * rng.standard_normal(n_rows)


def low_rank_spectrum(n_features: int) -> tuple[int, np.ndarray]:
    """Return LR's effective rank and the standard deviations of its features."""
    rank = Synthetic.low_rank(n_features).effective_rank
    return rank, np.exp(-np.square(np.arange(n_features) / rank))


def rotated(A: np.ndarray, coef: np.ndarray, rng: np.random.Generator) -> Pair:
    """Return the rows in the coordinates of the paper's data, and noisy targets."""
    b = A @ coef + NOISE * rng.standard_normal(len(A))
    return dct(A, norm="ortho", axis=1, overwrite_x=True), b


WINDOWS = {"TEMP": False, "TEMP-in-order": True}
MADE: dict[str, Callable[[int, int, int], Pair]] = {
    "LR": partial(synthetic, Synthetic.low_rank),
    "HR": partial(synthetic, Synthetic.high_rank),
    "drifting": drifting,
    "changing-blocks": changing_blocks,
    "LR-by-norm": partial(sorted_by, row_norms),
    "LR-by-target": partial(sorted_by, targets),
    "uneven-columns": uneven_columns,
    "flat": flat,
    "repeated-rows": repeated_rows,
}
PAPER = ("LR", "HR", "TEMP")
OTHERS = (
    "TEMP-in-order",
    "drifting",
    "changing-blocks",
    "LR-by-norm",
    "LR-by-target",
    "uneven-columns",
    "flat",
    "repeated-rows",
)
# The same data in another order, so with the same alpha.
REORDERED = {"TEMP-in-order": "TEMP", "LR-by-norm": "LR", "LR-by-target": "LR"}
