"""What objects hold, as plain data: taken from one, checked, and put into a fresh one.

A snapshot is a dict of names to numbers, strings, None, arrays and further dicts. The object it is
put into serves as the template: what it holds before decides which type, dtype and shape each part
must have. Arrays are neither copied when taken nor when put, so a snapshot is valid until its
object changes. What is put may be read-only, as arrays of a file are: `own_arrays` comes first
where an object changes.
"""

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Kept: TypeAlias = dict[str, Any]

# JSON has no words for these; in the place of a number their names stand for them.
NOT_FINITE = ("inf", "-inf", "nan")
LARGEST_COUNT = 2**63 - 1
_NOTHING = object()


def take(value: Any) -> Any:
    """Return a value as plain data.

    A Fortran-ordered array is taken as it lies in memory, which is its transpose in C order.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return float(value) if isinstance(value, np.floating) else value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value.T if _is_fortran(value) else value)
    if hasattr(value, "snapshot"):
        return value.snapshot()
    if is_dataclass(value):
        return take_each(value, [field.name for field in fields(value)])
    raise TypeError(f"a snapshot cannot hold {type(value).__name__}")


def take_each(owner: Any, names: Sequence[str]) -> Kept:
    """Return some attributes of an object as plain data."""
    return {name: take(getattr(owner, name)) for name in names}


def put_each(owner: Any, names: Sequence[str], kept: Any) -> None:
    """Set attributes of an object to what was taken; all of them, or none and raise."""
    for name, value in _like_each(owner, names, kept).items():
        setattr(owner, name, value)


def like(template: Any, kept: Any, name: str) -> Any:
    """Return what was taken as a value of the template's kind, or raise ValueError."""
    if isinstance(template, bool):
        return flag(kept, name)
    if isinstance(template, int):
        return count(kept, name)
    if isinstance(template, float):
        return number(kept, name)
    if isinstance(template, np.ndarray):
        turned = _is_fortran(template)
        shape = template.shape[::-1] if turned else template.shape
        values = array(kept, name, template.dtype, shape)
        return values.T if turned else values
    if is_dataclass(template) and not isinstance(template, type):
        names = [field.name for field in fields(template)]
        return replace(template, **_like_each(template, names, kept))
    template.restore(part(kept, name))
    return template


def _like_each(owner: Any, names: Sequence[str], kept: Any) -> dict[str, Any]:
    return {name: like(getattr(owner, name), entry(kept, name), name) for name in names}


def own_arrays(holder: Any) -> None:
    """Copy the arrays of an object, and of our objects in it, that cannot be written to.

    They lie in a file that is mapped into memory, a model file or one of joblib's.
    """
    held = vars(holder)
    for name, value in held.items():
        if isinstance(value, np.ndarray):
            if not value.flags.writeable:
                held[name] = np.array(value, order="K")
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("ridgepass."):
            own_arrays(value)


def entry(kept: Any, name: str) -> Any:
    """Return one part of a snapshot."""
    found = part(kept, f"the place of {name}").get(name, _NOTHING)
    if found is _NOTHING:
        raise ValueError(f"{name} is missing")
    return found


def part(kept: Any, name: str) -> Kept:
    """Return a snapshot within a snapshot."""
    if not isinstance(kept, dict):
        raise ValueError(f"{name} is not a group of values")  # noqa: TRY004 - bad data, not a bug
    return kept


def flag(kept: Any, name: str) -> bool:
    """Return True or False."""
    if not isinstance(kept, bool):
        raise ValueError(f"{name} is neither true nor false")  # noqa: TRY004
    return kept


def whole(kept: Any, name: str, least: int = 0) -> int:
    """Return a whole number of any size."""
    if isinstance(kept, bool) or not isinstance(kept, int) or kept < least:
        raise ValueError(f"{name} is not a whole number of at least {least}")
    return kept


def count(kept: Any, name: str) -> int:
    """Return how many there are of something."""
    if whole(kept, name) > LARGEST_COUNT:
        raise ValueError(f"{name} is too large")
    return int(kept)


def number(kept: Any, name: str) -> float:
    """Return a float."""
    if isinstance(kept, str) and kept in NOT_FINITE:
        return float(kept)
    if not isinstance(kept, float):
        raise ValueError(f"{name} is not a float")  # noqa: TRY004
    return kept


def text(kept: Any, name: str) -> str:
    """Return a string."""
    if not isinstance(kept, str):
        raise ValueError(f"{name} is not a string")  # noqa: TRY004
    return kept


def float_type(kept: Any, name: str) -> np.dtype[Any]:
    """Return float32 or float64, given by name."""
    if text(kept, name) not in ("float32", "float64"):
        raise ValueError(f"{name} is neither float32 nor float64")
    return np.dtype(str(kept))


def array(
    kept: Any, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return an array; None in ``shape`` allows any length."""
    if not isinstance(kept, np.ndarray):
        raise ValueError(f"{name} is not an array")  # noqa: TRY004
    fits = len(shape) == kept.ndim and all(
        want is None or want == have for want, have in zip(shape, kept.shape, strict=True)
    )
    if kept.dtype != dtype or not fits:
        raise ValueError(
            f"{name} has dtype {kept.dtype.name} and shape {kept.shape}, not {dtype.name} "
            f"and {tuple('any' if n is None else n for n in shape)}"
        )
    return kept


def json_bytes(value: Any) -> NDArray[np.uint8]:
    """Return JSON as an array of bytes, for what is too long for the header of a file."""
    return np.frombuffer(strict_json(value).encode(), dtype=np.uint8)


def json_of(kept: Any, name: str) -> Any:
    """Return what `json_bytes` was given."""
    return read_json(array(kept, name, np.dtype(np.uint8), (None,)).tobytes(), name)


def strict_json(value: Any) -> str:
    """Return JSON as all parsers read it: ASCII, and no number that is not finite."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def read_json(content: bytes | str, name: str) -> Any:
    """Return what JSON says, or raise ValueError."""
    try:
        content = content if isinstance(content, str) else content.decode("ascii")
        return json.loads(content, object_pairs_hook=_no_twins, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON ({error})") from None


def _no_twins(pairs: list[tuple[str, Any]]) -> Kept:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def check_shapes(kept: Any, shapes: Kept) -> None:
    """Raise unless a snapshot has arrays of these shapes, before memory is set aside for them.

    ``shapes`` maps names to shapes, or to dicts of the same for snapshots within.
    """
    for name, shape in shapes.items():
        found = entry(kept, name)
        if isinstance(shape, dict):
            check_shapes(part(found, name), shape)
        elif not isinstance(found, np.ndarray) or found.shape != shape:
            raise ValueError(f"{name} is not an array of shape {shape}")


def _is_fortran(value: NDArray[Any]) -> bool:
    return value.flags.f_contiguous and not value.flags.c_contiguous
