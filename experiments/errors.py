"""How far each algorithm is from exact ridge, beside what theorem and certificate promise."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import eigvalsh

from benchmarks.streams import Shape, Split
from experiments.algorithms import ALGORITHMS, Algorithm
from experiments.scale import Scale
from ridgepass import RidgeStream, theory
from ridgepass.query import CONFIDENCE

DATA = ("LR", "HR", "TEMP")
# Of section 4, for d = 2048 and n = 8192; at another scale they go with n.
PAPERS_ALPHAS = {"LR": 4096.0, "HR": 32768.0, "TEMP": 32768.0}
CHOSEN, PAPERS, MORE, LESS = "chosen", "the paper's", "chosen × 16", "chosen / 16"
NOISE, MORE_NOISE = 4.0, 16.0  # variances
SEED_OF_ALPHA = 0  # the draw on which alpha is chosen
TRIED = 2.0 ** np.arange(25)


@dataclass(frozen=True)
class AlphaTried:
    """The test error of exact ridge at an alpha; the paper takes the least.

    The variance is that of the synthetic data's noise, and means nothing for TEMP.
    """

    data: str
    noise_variance: float
    alpha: float
    prediction_error: float


@dataclass(frozen=True)
class Error:
    """One algorithm on one draw at one alpha.

    ``coef_error`` is ‖x̂ − x‖/‖x‖ with x exact ridge; ``prediction_error`` the mean squared error on
    the test rows; ``theorem`` the bound of Theorem 1 or 2 at its best rank ``theorem_k``;
    ``certified`` the certificate's bound of ‖x̂ − x‖ over ‖x‖, and ``certified_relative`` what it
    proves of the quotient itself: for certain, and of tracked, which has probes, with the usual
    confidence. Bounds that there are not are NaN.
    """

    data: str
    algorithm: str
    form: str
    size: int
    repeat: int
    at: str
    alpha: float
    coef_error: float
    prediction_error: float
    theorem: float
    theorem_k: float
    certified: float
    certified_relative: float


def shape_of(scale: Scale, temperatures: Path | None) -> Shape:
    return Shape(scale.n_rows, scale.n_features, temperatures)


def tried_alphas(data: str, scale: Scale, temperatures: Path | None) -> list[AlphaTried]:
    """Return the test errors of exact ridge at powers of two.

    For the synthetic data also with noise of twice the standard deviation, see docs/paper.md.
    """
    split = shape_of(scale, temperatures).draw(data, SEED_OF_ALPHA)
    found = [(NOISE, split)]
    if data != "TEMP":
        found.append((MORE_NOISE, with_more_noise(split, SEED_OF_ALPHA)))
    return [
        AlphaTried(data, variance, float(alpha), float(error))
        for variance, rows in found
        for alpha, error in zip(TRIED, rows.test_errors(rows.exact_ridge(TRIED)), strict=True)
    ]


def with_more_noise(split: Split, seed: int) -> Split:
    """Return the same rows with noise of the larger variance."""
    rng, deviation = np.random.default_rng([seed, 16]), np.sqrt(MORE_NOISE - NOISE)
    train, test = (deviation * rng.standard_normal(len(b)) for b in (split.b, split.b_test))
    return Split(split.A, split.b + train, split.A_test, split.b_test + test)


def measure(
    data: str, repeat: int, alpha: float, scale: Scale, temperatures: Path | None
) -> Iterator[Error]:
    """Yield the errors of every algorithm at every size on one draw."""
    split = shape_of(scale, temperatures).draw(data, repeat)
    papers = PAPERS_ALPHAS[data] * scale.n_rows / 8192
    alphas = {CHOSEN: alpha, PAPERS: papers, MORE: 16 * alpha, LESS: alpha / 16}
    exact = split.exact_ridge(alphas.values())
    values = np.sqrt(np.maximum(eigvalsh(split.A.T @ split.A), 0.0))
    for algorithm in ALGORITHMS:
        if not algorithm.of_errors:
            continue
        for size in sizes_of(algorithm, scale):
            trained = algorithm.train(split.A, split.b, size, repeat, alpha)
            solve = getattr(trained, "solve_quickly", trained.solve)
            for (at, value), goal in zip(alphas.items(), exact, strict=True):
                found, length = solve(value), float(np.linalg.norm(goal))
                yield Error(
                    data,
                    algorithm.name,
                    algorithm.form,
                    size,
                    repeat,
                    at,
                    value,
                    float(np.linalg.norm(found - goal)) / length,
                    float(split.test_errors(found[None])[0]),
                    *promised(algorithm.name, values, size, value),
                    *certified(trained, value, length),
                )


def sizes_of(algorithm: Algorithm, scale: Scale) -> tuple[int, ...]:
    """Return its sketch sizes; 0 where it has none."""
    if not algorithm.sized:
        return (0,)
    return scale.projection_sizes if algorithm.projects else scale.sizes


def promised(name: str, values: np.ndarray, size: int, alpha: float) -> tuple[float, float]:
    """Return the bound of Theorem 1 or 2 for the best k, and that k."""
    if name not in ("FDrr", "RFDrr"):
        return np.nan, np.nan
    best = theory.best_covariance_bound(values, size, robust=name == "RFDrr")
    return theory.relative_error_bound(best.bound, alpha), best.k


def certified(trained: object, alpha: float, length: float) -> tuple[float, float]:
    """Return what the stream proves without knowing the exact answer."""
    if not isinstance(trained, RidgeStream):
        return np.nan, np.nan
    confidence = CONFIDENCE if trained.method == "tracked" else 1.0
    proof = trained.certificate(alpha, confidence)
    bounds = float(proof.coef_bound) / length, float(proof.relative)
    return tuple(bound if np.isfinite(bound) else np.nan for bound in bounds)
