"""Reading the rows again: what comes out is exact ridge, and what goes wrong changes nothing."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from store.models import to_bytes
from streams import METHODS

N_ROWS, N_FEATURES, ALPHA = 240, 40, 50.0
ENOUGH = 60  # passes: they stop by themselves at rounding


def data(n_targets=None, seed=0, dtype=float):
    """Rows that no small sketch can hold, with means away from zero."""
    rng = np.random.default_rng(seed)
    spread = 4 * np.exp(-np.arange(N_FEATURES) / 8)
    X = rng.standard_normal((N_ROWS, N_FEATURES)) * spread + rng.standard_normal(N_FEATURES)
    X = X.astype(dtype)
    y = X @ rng.standard_normal((N_FEATURES, n_targets or 1)) + 7.0
    y += rng.standard_normal(y.shape)
    return X, y if n_targets else y[:, 0]


def some_weights(seed=1):
    return np.random.default_rng(seed).integers(0, 4, N_ROWS) / 2


def sketched(alpha=ALPHA, **options):
    return StreamingRidge(alpha, **{"method": "rfd", "sketch_size": 8, **options})


def assert_near(found, wanted, tolerance=1e-8):
    size = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * size)


def assert_exact(model, exact, X):
    assert_near(model.coef_, exact.coef_)
    assert_near(model.intercept_, exact.intercept_)
    assert_near(model.predict(X), exact.predict(X))


def assert_same(left, right):
    np.testing.assert_array_equal(left.coef_, right.coef_)
    np.testing.assert_array_equal(left.intercept_, right.intercept_)
    mine, theirs = left.certificate(), right.certificate()
    assert mine.passes == theirs.passes
    np.testing.assert_array_equal(mine.relative, theirs.relative)
    np.testing.assert_array_equal(mine.coef_bound, theirs.coef_bound)
    np.testing.assert_array_equal(mine.energy_bound, theirs.energy_bound)


class Counted:
    """Batches that count how often their first is taken."""

    def __init__(self, *batches):
        self.batches, self.n_read = batches, 0

    def __iter__(self):
        self.n_read += 1
        yield from self.batches


@pytest.mark.parametrize("method", METHODS)
def test_every_method_comes_to_exact_ridge(method):
    X, y = data()
    model = sketched(method=method, random_state=0).fit(X, y)
    assert model.refine(X, y, passes=ENOUGH) is model
    assert_exact(model, Ridge(ALPHA).fit(X, y), X)
    assert 2 <= model.certificate().passes <= 1 + ENOUGH


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_targets", [None, 1, 2])
def test_targets_weights_and_intercepts(n_targets, fit_intercept, weighted):
    X, y = data(n_targets)
    weights = some_weights() if weighted else None
    assert weights is None or not weights.all()
    model = sketched(fit_intercept=fit_intercept).fit(X, y, weights)
    before = model.coef_
    model.refine(X, y, weights, passes=ENOUGH)
    exact = Ridge(ALPHA, fit_intercept=fit_intercept).fit(X, y, weights)
    assert model.coef_.shape == before.shape
    assert_near(model.coef_, np.reshape(exact.coef_, before.shape))
    if fit_intercept:
        assert_near(model.intercept_, exact.intercept_)
    else:
        assert model.intercept_ == 0.0
    assert_near(model.predict(X).reshape(N_ROWS, -1), exact.predict(X).reshape(N_ROWS, -1))
    assert np.abs(before - model.coef_).max() > 1e-3  # there was something to refine


@pytest.mark.parametrize("weighted", [False, True])
def test_standardized(weighted):
    X, y = data()
    weights = some_weights() if weighted else None
    model = sketched(standardize=True).fit(X, y, weights).refine(X, y, weights, passes=ENOUGH)
    pipeline = make_pipeline(StandardScaler(), Ridge(ALPHA))
    if weighted:
        pipeline.fit(X, y, standardscaler__sample_weight=weights, ridge__sample_weight=weights)
    else:
        pipeline.fit(X, y)
    assert_near(model.scale_, pipeline[0].scale_)
    assert_near(model.predict(X), pipeline.predict(X))
    assert_near(model.coef_, pipeline[1].coef_ / pipeline[0].scale_)


def test_the_relative_bound_does_not_rise_with_uneven_scales():
    """A first pass knows how its answer lies to exact ridge in the columns as they are given."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    X = rng.standard_normal((600, 200)) * np.exp(-np.arange(200) / 33) @ turn
    X *= np.exp(rng.standard_normal(200))
    y = X @ rng.standard_normal(200) + rng.standard_normal(600)
    model = StreamingRidge(3.0, sketch_size=24, standardize=True).fit(X, y)
    before = model.certificate().relative
    assert 0.5 < before < 5
    assert model.refine(X, y, passes=1).certificate().relative < 2 * before


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_scaled(fit_intercept):
    X, y = data()
    scale = np.geomspace(0.1, 10, N_FEATURES)
    model = sketched(feature_scale=scale, fit_intercept=fit_intercept).fit(X, y)
    model.refine(X, y, passes=ENOUGH)
    exact = Ridge(ALPHA, fit_intercept=fit_intercept).fit(X / scale, y)
    assert_near(model.coef_ * scale, exact.coef_)
    assert_near(model.predict(X), exact.predict(X / scale))


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stores_and_types(dtype, store, standardize):
    rng = np.random.default_rng(2)
    X, y = data(dtype=dtype)
    X = X * (rng.random(X.shape) < 0.4)
    weights = some_weights()
    rows = store(X)
    model = sketched(standardize=standardize).fit(rows, y, weights)
    assert model._learned.stream.dtype in (None, np.dtype(dtype))
    model.refine(rows, y, weights, passes=ENOUGH)
    wide = X.astype(float)
    scale = model.scale_ if standardize else 1.0
    exact = Ridge(ALPHA).fit(wide / scale, y, weights)
    assert_near(model.coef_ * scale, exact.coef_)
    assert_near(model.predict(rows), exact.predict(wide / scale))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    X, y = data()
    names = [f"x{i}" for i in range(N_FEATURES)]
    rows = frame(dict(zip(names, X.T, strict=True)))
    model = sketched().fit(rows, y).refine(rows, pd.Series(y), passes=ENOUGH)
    exact = Ridge(ALPHA).fit(X, y)
    assert_near(model.coef_, exact.coef_)
    assert_near(model.predict(rows), exact.predict(X))
    assert_same(model, sketched().fit(X, y).refine(X, y, passes=ENOUGH))
    content = to_bytes(model)
    with pytest.raises(ValueError, match="same order"):
        model.refine(rows[names[::-1]], y, alphas=[1.0])
    assert to_bytes(model) == content


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("alphas", [None, [20.0, 50.0, 200.0]])
@pytest.mark.parametrize("n_targets", [None, 2])
def test_a_chosen_alpha_stays(cv, alphas, n_targets):
    X, y = data(n_targets)
    weights = some_weights()
    model = StreamingRidgeCV(alphas, cv=cv, method="rfd", sketch_size=8).fit(X, y, weights)
    alpha, scores = model.alpha_, model.scores_
    model.refine(X, y, weights, passes=ENOUGH)
    assert model.alpha_ == alpha
    np.testing.assert_array_equal(model.scores_, scores)
    assert_exact(model, Ridge(alpha).fit(X, y, weights), X)
    fresh = StreamingRidgeCV(alphas, cv=cv, method="rfd", sketch_size=8).fit(X, y, weights)
    fresh.refine(X, y, weights, passes=ENOUGH)  # asked for nothing before
    assert fresh.alpha_ == alpha
    np.testing.assert_array_equal(fresh.scores_, scores)
    sibling = model.at(alpha)
    assert sibling.certificate().passes == model.certificate().passes > 1
    np.testing.assert_array_equal(sibling.coef_, model.coef_)


