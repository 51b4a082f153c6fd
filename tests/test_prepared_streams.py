"""Streams with an intercept, weights, scales and sparse rows, against ridge on the same rows."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from prepared import FORMATS, PREPARATIONS, Data, make_weights, prepared, scaled, wide_ridge
from ridgepass import RidgeStream
from same_bits import assert_same_bits, assert_unchanged, everything
from streams import METHODS, exact_ridge, make_rows, norm, split_points

BY_OPTIONS = pytest.mark.parametrize("options", PREPARATIONS, ids=lambda o: " ".join(o) or "plain")
FITS = ["exact", "fd", "isvd", "rfd"]  # exact where the rank fits
INTERCEPT = {"fit_intercept": True}
STANDARD = {"fit_intercept": True, "standardize": True}


def make_data(seed, n=300, d=6, *, store="dense", weighting="none", dtype="float64", n_targets=2):
    rng = np.random.default_rng(seed)
    A = 2 + rng.standard_normal((n, d)) * np.geomspace(0.1, 10, d)
    if store != "dense":
        A *= rng.random((n, d)) < 0.6
    A[:, 1] = 7.0  # constant
    b = A @ rng.standard_normal((d, n_targets)) + rng.standard_normal((n, n_targets)) + 3
    return Data(A.astype(dtype), b, make_weights(rng, n, weighting), 8, store)


def sklearn_ridge(data, alpha, *, fit_intercept=False, standardize=False, feature_scale=None):
    """Coefficients, one column per target, and intercepts of scikit-learn's ridge."""
    A = data.A.astype(np.float64)
    weights = np.ones(len(A)) if data.weights is None else data.weights
    scale = np.ones(A.shape[1]) if feature_scale is None else np.asarray(feature_scale)
    if standardize and fit_intercept:
        with np.errstate(invalid="ignore"):  # its weighted variance of a constant is below zero
            scale = StandardScaler().fit(A, sample_weight=weights).scale_
    elif standardize:
        scale = np.sqrt(np.average(np.square(A), axis=0, weights=weights))
    ridge = Ridge(alpha, fit_intercept=fit_intercept, solver="cholesky")
    ridge.fit(A / scale, data.b, sample_weight=weights)
    return (ridge.coef_ / scale).T, np.broadcast_to(ridge.intercept_, data.b.shape[1])


def assert_agrees(model, data, options, tolerance=1e-8):
    for alpha in (0.1, 30.0):
        coef, intercept = sklearn_ridge(data, alpha, **options)
        found = model.solve(alpha)
        scale = 1.0 if model.scale is None else model.scale[:, None]
        assert norm((found - coef) * scale) <= tolerance * norm(coef * scale)
        np.testing.assert_allclose(model.intercept(found), intercept, atol=tolerance * 100)


