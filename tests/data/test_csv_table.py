import gzip
import io
import os
import resource

import numpy as np
import pyarrow as pa
import pytest
from plain_reading import read_all

from ridgepass.data.csv_table import BLOCK, CsvStream, CsvTable
from ridgepass.data.files import File
from ridgepass.data.opening import open_source


def written(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    if str(path).endswith(".gz"):
        with gzip.open(path, "wb") as file:
            file.write(data)
    else:
        path.write_bytes(data)
    return path


def rows_of(path, text, **options):
    return read_all(open_source(written(path, text), **options)).X.tolist()


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2.5\n3,-4e1\n",
        "a,b\n1,2.5\n3,-4e1",
        "a,b\r\n1,2.5\r\n3,-4e1\r\n",
        "a,b\r1,2.5\r3,-4e1\r",
        "\ufeffa,b\n1,2.5\n3,-4e1\n",
        "\ufeffa;b\n1;2.5\n3;-4e1\n",
        "a\tb\n1\t2.5\n3\t-4e1\n",
        "a|b\n1|2.5\n3|-4e1\n",
        '"a","b"\n"1","2.5"\n"3","-4e1"\n',
        "a,b\n\n1,2.5\n\n\n3,-4e1\n\n",
        " a,b\n1, 2.5\n3,-4e1 \n".replace(" a", "a"),
    ],
)
def test_dialects(tmp_path, name, text):
    source = open_source(written(tmp_path / name, text))
    assert source.feature_names == ["a", "b"]
    np.testing.assert_array_equal(read_all(source).X, [[1.0, 2.5], [3.0, -40.0]])


def test_names_with_everything_in_them(tmp_path):
    header = '"a,b";"say ""x""";x[0];*;größe;a b;"c;d"\n'
    source = open_source(written(tmp_path / "x.csv", header + "1;2;3;4;5;6;7\n"))
    assert source.feature_names == ["a,b", 'say "x"', "x[0]", "*", "größe", "a b", "c;d"]
    assert read_all(source).X.tolist() == [[1, 2, 3, 4, 5, 6, 7]]
    assert rows_of(tmp_path / "x.csv", header + "1;2;3;4;5;6;7\n", features=["x[0]"]) == [[3]]


def test_values_over_several_lines_at_the_edge_of_blocks(tmp_path):
    line = '1,"one\nand, ""two""\n",3\n'
    n_rows = 2 * BLOCK // len(line) + 100
    source = open_source(written(tmp_path / "x.csv", "a,t,b\n" + line * n_rows), exclude="t")
    X = read_all(source).X
    assert X.shape == (n_rows, 2)
    assert (X == [1.0, 3.0]).all()


def test_what_looks_whole_in_the_first_megabyte_need_not_be(tmp_path):
    n_rows = BLOCK // 4
    text = "a,b,c\n" + "1,,2\n" * n_rows + "1.5,7,1e-3\n"
    X = read_all(open_source(written(tmp_path / "x.csv", text), nulls="zero")).X
    assert X[-1].tolist() == [1.5, 7.0, 1e-3]
    assert X.shape == (n_rows + 1, 3)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("blank", ["", "\n\n"])
def test_text_deep_in_a_column_of_numbers(tmp_path, name, blank):
    n_rows = BLOCK // 4
    text = "a,b,t\n" + "1,2,u\n" * n_rows + blank + "1,abc,u\n" + "1,2,u\n" * 10
    source = open_source(written(tmp_path / name, text), target="a", one_hot="t")
    path = tmp_path / name
    wanted = f"column 'b' of {path} has 'abc' in row {n_rows + 1}, which is no number as the rows"
    with pytest.raises(ValueError, match=wanted):
        read_all(source)


def test_a_number_deep_in_a_column_of_truth_values(tmp_path):
    text = "a,b\n" + "1,true\n" * BLOCK.__rshift__(2) + "1,3\n"
    source = open_source(written(tmp_path / "x.csv", text))
    with pytest.raises(
        ValueError, match=r"'b' of .* has '3' in row 262145, which is no truth value"
    ):
        read_all(source)


