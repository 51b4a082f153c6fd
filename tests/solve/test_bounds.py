"""From the worst case to a certificate: rounding, probes, and streams made to break it."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prepared import FORMATS, make_weights, scaled, wide_ridge
from ridgepass import RidgeStream
from ridgepass.sketch import LowRank
from ridgepass.sketch.legacy import AnchoredCovariance
from ridgepass.solve import LowRankSolver, TrackedSolver, error_bounds
from ridgepass.solve.bounds import by_lengths, relative_to_exact
from streams import METHODS, split_points

FACTORS = (1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6)


def orthogonal_blocks(rng, n, d, size):
    """Each block is orthogonal to the leading directions of all before it."""
    A = np.zeros((n, d))
    for start in range(0, n, size):
        block = rng.standard_normal((min(size, n - start), d))
        kept = np.linalg.svd(A[: max(start, 1)])[2][: min(size, d - 1)] if start else block[:0]
        A[start : start + size] = block - block @ kept.T @ kept
    return A


def rows_of(kind, rng, n, d, size):
    decay, time = np.exp(-np.arange(d) / 8), np.linspace(0, 1, n)[:, None]
    A = rng.standard_normal((n, d))
    if kind == "drifting":
        return A * ((1 - time) * decay + time * decay[::-1])
    if kind == "blocks":
        return 0.2 * A * (1 + 5 * ((4 * time).astype(int) == np.arange(d) % 4))
    if kind == "repeated":
        return np.repeat(A[:3], -(-n // 3), axis=0)[:n]
    if kind == "giant":
        A[n // 2] *= 1e4
    if kind == "orthogonal":
        return orthogonal_blocks(rng, n, d, size)
    if kind == "lost":  # what the target needs is never loud enough to be kept
        loud = 4 * (np.arange(n)[:, None] // (4 * size) % 2 == np.arange(d) % 2)
        return A * np.where(np.arange(d) == 0, 0.5, 1 + loud)
    if kind == "deficient":
        return A[:, : d // 2 + 1] @ rng.standard_normal((d // 2 + 1, d))
    if kind == "fading":
        return A * np.geomspace(1, 1e-5, n)[:, None]
    return A * decay


ORDERED = ["rising", "falling", "by target"]
KINDS = ["stationary", "drifting", "blocks", "repeated", "giant", "orthogonal", "lost"]
KINDS += ["deficient", "fading", *ORDERED]


def make_stream(kind, rng, n, d, size):
    A = rows_of(kind, rng, n, d, size)
    if kind in ORDERED:
        A *= rng.exponential(size=(n, 1))
    coef = np.eye(d)[0] if kind == "lost" else rng.standard_normal(d)
    b = A @ coef + 0.1 * np.sqrt(np.square(A).mean()) * rng.standard_normal(n)
    keys = {"rising": np.square(A).sum(axis=1), "falling": -np.square(A).sum(axis=1)}
    order = np.argsort(keys.get(kind, b)) if kind in ORDERED else np.arange(n)
    A, b = A[order], b[order]
    first = np.arange(n) < n // 2
    return A, np.c_[b, np.where(first, b, -b) * 1e60, np.where(first, 0, b) * 1e-60, 0 * b]


def assert_certified(model, A, b, weights, options, factors=FACTORS):
    """No bound is below the truth; factors are in units of the mean eigenvalue."""
    fresh = np.vstack([A[:2], A[-1:] * 3]).astype(float)
    for factor in factors:
        exact = wide_ridge(A, b, factor / A.shape[1], weights, **options)
        alpha = factor / A.shape[1] * (exact.mass or 1.0)
        coef = model.solve(alpha)
        units = np.where(exact.coef.any(axis=0), np.abs(exact.coef).max(axis=0), 1)
        gaps = ((scaled(model, coef) - exact.coef) / units).astype(float)
        errors = np.linalg.norm(gaps, axis=0)
        sizes = np.linalg.norm((exact.coef / units).astype(float), axis=0)
        there = sizes > 0
        original = np.abs(coef - exact.coef / exact.scale[:, None]).astype(float)
        found = fresh @ coef + model.intercept(coef)
        misses = np.abs(found - exact.predict(fresh)).astype(float)
        for confidence in (1.0, 1 - 1e-6):
            certificate = model.certificate(alpha, confidence)
            assert (errors <= (certificate.coef_bound / units).astype(float)).all()
            assert (errors[there] <= certificate.relative[there] * sizes[there]).all()
            assert (original <= certificate.coefficient_bounds().T).all()
            assert (misses <= certificate.prediction_bound(fresh)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6)
def test_streams_made_to_break_it_do_not(method, kind, data, seed):
    rng = np.random.default_rng(seed)
    size = data.draw(st.integers(2, 8))
    d = data.draw(st.sampled_from([1, 2, size, size + 1, 12, 20]))
    n = data.draw(st.sampled_from([1, 2 * size - 1, 2 * size + 1, 100, 300]))
    A, b = make_stream(kind, rng, n, d, size)
    A = A.astype(data.draw(st.sampled_from(["float32", "float64"])))
    hint = data.draw(st.sampled_from([None, 1e-6, 1e6]))
    dtype = data.draw(st.sampled_from([None, "float32"]))
    model = RidgeStream(method, sketch_size=size, alpha=hint, dtype=dtype).update(A, b)
    assert_certified(model, A, b, None, {})


@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("merged", [False, True])
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_nor_prepared_and_merged(store, fit_intercept, standardize, merged, data, seed):
    rng = np.random.default_rng(seed)
    size, d = data.draw(st.integers(2, 8)), data.draw(st.sampled_from([1, 5, 12]))
    n = data.draw(st.sampled_from([5, 60, 300]))
    A, b = make_stream(data.draw(st.sampled_from(KINDS)), rng, n, d, size)
    A = A + data.draw(st.sampled_from([0.0, 1.0, 1e3])) * rng.standard_normal(d)
    A *= rng.random((n, d)) < data.draw(st.sampled_from([0.3, 1.0]))
    A = A.astype(data.draw(st.sampled_from(["float32", "float64"])))
    weights = make_weights(rng, n, data.draw(st.sampled_from(["none", "fractions", "zeros"])))
    options = {"fit_intercept": fit_intercept, "standardize": standardize}
    model = RidgeStream("tracked", sketch_size=size, **options)
    for start, stop in itertools.pairwise(split_points(data.draw, n)):
        here = slice(start, stop)
        part = (FORMATS[store](A[here]), b[here], None if weights is None else weights[here])
        if merged:
            other = RidgeStream("tracked", sketch_size=data.draw(st.integers(2, 9)), **options)
            model.merge(other.merge(RidgeStream("tracked", **options)).update(*part))
        else:
            model.update(*part)
    assert_certified(model, A, b, weights, options)


@pytest.mark.parametrize("seed", range(12))
def test_the_relative_bound_survives_a_giant_row_at_a_tiny_alpha(seed):
    """Rows of a sketch are orthogonal up to rounding of the loudest, not of the faintest."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 8))
    A[100] *= 1e6
    b = A @ rng.standard_normal(8) + 1e5 * rng.standard_normal(200)
    model = RidgeStream("tracked", sketch_size=8, alpha=1e-4).update(A, b[:, None])
    assert_certified(model, A, b[:, None], None, {}, (1e-13, 1e-12, 1e-11, 1e-10))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("weight", [1e-8, 1e-20])
