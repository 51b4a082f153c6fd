"""Slow and plain: what a source should give, value by value, and what it gives, in one piece."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ridgepass.data.columns import OneHot, Vector


def number(value):
    return math.nan if value is None else float(value)


def text(value):
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def plain_features(rows, columns):
    """Features of rows given as dictionaries, and how many categories are not known."""
    out, unknown = [], 0
    for row in rows:
        line = []
        for feature in columns.features:
            value = row[feature.name]
            if isinstance(feature, Vector):
                line += [math.nan] * feature.length if value is None else map(number, value)
            elif isinstance(feature, OneHot):
                if value is None:
                    line += [math.nan] * feature.width
                else:
                    unknown += text(value) not in feature.categories
                    line += [float(text(value) == category) for category in feature.categories]
            else:
                line.append(number(value))
        out.append(line)
    return np.array(out, dtype=columns.dtype).reshape(len(rows), columns.width), unknown


@dataclass
class Everything:
    X: np.ndarray
    y: np.ndarray | None
    weights: np.ndarray | None
    ends: list
    sizes: list
    n_read: int
    unknown: int
    n_bytes: list


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def read_all(source, start=None, batch_rows=None):
    """Read a source to its end, and put its chunks together."""
    chunks = list(source.chunks(start, batch_rows))
    X = np.concatenate([dense(chunk.X) for chunk in chunks]) if chunks else None
    y, weights = (
        None
        if not chunks or chunks[0][i] is None
        else np.concatenate([chunk[i] for chunk in chunks])
        for i in (1, 2)
    )
    return Everything(
        X,
        y,
        weights,
        [chunk.end for chunk in chunks],
        [chunk.X.shape[0] for chunk in chunks],
        sum(chunk.n_read for chunk in chunks),
        sum(chunk.unknown for chunk in chunks),
        [chunk.n_bytes for chunk in chunks],
    )


def assert_same_rows(left, right):
    for name in ("X", "y", "weights"):
        one, other = getattr(left, name), getattr(right, name)
        if one is None or other is None:
            assert one is other, name
        else:
            assert one.dtype == other.dtype, name
            np.testing.assert_array_equal(one, other, err_msg=name)