def test_folds_given_by_number_take_rows_in_any_order():
    X, y = data()
    order = np.random.default_rng(0).permutation(N_ROWS)
    halves = [(np.arange(0, N_ROWS, 2), np.arange(1, N_ROWS, 2))]
    halves += [halves[0][::-1]]
    model = StreamingRidgeCV([ALPHA], cv=halves, method="rfd", sketch_size=8).fit(X, y)
    model.refine(X[order], y[order], passes=ENOUGH)
    assert_exact(model, Ridge(ALPHA).fit(X, y), X)


def labels(kind):
    X, y = data(4)
    scores = y - y.mean(axis=0)
    if kind == "two":
        return X, np.array(["ash", "elm"])[(scores[:, 0] > 2).astype(int)]
    if kind == "many":
        return X, np.array(["ash", "elm", "fir", "oak"])[scores.argmax(axis=1)]
    return X, (scores > 0).astype(int)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "class_weight"),
    [
        ("two", None),
        ("two", {"elm": 3.0}),
        ("two", {"ash": 0.0}),
        ("two", "balanced"),
        ("many", None),
        ("many", {"oak": 0.5, "ash": 2.0}),
        ("many", "balanced"),
        ("several", None),
        ("several", "balanced"),
    ],
)
def test_classifiers(kind, class_weight, weighted):
    X, y = labels(kind)
    weights = some_weights() if weighted else None
    model = StreamingRidgeClassifier(
        ALPHA, method="rfd", sketch_size=8, class_weight=class_weight
    ).fit(X, y, weights)
    model.refine(X, y, weights, passes=ENOUGH)
    exact = RidgeClassifier(ALPHA, class_weight=class_weight).fit(X, y, weights)
    if class_weight == {"ash": 0.0}:  # all targets are one
        assert np.abs(model.coef_).max() < 1e-12
        return
    assert_near(model.coef_, np.reshape(exact.coef_, model.coef_.shape))
    assert_near(model.intercept_, exact.intercept_)
    assert_near(model.decision_function(X), exact.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))


