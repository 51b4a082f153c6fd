import numpy as np
import pytest

from ridgepass.blocks import Block
from ridgepass.moments import Moments


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments_are_float64_sums(dtype):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((90, 2000)).astype(dtype), rng.standard_normal((90, 3))
    moments = Moments.empty(2000, 3)
    for start in range(0, 90, 30):
        moments.update(Block(A[start : start + 30], b[start : start + 30]))
    wide = A.astype(np.longdouble)
    assert moments.n_rows == 90
    assert moments.n_blocks == 3
    error = np.linalg.norm((moments.cross - wide.T @ b).astype(float), axis=0)
    assert (error <= moments.cross_rounding(float(np.square(wide).sum()))).all()
    np.testing.assert_allclose(moments.target_mass, np.square(b).sum(axis=0), rtol=1e-13)


def test_merging_adds_and_including_leaves_the_original_alone():
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((20, 5)), rng.standard_normal((20, 2))
    left, right, both = (Moments.empty(5, 2) for _ in range(3))
    left.update(Block(A[:8], b[:8]))
    right.update(Block(A[8:], b[8:]))
    both.update(Block(A, b))
    kept = left.cross.copy()
    grown = left.including(Block(A[8:], b[8:]))
    np.testing.assert_array_equal(left.cross, kept)
    assert left.n_rows == 8
    left.merge(right)
    for result in (left, grown):
        assert result.n_rows == both.n_rows
        np.testing.assert_allclose(result.cross, both.cross, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(result.target_mass, both.target_mass)
