"""Every sum of a pass is within its error of the true one, which ball arithmetic tells."""

import itertools
from unittest import mock

import numpy as np
import pytest
from one_pass import KINDS, SMALL, Case
from scipy import sparse

from balls import Sums, balls, columns, length, within
from ridgepass.refining import passes
from ridgepass.refining.passes import DensePass, SparsePass
from ridgepass.refining.sums import Preparation


def read(kind, case):
    with mock.patch.multiple(passes, **SMALL), np.errstate(all="ignore"):
        found = kind(case.preparation, case.vectors, case.at, case.signs)
        rows = case.rows if kind is DensePass else sparse.csr_array(case.rows)
        found.add(rows, case.targets, case.weights)
        return found.finish()


def assert_within_errors(kind, case):
    totals, true = read(kind, case), Sums(*case)
    pairs = [
        (length(_less(totals.shift, true.shift)), totals.shift_error, "shift"),
        (length(_less(totals.check, true.check)), totals.check_error, "check"),
        (abs(balls(totals.mass) - true.mass), totals.mass_error, "mass"),
    ]
    for found, exact, error in zip(
        totals.lifted.T, columns(true.lifted), totals.lifted_error, strict=True
    ):
        pairs.append((length(_less(found, exact)), error, "lifted"))
    for name in ("target_shift", "target_mass"):
        gaps = [abs(gap) for gap in _less(getattr(totals, name), getattr(true, name))]
        pairs += [
            (*pair, name) for pair in zip(gaps, getattr(totals, f"{name}_error"), strict=True)
        ]
    for gap, error, name in pairs:
        assert error >= 0, name
        assert within(gap, error), (name, gap, error)


def _less(found, exact):
    return [x - t for x, t in zip(balls(found), exact, strict=True)]


def make(seed, *, n=40, d=4, far=0.0, x=1.0, y=1.0, v=None, weights=None, place="near", scale=None):
    """Rows of size x about far·x, targets of size y, vectors that make predictions of size y."""
    rng = np.random.default_rng(seed)
    rows = x * (rng.standard_normal((n, d)) + far * rng.choice([-1.0, 1.0], d))
    targets = y * (rng.standard_normal((n, 2)) + 3.0)
    mean, target_mean = np.zeros(d), np.zeros(2)
    if place != "none":
        shares = np.ones(n) if weights is None else weights / weights.max()
        mean, target_mean = (np.average(t, axis=0, weights=shares) for t in (rows, targets))
        if place == "away":
            mean, target_mean = mean + 10 * x * rng.standard_normal(d), target_mean - 5 * y
    size = y / x if v is None else v
    vectors = size * rng.standard_normal((d, 3)) * (np.ones(d) if scale is None else scale)[:, None]
    return Case(
        rows,
        targets,
        weights,
        Preparation(mean, target_mean, scale, place != "none"),
        vectors,
        np.array([0, 1, -1]),
        np.array([1.5, -0.25]),
    )


PLACES = pytest.mark.parametrize("place", ["none", "near", "away"])


@KINDS
@PLACES
@pytest.mark.parametrize("far", [0.0, 1.0, 1e4, 1e8])
def test_means_far_from_zero(kind, place, far):
    for seed in range(5):
        assert_within_errors(kind, make(seed, far=far, place=place))


@KINDS
@PLACES
@pytest.mark.parametrize("far", [1.0, 1e8])
@pytest.mark.parametrize("first", [1e-30, 1e-8, 1e30])
def test_a_first_row_that_hardly_counts_or_counts_alone(kind, place, far, first):
    weights = np.ones(40)
    weights[0] = first
    for seed in range(3):
        case = make(seed, far=far, place=place, weights=weights)
        case.rows[0] *= 1e3
        assert_within_errors(kind, case)


@KINDS
@PLACES
@pytest.mark.parametrize(("least", "most"), [(-30, 30), (-323.3, -300), (-323.3, 0), (100, 200)])
def test_weights_of_any_size(kind, place, least, most):
    for seed in range(4):
        weights = 10.0 ** np.random.default_rng(seed).uniform(least, most, 40)
        assert_within_errors(kind, make(seed, far=10.0, place=place, weights=weights))


