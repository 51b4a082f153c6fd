"""Blocks agree with the matrices that they stand for, written out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ridgepass.blocks import Block


@st.composite
def blocks(draw, min_rows=0, max_rows=6):
    """A block and its rows written out."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    n, d = draw(st.integers(min_rows, max_rows)), draw(st.integers(1, 7))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    rows = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)).astype(dtype)
    factors = 0.1 + rng.random(n) if draw(st.booleans()) else None
    mean, whole = None, draw(st.booleans())
    if n and draw(st.booleans()):
        mean = rng.standard_normal((1, d))
        if whole:
            mean = np.average(rows.astype(float), 0, None if factors is None else factors**2)[None]
    explicit = rows.astype(float) if mean is None else rows - mean
    if factors is not None:
        explicit = factors[:, None] * explicit
    n_shifts, stored, shift = int(draw(st.booleans())), rows, None
    if n_shifts:
        shift = rng.standard_normal((1, d)).astype(dtype)
        explicit = np.vstack([explicit, shift])
        if draw(st.booleans()):  # it may lie with the rows
            stored, shift = np.vstack([rows, shift]), None
    targets = rng.standard_normal((len(explicit), 2))
    if draw(st.booleans()) and (shift is not None or not n_shifts):
        stored = sparse.csc_array(stored)
    return Block(stored, targets, factors, mean, shift, n_shifts, whole=whole), explicit


def stacked(block):
    parts = [part.toarray() if sparse.issparse(part) else part for part in block.parts]
    return np.vstack(parts).astype(float)


@given(case=blocks())
@settings(max_examples=40)
def test_a_block_is_the_rows_it_stands_for(case):
    block, explicit = case
    assert len(block) == len(explicit)
    assert block.n_rows == len(explicit) - block.n_shifts
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


TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


@given(case=blocks(min_rows=1), seed=st.integers(0, 999), order=st.sampled_from("CF"))
@settings(max_examples=100)
def test_products_and_images_are_those_of_the_rows_written_out(case, seed, order):
    block, explicit = case
    rng, dtype = np.random.default_rng(seed), block.rows.dtype
    points = np.array(rng.standard_normal((3, explicit.shape[1])), dtype, order=order)
    atol = 10 * TOLERANCE[dtype.name]
    products = block.products(points)
    assert products.dtype == dtype
    np.testing.assert_allclose(products, explicit @ points.T, atol=atol)
    for to in (dtype, np.dtype("float64")):  # images of probes are summed up in float64
        out = np.array(rng.standard_normal(points.shape), to, order=order)
        expected = out + points @ explicit.T @ explicit
        block.add_images(out, products)
        assert out.dtype == to
        np.testing.assert_allclose(out, expected, atol=atol)
    # Two looks do not change the block.
    np.testing.assert_allclose(block.dense(), explicit, atol=TOLERANCE[dtype.name])


@pytest.mark.parametrize("density", [0.002, 0.05, 0.5])
@pytest.mark.parametrize("order", ["C", "F"])
def test_images_of_sparse_rows_in_many_columns(density, order):
    # Panels of 256 columns: some without an entry, some with few, some with many.
    rows = sparse.random_array((40, 1500), density=density, format="csc", rng=0)
    points = np.array(np.random.default_rng(1).standard_normal((1025, 1500)), order=order)
    block, out = Block.of(rows), np.zeros_like(points)
    block.add_images(out, block.products(points))
    explicit = rows.toarray()
    np.testing.assert_allclose(out, points @ explicit.T @ explicit, atol=1e-9)


@given(case=blocks())
@settings(max_examples=100)
def test_squares_of_columns_are_those_of_the_rows_written_out(case):
    block, explicit = case
    squares = np.square(explicit).sum(axis=0)
    np.testing.assert_allclose(block.column_squares(), squares, rtol=1e-5, atol=1e-5)
    at_hand = replace(block, squares=np.arange(explicit.shape[1]))
    np.testing.assert_array_equal(at_hand.column_squares(), np.arange(explicit.shape[1]))


def pieces_of(block, n_rows):
    """Parted until nothing is left."""
    pieces, rest = [], block
    while rest is not None:
        first, rest = rest.parted(n_rows)
        pieces.append(first)
    return pieces


@given(case=blocks(max_rows=9), n_rows=st.integers(1, 10), seed=st.integers(0, 999))
@settings(max_examples=150)
def test_parts_are_the_block_cut_into_rows(case, n_rows, seed):
    block, explicit = case
    atol = 10 * TOLERANCE[block.rows.dtype.name]
    pieces = pieces_of(block, n_rows)
    if block.n_rows <= n_rows and len(block):
        assert len(pieces) == 1
        assert pieces[0] is block
    assert [piece.n_rows for piece in pieces[:-1]] == [n_rows] * (len(pieces) - 1)
    assert sum(len(piece) for piece in pieces) == len(block)
    assert sum(piece.n_shifts for piece in pieces) == block.n_shifts
    rows = np.vstack([np.empty((0, explicit.shape[1])), *(piece.dense() for piece in pieces)])
    np.testing.assert_allclose(rows, explicit, atol=atol)
    cross = sum((piece.cross() for piece in pieces), np.zeros((explicit.shape[1], 2)))
    np.testing.assert_allclose(cross, block.cross(), atol=atol)
    squares = sum((piece.column_squares() for piece in pieces), np.zeros(explicit.shape[1]))
    np.testing.assert_allclose(squares, np.square(explicit).sum(axis=0), rtol=1e-5, atol=1e-5)
    points = np.random.default_rng(seed).standard_normal((2, explicit.shape[1]))
    points, out = points.astype(block.rows.dtype), np.zeros((2, explicit.shape[1]))
    for piece in pieces:
        piece.add_images(out, piece.products(points))
    np.testing.assert_allclose(out, points @ explicit.T @ explicit, atol=10 * atol)


def test_parts_of_sparse_rows_are_sparse_and_by_columns():
    rows = sparse.random_array((1000, 30), density=0.1, format="csc", rng=0)
    pieces = pieces_of(Block(rows, np.zeros((1000, 1))), 300)
    assert [piece.rows.shape for piece in pieces] == [(300, 30)] * 3 + [(100, 30)]
    assert {piece.rows.format for piece in pieces} == {"csc"}


def test_what_is_known_of_all_rows_is_not_taken_for_that_of_some():
    rows = np.random.default_rng(0).standard_normal((9, 3))
    whole = Block(rows, np.zeros((9, 1)), mean=rows.mean(axis=0)[None], squares=np.ones(3))
    for piece in pieces_of(whole, 4):
        assert not piece.whole
        assert piece.squares is None


def test_a_lone_row_between_means_is_a_part_too():
    block = Block(np.ones((1, 3)), np.ones((1, 1)), n_shifts=1)
    (piece,) = pieces_of(block, 5)
    np.testing.assert_array_equal(piece.dense(), np.ones((1, 3)))


@given(case=blocks())
@settings(max_examples=50)
def test_a_block_in_other_units_is_its_rows_in_these(case):
    block, explicit = case
    ratio = np.arange(1.0, 1.0 + explicit.shape[1])
    turned = replace(block, squares=np.square(explicit).sum(axis=0)).in_units(ratio)
    np.testing.assert_allclose(turned.dense(), explicit * ratio, atol=1e-5)
    squares = np.square(explicit * ratio).sum(axis=0)
    np.testing.assert_allclose(turned.column_squares(), squares, rtol=1e-4, atol=1e-4)