@pytest.mark.parametrize("n_before", [3, BLOCK // 4])
def test_a_ragged_line(tmp_path, n_before):
    text = "a,b\n" + "1,2\n" * n_before + "1,2,3\n"
    with pytest.raises(ValueError, match=rf"x\.csv has 3 values in row {n_before + 1}, and 2 col"):
        read_all(open_source(written(tmp_path / "x.csv", text)))


def test_a_quotation_mark_that_does_not_end(tmp_path):
    text = "a,b\n" + "1,2\n" * 10 + '1,"2\n' + "1,2\n" * BLOCK
    with pytest.raises(ValueError, match=r"x\.csv .*(quotation mark that does not end|in row 11)"):
        read_all(open_source(written(tmp_path / "x.csv", text)))


def test_types_come_from_the_first_file(tmp_path):
    written(tmp_path / "1.csv", "a,b\n1,2\n")
    written(tmp_path / "2.csv", "b,a\n1.5,2\n")
    assert read_all(open_source(tmp_path)).X.tolist() == [[1, 2], [2, 1.5]]
    written(tmp_path / "2.csv", "b,a\nu,2\n")
    with pytest.raises(
        ValueError, match=r"column 'b' of .*2\.csv has 'u' in row 1, which is no nu"
    ):
        read_all(open_source(tmp_path))


def test_only_a_header(tmp_path):
    written(tmp_path / "1.csv", "a,b\n")
    written(tmp_path / "2.csv", "a,b\n1,2\n")
    written(tmp_path / "3.csv", "a,b\n")
    assert read_all(open_source(tmp_path)).X.tolist() == [[1, 2]]
    assert read_all(open_source(tmp_path / "1.csv")).ends == []


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty: it has not even a header"),
        (b"\n\n", "cannot be read: .*Empty CSV"),
        ("a,b\n1,2\n".encode("utf-16"), "."),
        (
            "a,größe\n1,2\n".encode("latin-1"),
            "has a header that is not UTF-8: save the file in UTF-8",
        ),
        ("t,b\ngröße,2\n".encode("latin-1"), "."),
        (b"PAR1" + bytes(100), "."),
        (b"\x1f\x8b\x08" + bytes(100), "."),
    ],
)
def test_what_is_no_csv(tmp_path, content, what):
    path = written(tmp_path / "x.csv", content)
    with pytest.raises(ValueError, match=rf"x\.csv.*{what}"):
        read_all(open_source(path))


def test_truncated_gzip(tmp_path):
    rng = np.random.default_rng(0)
    body = "\n".join(f"{a},{b}" for a, b in rng.standard_normal((20_000, 2)))
    path = written(tmp_path / "x.csv.gz", "a,b\n" + body)
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(
        ValueError, match=rf"^{path} cannot be read: .*check that the file is whole"
    ):
        read_all(open_source(path))
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(ValueError, match=rf"^{path} cannot be read"):
        read_all(open_source(path))


