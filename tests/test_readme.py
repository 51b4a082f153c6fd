"""The README is true: its example runs, its figures are those of the committed runs."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ridgepass import StreamingRidge

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(readme, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    names = {}
    exec(example, names)
    assert f"It prints `{capsys.readouterr().out.strip()}`." in readme
    assert names["model"].method_ == "tracked"


@pytest.mark.slow
def test_the_shell_example_runs(readme, tmp_path):
    (shell,) = re.findall(r"```sh\n(.*?)```", readme, flags=re.DOTALL)
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((200, 2)), columns=["a", "b"])
    frame = frame.assign(price=frame["a"], id=range(200), city=["Rome", "Bonn"] * 100)
    (tmp_path / "data").mkdir()
    for name in ("here", "there"):
        frame[["a", "b", "price"]].to_parquet(tmp_path / "data" / f"{name}.parquet")
    frame.to_parquet(tmp_path / "new.parquet")
    frame.to_csv(tmp_path / "rows.csv.gz", index=False)
    StreamingRidge().fit_stream(tmp_path / "data", "price").save(tmp_path / "there.ridge")
    script = f"set -eu\nPATH={Path(sys.executable).parent}:$PATH\n{shell}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    predictions = pd.read_parquet(tmp_path / "predictions.parquet")
    assert list(predictions) == ["id", "prediction", "lower", "upper"]
    assert '"rows": 800' in done.stdout  # of the merged model


def quoted(text, name):
    return text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip()


def test_the_peers_are_those_of_the_committed_run(readme):
    results = (ROOT / "benchmarks" / "results" / "peers.md").read_text(encoding="utf-8")
    table = quoted(readme, "peers")
    assert table in results
    assert table.count("\n") > 10


@pytest.mark.parametrize("page", ["README.md", "docs/refining.md"])
def test_the_passes_are_those_of_the_committed_run(page):
    results = (ROOT / "benchmarks" / "results" / "refining.md").read_text(encoding="utf-8")
    lines = quoted((ROOT / page).read_text(encoding="utf-8"), "refining").splitlines()
    assert len(lines) >= 8
    assert set(lines) <= set(results.splitlines())


def test_the_claims_are_those_of_the_committed_run(readme):
    claims = (ROOT / "experiments" / "results" / "claims.md").read_text(encoding="utf-8")
    (summary,) = re.findall(r"^Of \d+ claims of the paper: .*\.$", claims, flags=re.MULTILINE)
    assert summary in " ".join(readme.split())
    table = quoted((ROOT / "docs" / "paper.md").read_text(encoding="utf-8"), "claims")
    assert table in claims
    assert table.count("\n") > 30


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_every_file_linked_to_exists(page):
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))
    for link in links:
        assert (path.parent / link).exists(), link


def test_every_make_target_named_exists(readme):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"make ([\w-]+)", readme))
    assert {"demo", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
