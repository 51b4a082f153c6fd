"""Which method and sketch size a model gets, from its parameters or from a memory budget."""

import math
import re
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ridgepass.probes import probe_bytes
from ridgepass.sketch.exact import BLOCK_ROWS as EXACT_BLOCK
from ridgepass.sketch.frequent_directions import PAIRED_UP_TO
from ridgepass.sketch.tracked import tracked_block, tracked_bytes

SKETCH = "tracked"  # the least error at equal size on all of the paper's data, and the fastest
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
    probes: int,
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
    itemsize, probes : int
        Bytes of a number in the sketch, and how many probes it has.

    Examples
    --------
    >>> shape = dict(n_features=10**5, n_targets=1, itemsize=4, probes=24)
    >>> make_plan("auto", 256, None, **shape)
    Plan(method='tracked', sketch_size=256)
    >>> make_plan("auto", 256, 10**9, **shape)
    Plan(method='tracked', sketch_size=794)
    >>> make_plan("auto", 256, 10**9, **shape | dict(n_features=7000))
    Plan(method='exact', sketch_size=256)
    """
    if memory is None:
        if method == "auto":
            method = "exact" if n_features <= EXACT_UP_TO * sketch_size else SKETCH
        return Plan(method, sketch_size)
    asked, least = method, exact_bytes(n_features, n_targets)
    if method in ("auto", "exact") and least <= memory:
        return Plan("exact", sketch_size)
    method = SKETCH if method == "auto" else method
    if method != "exact":
        shape = n_features, n_targets, itemsize, probes
        size = largest_sketch(method, memory, *shape)
        if size >= 2:
            return Plan(method, size)
        least = sketch_bytes(method, 2, *shape)
    raise ValueError(
        f"memory={memory} is too little for method={asked!r} with {n_features} features and "
        f"{n_targets} {'target' if n_targets == 1 else 'targets'}: give at least {least} bytes"
        + (", or probes=0" if probes and method != "exact" else "")
    )


def exact_bytes(n_features: int, n_targets: int) -> int:
    """Return what the exact method holds: AᵀA, a copy while a query factorises it, a block."""
    block = EXACT_BLOCK
    return 8 * (2 * n_features**2 + (block + 1) * n_features) + _other(block, n_features, n_targets)


def sketch_bytes(
    method: str, sketch_size: int, n_features: int, n_targets: int, itemsize: int, probes: int
) -> int:
    """Return what a sketch of dense rows holds at most: its own rows, probes and a block."""
    dtype = np.dtype(f"f{itemsize}")
    if method == SKETCH:
        own = tracked_bytes(n_features, sketch_size, dtype, n_targets, probes)
        block = tracked_block(n_features, sketch_size, dtype)
    else:
        block = 2 * sketch_size if sketch_size <= PAIRED_UP_TO else sketch_size
        own = sketch_size * n_features * itemsize + probe_bytes(probes, n_features, itemsize)
    rows = (block + SPARE_ROWS) * n_features * itemsize
    return own + rows + _other(block, n_features, n_targets)


def largest_sketch(
    method: str, memory: int, n_features: int, n_targets: int, itemsize: int, probes: int
) -> int:
    """Return the largest sketch size within a budget, zero if there is none.

    At most ``n_features``, with which a sketch loses nothing. A sketch of 65 rows may need less
    than one of 64, whose blocks are twice as long.
    """

    def fitting(low: int, high: int) -> int:
        """Bisect: the need grows with the size within ``low`` to ``high``."""
        while low <= high:
            middle = (low + high) // 2
            need = sketch_bytes(method, middle, n_features, n_targets, itemsize, probes)
            if need <= memory:
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
