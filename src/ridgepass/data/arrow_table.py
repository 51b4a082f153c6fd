"""Arrow IPC files (also called Feather), and Arrow streams in files.

A whole table may be written as a single batch, which must not come into memory at once. So the file
is mapped, but only for Arrow to find out where the columns of a batch lie: the values themselves
are read from the file, a piece at a time. Touching the map would end the process (SIGBUS) if
another one cuts the file off meanwhile; reading too little is an error that names the file.
"""

import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from ridgepass.data.files import File, changed
from ridgepass.data.tables import Table, errors_in, from_row

_MAGIC = b"ARROW1"
_EMPTY = pa.py_buffer(b"")


class ArrowTable(Table):
    """An Arrow IPC file or a stream in a file.

    Compressed columns, and those of types that are no feature (structs, unions and the like), come
    into memory a batch at a time.
    """

    def __init__(self, file: File) -> None:
        self.path = file.path
        self._source: Any = None
        with errors_in(file.path, "Arrow"), open(self.path, "rb") as opened:
            found = _Map(opened, self.path)
            reader = _reader(found.source, [])
            super().__init__(file.path, reader.schema, file)
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                self.n_rows = reader.count_rows()
            self._packed = _is_packed(found.source)

    def _read(self, columns: list[str], start: int, at_most: int) -> Iterator[pa.RecordBatch]:
        names = columns or self.inside.names[:1]  # any column tells how many rows there are
        wanted = sorted({self.inside.get_field_index(name) for name in names})
        plain = [i for i in wanted if not self._packed and _is_plain(self.inside.field(i).type)]
        rest = sorted({*wanted} - {*plain})
        with open(self.path, "rb") as opened, pa.OSFile(self.path) as unmapped:
            found = _Map(opened, self.path)
            for batch in from_row(self._batches(found, unmapped, plain, rest), start):
                found.begin_batch()
                for first in range(0, batch.num_rows, at_most):
                    piece = batch.slice(first, at_most)
                    if plain:
                        own = piece.columns
                        own[: len(plain)] = map(found.taken, own[: len(plain)])
                        piece = pa.RecordBatch.from_arrays(own, schema=batch.schema)
                    piece.validate(full=True)
                    yield piece

    @property
    def bytes_read(self) -> int | None:
        """How much of a stream has been read."""
        if self._source is None or self._source.closed or self.n_rows is not None:
            return None
        return int(self._source.tell())

    def _batches(
        self, found: "_Map", unmapped: Any, plain: list[int], rest: list[int]
    ) -> Iterator[pa.RecordBatch]:
        """Return batches of ``plain`` columns, of which only the places are known, and the rest."""
        self._source = unmapped if rest else found.source
        unpacked = _batches(found, unmapped, rest)
        if rest and not plain:
            return unpacked
        # Asked for some of the columns only, Arrow would copy them.
        mapped = _batches(found, found.source, [])
        placed = (batch.select(plain) if plain else batch for batch in mapped)
        return placed if not rest else map(_joined, placed, unpacked)


def _joined(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema([*one.schema, *other.schema])
    return pa.RecordBatch.from_arrays([*one.columns, *other.columns], schema=schema)


def _is_file(source: Any) -> bool:
    source.seek(0)
    is_file = source.read(len(_MAGIC)) == _MAGIC
    source.seek(0)
    return bool(is_file)


def _reader(source: Any, included: list[int]) -> Any:
    options = pa.ipc.IpcReadOptions(included_fields=included) if included else None
    is_file = _is_file(source)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source, options=options)


def _batches(found: "_Map", source: Any, included: list[int]) -> Iterator[pa.RecordBatch]:
    batches = reader = _reader(source, included)
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    while True:
        found.check_size()
        batch = next(batches, None)
        if batch is None:
            return
        yield batch


