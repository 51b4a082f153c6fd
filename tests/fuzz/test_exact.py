"""The reference itself: exact, and sharp enough to tell a bound from one a digit below it."""

from fractions import Fraction

import numpy as np
import pytest

from fuzz.exact import Answer, Exact


def fractions(values):
    return [[Fraction(x) for x in row] for row in np.atleast_2d(values).tolist()]


def by_fractions(X, y, weights, alpha, *, centred, squares):
    """Solve (XᵀWX + alpha·diag(squares))w = XᵀWy by elimination, for one target."""
    rows, (targets,) = fractions(X), fractions(y.ravel())
    (w,) = fractions(weights)
    d, total = X.shape[1], sum(w)
    mean = [sum(u * row[j] for u, row in zip(w, rows, strict=True)) / total for j in range(d)]
    middle = sum(u * t for u, t in zip(w, targets, strict=True)) / total
    if centred:
        rows = [[x - m for x, m in zip(row, mean, strict=True)] for row in rows]
        targets = [t - middle for t in targets]
    if squares is None:
        squares = [
            sum(u * row[j] ** 2 for u, row in zip(w, rows, strict=True)) / total for j in range(d)
        ]
    system = [
        [
            sum(u * row[i] * row[j] for u, row in zip(w, rows, strict=True))
            + (Fraction(alpha) * squares[i] if i == j else 0)
            for j in range(d)
        ]
        + [sum(u * row[i] * t for u, row, t in zip(w, rows, targets, strict=True))]
        for i in range(d)
    ]
    for i in range(d):
        system[i] = [x / system[i][i] for x in system[i]]
        for k in range(d):
            if k != i:
                system[k] = [
                    x - system[k][i] * z for x, z in zip(system[k], system[i], strict=True)
                ]
    coef = [row[-1] for row in system]
    return coef, middle - sum(m * c for m, c in zip(mean, coef, strict=True)) if centred else 0


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("scale", [None, "deviations", "given"])
def test_it_is_ridge_by_fractions(centred, scale):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((9, 3)) + 1e6, rng.standard_normal((9, 1))
    weights = 10.0 ** rng.uniform(-8, 8, 9)
    given = np.array([0.5, 3.0, 1e-7]) if scale == "given" else scale
    exact = Exact(X, y, weights, centred=centred, scale=given)
    squares = {
        None: [1] * 3,
        "deviations": None,
        "given": [Fraction(s) ** 2 for s in (0.5, 3, 1e-7)],
    }
    coef, intercept = by_fractions(X, y, weights, 1e-3, centred=centred, squares=squares[scale])
    coefs, intercepts = exact.solution(1e-3)
    assert coefs[0].tolist() == [float(c) for c in coef]
    assert intercepts[0] == float(intercept)


def verdicts(exact, coefs, **others):
    unknown = np.array([np.inf])
    bounds = {"coef_bounds": unknown, "relative_bounds": unknown, "energy_bounds": unknown} | others
    answer = Answer(1.0, coefs, np.zeros(1), None, **bounds)
    return [holds for _, holds, _ in exact.judge(answer)]


@pytest.mark.parametrize("name", ["coef_bounds", "relative_bounds", "energy_bounds"])
def test_a_bound_a_digit_below_the_truth_is_found(name):
    # One row of 2, y = 3 and alpha = 1: exact ridge is 6/5, and coefficients of 1 are off by 1/5.
    exact = Exact(np.array([[2.0]]), np.array([[3.0]]), centred=False)
    truth = {"coef_bounds": 0.2, "relative_bounds": 1 / 6, "energy_bounds": np.sqrt(0.2)}[name]
    above, below = np.nextafter(truth, 1), np.nextafter(truth, 0)
    coefs = np.array([[1.0]])
    assert verdicts(exact, coefs, **{name: np.array([above])}) == [True]
    assert verdicts(exact, coefs, **{name: np.array([below])}) == [False]


def test_nothing_wrong_and_nothing_claimed_is_no_failure():
    exact = Exact(np.array([[2.0]]), np.array([[0.0]]), centred=False)
    (verdict,) = verdicts(exact, np.zeros((1, 1)), coef_bounds=np.zeros(1))
    assert verdict is not False
