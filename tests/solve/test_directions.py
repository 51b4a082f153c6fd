"""Bounds for single coefficients and predictions: never below the truth, and of some use."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from prepared import PREPARATIONS, prepared, scaled, wide_ridge
from ridgepass import RidgeStream, StreamingRidge
from ridgepass.sketch import LowRank
from ridgepass.solve import certificate
from ridgepass.solve.directions import Spectrum, Widths, by_distance, by_ellipsoid, by_leverage
from streams import METHODS, SCALES

CONFIDENCES = (1.0, 1 - 1e-6)


def assert_not_below_the_truth(model, exact, alpha, rows):
    """Of every coefficient, and of every prediction; ``exact`` is from `prepared.wide_ridge`."""
    coef = model.solve(alpha)
    coef = coef.reshape(len(coef), -1)
    off = np.abs(coef - exact.coef / exact.scale[:, None])
    intercept = np.atleast_1d(model.intercept(model.solve(alpha)))
    far = np.abs(rows.astype(np.longdouble) @ coef + intercept - exact.predict(rows))
    for confidence in CONFIDENCES:
        proof = model.certificate(alpha, confidence)
        bounds = np.atleast_2d(proof.coefficient_bounds()).T
        assert bounds.shape == coef.shape
        assert not np.isnan(bounds).any()
        assert (off <= bounds).all()
        # None is above what all of them together may be.
        whole = np.atleast_1d(proof.coef_bound) + np.atleast_1d(proof.rounding)
        assert (bounds * exact.scale.astype(float)[:, None] <= whole * (1 + 1e-6)).all()
        found = proof.prediction_bound(rows)
        assert not np.isnan(found).any()
        assert (far <= found.reshape(far.shape)).all()


@pytest.mark.parametrize("options", PREPARATIONS, ids=str)
@pytest.mark.parametrize("method", METHODS)
@given(data=prepared(max_rows=150), factor=st.sampled_from([1e-4, 1e-1, 10.0]))
@settings(max_examples=12)
def test_no_bound_is_below_the_truth(method, options, data, factor):
    model = RidgeStream(method, sketch_size=data.sketch_size, **options).update(*data.whole)
    exact = wide_ridge(data.A, data.b, factor, data.weights, **options)
    rows = np.vstack([data.A[:3], 3.0 * data.A[-1:], np.eye(1, data.A.shape[1])])
    assert_not_below_the_truth(model, exact, factor * (exact.mass or 1.0), rows)


@pytest.mark.parametrize("factor", [1e-5, 1e-3])
@pytest.mark.parametrize("n_large", [1, 30])
@pytest.mark.parametrize("options", PREPARATIONS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_nor_where_the_rows_that_wait_are_larger_than_all_before(method, options, n_large, factor):
    """Directions of such rows are beside the basis, and their image has a tail of its own."""
    A, b = wide(1000, 60, 2)
    A[-n_large:] *= 100
    model = RidgeStream(method, sketch_size=6, **options).update(A, b)
    exact = wide_ridge(A, b, factor, **options)
    assert_not_below_the_truth(model, exact, factor * exact.mass, A[-40:])


def wide(n_rows=700, n_features=50, n_targets=3, dtype="float64", seed=0):
    """Rows that follow a sketch of a few directions well, and their targets."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    A = (rng.standard_normal((n_rows, n_features)) * np.exp(-np.arange(n_features) / 6)) @ turn
    b = A @ rng.standard_normal((n_features, n_targets)) + rng.standard_normal((n_rows, n_targets))
    return (A + 0.5).astype(dtype), b


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", PREPARATIONS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_nor_where_much_was_left_out(method, options, dtype):
    A, b = wide(dtype=dtype)
    model = RidgeStream(method, sketch_size=12, alpha=10.0, **options).update(A, b)
    rows = np.vstack([A[:5], 10 * A[5:7], np.eye(50)[:3]])
    for factor in (1e-5, 1e-3, 1e-1):
        exact = wide_ridge(A, b, factor, **options)
        assert_not_below_the_truth(model, exact, factor * exact.mass, rows)


