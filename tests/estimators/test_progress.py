"""What those who wait are told."""

import re

import numpy as np
import pytest

from ridgepass import StreamingRidge
from ridgepass.estimators import progress as lines
from ridgepass.estimators.progress import as_watch
from ridgepass.refining import Progress

N_ROWS = 1200


@pytest.fixture
def trained():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 30)) * np.exp(-np.arange(30) / 8)
    y = X @ rng.standard_normal(30) + rng.standard_normal(N_ROWS)
    return StreamingRidge(20.0, method="rfd", sketch_size=8).fit(X, y), X, y


def test_a_line_for_each_pass(trained, capsys):
    model, X, y = trained
    model.refine(X, y, passes=3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    found = [
        re.fullmatch(r"pass (\d): 1,200 rows, certified error (\S+)", line).groups()
        for line in err.splitlines()
    ]
    assert [number for number, _ in found] == ["2", "3", "4"]
    assert float(found[-1][1]) == pytest.approx(model.certificate().relative, rel=0.1)
    model.refine(X, y, progress=True)
    assert capsys.readouterr().err.startswith("pass 5: ")


def test_lines_within_a_long_pass(trained, capsys, monkeypatch):
    model, X, y = trained
    now = [0.0]

    def clock():
        now[0] += 4.0
        return now[0]

    monkeypatch.setattr(lines.time, "monotonic", clock)
    model.refine([(X[i : i + 200], y[i : i + 200]) for i in range(0, N_ROWS, 200)], progress=True)
    found = [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert found == ["pass 2: 600 rows", "pass 2: 1", "pass 2: 1"]


@pytest.mark.parametrize("quiet", [None, False])
def test_silence(trained, quiet, capsys):
    model, X, y = trained
    model.refine(X, y, progress=quiet)
    assert capsys.readouterr() == ("", "")


def test_a_function_is_told_of_every_batch(trained):
    model, X, y = trained
    told, parts = [], [(X[:500], y[:500]), (X[500:700], y[500:700]), (X[700:], y[700:])]
    model.refine(parts, passes=3, alphas=[20.0, 50.0], progress=told.append)
    assert all(isinstance(each, Progress) for each in told)
    assert [(each.number, each.rows) for each in told] == [
        (number, rows) for number in (2, 3, 4) for rows in (500, 700, 1200, 1200)
    ]
    ends = [each.relative for each in told[3::4]]
    assert [each.relative for each in told if each.relative is not None] == ends
    worst = max(model.certificate(alpha).relative for alpha in (20.0, 50.0))
    assert ends[-1] == worst
    assert ends[0] > ends[-1]


def test_weightless_rows_do_not_count(trained):
    _, X, y = trained
    weights = (np.arange(N_ROWS) % 3 > 0).astype(float)
    model, told = StreamingRidge(method="rfd", sketch_size=8).fit(X, y, weights), []
    model.refine(X, y, weights, progress=told.append)
    assert [each.rows for each in told] == [800, 800]


def test_an_error_in_the_function_ends_it(trained):
    model, X, y = trained

    def stop(progress):
        if progress.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.refine(X, y, passes=5, progress=stop)
    assert model.certificate().passes == 2  # which was done


@pytest.mark.parametrize("wrong", [1, 0, "yes", []])
def test_what_cannot_be_called(trained, wrong):
    model, X, y = trained
    with pytest.raises(TypeError, match="cannot be called: give True, False or a function"):
        model.refine(X, y, progress=wrong)
    assert model.certificate().passes == 1


def test_nobody():
    assert as_watch(None) is None
    assert as_watch(False) is None
    assert as_watch(print) is print
