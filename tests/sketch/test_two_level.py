import numpy as np
import pytest
from hypothesis import given

from ridgepass.blocks import Block
from ridgepass.sketch.two_level import TwoLevelFrequentDirections, removed_masses
from streams import norm, streams

F64 = np.dtype("float64")


def feed(A, sketch_size, seed=0, kind=TwoLevelFrequentDirections):
    sketch = kind(A.shape[1], sketch_size, F64, seed)
    for start in range(0, len(A), sketch.block_rows):
        sketch.absorb(Block.of(A[start : start + sketch.block_rows]))
    return sketch


def expand(found):
    """K̂ as a matrix."""
    rows = found.mix @ np.vstack(found.rows)
    return rows.T @ rows + found.shift * np.eye(rows.shape[1])


def test_the_sample_is_the_removed_part_on_average():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 8)) * np.exp(-np.arange(8) / 3)
    draws = 3000
    total = np.zeros((8, 8))
    for seed in range(draws):
        sketch = feed(A[:20], 10, seed)  # four blocks of five: history behind the last one
        block = A[20:25]
        step, _ = sketch._shrink(Block.of(block))
        sampled = sketch._sample(step) @ np.vstack([sketch.first.rows, block])
        total += sampled.T @ sampled
    stacked = np.vstack([sketch.first.rows, block])
    kept = step.mix @ stacked
    removed = stacked.T @ stacked - kept.T @ kept
    masses = removed_masses(step)
    assert np.trace(removed) == pytest.approx(masses.sum())
    # A row of mass m taken with probability p has variance m²(1/p − 1); four deviations.
    masses = masses[masses > 0]
    probability = np.minimum(1, 5 * masses / (sketch.first.lost + masses.sum()))
    variance = (np.square(masses) * (1 / probability - 1)).sum() / draws
    assert np.abs(total / draws - removed).max() <= 4 * np.sqrt(variance)
    assert np.abs(removed).max() > 10 * np.sqrt(variance)  # the test can tell it from zero


class Unshrunk(TwoLevelFrequentDirections):
    """Two levels, of which the second keeps all it is given."""

    kept: np.ndarray | float = 0.0

    def _keep(self, rows):
        self.kept = self.kept + rows.T @ rows


def test_both_levels_together_are_unbiased_over_a_stream():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, 8)) * np.exp(-np.arange(8) / 4)
    found = [feed(A, 6, seed, Unshrunk) for seed in range(3000)]
    sums = [sketch.first.rows.T @ sketch.first.rows + sketch.kept for sketch in found]
    deviation = np.std(sums, axis=0).max() / np.sqrt(len(sums))
    assert np.abs(np.mean(sums, axis=0) - A.T @ A).max() <= 4 * deviation
    assert found[0].first.removed > 20 * deviation


@given(stream=streams())
def test_the_certificate_covers_the_covariance(stream):
    A, scale = stream.A, stream.scale
    sketch = feed(A, stream.sketch_size)
    pending = A[: len(A) % sketch.block_rows]
    both = np.vstack([A, pending]) / scale
    found = sketch.covariance(Block.of(pending))
    gap = np.linalg.norm(both.T @ both - expand(found) / scale / scale, 2)
    assert gap <= found.error / scale / scale + 1e-12 * norm(both) ** 2


def test_levels_share_the_rows_between_them():
    for size in (2, 3, 8, 9):
        sketch = TwoLevelFrequentDirections(5, size, F64)
        assert sketch.first.sketch_size + sketch.second.sketch_size == size
        assert sketch.second.sketch_size >= 1


def test_merge_adds_what_was_lost_and_the_waiting_rows():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((100, 12))
    left, right = feed(A[:40], 8), feed(A[40:], 6, seed=2)
    lost = left.first.lost + right.first.lost
    removed = left.first.removed + right.first.removed
    assert len(right.waiting.waiting().rows) > 0
    sampled = sum(
        norm(part) ** 2
        for sketch in (left, right)
        for part in (sketch.second.rows, sketch.waiting.waiting().rows)
    )
    second = left.second.lost + right.second.lost
    left.merge(right)
    kept = norm(left.second.rows) ** 2 + norm(left.waiting.waiting().rows) ** 2 + left.second.lost
    assert kept >= (sampled + second) * (1 - 1e-12)  # and what the merge itself sampled
    assert left.first.lost >= lost
    assert left.first.removed >= removed
    gap = np.linalg.norm(A.T @ A - expand(left.covariance(Block.of(A[:0]))), 2)
    assert gap <= left.covariance(Block.of(A[:0])).error
