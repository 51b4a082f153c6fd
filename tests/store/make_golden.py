"""Make the files that every later version must read: run it once for each version of the format.

    .venv/bin/python tests/store/make_golden.py

Files of versions that were released are never made anew. Those of versions 1 to 3 are only read;
"anchored", which some of them have learned with, is gone.
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
    found = make_tracked() | make_plain(probes=2) | make_carrying(probes=2)
    return {f"v4_{name}": model for name, model in found.items()}


def make_before():
    """Return models as versions 1 to 3 had them, but for those of "anchored"."""
    plain = {f"v1_{name}": model for name, model in make_plain(probes=0).items()}
    carrying = {f"v3_{name}": model for name, model in make_carrying(probes=0).items()}
    return plain | {"v2_sparse_folds": make_refined_folds()} | carrying


def make_tracked():
    """Return models of "tracked": following and not yet, sparse, refined, without their probes."""
    names = [f"feature {i}" for i in range(12)]
    X = rows(75, 1)
    frame = pd.DataFrame(X.astype(np.float32), columns=names)
    weights = 0.5 + (np.arange(75) % 3)
    tracked = StreamingRidge(50.0, method="tracked", sketch_size=4, standardize=True)
    tracked.partial_fit(frame, targets(X), weights)
    tracked._learned.columns = {"features": names}

    X = rows(75, 11)[:, :5] @ rows(5, 12)
    start = StreamingRidge(0.5, method="tracked", sketch_size=7, probes=2).fit(X, targets(X))

    X = sparse_rows(4100, 13)
    in_columns = StreamingRidge(0.5, method="tracked", sketch_size=3, probes=2)
    in_columns.fit(X, targets(X.toarray()))

    X = rows(75, 6).astype(np.float32)
    refined = StreamingRidge(0.5, method="tracked", sketch_size=4, standardize=True, probes=2)
    refined.fit(X, targets(X)).refine(X, targets(X), passes=2, alphas=[0.5, 5.0])

    X = rows(150, 14)
    merged = StreamingRidge(0.5, method="tracked", sketch_size=4, random_state=1)
    merged.fit(X[:70], targets(X[:70]))
    other = StreamingRidge(0.5, method="tracked", sketch_size=6, random_state=2)
    merged.merge(other.fit(X[70:], targets(X[70:])))

    X = rows(150, 15)
    many = StreamingRidge(0.5, method="tracked", sketch_size=4, probes=2)
    many.fit(X, np.column_stack([targets(X), targets(X[:, ::-1]), X[:, 0]]))
    return {
        "tracked": tracked,
        "tracked_start": start,
        "tracked_sparse": in_columns,
        "tracked_refined": refined,
        "tracked_merged": merged,
        "tracked_many_targets": many,
    }


def make_carrying(probes):
    """Return models that carry what rounding did to their rows."""
    more = {"sketch_size": 4, "probes": probes}
    X = rows(75, 8).astype(np.float32)
    scaled = StreamingRidge(0.5, method="rfd", standardize=True, **more)
    scaled.fit(X, targets(X)).refine(X, targets(X), passes=2)
    X = rows(60, 9)
    merged = StreamingRidge(0.5, method="fd", **more).fit(X[:20], targets(X[:20]))
    merged.merge(StreamingRidge(0.5, method="fd", dtype="float32", **more).fit(X, targets(X)))
    X = sparse_rows(90, 10)
    exact = StreamingRidge(0.5, method="exact", standardize=True).fit(X, targets(X.toarray()))
    return {"scaled": scaled, "merged": merged, "sparse_scaled": exact}


def make_refined_folds():
    X = sparse_rows(120, 7)
    folds = StreamingRidgeCV([1.0, 10.0], cv=2, method="rfd", sketch_size=3, probes=0)
    return folds.fit(X, targets(X.toarray())).refine(X, targets(X.toarray()))


def make_plain(probes):
    """Return models of the paper's methods."""
    X, kinds = rows(300, 2), np.array(["ash", "elm", "oak"])
    exact = StreamingRidgeClassifier(2.0, method="exact", class_weight={"oak": 2.0})
    exact.fit(X, kinds[(X[:, 0] * 3 + X[:, 1]).astype(int) % 3])

    X = sparse_rows(400, 3)
    folds = StreamingRidgeCV([0.1, 1.0, 10.0], cv=3, method="rfd", sketch_size=4, probes=probes)
    folds.partial_fit(X, targets(X.toarray()))

    X = rows(90, 4)
    two_level = StreamingRidge(1, method="2lfd", sketch_size=7, random_state=5, probes=probes)
    two_level.fit(X, np.column_stack([targets(X), -targets(X[:, ::-1])]))

    X = rows(50, 5)
    options = {"sketch_size": 8, "random_state": 6, "fit_intercept": False, "probes": probes}
    count = StreamingRidge(1.0, method="cs", **options).fit(X, targets(X)[:, None])
    return {
        "exact_classifier": exact,
        "sparse_folds": folds,
        "two_level": two_level,
        "count_sketch": count,
    }


def expected(model):
    proof, certain = model.certificate(), model.certificate(confidence=1)
    return {
        "class": type(model).__name__,
        "n_samples_seen": model.n_samples_seen_,
        "coef": model.coef_.tolist(),
        "intercept": np.asarray(model.intercept_).tolist(),
        "relative": np.asarray(certain.relative).tolist(),
        "probed": np.asarray(proof.relative).tolist(),
        "rests_on": proof.rests_on,
        "remark": proof.remark,
        "passes": proof.passes,
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