@BY_OPTIONS
@pytest.mark.parametrize("store", FORMATS)
@pytest.mark.parametrize("weighting", ["none", "fractions", "zeros"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_is_scikit_learn_s_ridge(options, store, weighting, dtype):
    data = make_data(1, store=store, weighting=weighting, dtype=dtype)
    assert_agrees(RidgeStream("exact", **options).update(*data.whole), data, options)


@BY_OPTIONS
@pytest.mark.parametrize("method", ["fd", "isvd", "rfd"])
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("n", [5, 60, 300])
def test_where_the_rank_fits_so_is_every_other(options, method, store, n):
    data = make_data(2, n, store=store, weighting="fractions")
    model = RidgeStream(method, sketch_size=7, **options).update(*data.whole)
    assert_agrees(model, data, options)


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_given_scales_divide_the_columns(method, store, fit_intercept):
    data = make_data(3, store=store)
    options = {"fit_intercept": fit_intercept, "feature_scale": np.geomspace(0.1, 10, 6)}
    model = RidgeStream(method, **options).update(*data.whole)
    assert_agrees(model, data, options)
    np.testing.assert_array_equal(model.scale, options["feature_scale"])


def test_what_is_handed_out_is_the_caller_s():
    data = make_data(3)
    for options in ({"feature_scale": np.ones(6)}, {"standardize": True}):
        model = RidgeStream("rfd", **INTERCEPT, **options).update(*data.whole)
        coef, scale = model.solve(1.0), model.scale.copy()
        certificate = model.certificate(1.0)
        for array in (model.scale, certificate.mean, certificate.scale):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 99.0
        np.testing.assert_array_equal(model.scale, scale)
        np.testing.assert_array_equal(model.solve(1.0), coef)


@BY_OPTIONS
@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("store", ["dense", "csr_array"])
def test_weights_are_counts_of_rows(method, store, options):
    data = make_data(4, 90, store=store, weighting="whole")
    counts = data.weights.astype(int)
    assert (counts == 0).any()
    repeated = data._replace(
        A=np.repeat(data.A, counts, axis=0), b=np.repeat(data.b, counts, axis=0), weights=None
    )
    weighted = RidgeStream(method, sketch_size=8, **options).update(*data.whole)
    plain = RidgeStream(method, sketch_size=8, **options).update(*repeated.whole)
    np.testing.assert_allclose(weighted.solve(2.0), plain.solve(2.0), rtol=1e-8, atol=1e-10)
    left, right = weighted._query(), plain._query()
    np.testing.assert_allclose(left.mean, right.mean, rtol=1e-12)
    assert left.weight == right.weight == counts.sum()
    assert weighted.n_rows == (counts > 0).sum()


@BY_OPTIONS
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("store", ["dense", "csr_array"])
def test_explicit_weights_of_one_change_no_bit(method, store, options):
    data = make_data(5, 77, store=store)
    plain = RidgeStream(method, sketch_size=6, **options).update(*data.whole)
    ones = RidgeStream(method, sketch_size=6, **options).update(*data.whole[:2], np.ones(77))
    np.testing.assert_array_equal(plain.solve(1.0), ones.solve(1.0))
    assert_same_bits(plain, ones)
    np.testing.assert_array_equal(
        plain.certificate(1.0).coef_bound, ones.certificate(1.0).coef_bound
    )


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_no_weight_are_as_if_left_out(method):
    data = make_data(6, 77, weighting="whole")
    present = data.weights > 0
    with_them = RidgeStream(method, sketch_size=6, **STANDARD).update(*data.whole)
    without = RidgeStream(method, sketch_size=6, **STANDARD)
    without.update(data.A[present], data.b[present], data.weights[present])
    assert_same_bits(with_them, without)


# Means and spreads


@pytest.mark.parametrize("options", [INTERCEPT, STANDARD], ids=["intercept", "standardize"])
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("mean", [1e-6, 1e6])
@pytest.mark.parametrize("n", [10, 300])
def test_nothing_is_lost_to_large_means(method, store, options, mean, n):
    rng = np.random.default_rng(7)
    A = mean * np.array([1, -1, 1, 0.5]) + rng.standard_normal((n, 4))
    b = A @ rng.standard_normal(4) + rng.standard_normal(n)
    model = RidgeStream(method, sketch_size=6, **options).update(FORMATS[store](A), b)
    exact = wide_ridge(A, b, 1e-2, **options)
    error = norm((scaled(model, model.solve(1e-2 * exact.mass)) - exact.coef).astype(float))
    assert error <= 1e-12 * norm(exact.coef)
    assert norm((model._query().mean - exact.mean).astype(float)) <= 1e-15 * mean + 1e-13


@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("n", [10, 30, 300])
def test_nothing_is_lost_to_spreads_that_are_standardized(method, store, n):
    rng = np.random.default_rng(8)
    A = (1e3 + rng.standard_normal((n, 5))) * np.geomspace(1e-3, 1e3, 5)
    b = A @ (1 / np.geomspace(1e-3, 1e3, 5)) + rng.standard_normal(n)
    model = RidgeStream(method, sketch_size=8, **STANDARD).update(FORMATS[store](A), b)
    exact = wide_ridge(A, b, 1e-2, **STANDARD)
    error = norm((scaled(model, model.solve(1e-2 * exact.mass)) - exact.coef).astype(float))
    assert error <= 1e-10 * norm(exact.coef)


@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("n", [10, 300])
@pytest.mark.parametrize("mean", [0.0, 1e4, 1e6])
def test_float32_rows_lose_digits_of_their_spread_not_of_their_mean(method, store, n, mean):
    rng = np.random.default_rng(9)
    A = (mean + rng.standard_normal((n, 3))).astype("float32")
    b = A.astype(float) @ [1.0, 2.0, 3.0] + rng.standard_normal(n)
    model = RidgeStream(method, sketch_size=6, **INTERCEPT).update(FORMATS[store](A), b)
    exact = wide_ridge(A, b, 1e-2, **INTERCEPT)
    error = norm((scaled(model, model.solve(1e-2 * exact.mass)) - exact.coef).astype(float))
    assert error <= 1e-5 * norm(exact.coef)
    assert norm((model._query().mean - exact.mean).astype(float)) <= 1e-6


# Batches


@BY_OPTIONS
@pytest.mark.parametrize("method", METHODS)
@given(draw=st.data(), data=prepared(max_rows=60, means=(0.0, 1e3)))
@settings(max_examples=12)
def test_any_split_into_batches_gives_the_same_bits(method, options, draw, data):
    whole = RidgeStream(method, sketch_size=data.sketch_size, **options).update(*data.whole)
    pieces = RidgeStream(method, sketch_size=data.sketch_size, **options)
    for start, stop in itertools.pairwise(split_points(draw.draw, len(data.A))):
        pieces.update(*data.part(start, stop))
        if pieces.n_rows:
            pieces.solve(1.0)  # a query leaves no trace
            pieces.certificate(1.0)
    assert_same_bits(whole, pieces)
    coef = whole.solve([1.0, 5.0])
    np.testing.assert_array_equal(coef, pieces.solve([1.0, 5.0]))
    np.testing.assert_array_equal(whole.intercept(coef), pieces.intercept(coef))
    left, right = whole.certificate(2.0), pieces.certificate(2.0)
    np.testing.assert_array_equal(left.coef_bound, right.coef_bound)
    bounds = [certificate.prediction_bound(data.A[:2]) for certificate in (left, right)]
    np.testing.assert_array_equal(*bounds)
    bounds = [certificate.coefficient_bounds() for certificate in (left, right)]
    np.testing.assert_array_equal(*bounds)


@pytest.mark.parametrize("method", METHODS)
def test_the_first_batch_decides_how_rows_are_kept_and_others_follow(method):
    data = make_data(10, 60)
    for first, second in itertools.permutations(["dense", "csr_array"]):
        alone = RidgeStream(method, sketch_size=6, **STANDARD)
        alone.update(*data.part(0, 60, first))
        mixed = RidgeStream(method, sketch_size=6, **STANDARD)
        mixed.update(*data.part(0, 7, first)).update(*data.part(7, 60, second))
        assert_same_bits(alone, mixed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["fd", "isvd", "rfd"])
@pytest.mark.parametrize("sketch_size", [3, 70])
@given(draw=st.data(), seed=st.integers(0, 999))
@settings(max_examples=10)
def test_sparse_rows_go_through_the_same_blocks_as_dense_ones(
    method, sketch_size, dtype, draw, seed
):
    rng = np.random.default_rng(seed)
    n = draw.draw(st.integers(1, 60 if sketch_size == 3 else 700))
    A = make_rows(rng, n, 90, "flat") * (rng.random((n, 90)) < 0.3) * np.exp(-np.arange(90) / 9)
    A, b = A.astype(dtype), rng.standard_normal(n)
    dense = RidgeStream(method, sketch_size=sketch_size).update(A, b)
    kept_sparse = RidgeStream(method, sketch_size=sketch_size)
    for start, stop in itertools.pairwise(split_points(draw.draw, n)):
        kept_sparse.update(sparse.csr_array(A[start:stop]), b[start:stop])
    left, right = dense.solve(1.0), kept_sparse.solve(1.0)
    assert norm(left - right) <= (1e-9 if dtype == "float64" else 1e-4) * norm(left)


# Merging


@BY_OPTIONS
@pytest.mark.parametrize("method", FITS)
@given(seed=st.integers(0, 9999))
@settings(max_examples=25)
def test_any_tree_of_merges_agrees_with_ridge(method, options, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 120)), 4
    bounds = [0, *np.sort(rng.integers(0, n + 1, 3)), n]
    A = rng.standard_normal((n, d))
    for start, stop in itertools.pairwise(bounds):  # parts of their own means and units
        A[start:stop] *= 10.0 ** rng.integers(-2, 3, d)
        A[start:stop] += rng.choice([0.0, 1.0, 100.0], d)
    A[:, 0] = 1.5
    weights = make_weights(rng, n, "fractions") if rng.random() < 0.5 else None
    data = Data(A, A @ rng.standard_normal((d, 2)) + rng.standard_normal((n, 2)), weights, 8, "")
    models = []
    for start, stop in itertools.pairwise(bounds):
        models.append(RidgeStream(method, sketch_size=int(rng.integers(6, 13)), **options))
        if stop > start:
            store = str(rng.choice(["dense", "csr_array"]))
            models[-1].update(*data.part(start, stop, store))
    while len(models) > 1:
        i, j = rng.permutation(len(models))[:2]
        before = everything(models[j])
        models[i].merge(models[j])
        assert_unchanged(before, models[j])
        del models[j]
    (merged,) = models
    assert merged.n_rows == n
    exact = wide_ridge(A, data.b, 1e-2, weights, **options)
    found = merged.solve(1e-2 * exact.mass)
    error = norm((scaled(merged, found) - exact.coef).astype(float))
    assert error <= (1e-9 if method == "exact" else 1e-7) * norm(exact.coef)
    query = merged._query()
    if options.get("fit_intercept"):
        spread = A.std(axis=0) + 1e-300
        assert (np.abs((query.mean - exact.mean).astype(float)) <= 1e-12 * spread).all()
        gaps = found.T @ A.T + merged.intercept(found)[:, None] - exact.predict(A).T
        assert np.abs(gaps.astype(float)).max() <= 1e-5 * np.abs(data.b).max()
    if options.get("standardize"):
        np.testing.assert_allclose(merged.scale, exact.scale.astype(float), rtol=1e-9)


@BY_OPTIONS
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", [(3, 3), (3, 100), (100, 3), (96, 96), (0, 50), (50, 0)])
def test_merging_leaves_the_other_alone_and_repeats_to_the_bit(method, options, sizes):
    data, mine = make_data(11, sum(sizes), weighting="fractions"), sizes[0]

    def part(start, stop):
        model = RidgeStream(method, sketch_size=6, **options)
        return model.update(*data.part(start, stop)) if stop > start else model

    def merged():
        right = part(mine, sum(sizes))
        before = everything(right)
        left = part(0, mine).merge(right)
        assert_unchanged(before, right)
        return left

    assert_same_bits(merged(), merged())
    assert merged().n_rows == sum(sizes)


@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("method", FITS)
def test_a_column_that_differs_only_between_parts_is_standardized_too(method, store):
    rng = np.random.default_rng(12)
    A = np.c_[rng.standard_normal((300, 3)), np.repeat([1e9, 2e9, 3e9], 100)]
    b = A @ [1.0, 1.0, 1.0, 1e-9] + rng.standard_normal(300)
    model = RidgeStream(method, sketch_size=8, **STANDARD)
    for part in np.split(np.arange(300), 3):
        other = RidgeStream(method, sketch_size=8, **STANDARD)
        model.merge(other.update(FORMATS[store](A[part]), b[part]))
    exact = wide_ridge(A, b, 1e-2, **STANDARD)
    error = norm((scaled(model, model.solve(1e-2 * exact.mass)) - exact.coef).astype(float))
    assert error <= 1e-9 * norm(exact.coef)


def test_a_part_whose_rows_all_weigh_nothing_leaves_no_trace():
    rng = np.random.default_rng(13)
    A = 1e6 + rng.standard_normal((40, 3))
    nothing = RidgeStream("rfd", sketch_size=8, **INTERCEPT).update(A, A[:, 0], np.zeros(40))
    merged = RidgeStream("rfd", sketch_size=8, **INTERCEPT).merge(nothing).update(A, A[:, 0])
    assert_same_bits(merged, RidgeStream("rfd", sketch_size=8, **INTERCEPT).update(A, A[:, 0]))


@pytest.mark.parametrize(
    ("mine", "theirs", "name"),
    [
        ({}, INTERCEPT, "fit_intercept=False cannot take in one with fit_intercept=True"),
        (STANDARD, INTERCEPT, "standardize=True cannot"),
        ({"feature_scale": [1.0, 2.0]}, {"feature_scale": [1.0, 3.0]}, "feature_scale=array"),
        ({"feature_scale": [1.0, 2.0]}, {}, "feature_scale=array"),
    ],
)
def test_parts_of_other_options_are_refused(mine, theirs, name):
    left, right = RidgeStream("fd", **mine), RidgeStream("fd", **theirs)
    left.update(np.eye(2), np.ones(2))
    before = everything(left)
    with pytest.raises(ValueError, match=name):
        left.merge(right.update(np.eye(2), np.ones(2)))
    assert_unchanged(before, left)


# Memory


@pytest.mark.parametrize("options", [{}, STANDARD], ids=["plain", "standardize"])
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"exact"}))
def test_sparse_rows_are_never_filled_in(method, options):
    rng = np.random.default_rng(14)
    n, d, per_row, size = 150, 30_000, 50, 4
    columns = np.sort(rng.integers(0, d, (n, per_row)), axis=1).ravel()
    A = sparse.csr_array(
        (rng.standard_normal(n * per_row), columns, np.arange(0, n * per_row + 1, per_row)), (n, d)
    )
    b = rng.standard_normal(n)
    tracemalloc.start()
    model = RidgeStream(method, sketch_size=size, probes=0, **options).update(A, b)
    model.solve(1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A tracked sketch has eight probes of its own, whose images it sums up twice, and more.
    own = 3 * 8 + 2 if method == "tracked" else 0
    # The sketch and vectors of d numbers; the rows written out would be 150 of them.
    assert peak <= (4 * size + 40 + own) * d * 8
    assert model.nbytes <= (2 * size + 12 + own) * d * 8


# Refusals


BAD = [
    (np.eye(3), [1.0, -1.0, 1.0], r"weights has -1 in row 1: give finite numbers of at least zer"),
    (np.eye(3), [1.0, 1.0, np.nan], "weights has nan in row 2"),
    (np.eye(3), [np.inf, 1.0, 1.0], "weights has inf in row 0"),
    (np.eye(3), [1.0, 1.0], r"weights has shape \(2,\), not \(3,\): give one for each row"),
    (np.eye(3), np.ones((3, 1)), r"weights has shape \(3, 1\), not \(3,\)"),
    (np.eye(3), ["a", "b", "c"], "weights has dtype <U1: convert it to numbers first"),
    (
        sparse.csr_array([[0, 1, 0], [0, 0, np.nan], [1, 0, 0]]),
        None,
        "A has nan in row 1, column 2",
    ),
    (
        sparse.csc_array([[0, 1, 0], [0, 0, 1], [0, np.inf, 0]]),
        None,
        "A has inf in row 2, column 1",
    ),
    (
        sparse.csr_array(np.eye(3) * 1e150),
        None,
        "A has 1e\\+150 in row 0, column 0 .*squares overflow float64",
    ),
    (sparse.csr_array(np.eye(3, dtype=complex)), None, "A has dtype complex128"),
    (sparse.csr_array(np.eye(3, 4)), None, "4 features, the stream has 3"),
    (sparse.csr_array((0, 3)), None, "A has no rows"),
    (sparse.coo_array(np.ones(3)), None, "A has one dimension"),
]


@pytest.mark.parametrize(("A", "weights", "message"), BAD)
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("method", ["exact", "rfd", "rp"])
def test_a_bad_batch_is_refused_before_anything_changes(method, store, A, weights, message):
    model = RidgeStream(method, sketch_size=2, **STANDARD)
    model.update(FORMATS[store](np.arange(15.0).reshape(5, 3) % 4), np.arange(5.0))
    before = everything(model)
    with pytest.raises(ValueError, match=message):
        model.update(A, np.ones(A.shape[0]), weights)
    assert_unchanged(before, model)
    fresh = RidgeStream(method, sketch_size=2, **STANDARD)
    if "the stream has" not in message:
        with pytest.raises(ValueError, match=message):
            fresh.update(A, np.ones(A.shape[0]), weights)
        assert fresh.nbytes == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_scale": [1.0, 0.0]}, "feature_scale must hold one number above zero"),
        ({"feature_scale": [1.0, -2.0]}, "feature_scale must hold"),
        ({"feature_scale": [1.0, np.nan]}, "feature_scale must hold"),
        ({"feature_scale": [[1.0, 2.0]]}, "feature_scale must hold"),
        ({"feature_scale": ["a", "b"]}, "feature_scale has dtype"),
        ({"feature_scale": [1.0], "standardize": True}, "two scalings: choose one of them"),
        ({"fit_intercept": 1}, "fit_intercept=1 is neither True nor False"),
        ({"standardize": "yes"}, "standardize='yes' is neither True nor False"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        RidgeStream("fd", **options)


def test_scales_for_other_columns_are_refused_and_leave_no_state():
    model = RidgeStream("fd", feature_scale=[1.0, 2.0])
    with pytest.raises(ValueError, match="feature_scale has 2 numbers, the rows have 3 features"):
        model.update(np.eye(3), np.ones(3))
    assert model.nbytes == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{"feature_scale": [1e-100, 1.0]}, {}])
