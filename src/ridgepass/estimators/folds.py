"""Cross-validation in the one pass: a stream for each fold."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgepass.estimators.batch import Origin, Targets
from ridgepass.estimators.budget import Plan
from ridgepass.estimators.learned import Learned, restored_origin
from ridgepass.estimators.settings import Settings, draw_seeds
from ridgepass.guard import Change, no_change
from ridgepass.kernels import Float64, is_sparse
from ridgepass.refining import Refinement
from ridgepass.sketch import LEGACY
from ridgepass.snapshot import Kept, array, count, entry, take
from ridgepass.stream import RidgeStream


@dataclass(frozen=True, eq=False)
class Deal:
    """Which fold a row goes to.

    Attributes
    ----------
    n_folds : int
        Number of folds.
    given : ndarray of int or None
        The fold of each row, in the order of the stream. None deals rows out in turn: row i, not
        counting rows of weight zero, goes to fold i modulo ``n_folds``.
    """

    n_folds: int
    given: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, cv: Any) -> Self:
        """Check what a user gave."""
        if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
            if cv < 2:
                raise ValueError(f"cv={cv} is too few folds: give at least 2, or None")
            return cls(int(cv))
        try:
            tests = [(np.asarray(train), np.asarray(test)) for train, test in cv]
        except (TypeError, ValueError):
            raise ValueError(
                f"cv={cv!r} is not a number of folds: give an int of at least 2, None, or a list "
                "of (train, test) row numbers, such as list(splitter.split(X, y))"
            ) from None
        n_rows = sum(len(test) for _, test in tests)
        folds = np.full(n_rows, -1, dtype=np.intp)
        for i, (train, test) in enumerate(tests):
            inside = [np.all((rows >= 0) & (rows < n_rows)) for rows in (train, test)]
            if all(inside) and len(train) + len(test) == n_rows:
                folds[test] = i
                covered = np.union1d(train, test)
                if len(covered) == n_rows:
                    continue
            raise ValueError(
                f"cv's split {i} leaves rows out: the test sets must share all rows between them, "
                "and each training set must be all rows but its test set"
            )
        if len(tests) < 2 or (folds < 0).any():
            raise ValueError("cv's test sets overlap or are too few: give at least 2 disjoint ones")
        return cls(len(tests), folds)


class FoldedLearned(Learned):
    """Rows dealt out to several streams; the model is their merger.

    Parameters
    ----------
    folds : list of RidgeStream
        One for each fold, all alike.
    deal : Deal
        Which row goes where, whatever batches they come in.
    settings, plan, origin
        As in `Learned`.

    Attributes
    ----------
    n_given : int
        Rows that were dealt out: those of weight zero count if it was given which row goes where.
    """

    def __init__(
        self,
        folds: list[RidgeStream],
        deal: Deal,
        settings: Settings,
        plan: Plan,
        origin: Origin,
    ) -> None:
        self._folds = folds
        self.deal = deal
        self.n_given = 0
        self._merged: RidgeStream | None = None
        self.settings = settings
        self.plan = plan
        self.origin = origin
        self._start_sharing()

    @property
    def folds(self) -> list[RidgeStream]:
        """One stream for each fold."""
        self.check_whole()
        return self._folds

    @property
    def stream(self) -> RidgeStream:
        """All folds merged, as one until the next row."""
        folds = self.folds
        if self._merged is None:
            self._merged = _merged(folds)
        return self._merged

    @property
    def refinement(self) -> Refinement | None:
        """What passes after the first have found out."""
        self.check_whole()
        return None if self._merged is None else self._merged.refinement

    @property
    def n_rows(self) -> int:
        """Rows learned from: hold ``lock``."""
        return sum(fold.n_rows for fold in self.folds)

    def seed(self, random_state: Any) -> None:
        """Draw seeds for streams that have seen nothing, if their method is random."""
        draw_seeds(self.folds, random_state)

    def updating(self, rows: Any, targets: Targets) -> Change:
        """Check a batch, and return what takes it in."""
        values, weights, folds = targets.values[:], targets.weights, self.folds
        folds[0].check(rows, values, weights)
        n_dealt = self._n_dealt(weights, rows.shape[0])
        dealt = self._dealt(n_dealt)
        if targets.idle:
            return partial(self._count, n_dealt) if n_dealt else no_change
        first, given = None if self.n_rows else (rows[:1], values[:1]), self.deal.given
        if weights is not None and not weights.all() and given is None:
            present = weights > 0
            rows, values, weights = rows[present], values[present], weights[present]
        if is_sparse(rows):
            rows = sparse.csr_array(rows)

        def update() -> None:
            self._merged = None
            self._count(n_dealt)
            for fold, mine in zip(folds, dealt, strict=True):
                if first is not None:
                    fold.begin(*first)
                if len(values[mine]):
                    by_row = None if weights is None else weights[mine]
                    fold.update(rows[mine], values[mine], by_row)

        return self._with_rows(update)

    def _count(self, n_dealt: int) -> None:
        self.n_given += n_dealt

    def _n_dealt(self, weights: Float64 | None, n_rows: int) -> int:
        """Return how many rows of a batch are dealt out: without those of no weight, or all."""
        if weights is None or self.deal.given is not None:
            return n_rows
        return int(np.count_nonzero(weights))

    def _dealt(self, n_rows: int) -> list[Any]:
        """Return which of the next rows go to each fold."""
        n_folds, given = self.deal.n_folds, self.deal.given
        if given is None:
            return [slice((i - self.n_rows) % n_folds, None, n_folds) for i in range(n_folds)]
        stop = self.n_given + n_rows
        if stop > len(given):
            raise ValueError(
                f"cv has folds for {len(given)} rows, and now there are {stop}: "
                "give folds for all rows, or a number of folds"
            )
        return [np.flatnonzero(given[self.n_given : stop] == i) for i in range(n_folds)]

    def merging(self, other: Learned) -> Change:
        """Check what another has learned, and return what takes it in: hold both locks."""
        if not isinstance(other, FoldedLearned) or len(other.folds) != len(self.folds):
            raise ValueError("the two differ in cv: use one number of folds for all parts")
        if self.deal.given is not None and self.n_given:
            raise ValueError(
                "cv has row numbers, which count the rows of one stream: use a number of folds to "
                "merge parts"
            )
        pairs = zip(self.folds, other.folds, strict=True)
        merges = [fold.merging(theirs) for fold, theirs in pairs]
        self._check_origin(other)

        def change() -> None:
            self._merged = None
            self._count(other.n_given)
            for merge in merges:
                merge()
            self._merge_columns(other)

        return self._with_rows(change)

    def snapshot(self) -> Kept:
        """Return everything as plain data, valid until it changes: hold ``lock``."""
        given = self.deal.given
        kept = self._snapshot_origin() | {
            "n_given": self.n_given,
            "dealt": None if given is None else given.astype(np.int64, copy=False),
            "folds": [fold.snapshot() for fold in self.folds],
        }
        return kept if self.refinement is None else kept | {"refinement": take(self.refinement)}

    @classmethod
    def restored(cls, kept: Any) -> Self:
        """Return what a snapshot was taken of, or raise ValueError."""
        settings, plan, origin = restored_origin(kept)
        dealt, parts = entry(kept, "dealt"), entry(kept, "folds")
        if not isinstance(parts, list) or len(parts) < 2:
            raise ValueError("folds is not a list of at least two")
        if dealt is not None:
            dealt = array(dealt, "dealt", np.dtype(np.int64), (None,)).astype(np.intp)
            if not ((dealt >= 0) & (dealt < len(parts))).all():
                raise ValueError(f"dealt has folds beyond {len(parts)}")
        if plan.method in LEGACY:
            raise ValueError(f"its folds are of method {plan.method!r}, which merges no more")
        folds = [settings.restored_stream(plan, fold) for fold in parts]
        learned = cls(folds, Deal(len(parts), dealt), settings, plan, origin)
        learned.n_given = count(entry(kept, "n_given"), "n_given")
        learned._checked(kept, folds)
        if "refinement" in kept:
            n_features, n_targets = origin.n_features, origin.n_targets
            found = Refinement.restored(kept["refinement"], n_features, n_targets)
            learned.stream.take_up(found)
        return learned

    def copy(self) -> Self:
        """Return an independent one to be trained, which nobody owns; it has read nothing again."""
        twin = type(self).__new__(type(self))
        folds = [fold.copy() for fold in self.folds]
        twin.__setstate__({**self.__getstate__(), "_folds": folds, "_merged": None})
        return twin

    def _expect(self, alphas: Float64) -> Float64:
        """Sum up the folds' errors.

        Each training set is the merger of the other folds; a fold's error comes from its own
        moments and sketch.
        """
        folds = [fold for fold in self.folds if fold.n_rows]
        if len(folds) < 2:
            raise ValueError(
                f"cv={self.deal.n_folds} needs rows in at least two folds, and n_samples="
                f"{self.n_rows}: give more rows, or cv=None"
            )
        total = np.zeros(len(alphas))
        for i, fold in enumerate(folds):
            training = _merged(folds[i + 1 :] + folds[:i])
            coefs = training.solve(alphas)
            errors = fold.mean_squared_error(coefs, training.intercept(coefs))
            total += fold.weight * errors.reshape(len(alphas), -1).mean(axis=1)
        return total / sum(fold.weight for fold in folds)


def same_deal(one: Deal | None, other: Deal | None) -> bool:
    """Whether rows go to the same folds."""
    if one is None or other is None:
        return one is other
    if one.given is None or other.given is None:
        return one.n_folds == other.n_folds and one.given is other.given
    return bool(np.array_equal(one.given, other.given))


def _merged(streams: list[RidgeStream]) -> RidgeStream:
    """Merge streams into a copy of the first."""
    first, *others = streams
    merged = first.copy()
    for other in others:
        merged.merge(other)
    return merged
