"""How passes are counted, shared, stopped and forgotten."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rereading import answers, assert_same_answers, pieces
from scipy import sparse

from ridgepass import RidgeStream
from ridgepass.refining import Refining
from same_bits import assert_same_bits
from streams import METHODS, make_rows, norm, split_points

BY_METHOD = pytest.mark.parametrize("method", METHODS)
SKETCHED = pytest.mark.parametrize("method", sorted(set(METHODS) - {"exact"}))
BY_OPTIONS = pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": True, "standardize": True}], ids=["plain", "standardize"]
)
ALPHAS = [0.5, 7.0]


def make_case(n_targets=2, n=120, d=10):
    rng = np.random.default_rng(0)
    A = 1 + make_rows(rng, n, d, "decaying")
    b = A @ rng.standard_normal((d, n_targets)) + rng.standard_normal((n, n_targets))
    return A, b


def make_stream(method, A, b, **options):
    model = RidgeStream(method, sketch_size=4, **options).update(A, b)
    model.largest_eigenvalue()  # which the exact method remembers, and solves by
    return model


class Watch(list):
    """Remembers what it is told."""

    def __call__(self, progress):
        self.append(progress)

    @property
    def finished(self):
        return [progress for progress in self if progress.relative is not None]


# Sharing passes


@BY_METHOD
@BY_OPTIONS
@pytest.mark.parametrize("passes", [2, 5, 25])
def test_calls_of_one_pass_are_one_call_of_many(method, options, passes):
    A, b = make_case()
    together, apart = (make_stream(method, A, b, **options) for _ in range(2))
    together.refine([(A, b)], ALPHAS, passes=passes)
    for _ in range(passes):
        apart.refine([(A, b)], ALPHAS)
    assert_same_answers(answers(together, ALPHAS), answers(apart, ALPHAS))


@BY_METHOD
@given(data=st.data(), passes=st.integers(1, 3), store=st.sampled_from([None, sparse.csr_array]))
@settings(max_examples=15)
def test_batches_change_no_bit(method, data, passes, store):
    A, b = make_case()
    A = A if store is None else store(A)
    whole, parts = (make_stream(method, A, b) for _ in range(2))
    whole.refine([(A, b)], 0.5, passes=passes)
    parts.refine(pieces(A, b, None, split_points(data.draw, 120)), 0.5, passes=passes)
    assert_same_answers(answers(whole, ALPHAS), answers(parts, ALPHAS))


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"tracked"}))  # which shares τ
@BY_OPTIONS
@pytest.mark.parametrize("passes", [1, 3])
def test_targets_and_alphas_share_passes_without_mixing(method, options, passes):
    A, b = make_case(n_targets=3)
    together = make_stream(method, A, b, **options).refine([(A, b)], ALPHAS, passes=passes)
    for t in range(3):
        alone = make_stream(method, A, b[:, t], **options)
        for a, alpha in enumerate(ALPHAS):
            alone.refine([(A, b[:, t])], alpha, passes=passes)
            coef = together.solve(ALPHAS)[a, :, t]
            np.testing.assert_allclose(
                alone.solve(alpha), coef, rtol=1e-9, atol=1e-9 * np.abs(coef).max()
            )


@BY_METHOD
@BY_OPTIONS
def test_only_the_alphas_asked_for_are_refined(method, options):
    A, b = make_case()
    before, model = (make_stream(method, A, b, **options) for _ in range(2))
    model.refine([(A, b)], 0.5, passes=2).refine([(A, b)], 7.0)
    passes = {0.5: 3, 7.0: 2, 9.0: 1}
    assert {alpha: model.certificate(alpha).passes for alpha in passes} == passes
    np.testing.assert_array_equal(model.solve(9.0), before.solve(9.0))
    left, right = model.certificate(9.0), before.certificate(9.0)
    for name in ("coef_bound", "relative", "energy_bound"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    np.testing.assert_array_equal(model.solve([9.0, 0.5])[1], model.solve(0.5))
    assert_same_bits(model, before)


@SKETCHED
def test_an_alpha_that_joins_late_is_as_if_refined_alone(method):
    A, b = make_case()
    model = make_stream(method, A, b).refine([(A, b)], 0.5).refine([(A, b)], ALPHAS)
    assert [model.certificate(alpha).passes for alpha in ALPHAS] == [3, 2]
    for alpha, passes in zip(ALPHAS, (2, 1), strict=True):
        alone = make_stream(method, A, b).refine([(A, b)], alpha, passes=passes)
        np.testing.assert_allclose(model.solve(alpha), alone.solve(alpha), rtol=1e-9, atol=1e-10)


@SKETCHED
def test_an_alpha_given_twice_counts_once(method):
    A, b = make_case()
    twice = make_stream(method, A, b).refine([(A, b)], [0.5, 0.5], passes=2)
    once = make_stream(method, A, b).refine([(A, b)], 0.5, passes=2)
    assert_same_answers(answers(twice, ALPHAS), answers(once, ALPHAS))


# Forgetting


@BY_METHOD
@BY_OPTIONS
@pytest.mark.parametrize("how", ["update", "merge"])
def test_new_rows_make_a_stream_as_if_never_refined(method, options, how):
    A, b = make_case()
    plain = RidgeStream(method, sketch_size=4, **options).update(A[:90], b[:90])
    model = plain.copy().refine([(A[:90], b[:90])], ALPHAS, passes=2)
    for one in (plain, model):
        if how == "update":
            one.update(A[90:], b[90:])
        else:
            one.merge(RidgeStream(method, sketch_size=4, **options).update(A[90:], b[90:]))
    assert model.certificate(0.5).passes == 1
    assert_same_answers(answers(plain, ALPHAS), answers(model, ALPHAS))
    assert_same_bits(plain, model)


@BY_METHOD
@BY_OPTIONS
def test_a_copy_is_refined_too_and_goes_its_own_way(method, options):
    A, b = make_case()
    model = make_stream(method, A, b, **options).refine([(A, b)], ALPHAS)
    twin = model.copy()
    twin.largest_eigenvalue()
    before = answers(model, ALPHAS)
    assert_same_answers(before, answers(twin, ALPHAS))
    twin.refine([(A, b)], 0.5, passes=3)
    assert_same_answers(before, answers(model, ALPHAS))
    if method != "exact":
        assert not np.array_equal(twin.solve(0.5), model.solve(0.5))
    twin.update(A, b)
    assert_same_answers(before, answers(model, ALPHAS))


@BY_METHOD
def test_a_merged_in_stream_keeps_its_refinement(method):
    A, b = make_case()
    other = make_stream(method, A, b).refine([(A, b)], ALPHAS)
    before = answers(other, ALPHAS)
    make_stream(method, A, b).merge(other)
    assert_same_answers(before, answers(other, ALPHAS))


# Stopping


@SKETCHED
def test_a_tolerance_stops_as_soon_as_it_is_met(method):
    A, b = make_case()
    watch = Watch()
    model = make_stream(method, A, b).refine([(A, b)], ALPHAS, passes=40, watch=watch)
    errors = [progress.relative for progress in watch.finished]
    tol = np.sqrt(min(errors) * errors[0]) if np.isfinite(errors[0]) else 100 * min(errors)
    needed = next(k for k, error in enumerate(errors, 1) if error <= tol)
    seen = Watch()
    again = make_stream(method, A, b).refine([(A, b)], ALPHAS, passes=40, tol=tol, watch=seen)
    assert len(seen.finished) == needed < len(errors)
    assert max(again.certificate(alpha).relative.max() for alpha in ALPHAS) <= tol
    assert [again.certificate(alpha).passes for alpha in ALPHAS] == [needed + 1] * 2
    assert max(model.certificate(alpha).relative.max() for alpha in ALPHAS) == errors[-1]


@pytest.mark.parametrize("method", ["exact", "rfd", "tracked"])
def test_a_tolerance_that_is_met_reads_nothing(method):
    A, b = make_case()
    model = make_stream(method, A, b)
    before = answers(model, ALPHAS)

    class Unread:
        def __iter__(self):
            yield from ()
            raise AssertionError("rows were read")

    tol = max(model.certificate(alpha).relative.max() for alpha in ALPHAS)
    model.refine(Unread(), ALPHAS, passes=3, tol=tol)
    assert_same_answers(before, answers(model, ALPHAS))
    model.refine([(A, b)], ALPHAS, passes=2)
    before = answers(model, ALPHAS)
    tol = max(model.certificate(alpha).relative.max() for alpha in ALPHAS)
    model.refine(Unread(), ALPHAS, tol=tol)
    assert_same_answers(before, answers(model, ALPHAS))


@SKETCHED
def test_a_tolerance_out_of_reach_stops_at_the_last_pass(method):
    A, b = make_case()
    watch = Watch()
    make_stream(method, A, b).refine([(A, b)], ALPHAS, passes=3, tol=1e-300, watch=watch)
    assert [progress.number for progress in watch.finished] == [2, 3, 4]


@BY_METHOD
@pytest.mark.parametrize("tol", [None, 1e-300])
def test_passes_end_where_only_rounding_is_left(method, tol):
    A, b = make_case()
    watch = Watch()
    model = make_stream(method, A, b)
    model.refine([(A, b)], ALPHAS, passes=500, tol=tol, watch=watch)
    assert len(watch.finished) < 200
    before = answers(model, ALPHAS)
    model.refine([], ALPHAS, passes=500)  # there is nothing to read them for
    assert_same_answers(before, answers(model, ALPHAS))
    for alpha in ALPHAS:
        assert model.certificate(alpha).relative.max() <= 1e-9


@BY_METHOD
def test_the_rows_are_read_in_order_once_for_each_pass(method):
    A, b = make_case()
    watch = Watch()
    cuts = [0, 30, 31, 120]
    model = make_stream(method, A, b)
    model.refine(pieces(A, b, None, cuts), 0.5, passes=1, watch=watch)
    assert [(p.number, p.rows, p.relative is None) for p in watch] == [
        (2, 30, True),
        (2, 31, True),
        (2, 120, True),
        (2, 120, False),
    ]
    assert watch[-1].relative == model.certificate(0.5).relative.max()


@pytest.mark.parametrize("method", ["fd", "rfd", "isvd", "2lfd", "rp", "cs"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": True}, {"feature_scale": np.full(90, 2)}]
)
def test_uneven_columns_take_few_passes_whatever_the_method(method, is_sparse, options):
    """By the diagonal of AᵀA, which the first of them measures."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((600, 90)) * (rng.random((600, 90)) < 0.2)
    A *= np.geomspace(1, 100, 90)
    b, alpha = A @ rng.standard_normal(90) + rng.standard_normal(600), 1e3
    exact = RidgeStream("exact", **options).update(A, b).solve(alpha)
    rows, errors = sparse.csr_array(A) if is_sparse else A, {}
    for without in (True, False):
        model = RidgeStream(method, sketch_size=8, **options).update(rows, b)
        with pytest.MonkeyPatch.context() as patch:
            if without:
                patch.setattr(Refining, "_wants_diagonal", False)
            model.refine([(rows, b)], alpha, passes=8)
        assert (model.refinement.diagonal is None) == without
        errors[without] = norm(model.solve(alpha) - exact) / norm(exact)
    assert errors[False] < (0.3 if method == "2lfd" else 0.1) * errors[True]
    scale = 2.0 if "feature_scale" in options else 1.0
    centred = A - A.mean(axis=0) if "fit_intercept" in options else A
    diagonal = np.square(centred / scale).sum(axis=0)
    np.testing.assert_allclose(model.refinement.diagonal, diagonal, rtol=1e-10)


