"""Which method and sketch size a model gets, from its parameters or from a memory budget."""

import math
import re
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ridgepass.sketch.exact import BLOCK_ROWS as EXACT_BLOCK
from ridgepass.sketch.frequent_directions import PAIRED_UP_TO

# The least error at equal size on all of the paper's data, for two vectors a target more. With more
# targets than rows in the sketch, these would outweigh it.
ANCHORED, WITHOUT_ANCHORS = "anchored", "rfd"
# Up to this many times the sketch size, d² numbers are no slower and at most four times the memory.
EXACT_UP_TO = 8
# The row that centring adds to a block, and what halving rounds a two-level sketch up by.
SPARE_ROWS = 3

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{letter}I": 2 ** (10 * power) for power, letter in enumerate("KMGT", 1)}


@dataclass(frozen=True)
class Plan:
    """What ``method="auto"`` and ``memory`` come to once the columns are known."""

    method: str
    sketch_size: int


def make_plan(
    method: str,
    sketch_size: int,
    memory: int | None,
    *,
    n_features: int,
    n_targets: int,
    itemsize: int,
) -> Plan:
    """Choose method and sketch size.

    Parameters
    ----------
    method : str
        A method's name, or ``"auto"``.
    sketch_size : int
        Used unless there is a budget.
    memory : int or None
        The budget in bytes.
    n_features, n_targets : int
        Columns of X and of y.
    itemsize : int
        Bytes of a number in the sketch.

    Examples
    --------
    >>> make_plan("auto", 256, None, n_features=10**5, n_targets=1, itemsize=4)
    Plan(method='anchored', sketch_size=256)
    >>> make_plan("auto", 256, 10**9, n_features=10**5, n_targets=1, itemsize=4)
    Plan(method='anchored', sketch_size=1222)
    >>> make_plan("auto", 256, 10**9, n_features=7000, n_targets=1, itemsize=4)
    Plan(method='exact', sketch_size=256)
    """
    if memory is None:
        if method == "auto":
            sketch = ANCHORED if n_targets <= sketch_size else WITHOUT_ANCHORS
            method = "exact" if n_features <= EXACT_UP_TO * sketch_size else sketch
        return Plan(method, sketch_size)
    asked, least = method, exact_bytes(n_features, n_targets)
    if method in ("auto", "exact") and least <= memory:
        return Plan("exact", sketch_size)
    if method == "auto":
        size = largest_sketch(ANCHORED, memory, n_features, n_targets, itemsize)
        method = ANCHORED if size >= max(n_targets, 2) else WITHOUT_ANCHORS
    if method != "exact":
        size = largest_sketch(method, memory, n_features, n_targets, itemsize)
        if size >= 2:
            return Plan(method, size)
        least = sketch_bytes(method, 2, n_features, n_targets, itemsize)
    raise ValueError(
        f"memory={memory} is too little for method={asked!r} with {n_features} features and "
        f"{n_targets} {'target' if n_targets == 1 else 'targets'}: give at least {least} bytes"
    )


def exact_bytes(n_features: int, n_targets: int) -> int:
    """Return what the exact method holds: AᵀA, a copy while a query factorises it, a block."""
    block = EXACT_BLOCK
    return 8 * (2 * n_features**2 + (block + 1) * n_features) + _other(block, n_features, n_targets)


def sketch_bytes(
    method: str, sketch_size: int, n_features: int, n_targets: int, itemsize: int
) -> int:
    """Return what a sketch of dense rows holds at most: its own rows and a block."""
    block = 2 * sketch_size if sketch_size <= PAIRED_UP_TO else sketch_size
    rows = (sketch_size + block + SPARE_ROWS) * n_features * itemsize
    anchor = 8 * ((2 * n_features + 1) * n_targets + sketch_size**2) if method == "anchored" else 0
    return rows + anchor + _other(block, n_features, n_targets)


def largest_sketch(method: str, memory: int, n_features: int, n_targets: int, itemsize: int) -> int:
    """Return the largest sketch size within a budget, zero if there is none.

    At most ``n_features``, with which a sketch loses nothing. A sketch of 65 rows needs less than
    one of 64, whose blocks are twice as long.
    """

    def fitting(low: int, high: int) -> int:
        """Bisect: the need grows with the size within ``low`` to ``high``."""
        while low <= high:
            middle = (low + high) // 2
            if sketch_bytes(method, middle, n_features, n_targets, itemsize) <= memory:
                low = middle + 1
            else:
                high = middle - 1
        return high

    top = max(n_features, 2)
    long = fitting(PAIRED_UP_TO + 1, top)
    size = long if long > PAIRED_UP_TO else fitting(2, min(PAIRED_UP_TO, top))
    return size if size >= 2 else 0


def parse_memory(memory: Any) -> int | None:
    """Return a budget in bytes.

    Examples
    --------
    >>> parse_memory("512MB"), parse_memory("1.5 GiB"), parse_memory(4096)
    (512000000, 1610612736, 4096)
    """
    if memory is None:
        return None
    amount: float | None = None
    if isinstance(memory, str):
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) *([KMGT]?I?)B?", memory.strip().upper())
        if match is not None and match[2] in _UNITS:
            amount = float(match[1]) * _UNITS[match[2]]
    elif isinstance(memory, Real) and not isinstance(memory, bool):
        amount = float(memory)
    if amount is None or not (math.isfinite(amount) and amount >= 1):
        raise ValueError(
            f"memory={memory!r} is not an amount of memory: "
            "give bytes, or text such as '512MB' or '1.5 GiB', or None"
        )
    return int(amount)


def _other(block: int, n_features: int, n_targets: int) -> int:
    """Return the bytes of moments, means and scales, and of the block's targets and weights.

    With ``standardize`` there are sums and an account of rounding for each column besides.
    """
    per_column, per_row = n_targets + 8, 2 * n_targets + 2
    return 8 * (n_features * per_column + (block + 1) * per_row + n_targets)
