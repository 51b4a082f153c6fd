"""river's LinearRegression: mini-batches of dense rows, dictionaries of sparse ones."""

import numpy as np
import pandas as pd
from river.linear_model import LinearRegression

from benchmarks.peers.storage import Rows

BATCH = 32  # a mini-batch is one step


def fit(rows: Rows, alpha: float) -> np.ndarray:
    model = started(rows, alpha)
    with np.errstate(all="ignore"):
        for A, b in rows.batches(None if rows.sparse else BATCH):
            (learn_dictionaries if rows.sparse else learn_frame)(model, A, b)
    coef = np.zeros(rows.n_features)
    if model.weights:
        coef[list(model.weights)] = list(model.weights.values())
    return coef


def started(rows: Rows, alpha: float, **settings: object) -> LinearRegression:
    """Return a model whose step is along 2(x·w − y)x + l2·w: ridge over n, doubled."""
    return LinearRegression(l2=2 * alpha / rows.n_rows, intercept_lr=0.0, **settings)


def learn_frame(model: LinearRegression, A: np.ndarray, b: np.ndarray) -> None:
    model.learn_many(pd.DataFrame(A), pd.Series(b))


def learn_dictionaries(model: LinearRegression, A: object, b: np.ndarray) -> None:
    starts, columns, values = A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    for i, target in enumerate(b.tolist()):
        here = slice(starts[i], starts[i + 1])
        model.learn_one(dict(zip(columns[here], values[here], strict=True)), target)
