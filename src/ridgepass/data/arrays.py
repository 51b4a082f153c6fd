"""Rows from NumPy files, read a piece at a time."""

import io
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ridgepass.data.columns import Columns, Feature, one_role, select
from ridgepass.data.files import File, changed
from ridgepass.data.missing import Place
from ridgepass.data.source import Position, Raw, Source
from ridgepass.kernels import Float64

_LONGEST_HEADER = 1 << 14  # more than NumPy reads


class ArrayFile:
    """A table of numbers in a .npy file."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            head = io.BytesIO(file.read(_LONGEST_HEADER))  # whatever length the file claims
        try:
            shape, self.by_columns, self.dtype = _read_header(head)
        except (ValueError, TypeError, MemoryError, RecursionError) as error:
            # The last two are of the parser: a header may hold a thousand brackets.
            raise ValueError(
                f"{path} cannot be read as a NumPy file: {error}; check that the file is whole"
            ) from error
        self.offset = head.tell()
        if self.dtype.kind not in "biuf" or len(shape) not in (1, 2) or not _is_shape(shape):
            raise ValueError(
                f"{path} has shape {shape} and dtype {self.dtype}: give a table of numbers, "
                "with one row for each sample"
            )
        self.n_rows, self.width = shape[0], shape[1] if len(shape) == 2 else 1
        need = self.n_rows * self.width * self.dtype.itemsize + self.offset
        if os.path.getsize(path) < need:
            raise ValueError(f"{path} is cut off: it should have {need:,} bytes; copy it again")

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return some rows.

        They are read, not mapped: whoever touches the map of a file that was cut off meanwhile is
        ended by the system.
        """
        n_rows = min(stop, self.n_rows) - start
        with open(self.path, "rb") as file:
            if not self.by_columns:
                rows = np.empty((n_rows, self.width), self.dtype)
                self._fill(rows.reshape(-1), file, start * self.width)
                return rows
            columns = np.empty((self.width, n_rows), self.dtype)
            for i, column in enumerate(columns):
                self._fill(column, file, i * self.n_rows + start)
            return columns.T

    def _fill(self, numbers: NDArray[Any], file: Any, start: int) -> None:
        """Read numbers that lie together in the file, from one of them on."""
        file.seek(self.offset + start * self.dtype.itemsize)
        if file.readinto(numbers.view(np.uint8)) < numbers.nbytes:
            raise changed(self.path)


class ArraySource(Source):
    """NumPy files of the same width that follow each other.

    Columns are called by their numbers, "0" for the first and "-1" for the last. Targets are some
    of them, or lie in a file of their own.

    Parameters
    ----------
    files : list of File
        What to read, in order.
    columns : Columns
        Which columns are features, targets and weights.
    target_file : ArrayFile or None
        A file of targets, with a row for each row of the others.
    """

    def __init__(
        self, files: list[File], columns: Columns, target_file: ArrayFile | None = None
    ) -> None:
        self.files, self.columns, self.target_file = files, columns, target_file
        self.arrays = open_arrays(files)
        self.n_rows = sum(array.n_rows for array in self.arrays)
        self.n_bytes = sum(file.n_bytes for file in files)
        if target_file is not None and target_file.n_rows != self.n_rows:
            raise ValueError(
                f"{target_file.path} has {target_file.n_rows:,} rows, the data has "
                f"{self.n_rows:,}: give one target for each row"
            )

    @property
    def feature_names(self) -> None:
        """None: numbers are no names."""
        return None

    @property
    def has_targets(self) -> bool:
        """Whether chunks come with targets."""
        return self.target_file is not None or super().has_targets

    def describe(self) -> dict[str, Any]:
        """Return the columns, by their numbers."""
        plain = self.columns.to_json()
        taken = [int(feature.name) for feature in self.columns.features]
        kept = {name: plain[name] for name in ("nulls", "dtype", "means", "targets", "weight")}
        return {"kind": "array", "width": self.arrays[0].width, "taken": taken, **kept}

    def _raw(self, start: Position, batch_rows: int) -> Iterator[Raw]:
        columns, dtype = self.columns, np.dtype(self.columns.dtype)
        taken = [int(feature.name) for feature in columns.features]
        for i in range(start.files, len(self.arrays)):
            array, row = self.arrays[i], start.rows if i == start.files else 0
            before = sum(other.n_rows for other in self.arrays[:i])
            read = sum(file.n_bytes for file in self.files[:i])
            row_bytes = array.width * array.dtype.itemsize
            while row < array.n_rows:
                rows = array.rows(row, row + batch_rows)
                stop = row + len(rows)
                X = rows if taken == list(range(array.width)) else rows[:, taken]
                y = self._targets(rows, before + row, before + stop)
                weights = None if columns.weight is None else _wide(rows, [columns.weight])[:, 0]
                end, n_bytes = Position(i, stop), read + stop * row_bytes
                place = Place(array.path, row)
                yield Raw(X.astype(dtype, copy=False), y, weights, place, end, n_bytes)
                row = stop

    def _targets(self, rows: NDArray[Any], start: int, stop: int) -> Float64 | None:
        if self.target_file is not None:
            y = self.target_file.rows(start, stop).astype(np.float64)
        elif self.columns.targets:
            y = _wide(rows, self.columns.targets)
        else:
            return None
        return y[:, 0] if y.shape[1] == 1 else y


def open_arrays(files: list[File]) -> list[ArrayFile]:
    """Open files that must be of one width."""
    arrays = [ArrayFile(file.path) for file in files]
    for array in arrays:
        if array.width != arrays[0].width:
            raise ValueError(
                f"{array.path} has {array.width} columns, {arrays[0].path} has "
                f"{arrays[0].width}: give files of one width"
            )
    return arrays


def choose_array_columns(
    files: list[File],
    *,
    target: Sequence[str],
    features: Sequence[str],
    exclude: Sequence[str],
    weight: str | None,
    nulls: str,
) -> Columns:
    """Settle which columns are features, targets and weights."""
    arrays = open_arrays(files)
    if not any(array.n_rows for array in arrays):  # and nothing vouches for their width
        raise ValueError(f"{arrays[0].path} has no row: give files with rows")
    names = [str(i) for i in range(arrays[0].width)]
    named = [_from_start(name, names) for name in target]
    by = None if weight is None else _from_start(weight, names)
    others = one_role([*named, *([] if by is None else [by])])
    chosen = select(
        names,
        files[0].path,
        features=[_from_start(name, names) for name in features],
        exclude=[_from_start(name, names) for name in exclude],
        others=others,
    )
    return Columns(tuple(map(Feature, chosen)), tuple(named), by, nulls, array_type(arrays))


def _read_header(file: Any) -> tuple[tuple[Any, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file)
    if version in ((2, 0), (3, 0)):  # they differ in what names of fields may hold
        return npy.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the format is unknown")


def _is_shape(shape: tuple[Any, ...]) -> bool:
    return all(type(length) is int and length >= 0 for length in shape)


def array_type(arrays: list[ArrayFile]) -> str:
    """Return what holds the numbers of all files without loss."""
    short = all(array.dtype.kind == "f" and array.dtype.itemsize <= 4 for array in arrays)
    return "float32" if short else "float64"


def _from_start(name: str, names: list[str]) -> str:
    """Count "-1" from the end, as Python does."""
    if name.startswith("-") and name[1:].isdigit() and 0 < int(name[1:]) <= len(names):
        return names[int(name)]
    return name


def _wide(rows: NDArray[Any], names: Sequence[str]) -> Float64:
    wide: Float64 = rows[:, [int(name) for name in names]].astype(np.float64)
    return wide
