"""Sums of one more pass against the same sums in extended precision."""

import dataclasses
import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_pass import KINDS, SMALL, Case
from scipy import sparse

from prepared import WIDE, make_weights
from ridgepass.refining import passes
from ridgepass.refining.passes import DensePass, new_pass
from ridgepass.refining.sums import Preparation
from streams import split_points


@st.composite
def cases(draw, means=(0.0, 1.0, 1e6), aways=(0.0, 1e-9, 1.0, 1e3), max_rows=80):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, 8))
    n_targets, n_vectors = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    spread = rng.choice([1e-3, 1.0, 1e3], d)
    mean = draw(st.sampled_from(means)) * spread * rng.choice([-1, 1], d)
    rows = mean + spread * rng.standard_normal((n, d))
    rows *= rng.random((n, d)) < draw(st.sampled_from([0.3, 1.0]))
    rows = rows.astype(dtype)
    targets = draw(st.sampled_from([0.0, 1e4])) + rng.standard_normal((n, n_targets))
    weights = make_weights(rng, n, draw(st.sampled_from(["none", "fractions"])))
    centred = draw(st.booleans())
    near, target_near = np.zeros(d), np.zeros(n_targets)
    if centred:
        away = draw(st.sampled_from(aways))
        near = np.average(rows.astype(float), axis=0, weights=weights)
        near = near + away * spread * rng.standard_normal(d)
        target_near = targets.mean(axis=0) + away * rng.standard_normal(n_targets)
    scale = spread * (0.5 + rng.random(d)) if draw(st.booleans()) else None
    vectors = (
        rng.standard_normal((d, n_vectors)) / (spread if scale is None else np.ones(d))[:, None]
    )
    at = rng.integers(-1, n_targets, n_vectors)
    return Case(
        rows,
        targets,
        weights,
        Preparation(near, target_near, scale, centred),
        vectors,
        at,
        rng.standard_normal(n_targets),
    )


def read(kind, case, cuts=None, store=None):
    """Add the rows in batches; ``store`` is the format they come in."""
    with mock.patch.multiple(passes, **SMALL):
        found = kind(case.preparation, case.vectors, case.at, case.signs)
        for start, stop in itertools.pairwise(cuts or [0, len(case.rows)]):
            rows = case.rows[start:stop] if store is None else store(case.rows[start:stop])
            weights = None if case.weights is None else case.weights[start:stop]
            found.add(rows, case.targets[start:stop], weights)
        return found.finish()


def plain_reading(case):
    """The same sums of rows centred on their own means, in extended precision."""
    preparation = case.preparation
    weights = np.ones(len(case.rows)) if case.weights is None else case.weights
    weights = weights.astype(WIDE)
    rows, targets = case.rows.astype(WIDE), case.targets.astype(WIDE)
    shift, target_shift = np.zeros(rows.shape[1], WIDE), np.zeros(targets.shape[1], WIDE)
    if preparation.centred:
        shift = weights @ (rows - preparation.mean) / weights.sum()
        target_shift = weights @ (targets - preparation.target_mean) / weights.sum()
        rows = rows - preparation.mean - shift
        targets = targets - preparation.target_mean - target_shift
    if preparation.scale is not None:
        rows, shift = rows / preparation.scale, shift / preparation.scale
    rest = -(rows @ case.vectors.astype(WIDE))
    rest[:, case.at >= 0] += targets[:, case.at[case.at >= 0]]
    return {
        "n_rows": len(rows),
        "weight": weights.sum(),
        "mass": (weights @ np.square(rows)).sum(),
        "lifted": (rows.T * weights) @ rest,
        "check": (rows.T * weights) @ (targets @ case.signs.astype(WIDE)),
        "target_mass": weights @ np.square(targets),
        "shift": shift,
        "target_shift": target_shift,
    }


def gap(found, true):
    return np.sqrt(np.square(np.asarray(found, WIDE) - true).sum(axis=0)).astype(float)


def assert_same_totals(left, right):
    for field in dataclasses.fields(left):
        one, other = getattr(left, field.name), getattr(right, field.name)
        np.testing.assert_array_equal(one, other, err_msg=field.name)


@KINDS
@given(case=cases(means=(0.0, 1.0), aways=(0.0, 1e-9, 1.0)))
@settings(max_examples=80)
def test_sums_are_those_of_rows_centred_on_their_own_means(kind, case):
    totals, true = read(kind, case), plain_reading(case)
    assert totals.n_rows == true["n_rows"]
    unit = 1.0 if case.preparation.scale is None else case.preparation.scale
    squares = np.square(case.rows.astype(float) / unit).sum() + np.square(
        case.preparation.mean / unit
    ).sum() * len(case.rows)
    size = np.sqrt(1e-300 + squares * (1 if case.weights is None else max(case.weights.max(), 1)))
    spread = np.sqrt(len(case.targets)) * np.abs(case.targets).max() + 1e-300
    reach = spread + size * np.linalg.norm(case.vectors, axis=0)
    sizes = {
        "weight": totals.weight,
        "mass": size**2,
        "lifted": size * reach,
        "check": size * spread * np.abs(case.signs).sum(),
        "target_mass": spread**2,
        "shift": size,
        "target_shift": spread,
    }
    for name, one in sizes.items():
        assert (gap(np.atleast_1d(getattr(totals, name)), true[name]) <= 1e-12 * one).all(), name


