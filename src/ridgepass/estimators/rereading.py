"""Rows that a model has learned from, to be read again."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ridgepass.estimators.batch import Origin, Targets
from ridgepass.estimators.inputs import check_rows
from ridgepass.estimators.learned import Learned, pieces
from ridgepass.estimators.sources import is_batches, is_opened, open_batches, read_batches
from ridgepass.intake import Batch


class Reader(Protocol):
    """What an estimator has to say about its targets."""

    def _read_targets_again(
        self, y: Any, sample_weight: Any, n_rows: int, known: Origin, *, whole: bool
    ) -> Targets: ...


class Rereading:
    """The rows of a model, checked; calling it reads them once.

    Parameters
    ----------
    model : estimator
        Who has learned from them.
    learned : Learned
        What it has learned.
    X, y, sample_weight, options
        The arguments of ``refine``.
    """

    def __init__(
        self,
        model: Reader,
        learned: Learned,
        X: Any,
        y: Any,
        sample_weight: Any,
        options: Mapping[str, Any],
    ) -> None:
        self.model, self.learned = model, learned
        self.source: Any = None
        self.rereadable = True
        if _is_source(X, y):
            if sample_weight is not None:
                raise ValueError(
                    "sample_weight is for arrays: give files' weights as weight='column', "
                    "and batches as (X, y, sample_weight)"
                )
            self.source = _opened(X, y, options, learned)
            if is_opened(self.source):
                self.rereadable = self.source.source.rereadable
            else:
                self.rereadable = iter(self.source) is not self.source
            return
        if options:
            hint = " (did you mean alphas?)" if "alpha" in options else ""
            raise TypeError(
                f"{', '.join(options)}: such options are for files, not for arrays{hint}"
            )
        self._arrays = self._checked(X, y, sample_weight, whole=True)

    def __call__(self) -> Iterator[Batch]:
        """Yield all rows, as their stream takes them."""
        if self.source is None:
            yield from map(self._again, pieces(*self._arrays))
            return
        for X, y, weights in read_batches(self.source):
            yield from map(self._again, pieces(*self._checked(X, y, weights, whole=False)))

    def _again(self, piece: Any) -> Batch:
        with self.learned.lock:  # others may be training it, which is noticed in the end
            return self.learned.stream.again(piece)

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, whole: bool) -> tuple[Any, Targets]:
        origin = self.learned.origin
        rows, _ = check_rows(self.model, X, origin.n_features, origin.names)
        targets = self.model._read_targets_again(
            y, sample_weight, rows.shape[0], origin, whole=whole
        )
        return rows, targets


def _is_source(X: Any, y: Any) -> bool:
    """Whether X stands for files, a table with its targets in it, or batches."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return False
    if isinstance(X, str | os.PathLike) or is_opened(X):
        return True
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "scanner"):
        return y is None or isinstance(y, str)
    if isinstance(X, list | tuple) and X and all(isinstance(i, str | os.PathLike) for i in X):
        return True
    return y is None and is_batches(X)


def _opened(source: Any, target: Any, options: Mapping[str, Any], learned: Learned) -> Any:
    """Open a source; without a word on its columns, with those of training."""
    from ridgepass.data.columns import as_names

    described = learned.columns
    told = bool(options.keys() - {"format", "batch_rows"})
    if described is not None and target is not None:
        told |= as_names(target) != described.get("targets")
    known = described is not None and "kind" in described and not told
    if described is None or not known or is_opened(source) or is_batches(source):
        return open_batches(source, target, options)
    from ridgepass.data import Batches
    from ridgepass.data.opening import open_again

    n_features, how = learned.origin.n_features, options.get("format")
    return Batches(open_again(source, described, n_features, how), options.get("batch_rows"))