@pytest.mark.parametrize("method", ["rfd", "fd", "tracked", "2lfd"])
@pytest.mark.parametrize("scale", SCALES)
def test_any_scale_has_the_same_bounds(method, scale):
    A, b = wide()
    plain = RidgeStream(method, sketch_size=12).update(A, b)
    far = RidgeStream(method, sketch_size=12).update(A * scale, b)
    exact = wide_ridge(A * np.longdouble(scale), b, 1e-3)
    for confidence in CONFIDENCES:
        one = plain.certificate(exact.mass / scale**2 * 1e-3, confidence)
        other = far.certificate(exact.mass * 1e-3, confidence)
        expected = one.coefficient_bounds()
        np.testing.assert_allclose(other.coefficient_bounds() * scale, expected, rtol=1e-5)
        expected = one.prediction_bound(A[:3])
        np.testing.assert_allclose(other.prediction_bound(A[:3] * scale), expected, rtol=1e-5)
    off = np.abs(far.solve(exact.mass * 1e-3) - exact.coef)
    assert (off <= other.coefficient_bounds().T).all()


@pytest.mark.parametrize("target_scale", [1e-80, 1e80])
@pytest.mark.parametrize("method", ["rfd", "tracked"])
def test_targets_of_any_size_have_bounds_in_proportion(method, target_scale):
    A, b = wide()
    units = np.array([1.0, target_scale, 0.0])
    proof = RidgeStream(method, sketch_size=12).update(A, b * units).certificate(3.0)
    plain = RidgeStream(method, sketch_size=12).update(A, b * [1, 1, 0]).certificate(3.0)
    found, expected = proof.coefficient_bounds(), plain.coefficient_bounds() * units[:, None]
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-5)
    assert not found[2].any()


@pytest.mark.parametrize("method", ["rfd", "fd", "isvd", "tracked"])
def test_directions_that_the_sketch_knows_have_smaller_bounds(method):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 60)) * np.where(np.arange(60) < 5, 30.0, 0.3)
    b = A @ rng.standard_normal(60) + rng.standard_normal(3000)
    model = RidgeStream(method, sketch_size=12, alpha=300.0).update(A, b)
    proof = model.certificate(300.0)
    bounds = proof.coefficient_bounds()
    assert (bounds[:5] < 0.2 * proof.coef_bound).all()
    known, other = np.zeros((2, 60))
    known[:5], other[5:] = 1.0, 1.0
    found = proof.prediction_bound(np.array([known, other]))
    assert found[0] < 0.2 * np.linalg.norm(known) * proof.coef_bound
    assert found[1] <= np.linalg.norm(other) * proof.coef_bound * (1 + 1e-9)
    if method == "tracked":  # of which nothing is certain in any direction
        certain = model.certificate(300.0, confidence=1)
        np.testing.assert_allclose(certain.coefficient_bounds(), certain.coef_bound, rtol=1e-9)


@pytest.mark.parametrize("method", ["rfd", "tracked", "exact"])
@pytest.mark.parametrize("standardize", [False, True])
def test_one_target_has_the_bounds_that_it_has_among_several(method, standardize):
    A, b = wide()
    model = RidgeStream(method, sketch_size=12, standardize=standardize).update(A, b)
    whole = model.certificate(2.0)
    for index in range(3):
        one = whole.of_target(index)
        np.testing.assert_array_equal(one.coefficient_bounds(), whole.coefficient_bounds()[index])
        np.testing.assert_array_equal(
            one.prediction_bound(A[:4]), whole.prediction_bound(A[:4])[:, index]
        )
    single = RidgeStream(method, sketch_size=12, standardize=standardize).update(A, b[:, 0])
    assert single.certificate(2.0).coefficient_bounds().shape == (50,)
    assert single.certificate(2.0).prediction_bound(A[:4]).shape == (4,)


