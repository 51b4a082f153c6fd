"""Rows from tables: one or many files of the same columns, or a stream."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ridgepass.data.arrow_table import ArrowTable
from ridgepass.data.columns import Columns
from ridgepass.data.csv_table import CsvTable, csv_types
from ridgepass.data.encode import encode, numbers, targets
from ridgepass.data.files import File
from ridgepass.data.missing import Place
from ridgepass.data.source import BATCH_BYTES, Position, Raw, Source
from ridgepass.data.tables import ParquetTable, Table

COLUMN_BYTES = 1 << 12
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]+\.?[0-9]*([eE][+-]?[0-9]{1,2})?")


class TableSource(Source):
    """Tables that follow each other.

    Parameters
    ----------
    tables : list of Table
        What to read, in order.
    columns : Columns
        How.
    files : list of File
        Where the tables come from, if from files.
    extras : sequence of str
        Columns to hand on as they are.
    """

    def __init__(
        self,
        tables: list[Table],
        columns: Columns,
        files: list[File] | None = None,
        extras: Sequence[str] = (),
    ) -> None:
        self.tables, self.columns, self.files = tables, columns, files or []
        self.extras = list(extras)
        self.rereadable = all(table.rereadable for table in tables)
        counts = [table.n_rows for table in tables]
        self.n_rows = None if None in counts else sum(n for n in counts if n is not None)
        sizes = [table.n_bytes for table in tables]
        self.n_bytes = None if None in sizes else sum(n for n in sizes if n is not None)

    @property
    def feature_names(self) -> list[str]:
        """The features' names."""
        return self.columns.names

    def describe(self) -> dict[str, Any]:
        """Return the columns."""
        return {"kind": "table", **self.columns.to_json()}

    @property
    def _batch_bytes(self) -> int:
        # Each piece of a column costs about as much as 500 numbers, whatever its length.
        return max(BATCH_BYTES, min(8 * BATCH_BYTES, len(self.columns.features) * COLUMN_BYTES))

    def _raw(self, start: Position, batch_rows: int) -> Iterator[Raw]:
        columns = self.columns
        wanted = list(dict.fromkeys([*columns.needed, *self.extras]))
        wide = np.dtype(np.float64)
        before = sum(table.n_bytes or 0 for table in self.tables[: start.files])
        for i in range(start.files, len(self.tables)):
            table, row = self.tables[i], start.rows if i == start.files else 0
            for batch in table.read(wanted, row, batch_rows):
                place = Place(table.name, row)
                row += batch.num_rows
                X, unknown = encode(batch, columns, place)
                y = targets(batch, columns.targets) if columns.targets else None
                weight = columns.weight
                weights = None if weight is None else numbers(batch.column(weight), wide)
                extras = batch.select(self.extras) if self.extras else None
                read = before + _bytes_of(table, row)
                yield Raw(X, y, weights, place, Position(i, row), read, unknown, extras)
            before += table.n_bytes or 0


def open_tables(files: list[File], types: Mapping[str, Any]) -> list[Table]:
    """Open all files.

    Parameters
    ----------
    files : list of File
        Of one format.
    types : mapping of str to pyarrow.DataType
        Types of columns of CSV, and of key=value directories, that are not to be guessed.
    """
    for file in files:
        if file.n_bytes == 0:
            raise ValueError(f"{file.path} is empty: it has not even a header")
    tables: list[Table]
    if files[0].format == "csv":
        told = {**csv_types(CsvTable(files[0]).schema), **types}
        tables = [CsvTable(file, told) for file in files]
    elif files[0].format == "arrow":
        tables = [ArrowTable(file) for file in files]
    else:
        tables = [ParquetTable(file) for file in files]
    constants = _partition_values(files, types)
    for table, file in zip(tables, files, strict=True):
        table.add_constants({key: constants[key, value] for key, value in file.partitions})
    return tables


def _partition_values(
    files: list[File], types: Mapping[str, Any]
) -> dict[tuple[str, str | None], pa.Scalar]:
    """Return the values of key=value directories: numbers, where all of a key are.

    Keys of a given type are text: what other values there are must not change a category.
    """
    by_key: dict[str, set[str | None]] = {}
    for file in files:
        for key, value in file.partitions:
            by_key.setdefault(key, set()).add(value)
    typed = {}
    for key, values in by_key.items():
        there = [value for value in values if value is not None]
        kind, convert = (pa.string(), str) if key in types else _conversion(there)
        for value in values:
            typed[key, value] = pa.scalar(None if value is None else convert(value), kind)
    return typed


def _conversion(values: list[str]) -> tuple[pa.DataType, Any]:
    if values and all(_WHOLE_NUMBER.fullmatch(value) for value in values):
        return pa.int64(), int
    if values and all(_NUMBER.fullmatch(value) for value in values):
        return pa.float64(), float
    return pa.string(), str


def _bytes_of(table: Table, rows: int) -> int:
    """Tell how many bytes of a table have been read by now."""
    if table.bytes_read is not None:
        return table.bytes_read
    if table.n_bytes is None or not table.n_rows:
        return 0
    return round(table.n_bytes * rows / table.n_rows)
