import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from plain_reading import dense, read_all
from sklearn.datasets import dump_svmlight_file

from ridgepass.data.opening import open_for_prediction, open_source

TABLE = pa.table(
    {
        "x": [1.0, 2.0, None],
        "c": ["b", "a", "b"],
        "e": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "y": [1.0, 2.0, 3.0],
        "w": [1.0, 1.0, 2.0],
    }
)


def described_by(source):
    read_all(source)
    return json.loads(json.dumps(source.describe()))


@pytest.fixture
def described():
    return described_by(open_source(TABLE, target="y", weight="w", one_hot="c", nulls="mean"))


def predicting(source, described, **options):
    names = ["x", "c=a", "c=b", "e[0]", "e[1]"]
    return open_for_prediction(source, described, names, 5, **options)


def test_new_rows_need_features_alone_in_any_order(described, tmp_path):
    rows = pa.table(
        {
            "id": ["p", "q", "r"],
            "e": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2)),
            "c": pa.array(["a", "new", "b"]).dictionary_encode(),
            "x": [None, 4.0, 5.0],
        }
    )
    wanted = [[1.5, 1, 0, 1, 2], [4, 0, 0, 3, 4], [5, 0, 1, 5, 6]]
    pa.parquet.write_table(rows, tmp_path / "a.parquet")
    pa.feather.write_feather(rows, str(tmp_path / "a.arrow"))
    for given in (rows, rows.to_reader(), tmp_path / "a.parquet", tmp_path / "a.arrow"):
        source = predicting(given, described, keep=["id"])
        assert not source.has_targets
        (chunk,) = source.chunks()
        assert dense(chunk.X).tolist() == wanted
        assert chunk.unknown == 1
        assert chunk.y is None
        assert chunk.weights is None
        assert chunk.extras.to_pydict() == {"id": ["p", "q", "r"]}


def test_another_way_with_nulls(described):
    rows = TABLE.select(["x", "c", "e"])
    assert read_all(predicting(rows, described)).X[2, 0] == 1.5
    assert read_all(predicting(rows, described, nulls="zero")).X[2, 0] == 0.0
    (chunk,) = predicting(rows, described, nulls="drop", keep=["c"]).chunks()
    assert chunk.present.tolist() == [True, True, False]
    assert chunk.X.shape == (2, 5)
    assert chunk.extras.num_rows == 3
    with pytest.raises(ValueError, match="column 'x' has no value in row 3"):
        read_all(predicting(rows, described, nulls="error"))
    with pytest.raises(ValueError, match="nulls='median' is unknown"):
        predicting(rows, described, nulls="median")


@pytest.mark.parametrize("kind", ["table", "array", "svmlight", "names alone", "nothing"])
def test_means_come_from_training_never_from_the_rows_to_predict(kind, tmp_path):
    rows = np.array([[1.0, 2.0], [np.nan, 4.0]])
    np.save(tmp_path / "a.npy", rows)
    dump_svmlight_file(np.nan_to_num(rows), [1, 2], str(tmp_path / "a.svm"))
    frame = pd.DataFrame(rows, columns=["a", "b"])
    trained = {"table": frame, "array": tmp_path / "a.npy", "svmlight": tmp_path / "a.svm"}
    names = ["a", "b"] if kind in ("table", "names alone") else None
    known = described_by(open_source(trained[kind], nulls="zero")) if kind in trained else None
    for given in (frame, tmp_path / "a.npy", tmp_path / "a.svm"):
        with pytest.raises(ValueError, match="the model knows no means to fill in: train it with"):
            open_for_prediction(given, known, names, 2, nulls="mean")
    if kind in trained:
        known = described_by(open_source(trained[kind], nulls="mean"))
        wanted = 0.5 if kind == "svmlight" else 1.0  # there, what is missing is zero
        frame.loc[0, "a"] = 7.0
        np.save(tmp_path / "b.npy", frame.to_numpy())
        for given in (frame, tmp_path / "b.npy"):
            found = read_all(open_for_prediction(given, known, names, 2)).X
            assert found.tolist() == [[7, 2], [wanted, 4]]


