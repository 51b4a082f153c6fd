import os
import random
import signal
import subprocess
import time
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command import COMMAND, complaint, run_well, summary
from tables import make_frame

import ridgepass as package

CHECKPOINTS = ["--checkpoint", "m.part", "--every", "20ms", "--resume"]


def _write_parquet(folder):
    rng = np.random.default_rng(0)
    for i in range(3):
        X = rng.standard_normal((9000, 200)).astype(np.float32)
        X[::50] = np.nan
        values = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 200)
        table = pa.table({"e": values, "y": rng.standard_normal(9000)})
        pa.parquet.write_table(table, folder / f"{i}.parquet", row_group_size=2500)
    return ["*.parquet", "-t", "y", "--sketch-size", "16", "--nulls", "mean"]


def _write_csv(folder):
    for i, end in enumerate(["csv.gz", "csv.gz"]):
        make_frame(40_000, seed=i).to_csv(folder / f"{i}.{end}", index=False)
    options = "-t price --one-hot city --weight weight --method rfd --sketch-size 3 --standardize"
    return [".", *options.split(), "--alpha", "auto"]


def _write_npy(folder):
    rng = np.random.default_rng(0)
    for i in range(2):
        np.save(folder / f"{i}.npy", rng.standard_normal((20_000, 60)))
    return ["0.npy", "1.npy", "--target=-1", "--method", "cs", "--sketch-size", "16"]


@pytest.mark.slow
@pytest.mark.parametrize("write", [_write_parquet, _write_csv, _write_npy])
def test_killed_at_any_moment_it_ends_in_the_same_bytes(tmp_path, write):
    command = ["fit", *write(tmp_path), "-o", "m.ridge"]
    taken = summary(*command, cwd=tmp_path)["seconds"]
    whole = (tmp_path / "m.ridge").read_bytes()
    chance, kills, resumed, rounds = random.Random(write.__name__), 0, 0, 0
    while rounds < 3 or not (kills and resumed):
        rounds += 1
        assert rounds < 50, "the run was always over before it could be killed"
        (tmp_path / "m.ridge").unlink()
        for tries in count(1):
            running = subprocess.Popen(
                [COMMAND, *command, *CHECKPOINTS],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            begun = running.stderr.readline()  # it has found a checkpoint or none
            resumed += b"going on from m.part" in begun
            try:
                # Longer each time, should the machine be slower than when time was taken.
                patience = chance.uniform(0, 2) * taken * (1 + tries / 10)
                _, said = running.communicate(timeout=patience)
                break
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()
                kills += 1
                for name in ("m.ridge", "m.part"):  # the old or the new one, never half of it
                    if (tmp_path / name).exists():
                        package.store.read(tmp_path / name)
        assert running.returncode == 0, said.decode()
        assert (tmp_path / "m.ridge").read_bytes() == whole
        assert not (tmp_path / "m.part").exists()
    assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []


@pytest.fixture
def stopped(tmp_path):
    """A folder where a run was asked to stop, and its command."""
    frame = make_frame(30_000).drop(columns="city")
    for i in range(3):
        frame[i * 10_000 : (i + 1) * 10_000].to_csv(tmp_path / f"{i}.csv", index=False)
    command = ["fit", "*.csv", "-t", "price", "-o", "m.ridge", "-q", "--alpha", "2"]
    _stop_in_the_middle(tmp_path, command)
    return tmp_path, [*command, *CHECKPOINTS]


def _stop_in_the_middle(folder, command):
    """Stop as soon as a checkpoint is there; a run may be over before, so it is repeated."""
    for _ in range(100):
        running = subprocess.Popen(
            [COMMAND, *command, "--checkpoint", "m.part", "--every", "1ms"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        while running.poll() is None and not (folder / "m.part").exists():
            time.sleep(0.0005)
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate()
        if running.returncode == 130:
            assert b"--resume goes on" in said
            assert not (folder / "m.ridge").exists()
            return
        (folder / "m.ridge").unlink(missing_ok=True)
        (folder / "m.part").unlink(missing_ok=True)
    pytest.fail("the run was always over before it could be stopped")


def test_asked_to_stop_it_leaves_a_checkpoint_and_goes_on(stopped):
    folder, command = stopped
    assert b"--resume goes on" in run_well("inspect", "m.part", cwd=folder)
    assert "--resume" in complaint(*command[:-1], cwd=folder)
    run_well(*command, cwd=folder)
    resumed = (folder / "m.ridge").read_bytes()
    run_well(*command[: -len(CHECKPOINTS)], cwd=folder)
    assert (folder / "m.ridge").read_bytes() == resumed
    assert package.load(folder / "m.ridge").n_samples_seen_ == 30_000


def test_changed_inputs_are_named(stopped):
    folder, command = stopped
    path, original = folder / "1.csv", (folder / "1.csv").read_bytes()
    times = os.stat(path)
    path.write_bytes(original[:-1] + b"7")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "1.csv has changed" in complaint(*command, cwd=folder)
    path.unlink()
    assert "1.csv is missing" in complaint(*command, cwd=folder)
    path.write_bytes(original)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    (folder / "3.csv").write_bytes(original)
    assert "3.csv is new" in complaint(*command, cwd=folder)
    (folder / "3.csv").unlink()
    os.utime(path, ns=(0, 0))
    assert "1.csv has changed" in complaint(*command, cwd=folder)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    run_well(*command, cwd=folder)


def test_another_command_is_noticed(stopped):
    folder, command = stopped
    other = [*command]
    other[other.index("2")] = "5"
    said = complaint(*other, cwd=folder)
    assert "m.part was written with --alpha 2.0, and now there is --alpha 5.0" in said
    for options, named in {
        ("--exclude", "rooms"): "with no --exclude, and now there is --exclude rooms",
        ("--no-intercept",): "with no --no-intercept, and now there is --no-intercept",
        ("--seed", "3"): "with --seed 0, and now there is --seed 3",
        ("--standardize",): "with no --standardize, and now there is --standardize",
    }.items():
        assert named in complaint(*command, *options, cwd=folder)


def test_what_is_no_checkpoint_is_not_overwritten(stopped):
    folder, command = stopped
    run_well(*command[: -len(CHECKPOINTS)], cwd=folder)
    (folder / "m.part").write_bytes((folder / "m.ridge").read_bytes())
    assert "finished model" in complaint(*command, cwd=folder)
    (folder / "m.part").write_bytes(b"my thesis")
    assert "m.part" in complaint(*command, cwd=folder)
