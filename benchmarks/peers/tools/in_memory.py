"""scikit-learn's Ridge on all rows at once."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from benchmarks.peers.storage import Rows

# Passes an iteration: lsqr multiplies by A and by Aᵀ.
PASSES = {"lsqr": 2, "sag": 1}


def fit(rows: Rows, alpha: float, solver: str) -> np.ndarray:
    A, b = rows.whole()
    # A copy of the rows would take most of the memory.
    model = Ridge(alpha, fit_intercept=False, copy_X=False, solver=solver, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the error is in the table
        model.fit(A, b.astype(A.dtype))
    rows.passes = PASSES[solver] * int(np.max(model.n_iter_)) if solver in PASSES else 1
    return model.coef_