def test_rows_far_off_without_weight_takes_no_digits_from_the_rest(dtype, far, weight):
    for n_waiting, fit in itertools.product((3, 15), (1.0, 0.0)):
        rng = np.random.default_rng(1)
        A = rng.standard_normal((48 + n_waiting, 3))
        A[:48] += far
        A, weights = A.astype(dtype), np.r_[np.full(48, weight), np.ones(n_waiting)]
        b = A.astype(float) @ [1.0, 2.0, 3.0] * fit + rng.standard_normal(len(A))
        options = {"fit_intercept": True}
        model = RidgeStream("tracked", sketch_size=8, **options).update(A, b[:, None], weights)
        assert_certified(model, A, b[:, None], weights, options)


# The pieces


def sketch_that_lost_nothing(d, squares=4.0):
    return LowRank(
        (np.sqrt(squares) * np.eye(d),),
        np.eye(d),
        np.full(d, squares),
        0.0,
        0.0,
        squares * d,
        loss_bound=0.0,
    )


def exact_solver(rng, d, squares=4.0):
    cross = (squares + 1) * rng.standard_normal((d, 1))
    return LowRankSolver(sketch_that_lost_nothing(d, squares), cross)


def anchored_solver(rng, d, squares=4.0, wrong=0.0):
    """As old files have it: an anchor at the solution, and its image wrong by so much."""
    x, off = rng.standard_normal((d, 1)), rng.standard_normal((d, 1))
    w = x / np.linalg.norm(x)
    image = squares * w + wrong * off / np.linalg.norm(off)
    low = sketch_that_lost_nothing(d, squares)
    covariance = AnchoredCovariance(low, np.zeros((d, d)), 0.0, w, image)
    return TrackedSolver(covariance, (squares + 1) * x)


