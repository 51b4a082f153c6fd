"""Training and query time against one product of the same data, the stacked SVD and exact ridge.

The paper's methods as the paper has them, without probes; `benchmarks.training` is about the method
that is the default, with all that comes with it.
"""

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np
from sklearn.linear_model import Ridge

from benchmarks.report import Figure, fastest
from experiments.published import StackedSVD
from ridgepass import RidgeStream


def figures() -> Iterator[Figure]:
    yield from against_one_product()
    yield from against_stacked_svd()
    yield from against_exact_ridge()
    yield from tracked_against_rfd()
    yield from where_exact_is_faster()
    yield from another_alpha()


def rows(n: int, d: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d), dtype=dtype), rng.standard_normal(n)


def train(method: str, A: np.ndarray, b: np.ndarray, sketch_size: int) -> RidgeStream:
    return started(method, sketch_size).update(A, b)


def started(method: str, sketch_size: int) -> RidgeStream:
    options = {"alpha": 1000.0} if method == "tracked" else {"probes": 0}
    return RidgeStream(method, sketch_size=sketch_size, **options)


def against_one_product() -> Iterator[Figure]:
    n, d = 4096, 16384
    for dtype, target in (("float64", 4.5), ("float32", 6.0)):
        A, b = rows(n, d, dtype)
        for size in (64, 256):
            V = A[:size].copy()
            product, ours = fastest(
                partial(np.matmul, A, V.T), partial(train, "fd", A, b, size), seconds=25
            )
            yield Figure(
                f"FD training / one product A·Vᵀ, {dtype}, d = {d}, ℓ = {size}",
                ours / product,
                target,
            )


def against_stacked_svd() -> Iterator[Figure]:
    for n, d, size, target in ((4096, 16384, 64, 10.0), (8192, 2048, 256, 4.5)):
        A, b = rows(n, d)
        svd, ours = fastest(partial(StackedSVD, A, b, size), partial(train, "fd", A, b, size))
        yield Figure(f"stacked SVD / FD, n = {n}, d = {d}, ℓ = {size}", svd / ours, target, False)


def against_exact_ridge() -> Iterator[Figure]:
    n, d, size, alpha = 8192, 8192, 64, 100.0
    A, b = rows(n, d)
    exact, ours, sklearn = fastest(
        lambda: train("exact", A, b, size).solve(alpha),
        lambda: train("fd", A, b, size).solve(alpha),
        lambda: Ridge(alpha, fit_intercept=False, solver="cholesky").fit(A, b),
    )
    where = f"n = d = {d}, ℓ = {size}, fit and one query"
    yield Figure(f"exact streaming ridge / FD, {where}", exact / ours, 15.0, False)
    yield Figure(f"scikit-learn Ridge, Cholesky / FD, {where}", sklearn / ours, 15.0, False)


def tracked_against_rfd() -> Iterator[Figure]:
    """Compare over a stream long enough that tracked moves about as rarely as it will for good."""
    d = 16384

    def twice(method: str, A: np.ndarray, b: np.ndarray, size: int) -> None:
        started(method, size).update(A, b).update(A, b)

    for dtype in ("float64", "float32"):
        A, b = rows(4096, d, dtype)
        for size in (64, 256):
            rfd, tracked = fastest(
                partial(twice, "rfd", A, b, size), partial(twice, "tracked", A, b, size), seconds=20
            )
            what = f"tracked training, 24 probes / RFD training, {dtype}, n = 8192, d = {d}"
            yield Figure(f"{what}, ℓ = {size}", tracked / rfd, 1.0)


def where_exact_is_faster() -> Iterator[Figure]:
    n = 8192
    for size in (64, 256):
        d = 8 * size
        A, b = rows(n, d)
        exact, ours = fastest(
            partial(train, "exact", A, b, size), partial(train, "fd", A, b, size), seconds=5
        )
        yield Figure(f"exact training / FD training, d = 8ℓ, ℓ = {size}", exact / ours, 1.0)


def another_alpha() -> Iterator[Figure]:
    d, size = 16384, 256
    A, b = rows(4 * size, d)
    for method in ("fd", "rfd", "isvd", "tracked"):
        model = train(method, A, b, size)
        model.solve(1.0)
        V, c, alphas = A[:size], A[size], count(2)  # a new one each time: what it needs is kept
        product, query = fastest(
            partial(np.matmul, V, c), lambda m=model, a=alphas: m.solve(next(a)), seconds=1
        )
        yield Figure(
            f"another alpha / one product V·c, {method}, d = {d}, ℓ = {size}", query / product, 5.0
        )
