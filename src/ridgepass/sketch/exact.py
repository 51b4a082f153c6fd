"""The paper's rr: AᵀA itself, in d² numbers."""

from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import blas

from ridgepass.blocks import Block
from ridgepass.kernels import Float64, smallest_number, unit_roundoff
from ridgepass.sketch.base import Dense, Sketch
from ridgepass.snapshot import Kept

BLOCK_ROWS = 256  # collected before they are added to AᵀA


class ExactCovariance(Sketch):
    """The lower triangle of AᵀA, added up block by block.

    Always float64, since exactness is what it is chosen for; ``sketch_size`` plays no part. Sparse
    rows are written out a block at a time: d² numbers are kept anyway.
    """

    KEEPS: ClassVar[tuple[str, ...]] = ("matrix", "n_blocks")
    columns_apart: ClassVar[bool] = True
    needs_probes: ClassVar[bool] = False

    def __init__(
        self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int = 0
    ) -> None:
        super().__init__(n_features, sketch_size, np.dtype(np.float64), seed)
        self.block_rows = self.sparse_block_rows = BLOCK_ROWS
        self.matrix: Float64 = np.zeros((n_features, n_features), order="F")
        self.n_blocks = 0

    def absorb(self, block: Block) -> None:
        """Take in one block."""
        add_gram(self.matrix, block.dense())
        self.n_blocks += 1

    def merge(self, other: Self) -> None:
        """Add the other's AᵀA."""
        self.matrix += other.matrix
        self.n_blocks += other.n_blocks

    def rescale(self, ratio: Float64, column_mass: Float64) -> None:
        """Multiply the columns of all rows so far."""
        self.matrix *= ratio
        self.matrix *= ratio[:, None]

    def covariance(self, block: Block, columns: Float64 | None = None) -> Dense:
        """Return AᵀA with a block still to be added."""
        rows = block.dense()
        # A chain of additions errs by (length)·u·|A|ᵀ|A|, whose norm is at most ‖A‖_F² = tr(AᵀA).
        diagonal = np.diagonal(self.matrix) + np.square(rows).sum(axis=0)
        trace = float(diagonal.sum() if columns is None else np.square(columns) @ diagonal)
        chain = self.block_rows + self.n_blocks + 2
        # Products may also be too small for their type.
        most = 1.0 if columns is None else max(float(np.square(columns).max()), 1.0)
        n_products = (self.block_rows + 1) * (self.n_blocks + 1) * self.n_features
        underflow = n_products * smallest_number(self.dtype) * most
        error = chain * unit_roundoff(self.dtype) * trace + underflow
        return Dense(self.matrix, rows, error, trace, columns)

    @property
    def mass(self) -> float:
        """‖A‖_F² of all blocks."""
        return float(np.trace(self.matrix))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.matrix.nbytes

    @classmethod
    def shapes(cls, n_features: int, sketch_size: int) -> Kept:
        """Return the shapes of the arrays in a snapshot."""
        return {"matrix": (n_features, n_features)}


def add_gram(matrix: Float64, rows: Float64) -> None:
    """Add ``rows.T @ rows`` to the lower triangle of a Fortran-ordered matrix, in place."""
    if len(rows):
        blas.dsyrk(1.0, rows.T, beta=1.0, c=matrix, lower=1, overwrite_c=1)