ENDLESS = np.array([np.inf])  # targets of any length


@pytest.mark.parametrize("make", [exact_solver, anchored_solver])
@pytest.mark.parametrize("moved", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("sign", [-1, 1])
def test_what_moved_the_rows_counts(make, moved, sign):
    solver = make(np.random.default_rng(0), 4)
    (coef,) = solver.solve([1.0])
    absolute, relative = error_bounds(solver, 1.0, coef, np.zeros(1), moved, ENDLESS)
    truth = solver.cross / (4.0 + sign * moved + 1.0)
    error = np.linalg.norm(coef - truth)
    assert error > 0
    assert error <= absolute[0]
    assert error <= relative[0] * np.linalg.norm(truth)


@pytest.mark.parametrize("wrong", [0.01, 0.5])
def test_what_an_old_anchor_does_not_know_counts(wrong):
    solver = anchored_solver(np.random.default_rng(0), 4, wrong=wrong)
    (coef,) = solver.solve([1.0])
    error = np.linalg.norm(coef - solver.cross / 5)
    absolute, relative = error_bounds(solver, 1.0, coef, np.zeros(1), 0.0, ENDLESS)
    assert error > 0
    assert error <= absolute[0]
    assert error <= relative[0] * np.linalg.norm(solver.cross / 5)


@pytest.mark.parametrize("make", [exact_solver, anchored_solver])
@pytest.mark.parametrize("size", [0.1, 2.0])
def test_errors_of_the_cross_product_count(make, size):
    rng = np.random.default_rng(0)
    solver = make(rng, 4, squares=1e-9)
    (coef,) = solver.solve([1.0])
    off = -coef / np.linalg.norm(coef) * size
    absolute, relative = error_bounds(solver, 1.0, coef, np.array([size]), 0.0, ENDLESS)
    truth = (solver.cross + off) / (1 + 1e-9)
    error = np.linalg.norm(coef - truth)
    assert error <= absolute[0] <= 1.01 * error
    assert error <= relative[0] * np.linalg.norm(truth) * (1 + 1e-12)


@pytest.mark.parametrize("make", [exact_solver, anchored_solver])
def test_alpha_zero_leaves_nothing_certain(make):
    solver = make(np.random.default_rng(0), 3)
    for found in error_bounds(solver, 0.0, np.ones((3, 1)), np.zeros(1), 0.0, ENDLESS):
        assert found[0] == np.inf


def following(n_targets=1):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 40)) * np.exp(-np.arange(40) / 10)
    b = A @ rng.standard_normal((40, n_targets)) + rng.standard_normal((3000, n_targets))
    return A, b, RidgeStream("tracked", sketch_size=8, alpha=300.0).update(A, b)


def test_of_a_tracked_sketch_only_the_length_of_exact_ridge_is_certain():
    A, b, model = following(2)
    solver, norms = model._query().solver, np.linalg.norm(b, axis=0)
    for alpha in (1.0, 300.0, 1e5):
        (coef,) = solver.solve([alpha])
        absolute, relative = by_lengths(solver, alpha, coef, np.zeros(2), norms)
        most = np.minimum(np.linalg.norm(A.T @ b, axis=0) / alpha, norms / (2 * np.sqrt(alpha)))
        expected = np.linalg.norm(coef, axis=0) + most
        np.testing.assert_allclose(absolute, expected, rtol=1e-3)
        assert (absolute >= expected * (1 - 1e-9)).all()
        size = np.linalg.norm(A.T @ b, axis=0) / (np.square(A).sum() + alpha)
        np.testing.assert_allclose(relative, absolute / size, rtol=1e-3)
        # Both are what exact ridge may come to: K = 0 is possible, and K = alpha·I.
        certain = model.certificate(alpha, confidence=1)
        assert (certain.coef_bound >= absolute * (1 - 1e-12)).all()  # another sum of squares
        assert certain.rests_on == "sketch"
    for found in by_lengths(solver, 0.0, coef, np.zeros(2), norms):
        assert np.isinf(found).all()


