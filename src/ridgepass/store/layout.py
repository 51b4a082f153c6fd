"""A model file's bytes. The layout is drawn in docs/model-file.md."""

import hashlib
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ridgepass.snapshot import entry, part, read_json, strict_json, text
from ridgepass.store.errors import FormatError

VERSION = 4  # what is written, and the newest that is read
PREFIX_BYTES = 8
MAGIC = b'{"__metadata__":{"format":"ridgepass","checksum":"sha256:'
DIGITS = slice(PREFIX_BYTES + len(MAGIC), PREFIX_BYTES + len(MAGIC) + 64)
NO_DIGITS = b"0" * 64
CUT_OFF = "its header is cut off"
ALIGNMENT = 64  # of the first array; the longest numbers come first, so all are aligned to theirs
LARGEST_HEADER = 100_000_000  # what the safetensors library takes
PIECE = 1 << 26  # bytes that are hashed at a time
# A value may take two bytes of JSON and 200 of memory. So that reading takes at most 17 times the
# size of a file (measured; 54 times without), a file may have only so many. Counted as here, models
# of many folds and of wide tables have a value for every 8 bytes.
BYTES_PER_VALUE = 6
FREE_VALUES = 100_000

TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_CODES = {np.dtype(name): code for code, name in TYPES.items()}


@dataclass(frozen=True)
class Packed:
    """A file to be written; the arrays are those of the model."""

    head: bytes
    arrays: list[NDArray[Any]]

    def write_to(self, file: BinaryIO) -> None:
        """Write it, array by array, so that nothing is in memory twice."""
        file.write(self.head)
        for array in self.arrays:
            file.write(_bytes_of(array))


@dataclass(frozen=True)
class Contents:
    """What a file holds, its arrays being views of it."""

    tree: Any
    notes: dict[str, Any]
    version: int


def pack(tree: Any, notes: dict[str, Any]) -> Packed:
    """Lay out nested data with arrays in it."""
    named: dict[str, NDArray[Any]] = {}
    model = strict_json(_without_arrays(tree, "", named))
    order = sorted(named, key=lambda name: (-named[name].itemsize, name))
    table, start = {}, 0
    for name in order:
        array, stop = named[name], start + named[name].nbytes
        code = _CODES[array.dtype]
        table[name] = {"dtype": code, "shape": array.shape, "data_offsets": (start, stop)}
        start = stop
    metadata = {
        "format": "ridgepass",
        "checksum": f"sha256:{NO_DIGITS.decode()}",
        "version": str(VERSION),
        "model": model,
        "notes": _notes_json(notes),
    }
    header = strict_json({"__metadata__": metadata, **table}).encode()
    header += b" " * (-(PREFIX_BYTES + len(header)) % ALIGNMENT)
    if len(header) > LARGEST_HEADER:
        raise ValueError(
            f"the header would have {len(header)} bytes, of which {LARGEST_HEADER} are allowed: "
            "make the notes shorter"
        )
    head, arrays = (
        len(header).to_bytes(PREFIX_BYTES, "little") + header,
        [named[name] for name in order],
    )
    values = _Values(len(head) + start)
    for text_of in (header, model.encode(), metadata["notes"].encode(), *_texts(arrays)):
        values.count(text_of)
    digits = _digest(head, *map(_bytes_of, arrays))
    return Packed(head[: DIGITS.start] + digits + head[DIGITS.stop :], arrays)


def unpack(buffer: Any, name: str) -> Contents:
    """Check a file from its first to its last byte and return what it holds.

    Arrays are views that cannot be written to.
    """
    view = memoryview(buffer).toreadonly().cast("B")
    start = PREFIX_BYTES + header_length(view[: DIGITS.stop], name)
    if start > len(view):
        raise damaged(name, CUT_OFF)
    pieces = (view[at : at + PIECE] for at in range(DIGITS.stop, len(view), PIECE))
    if view[DIGITS] != _digest(view[: DIGITS.start], NO_DIGITS, *pieces):
        raise damaged(name, "its checksum is wrong")
    values = _Values(len(view))
    header, metadata = _parsed(bytes(view[PREFIX_BYTES:start]), values)
    version = _version(metadata, name)
    arrays = dict(_arrays(header, view[start:]))
    for text_of in _texts(arrays.values()):
        values.count(text_of)
    tree = _with_arrays(_inner(metadata, "model", values), arrays)
    if arrays:
        raise ValueError(f"the array {min(arrays)} has no place in the model")
    return Contents(tree, part(_inner(metadata, "notes", values), "notes"), version)


def read_notes(file: BinaryIO, n_bytes: int, name: str) -> dict[str, Any]:
    """Read the notes of a file of ``n_bytes`` and no more than its header, unchecked for damage."""
    start = file.read(DIGITS.stop)
    length = header_length(start, name)
    header = start[PREFIX_BYTES:] + file.read(PREFIX_BYTES + length - len(start))
    if len(header) < length:
        raise damaged(name, CUT_OFF)
    values = _Values(n_bytes)
    return part(_inner(_parsed(header, values)[1], "notes", values), "notes")


