import numpy as np
import pytest

from experiments import published
from ridgepass import RidgeStream

ALPHA = 3.0


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((150, 40)) / (1 + np.arange(40)) ** 0.5
    return A, A @ rng.standard_normal(40) + rng.standard_normal(150)


@pytest.fixture
def exact(data):
    A, b = data
    return np.linalg.solve(A.T @ A + ALPHA * np.eye(40), A.T @ b)


def test_row_by_row_is_exact_ridge(data, exact):
    np.testing.assert_allclose(published.RowByRow(*data).solve(ALPHA), exact)


@pytest.mark.parametrize("size", [2, 8, 50])
def test_stacked_svd_is_what_ridgepass_computes(data, size):
    plain = published.StackedSVD(*data, size)
    fd = RidgeStream("fd", sketch_size=size).update(*data)
    rfd = RidgeStream("rfd", sketch_size=size).update(*data)
    np.testing.assert_allclose(plain.solve(ALPHA), fd.solve(ALPHA), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        plain.solve(ALPHA + plain.shift), rfd.solve(ALPHA), rtol=1e-9, atol=1e-9
    )


def test_two_levels_are_exact_where_nothing_is_removed(data, exact):
    np.testing.assert_allclose(published.TwoLevels(*data, 100).solve(ALPHA), exact)


def test_two_levels_sample_what_the_first_removes(data):
    A, b = data
    mean = np.zeros((40, 40))
    for seed in range(300):
        two = published.TwoLevels(A[:24], b[:24], 16, seed)  # the second level has not shrunk
        rows = two.sigma[:, None] * two.Vt
        sampled = np.vstack([two.sampled_sigma[:, None] * two.sampled_Vt, two.waiting])
        mean += (rows.T @ rows + sampled.T @ sampled) / 300
    K = A[:24].T @ A[:24]
    first = published.StackedSVD(A[:24], b[:24], 8)
    lost = np.linalg.norm(K - (first.Vt.T * first.sigma**2) @ first.Vt)
    assert np.linalg.norm(K - mean) < lost / 3


@pytest.mark.parametrize("kind", [published.Signs, published.Counts])
def test_projections_preserve_products_on_average(kind, data):
    A, b = data
    sketches = [kind(A, b, 30, seed) for seed in range(800)]
    products = np.mean([sketch.C.T @ sketch.C for sketch in sketches], axis=0)
    crosses = np.mean([sketch.C.T @ sketch.targets for sketch in sketches], axis=0)
    for mean, goal in ((products, A.T @ A), (crosses, A.T @ b)):
        assert np.linalg.norm(mean - goal) < 0.1 * np.linalg.norm(goal)


@pytest.mark.parametrize("kind", [published.Signs, published.Counts])
@pytest.mark.parametrize("size", [10, 40, 90])
def test_the_quick_solution_is_that_of_the_inverse(kind, size, data):
    sketch = kind(*data, size, seed=1)
    np.testing.assert_allclose(sketch.solve_quickly(ALPHA), sketch.solve(ALPHA), rtol=1e-8)