@pytest.mark.parametrize("method", ["exact", "rfd"])
def test_weights_and_scales_that_overflow_are_refused_not_turned_into_nan(method, dtype, options):
    model = RidgeStream(method, sketch_size=2, dtype=dtype, **options)
    weights = None if options else np.full(9, 1e290)
    for rows in (np.full((9, 2), 1e60), sparse.csr_array(np.full((9, 2), 1e60))):
        with pytest.raises(ValueError, match=r"in row 0, column 0 .*overflow"):
            model.update(rows, np.ones(9), weights)
    assert model.n_rows == 0


def test_a_tiny_scale_of_one_column_does_not_refuse_another():
    model = RidgeStream("rfd", sketch_size=2, dtype="float32", feature_scale=[1e-12, 1.0])
    model.update(np.array([[1e-12, 1e10], [3e-12, 2e10], [1e-12, 3e10]]), np.arange(3.0))
    assert np.isfinite(model.solve(1.0)).all()


@BY_OPTIONS
@pytest.mark.parametrize("store", ["dense", "csr_array"])
def test_a_first_batch_without_weight_is_no_batch(options, store):
    data = make_data(15, 30, store=store)
    model = RidgeStream("rfd", sketch_size=4, **options)
    model.update(*data.whole[:2], np.zeros(30))
    assert model.n_rows == 0
    for ask in (model.solve, model.certificate):
        with pytest.raises(ValueError, match=r"no rows yet: call update\(A, b\) first"):
            ask(1.0)
    model.update(*data.whole)
    assert_same_bits(model, RidgeStream("rfd", sketch_size=4, **options).update(*data.whole))


