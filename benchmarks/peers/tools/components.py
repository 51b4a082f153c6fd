"""scikit-learn's IncrementalPCA in one pass, and ridge on its components in another."""

import numpy as np
from scipy import sparse
from sklearn.decomposition import IncrementalPCA

from benchmarks.peers.storage import Rows


def fit(rows: Rows, alpha: float, n_components: int) -> np.ndarray:
    size = min(n_components, rows.n_features)
    model = IncrementalPCA(n_components=size)
    for A, _ in rows.batches(2 * n_components):
        if A.shape[0] >= size:  # it takes no fewer rows than components
            model.partial_fit(A.toarray() if sparse.issparse(A) else A)
    V = model.components_
    gram, products = np.zeros((size, size)), np.zeros(size)
    for A, b in rows.batches():
        scores = np.asarray(A @ V.T, np.float64)  # of the rows as they are: all are centred
        gram += scores.T @ scores
        products += scores.T @ b
    return V.T @ np.linalg.solve(gram + alpha * np.eye(size), products)
