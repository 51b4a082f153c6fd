"""Questions to a fitted model: other alphas, certificates, copies."""

import copy
import gc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from estimator_data import regression
from ridgepass import RidgeStream
from ridgepass.estimators import RidgePath, StreamingRidge, StreamingRidgeClassifier
from ridgepass.query import CONFIDENCE


def sketched(**parameters):
    return StreamingRidge(method="rfd", sketch_size=4, **parameters)


@pytest.fixture
def solves(monkeypatch):
    """Count how often a stream is solved."""
    counted = []
    solve = RidgeStream.solve

    def counting(self, alpha):
        counted.append(alpha)
        return solve(self, alpha)

    monkeypatch.setattr(RidgeStream, "solve", counting)
    return counted


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.coef_,
        lambda m: m.intercept_,
        lambda m: m.predict([[1.0]]),
        lambda m: m.at(1.0),
        lambda m: m.path([1.0]),
        lambda m: m.certificate(),
        lambda m: m.to_sklearn(),
        lambda m: m.n_features_in_,
        lambda m: m.method_,
        lambda m: m.sketch_size_,
        lambda m: m.n_samples_seen_,
        lambda m: m.scale_,
        lambda m: m.feature_names_in_,
    ],
)
@pytest.mark.parametrize("estimator", [StreamingRidge, StreamingRidgeClassifier])
def test_nothing_to_ask_before_training(ask, estimator):
    with pytest.raises(NotFittedError, match=estimator.__name__):
        ask(estimator())


def test_attributes_that_depend_on_the_data_may_be_missing():
    X, y = regression()
    model = sketched().fit(X, y)
    assert not hasattr(model, "scale_")
    assert not hasattr(model, "feature_names_in_")
    assert hasattr(sketched(standardize=True).fit(X, y), "scale_")


def test_solved_once_after_many_batches(solves):
    X, y = regression()
    model = sketched()
    for i in range(0, len(X), 10):
        model.partial_fit(X[i : i + 10], y[i : i + 10])
    assert solves == []
    for _ in range(3):
        model.predict(X)
        _ = model.coef_, model.intercept_
    assert solves == [1.0]
    model.set_params(alpha=7.0)
    first = model.coef_
    assert solves == [1.0, 7.0]
    np.testing.assert_array_equal(first, sketched(alpha=7.0).fit(X, y).coef_)
    model.partial_fit(X, y)
    assert not np.array_equal(model.coef_, first)


def test_coefficients_cannot_be_changed_by_accident():
    X, y = regression(n_targets=2)
    model = sketched().fit(X, y)
    for values in (model.coef_, model.intercept_):
        with pytest.raises(ValueError, match="read-only"):
            values *= 2


@pytest.mark.parametrize("n_targets", [None, 3])
def test_a_sibling_at_another_alpha(n_targets, solves):
    X, y = regression(n_targets=n_targets)
    model = sketched(alpha=1.0, fit_intercept=True, random_state=3).fit(X, y)
    other = model.at(50.0)
    assert other.get_params() == model.get_params() | {"alpha": 50.0}
    fresh = sketched(alpha=50.0).fit(X, y)
    np.testing.assert_array_equal(other.coef_, fresh.coef_)
    np.testing.assert_array_equal(other.intercept_, fresh.intercept_)
    np.testing.assert_array_equal(model.coef_, sketched(alpha=1.0).fit(X, y).coef_)
    assert len(solves) == 4  # each of the four once: the two share a stream, not an answer


