"""Model files: what a fitted estimator has learned, to the last bit."""

import mmap
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ridgepass.store.atomic import replacing
from ridgepass.store.errors import FormatError
from ridgepass.store.layout import pack, unpack
from ridgepass.store.models import check_class, put_model, take_model, version_of

__all__ = ["FormatError", "Stored", "from_bytes", "load", "read", "replacing", "save"]


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
    learned = model._trained()
    with learned.lock:  # until all is written: arrays are written from where they are
        packed = pack(take_model(model, learned), dict(notes or {}), version_of(learned))
        with replacing(path) as file:
            packed.write_to(file)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that was saved.

    The file is mapped into memory, so that a large model is there at once and takes no memory of
    its own but for what later training changes. Training leaves the file as it is. The file may be
    replaced or removed meanwhile, but not written into. No code in it is run.

    Parameters
    ----------
    path : str or path-like
        The file.

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
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        # Windows replaces no file that is mapped, and a pipe cannot be.
        if os.name == "nt" or not stat.S_ISREG(about.st_mode) or not about.st_size:
            content: Any = bytearray(file.read())
        else:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return from_bytes(content, os.fspath(path))


def from_bytes(buffer: Any, name: str) -> Stored:
    """Read a model from memory; it goes on using that memory where it can be written to.

    Parameters
    ----------
    buffer : bytes-like
        The content of a file.
    name : str
        What errors call it.
    """
    content = bytearray(buffer) if memoryview(buffer).readonly else buffer
    try:
        found = unpack(content, name)
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
    return Stored(model, found.notes, found.version, len(content))
