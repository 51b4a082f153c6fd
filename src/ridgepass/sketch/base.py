"""The verbs every sketch has, and the two shapes in which it hands AᵀA to the solver."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ridgepass.kernels import Float64, Rows


@dataclass(frozen=True)
class LowRank:
    """AᵀA ≈ K̂ = SᵀS + shift·I, where the rows of S = mix·vstack(rows) are orthogonal.

    S stays implicit: ``rows`` are views of the sketch's own arrays, valid until it changes.

    Attributes
    ----------
    rows : tuple of ndarray, each of shape (any, n_features)
        Stored rows.
    mix : ndarray of shape (rank, number of stored rows)
        How S is made of them.
    squares : ndarray of shape (rank,)
        Squared norms of the rows of S.
    shift : float
        The scalar added in every direction; RFD's α.
    error : float
        At least ‖AᵀA - K̂‖₂, rounding included; infinite where nothing is known.
    mass : float
        ‖A‖_F², the sum of all squares; the trace of AᵀA.
    cross : ndarray of shape (n_features, n_targets) or None
        The sketch's own estimate of Aᵀb, for the sketches that project b as well.
    """

    rows: tuple[Rows, ...]
    mix: Float64
    squares: Float64
    shift: float
    error: float
    mass: float
    cross: Float64 | None = None


@dataclass(frozen=True)
class Dense:
    """AᵀA itself: the lower triangle of ``matrix`` plus the rows not yet added to it.

    Attributes
    ----------
    matrix : ndarray of shape (n_features, n_features)
        Fortran order, lower triangle; a view, valid until the sketch changes.
    pending : ndarray of shape (any, n_features)
        Rows whose Gram matrix is still to be added.
    error : float
        At least the rounding error of AᵀA in the spectral norm.
    mass : float
        ‖A‖_F², the sum of all squares; the trace of AᵀA.
    """

    matrix: Float64
    pending: Rows
    error: float
    mass: float

    shift: ClassVar[float] = 0.0
    cross: ClassVar[None] = None


class Sketch(ABC):
    """What is remembered of the rows of A.

    A subclass sets ``block_rows`` and gives the verbs below. It may rely on ``absorb`` getting
    validated, finite, C-contiguous rows of its own dtype.

    Parameters
    ----------
    n_features : int
        Columns of A; the paper's d.
    sketch_size : int
        Rows to keep; the paper's ℓ.
    dtype : dtype
        float32 or float64.
    seed : int
        For the sketches that draw random numbers.
    """

    block_rows: int

    def __init__(self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int) -> None:
        self.n_features = n_features
        self.sketch_size = sketch_size
        self.dtype = dtype
        self.seed = seed

    @abstractmethod
    def absorb(self, rows: Rows, targets: Float64) -> None:
        """Take in one block."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Take in another sketch of the same kind, of any size; ``other`` stays as it is."""

    @abstractmethod
    def covariance(self, rows: Rows, targets: Float64) -> LowRank | Dense:
        """Return K̂ as if ``rows`` were the last block, leaving the sketch as it is."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
