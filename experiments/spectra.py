"""The singular values of the data, and what ridge and sketches do to the eigenvalues of AᵀA."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import eigvalsh

from experiments import published
from experiments.errors import DATA, shape_of
from experiments.scale import Scale


@dataclass(frozen=True)
class SingularValue:
    """One singular value over the largest, at its index over d."""

    data: str
    index: float
    value: float


@dataclass(frozen=True)
class Eigenvalue:
    """One eigenvalue of a matrix that stands for AᵀA; the paper's Figure 1, from real spectra."""

    matrix: str
    index: int
    value: float


def singular_values(scale: Scale, temperatures: Path | None) -> list[SingularValue]:
    """Return those of each data set's first draw."""
    found = []
    for data in DATA:
        A = shape_of(scale, temperatures).draw(data, 0).A
        values = np.sqrt(np.maximum(eigvalsh(A.T @ A)[::-1], 0.0))
        d = scale.n_features
        found += [SingularValue(data, i / d, float(v / values[0])) for i, v in enumerate(values)]
    return found


def eigenvalues(scale: Scale, alpha: float, temperatures: Path | None) -> list[Eigenvalue]:
    """Return those of LR at alpha, with a sketch of a sixteenth of its columns."""
    split = shape_of(scale, temperatures).draw("LR", 0)
    size = scale.n_features // 16
    exact = eigvalsh(split.A.T @ split.A)[::-1]
    sketch = published.StackedSVD(split.A, split.b, size)
    fd = np.pad(np.square(sketch.sigma), (0, scale.n_features - size))
    lines = {
        "AᵀA": exact,
        "AᵀA + γI": exact + alpha,
        "FD": fd,
        "FD + γI": fd + alpha,
        "RFD + γI": fd + sketch.shift + alpha,
    }
    return [
        Eigenvalue(matrix, i, float(value))
        for matrix, values in lines.items()
        for i, value in enumerate(values)
    ]
