"""Predictions for files, as files."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from ridgepass.cli.options import check_output, check_paths
from ridgepass.cli.progress import Watch
from ridgepass.cli.show import say, share, surely
from ridgepass.data.opening import find_inputs, open_for_prediction
from ridgepass.data.source import Chunk, Source
from ridgepass.data.table_source import TableSource
from ridgepass.estimators import StreamingRidgeClassifier
from ridgepass.estimators.inputs import CheckedRows
from ridgepass.solve import Certificate
from ridgepass.store import load, replacing

_SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def predict(
    path: str,
    data: list[str],
    output: str | None,
    *,
    bounds: bool,
    confidence: float,
    keep: Sequence[str],
    alpha: float | None,
    nulls: str | None,
    format: str | None,
    output_format: str | None,
    quiet: bool,
) -> None:
    """Predict for every row, in order; ``output`` None is standard output."""
    kind = _kind_of(output, output_format)
    check_paths([path])
    model = load(path)
    if alpha is not None:
        model = model.at(alpha)
    if bounds and isinstance(model, StreamingRidgeClassifier):
        raise ValueError(f"{path} is a classifier, whose labels have no bounds: leave out --bounds")
    files = find_inputs(data, format)
    if output is not None:
        check_output(output, [path, *(file.path for file in files)])
    learned = model._trained()
    source = open_for_prediction(
        [file.path for file in files] or data,
        learned.columns,
        None if learned.origin.names is None else learned.origin.names.tolist(),
        learned.origin.n_features,
        nulls=nulls,
        format=format,
        keep=keep,
    )
    made = _names(model, bounds)
    clash = next((name for name in keep if name in made), None)
    if clash is not None:
        raise ValueError(f"column {clash!r} to keep is called as the predictions: rename it")
    _check_nested(source, keep, kind)
    proof = model.certificate(confidence=confidence) if bounds else None
    rows, n_bytes, unknown, missing = 0, 0, 0, 0
    with (
        _writer(output, kind) as writer,
        Watch(source.n_rows, source.n_bytes, quiet=quiet) as watch,
    ):
        with closing(source.chunks()) as chunks:
            for chunk in chunks:
                writer.write(_predicted(model, proof, chunk))
                rows, n_bytes = rows + chunk.n_read, chunk.n_bytes
                unknown += chunk.unknown
                missing += chunk.n_read - chunk.X.shape[0]
                watch.update(rows, n_bytes)
        if not rows:
            writer.write(_nothing(source, keep, made))
        watch.finish(rows, n_bytes)
    if proof is not None and not quiet:
        text = f"lower and upper hold {surely(proof.confidence)}"
        if proof.relative_estimate is not None:
            estimate = float(np.max(proof.relative_estimate))
            text += f"; the coefficients are off by an estimated {share(estimate)}"
        say(f"ridgepass: {text}")
        if proof.remark:
            say(f"ridgepass: warning: {proof.remark}")
    if unknown:
        say(
            f"ridgepass: warning: {unknown:,} values are of no category seen in training and count "
            "as all zeros"
        )
    if missing:
        say(f"ridgepass: warning: {missing:,} rows with missing values have no prediction")


def _predicted(model: Any, proof: Certificate | None, chunk: Chunk) -> pa.RecordBatch:
    origin = model._trained().origin
    X = CheckedRows(chunk.X, origin.names)
    columns: dict[str, Any] = {}
    if chunk.extras is not None:
        columns.update(zip(chunk.extras.schema.names, chunk.extras.columns, strict=True))
    if chunk.X.shape[0]:
        values = model.predict(X)
        width = None if proof is None else proof.prediction_bound(X)
    else:
        values = width = np.empty((0, origin.n_targets) if origin.n_targets > 1 else 0)
    table = values if values.ndim == 2 else values[:, None]
    made = iter(_names(model, proof is not None))
    for i in range(table.shape[1]):
        columns[next(made)] = _spread(table[:, i], chunk)
        if proof is not None and width is not None:
            by = width[:, i] if width.ndim == 2 else width
            columns[next(made)] = _spread(table[:, i] - by, chunk)
            columns[next(made)] = _spread(table[:, i] + by, chunk)
    return pa.RecordBatch.from_pydict(columns)


def _names(model: Any, bounds: bool) -> list[str]:
    """Return what the columns with predictions are called."""
    learned = model._trained()
    n_targets, named = learned.origin.n_targets, (learned.columns or {}).get("targets") or []
    labels = learned.origin.labels
    if labels is not None:
        n_targets = len(labels.classes) if labels.multilabel else 1
    ends = [""]
    if n_targets > 1 or (labels is not None and labels.multilabel):
        ends = [f"_{named[i] if len(named) == n_targets else i}" for i in range(n_targets)]
    kinds = ["prediction", "lower", "upper"] if bounds else ["prediction"]
    return [f"{kind}{end}" for end in ends for kind in kinds]


def _nothing(source: Source, keep: Sequence[str], made: list[str]) -> pa.RecordBatch:
    """Return the columns of predictions for no row."""
    columns: dict[str, pa.Array] = {}
    if isinstance(source, TableSource):
        schema = source.tables[0].schema
        columns.update((name, pa.array([], schema.field(name).type)) for name in keep)
    columns.update((name, pa.array([], pa.float64())) for name in made)
    return pa.RecordBatch.from_pydict(columns)


def _check_nested(source: Source, keep: Sequence[str], kind: str) -> None:
    """Raise for kept columns that CSV has no place for."""
    if kind != "csv" or not isinstance(source, TableSource):
        return
    for name in keep:
        found = source.tables[0].schema.field(name).type
        if pa.types.is_nested(found):
            raise ValueError(
                f"column {name!r} to keep is {found}, which CSV cannot hold: write .parquet or "
                ".arrow"
            )


def _spread(values: Any, chunk: Chunk) -> pa.Array:
    """Return predictions with nulls for the rows that were dropped."""
    if chunk.present is None:
        return pa.array(values)
    at = np.cumsum(chunk.present) - 1
    return pa.array(values).take(pa.array(at, mask=~chunk.present))


def _kind_of(output: str | None, given: str | None) -> str:
    if given is not None:
        if output is None and given == "parquet":
            raise ValueError("Parquet cannot be written to a pipe: choose csv or arrow, or -o FILE")
        return given
    if output is None:
        return "csv"
    found = next((kind for end, kind in _SUFFIXES.items() if output.lower().endswith(end)), None)
    if found is None:
        raise ValueError(
            f"{output} is of no known format: end its name in {', '.join(_SUFFIXES)}, or say which "
            f"with --output-format"
        )
    return found


class _Writer:
    """Opens the file when the first batch tells the columns."""

    def __init__(self, sink: Any, kind: str) -> None:
        self.sink, self.kind = sink, kind
        self.opened: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self.opened is None:
            self.opened = self._open(batch.schema)
        self.opened.write_batch(batch)

    def _open(self, schema: pa.Schema) -> Any:
        if self.kind == "csv":
            options = pa.csv.WriteOptions(quoting_header="none")  # quotes where needed all the same
            return pa.csv.CSVWriter(self.sink, schema, write_options=options)
        if self.kind == "parquet":
            return pa.parquet.ParquetWriter(self.sink, schema)
        if self.sink is sys.stdout.buffer:
            return pa.ipc.new_stream(self.sink, schema)
        return pa.ipc.new_file(self.sink, schema)

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()


@contextmanager
def _writer(output: str | None, kind: str) -> Iterator[_Writer]:
    if output is None:
        writer = _Writer(sys.stdout.buffer, kind)
        try:
            yield writer
            writer.close()
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            error.filename = error.filename or "standard output"
            raise
        return
    with replacing(output) as sink:
        writer = _Writer(sink, kind)
        try:
            yield writer
        except BaseException:
            with suppress(OSError, pa.ArrowException):  # before its file is gone
                writer.close()
            raise
        writer.close()
