import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepass.intake import Batch, DenseIntake
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
