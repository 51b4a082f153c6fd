import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paper_reading
from ridgepass import RidgeStream
from ridgepass.blocks import Block
from ridgepass.sketch import SKETCHES
from streams import FD_FAMILY, norm, streams

F64 = np.dtype("float64")


def feed(method, A, sketch_size, dtype=F64):
    """Sketch all rows of A, in blocks of ℓ; the last may be short."""
    sketch = SKETCHES[method](A.shape[1], sketch_size, np.dtype(dtype), 0)
    for start in range(0, len(A), sketch_size):
        sketch.absorb(Block.of(np.ascontiguousarray(A[start : start + sketch_size], dtype)))
    return sketch


def eigenvalues(matrix, scale):
    """Eigenvalues in units of scale², where LAPACK and the eye are at ease."""
    return np.linalg.eigvalsh(matrix / scale / scale)


@pytest.mark.parametrize("method", FD_FAMILY)
@given(stream=streams())
def test_agrees_with_the_stacked_svd_reading_of_the_paper(method, stream):
    A, size = stream.A, stream.sketch_size
    ours, paper = feed(method, A, size), paper_reading.fd(A / stream.scale, size, method)
    covariance = ours.rows.T @ ours.rows / stream.scale / stream.scale
    top = max(paper.sigma.max() ** 2, np.finfo(float).tiny)
    expected = paper.sketch.T @ paper.sketch
    assert np.abs(covariance - expected).max() <= 1e-8 * top
    assert abs(ours.removed / stream.scale / stream.scale - paper.delta_sum) <= 1e-8 * top
    shift = ours.covariance(Block.of(A[:0])).shift / stream.scale / stream.scale
    assert abs(shift - paper.alpha_shift) <= 1e-8 * top


@pytest.mark.parametrize("method", ["fd", "rfd"])
@pytest.mark.parametrize("spectrum", ["gap", "smooth"])
def test_solutions_agree_with_the_paper_to_1e_8(method, spectrum):
    rng = np.random.default_rng(3)
    n, d, size = 700, 120, 20
    decay = np.exp(-np.arange(d) / 15) if spectrum == "smooth" else np.r_[np.ones(9), [0.01] * 111]
    A = rng.standard_normal((n, d)) * decay
    b = A @ rng.standard_normal(d) + rng.standard_normal(n)
    stream = RidgeStream(method, sketch_size=size).update(A, b)
    paper = paper_reading.fd(A, size, method)
    for alpha in (0.1, 10.0, 1000.0):
        expected = paper_reading.solve(paper, A.T @ b, alpha)
        assert norm(stream.solve(alpha) - expected) <= 1e-8 * norm(expected)


@pytest.mark.parametrize("method", FD_FAMILY)
@given(stream=streams())
def test_equations_1_and_2_hold_with_the_known_delta(method, stream):
    A, scale = stream.A, stream.scale
    sketch = feed(method, A, stream.sketch_size)
    found = sketch.covariance(Block.of(A[:0]))
    gap = (A / scale).T @ (A / scale) - (sketch.rows / scale).T @ (sketch.rows / scale)
    slack = sketch.rounding.bound / scale / scale
    reference = 1e-13 * norm(A / scale) ** 2  # rounding of the check itself
    values = eigenvalues(gap, 1.0)
    assert values[0] >= -slack - reference
    assert values[-1] <= sketch.removed / scale / scale + slack + reference
    shifted = eigenvalues(gap - found.shift / scale / scale * np.eye(len(gap)), 1.0)
    assert np.abs(shifted).max() <= found.error / scale / scale + reference


@pytest.mark.parametrize("method", ["fd", "rfd"])
@given(stream=streams(spectra=["flat", "decaying", "low rank", "spiked"]))
def test_delta_is_within_the_bound_known_in_advance(method, stream):
    A, size = stream.A / stream.scale, stream.sketch_size
    squares = np.square(np.linalg.svd(A, compute_uv=False))
    tails = np.append(np.cumsum(squares[::-1])[::-1], [0.0] * (size + 1))[:size]
    bound = min(tail / (size - k) for k, tail in enumerate(tails))
    removed = feed(method, stream.A, size).removed / stream.scale / stream.scale
    assert removed <= bound + 1e-13 * squares.sum()


