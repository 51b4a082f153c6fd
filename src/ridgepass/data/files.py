"""Which files a source names, in which order, and what kind each is."""

import errno
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote

SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
STANDARD_INPUT = "-"
PACKED = ("csv", "svmlight")  # may be packed with gzip
_COMPRESSED = ".gz"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what Hive, Spark and Arrow call a null


@dataclass(frozen=True)
class File:
    """One input file; ``partitions`` are the key=value directories it lies in."""

    path: str
    format: str
    partitions: tuple[tuple[str, str | None], ...] = ()

    @property
    def n_bytes(self) -> int:
        """Its size on disk."""
        return os.stat(self.path).st_size

    @property
    def is_compressed(self) -> bool:
        """Whether it must be unpacked with gzip."""
        return self.path.lower().endswith(_COMPRESSED)


def find_files(sources: Sequence[str | os.PathLike[str]], format: str | None = None) -> list[File]:
    """Return the files that paths, directories and globs stand for.

    Directories are searched below, in alphabetical order. Names that begin with a dot or an
    underscore are skipped unless asked for, as Spark writes such files beside the data.

    Parameters
    ----------
    sources : sequence of str or path
        Files, directories and patterns such as ``data/**/*.parquet``.
    format : str, optional
        One of ``FORMATS``, for files whose names do not tell.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format {format!r} is unknown: choose one of {', '.join(FORMATS)}")
    found: list[File] = []
    for source in sources:
        found.extend(_expand(os.fspath(source), format))
    if not found:
        raise ValueError("no input files: name at least one file, directory or pattern")
    _check_distinct(found)
    kinds = {file.format: file.path for file in reversed(found)}
    if len(kinds) > 1:
        (one, path), (other, another) = list(kinds.items())[:2]
        raise ValueError(
            f"{path} is {one} and {another} is {other}: give files of one format at a time"
        )
    return found


def changed(name: str) -> ValueError:
    """Return the error for a file that is no longer what it was when it was opened."""
    return ValueError(
        f"{name} was changed while it was read: run again when nothing writes to it any more"
    )


def _expand(source: str, format: str | None) -> list[File]:
    if os.path.isdir(source):
        found = _below(source, format)
        if not found:
            raise ValueError(
                f"{source} has no file that can be read: looked for names ending in "
                f"{', '.join(SUFFIXES)}"
            )
        return found
    if os.path.exists(source):
        return [_file(source, format)]
    if not glob.has_magic(source):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
    by_path: dict[str, File] = {}  # a pattern may match a directory and what is in it
    for name in sorted(glob.glob(source, recursive=True)):
        if not _is_beside(name, source):
            files = _below(name, format) if os.path.isdir(name) else [_file(name, format)]
            by_path.update((os.path.normpath(file.path), file) for file in files)
    if not by_path:
        raise ValueError(f"no file matches {source}: check the pattern")
    return list(by_path.values())


def _is_beside(path: str, pattern: str) -> bool:
    asked = [part for part in Path(pattern).parts if part.startswith("_")]
    hidden = [part for part in Path(path).parts if part.startswith("_")]
    return not all(any(fnmatchcase(part, wanted) for wanted in asked) for part in hidden)


def _below(directory: str, format: str | None) -> list[File]:
    found = []
    seen = {os.path.realpath(directory)}  # links may lead round in circles
    for top, folders, names in os.walk(directory, onerror=_fail, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in list(folders):
            real = os.path.realpath(os.path.join(top, name))
            if real in seen:
                folders.remove(name)
            seen.add(real)
        for name in sorted(names):
            if not name.startswith((".", "_")) and (format or _format_of(name)):
                found.append(_file(os.path.join(top, name), format))
    return found


def _fail(error: OSError) -> None:
    raise error


def _file(path: str, format: str | None) -> File:
    kind = format or _format_of(path)
    if kind is None:
        raise ValueError(
            f"{path} is of no known format: its name should end in {', '.join(SUFFIXES)} "
            "(.gz for packed text), or say which of "
            f"{', '.join(FORMATS)} it is with format (--format)"
        )
    if not os.path.exists(path):  # a link that leads nowhere
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if not os.path.isfile(path):
        raise ValueError(
            f"{path} is a pipe or a device: pipe it into standard input and read that (-)"
        )
    if kind not in PACKED and path.lower().endswith(_COMPRESSED):
        raise ValueError(f"{path} cannot be read packed: unpack it with gunzip first")
    parents = Path(path).parts[:-1]
    pairs = [part.partition("=") for part in parents if "=" in part.strip("=")]
    partitions = tuple(
        (unquote(key), None if value == _NO_VALUE else unquote(value)) for key, _, value in pairs
    )
    return File(path, kind, partitions)


def _format_of(path: str) -> str | None:
    name = path.lower().removesuffix(_COMPRESSED)
    return SUFFIXES.get(os.path.splitext(name)[1])


def _check_distinct(files: list[File]) -> None:
    seen: dict[str, str] = {}
    for file in files:
        real = os.path.realpath(file.path)
        if real in seen:
            raise ValueError(
                f"{file.path} is given twice (as {seen[real]}): its rows would count twice, "
                "so name it once"
            )
        seen[real] = file.path
