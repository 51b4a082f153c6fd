"""Rows read again: `ridgepass.RidgeStream.refine` and what it is made of."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

from ridgepass import validation
from ridgepass.answers import Answers
from ridgepass.intake import Batch
from ridgepass.kernels import Float64
from ridgepass.refining import Refinement, Refining, Watch


class SecondLook(Answers):
    """Adds passes after the first to what a stream answers."""

    _names: tuple[str, str, str]  # what errors call rows, targets and weights

    def refine(
        self,
        batches: Iterable[Any],
        alpha: float | Sequence[float] | Float64,
        *,
        passes: int = 1,
        tol: float | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Read the same rows again: a tight certificate, and a better answer with every pass.

        Conjugate gradients with the sketch as preconditioner; each pass multiplies every row by one
        vector for each target and alpha, and adds it up with the result. ``solve`` and
        ``certificate`` then answer from there at these alphas, until the next row.

        Parameters
        ----------
        batches : iterable of (A, b) or (A, b, weights)
            All rows of the stream, in any order and in any batches; to be iterated over once for
            each pass.
        alpha : float or sequence of float
            The ridge parameters to refine.
        passes : int
            How often to read the rows, or with ``tol`` how often at most. Rows are not read again
            once rounding is all that is left of the error.
        tol : float, optional
            Stop as soon as the certified relative error is no larger.
        watch : callable, optional
            Is told of each batch and of the certified error after each pass.

        Returns
        -------
        self
            As it was before if the rows turn out not to be those of the stream, which raises.
        """
        alphas, _ = validation.as_alphas(alpha)
        limit, tol = validation.as_passes(passes), validation.as_tolerance(tol)
        if limit > 1 and iter(batches) is batches:
            raise ValueError("an iterator can be read only once: give a list of batches")
        refining = self.refining(alphas)
        found = refining.run(lambda: map(self.again, batches), passes=limit, tol=tol, watch=watch)
        if not self.answers_from(refining.query):
            raise ValueError(
                "the stream has taken in other rows while these were read: refine it again"
            )
        self.take_up(found)
        return self

    def refining(self, alphas: Sequence[float]) -> Refining:
        """Return what ``refine`` runs, for whoever reads rows in another way."""
        query = self._solvable(min(alphas))
        return Refining(query, self.refinement, alphas, sparse=self._seen.is_sparse)

    def take_up(self, refinement: Refinement | None) -> None:
        """Answer from what passes over the rows of this stream have found out."""
        self._refinement = refinement

    def again(self, batch: Any) -> Batch:
        """Check (A, b) or (A, b, weights) of rows seen before, for a pass over them."""
        A, b, *weights = batch
        of_rows, of_targets, of_weights = self._names
        rows = validation.as_rows(A, of_rows)
        targets, single = validation.as_targets(b, rows.shape[0], of_targets, of_rows)
        self._seen.check_shape(rows.shape[1], targets.shape[1], single)
        by_row = None
        if weights and weights[0] is not None:
            by_row = validation.as_weights(weights[0], rows.shape[0], of_weights)
        return Batch.present(rows, targets, by_row)
