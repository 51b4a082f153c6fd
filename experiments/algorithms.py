"""Who takes part, by the paper's names, and how each is trained."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments import published
from ridgepass import RidgeStream

Train = Callable[[np.ndarray, np.ndarray, int, int, float], published.Trained]


@dataclass(frozen=True)
class Algorithm:
    """A way to train, given rows, targets, sketch size, seed and the alpha to expect.

    Parameters
    ----------
    of_errors : bool
        Whether its errors are measured; those of another way to the same answer are not.
    projects : bool
        Whether it is a random projection, whose sketch may have more rows than there are columns.
    sized : bool
        Whether it has a sketch size.
    squares : bool
        Whether it makes a d×d matrix.
    """

    name: str
    form: str
    train: Train
    of_errors: bool = True
    projects: bool = False
    sized: bool = True
    squares: bool = False


OURS, PUBLISHED = "ridgepass", "as published"


def stream(
    method: str, A: np.ndarray, b: np.ndarray, size: int, seed: int, alpha: float
) -> RidgeStream:
    """Train tracked with its defaults, and the paper's methods as the paper has them: no probes."""
    options = {"sketch_size": size} if method != "exact" else {}
    options |= {"alpha": alpha} if method == "tracked" else {"probes": 0}
    return RidgeStream(method, seed=seed, **options).update(A, b)


def by(method: str) -> Train:
    return partial(stream, method)


def plain(kind: Callable[..., published.Trained], takes: int = 2) -> Train:
    """Return how one of `published` is trained, which takes none, size, or size and seed."""
    return lambda A, b, size, seed, alpha: kind(A, b, *(size, seed)[:takes])


ALGORITHMS = (
    Algorithm("rr", OURS, by("exact"), sized=False, squares=True),
    Algorithm("FDrr", OURS, by("fd")),
    Algorithm("RFDrr", OURS, by("rfd")),
    Algorithm("iSVDrr", OURS, by("isvd")),
    Algorithm("2LFDrr", OURS, by("2lfd")),
    Algorithm("tracked", OURS, by("tracked")),
    Algorithm("RPrr", PUBLISHED, plain(published.Signs), projects=True, squares=True),
    Algorithm("CSrr", PUBLISHED, plain(published.Counts), projects=True, squares=True),
    Algorithm("RPrr", OURS, by("rp"), of_errors=False, projects=True),
    Algorithm("CSrr", OURS, by("cs"), of_errors=False, projects=True),
    Algorithm(
        "rr", PUBLISHED, plain(published.RowByRow, 0), of_errors=False, sized=False, squares=True
    ),
    Algorithm("FDrr", PUBLISHED, plain(published.StackedSVD, 1), of_errors=False),
    Algorithm("2LFDrr", PUBLISHED, plain(published.TwoLevels), of_errors=False, squares=True),
)


def named(name: str, form: str) -> Algorithm:
    """Return the one of that name and form."""
    return next(one for one in ALGORITHMS if (one.name, one.form) == (name, form))
