"""StreamingRidge is scikit-learn's Ridge when its method is exact."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimator_data import regression
from ridgepass.estimators import StreamingRidge


def exact(**parameters):
    return StreamingRidge(method="exact", **parameters)


def assert_same_model(ours, theirs, tolerance=1e-8):
    for name in ("coef_", "intercept_"):
        mine, wanted = getattr(ours, name), getattr(theirs, name)
        assert np.shape(mine) == np.shape(wanted), name
        scale = np.abs(wanted).max() or 1.0
        np.testing.assert_allclose(mine, wanted, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 30.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_agrees_with_ridge(alpha, fit_intercept, weighted, n_targets):
    X, y = regression(n_targets=n_targets)
    weights = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    ours = exact(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, weights)
    theirs = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, weights)
    assert_same_model(ours, theirs)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8, atol=1e-8)
    assert ours.predict(X).shape == theirs.predict(X).shape
    assert ours.score(X, y, weights) == pytest.approx(theirs.score(X, y, weights), rel=1e-10)


@pytest.mark.parametrize("n_targets", [None, 2])
def test_agrees_with_ridge_on_the_same_float32_numbers(n_targets):
    X, y = regression(n_targets=n_targets, dtype=np.float32)
    ours = exact(alpha=2.0).fit(X, y)
    assert_same_model(ours, Ridge(alpha=2.0).fit(X.astype(float), y))
    assert ours.predict(X).dtype == np.float64


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_agrees_with_ridge_on_sparse_rows(kind, fit_intercept):
    X, y = regression(n_targets=2)
    X[np.random.default_rng(2).random(X.shape) < 0.7] = 0.0
    weights = np.random.default_rng(1).exponential(size=len(X))
    ours = exact(alpha=2.0, fit_intercept=fit_intercept).fit(kind(X), y, weights)
    theirs = Ridge(alpha=2.0, fit_intercept=fit_intercept).fit(X, y, weights)
    assert_same_model(ours, theirs)
    np.testing.assert_allclose(ours.predict(kind(X)), theirs.predict(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n_targets", [None, 2])
def test_standardize_is_a_scaler_in_front(weighted, n_targets):
    X, y = regression(n_targets=n_targets)
    X *= np.logspace(-3, 3, X.shape[1])
    weights = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    ours = exact(alpha=20.0, standardize=True).fit(X, y, weights)
    piped = make_pipeline(StandardScaler(), Ridge(alpha=20.0))
    piped.fit(X, y, standardscaler__sample_weight=weights, ridge__sample_weight=weights)
    np.testing.assert_allclose(ours.predict(X), piped.predict(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.coef_ * piped[0].scale_, piped[1].coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.scale_, piped[0].scale_, rtol=1e-10)


def test_feature_scale_divides_the_features():
    X, y = regression()
    scale = np.logspace(-2, 2, X.shape[1])
    ours = exact(alpha=5.0, feature_scale=list(scale)).fit(X, y)
    plain = Ridge(alpha=5.0).fit(X / scale, y)
    np.testing.assert_allclose(ours.coef_ * scale, plain.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(ours.scale_, scale)


def test_means_far_from_zero_lose_nothing():
    X, y = regression()
    offset = np.where(np.arange(X.shape[1]) % 2, 1e6, 1e-6)
    ours = exact(alpha=1.0).fit(X + offset, y)
    plain = Ridge(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-8, atol=1e-8)


def test_a_sketch_of_low_rank_rows_is_exact_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 40)) + 4.0
    y = X @ rng.standard_normal(40)
    ours = StreamingRidge(alpha=1.0, method="rfd", sketch_size=16).fit(X, y)
    assert_same_model(ours, Ridge(alpha=1.0).fit(X, y))


@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_to_sklearn_predicts_the_same(n_targets):
    X, y = regression(n_targets=n_targets)
    ours = StreamingRidge(alpha=3.0, method="rfd", sketch_size=4).fit(X, y)
    plain = ours.to_sklearn()
    assert type(plain) is Ridge
    assert plain.alpha == 3.0
    assert plain.n_features_in_ == X.shape[1]
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_allclose(plain.predict(X), ours.predict(X), rtol=1e-12)
    plain.coef_ *= 2
    assert not np.allclose(plain.coef_, ours.coef_)


def test_columns_of_one_target_and_plain_targets_mix():
    X, y = regression()
    mixed = exact().partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:, None])
    np.testing.assert_array_equal(mixed.coef_, exact().fit(X, y).coef_)
