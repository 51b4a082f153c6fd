"""Units follow the deviations; the deviations do not depend on the units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass.scaling import Scaling

NO_MEAN = np.zeros(1)


def feed(scaling, rows, content, weight):
    """Give a block of rows without centring; keep ``content``, all rows so far in units."""
    in_units = rows / scaling.units
    ratio, before = scaling.update(np.square(rows).sum(axis=0), weight, NO_MEAN)
    if before is not None:
        np.testing.assert_allclose(before.column_mass, np.square(content).sum(axis=0), rtol=1e-9)
        content = content * before.ratio
    return np.vstack([content, in_units if ratio is None else in_units * ratio])


@given(seed=st.integers(0, 999), n_blocks=st.integers(1, 20))
@settings(max_examples=40)
def test_rescaling_as_told_keeps_all_rows_in_the_present_units(seed, n_blocks):
    rng = np.random.default_rng(seed)
    sizes, starts = 10.0 ** rng.integers(-3, 4, 5), rng.integers(0, n_blocks + 1, 5)
    scaling, content, seen = Scaling(5), np.zeros((0, 5)), np.zeros((0, 5))
    for i in range(n_blocks):
        rows = rng.standard_normal((4, 5)) * sizes * (i + 1) * (i >= starts)
        seen = np.vstack([seen, rows])
        content = feed(scaling, rows, content, len(seen))
        np.testing.assert_allclose(content * scaling.units, seen, rtol=1e-12)
        np.testing.assert_allclose(scaling.squares, np.square(seen).sum(axis=0), rtol=1e-12)
    found, _ = scaling.deviations(scaling.squares, len(seen), NO_MEAN)
    rms = np.sqrt(np.square(seen).mean(axis=0))
    np.testing.assert_allclose(found, np.where(rms > 0, rms, 1.0), rtol=1e-12)
    varied = rms > 0
    assert (np.abs(np.log10(scaling.units / found))[varied] < 1.5).all()


def test_units_change_only_when_blocks_double_or_a_column_first_varies():
    scaling, rows = Scaling(2), np.ones((4, 2))
    rows[:, 1] = 0
    changes = []
    for i in range(1, 17):
        if i == 11:
            rows[:, 1] = 100.0
        before = scaling.units.copy()
        scaling.update(np.square(rows * i).sum(axis=0), 4 * i, NO_MEAN)
        if (scaling.units != before).any():
            changes.append(i)
    assert changes == [2, 4, 8, 11, 16]
    assert scaling.units[0] != 1.0


@given(seed=st.integers(0, 999))
@settings(max_examples=40)
def test_merged_parts_are_in_one_unit(seed):
    rng = np.random.default_rng(seed)
    parts, contents, seen = [], [], []
    for _ in range(2):
        sizes = 10.0 ** rng.integers(-3, 4, 4) * (rng.random(4) < 0.7)
        scaling, content, rows = Scaling(4), np.zeros((0, 4)), np.zeros((0, 4))
        for _ in range(rng.integers(1, 6)):
            rows = np.vstack([rows, rng.standard_normal((3, 4)) * sizes])
            content = feed(scaling, rows[-3:], content, len(rows))
        parts.append(scaling)
        contents.append(content)
        seen.append(rows)
    shift, theirs = rng.standard_normal(4), parts[1].units.copy()
    weight = len(seen[0]) + len(seen[1])
    rescalings = parts[0].merge(parts[1], shift, weight, NO_MEAN)
    np.testing.assert_array_equal(parts[1].units, theirs)
    for i, rescaling in enumerate(rescalings):
        if rescaling is not None:
            mass = np.square(contents[i]).sum(axis=0)
            np.testing.assert_allclose(rescaling.column_mass, mass, rtol=1e-9)
            contents[i] = contents[i] * rescaling.ratio
    content = np.vstack(contents)
    np.testing.assert_allclose(content * parts[0].units, np.vstack(seen), rtol=1e-12)
    expected = np.square(np.vstack(seen)).sum(axis=0) + np.square(shift)
    np.testing.assert_allclose(parts[0].squares, expected, rtol=1e-12)
    # A column that only the distance of means makes vary has its unit from that.
    apart = ~np.vstack(seen).any(axis=0)
    np.testing.assert_allclose(parts[0].units[apart], np.abs(shift[apart]) / np.sqrt(weight))


def test_given_scales_are_never_changed():
    given_scale = np.array([2.0, 3.0])
    scaling, other = Scaling(2, given_scale), Scaling(2, given_scale)
    assert scaling.update(np.ones(2), 5.0, NO_MEAN) == (None, None)
    assert scaling.merge(other, np.ones(2), 9.0, NO_MEAN) == (None, None)
    np.testing.assert_array_equal(
        scaling.deviations(np.full(2, 99.0), 1.0, NO_MEAN)[0], given_scale
    )
    np.testing.assert_array_equal(scaling.units, given_scale)


@pytest.mark.parametrize("size", [1e-120, 1e120])
def test_extreme_columns_neither_overflow_nor_vanish(size):
    scaling = Scaling(1)
    content = np.zeros((0, 1))
    for i in range(5):
        content = feed(scaling, np.full((4, 1), size), content, 4 * (i + 1))
    np.testing.assert_allclose(scaling.deviations(scaling.squares, 20.0, NO_MEAN)[0], size)
    np.testing.assert_allclose(content, 1.0)


def test_a_column_that_varies_by_rounding_only_is_constant():
    scaling = Scaling(2)
    noise = np.array([1e-9, 1e-16]) ** 2 * 50
    found, _ = scaling.deviations(noise, 50.0, np.array([1.0, 1.0]))
    np.testing.assert_allclose(found, [1e-9, 1.0])
    scaling.update(noise, 50.0, np.array([1.0, 1.0]))
    np.testing.assert_array_equal(scaling.is_set, [True, False])
