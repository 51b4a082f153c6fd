"""Random vectors whose image under AᵀA is followed: they measure the residual of any answer.

For a standard Gaussian vector φ and a residual r = c − (K + γI)x̂ of coefficients that do not depend
on φ, φ·r is exactly N(0, ‖r‖²), and with Kφ at hand it is known: φ·r = φ·c − (Kφ)·x̂ − γφ·x̂. So p
of them give ‖r‖ with an exact χ² law, whatever the sketch has lost.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import gammaincinv

from ridgepass.blocks import Block
from ridgepass.kernels import Float64, Rows, apply, column_norms, smallest_number, unit_roundoff

# Of the published stream of numbers. All parts of a merger share it, and no data is correlated with
# it by accident; whoever gets data from somebody who knows it passes a seed of their own.
KEY = 0x72696467_65706173
ALLOWED = 6.0  # standard deviations of rounding errors that are taken to be independent


@dataclass
class Probes:
    """Φ and KΦ, in the units of the stream.

    Attributes
    ----------
    points : ndarray of shape (n_probes, n_features)
        Gaussian rows, standard in the units in which they were drawn.
    images : ndarray of shape (n_probes, n_features)
        K times each, summed up in float64.
    stretch : ndarray of shape (n_features,)
        What columns were multiplied by since they were drawn.
    seed : int
        Which numbers they are; zero for the published ones.
    surprise : float
        −log of the probability, given before the first row, of the choices that were made by their
        images (see `ridgepass.sketch.tracked`); zero where none were.
    """

    points: Rows
    images: Float64
    stretch: Float64
    seed: int = 0
    surprise: float = 0.0

    @classmethod
    def draw(cls, n_probes: int, n_features: int, dtype: np.dtype[Any], seed: int = 0) -> Self:
        """Return probes of no rows."""
        rng = np.random.Generator(np.random.Philox(key=[KEY, seed]))
        # As float32 numbers in any dtype, so that streams of either can be merged.
        points = rng.standard_normal((n_probes, n_features), dtype=np.float32).astype(dtype)
        return cls(points, np.zeros((n_probes, n_features)), np.ones(n_features), seed)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        return self.points.nbytes + self.images.nbytes + self.stretch.nbytes

    def absorb(self, block: Block) -> None:
        """Take in one block."""
        block.add_images(self.images, block.products(self.points))

    def including(self, block: Block) -> "Probes":
        """Return the probes with a partial block added, leaving these as they are."""
        twin = replace(self, images=self.images.copy())
        if len(block):
            twin.absorb(block)
        return twin

    def rescaled(self, ratio: Float64) -> "Probes":
        """Return the probes of A·diag(ratio)."""
        points = (self.points / ratio).astype(self.points.dtype)
        images, stretch = self.images * ratio, self.stretch * ratio
        return replace(self, points=points, images=images, stretch=stretch)

    def merged(self, other: "Probes | None", *, alone: bool) -> "Probes | None":
        """Return the probes of both streams' rows; None if they are not of the same vectors.

        ``alone`` tells that this one has no rows yet: it goes on with the other's.
        """
        if other is None or self.seed != other.seed or len(self.points) != len(other.points):
            return None
        points = other.points.astype(self.points.dtype)
        if not np.array_equal(points if alone else self.points, other.points):
            return None
        images = other.images.copy() if alone else self.images + other.images
        return Probes(points, images, other.stretch, other.seed)

    def residuals(self, rest: Float64, coef: Float64) -> Float64:
        """Return Φᵀ(rest − K·coef), of shape (n_probes, n_targets)."""
        found: Float64 = apply((self.points,), rest) - apply((self.images,), coef)
        return found

    def factor(self, doubt: float | Float64) -> Float64:
        """Return what ‖Φᵀr‖ is multiplied by to be at least ‖r‖, in the present units."""
        doubt = doubt * math.exp(-self.surprise)
        return residual_factor(len(self.points), doubt) * float(self.stretch.max())

    def image_rounding(self, mass: float, longest_block: int, n_rows: int) -> float:
        """Bound what rounding adds to all images together, as an operator; see ``rounding``."""
        n_probes, n_features = self.points.shape
        steps = math.sqrt(n_features) + math.sqrt(longest_block + 4)
        return math.sqrt(n_probes) * self._unit * steps * mass + self._lost(mass, n_rows)

    def rounding(
        self, mass: float, longest_block: int, n_rows: int, coef: Float64, fitted: Float64
    ) -> Float64:
        """Bound what rounding adds to each column of the residuals, as a norm.

        Products with Φ are off by √d roundings of the rows, which x̂ then meets as Ax̂; their sums
        over a block by as many as the root of its rows. Both are taken to be random walks.

        Parameters
        ----------
        mass, longest_block, n_rows : float, int, int
            ‖A‖²_F, the rows of the longest block, and all rows.
        coef, fitted : ndarray of shape (n_features, n_targets), (n_targets,)
            x̂, and at least ‖Ax̂‖.
        """
        n_probes, n_features = self.points.shape
        norms = column_norms(coef)
        size = math.sqrt(n_features) * math.sqrt(mass) * fitted
        size = size + math.sqrt(longest_block + 4) * mass * norms
        bound: Float64 = math.sqrt(n_probes) * self._unit * size + self._lost(mass, n_rows) * norms
        return bound

    @property
    def _unit(self) -> float:
        """A rounding of a probe's largest number, as often as it is allowed to add up."""
        return ALLOWED * unit_roundoff(self.points.dtype) / float(self.stretch.min())

    def _lost(self, mass: float, n_rows: int) -> float:
        """Bound what images lose of products too small for their type, as an operator."""
        n_probes, n_features = self.points.shape
        tiny = smallest_number(self.points.dtype) * max(float(self.stretch.max()), 1.0)
        within = math.sqrt(n_features) * n_rows + n_features * math.sqrt(n_rows) * math.sqrt(mass)
        lost: float = math.sqrt(n_probes) * tiny * within
        return lost


def probe_bytes(n_probes: int, n_features: int, itemsize: int) -> int:
    """Return the bytes of so many probes and their images, the former of ``itemsize`` each."""
    return n_features * (n_probes * (itemsize + 8) + 8 * (n_probes > 0))


def residual_factor(n_probes: int, doubt: float | Float64) -> Float64:
    """Return what ‖Φᵀr‖ is multiplied by to be at least ‖r‖, but with probability ``doubt``.

    ‖Φᵀr‖²/‖r‖² is χ² with as many degrees of freedom as there are probes.
    """
    with np.errstate(divide="ignore"):
        factor: Float64 = 1 / np.sqrt(2 * gammaincinv(n_probes / 2, doubt))
    return factor
