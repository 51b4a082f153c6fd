"""The paper's algorithms as its text reads, without any of ridgepass: a short NumPy script each.

They are here to be timed: an SVD of the stacked rows, a d×d inverse for a query, ridge regression
one row at a time. The random projections are also what RPrr and CSrr are in the figures of errors,
because ridgepass's own keep the first ℓ rows of a stream as they are, with which ℓ = n is exact.
"""

from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

Array = np.ndarray


class Trained(Protocol):
    """What is left of the rows."""

    def solve(self, alpha: float) -> Array:
        """Return the coefficients."""


class RowByRow:
    """rr: AᵀA and Aᵀb, one row at a time, and a d×d inverse."""

    def __init__(self, A: Array, b: Array) -> None:
        self.K, self.c = np.zeros((A.shape[1], A.shape[1])), np.zeros(A.shape[1])
        for row, target in zip(A, b, strict=True):
            self.K += np.outer(row, row)
            self.c += row * target

    def solve(self, alpha: float) -> Array:
        return inverted(self.K, alpha) @ self.c


class StackedSVD:
    """FDrr: Algorithm 2; ``shift`` is what Algorithm 3, RFDrr, would add to alpha."""

    def __init__(self, A: Array, b: Array, size: int) -> None:
        self.size, self.shift = size, 0.0
        self.sigma, self.Vt, self.c = no_rows(size, A.shape[1])
        for rows, targets in batches(A, b, size):
            self.absorb(rows, targets)

    def absorb(self, rows: Array, targets: Array) -> None:
        """Take in one batch."""
        values, vectors, cut = svd_and_cut(self.sigma, self.Vt, rows, self.size)
        self.sigma, self.Vt = shrunk(values, cut)[: self.size], vectors[: self.size]
        self.shift += cut / 2
        self.c += rows.T @ targets

    def solve(self, alpha: float) -> Array:
        inside = self.Vt @ self.c
        outside = self.c - self.Vt.T @ inside
        return self.Vt.T @ (inside / (self.sigma**2 + alpha)) + outside / alpha


class TwoLevels:
    """2LFDrr: FD of the rows, and FD of a sample of what that removes; a d×d inverse."""

    def __init__(self, A: Array, b: Array, size: int, seed: int = 0) -> None:
        rng, lower = np.random.default_rng(seed), size // 2
        upper = size - lower
        self.sigma, self.Vt, self.c = no_rows(upper, A.shape[1])
        self.sampled_sigma, self.sampled_Vt, _ = no_rows(lower, A.shape[1])
        waiting, removed_mass = np.zeros((0, A.shape[1])), 0.0
        for rows, targets in batches(A, b, upper):
            values, vectors, cut = svd_and_cut(self.sigma, self.Vt, rows, upper)
            self.sigma, self.Vt = shrunk(values, cut)[:upper], vectors[:upper]
            removed = np.sqrt(np.minimum(values**2, cut))[:, None] * vectors
            masses = np.square(removed).sum(axis=1)
            removed_mass += masses.sum()
            chances = np.minimum(1.0, lower * masses / (removed_mass or 1.0))
            taken = rng.random(len(chances)) < chances
            waiting = np.vstack([waiting, removed[taken] / np.sqrt(chances[taken])[:, None]])
            while len(waiting) >= lower:
                values, vectors, cut = svd_and_cut(
                    self.sampled_sigma, self.sampled_Vt, waiting[:lower], lower
                )
                self.sampled_sigma, self.sampled_Vt = shrunk(values, cut)[:lower], vectors[:lower]
                waiting = waiting[lower:]
            self.c += rows.T @ targets
        self.waiting = waiting

    def solve(self, alpha: float) -> Array:
        levels = (self.sigma, self.Vt), (self.sampled_sigma, self.sampled_Vt)
        C = np.vstack([*(sigma[:, None] * Vt for sigma, Vt in levels), self.waiting])
        return inverted(C.T @ C, alpha) @ self.c


class Signs:
    """RPrr: C = SA and Sb, each entry of S a random sign over √ℓ; a d×d inverse."""

    def __init__(self, A: Array, b: Array, size: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.C, self.targets = np.zeros((size, A.shape[1])), np.zeros(size)
        for rows, targets in batches(A, b, size):
            S = self.draw(rng, size, len(rows))
            self.C += S @ rows
            self.targets += S @ targets

    def draw(self, rng: np.random.Generator, size: int, n_rows: int) -> Array | sparse.csr_array:
        """Return the columns of S that a batch meets."""
        # The paper prints signs times √ℓ, with which SᵀS would be ℓ²·I in expectation.
        return rng.choice([-1.0, 1.0], (size, n_rows)) / np.sqrt(size)

    def solve(self, alpha: float) -> Array:
        return inverted(self.C.T @ self.C, alpha) @ (self.C.T @ self.targets)

    def solve_quickly(self, alpha: float) -> Array:
        """Return the same without an inverse and with one product for all alphas."""
        if self.narrow:
            return self.C.T @ np.linalg.solve(with_ridge(self.gram, alpha), self.targets)
        return np.linalg.solve(with_ridge(self.gram, alpha), self.C.T @ self.targets)

    @property
    def narrow(self) -> bool:
        """Whether CCᵀ is smaller than CᵀC."""
        return len(self.C) < self.C.shape[1]

    @cached_property
    def gram(self) -> Array:
        """The smaller of the two."""
        return self.C @ self.C.T if self.narrow else self.C.T @ self.C


class Counts(Signs):
    """CSrr: the same with one random sign in a random place of each column of S."""

    def draw(self, rng: np.random.Generator, size: int, n_rows: int) -> Array | sparse.csr_array:
        """Return the columns of S that a batch meets."""
        places = rng.integers(size, size=n_rows), np.arange(n_rows)
        return sparse.csr_array((rng.choice([-1.0, 1.0], n_rows), places), shape=(size, n_rows))


def batches(A: Array, b: Array, size: int) -> list[tuple[Array, Array]]:
    return [(A[i : i + size], b[i : i + size]) for i in range(0, len(A), size)]


def no_rows(size: int, n_features: int) -> tuple[Array, Array, Array]:
    return np.zeros(size), np.zeros((size, n_features)), np.zeros(n_features)


def svd_and_cut(sigma: Array, Vt: Array, rows: Array, size: int) -> tuple[Array, Array, float]:
    """Return singular values and vectors of the sketch on top of a batch, and σ²_{ℓ+1}."""
    _, values, vectors = np.linalg.svd(np.vstack([sigma[:, None] * Vt, rows]), full_matrices=False)
    return values, vectors, float(values[size] ** 2) if len(values) > size else 0.0


def shrunk(values: Array, cut: float) -> Array:
    return np.sqrt(np.maximum(values**2 - cut, 0.0))


def inverted(K: Array, alpha: float) -> Array:
    return np.linalg.inv(with_ridge(K, alpha))


def with_ridge(K: Array, alpha: float) -> Array:
    return K + alpha * np.eye(len(K))
