import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass.intake import Batch, DenseIntake
from ridgepass.scaling import Scaling
from streams import split_points


@given(data=st.data(), n_rows=st.integers(0, 40), block_rows=st.integers(1, 9))
def test_blocks_do_not_depend_on_batches(data, n_rows, block_rows):
    rows = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    targets = np.arange(1.0 * n_rows).reshape(n_rows, 1)
    cuts = split_points(data.draw, n_rows)
    buffer = DenseIntake(block_rows, 2, 1, np.dtype("float64"))
    blocks = [
        (block.rows.copy(), block.targets.copy())
        for start, stop in itertools.pairwise(cuts)
        for block in buffer.feed(Batch(rows[start:stop], targets[start:stop]))
    ]
    whole = n_rows // block_rows * block_rows
    assert [len(block) for block, _ in blocks] == [block_rows] * (n_rows // block_rows)
    if blocks:
        np.testing.assert_array_equal(np.vstack([block for block, _ in blocks]), rows[:whole])
        np.testing.assert_array_equal(np.vstack([t for _, t in blocks]), targets[:whole])
    np.testing.assert_array_equal(buffer.waiting().rows, rows[whole:])
    np.testing.assert_array_equal(buffer.waiting().targets, targets[whole:])


@pytest.mark.parametrize(
    ("rows", "copied"),
    [
        (np.ones((6, 4)), False),
        (np.ones((6, 4), order="F"), True),
        (np.ones((6, 8))[:, ::2], True),
        (np.ones((6, 4), "float32"), True),
    ],
)
def test_whole_blocks_are_views_unless_they_need_conversion(rows, copied):
    buffer = DenseIntake(3, 4, 1, np.dtype("float64"))
    for block in buffer.feed(Batch(rows, np.ones((6, 1)))):
        assert np.shares_memory(block.rows, rows) != copied
        assert block.rows.dtype == np.float64
        assert block.rows.flags.c_contiguous


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@given(data=st.data(), seed=st.integers(0, 999), n_rows=st.integers(1, 40))
@settings(max_examples=25)
def test_blocks_hold_all_squares_about_the_common_mean(dtype, scales, weighted, data, seed, n_rows):
    rng = np.random.default_rng(seed)
    rows = (1000 + rng.standard_normal((n_rows, 3))).astype(dtype)
    targets, weights = rng.standard_normal((n_rows, 1)) - 50, rng.random(n_rows) + 0.1
    scaling = Scaling(3) if scales else None
    buffer = DenseIntake(7, 3, 1, np.dtype(dtype), centre=True, scaling=scaling)
    buffer.start_at(rows[0], targets[0])
    gram, cross = np.zeros((3, 3)), np.zeros((3, 1))
    for start, stop in itertools.pairwise(split_points(data.draw, n_rows)):
        by_row = weights[start:stop] if weighted else None
        for block in buffer.feed(Batch(rows[start:stop], targets[start:stop], by_row)):
            ratio = np.ones(3) if block.rescaling is None else block.rescaling.ratio
            gram *= np.outer(ratio, ratio)
            cross *= ratio[:, None]
            gram += block.dense().T @ block.dense()
            cross += block.cross()
    pending = buffer.pending()
    gram, cross = gram + pending.dense().T @ pending.dense(), cross + pending.cross()
    of_rows = weights if weighted else np.ones(n_rows)
    units = np.broadcast_to(buffer.units, 3)
    centred = (rows - np.average(rows.astype(float), axis=0, weights=of_rows)) / units
    unit = np.finfo(dtype).eps
    size = 1 + np.abs(gram).max()
    np.testing.assert_allclose(gram, (centred.T * of_rows) @ centred, atol=1e3 * unit * size)
    expected = (centred.T * of_rows) @ (targets - np.average(targets, axis=0, weights=of_rows))
    np.testing.assert_allclose(cross, expected, atol=1e3 * unit * size)


@pytest.mark.parametrize("centre", [False, True])
def test_the_pending_block_is_what_a_full_one_would_be(centre):
    rng = np.random.default_rng(0)
    rows, targets, weights = rng.standard_normal((6, 3)), np.ones((6, 1)), rng.random(6)
    waits = DenseIntake(4, 3, 1, np.dtype("float64"), centre=centre)
    full = DenseIntake(2, 3, 1, np.dtype("float64"), centre=centre)
    for buffer in (waits, full):
        buffer.start_at(rows[0], targets[0])
    *_, last = full.feed(Batch(rows[:2], targets[:2], weights[:2]))
    list(waits.feed(Batch(rows[:2], targets[:2], weights[:2])))
    np.testing.assert_allclose(waits.pending().dense(), last.dense(), atol=1e-14)
    np.testing.assert_array_equal(waits.waiting().targets, targets[:2] - targets[0] * centre)


def test_rows_that_wait_come_back_as_they_were():
    rng = np.random.default_rng(1)
    rows, targets = 3 + rng.standard_normal((13, 4)), rng.standard_normal((13, 1))
    buffer = DenseIntake(5, 4, 1, np.dtype("float64"), centre=True, scaling=Scaling(4))
    buffer.start_at(rows[0], targets[0])
    list(buffer.feed(Batch(rows, targets)))
    batch = buffer.waiting()
    np.testing.assert_allclose(batch.rows + batch.origin, rows[10:], atol=1e-14)
    np.testing.assert_allclose(batch.targets + batch.target_origin, targets[10:], atol=1e-14)