class _Map:
    """A file that Arrow sees as memory, and whose values are read from the file all the same."""

    def __init__(self, file: Any, path: str) -> None:
        self.file, self.path = file, path
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.buffer = pa.py_buffer(mapped)
        self.source = pa.BufferReader(self.buffer)
        self._dictionaries: dict[tuple[Any, ...], pa.Array] = {}
        self._earlier: dict[tuple[Any, ...], pa.Array] = {}

    def begin_batch(self) -> None:
        """Forget dictionaries that the last batch had no use for."""
        self._earlier, self._dictionaries = self._dictionaries, {}

    def check_size(self) -> None:
        """Raise if the file was cut off, before Arrow looks for where a batch lies."""
        if os.fstat(self.file.fileno()).st_size < self.buffer.size:
            raise changed(self.path)

    def holds(self, buffer: pa.Buffer) -> bool:
        """Whether a buffer lies in the file, and not in memory that Arrow has unpacked it to."""
        start = buffer.address - self.buffer.address
        return bool(start >= 0 and start + buffer.size <= self.buffer.size)

    def read(self, buffer: pa.Buffer | None, start: int, n_bytes: int) -> pa.Buffer:
        """Return some bytes of a buffer."""
        if not n_bytes:
            return _EMPTY
        if buffer is None or start < 0 or n_bytes < 0 or start + n_bytes > buffer.size:
            raise pa.ArrowInvalid("a column is shorter than it should be")
        if not self.holds(buffer):
            return buffer.slice(start, n_bytes)
        found = pa.allocate_buffer(n_bytes)
        self.file.seek(buffer.address - self.buffer.address + start)
        if self.file.readinto(found) < n_bytes:
            raise changed(self.path)
        return found

    def taken(self, array: pa.Array) -> pa.Array:
        """Return a slice of a column in memory of its own."""
        kind, n_rows, at = array.type, len(array), array.offset
        if pa.types.is_null(kind) or not n_rows:
            return pa.nulls(n_rows, kind)
        if pa.types.is_dictionary(kind):
            dictionary = self._dictionary(array.dictionary)
            return pa.DictionaryArray.from_arrays(
                self.taken(array.indices), dictionary, ordered=kind.ordered
            )
        first = at - at % 8  # from which on bits fill whole bytes
        n_read = at + n_rows - first
        valid, *own = array.buffers()
        valid = None if valid is None else self.read(valid, first // 8, -(-n_read // 8))
        children = None
        if pa.types.is_boolean(kind):
            own = [self.read(own[0], first // 8, -(-n_read // 8))]
        elif (width := _width(kind)) is not None:
            own = [self.read(own[0], first * width, n_read * width)]
        elif pa.types.is_fixed_size_list(kind):
            size = kind.list_size
            own, children = [], [self._part(array.values, first * size, n_read * size)]
        elif _is_view(kind):
            own = self._views(own, first, n_read, valid)
        else:
            size = 8 if _is_large(kind) else 4
            places = self.read(own[0], first * size, (n_read + 1) * size)
            ends = np.frombuffer(places, f"i{size}")
            begin, length = int(ends[0]), int(ends[-1]) - int(ends[0])
            if _is_list(kind):
                children = [self._part(array.values, begin, length)]
                own = [pa.py_buffer(ends - ends[0])]
            else:
                own = [pa.py_buffer(ends - ends[0]), self.read(own[1], begin, length)]
        return pa.Array.from_buffers(
            kind, n_rows, [valid, *own], offset=at - first, children=children
        )

    def _part(self, values: pa.Array, start: int, length: int) -> pa.Array:
        if start < 0 or length < 0 or start + length > len(values):
            raise pa.ArrowInvalid("a column of lists has fewer values than it should")
        return self.taken(values.slice(start, length))

    def _dictionary(self, values: pa.Array) -> pa.Array:
        """Return the values of a dictionary, which many pieces share."""
        buffers = [buffer for buffer in values.buffers() if buffer is not None and buffer.size]
        if not all(map(self.holds, buffers)):  # other memory may hold others by and by
            return self.taken(values)
        key = (*(buffer.address for buffer in buffers), values.offset, len(values))
        if key not in self._dictionaries:
            earlier = self._earlier.get(key)
            self._dictionaries[key] = self.taken(values) if earlier is None else earlier
        return self._dictionaries[key]

    def _views(
        self, own: list[pa.Buffer], first: int, n_read: int, valid: pa.Buffer | None
    ) -> list[pa.Buffer]:
        """Return views of text, and of the text itself what they point to."""
        views = np.frombuffer(self.read(own[0], first * 16, n_read * 16), np.int32)
        views = views.reshape(-1, 4).copy()  # length, beginning, buffer and place
        if valid is not None:  # what a missing value points to may be anything
            there = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")
            views[there[:n_read] == 0] = 0
        texts, is_long = [_EMPTY] * (len(own) - 1), views[:, 0] > 12
        for i in np.unique(views[is_long, 2]):
            here = is_long & (views[:, 2] == i)
            begin = int(views[here, 3].min())
            end = int((views[here, 3].astype(np.int64) + views[here, 0]).max())
            if not 0 <= i < len(texts):
                raise pa.ArrowInvalid("a column of text points to nothing")
            texts[i] = self.read(own[i + 1], begin, end - begin)
            views[here, 3] -= begin
        return [pa.py_buffer(views), *texts]


def _is_packed(source: Any) -> bool:
    """Whether the first batch is compressed, which Arrow itself does not tell."""
    message = _first_batch(source)
    if message is None:
        return False
    data = message.metadata.to_pybytes()
    header = _target(data, _field(data, _target(data, 0), 2))  # Message.header
    return _field(data, header, 3) != 0  # RecordBatch.compression


def _first_batch(source: Any) -> Any:
    """Return the message that tells where the first batch of a file lies, if it has one."""
    if not _is_file(source):
        messages = pa.ipc.MessageReader.open_stream(source)
        return next((one for one in messages if one.type == "record batch"), None)
    end = source.size() - len(_MAGIC) - 4
    footer = source.read_at(size := _number(source.read_at(4, end), 0, 4), end - size)
    blocks = _field(footer, _target(footer, 0), 3)  # Footer.recordBatches
    blocks = _target(footer, blocks) if blocks else 0
    if not blocks or not _number(footer, blocks, 4):
        return None
    source.seek(_number(footer, blocks + 4, 8))
    return pa.ipc.read_message(source)


# What Arrow notes about a file is in FlatBuffers: tables, whose fields are found by number.


def _number(data: bytes, at: int, n_bytes: int) -> int:
    return int.from_bytes(data[at : at + n_bytes], "little", signed=True)


def _target(data: bytes, at: int) -> int:
    """Return the place that a reference points to."""
    return at + _number(data, at, 4)


def _field(data: bytes, table: int, number: int) -> int:
    """Return where a field of a table is, 0 for one that is left out."""
    places, at = table - _number(data, table, 4), 4 + 2 * number
    place = _number(data, places + at, 2) if at < _number(data, places, 2) else 0
    return table + place if place else 0


def _is_plain(kind: pa.DataType) -> bool:
    """Whether `_Map.taken` knows how values of a type are laid out."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_fixed_size_list(kind) or _is_list(kind):
        return _is_plain(kind.value_type)
    texts = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    return (
        types.is_null(kind)
        or types.is_boolean(kind)
        or _width(kind) is not None
        or _is_view(kind)
        or any(test(kind) for test in texts)
    )


def _width(kind: pa.DataType) -> int | None:
    """Return how many bytes a value has, where all have as many."""
    types = pa.types
    if types.is_boolean(kind):
        return None
    if types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind):
        return int(kind.bit_width // 8)
    return None


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_large(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (types.is_large_list, types.is_large_string, types.is_large_binary)
    return any(test(kind) for test in tests)
