"""Images of a moving subspace: exact between turns, and as K̂ has them after one."""

import copy

import numpy as np
import pytest
from scipy import sparse

from ridgepass import RidgeStream
from ridgepass.blocks import Block
from ridgepass.datasets import Synthetic
from ridgepass.sketch import tracked
from ridgepass.sketch.tracked import TrackedSubspace

UNIT = {"float32": 6e-8, "float64": 1.1e-16}
BY_DTYPE = pytest.mark.parametrize("dtype", UNIT)


def train(A, b, size, dtype="float64", alpha=None, *, is_sparse=False):
    options = {"n_targets": b.shape[1], "alpha": alpha, "sparse": is_sparse}
    sketch = TrackedSubspace(A.shape[1], size, np.dtype(dtype), **options)
    cross = np.zeros((A.shape[1], b.shape[1]))
    A = A.astype(dtype) if is_sparse else np.ascontiguousarray(A, dtype)
    for start in range(0, A.shape[0], sketch.block_rows):
        rows, targets = (part[start : start + sketch.block_rows] for part in (A, b))
        cross += sketch.absorb(Block(rows.tocsc() if is_sparse else rows, targets))
        sketch.settle(cross)
    sketch.cross = cross
    return sketch


def solve(sketch, alpha):
    return sketch.solver(sketch.cross).solve([alpha])[0]


