"""Streams with means, spreads, weights and zeros, and exact ridge of them in extended precision."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from streams import SPECTRA, make_rows

WIDE = np.longdouble
FORMATS = {
    "dense": np.asarray,
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_matrix": sparse.csc_matrix,
}
PREPARATIONS = [
    {},
    {"fit_intercept": True},
    {"standardize": True},
    {"fit_intercept": True, "standardize": True},
]


class Data(NamedTuple):
    A: np.ndarray
    b: np.ndarray
    weights: np.ndarray | None
    sketch_size: int
    store: str

    def part(self, start, stop, store=None):
        """Some rows as the arguments of ``update``."""
        weights = None if self.weights is None else self.weights[start:stop]
        return FORMATS[store or self.store](self.A[start:stop]), self.b[start:stop], weights

    @property
    def whole(self):
        return self.part(0, len(self.A))


@st.composite
def prepared(
    draw,
    *,
    max_rows=90,
    max_features=6,
    means=(0.0, 1e-6, 1.0, 1e3, 1e6),
    spreads=(1e-3, 1.0, 1e3),
    spectra=tuple(SPECTRA),
    weightings=("none", "fractions", "zeros", "whole"),
    stores=("dense", "csr_array", "csc_matrix"),
    dtypes=("float32", "float64"),
    max_targets=2,
):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, max_features))
    A = make_rows(rng, n, d, draw(st.sampled_from(spectra)))
    mean = np.array([draw(st.sampled_from(means)) for _ in range(d)])
    spread = np.array([draw(st.sampled_from(spreads)) for _ in range(d)])
    A = mean * rng.choice([-1, 1], d) + spread * A
    store = draw(st.sampled_from(stores))
    if store != "dense":
        A *= rng.random((n, d)) < rng.choice([0.2, 0.7, 1.0], d)  # some columns are full
    A = A.astype(draw(st.sampled_from(dtypes)))
    n_targets = draw(st.integers(1, max_targets))
    b = (A / (spread + np.abs(mean))) @ rng.standard_normal((d, n_targets))
    b = b + rng.standard_normal((n, n_targets)) + draw(st.sampled_from([0.0, 1e4]))
    weights = make_weights(rng, n, draw(st.sampled_from(weightings)))
    return Data(A, b, weights, draw(st.integers(2, 12)), store)


def make_weights(rng, n, kind):
    if kind == "none":
        return None
    weights = rng.random(n) + 0.01 if kind == "fractions" else rng.integers(0, 4, n).astype(float)
    if kind == "zeros":
        weights *= rng.random(n)
    weights[rng.integers(n)] = 1.0  # so that something counts
    return weights


class Exact(NamedTuple):
    """Ridge of the centred and scaled problem; ``coef`` is for scaled columns."""

    coef: np.ndarray
    mean: np.ndarray
    target_mean: np.ndarray
    scale: np.ndarray
    mass: float

    def predict(self, rows):
        return ((rows.astype(WIDE) - self.mean) / self.scale) @ self.coef + self.target_mean


def wide_ridge(
    A, b, alpha, weights=None, *, fit_intercept=False, standardize=False, feature_scale=None
):
    """Exact ridge in extended precision; alpha counts in units of the rows' sum of squares."""
    A, b = np.asarray(A, WIDE), np.asarray(b, WIDE).reshape(len(A), -1)
    weights = np.ones(len(A), WIDE) if weights is None else np.asarray(weights, WIDE)
    A, b, weights = A[weights > 0], b[weights > 0], weights[weights > 0]
    mean, target_mean = np.zeros(A.shape[1], WIDE), np.zeros(b.shape[1], WIDE)
    if fit_intercept:
        mean, target_mean = (weights @ values / weights.sum() for values in (A, b))
        # Means of equal numbers are those numbers, so that constant columns are constant.
        mean += weights @ (A - mean) / weights.sum()
        mean = np.where((A[:1] == A).all(axis=0), A[0], mean)
    A, b = A - mean, b - target_mean
    scale = np.ones(A.shape[1], WIDE)
    if standardize:
        found = np.sqrt(weights @ np.square(A) / weights.sum())
        scale = np.where(found > 0, found, scale)
    if feature_scale is not None:
        scale = np.asarray(feature_scale, WIDE)
    A = A / scale
    K, c = (A.T * weights) @ A, (A.T * weights) @ b
    mass = float(np.trace(K))
    return Exact(solve_wide(K, c, alpha * (mass or 1.0)), mean, target_mean, scale, mass)


def solve_wide(K, c, alpha):
    """Gaussian elimination in extended precision; K + alpha·I needs no pivots."""
    M, x = K + WIDE(alpha) * np.eye(len(K), dtype=WIDE), c.copy()
    for i in range(len(M)):
        ratios = M[i + 1 :, i] / M[i, i]
        M[i + 1 :] -= np.outer(ratios, M[i])
        x[i + 1 :] -= np.outer(ratios, x[i])
    for i in reversed(range(len(M))):
        x[i] = (x[i] - M[i, i + 1 :] @ x[i + 1 :]) / M[i, i]
    return x


def scaled(model, coef):
    """Coefficients as those of scaled columns, one column per target."""
    columns = coef.reshape(coef.shape[0], -1)
    return columns if model.scale is None else columns * model.scale[:, None]
