"""Images of a moving subspace: exact between turns, and as K̂ has them after one."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from ridgepass import RidgeStream
from ridgepass.blocks import Block
from ridgepass.datasets import Synthetic
from ridgepass.probes import Probes
from ridgepass.sketch import LowRank, TrackedCovariance, tracked
from ridgepass.sketch.tracked import TrackedSubspace, tracked_block, tracked_bytes
from ridgepass.solve import factorise

UNIT = {"float32": 6e-8, "float64": 1.1e-16}
BY_DTYPE = pytest.mark.parametrize("dtype", UNIT)
N_PROBES = 10


def make(n_features, size, dtype="float64", probes=N_PROBES, seed=0, **options):
    drawn = Probes.draw(probes, n_features, np.dtype(dtype), seed) if probes else None
    return TrackedSubspace(n_features, size, np.dtype(dtype), probes=drawn, **options)


def train(A, b, size, dtype="float64", *, step=None, **options):
    is_sparse = sparse.issparse(A)
    sketch = make(A.shape[1], size, dtype, n_targets=b.shape[1], is_sparse=is_sparse, **options)
    sketch.cross = np.zeros((A.shape[1], b.shape[1]))
    A = A.astype(dtype) if is_sparse else np.ascontiguousarray(A, dtype)
    step = step or sketch.block_rows
    for start in range(0, A.shape[0], step):
        rows, targets = (part[start : start + step] for part in (A, b))
        take(sketch, Block(rows.tocsc() if is_sparse else rows, targets))
    return sketch


def take(sketch, block):
    sketch.cross += sketch.absorb(block)
    sketch.settle(sketch.cross)


def empty(sketch):
    return Block.of(np.zeros((0, sketch.n_features), sketch.dtype))


def solve(sketch, alpha, block=None, cross=None):
    covariance = sketch.covariance(empty(sketch) if block is None else block)
    return factorise(covariance, sketch.cross if cross is None else cross).solve([alpha])[0]


def written_out(sketch):
    return sketch.known().multiply(np.eye(sketch.n_features))


def data(n_rows=1500, n_features=80, n_targets=1, seed=0):
    model = Synthetic(n_features // 4, n_features, seed)
    A, b = model.sample(n_rows)
    noise = np.random.default_rng(seed).standard_normal((n_rows, n_targets - 1))
    return A, np.column_stack([b, noise])


def uneven(n_rows=1500, n_features=80, seed=2):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n_rows, n_features)) * np.exp(1.5 * rng.standard_normal(n_features))
    return A, A @ rng.standard_normal((n_features, 1)) + rng.standard_normal((n_rows, 1))


def low_rank(n_rows=700, rank=8, n_features=60, seed=1):
    rng = np.random.default_rng(seed)
    basis = np.random.default_rng(rank).standard_normal((rank, n_features))
    return rng.standard_normal((n_rows, rank)) @ basis, rng.standard_normal((n_rows, 1))


def assert_probes_exact(sketch, K, slack):
    np.testing.assert_allclose(sketch.probes.images, sketch.probes.points @ K, atol=slack)


# The start


def test_all_that_fits_is_kept():
    A, b = low_rank()
    sketch = train(A, b, 8)
    assert sketch.start is not None
    K, size = A.T @ A, np.square(A).sum()
    found = sketch.covariance(empty(sketch))
    assert isinstance(found, LowRank)
    np.testing.assert_allclose(found.multiply(np.eye(60)), K, atol=1e-13 * size)
    assert found.loss_bound <= 1e-13 * size
    assert sketch.mass == pytest.approx(size)
    assert_probes_exact(sketch, K, 1e-13 * size)


@pytest.mark.parametrize("n_waiting", [1, 40, 900])  # more than that are taken in by a copy
def test_rows_that_wait_at_the_start_are_kept_as_they_are(n_waiting):
    A, b = low_rank(300, rank=8)
    later = np.random.default_rng(2).standard_normal((n_waiting, 60))
    if n_waiting > 384:
        later = low_rank(n_waiting, seed=2)[0]
    sketch = train(A, b, 10)
    before = copy.deepcopy(sketch)
    found = sketch.covariance(Block(later, np.ones((n_waiting, 1))))
    K = A.T @ A + later.T @ later
    np.testing.assert_allclose(found.multiply(np.eye(60)), K, atol=1e-12 * np.trace(K))
    assert_same(before, sketch)


def test_the_first_row_too_many_makes_it_follow():
    A, b = low_rank(300, rank=8)
    sketch = train(A, b, 8)
    assert sketch.start is not None
    take(sketch, Block(np.eye(1, 60, 7), np.ones((1, 1))))
    assert sketch.start is None
    assert isinstance(sketch.covariance(empty(sketch)), TrackedCovariance)
    np.testing.assert_allclose(sketch.basis @ sketch.basis.T, np.eye(8), atol=1e-12)
    # What the eight directions have left out is all there is beside them.
    K = A.T @ A
    K[7, 7] += 1
    assert np.linalg.norm(written_out(sketch) - K, 2) <= 1.0


@pytest.mark.parametrize("far", [False, True])
def test_a_long_block_is_taken_in_pieces_only_until_all_are_followed(far, monkeypatch):
    A, b = data(2000, 40)
    if far:
        A[:1000] = low_rank(1000, rank=4, n_features=40)[0]
    lengths, begin = [], TrackedSubspace._begin

    def begin_and_note(self, start, block):
        lengths.append(len(block))
        return begin(self, start, block)

    monkeypatch.setattr(TrackedSubspace, "_begin", begin_and_note)
    sketch = train(A, b, 12, step=2000)
    assert lengths == ([768] * 2 if far else [768])
    assert sketch.n_rows == 2000
    K = A.T @ A
    np.testing.assert_allclose(sketch.diagonal, np.diagonal(K), rtol=1e-12)
    assert_probes_exact(sketch, K, 1e-11 * np.trace(K))


# Images


@BY_DTYPE
def test_images_are_exact_between_turns(dtype, monkeypatch):
    monkeypatch.setattr(tracked, "TURN_GROWTH", 1e9)
    monkeypatch.setattr(tracked, "NEW_FACTOR", 1e9)
    A, b = data(n_targets=3)
    A = A.astype(dtype).astype(float)
    sketch = train(A[:96], b[:96], 16, dtype, alpha=5.0)
    assert sketch.n_turns == 1  # the start
    lost = sketch.basis @ A[:96].T @ A[:96] - sketch.image
    for start in range(96, 1500, 96):
        rows = np.ascontiguousarray(A[start : start + 96], dtype)
        take(sketch, Block(rows, b[start : start + 96]))
    assert sketch.n_turns == 1
    assert sketch.n_moves > 5
    K, slack = A.T @ A, 50 * UNIT[dtype] * np.square(A).sum()
    np.testing.assert_allclose(sketch.image + lost, sketch.basis @ K, atol=slack)
    inside = (sketch.image + lost) @ sketch.basis.T
    np.testing.assert_allclose(sketch.middle + lost @ sketch.basis.T, inside, atol=slack)
    assert_probes_exact(sketch, K, 10 * slack)
    np.testing.assert_allclose(sketch.diagonal, np.diagonal(K), rtol=50 * UNIT[dtype])
    size = np.sqrt(np.square(A).sum() * np.square(b).sum())
    np.testing.assert_allclose(sketch.cross, A.T @ b, atol=50 * UNIT[dtype] * size)


@BY_DTYPE
def test_probes_and_sums_stay_exact_when_the_basis_turns(dtype):
    A, b = data(3500)
    A = A.astype(dtype).astype(float)
    sketch = train(A, b, 16, dtype, alpha=5.0)
    assert sketch.n_turns > 3
    assert sketch.n_moves > 5
    assert_probes_exact(sketch, A.T @ A, 500 * UNIT[dtype] * np.square(A).sum())
    np.testing.assert_allclose(sketch.diagonal, np.square(A).sum(axis=0), rtol=50 * UNIT[dtype])
    middle = sketch.basis.astype(float) @ sketch.image.T
    np.testing.assert_allclose(sketch.middle, middle, atol=500 * UNIT[dtype] * np.square(A).sum())


def test_a_column_that_comes_later_lies_outside_the_basis():
    """Or else moves would take K for zero there, and solutions would be far too long in it."""
    A, b = uneven()
    A[:1000, 7] = 0.0
    early, late = train(A[:1000], b[:1000], 16, alpha=5.0), train(A, b, 16, alpha=5.0)
    assert early.share > 0
    assert early.outside_shares[7] == 1.0
    assert (early.outside_shares[np.arange(80) != 7] < 1.0).all()
    tails = late.known(rough=True).tails
    assert tails[7] >= 0.9 * late.share * late.diagonal[7] > 0


@BY_DTYPE
@pytest.mark.parametrize("make_data", [data, uneven])
def test_a_turn_leaves_the_image_that_k_hat_gives(dtype, make_data):
    A, b = make_data()
    sketch = train(A, b, 16, dtype, alpha=5.0)
    assert (sketch.share > 0) == (make_data is uneven)
    known = sketch.known()
    if sketch.share > 0:
        known = TrackedCovariance(replace(known.followed, outside=sketch.outside_shares))
    values, mix = known.eigenpairs
    basis = mix @ sketch.image
    image = known.multiply(basis.T).T
    sketch._turn()
    slack = 1e4 * UNIT[dtype]
    np.testing.assert_allclose(sketch.basis, basis, atol=slack)
    np.testing.assert_allclose(sketch.image, image, atol=slack * values[0])
    np.testing.assert_allclose(sketch.middle, basis @ image.T, atol=slack * values[0])
    np.testing.assert_allclose(sketch.basis @ sketch.basis.T, np.eye(16), atol=slack)


def test_a_block_of_new_directions_turns_the_basis_at_once():
    rng = np.random.default_rng(3)
    early, late = (np.linalg.qr(rng.standard_normal((100, 12)))[0].T for _ in range(2))
    A = np.vstack([rng.standard_normal((1440, 12)) @ early, rng.standard_normal((144, 12)) @ late])
    A += 0.01 * rng.standard_normal(A.shape)
    b = A @ rng.standard_normal((100, 1))
    sketch = train(A[:1440], b[:1440], 24)
    turns = sketch.n_turns
    sketch.absorb(Block(A[1440:], b[1440:]))
    assert sketch.n_turns > turns
    np.testing.assert_allclose(np.linalg.norm(sketch.basis @ late.T, axis=0), 1.0, atol=0.02)
    np.testing.assert_allclose(sketch.basis @ sketch.basis.T, np.eye(24), atol=1e-9)


@pytest.mark.parametrize("size", [8, 32])
def test_it_errs_less_than_rfd(size):
    A, b = data(4000, 256)
    alpha = 1000.0
    exact = np.linalg.solve(A.T @ A + alpha * np.eye(256), A.T @ b)[:, 0]
    found = solve(train(A, b, size, alpha=alpha), alpha)
    rfd = RidgeStream("rfd", sketch_size=size).update(A, b[:, 0]).solve(alpha)
    assert np.linalg.norm(found[:, 0] - exact) < 0.5 * np.linalg.norm(rfd - exact)


@pytest.mark.parametrize("power", [-330, 330])
@pytest.mark.parametrize("make_data", [data, uneven])
def test_any_scale_gives_the_same_coefficients(power, make_data):
    A, b = make_data()
    factor = 2.0**power
    plain = solve(train(A, b, 16, alpha=5.0), 5.0)
    far = solve(train(A * factor, b, 16, alpha=5.0 * factor**2), 5.0 * factor**2)
    np.testing.assert_allclose(far * factor, plain, rtol=1e-7)


def test_sparse_rows_are_followed_like_dense_ones(monkeypatch):
    monkeypatch.setattr(tracked, "SPARSE_MOVE_GROWTH", tracked.MOVE_GROWTH)
    monkeypatch.setattr(tracked, "SPARSE_TURN_GROWTH", tracked.TURN_GROWTH)
    monkeypatch.setattr(tracked, "diagonal_share", lambda *_, **__: 0.5)  # they choose another
    rng = np.random.default_rng(4)
    A = sparse.random_array((1500, 300), density=0.05, format="csr", rng=rng)
    b = A @ rng.standard_normal((300, 2)) + rng.standard_normal((1500, 2))
    dense, kept = train(A.toarray(), b, 16, alpha=1.0), train(A, b, 16, alpha=1.0)
    assert kept.images.flags.f_contiguous
    assert kept.start is dense.start is None
    np.testing.assert_allclose(kept.diagonal, dense.diagonal, rtol=1e-12)
    np.testing.assert_allclose(kept.probes.images, dense.probes.images, atol=1e-9)
    np.testing.assert_allclose(kept.cross, dense.cross, atol=1e-9)
    np.testing.assert_allclose(solve(kept, 1.0), solve(dense, 1.0), rtol=1e-6)


@BY_DTYPE
def test_a_sparse_block_is_longer_and_has_the_same_images(dtype):
    rng = np.random.default_rng(5)
    A = sparse.random_array((9000, 50), density=0.1, format="csr", rng=rng)
    b = A @ rng.standard_normal((50, 1)) + rng.standard_normal((9000, 1))
    sketch = train(A, b, 8, dtype, step=4096)
    assert sketch.sparse_block_rows == 4096
    assert sketch.start is None
    K = A.astype(dtype).astype(float)
    K = (K.T @ K).toarray()
    assert_probes_exact(sketch, K, 1e3 * UNIT[dtype] * np.trace(K))
    np.testing.assert_allclose(sketch.diagonal, np.diagonal(K), rtol=1e-6)
    exact = np.linalg.solve(K + 100 * np.eye(50), A.T @ b)
    assert np.linalg.norm(solve(sketch, 100.0) - exact) < 0.05 * np.linalg.norm(exact)


# Rows that wait


def implicit(rng, n_features=40, dtype="float64"):
    """A block whose centring and weights are left to whoever multiplies it."""
    rows = sparse.random_array((30, n_features), density=0.3, rng=rng, dtype=dtype).tocsc()
    factors, shift = rng.random(30) + 0.5, rng.random((1, n_features)).astype(dtype)
    mean = np.average(rows.toarray(), axis=0, weights=np.square(factors))[None].astype(dtype)
    targets = rng.standard_normal((31, 1))
    targets[:30, 0] -= factors * (factors @ targets[:30, 0]) / (factors @ factors)  # centred too
    return Block(rows, targets, factors, mean, shift, n_shifts=1)


@BY_DTYPE
@pytest.mark.parametrize("make_data", [data, uneven])
def test_rows_that_wait_count_as_if_they_had_been_taken_in(dtype, make_data, monkeypatch):
    for factor in ("NEW_FACTOR", "EARLY_FACTOR"):
        monkeypatch.setattr(tracked, factor, 1e9)
    A, b = make_data(1500, 40)
    block = implicit(np.random.default_rng(5), dtype=dtype)
    sketch = train(A, b, 12, dtype, alpha=5.0)
    cross = sketch.cross + block.cross()
    before = copy.deepcopy(sketch)
    waiting = np.stack([solve(sketch, alpha, block, cross) for alpha in (1.0, 5.0)])
    assert_same(before, sketch)
    slack = 100 * UNIT[dtype] * np.abs(block.cross()).max()
    np.testing.assert_allclose(sketch.absorb(block), block.cross(), atol=slack)
    taken = np.stack([solve(sketch, alpha, cross=cross) for alpha in (1.0, 5.0)])
    error = np.linalg.norm(taken - waiting) / np.linalg.norm(taken)
    assert error <= (1e-8 if dtype == "float64" else 1e-3)
    assert sketch.n_rows == 1530


# The choice of the tail


def test_the_share_is_of_the_diagonal_where_columns_differ_and_not_where_they_are_mixed():
    A, b = uneven()
    assert train(A, b, 16).share >= 0.5
    assert train(*data(), 16).share == 0.0
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((80, 80)))
    assert train(A @ turn, b, 16).share == 0.0


def test_the_share_is_one_of_a_few_and_stays_unless_another_is_far_better():
    sketch = make(20, 4)
    chosen = []
    for found in (0.1, 0.35, 0.36, 0.2, 0.85, 0.86, 0.7, 0.59, 1.0, 0.0):
        sketch._choose(found)
        chosen.append(sketch.share)
    assert chosen == [0.0, 0.0, 0.5, 0.5, 0.5, 0.95, 0.95, 0.5, 0.95, 0.0]
    assert sketch.n_choices == len(chosen)


def test_the_surprise_is_that_of_the_choices_made():
    sketch, probability = make(20, 4), 1.0
    for k, found in enumerate((0.1, 0.3, 0.9, 0.8, 0.9, 0.1), start=1):
        before = sketch.share
        sketch._choose(found)
        changes = 0.5 / (k + 1) ** 2
        probability *= 1 - changes if sketch.share == before else changes / 2
        assert sketch.surprise == pytest.approx(-math.log(probability))
        assert sketch.probes.surprise == sketch.surprise


def test_all_sequences_of_choices_together_have_a_probability_of_one_at_most():
    # Each level but the present one is as probable as any other, and all of them are possible.
    total = 0.0
    for path in np.ndindex(3, 3, 3):
        sketch = make(20, 4)
        for level in path:
            sketch._choose(level / 2)
        total += math.exp(-sketch.surprise)
    assert total == pytest.approx(1.0)


def test_a_tail_is_chosen_now_and_then_and_costs_certainty():
    sketch = train(*uneven(), 16)
    assert 1 < sketch.n_choices <= sketch.n_turns + sketch.n_moves  # no block is new
    assert sketch.surprise > 0
    plain = Probes.draw(N_PROBES, 80, np.dtype("float64"))
    assert sketch.probes.factor(1e-6) > plain.factor(1e-6)
    assert sketch.probes.factor(1e-6) == pytest.approx(
        plain.factor(1e-6 * math.exp(-sketch.surprise))
    )


def test_without_probes_a_few_measure_the_share_and_certify_nothing():
    sketch = train(*uneven(), 16, probes=0)
    assert sketch.share >= 0.5
    assert sketch.probes is None
    assert sketch.n_probes == tracked.LEAST_PROBES


# Many targets


@pytest.mark.parametrize(("n_targets", "n_starts"), [(8, 8), (9, 8), (40, 8)])
def test_more_targets_than_half_of_the_sketch_have_a_few_mixtures(n_targets, n_starts):
    A, b = data(n_targets=n_targets)
    sketch = train(A, b, 16, alpha=5.0)
    assert sketch.n_starts == n_starts
    assert sketch.further.shape == (n_starts + N_PROBES, 80)
    known = sketch.known()
    assert known.followed.mixed == (n_targets > 8)
    starts = sketch.points[16 : 16 + n_starts]
    np.testing.assert_allclose(np.linalg.norm(starts, axis=1), 1.0, rtol=1e-12)
    # Solutions have no place to start from then, but the tail is measured all the same.
    coef = solve(sketch, 5.0)
    assert coef.shape == (80, n_targets)
    if n_targets > 8:
        K = written_out(sketch)
        expected = np.linalg.solve(K + 5.0 * np.eye(80), sketch.cross)
        np.testing.assert_allclose(coef, expected, rtol=1e-6, atol=1e-9 * np.abs(coef).max())
        assert known.tails != known._mean_tail
    exact = np.linalg.solve(A.T @ A + 300 * np.eye(80), A.T @ b)
    assert np.linalg.norm(solve(sketch, 300.0) - exact) < 0.3 * np.linalg.norm(exact)


def test_the_mixtures_are_of_all_targets_and_the_same_whatever_the_seed():
    first, other = (make(80, 16, n_targets=20, seed=seed) for seed in (0, 1))
    assert first._mixing.shape == (20, 8)
    assert set(np.unique(first._mixing)) == {-1.0, 1.0}
    np.testing.assert_array_equal(first._mixing, other._mixing)


# Mergers


@pytest.mark.parametrize("sizes", [(12, 12), (12, 20), (20, 12)])
@pytest.mark.parametrize("cut", [5, 100, 900, 1490])  # all rows of one side may fit
def test_two_that_are_merged_solve_nearly_as_well_as_one(sizes, cut):
    A, b = data(1500, 40)
    alpha = 300.0
    exact = np.linalg.solve(A.T @ A + alpha * np.eye(40), A.T @ b)
    left, right = (
        train(A[part], b[part], size, alpha=alpha)
        for part, size in zip((slice(cut), slice(cut, None)), sizes, strict=True)
    )
    before = copy.deepcopy(right)
    merge(left, right)
    assert_same(before, right)
    assert left.n_rows == 1500
    np.testing.assert_allclose(left.diagonal, np.square(A).sum(axis=0), rtol=1e-9)
    assert_probes_exact(left, A.T @ A, 1e-7)
    np.testing.assert_allclose(left.basis @ left.basis.T, np.eye(sizes[0]), atol=1e-8)
    one = np.linalg.norm(solve(train(A, b, min(sizes), alpha=alpha), alpha) - exact)
    assert np.linalg.norm(solve(left, alpha) - exact) < 4 * one


def merge(left, right):
    left.merge(right)
    left.cross = left.cross + right.cross
    left.settle(left.cross)


def test_a_merger_adds_what_was_chosen():
    A, b = uneven(1500)
    left, right = train(A[:700], b[:700], 12), train(A[700:], b[700:], 12)
    surprise, choices = left.surprise + right.surprise, left.n_choices + right.n_choices
    left.merge(right)
    assert left.n_choices > choices  # one more for the basis of both
    assert left.surprise > surprise
    fresh = make(80, 12)
    fresh.merge(right)
    assert fresh.share == right.share
    assert fresh.surprise >= right.surprise


@pytest.mark.parametrize("other", [{"seed": 1}, {"probes": 9}, {"probes": 0}])
@pytest.mark.parametrize("turned", [False, True])
def test_other_probes_are_dropped_and_the_share_stays(other, turned):
    A, b = uneven(1500)
    parts = (A[:700], b[:700]), (A[700:], b[700:])
    left, right = train(*parts[0], 12, alpha=5.0), train(*parts[1], 12, alpha=5.0, **other)
    if turned:
        left, right = right, left
    share, choices = left.share, left.n_choices + right.n_choices
    merge(left, right)
    assert left.probes is None
    assert left.n_probes == 0
    assert left.n_choices == choices
    assert len(left.points) == 12 + 1
    assert len(left.further) == 1
    assert left.share == share
    turns = left.n_turns
    for start in [*range(0, 1500, 72)] * 2:
        take(left, Block(A[start : start + 72], b[start : start + 72]))
    assert left.n_turns > turns
    assert left.share == share
    assert np.isfinite(solve(left, 5.0)).all()
    again = copy.deepcopy(left)
    again.merge(right)
    assert again.probes is None


def test_different_numbers_of_targets_in_mixtures_do_not_matter_to_the_basis():
    A, b = data(1500, 80, 20)
    left, right = train(A[:700], b[:700], 12), train(A[700:], b[700:], 60)
    assert left.n_starts == 8
    assert right.n_starts == 20
    merge(left, right)
    exact = np.linalg.solve(A.T @ A + 300 * np.eye(80), A.T @ b)
    ours, one = (np.linalg.norm(solve(s, 300.0) - exact) for s in (left, train(A, b, 12)))
    assert ours < 4 * one


# Units


@pytest.mark.parametrize("n_rows", [5, 1500])
def test_columns_in_other_units_have_the_same_predictions(n_rows):
    A, b = data(n_rows, 40)
    ratio = np.exp(np.random.default_rng(6).standard_normal(40) / 3)
    sketch, other = train(A, b, 12, alpha=5.0), train(A * ratio, b, 12, alpha=5.0)
    assert (sketch.start is None) == (n_rows == 1500)
    sketch.rescale(ratio, np.square(A).sum(axis=0))
    K = (A * ratio).T @ (A * ratio)
    np.testing.assert_allclose(sketch.diagonal, np.diagonal(K), rtol=1e-9)
    assert_probes_exact(sketch, K, 1e-7)
    np.testing.assert_allclose(sketch.probes.stretch, ratio)
    if sketch.start is None:
        np.testing.assert_allclose(sketch.basis @ sketch.basis.T, np.eye(12), atol=1e-9)
        middle = sketch.basis @ sketch.image.T
        np.testing.assert_allclose(sketch.middle, middle, atol=1e-9 * np.trace(K))
    sketch.cross = sketch.cross * ratio[:, None]
    exact = np.linalg.solve(K + 5 * np.eye(40), (A * ratio).T @ b)
    ours, theirs = (np.linalg.norm(solve(one, 5.0) - exact) for one in (sketch, other))
    assert ours <= 2 * theirs + 1e-9 * np.linalg.norm(exact)


@pytest.mark.parametrize("n_rows", [5, 1500])
def test_a_column_that_is_left_out_is_zero_everywhere(n_rows):
    A, b = data(n_rows, 40)
    sketch = train(A, b, 12, alpha=5.0)
    ratio = np.ones(40)
    ratio[3] = 0.0
    sketch.rescale(ratio, np.square(A).sum(axis=0))
    A[:, 3] = 0.0
    assert sketch.diagonal[3] == 0.0
    assert not sketch.further[:, 3].any()
    sketch.cross[3] = 0.0
    assert solve(sketch, 5.0)[3] == pytest.approx(0.0, abs=1e-12)
    for start in range(0, n_rows, 72):
        take(sketch, Block(A[start : start + 72], b[start : start + 72]))
    assert solve(sketch, 5.0)[3] == pytest.approx(0.0, abs=1e-12)


def test_a_query_in_other_units_is_that_of_a_sketch_in_them():
    A, b = uneven(1500, 40)
    ratio = np.exp(np.random.default_rng(6).standard_normal(40) / 3)
    sketch = train(A, b, 12, alpha=5.0)
    before, eye = copy.deepcopy(sketch), np.eye(40)
    asked = sketch.covariance(empty(sketch), ratio).multiply(eye)
    assert_same(before, sketch)
    sketch.rescale(ratio, sketch.diagonal)
    expected = sketch.covariance(empty(sketch)).multiply(eye)
    np.testing.assert_allclose(asked, expected, atol=1e-9 * np.abs(expected).max())


# Snapshots


def assert_same(left, right):
    mine, theirs = vars(left), vars(right)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        if name == "start" and value is not None:
            assert_same(value, theirs[name])
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, theirs[name])
            assert value.flags.f_contiguous == theirs[name].flags.f_contiguous
        elif name != "rounding":
            assert value == theirs[name], name


@BY_DTYPE
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("state", ["fresh", "start", "following", "uneven", "merged", "rescaled"])
def test_a_snapshot_goes_on_to_the_same_bits(dtype, kind, state):
    n_rows = {"fresh": 0, "start": 5}.get(state, 800)
    A, b = (uneven if state == "uneven" else data)(1500, 40)
    store = sparse.csr_array if kind == "sparse" else np.asarray
    sketch = train(store(A[:n_rows]), b[:n_rows], 12, dtype, alpha=5.0)
    if state == "merged":
        sketch.merge(train(store(A[:99]), b[:99], 12, dtype, alpha=5.0, seed=1))
        assert sketch.probes is None
    if state == "rescaled":
        sketch.rescale(np.linspace(0.5, 2.0, 40), sketch.diagonal)
    twin = make(40, 12, dtype, n_targets=1, alpha=5.0, is_sparse=kind == "sparse")
    twin.restore(sketch.snapshot())
    own = copy.deepcopy(twin)  # arrays of a snapshot are views
    own.cross = sketch.cross.copy()
    for one in (sketch, own):
        for start in range(800, 1500, 72):
            rows = store(A[start : start + 72].astype(dtype))
            rows = rows.tocsc() if kind == "sparse" else rows
            take(one, Block(rows, b[start : start + 72]))
    own.n_turns, own.n_moves = sketch.n_turns, sketch.n_moves  # which are counts for tests
    assert_same(sketch, own)


@pytest.mark.parametrize("name", ["points", "further", "images", "outside_shares", "share"])
def test_a_snapshot_of_other_shapes_is_refused(name):
    sketch = train(*uneven(800, 40), 12)
    kept = sketch.snapshot()
    kept[name] = kept[name][:-1] if np.ndim(kept[name]) else "much"
    with pytest.raises(ValueError, match=name):
        make(40, 12).restore(kept)


# Memory


@pytest.mark.parametrize("n_targets", [1, 5, 30])
@pytest.mark.parametrize("n_probes", [0, 24])
@BY_DTYPE
def test_no_more_bytes_are_held_than_was_said(n_targets, n_probes, dtype):
    A, b = uneven(800, 300)
    b = np.repeat(b, n_targets, axis=1)
    sketch = train(A, b, 16, dtype, probes=n_probes)
    assert sketch.start is None
    most = tracked_bytes(300, 16, np.dtype(dtype), n_targets, n_probes)
    assert 0.9 * most <= sketch.nbytes <= most


@pytest.mark.parametrize(
    ("n_features", "size", "rows"),
    [
        (100, 4, 32),
        (100, 64, 512),
        (100, 500, 768),
        (100, 1000, 1000),
        (10**6, 2, 1),
        (10**6, 64, 32),
        (10**4, 64, 482),
        (10**5, 256, 243),
    ],
)
def test_blocks_have_half_a_sketch_and_are_not_longer_than_a_few_sketches(n_features, size, rows):
    assert tracked_block(n_features, size, np.dtype("float64")) == rows
    assert make(100, 5).block_rows == 40
