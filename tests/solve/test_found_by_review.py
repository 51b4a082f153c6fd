"""Cases that a review found, kept as they were found."""

import numpy as np
import pytest
from scipy import sparse

from prepared import solve_wide
from ridgepass import RidgeStream
from streams import norm


def merged(parts, **options):
    first, *others = (RidgeStream(**options).update(*part) for part in parts)
    for other in others:
        first.merge(other)
    return first


@pytest.mark.parametrize(
    ("method", "dtype", "far", "weight"),
    [
        ("rfd", "float32", 1e4, 1e-12),
        ("rfd", "float64", 1e14, 1e-35),
        ("exact", "float64", 1e14, 1e-35),
    ],
)
def test_a_part_far_off_without_weight_takes_no_digits_from_the_others(method, dtype, far, weight):
    rng = np.random.default_rng(0)
    n = 256 if method == "exact" else 16
    rows = [
        rng.standard_normal((n, 4)),
        rng.standard_normal((n, 4)) + far,
        rng.standard_normal((n, 4)),
    ]
    rows = [rows[0][1:].astype(dtype), rows[1].astype(dtype), rows[2].astype(dtype)]
    targets = [part @ np.ones(4) + rng.standard_normal(len(part)) for part in rows]
    weights = [np.ones(n - 1), np.full(n, weight), np.ones(n)]
    model = merged(
        zip(rows, targets, weights, strict=True), method=method, sketch_size=8, fit_intercept=True
    )
    wide = [np.concatenate(parts).astype(np.longdouble) for parts in (rows, targets, weights)]
    A, b, w = wide[0], wide[1], wide[2]
    centre = A[0] + w @ (A - A[0]) / w.sum()
    target_centre = b[0] + w @ (b - b[0]) / w.sum()
    A, b = (A - centre) * np.sqrt(w)[:, None], (b - target_centre) * np.sqrt(w)
    for alpha in (1e-3, 1.0, 1e3):
        exact = solve_wide(A.T @ A, (A.T @ b)[:, None], alpha)[:, 0]
        certificate = model.certificate(alpha)
        error = np.linalg.norm((model.solve(alpha) - exact).astype(float))
        assert error <= certificate.coef_bound
        at_mean = np.asarray(certificate.mean)[None]
        gap = (at_mean @ model.solve(alpha) + model.intercept(model.solve(alpha)))[0]
        gap -= float((at_mean[0] - centre) @ exact + target_centre)
        assert abs(gap) <= certificate.prediction_bound(at_mean)[0]
    if method == "exact":
        assert certificate.relative <= 1e-8


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("place", "weight"), [(1e4, 1e-12), (1e4, 1e-20), (1e6, 1e-20)])
def test_scales_survive_weights_of_very_different_size(make, place, weight):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 4))
    X[:, 0] = place + 1e-3 * X[:, 0]
    X[0, 0] = 0.0
    weights = np.r_[weight, np.ones(49)]
    model = RidgeStream("exact", fit_intercept=True, standardize=True)
    model.update(make(X), X[:, 1], weights)
    wide, w = X.astype(np.longdouble), weights.astype(np.longdouble)
    mean = wide[1] + w @ (wide - wide[1]) / w.sum()
    expected = np.sqrt(w @ np.square(wide - mean) / w.sum()).astype(float)
    np.testing.assert_allclose(model.scale, expected, rtol=1e-9)


@pytest.mark.parametrize(("dtype", "quiet"), [("float32", 1e-3), ("float64", 1e-6)])
def test_a_column_that_starts_quiet_is_not_lost(dtype, quiet):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((896, 20))
    X[:512, 0] *= quiet
    y = X @ np.ones(20)
    options = {"sketch_size": 64, "fit_intercept": True, "dtype": dtype}
    learned = RidgeStream("rfd", standardize=True, **options).update(X, y)
    told = RidgeStream("rfd", feature_scale=learned.scale, **options).update(X, y)
    assert learned.certificate(10.0).relative <= 3 * told.certificate(10.0).relative
    exact = RidgeStream("exact", fit_intercept=True, standardize=True).update(X, y)
    gap = norm((learned.solve(10.0) - exact.solve(10.0)) * exact.scale)
    assert gap <= (1e-5 if dtype == "float32" else 1e-11) * norm(exact.solve(10.0) * exact.scale)


@pytest.mark.parametrize("first", [0, 63])
def test_parts_merge_in_any_order_of_their_scales(first):
    rng = np.random.default_rng(3)
    parts = [rng.standard_normal((16, 4)) for _ in range(64)]
    parts[first][:, 0] *= 1e-9
    model = merged(
        [(part, part @ np.ones(4)) for part in parts],
        method="rfd",
        sketch_size=8,
        fit_intercept=True,
        standardize=True,
    )
    A = np.concatenate(parts)
    exact = RidgeStream("exact", fit_intercept=True, standardize=True).update(A, A @ np.ones(4))
    np.testing.assert_allclose(model.solve(1.0), exact.solve(1.0), rtol=1e-9)
    assert model.certificate(1.0).relative <= 1e-6
