import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

from ridgepass import data


@pytest.fixture
def path(tmp_path):
    table = pa.table({"a": np.arange(100.0), "y": np.arange(100.0) * 2, "w": np.ones(100)})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


def test_batches_are_arguments_of_partial_fit(path):
    rows = data.batches(path, target="y", weight="w", batch_rows=30)
    assert repr(rows) == "Batches(n_features=1, n_rows=100)"
    assert rows.feature_names == ["a"]
    for _ in range(2):
        sizes = []
        for X, y, weights in rows:
            np.testing.assert_array_equal(y, 2 * X[:, 0])
            np.testing.assert_array_equal(weights, 1.0)
            sizes.append(len(X))
        assert sizes == [30, 30, 30, 10]


def test_without_targets_and_weights(path):
    (batch,) = data.batches(path)
    assert batch.X.shape == (100, 3)
    assert batch.y is None
    assert batch.sample_weight is None


def test_batches_of_which_nothing_is_left_are_not_given_out():
    table = pa.table({"a": [None, None, 1.0]})
    (batch,) = data.batches(table, nulls="drop", batch_rows=1)
    assert batch.X.tolist() == [[1]]


def test_mostly_categories_come_sparse():
    words = [f"k{i}" for i in range(50)]
    (batch,) = data.batches(pa.table({"c": words, "x": range(50)}), one_hot=["c"])
    assert sparse.issparse(batch.X)
    np.testing.assert_array_equal(batch.X.toarray()[:, -1], range(50))


def test_leaving_early_leaves_no_thread(path):
    for _ in data.batches(path, batch_rows=1):
        break
    assert not [t for t in threading.enumerate() if t.name == "ridgepass-reader"]


def test_a_stream_cannot_be_read_twice():
    rows = data.batches(pa.table({"a": [1.0]}).to_reader())
    assert len(list(rows)) == 1
    with pytest.raises(ValueError, match="can be read only once: open it again"):
        list(rows)


def test_batch_sizes_are_checked_at_once(path):
    with pytest.raises(ValueError, match="batch_rows=0 is no number of rows"):
        data.batches(path, batch_rows=0)
