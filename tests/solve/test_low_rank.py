from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from ridgepass.kernels import orthogonal_mix, stacked_gram
from ridgepass.sketch import LowRank
from ridgepass.solve import factorise
from streams import norm, streams


def problem(rng, n=7, d=20, n_targets=3, dtype="float64"):
    rows = (rng.standard_normal((n, d)).astype(dtype), rng.standard_normal((2, d)).astype(dtype))
    squares, mix = orthogonal_mix(stacked_gram(rows, exact=True), rng.standard_normal((5, n + 2)))
    return LowRank(rows, mix, squares, 0.25, 0.0, 1.0), rng.standard_normal((d, n_targets))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_alpha_and_target_solves_the_full_system(dtype):
    found, cross = problem(np.random.default_rng(0), dtype=dtype)
    rows = found.mix @ np.vstack(found.rows).astype(float)
    full = rows.T @ rows + found.shift * np.eye(20)
    alphas = [0.0, 0.5, 100.0]
    solver = factorise(found, cross)
    coefs = solver.solve(alphas)
    assert coefs.shape == (3, 20, 3)
    for alpha, coef in zip(alphas, coefs, strict=True):
        expected = np.linalg.solve(full + alpha * np.eye(20), cross)
        np.testing.assert_allclose(coef, expected, rtol=1e-9, atol=1e-12)
        error = np.linalg.norm(coef - expected, axis=0)
        bound = solver.error_norms(alpha, coef)
        assert (error <= bound).all()
        assert (bound < 1e-9).all()


@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_preconditioner_has_the_diagonal_of_the_matrix(dtype, below):
    found, vectors = problem(np.random.default_rng(4), dtype=dtype)
    rows = found.mix @ np.vstack(found.rows).astype(float)
    diagonal = np.square(rows).sum(axis=0) + np.linspace(0.0, 50.0, 20)
    found = replace(found, loss_bound=60.0 if below else None)
    full = rows.T @ rows
    if below:
        full += np.diag(diagonal - np.diagonal(full) + 0.5)
        np.testing.assert_allclose(np.diagonal(full), diagonal + 0.5)
    else:  # a random sketch, shrunk in units of the diagonal
        roots = np.sqrt(diagonal + 0.5)
        values, turn = np.linalg.eigh(full / np.outer(roots, roots))
        values = np.maximum(values - 2 * values[-len(rows)], 0.0)
        full = np.outer(roots, roots) * (np.eye(20) + (turn * values) @ turn.T)
    correct = factorise(found, vectors).corrector_with_diagonal(0.5, diagonal)
    for scale in (1.0, 1e-150, 1e150):
        expected = scale * np.linalg.solve(full, vectors)
        np.testing.assert_allclose(correct(scale * vectors), expected, rtol=1e-7)


def test_rounding_in_the_leading_directions_is_not_blown_up():
    rng = np.random.default_rng(3)
    rows = (np.vstack([1e5 * rng.standard_normal((1, 20)), rng.standard_normal((3, 20))]),)
    squares, mix = orthogonal_mix(stacked_gram(rows, exact=True), np.eye(4))
    cross = rows[0].T @ rng.standard_normal((4, 1))
    solver = factorise(LowRank(rows, mix, squares, 0.0, 0.0, 1.0), cross)
    (coef,) = solver.solve([1.0])  # a condition of 1e12
    assert solver.error_norms(1.0, coef) < 0.1 * norm(coef)


def test_the_error_of_a_wrong_solution_is_seen():
    found, cross = problem(np.random.default_rng(1))
    solver = factorise(found, cross)
    (coef,) = solver.solve([1.0])
    assert (solver.error_norms(1.0, coef) < 1e-10).all()
    np.testing.assert_allclose(solver.error_norms(1.0, coef + 1e-3), 1e-3 * np.sqrt(20), rtol=1e-6)


def test_the_sketch_of_a_projection_brings_its_own_right_hand_side():
    found, cross = problem(np.random.default_rng(2))
    own = LowRank(found.rows, found.mix, found.squares, found.shift, 0.0, 1.0, 2 * cross)
    np.testing.assert_allclose(
        factorise(own, cross).solve([1.0]), 2 * factorise(found, cross).solve([1.0])
    )


@given(stream=streams(spectra=["flat", "decaying", "zero", "low rank"]))
def test_solutions_are_finite_at_any_scale(stream):
    squares, mix = orthogonal_mix(stacked_gram((stream.A,)), np.eye(len(stream.A)))
    cross = stream.A.T @ stream.b[:, None]
    found = LowRank((stream.A,), mix, squares, 0.0, 0.0, 1.0)
    (coef,) = factorise(found, cross).solve([stream.alpha])
    expected = np.linalg.solve(
        (stream.A / stream.scale).T @ (stream.A / stream.scale)
        + stream.alpha / stream.scale**2 * np.eye(stream.A.shape[1]),
        cross / stream.scale,
    )
    assert norm(coef * stream.scale - expected) <= 1e-9 * norm(expected)