# Degenerate data


DEGENERATE = {
    "one row": np.array([[3.0, 0.0, 1e6]]),
    "zero": np.zeros((30, 3)),
    "equal rows": np.tile([[1 / 3, 0.0, 1e6]], (30, 1)),
    "one column": np.arange(30.0)[:, None],
    "one constant column": np.full((30, 1), 0.1),
    "constant columns": np.c_[np.full(30, 0.1), np.arange(30.0), np.full(30, -1e6)],
    "constant at first": np.c_[np.repeat([0.1, 5.0], [25, 5]), np.repeat([0.0, 1.0], [29, 1])],
    "tiny": np.outer(np.arange(30.0), [1e-100, 2e-100]) + 1e-99 * np.eye(30, 2),
    "huge": np.outer(np.arange(30.0), [1e100, 2e100]) + 1e99 * np.eye(30, 2),
    "subnormal spread": 1.0 + np.outer(np.arange(30) % 2, [2.0**-52, 0.0]),
}


@BY_OPTIONS
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("A", DEGENERATE.values(), ids=DEGENERATE)
def test_degenerate_data_gives_finite_answers(method, store, A, options):
    b = np.arange(1.0, len(A) + 1)
    alpha = 1.0 if options.get("standardize") else 1e-6 * (np.abs(A).max() or 1.0) ** 2
    model = RidgeStream(method, sketch_size=3, **options)
    for part in np.array_split(np.arange(len(A)), min(len(A), 8)):
        model.update(FORMATS[store](A[part]), b[part], 0.3 + part % 3)
        coef = model.solve(alpha)
        assert np.isfinite(coef).all()
        assert np.isfinite(model.intercept(coef)).all()
    constant = (A[:1] == A).all(axis=0)
    if options.get("fit_intercept"):
        scale = np.ones(A.shape[1]) if model.scale is None else model.scale
        assert (np.abs(coef * scale)[constant] <= 1e-9).all()
        if model.scale is not None:
            np.testing.assert_array_equal(scale[constant], 1.0)
    for confidence in (1.0, 1 - 1e-6):
        certificate = model.certificate(alpha, confidence)
        assert not np.isnan(certificate.coef_bound)
        assert not np.isnan(certificate.relative)
        assert not np.isnan(certificate.coefficient_bounds()).any()
        assert not np.isnan(certificate.prediction_bound(FORMATS[store](A))).any()