@pytest.mark.parametrize("method", ["rfd", "tracked"])
@pytest.mark.parametrize("change", ["update", "merge", "restore"])
def test_a_certificate_that_outlives_its_sketch_falls_back_to_lengths(method, change):
    A, b = wide()
    model = RidgeStream(method, sketch_size=12).update(A, b)
    proof, fresh = model.certificate(2.0), model.certificate(2.0)
    before = fresh.coefficient_bounds()
    if change == "update":
        model.update(A[:200], b[:200])
    elif change == "merge":
        model.merge(RidgeStream(method, sketch_size=12).update(A[:200], b[:200]))
    else:
        model.restore(RidgeStream(method, sketch_size=12).update(A[:200], b[:200]).snapshot())
    for one in (proof, fresh):
        found = one.coefficient_bounds()
        assert (found >= before).all()
        expected = np.broadcast_to(proof.coef_bound + proof.rounding, (50, 3)).T
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("method", ["rfd", "tracked", "exact"])
def test_many_rows_are_bounded_a_piece_at_a_time(method, sparse, monkeypatch):
    A, b = wide()
    A = A * (np.random.default_rng(0).random(A.shape) < 0.3)
    rows = csr_array(A) if sparse else A
    proof = RidgeStream(method, sketch_size=12, fit_intercept=True).update(rows, b).certificate(2.0)
    whole = proof.prediction_bound(rows)
    monkeypatch.setattr(certificate, "PIECE", 50 * 97)
    np.testing.assert_allclose(proof.prediction_bound(rows), whole, rtol=1e-9)
    np.testing.assert_allclose(proof.prediction_bound(A), whole, rtol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_estimators_have_them_in_the_shape_of_their_coefficients(standardize):
    A, b = wide()
    model = StreamingRidge(alpha=3.0, method="tracked", sketch_size=12, standardize=standardize)
    exact = StreamingRidge(alpha=3.0, method="exact", standardize=standardize)
    for y in (b, b[:, 0]):
        gap = np.abs(model.fit(A, y).coef_ - exact.fit(A, y).coef_)
        bounds = model.certificate().coefficient_bounds()
        assert bounds.shape == model.coef_.shape
        assert (gap <= bounds).all()


# The pieces


def make_low_rank(rng, d=12, rank=4, loss=0.7, extra=2):
    """A sketch as a mix of more rows than it has."""
    values = np.geomspace(50, 1, rank)
    directions, _ = np.linalg.qr(rng.standard_normal((d, rank)))
    S = np.sqrt(values)[:, None] * directions.T
    spin = rng.standard_normal((rank + extra, rank))
    rows, mix = spin @ S, np.linalg.pinv(spin)
    return LowRank((rows,), mix, values, 0.0, loss, float(values.sum()) + loss, loss_bound=loss), S


@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([1e-3, 1.0, 100.0]))
@settings(max_examples=40)
def test_the_form_is_that_of_the_matrix(seed, alpha):
    rng = np.random.default_rng(seed)
    covariance, S = make_low_rank(rng)
    spectrum = Spectrum.of(covariance)
    vectors = rng.standard_normal((12, 5)) * [1.0, 1e-90, 1e90, 1.0, 0.0]
    inverse = np.linalg.inv(S.T @ S / alpha + np.eye(12))
    unit = np.where(np.abs(vectors).max(axis=0) > 0, np.abs(vectors).max(axis=0), 1.0)
    true = unit * np.sqrt(np.einsum("dk,de,ek->k", vectors / unit, inverse, vectors / unit))
    found = spectrum.form([lambda values: alpha / (values + alpha)], vectors)
    assert (found >= true * (1 - 1e-9)).all()
    np.testing.assert_allclose(found, true, rtol=1e-4, atol=1e-6)
    units = spectrum.form([lambda values: alpha / (values + alpha)], None)
    each = spectrum.form([lambda values: alpha / (values + alpha)], np.eye(12))
    np.testing.assert_allclose(units, each, rtol=1e-6)
    np.testing.assert_allclose(units, np.sqrt(np.diagonal(inverse)), rtol=1e-4, atol=1e-6)


def possible(rng, d, loss):
    """Some of what may have been lost: 0 ⪯ E ⪯ loss."""
    for kind in ("none", "all", "random", "one"):
        if kind == "random":
            turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
            yield (turn * (loss * rng.random(d))) @ turn.T
        elif kind == "one":
            v = rng.standard_normal(d)
            yield loss * np.outer(v, v) / (v @ v)
        else:
            yield (kind == "all") * loss * np.eye(d)


@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([1e-2, 1.0, 100.0]))
@settings(max_examples=40)
def test_all_that_is_possible_is_within_the_ellipsoid_and_the_leverages(seed, alpha):
    rng = np.random.default_rng(seed)
    covariance, S = make_low_rank(rng)
    cross, found = rng.standard_normal((12, 2)), rng.standard_normal((12, 2))
    none = np.zeros(2)
    (ellipsoid,) = by_ellipsoid(covariance, alpha, cross, found, none)
    vectors = rng.standard_normal((12, 6))
    for E in possible(rng, 12, 0.7):
        K = S.T @ S + E + alpha * np.eye(12)
        off = found - np.linalg.solve(K, cross)
        assert (np.abs(off) <= ellipsoid.bound(None) * (1 + 1e-9)).all()
        assert (np.abs(vectors.T @ off) <= ellipsoid.bound(vectors) * (1 + 1e-9)).all()
        energy = np.sqrt(np.einsum("dt,de,et->t", off, K, off))
        (leverage,) = by_leverage(covariance, alpha, 0.0, energy, none)
        assert (np.abs(off) <= leverage.bound(None) * (1 + 1e-9)).all()
        assert (np.abs(vectors.T @ off) <= leverage.bound(vectors) * (1 + 1e-9)).all()


