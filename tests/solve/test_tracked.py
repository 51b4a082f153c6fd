"""K̂ of a followed subspace, against the same written out as a matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass.solve.tracked import MixedRows, Tracked, TrackedSolver


def make_rows(rng, n_rows, n_features, *, uneven=True):
    """Rows of decaying spectrum; uneven columns leave a tail that is mostly a diagonal."""
    spread = np.exp(-np.arange(n_features) / (n_features / 6))
    rows = rng.standard_normal((n_rows, n_features)) * spread
    if uneven:
        return rows * np.exp(rng.standard_normal(n_features))
    turn, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    return rows @ turn


def follow(rng, A, b, size, *, unit=1.0, turns=1):
    """What exact images of a basis, of anchors and of gauges make of K = AᵀA."""
    n_features = A.shape[1]
    K, c = A.T @ A, A.T @ b
    basis = rng.standard_normal((n_features, size))
    for _ in range(turns + 1):
        basis, _ = np.linalg.qr(K @ basis / unit if turns else basis)
    basis, point = basis.T.copy(), c / np.linalg.norm(c, axis=0)
    gauges = rng.standard_normal((n_features, 8))
    image = basis @ K
    tracked = Tracked(
        basis=MixedRows((basis,), np.eye(size)),
        image=MixedRows((image,), np.eye(size) / unit),
        middle=basis @ image.T / unit,
        squares=(image / unit) @ (image / unit).T,
        point=point,
        point_image=K @ point / unit,
        gauges=gauges,
        gauge_images=K @ gauges / unit,
        diagonal=np.diagonal(K) / unit,
        rank=min(A.shape),
        unit=unit,
    )
    return TrackedSolver(tracked, c), K, basis, image


def written_out(K, basis, image, tails):
    """YᵀM⁻¹Y + (I − P)·T·(I − P)."""
    out = np.eye(len(K)) - basis.T @ basis
    low = image.T @ np.linalg.solve(basis @ image.T, image)
    return low + out @ np.diag(np.broadcast_to(tails, len(K))) @ out


CASES = given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 9),
    n_features=st.integers(12, 40),
    uneven=st.booleans(),
    alpha=st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
)


@CASES
@settings(max_examples=60)
def test_products_and_solutions_are_those_of_the_matrix(seed, size, n_features, uneven, alpha):
    rng = np.random.default_rng(seed)
    A = make_rows(rng, 60, n_features, uneven=uneven)
    solver, K, basis, image = follow(rng, A, rng.standard_normal((60, 2)), size)
    whole = written_out(K, basis, image, solver.tails(alpha))
    vectors = rng.standard_normal((n_features, 3))
    scale = np.linalg.norm(K, 2)
    np.testing.assert_allclose(solver.multiply(alpha, vectors), whole @ vectors, atol=1e-9 * scale)
    found = solver.inverse(alpha)(vectors)
    left = whole @ found + alpha * found - vectors
    assert np.linalg.norm(left) <= 1e-9 * (1 + scale / alpha) * np.linalg.norm(vectors)


@CASES
@settings(max_examples=40)
def test_what_is_left_out_lies_outside_the_basis(seed, size, n_features, uneven, alpha):
    rng = np.random.default_rng(seed)
    A = make_rows(rng, 60, n_features, uneven=uneven)
    solver, K, basis, image = follow(rng, A, rng.standard_normal((60, 1)), size)
    # So that K̂ is exact on the basis, whatever the tail.
    np.testing.assert_allclose(
        solver.multiply(alpha, basis.T), image.T, atol=1e-9 * np.linalg.norm(K, 2)
    )
    rest = K - written_out(K, basis, image, 0.0)
    np.testing.assert_allclose(solver._diagonal, np.diagonal(rest), atol=1e-9 * np.trace(K))
    assert solver._left == pytest.approx(np.trace(rest), abs=1e-9 * np.trace(K))
    assert 0 <= np.min(solver.tails(alpha)) <= np.max(solver.tails(alpha)) <= 1.01 * solver._left


def test_a_scalar_is_a_diagonal_of_equal_numbers():
    rng = np.random.default_rng(1)
    solver, *_ = follow(rng, make_rows(rng, 60, 25), rng.standard_normal((60, 1)), 5)
    vectors = rng.standard_normal((25, 4))
    one = solver._with_scalar_tail(0.7, 2.5)(vectors)
    each = solver._with_diagonal_tail(0.7, np.full(25, 2.5))(vectors)
    np.testing.assert_allclose(one, each, rtol=1e-10)


def test_a_tail_of_one_eigenvalue_is_found_and_the_solution_exact():
    rng = np.random.default_rng(2)
    turn, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    # Three directions of the basis, and seventeen of one eigenvalue.
    A = (turn * np.sqrt([90.0, 50.0, 20.0, *[4.0] * 17])) @ turn.T
    solver, K, *_ = follow(rng, A, rng.standard_normal((20, 2)), 3, turns=40)
    assert solver.diagonal_share == 0.0
    assert solver.tails(1.0) == pytest.approx(4.0, rel=1e-6)
    exact = np.linalg.solve(K + np.eye(20), solver.exact_cross)
    np.testing.assert_allclose(solver.solve([1.0])[0], exact, rtol=1e-5, atol=1e-6)


def test_alpha_may_be_zero_where_the_tail_is_not():
    rng = np.random.default_rng(3)
    solver, K, basis, image = follow(
        rng, make_rows(rng, 60, 25, uneven=False), rng.standard_normal((60, 1)), 5
    )
    tails = solver.tails(0.0)
    assert tails > 0
    found = solver.inverse(0.0)(K[:, :2])
    np.testing.assert_allclose(written_out(K, basis, image, tails) @ found, K[:, :2], atol=1e-9)


def test_the_diagonal_is_used_where_columns_differ_and_not_where_they_are_mixed():
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((400, 60)) * np.exp(1.5 * rng.standard_normal(60))
    b = rng.standard_normal((400, 1))
    assert follow(rng, rows, b, 4)[0].diagonal_share > 0.8
    turn, _ = np.linalg.qr(rng.standard_normal((60, 60)))
    assert follow(rng, rows @ turn, b, 4)[0].diagonal_share == 0.0


@pytest.mark.parametrize("power", [-400, 400])
def test_units_take_squares_of_any_size_into_range(power):
    rng = np.random.default_rng(5)
    A, b = make_rows(rng, 60, 25), rng.standard_normal((60, 2))
    factor = 2.0**power
    plain, *_ = follow(np.random.default_rng(6), A, b, 5)
    far, *_ = follow(np.random.default_rng(6), A * factor, b, 5, unit=factor**2)
    coefs = plain.solve([0.5, 5.0])
    np.testing.assert_allclose(
        far.solve([0.5 * factor**2, 5.0 * factor**2]) * factor, coefs, rtol=1e-9
    )
    point, image = plain.moved(5.0)
    far_point, far_image = far.moved(5.0 * factor**2)
    np.testing.assert_allclose(far_point, point, rtol=1e-9)
    np.testing.assert_allclose(far_image / factor**2, image, rtol=1e-9)


def test_anchors_move_to_the_solution_and_their_image_with_them():
    rng = np.random.default_rng(7)
    solver, *_ = follow(rng, make_rows(rng, 60, 25), rng.standard_normal((60, 2)), 5)
    (coef,) = solver.solve([2.0])
    point, its_image = solver.moved(2.0)
    np.testing.assert_allclose(point, coef / np.linalg.norm(coef, axis=0), rtol=1e-12)
    before, steps = solver.tracked, solver._steps(2.0)
    delta = coef - steps * before.point
    expected = steps * before.point_image + solver.multiply(2.0, delta)
    np.testing.assert_allclose(its_image * np.linalg.norm(coef, axis=0), expected, rtol=1e-9)


def test_eigenvectors_and_root_are_those_of_the_low_part():
    rng = np.random.default_rng(8)
    solver, K, basis, image = follow(rng, make_rows(rng, 60, 25), rng.standard_normal((60, 1)), 5)
    low = written_out(K, basis, image, 0.0)
    values, mix = solver.eigenvectors()
    vectors = mix @ image
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(vectors @ low, values[:, None] * vectors, atol=1e-9 * values[0])
    root = solver.root() @ image
    np.testing.assert_allclose(root.T @ root, low, atol=1e-9 * values[0])
