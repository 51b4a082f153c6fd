"""Stopping and going on: what a checkpoint notes beside the model, and how it is checked."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from ridgepass.data.files import File
from ridgepass.data.source import Position
from ridgepass.snapshot import entry, part, whole
from ridgepass.store import FormatError, notes_of, read, save

T = TypeVar("T")
NOTE = "checkpoint"
_EDGE = 1 << 16  # bytes at either end of a file that are looked at


@dataclass(frozen=True)
class Input:
    """A file as it was when reading began."""

    path: str
    size: int
    modified: int
    edges: str

    @classmethod
    def of(cls, file: File) -> "Input":
        """Take down what tells a file from another of the same name."""
        with open(file.path, "rb") as stream:
            status = os.fstat(stream.fileno())
            digest = hashlib.sha256(stream.read(_EDGE))
            stream.seek(max(status.st_size - _EDGE, 0))
            digest.update(stream.read(_EDGE))
        path = os.path.realpath(file.path)  # however it was spelled
        return cls(path, status.st_size, status.st_mtime_ns, digest.hexdigest())

    def check_unchanged(self) -> None:
        """Raise if the file is not what it was, as far as can be told without reading it."""
        status = os.stat(self.path)
        if (status.st_size, status.st_mtime_ns) != (self.size, self.modified):
            raise ValueError(
                f"{self.path} was changed while it was read, so that the model would be of "
                "neither: run the command again"
            )


@dataclass(frozen=True)
class Counts:
    """What has been counted while reading."""

    read: int = 0
    dropped: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """A model in the making, and where to go on."""

    model: Any
    position: Position
    counts: Counts


@dataclass(frozen=True)
class Note:
    """What a checkpoint has beside the model."""

    options: dict[str, Any]
    inputs: list[Input]
    position: Position
    counts: Counts


def write_checkpoint(
    path: str,
    model: Any,
    position: Position,
    counts: Counts,
    options: Mapping[str, Any],
    inputs: Sequence[Input],
) -> None:
    """Write all that going on needs, atomically."""
    note = {
        "options": dict(options),
        "inputs": [asdict(one) for one in inputs],
        "position": list(position),
        "counts": asdict(counts),
    }
    save(model, path, notes={NOTE: note})


def read_checkpoint(path: str, options: Mapping[str, Any], inputs: Sequence[Input]) -> Checkpoint:
    """Take it up again, or raise if it belongs to another command or to other files."""
    stored = read(path)
    if NOTE not in stored.notes:
        raise FormatError(
            f"{path} is a finished model, not a checkpoint: give --checkpoint another path"
        )
    note = read_note(path, stored.notes[NOTE])
    options_before, before = note.options, note.inputs
    for name in {**options_before, **options}:
        was, now = options_before.get(name), options.get(name)
        if was != now:
            raise ValueError(
                f"{path} was written with {_as_typed(name, was)}, and now there is "
                f"{_as_typed(name, now)}: set it back, or delete the checkpoint to begin again"
            )
    _check_inputs(path, before, inputs)
    return Checkpoint(stored.model, note.position, note.counts)


def read_note(path: str, kept: Any) -> Note:
    """Return what a checkpoint notes, or raise unless a checkpoint could have noted it."""
    try:
        files, rows = entry(kept, "position")
        return Note(
            part(entry(kept, "options"), "options"),
            [_typed(Input, one) for one in entry(kept, "inputs")],
            Position(whole(files, "files"), whole(rows, "rows")),
            _typed(Counts, entry(kept, "counts")),
        )
    except (TypeError, ValueError) as error:
        raise FormatError(
            f"{path} was written by another version: delete it to begin again"
        ) from error


def _typed(kind: type[T], kept: Any) -> T:
    """Return an object of numbers and texts, each in its place."""
    made = kind(**kept)
    for field in fields(made):  # type: ignore[arg-type]
        if type(getattr(made, field.name)) is not field.type:
            raise TypeError(f"{field.name} is not a {field.type}")
    return made


def _as_typed(name: str, value: Any) -> str:
    """Return an option as it stands on the command line."""
    if name == "fit_intercept":
        return "no --no-intercept" if value else "--no-intercept"
    if name == "alpha" and value is None:
        value = "auto"
    if value is None or value is False:
        return f"no --{name.replace('_', '-')}"
    flag = {"random_state": "--seed"}.get(name, f"--{name.replace('_', '-')}")
    if isinstance(value, dict):
        value = list(value)
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return flag if value is True else f"{flag} {text}"


def is_checkpoint(path: str) -> bool:
    """Whether there is an unfinished model; what is written to may be a pipe, and is not read."""
    return NOTE in notes_of(path)


def _check_inputs(path: str, before: Sequence[Input], now: Sequence[Input]) -> None:
    remedy = f"put it back as it was, or delete {path} to begin again"
    found = {one.path: one for one in now}
    for one in before:
        other = found.pop(one.path, None)
        if other is None:
            raise ValueError(f"{one.path} is missing since {path} was written: {remedy}")
        if other != one:
            raise ValueError(f"{one.path} has changed since {path} was written: {remedy}")
    if found:
        raise ValueError(f"{next(iter(found))} is new since {path} was written: {remedy}")
    if [one.path for one in before] != [one.path for one in now]:
        raise ValueError(f"the inputs are in another order than when {path} was written: {remedy}")
