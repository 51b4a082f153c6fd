"""An anchor knows AᵀA's action on itself: exactly between moves, and within its account after."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass import RidgeStream
from ridgepass.anchor import Anchor
from ridgepass.blocks import Block
from streams import make_rows


def placed(rng, d, n_targets):
    anchor = Anchor.empty(d, n_targets, 4)
    anchor.point[:] = rng.standard_normal((d, n_targets))
    return anchor


def blocks(rng, d):
    """Rows as they are, weighted, centred and with a row for the distance of means."""
    rows, targets, factors = rng.standard_normal((6, d)), np.zeros((6, 1)), rng.random(6)
    yield Block(rows, targets)
    yield Block(rows.astype("float32"), targets)
    yield Block(rows, targets, factors)
    mean, shift = rows.mean(axis=0)[None], rng.standard_normal((1, d))
    yield Block(rows, np.zeros((7, 1)), factors, mean, shift, 1)


def test_before_it_is_placed_nothing_changes_it():
    anchor = Anchor.empty(5, 2, 4)
    anchor.follow(Block(np.ones((3, 5)), np.zeros((3, 2))))
    assert not anchor.placed
    assert not anchor.image.any()
    assert anchor.due == 8


@pytest.mark.parametrize("n_targets", [1, 3, 5])
def test_it_follows_every_kind_of_block(n_targets):
    rng = np.random.default_rng(0)
    anchor, K = placed(rng, 5, n_targets), np.zeros((5, 5))
    for block in blocks(rng, 5):
        before = anchor.image.copy()
        ahead = anchor.including(block)
        np.testing.assert_array_equal(anchor.image, before)
        anchor.follow(block)
        np.testing.assert_array_equal(anchor.image, ahead.image)
        K += block.dense().T @ block.dense()
        np.testing.assert_allclose(anchor.image, K @ anchor.point, rtol=1e-10, atol=1e-12)


def test_an_image_at_hand_is_taken_as_it_is():
    anchor = placed(np.random.default_rng(1), 3, 1)
    anchor.follow(Block(np.ones((2, 3)), np.zeros((2, 1))), np.full((3, 1), 7.0))
    np.testing.assert_array_equal(anchor.image, np.full((3, 1), 7.0))


def test_moves_are_a_tenth_more_rows_apart():
    anchor = Anchor.empty(2, 1, 4)
    for n_rows, due in ((8, 9), (10, 12), (100, 111), (1000, 1101)):
        anchor.postpone(n_rows)
        assert anchor.due == due


def true_gaps(model, A, point, image):
    """‖h − AᵀAw‖ in extended precision, over the rows in finished blocks."""
    wide = A[: model._state.moments.n_rows].astype(np.longdouble)
    return np.linalg.norm((image - wide.T @ (wide @ point)).astype(float), axis=0), wide


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(data=st.data(), seed=st.integers(0, 999))
@settings(max_examples=40)
def test_its_account_covers_what_moves_and_merges_guessed(dtype, data, seed):
    rng = np.random.default_rng(seed)
    d, size = data.draw(st.integers(1, 20)), data.draw(st.integers(2, 8))
    kind = data.draw(st.sampled_from(["flat", "decaying", "spiked", "repeated", "low rank"]))
    A = (
        make_rows(rng, 200, d, kind)
        * np.geomspace(1, data.draw(st.sampled_from([1, 30])), 200)[:, None]
    )
    A, b = A.astype(dtype), rng.standard_normal((200, 2)) * [1e-9, 1e9]
    model = RidgeStream("anchored", sketch_size=size)
    if data.draw(st.booleans()):
        half = 16 * size if 16 * size < 200 else 8 * size  # whole blocks
        model.update(A[:half], b[:half])
        model.merge(RidgeStream("anchored", sketch_size=size).update(A[half:], b[half:]))
    else:
        model.update(A, b)
    anchor = model._state.anchor
    gaps, wide = true_gaps(model, A, anchor.point, anchor.image)
    norms = np.linalg.norm(anchor.point, axis=0)
    rounding = 300 * np.finfo(float).eps * float(np.square(wide).sum())
    assert (gaps <= anchor.error + rounding * norms).all()
    np.testing.assert_allclose(norms[norms > 0], 1.0)


def test_units_change_under_it_without_changing_its_predictions():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((300, 6)) * np.geomspace(1e-3, 1e3, 6)
    model = RidgeStream("anchored", sketch_size=4, standardize=True, fit_intercept=True)
    model.update(A, A @ np.geomspace(1e3, 1e-3, 6))
    solver = model._query().solver
    Z = (A - A.mean(axis=0)) / model.scale
    gap = np.linalg.norm(solver.anchor.image - Z.T @ (Z @ solver.anchor.point), axis=0)
    assert (gap <= solver.anchor.error + 1e-9 * np.square(Z).sum()).all()
    assert (solver.anchor.error <= np.square(Z).sum()).all()


def test_bytes_are_those_of_the_arrays():
    assert Anchor.empty(10, 3, 4).nbytes == 8 * (2 * 10 * 3 + 3)