def test_the_ellipsoid_is_reached():
    """E = Δ·vvᵀ with v halfway between r and q moves q·p to its very edge."""
    covariance = LowRank(
        (np.zeros((1, 2)),), np.zeros((1, 1)), np.zeros(1), 0.0, 3.0, 3.0, loss_bound=3.0
    )
    rest, q = np.array([[1.0], [0.0]]), np.array([[0.6], [0.8]])
    start = np.zeros((2, 1))
    (ellipsoid,) = by_ellipsoid(covariance, 1.0, rest, start, np.zeros(1))
    bound, reached = float(ellipsoid.bound(q)[0, 0]), 0.0
    for angle in np.linspace(0, np.pi, 2000):
        v = np.array([np.cos(angle), np.sin(angle)])
        p = np.linalg.solve(np.eye(2) + 3 * np.outer(v, v), rest)
        reached = max(reached, abs((q.T @ p).item()))
    assert reached <= bound <= reached * 1.001


@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-2, 1.0, 50.0]))
@settings(max_examples=30)
def test_a_known_distance_bounds_every_direction(seed, factor):
    A, b = wide(300, 20, 2, seed=seed)
    model = RidgeStream("tracked", sketch_size=6).update(A, b)
    covariance = model._query().solver.covariance
    K, alpha = A.T @ A, factor * np.square(A).sum() / 300
    K_hat = covariance.multiply(np.eye(20))
    distance = np.linalg.norm(K - K_hat, 2) * (1 + 1e-9)
    rng = np.random.default_rng(seed)
    off, vectors = rng.standard_normal((20, 2)), rng.standard_normal((20, 5))
    energy = np.sqrt(np.einsum("dt,de,et->t", off, K + alpha * np.eye(20), off))
    (width,) = by_distance(covariance, alpha, distance, energy, np.zeros(2))
    assert len(width.inverses) == 3
    for inverse, q in itertools.product(width.inverses, (None, vectors)):
        true, alone = np.abs(off if q is None else q.T @ off), replace(width, inverses=[inverse])
        assert (true <= alone.bound(q) * (1 + 1e-9)).all()
        assert (width.bound(q) <= alone.bound(q)).all()
    assert by_distance(covariance, alpha, np.inf, energy, np.zeros(2)) == []


def test_nothing_is_said_where_rounding_is_as_large_as_the_ridge():
    covariance, _ = make_low_rank(np.random.default_rng(0))
    one = np.ones(1)
    assert by_leverage(covariance, 1.0, 0.6, one, one) == []
    assert len(by_leverage(covariance, 1.0, 0.4, one, one)) == 1
    unknown = LowRank(covariance.rows, covariance.mix, covariance.squares, 0.0, np.inf, 100.0)
    assert by_leverage(unknown, 1.0, 0.0, one, one) == []
    assert by_ellipsoid(unknown, 1.0, np.ones((12, 1)), np.ones((12, 1)), one) == []


def test_the_least_of_several_bounds_counts_and_is_made_once():
    covariance, _ = make_low_rank(np.random.default_rng(0))
    large, small = (by_leverage(covariance, 1.0, 0.0, np.full(1, s), np.zeros(1)) for s in (9, 2))
    made, here = [], [True]

    def make():
        made.append(1)
        return large + small

    widths = Widths(make, lambda: here[0])
    np.testing.assert_array_equal(widths(None), small[0].bound(None))
    np.testing.assert_array_equal(widths(np.eye(12)), small[0].bound(np.eye(12)))
    assert made == [1]
    here[0] = False
    assert widths(None) is None
    assert Widths(list, lambda: True)(None) is None


@pytest.mark.parametrize("method", ["rfd", "tracked", "rp"])
def test_refined_answers_have_them_too(method):
    A, b = wide()
    model = RidgeStream(method, sketch_size=12, fit_intercept=True).update(A, b)
    exact = wide_ridge(A, b, 1e-3, fit_intercept=True)
    alpha = 1e-3 * exact.mass
    for _ in range(3):
        model.refine([(A, b)], alpha)
        off = np.abs(scaled(model, model.solve(alpha)) - exact.coef)
        for confidence in CONFIDENCES:
            proof = model.certificate(alpha, confidence)
            assert (off <= proof.coefficient_bounds().T).all()
            assert_not_below_the_truth(model, exact, alpha, A[:9])
