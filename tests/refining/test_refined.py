"""Answers and certificates after further passes, against exact ridge in extended precision."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rereading import Truth, answers, assert_same_answers, lengths, pieces, relative_errors
from scipy import sparse

from balls import ExactRidge
from prepared import PREPARATIONS, prepared, scaled
from ridgepass import RidgeStream
from ridgepass.refining import Refined, certify
from streams import METHODS, make_rows, norm, streams

BY_METHOD = pytest.mark.parametrize("method", METHODS)
STANDARD = {"fit_intercept": True, "standardize": True}


def assert_certified(model, truth, alpha, rows):
    """No bound is below the error it is for."""
    coef, certificate = model.solve(alpha), model.certificate(alpha)
    exact = truth.solve(alpha)
    y = scaled(model, coef) - exact
    error, size = lengths(y), lengths(exact)
    assert (error <= certificate.coef_bound).all()
    ratios = np.divide(error, size, out=np.zeros_like(error), where=size > 0)
    assert (ratios <= certificate.relative).all()
    assert (truth.energy(alpha, y) <= certificate.energy_bound).all()
    found = (rows @ coef + model.intercept(coef)).reshape(len(rows), -1)
    gaps = np.abs(found - truth.predict(rows, exact))
    for store in (np.asarray, sparse.csr_array):
        bounds = certificate.prediction_bound(store(rows)).reshape(gaps.shape)
        assert (gaps <= bounds).all()


# Certificates


@BY_METHOD
@given(stream=streams(), passes=st.integers(1, 4))
@settings(max_examples=30)
def test_no_bound_is_below_the_truth_at_any_scale(method, stream, passes):
    A, b, alpha = stream.A, stream.b, stream.alpha
    model = RidgeStream(method, sketch_size=stream.sketch_size).update(A, b)
    model.refine([(A, b)], alpha, passes=passes)
    assert_certified(model, Truth.of(model, A, b), alpha, A[:3])


@BY_METHOD
@given(
    data=prepared(max_features=5),
    options=st.sampled_from(PREPARATIONS),
    passes=st.integers(1, 4),
    factor=st.sampled_from([1e-9, 1e-6, 1e-2, 1.0, 1e6]),
)
@settings(max_examples=40)
def test_no_bound_is_below_the_truth_of_prepared_rows(method, data, options, passes, factor):
    model = RidgeStream(method, sketch_size=data.sketch_size, **options).update(*data.whole)
    truth = Truth.of(model, data.A, data.b, data.weights)
    alpha = factor * (truth.mass or 1.0)
    model.refine([data.whole], alpha, passes=passes)
    # At the mean, only what rounding did to the mean itself is left.
    rows = np.vstack([truth.mean.astype(float), data.A[:3], -data.A[:1]]).astype(float)
    assert_certified(model, truth, alpha, rows)


@BY_METHOD
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_pass_more_proves_what_one_pass_could_not(method, dtype):
    rng = np.random.default_rng(0)
    A = make_rows(rng, 300, 20, "decaying").astype(dtype)
    b = A @ rng.standard_normal(20) + rng.standard_normal(300)
    model = RidgeStream(method, sketch_size=12).update(A, b)
    before = model.certificate(3.0)
    after = model.refine([(A, b)], 3.0, passes=3).certificate(3.0)
    assert (before.passes, after.passes) == (1, 4)
    assert after.coef_bound < np.inf
    if np.isfinite(before.relative):
        # What rounding adds to what is known already.
        assert after.coef_bound <= 1.01 * before.coef_bound
        assert after.energy_bound <= 1.01 * before.energy_bound
    if method not in {"2lfd", "cs", "rp"}:  # whose bounds are loose, or none
        assert after.relative < 1e-3


@BY_METHOD
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("far", [1.0, 1e4, 1e8])
def test_energy_counts_the_rounding_of_the_intercept(method, far, weighted):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((30, 4)) + far * rng.choice([-1.0, 1.0], 4)
        b = rng.standard_normal((30, 2)) + 3.0
        weights = rng.random(30) + 0.1 if weighted else None
        truth = ExactRidge(A, b, 2.0, weights)
        model = RidgeStream(method, sketch_size=5, fit_intercept=True).update(A, b, weights)
        for _ in range(3):
            coef = model.solve(2.0)
            truth.assert_bounded(model.certificate(2.0), coef, model.intercept(coef), A[:3])
            model.refine([(A, b, weights)], 2.0)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("x", "y"), [(1e-100, 1e-230), (1e-6, 1e-163), (1.0, 1e-180), (1e-160, 1)])
def test_bounds_count_what_underflows(store, centred, x, y):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A, b = x * rng.standard_normal((20, 3)), y * rng.standard_normal((20, 2))
        alpha = max(x * x, 1e-300)
        # Of a projection the first pass knows nothing, so that all is from the second.
        model = RidgeStream("rp", sketch_size=4, fit_intercept=centred).update(store(A), b)
        model.refine([(store(A), b)], alpha)
        coef, truth = model.solve(alpha), ExactRidge(A, b, alpha, fit_intercept=centred)
        truth.assert_bounded(model.certificate(alpha), coef, model.intercept(coef), A[:3])


def test_a_bound_of_tiny_numbers_is_not_loose():
    # Nor where squares of the targets are next to the end of the range.
    rng = np.random.default_rng(0)
    A, b = 1e-6 * rng.standard_normal((40, 3)), 1e-150 * rng.standard_normal((40, 2))
    small, large = (
        RidgeStream("rp", sketch_size=4).update(A, b * by).refine([(A, b * by)], 1e-12)
        for by in (1.0, 1e150)
    )
    for name in ("coef_bound", "energy_bound"):
        ratio = getattr(small.certificate(1e-12), name) / getattr(large.certificate(1e-12), name)
        np.testing.assert_allclose(ratio, 1e-150, rtol=1e-3)


# Answers


@BY_METHOD
@given(stream=streams())
@settings(max_examples=30)
def test_no_pass_raises_the_energy_of_the_error(method, stream):
    A, b, alpha = stream.A, stream.b, stream.alpha
    model = RidgeStream(method, sketch_size=stream.sketch_size).update(A, b)
    truth = Truth.of(model, A, b)
    exact = truth.solve(alpha)
    slack = 1e-9 * truth.energy(alpha, exact)
    before = truth.energy(alpha, scaled(model, model.solve(alpha)) - exact)
    for _ in range(6):
        model.refine([(A, b)], alpha)
        now = truth.energy(alpha, scaled(model, model.solve(alpha)) - exact)
        assert (now <= before + slack).all()
        before = now


@BY_METHOD
@given(
    data=prepared(max_features=12, means=(0.0, 1.0, 100.0), spreads=(0.1, 1.0, 10.0)),
    options=st.sampled_from(PREPARATIONS),
    factor=st.sampled_from([1e-3, 1e-2, 1.0]),
)
@settings(max_examples=20)
def test_enough_passes_give_exact_ridge(method, data, options, factor):
    model = RidgeStream(method, sketch_size=data.sketch_size, **options).update(*data.whole)
    truth = Truth.of(model, data.A, data.b, data.weights)
    alpha = factor * (truth.mass or 1.0)
    coef = model.refine([data.whole], alpha, passes=60).solve(alpha)
    assert (relative_errors(model, alpha, truth.solve(alpha)) <= 1e-10).all()
    found = np.r_[data.A[:2], data.A[-2:]].astype(float)
    gaps = found @ coef + model.intercept(coef) - truth.predict(found, truth.solve(alpha))
    reach = np.abs(data.b).max() + np.abs(found) @ np.abs(coef)
    assert (np.abs(gaps) <= 1e-9 * reach).all()


@pytest.mark.parametrize("factor", [1e-6, 1e-3])
@pytest.mark.parametrize("spectrum", ["flat", "decaying", "spiked", "low rank"])
@BY_METHOD
def test_enough_passes_give_exact_ridge_where_alpha_is_small(method, spectrum, factor):
    rng = np.random.default_rng(1)
    A = make_rows(rng, 100, 12, spectrum)
    b = A @ rng.standard_normal(12) + rng.standard_normal(100)
    model = RidgeStream(method, sketch_size=4).update(A, b)
    truth = Truth.of(model, A, b)
    alpha = factor * truth.mass
    model.refine([(A, b)], alpha, passes=100)
    # However ill the condition, and far below what rounding may do at worst.
    assert relative_errors(model, alpha, truth.solve(alpha)) <= 1e-10


@pytest.mark.parametrize("options", PREPARATIONS, ids=lambda o: " ".join(o) or "plain")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_exact_method_stays_exact(options, dtype):
    rng = np.random.default_rng(2)
    A = (3 + make_rows(rng, 200, 8, "decaying")).astype(dtype)
    b, weights = A @ np.ones(8) + rng.standard_normal(200), 0.1 + rng.random(200)
    model = RidgeStream("exact", **options).update(A, b, weights).refine([(A, b, weights)], 1.0)
    exact = Truth.of(model, A, b, weights).solve(1.0)
    assert relative_errors(model, 1.0, exact) <= 1e-11
    assert model.certificate(1.0).relative < 1e-6


def test_points_are_those_of_plain_conjugate_gradients():
    rng = np.random.default_rng(3)
    A = make_rows(rng, 200, 12, "decaying")
    b, alpha = A @ rng.standard_normal((12, 2)) + rng.standard_normal((200, 2)), 0.5
    model = RidgeStream("rfd", sketch_size=4).update(A, b)
    x = model.solve(alpha)
    covariance = model._query().solver.covariance
    S = covariance.project(np.eye(12))
    K, c = A.T @ A + alpha * np.eye(12), A.T @ b
    M = S.T @ S + np.diag(np.diagonal(K - S.T @ S))
    middle = S.T @ S + (covariance.loss_bound / 2 + alpha) * np.eye(12)
    r = c - K @ x
    p = z = np.linalg.solve(M, r)
    for k in range(9):
        model.refine([(A, b)], alpha)
        found = model._refinement.by_alpha[alpha]
        assert found.passes == k + 2
        np.testing.assert_allclose(found.point, x, rtol=1e-8, atol=1e-8 * np.abs(x).max())
        np.testing.assert_allclose(found.residual, r, atol=1e-8 * np.abs(c).max())
        # The best step if half of what may be lost is lost: never too far.
        share = np.minimum((r * z).sum(axis=0) / (z * (middle @ z)).sum(axis=0), 1.0)
        np.testing.assert_allclose(found.step, share * z, atol=1e-8 * np.abs(x).max())
        length = (r * z).sum(axis=0) / (p * (K @ p)).sum(axis=0)
        x, after = x + length * p, r - length * (K @ p)
        correction = np.linalg.solve(M, after)
        p = correction + (after * correction).sum(axis=0) / (r * z).sum(axis=0) * p
        r, z = after, correction


# Snapshots


def refined(method="rfd", passes=2, alphas=(0.5, 7.0), **options):
    rng = np.random.default_rng(4)
    A, b = 1 + make_rows(rng, 120, 10, "decaying"), rng.standard_normal((120, 2))
    model = RidgeStream(method, sketch_size=4, **options).update(A, b)
    return model.refine([(A, b)], list(alphas), passes=passes), A, b


@BY_METHOD
@pytest.mark.parametrize("options", [{}, STANDARD], ids=["plain", "standardize"])
def test_a_snapshot_keeps_every_bit_and_refining_goes_on(method, options):
    for passes in (1, 2, 30):
        model, A, b = refined(method, passes, **options)
        fresh = RidgeStream(method, sketch_size=4, **options).restore(model.snapshot())
        assert_same_answers(answers(model, [0.5, 7.0, 9.0]), answers(fresh, [0.5, 7.0, 9.0]))
        for one in (model, fresh):
            one.refine(pieces(A, b, None, [0, 50, 120]), [0.5, 7.0], passes=2)
        assert_same_answers(answers(model, [0.5, 7.0]), answers(fresh, [0.5, 7.0]))


def broken(place, value, index=0):
    def change(kept):
        owner = kept["refinement"]
        owner = owner if place in owner else owner["alphas"][index]
        assert place in owner
        if value is None:
            del owner[place]
        else:
            owner[place] = value(owner[place]) if callable(value) else value

    return change


def chosen(place, value):
    """As if probes had chosen steps, which of this method they do not."""

    def change(kept):
        kept["refinement"]["alphas"][1][place] = value

    return change


ARRAYS = ["point", "residual", "direction", "step", "power", "error", "asked"]
OWN_ARRAYS = ["mean", "target_mean", "target_mean_error"]
NOT_NEEDED = ["diagonal"]
DAMAGE = {
    **{f"{name} missing": broken(name, None) for name in [*ARRAYS, *OWN_ARRAYS]},
    **{
        f"{name} short": broken(name, lambda v: v[1:])
        for name in [*ARRAYS, *OWN_ARRAYS, *NOT_NEEDED]
    },
    "diagonal negative": broken("diagonal", lambda v: -v),
    "surprise negative": chosen("surprise", np.full(2, -1.0)),
    "surprise short": chosen("surprise", np.ones(1)),
    "point_surprise no array": chosen("point_surprise", 1.0),
    **{f"{name} float32": broken(name, lambda v: v.astype("f4")) for name in [*ARRAYS, "mean"]},
    **{f"{name} no array": broken(name, 1.0, 1) for name in ARRAYS},
    **{f"{name} missing": broken(name, None) for name in ("alpha", "passes", "stalled")},
    "mean_error missing": broken("mean_error", None),
    "mean_error no number": broken("mean_error", "much"),
    "alphas missing": broken("alphas", None),
    "no alphas": broken("alphas", []),
    "alphas no list": broken("alphas", 3),
    "alphas of numbers": broken("alphas", [1.0]),
    "alpha negative": broken("alpha", -1.0),
    "alpha infinite": broken("alpha", np.inf),
    "alpha NaN": broken("alpha", np.nan),
    "alpha whole": broken("alpha", 1),
    "one pass": broken("passes", 1),
    "half a pass": broken("passes", 2.5),
    "stalled a number": broken("stalled", 1),
    "stalled of numbers": broken("stalled", np.zeros(2)),
    "no group": lambda kept: kept.update(refinement=[1]),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_snapshot_is_refused_and_leaves_the_stream_alone(damage):
    model, A, b = refined()
    kept = model.snapshot()
    damage(kept)
    other = RidgeStream("rfd", sketch_size=4).update(A[:50], b[:50]).refine([(A[:50], b[:50])], 2.0)
    before = answers(other, [0.5, 2.0])
    with pytest.raises(ValueError, match=r"\w"):
        other.restore(kept)
    assert_same_answers(before, answers(other, [0.5, 2.0]))


def test_bytes_of_a_refinement_are_told():
    model, A, b = refined()
    before = RidgeStream("rfd", sketch_size=4).update(A, b).nbytes
    # Four vectors and five numbers for two targets and two alphas; means and their errors, and
    # the diagonal.
    assert model.nbytes - before == 8 * (2 * 2 * (4 * 10 + 5) + 10 + 2 + 2 + 10)


# Steps


@given(seed=st.integers(0, 999), passes=st.integers(1, 5))
@settings(max_examples=40)
def test_a_residual_of_one_target_that_is_gone_stops_no_other(seed, passes):
    rng = np.random.default_rng(seed)
    A, alpha = rng.standard_normal((40, 6)), 1.0
    b = np.c_[rng.standard_normal(40), np.zeros(40)]
    model = RidgeStream("rfd", sketch_size=2).update(A, b).refine([(A, b)], alpha, passes=passes)
    alone = RidgeStream("rfd", sketch_size=2).update(A, b[:, 0])
    alone.refine([(A, b[:, 0])], alpha, passes=passes)
    np.testing.assert_allclose(model.solve(alpha)[:, 0], alone.solve(alpha), rtol=1e-9, atol=1e-12)
    assert not model.solve(alpha)[:, 1].any()


def test_a_step_is_cut_where_the_curvature_may_be_more():
    # The sketch knows nothing of a curvature of 100: a whole step would be far too long.
    one = np.ones((1, 1))

    def begun(share, error=0.0):
        shares = partial(shared, share)
        return Refined.begun(1.0, 0 * one, one, np.full(1, error), lambda v: v, shares)

    assert begun(1 / 100).step == pytest.approx(1 / 100)
    assert begun(3.0).step == 1.0
    assert begun(1.0, error=1e5).step == 0.0
    assert begun(1.0, error=1e5).finished


@pytest.mark.parametrize("probes", [24, 0])
def test_a_step_that_probes_see_to_be_too_long_is_cut(probes):
    # A few rows are thirty times the others, and alpha is far below what the subspace leaves out.
    rng = np.random.default_rng(1)
    A = rng.standard_normal((4000, 300))
    A[rng.choice(4000, 100, replace=False)] *= 30
    b = A @ rng.standard_normal(300) + rng.standard_normal(4000)
    alpha = np.square(A).sum() / 300 / 100
    exact = np.linalg.solve(A.T @ A + alpha * np.eye(300), A.T @ b)

    def error(model):
        return norm(model.solve(alpha) - exact) / norm(exact)

    options = {"sketch_size": 48, "alpha": alpha, "probes": probes}
    model = RidgeStream("tracked", **options).update(A, b)
    before = error(model)
    model.refine([(A, b)], alpha)
    refined = model._refinement.by_alpha[alpha]
    if not probes:  # else the test would not show that they are what cuts it
        assert error(model) > 1.5 * before
        assert not refined.surprise.any()
        return
    assert error(model) < 0.7 * before
    certificate = model.certificate(alpha)
    assert error(model) * norm(exact) <= certificate.coef_bound
    # The choice is paid for: without that, the same numbers prove more than they can.
    assert refined.surprise.item() > 3
    unpaid = replace(refined, surprise=np.zeros(1))
    query = model._query()
    found = certify(query, model._refinement, unpaid, confidence=certificate.confidence)
    assert found.relative < 0.95 * certificate.relative
    again = RidgeStream("tracked", **options).restore(model.snapshot())
    assert again.certificate(alpha).relative == certificate.relative


def test_heavy_counts_come_nearer_with_every_pass():
    """A whole step of theirs is about twice too long."""
    rng = np.random.default_rng(0)
    size = np.exp(1.5 * rng.standard_normal(500) - 1)
    rates = np.abs(rng.standard_t(1.8, (2500, 5))) @ np.abs(rng.standard_normal((5, 500))) * size
    counts = rng.poisson(np.minimum(rates, 1e6))
    A = counts - counts.mean(axis=0)
    b = 0.1 * np.log1p(counts) @ rng.standard_normal(500) + rng.standard_normal(2500)
    alpha = 300.0
    K = A.T @ A + alpha * np.eye(500)
    exact = np.linalg.solve(K, A.T @ b)
    model = RidgeStream("tracked", sketch_size=24, alpha=alpha).update(A, b)
    energies = []
    for _ in range(6):
        off = model.solve(alpha) - exact
        energies.append(off @ K @ off)
        model.refine([(A, b)], alpha)
    assert energies == sorted(energies, reverse=True)


def test_stopping_at_what_probes_have_proved_is_paid_for():
    """Else the first of many bounds that is small enough would be the luckiest of them."""
    A, b, alpha = *stationary(), 30.0
    by_number = RidgeStream("tracked", sketch_size=6).update(A, b)
    by_proof = by_number.copy()
    by_number.refine([(A, b)], alpha, passes=3)
    reached = by_number.certificate(alpha).relative
    told = []
    by_proof.refine([(A, b)], alpha, passes=9, tol=1.5 * reached, watch=told.append)
    refined = [model._refinement.by_alpha[alpha] for model in (by_number, by_proof)]
    further = refined[1].passes - 1
    assert further == 3
    price = np.log(further * (further + 1))
    np.testing.assert_allclose(refined[1].surprise - refined[0].surprise, price)
    np.testing.assert_array_equal(*(one.answer for one in refined))
    certified = by_proof.certificate(alpha).relative
    assert reached < certified <= 1.5 * reached
    assert told[-1].relative == certified


def stationary():
    rng = np.random.default_rng(7)
    A = rng.standard_normal((600, 40)) * np.exp(-np.arange(40) / 15)
    return A, A @ rng.standard_normal(40) + rng.standard_normal(600)


def shared(share, residual, correction, power):
    """Take as much of any correction, whatever it is."""
    return np.full_like(power, share), np.zeros_like(power)


@pytest.mark.parametrize("size", [1e3, 1e5])
def test_columns_of_large_means_and_spreads_come_to_exact_ridge(size):
    # Where what rounding may do at worst is a million times what it does.
    rng = np.random.default_rng(4)
    A = size + rng.standard_normal((3000, 30)) * np.r_[np.full(5, size), np.ones(25)]
    b = A @ rng.standard_normal(30) + rng.standard_normal(3000)
    model = RidgeStream("tracked", sketch_size=15, fit_intercept=True).update(A, b)
    model.refine([(A, b)], 1e-2, passes=100)
    exact = Truth.of(model, A, b).solve(1e-2)
    assert relative_errors(model, 1e-2, exact) <= 1e-16 * size**2


@pytest.mark.parametrize("method", ["fd", "rfd", "isvd", "tracked"])
def test_a_certificate_stays_true_when_the_stream_goes_on(method):
    rng = np.random.default_rng(5)
    A = make_rows(rng, 200, 15, "decaying")
    b = A @ rng.standard_normal(15) + rng.standard_normal(200)
    model = RidgeStream(method, sketch_size=5).update(A, b).refine([(A, b)], 1.0, passes=2)
    gaps = A @ (model.solve(1.0) - Truth.of(model, A, b).solve(1.0)[:, 0].astype(float))
    certificate = model.certificate(1.0)
    before = certificate.prediction_bound(A)
    for _ in range(20):
        model.update(100 * rng.standard_normal((50, 15)), rng.standard_normal(50))
    assert (np.abs(gaps) <= before).all()
    assert (certificate.prediction_bound(A) >= before).all()


def test_a_target_whose_numbers_overflow_stays_where_it_is_and_the_others_go_on():
    def correct(vectors):
        return vectors * np.array([1.0, 1e300])

    shares = partial(shared, 1.0)

    start, residual = np.array([[1.0, 2.0]]), np.array([[0.5, 1e200]])
    with np.errstate(over="ignore", invalid="ignore"):
        begun = Refined.begun(1.0, start, residual, np.zeros(2), correct, shares)
        assert begun.stalled.tolist() == [False, True]
        np.testing.assert_array_equal(begun.answer, [[1.5, 2.0]])
        np.testing.assert_array_equal(begun.residual, residual)
        image = np.array([[1.0, np.nan]])
        then = begun.advanced(image, np.zeros(2), correct, shares)
    assert then.stalled.tolist() == [False, True]
    assert then.point[0, 0] == 1.25
    np.testing.assert_array_equal(then.answer[:, 1], begun.answer[:, 1])
    lost = Refined.begun(1.0, start, np.full((1, 2), np.nan), np.zeros(2), correct, shares)
    assert np.isposinf(lost.error).all()
    np.testing.assert_array_equal(lost.answer, start)
