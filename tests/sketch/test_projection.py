import numpy as np
import pytest

from ridgepass.blocks import Block
from ridgepass.sketch import CountSketch, SignProjection

F64 = np.dtype("float64")
KINDS = [SignProjection, CountSketch]


def feed(kind, A, b, sketch_size, seed=0):
    sketch = kind(A.shape[1], sketch_size, F64, seed)
    for start in range(0, len(A), sketch_size):
        block = slice(start, start + sketch_size)
        sketch.absorb(Block(A[block], b[block]))
    return sketch


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((24, 3)), rng.standard_normal((24, 1))


def assert_mean(draws, expected):
    """The mean is within 4.5 deviations of ``expected``, and 0 is far from it."""
    deviation = np.std(draws, axis=0).max() / np.sqrt(len(draws))
    assert np.abs(np.mean(draws, axis=0) - expected).max() <= 4.5 * deviation
    assert np.abs(expected).max() > 20 * deviation


@pytest.mark.parametrize("kind", KINDS)
def test_projections_preserve_products_on_average(kind, data):
    A, b = data
    sketches = [feed(kind, A, b, 6, seed) for seed in range(4000)]
    assert_mean([s.rows.T @ s.rows for s in sketches], A.T @ A)
    assert_mean([s.rows.T @ s.targets for s in sketches], A.T @ b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other_size", [4, 6, 9])
def test_merging_preserves_products_even_when_the_seeds_agree(kind, other_size, data):
    A, b = data
    products, crosses = [], []
    for seed in range(4000):
        left = feed(kind, A[:12], b[:12], 6, seed)
        left.merge(feed(kind, A[12:], b[12:], other_size, seed))
        products.append(left.rows.T @ left.rows)
        crosses.append(left.rows.T @ left.targets)
    assert_mean(products, A.T @ A)
    assert_mean(crosses, A.T @ b)


@pytest.mark.parametrize("size", [2, 7, 64, 65])
def test_sign_columns_are_signs_of_unit_norm(size):
    columns = SignProjection(3, size, F64, 5)._columns(10)
    np.testing.assert_allclose(np.abs(columns), 1 / np.sqrt(size))
    assert 0 < (columns > 0).mean() < 1


def test_count_sketch_columns_have_one_sign_each():
    columns = CountSketch(3, 8, F64, 5)._columns(200)
    assert (np.count_nonzero(columns, axis=0) == 1).all()
    assert set(np.unique(columns)) == {-1.0, 0.0, 1.0}
    assert (np.count_nonzero(columns, axis=1) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_block_uses_the_first_columns_of_the_whole_one(kind):
    sketch = kind(3, 8, F64, 5)
    np.testing.assert_array_equal(sketch._columns(5), sketch._columns(8)[:, :5])


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_seeds_are_projected_differently(kind):
    sketch, other = kind(3, 64, F64, 5), kind(3, 64, F64, 6)
    first = sketch._columns(64)
    assert not np.array_equal(first, other._columns(64))
    sketch.draws += 1
    assert not np.array_equal(first, sketch._columns(64))


@pytest.mark.parametrize("kind", KINDS)
def test_the_query_is_the_ridge_solution_of_the_projected_problem(kind, data):
    A, b = data
    sketch = feed(kind, A[:18], b[:18], 6)
    found = sketch.covariance(Block(A[18:22], b[18:22]))
    columns = sketch._columns(4)
    C = sketch.rows + columns @ A[18:22]
    rows = found.mix @ np.vstack(found.rows)
    np.testing.assert_allclose(rows.T @ rows, C.T @ C, atol=1e-12)
    np.testing.assert_allclose(found.cross, C.T @ (sketch.targets + columns @ b[18:22]), atol=1e-12)
    assert found.error == np.inf


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [None, np.array([1.0, 2.0, 0.5])])
@pytest.mark.parametrize("sketch_size", [2, 3, 8])
def test_a_query_gives_the_product_of_all_rows_whichever_side_is_longer(
    kind, columns, sketch_size, data
):
    A, b = data
    waiting = 1
    sketch = feed(kind, A[:-waiting], b[:-waiting], sketch_size)
    found = sketch.covariance(Block(A[-waiting:], b[-waiting:]), columns)
    product = found.lift(found.project(np.eye(3)))  # before its views of the sketch change
    sketch.absorb(Block(A[-waiting:], b[-waiting:]))
    C = sketch.rows if columns is None else sketch.rows * columns
    np.testing.assert_allclose(product, C.T @ C, atol=1e-12)
    np.testing.assert_allclose(found.cross, C.T @ sketch.targets, atol=1e-12)
    np.testing.assert_allclose(found.mass, np.square(C).sum())
