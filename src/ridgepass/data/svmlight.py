"""Rows from svmlight (libsvm) files: a target and the features that are not zero."""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from ridgepass.data.columns import Columns, Vector
from ridgepass.data.files import File
from ridgepass.data.missing import Place
from ridgepass.data.source import MOST_ROWS, Position, Raw, Source

# Text is parsed in pieces of about this many bytes.
PIECE = 1 << 20
_LARGEST = 2**31 - 1


class SvmlightSource(Source):
    """Svmlight files that follow each other.

    Parameters
    ----------
    files : list of File
        What to read, in order.
    columns : Columns
        One `Vector` feature as wide as the data.
    zero_based : bool
        Whether the first feature has the number 0.
    with_targets : bool
        Whether the first number of each line is to be read as a target.
    """

    def __init__(
        self, files: list[File], columns: Columns, zero_based: bool, *, with_targets: bool = True
    ) -> None:
        self.files, self.columns, self.zero_based = files, columns, zero_based
        self.with_targets = with_targets
        self.n_bytes = sum(file.n_bytes for file in files)

    @property
    def feature_names(self) -> None:
        """None: numbers are no names."""
        return None

    @property
    def has_targets(self) -> bool:
        """Whether chunks come with targets."""
        return self.with_targets

    @property
    def default_rows(self) -> int:
        """How many rows to read at a time: all of a piece, since few numbers are not zero."""
        return MOST_ROWS

    def describe(self) -> dict[str, Any]:
        """Return how features are counted."""
        means = self.columns.means
        return {
            "kind": "svmlight",
            "zero_based": self.zero_based,
            "nulls": self.columns.nulls,
            "means": None if means is None else list(means),
        }

    def _label(self, feature: int) -> str:
        return str(feature if self.zero_based else feature + 1)

    def _raw(self, start: Position, batch_rows: int) -> Iterator[Raw]:
        for i in range(start.files, len(self.files)):
            file, row = self.files[i], 0
            skip = start.rows if i == start.files else 0
            before = sum(other.n_bytes for other in self.files[:i])
            for text, n_bytes in _pieces(file):
                place = Place(file.path, row)
                rows, targets = _parse(text, place)
                X = self._features(rows, place)
                for first in range(max(skip - row, 0), len(targets), batch_rows):
                    stop = min(first + batch_rows, len(targets))
                    y = targets[first:stop] if self.with_targets else None
                    here, end = Place(file.path, row + first), Position(i, row + stop)
                    yield Raw(X[first:stop], y, None, here, end, before + n_bytes)
                row += len(targets)

    def _features(self, rows: Any, place: Place) -> Any:
        """Return rows as wide as the model, with the first feature in column 0."""
        width, shift = self.columns.width, 0 if self.zero_based else 1
        indices = rows.indices - shift
        wrong = np.flatnonzero((indices < 0) | (indices >= width))
        if len(wrong):
            row = int(np.searchsorted(rows.indptr, wrong[0], side="right")) - 1
            raise ValueError(
                f"{place.row(row)} has a feature {rows.indices[wrong[0]]}, and features are "
                f"numbered from {shift} to {width - 1 + shift}: train with n_features "
                "(--n-features) to have room for more"
            )
        shape = rows.shape[0], width
        return sparse.csr_array((rows.data, indices, rows.indptr), shape=shape)


def scan_svmlight(files: list[File]) -> tuple[int, bool]:
    """Read everything once for the largest number of a feature and whether they start at zero."""
    largest, smallest = -1, _LARGEST
    for file in files:
        row = 0
        for text, _ in _pieces(file):
            rows, targets = _parse(text, Place(file.path, row))
            row += len(targets)
            if rows.nnz:
                largest = max(largest, int(rows.indices.max()))
                smallest = min(smallest, int(rows.indices.min()))
    if largest < 0:
        raise ValueError(
            f"{files[0].path} has no feature that is not zero: there is nothing to fit"
        )
    return largest, smallest == 0


def svmlight_columns(
    n_features: int, nulls: str, means: tuple[float, ...] | None = None
) -> Columns:
    """Return features without names as columns."""
    return Columns((Vector("feature", n_features),), nulls=nulls, means=means)


def _parse(text: bytes, place: Place) -> tuple[Any, Any]:
    """Return rows, with features at the numbers they have in the file, and targets."""
    try:
        return _load(text)
    except (ValueError, OverflowError) as error:
        row, cause = _first_bad(text)
        raise ValueError(
            f"{place.row(row)} cannot be read as svmlight: {cause or error}; fix that line"
        ) from error


def _first_bad(text: bytes) -> tuple[int, Exception | None]:
    """Return which row cannot be read and why, by halving: each half is parsed only once."""
    lines, row, cause = text.split(b"\n"), 0, None
    while lines:
        half = (len(lines) + 1) // 2
        try:
            row += len(_load(b"\n".join(lines[:half]))[1])
            lines = lines[half:]
        except (ValueError, OverflowError) as error:
            cause, lines = error, lines[:half] if half < len(lines) else []
    return row, cause


def _load(text: bytes) -> tuple[Any, Any]:
    rows, targets = load_svmlight_file(
        io.BytesIO(text), n_features=_LARGEST, zero_based=True, dtype=np.float64
    )
    return rows, targets


def _pieces(file: File) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, and how much of the file they end at."""
    with open(file.path, "rb") as raw:
        stream: Any = gzip.GzipFile(fileobj=raw) if file.is_compressed else raw
        rest: list[bytes] = []  # of a line, which may be long
        while True:
            try:
                text = stream.read(PIECE)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(
                    f"{file.path} cannot be unpacked: {error}; check that the file is whole"
                ) from error
            if not text:
                break
            whole, newline, tail = text.rpartition(b"\n")
            if newline:
                yield b"".join([*rest, whole, newline]), raw.tell()
                rest = [tail]
            else:
                rest.append(text)
        last = b"".join(rest)
        if last.strip():
            yield last, raw.tell()
