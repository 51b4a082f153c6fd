"""Cut a stream into blocks of a fixed number of rows, whatever batches it arrives in.

Every sum in the package runs over these blocks, so any split of the same rows into batches gives
bitwise the same state.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ridgepass.kernels import Float64, Rows


class BlockBuffer:
    """Holds the rows of the block that is not yet full.

    Parameters
    ----------
    block_rows : int
        Rows in a block.
    n_features, n_targets : int
        Columns of A and of b.
    dtype : dtype
        What rows are converted to; targets are float64.
    """

    def __init__(
        self, block_rows: int, n_features: int, n_targets: int, dtype: np.dtype[Any]
    ) -> None:
        self.block_rows = block_rows
        self.filled = 0
        # np.empty costs no memory until a row is written, so whole blocks never pay for it.
        self._rows: Rows = np.empty((block_rows, n_features), dtype)
        self._targets: Float64 = np.empty((block_rows, n_targets))

    @property
    def pending(self) -> tuple[Rows, Float64]:
        """The rows and targets that wait for their block to fill up (views)."""
        return self._rows[: self.filled], self._targets[: self.filled]

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer, whether filled or not."""
        return self._rows.nbytes + self._targets.nbytes

    def feed(self, rows: Rows, targets: Float64) -> Iterator[tuple[Rows, Float64]]:
        """Yield each block that is full now; keep the rest.

        A block that lies whole inside ``rows`` is yielded as a view, not copied, when it needs no
        conversion. A yielded block is valid until the next one is asked for.
        """
        as_is = rows.dtype == self._rows.dtype and rows.flags.c_contiguous
        start = 0
        while start < len(rows):
            stop = min(start + self.block_rows - self.filled, len(rows))
            if as_is and self.filled == 0 and stop - start == self.block_rows:
                yield rows[start:stop], targets[start:stop]
            else:
                taken = slice(self.filled, self.filled + stop - start)
                self._rows[taken] = rows[start:stop]
                self._targets[taken] = targets[start:stop]
                self.filled = taken.stop
                if self.filled == self.block_rows:
                    yield self.pending
                    self.filled = 0
            start = stop
