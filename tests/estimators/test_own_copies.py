"""What a caller does with its arrays after a call changes nothing that was learned."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ridgepass import RidgeStream, StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from same_bits import assert_unchanged, everything
from store.models import to_bytes
from streams import METHODS

STORES = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csc": sparse.csc_array,
}
BY_STORE = pytest.mark.parametrize("store", STORES.values(), ids=STORES)
# 5 rows are less than any block. 256 are whole blocks, which some sketches take as views.
SIZES = (5, 256, 3)


def make(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 6)) * (rng.random((n_rows, 6)) < 0.7) + np.arange(6)
    return X, rng.standard_normal((n_rows, 2)), rng.random(n_rows) + 0.5


def spoil(*arrays):
    """Write into all that was handed over."""
    for given in arrays:
        if sparse.issparse(given):
            given.data[:], given.indices[:] = 1e30, 0
        elif given.dtype.kind in "OU":
            given[:] = "spoilt"
        else:
            given[:] = 1 if given.dtype.kind in "iub" else 1e30


@BY_STORE
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": True}, {"standardize": True}, {"feature_scale": np.arange(1.0, 7.0)}],
    ids=["plain", "intercept", "standardize", "scale"],
)
def test_batches_of_a_stream(method, options, store):
    options = {name: np.copy(value)[()] for name, value in options.items()}
    stream = RidgeStream(method, sketch_size=4, **options)
    for seed, size in enumerate(SIZES):
        for weighted in (False, True):
            X, y, weights = make(size, seed)
            X = store(X)
            stream.update(X, y, weights if weighted else None)
            before = everything(stream)
            spoil(X, y, weights, *(v for v in options.values() if isinstance(v, np.ndarray)))
            assert_unchanged(before, stream)


@BY_STORE
@pytest.mark.parametrize("cv", [None, 3])
def test_batches_of_an_estimator(cv, store):
    model = StreamingRidgeCV([1.0, 2.0], cv=cv, method="rfd", sketch_size=4)
    for seed, size in enumerate(SIZES):
        X, y, weights = make(size, seed)
        X = store(X)
        model.partial_fit(X, y, weights)
        before = to_bytes(model)
        spoil(X, y, weights)
        assert to_bytes(model) == before


def test_folds_and_alphas():
    X, y, _ = make(30, 0)
    splits = [(np.arange(30)[np.arange(30) % 3 != i], np.arange(i, 30, 3)) for i in range(3)]
    model = StreamingRidgeCV(cv=splits, method="rfd", sketch_size=4).fit(X, y)
    grid = np.array([0.5, 5.0, 50.0])
    model.select(grid, X, y)
    learned, alpha = model._learned.snapshot(), model.alpha_
    dealt = learned["dealt"].copy()
    spoil(*(rows for split in splits for rows in split), grid, model.alphas_, model.scores_)
    np.testing.assert_array_equal(model._learned.deal.given, dealt)
    assert model.alpha_ == alpha
    np.testing.assert_array_equal(model.alphas_, [0.5, 5.0, 50.0])


@pytest.mark.parametrize("classes", [["ash", "elm", "oak"], [3, 5, 9]])
@pytest.mark.parametrize("kind", [None, object])
def test_labels(classes, kind):
    X, _, weights = make(30, 0)
    given = np.array(classes, dtype=kind)
    y = given[np.arange(30) % 3].copy()
    model = StreamingRidgeClassifier(method="rfd", sketch_size=4, class_weight={classes[0]: 2.0})
    model.partial_fit(X, y, classes=given, sample_weight=weights)
    before, answer = to_bytes(model), model.predict(X[:5]).copy()
    new = X[:5].copy()
    spoil(X, y, given, weights)
    assert to_bytes(model) == before
    np.testing.assert_array_equal(model.predict(new), answer)


def test_names_of_columns():
    X, y, _ = make(30, 0)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = StreamingRidge(method="rfd", sketch_size=4).fit(frame, y)
    before = to_bytes(model)
    frame.columns = list("uvwxyz")
    frame.iloc[:, :] = 7.0
    assert to_bytes(model) == before


def test_a_scale_given_as_an_array():
    X, y, _ = make(30, 0)
    scale = np.arange(1.0, 7.0)
    model = StreamingRidge(method="rfd", sketch_size=4, feature_scale=scale).fit(X, y)
    coef, bound = model.coef_.copy(), model.certificate().relative
    spoil(scale)
    model.set_params(alpha=2.0)
    model.set_params(alpha=1.0)
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(model.certificate().relative, bound)
    # The parameter is the caller's own array, by scikit-learn's rule: training on needs the old.
    with pytest.raises(ValueError, match="feature_scale"):
        model.partial_fit(X, y)


def test_merging_leaves_nothing_in_common():
    for method in METHODS:
        for store in (np.asarray, sparse.csr_array):
            one, other = (RidgeStream(method, sketch_size=4, fit_intercept=True) for _ in range(2))
            X, y, weights = make(37, 0)
            other.update(store(X), y, weights)
            one.merge(other)
            before = everything(one)
            other.update(store(X[::-1] * 3.0), y, weights)
            assert_unchanged(before, one)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_certificate_hands_out_nothing_that_can_be_written(intercept):
    X, y, _ = make(60, 0)
    scale = np.arange(1.0, 7.0)
    model = StreamingRidge(
        method="rfd", sketch_size=4, fit_intercept=intercept, feature_scale=scale
    )
    model.fit(X, y)
    for _ in range(2):
        proof = model.certificate()
        for part in (proof.mean, proof.scale, model.scale_, model.coef_):
            assert part is None or not part.flags.writeable
        model.refine(X, y)
