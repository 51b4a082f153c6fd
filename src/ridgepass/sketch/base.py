"""The verbs every sketch has, and the two shapes in which it hands AᵀA to the solver."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ridgepass.blocks import Block
from ridgepass.kernels import (
    DOUBLE,
    Float64,
    Part,
    apply,
    apply_transposed,
    mixed_column_squares,
    stacked_gram,
    top_eigenpairs,
    underflow,
)
from ridgepass.snapshot import Kept, put_each, take_each


@dataclass(frozen=True)
class LowRank:
    """AᵀA ≈ K̂ = SᵀS + shift·I, with orthogonal rows S = mix·vstack(rows)·diag(columns).

    S stays implicit: ``rows`` are views of the sketch's own arrays, valid until it changes.

    Attributes
    ----------
    rows : tuple of ndarray or csc_array, each of shape (any, n_features)
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
    columns : ndarray of shape (n_features,), optional
        Multiplies the columns of all rows.
    kept_loss, largest_loss : float
        For estimates, not for bounds: how much AᵀA typically exceeds SᵀS in the directions of S,
        and how much at most in any other.
    loss_bound : float or None
        Δ such that 0 ⪯ AᵀA − SᵀS ⪯ Δ·I up to rounding, where that is how ``error`` came about.
    rounding : float
        Bounds that rounding, in the spectral norm.
    unit : float
        How nearly orthogonal the rows of S are, beside the largest of ``squares``.
    """

    rows: tuple[Part, ...]
    mix: Float64
    squares: Float64
    shift: float
    error: float
    mass: float
    cross: Float64 | None = None
    columns: Float64 | None = None
    kept_loss: float = 0.0
    largest_loss: float = 0.0
    loss_bound: float | None = None
    rounding: float = 0.0
    unit: float = DOUBLE

    def project(self, vectors: Float64) -> Float64:
        """Return S·vectors."""
        if self.columns is not None:
            vectors = self.columns[:, None] * vectors
        return self.mix @ apply(self.rows, vectors)

    def lift(self, weights: Float64) -> Float64:
        """Return Sᵀ·weights."""
        lifted = apply_transposed(self.rows, self.mix.T @ weights)
        return lifted if self.columns is None else self.columns[:, None] * lifted

    def multiply(self, vectors: Float64) -> Float64:
        """Return SᵀS·vectors."""
        return self.lift(self.project(vectors))

    def underflow(self, vectors: Float64) -> Float64:
        """Bound what ``multiply`` loses, for each vector, of products too small for their type."""
        n_terms = len(vectors) * (len(vectors) + sum(self.mix.shape))
        return np.where(vectors.any(axis=0), underflow(n_terms, math.sqrt(self.mass)), 0.0)

    def rescaled(self, columns: Float64, column_mass: Float64) -> "LowRank":
        """Return the same for A·diag(columns); ``column_mass`` is the diagonal of AᵀA.

        The shift stays a scalar: the mean of shift·columns².
        """
        together = columns if self.columns is None else self.columns * columns
        gram = stacked_gram(self.rows, exact=True, columns=together)
        squares, vectors = top_eigenpairs(self.mix @ gram @ self.mix.T, len(self.mix))
        squares = np.maximum(squares, 0.0)
        factors = np.square(columns)
        largest, mean = float(factors.max()), float(factors.mean())
        shift, rounding = self.shift * mean, self.rounding * largest
        loss_bound = None
        if self.loss_bound is None:
            uneven = self.shift * max(largest - mean, mean - float(factors.min()))
            error = self.error * largest + uneven
        else:
            kept = mixed_column_squares(self.mix, self.rows, self.columns)
            lost = column_mass - kept + self.rounding
            loss_bound = stretched(self.loss_bound, columns, lost)
            error = max(shift, loss_bound - shift) + rounding
        return replace(
            self,
            mix=vectors.T @ self.mix,
            squares=squares,
            shift=shift,
            error=error,
            rounding=rounding,
            unit=DOUBLE,
            mass=float(factors @ column_mass),
            cross=None if self.cross is None else columns[:, None] * self.cross,
            columns=together,
            loss_bound=loss_bound,
            kept_loss=self.kept_loss * mean,
            largest_loss=self.largest_loss * mean,
        )


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
    columns : ndarray of shape (n_features,), optional
        Multiplies the columns of A.
    """

    matrix: Float64
    pending: Float64
    error: float
    mass: float

    columns: Float64 | None = None

    shift: ClassVar[float] = 0.0
    cross: ClassVar[None] = None
    loss_bound: ClassVar[None] = None

    def multiply(self, vectors: Float64) -> Float64:
        """Return AᵀA·vectors."""
        if self.columns is not None:
            vectors = self.columns[:, None] * vectors
        image = blas.dsymm(1.0, self.matrix, vectors, lower=1)
        image += self.pending.T @ (self.pending @ vectors)
        return image if self.columns is None else self.columns[:, None] * image

    def underflow(self, vectors: Float64) -> Float64:
        """Bound what ``multiply`` loses, for each vector, of products too small for their type."""
        n_terms = len(vectors) * (len(vectors) + len(self.pending))
        return np.where(vectors.any(axis=0), underflow(n_terms, math.sqrt(self.mass)), 0.0)

    def rescaled(self, columns: Float64, column_mass: Float64) -> "Dense":
        """Return the same for A·diag(columns); ``column_mass`` is the diagonal of AᵀA."""
        factors = np.square(columns)
        error, mass = self.error * float(factors.max()), float(factors @ column_mass)
        together = columns if self.columns is None else self.columns * columns
        return replace(self, error=error, mass=mass, columns=together)


