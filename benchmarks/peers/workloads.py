"""The rows that every contender learns from: three sizes of dense data, three of sparse."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from benchmarks.streams import Shape
from ridgepass.datasets import Synthetic

Matrix = np.ndarray | sparse.csr_array
Part = tuple[Matrix, np.ndarray]
TRAIN, TEST = 0, 1


@dataclass(frozen=True)
class Workload:
    """Rows to train on, an eighth as many to test on, and the alpha that all are asked for."""

    name: str
    data: str
    n_rows: int
    n_features: int
    alpha: float
    nonzeros: int = 0
    dtype: str = "float64"

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return self.nonzeros > 0

    @property
    def described(self) -> str:
        """One line for the report."""
        rows = f"{self.nonzeros} non-zeros a row" if self.sparse else f"dense {self.dtype}"
        size = f"n = {self.n_rows:,}, d = {self.n_features:,}"
        return f"{self.data}, {size}, {rows}, alpha = {self.alpha:g}"

    def parts(self, part: int) -> Iterator[Part]:
        """Yield the training or the test rows, some at a time."""
        n_rows = self.n_rows if part == TRAIN else self.n_rows // 8
        if self.sparse:
            yield from sparse_parts(self, n_rows, part)
        elif self.data == "TEMP":
            split = Shape(self.n_rows, self.n_features).draw("TEMP", seed=0)
            rows = (split.A, split.b) if part == TRAIN else (split.A_test, split.b_test)
            for start in range(0, n_rows, DENSE_ROWS):
                A, b = (half[start : min(start + DENSE_ROWS, n_rows)] for half in rows)
                yield A.astype(self.dtype), b
        else:
            made = SYNTHETIC[self.data](self.n_features)
            for A, b in made.batches(n_rows, DENSE_ROWS, part):
                yield A.astype(self.dtype), b


def sparse_parts(workload: Workload, n_rows: int, part: int) -> Iterator[Part]:
    """Yield rows with columns as unequal as the words of a language (Zipf), and noisy targets.

    Values have random signs, so columns are centred; every coefficient and the noise have
    variance one, and so has what the rows say of the targets.
    """
    d, nonzeros = workload.n_features, workload.nonzeros
    rng = np.random.default_rng([0, 1, part])
    coef = np.random.default_rng([0, 0]).standard_normal(d)
    frequency = 1 / np.arange(1.0, d + 1)
    reached = np.cumsum(frequency) / frequency.sum()
    for start in range(0, n_rows, SPARSE_ROWS):
        n = min(SPARSE_ROWS, n_rows - start)
        columns = np.minimum(np.searchsorted(reached, rng.random(n * nonzeros)), d - 1)
        values = rng.standard_normal(n * nonzeros) / np.sqrt(nonzeros)
        starts = np.arange(0, n * nonzeros + 1, nonzeros, dtype=np.int32)
        A = sparse.csr_array((values, columns.astype(np.int32), starts), shape=(n, d))
        A.sum_duplicates()
        yield A, A @ coef + rng.standard_normal(n)


SYNTHETIC = {"LR": Synthetic.low_rank, "HR": Synthetic.high_rank}
DENSE_ROWS, SPARSE_ROWS = 512, 2000
# alpha: for TEMP what `make bench-accuracy` chooses on held-out rows; elsewhere the variance of the
# noise over that of a coefficient, with which ridge expects least error (the nearest power of two).
FULL = (
    Workload("dense-small", "TEMP", 8192, 2048, 65536.0),
    Workload("dense-medium", "HR", 16384, 8192, 16384.0, dtype="float32"),
    Workload("dense-large", "LR", 16384, 32768, 16384.0, dtype="float32"),
    Workload("sparse-small", "Zipf", 20_000, 4_000, 1.0, nonzeros=50),
    Workload("sparse-medium", "Zipf", 100_000, 32_768, 1.0, nonzeros=64),
    Workload("sparse-large", "Zipf", 100_000, 200_000, 1.0, nonzeros=80),
)
# Two are enough to run all code: most of the time goes into importing each contender's tool.
SMALL = (
    Workload("dense-small", "TEMP", 1500, 300, 4096.0, dtype="float32"),
    Workload("sparse-small", "Zipf", 4000, 600, 1.0, nonzeros=20),
)
SCALES = {"full": FULL, "small": SMALL}
