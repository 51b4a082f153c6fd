import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ridgepass import kernels
from ridgepass.kernels import (
    add_mix,
    apply,
    apply_transposed,
    column_norms,
    column_squares,
    gram,
    mix_into,
    orthogonal_mix,
    panel,
    panels,
    stacked_gram,
    times_vector,
    top_eigenpairs,
)

WIDE = kernels.GRAM_PANEL + 77  # more than one panel of either kind


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gram_is_the_product_in_float64(rng, dtype):
    left = rng.standard_normal((3, WIDE)).astype(dtype)
    right = rng.standard_normal((5, WIDE)).astype(dtype)
    product = left.astype(float) @ right.astype(float).T
    bound = WIDE * np.finfo(dtype).eps * np.abs(left).max() * np.abs(right).max()
    assert gram(left, right).dtype == np.float64
    assert np.abs(gram(left, right) - product).max() < bound
    np.testing.assert_allclose(gram(left, right, exact=True), product, rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 40), (40, 3), (1, 5), (7, 7)])
def test_a_vector_is_multiplied_alike_however_the_matrix_lies(rng, shape, order, dtype):
    matrix = np.array(rng.standard_normal(shape), dtype, order=order)
    vector = rng.standard_normal(shape[1]).astype(dtype)
    found = times_vector(matrix, vector)
    assert found.dtype == np.dtype(dtype)
    slack = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, matrix.astype(float) @ vector, rtol=slack, atol=slack)


def test_stacked_gram_takes_the_known_block_on_trust(rng):
    parts = [rng.standard_normal((k, 30)) for k in (3, 0, 4, 2)]
    stacked = np.vstack(parts)
    np.testing.assert_allclose(stacked_gram(parts), stacked @ stacked.T, rtol=1e-12, atol=1e-12)
    known = np.full((3, 3), 9.0)
    assert (stacked_gram(parts, known=known)[:3, :3] == 9.0).all()


@pytest.mark.parametrize("width", [5, 256, WIDE])
def test_mix_into_may_overwrite_its_input(rng, width):
    old, new = rng.standard_normal((4, width)), rng.standard_normal((3, width))
    mix = rng.standard_normal((4, 7))
    expected = mix @ np.vstack([old, new])
    mix_into(old, mix, old, new)
    np.testing.assert_allclose(old, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_add_mix_adds(rng, dtype):
    out, rows = rng.standard_normal((4, WIDE)).astype(dtype), np.ones((3, WIDE), dtype)
    expected = out + 6
    add_mix(out, np.full((4, 3), 2.0), rows)
    np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_apply_and_its_transpose_sum_in_float64(rng, dtype):
    rows = [rng.standard_normal((k, WIDE)).astype(dtype) for k in (3, 4)]
    stacked = np.vstack(rows).astype(float)
    x, z = rng.standard_normal((WIDE, 2)), rng.standard_normal((7, 2))
    np.testing.assert_allclose(apply(rows, x), stacked @ x, rtol=1e-10)
    np.testing.assert_allclose(apply_transposed(rows, z), stacked.T @ z, rtol=1e-9)


def some_sparse(rng, n, dtype, width=WIDE):
    """Sparse rows, and the same written out."""
    dense = (rng.standard_normal((n, width)) * (rng.random((n, width)) < 0.1)).astype(dtype)
    return sparse.csc_array(dense), dense


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scaled", [False, True])
def test_gram_of_sparse_rows_is_that_of_dense_ones(rng, dtype, scaled):
    columns = 0.1 + rng.random(WIDE) if scaled else None
    (left, left_dense), (right, right_dense) = (some_sparse(rng, n, dtype) for n in (3, 5))
    factors = np.ones(WIDE) if columns is None else columns**2
    product = (left_dense * factors) @ right_dense.astype(float).T
    for a, b in itertools.product((left, left_dense), (right, right_dense)):
        found = gram(a, b, exact=True, columns=columns)
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, product, rtol=1e-10, atol=1e-10)
    stack = np.vstack([left_dense, right_dense]).astype(float)
    stacked = stacked_gram((left, right_dense), exact=True, columns=columns)
    np.testing.assert_allclose(stacked, (stack * factors) @ stack.T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [5, WIDE])