@pytest.mark.parametrize("trained", ["model", "sibling"])
@pytest.mark.parametrize("how", ["at", "copy", "deepcopy"])
def test_training_one_leaves_its_siblings_alone(trained, how):
    X, y = regression()
    model = sketched().fit(X, y)
    sibling = {
        "at": lambda: model.at(1.0),
        "copy": lambda: copy.copy(model),
        "deepcopy": lambda: copy.deepcopy(model),
    }[how]()
    learner, bystander = (model, sibling) if trained == "model" else (sibling, model)
    before = bystander.coef_.copy()
    learner.partial_fit(X[:50] * 2, y[:50])
    learner.merge(sketched().fit(X, y))
    assert learner.n_samples_seen_ == 2 * len(X) + 50
    assert bystander.n_samples_seen_ == len(X)
    np.testing.assert_array_equal(bystander.coef_, before)
    np.testing.assert_array_equal(bystander.set_params(alpha=2.0).coef_, model_at(2.0, X, y))
    bystander.partial_fit(X[:50] * 2, y[:50])
    assert bystander.n_samples_seen_ == len(X) + 50


def model_at(alpha, X, y):
    return sketched(alpha=alpha).fit(X, y).coef_


def test_the_stream_is_copied_only_if_a_sibling_lives(monkeypatch):
    X, y = regression()
    model = sketched().fit(X, y)
    copies = []
    original = RidgeStream.copy
    monkeypatch.setattr(RidgeStream, "copy", lambda self: copies.append(1) or original(self))
    for alpha in (0.1, 1.0, 10.0):
        model.at(alpha).predict(X)
    gc.collect()
    model.partial_fit(X, y)
    assert copies == []
    sibling = model.at(3.0)
    model.partial_fit(X, y)
    sibling.partial_fit(X, y)
    assert copies == [1]


def test_fit_on_a_sibling_starts_afresh():
    X, y = regression()
    model = sketched().fit(X, y)
    sibling = model.at(2.0).fit(X[:30], y[:30])
    assert (model.n_samples_seen_, sibling.n_samples_seen_) == (len(X), 30)


@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_a_path_is_all_its_siblings(n_targets):
    X, y = regression(n_targets=n_targets)
    model = sketched().fit(X, y)
    alphas = [100.0, 0.5, 3.0]
    path = model.path(alphas)
    assert isinstance(path, RidgePath)
    assert len(path) == 3
    np.testing.assert_array_equal(path.alphas, alphas)
    for i, alpha in enumerate(alphas):
        # All three are to hold at once.
        other, proof = model.at(alpha), model.certificate(alpha, 1 - (1 - CONFIDENCE) / 3)
        np.testing.assert_allclose(path.coefs[i], other.coef_, rtol=1e-12)
        np.testing.assert_allclose(path.intercepts[i], np.squeeze(other.intercept_), rtol=1e-12)
        np.testing.assert_array_equal(path.coef_bounds[i], proof.coef_bound)
        np.testing.assert_array_equal(path.relative_bounds[i], proof.relative)
    assert np.all(path.intercepts != 0)
    assert np.all(sketched(fit_intercept=False).fit(X, y).path(alphas).intercepts == 0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_certificate_holds(fit_intercept, dtype):
    X, y = regression(n_features=30, n_targets=2, dtype=dtype)
    weights = np.random.default_rng(1).exponential(size=len(X))
    model = StreamingRidge(
        alpha=300.0, method="rfd", sketch_size=8, fit_intercept=fit_intercept
    ).fit(X, y, weights)
    exact = Ridge(alpha=300.0, fit_intercept=fit_intercept).fit(X.astype(float), y, weights)
    proof = model.certificate()
    errors = np.linalg.norm(model.coef_ - exact.coef_, axis=1)
    assert np.all(errors <= proof.coef_bound)
    assert np.all(errors <= proof.relative * np.linalg.norm(exact.coef_, axis=1))
    assert np.all(proof.relative < 1)
    bounds = proof.prediction_bound(X)
    assert np.all(np.abs(model.predict(X) - exact.predict(X.astype(float))) <= bounds)
    np.testing.assert_allclose(proof.prediction_bound(sparse.csr_array(X)), bounds, rtol=1e-10)
    assert model.certificate(1e6).alpha == 1e6
    np.testing.assert_array_equal(
        model.certificate(1e6).relative, model.at(1e6).certificate().relative
    )


@pytest.mark.parametrize("given", [True, False])
def test_the_certificate_of_scaled_features_holds(given):
    X, y = regression(n_features=30)
    X *= np.logspace(-2, 2, 30)
    scale = np.logspace(-2, 2, 30) if given else X.std(axis=0)
    how = {"feature_scale": scale} if given else {"standardize": True}
    model = StreamingRidge(alpha=300.0, method="rfd", sketch_size=8, **how).fit(X, y)
    exact = Ridge(alpha=300.0).fit(X / scale, y)
    proof = model.certificate()
    np.testing.assert_allclose(model.scale_, scale, rtol=1e-10)
    error = np.linalg.norm(model.coef_ * scale - exact.coef_)
    assert 0 < error <= proof.coef_bound
    assert error <= proof.relative * np.linalg.norm(exact.coef_)
    errors = np.abs(model.predict(X) - exact.predict(X / scale))
    assert np.all(errors <= proof.prediction_bound(X))


def test_float32_rows_are_not_widened_all_at_once(monkeypatch):
    X, y = regression(dtype=np.float32)
    model = sketched().fit(X, y)
    whole = model.predict(X)
    assert whole.dtype == np.float64
    monkeypatch.setattr("ridgepass.estimators.fitted.PIECE", 100)
    np.testing.assert_allclose(model.predict(X), whole, rtol=1e-13)
    np.testing.assert_allclose(model.predict(X.astype(float)), whole, rtol=1e-13)


def test_a_clone_knows_nothing():
    X, y = regression()
    model = clone(sketched(random_state=4).fit(X, y))
    assert model.random_state == 4
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("alpha", [[1.0, 2.0], np.ones(3)])
def test_one_alpha_for_all_targets(alpha):
    X, y = regression(n_targets=3)
    message = "StreamingRidge: alpha=.* has one value for each target"
    with pytest.raises(ValueError, match=message):
        sketched(alpha=alpha).fit(X, y)
    model = sketched().fit(X, y)
    for ask in (model.at, model.certificate):
        with pytest.raises(ValueError, match=message):
            ask(alpha)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "1", None, True, 1j])
