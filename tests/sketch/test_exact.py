import numpy as np

from ridgepass.blocks import Block
from ridgepass.sketch import ExactCovariance


def test_the_lower_triangle_is_the_sum_of_all_blocks():
    A = np.random.default_rng(0).standard_normal((40, 9))
    sketch, other = (ExactCovariance(9, 2, np.dtype("float32")) for _ in range(2))
    sketch.absorb(Block.of(A[:10]))
    other.absorb(Block.of(A[10:20]))
    other.absorb(Block.of(A[20:30]))
    sketch.merge(other)
    found = sketch.covariance(Block.of(A[30:]))
    np.testing.assert_allclose(np.tril(found.matrix), np.tril(A[:30].T @ A[:30]), rtol=1e-12)
    np.testing.assert_array_equal(found.pending, A[30:])
    assert sketch.dtype == np.float64
    assert 0 < found.error < 1e-11 * np.trace(A.T @ A)