def test_a_classifier_that_learned_in_batches():
    X, y = labels("many")
    weights = some_weights()
    model = StreamingRidgeClassifier(ALPHA, method="rfd", sketch_size=8)
    parts = [slice(0, 100), slice(100, N_ROWS)]
    for part in parts:
        model.partial_fit(X[part], y[part], np.unique(y), weights[part])
    twin = copy.deepcopy(model)
    model.refine(X, y, weights, passes=3)
    assert_same(model, twin.refine([(X[p], y[p], weights[p]) for p in parts], passes=3))
    content = to_bytes(model)
    with pytest.raises(ValueError, match="label 'yew' in row 0"):
        model.refine(X, np.full(N_ROWS, "yew"), weights, alphas=[1.0])
    assert to_bytes(model) == content


def test_other_labels_are_refused_where_classes_are_balanced():
    X, y = labels("two")
    model = StreamingRidgeClassifier(
        ALPHA, method="rfd", sketch_size=8, class_weight="balanced"
    ).fit(X, y)
    with pytest.raises(ValueError, match="label"):
        model.refine(X, np.where(y == "ash", "fir", "oak"))
    assert model.certificate().passes == 1


def test_balanced_classes_need_all_labels_at_once():
    X, y = labels("two")
    model = StreamingRidgeClassifier(method="rfd", sketch_size=8, class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="'balanced' needs all labels at once"):
        model.refine([(X[:100], y[:100]), (X[100:], y[100:])])
    assert model.certificate().passes == 1


