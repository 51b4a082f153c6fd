import gzip

import numpy as np
import pytest
from plain_reading import dense, read_all
from sklearn import datasets

from ridgepass.data import svmlight
from ridgepass.data.opening import open_for_prediction, open_source


def dump_svmlight_file(X, y, path, **options):
    datasets.dump_svmlight_file(X, y, str(path), **options)


def make_rows(n_rows=50, seed=0):
    rng = np.random.default_rng(seed)
    # Of few digits, as scikit-learn writes sixteen.
    X = rng.integers(-99, 99, (n_rows, 8)) / 8 * (rng.random((n_rows, 8)) < 0.4)
    X[0, [0, 7]] = 1.0
    X[5] = 0.0
    return X, rng.integers(-99, 99, n_rows) / 4


@pytest.fixture(params=[svmlight.PIECE, 100, 7])
def piece(request, monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", request.param)


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("query", [True, False])
def test_what_scikit_learn_writes(tmp_path, zero_based, packed, query):
    X, y = make_rows()
    path = tmp_path / "a.svm"
    ids = np.arange(50) // 10 if query else None
    dump_svmlight_file(X, y, path, zero_based=zero_based, query_id=ids, comment="two\nlines")
    if packed:
        path = tmp_path / "a.svm.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.svm").read_bytes()))
    source = open_source(path)
    assert source.zero_based == zero_based
    for batch_rows in (1, 7, None):
        found = read_all(source, batch_rows=batch_rows)
        np.testing.assert_array_equal(found.X, X)
        np.testing.assert_array_equal(found.y, y)
        assert max(found.sizes) <= (batch_rows or 50)


@pytest.mark.usefixtures("piece")
def test_lines_of_every_kind(tmp_path):
    text = (
        b"# head\n\n1 1:2 3:0.5 # why\n  \n-1\n2.5 qid:3 2:nan\n# a comment of some length\n4 3:1"
    )
    (tmp_path / "a.libsvm").write_bytes(text)
    source = open_source(tmp_path / "a.libsvm", nulls="zero")
    found = read_all(source)
    assert found.y.tolist() == [1, -1, 2.5, 4]
    assert found.X.tolist() == [[2, 0, 0.5], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match=r"column '2' has no value in row 3 of .*a\.libsvm"):
        read_all(open_source(tmp_path / "a.libsvm"))


def test_several_files_agree_on_where_counting_begins(tmp_path):
    (tmp_path / "1.svm").write_bytes(b"1 1:1\n")
    (tmp_path / "2.svm").write_bytes(b"")
    (tmp_path / "3.svm").write_bytes(b"2 0:5 4:1\n")
    source = open_source(tmp_path)
    assert source.zero_based
    assert read_all(source).X.tolist() == [[0, 1, 0, 0, 0], [5, 0, 0, 0, 1]]


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"x 1:1", "could not convert string to float"),
        (b"1 2:1 1:1", "sorted and unique"),
        (b"1 a:1", "."),
        (b"1 1:x", "."),
        (b"1 -3:1", "."),
        (b"1 99999999999:1", "."),
        (b"1,2 1:1", "."),
        (b"\x93NUMPY\x01\x00", "."),
    ],
)
def test_bad_lines_are_named(tmp_path, line, what):
    (tmp_path / "a.svm").write_bytes(b"# c\n1 1:1\n\n2 2:2\n" + line + b"\n3 1:1\n")
    with pytest.raises(
        ValueError, match=rf"row 3 of .*a\.svm cannot be read as svmlight: .*{what}"
    ):
        open_source(tmp_path / "a.svm")


@pytest.mark.parametrize("at", [0, 1, 2000, 3998, 3999])
def test_a_bad_line_among_many_is_found_without_parsing_each(tmp_path, monkeypatch, at):
    lines = [b"1 1:1"] * 4000
    lines[at] = b"1 x"
    (tmp_path / "a.svm").write_bytes(b"\n".join([*lines, b""]))
    load, calls = svmlight._load, []
    monkeypatch.setattr(svmlight, "_load", lambda text: (calls.append(len(text)), load(text))[1])
    with pytest.raises(ValueError, match=rf"row {at + 1} of .*a\.svm cannot be read as svmlight"):
        open_source(tmp_path / "a.svm")
    assert len(calls) <= 2 + 12  # 4,000 lines are halved twelve times
    assert sum(calls) <= 2.1 * (tmp_path / "a.svm").stat().st_size


