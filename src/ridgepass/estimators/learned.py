"""What training leaves: one stream that estimators at several alphas may share."""

import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ridgepass.estimators.batch import Origin, Targets
from ridgepass.estimators.budget import Plan
from ridgepass.estimators.labels import Signs
from ridgepass.estimators.path import RidgePath
from ridgepass.estimators.settings import Settings, draw_seeds, restored_plan
from ridgepass.guard import Change, Guarded, no_change
from ridgepass.kernels import Float64
from ridgepass.query import CONFIDENCE
from ridgepass.refining import Refinement
from ridgepass.snapshot import Kept, entry, json_bytes, json_of, part, take
from ridgepass.solve import Certificate
from ridgepass.stream import RidgeStream

# Targets of a classifier are written out in pieces of about this many numbers.
PIECE = 1 << 22


@dataclass(frozen=True)
class Solution:
    """A model: coefficients of shape (n_features,) or (n_targets, n_features), read-only."""

    alpha: float
    coef: Float64
    intercept: Any


class Learned(Guarded):
    """A stream, and what it was learned from.

    ``owners`` holds the estimators that use it, each with its latest solution. It decides whether
    training may go on in place; entries vanish with their estimators. A batch or another model is
    checked first, which gives what takes it in: see `ridgepass.guard`.

    Parameters
    ----------
    stream : RidgeStream
        Queries keep results in it, so only one thread at a time may use it: take ``lock``.
    settings : Settings
        The parameters when training began.
    plan : Plan
        What ``auto`` and ``memory`` came to.
    origin : Origin
        What the first batch settled.
    """

    # How the columns of a table become features, for whoever reads tables; JSON can hold it.
    columns: dict[str, Any] | None = None
    # What an early file has in its place that no source has said; it is kept, and not used.
    unused_columns: dict[str, Any] | None = None

    def __init__(self, stream: RidgeStream, settings: Settings, plan: Plan, origin: Origin) -> None:
        self._stream = stream
        self.settings = settings
        self.plan = plan
        self.origin = origin
        self._start_sharing()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("lock", "owners", "_expected")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start_sharing()

    def _start_sharing(self) -> None:
        self.lock = threading.RLock()
        self._expected: dict[bytes, Float64] = {}
        self.owners: weakref.WeakKeyDictionary[Any, Solution | None] = weakref.WeakKeyDictionary()

    @property
    def stream(self) -> RidgeStream:
        """All that was learned."""
        self.check_whole()
        return self._stream

    @property
    def broken(self) -> bool:
        """Whether a change was cut short, or is under way: hold ``lock``."""
        return self._broken

    @property
    def n_rows(self) -> int:
        """Rows learned from: hold ``lock``."""
        return self.stream.n_rows

    def seed(self, random_state: Any) -> None:
        """Draw seeds for streams that have seen nothing, if their method is random."""
        draw_seeds([self.stream], random_state)

    def updating(self, rows: Any, targets: Targets) -> Change:
        """Check a batch, and return what takes it in."""
        stream = self.stream
        if targets.idle:
            return no_change
        if not isinstance(targets.values, Signs):
            return self._with_rows(stream.updating(rows, targets.values, targets.weights))
        for piece in pieces(rows, targets):
            stream.check(*piece)

        def update() -> None:
            for piece in pieces(rows, targets):
                stream.update(*piece)

        return self._with_rows(update)

    def merging(self, other: "Learned") -> Change:
        """Check what another has learned, and return what takes it in: hold both locks."""
        merge = self.stream.merging(other.stream)
        self._check_origin(other)

        def change() -> None:
            merge()
            self._merge_columns(other)

        return self._with_rows(change)

    def _check_origin(self, other: "Learned") -> None:
        """Raise if others have other columns, which streams without rows know nothing of."""
        mine, theirs = ((o.n_features, o.n_targets) for o in (self.origin, other.origin))
        if mine != theirs:
            raise ValueError(
                f"the two have learned from {mine[0]} and {theirs[0]} features, for {mine[1]} and "
                f"{theirs[1]} targets: use the same columns for all parts"
            )

    def take_up(self, refinement: Refinement) -> None:
        """Answer from what passes over the same rows have found out."""
        self._forget_solutions()  # first: they can be worked out again whatever comes between
        self.stream.take_up(refinement)

    def _with_rows(self, change: Change) -> Change:
        """Return a change that brings rows, after which all answers are void."""

        def renew() -> None:
            self._expected.clear()
            self._forget_solutions()
            change()

        return renew

    def _forget_solutions(self) -> None:
        for owner in list(self.owners):
            self.owners[owner] = None

    def _merge_columns(self, other: "Learned") -> None:
        if self.columns is None and other.columns is not None:
            self.columns = other.columns

    def snapshot(self) -> Kept:
        """Return everything as plain data, valid until it changes: hold ``lock``."""
        return self._snapshot_origin() | {"stream": self.stream.snapshot()}

    def _snapshot_origin(self) -> Kept:
        columns = self.unused_columns if self.columns is None else self.columns
        return {
            "settings": self.settings.snapshot(),
            "plan": take(self.plan),
            "origin": self.origin.snapshot(),
            "columns": None if columns is None else json_bytes(columns),
        }

    @classmethod
    def restored(cls, kept: Any) -> Self:
        """Return what a snapshot was taken of, or raise ValueError."""
        settings, plan, origin = restored_origin(kept)
        stream = settings.restored_stream(plan, entry(kept, "stream"))
        return cls(stream, settings, plan, origin)._checked(kept, [stream])

    def _checked(self, kept: Any, streams: list[RidgeStream]) -> Self:
        """Take up what is left of a snapshot; raise if its parts do not belong together."""
        columns, origin = entry(kept, "columns"), self.origin
        if columns is not None:
            columns = part(json_of(columns, "columns"), "columns")
            if "kind" in columns:
                self.columns = columns
            else:
                self.unused_columns = columns
        shape = origin.n_features, origin.n_targets, origin.n_targets == 1
        if any(stream.shape not in (None, shape) for stream in streams):
            raise ValueError("the stream has other features or targets than the model")
        if not self.n_rows:
            raise ValueError("there are no rows behind it")
        return self

    @property
    def refinement(self) -> Refinement | None:
        """What passes after the first have found out."""
        return self.stream.refinement

    def models(self, alphas: Sequence[float] | Float64) -> Iterator[tuple[Float64, Float64]]:
        """Yield coefficients (n_features, n_targets) and intercepts (n_targets,) for each alpha."""
        with self.lock:
            coefs = self.stream.solve(alphas)
            intercepts = self.stream.intercept(coefs)
        shape = self.origin.n_features, self.origin.n_targets
        for coef, intercept in zip(coefs, intercepts, strict=True):
            yield coef.reshape(shape), np.reshape(intercept, -1)

    def expected_errors(self, alphas: Float64) -> Float64:
        """Estimate the mean squared error on new rows for each alpha, once until the next row."""
        with self.lock:
            known = self._expected.get(alphas.tobytes())
            if known is None:
                self._expected[alphas.tobytes()] = known = self._expect(alphas)
            return known

    def _expect(self, alphas: Float64) -> Float64:
        errors = self.stream.generalised_error(alphas).reshape(len(alphas), -1)
        expected: Float64 = errors.mean(axis=1)
        return expected

    def copy(self) -> Self:
        """Return an independent one, which nobody owns."""
        twin = type(self).__new__(type(self))
        twin.__setstate__({**self.__getstate__(), "_stream": self.stream.copy()})
        return twin

    def for_training(self, owner: Any) -> Self:
        """Return what ``owner`` may change: this one, or a copy if others use it or it is empty."""
        shared = any(user is not owner for user in list(self.owners))
        return self.copy() if shared or not self.n_rows else self

    def solution(self, owner: Any, alpha: float) -> Solution:
        """Return the model at ``alpha``, solved once until the next training."""
        with self.lock:
            known = self.owners.get(owner)
            if known is None or known.alpha != alpha:
                known = self._solve(alpha)
                self.owners[owner] = known
            return known

    def certificate(self, alpha: float, confidence: float = CONFIDENCE) -> Certificate:
        """Bound the distance from exact ridge."""
        with self.lock:
            return self.stream.certificate(alpha, confidence)

    def path(self, alphas: Sequence[float]) -> RidgePath:
        """Solve for many alphas at once."""
        with self.lock:
            coefs = self.stream.solve(alphas)
            intercepts = self.stream.intercept(coefs)
            # All of them are to hold at once.
            confidence = 1 - (1 - CONFIDENCE) / len(alphas)
            proofs = [self.stream.certificate(alpha, confidence) for alpha in alphas]
        return RidgePath(
            alphas=np.asarray(alphas, dtype=np.float64),
            coefs=coefs.swapaxes(1, 2) if coefs.ndim == 3 else coefs,
            intercepts=np.asarray(intercepts),
            coef_bounds=np.asarray([proof.coef_bound for proof in proofs]),
            relative_bounds=np.asarray([proof.relative for proof in proofs]),
        )

    def _solve(self, alpha: float) -> Solution:
        coefs = self.stream.solve(alpha)
        intercept: Any = 0.0
        if self.settings.fit_intercept:
            intercept = np.array(self.stream.intercept(coefs), dtype=np.float64)
            if self.origin.column:
                intercept = intercept.reshape(1)
            if intercept.ndim == 0:
                intercept = float(intercept)
            else:
                intercept.flags.writeable = False
        # Predictions use them again: a change in place would show there.
        coefs.flags.writeable = False
        return Solution(alpha, coefs.T, intercept)


def pieces(rows: Any, targets: Targets) -> Iterator[tuple[Any, Float64, Float64 | None]]:
    """Yield rows, targets and weights; those of a classifier some at a time, as they are long."""
    values, weights, n_rows = targets.values, targets.weights, rows.shape[0]
    step = max(1, PIECE // values.n_classes) if isinstance(values, Signs) else max(1, n_rows)
    for start in range(0, n_rows, step):
        here = slice(start, start + step)
        by_row = None if weights is None else weights[here]
        yield rows if step >= n_rows else rows[here], values[here], by_row


def restored_origin(kept: Any) -> tuple[Settings, Plan, Origin]:
    """Return the parts of a snapshot that every kind of `Learned` has."""
    return (
        Settings.restored(entry(kept, "settings")),
        restored_plan(entry(kept, "plan")),
        Origin.restored(entry(kept, "origin")),
    )
