"""A model that went through a file is the model that never did."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import ridgepass
from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.store import read, save
from ridgepass.store.layout import VERSION
from store.models import COLUMNS, N_FEATURES, again, assert_same, batch, small_models, to_bytes
from streams import METHODS

SCALES = {
    "plain": {},
    "standardize": {"standardize": True},
    "feature_scale": {"feature_scale": np.arange(1.0, N_FEATURES + 1)},
}


def new(method, scaling="plain", **options):
    options = {"sketch_size": 4, "random_state": 3, **SCALES[scaling], **options}
    return StreamingRidge(0.5, method=method, **options)


def check_goes_on(model, other, more):
    """Train, merge and ask both: the model, and the one that went through a file."""
    twin = again(model)
    assert_same(model, twin)
    for part in more:
        model.partial_fit(*part)
        twin.partial_fit(*part)
    assert_same(model, twin)
    assert_same(model, again(twin))
    merged = again(twin).merge(again(other))
    assert_same(model.merge(other), merged)
    assert_same(model.partial_fit(*more[0]), merged.partial_fit(*more[0]))


@pytest.mark.parametrize("scaling", SCALES)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_stream_goes_on_to_the_same_bits(
    method, is_sparse, dtype, fit_intercept, scaling
):
    block = 256 if method == "exact" else 64
    for n_targets, weighted, n_rows in ((0, True, block + 45), (5, False, 2 * block + 21)):
        how = {
            "n_targets": n_targets,
            "weighted": weighted,
            "is_sparse": is_sparse,
            "dtype": dtype,
        }
        model = new(method, scaling, fit_intercept=fit_intercept).partial_fit(*batch(n_rows, **how))
        other = new(method, scaling, fit_intercept=fit_intercept)
        other.partial_fit(*batch(block + 14, seed=1, scale=30.0, **how))
        more = [batch(n, seed=n, **how) for n in (3, 57)]
        check_goes_on(model, other, more)


@given(
    st.sampled_from(METHODS),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(sorted(SCALES)),
    st.lists(st.tuples(st.integers(1, 90), st.sampled_from([1e-3, 1.0, 1e3])), min_size=2),
    st.integers(2, 12),
)
def test_any_history_goes_through_a_file(
    method, is_sparse, weighted, fit_intercept, scaling, batches, sketch_size
):
    model = new(method, scaling, fit_intercept=fit_intercept, sketch_size=sketch_size)
    twin = None
    for seed, (n_rows, scale) in enumerate(batches):
        rows, y, weights = batch(
            n_rows, is_sparse=is_sparse, weighted=weighted, seed=seed, scale=scale
        )
        if weights is not None:
            weights += 0.25
        model.partial_fit(rows, y, weights)
        twin = again(model) if twin is None else again(twin.partial_fit(rows, y, weights))
    assert_same(model, twin)


def test_rows_that_wait_while_the_mean_moves():
    """A merger moves the mean away from what the waiting rows are stored relative to."""
    model = new("fd").partial_fit(*batch(11))
    model.merge(new("fd").partial_fit(*batch(16, seed=1, scale=100.0)))
    intake = model._learned.stream._state.intake
    assert intake.filled
    assert (intake.reference != intake.feature_mean.high).any()
    assert_same(model, again(model))
    assert_same(model.partial_fit(*batch(50)), again(model))


@pytest.mark.parametrize(
    "cv",
    [None, 3, list(KFold(3).split(np.zeros((90, 1))))],
    ids=["generalised", "in turn", "given"],
)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_cross_validation(cv, is_sparse):
    model = StreamingRidgeCV([0.1, 1, 10.0], cv=cv, method="rfd", sketch_size=4)
    model.partial_fit(*batch(59, is_sparse=is_sparse))
    twin = again(model)
    assert twin.alpha_ == model.alpha_
    np.testing.assert_array_equal(twin.scores_, model.scores_)
    for each in (model, twin):
        each.partial_fit(*batch(31, is_sparse=is_sparse, seed=1))
    assert_same(model, twin)
    if cv is not None and not isinstance(cv, int):
        with pytest.raises(ValueError, match="folds for 90 rows"):
            twin.partial_fit(*batch(1, is_sparse=is_sparse))
    assert_same(model.at(3.0), again(twin.at(3.0)))


def test_a_choice_stays_chosen():
    model = StreamingRidgeCV(sketch_size=4).partial_fit(*batch(50))
    model.select([0.5, 50.0], *batch(20, seed=1)[:2])
    twin = again(model)
    assert twin.alpha_ == model.alpha_
    np.testing.assert_array_equal(twin.scores_, model.scores_)


LABELS = {
    "strings": np.array(["elm", "ash", "öak 𝄞"]),
    "wide strings": np.array(["b", "a"], dtype="U20"),
    "objects": np.array(["b", "a", "nan"], dtype=object),
    "object numbers": np.array([2.5, 1, 7], dtype=object),
    "numbers": np.array([3, 1, 2], dtype=np.int8),
    "floats": np.array([0.5, 2.0, 1e300]),
    "bools": np.array([True, False]),
    "one": np.array([4]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels(kind):
    labels = LABELS[kind]
    X, _, _ = batch(90)
    y = labels[np.arange(90) % len(labels)]
    model = StreamingRidgeClassifier(sketch_size=4).partial_fit(X, y, classes=labels)
    twin = again(model)
    assert_same(model, twin)
    assert twin.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert_same(model.partial_fit(X, y), twin.partial_fit(X, y))


def test_a_table_of_labels():
    X, _, _ = batch(60)
    y = np.random.default_rng(0).integers(0, 2, (60, 3))
    model = StreamingRidgeClassifier(sketch_size=4, class_weight="balanced").fit(X, y)
    twin = again(model)
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert twin.class_weight == "balanced"


def test_labels_that_a_file_cannot_hold():
    X, _, _ = batch(4)
    y = np.empty(4, dtype=object)
    y[:] = [(0,), (1,), (0,), (1,)]
    model = StreamingRidgeClassifier(sketch_size=4)
    model.partial_fit(X, np.arange(4) % 2, classes=[0, 1])
    object.__setattr__(model._learned.origin.labels, "classes", y[:2])
    with pytest.raises(ValueError, match="tuple, which a file cannot hold: train with labels"):
        to_bytes(model)


def test_a_column_of_targets_and_feature_names():
    X, y, _ = batch(30)
    frame = pd.DataFrame(X, columns=[f"näme {i}" for i in range(N_FEATURES)])
    model = StreamingRidge(sketch_size=4).fit(frame, y[:, None])
    twin = again(model)
    assert twin.feature_names_in_.tolist() == frame.columns.tolist()
    assert twin.feature_names_in_.dtype == model.feature_names_in_.dtype
    assert twin.intercept_.shape == (1,)
    with pytest.raises(ValueError, match="feature names should match"):
        twin.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("alpha", 2, 2),
        ("alpha", np.float32(0.5), 0.5),
        ("alpha", np.array(3), 3),
        ("memory", "1 MB", "1 MB"),
        ("memory", 1e6, 1e6),
        ("memory", 10**400, 10**400),
        ("dtype", np.float32, "float32"),
        ("dtype", np.dtype("float64"), "float64"),
        ("dtype", "float32", "float32"),
        ("fit_intercept", np.False_, False),
        ("sketch_size", np.int64(5), 5),
        ("random_state", 7, 7),
        ("random_state", np.random.RandomState(0), None),
        ("feature_scale", [1.0] * N_FEATURES, [1.0] * N_FEATURES),
        ("feature_scale", np.full(N_FEATURES, 2, dtype=">i4"), [2] * N_FEATURES),
    ],
)
def test_parameters_come_back_as_given(name, given, kept):
    if name == "memory" and isinstance(given, int):
        model = StreamingRidge().fit(*batch(30)).set_params(memory=given)
    else:
        model = StreamingRidge(**{name: given}).fit(*batch(30))
    found = again(model).get_params()
    assert type(found[name]) in (type(kept), np.ndarray)
    np.testing.assert_array_equal(found[name], kept)
    others = model.get_params()
    assert {k: v for k, v in found.items() if k != name} == {
        k: v for k, v in others.items() if k != name
    }


def test_parameters_may_have_changed_after_training():
    model = StreamingRidgeCV([1.0], cv=2, sketch_size=4).fit(*batch(30))
    model.set_params(alphas=(2.0, float("inf"), float("nan")), method="fd", cv=[([0], [1])])
    found = again(model).get_params()
    assert repr(found["alphas"]) == "(2.0, inf, nan)"
    assert found["method"] == "fd"
    ((train, test),) = found["cv"]
    assert (train.tolist(), test.tolist()) == ([0], [1])
    assert_same(model.set_params(alphas=[1.0], cv=2), again(model))


def test_parameters_that_a_file_cannot_hold():
    model = StreamingRidge().fit(*batch(30)).set_params(alpha=object())
    with pytest.raises(ValueError, match=r"alpha is a object, which a file cannot hold: set alpha"):
        to_bytes(model)


def test_class_weights_by_label():
    X, _, _ = batch(30)
    weights = {"a": 2, np.str_("b"): np.float64(0.5)}
    model = StreamingRidgeClassifier(class_weight=weights).fit(X, np.array(["a", "b"])[[0, 1] * 15])
    assert again(model).class_weight == weights


def test_siblings_save_their_own_alpha():
    model = StreamingRidge(1.0, sketch_size=4, method="fd").fit(*batch(30))
    sibling = again(model.at(5.0))
    assert sibling.alpha == 5.0
    np.testing.assert_array_equal(sibling.coef_, model.at(5.0).coef_)


def test_columns_stay_with_what_was_learned(tmp_path):
    columns = COLUMNS
    model = new("fd").partial_fit(*batch(30))
    model._learned.columns = columns
    assert again(model)._learned.columns == columns
    assert model._learned.copy().columns == columns
    assert new("fd").merge(model)._learned.columns == columns
    plain = new("fd").partial_fit(*batch(30))
    assert plain.merge(model)._learned.columns == columns
    assert model.merge(new("fd").partial_fit(*batch(30)))._learned.columns == columns
    folded = StreamingRidgeCV(cv=2, sketch_size=4).partial_fit(*batch(30))
    folded._learned.columns = columns
    assert again(folded)._learned.columns == columns
    fresh = StreamingRidgeCV(cv=2, sketch_size=4).merge(folded)
    assert fresh._learned.columns == columns


def mixed_columns(n_rows, is_sparse=False):
    """Rows of columns that differ much, of which a sketch of four directions leaves some out."""
    X, y, _ = batch(n_rows, is_sparse=is_sparse)
    return X, y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scaling", SCALES)
@pytest.mark.parametrize("n_rows", [3, 31, 32, 33, 300])  # waiting, at the start, and following
def test_a_tracked_model_goes_on_from_either_phase(n_rows, scaling, dtype):
    model = new("tracked", scaling, dtype=dtype).partial_fit(*mixed_columns(n_rows))
    sketch = model._learned.stream._state.sketch
    assert (sketch.start is None) == (n_rows >= 32)
    other = new("tracked", scaling, dtype=dtype, sketch_size=6).partial_fit(*batch(99, seed=3))
    check_goes_on(model, other, [batch(n, seed=5) for n in (1, 40, 200)])


def test_rows_of_few_directions_stay_at_the_start_and_come_back_there():
    X, y, _ = batch(200)
    model = new("tracked", sketch_size=10).partial_fit(X, y)
    assert model._learned.stream._state.sketch.start is not None
    assert model._learned.stream._state.sketch.n_rows > 0
    assert again(model)._learned.stream._state.sketch.start is not None
    check_goes_on(model, new("tracked").partial_fit(X[:90], y[:90]), [batch(70, seed=1)])


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["plain", "standardize"])
def test_sparse_models_of_more_than_one_block_go_on(scaling):
    X, y, _ = batch(9000, is_sparse=True)
    model = new("tracked", scaling, probes=3).partial_fit(X[:4200], y[:4200])
    assert model._learned.stream._state.sketch.start is None
    twin = again(model)
    for part in (slice(4200, 4300), slice(4300, 9000)):
        model.partial_fit(X[part], y[part])
        twin.partial_fit(X[part], y[part])
        assert_same(model, twin)
    whole = new("tracked", scaling, probes=3).partial_fit(X, y)
    np.testing.assert_array_equal(whole.coef_, model.coef_)


@pytest.mark.parametrize("method", ["tracked", "rfd", "rp"])
@pytest.mark.parametrize("other", [{"probes": 0}, {"probes": 9}, {"random_state": 4}])
@pytest.mark.parametrize("turned", [False, True])
def test_probes_that_a_merger_has_dropped_stay_away(method, other, turned):
    # Eight are as many as a tracked sketch has for itself where none are asked for.
    mine, theirs = new(method, probes=8), new(method, **{"probes": 8, **other})
    mine.partial_fit(*batch(150))
    theirs.partial_fit(*batch(150, seed=1))
    left, right = (theirs, mine) if turned else (mine, theirs)
    left.merge(right)
    proof = left.certificate()
    assert proof.estimate is None
    assert proof.confidence == 1.0
    assert ("dropped" in proof.remark) == (left.probes > 0)
    twin = again(left)
    assert_same(left, twin)
    assert twin.certificate().remark == proof.remark
    left.partial_fit(*batch(200, seed=2))
    twin.partial_fit(*batch(200, seed=2))
    assert_same(left, twin)


def test_probes_stay_where_the_other_has_nothing_but_rows_that_wait():
    model = new("tracked", probes=8).partial_fit(*batch(150))
    model.merge(new("tracked", probes=5, random_state=9).partial_fit(*batch(5, seed=1)))
    assert model.certificate().estimate is not None
    assert model.certificate().remark == ""
    assert_same(model, again(model))


def test_a_tracked_model_of_more_targets_than_half_of_its_sketch():
    model = new("tracked", probes=3).partial_fit(*batch(150, n_targets=5))
    assert model._learned.stream._state.sketch.n_starts == 5
    other = new("tracked", probes=3, sketch_size=12).partial_fit(*batch(99, n_targets=5, seed=1))
    check_goes_on(model, other, [batch(70, n_targets=5, seed=2)])


def test_notes(tmp_path):
    model, path = new("fd").partial_fit(*batch(30)), tmp_path / "m.ridge"
    notes = {"rows": 30, "where": ["a", None, 0.1], "array": {"array": "x"}}
    save(model, path, notes=notes)
    found = read(path)
    assert (found.notes, found.version, found.n_bytes) == (notes, VERSION, path.stat().st_size)
    model.save(path)
    assert read(path).notes == {}
    with pytest.raises(ValueError, match=r"notes are not JSON .*: give numbers, strings"):
        save(model, path, notes={"x": float("nan")})
    assert read(path).notes == {}


def test_only_fitted_estimators_of_ours_can_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        StreamingRidge().save(tmp_path / "m.ridge")

    class Mine(StreamingRidge):
        pass

    with pytest.raises(TypeError, match="cannot save a Mine: give one of StreamingRidge"):
        Mine().fit(*batch(30)).save(tmp_path / "m.ridge")
    with pytest.raises(TypeError, match="cannot save a int: give one of"):
        save(3, tmp_path / "m.ridge")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["regressor", "chooser", "classifier"])
def test_the_same_model_gives_the_same_bytes(kind, tmp_path):
    first, second = (small_models()[kind] for _ in range(2))
    first.predict(batch(3)[0])  # what a question leaves behind does not show
    assert to_bytes(first) == to_bytes(second)
    first.save(tmp_path / "m.ridge")
    assert (tmp_path / "m.ridge").read_bytes() == to_bytes(second)
    assert_same(ridgepass.load(tmp_path / "m.ridge"), first)
