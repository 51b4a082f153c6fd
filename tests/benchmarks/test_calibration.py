"""Cases of the calibration are what they say, and what is counted is what the law is about."""

import numpy as np
import pytest

from benchmarks import calibration
from benchmarks.calibration import Count, Data, Outcome, Setting, outcome, written_out

SETTING = Setting("rfd", False, False, False, False, False, 1)


def test_a_case_is_the_same_again_and_has_probes_of_its_own():
    first, again = (outcome("rfd", 3, seed=1) for _ in range(2))
    assert first == again
    rng = np.random.default_rng(0)
    data = Data.draw(SETTING, rng)
    one, other = (calibration.trained(SETTING, data, 4, seed, []) for seed in (1, 2))
    assert (one._query().probes.points != other._query().probes.points).any()
    np.testing.assert_array_equal(one.solve(1.0), other.solve(1.0))


@pytest.mark.parametrize("method", calibration.METHODS)
def test_probes_meet_the_residual_of_the_rows_written_out(method):
    found = [outcome(method, number, seed=2) for number in range(30)]
    said = [one for one in found if not one.left_out]
    assert len(said) > 15
    # Nothing is below the truth with one in a million, and not half of all with one in twenty.
    assert not any(one.given[2] or one.law[2] for one in said)
    assert sum(one.law[0] for one in said) < len(said) / 2
    for one in said:
        assert all(bare or not given for bare, given in zip(one.bare, one.given, strict=True))


def test_rows_written_out_are_those_of_ridge():
    rng = np.random.default_rng(0)
    setting = Setting("rfd", True, True, False, False, True, 1)
    A, b, weights = rng.standard_normal((50, 3)) + 5, rng.standard_normal(50), rng.random(50)
    X, y = written_out(setting, A, b, weights)
    np.testing.assert_allclose(np.square(X).sum(0), weights.sum())
    np.testing.assert_allclose([np.sqrt(weights) @ X[:, 0], np.sqrt(weights) @ y], 0, atol=1e-12)


def test_shares_are_told_in_standard_errors():
    found = [Outcome(SETTING, *[(i < 7, i < 2, False)] * 3) for i in range(100)]
    assert Count.of(found, "given", 0).off == pytest.approx(0.02 / np.sqrt(0.05 * 0.95 / 100))
    assert str(Count.of(found, "law", 0)) == "7.00 % (+0.9)"
    assert str(Count.of(found, "law", 2)) == "0"
    assert all(figure.met for figure in calibration.figures(found))
    many = [Outcome(SETTING, *[(True, False, True)] * 3)] * 100
    missed = [figure.what for figure in calibration.figures(many) if not figure.met]
    assert len(missed) == 4
    assert "β = 1e-06" in missed[-1]


def test_the_report_has_a_row_for_every_method_and_setting():
    found = calibration.run(7, 0, calibration.METHODS)
    text = calibration.report([*found, Outcome(SETTING, left_out="dropped")], 0, "versions")
    for group in (*calibration.METHODS, "intercept", "sparse", "float32", "merged"):
        assert f"\n| {group} |" in text
    assert "8 small streams" in text