@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_certificates_hold_and_get_tighter(n_targets, fit_intercept):
    X, y = data(n_targets)
    new = np.vstack([X[:20], 3 * X[20:40], np.zeros((1, N_FEATURES))])
    exact = Ridge(ALPHA, fit_intercept=fit_intercept, solver="svd").fit(X, y)
    model = sketched(fit_intercept=fit_intercept, sketch_size=16).fit(X, y)
    last = np.inf
    for passes in range(1, 9):
        proof = model.certificate()
        assert proof.passes == passes
        off = np.linalg.norm(np.atleast_2d(model.coef_ - exact.coef_), axis=1)
        rounding = 1e-12 * np.linalg.norm(exact.coef_)  # of scikit-learn's answer
        assert (off <= proof.coef_bound + rounding).all()
        assert (off / np.linalg.norm(np.atleast_2d(exact.coef_), axis=1)).max() <= np.max(
            proof.relative
        ) + 1e-12
        away = np.abs(model.predict(new) - exact.predict(new))
        assert (away <= proof.prediction_bound(new) + 1e-11).all()
        assert np.max(proof.energy_bound) < last
        last = np.max(proof.energy_bound)
        if passes > 1 and off.max() > 1e-6:
            assert (np.asarray(proof.coef_bound) < 20 * off).all()
        model.refine(X, y)
    assert np.max(model.certificate().relative) < 1e-3


@pytest.mark.parametrize("tol", [0.1, 1e-3, np.float32(1e-6), 1e-9])
def test_tolerances_are_reached(tol):
    X, y = data(2)
    model = sketched(sketch_size=16).fit(X, y)
    assert model.certificate().relative.max() > 0.1
    model.refine(X, y, tol=tol)
    proof = model.certificate()
    assert (proof.relative <= tol).all()
    one_less = sketched(sketch_size=16).fit(X, y)
    if proof.passes > 2:
        one_less.refine(X, y, passes=proof.passes - 2)
    assert one_less.certificate().relative.max() > tol


def test_a_missed_tolerance_warns():
    X, y = data()
    model = sketched(sketch_size=16).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="not yet 1e-10: give more passes") as caught:
        model.refine(X, y, tol=1e-10, passes=2)
    assert caught[0].filename == __file__
    assert model.certificate().passes == 3
    with pytest.warns(ConvergenceWarning, match="rounding allows no more"):
        model.refine(X, y, tol=1e-30, passes=ENOUGH)
    assert_near(model.coef_, Ridge(ALPHA).fit(X, y).coef_)


def test_nothing_is_read_once_it_is_good_enough():
    X, y = data()
    source = Counted((X[:100], y[:100]), (X[100:], y[100:]))
    model = sketched(sketch_size=16).fit(X, y).refine(source, tol=1e-6)
    assert source.n_read == model.certificate().passes - 1 > 1
    content, n_read = to_bytes(model), source.n_read
    model.refine(source, tol=1e-5)
    assert source.n_read == n_read
    assert to_bytes(model) == content
    model.refine(source, passes=ENOUGH)
    n_read = source.n_read
    assert n_read < ENOUGH
    model.refine(source, passes=ENOUGH)
    assert source.n_read == n_read


def test_passes_add_up():
    X, y = data(2)
    model = sketched().fit(X, y)
    for _ in range(4):
        model.refine(X, y)
    assert_same(model, sketched().fit(X, y).refine(X, y, passes=4))


def test_several_alphas_in_the_same_passes():
    X, y = data()
    source = Counted((X, y))
    model = sketched().fit(X, y)
    plain = sketched().fit(X, y)
    model.refine(source, alphas=[20.0, 200.0], passes=3)
    assert source.n_read == 3
    grid = [20.0, ALPHA, 200.0]
    path, before = model.path(grid), plain.path(grid)
    for alpha, coef, bound, first in zip(
        grid, path.coefs, path.relative_bounds, before.relative_bounds, strict=True
    ):
        sibling = model.at(alpha)
        np.testing.assert_array_equal(sibling.coef_, coef)
        refined = alpha != ALPHA
        assert sibling.certificate().passes == (4 if refined else 1)
        assert bound < first if refined else bound == first
        one = sketched(alpha).fit(X, y).refine(X, y, passes=3) if refined else plain
        assert_near(coef, one.coef_, 1e-12)
    np.testing.assert_array_equal(model.coef_, plain.coef_)  # its own alpha was not among them
    model.refine(X, y, passes=ENOUGH)
    assert model.at(200.0).certificate().passes == 4
    assert model.certificate(20.0).passes == 4
    assert_near(model.coef_, Ridge(ALPHA).fit(X, y).coef_)


