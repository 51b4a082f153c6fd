"""What can be named in the place of X: files, tables, and streams of batches."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from ridgepass.estimators.inputs import CheckedRows


def open_batches(source: Any, target: Any, options: Mapping[str, Any]) -> Any:
    """Return `ridgepass.data.Batches`, or the iterable of batches that was given.

    Parameters
    ----------
    source : str, path, list of them, stream of Arrow batches, or iterable of batches
        Where rows come from; a tuple of arrays is one batch.
    target, options
        Those of `ridgepass.data.batches`.
    """
    from ridgepass.data import batches  # here, since files are no business of this layer

    if _is_one_batch(source):
        source = [source]
    if is_opened(source) or is_batches(source):
        if target is not None or options:
            raise ValueError(
                "the batches are made already: give target and other options to "
                "ridgepass.data.batches instead"
            )
        return source
    return batches(source, target, **options)


def is_opened(source: Any) -> bool:
    """Whether it is what `ridgepass.data.batches` returns."""
    from ridgepass.data import Batches

    return isinstance(source, Batches)


def is_batches(source: Any) -> bool:
    """Whether a source is batches of arrays rather than paths or a table."""
    if isinstance(source, np.ndarray):
        raise TypeError("an array is no stream of batches: give its targets too, as (X, y)")
    if isinstance(source, str | os.PathLike) or hasattr(source, "__arrow_c_stream__"):
        return False
    if isinstance(source, Sequence):
        if not source:
            raise ValueError("the list of sources is empty: name at least one file")
        return not all(isinstance(item, str | os.PathLike) for item in source)
    return isinstance(source, Iterable) and not hasattr(source, "scanner")


def _is_one_batch(source: Any) -> bool:
    """Whether a source is (X, y) or (X, y, sample_weight), not a tuple of paths or batches."""
    if not isinstance(source, tuple) or len(source) not in (2, 3):
        return False
    return not isinstance(source[0], str | os.PathLike | tuple)


def as_batch(batch: Any) -> tuple[Any, ...]:
    """Return a batch as the arguments of ``partial_fit``."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise TypeError(
            f"a batch is a {type(batch).__name__}: give (X, y) or (X, y, sample_weight)"
        )
    return tuple(batch)


def read_batches(source: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield X, y and weights of what `open_batches` returned."""
    if not is_opened(source):
        for batch in source:
            X, y, *weights = as_batch(batch)
            yield X, y, weights[0] if weights else None
        return
    names = source.feature_names
    named = None if names is None else np.array(names, dtype=object)
    with closing(source.chunks()) as chunks:
        for chunk in chunks:
            if chunk.y is None:
                raise ValueError("there is nothing to predict: say which column is the target")
            if chunk.X.shape[0]:
                yield CheckedRows(chunk.X, named), chunk.y, chunk.weights
