import json

import numpy as np
import pandas as pd
from command import complaint, run_well, summary
from tables import make_frame

import ridgepass as package

OPTIONS = ["--target", "price", "--exclude", "city", "--weight", "weight", "--alpha", "3"]


def test_merged_models_are_one(tmp_path):
    frame = make_frame()
    frame.to_parquet(tmp_path / "all.parquet")
    summary("fit", "all.parquet", *OPTIONS, "-o", "all.ridge", cwd=tmp_path)
    for i in range(3):
        frame[i * 100 : (i + 1) * 100].to_csv(tmp_path / f"{i}.csv", index=False)
        summary("fit", f"{i}.csv", *OPTIONS, "-o", f"{i}.ridge", cwd=tmp_path)
    parts = [f"{i}.ridge" for i in range(3)]
    said = run_well("merge", *parts, "-o", "merged.ridge", "--json", cwd=tmp_path)
    assert json.loads(said)["rows"] == 300
    merged, whole = (package.load(tmp_path / f"{name}.ridge") for name in ("merged", "all"))
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=1e-9)
    run_well("merge", *parts, "-o", "0.ridge", cwd=tmp_path)  # over one of them
    assert (tmp_path / "0.ridge").read_bytes() == (tmp_path / "merged.ridge").read_bytes()


def test_what_does_not_go_together(tmp_path):
    frame = make_frame()
    frame.to_parquet(tmp_path / "rows.parquet")
    variants = {
        "a": OPTIONS,
        "b": [*OPTIONS[:2], "--exclude", "city,rooms", *OPTIONS[4:]],
        "c": ["--target", "size", *OPTIONS[2:]],
        "d": [*OPTIONS, "--no-intercept"],
        "e": [*OPTIONS, "--method", "fd", "--sketch-size", "2"],
        "f": [*OPTIONS[:-1], "auto"],
    }
    for name, options in variants.items():
        summary("fit", "rows.parquet", *options, "-o", f"{name}.ridge", cwd=tmp_path)
    expected = {
        "b": "rooms",
        "c": "a.ridge predicts price and c.ridge size",
        "d": "fit_intercept",
        "e": "method",
        "f": "StreamingRidgeCV",
    }
    for name, reason in expected.items():
        said = complaint("merge", "a.ridge", f"{name}.ridge", "-o", "x.ridge", cwd=tmp_path)
        assert reason in said
        assert f"{name}.ridge" in said
    assert "twice" in complaint("merge", "a.ridge", "a.ridge", "-o", "x.ridge", cwd=tmp_path)
    assert "two or more" in complaint("merge", "a.ridge", "-o", "x.ridge", cwd=tmp_path)


def test_inspect_tells_rows_columns_and_quality(tmp_path):
    make_frame().to_parquet(tmp_path / "rows.parquet")
    options = ["--target", "price", "--one-hot", "city", "--weight", "weight"]
    fitted = summary("fit", "rows.parquet", *options, "-o", "m.ridge", cwd=tmp_path)
    facts = json.loads(run_well("inspect", "m.ridge", "--json", cwd=tmp_path))
    for name in ("rows", "features", "method", "alpha", "certified_error", "training_r2"):
        assert facts[name] == fitted[name]
    assert facts["file_bytes"] == (tmp_path / "m.ridge").stat().st_size
    assert facts["format_version"] == 4
    said = run_well("inspect", "m.ridge", "m.ridge", cwd=tmp_path).decode()
    assert said.count("size, rooms, new, city (3 categories)") == 2
    assert "300" in said
    other = json.loads(run_well("inspect", "m.ridge", "--alpha", "77", "--json", cwd=tmp_path))
    assert other["alpha"] == 77
    assert other["training_r2"] < facts["training_r2"]


def test_inspect_certifies_with_another_confidence(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 40)) * np.exp(-np.arange(40) / 8)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(40)]).assign(y=X.sum(axis=1))
    frame.to_parquet(tmp_path / "rows.parquet")
    options = ["--target", "y", "--method", "tracked", "--sketch-size", "12", "-o", "m.ridge"]
    run_well("fit", "rows.parquet", *options, cwd=tmp_path)
    usual, half, certain = (
        json.loads(run_well("inspect", "m.ridge", "--json", *more, cwd=tmp_path))
        for more in ([], ["--confidence", "0.5"], ["--confidence", "1"])
    )
    assert half["certified_error"] < usual["certified_error"] < certain["certified_error"]
    assert [one["confidence"] for one in (usual, half, certain)] == [1 - 1e-6, 0.5, 1.0]
    said = complaint("inspect", "m.ridge", "--confidence", "2", cwd=tmp_path)
    assert "confidence=2: pass a number" in said
