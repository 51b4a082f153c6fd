"""A whole run at a size of seconds: it can be taken up, and drawn, and judged."""

import dataclasses

import pandas as pd
import pytest
from rich.console import Console
from rich.progress import Progress

from experiments import errors, figures, report, times
from experiments.claims import CLAIMS, Verdict, check
from experiments.results import Results
from experiments.run import Run
from experiments.scale import SMALL

TINY = dataclasses.replace(
    SMALL,
    name="tiny",
    n_features=32,
    n_rows=128,
    repeats=2,
    sizes=(2, 4, 8, 16),
    projection_sizes=(2, 4, 8, 16, 64, 128),
    timed_features=(16, 32, 64),
    timed_rows=(32, 64, 128),
    few_rows=32,
    timed_size=4,
    least_timings=1,
    seconds=0.0,
)


def tiny_run(folder):
    return Run(TINY, None, folder, 2, Progress(console=Console(quiet=True)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def results(folder):
    return tiny_run(folder).results()


@pytest.mark.slow
def test_every_algorithm_is_measured_on_every_data_set_and_draw(results):
    table = results.errors
    exact = table[table.algorithm == "rr"]
    assert (exact.coef_error < 1e-8).all()
    assert set(exact.data) == set(errors.DATA)
    cells = table.groupby(["data", "algorithm", "size", "at"]).repeat.nunique()
    assert (cells == TINY.repeats).all()
    assert set(table.algorithm) == {
        "rr", "FDrr", "RFDrr", "iSVDrr", "2LFDrr", "tracked", "RPrr", "CSrr"
    }  # fmt: skip
    assert set(results.times.against) == {"ℓ", "d", "n"}
    assert (results.times[["train", "query"]] > 0).all(axis=None)


@pytest.mark.slow
def test_a_run_taken_up_measures_nothing_twice(results, folder, monkeypatch):
    def again(*_):
        raise AssertionError("measured again")

    for module, name in ((errors, "tried_alphas"), (errors, "measure"), (times, "measure")):
        monkeypatch.setattr(module, name, again)
    before = sorted(path.stat().st_mtime_ns for path in folder.rglob("*.json"))
    taken_up = tiny_run(folder).results()
    for field in dataclasses.fields(Results):
        pd.testing.assert_frame_equal(getattr(taken_up, field.name), getattr(results, field.name))
    assert sorted(path.stat().st_mtime_ns for path in folder.rglob("*.json")) == before


@pytest.mark.slow
def test_a_task_that_is_missing_is_done_again(results, folder):
    lost = next(path for path in folder.rglob("*.json") if path.parent.name.startswith("errors"))
    kept = lost.read_text()
    lost.unlink()
    tiny_run(folder).results()
    assert lost.read_text() == kept


@pytest.mark.slow
def test_tables_are_read_back_to_six_digits(results, tmp_path):
    results.save(tmp_path)
    again = Results.load(tmp_path)
    pd.testing.assert_frame_equal(
        again.errors, results.errors, rtol=1e-5, check_dtype=False, check_exact=False
    )


@pytest.mark.slow
def test_figures_come_as_png_and_svg(results, tmp_path):
    names = figures.draw(results, tmp_path)
    assert len(names) == len(set(names)) >= 7
    for name in names:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "algorithm"), [("tracked", "tracked"), ("certificate", "RFDrr")])
def test_a_claim_of_ours_stands_and_falls_with_its_numbers(results, name, algorithm):
    def verdict(factor):
        table = results.errors.copy()
        table.loc[table.algorithm == algorithm, "coef_error"] *= factor
        turned = dataclasses.replace(results, errors=table)
        (claim,) = (one for one in CLAIMS if one.name == name)
        return check(turned, TINY, [claim])[0].finding.verdict

    assert verdict(1e-12) == Verdict.HOLDS
    assert verdict(1e12) == Verdict.DOES_NOT_HOLD


@pytest.mark.slow
def test_every_claim_finds_its_numbers(results):
    checked = check(results, TINY)
    assert [one.claim for one in checked] == list(CLAIMS)
    assert len({one.claim.name for one in checked}) == len(CLAIMS)
    text = report.markdown(results, checked, TINY, "nowhere")
    for one in checked:
        assert one.claim.says in text
        assert one.finding.figures in text
