"""The anchored solver against its formulas written out in d x d matrices."""

import numpy as np
import pytest

from ridgepass import RidgeStream
from ridgepass.anchor import Anchor
from ridgepass.solve import AnchoredSolver
from streams import exact_ridge, norm


def make_solver(n=600, d=30, size=6, n_targets=2, seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    A = (rng.standard_normal((n, d)) * np.exp(-np.arange(d) / 10)).astype(dtype)
    b = A @ rng.standard_normal((d, n_targets)) + rng.standard_normal((n, n_targets))
    return A, b, RidgeStream("anchored", sketch_size=size).update(A, b)._query().solver


def k_hat(solver, alpha):
    eye, tail = np.eye(len(solver.cross)), solver.tail(alpha)
    more = (solver.values - tail)[:, None] * solver.project(eye)
    return solver.lift(more) + tail * eye


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e4])
def test_it_solves_for_the_rest_of_an_exact_line_search(alpha, dtype):
    _, _, solver = make_solver(dtype=dtype)
    K, w, h, c = k_hat(solver, alpha), solver.anchor.point, solver.anchor.image, solver.cross
    t = (w * c).sum(axis=0) / (w * (h + alpha * w)).sum(axis=0)
    np.testing.assert_allclose(solver.steps(alpha), t, rtol=1e-10)
    rest = c - t * (h + alpha * w)
    expected = t * w + np.linalg.solve(K + alpha * np.eye(30), rest)
    (found,) = solver.solve([alpha])
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10 * norm(expected))
    assert np.linalg.eigvalsh(K).min() >= -1e-9


def test_an_anchor_at_the_solution_is_the_answer_whatever_the_sketch():
    A, b, solver = make_solver()
    exact = exact_ridge(A, b, 5.0)
    anchor = Anchor(exact, A.T @ (A @ exact), np.zeros(2), 0)
    (found,) = AnchoredSolver(solver.covariance, solver.cross, anchor).solve([5.0])
    assert norm(found - exact) <= 1e-10 * norm(exact)
    assert norm(solver.solve([5.0])[0] - exact) >= 1e-4 * norm(exact)


def test_only_the_direction_of_an_anchor_matters():
    _, _, solver = make_solver(n_targets=1)
    anchor = solver.anchor
    for factor in (-3.0, 1e-8, 1e60):
        other = Anchor(anchor.point * factor, anchor.image * factor, anchor.error, 0)
        found = AnchoredSolver(solver.covariance, solver.cross, other).solve([2.0])
        np.testing.assert_allclose(found, solver.solve([2.0]), rtol=1e-9, atol=1e-12)


def test_an_anchor_at_zero_leaves_all_to_the_sketch():
    _, _, solver = make_solver()
    bare = AnchoredSolver(solver.covariance, solver.cross, Anchor.empty(30, 2, 6))
    expected = np.linalg.solve(k_hat(bare, 2.0) + 2 * np.eye(30), bare.cross)
    np.testing.assert_allclose(bare.solve([2.0])[0], expected, rtol=1e-8)
    assert not bare.steps(2.0).any()


@pytest.mark.parametrize("alpha", [0.1, 100.0])
def test_a_move_goes_to_the_solution_and_bounds_what_it_guessed(alpha):
    A, _, solver = make_solver()
    point, image, error, tail = solver.moved(alpha)
    (coef,) = solver.solve([alpha])
    np.testing.assert_allclose(point, coef / np.linalg.norm(coef, axis=0), rtol=1e-12)
    gaps = np.linalg.norm(image - A.T @ (A @ point), axis=0)
    assert (gaps <= error).all()
    assert (error <= np.linalg.norm(A, 2) ** 2).all()
    u, g = (v - solver.lift(solver.project(v)) for v in (point, image))
    v = g + alpha * u
    best = np.square(v).sum() / (u * v).sum() - alpha
    assert tail == pytest.approx(np.clip(best, 0, solver.covariance.largest_loss), rel=1e-7)


def test_the_tail_solves_best_for_the_anchor_itself():
    _, _, solver = make_solver(n_targets=1)
    u, g = (v - solver.lift(solver.project(v)) for v in (solver.anchor.point, solver.anchor.image))
    tails = []
    for alpha in (1e-3, 10.0, 1e5):
        grid = np.linspace(0, solver.covariance.largest_loss, 20001)
        misses = [norm((g + alpha * u) / (tail + alpha) - u) for tail in grid]
        tails.append(solver.tail(alpha))
        assert tails[-1] == pytest.approx(grid[np.argmin(misses)], abs=grid[2])
    assert tails[0] > tails[1] > tails[2]


def test_a_shift_goes_anywhere_and_bounds_what_it_guessed():
    A, _, solver = make_solver()
    point = np.random.default_rng(1).standard_normal((30, 2))
    image, error = solver.shifted(point)
    moved = k_hat(solver, np.inf) @ (point - solver.anchor.point)
    np.testing.assert_allclose(image, solver.anchor.image + moved, rtol=1e-9, atol=1e-9)
    assert (np.linalg.norm(image - A.T @ (A @ point), axis=0) <= error).all()
    here, unchanged = solver.shifted(solver.anchor.point)
    np.testing.assert_array_equal(here, solver.anchor.image)
    np.testing.assert_allclose(unchanged, solver.anchor.error, rtol=1e-6)


def test_a_sketch_without_an_account_is_refused():
    A, b, solver = make_solver()
    plain = RidgeStream("rfd", sketch_size=6).update(A, b)._query().solver.covariance
    with pytest.raises(TypeError, match="keeps account"):
        AnchoredSolver(plain, solver.cross, solver.anchor)


def test_estimates_for_choosing_alpha_are_near_the_truth():
    A, _, solver = make_solver(n=3000, size=12)
    alphas = [1.0, 100.0, 3000.0]
    squares = np.square(np.linalg.svd(A)[1])
    freedom = [(squares / (squares + alpha)).sum() for alpha in alphas]
    np.testing.assert_allclose(solver.degrees_of_freedom(alphas, 30), freedom, rtol=0.15)
    coefs = solver.solve(alphas)
    truth = np.square(np.einsum("nd,kdt->knt", A, coefs)).sum(axis=1)
    np.testing.assert_allclose(solver.quadratic(coefs), truth, rtol=0.05)
    assert solver.largest_eigenvalue() == pytest.approx(squares[0], rel=0.02)
