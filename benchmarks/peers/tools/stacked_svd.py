"""Frequent Directions as the paper's code has it: an SVD of the sketch on top of each block."""

import numpy as np
from scipy import sparse

from benchmarks.peers.storage import Rows


def fit(rows: Rows, alpha: float, size: int) -> np.ndarray:
    sketch, c = np.zeros((0, rows.n_features)), np.zeros(rows.n_features)
    for A, b in rows.batches(size):
        block = A.toarray() if sparse.issparse(A) else A
        c += block.T @ b
        _, s, V = np.linalg.svd(np.vstack([sketch, block]), full_matrices=False)
        taken = s[size] ** 2 if len(s) > size else 0.0
        s = np.sqrt(np.maximum(s[:size] ** 2 - taken, 0.0))
        sketch = s[:, None] * V[:size]
    known = np.linalg.norm(sketch, axis=1)
    V = np.divide(sketch, known[:, None], out=np.zeros_like(sketch), where=known[:, None] > 0)
    return c / alpha + V.T @ ((1 / (known**2 + alpha) - 1 / alpha) * (V @ c))
