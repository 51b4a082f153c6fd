"""Algorithm 1 of the paper: sketch the rows, keep c = Aᵀb, solve at the end or in between."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ridgepass import validation
from ridgepass.blocks import BlockBuffer
from ridgepass.kernels import Float64, Rows, column_norms, smallest_number, unit_roundoff
from ridgepass.moments import Moments
from ridgepass.sketch import SKETCHES, LowRank, Sketch
from ridgepass.solve import Certificate, DenseSolver, LowRankSolver, certify, factorise


class RidgeStream:
    """Ridge regression without an intercept, in one pass, for any alpha afterwards.

    Parameters
    ----------
    method : {"rfd", "fd", "isvd", "2lfd", "rp", "cs", "exact"}
        How AᵀA is remembered. ``"exact"`` needs d² numbers, the others about 2·sketch_size·d
        (3·sketch_size·d up to a sketch size of 64, where blocks are taken in pairs). ``"rfd"``
        (Algorithm 3) has the least certified error, ``"fd"`` is Algorithm 2. ``"rp"`` and ``"cs"``
        are random and have no certificate.
    sketch_size : int
        Rows of the sketch, the paper's ℓ.
    dtype : {None, "float32", "float64"}
        What rows are kept in. None keeps float32 (and float16) in float32 and makes all else
        float64.
    seed : int or None
        For the random methods; None draws one.

    Notes
    -----
    Rows go through in blocks of ``sketch_size``, whatever batches they come in: any split into
    batches gives bitwise the same result. A query treats the rows of an unfinished block as the
    paper's last batch, and changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgepass import RidgeStream
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(30)
    >>> stream = RidgeStream("rfd", sketch_size=8)
    >>> for _ in range(10):
    ...     A = rng.standard_normal((50, 30)) / (1 + np.arange(30)) ** 2
    ...     stream = stream.update(A, A @ x)
    >>> stream
    RidgeStream(method='rfd', sketch_size=8, n_rows=500)
    >>> stream.solve(alpha=1.0).shape
    (30,)
    >>> stream.solve(alpha=[1.0, 10.0]).shape
    (2, 30)
    >>> print(f"{stream.certificate(alpha=1.0).relative:.2f}")
    0.05
    """

    def __init__(
        self,
        method: str = "rfd",
        *,
        sketch_size: int = 256,
        dtype: Any = None,
        seed: int | None = 0,
    ) -> None:
        if method not in SKETCHES:
            raise ValueError(f"method={method!r} is unknown: choose one of {', '.join(SKETCHES)}")
        self.method = method
        self.sketch_size = validation.as_sketch_size(sketch_size)
        self.dtype = validation.as_dtype(dtype)
        self.seed = _as_seed(seed)
        self._state: _State | None = None
        self._solver: LowRankSolver | DenseSolver | None = None

    def __repr__(self) -> str:
        return (
            f"RidgeStream(method={self.method!r}, sketch_size={self.sketch_size}, "
            f"n_rows={self.n_rows})"
        )

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return 0 if self._state is None else self._state.n_rows

    @property
    def nbytes(self) -> int:
        """Bytes that the stream holds on to."""
        return 0 if self._state is None else self._state.nbytes

    def update(self, A: ArrayLike, b: ArrayLike) -> Self:
        """Take in rows and their targets.

        Parameters
        ----------
        A : array_like of shape (n_rows, n_features)
            Any number of rows.
        b : array_like of shape (n_rows,) or (n_rows, n_targets)
            One column per target.
        """
        rows = validation.as_rows(A)
        targets, single = validation.as_targets(b, len(rows))
        state = self._state
        if state is None:
            dtype = self.dtype or rows.dtype
            state = self._new_state(rows.shape[1], targets.shape[1], single, dtype)
        state.check_shape(rows.shape[1], targets.shape[1], single)
        validation.check_finite(rows, "A", state.sketch.dtype)
        self._state, self._solver = state, None
        state.absorb(rows, targets)
        return self

    def merge(self, other: "RidgeStream") -> Self:
        """Take in another stream of the same method; ``other`` stays as it is.

        Counts, Aᵀb and the certificate's Δ add. Another sketch size is brought to this one's.
        """
        if not isinstance(other, RidgeStream):
            raise TypeError(f"a RidgeStream merges with another, not with {type(other).__name__}")
        if other is self:
            raise ValueError("a stream cannot be merged with itself: its rows would count twice")
        if other.method != self.method:
            raise ValueError(
                f"a {self.method!r} stream cannot take in a {other.method!r} stream: "
                "use one method for all parts"
            )
        theirs = other._state
        if theirs is None:
            return self
        state = self._state
        if state is None:
            dtype = self.dtype or theirs.sketch.dtype
            state = self._new_state(theirs.n_features, theirs.n_targets, theirs.single, dtype)
        state.check_shape(theirs.n_features, theirs.n_targets, theirs.single)
        self._state, self._solver = state, None
        state.merge(theirs)
        return self

    def solve(self, alpha: float | Sequence[float] | Float64) -> Float64:
        """Return ridge coefficients, for one alpha or for many at once.

        Parameters
        ----------
        alpha : float or sequence of float
            The ridge parameter, the paper's γ.

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, n_targets)
            With a leading axis when ``alpha`` is a sequence.
        """
        alphas, one = validation.as_alphas(alpha)
        coefs = self._factorised(min(alphas)).solve(alphas)
        if self._seen.single:
            coefs = coefs[..., 0]
        return coefs[0] if one else coefs

    def certificate(self, alpha: float) -> Certificate:
        """Bound the distance of ``solve(alpha)`` from exact ridge on the rows seen.

        Infinite for the random projections ``"rp"`` and ``"cs"``, of which nothing is known.
        """
        (value, *_), one = validation.as_alphas(alpha)
        if not one:
            raise ValueError("a certificate is for one alpha: ask for each in turn")
        solver = self._factorised(value)
        moments = self._seen.moments_so_far()
        (coef,) = solver.solve([value])
        covariance = solver.covariance
        covariance_bound, shift, mass = covariance.error, covariance.shift, covariance.mass
        rounding = moments.cross_rounding(mass)
        if self._seen.narrowed:
            moved = self._seen.narrowing(mass)
            covariance_bound += (2 * math.sqrt(mass) + 3 * moved) * moved
            rounding += moved * np.sqrt(moments.target_mass)
        certificate = certify(
            alpha=value,
            shift=shift,
            covariance_bound=covariance_bound,
            coef_norms=column_norms(coef),
            solving=solver.error_norms(value, coef) + _per(rounding, value + shift),
            n_features=len(coef),
        )
        return certificate.of_target(0) if self._seen.single else certificate

    @property
    def _seen(self) -> "_State":
        if self._state is None:
            raise ValueError("no rows yet: call update(A, b) first")
        return self._state

    def _new_state(
        self, n_features: int, n_targets: int, single: bool, dtype: np.dtype[Any]
    ) -> "_State":
        sketch = SKETCHES[self.method](n_features, self.sketch_size, dtype, self.seed)
        buffer = BlockBuffer(sketch.block_rows, n_features, n_targets, sketch.dtype)
        return _State(sketch, Moments.empty(n_features, n_targets), buffer, single)

    def _factorised(self, smallest_alpha: float) -> LowRankSolver | DenseSolver:
        """Look at the sketch once for all queries until the next row."""
        if self._solver is None:
            pending = self._seen.buffer.pending
            covariance = self._seen.sketch.covariance(*pending)
            self._solver = factorise(covariance, self._seen.moments_so_far().cross)
        covariance = self._solver.covariance
        if isinstance(covariance, LowRank) and smallest_alpha + covariance.shift <= 0:
            raise ValueError(
                f"alpha=0 has no solution with method={self.method!r}, whose AᵀA is singular: "
                "choose alpha > 0, or method='exact'"
            )
        return self._solver


@dataclass
class _State:
    """What there is once the number of columns is known."""

    sketch: Sketch
    moments: Moments
    buffer: BlockBuffer
    single: bool
    narrowed: bool = False  # whether float64 rows were rounded to float32

    @property
    def n_features(self) -> int:
        return len(self.moments.cross)

    @property
    def n_targets(self) -> int:
        return len(self.moments.target_mass)

    @property
    def n_rows(self) -> int:
        return self.moments.n_rows + self.buffer.filled

    @property
    def nbytes(self) -> int:
        return self.sketch.nbytes + self.moments.nbytes + self.buffer.nbytes

    def narrowing(self, mass: float) -> float:
        """Bound ‖A − A₃₂‖_F for rows rounded to float32, of which some may have underflowed."""
        dtype, count = self.sketch.dtype, self.n_rows * self.n_features
        return unit_roundoff(dtype) * math.sqrt(mass) + smallest_number(dtype) * math.sqrt(count)

    def moments_so_far(self) -> Moments:
        return self.moments.including(*self.buffer.pending)

    def check_shape(self, n_features: int, n_targets: int, single: bool) -> None:
        if n_features != self.n_features:
            raise ValueError(
                f"these rows have {n_features} features, the stream has {self.n_features}: "
                "give the same columns in every batch"
            )
        if n_targets != self.n_targets or single != self.single:
            raise ValueError(
                f"these targets have shape {_shape(n_targets, single)}, the stream's have "
                f"{_shape(self.n_targets, self.single)}: give the same targets in every batch"
            )

    def absorb(self, rows: Rows, targets: Float64) -> None:
        self.narrowed |= rows.dtype.itemsize > self.sketch.dtype.itemsize
        for block, block_targets in self.buffer.feed(rows, targets):
            self.sketch.absorb(block, block_targets)
            self.moments.update(block, block_targets)

    def merge(self, other: "_State") -> None:
        self.narrowed |= other.narrowed or other.sketch.dtype.itemsize > self.sketch.dtype.itemsize
        if other.moments.n_rows:
            self.sketch.merge(other.sketch)
            self.moments.merge(other.moments)
        self.absorb(*other.buffer.pending)


def _per(error: Float64, ridge: float) -> Float64:
    """Divide by what may be zero, as for alpha=0 with method="exact"."""
    return np.divide(error, ridge, out=np.full_like(error, np.inf), where=ridge > 0)


def _shape(n_targets: int, single: bool) -> str:
    return "(n_rows,)" if single else f"(n_rows, {n_targets})"


def _as_seed(seed: int | None) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ValueError(f"seed={seed!r} is not a whole number from 0 to 2**64 - 1 or None")
    return int(seed)