def test_bad_alphas(alpha):
    X, y = regression()
    with pytest.raises(ValueError, match="StreamingRidge: alpha="):
        sketched(alpha=alpha).fit(X, y)
    model = sketched().fit(X, y)
    before = model.coef_
    if alpha is not True:  # which is a one in a list of numbers
        with pytest.raises(ValueError, match="StreamingRidge: alpha="):
            model.path([1.0, alpha])
    model.set_params(alpha=alpha)
    with pytest.raises(ValueError, match="StreamingRidge: alpha="):
        model.predict(X)
    np.testing.assert_array_equal(model.set_params(alpha=1.0).coef_, before)


def test_bounds_are_for_the_columns_of_training():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((50, 3)) * [1, 10, 100], columns=list("abc"))
    model = StreamingRidge(method="rfd", sketch_size=8).fit(frame, rng.standard_normal(50))
    certificate = model.certificate()
    plain = replace(certificate, read=None)
    expected = plain.prediction_bound(frame[:5].to_numpy())
    np.testing.assert_array_equal(certificate.prediction_bound(frame[:5]), expected)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        certificate.prediction_bound(frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="StreamingRidge"):
        certificate.prediction_bound(frame.assign(d=1.0))


def test_a_wide_model_that_does_not_fit_a_narrow_one_is_refused_whole():
    X, y = np.eye(40, 3) * 1e30, np.ones(40)
    wide = StreamingRidge(method="rfd", sketch_size=4).fit(X, y)
    narrow = StreamingRidge(method="rfd", sketch_size=4).fit(np.eye(40, 3, dtype="f4"), y)
    before = narrow.coef_.copy()
    with pytest.raises(ValueError, match="numbers overflow float32: use dtype='float64' for both"):
        narrow.merge(wide)
    np.testing.assert_array_equal(narrow.coef_, before)
    assert narrow.n_samples_seen_ == 40
