"""The parameters of an estimator, as a user gave them, as plain data and back.

Values that JSON can hold stand for themselves. A list, a tuple, a dict and a number that is not
finite are marked as such, so that they come back as what they were.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ridgepass import validation
from ridgepass.snapshot import Kept, number, part


def take_parameters(given: Mapping[str, Any]) -> Kept:
    """Return parameters as plain data, or raise ValueError for what a file cannot hold."""
    return {name: _SPECIAL.get(name, _plain)(value, name) for name, value in given.items()}


def put_parameters(kept: Any, names: set[str]) -> dict[str, Any]:
    """Return the parameters that ``take_parameters`` was given, or raise ValueError.

    Some of ``names`` may be missing, which came with a later version than the file's.
    """
    found = part(kept, "parameters")
    unknown = set(found) - names
    if unknown:
        raise ValueError(f"the parameter {min(unknown)} is unknown, perhaps from a newer version")
    return {name: _given(value, name) for name, value in found.items()}


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": value}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_plain(each, name) for each in value]}
    if isinstance(value, Mapping):
        pairs = [[_plain(key, name), _plain(each, name)] for key, each in value.items()]
        return {"dict": pairs}
    raise ValueError(
        f"{name} is a {type(value).__name__}, which a file cannot hold: "
        f"set {name} to numbers, strings, lists, dicts or arrays before saving"
    )


def _numbers(value: Any, name: str) -> Any:
    """Take a sequence with one number for each feature; as an array, since it may be long."""
    return value if value is None else _plain(np.asarray(value), name)


def _splits(value: Any, name: str) -> Any:
    """Take a number of folds, or row numbers, which are as many as there are rows."""
    if not isinstance(value, list | tuple):
        return _plain(value, name)
    return _plain([tuple(np.asarray(rows) for rows in split) for split in value], name)


def _dtype(value: Any, name: str) -> str | None:
    dtype = validation.as_dtype(value)
    return None if dtype is None else dtype.name


def _seed(value: Any, name: str) -> Any:
    """Take an int; a generator cannot be kept, nor is it needed once a seed is drawn from it."""
    return _plain(value, name) if isinstance(value, int | np.integer) else None


_SPECIAL: dict[str, Callable[[Any, str], Any]] = {
    "feature_scale": _numbers,
    "cv": _splits,
    "dtype": _dtype,
    "random_state": _seed,
}


def _given(kept: Any, name: str) -> Any:
    if not isinstance(kept, dict):
        if isinstance(kept, list):
            raise ValueError(f"{name} has a list without a mark")  # noqa: TRY004 - bad data
        return np.array(kept) if isinstance(kept, np.ndarray) else kept
    if len(kept) != 1:
        raise ValueError(f"{name} is marked in an unknown way")
    ((mark, value),) = kept.items()
    if mark == "number":
        return number(value, name)
    if not isinstance(value, list):
        raise ValueError(f"{name} is marked in an unknown way")  # noqa: TRY004 - bad data
    if mark == "list":
        return [_given(each, name) for each in value]
    if mark == "tuple":
        return tuple(_given(each, name) for each in value)
    if mark == "dict":
        return _dict(value, name)
    raise ValueError(f"{name} is marked in an unknown way")


def _dict(pairs: list[Any], name: str) -> dict[Any, Any]:
    found = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{name} is not made of pairs")
        key = _given(pair[0], name)
        if isinstance(key, list | tuple | dict | np.ndarray):
            raise ValueError(f"{name} has a key that is no label")  # noqa: TRY004 - bad data
        found[key] = _given(pair[1], name)
    return found
