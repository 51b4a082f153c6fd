"""Training: any batches, merges, and calls that fail."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from estimator_data import frozen, regression, split
from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier
from ridgepass.sketch import SKETCHES


def in_batches(model, X, y, weights=None, seed=0):
    for rows in split(X.shape[0], seed):
        model.partial_fit(X[rows], y[rows], None if weights is None else weights[rows])
    return model


@pytest.mark.parametrize("method", ["auto", *SKETCHES])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_do_not_matter(method, weighted, dtype):
    X, y = regression(n_features=40, n_targets=2, dtype=dtype)
    weights = np.random.default_rng(1).integers(3, size=len(X)) if weighted else None

    def fresh():
        return StreamingRidge(method=method, sketch_size=6, random_state=0)

    whole = fresh().fit(X, y, weights)
    for seed in range(2):
        batches = in_batches(fresh(), X, y, weights, seed)
        np.testing.assert_array_equal(batches.coef_, whole.coef_)
        np.testing.assert_array_equal(batches.intercept_, whole.intercept_)
        assert batches.n_samples_seen_ == whole.n_samples_seen_
    rows = fresh()
    for i in range(len(X)):
        rows.partial_fit(
            X[i : i + 1], y[i : i + 1], None if weights is None else weights[i : i + 1]
        )
    np.testing.assert_array_equal(rows.coef_, whole.coef_)


@pytest.mark.parametrize("method", ["exact", "rfd", "cs"])
def test_batches_of_standardized_and_of_sparse_rows_do_not_matter(method):
    X, y = regression(n_features=40)
    X[np.random.default_rng(0).random(X.shape) < 0.8] = 0.0
    for rows, standardize in ((X, True), (sparse.csr_array(X), True), (sparse.csr_array(X), False)):
        options = {"method": method, "sketch_size": 6, "standardize": standardize}
        whole = StreamingRidge(random_state=0, **options).fit(rows, y)
        batches = in_batches(StreamingRidge(random_state=0, **options), rows, y)
        np.testing.assert_array_equal(batches.coef_, whole.coef_)


@pytest.mark.parametrize("method", ["2lfd", "rp", "cs"])
def test_random_state(method):
    X, y = regression(n_features=40)

    def coef(random_state):
        options = {"method": method, "sketch_size": 6, "random_state": random_state}
        return StreamingRidge(**options).fit(X, y).coef_

    np.testing.assert_array_equal(coef(1), coef(1))
    assert not np.array_equal(coef(1), coef(2))
    generator = np.random.RandomState(0)
    assert not np.array_equal(coef(generator), coef(generator))
    assert not np.array_equal(coef(None), coef(None))


def test_deterministic_methods_leave_the_global_generator_alone():
    X, y = regression()
    np.random.seed(0)  # noqa: NPY002 - scikit-learn's default generator is the global one
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    StreamingRidge(method="rfd", sketch_size=4).fit(X, y).predict(X)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("method", sorted(set(SKETCHES) - {"rp", "cs"}))
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_merging_is_one_stream(method, fit_intercept):
    X, y = regression(n_features=30, n_targets=2)
    weights = np.random.default_rng(1).exponential(size=len(X))
    options = {"method": method, "sketch_size": 80, "fit_intercept": fit_intercept}
    parts = [StreamingRidge(**options).fit(X[r], y[r], weights[r]) for r in split(len(X))]
    kept = [frozen(part) for part in parts]
    merged = StreamingRidge(alpha=5.0, **options)
    for part in parts:
        assert merged.merge(part) is merged
    assert [frozen(part) for part in parts] == kept
    assert merged.n_samples_seen_ == len(X)
    wanted = Ridge(alpha=5.0, fit_intercept=fit_intercept).fit(X, y, weights)
    np.testing.assert_allclose(merged.coef_, wanted.coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(merged.intercept_, wanted.intercept_, rtol=1e-8, atol=1e-7)


def test_merging_other_sizes_and_nothing():
    X, y = regression(n_features=40)
    small = StreamingRidge(method="rfd", sketch_size=4).fit(X[:200], y[:200])
    large = StreamingRidge(method="rfd", sketch_size=16).fit(X[200:], y[200:])
    merged = StreamingRidge(alpha=2.0, sketch_size=8).merge(small).merge(large)
    assert (merged.method_, merged.sketch_size_, merged.n_samples_seen_) == ("rfd", 8, 400)
    before = frozen(merged)
    assert merged.merge(StreamingRidge()) is merged
    assert frozen(merged) == before
    nothing = StreamingRidge().merge(StreamingRidge())
    with pytest.raises(NotFittedError):
        nothing.predict(X)


def test_merging_keeps_names():
    X, y = regression(n_features=3)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = StreamingRidge().merge(StreamingRidge().fit(table, y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="must be in the same order"):
        model.merge(StreamingRidge().fit(table[["b", "a", "c"]], y))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.merge(StreamingRidge().fit(X, y))
    assert model.n_samples_seen_ == 2 * len(X)


def test_only_alike_models_merge():
    X, y = regression()
    model = StreamingRidge(method="exact").fit(X, y)
    before = frozen(model)
    unlike = {
        "method 'exact' cannot take in 'fd'": StreamingRidge(method="fd").fit(X, y),
        "differ in fit_intercept": StreamingRidge(fit_intercept=False).fit(X, y),
        "differ in standardize": StreamingRidge(standardize=True).fit(X, y),
        "differ in feature_scale": StreamingRidge(feature_scale=np.ones(12)).fit(X, y),
        "11 features": StreamingRidge().fit(X[:, 1:], y),
        r"shape \(n_rows, 2\)": StreamingRidge().fit(X, np.c_[y, y]),
        "with itself": model,
    }
    for message, other in unlike.items():
        with pytest.raises(ValueError, match=f"StreamingRidge: .*{message}"):
            model.merge(other)
    for other in (StreamingRidgeClassifier(), Ridge(), None):
        with pytest.raises(TypeError, match="give the same class"):
            model.merge(other)
    assert frozen(model) == before
    fresh = StreamingRidge(method="rfd")
    with pytest.raises(ValueError, match="'rfd' cannot take in 'exact'"):
        fresh.merge(model)
    assert frozen(fresh) == frozen(StreamingRidge(method="rfd"))


def test_parts_for_which_auto_chose_differently_are_told_so():
    X, y = regression()
    X = np.c_[X, X]
    exact, sketched = (StreamingRidge(sketch_size=size).fit(X, y) for size in (256, 2))
    assert exact.method_ == "exact" != sketched.method_
    with pytest.raises(ValueError, match="'auto' chose by sketch_size and memory, so use the same"):
        exact.merge(sketched)


def with_value(X, value):
    bad = X.copy()
    bad[17, 2] = value
    return bad


BAD_BATCHES = {
    "nan": (lambda X, y: (with_value(X, np.nan), y), "X contains NaN in row 17, column 2"),
    "infinity": (
        lambda X, y: (with_value(X, np.inf), y),
        "X contains infinity in row 17, column 2",
    ),
    "overflow": (lambda X, y: (with_value(X, 1e200), y), "row 17, column 2"),
    "too narrow": (lambda X, y: (X[:, 1:], y), "X has 11 features"),
    "one dimension": (lambda X, y: (X[0], y), "Reshape your data"),
    "three dimensions": (lambda X, y: (X[None], y), "dim 3"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "text": (lambda X, y: (X.astype(str).astype(object) + "x", y), "could not convert"),
    "complex": (lambda X, y: (X * 1j, y), "Complex data not supported"),
    "sparse nan": (
        lambda X, y: (sparse.csc_array(with_value(X, np.nan)), y),
        "X contains NaN in row 17, column 2",
    ),
    "times": (lambda X, y: (X.astype("M8[s]"), y), "X has dtype datetime64.*convert times to numb"),
    "target times": (lambda X, y: (X, y.astype("m8[s]")), "y has dtype timedelta64"),
    "masked": (lambda X, y: (np.ma.masked_greater(X, 2.0), y), "X has masked values: drop"),
    "no targets": (lambda X, y: (X, None), "requires y to be passed"),
    "few targets": (lambda X, y: (X, y[1:]), "400 rows but y has 399"),
    "nan target": (lambda X, y: (X, np.where(y == y[5], np.nan, y)), "y contains NaN in row 5"),
    "more targets": (lambda X, y: (X, np.c_[y, y]), r"shape \(n_rows, 2\)"),
    "number for targets": (lambda X, y: (X, 3.0), "y is a single number"),
    "no target columns": (lambda X, y: (X, np.empty((len(y), 0))), "y has no columns"),
    "text targets": (lambda X, y: (X, y.astype(str).astype(object) + "x"), "could not convert"),
    "negative weight": (lambda X, y: (X, y, -np.ones(len(y))), "sample_weight has -1 in row 0"),
    "nan weight": (lambda X, y: (X, y, np.full(len(y), np.nan)), "sample_weight contains NaN"),
    "few weights": (lambda X, y: (X, y, np.ones(3)), r"sample_weight has shape \(3,\)"),
}


def assert_refused(call, batch, message):
    with pytest.raises(ValueError, match=message) as caught:
        call(*batch)
    assert "StreamingRidge" in str(caught.value)


@pytest.mark.parametrize("case", BAD_BATCHES)
@pytest.mark.parametrize("method", ["exact", "rfd"])
def test_a_call_that_fails_changes_nothing(case, method):
    make, message = BAD_BATCHES[case]
    X, y = regression()
    unfitted = StreamingRidge(method=method, sketch_size=4)
    first_batch = case not in ("too narrow", "more targets")
    if first_batch:
        assert_refused(unfitted.fit, make(X, y), message)
        assert_refused(unfitted.partial_fit, make(X, y), message)
    assert frozen(unfitted) == frozen(StreamingRidge(method=method, sketch_size=4))
    assert not hasattr(unfitted, "n_features_in_")
    model = StreamingRidge(method=method, sketch_size=4).fit(X, y)
    model.predict(X)
    before = frozen(model)
    assert_refused(model.partial_fit, make(X, y), message)
    if first_batch:
        assert_refused(model.fit, make(X, y), message)
    assert frozen(model) == before
    np.testing.assert_array_equal(model.partial_fit(X, y).n_samples_seen_, 2 * len(X))


def test_a_failed_fit_on_other_columns_keeps_the_old_ones():
    X, y = regression(n_features=4)
    model = StreamingRidge().fit(pd.DataFrame(X, columns=list("abcd")), y)
    bad = pd.DataFrame({"p": [1.0, 2.0], "q": [np.nan, 1.0]})
    with pytest.raises(ValueError, match="StreamingRidge: X contains NaN in row 0, column 'q'"):
        model.fit(bad, [1.0, 2.0])
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list("abcd")


def test_parameters_cannot_change_under_a_stream():
    X, y = regression()
    model = StreamingRidge(method="rfd", sketch_size=4).fit(X, y)
    model.set_params(method="fd", memory="1GB")
    with pytest.raises(ValueError, match="method, memory changed after training began: call fit"):
        model.partial_fit(X, y)
    assert model.method_ == "rfd"
    assert model.fit(X, y).method_ == "fd"
    model.set_params(memory=10**9, alpha=3.0, random_state=1).partial_fit(X, y)
    assert model.n_samples_seen_ == 2 * len(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "sgd"}, "method='sgd' is unknown: choose one of auto, exact, fd"),
        ({"method": "anchored"}, "method='anchored' is gone: use method='tracked'"),
        ({"probes": -1}, "probes=-1"),
        ({"probes": 2.5}, "probes=2.5"),
        ({"probes": None}, "probes=None"),
        ({"sketch_size": 1}, "sketch_size=1 is too small"),
        ({"sketch_size": 2.5}, "sketch_size=2.5 is not a whole number"),
        ({"memory": "much"}, "memory='much' is not an amount of memory"),
        ({"fit_intercept": "yes"}, "fit_intercept='yes'"),
        ({"standardize": 1}, "standardize=1"),
        ({"dtype": "int8"}, "dtype='int8' is not supported"),
        ({"feature_scale": [1.0, 2.0]}, "feature_scale has 2 numbers"),
        ({"feature_scale": np.zeros(12)}, "feature_scale must hold"),
        ({"feature_scale": np.ones(12), "standardize": True}, "feature_scale are two scalings"),
        ({"method": "cs", "random_state": "x"}, "cannot be used to seed"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = regression()
    for train in (StreamingRidge(**parameters).fit, StreamingRidge(**parameters).partial_fit):
        with pytest.raises(ValueError, match=f"StreamingRidge: .*{message}"):
            train(X, y)


def test_rows_of_weight_zero_are_as_if_not_there():
    X, y = regression()
    weights = np.repeat([0.0, 1.0, 0.0, 2.0], 100)
    model = StreamingRidge(method="exact")
    model.partial_fit(X[:100], y[:100], weights[:100])
    with pytest.raises(NotFittedError):
        model.predict(X)
    for i in range(1, 4):
        rows = slice(100 * i, 100 * (i + 1))
        model.partial_fit(X[rows], y[rows], weights[rows])
    kept = weights > 0
    wanted = StreamingRidge(method="exact").fit(X[kept], y[kept], weights[kept])
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    assert model.n_samples_seen_ == 200
    with pytest.raises(ValueError, match="every sample_weight is zero"):
        model.fit(X, y, np.zeros(len(X)))
    assert model.n_samples_seen_ == 200


def test_one_weight_for_all_rows():
    X, y = regression()
    many = StreamingRidge(alpha=2.0, method="exact").fit(X, y, 2.0)
    np.testing.assert_allclose(many.coef_, StreamingRidge(1.0, method="exact").fit(X, y).coef_)
