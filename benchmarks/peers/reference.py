"""Exact ridge apart from every contender, and how far theirs are from it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.storage import Rows
from benchmarks.peers.workloads import TEST, Workload

TOLERANCE = 1e-11  # of ‖x̂ − x‖/‖x‖, proved from the residual


@dataclass(frozen=True)
class Errors:
    """What coefficients err by: ‖x̂ − x‖/‖x‖, and the test error over that of exact ridge."""

    coef: float
    test: float


class Judge:
    """Holds exact ridge and the test rows of a workload."""

    def __init__(self, workload: Workload, rows: Rows) -> None:
        self.exact = exact_ridge(rows, workload.alpha)
        self.test = list(workload.parts(TEST))
        self.least = self._test_error(self.exact)

    def errors(self, coef: np.ndarray) -> Errors:
        """Judge a contender's coefficients."""
        away = np.linalg.norm(coef - self.exact) / np.linalg.norm(self.exact)
        return Errors(float(away), self._test_error(coef) / self.least)

    def _test_error(self, coef: np.ndarray) -> float:
        missed = [np.square(A @ coef - b).sum() for A, b in self.test]
        return float(sum(missed) / sum(len(b) for _, b in self.test))


def exact_ridge(rows: Rows, alpha: float) -> np.ndarray:
    """Return exact ridge in float64: conjugate gradients until the residual proves it."""
    A, b = rows.whole()
    blocks = [A[start : start + 1024] for start in range(0, A.shape[0], 1024)]

    def applied(x: np.ndarray) -> np.ndarray:
        total = alpha * x
        for block in blocks:
            wide = block.astype(np.float64, copy=False)
            total += wide.T @ (wide @ x)
        return total

    return conjugate_gradients(applied, transposed(blocks, b), alpha)


def transposed(blocks: Iterable, b: np.ndarray) -> np.ndarray:
    """Return Aᵀb in float64."""
    start, total = 0, 0.0
    for block in blocks:
        total += block.astype(np.float64, copy=False).T @ b[start : start + block.shape[0]]
        start += block.shape[0]
    return total


def conjugate_gradients(
    applied: Callable[[np.ndarray], np.ndarray], c: np.ndarray, least: float
) -> np.ndarray:
    """Solve a system whose smallest eigenvalue is at least ``least``.

    The error is then at most the residual over ``least``, and that is what must be small. The
    residual is computed afresh before it is believed.
    """
    x = np.zeros_like(c)
    for _ in range(10):
        residual = c - applied(x)
        if np.linalg.norm(residual) <= TOLERANCE * least * np.linalg.norm(x):
            return x
        x = x + correction(applied, residual, TOLERANCE * least * np.linalg.norm(x) / 4)
    raise ArithmeticError("conjugate gradients have not reached exact ridge")


def correction(
    applied: Callable[[np.ndarray], np.ndarray], residual: np.ndarray, enough: float
) -> np.ndarray:
    """Return what one run of conjugate gradients adds; from zero it asks for twelve digits."""
    residual, x = residual.copy(), np.zeros_like(residual)
    direction, square = residual.copy(), residual @ residual
    enough = max(enough, 1e-13 * np.sqrt(square))
    for _ in range(5000):
        if np.sqrt(square) <= enough:
            break
        image = applied(direction)
        step = square / (direction @ image)
        x += step * direction
        residual -= step * image
        square, before = residual @ residual, square
        direction = residual + (square / before) * direction
    return x