@KINDS
@given(case=cases())
@settings(max_examples=150)
def test_rounding_stays_within_its_bounds(kind, case):
    totals, true = read(kind, case), plain_reading(case)
    assert (gap(totals.lifted, true["lifted"]) <= totals.lifted_error).all()
    assert gap(totals.check, true["check"]) <= totals.check_error
    assert abs(totals.mass - true["mass"]) <= totals.mass_error
    assert gap(totals.shift, true["shift"]) <= totals.shift_error
    gaps = np.abs(totals.target_shift - true["target_shift"])
    assert (gaps <= totals.target_shift_error).all()


@KINDS
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("weight", [None, 1e-8, 1e8])
def test_sums_that_round_to_one_side_stay_within_their_bounds(kind, centred, weight):
    # All terms equal: each addition rounds the same way for a long stretch.
    n, d = 3000, 40
    rows, targets = np.full((n, d), 0.1), np.full((n, 1), 0.7)
    rows[0], targets[0] = 0.3, -0.1
    weights = None if weight is None else np.append(weight, np.full(n - 1, 1 / 3))
    zero = Preparation(np.zeros(d), np.zeros(1), None, centred)
    case = Case(rows, targets, weights, zero, np.full((d, 2), 0.1), np.array([0, -1]), np.ones(1))
    found = kind(zero, case.vectors, case.at, case.signs)
    found.add(rows, targets, weights)
    totals, true = found.finish(), plain_reading(case)
    assert (gap(totals.lifted, true["lifted"]) <= totals.lifted_error).all()
    assert gap(totals.check, true["check"]) <= totals.check_error
    assert abs(totals.mass - true["mass"]) <= totals.mass_error
    assert gap(totals.shift, true["shift"]) <= totals.shift_error


@pytest.mark.parametrize("d", [5_000, 100_000])
def test_the_mass_of_wide_rows_stays_within_its_bound(d):
    # A block of wide rows is short, and the sum over each of them is long.
    for value in (0.1, 0.3, 1 / 3):
        rows = np.full((9, d), value)
        zero = Preparation(np.zeros(d), np.zeros(1), None, False)
        found = DensePass(zero, np.zeros((d, 1)), np.array([0]), np.ones(1))
        found.add(rows, np.ones((9, 1)), None)
        totals = found.finish()
        assert abs(totals.mass - rows.size * WIDE(value) ** 2) <= totals.mass_error


@KINDS
@given(data=st.data(), case=cases())
@settings(max_examples=60)
def test_any_split_into_batches_gives_the_same_bits(kind, data, case):
    cuts = split_points(data.draw, len(case.rows))
    assert_same_totals(read(kind, case), read(kind, case, cuts))


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@KINDS
def test_long_and_wide_rows_split_anywhere_give_the_same_bits(kind, order):
    rng = np.random.default_rng(0)
    for n, d in ((2500, 7), (70, 5000)):
        rows, targets = rng.standard_normal((n, d)), rng.standard_normal((n, 2))
        near = Preparation(np.full(d, 0.1), np.zeros(2), None, True)
        vectors, at = rng.standard_normal((d, 3)), np.array([1, -1, 0])
        kept = (
            np.repeat(rows, 2, axis=1)[:, ::2]
            if order == "strided"
            else np.array(rows, order=order)
        )
        whole, pieces = (kind(near, vectors, at, np.ones(2)) for _ in range(2))
        whole.add(rows, targets, None)
        for start, stop in itertools.pairwise([0, 1, 2, 15, 40, 69, n]):
            pieces.add(kept[start:stop], targets[start:stop], None)
        assert_same_totals(whole.finish(), pieces.finish())


@KINDS
@given(case=cases(), store=st.sampled_from([sparse.csr_array, sparse.csc_matrix, np.asarray]))
@settings(max_examples=30)
def test_the_format_of_rows_changes_no_bit(kind, case, store):
    assert_same_totals(read(kind, case), read(kind, case, store=store))


def test_no_rows_are_all_zeros():
    for is_sparse in (False, True):
        near = Preparation(np.ones(3), np.ones(2), None, True)
        totals = new_pass(is_sparse, near, np.ones((3, 1)), np.array([0]), np.ones(2)).finish()
        assert (totals.n_rows, totals.weight, totals.mass) == (0, 0.0, 0.0)
        for values in (totals.lifted, totals.check, totals.shift, totals.target_shift):
            assert not values.any()
