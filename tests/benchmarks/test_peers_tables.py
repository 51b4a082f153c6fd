"""What is written about the rows."""

from benchmarks.peers.ledger import Ledger, Row, digest
from benchmarks.peers.tables import better_choices, workload_table, write_csv


def row(contender, seconds, megabytes, coef_error, test_error=1.0):
    return Row("w", contender, seconds, megabytes, 1.0, coef_error, test_error)


OURS = [row("tracked-64", 2.0, 50.0, 0.2), row("tracked-256", 8.0, 90.0, 0.1)]


def test_the_best_of_each_column_is_bold():
    slow = row("cholesky", 9.0, 400.0, 1e-14)
    exact = row("exact", 12.0, 500.0, 3e-13, 1.00001)
    none = Row("w", "vw", reason="stopped after 240 s")
    lines = workload_table([slow, none, *OURS, exact]).splitlines()
    assert lines[2] == ("| scikit-learn Ridge, cholesky | 9 | 400 | **1** | **< 1e-09** | **1** |")
    assert lines[3] == "| Vowpal Wabbit, defaults |  |  |  |  | stopped after 240 s |"
    assert lines[4] == "| **ridgepass** tracked 64 | **2** | **50** | **1** | 0.2 | **1** |"
    assert lines[6] == "| **ridgepass** exact | 12 | 500 | **1** | **< 1e-09** | **1** |"


def test_a_table_in_which_nothing_ran():
    assert "stopped" in workload_table([Row("w", "vw", reason="stopped at 4 GB")])


def test_a_peer_that_is_better_in_everything():
    assert better_choices([row("lsqr", 1.0, 40.0, 0.01), *OURS]) == [
        "errs less than every ridgepass row: scikit-learn Ridge, lsqr",
        "faster at no larger coefficient error: "
        "scikit-learn Ridge, lsqr (than every ridgepass row)",
        "in less memory at no larger coefficient error: "
        "scikit-learn Ridge, lsqr (than every ridgepass row)",
    ]


def test_a_peer_that_is_better_than_one_row():
    assert better_choices([row("sag", 5.0, 400.0, 0.1), *OURS]) == [
        "faster at no larger coefficient error: scikit-learn Ridge, sag (than tracked 256)"
    ]


def test_speed_with_a_larger_error_is_no_better_choice():
    assert better_choices([row("sgd", 0.1, 1.0, 0.9), *OURS]) == ["no peer, in any of the three"]


def test_exact_answers_are_not_told_apart():
    exact = row("exact", 5.0, 60.0, 1e-13)
    assert better_choices([row("cholesky", 9.0, 90.0, 1e-15), exact]) == [
        "no peer, in any of the three"
    ]


def test_what_did_not_run_is_not_compared():
    stopped = Row("w", "exact", reason="d² numbers are 8.59 GB")
    assert better_choices([row("lsqr", 1.0, 1.0, 0.1), stopped]) == ["no row of ridgepass ran"]
    vw = Row("w", "vw", reason="diverged")
    assert better_choices([vw, *OURS]) == ["no peer, in any of the three"]


def test_the_csv(tmp_path):
    path = tmp_path / "peers.csv"
    write_csv([OURS[0], Row("w", "vw", reason="diverged")], path)
    assert path.read_text(encoding="utf-8") == (
        "workload,contender,seconds,megabytes,passes,coef_error,test_error,reason\n"
        "w,tracked-64,2,50,1,0.2,1,\n"
        "w,vw,,,,,,diverged\n"
    )


def test_rows_are_kept_for_the_same_settings_only(tmp_path):
    Ledger(tmp_path, ("full", 240)).keep(OURS[0])
    assert Ledger(tmp_path, ("full", 240)).find("w", "tracked-64") == OURS[0]
    assert Ledger(tmp_path, ("full", 240)).find("w", "tracked-256") is None
    assert Ledger(tmp_path, ("full", 120)).find("w", "tracked-64") is None


def test_rows_are_kept_for_the_same_sources_only(tmp_path):
    source = tmp_path / "package"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n", encoding="utf-8")
    before = digest((), [source])
    assert digest((), [source]) == before
    (source / "a.py").write_text("x = 2\n", encoding="utf-8")
    assert digest((), [source]) != before
