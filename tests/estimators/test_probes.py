"""Probes of the estimators: on unless they are switched off, and the same in all parts."""

import numpy as np
import pytest
from sklearn.base import clone

from estimator_data import classification, regression
from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV, verify
from ridgepass.probes import Probes

OPTIONS = {"method": "tracked", "sketch_size": 6}


def decaying(n_rows=400, n_features=40, n_targets=None):
    X, _ = regression(n_rows=n_rows, n_features=n_features)
    X = X * np.exp(-np.arange(n_features) / 8)
    rng = np.random.default_rng(1)
    y = X @ rng.standard_normal((n_features,) if n_targets is None else (n_features, n_targets))
    return X, y + rng.standard_normal(y.shape)


def probes_of(model):
    return model._learned.stream._query().probes


@pytest.mark.parametrize("kind", [StreamingRidge, StreamingRidgeCV, StreamingRidgeClassifier])
def test_every_estimator_has_them_by_default(kind):
    assert kind().get_params()["probes"] == 24
    assert clone(kind(probes=3)).probes == 3
    X, y = decaying()
    y = y > 0 if kind is StreamingRidgeClassifier else y
    for probes in (24, 3):
        model = kind(probes=probes, **OPTIONS).fit(X, y)
        assert len(probes_of(model).points) == probes
        proof = model.certificate()
        assert proof.confidence == (1.0 if probes == 3 else 1 - 1e-6)  # three say less than none
        assert 0 < proof.estimate <= proof.coef_bound
    bare = kind(probes=0, **OPTIONS).fit(X, y)
    assert probes_of(bare) is None
    proof = bare.certificate()
    assert (proof.confidence, proof.rests_on, proof.estimate) == (1.0, "sketch", None)
    # Fewer probes of its own choose the tail, and by it alpha: at one alpha the models are near.
    model = kind(**OPTIONS).fit(X, y)
    assert bare.score(X, y) == pytest.approx(model.score(X, y), abs=0.05)
    one, other = (each.at(50.0).coef_ for each in (bare, model))
    assert np.linalg.norm(one - other) < 0.1 * np.linalg.norm(other)


@pytest.mark.parametrize("n_targets", [None, 3])
@pytest.mark.parametrize("standardize", [False, True])
def test_bounds_and_estimates_against_exact_ridge(n_targets, standardize):
    X, y = decaying(n_targets=n_targets)
    alpha = 500.0 if standardize else 50.0
    model = StreamingRidge(alpha, standardize=standardize, **OPTIONS).fit(X, y)
    exact = StreamingRidge(alpha, standardize=standardize, method="exact").fit(X, y)
    gap = np.atleast_2d(model.coef_ - exact.coef_)
    scale = model.scale_ if standardize else 1.0
    errors = np.linalg.norm(gap * scale, axis=1)
    proof, certain = model.certificate(), model.certificate(confidence=1)
    for one in (proof, certain):
        assert (errors <= one.coef_bound).all()
        assert (np.abs(gap) <= np.atleast_2d(one.coefficient_bounds())).all()
        misses = np.abs(model.predict(X) - exact.predict(X))
        assert (misses <= one.prediction_bound(X)).all()
    assert (np.asarray(proof.coef_bound) < certain.coef_bound).all()
    assert ((errors < 10 * proof.estimate) & (errors > proof.estimate / 10)).all()
    sizes = np.linalg.norm(np.atleast_2d(model.coef_) * scale, axis=1)
    np.testing.assert_allclose(
        proof.relative_estimate, np.minimum(proof.estimate / sizes, proof.relative)
    )
    sure, unsure = model.certificate(confidence=1 - 1e-12), model.certificate(confidence=0.9)
    assert (np.asarray(sure.coef_bound) >= proof.coef_bound).all()
    assert (np.asarray(unsure.coef_bound) < proof.coef_bound).all()


@pytest.mark.parametrize("confidence", [0, 1.5, "much", None, np.nan])
def test_bad_confidences_are_named(confidence):
    X, y = decaying()
    model = StreamingRidge(**OPTIONS).fit(X, y)
    with pytest.raises(ValueError, match=r"StreamingRidge: confidence=.* above 0, of at most 1"):
        model.certificate(confidence=confidence)


