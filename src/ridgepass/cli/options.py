"""What options mean: lists, durations, outputs."""

import errno
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import Any

# A lone "-" would be taken for an option; no file can have this name.
DASH = "\0-"
_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class StopRequestedError(Exception):
    """A signal asked to stop."""


def split_names(values: Iterable[str]) -> list[str]:
    r"""Return names given one by one or with commas between them; ``\,`` is a comma in a name.

    Examples
    --------
    >>> split_names(["a,b", r"c\,d"])
    ['a', 'b', 'c,d']
    """
    parts = [part for value in values for part in re.split(r"(?<!\\),", value)]
    return [part.replace("\\,", ",") for part in parts if part]


def split_categories(values: Iterable[str]) -> dict[str, list[str] | None]:
    """Return columns with the categories given for them, or None.

    Examples
    --------
    >>> split_categories(["city,street", "size=S,M,L"])
    {'city': None, 'street': None, 'size': ['S', 'M', 'L']}
    """
    found: dict[str, list[str] | None] = {}
    for value in values:
        name, given, categories = value.partition("=")
        if given:
            found[name] = split_names([categories])
        else:
            found.update(dict.fromkeys(split_names([value])))
    return found


def as_whole(text: str) -> int:
    """Return a whole number; cyclopts would take 2.5 for 2."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text} is not a whole number") from None


def parse_alpha(text: str) -> float | None:
    """Return a ridge parameter, None for one that is to be chosen."""
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha {text} is not a number: give one, or auto") from None


def parse_seconds(text: str) -> float:
    """Return a duration in seconds.

    Examples
    --------
    >>> parse_seconds("90"), parse_seconds("5m"), parse_seconds("250ms")
    (90.0, 300.0, 0.25)
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) *([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _SECONDS:
        raise ValueError(f"--every {text} is not a duration: give 60s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def sources(data: Sequence[str]) -> list[str]:
    """Return the inputs, standard input as the rest of the package calls it."""
    return ["-" if name == DASH else name for name in data]


def check_paths(paths: Iterable[str]) -> None:
    """Raise where a pipe is given in the place of a model file."""
    if DASH in paths:
        raise ValueError(
            "a model needs a file, not a pipe (-): name one, or use -o /dev/stdout to write"
        )


def check_output(path: str, inputs: Iterable[str] = ()) -> None:
    """Raise now rather than after hours if a file cannot be written."""
    check_paths([path])
    if not path:
        raise ValueError("the output has no name: pass -o FILE")
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    # A file is made beside the one it replaces; a pipe or a device is written to as it is.
    is_special = os.path.exists(path) and not os.path.isfile(path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no such directory to write to", folder)
    written = path if is_special else folder
    if not os.access(written, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), written)
    real = os.path.realpath(path)
    if os.path.islink(real):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if any(os.path.realpath(name) == real for name in inputs):
        raise ValueError(f"{path} is an input too: name another output")


def summary_beside(output: str) -> AbstractContextManager[Any]:
    """Print on standard error in the block if standard output is where the model goes."""
    try:
        is_output = os.path.samestat(os.stat(output), os.fstat(1))
    except OSError:  # nothing there yet, or no standard output
        is_output = False
    return redirect_stdout(sys.stderr) if is_output else nullcontext()
