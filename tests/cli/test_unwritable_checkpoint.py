"""A checkpoint that cannot be written ends no training, and nobody is told to resume from it."""

import errno
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from ridgepass.cli import fit as module
from ridgepass.cli.app import run

FIT = ["fit", "rows.npy", "--target=-1", "--method", "fd", "--sketch-size", "8", "-q"]
SAVING = ["-o", "m.ridge", "--checkpoint", "parts/m.part", "--every", "0s"]
N_ROWS, N_BATCHES = 600, 6


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs a command here, which reads a few batches: its exit code and what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ridgepass.data.source.BATCH_BYTES", 8 * 19 * N_ROWS // N_BATCHES)
    np.save("rows.npy", np.random.default_rng(0).standard_normal((N_ROWS, 20)))
    Path("parts").mkdir()

    def call(*arguments):
        capsys.readouterr()
        code = run(list(arguments))
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def whole(command):
    """The bytes of the model that a run without checkpoints writes."""
    assert command(*FIT, "-o", "m.ridge")[0] == 0
    return taken("m.ridge")


def taken(path):
    content = Path(path).read_bytes()
    Path(path).unlink()
    return content


@pytest.fixture
def before_writing(monkeypatch):
    """Has something happen before the checkpoint of some number is written, counted from one."""

    def set_up(happens):
        write, calls = module.write_checkpoint, []

        def written(*arguments):
            calls.append(arguments)
            happens(len(calls))
            write(*arguments)

        monkeypatch.setattr(module, "write_checkpoint", written)
        return calls

    return set_up


def full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "parts/m.part")


def ask_to_stop():
    signal.raise_signal(signal.SIGTERM)


def test_a_disk_that_is_full_for_a_while(command, whole, before_writing):
    calls = before_writing(lambda number: full() if number in (2, 3) else None)
    code, _, said = command(*FIT, *SAVING)
    assert code == 0
    assert taken("m.ridge") == whole
    assert os.listdir("parts") == []
    assert len(calls) == N_BATCHES  # it was tried again each time
    assert said.splitlines() == [
        "ridgepass: warning: the checkpoint parts/m.part cannot be written (No space left on "
        "device): training goes on, and tries again",
        "ridgepass: warning: 2 times the checkpoint parts/m.part could not be written; the model "
        "is complete all the same",
    ]


def test_a_folder_that_vanishes(command, whole, before_writing):
    before_writing(lambda number: shutil.rmtree("parts") if number == 2 else None)
    code, _, said = command(*FIT, *SAVING)
    assert code == 0
    assert taken("m.ridge") == whole
    first, last = said.splitlines()
    assert "parts/m.part cannot be written (No such file or directory)" in first
    assert f"{N_BATCHES - 1} times" in last


def test_asked_to_stop_without_any_checkpoint(command, before_writing):
    before_writing(lambda number: (ask_to_stop() if number == 3 else None, full()))
    code, _, said = command(*FIT, *SAVING)
    assert code == 130
    assert said.splitlines()[-1] == (
        "ridgepass: stopped after 300 rows, and the checkpoint parts/m.part could not be written "
        "(No space left on device): there is no checkpoint to resume from, and the same command "
        "begins at the first row"
    )
    assert not Path("m.ridge").exists()
    assert os.listdir("parts") == []


def test_asked_to_stop_with_the_last_checkpoint_only(command, whole, before_writing, monkeypatch):
    write = module.write_checkpoint
    before_writing(lambda number: (ask_to_stop(), full()) if number == 3 else None)
    code, _, said = command(*FIT, *SAVING)
    assert code == 130
    assert said.splitlines()[-1] == (
        "ridgepass: stopped after 300 rows, and the checkpoint parts/m.part could not be written "
        "(No space left on device): the same command with --resume goes on after 200 rows"
    )
    monkeypatch.setattr(module, "write_checkpoint", write)
    code, _, said = command(*FIT, *SAVING, "--resume")
    assert code == 0
    assert "going on from parts/m.part after 200 rows" in said
    assert taken("m.ridge") == whole


def test_a_checkpoint_that_vanished_is_not_offered(command, before_writing):
    def happens(number):
        if number == 3:
            shutil.rmtree("parts")
            ask_to_stop()

    before_writing(happens)
    code, _, said = command(*FIT, *SAVING)
    assert code == 130
    assert "there is no checkpoint to resume from" in said.splitlines()[-1]


def test_passes_go_on_without_checkpoints(command, before_writing):
    passes = [*FIT, "--passes", "4"]
    assert command(*passes, "-o", "m.ridge")[0] == 0
    whole, late = taken("m.ridge"), [*SAVING[:-1], "1h"]
    before_writing(lambda number: full() if number > 1 else None)
    code, _, said = command(*passes, *late)
    assert code == 0
    assert taken("m.ridge") == whole
    assert "3 times the checkpoint parts/m.part could not be written" in said


@pytest.mark.parametrize(
    ("written", "offered"), [(0, "there is no checkpoint to resume from"), (1, "after pass 1")]
)
def test_asked_to_stop_in_a_pass(command, before_writing, written, offered):
    def happens(number):
        if number > written:
            if number == 3:
                ask_to_stop()
            full()

    before_writing(happens)
    code, _, said = command(*FIT, "--passes", "5", *SAVING[:-1], "1h")
    assert code == 130
    assert offered in said.splitlines()[-1]
    assert not Path("m.ridge").exists()


def test_a_checkpoint_that_cannot_be_removed(command, whole, monkeypatch):
    def unlink(path, missing_ok=False):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        code, said, warned = command(*FIT, *SAVING)
    assert code == 0
    assert "m.ridge" in said
    assert "parts/m.part cannot be removed (Permission denied): delete it" in warned
    assert taken("m.ridge") == whole


def test_a_path_that_cannot_be_written_to_is_an_error_at_the_start(command, before_writing):
    calls = before_writing(lambda number: None)
    for path in ("nowhere/m.part", "parts"):
        code, _, said = command(*FIT, "-o", "m.ridge", "--checkpoint", path)
        assert code == 2
        assert said.startswith("ridgepass: error: ")
    assert calls == []
    assert not Path("m.ridge").exists()
