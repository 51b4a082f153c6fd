"""Data read again, and everything that a stream answers, for comparing to the last bit."""

import itertools

import numpy as np

from prepared import WIDE, scaled, solve_wide


def pieces(A, b, weights=None, cuts=None):
    """Rows as a list of batches, which can be read any number of times."""
    cuts = cuts or [0, A.shape[0]]
    spans = [slice(start, stop) for start, stop in itertools.pairwise(cuts)]
    if weights is None:
        return [(A[span], b[span]) for span in spans]
    return [(A[span], b[span], weights[span]) for span in spans]


def flat(kept, place=""):
    """All leaves of a snapshot, by name."""
    if isinstance(kept, dict):
        parts = kept.items()
    elif isinstance(kept, list):
        parts = enumerate(kept)
    else:
        return {place: np.array(kept, copy=True)}
    return {
        name: leaf for key, part in parts for name, leaf in flat(part, f"{place}/{key}").items()
    }


def answers(model, alphas):
    """All that a stream says and keeps."""
    found = {"solve": model.solve(alphas), "snapshot": flat(model.snapshot())}
    found["intercept"] = model.intercept(found["solve"])
    for alpha in alphas:
        certificate = model.certificate(alpha)
        names = ("coef_bound", "relative", "energy_bound", "offset", "rounding", "passes")
        found[alpha] = {name: getattr(certificate, name) for name in names}
    return flat(found)


def assert_same_answers(left, right):
    assert left.keys() == right.keys()
    for name, value in left.items():
        np.testing.assert_array_equal(value, right[name], err_msg=name)


class Truth:
    """Exact ridge in extended precision, of columns divided by the scale that the stream uses."""

    def __init__(self, A, b, weights=None, *, fit_intercept=False, scale=None):
        A, b = np.asarray(A, WIDE), np.asarray(b, WIDE).reshape(len(A), -1)
        weights = np.ones(len(A), WIDE) if weights is None else np.asarray(weights, WIDE)
        self.scale = np.ones(A.shape[1], WIDE) if scale is None else scale.astype(WIDE)
        self.mean, self.target_mean = np.zeros(A.shape[1], WIDE), np.zeros(b.shape[1], WIDE)
        if fit_intercept:
            self.mean, self.target_mean = (weights @ v / weights.sum() for v in (A, b))
            self.mean += weights @ (A - self.mean) / weights.sum()
            self.target_mean += weights @ (b - self.target_mean) / weights.sum()
        self.A = np.sqrt(weights)[:, None] * ((A - self.mean) / self.scale)
        self.b = np.sqrt(weights)[:, None] * (b - self.target_mean)
        self.K, self.c = self.A.T @ self.A, self.A.T @ self.b
        self.mass = float(np.trace(self.K))

    @classmethod
    def of(cls, model, A, b, weights=None):
        return cls(A, b, weights, fit_intercept=model.fit_intercept, scale=model.scale)

    def solve(self, alpha):
        return solve_wide(self.K, self.c, alpha)

    def energy(self, alpha, y):
        """√(‖Ay‖² + alpha·‖y‖²) for each column y."""
        y = np.asarray(y, WIDE).reshape(len(self.K), -1)
        squares = np.square(self.A @ y).sum(axis=0) + WIDE(alpha) * np.square(y).sum(axis=0)
        return np.sqrt(squares)

    def predict(self, rows, coef):
        return ((rows.astype(WIDE) - self.mean) / self.scale) @ coef + self.target_mean


def lengths(columns):
    return np.sqrt(np.square(np.asarray(columns, WIDE)).sum(axis=0))


def relative_errors(model, alpha, exact):
    """‖x̂ − x‖/‖x‖ for each target, x being exact ridge of scaled columns."""
    error, size = lengths(scaled(model, model.solve(alpha)) - exact), lengths(exact)
    return np.divide(error, size, out=error.copy(), where=size > 0).astype(float)
