"""Models to save, and comparing two of them to the last bit."""

import io
import warnings

import numpy as np
from scipy import sparse

from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.store import from_bytes
from ridgepass.store.layout import pack
from ridgepass.store.models import take_model
from same_bits import assert_same_bits

N_FEATURES = 9
# What a source of tables says of such rows.
COLUMNS = {
    "kind": "table",
    "features": [
        {"name": "ä, [b]: {c}"},
        {"name": "list", "length": 4},
        {"name": "city", "categories": ["Bonn", "Köln", "Rome"]},
        {"name": "last"},
    ],
    "targets": ["y"],
    "weight": "w",
    "nulls": "mean",
    "dtype": "float64",
    "means": [0.1 * i for i in range(N_FEATURES)],
}


def batch(n_rows, *, n_targets=0, dtype=float, is_sparse=False, weighted=False, seed=0, scale=1.0):
    """Rows whose means, scales and sparsity all differ by column, targets and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_FEATURES)) * (1 + np.arange(N_FEATURES)) * scale
    X = (X + np.arange(N_FEATURES)) * (rng.random(X.shape) < np.linspace(0.3, 1, N_FEATURES))
    y = X[:, :1] - 2 * X[:, 1:2] + rng.standard_normal((n_rows, n_targets or 1)) + 5.0
    weights = rng.integers(0, 4, n_rows) / 2 if weighted else None
    rows = sparse.csr_array(X.astype(dtype)) if is_sparse else X.astype(dtype)
    return rows, y if n_targets else y[:, 0], weights


def to_bytes(model, notes=None):
    """What ``save`` would write."""
    file = io.BytesIO()
    learned = model._trained()
    with learned.lock:
        pack(take_model(model, learned), notes or {}).write_to(file)
    return file.getvalue()


def again(model):
    """The model after a journey through a file, which it would write once more."""
    content = to_bytes(model)
    found = from_bytes(content, "a file").model
    assert to_bytes(found) == content
    return found


def streams_of(model):
    learned = model._learned
    return getattr(learned, "folds", None) or [learned.stream]


def assert_same(left, right):
    """All that both have learned is the same, to the last bit, and so is what they answer."""
    assert type(left) is type(right)
    for mine, theirs in zip(streams_of(left), streams_of(right), strict=True):
        assert_same_bits(mine, theirs)
        assert (mine.seed, mine.alpha) == (theirs.seed, theirs.alpha)
        # Sparse rows that came one by one hold a little more than the same rows together.
        assert theirs.nbytes == mine.nbytes or mine._state.is_sparse
    np.testing.assert_array_equal(left.coef_, right.coef_)
    np.testing.assert_array_equal(left.intercept_, right.intercept_)
    X = np.vstack([np.eye(3, left.n_features_in_), np.ones((1, left.n_features_in_))])
    for confidence in (1.0, 1 - 1e-6):
        proofs = [one.certificate(confidence=confidence) for one in (left, right)]
        for name in ("relative", "coef_bound", "energy_bound", "estimate"):
            np.testing.assert_array_equal(*(getattr(proof, name) for proof in proofs))
        for name in ("confidence", "rests_on", "remark", "passes"):
            assert getattr(proofs[0], name) == getattr(proofs[1], name)
        np.testing.assert_array_equal(*(proof.coefficient_bounds() for proof in proofs))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            np.testing.assert_array_equal(*(proof.prediction_bound(X) for proof in proofs))


def small_models():
    """A model of each class, as small as it can be while each part of a file is there."""
    X, y, weights = batch(30, weighted=True)
    regressor = StreamingRidge(
        2, method="tracked", sketch_size=4, standardize=True, dtype="float32"
    ).partial_fit(X, y, weights)
    regressor._learned.columns = COLUMNS
    rows, targets, _ = batch(61, is_sparse=True, n_targets=2)
    chooser = StreamingRidgeCV([0.1, 1.0], cv=2, method="cs", sketch_size=3, random_state=0)
    chooser.partial_fit(rows, targets).select([1.0, 5.0], rows, targets)
    kinds = np.array(["ash", "elm", "oak"])[np.arange(30) % 3]
    classifier = StreamingRidgeClassifier(
        method="2lfd", sketch_size=4, random_state=1, class_weight={"ash": 2.0}
    ).fit(X, kinds)
    return {"regressor": regressor, "chooser": chooser, "classifier": classifier}
