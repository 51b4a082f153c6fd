"""The sketch that keeps account of what it lost, and where."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass import RidgeStream
from ridgepass.blocks import Block
from ridgepass.sketch import AnchoredFrequentDirections, IncrementalSVD
from streams import make_rows, streams


def fed(A, size, kind=AnchoredFrequentDirections):
    sketch = kind(A.shape[1], size, A.dtype)
    for start in range(0, len(A), sketch.block_rows):
        sketch.absorb(Block.of(A[start : start + sketch.block_rows]))
    return sketch


def assert_accounted(sketch, A):
    """0 ⪯ AᵀA − BᵀB ⪯ Δ·I, and so is what the sketch believes of it."""
    wide = A.astype(float)
    gap, mass = wide.T @ wide - sketch.rows.T.astype(float) @ sketch.rows, np.square(wide).sum()
    tolerance = 1e-11 * mass
    found = np.linalg.eigvalsh(gap)
    assert found.min() >= -tolerance
    assert found.max() <= sketch.removed + tolerance
    believed = np.linalg.eigvalsh(sketch.losses)
    assert believed.min() >= -tolerance
    assert believed.max() <= sketch.removed + tolerance
    assert 0 <= sketch.finished().tail <= sketch.removed
    assert sketch.finished().mass == pytest.approx(mass, rel=1e-10)
    return gap


@given(stream=streams(scales=[1.0]))
def test_the_theorem_and_the_account_hold(stream):
    assert_accounted(fed(stream.A, stream.sketch_size), stream.A)


@given(stream=streams(scales=[1.0], min_rows=40), size=st.integers(2, 12))
def test_they_hold_for_merged_sketches(stream, size):
    half = len(stream.A) // 2
    left, right = fed(stream.A[:half], stream.sketch_size), fed(stream.A[half:], size)
    left.merge(right)
    assert_accounted(left, stream.A)


def test_only_the_tail_is_shrunk():
    A = np.random.default_rng(0).standard_normal((10, 40))
    kept, shrunk = fed(A[:10], 5, IncrementalSVD), fed(A, 5)
    # Two blocks of five fill ten directions, of which five are kept and one is shrunk.
    np.testing.assert_allclose(shrunk.squares[:4], kept.squares[:4], rtol=1e-12)
    assert shrunk.squares[4] == pytest.approx(kept.squares[4] - shrunk.removed)
    assert shrunk.removed == pytest.approx(kept.removed)


@pytest.mark.parametrize("size", [5, 10, 20])
def test_after_one_shrink_the_account_is_exact(size):
    A = make_rows(np.random.default_rng(1), 2 * size, 60, "decaying")
    sketch = fed(A, size)
    gap = assert_accounted(sketch, A)
    V = sketch.rows / np.sqrt(sketch.squares)[:, None]
    np.testing.assert_allclose(V @ gap @ V.T, sketch.losses, atol=1e-10)
    assert np.trace(sketch.losses) > 0


def test_the_account_is_better_than_none_and_than_a_constant():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((2000, 60)) * np.exp(-np.arange(60) / 15)
    sketch = fed(A, 12)
    V = sketch.rows / np.sqrt(sketch.squares)[:, None]
    inside = V @ (A.T @ A - sketch.rows.T @ sketch.rows) @ V.T
    by_account = np.linalg.norm(inside - sketch.losses)
    assert by_account <= 0.9 * np.linalg.norm(inside)
    assert by_account <= 0.9 * np.linalg.norm(inside - sketch.removed / 2 * np.eye(12))


@given(seed=st.integers(0, 999), size=st.integers(5, 20))
@settings(max_examples=20)
def test_the_loss_is_within_desai_ghashami_and_phillips(seed, size):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((300, 40)) * np.exp(-np.arange(40) / rng.integers(2, 20))
    squares = np.square(np.linalg.svd(A)[1])
    sketch, n_shrunk = fed(A, size), max(1, round(0.2 * size))
    bound = min(squares[k:].sum() / (n_shrunk - k) for k in range(n_shrunk))
    assert sketch.removed <= bound * (1 + 1e-9)


def k_hat(solver, alpha):
    eye, tail = np.eye(len(solver.cross)), solver.tail(alpha)
    more = (solver.values - tail)[:, None] * solver.project(eye)
    return solver.lift(more) + tail * eye


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("standardize", [False, True])
@given(stream=streams(scales=[1.0], max_rows=300))
@settings(max_examples=40)
def test_the_covariance_bound_is_one(dtype, standardize, stream):
    A = (stream.A * np.geomspace(1, 30, len(stream.A))[:, None]).astype(dtype)
    model = RidgeStream("anchored", sketch_size=stream.sketch_size, standardize=standardize)
    model.update(A, stream.b)
    Z = A.astype(float) if model.scale is None else A / model.scale
    gap = np.linalg.norm(Z.T @ Z - k_hat(model._query().solver, 1.0), 2)
    rounding = 1e-12 * np.square(Z).sum()
    assert gap <= model.certificate(1.0).covariance_bound + rounding


def test_bytes_count_the_account():
    plain, kept = (
        IncrementalSVD(30, 6, np.dtype("f4")),
        AnchoredFrequentDirections(30, 6, np.dtype("f4")),
    )
    assert kept.nbytes - plain.nbytes == 8 * 36
