"""Choosing alpha in the one pass: against scikit-learn, against the test set, and any batching."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import KFold, TimeSeriesSplit

from ridgepass import StreamingRidge, StreamingRidgeCV
from ridgepass.datasets import Synthetic
from ridgepass.sketch import SKETCHES
from store.models import again, to_bytes

ALPHAS = 2.0 ** np.arange(2, 20)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 30)) * np.exp(-np.arange(30) / 8) + 3.0
    Y = X @ rng.standard_normal((30, 2)) + 2 * rng.standard_normal((240, 2))
    return X, Y


def interleaved(n_rows, n_folds):
    rows = np.arange(n_rows)
    return [(rows[rows % n_folds != i], rows[rows % n_folds == i]) for i in range(n_folds)]


@pytest.mark.parametrize("weighted", [False, True])
def test_k_folds_in_one_pass_are_k_folds(data, weighted):
    X, Y = data
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else np.ones(len(X))
    model = StreamingRidgeCV(ALPHAS, cv=4, method="exact").fit(X, Y, weights)
    expected = np.zeros(len(ALPHAS))
    for train, test in interleaved(len(X), 4):
        for i, alpha in enumerate(ALPHAS):
            fitted = Ridge(alpha, solver="svd").fit(X[train], Y[train], weights[train])
            squares = np.square(fitted.predict(X[test]) - Y[test]).mean(axis=1)
            expected[i] -= (weights[test] * squares).sum() / weights.sum()
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-9)
    assert model.alpha_ == ALPHAS[expected.argmax()]
    whole = Ridge(model.alpha_, solver="svd").fit(X, Y, weights)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-9)


def test_generalised_cross_validation_is_its_formula(data):
    X, Y = data
    model = StreamingRidgeCV(ALPHAS, method="exact").fit(X, Y[:, 0])
    centred, y = X - X.mean(axis=0), Y[:, 0] - Y[:, 0].mean()
    expected = []
    for alpha in ALPHAS:
        hat = centred @ np.linalg.solve(centred.T @ centred + alpha * np.eye(30), centred.T)
        left = 1 - (np.trace(hat) + 1) / len(X)
        expected.append(-np.square(y - hat @ y).mean() / left**2)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-9)
    # Leave-one-out, which it stands for, chooses the same or the next alpha.
    leave_one_out = RidgeCV(ALPHAS).fit(X, Y[:, 0]).alpha_
    assert 0.5 <= model.alpha_ / leave_one_out <= 2


@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("kind", ["low_rank", "high_rank"])
@pytest.mark.parametrize("method", ["exact", "rfd", "fd", "isvd"])
def test_the_alpha_chosen_is_nearly_the_best_on_the_papers_data(method, kind, cv):
    source = getattr(Synthetic, kind)(512)
    (A, b), (A_test, b_test) = source.sample(2048), source.sample(2048, 1)
    model = StreamingRidgeCV(ALPHAS, cv=cv, method=method, sketch_size=128).fit(A, b)

    def error(fitted):
        return np.square(fitted.predict(A_test) - b_test).mean()

    exact = StreamingRidge(method="exact").fit(A, b)
    best = min(error(exact.at(alpha)) for alpha in ALPHAS)
    assert error(model) <= 1.01 * best
    assert error(exact.at(ALPHAS[0])) > 1.01 * best  # a wrong alpha would show


@pytest.mark.parametrize("method", ["2lfd", "cs", "rp"])
def test_k_folds_choose_well_for_every_sketch(method):
    source = Synthetic.high_rank(256)
    (A, b), (A_test, b_test) = source.sample(1500), source.sample(1500, 1)
    model = StreamingRidgeCV(ALPHAS, cv=4, method=method, sketch_size=64, random_state=0).fit(A, b)
    errors = [np.square(model.at(a).predict(A_test) - b_test).mean() for a in ALPHAS]
    chosen = np.square(model.predict(A_test) - b_test).mean()
    assert chosen <= 1.03 * min(errors)
    assert max(errors) > 1.1 * min(errors)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("method", sorted(SKETCHES))
def test_any_split_into_batches_chooses_the_same(data, method, make):
    X, Y = data
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    options = {"cv": 3, "method": method, "sketch_size": 8, "random_state": 0}
    whole = StreamingRidgeCV(ALPHAS, **options).fit(make(X), Y, weights)
    pieces = StreamingRidgeCV(ALPHAS, **options)
    for start, stop in itertools.pairwise([0, 1, 2, 50, 51, 53, 240]):
        pieces.partial_fit(make(X[start:stop]), Y[start:stop], weights[start:stop])
    np.testing.assert_array_equal(pieces.scores_, whole.scores_)
    np.testing.assert_array_equal(pieces.coef_, whole.coef_)
    assert pieces.n_samples_seen_ == np.count_nonzero(weights)


def test_given_splits_say_which_row_goes_where(data):
    X, Y = data
    in_turn = StreamingRidgeCV(ALPHAS, cv=4, method="rfd", sketch_size=16).fit(X, Y)
    given = clone(in_turn).set_params(cv=interleaved(len(X), 4)).fit(X, Y)
    np.testing.assert_array_equal(given.scores_, in_turn.scores_)
    ordered = clone(in_turn).set_params(cv=list(KFold(4).split(X)))
    ordered.partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert not np.array_equal(ordered.scores_, in_turn.scores_)
    with pytest.raises(ValueError, match="cv has folds for 240 rows, and now there are 241"):
        ordered.partial_fit(X[:1], Y[:1])
    assert ordered.n_samples_seen_ == 240


@pytest.mark.parametrize("idle", [[60], [0], [0, 20], [220], range(20, 240, 40)])
@pytest.mark.parametrize("given", [False, True])
def test_rows_of_weight_zero_do_not_move_others_to_other_folds(data, given, idle):
    """In batches of their own, the first or the last too, and within a batch."""
    X, Y = data
    weights = np.random.default_rng(2).uniform(0.5, 2, len(X))
    weights[::7] = 0.0
    for start in idle:
        weights[start : start + 20] = 0.0
    cv = list(KFold(4).split(X)) if given else 4
    options = {"cv": cv, "method": "rfd", "sketch_size": 16}
    whole = StreamingRidgeCV(ALPHAS, **options).fit(X, Y, weights)
    pieces = StreamingRidgeCV(ALPHAS, **options)
    for start in range(0, 240, 20):
        rows = slice(start, start + 20)
        pieces.partial_fit(X[rows], Y[rows], weights[rows])
        if start == 100:
            pieces = again(pieces)
    assert to_bytes(pieces) == to_bytes(whole)
    np.testing.assert_array_equal(pieces.scores_, whole.scores_)
    # And by the definition: rows of weight zero are there and count for nothing.
    fold = np.arange(240) // 60 if given else (np.cumsum(weights > 0) - 1) % 4
    exact = StreamingRidgeCV(ALPHAS, cv=cv, method="exact")
    for start in range(0, 240, 20):
        rows = slice(start, start + 20)
        exact.partial_fit(X[rows], Y[rows], weights[rows])
    expected = np.zeros(len(ALPHAS))
    for i in range(4):
        train, test = weights * (fold != i), weights * (fold == i)
        for j, alpha in enumerate(ALPHAS):
            fitted = Ridge(alpha, solver="svd").fit(X, Y, train)
            expected[j] -= test @ np.square(fitted.predict(X) - Y).mean(axis=1) / weights.sum()
    np.testing.assert_allclose(exact.scores_, expected, rtol=1e-9)


def test_rows_of_weight_zero_count_towards_given_splits(data):
    X, Y = data
    model = StreamingRidgeCV(ALPHAS, cv=interleaved(240, 4), method="exact")
    model.partial_fit(X[:120], Y[:120], np.zeros(120)).partial_fit(X[120:], Y[120:])
    content = to_bytes(model)
    with pytest.raises(ValueError, match="cv has folds for 240 rows, and now there are 241"):
        model.partial_fit(X[:1], Y[:1], np.zeros(1))
    assert to_bytes(model) == content
    in_turn = StreamingRidgeCV(ALPHAS, cv=4, method="exact").fit(X, Y)
    content = to_bytes(in_turn)
    in_turn.partial_fit(X[:7], Y[:7], np.zeros(7))
    assert to_bytes(in_turn) == content


def test_parts_whose_first_batch_has_no_weight_merge(data):
    X, Y = data
    parts = []
    for rows in (slice(0, 120), slice(120, 240)):
        part = StreamingRidgeCV(ALPHAS, cv=4, method="exact")
        part.partial_fit(X[:5], Y[:5], np.zeros(5)).partial_fit(X[rows], Y[rows])
        parts.append(part)
    whole = StreamingRidgeCV(ALPHAS, cv=4, method="exact").fit(X, Y)
    idle = StreamingRidgeCV(ALPHAS, cv=4, method="exact").partial_fit(X, Y, np.zeros(240))
    merged = idle.merge(parts[0]).merge(parts[1])
    np.testing.assert_allclose(merged.scores_, whole.scores_, rtol=1e-9)
    assert merged.n_samples_seen_ == 240
    # A stream of given rows goes on where another has ended.
    given = clone(whole).set_params(cv=interleaved(240, 4))
    begun = clone(given).partial_fit(X[:9], Y[:9], np.zeros(9)).partial_fit(X[9:50], Y[9:50])
    merged = clone(given).merge(begun).partial_fit(X[50:], Y[50:])
    weights = np.where(np.arange(240) < 9, 0.0, 1.0)
    np.testing.assert_allclose(merged.scores_, given.fit(X, Y, weights).scores_, rtol=1e-9)


def test_a_merger_that_fails_in_a_later_fold_changes_no_fold(data):
    """Folds are merged one after the other: all are checked before the first."""
    X, Y = data
    model = StreamingRidgeCV(ALPHAS, cv=3, dtype="float32", method="rfd", sketch_size=8)
    model.fit(X[:90], Y[:90])
    large = X[90:96].copy()
    large[5] = 1e30  # in the last fold alone
    other = clone(model).set_params(dtype="float64").fit(large, Y[90:96])
    content, coef = to_bytes(model), model.coef_.copy()
    with pytest.raises(ValueError, match="overflow float32"):
        model.merge(other)
    assert to_bytes(model) == content
    assert model.n_samples_seen_ == 90
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(model.scores_, clone(model).fit(X[:90], Y[:90]).scores_)


def test_select_goes_by_the_rows_kept_aside(data):
    X, Y = data
    model = StreamingRidgeCV(method="exact").fit(X[:150], Y[:150])
    weights = np.linspace(0, 1, 90)
    assert model.select(ALPHAS, X[150:], Y[150:], weights) is model
    errors = []
    for alpha in ALPHAS:
        fitted = Ridge(alpha, solver="svd").fit(X[:150], Y[:150])
        squares = np.square(fitted.predict(X[150:]) - Y[150:]).mean(axis=1)
        errors.append(np.average(squares, weights=weights))
    np.testing.assert_allclose(-model.scores_, errors, rtol=1e-9)
    np.testing.assert_array_equal(model.alphas_, ALPHAS)
    chosen = ALPHAS[np.argmin(errors)]
    assert model.alpha_ == chosen
    np.testing.assert_allclose(model.coef_, model.at(chosen).coef_)
    assert model.partial_fit(X[150:], Y[150:]).alpha_ == chosen  # it stands
    assert len(model.fit(X, Y).alphas_) == 25  # until the next fit
    frame = model.select(None, sparse.csr_array(X[150:]), Y[150:])
    assert len(frame.alphas_) == 25


def test_without_alphas_the_grid_follows_the_data(data):
    X, Y = data
    centred = X - X.mean(axis=0)
    top = np.linalg.norm(centred, 2) ** 2
    model = StreamingRidgeCV(method="exact").fit(X, Y)
    assert model.alphas_[0] == pytest.approx(1e-5 * top)
    assert model.alphas_[-1] == pytest.approx(10 * top)
    scaled = StreamingRidgeCV(method="exact").fit(1e6 * X, Y)
    assert scaled.alpha_ == pytest.approx(1e12 * model.alpha_, rel=1e-6)
    np.testing.assert_allclose(scaled.predict(1e6 * X), model.predict(X), rtol=1e-6)
    sketched = StreamingRidgeCV(method="rfd", sketch_size=12).fit(X, Y)
    assert sketched.alphas_[-1] == pytest.approx(10 * top, rel=0.2)


@pytest.mark.parametrize("cv", [None, 3])
def test_parts_merge_and_siblings_are_plain_models(data, cv):
    X, Y = data
    whole = StreamingRidgeCV(ALPHAS, cv=cv, method="exact").fit(X, Y)
    left = clone(whole).fit(X[:120], Y[:120])
    left.merge(clone(whole).fit(X[120:], Y[120:]))
    np.testing.assert_allclose(left.scores_, whole.scores_, rtol=1e-9)
    np.testing.assert_allclose(left.coef_, whole.coef_, atol=1e-10)
    sibling = whole.at(5.0)
    assert type(sibling) is StreamingRidge
    np.testing.assert_allclose(sibling.coef_, StreamingRidge(5.0).fit(X, Y).coef_, atol=1e-10)
    before = whole.coef_
    sibling.partial_fit(X[:9], Y[:9])
    assert sibling.n_samples_seen_ == 249
    assert whole.n_samples_seen_ == 240
    np.testing.assert_array_equal(whole.coef_, before)


def test_standardized_features_choose_as_scaled_ones(data):
    X, Y = data
    uneven = X * np.geomspace(1e-3, 1e3, 30)
    model = StreamingRidgeCV(ALPHAS, method="exact", standardize=True).fit(uneven, Y)
    scaled = (uneven - uneven.mean(axis=0)) / uneven.std(axis=0)
    plain = StreamingRidgeCV(ALPHAS, method="exact").fit(scaled, Y)
    np.testing.assert_allclose(model.scores_, plain.scores_, rtol=1e-8)


def test_a_failed_batch_changes_no_fold(data):
    X, Y = data
    model = StreamingRidgeCV(ALPHAS, cv=3, method="rfd", sketch_size=8, dtype="float32")
    model.fit(X, Y)
    scores, bad = model.scores_, X[:7].copy()
    bad[6, 2] = 1e30  # fits float64, but its square does not fit the sketch's float32
    with pytest.raises(ValueError, match="overflow float32"):
        model.partial_fit(bad, Y[:7])
    assert model.n_samples_seen_ == 240
    np.testing.assert_array_equal(model.scores_, scores)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": [1.0, -2.0]}, "StreamingRidgeCV: alpha=-2 is not"),
        ({"alphas": []}, "StreamingRidgeCV: there is no alpha: pass at least one"),
        ({"cv": 1}, "cv=1 is too few folds: give at least 2, or None"),
        ({"cv": True}, "cv=True is not a number of folds"),
        ({"cv": KFold(3)}, r"give an int of at least 2, None, or a list of \(train, test\)"),
        ({"cv": [([0, 1], [2, 3]), ([2], [0, 1])]}, "split 1 leaves rows out"),
        ({"cv": [([0, 1], [2, 3]), ([0, 1], [2, 3])]}, "overlap or are too few"),
        ({"cv": list(TimeSeriesSplit(3).split(np.zeros(240)))}, "leaves rows out"),
    ],
)
def test_bad_options_are_named(data, options, message):
    with pytest.raises(ValueError, match=message):
        StreamingRidgeCV(**options).fit(*data)


def test_misuse_says_what_to_do(data):
    X, Y = data
    model = StreamingRidgeCV(ALPHAS, cv=3).fit(X, Y)
    with pytest.raises(ValueError, match="cv changed after training began: call fit"):
        model.set_params(cv=None).partial_fit(X, Y)
    model.set_params(cv=3)
    with pytest.raises(ValueError, match="y_val has 1 targets, the model has 2"):
        model.select(ALPHAS, X, Y[:, 0])
    with pytest.raises(
        ValueError, match="every sample_weight is zero, so there is nothing to choo"
    ):
        model.select(ALPHAS, X, Y, 0.0)
    with pytest.raises(ValueError, match="differ in cv: use one number of folds"):
        model.merge(StreamingRidgeCV(ALPHAS, cv=4).fit(X, Y))
    with pytest.raises(ValueError, match="needs rows in at least two folds"):
        StreamingRidgeCV(ALPHAS, cv=3).fit(X[:1], Y[:1]).alpha_  # noqa: B018
    with pytest.raises(AttributeError):
        StreamingRidgeCV().alpha_  # noqa: B018


def test_folds_are_alike_whatever_row_each_gets_first(data):
    X, Y = data
    model = StreamingRidgeCV(ALPHAS, cv=2, method="rfd", sketch_size=8)
    model.partial_fit(X[:1], Y[:1]).partial_fit(X[1:4].astype("float32"), Y[1:4])
    bad = X[:6].copy()
    bad[3, 0] = 1e15  # would overflow float32, but all folds are float64
    model.partial_fit(bad, Y[:6])
    assert model.n_samples_seen_ == 10
    mixed = StreamingRidgeCV(ALPHAS, cv=2, method="rfd", sketch_size=8)
    mixed.partial_fit(sparse.csr_array(X[:1]), Y[:1]).partial_fit(X[1:], Y[1:])
    whole = StreamingRidgeCV(ALPHAS, cv=2, method="rfd", sketch_size=8)
    whole.fit(sparse.csr_array(X), Y)
    np.testing.assert_array_equal(mixed.scores_, whole.scores_)


def test_a_change_of_folds_is_noticed(data):
    X, Y = data
    model = StreamingRidgeCV(ALPHAS, cv=4).fit(X, Y)
    with pytest.raises(ValueError, match="StreamingRidgeCV: cv changed after training began"):
        model.set_params(cv=interleaved(480, 4)).partial_fit(X, Y)
    with pytest.raises(ValueError, match="StreamingRidgeCV: cv=1 is too few folds"):
        model.set_params(cv=1).partial_fit(X, Y)
    splits = interleaved(len(X), 4)
    part = StreamingRidgeCV(ALPHAS, cv=splits).fit(X, Y)
    with pytest.raises(ValueError, match="count the rows of one stream: use a number of folds"):
        part.merge(StreamingRidgeCV(ALPHAS, cv=splits).fit(X, Y))