def test_a_single_alpha_may_come_without_a_list():
    X, y = data()
    model = sketched().fit(X, y).refine(X, y, alphas=20.0)
    assert [model.certificate(a).passes for a in (ALPHA, 20.0)] == [1, 2]


@pytest.mark.parametrize("who", ["model", "sibling"])
@pytest.mark.parametrize("how", ["at", "copy", "deepcopy"])
@pytest.mark.parametrize("cv", [None, 3])
def test_siblings_stay_as_they_were(who, how, cv):
    X, y = data()
    if cv is None:
        model = sketched().fit(X, y)
    else:
        model = StreamingRidgeCV([ALPHA], cv=3, method="rfd", sketch_size=8).fit(X, y)
    sibling = model.at(ALPHA) if how == "at" else getattr(copy, how)(model)
    learner, bystander = (model, sibling) if who == "model" else (sibling, model)
    before, content = bystander.coef_.copy(), to_bytes(bystander)
    learner.refine(X, y, passes=3)
    np.testing.assert_array_equal(bystander.coef_, before)
    assert bystander.certificate().passes == 1
    assert to_bytes(bystander) == content
    assert learner.certificate().passes == 4
    bystander.refine(X, y, passes=3)
    np.testing.assert_array_equal(bystander.coef_, learner.coef_)


def test_a_sibling_made_afterwards_has_its_share():
    X, y = data()
    model = sketched().fit(X, y).refine(X, y, passes=2)
    sibling = model.at(ALPHA)
    assert_same(sibling, model)
    model.partial_fit(X, y)
    assert (sibling.certificate().passes, model.certificate().passes) == (3, 1)


def estimators():
    how = {"method": "rfd", "sketch_size": 8}
    return {
        "ridge": StreamingRidge(ALPHA, **how),
        "gcv": StreamingRidgeCV([1.0, ALPHA], **how),
        "folds": StreamingRidgeCV([1.0, ALPHA], cv=3, **how),
        "classifier": StreamingRidgeClassifier(ALPHA, **how),
    }


def of_kind(kind, seed=0):
    X, y = data(seed=seed)
    return X, (y > 7).astype(int) if kind == "classifier" else y


@pytest.mark.parametrize("kind", estimators())
@pytest.mark.parametrize("how", ["partial_fit", "merge", "merged into", "fit"])
def test_more_rows_go_back_to_one_pass(kind, how):
    X, y = of_kind(kind)
    more, targets = of_kind(kind, seed=5)
    model, twin, other = (clone(estimators()[kind]) for _ in range(3))
    model.fit(X, y).refine(X, y, passes=3)
    twin.fit(X, y)
    other.fit(more, targets)
    assert not np.array_equal(model.coef_, twin.coef_)
    if how == "partial_fit":
        model.partial_fit(more, targets)
        twin.partial_fit(more, targets)
    elif how == "merge":
        model.merge(other)
        twin.merge(other)
    elif how == "merged into":
        other_twin = copy.deepcopy(other)
        model, twin = other.merge(model), other_twin.merge(twin)
    else:
        model.fit(more, targets)
        twin.fit(more, targets)
    assert model.certificate().passes == 1
    assert_same(model, twin)
    assert to_bytes(model) == to_bytes(twin)