def test_a_constant_column_stays_constant_when_float32_cannot_hold_it():
    rng = np.random.default_rng(16)
    A = np.c_[rng.standard_normal(40), np.full(40, 0.1)]
    for n in range(1, 41):
        for weights in (None, 0.1 + rng.random(n)):
            for store in (np.asarray, sparse.csr_array):
                model = RidgeStream("rfd", sketch_size=8, dtype="float32", **STANDARD)
                model.update(store(A[:n]), A[:n, 0], weights)
                assert model.scale[1] == 1.0


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1e100])
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("method", METHODS)
def test_scaling_the_data_scales_the_answer(method, store, scale):
    data = make_data(17, 90, store=store, weighting="fractions")
    A, b, weights = data.whole
    for options, alpha in (({}, 0.5), (INTERCEPT, 0.5), (STANDARD, 0.5)):
        plain = RidgeStream(method, sketch_size=4, **options).update(A, b, weights)
        times = RidgeStream(method, sketch_size=4, **options).update(A * scale, b, weights)
        again = alpha if options is STANDARD else alpha * scale * scale
        left, right = plain.solve(alpha), times.solve(again) * scale
        # Another scale is another way of rounding; projections of ill-conditioned rows feel it.
        np.testing.assert_allclose(right, left, rtol=1e-6, atol=1e-7 * np.abs(left).max())
        if abs(np.log10(scale)) < 50:
            bounds = [plain.certificate(alpha).relative, times.certificate(again).relative]
            np.testing.assert_allclose(*bounds, rtol=0.1)


