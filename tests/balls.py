"""Sums and exact ridge in ball arithmetic: every result is known to hundreds of digits.

Bounds are compared with these without any slack, at any scale: exponents have no limit here.
"""

import numpy as np
from flint import arb, arb_mat, ctx

PRECISION = 1500  # bits; numbers between 1e-320 and 1e150 are added up


def balls(values):
    """Return floats as exact balls, in nested lists."""
    ctx.prec = PRECISION
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 0:
        return arb(float(values))
    return [balls(value) for value in values]


def total(terms):
    return sum(terms, arb(0))


def length(vector):
    """At least the Euclidean norm, and no more than the last digit above it."""
    return total(x * x for x in vector).upper().sqrt()


def columns(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


def within(error, bound):
    """Whether a bound in float64 is certainly not below what it bounds."""
    return bound == np.inf or bool(error <= arb(float(bound)))


class Sums:
    """What `ridgepass.refining.sums.Totals` holds, without rounding.

    Of rows (x − mean)/scale and targets less their mean, about which they are then centred.
    """

    def __init__(self, rows, targets, weights, preparation, vectors, at, signs):
        n, d = rows.shape
        X, y, V, signs = (balls(each) for each in (rows, targets, vectors, signs))
        w = balls(np.ones(n) if weights is None else weights)
        scale = balls(np.ones(d) if preparation.scale is None else preparation.scale)
        places = balls(preparation.mean), balls(preparation.target_mean)
        A = [[(x - m) / s for x, m, s in zip(row, places[0], scale, strict=True)] for row in X]
        b = [[x - m for x, m in zip(row, places[1], strict=True)] for row in y]
        shifts = [[arb(0)] * d, [arb(0)] * len(b[0])]
        if preparation.centred:
            weight = total(w)
            for i, table in enumerate((A, b)):
                shifts[i] = [
                    total(v * x for v, x in zip(w, column, strict=True)) / weight
                    for column in columns(table)
                ]
            A, b = (
                [[x - m for x, m in zip(row, shift, strict=True)] for row in table]
                for table, shift in zip((A, b), shifts, strict=True)
            )
        weighted = arb_mat([[v * x for x in row] for v, row in zip(w, A, strict=True)]).transpose()
        products = (arb_mat(A) * arb_mat(V)).tolist()
        rest = [
            [(t[k] if k >= 0 else arb(0)) - p for k, p in zip(at, row, strict=True)]
            for t, row in zip(b, products, strict=True)
        ]
        mixed = [[total(x * s for x, s in zip(t, signs, strict=True))] for t in b]
        self.shift, self.target_shift = shifts
        self.lifted = (weighted * arb_mat(rest)).tolist()
        self.check = [row[0] for row in (weighted * arb_mat(mixed)).tolist()]
        self.mass = total(v * x * x for v, row in zip(w, A, strict=True) for x in row)
        self.target_mass = [
            total(v * x * x for v, x in zip(w, column, strict=True)) for column in columns(b)
        ]


class ExactRidge:
    """Ridge regression, and how far any coefficients and intercepts are from it.

    Parameters
    ----------
    X, y, alpha, weights, scale
        As for `ridgepass.verify`; y has shape (n_rows, n_targets).
    fit_intercept : bool
        Whether exact ridge has an intercept.
    """

    def __init__(self, X, y, alpha, weights=None, *, fit_intercept=True, scale=None):
        n, d = X.shape
        self.rows, self.alpha = X, balls(alpha)
        X, y = balls(X), balls(y)
        self.weights = balls(np.ones(n) if weights is None else weights)
        self.scale = balls(np.ones(d) if scale is None else scale)
        mean, target_mean = [arb(0)] * d, [arb(0)] * len(y[0])
        if fit_intercept:
            mean, target_mean = (
                [self._sum(column) / total(self.weights) for column in columns(table)]
                for table in (X, y)
            )
        A = [[(x - m) / s for x, m, s in zip(row, mean, self.scale, strict=True)] for row in X]
        b = [[x - m for x, m in zip(row, target_mean, strict=True)] for row in y]
        weighted = arb_mat([[w * x for x in row] for w, row in zip(self.weights, A, strict=True)])
        K = (weighted.transpose() * arb_mat(A)).tolist()
        ridge = [[x + self.alpha * (i == j) for j, x in enumerate(row)] for i, row in enumerate(K)]
        self.scaled = arb_mat(ridge).solve(weighted.transpose() * arb_mat(b)).tolist()
        self.coef = [[x / s for x in row] for row, s in zip(self.scaled, self.scale, strict=True)]
        self.intercept = [
            t - total(m * row[k] for m, row in zip(mean, self.coef, strict=True))
            for k, t in enumerate(target_mean)
        ]

    def _sum(self, values):
        return total(w * x for w, x in zip(self.weights, values, strict=True))

    def floats(self):
        """The coefficients, of shape (n_features, n_targets), and intercepts, rounded."""
        coef = np.array([[float(x.mid()) for x in row] for row in self.coef])
        return coef, np.array([float(x.mid()) for x in self.intercept])

    def differences(self, rows, coef, intercept):
        """Predictions of a model less those of exact ridge, for each row and target."""
        rows, coef, intercept = balls(rows), balls(coef), balls(intercept)
        off = [
            [x - t for x, t in zip(row, true, strict=True)]
            for row, true in zip(coef, self.coef, strict=True)
        ]
        return [
            [
                total(x * y[k] for x, y in zip(row, off, strict=True)) + b - self.intercept[k]
                for k, b in enumerate(intercept)
            ]
            for row in rows
        ]

    def errors(self, coef, intercept):
        """For each target ‖x̂ − x‖, ‖x‖ and the energy that `Certificate` defines."""
        found = []
        apart = columns(self.differences(self.rows, coef, intercept))
        for k, column in enumerate(columns(balls(coef))):
            off = [x * s - t[k] for x, s, t in zip(column, self.scale, self.scaled, strict=True)]
            squares = self._sum([x * x for x in apart[k]]) + self.alpha * total(x * x for x in off)
            found.append((length(off), length(columns(self.scaled)[k]), squares.upper().sqrt()))
        return found

    def assert_bounded(self, proof, coef, intercept, new):
        """Compare all bounds of a certificate for several targets with what they bound."""
        for k, (off, size, energy) in enumerate(self.errors(coef, intercept)):
            assert within(off, proof.coef_bound[k]), (k, off, proof.coef_bound[k])
            relative = proof.relative[k]
            assert relative == np.inf or bool(off <= balls(relative) * size), (k, relative)
            assert within(energy, proof.energy_bound[k]), (k, energy, proof.energy_bound[k])
        bounds = proof.prediction_bound(new)
        assert not np.isnan(bounds).any()
        dense = new.toarray() if hasattr(new, "toarray") else new
        exact = self.differences(dense, coef, intercept)
        for row, bound in zip(exact, bounds, strict=True):
            for one, least in zip(row, bound, strict=True):
                assert within(abs(one), least), (one, least)
