"""Exact ridge of the rows as given, in ball arithmetic: each number comes with a bound.

Floats are taken as they are, so there is no rounding but that of the balls, which know theirs.
A comparison is repeated with more bits until the balls settle it. There is no slack: a bound is
false if it is certainly below the truth.
"""

from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat, ctx

# Bits to try in turn: most comparisons need the first, alphas of 1e-300 the last.
BITS = (320, 1280, 5120)


@dataclass(frozen=True)
class Answer:
    """What is to be judged: coefficients and intercepts with their bounds, each a row a target.

    ``rows`` are asked to be predicted, ``predictions`` and ``prediction_bounds`` have shape
    (n_rows, n_targets). Bounds may be None where nothing is claimed.
    """

    alpha: float
    coefs: np.ndarray
    intercepts: np.ndarray
    scale: np.ndarray | None
    coef_bounds: np.ndarray
    relative_bounds: np.ndarray
    energy_bounds: np.ndarray | None = None
    rows: np.ndarray | None = None
    predictions: np.ndarray | None = None
    prediction_bounds: np.ndarray | None = None


class Exact:
    """Ridge on rows, targets and weights.

    In original units it solves (C + alpha·diag(s²))w = c, with C and c of the centred rows and s
    what the columns are divided by. Variances are rational where deviations are not.

    Parameters
    ----------
    X, y, weights : ndarray of shape (n, d), (n, t), (n,) or None
        Float64 that holds the numbers as they were given.
    centred : bool
        Whether there is an intercept.
    scale : ndarray of shape (d,), "deviations" or None
        What columns are divided by.
    constant : ndarray of bool of shape (d,), optional
        Columns that are not divided by their deviation.
    """

    def __init__(self, X, y, weights=None, *, centred, scale=None, constant=None):
        present = slice(None) if weights is None else weights > 0
        self.X, self.y = X[present], y[present]
        self.weights = None if weights is None else weights[present]
        self.centred, self.scale = centred, scale
        self.constant = np.zeros(X.shape[1], bool) if constant is None else constant
        self._sums = {}

    def deviations(self):
        """Return mean and standard deviation of each column as the nearest floats, roughly."""
        ctx.prec = BITS[-1]
        sums = self._at(BITS[-1])
        roots = [float(one.mid().nonnegative_part().sqrt()) for one in sums.variances]
        return np.array([float(one) for one in sums.means[: self.X.shape[1]]]), np.array(roots)

    def judge(self, answer):
        """Yield (what, verdict, how far) for every bound; the verdict None means that it is open.

        How far is the truth over the bound, as text.
        """
        settled = {}
        for bits in BITS:
            ctx.prec = bits
            try:
                found = self._compared(answer, bits)
            except ZeroDivisionError:  # singular as far as these bits show
                continue
            for what, truth, bound in found:
                if settled.get(what, (None,))[0] is None:
                    settled[what] = _verdict(truth, bound)
            if all(verdict is not None for verdict, _ in settled.values()):
                break
        return [(what, *found) for what, found in settled.items()]

    def _at(self, bits):
        if bits not in self._sums:
            self._sums[bits] = _Sums.of(self)
        return self._sums[bits]

    def _compared(self, answer, bits):
        """Return (what, truth², bound²) for every bound that is finite."""
        sums, (n_targets, d) = self._at(bits), answer.coefs.shape
        exact = sums.solve(answer.alpha)
        given = arb_mat(answer.coefs.T.tolist())
        off = given - exact
        squares, deviations = sums.squares, sums.deviations
        scale = [arb(1)] * d if answer.scale is None else [arb(s) for s in answer.scale.tolist()]
        curved = sums.gram * off
        found = []
        for k in range(n_targets):
            error, size, energy = arb(0), arb(0), arb(0)
            for j in range(d):
                gap = given[j, k] * scale[j] - exact[j, k] * deviations[j]
                error += gap * gap
                size += exact[j, k] * exact[j, k] * squares[j]
                energy += off[j, k] * curved[j, k]
            energy += answer.alpha * error
            _add(found, f"coef_bound of target {k}", error, answer.coef_bounds[k])
            _add(found, f"relative of target {k}", error, answer.relative_bounds[k], size)
            if answer.energy_bounds is not None:
                energy += sums.of_intercept(answer.intercepts[k], given, off, k)
                _add(found, f"energy_bound of target {k}", energy, answer.energy_bounds[k])
        if answer.rows is not None:
            rows = arb_mat(answer.rows.tolist())
            predicted = rows * exact
            for i, k in np.ndindex(answer.predictions.shape):
                truth = predicted[i, k] + sums.intercept(exact, k)
                value = float(answer.predictions[i, k])
                if not np.isfinite(value):
                    continue  # the caller has looked at it
                gap = arb(value) - truth
                what = f"prediction_bound of row {i}, target {k}"
                _add(found, what, gap * gap, answer.prediction_bounds[i, k])
        return found

    def predictions(self, alpha, rows):
        """Return the exact predictions as floats; None if there is no solution."""
        found = self._solved(alpha)
        if found is None:
            return None
        sums, exact = found
        predicted, shape = arb_mat(rows.tolist()) * exact, (len(rows), sums.t)
        offsets = [sums.intercept(exact, k) for k in range(sums.t)]
        values = [float(predicted[i, k] + offsets[k]) for i, k in np.ndindex(shape)]
        return np.reshape(values, shape)

    def solution(self, alpha):
        """Return the nearest floats to coefficients (t, d) and intercepts; None without any."""
        found = self._solved(alpha)
        if found is None:
            return None
        sums, exact = found
        coefs = [[float(exact[j, k]) for j in range(sums.d)] for k in range(sums.t)]
        return np.array(coefs), np.array([float(sums.intercept(exact, k)) for k in range(sums.t)])

    def _solved(self, alpha):
        for bits in BITS:
            ctx.prec = bits
            try:
                return self._at(bits), self._at(bits).solve(alpha)
            except ZeroDivisionError:  # singular as far as these bits show
                continue
        return None