def test_no_rows_change_nothing():
    X, y = data()
    model = sketched().fit(X, y).refine(X, y, passes=2)
    content = to_bytes(model)
    model.partial_fit(X, y, np.zeros(N_ROWS))
    model.merge(sketched())
    assert to_bytes(model) == content
    assert model.certificate().passes == 3


def test_another_alpha_and_back():
    X, y = data()
    model = sketched().fit(X, y).refine(X, y, passes=3)
    refined = model.coef_
    model.set_params(alpha=70.0)
    plain = sketched(70.0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert_near(model.intercept_, plain.intercept_, 1e-14)  # from better means
    assert model.certificate().passes == 1
    model.refine(X, y, passes=ENOUGH)
    assert_near(model.coef_, Ridge(70.0).fit(X, y).coef_)
    model.set_params(alpha=ALPHA)
    np.testing.assert_array_equal(model.coef_, refined)
    assert model.certificate().passes == 4


@pytest.mark.parametrize("kind", estimators())
@pytest.mark.parametrize("how", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_go_on_alike(kind, how):
    X, y = of_kind(kind)
    model = clone(estimators()[kind]).fit(X, y).refine(X, y, passes=2)
    twin = how(model)
    assert_same(twin, model)
    twin.refine(X, y, passes=2)
    assert (twin.certificate().passes, model.certificate().passes) == (5, 3)
    assert_same(twin, model.refine(X, y, passes=2))
    assert_same(twin.partial_fit(X, y), model.partial_fit(X, y))


def test_a_clone_knows_nothing():
    X, y = data()
    model = clone(sketched().fit(X, y).refine(X, y, passes=2))
    with pytest.raises(NotFittedError):
        model.certificate()
    assert_same(model.fit(X, y), sketched().fit(X, y))


@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_training_scores(n_targets, weighted):
    X, y = data(n_targets)
    weights = some_weights() if weighted else None
    model = sketched(2000.0, sketch_size=2).fit(X, y, weights)
    exact = Ridge(2000.0).fit(X, y, weights).score(X, y, weights)
    assert abs(model.training_score() - exact) > 1e-4
    model.refine(X, y, weights, passes=ENOUGH)
    assert abs(model.training_score() - exact) < 1e-6


def test_training_scores_without_an_intercept():
    X, y = data()
    model = sketched(2000.0, fit_intercept=False).fit(X, y).refine(X, y, passes=ENOUGH)
    rest = y - Ridge(2000.0, fit_intercept=False).fit(X, y).predict(X)
    assert abs(model.training_score() - (1 - rest @ rest / (y @ y))) < 1e-6


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_rows_in_any_order(order):
    X, y = data()
    rows = np.arange(N_ROWS)[::-1]
    if order == "shuffled":
        rows = np.random.default_rng(0).permutation(N_ROWS)
    model = sketched().fit(X, y).refine(X[rows], y[rows], passes=3)
    assert_near(model.coef_, sketched().fit(X, y).refine(X, y, passes=3).coef_, 1e-12)


OTHERS = {
    "other rows": lambda X, y, w: (X + 0.01, y, w),
    "one number": lambda X, y, w: (np.where(np.arange(X.size).reshape(X.shape) == 77, 9, X), y, w),
    "fewer rows": lambda X, y, w: (X[:-1], y[:-1], w[:-1]),
    "more rows": lambda X, y, w: (np.vstack([X, X[:1]]), np.append(y, y[0]), np.append(w, 1.0)),
    "a row twice": lambda X, y, w: (np.vstack([X[:-1], X[:1]]), np.append(y[:-1], y[0]), w),
    "swapped columns": lambda X, y, w: (X[:, [1, 0, *range(2, N_FEATURES)]], y, w),
    "shuffled targets": lambda X, y, w: (X, y[::-1].copy(), w),
    "other targets": lambda X, y, w: (X, 1.001 * y, w),
    "moved targets": lambda X, y, w: (X, y + 0.01, w),
    "other weights": lambda X, y, w: (X, y, 2 * w),
    "no weights": lambda X, y, w: (X, y, None),
}


@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("method", ["exact", "rfd", "tracked"])
def test_other_rows_are_refused(how, method):
    X, y = data()
    weights = some_weights() + 0.5
    model = sketched(method=method).fit(X, y, weights)
    for _ in range(2):
        content, before, passes = to_bytes(model), model.coef_, model.certificate().passes
        with pytest.raises(ValueError, match="StreamingRidge: these are not the rows") as caught:
            model.refine(*OTHERS[how](X, y, weights), passes=2, alphas=[ALPHA, 1.0])
        assert "give the same data, or train again" in str(caught.value)
        assert to_bytes(model) == content
        np.testing.assert_array_equal(model.coef_, before)
        assert model.certificate().passes == passes
        model.refine(X, y, weights, passes=2)


def test_wrong_arguments():
    X, y = data()
    model = sketched().fit(X, y).refine(X, y)
    content, before = to_bytes(model), model.coef_.copy()
    two = np.column_stack([y, y])
    bad = np.where(np.arange(X.size).reshape(X.shape) == N_FEATURES + 2, np.nan, X)

    def generator():
        yield X, y

    for arguments, options, error, what in [
        ((X, two), {}, ValueError, "targets"),
        ((X, y[:-1]), {}, ValueError, "X has 240 rows but y has 239: give one target for each"),
        ((X[:, :-1], y), {}, ValueError, "39 features, .* expecting 40 features .*: give the same"),
        ((bad, y), {}, ValueError, "X contains NaN in row 1, column 2"),
        ((X, y, -np.ones(N_ROWS)), {}, ValueError, "weights must not be negative"),
        ((X,), {}, ValueError, "requires y"),
        *(
            ((X, y), {"passes": passes}, ValueError, "is no number of passes: give one from 1 on")
            for passes in (0, -1, 1.5, True, "2")
        ),
        *(
            ((X, y), {"tol": tol}, ValueError, "tol=.* is no tolerance: give a number above zero")
            for tol in (0, -1, np.nan, np.inf, "x", True)
        ),
        ((X, y), {"alphas": [0.0, 1.0], "tol": 1e-3}, ValueError, "alpha=0 .*: give passes"),
        ((X, y), {"alphas": [-1.0]}, ValueError, "alpha"),
        ((X, y), {"alphas": []}, ValueError, "alpha"),
        ((generator(),), {"passes": 2}, ValueError, "can be read only once: give passes=1"),
        ((generator(),), {"tol": 0.5}, ValueError, "can be read only once"),
        ((X, y), {"nulls": "drop"}, TypeError, "nulls: such options are for files"),
        (("a.csv", "y", np.ones(3)), {}, ValueError, "sample_weight is for arrays: .* weight="),
        (([(X, y)], None, np.ones(N_ROWS)), {}, ValueError, "sample_weight is for arrays"),
        (("missing.csv", "y"), {}, FileNotFoundError, "missing.csv"),
        (([(X, y)],), {"nulls": "drop"}, ValueError, "the batches are made already"),
        (([(X,)],), {}, TypeError, "a batch is a tuple: give"),
        (([],), {}, ValueError, "empty"),
        ((X, y), {"progress": 3}, TypeError, "progress=3 cannot be called"),
    ]:
        with pytest.raises(error, match=what) as caught:
            model.refine(*arguments, **options)
        if error is not FileNotFoundError:
            assert "StreamingRidge" in str(caught.value)
        assert to_bytes(model) == content, (options, what)
        np.testing.assert_array_equal(model.coef_, before)


def test_least_squares_has_passes_but_no_tolerance():
    X, y = data()
    model = sketched(0.0, method="exact").fit(X, y)
    with pytest.raises(ValueError, match=r"alpha=0 has no certificate, .*: give passes instead"):
        model.refine(X, y, tol=1e-3)
    model.refine(X, y, passes=2)
    assert_near(model.coef_, np.linalg.lstsq(X - X.mean(0), y - y.mean(), rcond=None)[0])


def test_nothing_to_refine_before_training():
    X, y = data()
    for estimator in estimators().values():
        with pytest.raises(NotFittedError, match=type(estimator).__name__):
            estimator.refine(X, y)
        assert not hasattr(estimator, "coef_")


def test_generators_do_for_one_pass():
    X, y = data()
    model = sketched().fit(X, y).refine((X[i : i + 7], y[i : i + 7]) for i in range(0, N_ROWS, 7))
    assert_same(model, sketched().fit(X, y).refine(X, y))
    model.refine(iter([(X, y)]), passes=1)
    assert model.certificate().passes == 3


@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyboardInterrupt])
def test_a_source_that_cannot_be_read_on_leaves_the_passes_that_are_done(error):
    X, y = data()
    model = sketched().fit(X, y).refine(X, y)
    content, before = to_bytes(model), model.coef_.copy()

    class Failing:
        n_read = 0

        def __iter__(self):
            self.n_read += 1
            yield X[:50], y[:50]
            if self.n_read == 2:  # not before one pass has gone well
                raise error("gone")
            yield X[50:], y[50:]

    source = Failing()
    with pytest.raises(error, match="gone"):
        model.refine(source, passes=3)
    assert source.n_read == 2
    if error is RuntimeError:  # who knows what went wrong
        assert to_bytes(model) == content
        np.testing.assert_array_equal(model.coef_, before)
    else:
        assert_same(model, sketched().fit(X, y).refine(X, y, passes=2))


