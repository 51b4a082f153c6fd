"""Whatever names hold, they are shown as they are, and nothing in them steers a terminal."""

import json
import os
import pty
import re
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import ridgepass as package
from ridgepass.cli.app import run
from ridgepass.cli.progress import Watch
from ridgepass.cli.show import printable, say

# Controls of a terminal in every coding, line ends, and what turns the order of the text.
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NAMES = {
    "[/x]": "[/x]",
    "[red]b": "[red]b",
    "[link=file:///x]y": "[link=file:///x]y",
    "\\[b]": "\\[b]",
    ":warning:": ":warning:",
    "a\x1b[2Jb": r"a\x1b[2Jb",
    "a\x9b2Jb": r"a\x9b2Jb",
    "a\x1b]0;title\x07": r"a\x1b]0;title\x07",
    "a\x7f\b\rb": r"a\x7f\x08\rb",
    "two\nlines\u2028more": r"two\nlines\u2028more",
    "safe\u202egpj\u202c\u2066": r"safe\u202egpj\u202c\u2066",
    "größe 尺寸 a\u200cb": "größe 尺寸 a\u200cb",
}


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs a command here: its exit code, and what it says, in which nothing may be unsafe."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        said, warned = capsys.readouterr()
        assert not UNSAFE.search(said + warned)
        return code, said, warned

    return call


def write(path, feature="x", target="y"):
    table = pa.table({feature: [1.0, 2.0, 4.0], target: [1.0, 3.0, 9.0]})
    pa.parquet.write_table(table, path)


def value(said, name):
    """What a table says of something."""
    (line,) = (line for line in said.split("\n") if line.startswith(f"{name}  "))
    return line.removeprefix(name).strip()


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_any_name_in_every_summary(command, name):
    shown = NAMES[name]
    write("rows.parquet", feature=name, target=f"{name}!")
    fit = ["fit", "rows.parquet", "-t", f"{name}!", "-o", "m.ridge"]
    code, said, _ = command(*fit)
    assert (code, value(said, "target")) == (0, f"{shown}!")
    code, said, warned = command(*fit, "--json", "-q")
    assert (code, json.loads(said)["targets"], warned) == (0, [f"{name}!"], "")
    code, said, _ = command("inspect", "m.ridge")
    assert (code, value(said, "columns")) == (0, shown)
    code, said, _ = command("inspect", "m.ridge", "--json")
    facts = json.loads(said)
    assert (code, facts["columns"], facts["targets"]) == (0, name, [f"{name}!"])
    write("other.parquet", feature=name, target="?")
    assert command("fit", "other.parquet", "-t", "?", "-o", "o.ridge")[0] == 0
    code, _, warned = command("merge", "m.ridge", "o.ridge", "-o", "n.ridge")
    assert code == 2
    assert f"m.ridge predicts {in_one_line(name)}! and o.ridge ?:" in warned


@pytest.mark.parametrize("name", NAMES)
def test_files_of_any_name_in_summaries_and_errors(command, name):
    path, shown = (f"{text.replace('/', '')}.ridge" for text in (name, NAMES[name]))
    write("rows.parquet")
    code, said, _ = command("fit", "rows.parquet", "-t", "y", "-o", path)
    assert (code, said.split("\n")[0].strip()) == (0, shown)
    code, said, _ = command("inspect", path)
    assert (code, said.split("\n")[0].strip()) == (0, shown)
    code, said, _ = command("inspect", path, "--json")
    assert (code, json.loads(said)["path"]) == (0, path)
    code, _, warned = command("fit", path, "--format", "parquet", "-t", "y", "-o", "n.ridge")
    assert (code, warned.count("\n")) == (2, 1)
    assert f"error: {in_one_line(path)} cannot be read as Parquet" in warned


def in_one_line(name):
    """What an error, which is one line, makes of a name."""
    return printable(" ".join(name.split()))


