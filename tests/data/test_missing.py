import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from plain_reading import dense, read_all
from scipy import sparse
from sklearn.impute import SimpleImputer

from ridgepass.data.missing import ColumnMeans, Place, as_policy, check_not_infinite, filled
from ridgepass.data.opening import open_source

LABEL = "abcdef".__getitem__


def make_table(n_rows=400, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n_rows, 5)).astype(dtype), columns=list("abcde"))
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame["e"] = np.full(n_rows, np.nan, dtype)  # not one value
    frame["y"] = rng.standard_normal(n_rows)
    return frame


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch_rows", [1, 7, None])
def test_mean_is_that_of_simple_imputer(dtype, batch_rows):
    frame = make_table(dtype=dtype)
    found = read_all(open_source(frame, target="y", nulls="mean"), batch_rows=batch_rows)
    imputer = SimpleImputer(keep_empty_features=True)
    wanted = imputer.fit_transform(frame.drop(columns="y").astype(np.float64))
    assert found.X.dtype == dtype
    np.testing.assert_allclose(found.X, wanted, rtol=1e-6 if dtype == np.float32 else 1e-12)


def test_zero_and_drop_are_those_of_pandas():
    frame = make_table()
    zero = read_all(open_source(frame, target="y", nulls="zero"))
    np.testing.assert_array_equal(zero.X, frame.drop(columns="y").fillna(0.0))
    frame = frame.drop(columns="e")
    frame.loc[[3, 50], "y"] = np.nan
    frame["w"] = np.where(np.arange(len(frame)) % 9, 1.0, np.nan)
    source = open_source(frame, target="y", weight="w", nulls="drop")
    kept = frame.dropna()
    for batch_rows in (1, 10, None):
        found = read_all(source, batch_rows=batch_rows)
        np.testing.assert_array_equal(found.X, kept[list("abcd")])
        np.testing.assert_array_equal(found.y, kept["y"])
        np.testing.assert_array_equal(found.weights, kept["w"])
        assert found.n_read == len(frame)
    chunk = next(source.chunks())
    np.testing.assert_array_equal(chunk.present, frame.notna().all(axis=1))


def test_a_chunk_of_which_nothing_is_left():
    table = pa.table({"a": [1.0, None, None, 4.0], "y": [1.0, 2.0, 3.0, 4.0]})
    found = read_all(open_source(table, target="y", nulls="drop"), batch_rows=2)
    assert found.sizes == [1, 1]
    found = read_all(open_source(table.slice(1, 2), target="y", nulls="drop"), batch_rows=1)
    assert found.sizes == [0, 0]
    assert found.X.shape == (0, 1)


@pytest.mark.parametrize("nulls", ["drop", "zero", "mean"])
def test_infinity_is_never_filled_in_and_its_row_is_named(nulls):
    table = pa.table({"a": [1.0, None, None, np.inf], "b": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match="column 'a' is infinite in row 4 of the pyarrow Table"):
        read_all(open_source(table, nulls=nulls))


def test_rows_are_named_as_they_are_in_the_file_after_dropping():
    table = pa.table({"a": [None, 1.0, None, 2.0], "y": [1.0] * 4, "w": [1.0, 1.0, 1.0, -2.0]})
    with pytest.raises(ValueError, match="column 'w' has the weight -2 in row 4 of"):
        read_all(open_source(table, target="y", weight="w", nulls="drop"))
    table = pa.table({"a": [None, 1.0, None, 2.0], "y": [1.0, 1.0, 1.0, np.inf]})
    with pytest.raises(ValueError, match="column 'y' is infinite in row 4 of"):
        read_all(open_source(table, target="y", nulls="drop"))


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"x": [1.0, None]}, r"column 'x' has no value in row 2 of .*: fill it in, .*drop, zero"),
        ({"x": [1.0, np.nan]}, r"column 'x' has no value in row 2"),
        ({"x": [[1.0, 2.0], [1.0, None]]}, r"column 'x\[1\]' has no value in row 2"),
        ({"x": [[1.0, 2.0], None]}, r"column 'x\[0\]' has no value in row 2"),
        ({"c": ["p", None]}, r"column 'c' has no value in row 2"),
    ],
)
def test_nulls_are_errors_by_default(columns, what):
    table = pa.table({**columns, "y": [1.0, 2.0]})
    one_hot = [name for name in columns if name == "c"]
    with pytest.raises(ValueError, match=what):
        read_all(open_source(table, target="y", one_hot=one_hot))


@pytest.mark.parametrize("nulls", ["error", "zero", "mean"])
@pytest.mark.parametrize("bad", ["y", "w"])
def test_targets_and_weights_are_never_filled_in(nulls, bad):
    values = {"x": [1.0, 2.0], "y": [1.0, 2.0], "w": [1.0, 1.0], bad: [1.0, None]}
    with pytest.raises(ValueError, match=f"column '{bad}' has no value in row 2 of .*: drop"):
        read_all(open_source(pa.table(values), target="y", weight="w", nulls=nulls))


@pytest.mark.parametrize("n_categories", [3, 40])
def test_no_category_is_all_zeros_when_filled(n_categories):
    names = [f"k{i}" for i in range(n_categories)]
    table = pa.table({"c": [*names, None], "x": [*map(float, range(n_categories)), None]})
    source = open_source(table, one_hot="c", nulls="mean")
    assert source.columns.is_sparse == (n_categories == 40)
    found = read_all(source).X
    np.testing.assert_array_equal(found[-1, :-1], 0.0)
    assert found[-1, -1] == pytest.approx((n_categories - 1) / 2)
    np.testing.assert_array_equal(read_all(open_source(table, one_hot="c", nulls="zero")).X[-1], 0)
    dropped = read_all(open_source(table, one_hot="c", nulls="drop"))
    assert dropped.X.shape[0] == n_categories


def test_sparse_and_dense_agree():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((30, 6)) * (rng.random((30, 6)) < 0.3)
    rows[rng.random((30, 6)) < 0.1] = np.nan
    both = rows, sparse.csr_array(rows)
    means = []
    for X in both:
        counted = ColumnMeans(6)
        counted.update(X[:11])
        counted.update(X[11:])
        means.append(counted.values)
        np.testing.assert_allclose(counted.values, np.nanmean(rows, axis=0))
    one, other = (dense(filled(X, by)) for X, by in zip(both, means, strict=True))
    np.testing.assert_allclose(one, other)
    rows[7, 2] = -np.inf
    for X in (rows, sparse.csr_array(rows)):
        with pytest.raises(ValueError, match="column 'c' is infinite in row 108 of f"):
            check_not_infinite(X, LABEL, Place("f", 100))


def test_policies():
    with pytest.raises(ValueError, match="nulls='median' is unknown: choose one of error, drop"):
        as_policy("median")
