"""What a checkpoint notes is believed only if it could have been noted."""

import copy

import pytest

from ridgepass import StreamingRidge
from ridgepass.cli.checkpoint import (
    Counts,
    Input,
    is_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from ridgepass.cli.models import inspect
from ridgepass.data.source import Position
from ridgepass.store import read, save

INPUT = Input("rows.csv", 10, -5, "abc")
STRANGE = (None, True, 1, -1, 0.5, "x", [], {}, [None], [[]], [1], {"x": 1}, [{"path": []}])
REFUSED = "{} was written by another version: delete it to begin again"


@pytest.fixture
def path(tmp_path):
    model = StreamingRidge(sketch_size=4).fit([[1.0], [2.0]], [1.0, 2.0])
    path = tmp_path / "m.part"
    options = {"alpha": 1.0, "target": ["y"]}
    write_checkpoint(str(path), model, Position(1, 2), Counts(3, 1, 0), options, [INPUT])
    return path


def resume(path):
    return read_checkpoint(str(path), {"alpha": 1.0, "target": ["y"]}, [INPUT])


def test_it_is_taken_up_as_it_was(path):
    found = resume(path)
    assert (found.position, found.counts) == (Position(1, 2), Counts(3, 1, 0))
    assert is_checkpoint(str(path))
    path.write_bytes(path.read_bytes()[:-1])  # only the header is looked at
    assert is_checkpoint(str(path))


def complaint(use, *arguments, **options):
    """Return the ValueError that comes of it, if any; no other error may."""
    try:
        use(*arguments, **options)
    except ValueError as error:
        return str(error)
    return None


def spots(tree, path=()):
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from spots(value, (*path, key))


def test_any_other_note_is_refused_or_understood(path, capsys):
    stored, n_refused = read(path), 0
    for *parents, key in list(spots(stored.notes)):
        for value in (*STRANGE, "drop"):
            notes = copy.deepcopy(stored.notes)
            where = notes
            for parent in parents:
                where = where[parent]
            if value == "drop":
                del where[key]
            else:
                where[key] = value
            save(stored.model, path, notes=notes)
            said = [complaint(resume, path), complaint(inspect, [str(path)], alpha=None, as_json=0)]
            n_refused += said.count(REFUSED.format(path))
    assert n_refused > 300
