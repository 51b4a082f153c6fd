"""Looking at model files, and merging them."""

import os
from collections.abc import Sequence
from typing import Any

from ridgepass.cli.checkpoint import NOTE, read_note
from ridgepass.cli.options import check_output, check_paths, summary_beside
from ridgepass.cli.show import (
    amount,
    description,
    lines_of,
    passes_of,
    print_json,
    print_table,
    say,
)
from ridgepass.estimators import StreamingRidge
from ridgepass.estimators.learned import Learned
from ridgepass.query import CONFIDENCE
from ridgepass.store import read, save


def merge(paths: Sequence[str], output: str, *, as_json: bool) -> None:
    """Merge models in the order given."""
    if len(paths) < 2:
        raise ValueError("one model alone cannot be merged: name two or more")
    twice = [path for i, path in enumerate(paths) if _real(path) in map(_real, paths[:i])]
    if twice:
        raise ValueError(f"{twice[0]} is given twice: its rows would count twice, so name it once")
    check_output(output)
    model, first = _finished(paths[0]), paths[0]
    refined = [first] if passes_of(model) > 1 else []
    for path in paths[1:]:
        other = _finished(path)
        refined += [path] if passes_of(other) > 1 else []
        _check_alike(model, first, other, path)
        columns = _joined(model._trained(), other._trained())
        try:
            model.merge(other)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} does not go with {first}: {error}") from error
        model._trained().columns = columns
        if isinstance(model, StreamingRidge) and model.alpha != other.alpha:
            say(f"ridgepass: {path} has alpha {other.alpha:g}; that of {first} is kept")
    if refined:
        say(
            f"ridgepass: {', '.join(refined)} had read the data again; the merged model rests on "
            "one pass, until model.refine reads all of it again"
        )
    save(model, output)
    facts = {**description(model), "output": output}
    with summary_beside(output):
        if as_json:
            print_json(facts)
        else:
            print_table(lines_of(facts), title=output)


def _real(path: str) -> str:
    return os.path.realpath(path)


def inspect(
    paths: Sequence[str], *, alpha: float | None, confidence: float = CONFIDENCE, as_json: bool
) -> None:
    """Say what model files hold."""
    found = [_facts(path, alpha, confidence) for path in paths]
    if as_json:
        print_json(found[0] if len(found) == 1 else found)
        return
    for facts in found:
        lines = {
            "model": facts["model"],
            **lines_of(facts),
            "intercept": "yes" if facts["intercept"] else "no",
            "standardized": "yes" if facts["standardize"] else "no",
            "memory": amount(facts["bytes"]),
            "file": f"{amount(facts['file_bytes'])}, format version {facts['format_version']}",
        }
        if facts["columns"] is not None:
            lines["columns"] = facts["columns"]
        if facts["checkpoint"]:
            lines["checkpoint"] = f"after {facts['checkpoint']:,} rows read; --resume goes on"
        print_table(lines, title=facts["path"])


def _facts(path: str, alpha: float | None, confidence: float) -> dict[str, Any]:
    check_paths([path])
    stored = read(path)
    model = stored.model if alpha is None else stored.model.at(alpha)
    note = read_note(path, stored.notes[NOTE]) if NOTE in stored.notes else None
    return {
        "path": path,
        **description(model, confidence),
        "columns": _columns(model._trained().columns),
        "file_bytes": stored.n_bytes,
        "format_version": stored.version,
        "checkpoint": None if note is None else note.counts.read,
    }


def _columns(described: dict[str, Any] | None) -> str | None:
    """Return the columns that a table must have, with their kinds."""
    if described is None or "features" not in described:
        return None
    shown = []
    for feature in described["features"]:
        text = feature["name"]
        if "length" in feature:
            text += f" (lists of {feature['length']:,})"
        elif "categories" in feature:
            text += f" ({len(feature['categories']):,} categories)"
        shown.append(text)
    more = f" and {len(shown) - 20:,} more" if len(shown) > 20 else ""
    return ", ".join(shown[:20]) + more


def _finished(path: str) -> Any:
    check_paths([path])
    stored = read(path)
    if NOTE in stored.notes:
        raise ValueError(f"{path} is an unfinished model: finish it with --resume first")
    return stored.model


def _check_alike(one: Any, path: str, other: Any, another: str) -> None:
    """Raise for models of other columns or targets, which their numbers would not tell."""
    mine, theirs = (model._trained().columns or {} for model in (one, other))
    if mine.get("targets") and theirs.get("targets") and mine["targets"] != theirs["targets"]:
        raise ValueError(
            f"{path} predicts {', '.join(mine['targets'])} and {another} "
            f"{', '.join(theirs['targets'])}: merge models of the same targets"
        )
    for name in ("kind", "taken", "zero_based", "nulls"):
        if mine and theirs and mine.get(name) != theirs.get(name):
            what = {
                "kind": "another kind of files",
                "taken": "other columns",
                "zero_based": "features counted from another number (--zero-based)",
                "nulls": "another way with missing values (--nulls)",
            }[name]
            raise ValueError(f"{path} and {another} differ, in {what}: fit both alike")


def _joined(mine: Learned, theirs: Learned) -> dict[str, Any] | None:
    """Return the columns of two models that go together, with the means of all their rows."""
    if mine.columns is None or theirs.columns is None:
        return mine.columns or theirs.columns
    columns, other = dict(mine.columns), theirs.columns
    if columns.get("means") is not None:
        share = theirs.n_rows / (mine.n_rows + theirs.n_rows)
        pairs = zip(columns["means"], other["means"], strict=False)
        columns["means"] = [one + share * (two - one) for one, two in pairs]
    return columns