class Sketch(ABC):
    """What is remembered of the rows of A.

    A subclass sets ``block_rows``, may set ``sparse_block_rows``, names in ``KEEPS`` the attributes
    that its past has gone into, and gives the verbs below. It may rely on ``absorb`` getting
    validated, finite rows of its own dtype, C-contiguous or sparse.

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
    sparse_block_rows: int
    # Whether the error of a column is relative to that column alone, so that it can be multiplied
    # by anything afterwards.
    columns_apart: ClassVar[bool] = False
    # Whether it is told of targets, and follows the probes itself.
    needs_targets: ClassVar[bool] = False
    # Whether it spreads its work over threads itself: BLAS then has one while it learns.
    threads_itself: ClassVar[bool] = False
    # Whether probes would tell more than it knows itself.
    needs_probes: ClassVar[bool] = True
    # Whether it draws random numbers.
    is_random: ClassVar[bool] = False
    # Whether it answers and neither learns nor merges.
    read_only: ClassVar[bool] = False
    # Numbers, arrays that are contiguous in C or Fortran order, and objects with a snapshot.
    KEEPS: ClassVar[tuple[str, ...]]

    def __init__(self, n_features: int, sketch_size: int, dtype: np.dtype[Any], seed: int) -> None:
        self.n_features = n_features
        self.sketch_size = sketch_size
        self.dtype = dtype
        self.seed = seed

    @abstractmethod
    def absorb(self, block: Block) -> Float64 | None:
        """Take in one block; return its Aᵀb if that is at hand."""

    @property
    def cross_unit(self) -> float:
        """What Aᵀb as it is returned by ``absorb`` is off by, relative to ‖A‖_F·‖b‖."""
        return 0.0

    @property
    def centres(self) -> bool:
        """Whether it takes dense blocks whose mean is still in the rows."""
        return False

    def settle(self, cross: Float64) -> None:
        """Do what is due now and then, given Aᵀb of all blocks so far."""
        return

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Take in another sketch of the same kind, of any size; ``other`` stays as it is."""

    @abstractmethod
    def rescale(self, ratio: Float64, column_mass: Float64) -> None:
        """Multiply the columns of all rows so far; ``column_mass`` was the diagonal of AᵀA."""

    @abstractmethod
    def covariance(self, block: Block, columns: Float64 | None = None) -> Any:
        """Return K̂ as if ``block`` were the last, leaving the sketch as it is.

        It is a LowRank, a Dense or a TrackedCovariance. ``columns`` multiplies the columns of all
        rows; it exceeds one only where all rows before the block are zero, up to rounding.
        """

    @property
    @abstractmethod
    def mass(self) -> float:
        """‖A‖_F² of all blocks, or an estimate where no bound rests on it."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""

    @classmethod
    @abstractmethod
    def shapes(cls, n_features: int, sketch_size: int) -> Kept:
        """Return the shapes of the arrays in a snapshot, known before there is a sketch."""

    def snapshot(self) -> Kept:
        """Return what the sketch holds as plain data, valid until it changes."""
        return take_each(self, self.KEEPS)

    def restore(self, kept: Kept, n_targets: int = 0) -> None:
        """Take up a snapshot in a fresh sketch of the same options, or raise ValueError."""
        put_each(self, self.KEEPS, kept)


def faint(squares: Float64, unit: float) -> NDArray[np.bool_]:
    """Tell which directions may be there by rounding only."""
    little: NDArray[np.bool_] = squares <= 64 * unit * squares.max(initial=0.0)
    return little


def inverse_roots(squares: Float64, unit: float = DOUBLE) -> Float64:
    """Return 1/√squares, and zero for faint directions."""
    there = ~faint(squares, unit)
    roots: Float64 = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=there)
    return roots


def stretched(bound: float, columns: Float64, diagonal: Float64) -> float:
    """Bound ‖DED‖₂ for D = diag(columns), 0 ⪯ E ⪯ ``bound``·I and at least this diagonal of E.

    For D cut off at t, ‖E^½D‖₂ ≤ t·‖E^½‖₂ + ‖E^½(D − t)₊‖_F. A few rare columns that grow much
    then cost only what little was lost in them, not a factor for all.
    """
    inside = np.clip(diagonal, 0.0, bound)
    cuts = np.quantile(columns, np.linspace(0, 1, 33))
    beyond = (np.square(np.maximum(columns - cut, 0.0)) @ inside for cut in cuts)
    roots = (cut * np.sqrt(bound) + np.sqrt(rest) for cut, rest in zip(cuts, beyond, strict=True))
    return float(min(roots)) ** 2
