"""Opening once more what a model was trained on, from what it remembers of its columns."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from plain_reading import assert_same_rows, read_all

from ridgepass.data.opening import open_again, open_source

TABLE = pa.table(
    {
        "x": [1.0, 2.0, None, 6.0],
        "c": ["b", "a", "b", "a"],
        "e": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
        "y": [1.0, 2.0, 3.0, 4.0],
        "z": [0.5, 0.0, 1.5, 1.0],
        "w": [1.0, 1.0, 2.0, 0.5],
    }
)
WIDTH = 5  # x, c=a, c=b, e[0] and e[1]
OPTIONS = {"target": ["y", "z"], "weight": "w", "one_hot": "c", "nulls": "mean"}


def described_by(source):
    """What a model file keeps, once the source has been read."""
    read_all(source)
    return json.loads(json.dumps(source.describe()))


@pytest.fixture
def described():
    return described_by(open_source(TABLE, **OPTIONS))


def again(source, described, n_features):
    """Read twice, since a source to refine from must allow that."""
    opened = open_again(source, described, n_features)
    found = read_all(opened)
    assert_same_rows(found, read_all(opened))
    return found


# Tables


def test_a_table_comes_as_it_did_in_training(described, tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "a.parquet", row_group_size=2)
    pa.feather.write_feather(TABLE, str(tmp_path / "a.arrow"))
    for given in (TABLE, tmp_path / "a.parquet", [str(tmp_path / "a.arrow")]):
        found = again(given, described, WIDTH)
        assert_same_rows(found, read_all(open_source(given, **OPTIONS)))
        assert found.X[2].tolist() == [3.0, 0, 1, 5, 6]  # the mean is that of training
        assert found.y.tolist() == [[1, 0.5], [2, 0], [3, 1.5], [4, 1]]
        assert found.weights.tolist() == [1, 1, 2, 0.5]


def test_columns_may_be_in_another_order_and_more_of_them(described):
    other = TABLE.select(["w", "e", "z", "y", "c", "x"]).append_column("id", [list("pqrs")])
    assert_same_rows(again(other, described, WIDTH), again(TABLE, described, WIDTH))


def test_means_and_categories_are_not_looked_for_again(described):
    found = again(TABLE.slice(0, 3).filter([True, False, True]), described, WIDTH)
    assert found.X.tolist() == [[1, 0, 1, 1, 2], [3, 0, 1, 5, 6]]
    other = TABLE.set_column(1, "c", [["b", "a", "new", "a"]])
    found = again(other, described, WIDTH)
    assert found.unknown == 1
    assert found.X[2].tolist() == [3, 0, 0, 5, 6]


@pytest.mark.parametrize("nulls", ["error", "drop", "zero"])
def test_missing_values_are_dealt_with_as_in_training(nulls):
    options = {**OPTIONS, "nulls": nulls}
    rows = TABLE.filter([True, True, False, True]) if nulls == "error" else TABLE
    known = described_by(open_source(rows, **options))
    found = again(rows, known, WIDTH)
    assert_same_rows(found, read_all(open_source(rows, **options)))
    assert len(found.X) == (4 if nulls == "zero" else 3)
    if nulls == "error":
        with pytest.raises(ValueError, match="column 'x' has no value in row 3"):
            again(TABLE, known, WIDTH)


@pytest.mark.parametrize("end", ["csv", "csv.gz"])
def test_categories_in_csv_stay_text(tmp_path, end):
    path = tmp_path / f"a.{end}"
    frame = pd.DataFrame({"zip": ["01", "1", "01"], "x": [5, 6, 7], "y": [1.5, 2.5, 3.5]})
    frame.to_csv(path, index=False)
    known = described_by(open_source(path, target="y", one_hot="zip"))
    found = again(path, known, 3)
    assert found.X.tolist() == [[1, 0, 5], [0, 1, 6], [1, 0, 7]]
    assert found.y.tolist() == [1.5, 2.5, 3.5]
    assert found.unknown == 0


def test_short_floats_are_read_as_short_floats(tmp_path):
    table = pa.table({"e": pa.array([[0.1, 0.2]], pa.list_(pa.float32(), 2)), "y": [1.0]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    known = described_by(open_source(tmp_path / "a.parquet", target="y"))
    assert again(tmp_path / "a.parquet", known, 2).X.dtype == np.float32


def test_columns_of_directories_are_there_again(tmp_path):
    for year in (2020, 2021):
        (tmp_path / f"year={year}").mkdir()
        pa.parquet.write_table(TABLE.select(["y"]), tmp_path / f"year={year}" / "a.parquet")
    known = described_by(open_source(tmp_path, target="y"))
    found = again(tmp_path, known, 1)
    assert found.X.ravel().tolist() == [2020] * 4 + [2021] * 4


def test_what_a_table_lacks_is_named(described):
    for name in ("y", "z", "w", "x"):
        with pytest.raises(ValueError, match=f"pyarrow Table has no column '{name}': it has"):
            open_again(TABLE.drop_columns(name), described, WIDTH)
    with pytest.raises(ValueError, match="has no column 'y': did you mean 'Y'"):
        open_again(TABLE.rename_columns(["x", "c", "e", "Y", "z", "w"]), described, WIDTH)
    with pytest.raises(ValueError, match="other values than the lists that the model was trained"):
        open_again(TABLE.set_column(2, "e", [[1.0] * 4]), described, WIDTH)


def test_the_file_that_lacks_a_target_is_named(tmp_path):
    pa.parquet.write_table(TABLE.select(["x", "y"]), tmp_path / "a.parquet")
    pa.parquet.write_table(TABLE.select(["x"]), tmp_path / "b.parquet")
    known = described_by(open_source(tmp_path / "a.parquet", target="y", nulls="zero"))
    with pytest.raises(ValueError, match=r"b\.parquet has no column 'y'"):
        open_again([tmp_path / "a.parquet", tmp_path / "b.parquet"], known, 1)


@pytest.mark.parametrize("name", ["y", "w"])
def test_text_in_the_place_of_a_target_or_weight_is_named(described, name):
    text = TABLE.set_column(TABLE.schema.names.index(name), name, [list("pqrs")])
    with pytest.raises(ValueError, match=f"column '{name}' of .*: targets and weights must be"):
        read_all(open_again(text, described, WIDTH))


# Arrays


ROWS = np.arange(24.0).reshape(6, 4)


def test_an_array_has_its_columns_where_they_were(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    known = described_by(open_source(tmp_path / "a.npy", target="-1", weight="1"))
    found = again(tmp_path / "a.npy", known, 2)
    assert found.X.tolist() == ROWS[:, [0, 2]].tolist()
    assert found.y.tolist() == ROWS[:, 3].tolist()
    assert found.weights.tolist() == ROWS[:, 1].tolist()


def test_an_array_has_the_means_of_training(tmp_path):
    holes = ROWS.copy()
    holes[2, 0] = np.nan
    np.save(tmp_path / "a.npy", holes)
    known = described_by(open_source(tmp_path / "a.npy", target="3", nulls="mean"))
    np.save(tmp_path / "b.npy", holes[1:])
    assert again(tmp_path / "a.npy", known, 3).X[2, 0] == np.nanmean(holes[:, 0])
    assert again(tmp_path / "b.npy", known, 3).X[1, 0] == np.nanmean(holes[:, 0])


def test_short_floats_of_arrays(tmp_path):
    np.save(tmp_path / "a.npy", ROWS.astype(np.float32))
    known = described_by(open_source(tmp_path / "a.npy", target="0"))
    found = again(tmp_path / "a.npy", known, 3)
    assert (found.X.dtype, found.y.dtype) == (np.float32, np.float64)


def test_targets_in_a_file_of_their_own_must_be_named(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    np.save(tmp_path / "y.npy", ROWS[:, 0])
    known = described_by(open_source(tmp_path / "a.npy", target=tmp_path / "y.npy"))
    with pytest.raises(ValueError, match="the targets were in a file of their own: name it again"):
        open_again(tmp_path / "a.npy", known, 4)


@pytest.mark.parametrize("role", ["target", "weight", "feature"])
def test_an_array_too_narrow_is_refused(tmp_path, role):
    np.save(tmp_path / "a.npy", ROWS)
    named = {"target": ("3", "0"), "weight": ("0", "3"), "feature": ("0", None)}[role]
    known = described_by(open_source(tmp_path / "a.npy", target=named[0], weight=named[1]))
    np.save(tmp_path / "b.npy", ROWS[:, :3])
    with pytest.raises(ValueError, match=r"b\.npy has 3 columns"):
        read_all(open_again(tmp_path / "b.npy", known, len(known["taken"])))


# Svmlight


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_counts_features_as_in_training(tmp_path, first):
    lines = [f"1.5 {first}:2 {first + 2}:1", f"-2 {first + 1}:3"]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    known = described_by(open_source(tmp_path / "a.svm", n_features=4, zero_based=first == 0))
    found = again(tmp_path / "a.svm", known, 4)
    assert found.X.tolist() == [[2, 0, 1, 0], [0, 3, 0, 0]]
    assert found.y.tolist() == [1.5, -2]
    (tmp_path / "b.svm").write_text(f"3 {first + 4}:1\n")
    with pytest.raises(ValueError, match=f"has a feature {first + 4}, and features are numbered"):
        again(tmp_path / "b.svm", known, 4)


def test_svmlight_has_the_means_of_training(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2 2:1\n2 1:4 2:3\n3 1:nan 2:1\n")
    known = described_by(open_source(tmp_path / "a.svm", nulls="mean"))
    (tmp_path / "b.svm").write_text("3 1:nan 2:1\n")
    assert again(tmp_path / "a.svm", known, 2).X.tolist() == [[2, 1], [4, 3], [3, 1]]
    assert again(tmp_path / "b.svm", known, 2).X.tolist() == [[3, 1]]


# Another kind


@pytest.mark.parametrize("trained", ["table", "array", "svmlight"])
def test_another_kind_is_refused(tmp_path, trained, described):
    np.save(tmp_path / "a.npy", ROWS)
    (tmp_path / "a.svm").write_text("1 1:2 2:1\n")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    known = {
        "table": described,
        "array": described_by(open_source(tmp_path / "a.npy", target="0")),
        "svmlight": described_by(open_source(tmp_path / "a.svm")),
    }[trained]
    others = {"table": [TABLE, tmp_path / "a.csv"], "array": [tmp_path / "a.npy"]}
    others["svmlight"] = [tmp_path / "a.svm"]
    message = re.escape("this is another kind of files than in training: give those of training")
    for kind, sources in others.items():
        for source in sources if kind != trained else []:
            with pytest.raises(ValueError, match=message):
                open_again(source, known, 3)


def test_files_that_are_not_there(described, tmp_path):
    with pytest.raises(FileNotFoundError):
        open_again(tmp_path / "no.parquet", described, WIDTH)