class _Sums:
    """Sums over the rows at one precision, and solutions by alpha."""

    @classmethod
    def of(cls, exact):
        self = cls()
        n, d = exact.X.shape
        table = np.hstack([exact.X, exact.y])
        width = table.shape[1]
        rows = arb_mat(n, width, table.ravel().tolist())
        weighted, weight = rows, arb(n)
        by_row = arb_mat(1, n, [1] * n)
        if exact.weights is not None:
            by_row = arb_mat(1, n, exact.weights.tolist())
            factors = by_row.entries()
            entries = rows.entries()
            weighted = arb_mat(n, width, [factors[i // width] * e for i, e in enumerate(entries)])
            weight = sum(factors, arb(0))
        gram = rows.transpose() * weighted
        total = by_row * rows
        self.d, self.t, self.centred, self.weight = d, width - d, exact.centred, weight
        self.means = [total[0, j] / weight for j in range(width)]
        if exact.centred:
            gram = gram - total.transpose() * total / weight
        self.gram = arb_mat(d, d, [gram[i, j] for i in range(d) for j in range(d)])
        self.cross = arb_mat(d, self.t, [gram[i, d + k] for i in range(d) for k in range(self.t)])
        self.variances = [gram[j, j] / weight for j in range(d)]
        if exact.scale is None:
            self.squares = [arb(1)] * d
            self.deviations = self.squares
        elif isinstance(exact.scale, str):
            constant = exact.constant
            self.squares = [arb(1) if constant[j] else self.variances[j] for j in range(d)]
            self.deviations = [one.nonnegative_part().sqrt() for one in self.squares]
        else:
            self.deviations = [arb(float(s)) for s in exact.scale]
            self.squares = [s * s for s in self.deviations]
        self.solutions = {}
        return self

    def solve(self, alpha):
        """Return coefficients in original units, of shape (d, t)."""
        if alpha not in self.solutions:
            matrix = arb_mat(self.gram)
            for j in range(self.d):
                matrix[j, j] += arb(alpha) * self.squares[j]
            self.solutions[alpha] = matrix.solve(self.cross)
        return self.solutions[alpha]

    def of_intercept(self, intercept, coefs, off, k):
        """Return what the intercept's error adds to the squares of all predictions' errors."""
        if self.centred:
            away = arb(float(intercept)) - self.intercept(coefs, k)
            return self.weight * away * away
        moved, given = arb(0), arb(float(intercept))
        for j in range(self.d):
            moved += self.means[j] * off[j, k]
        return self.weight * given * (2 * moved + given)

    def intercept(self, coefs, k):
        """Return the intercept that goes with coefficients."""
        if not self.centred:
            return arb(0)
        found = self.means[self.d + k]
        for j in range(self.d):
            found = found - self.means[j] * coefs[j, k]
        return found


def _add(found, what, truth, bound, unit=1):
    if np.isfinite(bound):
        found.append((what, truth, arb(float(bound)) ** 2 * unit))


def _verdict(truth, bound):
    """Compare squares: whether the bound holds, and the truth over the bound as text."""
    if truth <= bound:
        return True, ""
    if truth > bound:
        size = f"{truth.sqrt().str(3, radius=False)}, certified {bound.sqrt().str(3, radius=False)}"
        if bound > 0:
            excess = (truth / bound).sqrt() - 1
            size += f", exceeded by {excess.str(2, radius=False)}"
        return False, size
    return None, ""
