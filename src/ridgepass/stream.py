"""Algorithm 1 of the paper: sketch the rows, keep c = Aᵀb, solve at the end or in between."""

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ridgepass import validation
from ridgepass.guard import Change, change_in_place, no_change
from ridgepass.intake import Batch
from ridgepass.kernels import Float64, is_sparse
from ridgepass.probes import Probes
from ridgepass.query import Query
from ridgepass.refining import Refinement
from ridgepass.scaling import Scaling
from ridgepass.second_look import SecondLook
from ridgepass.sketch import LEGACY, SKETCHES, Sketch
from ridgepass.snapshot import Kept, array, check_shapes, entry, flag, float_type, part
from ridgepass.state import State


class RidgeStream(SecondLook):
    """Ridge regression in one pass, for any alpha afterwards.

    Parameters
    ----------
    method : {"tracked", "rfd", "fd", "isvd", "2lfd", "rp", "cs", "exact"}
        How AᵀA is remembered. ``"exact"`` needs d² numbers, the others about 2·sketch_size·d
        (3·sketch_size·d up to a sketch size of 64, where blocks are taken in pairs, and with
        ``"tracked"``). ``"tracked"`` (see docs/tracked.md) errs least and is fastest; ``"rfd"``
        (Algorithm 3) has the least error that is certain, ``"fd"`` is Algorithm 2. ``"rp"`` and
        ``"cs"`` are random; only probes bound their error.
    sketch_size : int
        Rows of the sketch, the paper's ℓ.
    fit_intercept : bool
        Whether A and b are centred first, which is what an intercept amounts to. Each block is
        centred on its own mean, and one row more accounts for the distance of the means.
    standardize : bool
        Whether alpha penalises the coefficients of columns divided by their standard deviation
        over all rows seen (root mean square without an intercept); constant columns count as they
        are. Coefficients come back in original units.
    feature_scale : array_like of shape (n_features,), optional
        What to divide the columns by in place of their standard deviations.
    dtype : {None, "float32", "float64"}
        What rows are kept in. None keeps float32 (and float16) in float32 and makes all else
        float64.
    seed : int or None
        For the random methods; None draws one.
    alpha : float, optional
        Where ``"tracked"`` keeps the points that solutions start from: the ridge parameter that
        will most likely be asked for. Any other can be asked for too; within a factor of ten of
        this one the error hardly changes. None keeps them at the mean eigenvalue of AᵀA.
    probes : int
        Random vectors whose product with AᵀA is kept up to date, to measure the residual of any
        answer. For every method, ``certificate`` then has a bound that holds with a probability,
        and an estimate. Each costs two numbers for a feature, and time like a row of the sketch.
        ``"exact"`` needs none.
    probe_seed : int
        Which random vectors they are. Streams that are to be merged must have the same ones.

    Notes
    -----
    Rows go through in blocks of a fixed size, whatever batches they come in: any split into
    batches gives bitwise the same result. A query treats the rows of an unfinished block as the
    paper's last batch, and changes nothing.

    The first batch decides whether rows are kept dense or sparse. Of sparse rows only the few
    columns that are mostly not zero are filled in, for the sake of an intercept, and all of them by
    ``method="exact"``, a block at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgepass import RidgeStream
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(30)
    >>> stream = RidgeStream(sketch_size=8)
    >>> for _ in range(40):
    ...     A = rng.standard_normal((50, 30)) / (1 + np.arange(30)) ** 2
    ...     stream = stream.update(A, A @ x)
    >>> stream
    RidgeStream(method='tracked', sketch_size=8, n_rows=2000)
    >>> stream.solve(alpha=1.0).shape
    (30,)
    >>> stream.solve(alpha=[1.0, 10.0]).shape
    (2, 30)
    >>> print(f"{stream.certificate(alpha=1.0).relative:.1%}")
    0.4%
    """

    def __init__(
        self,
        method: str = "tracked",
        *,
        sketch_size: int = 256,
        fit_intercept: bool = False,
        standardize: bool = False,
        feature_scale: ArrayLike | None = None,
        dtype: Any = None,
        seed: int | None = 0,
        alpha: float | None = None,
        probes: int = 24,
        probe_seed: int = 0,
    ) -> None:
        self.method = validation.as_method(method, SKETCHES, LEGACY)
        self.sketch_size = validation.as_sketch_size(sketch_size)
        self.fit_intercept = validation.as_bool(fit_intercept, "fit_intercept")
        self.standardize = validation.as_bool(standardize, "standardize")
        self.feature_scale = validation.as_feature_scale(feature_scale)
        if self.standardize and self.feature_scale is not None:
            raise ValueError(
                "standardize=True and feature_scale are two scalings: choose one of them"
            )
        self.dtype = validation.as_dtype(dtype)
        self.seed = validation.as_seed(seed)
        self.alpha = None if alpha is None else validation.as_alpha(alpha)
        self.probes = validation.as_probes(probes)
        self.probe_seed = validation.as_seed(probe_seed)
        self._names = ("A", "b", "weights")  # what errors call the arguments
        self._raw_state: State | None = None
        self._answers: Query | None = None
        self._refinement: Refinement | None = None

    def __repr__(self) -> str:
        rows = "broken" if self._broken else f"n_rows={self.n_rows}"
        return f"RidgeStream(method={self.method!r}, sketch_size={self.sketch_size}, {rows})"

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return 0 if self._state is None else self._state.n_rows

    @property
    def weight(self) -> float:
        """Sum of the weights of the rows seen."""
        return 0.0 if self._state is None else self._state.intake.total_weight()

    @property
    def shape(self) -> tuple[int, int, bool] | None:
        """Features, targets, and whether these are a single column; None before the first row."""
        state = self._state
        return None if state is None else (state.n_features, state.n_targets, state.single)

    @property
    def nbytes(self) -> int:
        """Bytes that the stream holds on to."""
        refined = 0 if self._refinement is None else self._refinement.nbytes
        return refined + (0 if self._state is None else self._state.nbytes)

    def update(self, A: Any, b: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Take in rows and their targets.

        Parameters
        ----------
        A : array_like or sparse matrix or array, of shape (n_rows, n_features)
            Any number of rows.
        b : array_like of shape (n_rows,) or (n_rows, n_targets)
            One column per target.
        weights : array_like of shape (n_rows,), optional
            How often each row counts; any numbers of at least zero.

        Notes
        -----
        Rows that cannot be taken in raise before anything changes. Ctrl-C waits until all are in; a
        second one, or anything else that is raised in the middle, leaves a stream that raises
        `ridgepass.BrokenModelError` from then on, until it restores a snapshot.
        """
        self.updating(A, b, weights)()
        return self

    def updating(self, A: Any, b: ArrayLike, weights: ArrayLike | None = None) -> Change:
        """Check rows as ``update`` does, and return what takes them in."""
        state, batch = self._checked(A, b, weights)
        if batch.rows.shape[0]:
            return self._changing(state, lambda own: own.absorb(batch))
        return partial(self._settle, state)

    def check(self, A: Any, b: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Raise what ``update`` would raise for these rows, taking none of them in."""
        self._checked(A, b, weights)

    def begin(self, A: Any, b: ArrayLike) -> Self:
        """Settle columns, targets, dtype and sparsity as a first batch would, taking no row in.

        For streams that are to be alike whatever row each of them gets first.
        """
        self._settle(self._shaped(A, b)[0])
        return self

    def _changing(self, state: State, change: Callable[[State], None]) -> Change:
        """Return what changes a state: in place if it has rows, or else another in its place."""
        if state.n_rows:

            def in_place() -> None:
                self._answers = self._refinement = None
                change(state)

            return partial(change_in_place, self, in_place)
        shape = state.n_features, state.n_targets, state.single
        dtype, sparse = state.sketch.dtype, state.is_sparse
        # A state that is nobody's yet will do, once, unless other seeds are drawn meanwhile.
        spare, seeds = [] if state is self._state else [state], (self.seed, self.probe_seed)

        def afresh() -> None:
            if spare and seeds == (self.seed, self.probe_seed):
                fresh = spare.pop()
            else:
                fresh = self._new_state(*shape, dtype, sparse)
            change(fresh)
            self._become(fresh)

        return afresh

    def _settle(self, state: State) -> None:
        """Take up a state without rows if there is none yet."""
        if self._state is None:
            self._become(state)

    def _become(self, state: State | None, refinement: Refinement | None = None) -> None:
        """Take up another state, in one step that nothing can interrupt; all answers are void."""
        self.__dict__.update(_raw_state=state, _answers=None, _refinement=refinement, _broken=False)

    def _checked(self, A: Any, b: ArrayLike, weights: ArrayLike | None) -> tuple[State, Batch]:
        """Return the state that is to take in a batch, and the batch."""
        self._check_learns()
        state, rows, targets = self._shaped(A, b)
        of_rows, of_targets, of_weights = self._names
        n_rows, dtype = rows.shape[0], state.sketch.dtype
        by_row = None if weights is None else validation.as_weights(weights, n_rows, of_weights)
        validation.check_finite(rows, of_rows, dtype, by_row, self.feature_scale)
        if by_row is not None:
            validation.check_finite(targets, of_targets, np.dtype(np.float64), by_row)
        return state, Batch.present(rows, targets, by_row)

    def _shaped(self, A: Any, b: ArrayLike) -> tuple[State, Any, Float64]:
        """Return the state that rows and targets of this shape belong to, and both as floats."""
        of_rows, of_targets, _ = self._names
        rows = validation.as_rows(A, of_rows)
        targets, single = validation.as_targets(b, rows.shape[0], of_targets, of_rows)
        shape, state = (rows.shape[1], targets.shape[1]), self._state
        if state is None:
            dtype = self.dtype or rows.dtype
            state = self._new_state(*shape, single, dtype, is_sparse(rows))
        state.check_shape(*shape, single)
        return state, rows, targets

    def merge(self, other: "RidgeStream") -> Self:
        """Take in another stream of the same options; ``other`` stays as it is.

        Counts, means, Aᵀb and the certificate's Δ add. Another sketch size is brought to this
        one's. What is said of interrupts in ``update`` holds here too.
        """
        self.merging(other)()
        return self

    def merging(self, other: "RidgeStream") -> Change:
        """Check another stream as ``merge`` does, and return what takes it in."""
        if not isinstance(other, RidgeStream):
            raise TypeError(f"a RidgeStream merges with another, not with {type(other).__name__}")
        if other is self:
            raise ValueError("a stream cannot be merged with itself: its rows would count twice")
        state = self._state
        other.check_whole("the other RidgeStream", "take in the last snapshot of it instead")
        self._check_learns()
        for name in ("method", "fit_intercept", "standardize", "feature_scale"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if not np.array_equal(mine, theirs):
                raise ValueError(
                    f"a stream with {name}={mine!r} cannot take in one with {name}={theirs!r}: "
                    f"use one {name} for all parts"
                )
        theirs = other._state
        if theirs is None:
            return no_change
        if state is None:
            dtype = self.dtype or theirs.sketch.dtype
            shape = theirs.n_features, theirs.n_targets
            state = self._new_state(*shape, theirs.single, dtype, theirs.is_sparse)
        state.check_shape(theirs.n_features, theirs.n_targets, theirs.single)
        if not theirs.n_rows:
            return partial(self._settle, state)
        if theirs.sketch.dtype.itemsize > state.sketch.dtype.itemsize:
            _check_fits(other._query(), state.sketch.dtype)
        return self._changing(state, lambda own: own.merge(theirs))

    def copy(self) -> "RidgeStream":
        """Return an independent copy."""
        state, twin = self._state, copy.copy(self)
        twin._raw_state, twin._answers = copy.deepcopy(state), None
        return twin

    def snapshot(self) -> Kept:
        """Return what the stream has learned, and its seed and alpha, as plain data.

        Valid until the next row; see `ridgepass.snapshot`.
        """
        state = None if self._state is None else self._state.snapshot()
        kept: Kept = {"seed": self.seed, "alpha": self.alpha, "state": state}
        kept["probe_seed"] = self.probe_seed
        if self._refinement is not None:
            kept["refinement"] = self._refinement.snapshot()
        return kept

    def restore(self, kept: Kept) -> Self:
        """Take up the state of a snapshot, or raise ValueError and stay as it was.

        The stream must have been made with the options, seed and alpha of the one it is from.
        Arrays are not copied: they change as the stream learns, or are copied then if they cannot.
        """
        found = entry(kept, "state")
        if found is None:
            self._become(None)
            return self
        found = part(found, "state")
        cross = entry(part(entry(found, "moments"), "moments"), "cross")
        n_features, n_targets = array(cross, "cross", np.dtype(np.float64), (None, None)).shape
        if not n_features or not n_targets:
            raise ValueError("cross is empty")
        single = flag(entry(found, "single"), "single")
        if single and n_targets > 1:
            raise ValueError(f"a single target has {n_targets} columns")
        # Before anything of these sizes is made: a damaged file must not cost memory.
        shapes = self._kind.shapes(n_features, self.sketch_size)
        check_shapes(entry(found, "sketch"), shapes)
        dtype = float_type(entry(found, "dtype"), "dtype")
        sparse = flag(entry(found, "is_sparse"), "is_sparse")
        state = self._new_state(n_features, n_targets, single, dtype, sparse)
        state.restore(found)
        refinement = kept.get("refinement")
        if refinement is not None:
            refinement = Refinement.restored(refinement, n_features, n_targets)
        self._become(state, refinement)
        return self

    def _new_state(
        self, n_features: int, n_targets: int, single: bool, dtype: np.dtype[Any], sparse: bool
    ) -> State:
        given = self.feature_scale
        if given is not None and len(given) != n_features:
            raise ValueError(
                f"feature_scale has {len(given)} numbers, the rows have {n_features} features: "
                "give one for each feature"
            )
        kind, probes = self._kind, self._new_probes(n_features, dtype)
        more: dict[str, Any] = {}
        if kind.needs_targets:
            more = {"n_targets": n_targets, "alpha": self.alpha}
            more |= {"is_sparse": sparse, "probes": probes}
        sketch = kind(n_features, self.sketch_size, dtype, self.seed, **more)
        return State.empty(
            sketch,
            n_targets,
            single=single,
            is_sparse=sparse,
            centre=self.fit_intercept,
            scaling=Scaling(n_features, given, least_unit(sketch.dtype)) if self._scales else None,
            probes=probes,
        )

    @property
    def _kind(self) -> type[Sketch]:
        return LEGACY[self.method] if self.method in LEGACY else SKETCHES[self.method]

    def _check_learns(self) -> None:
        if self._kind.read_only:
            raise ValueError(
                f"this model has learned with method={self.method!r}, which ridgepass no longer "
                "has: it predicts, but cannot learn or merge any more; train again with "
                "method='tracked'"
            )

    @classmethod
    def legacy(cls, method: str, **options: Any) -> Self:
        """Return an empty stream of a method that is gone, for a snapshot to be put into."""
        stream = cls("rfd", **options)
        stream.method = method
        return stream

    def _new_probes(self, n_features: int, dtype: np.dtype[Any]) -> Probes | None:
        if not self.probes or not self._kind.needs_probes:
            return None
        return Probes.draw(self.probes, n_features, dtype, self.probe_seed)


def least_unit(dtype: np.dtype[Any]) -> float:
    """Return the smallest unit in which no number that rows may have overflows.

    In float64 any deviation that columns can have is larger.
    """
    return 4 * validation.largest_number(dtype) / (float(np.finfo(dtype).max) / 4)


def _check_fits(query: Query, dtype: np.dtype[Any]) -> None:
    """Raise if rows of a longer dtype would overflow this one, before or after they are scaled."""
    limit, largest = validation.largest_number(dtype), float(np.finfo(dtype).max) / 4
    scale = 1.0 if query.scale is None else query.scale
    spread, mean = math.sqrt(query.solver.covariance.mass), np.abs(query.mean)
    scaled, given = mean / scale, mean + spread * scale
    if not (spread <= limit and (scaled <= limit).all() and (given <= largest).all()):
        raise ValueError(
            f"the other stream's numbers overflow {dtype.name}: use dtype='float64' for both"
        )