@pytest.mark.parametrize("cross_error", [0.0, 0.3])
def test_lengths_are_reached_by_rows_that_are_possible(cross_error):
    _, _, model = following()
    solver = model._query().solver
    c, alpha = np.linalg.norm(solver.cross), 7.0
    # No rows at all but Aᵀb, and exact ridge opposite to what was found.
    coef = -solver.cross / c
    absolute, _ = by_lengths(solver, alpha, coef, np.array([cross_error]), ENDLESS)
    assert absolute[0] == pytest.approx(1 + (c + cross_error) / alpha)
    # A = √alpha·I, of which b has no other length than this.
    absolute, _ = by_lengths(solver, alpha, coef, np.zeros(1), np.array([2.0]))
    assert 1 + 2 / (2 * np.sqrt(alpha)) <= absolute[0] <= 1.0001 * (1 + 1 / np.sqrt(alpha))


def test_probes_are_used_where_their_bound_is_smaller():
    _, _, model = following()
    for alpha in (300.0, 1e5):
        probed, certain = model.certificate(alpha), model.certificate(alpha, confidence=1)
        assert probed.rests_on == "probes"
        assert probed.coef_bound < 0.3 * certain.coef_bound
        assert probed.relative < certain.relative
        assert probed.energy_bound < certain.energy_bound
        assert probed.confidence == 1 - 1e-6
        assert certain.confidence == 1.0
        assert certain.estimate == probed.estimate < probed.coef_bound


@pytest.mark.parametrize("method", ["fd", "rfd", "isvd", "tracked"])
def test_huge_numbers_overflow_into_infinity_at_most(method):
    rng = np.random.default_rng(0)
    model = RidgeStream(method, sketch_size=4).update(
        1e80 * rng.standard_normal((50, 20)), rng.standard_normal(50)
    )
    with np.errstate(all="raise", under="ignore"):
        certificate = model.certificate(1.0)
    assert certificate.relative > 0
    assert method != "rfd" or certificate.relative <= 1.001


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [10.0, 1.0, 1e-2, 1e-4])
def test_rfd_is_certified_below_one_up_to_rounding_for_any_alpha(alpha, dtype):
    A = np.random.default_rng(0).standard_normal((1000, 60))
    model = RidgeStream("rfd", sketch_size=4, dtype=dtype).update(A, A[:, 0])
    assert model.certificate(alpha).relative <= 1.0001


@given(
    st.integers(0, 2**32 - 1),
    st.floats(1e-3, 10),
    st.sampled_from([0.0, 1e-6, 0.1, 0.5, 1.0, 3.0]),
    st.sampled_from([1.0, 1.01, 2.0, 100.0, np.inf]),
)
@settings(deadline=None)
def test_a_relative_bound_holds_for_every_x_it_allows(seed, size, spread, looseness):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(3)
    near = x + size * rng.standard_normal(3)
    error, length = np.linalg.norm(near - x), np.linalg.norm(x)
    along = x @ near + spread * length * rng.uniform(-1, 1)  # so that x·x̂ ≥ along − spread·‖x‖
    given = (looseness * error, np.linalg.norm(near), along, spread)
    found = relative_to_exact(*(np.array([number]) for number in given))
    assert found >= (1 - 1e-9) * error / length


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.3, 0.8])
@pytest.mark.parametrize("absolute", [0.01, 0.3, 1.0, 5.0])
def test_no_smaller_relative_bound_would_do(spread, absolute):
    """In the plane of x̂ = (1, 0), over all x that are possible."""
    lengths, angles = np.meshgrid(np.linspace(1e-3, 8, 4000), np.linspace(0, np.pi, 2000))
    along = 1.0
    errors = np.sqrt(1 + lengths**2 - 2 * lengths * np.cos(angles))
    possible = (errors <= absolute) & (lengths * np.cos(angles) >= along - spread * lengths)
    worst = (errors / lengths)[possible].max()
    given = (np.array([number]) for number in (absolute, 1.0, along, spread))
    found = relative_to_exact(*given).item()
    simple = absolute / (1 - absolute) if absolute < 1 else np.inf  # as ‖x‖ ≥ ‖x̂‖ − absolute
    assert worst <= min(found, simple) <= 1.02 * max(worst, 1e-3)
