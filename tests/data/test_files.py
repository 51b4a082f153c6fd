import os
import stat

import pytest

from ridgepass.data.files import File, find_files


@pytest.fixture
def folder(tmp_path):
    for name in ("b.parquet", "a.parquet", "sub/c.parquet", "sub/deep/d.pq"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    for name in (
        "_SUCCESS",
        ".a.parquet.crc",
        "notes.txt",
        "_delta_log/e.parquet",
        ".git/f.parquet",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return tmp_path


def names(found, folder):
    return [os.path.relpath(file.path, folder) for file in found]


def test_a_directory_is_searched_below_in_alphabetical_order(folder):
    found = names(find_files([folder]), folder)
    assert found == ["a.parquet", "b.parquet", "sub/c.parquet", "sub/deep/d.pq"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*.parquet", ["a.parquet", "b.parquet"]),
        ("[b]*", ["b.parquet"]),
        ("**/*.parquet", ["a.parquet", "b.parquet", "sub/c.parquet"]),
        ("**/*.p*q*", ["a.parquet", "b.parquet", "sub/c.parquet", "sub/deep/d.pq"]),
        ("sub*", ["sub/c.parquet", "sub/deep/d.pq"]),
        ("sub/**", ["sub/c.parquet", "sub/deep/d.pq"]),
        ("sub/**/", ["sub/c.parquet", "sub/deep/d.pq"]),
        ("sub/**/*", ["sub/c.parquet", "sub/deep/d.pq"]),  # matches directories and their files
        ("_delta_log/*.parquet", ["_delta_log/e.parquet"]),
        ("_*/*.parquet", ["_delta_log/e.parquet"]),
    ],
)
def test_patterns(folder, pattern, wanted):
    assert sorted(names(find_files([str(folder / pattern)]), folder)) == wanted


def test_a_file_named_like_a_pattern_is_taken_as_itself(tmp_path):
    path = tmp_path / "x[0]*.csv"
    path.write_text("a\n1\n")
    assert find_files([path]) == [File(str(path), "csv")]


def test_format_by_name_and_by_word(tmp_path):
    for name in ("a.CSV", "b.csv.gz", "c.TSV.GZ", "d.libsvm.gz", "e.data"):
        (tmp_path / name).write_bytes(b"x")
    found = {name: find_files([tmp_path / name])[0] for name in ("a.CSV", "b.csv.gz", "c.TSV.GZ")}
    assert {file.format for file in found.values()} == {"csv"}
    assert [file.is_compressed for file in found.values()] == [False, True, True]
    assert find_files([tmp_path / "d.libsvm.gz"])[0].format == "svmlight"
    assert find_files([tmp_path / "e.data"], "csv")[0].format == "csv"
    with pytest.raises(ValueError, match=r"e\.data is of no known format: .*--format"):
        find_files([tmp_path / "e.data"])
    with pytest.raises(ValueError, match="format 'xls' is unknown: choose one of parquet, csv"):
        find_files([tmp_path / "e.data"], "xls")


def test_partitions_are_the_directories(tmp_path):
    path = (
        tmp_path / "year=2020" / "a%20b=c%2Fd" / "kind=__HIVE_DEFAULT_PARTITION__" / "=" / "x.csv"
    )
    path.parent.mkdir(parents=True)
    path.write_text("a\n1\n")
    assert find_files([tmp_path])[0].partitions == (
        ("year", "2020"),
        ("a b", "c/d"),
        ("kind", None),
    )


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        find_files([tmp_path / "no.csv"])
    assert caught.value.filename == str(tmp_path / "no.csv")
    with pytest.raises(ValueError, match=r"no file matches .*: check the pattern"):
        find_files([str(tmp_path / "*.csv")])
    with pytest.raises(ValueError, match="has no file that can be read: looked for"):
        find_files([tmp_path])
    with pytest.raises(ValueError, match="no input files"):
        find_files([])
    os.symlink(tmp_path / "gone.csv", tmp_path / "link.csv")
    with pytest.raises(FileNotFoundError):
        find_files([tmp_path / "link.csv"])


def test_rows_cannot_count_twice(folder):
    with pytest.raises(ValueError, match=r"a\.parquet is given twice .*name it once"):
        find_files([folder / "a.parquet", folder])
    os.symlink(folder / "a.parquet", folder / "z.parquet")
    with pytest.raises(ValueError, match=r"z\.parquet is given twice \(as .*a\.parquet\)"):
        find_files([folder])


def test_one_format_at_a_time(folder):
    (folder / "a.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"a\.parquet is parquet and .*a\.csv is csv: give"):
        find_files([folder])


def test_binary_files_must_be_unpacked(tmp_path):
    (tmp_path / "a.parquet.gz").write_bytes(b"x")
    with pytest.raises(ValueError, match="cannot be read packed: unpack it with gunzip"):
        find_files([tmp_path / "a.parquet.gz"])


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode)
    with pytest.raises(ValueError, match="is a pipe or a device: pipe it into standard input"):
        find_files([tmp_path / "pipe.csv"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_may_not_be_read_is_not_skipped(folder):
    (folder / "sub").chmod(0)
    try:
        with pytest.raises(PermissionError):
            find_files([folder])
    finally:
        (folder / "sub").chmod(0o755)
