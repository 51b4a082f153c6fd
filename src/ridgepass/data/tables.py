"""Tables that are read a piece at a time: what they share, and Parquet files."""

import errno
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ridgepass.data.files import File

# Arrow reads each column of a Parquet file through a buffer of its own; all take about this much.
BUFFERS = 32 << 20
WHOLE = "check that the file is whole"


class Table(ABC):
    """One table: a file or a stream.

    Attributes
    ----------
    name : str
        What errors call it.
    schema : pyarrow.Schema
        Its columns, with those that come from key=value directories.
    index : frozenset of str
        Columns that pandas keeps its index in.
    n_rows : int or None
        How many rows it has, if that is known before reading.
    n_bytes : int or None
        Its size, likewise.
    rereadable : bool
        Whether it can be read from the start again.
    """

    n_rows: int | None = None
    n_bytes: int | None = None
    rereadable = True

    def __init__(self, name: str, schema: pa.Schema, file: File | None = None) -> None:
        self.name = name
        self.inside = self.schema = schema
        self.index = _index_columns(schema)
        self.constants: dict[str, pa.Scalar] = {}
        self._begun = False
        if file is not None:
            self.n_bytes = file.n_bytes

    def add_constants(self, constants: dict[str, pa.Scalar]) -> None:
        """Add columns that have one value throughout, unless the table has them itself."""
        for name, value in constants.items():
            if name not in self.inside.names:
                self.constants[name] = value
                self.schema = self.schema.append(pa.field(name, value.type))

    def read(
        self, columns: Sequence[str], start: int, at_most: int
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows from ``start`` on, some columns of them, in pieces of limited length."""
        if self._begun and not self.rereadable:
            raise ValueError(f"{self.name} can be read only once: open it again")
        self._begun, asked = True, start
        stored = [name for name in columns if name not in self.constants]
        with self._errors():
            for batch in self._read(stored, start, at_most):
                whole = self._with_constants(batch, columns)
                start += whole.num_rows
                for first in range(0, whole.num_rows, at_most):
                    yield whole.slice(first, at_most)
        if self.n_rows is not None and start != max(self.n_rows, asked):
            raise ValueError(
                f"{self.name} had {self.n_rows:,} rows and now has {start:,}: it was changed while "
                "it was read, so begin again"
            )

    def peek(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns, all rows of which a later `read` will yield again."""
        return self.read(columns, 0, 1024)

    @property
    def bytes_read(self) -> int | None:
        """How much of a file has been read, where rows do not tell."""
        return None

    @abstractmethod
    def _read(self, columns: list[str], start: int, at_most: int) -> Iterator[pa.RecordBatch]:
        """Yield at least these columns from a row on; pieces may be longer than asked for."""

    def _errors(self) -> Any:
        return errors_in(self.name)

    def _with_constants(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        if batch.schema.names == columns:
            return batch
        arrays = [
            pa.repeat(self.constants[name], batch.num_rows)
            if name in self.constants
            else batch.column(name)
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))


class ParquetTable(Table):
    """A Parquet file, read page by page."""

    def __init__(self, file: File) -> None:
        self.path = file.path
        with errors_in(file.path, "Parquet"), self._open(1) as parquet:
            super().__init__(file.path, parquet.schema_arrow, file)
            self.n_rows = parquet.metadata.num_rows

    def _read(self, columns: list[str], start: int, at_most: int) -> Iterator[pa.RecordBatch]:
        if not columns:  # only columns from directories are wanted
            for row in range(start, self.n_rows or 0, at_most):
                yield without_columns(min(at_most, (self.n_rows or 0) - row))
            return
        with self._open(len(columns)) as parquet:
            metadata, first = parquet.metadata, 0
            while first < metadata.num_row_groups:
                n_rows = metadata.row_group(first).num_rows
                if n_rows > start:
                    break
                start -= n_rows
                first += 1
            groups = list(range(first, metadata.num_row_groups))
            pieces = parquet.iter_batches(at_most, groups, columns, use_threads=False)
            yield from from_row(pieces, start)

    def _open(self, n_columns: int) -> pa.parquet.ParquetFile:
        return pa.parquet.ParquetFile(
            self.path, pre_buffer=False, buffer_size=buffer_size(n_columns)
        )


@contextmanager
def errors_in(name: str, format: str | None = None, remedy: str = WHOLE) -> Iterator[None]:
    """Say which table an error of Arrow's comes from."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        if error.filename is not None:
            raise
        number = error.errno or errno.EIO  # Arrow's own have no name
        raise type(error)(number, os.strerror(number), name) from error
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        reason = re.sub(r"\. Detail: .*", "", reason).rstrip(".")
        kind = "" if format is None else f" as {format}"
        raise ValueError(f"{name} cannot be read{kind}: {reason}; {remedy}") from error


def buffer_size(n_columns: int) -> int:
    """Return how far ahead to read in each of some columns."""
    return min(1 << 20, max(1 << 13, BUFFERS // n_columns))


def from_row(pieces: Iterable[pa.RecordBatch], start: int) -> Iterator[pa.RecordBatch]:
    """Yield batches without the first ``start`` rows."""
    for piece in pieces:
        if piece.num_rows > start:
            yield piece.slice(start)
        start = max(start - piece.num_rows, 0)


def without_columns(n_rows: int) -> pa.RecordBatch:
    """Return rows of nothing."""
    return pa.RecordBatch.from_struct_array(
        pa.StructArray.from_buffers(pa.struct([]), n_rows, [None])
    )


def _index_columns(schema: pa.Schema) -> frozenset[str]:
    described = schema.pandas_metadata or {}
    columns = described.get("index_columns", [])
    return frozenset(name for name in columns if isinstance(name, str))
