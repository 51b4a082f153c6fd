"""Files that are replaced as a whole or not at all, whatever happens in between."""

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ridgepass.store.errors import FormatError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` once it is complete and on the disk.

    It is written beside ``path`` under another name. If the block raises, that file is removed and
    ``path`` stays as it was; if the process is killed, the next call removes it. What a link points
    to is replaced, not the link. Pipes and devices are written to as they are.

    Parameters
    ----------
    path : str or path-like
        The file, which need not exist.

    Yields
    ------
    file object
        Open for writing bytes.
    """
    if is_special(path):
        try:
            with open(path, "wb") as special:
                yield special
        except OSError as error:
            error.filename = error.filename or os.fspath(path)
            raise
        return
    target = Path(os.path.realpath(path))
    _remove_abandoned(target)
    temporary, file = _create_beside(target, path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # while it is locked, so that nobody takes it for abandoned
                temporary.replace(target)
        if fcntl is None:  # Windows renames no file that is open
            temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # a full disk has no name
            error.filename = os.fspath(path)
        raise
    _sync_folder(target.parent)


def open_regular(path: str | os.PathLike[str], flags: int = 0) -> BinaryIO:
    """Open a regular file for reading; raise at once for a pipe or a device, which may never end.

    Parameters
    ----------
    path : str or path-like
        The file.
    flags : int
        More flags for ``os.open``.
    """
    flags |= getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for somebody to write
    file = open(path, "rb", opener=lambda name, how: os.open(name, how | flags))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FormatError(
            f"{os.fspath(path)} is a pipe or a device, and models are read from files: "
            "copy it to a file first"
        )
    return file


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether something is there that is not a regular file, such as a pipe."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _create_beside(target: Path, named: str | os.PathLike[str]) -> tuple[Path, BinaryIO]:
    """Return a new file in the same folder, locked for as long as it is open."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
        try:
            file = os.fdopen(os.open(temporary, flags, 0o666), "wb")
        except OSError as error:
            error.filename = os.fspath(named)  # the name that the caller knows
            raise
        if fcntl is None:
            return temporary, file
        with contextlib.suppress(OSError):  # some network folders have no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()  # removed by another process before it was locked


def _remove_abandoned(target: Path) -> None:
    """Remove what killed processes left of the same target: files that nobody has locked."""
    if fcntl is None:
        return
    pattern = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{16}\.tmp")
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):
            if not pattern.fullmatch(name):
                continue
            abandoned = target.with_name(name)
            with contextlib.suppress(OSError, FormatError):
                if not stat.S_ISREG(abandoned.lstat().st_mode):
                    continue  # a pipe or a link: none of ours
                with open_regular(abandoned, os.O_NOFOLLOW) as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    abandoned.unlink()


def _sync_folder(folder: Path) -> None:
    """Put the new name on the disk too, where the system can."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)
