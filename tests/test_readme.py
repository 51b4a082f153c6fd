"""The README is true: its example runs, its figures are those of the committed runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(readme, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    names = {}
    exec(example, names)
    assert f"It prints `{capsys.readouterr().out.strip()}`." in readme
    assert names["model"].method_ == "anchored"


def test_the_table_is_that_of_the_committed_run(readme):
    results = (ROOT / "benchmarks" / "results" / "bench.md").read_text(encoding="utf-8")
    quoted = readme.split("<!-- bench -->")[1].split("<!-- /bench -->")[0]
    assert quoted.strip() == results.strip()


def test_the_errors_are_those_of_the_committed_run(readme):
    results = (ROOT / "benchmarks" / "results" / "accuracy.md").read_text(encoding="utf-8")
    quoted = readme.split("<!-- accuracy -->")[1].split("<!-- /accuracy -->")[0]
    assert quoted.strip() in results
    assert quoted.count("\n") > 15


def test_every_make_target_named_exists(readme):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"make ([\w-]+)", readme))
    assert {"demo", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
