"""What every source of rows can do, whatever it reads from."""

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ridgepass.data.columns import Columns, OneHot
from ridgepass.data.files import File
from ridgepass.data.missing import (
    ColumnMeans,
    Place,
    check_not_infinite,
    check_present,
    filled,
    has_missing,
    missing_rows,
)
from ridgepass.kernels import Float64

# A batch holds about this many bytes; a few of them are under way at a time.
BATCH_BYTES = 4 << 20
MOST_ROWS = 1 << 16
AHEAD = 2  # batches read while one is being learned from
# How long to wait for a reader that nobody needs any more, which may wait for a pipe for ever.
PATIENCE = 5.0  # seconds


class Position(NamedTuple):
    """How far reading has come: whole files, and rows of the next."""

    files: int = 0
    rows: int = 0


class Chunk(NamedTuple):
    """Some rows ready to learn from, and where reading stands after them.

    ``n_read`` counts rows before any were dropped; ``present`` tells which were kept, where some
    were not. ``extras`` are columns carried along as they are.
    """

    X: Any
    y: Float64 | None
    weights: Float64 | None
    end: Position
    n_read: int
    n_bytes: int
    unknown: int = 0
    present: NDArray[np.bool_] | None = None
    extras: Any = None


class Raw(NamedTuple):
    """Some rows as they were read, with NaN for what is missing."""

    X: Any
    y: Float64 | None
    weights: Float64 | None
    place: Place
    end: Position
    n_bytes: int
    unknown: int = 0
    extras: Any = None


class Source(ABC):
    """Rows in a fixed order that can be read from any position on.

    Attributes
    ----------
    columns : Columns
        What is read and how.
    feature_names : list of str or None
        None where features have no names of their own.
    files : list of File
        What is read, if it is files.
    n_rows, n_bytes : int or None
        How much there is, if that is known beforehand.
    rereadable : bool
        Whether it can be read more than once.
    """

    columns: Columns
    files: list[File]
    n_rows: int | None = None
    n_bytes: int | None = None
    rereadable: bool = True

    @abstractmethod
    def _raw(self, start: Position, batch_rows: int) -> Iterator[Raw]:
        """Yield rows as they are."""

    @property
    @abstractmethod
    def feature_names(self) -> list[str] | None:
        """The features' names."""

    @property
    def has_targets(self) -> bool:
        """Whether chunks come with targets."""
        return bool(self.columns.targets)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return as plain data what predicting from other files needs to know."""

    @property
    def row_bytes(self) -> int:
        """About what a row takes."""
        return max(1, self.columns.n_filled * np.dtype(self.columns.dtype).itemsize)

    @property
    def default_rows(self) -> int:
        """How many rows to read at a time."""
        return max(1, min(MOST_ROWS, self._batch_bytes // self.row_bytes))

    @property
    def _batch_bytes(self) -> int:
        return BATCH_BYTES

    def chunks(
        self, start: Position | None = None, batch_rows: int | None = None
    ) -> Generator[Chunk, None, None]:
        """Yield rows from a position on, missing values dealt with, read ahead of their use."""
        begin = Position() if start is None else start
        rows = self.default_rows if batch_rows is None else as_batch_rows(batch_rows)
        if self.columns.nulls == "mean" and self.columns.means is None:
            self.columns = self._with_means()
        return read_ahead(self._clean(raw) for raw in self._raw(begin, rows))

    def _with_means(self) -> Columns:
        """Read everything once for the means, in steps that batch sizes do not change."""
        if not self.rereadable:
            raise ValueError(
                "nulls='mean' reads the data twice, and this source can be read only once: "
                "give files, or nulls='zero' or 'drop'"
            )
        means = ColumnMeans(self.columns.width)
        for raw in self._raw(Position(), self.default_rows):
            check_not_infinite(raw.X, self._label, raw.place)
            means.update(raw.X)
        values, start = means.values, 0
        if not np.isfinite(values).all():
            worst = int(np.argmax(~np.isfinite(values)))
            raise ValueError(
                f"the mean of column {self._label(worst)!r} overflows: choose nulls zero or drop"
            )
        for feature in self.columns.features:
            if isinstance(feature, OneHot):  # no category is all zeros
                values[start : start + feature.width] = 0.0
            start += feature.width
        return replace(self.columns, means=tuple(values.tolist()))

    def _label(self, feature: int) -> str:
        """Return what errors call a feature."""
        return self.columns.label(feature)

    def _clean(self, raw: Raw) -> Chunk:
        columns, place, present = self.columns, raw.place, None
        X, y, weights = raw.X, raw.y, raw.weights
        if columns.nulls == "drop":
            there = _whole_rows(X, y, weights)
            if not there.all():
                present, place = there, replace(place, kept=np.flatnonzero(there))
                X = X[there]
                y = None if y is None else y[there]
                weights = None if weights is None else weights[there]
        elif columns.nulls != "error" and has_missing(X):
            means = columns.means
            X = filled(X, np.zeros(X.shape[1]) if means is None else np.array(means))
        check_present(X, self._label, place, _ask("drop, zero or mean"))
        if y is not None:
            named = columns.targets
            check_present(y, lambda i: named[i] if named else "target", place, _ask("drop"))
        if weights is not None:
            check_present(weights, lambda _: str(columns.weight), place, _ask("drop"))
            if (weights < 0).any():
                row = int(np.argmax(weights < 0))
                raise ValueError(
                    f"column {columns.weight!r} has the weight {weights[row]:g} in "
                    f"{place.row(row)}: weights must not be negative"
                )
        n_read = raw.X.shape[0]
        return Chunk(X, y, weights, raw.end, n_read, raw.n_bytes, raw.unknown, present, raw.extras)


def as_batch_rows(batch_rows: Any) -> int:
    """Check how many rows a user wants at a time."""
    if not isinstance(batch_rows, int | np.integer) or batch_rows < 1:
        raise ValueError(f"batch_rows={batch_rows!r} is no number of rows: give one from 1 on")
    return int(batch_rows)


def read_ahead(chunks: Iterator[Any]) -> Generator[Any, None, None]:
    """Yield the same from a thread that works ahead, so that reading overlaps computing."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=AHEAD)
    stopped, done = threading.Event(), object()

    def put(item: Any) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for chunk in chunks:
                if not put(chunk):
                    return
        except BaseException as error:  # raised again where it is waited for
            put(error)
        else:
            put(done)

    thread = threading.Thread(target=work, name="ridgepass-reader", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not done:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join(PATIENCE)


def _whole_rows(*parts: Any) -> NDArray[np.bool_]:
    """Tell which rows have no NaN anywhere."""
    there = np.ones(parts[0].shape[0], dtype=bool)
    for part in parts:
        if part is not None and has_missing(part):
            there &= ~missing_rows(part)
    return there


def _ask(choices: str) -> str:
    return f"fill it in, or choose what to do with nulls (--nulls): {choices}"
