"""The estimators in the hands of scikit-learn's tools, of river, and of ONNX."""

import joblib
import numpy as np
import onnxruntime
import pytest
from river import compat
from scipy import sparse
from skl2onnx import to_onnx
from sklearn import config_context
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from estimator_data import classification, regression
from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier
from streams import METHODS


def test_pipeline():
    X, y = regression()
    ours = make_pipeline(StandardScaler(), StreamingRidge(method="exact")).fit(X, y)
    theirs = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
    scaled = make_pipeline(StandardScaler().set_output(transform="pandas"), StreamingRidge())
    assert scaled.fit(X, y)[-1].feature_names_in_[0] == "x0"


def test_sparse_pipeline():
    rng = np.random.default_rng(0)
    words = rng.integers(50, size=(200, 3)).astype(str)
    y = rng.standard_normal(200)
    model = make_pipeline(OneHotEncoder(), StreamingRidge(method="exact")).fit(words, y)
    assert sparse.issparse(model[0].transform(words))
    wanted = make_pipeline(OneHotEncoder(sparse_output=False), Ridge()).fit(words, y)
    np.testing.assert_allclose(model.predict(words), wanted.predict(words), rtol=1e-8, atol=1e-8)


def test_cross_validation_and_grid_search():
    X, y = regression()
    ours = cross_val_score(StreamingRidge(method="exact"), X, y)
    np.testing.assert_allclose(ours, cross_val_score(Ridge(), X, y), rtol=1e-9)
    grid = {"alpha": [0.1, 10.0, 1e4], "method": ["exact", "rfd"], "sketch_size": [4, 16]}
    search = GridSearchCV(StreamingRidge(), grid).fit(X, y)
    assert search.best_params_["alpha"] < 1e4
    assert search.best_estimator_.predict(X).shape == y.shape
    labels = y > y.mean()
    assert cross_val_score(StreamingRidgeClassifier(), X, labels).mean() > 0.8
    assert cross_val_score(StreamingRidgeClassifier(), X, labels, scoring="roc_auc").mean() > 0.8
    assert cross_val_predict(StreamingRidgeClassifier(), X, labels).dtype == bool


def test_meta_estimators():
    X, y = regression(n_targets=2)
    model = MultiOutputRegressor(StreamingRidge(method="exact")).fit(X, y)
    np.testing.assert_allclose(model.predict(X), Ridge().fit(X, y).predict(X), rtol=1e-8)
    model.partial_fit(X, y)
    scaled = TransformedTargetRegressor(StreamingRidge(), transformer=StandardScaler())
    assert scaled.fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("method", METHODS)
def test_joblibs_memory_maps_can_be_trained_on(method, store, tmp_path):
    """They are read-only: what changes is copied once, and the file stays as it was."""
    X, y = regression(n_rows=70)
    options = {"method": method, "sketch_size": 3, "standardize": True, "random_state": 0}
    model = StreamingRidge(**options).fit(store(X[:30]), y[:30])
    joblib.dump(model, tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    other = joblib.load(tmp_path / "model", mmap_mode="r")
    for rows in (slice(30, 31), slice(31, 70)):
        model.partial_fit(store(X[rows]), y[rows])
        mapped.partial_fit(store(X[rows]), y[rows])
        other.partial_fit(store(X[rows]), y[rows])
        np.testing.assert_array_equal(mapped.coef_, model.coef_)
        assert mapped.certificate().relative == model.certificate().relative
    state = mapped._learned.stream._state
    np.testing.assert_array_equal(mapped.merge(other).coef_, model.merge(other).coef_)
    assert mapped._learned.stream._state is state  # it is its own by now
    assert (tmp_path / "model").read_bytes() == content


def test_routing_of_weights():
    X, y = regression()
    weights = np.random.default_rng(0).exponential(size=len(X))
    with config_context(enable_metadata_routing=True):
        ours = StreamingRidge(method="exact").set_fit_request(sample_weight=True)
        ours.set_score_request(sample_weight=True)
        ours.set_partial_fit_request(sample_weight=True)
        theirs = Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found, wanted = (
            cross_validate(model, X, y, params={"sample_weight": weights})["test_score"]
            for model in (ours, theirs)
        )
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), ours)
        piped.fit(X, y, sample_weight=weights)
        classifier = StreamingRidgeClassifier().set_partial_fit_request(
            classes=True, sample_weight=True
        )
        assert classifier.get_metadata_routing().partial_fit.requests["classes"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    plain = StreamingRidge(method="exact").fit(StandardScaler().fit_transform(X), y, weights)
    np.testing.assert_allclose(piped[-1].coef_, plain.coef_, rtol=1e-10)


def test_river_learns_one_row_at_a_time():
    X, y = regression(n_rows=60, n_features=3)
    model = compat.convert_sklearn_to_river(StreamingRidge(method="exact"))
    names = ["a", "b", "c"]
    assert model.predict_one(dict(zip(names, X[0], strict=True))) == 0
    for row, target in zip(X, y, strict=True):
        model.learn_one(dict(zip(names, row, strict=True)), target)
    whole = StreamingRidge(method="exact").fit(X, y)
    found = model.predict_one(dict(zip(names, X[0], strict=True)))
    assert found == pytest.approx(whole.predict(X[:1])[0], rel=1e-12)


def test_river_learns_labels():
    X, kinds = classification(3, n_rows=60, n_features=3)
    labels = np.array(["elm", "ash", "oak"])
    model = compat.convert_sklearn_to_river(StreamingRidgeClassifier(), classes=labels.tolist())
    for row, kind in zip(X, kinds, strict=True):
        model.learn_one(dict(enumerate(row)), labels[kind])
    whole = StreamingRidgeClassifier().fit(X, labels[kinds])
    for row, wanted in zip(X, whole.predict(X), strict=True):
        assert model.predict_one(dict(enumerate(row))) == wanted


def run_onnx(model, X):
    served = to_onnx(model, X[:1])
    session = onnxruntime.InferenceSession(
        served.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize("n_targets", [None, 2])
def test_onnx_serves_the_regressor(n_targets):
    X, y = regression(n_targets=n_targets, dtype=np.float32)
    model = StreamingRidge(method="rfd", sketch_size=4).fit(X, y)
    (served, *_) = run_onnx(model.to_sklearn(), X)
    wanted = model.predict(X)
    np.testing.assert_allclose(served.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_onnx_serves_the_classifier(n_classes):
    X, kinds = classification(n_classes)
    X = X.astype(np.float32)
    model = StreamingRidgeClassifier(method="rfd", sketch_size=4).fit(X, kinds)
    (served, *_) = run_onnx(model.to_sklearn(), X)
    assert (served == model.predict(X)).mean() > 0.99
