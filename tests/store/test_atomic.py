"""Files are replaced as a whole, or stay as they were."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from ridgepass.store import replacing
from store.models import small_models

fcntl = pytest.importorskip("fcntl")


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "model.ridge"
    path.write_bytes(b"old")
    return path


def alone(path):
    """Whether nothing lies beside a file."""
    return list(path.parent.iterdir()) == [path]


def test_a_file_appears_when_it_is_complete(target):
    with replacing(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert alone(target)


def test_a_new_file(tmp_path):
    path = tmp_path / "new.ridge"
    with replacing(str(path)) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_in_the_middle(target, error):
    def fail(_):
        raise error

    with pytest.raises(error), replacing(target) as file:
        fail(file.write(b"half"))
    assert target.read_bytes() == b"old"
    assert alone(target)


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_full_disk(target, monkeypatch, step):
    def full(packed=None, file=None):
        if step == "write":
            file.write(packed.head)
        raise OSError(errno.ENOSPC, "No space left on device")

    model = small_models()["regressor"]
    if step == "write":
        monkeypatch.setattr("ridgepass.store.layout.Packed.write_to", full)
    elif step == "fsync":
        monkeypatch.setattr("os.fsync", full)
    else:
        monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(target)
    monkeypatch.undo()
    assert target.read_bytes() == b"old"
    assert alone(target)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_that_is_full():
    with pytest.raises(OSError, match="No space left"):
        small_models()["regressor"].save("/dev/full")


def test_permissions_are_those_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "m") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640


def test_a_link_stays_a_link(target, tmp_path):
    link = tmp_path / "folder" / "link"
    link.parent.mkdir()
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_folders_and_missing_folders(tmp_path):
    with pytest.raises(IsADirectoryError), replacing(tmp_path):
        pass
    with (
        pytest.raises(FileNotFoundError, match=r"nowhere/m\.ridge"),
        replacing(tmp_path / "nowhere" / "m.ridge"),
    ):
        pass


def test_what_killed_processes_left_is_removed(target):
    abandoned = target.with_name(f".{target.name}.{'0' * 16}.tmp")
    other = target.with_name(f".other.ridge.{'0' * 16}.tmp")
    similar = target.with_name(f".{target.name}.mine.tmp")
    for path in (abandoned, other, similar):
        path.write_bytes(b"half")
    with replacing(target) as first:
        with replacing(target) as second:  # which leaves the first alone
            second.write(b"second")
        first.write(b"first")
    assert target.read_bytes() == b"first"
    assert not abandoned.exists()
    assert other.exists()
    assert similar.exists()


def test_only_regular_files_are_taken_for_what_was_left(target, tmp_path):
    """A pipe would be waited for, and what a link points to belongs to somebody."""
    names = [target.with_name(f".{target.name}.{digit * 16}.tmp") for digit in "0123"]
    os.mkfifo(names[0])
    os.mkfifo(tmp_path / "pipe")
    names[1].symlink_to("pipe")
    names[2].symlink_to(target)
    names[3].mkdir()
    with replacing(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"
    assert all(os.path.lexists(name) for name in names)


def test_a_pipe_in_the_place_of_what_was_left_just_now(target, monkeypatch):
    """Between the look at it and the opening."""
    left = target.with_name(f".{target.name}.{'0' * 16}.tmp")
    os.mkfifo(left)
    monkeypatch.setattr("pathlib.Path.lstat", lambda path: target.stat())
    with replacing(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"
    assert left.exists()


@pytest.mark.slow
def test_a_process_killed_while_it_writes(target):
    program = (
        "import sys, time\n"
        "from ridgepass.store import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); print('now', flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with replacing(target) as file:
            file.write(b"new")
        assert len(list(target.parent.iterdir())) == 2  # the other's is in use
        process.send_signal(signal.SIGKILL)
    assert target.read_bytes() == b"new"
    with replacing(target) as file:
        file.write(b"newer")
    assert target.read_bytes() == b"newer"
    assert alone(target)


def test_a_file_removed_before_it_was_locked(target, monkeypatch):
    flock, removed = fcntl.flock, []

    def slow(file, how):
        if not removed and how == fcntl.LOCK_EX:
            removed.extend(target.parent.glob(".*.tmp"))
            removed[0].unlink()
        return flock(file, how)

    monkeypatch.setattr("fcntl.flock", slow)
    with replacing(target) as file:
        file.write(b"new")
    assert removed
    assert target.read_bytes() == b"new"


def test_many_writers_at_once(target):
    contents = [bytes([i]) * 100_000 for i in range(8)]

    def write(content):
        for _ in range(10):
            with replacing(target) as file:
                file.write(content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert target.read_bytes() in (b"old", *contents)
    assert alone(target)
