"""Work on all cores: pieces of our own, with one BLAS thread each.

BLAS's own threads do not serve here. NumPy and SciPy each bring a BLAS, whose threads go on
spinning after a product, on the core that the other's need: products of the two by turns took twice
as long on two cores. And what is no product runs on one core anyway. So work is cut into pieces for
threads of our own, as many as BLAS may have: ``OPENBLAS_NUM_THREADS`` and
`threadpoolctl.threadpool_limits` hold here too. How it is cut never depends on their number, and so
the result does not either.
"""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

MOST_THREADS = 256  # they are made when they are needed
MOST_SUMS, SUMMED_NUMBERS = 16, 1 << 22  # of one sum, and all numbers of all of them
T = TypeVar("T")
Piece = TypeVar("Piece")


# The number of BLAS threads belongs to the process: two that set it would put back each other's.
_lock = threading.RLock()
_n_threads = 1  # that BLAS had before it was kept to one; of whoever holds the lock


def alone(action: Callable[[], T]) -> T:
    """Do something while BLAS has one thread, and no other thread is in here.

    Small eigenproblems and factorisations are faster so: on two threads they took three to six
    times as long. A call, not a context manager: an interrupt may leave a generator with the lock.
    """
    global _n_threads
    if _lock._is_owned():  # type: ignore[attr-defined]  # as `threading.Condition` asks
        return action()
    with _lock:
        _n_threads = max(pool["num_threads"] for pool in _blas().info())
        with one_blas_thread():
            return action()


def each(task: Callable[[Piece], None], pieces: Iterable[Piece]) -> None:
    """Do a task for every piece, on all cores. It must not call `alone` or `each` itself."""
    waiting = list(pieces)
    if len(waiting) > 1:
        alone(lambda: _spread(task, waiting))
    else:
        for piece in waiting:
            task(piece)


def summed(
    term: Callable[[Piece], NDArray[Any]], pieces: Iterable[Piece], size: int
) -> NDArray[np.float64]:
    """Return the sum of a term for every piece, in float64, on all cores.

    It is made of a few sums, fewer where a term has many numbers, ``size``; and always of the same
    ones, whatever the number of threads.
    """
    waiting = list(pieces)
    n_sums = max(2, min(MOST_SUMS, SUMMED_NUMBERS // size))
    sums: list[Any] = [0.0] * min(n_sums, len(waiting))

    def add(index: int) -> None:
        for piece in waiting[index::n_sums]:
            sums[index] = np.add(sums[index], term(piece), dtype=np.float64)

    each(add, range(len(sums)))
    total: NDArray[np.float64] = np.add.reduce(sums)
    return total


def _spread(task: Callable[[Piece], None], pieces: list[Piece]) -> None:
    """Let this thread and others take pieces until there are none."""
    left = iter(pieces)  # next() of a list's iterator is one step, which threads do not share

    def work() -> None:
        for piece in left:
            task(piece)

    others: list[Future[None]] = []
    try:
        for _ in range(min(_n_threads, len(pieces)) - 1):
            try:
                others.append(_workers().submit(work))
            except RuntimeError:  # the interpreter shuts down: no new threads
                break
        work()
    finally:
        for other in others:
            if not other.cancel():
                other.result()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread; only within `alone`."""
    limited: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limited


@cache
def _blas() -> ThreadpoolController:
    import scipy.linalg.blas  # noqa: F401  (NumPy's and SciPy's are both there then)

    pools: ThreadpoolController = ThreadpoolController().select(user_api="blas")
    return pools


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="ridgepass")


def _after_fork() -> None:
    """Begin anew in a child: it has none of the threads, and perhaps a lock that one held."""
    global _lock
    _lock = threading.RLock()
    _workers.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
