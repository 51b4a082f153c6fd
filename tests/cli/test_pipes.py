"""Pipes and devices: written to as they are, never read back."""

import os
import shlex
import stat
import subprocess
import threading

import numpy as np
import pytest
from command import COMMAND, complaint, ridgepass, run_well
from tables import make_frame

import ridgepass as package
from ridgepass.cli.options import check_output

OPTIONS = ["--target", "price", "--exclude", "city", "-q"]
PATIENCE = 120  # seconds, for a command that would wait for ever


@pytest.fixture
def folder(tmp_path):
    make_frame().to_parquet(tmp_path / "rows.parquet")
    run_well("fit", "rows.parquet", *OPTIONS, "-o", "m.ridge", cwd=tmp_path)
    return tmp_path


def from_pipe(folder, *arguments):
    """Run a command whose standard output is a pipe."""
    return ridgepass(*arguments, cwd=folder, timeout=PATIENCE)


def test_a_model_through_standard_output(folder):
    done = from_pipe(folder, "fit", "rows.parquet", *OPTIONS, "-o", "/dev/stdout")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == (folder / "m.ridge").read_bytes()  # and no summary after it
    assert "300" in done.stderr.decode()
    again = from_pipe(folder, "fit", "rows.parquet", *OPTIONS, "--json", "-o", "/dev/fd/1")
    assert again.stdout == done.stdout
    assert '"rows": 300' in again.stderr.decode()


def test_merged_models_through_standard_output(folder):
    (folder / "n.ridge").write_bytes((folder / "m.ridge").read_bytes())
    run_well("merge", "m.ridge", "n.ridge", "-o", "both.ridge", cwd=folder)
    done = from_pipe(folder, "merge", "m.ridge", "n.ridge", "-o", "/dev/stdout")
    assert done.stdout == (folder / "both.ridge").read_bytes()


def test_standard_output_that_is_a_file(folder):
    with open(folder / "out.ridge", "wb") as out:
        command = [COMMAND, "fit", "rows.parquet", *OPTIONS, "-o", "/dev/stdout"]
        subprocess.run(command, cwd=folder, stdout=out, check=True, timeout=PATIENCE)
    assert package.load(folder / "out.ridge").n_samples_seen_ == 300


def test_a_model_through_a_named_pipe(folder):
    os.mkfifo(folder / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((folder / "pipe").read_bytes()))
    reader.start()
    done = from_pipe(folder, "fit", "rows.parquet", *OPTIONS, "-o", "pipe")
    assert done.returncode == 0, done.stderr.decode()
    assert b"300" in done.stdout  # the summary, as ever
    reader.join()
    assert found == [(folder / "m.ridge").read_bytes()]
    assert stat.S_ISFIFO(os.stat(folder / "pipe").st_mode)


def test_pipes_and_devices_are_not_read(folder):
    os.mkfifo(folder / "pipe")
    for name in ("pipe", "/dev/zero", "/dev/stdin"):
        for command in (["inspect", name], ["predict", name, "rows.parquet"]):
            said = complaint(*command, cwd=folder, stdin=b"", timeout=PATIENCE)
            assert said.startswith(f"{name} is a pipe or a device")
            assert said.endswith("copy it to a file first")
    said = complaint("merge", "m.ridge", "pipe", "-o", "x.ridge", cwd=folder, timeout=PATIENCE)
    assert said.startswith("pipe is a pipe")


def test_a_pipe_is_no_checkpoint(folder):
    os.mkfifo(folder / "pipe")
    arguments = ["fit", "rows.parquet", *OPTIONS, "-o", "x.ridge", "--checkpoint", "pipe"]
    assert "is no regular file" in complaint(*arguments, cwd=folder, timeout=PATIENCE)
    said = complaint(*arguments, "--resume", cwd=folder, timeout=PATIENCE)
    assert "is no regular file" in said


def test_a_device_needs_no_folder_that_can_be_written_to(monkeypatch):
    monkeypatch.setattr("os.access", lambda path, how: path == "/dev/null")
    check_output("/dev/null")
    with pytest.raises(PermissionError, match="/dev"):
        check_output("/dev/zero")
    with pytest.raises(PermissionError, match="/dev"):
        check_output("/dev/no-such-file")


def test_a_reader_that_goes_away_leaves_no_silence(folder):
    os.mkfifo(folder / "pipe")
    # Larger than what a pipe holds, so that it cannot all be written.
    wide = np.random.default_rng(0).standard_normal((40, 600))
    np.save(folder / "wide.npy", wide)

    def read_a_little():
        with open(folder / "pipe", "rb") as pipe:
            pipe.read(10)

    reader = threading.Thread(target=read_a_little)
    reader.start()
    said = complaint("fit", "wide.npy", "-t", "-1", "-q", "-o", "pipe", cwd=folder)
    reader.join()
    assert said == "pipe: the reader closed the pipe before all was written"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_device_without_room_is_named(folder):
    said = complaint("fit", "rows.parquet", *OPTIONS, "-o", "/dev/full", cwd=folder)
    assert said == "/dev/full: No space left on device"
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [COMMAND, "inspect", "m.ridge"], cwd=folder, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    assert done.stderr == b"ridgepass: error: standard output: No space left on device\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_standard_streams_may_be_closed(folder, closed):
    words = ["fit", "rows.parquet", *OPTIONS, "-o", "closed.ridge"]
    command = f"{shlex.join([str(COMMAND), *words])} {closed}"
    done = subprocess.run(command, shell=True, cwd=folder, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    assert (folder / "closed.ridge").read_bytes() == (folder / "m.ridge").read_bytes()


def test_nothing_to_read_from_a_closed_stream_is_said(folder):
    command = f"{shlex.join([str(COMMAND), 'fit', '-', *OPTIONS, '-o', 'x.ridge'])} <&-"
    done = subprocess.run(command, shell=True, cwd=folder, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert done.returncode == 2
    assert done.stderr.startswith(b"ridgepass: error: ")
    assert b"Traceback" not in done.stderr


def test_an_output_that_cannot_be_is_refused_before_anything_is_read(folder):
    (folder / "loop").symlink_to("loop")
    (folder / "bad.csv").write_text("a,price\n1,2\n,3\n")  # an error when it is read
    said = complaint("fit", "bad.csv", "-t", "price", "-o", "", cwd=folder)
    assert said == "the output has no name: pass -o FILE"
    said = complaint("fit", "bad.csv", "-t", "price", "-o", "loop", cwd=folder)
    assert said == "loop: Too many levels of symbolic links"
