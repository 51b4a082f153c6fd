"""Checks on arguments, and a spectral norm that neither overflows nor underflows."""

from __future__ import annotations

import math
import operator
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def positive(name: str, value: float, remedy: str) -> float:
    """Return `value` as a float, or say how to make it positive and finite."""
    number = float(value)
    if not (number > 0.0 and math.isfinite(number)):
        raise ValueError(f"{name} must be positive and finite, got {number!r}: {remedy}.")
    return number


def nonnegative(name: str, value: float, remedy: str) -> float:
    """Return `value` as a float, or say how to make it at least zero and finite."""
    number = float(value)
    if not (number >= 0.0 and math.isfinite(number)):
        raise ValueError(f"{name} must be at least 0 and finite, got {number!r}: {remedy}.")
    return number


def whole(name: str, value: SupportsIndex, least: int) -> int:
    """Return `value` as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer, got {value!r}: round it first.") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}: pass a larger {name}.")
    return number


def rank_below(sketch_size: SupportsIndex, k: SupportsIndex) -> tuple[int, int]:
    """Return `(sketch_size, k)` as ints with ``0 <= k < sketch_size``."""
    size, rank = whole("sketch_size", sketch_size, 1), whole("k", k, 0)
    if rank >= size:
        raise ValueError(
            f"k must be below sketch_size, got k={rank} and sketch_size={size}: "
            "lower k or take a larger sketch_size."
        )
    return size, rank


def finite_array(name: str, value: ArrayLike, ndim: int, columns: int | None = None) -> Floats:
    """Return `value` as a finite float64 array of `ndim` axes, the last of length `columns`."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape {array.shape}: reshape it.")
    if columns is not None and array.shape[-1] != columns:
        raise ValueError(
            f"{name} must have last axis {columns} like the columns of A, "
            f"got shape {array.shape}: pass the same features."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite: remove its NaN or infinite entries.")
    return array


def spectral_norm(matrix: Floats) -> float:
    """Largest singular value, the matrix scaled by its largest entry first."""
    largest = float(np.max(np.abs(matrix), initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * float(np.linalg.norm(matrix / largest, 2))