def test_an_alpha_of_zero_is_refined_but_not_certified():
    A, b = make_case()
    model = make_stream("rfd", A, b)
    before = model._query().solver.covariance.shift
    assert before > 0  # so that there is a solution
    model.refine([(A, b)], 0.0, passes=60)
    exact = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(model.solve(0.0), exact, atol=1e-6 * np.abs(exact).max())
    assert np.isinf(model.certificate(0.0).coef_bound).all()


def test_a_stream_without_rows_has_nothing_to_refine():
    with pytest.raises(ValueError, match="no rows yet"):
        RidgeStream("rfd").refine([], 1.0)
    A, b = make_case()
    for alpha in (-1.0, np.nan, []):
        with pytest.raises(ValueError, match="alpha"):
            make_stream("rfd", A, b).refine([(A, b)], alpha)


# What batches are made of


def reusing(A, b, weights, store, size=7):
    """Batches of which each is written into the arrays of the one before."""
    room = store(np.ones((size, A.shape[1])))
    targets, shares = np.empty((size, b.shape[1])), np.empty(size)
    for start in range(0, len(A), size):
        here = slice(start, start + size)
        (room.data if sparse.issparse(room) else room.reshape(-1))[:] = A[here].ravel()
        targets[:], shares[:] = b[here], weights[here]
        yield room, targets, shares
    (room.data if sparse.issparse(room) else room)[:] = np.nan
    targets[:], shares[:] = np.nan, np.nan


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@BY_OPTIONS
def test_batches_may_be_written_into_the_same_arrays(store, options):
    A, b = make_case(n=119)
    weights = np.random.default_rng(1).random(len(A)) + 0.5
    models = [RidgeStream("rfd", sketch_size=4, **options) for _ in range(2)]
    for model in models:
        model.update(store(A), b, weights)
    models[0].refine(pieces(store(A), b, weights, list(range(0, 120, 7))), ALPHAS)
    models[1].refine(reusing(A, b, weights, store), ALPHAS)
    assert_same_answers(answers(models[0], ALPHAS), answers(models[1], ALPHAS))


@BY_OPTIONS
def test_sparse_rows_with_columns_twice_and_out_of_order(options):
    rng = np.random.default_rng(0)
    places = rng.integers(0, 5, 480), np.arange(0, 481, 6)
    A = sparse.csr_array((rng.standard_normal(480), *places), shape=(80, 5))
    given = [part.copy() for part in (A.data, A.indices, A.indptr)]
    b = rng.standard_normal((80, 2))
    model = RidgeStream("rfd", sketch_size=3, **options).update(A, b).refine([(A, b)], ALPHAS)
    for part, before in zip((A.data, A.indices, A.indptr), given, strict=True):
        np.testing.assert_array_equal(part, before)
    A.sum_duplicates()
    plain = RidgeStream("rfd", sketch_size=3, **options).update(A, b).refine([(A, b)], ALPHAS)
    assert_same_answers(answers(model, ALPHAS), answers(plain, ALPHAS))
