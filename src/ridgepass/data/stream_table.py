"""Tables that are handed over as Arrow batches: readers, frames, DuckDB relations, pipes."""

import gzip
import io
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc

from ridgepass.data.csv_table import CsvStream
from ridgepass.data.tables import Table, buffer_size, errors_in, from_row

REMEDY = "check where it comes from"


class StreamTable(Table):
    """Anything that hands over Arrow batches.

    What has no length cannot be told to give the same rows twice, and is read once.

    Parameters
    ----------
    source : object with ``__arrow_c_stream__``, or pyarrow Dataset
        Where batches come from.
    name : str, optional
        What errors call it.
    """

    def __init__(self, source: Any, name: str | None = None) -> None:
        what = name or f"the {type(source).__module__.split('.')[0]} {type(source).__name__}"
        with errors_in(what, remedy=REMEDY):
            if hasattr(source, "scanner"):
                schema = source.schema
            elif _is_relation(source):
                schema = source.limit(0).to_arrow_reader(1).schema  # without running the query
            elif hasattr(source, "__len__"):
                self.n_rows = len(source)
                schema = pa.RecordBatchReader.from_stream(source).schema
            else:
                self.rereadable = False
                source = pa.RecordBatchReader.from_stream(source)
                schema = source.schema
        self.source = source
        self._seen: list[pa.RecordBatch] = []
        super().__init__(what, schema)

    def peek(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns, all rows of which a later `read` will yield again."""
        if self.rereadable:
            yield from super().peek(columns)
            return
        with self._errors():
            for batch in self.source:
                self._seen.append(batch)
                yield batch

    def _read(self, columns: list[str], start: int, at_most: int) -> Iterator[pa.RecordBatch]:
        pieces: Any = self.source
        if hasattr(self.source, "scanner"):
            pieces = _scan(self.source, columns, at_most)
        elif _is_relation(self.source):
            # DuckDB's C stream hands over batches of a hundred thousand rows, however wide.
            pieces = self.source.to_arrow_reader(at_most)
        elif self.rereadable:
            pieces = pa.RecordBatchReader.from_stream(self.source)
        seen, self._seen = self._seen, []
        return from_row(chain(seen, pieces), start)

    def _errors(self) -> Any:
        return errors_in(self.name, remedy=REMEDY)


def standard_input(stream: Any, format: str | None, types: dict[str, Any]) -> Table:
    """Open what comes through a pipe: an Arrow stream, or CSV, packed with gzip or not.

    Parameters
    ----------
    stream : io.BufferedReader
        The pipe.
    format : str or None
        What it is, if known.
    types : dict
        Types of columns of CSV that are not to be guessed.
    """
    start = stream.peek(8)[:8]
    if not start:
        raise ValueError("standard input is empty: pipe CSV or an Arrow stream into it")
    if start.startswith((b"PAR1", b"ARROW1", b"\x93NUMPY")):
        raise ValueError(
            "standard input has a file that cannot be read from a pipe: give its path instead"
        )
    if format == "arrow" or (format is None and start.startswith(b"\xff\xff\xff\xff")):
        with errors_in("standard input", "an Arrow stream"):
            return StreamTable(pa.ipc.open_stream(stream), "standard input")
    if format not in (None, "csv"):
        raise ValueError(f"standard input cannot be {format}: pipe CSV or an Arrow stream into it")
    if start.startswith(b"\x1f\x8b"):
        stream = io.BufferedReader(gzip.GzipFile(fileobj=stream))
    return CsvStream(stream, types)


def _is_relation(source: Any) -> bool:
    """Whether it is DuckDB's, whose length is not known before the query has run."""
    return hasattr(source, "to_arrow_reader") and hasattr(source, "limit")


def _scan(dataset: Any, columns: list[str], at_most: int) -> pa.RecordBatchReader:
    """Read a pyarrow Dataset, which reads whole row groups, and by default many ahead."""
    options: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
    if isinstance(getattr(dataset, "format", None), pa.dataset.ParquetFileFormat):
        options["fragment_scan_options"] = pa.dataset.ParquetFragmentScanOptions(
            pre_buffer=False,
            use_buffered_stream=True,
            buffer_size=buffer_size(len(columns)),
        )
    return dataset.scanner(columns=columns, batch_size=at_most, **options).to_reader()
