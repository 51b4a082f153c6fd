"""What is printed: tables, JSON, and numbers as people read them."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ridgepass.query import CONFIDENCE

_UNITS = ["bytes", "kB", "MB", "GB", "TB"]
# What steers a terminal or turns the order of the text (controls, ends of lines, marks of
# direction), and halves of characters, which no output can encode. Names in data may hold any.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Return text that is safe to print: what steers a terminal is written as Python writes it.

    Examples
    --------
    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def amount(n_bytes: float) -> str:
    """Return bytes as text.

    Examples
    --------
    >>> amount(512), amount(1.5e6), amount(2e9)
    ('512 bytes', '1.5 MB', '2 GB')
    """
    power = 0
    while n_bytes >= 1000 and power < len(_UNITS) - 1:
        n_bytes, power = n_bytes / 1000, power + 1
    return f"{n_bytes:.3g} {_UNITS[power]}"


def duration(seconds: float) -> str:
    """Return seconds as text.

    Examples
    --------
    >>> duration(0.25), duration(75), duration(7265)
    ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min {seconds % 60:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min"


def share(value: float | None) -> str:
    """Return a certified relative error as text."""
    if value is None:
        return "none"
    if 0 < value < 1e-4:
        return f"{value:.2g}"
    return f"{value:.2%}" if value < 10 else f"{value:.3g} times their norm"


def certified(model: Any) -> float | None:
    """Return the certified relative error of a model, the largest of its targets; None for none."""
    return as_certified(float(np.max(model.certificate().relative)))


def as_certified(worst: float | None) -> float | None:
    """Return a bound if it says anything."""
    return worst if worst is not None and np.isfinite(worst) else None


def proven(model: Any, confidence: float) -> dict[str, Any]:
    """Return what a model knows of its error, the largest of its targets, as plain data."""
    proof = model.certificate(confidence=confidence)
    estimate = proof.relative_estimate
    return {
        "estimated_error": None if estimate is None else as_certified(float(np.max(estimate))),
        "certified_error": as_certified(float(np.max(proof.relative))),
        "confidence": proof.confidence,
        "rests_on": proof.rests_on,
        "remark": proof.remark or None,
    }


def surely(confidence: float) -> str:
    """Return how sure a bound is, as text.

    Examples
    --------
    >>> surely(1.0), surely(1 - 1e-6), surely(0.95)
    ('for certain', 'with probability 1 − 1e-06', 'with probability 0.95')
    """
    if confidence == 1.0:
        return "for certain"
    doubt = 1 - confidence
    return (
        f"with probability {confidence:g}" if doubt >= 1e-3 else f"with probability 1 − {doubt:g}"
    )


def passes_of(model: Any) -> int:
    """Return how many passes over the data a model's answer rests on."""
    learned = model._trained()
    with learned.lock:
        passes: int = learned.stream.passes(model._alpha_in_use())
    return passes


def description(model: Any, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Return what a model is and how good, as plain data."""
    learned = model._trained()
    described = learned.columns or {}
    score = model.training_score() if hasattr(model, "training_score") else None
    return {
        "model": type(model).__name__,
        "rows": model.n_samples_seen_,
        "features": model.n_features_in_,
        "targets": described.get("targets") or learned.origin.n_targets,
        "method": model.method_,
        "sketch_size": None if model.method_ == "exact" else model.sketch_size_,
        "alpha": model._alpha_in_use(),
        **proven(model, confidence),
        "passes": passes_of(model),
        "training_r2": None if score is None or not np.isfinite(score) else score,
        "intercept": learned.settings.fit_intercept,
        "standardize": learned.settings.standardize,
        "bytes": learned.stream.nbytes,
    }


def lines_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the same for people."""
    named = facts["targets"]
    targets = ", ".join(named) if isinstance(named, list) else f"{named:,}"
    method = facts["method"]
    if facts["sketch_size"] is not None:
        method += f", sketch size {facts['sketch_size']:,}"
    r2 = facts["training_r2"]
    lines = {
        "rows": f"{facts['rows']:,}",
        "features": f"{facts['features']:,}",
        "targets" if facts["targets"] != 1 else "target": targets,
        "method": method,
        "alpha": f"{facts['alpha']:g}",
        "estimated error": f"{share(facts['estimated_error'])} of the coefficients",
        "certified error": _proof(facts),
        "training R²": "unknown" if r2 is None else f"{r2:.4f}",
    }
    if facts["estimated_error"] is None:
        del lines["estimated error"]
    if facts["remark"]:
        lines["remark"] = facts["remark"]
    if isinstance(named, list) and len(named) == 1:
        lines = {"target" if key == "targets" else key: text for key, text in lines.items()}
    if "seconds" in facts:
        lines["time"] = duration(facts["seconds"])
    if "peak_memory" in facts:
        lines["peak memory"] = amount(facts["peak_memory"])
    return lines


def _proof(facts: Mapping[str, Any]) -> str:
    if facts["certified_error"] is None:
        return "none"
    how = {"exact": "as XᵀX is kept", "sketch": "by the sketch", "probes": "by random probes"}
    proof = f"{share(facts['certified_error'])} {surely(facts['confidence'])}"
    passes = facts["passes"]
    by = how.get(facts["rests_on"], "by the rows read again")
    if facts["confidence"] < 1 and facts["rests_on"] != "probes":
        by += " and random probes"
    return f"{proof}, {by}" if passes == 1 else f"{proof}, {by}, after {passes} passes"


def print_table(lines: Mapping[str, str], title: str | None = None) -> None:
    """Print names and values as a table on standard output."""
    title = None if title is None else printable(title)
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in lines.items():
        table.add_row(printable(name), printable(text))
    # Names are shown as they are: [red] in one is no colour, and :ok: no picture.
    console = Console(
        file=sys.stdout,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not sys.stdout.isatty(),
    )
    console.print(table)


def print_json(facts: Any) -> None:
    """Print plain data on standard output."""
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    # The names stay true: JSON has escapes for what a terminal must not see.
    lines = (
        _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n")
    )
    sys.stdout.write("\n".join(lines) + "\n")


def say(text: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()
