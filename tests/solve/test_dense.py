import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ridgepass import RidgeStream
from ridgepass.sketch import Dense
from ridgepass.solve import dense, factorise


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((700, 30)) * np.exp(-np.arange(30) / 8)
    return A, A @ rng.standard_normal((30, 2)) + rng.standard_normal((700, 2))


@pytest.mark.parametrize("n_alphas", [1, 3, dense.MANY_ALPHAS + 1])
def test_exact_agrees_with_scikit_learn(data, n_alphas):
    A, b = data
    alphas = np.geomspace(1e-2, 1e4, n_alphas)
    coefs = RidgeStream("exact").update(A, b).solve(alphas)
    for alpha, coef in zip(alphas, coefs, strict=True):
        expected = Ridge(alpha=alpha, fit_intercept=False).fit(A, b).coef_.T
        assert np.linalg.norm(coef - expected) <= 1e-10 * np.linalg.norm(expected)


def test_alpha_zero_is_least_squares_when_there_is_one(data):
    A, b = data
    expected = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(RidgeStream("exact").update(A, b).solve(0.0), expected, rtol=1e-6)


@pytest.mark.parametrize("n_alphas", [1, dense.MANY_ALPHAS + 1])
def test_alpha_zero_on_dependent_columns_says_what_to_do(n_alphas):
    matrix = np.zeros((3, 3), order="F")
    solver = factorise(Dense(matrix, np.empty((0, 3)), 0.0, 0.0), np.ones((3, 1)))
    with pytest.raises(ValueError, match="linearly dependent"):
        solver.solve([0.0] * n_alphas)


def test_the_error_of_a_wrong_solution_is_seen(data):
    A, b = data
    matrix = np.asfortranarray(np.tril(A[:600].T @ A[:600]))
    solver = factorise(Dense(matrix, A[600:], 0.0, float(np.vdot(A, A))), A.T @ b)
    (coef,) = solver.solve([3.0])
    expected = np.linalg.solve(A.T @ A + 3.0 * np.eye(30), A.T @ b)
    assert (np.linalg.norm(coef - expected, axis=0) <= solver.error_norms(3.0, coef)).all()
    assert (solver.error_norms(3.0, coef) < 1e-8).all()
    assert (solver.error_norms(3.0, coef + 1e-3) >= 1e-3 * np.sqrt(30)).all()
