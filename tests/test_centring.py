"""Running means lose nothing to their size."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass.centring import Mean, shift_factor

WIDE = np.longdouble


def feed(mean, rows, weights, before):
    """Move a mean on by rows, whose own mean is measured from ``high``."""
    weight = float(weights.sum())
    offset = weights @ (rows - mean.high.astype(float)) / weight
    own = Mean(mean.high, offset)
    return mean.joined(own, before, weight), mean.distance_to(own), weight


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(
    seed=st.integers(0, 999),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    centre=st.sampled_from([0.0, 1e-6, 1.0, 1e6]),
    drift=st.sampled_from([0.0, 1.0, 1e4]),
)
@settings(max_examples=40)
def test_the_mean_and_the_squares_are_complete(dtype, seed, sizes, centre, drift):
    rng = np.random.default_rng(seed)
    start = rng.standard_normal(3) + centre
    mean, before, seen, squares = Mean.at(start, np.dtype(dtype)), 0.0, [], np.zeros(3)
    for i, size in enumerate(sizes):
        rows, weights = centre + i * drift + rng.standard_normal((size, 3)), rng.random(size) + 0.1
        mean, distance, weight = feed(mean, rows, weights, before)
        own = weights @ rows.astype(WIDE) / weights.sum()
        squares += (weights @ np.square(rows - own)).astype(float)
        squares += np.square(shift_factor(before, weight) * distance)
        before += weight
        seen.append((rows, weights))
    rows, weights = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    exact = rows[0] + weights @ (rows.astype(WIDE) - rows[0]) / weights.astype(WIDE).sum()
    spread = 1 + drift * len(sizes)
    error = np.abs((mean.high.astype(WIDE) + mean.low - exact).astype(float))
    assert error.max() <= 1e-13 * spread  # of the spread, whatever the mean
    expected = (weights @ np.square(rows - exact)).astype(float)
    np.testing.assert_allclose(squares, expected, rtol=1e-9, atol=1e-20)
    assert mean.high.dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_low_part_stays_below_the_high_part_s_last_digit(dtype):
    mean = Mean.at(np.full(4, 1e6), np.dtype(dtype))
    rng = np.random.default_rng(0)
    for share in np.linspace(0.01, 0.99, 100):
        mean = mean.joined(Mean(mean.high, rng.standard_normal(4)), 1 - share, share)
        assert (np.abs(mean.low) <= np.spacing(mean.high.astype(dtype))).all()


def test_distances_between_means_keep_what_their_difference_would_lose():
    left = Mean.at(np.array([1e6]), np.dtype("float64"))
    right = left.joined(Mean(left.high, np.array([1e-12])), 0.0, 1.0)
    assert left.distance_to(right) == pytest.approx(1e-12)
    assert right.distance_to(left) == pytest.approx(-1e-12)
    assert left.distance_to(left) == 0


@pytest.mark.parametrize(("before", "weight"), [(3.0, 5.0), (1e-200, 1e200), (1e200, 1e-200)])
def test_shift_factor_survives_extremes(before, weight):
    expected = math.sqrt(min(before, weight) / (1 + min(before, weight) / max(before, weight)))
    assert shift_factor(before, weight) == pytest.approx(expected)


def test_nothing_before_leaves_no_shift():
    assert shift_factor(0.0, 7.0) == 0.0


def test_a_mean_far_off_without_weight_costs_no_digits():
    near, far = (Mean.at(np.array([place]), np.dtype("float64")) for place in (1 / 3, 1e14))
    assert far.joined(near, 1e-30, 1.0).value == pytest.approx(1 / 3, rel=1e-15)
    back = near.joined(far, 1.0, 1e-30).joined(near, 1.0, 1.0)
    assert back.value == pytest.approx(1 / 3, rel=1e-15)


def test_a_light_mean_moves_a_heavy_one_by_its_share_to_the_last_digit():
    light, heavy = (Mean.at(np.array([place]), np.dtype("float64")) for place in (1.0, 0.0))
    assert light.joined(heavy, 1e-17, 1.0).value == pytest.approx(1e-17, rel=1e-15)
    assert heavy.joined(light, 1.0, 1e-17).value == pytest.approx(1e-17, rel=1e-15)