def test_parts_without_a_random_state_have_the_published_ones():
    X, y = decaying()
    published = Probes.draw(24, 40, np.dtype(float)).points
    left, right = (
        StreamingRidge(**OPTIONS).fit(X[part], y[part]) for part in (slice(200), slice(200, None))
    )
    np.testing.assert_array_equal(probes_of(left).points, published)
    merged = left.merge(right)
    assert merged.certificate().remark == ""
    np.testing.assert_array_equal(probes_of(merged).points, published)


def test_a_random_state_has_its_own_and_parts_must_share_it():
    X, y = decaying()

    def part(rows, random_state):
        return StreamingRidge(random_state=random_state, **OPTIONS).fit(X[rows], y[rows])

    first, second = slice(200), slice(200, None)
    own = probes_of(part(first, 7)).points
    np.testing.assert_array_equal(own, Probes.draw(24, 40, np.dtype(float), 7).points)
    same = part(first, 7).merge(part(second, 7))
    assert same.certificate().estimate is not None
    other = part(first, 7).merge(part(second, 8))
    proof = other.certificate()
    assert proof.estimate is None
    assert proof.confidence == 1.0
    assert "random_state" in proof.remark
    exact = StreamingRidge(method="exact").fit(X, y)
    assert (np.abs(other.coef_ - exact.coef_) <= proof.coefficient_bounds()).all()


def test_a_generator_gives_other_ones_each_time():
    X, y = decaying()
    generator = np.random.RandomState(0)
    models = [StreamingRidge(random_state=generator, **OPTIONS).fit(X, y) for _ in range(2)]
    assert not np.array_equal(*(probes_of(model).points for model in models))


def test_folds_share_their_probes_and_the_whole_is_certified():
    X, y = decaying()
    model = StreamingRidgeCV([1.0, 50.0], cv=3, random_state=5, **OPTIONS).fit(X, y)
    proof = model.certificate()
    assert proof.remark == ""
    assert proof.confidence == 1 - 1e-6
    exact = StreamingRidge(model.alpha_, method="exact").fit(X, y)
    assert (np.abs(model.coef_ - exact.coef_) <= proof.coefficient_bounds()).all()


def test_their_number_cannot_change_under_a_stream():
    X, y = decaying()
    model = StreamingRidge(**OPTIONS).fit(X, y).set_params(probes=3)
    with pytest.raises(ValueError, match="probes changed after training began: call fit"):
        model.partial_fit(X, y)
    assert len(probes_of(model.fit(X, y)).points) == 3


def test_classes_have_a_bound_each():
    X, y = classification(4, n_rows=400, n_features=40)
    model = StreamingRidgeClassifier(50.0, **OPTIONS).fit(X, y)
    exact = StreamingRidgeClassifier(50.0, method="exact").fit(X, y)
    bounds = model.certificate().coefficient_bounds()
    assert bounds.shape == model.coef_.shape == (4, 40)
    assert (np.abs(model.coef_ - exact.coef_) <= bounds).all()


def test_what_passes_prove_needs_no_probes():
    X, y = decaying()
    model = StreamingRidge(50.0, **OPTIONS).fit(X, y).refine(X, y, passes=4)
    certain = model.certificate(confidence=1)
    assert (certain.rests_on, certain.confidence) == ("passes", 1.0)
    proof = verify(model.coef_, model.intercept_, (X, y), alpha=50.0)
    assert (proof.rests_on, proof.confidence) == ("passes", 1.0)
    exact = StreamingRidge(50.0, method="exact").fit(X, y)
    for one in (certain, proof):
        assert np.linalg.norm(model.coef_ - exact.coef_) <= one.coef_bound
        assert (np.abs(model.coef_ - exact.coef_) <= one.coefficient_bounds()).all()


def test_a_certificate_of_another_alpha_holds_there():
    X, y = decaying()
    model = StreamingRidge(50.0, **OPTIONS).fit(X, y)
    for alpha in (0.5, 5000.0):
        exact = StreamingRidge(alpha, method="exact").fit(X, y)
        gap = np.abs(model.at(alpha).coef_ - exact.coef_)
        assert (gap <= model.certificate(alpha).coefficient_bounds()).all()