def test_mixing_sparse_rows_is_mixing_dense_ones(rng, dtype, width):
    old = rng.standard_normal((4, width)).astype(dtype)
    new, new_dense = some_sparse(rng, 3, dtype, width)
    mean = rng.standard_normal((1, width))  # of float64, as a query's is
    mix = rng.standard_normal((4, 8))
    tolerance = 50 * np.finfo(dtype).eps
    expected = mix @ np.vstack([old, new_dense, mean])
    added = old + mix[:, 4:] @ np.vstack([new_dense, mean])
    out = old.copy()
    mix_into(out, mix, out, new, mean)
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
    add_mix(old, mix[:, 4:], new, mean)
    np.testing.assert_allclose(old, added, rtol=tolerance, atol=tolerance)
    assert out.dtype == old.dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_rows_apply_in_float64(rng, dtype):
    part, dense = some_sparse(rng, 4, dtype)
    other = rng.standard_normal((2, WIDE)).astype(dtype)
    stacked = np.vstack([dense, other]).astype(float)
    x, z = rng.standard_normal((WIDE, 2)), rng.standard_normal((6, 2))
    np.testing.assert_allclose(apply((part, other), x), stacked @ x, rtol=1e-9)
    np.testing.assert_allclose(apply_transposed((part, other), z), stacked.T @ z, rtol=1e-9)
    weights = rng.random(4)
    expected = weights @ np.square(dense.astype(float))
    np.testing.assert_allclose(column_squares(dense, weights), expected, rtol=1e-12)


def test_panels_of_sparse_rows_are_their_columns(rng):
    part, dense = some_sparse(rng, 4, "float64", 23)
    for span in panels(23, 5):
        np.testing.assert_array_equal(panel(part, span).toarray(), dense[:, span])
        np.testing.assert_array_equal(panel(dense, span), dense[:, span])


@given(
    n=st.integers(2, 40),
    rank=st.integers(0, 40),
    exponent=st.integers(-250, 250),
    seed=st.integers(0, 999),
)
def test_top_eigenpairs_agree_with_numpy_at_any_scale(n, rank, exponent, seed):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((n, rank))
    matrix = factor @ factor.T
    count = int(rng.integers(1, n + 1))
    values, vectors = top_eigenpairs(matrix * 10.0**exponent, count)
    expected = np.linalg.eigvalsh(matrix)[::-1]
    size = max(expected[0], np.finfo(float).tiny)
    assert np.abs(values / 10.0**exponent - expected).max() <= 1e-13 * size
    assert vectors.shape == (n, count)
    assert np.abs(vectors.T @ vectors - np.eye(count)).max() < 1e-13 * n
    residual = matrix @ vectors - vectors * expected[:count]
    assert np.abs(residual).max() <= 1e-13 * n * size


def test_orthogonal_mix_keeps_the_gram_matrix_of_the_columns(rng):
    rows = [rng.standard_normal((3, 20)), rng.standard_normal((2, 20))]
    mix = rng.standard_normal((4, 5))
    squares, orthogonal = orthogonal_mix(stacked_gram(rows), mix)
    before, after = mix @ np.vstack(rows), orthogonal @ np.vstack(rows)
    np.testing.assert_allclose(after.T @ after, before.T @ before, atol=1e-12)
    np.testing.assert_allclose(after @ after.T, np.diag(squares), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_column_norms_survive_extreme_scales(scale):
    vectors = np.array([[3.0, 0.0], [4.0, 0.0]]) * scale
    np.testing.assert_allclose(column_norms(vectors), [5.0 * scale, 0.0])