def test_what_is_missing_is_named(described):
    with pytest.raises(ValueError, match=r"the pyarrow Table has no column 'x': did you mean 'X'"):
        predicting(TABLE.rename_columns(["X", "c", "e", "y", "w"]), described)
    with pytest.raises(ValueError, match=r"column 'e' of .* has other values than the lists that"):
        predicting(TABLE.drop_columns("e").append_column("e", [[1.0] * 3]), described)
    with pytest.raises(ValueError, match=r"column 'x' of .* other values than the single numbers"):
        predicting(TABLE.drop_columns("x").append_column("x", [[[1.0]] * 3]), described)
    with pytest.raises(ValueError, match=r"column 'x' of .* is text \('u' in row 1\)"):
        predicting(TABLE.drop_columns("x").append_column("x", [["u"] * 3]), described)
    with pytest.raises(ValueError, match=r"column 'c' of .* has no categories"):
        predicting(TABLE.drop_columns("c").append_column("c", [[{"a": 1}] * 3]), described)
    with pytest.raises(ValueError, match="has no column 'id'"):
        predicting(TABLE, described, keep=["id"])
    twice = pa.Table.from_arrays([*TABLE.columns, TABLE["x"]], names=[*TABLE.schema.names, "x"])
    with pytest.raises(ValueError, match="has two columns 'x'"):
        predicting(twice, described)
    longer = pa.table({"x": [1.0], "c": ["a"], "e": [[1.0, 2.0, 3.0]]})
    with pytest.raises(ValueError, match="column 'e' has a list of 3 numbers in row 1 of"):
        read_all(predicting(longer, described))


def test_csv_categories_stay_text_at_prediction(tmp_path):
    (tmp_path / "a.csv").write_text("zip,x,y\n01,1,1\n1,2,2\n")
    known = described_by(open_source(tmp_path / "a.csv", target="y", one_hot="zip"))
    (tmp_path / "b.csv").write_text("x,zip\n5,1\n6,01\n7,2\n")
    found = read_all(open_for_prediction(tmp_path / "b.csv", known, ["zip=01", "zip=1", "x"], 3))
    assert found.X.tolist() == [[0, 1, 5], [1, 0, 6], [0, 0, 7]]
    assert found.unknown == 1


def test_a_model_with_names_alone(tmp_path):
    frame = pd.DataFrame({"b": [1.0], "id": ["u"], "a": [2.0]})
    source = open_for_prediction(frame, None, ["a", "b"], 2, keep=["id"])
    assert read_all(source).X.tolist() == [[2, 1]]
    with pytest.raises(ValueError, match="has no column 'c'"):
        open_for_prediction(frame, None, ["a", "c"], 2)


def test_a_model_without_names(tmp_path):
    frame = pd.DataFrame({"id": ["u"], "b": [1.0], "a": [2.0]})
    source = open_for_prediction(frame, None, None, 2, keep=["id"])
    assert read_all(source).X.tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="has 2 features, the model was trained on 3 with"):
        open_for_prediction(frame.drop(columns="id"), None, None, 3)
    np.save(tmp_path / "a.npy", np.ones((2, 3)))
    assert read_all(open_for_prediction(tmp_path / "a.npy", None, None, 3)).X.shape == (2, 3)
    with pytest.raises(ValueError, match=r"a\.npy has 3 columns, the model has 2 features"):
        open_for_prediction(tmp_path / "a.npy", None, None, 2)
    with pytest.raises(ValueError, match="has no columns to keep: leave keep out"):
        open_for_prediction(tmp_path / "a.npy", None, None, 3, keep=["id"])


def test_arrays_with_and_without_the_columns_that_were_no_features(tmp_path):
    rows = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "a.npy", rows)
    known = described_by(open_source(tmp_path / "a.npy", target="1", weight="3"))
    assert read_all(open_for_prediction(tmp_path / "a.npy", known, None, 2)).X.tolist() == (
        rows[:, [0, 2]].tolist()
    )
    np.save(tmp_path / "b.npy", rows[:, [0, 2]])
    found = read_all(open_for_prediction(tmp_path / "b.npy", known, None, 2))
    assert found.X.tolist() == rows[:, [0, 2]].tolist()


def test_prediction_from_svmlight_for_a_model_of_names(tmp_path, described):
    (tmp_path / "a.svm").write_text("0 1:5 5:1\n")
    found = read_all(predicting(tmp_path / "a.svm", described))
    assert found.X.tolist() == [[5, 0, 0, 0, 1]]


def test_inputs_that_make_no_sense(tmp_path):
    with pytest.raises(ValueError, match=r"standard input \(-\) must be the only input"):
        open_source(["-", "a.csv"])
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "no.csv", target="y")
    with pytest.raises(ValueError, match="nulls='maybe' is unknown"):
        open_source(TABLE, nulls="maybe")


def test_importing_ridgepass_needs_no_pyarrow():
    script = """
import sys
sys.modules["pyarrow"] = None
import numpy as np, ridgepass, ridgepass.data, tempfile, os
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.npy")
    np.save(path, np.random.default_rng(0).standard_normal((50, 3)))
    print(ridgepass.StreamingRidge().fit_stream(path, target=-1).coef_.shape)
    open(os.path.join(folder, "a.csv"), "w").write("a,b")
    try:
        ridgepass.data.batches(os.path.join(folder, "a.csv"))
    except ImportError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "(2,)",
        "reading tables needs pyarrow: pip install 'ridgepass[files]'",
    ]
