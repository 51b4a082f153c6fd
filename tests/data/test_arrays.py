import os
import struct
import tracemalloc

import numpy as np
import pytest
from numpy.lib import format as npy
from plain_reading import read_all

from ridgepass.data.arrays import ArrayFile
from ridgepass.data.opening import open_for_prediction, open_source

ROWS = np.arange(24.0).reshape(6, 4)


def saved(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">f4", "<f2", "i1", "<u2", ">i8", "?", "g"])
def test_every_dtype_and_order(tmp_path, order, dtype):
    array = np.asarray(ROWS % 5 if dtype != "?" else ROWS % 2, dtype, order=order)
    source = open_source(saved(tmp_path / "a.npy", array))
    short = np.dtype(dtype).kind == "f" and np.dtype(dtype).itemsize <= 4
    for batch_rows in (1, 4, 100):
        found = read_all(source, batch_rows=batch_rows).X
        assert found.dtype == (np.float32 if short else np.float64)
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, array.astype(np.float64))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version(tmp_path, version):
    with open(tmp_path / "a.npy", "wb") as file:
        npy.write_array(file, ROWS, version)
    np.testing.assert_array_equal(read_all(open_source(tmp_path)).X, ROWS)


def test_columns_by_number(tmp_path):
    path = saved(tmp_path / "a.npy", ROWS)
    found = read_all(open_source(path, target=-1, weight="0"))
    np.testing.assert_array_equal(found.X, ROWS[:, 1:3])
    np.testing.assert_array_equal(found.y, ROWS[:, 3])
    np.testing.assert_array_equal(found.weights, ROWS[:, 0])
    both = read_all(open_source(path, target=["3", "0"], exclude="-2"))
    np.testing.assert_array_equal(both.X, ROWS[:, 1:2])
    np.testing.assert_array_equal(both.y, ROWS[:, [3, 0]])
    assert read_all(open_source(path, features=["-1"])).X.tolist() == ROWS[:, 3:].tolist()
    for name in ("4", "-5", "x"):
        with pytest.raises(ValueError, match=rf"a\.npy has no column '{name}'"):
            open_source(path, target=name)


def test_one_dimension_is_one_column(tmp_path):
    assert read_all(open_source(saved(tmp_path / "a.npy", np.arange(3)))).X.tolist() == [
        [0],
        [1],
        [2],
    ]


@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 2)])
def test_targets_in_a_file_of_their_own(tmp_path, shape):
    (tmp_path / "X").mkdir()
    saved(tmp_path / "X/0.npy", ROWS)
    saved(tmp_path / "X/1.npy", ROWS[:1])
    y = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    source = open_source(tmp_path / "X", target=saved(tmp_path / "y.npy", y))
    assert source.has_targets
    assert source.n_rows == 7
    found = read_all(source, batch_rows=4)
    np.testing.assert_array_equal(found.y, y[:, 0] if shape == (7, 1) else y)
    assert found.y.dtype == np.float64
    saved(tmp_path / "y.npy", y[:-1])
    with pytest.raises(ValueError, match=r"y\.npy has 6 rows, the data has 7: give one target"):
        open_source(tmp_path / "X", target=str(tmp_path / "y.npy"))


def test_a_bad_target_in_a_file_of_several(tmp_path):
    y = np.zeros((6, 3))
    y[4, 2] = np.nan
    source = open_source(saved(tmp_path / "X.npy", ROWS), target=saved(tmp_path / "y.npy", y))
    with pytest.raises(ValueError, match=r"column 'target' has no value in row 5 of .*X\.npy"):
        read_all(source)


def test_a_bad_value_is_named_by_its_column_in_the_file(tmp_path):
    rows = ROWS.copy()
    rows[2, 3] = np.nan
    path = saved(tmp_path / "a.npy", rows)
    with pytest.raises(ValueError, match=r"column '3' has no value in row 3 of .*a\.npy"):
        read_all(open_source(path, target="0"), batch_rows=2)
    assert read_all(open_source(path, nulls="drop")).X.shape == (5, 4)


def test_files_without_rows(tmp_path):
    saved(tmp_path / "0.npy", ROWS[:0])
    saved(tmp_path / "1.npy", ROWS)
    np.testing.assert_array_equal(read_all(open_source(tmp_path)).X, ROWS)


