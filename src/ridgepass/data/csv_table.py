"""Tables in text with a header line, from files or through a pipe."""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ridgepass.data.encode import is_number
from ridgepass.data.files import File
from ridgepass.data.tables import Table, errors_in, from_row, without_columns

# Text is parsed in blocks of this size; types are told from the first.
BLOCK = 1 << 20
# How far to look for the end of the first row, which may have a million columns.
LONGEST = 64 << 20
_WRONG_VALUE = re.compile(r"CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)")
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_ENCODE = "save the file in UTF-8"
_KINDS = {"double": "number", "bool": "truth value"}


class Text(Table):
    """What both kinds of CSV share.

    Attributes
    ----------
    delimiter : str
        What stands between values.
    header : list of str
        The names of the columns.
    block : int
        How many bytes to parse at a time; a row must fit into it.
    """

    def _look_at(self, head: bytes, delimiter: str | None = None) -> None:
        first, second = (*re.split(rb"\r\n|\n|\r", head, maxsplit=2), b"", b"")[:2]
        self.delimiter = delimiter or _delimiter(first)
        self.header = _names(first.decode("utf-8-sig"), self.delimiter)
        self.block = max(BLOCK, 8 * len(first), 8 * len(second))

    def _reader(self, source: Any, types: dict[str, Any], columns: list[str] | None = None) -> Any:
        return pa.csv.open_csv(
            source,
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=self.block),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=types, include_columns=columns or None
            ),
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in which row and column an error is."""
        with errors_in(self.name):
            try:
                yield
            except pa.ArrowInvalid as error:
                sentence = self._explained(str(error))
                if sentence is None:
                    raise
                raise ValueError(sentence) from error
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{self.name} has a header that is not UTF-8: {_ENCODE}"
                ) from error

    def _explained(self, message: str) -> str | None:
        ragged, wrong = _RAGGED.search(message), _WRONG_VALUE.search(message)
        if ragged is not None:
            at, expected, found = map(int, ragged.groups())
            return (
                f"{self.name} has {found} values in row {at - 1}, and {expected} columns: "
                "fix that line"
            )
        if wrong is not None:
            column, row, kind, what = wrong.groups()
            start = f"column {self._called(int(column))} of {self.name} has"
            if "UTF8" in what:
                return f"{start} text in row {int(row) - 1} that is not UTF-8: {_ENCODE}"
            return (
                f"{start} {what.removeprefix('invalid value ')} in row {int(row) - 1}, which is no "
                f"{_KINDS.get(kind, kind)} as the rows before: fix that line, or leave the column "
                "out with exclude (--exclude)"
            )
        if "straddles" in message:
            return (
                f"{self.name} has a row of more than {self.block:,} bytes: look for a quotation "
                "mark that does not end"
            )
        return None

    def _called(self, column: int) -> str:
        return repr(self.header[column]) if column < len(self.header) else str(column + 1)


class CsvTable(Text):
    """Text with a header line in a file, packed with gzip or not.

    Parameters
    ----------
    file : File
        The file.
    types : dict, optional
        Types of columns, as told by the first file of several.
    """

    def __init__(self, file: File, types: dict[str, Any] | None = None) -> None:
        self.name, self.file, self.types = file.path, file, types or {}
        self._raw: Any = None
        with self._errors(), self._open([]) as reader:
            super().__init__(file.path, reader.schema, file)

    def _read(self, columns: list[str], start: int, at_most: int) -> Iterator[pa.RecordBatch]:
        with self._open(columns) as reader:
            pieces = (batch if columns else without_columns(batch.num_rows) for batch in reader)
            yield from from_row(map(_without_empty_text, pieces), start)

    @property
    def bytes_read(self) -> int | None:
        """How much of the file, as it is on disk, has been read."""
        return None if self._raw is None or self._raw.closed else int(self._raw.tell())

    @contextmanager
    def _open(self, columns: list[str]) -> Iterator[Any]:
        with self._bytes() as source:
            has_tabs = self.file.path.lower().removesuffix(".gz").endswith(".tsv")
            self._look_at(_head(source), "\t" if has_tabs else None)
        with self._bytes() as source, self._reader(source, self.types, columns) as reader:
            yield reader

    def _bytes(self) -> Any:
        self._raw = pa.OSFile(self.file.path)
        return pa.CompressedInputStream(self._raw, "gzip") if self.file.is_compressed else self._raw


class CsvStream(Text):
    """Text with a header line that comes through a pipe, once.

    Parameters
    ----------
    stream : file-like
        Where it comes from.
    types : dict
        Types of columns that are not to be guessed.
    """

    rereadable = False

    def __init__(self, stream: Any, types: dict[str, Any]) -> None:
        self.name = "standard input"
        with self._errors():
            head = _head(stream)
            self._look_at(head)
            with self._reader(io.BytesIO(_whole_rows(head)), types) as reader:
                types = {**csv_types(reader.schema), **types}
            replayed = io.BufferedReader(_Replayed(head, stream))
            self._rows = self._reader(replayed, types)
            super().__init__(self.name, self._rows.schema)

    def _read(self, columns: list[str], start: int, at_most: int) -> Iterator[pa.RecordBatch]:
        return from_row(map(_without_empty_text, self._rows), start)


class _Replayed(io.RawIOBase):
    """A stream whose beginning has been read already."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return int(self._rest.readinto(buffer))
        count = min(len(buffer), len(self._head))
        buffer[:count] = self._head[:count]
        self._head = self._head[count:]
        return count


def csv_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return what to read the columns of a CSV file as, given what its beginning looks like.

    Whole numbers may be followed by others, and an empty column by anything: both are read as
    floating point.
    """
    wanted = {}
    for field in schema:
        if pa.types.is_boolean(field.type):
            wanted[field.name] = field.type
        else:
            wanted[field.name] = pa.float64() if is_number(field.type) else pa.string()
    return wanted


def _head(source: Any) -> bytes:
    """Return the beginning: a block, and at least two lines of any usual length."""
    head: bytes = source.read(BLOCK)
    while head.count(b"\n", 0, 2 * BLOCK) < 2 and len(head) < LONGEST:
        more = source.read(len(head))
        if not more:
            break
        head += more
    return head


def _whole_rows(head: bytes) -> bytes:
    """Return the beginning up to the end of a row, which is no line's end within quotes."""
    end = head.rfind(b"\n")
    while end >= 0 and head.count(b'"', 0, end) % 2:
        end = head.rfind(b"\n", 0, end)
    return head[: end + 1] or head


def _delimiter(line: bytes) -> str:
    outside = re.sub(rb'"[^"]*"', b"", line)
    counts = {mark: outside.count(mark.encode()) for mark in ",;\t|"}
    most = max(counts, key=lambda mark: counts[mark])
    return most if counts[most] and not counts[","] else ","


def _names(line: str, delimiter: str) -> list[str]:
    """Return the names of columns, none where one is longer than Python's csv reads."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _without_empty_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Take empty text for a null, but not "NA", which may be Namibia."""
    for i, column in enumerate(batch.schema):
        if pa.types.is_string(column.type):
            text = batch.column(i)
            text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
            batch = batch.set_column(i, column.name, text)
    return batch
