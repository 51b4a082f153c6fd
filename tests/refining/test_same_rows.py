"""The same rows are taken for the same however they come, and others for others."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rereading import answers, assert_same_answers, pieces
from scipy import linalg, sparse

from prepared import PREPARATIONS, prepared
from ridgepass import RidgeStream
from ridgepass.refining.same_rows import signs_for
from streams import METHODS, split_points, streams

BY_METHOD = pytest.mark.parametrize("method", METHODS)
STANDARD = {"fit_intercept": True, "standardize": True}


# Accepted


@BY_METHOD
@given(draw=st.data(), data=prepared(max_features=5), options=st.sampled_from(PREPARATIONS))
@settings(max_examples=30)
def test_another_order_in_other_batches_is_the_same(method, draw, data, options):
    A, b, weights = data.whole
    A = A.tocsr() if sparse.issparse(A) else A
    model = RidgeStream(method, sketch_size=data.sketch_size, **options).update(A, b, weights)
    order = np.random.default_rng(len(b)).permutation(len(b))
    again = pieces(
        A[order],
        b[order],
        None if weights is None else weights[order],
        split_points(draw.draw, len(b)),
    )
    model.refine([batch for batch in again if len(batch[1])], 1.0)
    assert model.certificate(1.0).passes == 2


@BY_METHOD
@given(stream=streams(), dtype=st.sampled_from([None, "float64"]), intercept=st.booleans())
@settings(max_examples=30)
def test_any_scale_is_the_same(method, stream, dtype, intercept):
    model = RidgeStream(
        method, sketch_size=stream.sketch_size, dtype=dtype, fit_intercept=intercept
    )
    model.update(stream.A, stream.b).refine(pieces(stream.A[::-1], stream.b[::-1]), stream.alpha)
    assert model.certificate(stream.alpha).passes == 2


@BY_METHOD
@given(draw=st.data(), data=prepared(max_features=4), options=st.sampled_from(PREPARATIONS))
@settings(max_examples=20)
def test_merged_streams_know_their_rows(method, draw, data, options):
    model = RidgeStream(method, sketch_size=data.sketch_size, **options)
    for start, stop in itertools.pairwise(split_points(draw.draw, len(data.A))):
        part = RidgeStream(method, sketch_size=draw.draw(st.integers(2, 12)), **options)
        model.merge(part.update(*data.part(start, stop)))
    model.refine([data.whole], 1.0)
    assert model.certificate(1.0).passes == 2


@BY_METHOD
@pytest.mark.parametrize("options", [{}, STANDARD], ids=["plain", "standardize"])
def test_float64_rows_kept_in_float32_are_the_same(method, options):
    rng = np.random.default_rng(0)
    A, b = 5 + rng.standard_normal((300, 8)), rng.standard_normal(300)
    model = RidgeStream(method, sketch_size=4, dtype="float32", **options).update(A, b)
    for rows in (A, sparse.csr_array(A)):
        assert model.refine([(rows, b)], 1.0).certificate(1.0).passes >= 2


@BY_METHOD
def test_long_streams_are_the_same(method):
    rng = np.random.default_rng(1)
    A, b = 100 + rng.standard_normal((6_000, 6)), 1e4 + rng.standard_normal((6_000, 2))
    model = RidgeStream(method, sketch_size=4, **STANDARD).update(A, b)
    model.refine(pieces(A[::-1], b[::-1], None, [0, 1, 700, 6_000]), 1.0)
    assert model.certificate(1.0).passes == 2


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"exact"}))
@pytest.mark.parametrize("value", [0.1, 1 / 3])
def test_wide_rows_whose_sums_round_to_one_side_are_the_same(method, value):
    A, b = np.full((9, 100_000), value), np.arange(9.0)
    model = RidgeStream(method, sketch_size=4).update(A, b)
    assert model.refine([(A[::-1], b[::-1])], 1.0).certificate(1.0).passes == 2


@BY_METHOD
def test_rows_of_no_weight_may_be_left_out(method):
    rng = np.random.default_rng(2)
    A, b, weights = rng.standard_normal((40, 5)), rng.standard_normal(40), np.ones(40)
    weights[::3] = 0.0
    model = RidgeStream(method, sketch_size=4).update(A, b, weights)
    model.refine([(A, b, weights)], 1.0).refine([(A[weights > 0], b[weights > 0])], 1.0)
    assert model.certificate(1.0).passes >= 2


@BY_METHOD
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_one_row_and_its_own_mean_are_the_same(method, store):
    A, b = store(np.array([[2.0]])), np.array([0.5])
    model = RidgeStream(method, sketch_size=2, fit_intercept=True).update(A, b)
    model.refine([(A, b)], 1.0)
    assert not model.solve(1.0).any()


# Refused


def make_case(dtype="float64", n_targets=2):
    rng = np.random.default_rng(3)
    A = 1 + rng.standard_normal((60, 6)) * np.geomspace(0.3, 3, 6)
    b = A @ rng.standard_normal((6, n_targets)) + rng.standard_normal((60, n_targets))
    return A.astype(dtype), b, 0.5 + rng.random(60)


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


def swapped(values, axis):
    """The first and the third change places."""
    order = np.arange(values.shape[axis])
    order[[0, 2]] = order[[2, 0]]
    return np.take(values, order, axis=axis)


CHANGES = {
    "one row missing": lambda A, b, w: (A[1:], b[1:], w[1:]),
    "one row more": lambda A, b, w: tuple(np.concatenate([v, v[:1]]) for v in (A, b, w)),
    "one doubled, one dropped": lambda A, b, w: tuple(
        np.concatenate([v[1:], v[5:6]]) for v in (A, b, w)
    ),
    "a target": lambda A, b, w: (A, changed(b, (7, 0), b[7, 0] + 1e-6 * b[:, 0].std()), w),
    "a last target": lambda A, b, w: (A, changed(b, (7, 1), b[7, 1] - 1e-6 * b[:, 1].std()), w),
    "targets of two rows": lambda A, b, w: (A, swapped(b, 0), w),
    "the order of targets": lambda A, b, w: (A, b[:, ::-1], w),
    "two columns": lambda A, b, w: (swapped(A, 1), b, w),
    "a feature": lambda A, b, w: (changed(A, (9, 2), A[9, 2] + A[:, 2].std() / 100), b, w),
    "a sign": lambda A, b, w: (changed(A, (9, 2), -A[9, 2]), b, w),
    "a weight": lambda A, b, w: (A, b, changed(w, 4, w[4] * 1.001)),
    "weights of two rows": lambda A, b, w: (A, b, swapped(w, 0)),
    "no weights": lambda A, b, w: (A, b, None),
    "a feature is NaN": lambda A, b, w: (changed(A, (3, 1), np.nan), b, w),
    "a feature is infinite": lambda A, b, w: (changed(A, (3, 1), -np.inf), b, w),
    "a feature is huge": lambda A, b, w: (changed(A, (3, 1), A.dtype.type(1e30)), b, w),
}


@BY_METHOD
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_other_rows_are_refused_and_change_nothing(method, change):
    for options, dtype, refined in (
        ({}, "float32", False),
        ({}, "float64", True),
        ({"fit_intercept": True}, "float64", False),
        (STANDARD, "float32", True),
        (STANDARD, "float64", False),
    ):
        A, b, weights = make_case(dtype)
        model = RidgeStream(method, sketch_size=4, **options).update(A, b, weights)
        if refined:
            model.refine([(A, b, weights)], 3.0)
        model.largest_eigenvalue()  # which the exact method remembers, and solves by
        before = answers(model, [1.0, 3.0])
        other = change(A, b, weights)
        with np.errstate(all="ignore"):
            for again in ([other], pieces(*other, [0, 2, 30, len(other[0])])):
                with pytest.raises(ValueError, match="not the rows"):
                    model.refine(again, [1.0, 3.0], passes=2)
                assert_same_answers(before, answers(model, [1.0, 3.0]))


@BY_METHOD
@pytest.mark.parametrize(("intercept", "constant"), [(True, 7.0), (True, 0.0), (False, 0.0)])
def test_a_column_that_was_constant_and_no_longer_is_is_refused(method, intercept, constant):
    A, b, weights = make_case()
    A[:, 1] = constant
    model = RidgeStream(method, sketch_size=4, fit_intercept=intercept, standardize=True)
    model.update(A, b, weights)
    other = A.copy()
    # Neither the mean nor the product with the targets shows this.
    unseen = linalg.null_space((weights * np.column_stack([np.ones(60), b]).T)[:, :4])
    other[:4, 1] += 1e-3 * unseen[:, 0]
    with pytest.raises(ValueError, match="not the rows"):
        model.refine([(other, b, weights)], 1.0)
    model.refine([(A, b, weights)], 1.0)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("rp", "cs")])
def test_squares_alone_tell_other_rows(method):
    A, b, weights = make_case()
    model = RidgeStream(method, sketch_size=4).update(A, 0 * b, weights)
    other = changed(A, 7, 3 * A[7])  # with targets of zero and no intercept nothing else differs
    with pytest.raises(ValueError, match="the features' variance is another"):
        model.refine([(other, 0 * b, weights)], 1.0)
    model.refine([(A[::-1], 0 * b, weights[::-1])], 1.0)


@BY_METHOD
def test_several_alphas_refused_change_no_bit(method):
    A, b, weights = make_case()
    model = RidgeStream(method, sketch_size=4).update(A, b, weights)
    before = answers(model, [1.0, 3.0])
    with pytest.raises(ValueError, match="not the rows"):
        model.refine([(A[1:], b[1:], weights[1:])], [1.0, 3.0])
    assert_same_answers(before, answers(model, [1.0, 3.0]))


@BY_METHOD
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_other_rows_are_refused_at_any_scale(method, scale):
    A, b, weights = make_case()
    model = RidgeStream(method, sketch_size=4).update(scale * A, b, weights)
    before = answers(model, [scale**2])
    for name in ("one doubled, one dropped", "a target", "targets of two rows", "two columns"):
        with pytest.raises(ValueError, match="not the rows"):
            model.refine([CHANGES[name](scale * A, b, weights)], scale**2)
        assert_same_answers(before, answers(model, [scale**2]))


@BY_METHOD
@pytest.mark.parametrize("again", [[], [(np.ones((1, 6)), np.ones((1, 2)))]], ids=["none", "one"])
def test_hardly_any_rows_are_refused(method, again):
    A, b, weights = make_case()
    model = RidgeStream(method, sketch_size=4, **STANDARD).update(A, b, weights)
    before = answers(model, [1.0])
    with pytest.raises(ValueError, match="not the rows"):
        model.refine(again, 1.0)
    assert_same_answers(before, answers(model, [1.0]))


@BY_METHOD
def test_a_target_that_is_nan_is_refused(method):
    A, b, weights = make_case()
    model = RidgeStream(method, sketch_size=4).update(A, b, weights)
    before = answers(model, [1.0])
    with pytest.raises(ValueError, match="b has nan in row 3"):
        model.refine([(A, changed(b, (3, 1), np.nan), weights)], 1.0)
    assert_same_answers(before, answers(model, [1.0]))


@BY_METHOD
def test_rows_that_come_once_are_refused_before_the_first_pass(method):
    A, b, weights = make_case()
    model = RidgeStream(method, sketch_size=4).update(A, b, weights)
    before = answers(model, [1.0])
    with pytest.raises(ValueError, match="read only once: give a list"):
        model.refine(iter([(A, b, weights)]), 1.0, passes=2)
    assert_same_answers(before, answers(model, [1.0]))


@BY_METHOD
def test_too_many_rows_are_refused_before_they_are_all_read(method):
    A, b, weights = make_case()
    model = RidgeStream(method, sketch_size=4).update(A, b, weights)

    def endless():
        while True:
            yield A, b, weights

    with pytest.raises(ValueError, match=r"not the rows .* more than 60 rows"):
        model.refine(endless(), 1.0)


@given(stream=streams(scales=[1.0], spectra=["flat", "spiked"], min_rows=20))
@settings(max_examples=60)
def test_any_row_left_out_for_a_copy_of_another_is_noticed(stream):
    A, b = stream.A, stream.b
    model = RidgeStream("rfd", sketch_size=stream.sketch_size).update(A, b)
    kept = np.append(np.arange(1, len(A)), len(A) // 2)
    with pytest.raises(ValueError, match="not the rows"):
        model.refine([(A[kept], b[kept])], stream.alpha)


def test_every_target_has_about_the_same_say_no_two_the_same_and_none_without_squares():
    masses = np.array([4.0, 0.0, 1e-200, 1e200, *np.ones(1000)])
    says = signs_for(masses) * np.sqrt(masses)
    assert says[1] == 0.0
    others = np.delete(says, 1)
    assert ((others >= 1.0) & (others < 2.0)).all()
    assert np.diff(np.sort(others)).min() > 1e-4


@BY_METHOD
def test_targets_of_one_mean_and_variance_that_change_places_are_noticed(method):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((120, 6)), np.eye(4)[rng.permutation(np.arange(120) % 4)]
    model = RidgeStream(method, sketch_size=4, fit_intercept=True).update(A, b)
    for order in itertools.permutations(range(4)):
        if order != (0, 1, 2, 3):
            with pytest.raises(ValueError, match="not the rows"):
                model.refine([(A, b[:, order])], 1.0)
