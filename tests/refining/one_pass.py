"""One pass over some rows, and what is asked of it."""

from typing import NamedTuple

import numpy as np
import pytest

from ridgepass.refining.passes import DensePass, SparsePass
from ridgepass.refining.sums import Preparation

KINDS = pytest.mark.parametrize("kind", [DensePass, SparsePass])
# Small blocks, so that few rows fill several of them.
SMALL = {"LONGEST": 16, "SPARSE_ROWS": (16, 16)}


class Case(NamedTuple):
    rows: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    preparation: Preparation
    vectors: np.ndarray
    at: np.ndarray
    signs: np.ndarray
