import datetime
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from plain_reading import read_all

from ridgepass.data import choosing, columns
from ridgepass.data.opening import open_source


def write(path, **columns):
    pa.parquet.write_table(pa.table(columns), path)
    return path


NOW = datetime.datetime(2020, 1, 1)
STRANGE = {
    "a timestamp": (pa.array([NOW]), "of type timestamp.*one_hot"),
    "a date": (pa.array([NOW.date()]), "of type date32.*one_hot"),
    "binary": (pa.array([b"x"]), "of type binary, not numbers: leave it out"),
    "a struct": (pa.array([{"p": 1}]), "of type struct.*, not numbers: leave it out"),
    "lists of text": (pa.array([["x"]]), "of type list.*string.*, not numbers: leave it out"),
    "text": (pa.array(["Bonn"]), r"text \('Bonn' in row 1\), not numbers: .*--one-hot c\), or"),
    "a category": (pa.array(["x"]).dictionary_encode(), "text .*--exclude c"),
    "a word among numbers": (pa.array(["1", None, "-2e5", "n/a"]), r"text \('n/a' in row 4\)"),
    "numbers as text": (pa.array(["1", "2"]), "text, not numbers"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_columns_that_are_no_numbers(tmp_path, kind):
    column, what = STRANGE[kind]
    path = write(tmp_path / "f.parquet", a=pa.array([1.0] * len(column)), c=column)
    with pytest.raises(ValueError, match=rf"column 'c' of .*f\.parquet is {what}"):
        open_source(path)
    with pytest.raises(ValueError, match=r"column 'c' of .*: targets and weights must be numbers"):
        open_source(path, target="c")
    assert open_source(path, exclude="c").feature_names == ["a"]


@pytest.mark.parametrize("kind", ["binary", "a struct", "lists of text"])
def test_what_has_no_categories(tmp_path, kind):
    path = write(tmp_path / "f.parquet", a=[1.0], c=STRANGE[kind][0])
    with pytest.raises(
        ValueError, match=r"column 'c' of .* is of type .*, which has no categories"
    ):
        open_source(path, one_hot="c")


def test_dates_and_whole_numbers_can_be_categories(tmp_path):
    path = write(tmp_path / "f.parquet", d=pa.array([NOW.date()]), i=[3], b=[True])
    names = open_source(path, one_hot=["d", "i", "b"]).feature_names
    assert names == ["d=2020-01-01", "i=3", "b=true"]


def test_one_hot_of_what_is_not_there_or_no_feature(tmp_path):
    path = write(tmp_path / "f.parquet", city=["a"], x=[1.0], y=[1.0])
    with pytest.raises(ValueError, match=r"has no column 'City': did you mean 'city'\?"):
        open_source(path, one_hot="City", target="y")
    with pytest.raises(ValueError, match=r"what is left of .* for features has no column 'city'"):
        open_source(path, one_hot="city", features="x")
    with pytest.raises(ValueError, match="is given a category twice"):
        open_source(path, one_hot={"city": ["a", "a"]})
    empty = write(tmp_path / "g.parquet", city=pa.array([None], pa.string()), x=[1.0])
    with pytest.raises(ValueError, match="column 'city' has no value, so no category"):
        open_source(empty, one_hot="city")


def test_categories_of_all_files_in_order(tmp_path):
    write(tmp_path / "1.parquet", c=pa.array(["b", None]).dictionary_encode(), x=[1.0, 2.0])
    write(tmp_path / "2.parquet", c=["a", "b"], x=[1.0, 2.0])
    write(tmp_path / "3.parquet", c=pa.array(["c", None], pa.string_view()), x=[1.0, 2.0])
    source = open_source(tmp_path, one_hot="c", nulls="zero")
    assert source.feature_names == ["c=a", "c=b", "c=c", "x"]
    assert read_all(source).unknown == 0


def test_files_that_differ_in_ways_that_do_not_matter(tmp_path):
    write(tmp_path / "1.parquet", a=[1, 2], b=[0.5, 1.5], t=["x", "y"])
    write(
        tmp_path / "2.parquet",
        t=["x"],
        b=pa.array([2], pa.int8()),
        a=pa.array([0.25], pa.float32()),
    )
    write(tmp_path / "3.parquet", b=pa.array([None], pa.float64()), a=[True], t=pa.array([1]))
    source = open_source(tmp_path, exclude="t", nulls="zero")
    assert source.feature_names == ["a", "b"]
    assert read_all(source).X.tolist() == [[1, 0.5], [2, 1.5], [0.25, 2], [1, 0]]


def test_files_that_differ_in_ways_that_do(tmp_path):
    write(tmp_path / "1.parquet", a=[1.0], price=[1.0])
    write(tmp_path / "2.parquet", a=[1.0], Price=[1.0])
    with pytest.raises(ValueError, match=r"2\.parquet has no column 'price': did you mean 'Price'"):
        open_source(tmp_path, target="price")
    write(tmp_path / "2.parquet", price=[1.0], b=[2.0])
    with pytest.raises(ValueError, match=r"2\.parquet has no column 'a'"):
        open_source(tmp_path, target="price")
    write(tmp_path / "2.parquet", price=[1.0], a=[2.0], b=[2.0])
    with pytest.raises(
        ValueError, match=r"2\.parquet has a column 'b' that .*1\.parquet has not: .*--exclude b"
    ):
        open_source(tmp_path, target="price")
    assert open_source(tmp_path, target="price", features="a").feature_names == ["a"]
    write(tmp_path / "2.parquet", price=[1.0], a=[[2.0]])
    with pytest.raises(ValueError, match=r"'a' is a number in .*1\.parquet and a list in .*2\.par"):
        open_source(tmp_path, target="price")
    write(tmp_path / "2.parquet", price=[1.0], a=["x"])
    with pytest.raises(ValueError, match=r"column 'a' of .*2\.parquet is text \('x' in row 1\)"):
        open_source(tmp_path, target="price")


def test_two_columns_of_one_name(tmp_path):
    table = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["a", "b", "a"])
    pa.parquet.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(ValueError, match=r"f\.parquet has two columns 'a': rename one"):
        open_source(tmp_path)
    clash = pa.table({"e": [[1.0, 2.0]], "e[1]": [3.0]})
    with pytest.raises(ValueError, match=r"two columns 'e\[1\]': rename"):
        open_source(clash)


def test_lengths_of_lists(tmp_path):
    write(tmp_path / "1.parquet", e=pa.array([None, None], pa.list_(pa.float32())), x=[1.0, 2.0])
    write(
        tmp_path / "2.parquet",
        e=pa.array([None, [1.0, 2.0]], pa.large_list(pa.float64())),
        x=[1, 2],
    )
    write(tmp_path / "3.parquet", e=pa.array([[3.0, None]], pa.list_(pa.float64(), 2)), x=[1.0])
    source = open_source(tmp_path, exclude="x", nulls="zero")
    assert source.feature_names == ["e[0]", "e[1]"]
    assert read_all(source).X.tolist() == [[0, 0], [0, 0], [0, 0], [1, 2], [3, 0]]
    with pytest.raises(ValueError, match=r"column 'e' of .*1\.parquet has no list with a number"):
        open_source(tmp_path / "1.parquet")
    write(tmp_path / "4.parquet", e=[[1.0, 2.0], [1.0]], x=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"'e' has a list of 1 numbers in row 2 of .*4\.parquet"):
        read_all(open_source(tmp_path, nulls="zero"))


def test_precision():
    short = {
        "a": pa.array([1.0], pa.float32()),
        "b": pa.array([[np.float16(1)]], pa.list_(pa.float16())),
    }
    assert open_source(pa.table(short)).columns.dtype == "float32"
    assert open_source(pa.table({**short, "c": [1]})).columns.dtype == "float64"
    words = pa.table({**short, "c": ["x"]})
    assert open_source(words, one_hot="c").columns.dtype == "float32"
    assert open_source(words, one_hot="c", features="c").columns.dtype == "float64"


def test_many_wide_tables_alike_are_looked_at_once(tmp_path, monkeypatch):
    table = pa.table({f"x{i}": [0.0, 1.0] for i in range(5000)})
    for i in range(20):
        pa.parquet.write_table(table, tmp_path / f"{i}.parquet")
    counted = {}
    for where, name in ((columns, "_matches"), (choosing, "select"), (choosing, "_kind")):
        counted[name] = Mock(wraps=getattr(where, name))
        monkeypatch.setattr(where, name, counted[name])
    source = open_source(tmp_path, target="x7", exclude=["x1?", "x2"])
    assert source.columns.width == 5000 - 12
    assert counted["select"].call_count == 1
    assert counted["_kind"].call_count == 5000 - 12
    # Each pattern is looked for, and then applied.
    assert 5000 < counted["_matches"].call_count <= 3 * 5000
