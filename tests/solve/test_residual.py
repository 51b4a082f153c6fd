"""Bounds from a known residual, for every AᵀA that a sketch leaves possible."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass import RidgeStream
from ridgepass.sketch import LowRank
from ridgepass.solve.low_rank import LowRankSolver
from ridgepass.solve.residual import _leverages, by_residual, curvature_bound
from streams import BOUNDED, CERTIFIED, METHODS, make_rows

UP = 1 + 1e-9  # for the rounding of the truth itself
SPECTRA = ["flat", "decaying", "spiked", "low rank", "zero"]


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 60)), draw(st.integers(2, 12))
    A = make_rows(rng, n, d, draw(st.sampled_from(SPECTRA)))
    if draw(st.booleans()):
        A = A @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    alpha = draw(st.sampled_from([1e-6, 1e-2, 1.0, 100.0])) * (np.square(A).sum() / d or 1.0)
    return rng, A, rng.standard_normal((n, 2)), draw(st.integers(2, 8)), alpha


def vectors_of(rng, K, covariance):
    """Random directions, the leading one, those of the sketch, and one outside of it."""
    d = len(K)
    found = [rng.standard_normal(d), np.linalg.eigh(K)[1][:, -1], np.zeros(d)]
    if isinstance(covariance, LowRank):
        S = covariance.project(np.eye(d))
        found.append(S[0] / (np.linalg.norm(S[0]) or 1.0))
        _, s, Vt = np.linalg.svd(S)
        if (rank := int((s > 1e-9 * s.max(initial=0.0)).sum())) < d:
            found.append(Vt[rank])
    return np.array(found).T


def query_of(method, A, b, size):
    query = RidgeStream(method, sketch_size=size, probes=0).update(A, b)._query()
    return query, query.solver.covariance


def times(relative, sizes):
    """What a relative bound allows: anything beside nothing."""
    return np.multiply(relative, sizes, out=np.full_like(sizes, np.inf), where=sizes > 0)


WITHOUT_TRACKED = [method for method in METHODS if method != "tracked"]


@pytest.mark.parametrize("method", WITHOUT_TRACKED)
@given(problem=problems())
@settings(max_examples=40)
def test_no_curvature_is_above_its_bound(method, problem):
    rng, A, b, size, alpha = problem
    query, covariance = query_of(method, A, b, size)
    vectors = vectors_of(rng, A.T @ A, covariance)
    true = np.square(A @ vectors).sum(axis=0) + alpha * np.square(vectors).sum(axis=0)
    with np.errstate(invalid="ignore"):
        bound = curvature_bound(covariance, alpha, vectors, query.moved)
    assert (true <= bound * UP).all()
    if method == "exact":  # which knows it
        assert (bound <= true * (1 + 1e-6) + 1e-9 * covariance.mass).all()


@pytest.mark.parametrize("method", sorted(set(BOUNDED) - {"exact"}))
@given(problem=problems())
@settings(max_examples=40)
def test_no_leverage_is_above_its_bound(method, problem):
    rng, A, b, size, alpha = problem
    query, covariance = query_of(method, A, b, size)
    K = A.T @ A
    vectors = vectors_of(rng, K, covariance)
    values, Q = np.linalg.eigh(K)
    inside = np.square(Q.T @ vectors)
    true = (inside / (np.maximum(values, 0.0) + alpha)[:, None]).sum(axis=0)
    found = _leverages(covariance, alpha, query.moved, vectors)
    assert (true <= found * UP).all()
    assert (found <= np.square(vectors).sum(axis=0) / alpha * UP).all()


def test_leverages_know_the_leading_directions():
    A = np.diag([100.0, 1.0, 1.0])
    _, covariance = query_of("rfd", np.repeat(A, 20, axis=0), np.ones(60), 2)
    found = _leverages(covariance, 1.0, 0.0, np.eye(3))
    assert found[0] < 1e-4
    assert (found[1:] <= 1.0).all()


@pytest.mark.parametrize("scale", [1e-100, 1e-60, 1e60, 1e100])
@pytest.mark.parametrize("method", sorted(set(BOUNDED) - {"exact"}))
def test_leverages_are_the_same_at_any_scale(method, scale):
    rows = np.repeat(np.diag([100.0, 1.0, 1.0]), 20, axis=0)
    vectors = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).T
    plain = _leverages(query_of(method, rows, np.ones(60), 2)[1], 1.0, 0.0, vectors)
    _, covariance = query_of(method, scale * rows, np.ones(60), 2)
    found = _leverages(covariance, scale**2, 0.0, scale * vectors)
    np.testing.assert_allclose(found, plain, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@given(problem=problems(), kind=st.sampled_from(["zero", "random", "exact", "sketch", "leading"]))
@settings(max_examples=80)
def test_no_error_is_above_its_bound(method, problem, kind):
    rng, A, b, size, alpha = problem
    query, covariance = query_of(method, A, b, size)
    d, K = A.shape[1], A.T @ A
    M = K + alpha * np.eye(d)
    residual = np.hstack([A.T @ b, vectors_of(rng, K, covariance)])
    exact = np.linalg.solve(M, residual)
    steps = {
        "zero": np.zeros_like(exact),
        "random": exact + 0.1 * rng.standard_normal(exact.shape) / alpha,
        "exact": exact,
        "sketch": query.solver.corrector(alpha)(residual),
        "leading": exact
        + np.outer(vectors_of(rng, K, covariance)[:, 1], rng.random(len(exact[0]))),
    }
    step = steps[kind]
    # Where x is z + p: the point z is as good as any.
    z = rng.standard_normal(exact.shape) * rng.choice([0.0, 1.0, 100.0])
    none = np.zeros(exact.shape[1])
    with np.errstate(invalid="ignore"):
        found = by_residual(query.solver, alpha, residual, none, step, z + step, query.moved)
    y, tiny = step - exact, 1e-12 * np.linalg.norm(exact, axis=0) * np.linalg.cond(M)
    error, size = np.linalg.norm(y, axis=0), np.linalg.norm(z + exact, axis=0)
    energy = np.sqrt(np.square(A @ y).sum(axis=0) + alpha * np.square(y).sum(axis=0))
    assert (error <= found[0] * UP + tiny).all()
    assert (error <= times(found[1], size) * UP + tiny).all()
    assert (energy <= found[2] * UP + tiny * np.sqrt(np.linalg.norm(M, 2))).all()
    if method not in CERTIFIED and method != "exact":
        assert np.isfinite(found[0][~step.any(axis=0)]).all()


@pytest.mark.parametrize("method", CERTIFIED)
@given(problem=problems(), factor=st.sampled_from([1e-6, 1e-2, 1.0]))
@settings(max_examples=30)
def test_a_residual_in_doubt_widens_every_bound(method, problem, factor):
    rng, A, b, size, alpha = problem
    query, _ = query_of(method, A, b, size)
    M, c = A.T @ A + alpha * np.eye(A.shape[1]), A.T @ b
    doubt = rng.standard_normal(c.shape)
    doubt *= factor * np.linalg.norm(c, axis=0) / np.linalg.norm(doubt, axis=0)
    wide = np.linalg.norm(doubt, axis=0)
    step = query.solver.corrector(alpha)(c + doubt)
    found = by_residual(query.solver, alpha, c + doubt, wide, step, step, query.moved)
    exact = np.linalg.solve(M, c)
    y, tiny = step - exact, 1e-12 * np.linalg.norm(exact, axis=0) * np.linalg.cond(M)
    error, size = np.linalg.norm(y, axis=0), np.linalg.norm(exact, axis=0)
    energy = np.sqrt(np.square(A @ y).sum(axis=0) + alpha * np.square(y).sum(axis=0))
    assert (error <= found[0] * UP + tiny).all()
    assert (error <= times(found[1], size) * UP + tiny).all()
    assert (energy <= found[2] * UP + tiny * np.sqrt(np.linalg.norm(M, 2))).all()


@pytest.mark.parametrize("method", ["rfd", "exact", "rp", "tracked"])
def test_nothing_is_known_without_a_ridge(method):
    rng = np.random.default_rng(0)
    query, _ = query_of(method, rng.standard_normal((30, 4)), rng.standard_normal(30), 3)
    one = np.ones((4, 1))
    for bound in by_residual(query.solver, 0.0, one, np.zeros(1), one, one, 0.0):
        assert np.isinf(bound).all()


@pytest.mark.parametrize("method", WITHOUT_TRACKED)
def test_no_vector_has_no_curvature(method):
    rng = np.random.default_rng(1)
    query, covariance = query_of(method, rng.standard_normal((30, 4)), rng.standard_normal(30), 3)
    assert curvature_bound(covariance, 1.0, np.zeros((4, 1)), query.moved) == 0


def test_a_residual_that_is_off_counts_with_exact_ridge():
    # K is between 0 and 1, z = 10 and r = −9 ± 0.05: x may be 10 − 9.05, from which z is 9.526 x.
    covariance = LowRank((np.zeros((1, 1)),), np.eye(1), np.zeros(1), 0.0, 1.0, 1.0, loss_bound=1.0)
    solver, r, z = (
        LowRankSolver(covariance, np.ones((1, 1))),
        np.array([[-9.0]]),
        np.array([[10.0]]),
    )
    _, relative, _ = by_residual(solver, 1.0, r, np.array([0.05]), 0 * z, z, 0.0)
    assert relative >= 9.05 / 0.95