def test_gzip_in_several_members(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    assert read_all(open_source(path)).X.tolist() == [[1, 2], [3, 4]]


def test_rows_longer_than_a_block(tmp_path):
    d = BLOCK // 64
    header = ",".join(f"x{i}" for i in range(d))
    line = ",".join(["12345." + 60 * "0"] * d)
    assert len(line) > BLOCK
    source = open_source(written(tmp_path / "x.csv", f"{header}\n{line}\n{line}\n"))
    X = read_all(source).X
    assert X.shape == (2, d)
    assert (X == 12345).all()


def test_nulls_and_names_of_countries(tmp_path):
    text = "x,c\n1,NA\nNA,\nnan,DE\n,DE\n"
    path = written(tmp_path / "x.csv", text)
    source = open_source(path, one_hot="c", nulls="zero")
    assert source.feature_names == ["x", "c=DE", "c=NA"]
    assert read_all(source).X.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_categories_that_look_like_numbers_stay_as_written(tmp_path):
    path = written(tmp_path / "x.csv", "x,zip\n1,01234\n2,1234\n3,1.50\n")
    assert open_source(path, one_hot="zip").feature_names == [
        "x",
        "zip=01234",
        "zip=1.50",
        "zip=1234",
    ]


def test_progress_in_bytes(tmp_path):
    for name in ("x.csv", "x.csv.gz"):
        path = written(tmp_path / name, "a,b\n" + "1,2\n" * BLOCK)
        found = read_all(open_source(path))
        assert found.n_bytes == sorted(found.n_bytes)
        assert found.n_bytes[0] > 0
        assert found.n_bytes[-1] <= os.path.getsize(path)


def test_files_are_closed(tmp_path):
    for i in range(150):
        written(tmp_path / f"{i:03}.csv", f"a,b\n{i},2\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 60
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 40, hard))
    try:
        found = read_all(open_source(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found.X[:, 0].tolist() == list(range(150))


class Pipe(io.RawIOBase):
    """Hands over a few bytes at a time, as pipes do."""

    def __init__(self, data, step=1000):
        self.data, self.step = memoryview(data), step

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), self.step, len(self.data))
        buffer[:count] = self.data[:count]
        self.data = self.data[count:]
        return count


def piped(text):
    return io.BufferedReader(Pipe(text.encode()))


def test_a_pipe_gives_what_a_file_gives(tmp_path):
    n_rows = BLOCK // 5
    text = "a,z,t\n" + "1,2,u\n" * n_rows + "2.5,3,v\n"
    stream = CsvStream(piped(text), {"z": pa.string()})
    path = written(tmp_path / "x.csv", text)
    types = {"a": pa.float64(), "z": pa.string(), "t": pa.string()}
    file = CsvTable(File(str(path), "csv"), types)
    assert stream.schema == file.schema
    wanted = pa.Table.from_batches(file.read(["t", "a"], 0, 1000)).combine_chunks()
    found = pa.Table.from_batches(stream.read(["t", "a"], 0, 1000)).combine_chunks()
    assert found.equals(wanted)
    assert found.num_rows == n_rows + 1
    with pytest.raises(ValueError, match="standard input can be read only once"):
        list(stream.read(["a"], 0, 10))


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a,b\n1,2", "a,b\n", "a;b\n1;2\n\n"])
def test_short_pipes(text):
    stream = CsvStream(piped(text), {})
    rows = [row for batch in stream.read(["b", "a"], 0, 10) for row in batch.to_pylist()]
    assert rows == ([] if text == "a,b\n" else [{"b": 2.0, "a": 1.0}])


def test_errors_of_a_pipe_name_row_and_column():
    stream = CsvStream(piped("a,b\n" + "1,2\n" * BLOCK + "1,x\n"), {})
    with pytest.raises(
        ValueError, match=f"'b' of standard input has 'x' in row {BLOCK + 1}, which"
    ):
        list(stream.read(["b", "a"], 0, 10**6))


@pytest.mark.parametrize("n", [131_072, 131_073, 3_000_000])
def test_names_of_any_length(tmp_path, n):
    text = "x" * n + ',y,"' + "z" * n + '"\n1,2,3\n2,3,4\n'
    (tmp_path / "a.csv").write_text(text)
    table = CsvTable(File(str(tmp_path / "a.csv"), "csv"))
    assert table.schema.names == ["x" * n, "y", "z" * n]
    assert [row["y"] for piece in table.read(["y"], 0, 9) for row in piece.to_pylist()] == [2, 3]
    stream = CsvStream(io.BytesIO(text.encode()), {})
    assert stream.schema.names == table.schema.names


def test_a_wrong_value_in_a_column_of_a_long_name(tmp_path):
    rows = "1,2\n" * 1_000_000  # beyond the first block, in which types are told
    (tmp_path / "a.csv").write_text(f"{'x' * 140_000},y\n{rows}1,bad\n")
    table = CsvTable(File(str(tmp_path / "a.csv"), "csv"), {"y": pa.float64()})
    with pytest.raises(ValueError, match=r"column 2 of .*a\.csv has 'bad' in row 1000001"):
        list(table.read(["y"], 0, 1 << 20))
