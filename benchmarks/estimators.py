"""What the estimators add: the price of an intercept, and how well alpha is chosen."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.report import Figure, fastest
from ridgepass import RidgeStream, StreamingRidge, StreamingRidgeCV
from ridgepass.datasets import Synthetic

ALPHAS = 2.0 ** np.arange(2, 22)
DEFAULT = {"method": "tracked", "alpha": 1000.0}  # with its probes


def figures() -> Iterator[Figure]:
    yield from price_of_an_intercept()
    yield from price_of_units()
    yield from choice_of_alpha()


def price_of_an_intercept() -> Iterator[Figure]:
    n, d, size = 4096, 16384, 64
    rng = np.random.default_rng(0)
    for dtype in ("float64", "float32"):
        A, b = rng.standard_normal((n, d), dtype=dtype), rng.standard_normal(n)
        for name, more in (("RFD", {"method": "rfd", "probes": 0}), ("tracked", DEFAULT)):
            options = {"sketch_size": size, **more}
            plain, centred, estimator = fastest(
                partial(train, A, b, **options),
                partial(train, A, b, fit_intercept=True, **options),
                partial(fit, A, b, **options),
                seconds=20,
            )
            where = f"{name} training, {dtype}, d = {d}, ℓ = {size}"
            yield Figure(f"{where}: with intercept / without", centred / plain, 1.25)
            yield Figure(f"{where}: StreamingRidge / RidgeStream", estimator / centred, 1.1)


def train(A: np.ndarray, b: np.ndarray, **options: Any) -> RidgeStream:
    return RidgeStream(**options).update(A, b)


def fit(A: np.ndarray, b: np.ndarray, **options: Any) -> StreamingRidge:
    return StreamingRidge(**options).partial_fit(A, b)


def price_of_units() -> Iterator[Figure]:
    """``standardize=True``, which learns the scales, against being told them beforehand."""
    rng = np.random.default_rng(0)
    n, size, alpha = 8192, 128, 2000.0
    A, b = Synthetic.high_rank(512).sample(n)
    uneven = A * rng.permutation(np.geomspace(1e-3, 1e3, 512))
    rare = (rng.random((n, 400)) < np.geomspace(0.2, 0.0005, 400)).astype(float)
    effects = rare @ rng.standard_normal(400) + rng.standard_normal(n)
    cases = {"HR, columns scaled by 1e-3 to 1e3": (uneven, b), "rare flags": (rare, effects)}
    for name, (X, y) in cases.items():
        exact = StreamingRidge(alpha, method="exact", standardize=True).fit(X, y)
        options = {"method": "rfd", "sketch_size": size}
        learned = StreamingRidge(alpha, standardize=True, **options).fit(X, y)
        told = StreamingRidge(alpha, feature_scale=exact.scale_, **options).fit(X, y)
        errors = [
            np.linalg.norm((model.coef_ - exact.coef_) * exact.scale_) for model in (learned, told)
        ]
        bounds = [model.certificate(confidence=1).coef_bound for model in (learned, told)]
        where = f"standardize / scales told, {name}, d = {X.shape[1]}, ℓ = {size}"
        yield Figure(f"coefficient error, {where}", errors[0] / errors[1], 1.25)
        yield Figure(f"certified bound, {where}", bounds[0] / bounds[1], 10.0)


def choice_of_alpha() -> Iterator[Figure]:
    """Test error at the alpha chosen over that of exact ridge at its best alpha."""
    for name, kind in (("LR", Synthetic.low_rank), ("HR", Synthetic.high_rank)):
        source = kind(2048)
        (A, b), (A_test, b_test) = source.sample(8192), source.sample(2048, 1)

        def error(model: StreamingRidgeCV, A_test=A_test, b_test=b_test) -> float:
            return float(np.square(model.predict(A_test) - b_test).mean())

        exact = StreamingRidge(method="exact").fit(A, b)
        path = exact.path(ALPHAS)
        predictions = A_test @ path.coefs.T + path.intercepts
        best = float(np.square(predictions - b_test[:, None]).mean(axis=0).min())
        for method, size in (("exact", 256), ("rfd", 256), ("tracked", 256), ("tracked", 128)):
            for cv in (None, 5):
                if method == "exact" and cv is not None:
                    continue
                model = StreamingRidgeCV(ALPHAS, cv=cv, method=method, sketch_size=size).fit(A, b)
                way = "GCV" if cv is None else f"{cv} folds"
                label = method if method == "exact" else f"{method}, ℓ = {size}"
                yield Figure(
                    f"test error at the alpha chosen / exact ridge at its best, {name}, n = 8192, "
                    f"d = 2048, {label}, {way}",
                    error(model) / best,
                    1.01,
                )
