"""A small run of the accuracy benchmark."""

import pytest

from benchmarks import accuracy
from benchmarks.accuracy import Cell, Errors
from benchmarks.streams import Shape


@pytest.fixture(scope="module")
def measured():
    shape = Shape(n_rows=256, n_features=64)
    return [
        pair
        for data in ("LR", "flat")
        for pair in accuracy.measure(data, 0, 64.0, ("rfd", "tracked"), (8, 16), shape)
    ]


def test_every_certificate_is_above_the_truth(measured):
    assert len(measured) == 2 * 2 * 2 * 3
    assert all(errors.coef <= errors.least_certified for _, errors in measured)
    assert all(errors.bound <= errors.certain_bound for _, errors in measured)
    assert all(errors.estimate > 0 for _, errors in measured)


def test_the_report(measured):
    text = accuracy.report(measured, {"LR": 64.0, "flat": 64.0}, [], Shape(256, 64), "versions")
    assert "rfd / tracked, 2 cells of the paper's data, at alpha: geometric mean" in text
    assert "tracked, the paper's data at alpha, 2 runs" in text
    assert "tracked, all streams and alphas, 12 runs" in text
    assert "| data | ℓ | rfd, error | rfd, estimate |" in text


def test_what_is_certified_is_judged_where_the_error_is_small():
    found = [Errors(0.1, 1.0, bound, 2 * bound, 9.0, 9.0, 0.1) for bound in (0.2, 0.3, 0.9)]
    found.append(Errors(0.5, 1.0, 5.0, 9.0, 9.0, 9.0, 0.1))  # too large to be judged by one
    middle, largest, relative, *estimates = accuracy.of_certificates(found, "here", 4.0, 1.0)
    assert (middle.measured, largest.measured) == (pytest.approx(6.0), 0.9)
    assert relative.measured == 1.8
    assert (middle.met, largest.met, relative.met) == (False, True, False)
    assert all(figure.target is None for figure in estimates)


def test_the_csv_has_the_estimate(measured, tmp_path):
    path = tmp_path / "accuracy.csv"
    accuracy.write_csv(measured, path)
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    assert head.endswith("certain_bound,certain_relative,estimate")
    assert len(rows) == len(measured)
    assert rows[0].startswith(f"{Cell('LR', 'rfd', 8, 0.1).data},rfd,8,0.1,")