def data(n_rows=1500, n_features=80, n_targets=1, seed=0):
    model = Synthetic(n_features // 4, n_features, seed)
    A, b = model.sample(n_rows)
    noise = np.random.default_rng(seed).standard_normal((n_rows, n_targets - 1))
    return A, np.column_stack([b, noise])


def test_all_that_fits_is_kept():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((700, 8)) @ rng.standard_normal((8, 60))
    sketch = train(A, rng.standard_normal((700, 1)), 8)
    assert sketch.start is not None
    np.testing.assert_allclose(sketch.start.rows.T @ sketch.start.rows, A.T @ A, atol=1e-9)
    assert sketch.mass == pytest.approx(np.square(A).sum())


@BY_DTYPE
def test_images_are_exact_between_turns(dtype, monkeypatch):
    monkeypatch.setattr(tracked, "TURN_GROWTH", 1e9)
    monkeypatch.setattr(tracked, "NEW_FACTOR", 1e9)
    A, b = data(n_targets=3)
    A = A.astype(dtype).astype(float)
    sketch = train(A, b, 16, dtype, alpha=5.0)
    assert sketch.n_turns == 1  # the start
    K, slack = A.T @ A, 50 * UNIT[dtype] * np.square(A).sum()
    np.testing.assert_allclose(sketch.image, sketch.basis @ K, atol=slack)
    np.testing.assert_allclose(sketch.middle, sketch.basis @ K @ sketch.basis.T, atol=slack)
    gauges = sketch.points[16 + 3 :]
    np.testing.assert_allclose(sketch.further[3:], gauges @ K, atol=10 * slack)
    np.testing.assert_allclose(sketch.diagonal, np.diagonal(K), rtol=50 * UNIT[dtype])
    size = np.sqrt(np.square(A).sum() * np.square(b).sum())
    np.testing.assert_allclose(sketch.cross, A.T @ b, atol=50 * UNIT[dtype] * size)


@BY_DTYPE
def test_gauges_and_sums_stay_exact_when_the_basis_turns(dtype):
    A, b = data()
    A = A.astype(dtype).astype(float)
    sketch = train(A, b, 16, dtype, alpha=5.0)
    assert sketch.n_turns > 3
    assert sketch.n_moves > 5
    gauges, slack = sketch.points[17:], 500 * UNIT[dtype] * np.square(A).sum()
    np.testing.assert_allclose(sketch.further[1:], gauges @ A.T @ A, atol=slack)
    np.testing.assert_allclose(sketch.diagonal, np.square(A).sum(axis=0), rtol=50 * UNIT[dtype])


@BY_DTYPE
@pytest.mark.parametrize("uneven", [False, True])
def test_a_turn_leaves_the_image_that_k_hat_gives(dtype, uneven):
    A, b = data()
    if uneven:
        A = A * np.exp(1.5 * np.random.default_rng(2).standard_normal(A.shape[1]))
    sketch = train(A, b, 16, dtype, alpha=5.0)
    solver = sketch.solver(sketch.cross)
    assert (solver.diagonal_share > 0) == uneven
    values, mix = solver.eigenvectors()
    basis = mix @ sketch.image
    image = solver.multiply(5.0, basis.T).T
    sketch._turn(solver)
    slack = 1e4 * UNIT[dtype]
    np.testing.assert_allclose(sketch.basis, basis, atol=slack)
    np.testing.assert_allclose(sketch.image, image, atol=slack * values[0])
    np.testing.assert_allclose(sketch.middle, basis @ image.T, atol=slack * values[0])
    np.testing.assert_allclose(sketch.basis @ sketch.basis.T, np.eye(16), atol=slack)


def test_a_block_of_new_directions_turns_the_basis_at_once():
    rng = np.random.default_rng(3)
    early, late = (np.linalg.qr(rng.standard_normal((100, 12)))[0].T for _ in range(2))
    A = np.vstack([rng.standard_normal((1280, 12)) @ early, rng.standard_normal((128, 12)) @ late])
    A += 0.01 * rng.standard_normal(A.shape)
    b = A @ rng.standard_normal((100, 1))
    sketch = train(A[:1280], b[:1280], 24)
    turns = sketch.n_turns
    sketch.absorb(Block(A[1280:], b[1280:]))
    assert sketch.n_turns > turns
    np.testing.assert_allclose(np.linalg.norm(sketch.basis @ late.T, axis=0), 1.0, atol=0.02)


@pytest.mark.parametrize("size", [8, 32])
def test_it_errs_less_than_rfd(size):
    A, b = data(4000, 256)
    alpha = 1000.0
    exact = np.linalg.solve(A.T @ A + alpha * np.eye(256), A.T @ b)[:, 0]
    found = solve(train(A, b, size, alpha=alpha), alpha)
    rfd = RidgeStream("rfd", sketch_size=size).update(A, b[:, 0]).solve(alpha)
    assert np.linalg.norm(found[:, 0] - exact) < 0.5 * np.linalg.norm(rfd - exact)


@pytest.mark.parametrize("power", [-330, 330])
def test_any_scale_gives_the_same_coefficients(power):
    A, b = data()
    factor = 2.0**power
    plain = solve(train(A, b, 16, alpha=5.0), 5.0)
    far = solve(train(A * factor, b, 16, alpha=5.0 * factor**2), 5.0 * factor**2)
    np.testing.assert_allclose(far * factor, plain, rtol=1e-7)


def test_sparse_rows_are_followed_like_dense_ones():
    rng = np.random.default_rng(4)
    A = sparse.random_array((1500, 300), density=0.05, format="csr", rng=rng)
    b = A @ rng.standard_normal((300, 2)) + rng.standard_normal((1500, 2))
    dense, kept = train(A.toarray(), b, 16, alpha=1.0), train(A, b, 16, alpha=1.0, is_sparse=True)
    assert kept.image.flags.f_contiguous
    np.testing.assert_allclose(kept.diagonal, dense.diagonal, rtol=1e-12)
    np.testing.assert_allclose(kept.further[2:], dense.further[2:], atol=1e-9)
    np.testing.assert_allclose(kept.cross, dense.cross, atol=1e-9)
    np.testing.assert_allclose(solve(kept, 1.0), solve(dense, 1.0), rtol=1e-6)


def implicit(rng, n_features=40):
    """A block whose centring and weights are left to whoever multiplies it."""
    rows = sparse.random_array((30, n_features), density=0.3, rng=rng)
    factors, mean, shift = rng.random(30) + 0.5, rng.random((1, n_features)), rng.random(n_features)
    targets = rng.standard_normal((31, 1))
    return Block(rows.tocsc(), targets, factors, mean, shift[None], n_shifts=1)


def test_rows_that_wait_count_as_if_they_had_been_taken_in(monkeypatch):
    monkeypatch.setattr(tracked, "NEW_FACTOR", 1e9)
    A, b = data(1500, 40)
    sketch, block = train(A, b, 12, alpha=5.0), implicit(np.random.default_rng(5))
    cross = sketch.cross + block.cross()
    waiting = sketch.solver(cross, block).solve([1.0, 5.0])
    before = sketch.image.copy()
    taken = copy.deepcopy(sketch)
    np.testing.assert_allclose(taken.absorb(block), block.cross(), atol=1e-9)
    np.testing.assert_allclose(taken.solver(cross).solve([1.0, 5.0]), waiting, rtol=1e-8)
    np.testing.assert_array_equal(sketch.image, before)


@pytest.mark.parametrize("sizes", [(12, 12), (12, 20), (20, 12)])
@pytest.mark.parametrize("cut", [5, 100, 900, 1490])  # all rows of one side may fit
def test_two_that_are_merged_solve_nearly_as_well_as_one(sizes, cut):
    A, b = data(1500, 40)
    alpha = 300.0
    exact = np.linalg.solve(A.T @ A + alpha * np.eye(40), A.T @ b)
    left, right = (
        train(A[part], b[part], size, alpha=alpha)
        for part, size in zip((slice(cut), slice(cut, None)), sizes, strict=True)
    )
    left.merge(right, left.cross, right.cross)
    left.cross = left.cross + right.cross
    left.settle(left.cross)
    assert left.n_rows == 1500
    np.testing.assert_allclose(left.diagonal, np.square(A).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(left.further[1:], left.points[sizes[0] + 1 :] @ A.T @ A, atol=1e-7)
    np.testing.assert_allclose(left.basis @ left.basis.T, np.eye(sizes[0]), atol=1e-8)
    one = np.linalg.norm(solve(train(A, b, min(sizes), alpha=alpha), alpha) - exact)
    assert np.linalg.norm(solve(left, alpha) - exact) < 4 * one


def test_columns_in_other_units_have_the_same_predictions():
    A, b = data(1500, 40)
    ratio = np.exp(np.random.default_rng(6).standard_normal(40) / 3)
    sketch, other = train(A, b, 12, alpha=5.0), train(A * ratio, b, 12, alpha=5.0)
    sketch.rescale(ratio)
    K = (A * ratio).T @ (A * ratio)
    np.testing.assert_allclose(sketch.basis @ sketch.basis.T, np.eye(12), atol=1e-9)
    np.testing.assert_allclose(sketch.diagonal, np.diagonal(K), rtol=1e-9)
    np.testing.assert_allclose(sketch.further[1:], sketch.points[13:] @ K, atol=1e-7)
    sketch.cross = sketch.cross * ratio[:, None]
    exact = np.linalg.solve(K + 5 * np.eye(40), (A * ratio).T @ b)
    ours, theirs = (np.linalg.norm(solve(one, 5.0) - exact) for one in (sketch, other))
    assert ours < 2 * theirs
