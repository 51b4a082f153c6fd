"""What goes in without a copy, and how errors say where something is wrong."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from estimator_data import regression
from ridgepass.estimators import StreamingRidge
from ridgepass.estimators.inputs import check_names, check_rows, check_targets, check_weights


class Model:
    """Something to name in errors."""


MODEL = Model()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floats_are_not_copied(dtype, order):
    X = np.ones((5, 4), dtype=dtype, order=order)
    X.flags.writeable = False
    assert check_rows(MODEL, X)[0] is X or np.shares_memory(check_rows(MODEL, X)[0], X)
    assert np.shares_memory(check_rows(MODEL, X[::2, 1:])[0], X)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_rows_are_not_copied(kind):
    X = kind(np.eye(4))
    rows, _ = check_rows(MODEL, X)
    assert np.shares_memory(rows.data, X.data)
    assert rows.format == X.format


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.lil_array, sparse.dok_array])
def test_other_sparse_formats_become_rows(kind):
    assert check_rows(MODEL, kind(np.eye(4)))[0].format == "csr"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("f2", "f4"),
        (">f4", "f4"),
        (">f8", "f8"),
        ("i8", "f8"),
        ("u1", "f8"),
        ("?", "f8"),
        ("O", "f8"),
        (np.longdouble, "f8"),
    ],
)
def test_other_numbers_become_floats(given, wanted):
    rows, _ = check_rows(MODEL, np.ones((3, 2)).astype(given))
    assert rows.dtype == np.dtype(wanted)
    assert rows.dtype.isnative


def test_float32_stays_float32_in_the_model():
    X, y = regression(n_features=40, dtype=np.float32)
    sizes = []
    for dtype in (None, "float64"):
        model = StreamingRidge(method="fd", sketch_size=8, dtype=dtype, probes=0).fit(X, y)
        sizes.append(model._learned.stream.nbytes)
    assert sizes[0] < 0.6 * sizes[1]
    model = StreamingRidge(method="fd", sketch_size=8, probes=0).partial_fit(X, y)
    model.partial_fit(X.astype(float), y)
    assert model._learned.stream.nbytes == sizes[0]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 200_000), (200_000, 1), (300, 700)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_place_of_a_bad_number(order, shape, value):
    X = np.ones(shape, order=order)
    row, column = shape[0] * 2 // 3, shape[1] * 2 // 3
    X[row, column] = value
    found = "NaN" if np.isnan(value) else "infinity"
    message = f"X contains {found} in row {row}, column {column} of this batch"
    with pytest.raises(ValueError, match=message):
        check_rows(MODEL, X)
    with pytest.raises(ValueError, match=message):
        check_rows(MODEL, X.astype(np.float32))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_the_place_of_a_bad_number_among_zeros(kind):
    X = np.diag([1.0, 2.0, np.nan, 3.0])[:, [2, 0, 3, 1]]
    X[3, 0] = 5.0
    with pytest.raises(ValueError, match="X contains NaN in row 2, column 0 of this batch"):
        check_rows(MODEL, kind(X))


def test_large_numbers_are_no_infinities():
    for dtype, value in ((np.float32, 1e38), (np.float64, 1e300)):
        rows, _ = check_rows(MODEL, np.full((3, 3), value, dtype))
        assert rows.dtype == dtype


def test_the_column_is_named():
    table = pd.DataFrame({"size": [1.0, 2.0], "age": [3.0, np.nan]})
    message = "X contains NaN in row 1, column 'age' of this batch: drop such rows or fill them in"
    with pytest.raises(ValueError, match=message):
        check_rows(MODEL, table)
    names = np.array(["size", "age"], dtype=object)
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(ValueError, match="column 'age'"),
    ):
        check_rows(MODEL, table.to_numpy(), 2, names)


def test_targets_and_weights_of_many_kinds():
    wanted = np.array([1.0, 2.0])
    for given in ([1, 2], (1.0, 2.0), pd.Series([1, 2]), np.float32([1, 2]), wanted):
        np.testing.assert_array_equal(check_targets(given, 2), wanted)
        np.testing.assert_array_equal(check_weights(given, 2), wanted)
    assert check_targets(pd.DataFrame({"a": [1, 2], "b": [3, 4]}), 2).shape == (2, 2)
    with pytest.raises(ValueError, match="y contains infinity in row 1, target 0 of this batch"):
        check_targets([[1.0, 2.0], [np.inf, 3.0]], 2)
    with pytest.raises(ValueError, match=r"column 'b' \(.*\) is not numbers"):
        check_targets(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), 2)


def test_many_names_are_not_all_listed():
    known = np.array([f"x{i}" for i in range(9)], dtype=object)
    with pytest.raises(ValueError, match=re.escape("- z0\n- z1\n- z2\n- z3\n- z4\n- ...\n")):
        check_names("Model", known, np.array([f"z{i}" for i in range(9)], dtype=object))
