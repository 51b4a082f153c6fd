"""Sparse blocks stand for the rows that dense ones hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ridgepass.intake import Batch, DenseIntake, SparseIntake
from ridgepass.scaling import Scaling
from streams import split_points


def deviations(buffer):
    """What a query divides columns by."""
    squares = buffer.scaling.squares + buffer.waiting_squares()
    return buffer.scaling.deviations(squares, buffer.total_weight(), buffer.means()[0])[0]


def sparse_rows(seed, n, d):
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((n, d)) + 5) * (rng.random((n, d)) < rng.choice([0.3, 1.0], d))
    return rows, rng.standard_normal((n, 2)), rng.random(n) + 0.1


def intake(kind, block_rows, d, *, centre, scales):
    scaling = Scaling(d) if scales else None
    return kind(block_rows, d, 2, np.dtype("float64"), centre=centre, scaling=scaling)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize("centre", [False, True])
@given(data=st.data(), seed=st.integers(0, 999), n=st.integers(1, 40), size=st.integers(1, 9))
@settings(max_examples=25)
def test_sparse_and_dense_blocks_are_the_same_rows(centre, scales, weighted, data, seed, n, size):
    rows, targets, weights = sparse_rows(seed, n, 4)
    left = intake(SparseIntake, size, 4, centre=centre, scales=scales)
    right = intake(DenseIntake, size, 4, centre=centre, scales=scales)
    for buffer in (left, right):
        buffer.start_at(rows[0], targets[0])
    for start, stop in itertools.pairwise(split_points(data.draw, n)):
        here = slice(start, stop)
        by_row = weights[here] if weighted else None
        ours = left.feed(Batch(sparse.csr_array(rows[here]), targets[here], by_row))
        theirs = right.feed(Batch(rows[here], targets[here], by_row))
        for a, b in zip(ours, theirs, strict=True):
            assert_same_block(a, b)
        assert_same_block(left.pending(), right.pending())
        for a, b in zip(left.means(), right.means(), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-13)
        if scales:
            np.testing.assert_allclose(deviations(left), deviations(right), rtol=1e-10)
            np.testing.assert_allclose(left.units, right.units, rtol=1e-10)
    assert left.total_weight() == pytest.approx(weights.sum() if weighted else n)


def assert_same_block(left, right):
    assert len(left) == len(right)
    assert left.n_shifts == right.n_shifts
    np.testing.assert_allclose(left.dense(), right.dense(), atol=1e-11)
    np.testing.assert_allclose(left.targets, right.targets, atol=1e-12)
    assert (left.rescaling is None) == (right.rescaling is None)
    if left.rescaling is not None:
        for a, b in zip(left.rescaling, right.rescaling, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


def test_rows_are_kept_as_given_until_their_block_is_full():
    rows, targets, _ = sparse_rows(0, 7, 4)
    buffer = intake(SparseIntake, 10, 4, centre=True, scales=True)
    buffer.start_at(rows[0], targets[0])
    given_rows = sparse.csr_array(rows)
    assert list(buffer.feed(Batch(given_rows, targets))) == []
    buffer.pending()
    np.testing.assert_array_equal(buffer.waiting().rows.toarray(), rows)
    given_rows.data[:] = 99  # the caller's arrays are the caller's
    np.testing.assert_array_equal(buffer.waiting().rows.toarray(), rows)


def test_unsorted_duplicate_and_stored_zero_entries_are_put_in_order():
    data, columns = np.array([1.0, 0.0, 2.0, 3.0, -3.0, 5.0]), np.array([3, 0, 3, 1, 1, 2])
    messy = sparse.csr_array((data, columns, np.array([0, 3, 6])), shape=(2, 4))
    buffer = intake(SparseIntake, 10, 4, centre=False, scales=False)
    list(buffer.feed(Batch(messy, np.ones((2, 2)))))
    waiting = buffer.waiting().rows
    np.testing.assert_array_equal(waiting.toarray(), [[0, 0, 0, 3], [0, 0, 5, 0]])
    assert waiting.nnz == 2
    assert messy.nnz == 6


def test_a_column_without_zeros_is_centred_in_place():
    rng = np.random.default_rng(0)
    rows = np.c_[1e6 + rng.standard_normal(8), rng.standard_normal(8) * (rng.random(8) < 0.5)]
    buffer = SparseIntake(8, 2, 1, np.dtype("float64"), centre=True)
    buffer.start_at(rows[0], np.zeros(1))
    (block,) = buffer.feed(Batch(sparse.csr_array(rows), np.zeros((8, 1))))
    assert block.mean[0, 0] == 0
    assert np.abs(block.rows.toarray()[:, 0]).max() < 10
    centred = rows.astype(np.longdouble) - rows.astype(np.longdouble).mean(axis=0)
    np.testing.assert_allclose(block.dense(), centred.astype(float), atol=1e-14)


def test_buffers_are_counted():
    rows, targets, _ = sparse_rows(0, 7, 4)
    buffer = intake(SparseIntake, 10, 4, centre=False, scales=False)
    empty = buffer.nbytes
    list(buffer.feed(Batch(sparse.csr_array(rows), targets)))
    assert buffer.nbytes >= empty + 8 * np.count_nonzero(rows)
