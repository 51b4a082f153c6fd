"""Make the files that every later version must read: run it once for each version of the format.

A model is written in the oldest version that can hold it.

    .venv/bin/python tests/store/make_golden.py

Files of versions that were released are never made anew.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.store import save

FOLDER = Path(__file__).parent / "golden"


def rows(n_rows, seed, n_features=12):
    """Rows from integer arithmetic alone, the same with every version of NumPy."""
    numbers = np.arange(n_rows * n_features, dtype=np.uint64) + np.uint64(1 + seed * 10**6)
    mixed = (numbers * np.uint64(2654435761)) % np.uint64(2**32)
    mixed = (mixed ^ (mixed >> np.uint64(15))) * np.uint64(2246822519) % np.uint64(2**32)
    X = mixed.astype(float).reshape(n_rows, n_features) / 2**32 - 0.25
    return X * (1 + np.arange(n_features))


def targets(X):
    return X @ np.cos(np.arange(X.shape[1])) + np.sin(100 * X[:, 0]) + 3.0


def sparse_rows(n_rows, seed):
    X = rows(n_rows, seed)
    return sparse.csr_array(np.where(np.arange(12) / 4 < X, X, 0.0))


def make():
    """Return a model of each kind, by its file's name."""
    plain = {f"v1_{name}": model for name, model in make_plain().items()}
    return plain | make_refined() | make_carrying()


def make_carrying():
    """Return models of version 3, which carry what rounding did to their rows."""
    X = rows(75, 8).astype(np.float32)
    scaled = StreamingRidge(0.5, method="rfd", sketch_size=4, standardize=True)
    scaled.fit(X, targets(X)).refine(X, targets(X), passes=2)
    X = rows(60, 9)
    merged = StreamingRidge(0.5, method="fd", sketch_size=4).fit(X[:20], targets(X[:20]))
    merged.merge(
        StreamingRidge(0.5, method="fd", sketch_size=4, dtype="float32").fit(X, targets(X))
    )
    X = sparse_rows(90, 10)
    exact = StreamingRidge(0.5, method="exact", standardize=True).fit(X, targets(X.toarray()))
    return {"v3_scaled": scaled, "v3_merged": merged, "v3_sparse_scaled": exact}


def make_refined():
    """Return models of version 2, which have read their rows again."""
    X = rows(75, 6).astype(np.float32)
    anchored = StreamingRidge(0.5, method="anchored", sketch_size=4, standardize=True)
    anchored.fit(X, targets(X)).refine(X, targets(X), passes=2, alphas=[0.5, 5.0])
    X = sparse_rows(120, 7)
    folds = StreamingRidgeCV([1.0, 10.0], cv=2, method="rfd", sketch_size=3)
    folds.fit(X, targets(X.toarray())).refine(X, targets(X.toarray()))
    return {"v2_anchored": anchored, "v2_sparse_folds": folds}


def make_plain():
    """Return models of version 1."""
    names = [f"feature {i}" for i in range(12)]
    X = rows(75, 1)
    frame = pd.DataFrame(X.astype(np.float32), columns=names)
    weights = 0.5 + (np.arange(75) % 3)
    anchored = StreamingRidge(0.5, method="anchored", sketch_size=5, standardize=True)
    anchored.partial_fit(frame, targets(X), weights)
    anchored._learned.columns = {"features": names}

    X, kinds = rows(300, 2), np.array(["ash", "elm", "oak"])
    exact = StreamingRidgeClassifier(2.0, method="exact", class_weight={"oak": 2.0})
    exact.fit(X, kinds[(X[:, 0] * 3 + X[:, 1]).astype(int) % 3])

    X = sparse_rows(400, 3)
    folds = StreamingRidgeCV([0.1, 1.0, 10.0], cv=3, method="rfd", sketch_size=4)
    folds.partial_fit(X, targets(X.toarray()))

    X = rows(90, 4)
    two_level = StreamingRidge(1, method="2lfd", sketch_size=7, random_state=5)
    two_level.fit(X, np.column_stack([targets(X), -targets(X[:, ::-1])]))

    X = rows(50, 5)
    count = StreamingRidge(1.0, method="cs", sketch_size=8, random_state=6, fit_intercept=False)
    count.fit(X, targets(X)[:, None])
    return {
        "anchored": anchored,
        "exact_classifier": exact,
        "sparse_folds": folds,
        "two_level": two_level,
        "count_sketch": count,
    }


def expected(model):
    return {
        "class": type(model).__name__,
        "n_samples_seen": model.n_samples_seen_,
        "coef": model.coef_.tolist(),
        "intercept": np.asarray(model.intercept_).tolist(),
        "relative": np.asarray(model.certificate().relative).tolist(),
        "passes": model.certificate().passes,
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, model in make().items():
        path = FOLDER / f"{name}.ridge"
        if path.exists():
            continue
        save(model, path, notes={"made by": "make_golden.py"})
        path.with_suffix(".json").write_text(json.dumps(expected(model), indent=1) + "\n")
        print(path.name, path.stat().st_size)