@pytest.mark.parametrize("method", FD_FAMILY)
@given(stream=streams())
def test_kept_and_lost_make_up_the_mass(method, stream):
    sketch = feed(method, stream.A, stream.sketch_size)
    mass = norm(stream.A) ** 2
    pending = stream.A[: len(stream.A) // 2]
    assert sketch.covariance(Block.of(stream.A[:0])).mass == pytest.approx(mass, rel=1e-10)
    both = mass + norm(pending) ** 2
    assert sketch.covariance(Block.of(pending)).mass == pytest.approx(both, rel=1e-10)


@pytest.mark.parametrize("method", FD_FAMILY)
@given(stream=streams(), cut=st.integers(0, 80))
def test_blocks_taken_together_are_blocks_taken_in_turn(method, stream, cut):
    together, size = feed(method, stream.A[:0], stream.sketch_size), stream.sketch_size
    cut = min(cut // size * size, len(stream.A))
    for part in (stream.A[:cut], stream.A[cut:]):
        if len(part):
            together.absorb(Block.of(part))
    apart, scale = feed(method, stream.A, size), stream.scale
    top = max(norm(stream.A / scale) ** 2, np.finfo(float).tiny)
    gap = (together.rows / scale).T @ (together.rows / scale)
    gap -= (apart.rows / scale).T @ (apart.rows / scale)
    assert np.abs(gap).max() <= 1e-11 * top
    assert abs(together.removed - apart.removed) / scale / scale <= 1e-11 * top


@pytest.mark.parametrize("method", FD_FAMILY)
@given(stream=streams())
def test_rows_stay_orthogonal_and_squares_non_negative(method, stream):
    sketch = feed(method, stream.A, stream.sketch_size)
    rows = sketch.rows / stream.scale
    top = max(norm(rows) ** 2, np.finfo(float).tiny)
    assert (sketch.squares >= 0).all()
    assert np.isfinite(sketch.rows).all()
    defect = rows @ rows.T - np.diag(sketch.squares / stream.scale / stream.scale)
    assert np.abs(defect).max() <= 1e-12 * top


@pytest.mark.parametrize("method", FD_FAMILY)
@given(stream=streams(), seed=st.integers(0, 99))
def test_any_tree_of_merges_keeps_the_guarantee(method, stream, seed):
    rng = np.random.default_rng(seed)
    A, scale = stream.A, stream.scale
    sizes = rng.integers(2, 13, size=5)
    cuts = np.sort(rng.integers(0, len(A) + 1, size=4))
    parts = np.split(A, cuts)
    sketches = [feed(method, part, size) for part, size in zip(parts, sizes, strict=True)]
    while len(sketches) > 1:
        i, j = rng.permutation(len(sketches))[:2]
        sketches[i].merge(sketches[j])
        del sketches[j]
    (merged,) = sketches
    gap = (A / scale).T @ (A / scale) - (merged.rows / scale).T @ (merged.rows / scale)
    slack = merged.rounding.bound / scale / scale + 1e-13 * norm(A / scale) ** 2
    values = eigenvalues(gap, 1.0)
    assert values[0] >= -slack
    assert values[-1] <= merged.removed / scale / scale + slack
    if method != "isvd":
        squares = np.square(np.linalg.svd(A / scale, compute_uv=False))
        smallest = int(sizes.min())
        tails = np.append(np.cumsum(squares[::-1])[::-1], [0.0] * (smallest + 1))[:smallest]
        bound = min(tail / (smallest - k) for k, tail in enumerate(tails))
        assert merged.removed / scale / scale <= bound + slack


def test_merging_into_an_empty_sketch_loses_nothing():
    A = np.random.default_rng(0).standard_normal((40, 15))
    full, empty = feed("rfd", A, 6), feed("rfd", A[:0], 9)
    empty.merge(full)
    np.testing.assert_allclose(empty.rows.T @ empty.rows, full.rows.T @ full.rows, atol=1e-12)
    assert full.removed <= empty.removed <= full.removed * (1 + 1e-14)
    full.merge(feed("rfd", A[:0], 9))
    np.testing.assert_allclose(empty.rows.T @ empty.rows, full.rows.T @ full.rows, atol=1e-12)


def test_merging_adds_up_all_accounts():
    A = np.random.default_rng(1).standard_normal((90, 15))
    left, right = feed("fd", A[:40], 6), feed("fd", A[40:], 6)
    removed, lost = left.removed + right.removed, left.lost + right.lost
    stored = left.rounding.stored + right.rounding.stored
    summed = np.hypot(left.rounding.summed, right.rounding.summed)
    left.merge(right)
    assert left.removed > removed
    assert left.lost > lost
    assert left.rounding.stored > stored
    assert left.rounding.summed > summed


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["random", "repeated", "low rank"])
def test_a_hundred_thousand_shrinks_do_not_drift(kind, dtype):
    """10⁵ shrinks: the exact covariance stays within Δ and the allowance for rounding."""
    rng = np.random.default_rng(5)
    size, d, n_kinds, shrinks = 4, 12, 50, 100_000
    basis = rng.standard_normal((2, d))
    blocks = rng.standard_normal((n_kinds, size, d)) * np.exp(-np.arange(d) / 2)
    if kind == "low rank":
        blocks = rng.standard_normal((n_kinds, size, 2)) @ basis
    if kind == "repeated":
        blocks = blocks[:1]
    blocks = blocks.astype(dtype)
    sketch = SKETCHES["fd"](d, size, np.dtype(dtype), 0)
    for block in itertools.islice(itertools.cycle(blocks), shrinks):
        sketch.absorb(Block.of(block))
    wide = blocks.astype(np.longdouble)
    exact = np.einsum("kni,knj->ij", wide, wide) * (shrinks // len(blocks))
    gap = (exact - sketch.rows.T.astype(np.longdouble) @ sketch.rows).astype(float)
    values = np.linalg.eigvalsh(gap)
    slack = sketch.rounding.bound
    top = float(np.trace(exact))
    assert slack <= top * (0.05 if dtype == "float32" else 1e-10)
    assert values[0] >= -slack
    assert values[-1] <= sketch.removed + slack
    if kind != "random":  # the rank fits, so nothing but rounding may be lost
        assert np.abs(values).max() <= top * (1e-3 if dtype == "float32" else 1e-11)