@KINDS
@PLACES
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (1e-100, 1e-230),  # their products underflow
        (1.0, 1e-170),  # squares of targets do
        (1e-170, 1.0),
        (1e-200, 1e-200),
        (1e-250, 1e-100),
        (1.0, 1e-320),  # so do products with vectors, and with weights
        (1e-310, 1e-310),
        (1e140, 1.0),
        (1e140, 1e140),
        (1e-140, 1e140),
    ],
)
def test_tiny_and_huge_numbers(kind, place, x, y):
    for seed, v in itertools.product(range(3), (None, 0.0, 1e-300, 1.0)):
        rng = np.random.default_rng(seed)
        for weights in (None, rng.random(40) + 0.01):
            v = 1.0 if v is None and y / x > 1e200 else v
            assert_within_errors(kind, make(seed, x=x, y=y, v=v, place=place, weights=weights))


@KINDS
@PLACES
@pytest.mark.parametrize("power", [-100.0, 0.0, 100.0])
@pytest.mark.parametrize("x", [1e-250, 1.0, 1e40])
def test_scaled_columns(kind, place, power, x):
    for seed in range(3):
        scale = 10.0**power * np.exp(np.random.default_rng(seed).standard_normal(4))
        v = 10.0**-power  # times scale is about one
        assert_within_errors(kind, make(seed, x=x, v=v, far=10.0, place=place, scale=scale))


@KINDS
@PLACES
def test_sparse_rows_with_full_columns_far_from_zero(kind, place):
    for seed in range(6):
        case = make(seed, far=1e8, place=place)
        case.rows[:, 1:] *= np.random.default_rng(seed).random(case.rows[:, 1:].shape) < 0.3
        assert_within_errors(kind, case)


@KINDS
def test_rounding_that_goes_to_one_side(kind):
    # All terms are equal, so that additions round the same way for long.
    for d, weight in ((3, None), (40, 1e-8)):
        weights = None if weight is None else np.append(weight, np.full(59, 1 / 3))
        zero = Preparation(np.zeros(d), np.zeros(2), None, True)
        rows, targets = np.full((60, d), 0.1), np.full((60, 2), 0.7)
        rows[0], targets[0] = 0.3, -0.1
        vectors, signs = np.full((d, 2), 0.1), np.ones(2)
        case = Case(rows, targets, weights, zero, vectors, np.array([0, -1]), signs)
        assert_within_errors(kind, case)


@KINDS
def test_many_targets_made_one(kind):
    # Longer than any block: the sum over targets rounds the same way for long.
    targets, signs = np.full((20, 400), 0.1), np.full(400, 0.1)
    targets[0] = 0.3
    near = Preparation(np.zeros(2), np.zeros(400), None, True)
    rows = np.linspace(0.1, 0.9, 40).reshape(20, 2)
    case = Case(rows, targets, None, near, np.ones((2, 1)), np.array([399]), signs)
    assert_within_errors(kind, case)


@KINDS
def test_zeros_have_no_error(kind):
    case = make(0, place="none")
    nothing = case._replace(targets=0 * case.targets, vectors=0 * case.vectors)
    empty = case._replace(rows=0 * case.rows)
    for each in (nothing, empty):
        totals = read(kind, each)
        assert not totals.lifted.any()
        assert not totals.lifted_error.any()
        assert totals.check_error == 0
    assert read(kind, nothing).mass_error > 0
    assert read(kind, empty).mass_error == 0
    assert not read(kind, nothing).target_mass_error.any()


@KINDS
def test_what_overflows_has_no_finite_error(kind):
    case = make(0, x=1e140, y=1.0, v=1e200)
    totals = read(kind, case)
    assert not np.isfinite(totals.lifted_error).any()


@pytest.mark.parametrize("seed", range(8))
def test_any_mixture(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        n, d = int(rng.integers(1, 40)), int(rng.integers(1, 7))
        x, y = 10.0 ** rng.choice([-200, -160, -100, -3, 0, 3, 100], 2)
        kind = rng.integers(3)
        weights = None if kind == 0 else rng.random(n) + 0.01
        if kind == 2:
            weights = 10.0 ** rng.uniform(-30, 30, n)
        scale = x * np.exp(rng.standard_normal(d)) if rng.random() < 0.4 else None
        place = str(rng.choice(["none", "near", "away"]))
        far = rng.choice([0.0, 1.0, 1e4, 1e8])
        v = rng.choice([0.0, 1e-8, 1.0]) * (y if scale is not None else min(y / x, 1e150))
        if scale is not None:
            scale = np.clip(scale, 1e-140, 1e140)
            v = v / scale.max()
        case = make(
            int(rng.integers(1 << 30)),
            n=n,
            d=d,
            far=far,
            x=x,
            y=y,
            v=v,
            weights=weights,
            place=place,
            scale=scale,
        )
        case.rows[...] *= rng.random((n, d)) < rng.choice([0.3, 1.0])
        for how in (DensePass, SparsePass):
            assert_within_errors(how, case)