def test_a_carriage_return_does_not_end_a_line(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 1:1\r\n1 1:1\r2 2:1\r\n3 1:1\r\n")
    with pytest.raises(ValueError, match=r"row 2 of .*a\.svm cannot be read as svmlight"):
        open_source(tmp_path / "a.svm")


def test_a_long_line_is_put_together_once(tmp_path, monkeypatch):
    line = b"1 " + b" ".join(b"%d:1" % i for i in range(1, 20_000)) + b"\n"
    (tmp_path / "a.svm").write_bytes(b"1 1:1\n" + line + b"2 1:1\n")
    added = []

    class Counted(bytes):
        def __radd__(self, other):
            added.append(len(other))
            return bytes(other) + bytes(self)

    class Read:
        def __init__(self, *arguments):
            self.file = open(*arguments)  # noqa: SIM115

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def read(self, size):
            return Counted(self.file.read(size))

        def tell(self):
            return self.file.tell()

    monkeypatch.setattr(svmlight, "PIECE", 100)
    monkeypatch.setattr(svmlight, "open", Read, raising=False)
    found = read_all(open_source(tmp_path / "a.svm"))
    assert found.X.sum(axis=1).tolist() == [1, 19_999, 1]
    assert sum(added) <= 10 * len(line)


def test_nothing_to_fit(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1\n2\n")
    with pytest.raises(ValueError, match=r"a\.svm has no feature that is not zero"):
        open_source(tmp_path / "a.svm")


def test_truncated_gzip(tmp_path):
    X, y = make_rows(500)
    dump_svmlight_file(X, y, tmp_path / "a.svm")
    packed = gzip.compress((tmp_path / "a.svm").read_bytes())
    path = tmp_path / "b.svm.gz"
    for content in (packed[: len(packed) // 2], b"1 1:1\n", packed[:50] + bytes(50) + packed[100:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"b\.svm\.gz cannot be unpacked: .*file is whole"):
            open_source(path)


@pytest.mark.parametrize("zero_based", [True, False])
def test_prediction_counts_features_as_training_did(tmp_path, zero_based):
    X, y = make_rows()
    dump_svmlight_file(X, y, tmp_path / "a.svm", zero_based=zero_based)
    described = open_source(tmp_path / "a.svm").describe()
    dump_svmlight_file(X[1:, 2:7], y[1:], tmp_path / "b.svm", zero_based=zero_based)
    source = open_for_prediction(tmp_path / "b.svm", described, None, 8)
    chunk = next(source.chunks())
    assert chunk.y is None
    wanted = datasets.load_svmlight_file(
        str(tmp_path / "b.svm"), n_features=8, zero_based=zero_based
    )[0]
    np.testing.assert_array_equal(dense(chunk.X), wanted.toarray())
    first = 0 if zero_based else 1
    (tmp_path / "c.svm").write_text(f"1 {first}:1\n2 {8 + first}:1\n")
    with pytest.raises(
        ValueError,
        match=rf"row 2 of .*c\.svm has a feature {8 + first}, .*from {first} to {7 + first}",
    ):
        read_all(open_for_prediction(tmp_path / "c.svm", described, None, 8))
    if not zero_based:
        (tmp_path / "d.svm").write_text("1 0:1\n")
        with pytest.raises(ValueError, match=r"row 1 of .*d\.svm has a feature 0, .*from 1 to 8"):
            read_all(open_for_prediction(tmp_path / "d.svm", described, None, 8))


@pytest.mark.parametrize("option", ["target", "weight", "features", "exclude"])
def test_there_are_no_columns_to_name(tmp_path, option):
    (tmp_path / "a.svm").write_bytes(b"1 1:1\n")
    with pytest.raises(ValueError, match="has its target in each line and no column names"):
        open_source(tmp_path / "a.svm", **{option: "x"})
