"""ridgepass, one batch after another."""

import numpy as np

from benchmarks.peers.storage import CannotRunError, Rows
from ridgepass import StreamingRidge


def fit(rows: Rows, alpha: float, method: str = "tracked", size: int = 256) -> np.ndarray:
    gram = 8 * rows.n_features**2
    if method == "exact" and gram > rows.memory_limit:
        raise CannotRunError(f"d² numbers are {gram / 1e9:.3g} GB")
    options = {} if method == "tracked" else {"probes": 0}  # as the paper has its methods
    model = StreamingRidge(alpha, method=method, sketch_size=size, fit_intercept=False, **options)
    for A, b in rows.batches():
        model.partial_fit(A, b)
    return model.coef_