def test_predictions_meanwhile():
    X, y = data()
    model = sketched().fit(X, y)
    answers, failures, stop = set(), [], threading.Event()
    wanted = [model.predict(X).tobytes()]

    def ask():
        while not stop.is_set():
            try:
                answers.add(model.predict(X).tobytes())
                model.certificate()
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(12):
        model.refine([(X[i : i + 9], y[i : i + 9]) for i in range(0, N_ROWS, 9)])
        wanted.append(model.predict(X).tobytes())
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert answers
    assert answers <= set(wanted)


@pytest.mark.parametrize("kind", estimators())
@pytest.mark.parametrize("how", ["partial_fit", "merge", "fit"])
def test_training_meanwhile(kind, how):
    X, y = of_kind(kind)
    more, targets = of_kind(kind, seed=5)
    other = clone(estimators()[kind]).fit(more, targets)
    model = clone(estimators()[kind]).fit(X, y).refine(X, y)
    trained = []

    def train(progress):
        if not trained:
            trained.append(progress)
            if how == "merge":
                model.merge(other)
            else:
                getattr(model, how)(more, targets)

    with pytest.raises(ValueError, match=r"learned from other rows .*: refine it again"):
        model.refine(X, y, passes=2, progress=train)
    wanted = clone(estimators()[kind])
    wanted = wanted.fit(more, targets) if how == "fit" else wanted.fit(X, y)
    if how == "merge":
        wanted.merge(other)
    elif how == "partial_fit":
        wanted.partial_fit(more, targets)
    assert to_bytes(model) == to_bytes(wanted)
    assert_same(model, wanted)


def test_another_alpha_refined_meanwhile_is_not_lost():
    X, y = data()
    model = sketched().fit(X, y)
    begun = []

    def also(progress):
        if not begun:
            begun.append(progress)
            model.refine(X, y, alphas=[1.0])

    model.refine(X, y, progress=also)
    assert [model.certificate(alpha).passes for alpha in (ALPHA, 1.0)] == [2, 2]


def test_no_warning_without_a_tolerance():
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sketched(1e-8).fit(X, y).refine(X, y)
    assert model.certificate().relative > 0.1
