"""The findings of a run in words: alphas, the table of claims, what it ran on."""

import os
import platform
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import scipy

import ridgepass
from experiments.claims import Checked, Verdict
from experiments.results import Results
from experiments.run import chosen_alphas
from experiments.scale import Scale

EXPECTED = Path(__file__).parent / "expected"


def machine() -> str:
    """Return what the numbers were measured with, without naming the machine."""
    tools = {"NumPy": np, "SciPy": scipy, "pandas": pd, "matplotlib": matplotlib}
    versions = ", ".join(f"{name} {tool.__version__}" for name, tool in tools.items())
    return (
        f"ridgepass {ridgepass.__version__}, Python {platform.python_version()}, {versions}; "
        f"{processor()}, {os.cpu_count()} cores, {platform.system()}, one BLAS thread"
    )


def processor() -> str:
    """Return the kind of processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def markdown(results: Results, checked: list[Checked], scale: Scale, place: str) -> str:
    """Return the report."""
    alphas = ", ".join(f"{data} {alpha:g}" for data, alpha in chosen_alphas(results.alphas).items())
    parts = [
        f"n = {scale.n_rows}, d = {scale.n_features}, test rows {scale.n_rows // 4}, "
        f"{scale.repeats} draws; TEMP from {place}. alpha by the paper's procedure: {alphas}.\n",
        summary(checked) + "\n",
        table(checked),
        machine() + "\n",
    ]
    return "\n".join(parts)


def summary(checked: list[Checked]) -> str:
    """Return how many of the paper's claims stand how."""
    papers = [one.finding.verdict for one in checked if not one.claim.ours]
    counts = {verdict: papers.count(verdict) for verdict in reversed(Verdict)}
    listed = ", ".join(
        f"{count} {verdict.title if count == 1 else verdict.plural}"
        for verdict, count in counts.items()
    )
    return f"Of {len(papers)} claims of the paper: {listed}."


def table(checked: list[Checked]) -> str:
    """Return a row for each claim."""
    lines = ["| claim | where | verdict | figures |", "|---|---|---|---|"]
    for one in checked:
        verdict = one.finding.verdict
        title = verdict.title if verdict is Verdict.HOLDS else f"**{verdict.title}**"
        lines.append(f"| {one.claim.says} | {one.claim.place} | {title} | {one.finding.figures} |")
    return "\n".join(lines) + "\n"


def accept(checked: list[Checked], scale: Scale) -> None:
    """Write the verdicts down as those that later runs must not fall below."""
    EXPECTED.mkdir(exist_ok=True)
    frame = pd.DataFrame(
        [(one.claim.name, one.finding.verdict.title, one.finding.margin) for one in checked],
        columns=["claim", "verdict", "margin"],
    )
    frame.to_csv(EXPECTED / f"{scale.name}.csv", index=False, float_format="%.3g")


def stopped_holding(checked: list[Checked], scale: Scale) -> list[str]:
    """Return a line for each claim that is worse than the verdict accepted for it."""
    known = pd.read_csv(EXPECTED / f"{scale.name}.csv").set_index("claim")
    verdicts = {verdict.title: verdict for verdict in Verdict}
    lines = [f"{name}: is no longer checked" for name in set(known.index) - names(checked)]
    for one in checked:
        if one.claim.name not in known.index:
            lines.append(f"{one.claim.name}: is new; look at it and run with --accept")
            continue
        before = known.loc[one.claim.name]
        if one.worse_than(verdicts[str(before.verdict)], float(before.margin)):
            now = one.finding
            lines.append(
                f"{one.claim.name}: {now.verdict.title} (before: {before.verdict}): {now.figures}"
            )
    return lines


def names(checked: list[Checked]) -> set[str]:
    return {one.claim.name for one in checked}
