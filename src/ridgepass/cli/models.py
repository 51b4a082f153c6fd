"""Looking at model files, and merging them."""

import os
from collections.abc import Sequence
from typing import Any

from ridgepass.cli.checkpoint import NOTE
from ridgepass.cli.options import check_output
from ridgepass.cli.show import amount, description, lines_of, print_json, print_table
from ridgepass.store import load, read, save


def merge(paths: Sequence[str], output: str, *, as_json: bool) -> None:
    """Merge models in the order given."""
    if len(paths) < 2:
        raise ValueError("one model alone cannot be merged: name two or more")
    twice = [path for i, path in enumerate(paths) if _real(path) in map(_real, paths[:i])]
    if twice:
        raise ValueError(f"{twice[0]} is given twice: its rows would count twice, so name it once")
    check_output(output)
    model, first = load(paths[0]), paths[0]
    for path in paths[1:]:
        other = load(path)
        _check_alike(model, first, other, path)
        try:
            model.merge(other)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} does not go with {first}: {error}") from error
    save(model, output)
    facts = {**description(model), "output": output}
    if as_json:
        print_json(facts)
    else:
        print_table(lines_of(facts), title=output)


def _real(path: str) -> str:
    return os.path.realpath(path)


def inspect(paths: Sequence[str], *, alpha: float | None, as_json: bool) -> None:
    """Say what model files hold."""
    found = [_facts(path, alpha) for path in paths]
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


def _facts(path: str, alpha: float | None) -> dict[str, Any]:
    stored = read(path)
    model = stored.model if alpha is None else stored.model.at(alpha)
    note = stored.notes.get(NOTE)
    return {
        "path": path,
        **description(model),
        "columns": _columns(model._trained().columns),
        "file_bytes": stored.n_bytes,
        "format_version": stored.version,
        "checkpoint": None if note is None else note["counts"]["read"],
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


def _check_alike(one: Any, path: str, other: Any, another: str) -> None:
    """Raise for models of other targets, which their numbers would not tell."""
    mine, theirs = ((model._trained().columns or {}).get("targets") for model in (one, other))
    if mine and theirs and mine != theirs:
        raise ValueError(
            f"{path} predicts {', '.join(mine)} and {another} {', '.join(theirs)}: "
            "merge models of the same targets"
        )
