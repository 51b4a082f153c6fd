"""Blocks agree with the matrices that they stand for, written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ridgepass.blocks import Block


@st.composite
def blocks(draw):
    """A block and its rows written out."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    n, d = draw(st.integers(0, 6)), draw(st.integers(1, 7))
    rows = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    mean, shift = rng.standard_normal((1, d)), rng.standard_normal((1, d))
    factors = rng.random(n) if draw(st.booleans()) else None
    mean = mean if draw(st.booleans()) else None
    shift = shift if draw(st.booleans()) else None
    dtype = draw(st.sampled_from(["float32", "float64"]))
    stored = rows.astype(dtype)
    explicit = stored.astype(float) if mean is None else stored - mean
    if factors is not None:
        explicit = factors[:, None] * explicit
    if shift is not None:
        explicit = np.vstack([explicit, shift])
    targets = rng.standard_normal((len(explicit), 2))
    if draw(st.booleans()):
        stored = sparse.csc_array(stored)
    n_shifts = int(shift is not None)
    return Block(stored, targets, factors, mean, shift, n_shifts), explicit


def stacked(block):
    parts = [part.toarray() if sparse.issparse(part) else part for part in block.parts]
    return np.vstack(parts).astype(float)


@given(case=blocks())
@settings(max_examples=40)
def test_a_block_is_the_rows_it_stands_for(case):
    block, explicit = case
    assert len(block) == len(explicit)
    assert block.n_rows == block.rows.shape[0]
    np.testing.assert_allclose(block.dense(), explicit, atol=1e-14)
    np.testing.assert_allclose(block.cross(), explicit.T @ block.targets, atol=1e-13)
    assert block.dense().dtype == block.cross().dtype == np.float64


@given(case=blocks(), seed=st.integers(0, 99))
@settings(max_examples=40)
def test_folding_and_unfolding_carry_products_over(case, seed):
    block, explicit = case
    rng = np.random.default_rng(seed)
    vectors, mix = rng.standard_normal((explicit.shape[1], 3)), rng.standard_normal((4, len(block)))
    np.testing.assert_allclose(block.fold(stacked(block) @ vectors), explicit @ vectors, atol=1e-13)
    np.testing.assert_allclose(block.unfold(mix) @ stacked(block), mix @ explicit, atol=1e-13)
    # One is the other's transpose, which is what makes a folded Gram matrix that of the rows.
    gram = block.fold(block.fold(stacked(block) @ stacked(block).T).T)
    np.testing.assert_allclose(gram, explicit @ explicit.T, atol=1e-12)


@pytest.mark.parametrize("rows", [np.eye(3), sparse.csc_array(np.eye(3))])
def test_rows_as_they_are_need_no_folding(rows):
    block = Block.of(rows)
    assert not block.is_implicit
    assert block.targets.shape == (3, 0)
    products = np.ones((3, 2))
    assert block.fold(products) is products
    np.testing.assert_array_equal(block.dense(), np.eye(3))


def test_plain_rows_written_out_are_a_view():
    rows = np.ones((3, 2))
    assert np.shares_memory(Block.of(rows).dense(), rows)


@given(case=blocks(), seed=st.integers(0, 999))
@settings(max_examples=100)
def test_sums_over_rows_are_those_of_the_rows_written_out(case, seed):
    block, explicit = case
    rng = np.random.default_rng(seed)
    weights, out = (
        rng.standard_normal((len(explicit), 3)),
        rng.standard_normal((len(explicit.T), 3)),
    )
    expected = out + explicit.T @ weights
    block.add_lift(out, weights)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    squares = np.square(explicit).sum(axis=0)
    np.testing.assert_allclose(block.column_squares(), squares, rtol=1e-5, atol=1e-5)


@given(case=blocks())
@settings(max_examples=50)
def test_a_block_in_other_units_is_its_rows_in_these(case):
    block, explicit = case
    ratio = np.arange(1.0, 1.0 + explicit.shape[1])
    np.testing.assert_allclose(block.in_units(ratio).dense(), explicit * ratio, atol=1e-5)