def header_length(start: Any, name: str) -> int:
    """Return how long the header is, given the first bytes of a file up to its checksum."""
    if start[PREFIX_BYTES : DIGITS.start] != MAGIC or len(start) < DIGITS.stop:
        raise FormatError(
            f"{name} is not a ridgepass model, or no more than the beginning of one: "
            "give a file that save has written"
        )
    length = int.from_bytes(start[:PREFIX_BYTES], "little")
    if not DIGITS.stop - PREFIX_BYTES <= length <= LARGEST_HEADER:
        raise damaged(name, CUT_OFF)
    return length


class _Values:
    """Counts what JSON holds before it is read, since every value takes memory."""

    def __init__(self, n_bytes: int) -> None:
        self.most = FREE_VALUES + n_bytes // BYTES_PER_VALUE
        self.found = 0

    def count(self, content: bytes) -> None:
        """Add what could be values; raise if a file of this size may not have so many."""
        # Marks inside strings count too: to tell them apart would cost more than it is worth.
        self.found += sum(map(content.count, (b"{", b"[", b",", b":")))
        if self.found > self.most:
            raise ValueError(
                f"its JSON has more than the {self.most} values that a file of this size may "
                "have: make the notes shorter"
            )


def _parsed(header: bytes, values: _Values) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the table of arrays and the metadata."""
    values.count(header)
    table = part(read_json(header, "the header"), "the header")
    return table, part(table.pop("__metadata__"), "__metadata__")


def _inner(metadata: dict[str, Any], name: str, values: _Values) -> Any:
    """Return what the JSON in a string of the header says."""
    content = text(entry(metadata, name), name).encode()
    values.count(content)
    return read_json(content, name)


def _texts(arrays: Iterable[NDArray[Any]]) -> Iterator[bytes]:
    """Yield the arrays that may be JSON too long for a header."""
    return (array.tobytes() for array in arrays if array.dtype == np.uint8)


def damaged(name: str, how: str) -> FormatError:
    """Return the error for a file that once was whole."""
    return FormatError(f"{name} is damaged: {how}; copy it again or restore a backup")


def _digest(head: Any, *pieces: Any) -> bytes:
    digest = hashlib.sha256(head)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest().encode()


def _bytes_of(array: NDArray[Any]) -> Any:
    return array.reshape(-1).view(np.uint8).data


def _without_arrays(value: Any, path: str, named: dict[str, NDArray[Any]]) -> Any:
    """Replace arrays by their names, and numbers that JSON has no word for."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        if array.dtype not in _CODES:
            raise ValueError(f"a file cannot hold {path} of dtype {value.dtype}: convert it first")
        named[path] = array
        return {"array": path}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        start = f"{path}." if path else ""
        return {key: _without_arrays(each, f"{start}{key}", named) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_arrays(each, f"{path}.{i}", named) for i, each in enumerate(value)]
    return value


def _with_arrays(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Put arrays back in the place of their names, each only once; without a copy of the rest."""
    if isinstance(value, dict):
        if value.keys() == {"array"}:
            name = text(value["array"], "the name of an array")
            if name not in arrays:
                raise ValueError(f"the array {name} is missing or occurs twice")
            return arrays.pop(name)
        for key, each in value.items():
            value[key] = _with_arrays(each, arrays)
    elif isinstance(value, list):
        for i, each in enumerate(value):
            value[i] = _with_arrays(each, arrays)
    return value


def _arrays(table: dict[str, Any], data: memoryview) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays as views, having seen that they share the bytes out among them."""
    entries = [(*_placed(info, name, len(data)), name) for name, info in table.items()]
    end = 0
    for start, stop, dtype, shape, name in sorted(entries, key=lambda found: found[:2]):
        if start != end or math.prod(shape) * dtype.itemsize != stop - start:
            raise ValueError(f"the array {name} is not where it should be")
        end = stop
        array: NDArray[Any] = np.ndarray(shape, dtype, data, start)
        if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise ValueError(f"the array {name} is neither true nor false")
        if sys.byteorder == "big" or not array.flags.aligned:
            array = array.astype(dtype.newbyteorder("="))
        yield name, array
    if end != len(data):
        raise ValueError("there are bytes that belong to no array")


def _placed(info: Any, name: str, n_bytes: int) -> tuple[int, int, np.dtype[Any], tuple[int, ...]]:
    """Return where an array lies, its dtype and its shape, of which no number is absurd."""
    found = part(info, name)
    code = text(entry(found, "dtype"), "dtype")
    shape, place = entry(found, "shape"), entry(found, "data_offsets")
    numbers = [*shape, *place] if isinstance(shape, list) and isinstance(place, list) else [None]
    sound = all(type(value) is int and 0 <= value <= n_bytes for value in numbers)
    if not sound or len(place) != 2 or len(shape) > 2 or code not in TYPES or len(found) != 3:
        raise ValueError(f"the array {name} is not described as it should be")
    return place[0], place[1], np.dtype(TYPES[code]), tuple(shape)


def _version(metadata: dict[str, Any], name: str) -> int:
    version = text(entry(metadata, "version"), "version")
    if not re.fullmatch("[1-9][0-9]{0,8}", version):
        raise ValueError(f"version {version!r} is no number")
    if int(version) > VERSION:
        raise FormatError(
            f"{name} has version {version} of the format, and this ridgepass reads up to "
            f"{VERSION}: upgrade ridgepass"
        )
    return int(version)


def _notes_json(notes: dict[str, Any]) -> str:
    try:
        return strict_json(notes)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"notes are not JSON ({error}): give numbers, strings, lists and dicts"
        ) from None
