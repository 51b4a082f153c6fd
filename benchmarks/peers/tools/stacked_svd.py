"""Frequent Directions as the paper's code has it: an SVD of the sketch on top of each block."""

import numpy as np
from scipy import sparse

from benchmarks.peers.storage import Rows
from experiments.published import StackedSVD


def fit(rows: Rows, alpha: float, size: int) -> np.ndarray:
    model = StackedSVD(np.empty((0, rows.n_features)), np.empty(0), size)
    for A, b in rows.batches(size):
        model.absorb(A.toarray() if sparse.issparse(A) else A, b)
    return model.solve(alpha)
