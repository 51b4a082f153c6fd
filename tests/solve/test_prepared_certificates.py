"""Certificates of centred, weighted, scaled and sparse streams: never below the truth."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from prepared import FORMATS, PREPARATIONS, WIDE, Data, prepared, scaled, wide_ridge
from ridgepass import RidgeStream
from streams import CERTIFIED, make_rows, split_points

FACTORS = (1e-9, 1e-6, 1e-2, 1.0, 1e6)
BY_OPTIONS = pytest.mark.parametrize("options", PREPARATIONS, ids=lambda o: " ".join(o) or "plain")


def norms(columns):
    return np.linalg.norm(np.asarray(columns, np.float64), axis=0)


def assert_certified(model, data, options, factors=FACTORS):
    """No bound is below the error it is for, at any alpha, for any target or row."""
    for factor in factors:
        exact = wide_ridge(data.A, data.b, factor, data.weights, **options)
        alpha = factor * (exact.mass or 1.0)
        certificate, coef = model.certificate(alpha), model.solve(alpha)
        errors, sizes = norms(scaled(model, coef) - exact.coef), norms(exact.coef)
        assert (errors <= certificate.coef_bound).all()
        ratios = np.divide(errors, sizes, out=np.zeros_like(errors), where=sizes > 0)
        assert (ratios <= certificate.relative).all()
        # At the mean, only what rounding did to the mean itself is left.
        fresh = np.vstack([exact.mean, data.A[:3].astype(WIDE), -data.A[:1].astype(WIDE)])
        fresh = fresh.astype(np.float64)
        found = fresh @ coef + model.intercept(coef)
        gaps = np.abs(np.asarray(found - exact.predict(fresh), np.float64))
        for rows in (fresh, sparse.csr_array(fresh)):
            assert (gaps <= certificate.prediction_bound(rows)).all()


@BY_OPTIONS
@pytest.mark.parametrize("method", CERTIFIED)
@given(data=prepared(max_features=4))
@settings(max_examples=20)
def test_never_below_the_true_error(method, options, data):
    model = RidgeStream(method, sketch_size=data.sketch_size, **options).update(*data.whole)
    assert_certified(model, data, options)


@pytest.mark.parametrize("method", CERTIFIED)
@given(data=prepared(max_features=3, means=(1e6,), spreads=(1e-3, 1.0), spectra=("flat",)))
@settings(max_examples=25)
def test_rounding_alone_is_covered_where_means_dwarf_spreads(method, data):
    options = {"fit_intercept": True}
    model = RidgeStream(method, sketch_size=8, **options).update(*data.whole)
    assert_certified(model, data, options)


@BY_OPTIONS
@pytest.mark.parametrize("method", CERTIFIED)
@given(draw=st.data(), data=prepared(max_features=3))
@settings(max_examples=15)
def test_merged_streams_keep_their_certificate(method, options, draw, data):
    model = RidgeStream(method, sketch_size=data.sketch_size, **options)
    for start, stop in itertools.pairwise(split_points(draw.draw, len(data.A))):
        store = draw.draw(st.sampled_from(["dense", data.store]))
        size = draw.draw(st.integers(2, 12))
        part = RidgeStream(method, sketch_size=size, **options)
        model.merge(part.update(*data.part(start, stop, store)))
    assert_certified(model, data, options)


@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", CERTIFIED)
@pytest.mark.parametrize("seed", range(3))
def test_a_far_row_of_hardly_any_weight_is_covered(method, dtype, store, seed):
    rng = np.random.default_rng(seed)
    n = 3 if method == "2lfd" else 14  # fewer than a block
    for far, weight in ((1e3, 1e-8), (1e4, 1e-10), (1e6, 1e-12), (1e7, 1e-20)):
        A = rng.standard_normal((n, 3))
        A[0] += far
        if store != "dense":
            A = far - A  # zeros where the weight is next to nothing
            A[0] = 0.0
        A, weights = A.astype(dtype), np.append(weight, np.ones(n - 1))
        b = A.astype(float) @ [1.0, 2.0, 3.0] + rng.standard_normal(n)
        data = Data(A, b[:, None], weights, 8, store)
        model = RidgeStream(method, sketch_size=8, fit_intercept=True).update(*data.whole)
        assert_certified(model, data, {"fit_intercept": True})


@pytest.mark.parametrize("method", CERTIFIED)
def test_the_mean_of_float32_rows_is_covered(method):
    rng = np.random.default_rng(0)
    for n in (5, 20, 300):
        A = (rng.standard_normal(3) + rng.standard_normal((n, 3))).astype("float32")
        b = A.astype(float) @ [1.0, 2.0, 3.0] + rng.standard_normal(n)
        data = Data(A, b[:, None], None, 8, "dense")
        model = RidgeStream(method, sketch_size=8, fit_intercept=True).update(*data.whole)
        assert_certified(model, data, {"fit_intercept": True})


def test_duplicate_entries_in_float32_are_covered():
    rng = np.random.default_rng(0)
    twice = (1 + rng.random((200, 2))).astype("float32") * np.array([1, 3e-7], "float32")
    A = sparse.csr_array((twice.ravel(), np.zeros(400, int), np.arange(0, 401, 2)), shape=(200, 1))
    b = 3 + rng.standard_normal(200)
    model = RidgeStream("fd", sketch_size=8).update(A, b)
    for factor in (1e-2, 1.0, 1e3, 1e6, 1e9):
        exact = wide_ridge(A.toarray(), b, factor)  # SciPy's sums are the entries
        error = norms(model.solve(factor * exact.mass)[:, None] - exact.coef)
        assert error <= model.certificate(factor * exact.mass).coef_bound


@BY_OPTIONS
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["exact", "fd", "isvd", "rfd"])
@pytest.mark.parametrize("weight", [None, 1e-6])
@pytest.mark.parametrize("n", [12, 1000])
def test_where_the_rank_fits_only_rounding_is_certified(method, dtype, store, options, weight, n):
    rng = np.random.default_rng(0)
    A = (3 + make_rows(rng, n, 20, "low rank") * np.geomspace(0.3, 3, 20)).astype(dtype)
    b = A @ rng.standard_normal(20) + rng.standard_normal(n)
    weights = None if weight is None else np.full(n, weight)
    model = RidgeStream(method, sketch_size=6, **options)
    model.update(FORMATS[store](A), b, weights)
    unit = np.finfo(model._state.sketch.dtype).eps / 2
    for factor in (1e-3, 1.0):
        exact = wide_ridge(A, b, factor, weights, **options)
        error = norms(scaled(model, model.solve(factor * exact.mass)) - exact.coef)
        relative = model.certificate(factor * exact.mass).relative
        assert error <= relative * norms(exact.coef)
        assert error <= 100 * unit / factor * norms(exact.coef)
        assert relative <= 1e6 * unit / factor


@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("method", ["exact", "fd", "isvd", "rfd"])
@pytest.mark.parametrize("n", [12, 30, 1000])
def test_units_a_million_times_apart_do_not_loosen_what_is_standardized(method, store, n):
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((n, 5))
    b, A = columns.sum(axis=1) + rng.standard_normal(n), columns * np.geomspace(1e-6, 1e6, 5)
    model = RidgeStream(method, sketch_size=8, fit_intercept=True, standardize=True)
    model.update(FORMATS[store](A), b)
    exact = wide_ridge(A, b, 1e-2, fit_intercept=True, standardize=True)
    error = norms(scaled(model, model.solve(1e-2 * exact.mass)) - exact.coef)
    relative = model.certificate(1e-2 * exact.mass).relative
    assert error <= 1e-10 * norms(exact.coef)
    assert error <= relative * norms(exact.coef)
    assert relative <= 1e-7


@pytest.mark.parametrize("weighting", [None, "fractions"])
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("merged", [False, True])
@given(seed=st.integers(0, 999), size=st.integers(2, 8), n=st.integers(1, 200))
@settings(max_examples=25)
def test_the_theorem_of_frequent_directions_holds_for_centred_rows(
    store, merged, weighting, seed, size, n
):
    rng = np.random.default_rng(seed)
    A = 10 * rng.standard_normal(6) + make_rows(rng, n, 6, "decaying")
    A += np.outer(rng.integers(0, 3, n), rng.standard_normal(6))
    weights = None if weighting is None else 0.1 + rng.random(n)
    data = Data(A, A[:, :1], weights, size, store)
    model = RidgeStream("fd", sketch_size=size, fit_intercept=True)
    for start, stop in [(0, n // 2), (n // 2, n)] if merged else [(0, n)]:
        if stop > start:
            part = RidgeStream("fd", sketch_size=size, fit_intercept=True)
            model.merge(part.update(*data.part(start, stop)))
    found = model._query().solver.covariance
    assert found.shift == 0
    stacked = np.vstack([part.toarray() if sparse.issparse(part) else part for part in found.rows])
    sketch = found.mix @ stacked
    of_rows = np.ones(n) if weights is None else weights
    centred = A - np.average(A, axis=0, weights=of_rows)
    gap = np.linalg.eigvalsh((centred.T * of_rows) @ centred - sketch.T @ sketch)
    mass = float(of_rows @ np.square(centred).sum(axis=1))
    assert found.mass == pytest.approx(mass, rel=1e-9, abs=1e-9)
    assert gap.min() >= -1e-9 * (1 + mass)
    assert gap.max() <= found.error + 1e-9 * (1 + mass)
    # A shrink takes at least σ² off each of ℓ directions, and one more for σ²_{ℓ+1} itself.
    assert found.error <= mass / (size + 1) + 1e-9 * (1 + mass)


@BY_OPTIONS
def test_each_target_is_certified_as_if_alone(options):
    rng = np.random.default_rng(4)
    A, b = 5 + rng.standard_normal((300, 10)), rng.standard_normal((300, 3)) * [1.0, 1e-6, 100.0]
    together = RidgeStream("fd", sketch_size=4, **options).update(A, b).certificate(50.0)
    for t in range(3):
        alone = RidgeStream("fd", sketch_size=4, **options).update(A, b[:, t]).certificate(50.0)
        assert alone.coef_bound == pytest.approx(together.coef_bound[t])
        bounds = together.prediction_bound(A[:5])[:, t]
        np.testing.assert_allclose(alone.prediction_bound(A[:5]), bounds)


@pytest.mark.parametrize("method", ["rp", "cs"])
def test_nothing_times_an_infinite_bound_is_not_nan(method):
    A = np.random.default_rng(0).standard_normal((30, 3))
    certificate = RidgeStream(method, sketch_size=4).update(A, A[:, 0]).certificate(1.0)
    for rows in (np.eye(3) * [0, 1, 0], sparse.csr_array(np.eye(3) * [0, 1, 0])):
        assert not np.isnan(certificate.prediction_bound(rows)).any()


@pytest.mark.parametrize("mean", [None, np.array([1e6, -3.0, 0.0])])
def test_bounds_of_sparse_rows_agree_with_those_of_dense_ones(mean):
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((50, 3)) * (rng.random((50, 3)) < 0.5)
    A = rng.standard_normal((50, 3)) + (0 if mean is None else mean)
    options = {"fit_intercept": mean is not None, "feature_scale": [0.1, 1.0, 10.0]}
    certificate = RidgeStream("fd", sketch_size=2, **options).update(A, A[:, 1]).certificate(9.0)
    dense = certificate.prediction_bound(rows)
    for store in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        np.testing.assert_allclose(certificate.prediction_bound(store(rows)), dense, rtol=1e-6)
    twice = sparse.csr_array((np.array([3.0, 4.0]), np.array([0, 0]), np.array([0, 2])), (1, 3))
    expected = certificate.prediction_bound(twice.toarray())
    np.testing.assert_allclose(certificate.prediction_bound(twice), expected, rtol=1e-6)