@BY_OPTIONS
@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("method", ["exact", "fd", "rfd"])
def test_scaling_the_weights_scales_alpha(method, store, factor, options):
    data = make_data(18, 90, store=store, weighting="fractions")
    A, b, weights = data.whole
    plain = RidgeStream(method, sketch_size=4, **options).update(A, b, weights)
    times = RidgeStream(method, sketch_size=4, **options).update(A, b, weights * factor)
    np.testing.assert_allclose(times.solve(3.0 * factor), plain.solve(3.0), rtol=1e-8, atol=1e-10)


def test_scales_and_intercepts_have_the_shapes_of_what_was_asked():
    data = make_data(19)
    many = RidgeStream("exact", **STANDARD).update(*data.whole)
    single = RidgeStream("exact", **STANDARD).update(data.A, data.b[:, 0])
    assert many.intercept(many.solve(1.0)).shape == (2,)
    assert many.intercept(many.solve([1.0, 2.0, 3.0])).shape == (3, 2)
    assert single.intercept(single.solve(1.0)).shape == ()
    assert single.intercept(single.solve([1.0, 2.0, 3.0])).shape == (3,)
    for a, alpha in enumerate([1.0, 2.0, 3.0]):
        alone = many.intercept(many.solve(alpha))
        np.testing.assert_allclose(many.intercept(many.solve([1.0, 2.0, 3.0]))[a], alone)
    assert RidgeStream("exact").update(*data.whole).scale is None
    no_intercept = RidgeStream("exact").update(data.A, data.b[:, 0])
    assert no_intercept.intercept(no_intercept.solve(1.0)) == 0
    coef = no_intercept.solve(1.0)
    np.testing.assert_allclose(coef, exact_ridge(data.A, data.b, 1.0)[:, 0], rtol=1e-9)
