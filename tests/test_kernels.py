import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from ridgepass import kernels
from ridgepass.kernels import (
    add_mix,
    apply,
    apply_transposed,
    column_norms,
    gram,
    mix_into,
    one_blas_thread,
    orthogonal_mix,
    stacked_gram,
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


def test_one_blas_thread_puts_back_what_it_found():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before