@pytest.mark.parametrize(
    ("array", "what"),
    [
        (np.array([[1, "x"]], dtype=object), "dtype object: give a table of numbers"),
        (np.array(["a"]), "dtype <U1: give a table"),
        (np.zeros((2, 2), complex), "dtype complex128"),
        (np.zeros((2, 2), "M8[s]"), "dtype datetime64"),
        (np.zeros(3, [("a", "f8")]), "give a table"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.float64(3.0), r"shape \(\)"),
        (np.zeros((3, 0)), "has no column"),
    ],
)
def test_arrays_that_are_no_tables(tmp_path, array, what):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(ValueError, match=rf"a\.npy .*{what}"):
        open_source(tmp_path / "a.npy")


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.99])
def test_truncated_files(tmp_path, share):
    path = saved(tmp_path / "a.npy", np.ones((100, 10)))
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"a\.npy (is cut off|cannot be read as a NumPy file)"):
        open_source(path)


def test_files_of_other_widths(tmp_path):
    saved(tmp_path / "0.npy", ROWS)
    saved(tmp_path / "1.npy", ROWS[:, :3])
    with pytest.raises(
        ValueError, match=r"1\.npy has 3 columns, .*0\.npy has 4: give files of one"
    ):
        open_source(tmp_path)


def test_no_categories(tmp_path):
    with pytest.raises(ValueError, match="has numbers only: one-hot is for columns of a table"):
        open_source(saved(tmp_path / "a.npy", ROWS), one_hot="0")


def crafted(path, header, version=(1, 0), length=None):
    """Write a file with a header of one's own, and 64 bytes of numbers."""
    size = struct.pack("<H" if version == (1, 0) else "<I", length or len(header))
    path.write_bytes(b"\x93NUMPY" + bytes(version) + size + header.encode() + bytes(64))
    return path


def header(shape="(2, 4)", descr="'<f8'", by_columns=False):
    return f"{{'descr': {descr}, 'fortran_order': {by_columns}, 'shape': {shape}, }}\n"


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize(
    ("shape", "what"),
    [
        ("(0, 10000000)", "has no row: give files with rows"),
        ("(0, 4)", "has no row: give files with rows"),
        ("(1000000000000, 0)", "has no column"),
        ("(2, 1000000000000)", "is cut off"),
        ("(100000000000000000000,)", "is cut off"),
        ("(-1, 5)", r"has shape \(-1, 5\)"),
        ("(5, -1)", r"has shape \(5, -1\)"),
        ("(True, 2)", r"has shape \(True, 2\)"),
        ("-" * 9000 + "1", "cannot be read as a NumPy file"),
        ("(" + "[" * 4000 + "]" * 4000 + ")", "cannot be read as a NumPy file"),
    ],
)
def test_absurd_shapes_cost_nothing(tmp_path, shape, what, by_columns):
    path = crafted(tmp_path / "a.npy", header(shape, by_columns=by_columns))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=rf"a\.npy {what}"):
            open_source(path)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("version", "length"), [((2, 0), 2**32 - 1), ((3, 0), 10**9), ((1, 0), 65_535), ((9, 9), None)]
)
def test_absurd_headers_cost_nothing(tmp_path, version, length):
    path = crafted(tmp_path / "a.npy", header(), version, length)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"a\.npy cannot be read as a NumPy file"):
            open_source(path)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_no_row_to_predict_for(tmp_path):
    path = saved(tmp_path / "a.npy", np.empty((0, 3)))
    assert list(open_for_prediction(path, None, None, 3).chunks()) == []
    crafted(path, header("(0, 1000000000000)"))
    with pytest.raises(ValueError, match=r"has 1000000000000 columns, the model has 3 features"):
        open_for_prediction(path, None, None, 3)


@pytest.mark.parametrize("order", ["C", "F"])
def test_files_cut_off_while_they_are_read(tmp_path, order):
    rows = np.arange(40_000.0).reshape(10_000, 4)
    path = saved(tmp_path / "a.npy", np.asarray(rows, order=order))
    array = ArrayFile(str(path))
    first = array.rows(0, 5000)
    os.truncate(path, 4096)
    np.testing.assert_array_equal(first, rows[:5000])  # a map of the file would end the process
    with pytest.raises(ValueError, match=r"a\.npy was changed while it was read"):
        array.rows(5000, 10_000)
