"""The paper's synthetic data, as a stream: rows are made when they are asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.fft import dct

from ridgepass.kernels import Float64


@dataclass(frozen=True)
class Synthetic:
    """Gaussian rows with a given effective rank and a linear target (paper, section 4).

    Feature i has standard deviation exp(−i²/R²); the first R coefficients are Gaussian, scaled to
    a unit vector; the noise has variance 4; a discrete cosine transform rotates it all.

    Parameters
    ----------
    effective_rank : int
        R.
    n_features : int
        The paper's d.
    seed : int
        Of the coefficients and the rows.

    Examples
    --------
    >>> from ridgepass.datasets import Synthetic
    >>> A, b = Synthetic.high_rank(n_features=64, seed=1).sample(100)
    >>> A.shape, b.shape
    ((100, 64), (100,))
    """

    effective_rank: int
    n_features: int = 2048
    seed: int = 0

    @classmethod
    def low_rank(cls, n_features: int = 2048, seed: int = 0) -> Self:
        """Return the paper's LR: R is a tenth of the features."""
        return cls(max(1, int(0.1 * n_features)), n_features, seed)

    @classmethod
    def high_rank(cls, n_features: int = 2048, seed: int = 0) -> Self:
        """Return the paper's HR: R is half of the features."""
        return cls(max(1, int(0.5 * n_features)), n_features, seed)

    @property
    def coef(self) -> Float64:
        """The coefficients that made the targets, in the rotated coordinates of the rows."""
        rotated: Float64 = dct(self._coef(), norm="ortho")
        return rotated

    def batches(
        self, n_rows: int, batch_rows: int = 1024, part: int = 0
    ) -> Iterator[tuple[Float64, Float64]]:
        """Yield ``n_rows`` rows and targets; each ``part`` is another draw of the same model."""
        rng = np.random.default_rng([self.seed, 1, part])
        deviations = np.exp(-np.square(np.arange(self.n_features) / self.effective_rank))
        coef = self._coef()
        for start in range(0, n_rows, batch_rows):
            rows = rng.standard_normal((min(batch_rows, n_rows - start), self.n_features))
            rows *= deviations
            targets = rows @ coef + 2.0 * rng.standard_normal(len(rows))
            yield dct(rows, norm="ortho", axis=1, overwrite_x=True), targets

    def sample(self, n_rows: int, part: int = 0) -> tuple[Float64, Float64]:
        """Return ``n_rows`` rows and targets at once."""
        ((rows, targets),) = self.batches(n_rows, n_rows, part)
        return rows, targets

    def _coef(self) -> Float64:
        coef = np.zeros(self.n_features)
        rng = np.random.default_rng([self.seed, 0])
        coef[: self.effective_rank] = rng.standard_normal(self.effective_rank)
        unit: Float64 = coef / np.linalg.norm(coef)
        return unit
