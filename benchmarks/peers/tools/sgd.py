"""scikit-learn's SGDRegressor, one batch after another."""

import math
from itertools import product

import numpy as np
from sklearn.linear_model import SGDRegressor

from benchmarks.peers.storage import CannotRunError, Rows

SCHEDULES = ("constant", "invscaling")
RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
EPOCHS = 5


def fit(rows: Rows, alpha: float, tuned: bool) -> np.ndarray:
    if not tuned:
        return trained(rows, started(rows, alpha), epochs=1)
    schedule, rate = chosen(rows, alpha)
    return trained(rows, started(rows, alpha, learning_rate=schedule, eta0=rate), EPOCHS)


def started(rows: Rows, alpha: float, **settings: object) -> SGDRegressor:
    """Return a model of the mean of ½(y − x·w)², plus ½ its alpha ‖w‖²: ridge over n."""
    return SGDRegressor(alpha=alpha / rows.n_rows, fit_intercept=False, random_state=0, **settings)


def trained(rows: Rows, model: SGDRegressor, epochs: int) -> np.ndarray:
    for _ in range(epochs):
        for A, b in rows.batches():
            if not step(model, A, b):
                raise CannotRunError("diverged")
    return model.coef_


def chosen(rows: Rows, alpha: float) -> tuple[str, float]:
    """Return what does best on the last tenth of the rows after one pass over the others.

    All settings learn from the same batches, so the rows are read once.
    """
    models = {
        (schedule, rate): started(rows, alpha, learning_rate=schedule, eta0=rate)
        for schedule, rate in product(SCHEDULES, RATES)
    }
    left, missed = rows.n_rows - rows.n_rows // 10, dict.fromkeys(models, 0.0)
    for A, b in rows.batches():
        cut = min(left, len(b))
        left -= cut
        for key, model in list(models.items()):
            if cut > 0 and not step(model, A[:cut], b[:cut]):
                del models[key]
            elif cut < len(b):
                missed[key] += squared_error(model, A[cut:], b[cut:])
    best = min(models, key=missed.__getitem__, default=None)
    if best is None or missed[best] == math.inf:
        raise CannotRunError("diverged at every learning rate")
    return best


def squared_error(model: SGDRegressor, A: object, b: np.ndarray) -> float:
    """Return the sum over some rows; infinity where it is no number."""
    with np.errstate(all="ignore"):
        total = float(np.square(A @ model.coef_ - b).sum())
    return total if math.isfinite(total) else math.inf


def step(model: SGDRegressor, A: object, b: np.ndarray) -> bool:
    """Learn from a batch; return whether the coefficients are still numbers."""
    try:
        with np.errstate(all="ignore"):
            model.partial_fit(A, b)
    except ValueError as error:
        if "overflow" not in str(error):
            raise
        return False
    return bool(np.isfinite(model.coef_).all())
