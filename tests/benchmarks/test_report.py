"""One line per figure, with and without a target."""

from benchmarks.report import Figure


def test_a_target_is_met_or_missed():
    assert Figure("seconds", 2.0, 3.0, unit=" s").row() == "| seconds | 2 s | ≤ 3 s | yes |"
    assert Figure("gain", 2.0, 3.0, at_most=False).row() == "| gain | 2 | ≥ 3 | **no** |"


def test_a_number_without_a_target_is_only_told():
    figure = Figure("seconds", 2.0, None, unit=" s")
    assert figure.row() == "| seconds | 2 s | | |"
    assert figure.met