def test_a_path_that_is_not_text(command):
    path = os.fsdecode(b"m\xff.ridge")
    write("rows.parquet")
    code, said, _ = command("fit", "rows.parquet", "-t", "y", "-o", path)
    assert code == 0
    assert r"m\udcff.ridge" in said
    code, said, _ = command("inspect", path, "--json")
    assert (code, json.loads(said)["path"]) == (0, path)


def test_categories_values_and_what_was_typed(command):
    bad = "[/x]\x1b[2J"
    frame = pd.DataFrame({"c": [bad, "b", bad], "y": [1.0, 2.0, 4.0]})
    frame.to_parquet("rows.parquet")
    code, _, warned = command("fit", "rows.parquet", "-t", "y", "-o", "m.ridge")
    assert code == 2
    assert r"text ('[/x]\x1b[2J' in row 1)" in warned
    fit = ["fit", "rows.parquet", "-t", "y", "--one-hot", "c", "-o", "m.ridge"]
    assert command(*fit)[0] == 0
    assert list(package.load("m.ridge").feature_names_in_) == [f"c={bad}", "c=b"]
    with open("rows.csv", "w") as file:
        file.write("x,y\n" + "1,2\n" * 400_000 + f"{bad},2\n")
    code, _, warned = command("fit", "rows.csv", "-t", "y", "-o", "n.ridge", "-q")
    assert code == 2
    assert r"'[/x]\x1b[2J' in row 400001" in warned
    for wrong in ([bad], ["fit", "-o", "m.ridge", bad], ["fit", "rows.csv", f"--{bad}"],
                  ["fit", "rows.csv", "-o", "m", "--sketch-size", bad],
                  ["fit", "rows.csv", "-t", "y", "-o", f"{bad}/m.ridge"],
                  ["fit", "rows.csv", "-t", "y", "--every", bad, "-o", "m.ridge"]):  # fmt: skip
        code, said, warned = command(*wrong)
        assert (code, said, warned.count("\n")) == (2, "", 1)
        assert r"[/x]\x1b[2J" in warned


def test_a_traceback_for_developers_is_as_safe(command, monkeypatch):
    monkeypatch.setenv("RIDGEPASS_DEBUG", "1")
    code, _, warned = command("inspect", "\x1b[2J")
    assert code == 2
    assert "Traceback" in warned


def test_warnings_are_as_safe(command, monkeypatch):
    import warnings

    def warn(*_, **__):
        warnings.warn("[/x] \x1b[2J", UserWarning, stacklevel=1)

    monkeypatch.setattr("ridgepass.cli.models.inspect", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, warned = command("inspect", "m.ridge")
    assert (code, warned) == (0, "ridgepass: warning: [/x] \\x1b[2J\n")


def test_a_line_is_a_line(capsys):
    say("a\nb\x85c\u2029d")
    assert capsys.readouterr().err == "a\\nb\\x85c\\u2029d\n"


def test_progress_shows_its_label_as_it_is(monkeypatch):
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        patch.setenv("TERM", "xterm")
        with Watch(10, None, label="[red]a\x07[/x]") as watch:
            watch.update(5, 0)
            watch.bar.refresh()
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert r"[red]a\x07[/x]" in shown
    assert "\x07" not in shown


@pytest.mark.parametrize(
    "option", ["--probes=2.5", "--seed=1.5", "--sketch-size=3.2", "--passes=x", "--n-features=1e2"]
)
def test_numbers_that_are_not_whole_are_refused(command, option):
    write("rows.parquet")
    code, _, said = command("fit", "rows.parquet", "--target", "y", "-o", "m.ridge", option)
    assert code != 0
    name, number = option.split("=")
    assert f"{name}: {number} is not a whole number" in said
    code, _, said = command("fit", "rows.parquet", "-t", "y", "-o", "m.ridge", "--probes=-1")
    assert code != 0
    assert "probes=-1: pass a whole number of at least 0" in said
