"""Data for the tests of the estimators."""

from itertools import pairwise

import joblib
import numpy as np


def regression(n_rows=400, n_features=12, n_targets=None, seed=0, dtype=float):
    """Rows with means far from zero, so that a wrong intercept shows."""
    rng = np.random.default_rng(seed)
    shape = (n_features,) if n_targets is None else (n_features, n_targets)
    X = (rng.standard_normal((n_rows, n_features)) + 3 * rng.standard_normal(n_features)).astype(
        dtype
    )
    y = X @ rng.standard_normal(shape)
    return X, y + rng.standard_normal(y.shape) + 7.0


def classification(n_classes, n_rows=300, n_features=10, seed=0):
    rng = np.random.default_rng(seed)
    kinds = np.arange(n_rows) % n_classes
    rng.shuffle(kinds)
    centres = rng.standard_normal((n_classes, n_features))
    return centres[kinds] + rng.standard_normal((n_rows, n_features)) + 2.0, kinds


def frozen(estimator):
    """Everything an estimator knows, as bytes."""
    return joblib.hash(estimator)


def split(n_rows, seed=0, pieces=7):
    """Cut a range of rows at random places."""
    cuts = np.random.default_rng(seed).integers(1, n_rows, size=pieces)
    edges = [0, *sorted({int(cut) for cut in cuts}), n_rows]
    return [slice(a, b) for a, b in pairwise(edges)]
