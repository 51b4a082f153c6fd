"""Model files: what a fitted estimator has learned, to the last bit."""

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ridgepass.store.atomic import is_special, open_regular, replacing
from ridgepass.store.errors import FormatError
from ridgepass.store.layout import pack, read_notes, unpack
from ridgepass.store.models import check_class, put_model, take_model

__all__ = ["FormatError", "Stored", "from_bytes", "load", "notes_of", "read", "replacing", "save"]


@dataclass(frozen=True, eq=False)
class Stored:
    """A model file that was read.

    Attributes
    ----------
    model : estimator
        The model.
    notes : dict
        What was saved beside it; empty by default.
    version : int
        The version of the format.
    n_bytes : int
        The size of the file.
    """

    model: Any
    notes: dict[str, Any]
    version: int
    n_bytes: int


def save(
    model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator to a file; see :meth:`StreamingRidge.save`.

    Parameters
    ----------
    model : estimator
        A fitted `StreamingRidge`, `StreamingRidgeCV` or `StreamingRidgeClassifier`.
    path : str or path-like
        The file.
    notes : mapping, optional
        Anything that JSON can hold, to be kept beside the model.
    """
    check_class(model)
    if not os.fspath(path):
        raise ValueError("the path of the model file is empty: pass a name")
    learned = model._trained()
    with learned.lock:  # until all is written: arrays are written from where they are
        packed = pack(take_model(model, learned), dict(notes or {}))
        with replacing(path) as file:
            packed.write_to(file)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that was saved.

    The file is mapped into memory, so that a large model is there at once and takes no memory of
    its own until it is trained further: then what the stream holds is copied, and the file stays as
    it is. The file may be replaced or removed meanwhile, but not written into. No code in it is
    run.

    Parameters
    ----------
    path : str or path-like
        The file; not a pipe.

    Returns
    -------
    estimator
        Fitted, of the class that was saved and with its parameters.

    Raises
    ------
    FormatError
        If the file is not a model, is damaged, or comes from a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import ridgepass
    >>> model = ridgepass.StreamingRidge(alpha=0.1).fit(np.eye(4), np.arange(4.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model.ridge")
    ...     ridgepass.load(Path(folder) / "model.ridge")
    StreamingRidge(alpha=0.1)
    """
    return read(path).model


def read(path: str | os.PathLike[str]) -> Stored:
    """Read a model that was saved, and what was saved beside it.

    Parameters
    ----------
    path : str or path-like
        The file.
    """
    with open_regular(path) as file:
        content: Any = b""
        if os.name == "nt":  # which replaces no file that is mapped
            content = file.read()
        elif os.fstat(file.fileno()).st_size:  # an empty file cannot be mapped
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return from_bytes(content, os.fspath(path))


def notes_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what was saved beside a model, from the header alone; nothing if there is no model.

    Parameters
    ----------
    path : str or path-like
        Anything: a pipe is not touched, and damage is not looked for.
    """
    try:
        if is_special(path):
            return {}
        with open_regular(path) as file:
            return read_notes(file, os.fstat(file.fileno()).st_size, os.fspath(path))
    except (OSError, ValueError):
        return {}


def from_bytes(buffer: Any, name: str) -> Stored:
    """Read a model from memory, in which it goes on living until training changes it.

    Parameters
    ----------
    buffer : bytes-like
        The content of a file.
    name : str
        What errors call it.
    """
    try:
        found = unpack(buffer, name)
        model = put_model(found.tree)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{name} holds nothing that this version of ridgepass can use ({error}): "
            "save the model again"
        ) from error
    except MemoryError:
        raise FormatError(
            f"{name} asks for more memory than there is: load it on a larger machine"
        ) from None
    return Stored(model, found.notes, found.version, len(buffer))
