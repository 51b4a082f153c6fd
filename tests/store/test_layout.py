"""The bytes of a file, as others see them and as they lie in memory."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

import ridgepass
from ridgepass import StreamingRidge
from ridgepass.store import from_bytes, layout, notes_of, save
from ridgepass.store.layout import TYPES, VERSION, pack, unpack
from store.models import assert_same, batch, small_models, to_bytes

KINDS = ["regressor", "chooser", "classifier"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_safetensors_library_reads_it(kind, tmp_path):
    model, path = small_models()[kind], tmp_path / "m.ridge"
    model.save(path)
    arrays = load_file(path)
    tree = unpack(bytearray(path.read_bytes()), "m").tree
    stream = tree["learned"].get("stream") or tree["learned"]["folds"][0]
    name = "learned.stream" if "stream" in tree["learned"] else "learned.folds.0"
    cross = stream["state"]["moments"]["cross"]
    np.testing.assert_array_equal(arrays[f"{name}.state.moments.cross"], cross)
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
        assert metadata["format"] == "ridgepass"
        assert metadata["version"] == str(VERSION) == "4"
        assert json.loads(metadata["model"])["class"] == type(model).__name__
        assert sorted(file.keys()) == sorted(arrays)


def test_every_type_of_number_in_order():
    rng = np.random.default_rng(0)
    tree = {code: rng.integers(0, 2, (3, 5)).astype(name) for code, name in TYPES.items()} | {
        "none": np.empty((0, 4)),
        "last": np.empty((2, 0), dtype=bool),
    }
    content = bytearray(_bytes(pack(tree, {})))
    found = unpack(content, "m").tree
    for name, array in tree.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.aligned
        assert not found[name].flags.writeable
    length = int.from_bytes(content[:8], "little")
    assert (8 + length) % 64 == 0
    header = json.loads(content[8 : 8 + length])
    del header["__metadata__"]
    assert list(header) == sorted(header, key=lambda n: (-tree[n].itemsize, n))


def _bytes(packed):
    return packed.head + b"".join(array.tobytes() for array in packed.arrays)


def test_the_checksum_is_over_all_else():
    content = bytearray(to_bytes(small_models()["regressor"]))
    digits = bytes(content[layout.DIGITS])
    content[layout.DIGITS] = b"0" * 64
    assert hashlib.sha256(content).hexdigest().encode() == digits
    content[layout.DIGITS] = digits.upper()
    with pytest.raises(ridgepass.FormatError, match="m is damaged: its checksum is wrong; copy"):
        from_bytes(content, "m")


def test_numbers_of_any_kind_come_back():
    tree = {"a": [0.1, 5e-324, -0.0, 1e308, 10**30, True, None, "inf"], "b": float("-inf")}
    found = unpack(bytearray(_bytes(pack(tree, {}))), "m").tree
    assert repr(found) == repr({**tree, "b": "-inf"})


def test_arrays_of_big_endian_machines():
    array = np.arange(4.0).astype(">f8")
    found = unpack(bytearray(_bytes(pack({"a": array}, {}))), "m").tree["a"]
    np.testing.assert_array_equal(found, array)
    assert found.dtype == np.dtype("<f8")


def test_what_a_file_cannot_hold(monkeypatch):
    with pytest.raises(ValueError, match="cannot hold a of dtype complex128: convert"):
        pack({"a": np.ones(2, complex)}, {})
    monkeypatch.setattr(layout, "LARGEST_HEADER", 1000)
    with pytest.raises(ValueError, match="of which 1000 are allowed: make the notes shorter"):
        pack({}, {"x": "y" * 1000})


def test_arrays_must_be_used_once():
    header = _bytes(pack({"a": np.ones(2), "b": 1}, {}))
    assert unpack(bytearray(header), "m").tree["b"] == 1
    for model in ('{"b":1}', '{"a":{"array":"a"},"b":{"array":"a"}}', '{"b":{"array":"c"}}'):
        content = _with_model(header, model)
        with pytest.raises(ValueError, match=r"has no place|is missing or occurs twice"):
            unpack(content, "m")


def _with_model(content, model):
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"]["model"] = model
    body = json.dumps(header, separators=(",", ":")).encode()
    found = bytearray(len(body).to_bytes(8, "little") + body + content[8 + length :])
    found[layout.DIGITS] = layout.NO_DIGITS
    found[layout.DIGITS] = hashlib.sha256(found).hexdigest().encode()
    return found


def test_many_names_do_not_swell_the_header():
    rows = np.ones((1, 100_000), dtype=np.float32)
    model = StreamingRidge(sketch_size=2, method="cs", random_state=0).partial_fit(rows, [1.0])
    names = np.array([f"name {i}" for i in range(100_000)], dtype=object)
    object.__setattr__(model._learned.origin, "names", names)
    content = to_bytes(model)
    assert int.from_bytes(content[:8], "little") < 5000
    assert from_bytes(content, "m").model.feature_names_in_[-1] == "name 99999"


def test_training_leaves_the_file_alone(tmp_path):
    path = tmp_path / "m.ridge"
    for method in ("exact", "tracked", "2lfd", "rp"):
        model = StreamingRidge(method=method, sketch_size=4, random_state=0)
        model.partial_fit(*batch(267)).save(path)
        before = path.read_bytes()
        found = ridgepass.load(path)
        assert_same(found.partial_fit(*batch(600, seed=1)), model.partial_fit(*batch(600, seed=1)))
        assert path.read_bytes() == before
        found.save(path)  # over the file it lives in
        assert_same(ridgepass.load(path), found)
        assert path.read_bytes() != before


def test_arrays_are_read_only_views_of_the_file():
    regressor = small_models()["regressor"]
    other = StreamingRidge(method="rfd", sketch_size=4, probes=3).fit(*batch(90))
    for original in (regressor, other):
        content = bytearray(to_bytes(original))
        model = from_bytes(content, "m").model
        state, everything = model._learned.stream._state, np.frombuffer(content, np.uint8)
        arrays = [state.moments.cross, state.intake._rows]
        if original is regressor:
            arrays += [state.sketch.points, state.sketch.images, state.sketch.further]
        else:
            arrays += [state.sketch.rows, state.own_probes.points, state.own_probes.images]
        for array in arrays:
            assert np.shares_memory(array, everything)
            assert not array.flags.writeable


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_loading_and_saving_take_no_memory_of_their_own(tmp_path):
    path = tmp_path / "big.ridge"
    X = np.ones((300, 100_000), dtype=np.float32)
    model = StreamingRidge(method="cs", sketch_size=200, random_state=0, fit_intercept=False)
    model.partial_fit(X, np.ones(300)).save(path)
    assert path.stat().st_size > 100_000_000  # the sketch, and 100 rows that wait
    program = """
        import sys, resource
        import numpy as np
        import ridgepass

        def own():
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

        ridgepass.StreamingRidge(sketch_size=4).fit(np.eye(3), np.ones(3)).predict(np.eye(3))
        before = own()
        model = ridgepass.load(sys.argv[1])
        print(own() - before)
        model.save(sys.argv[1])
        print(own() - before)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    loaded, saved = map(int, result.stdout.split())
    assert loaded < 15_000, f"{loaded} kB for a file of {path.stat().st_size // 1000} kB"
    assert saved < 15_000


def test_no_code_is_run_and_system_errors_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ridgepass.load(tmp_path / "nowhere.ridge")
    with pytest.raises(IsADirectoryError):
        ridgepass.load(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(ridgepass.FormatError, match="empty is not a ridgepass model"):
        ridgepass.load(tmp_path / "empty")


needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")


@needs_pipes
def test_a_model_is_written_to_a_pipe(tmp_path):
    pipe, model = tmp_path / "pipe", small_models()["classifier"]
    os.mkfifo(pipe)
    writer = threading.Thread(target=model.save, args=(pipe,))
    writer.start()
    assert_same(from_bytes(pipe.read_bytes(), "a pipe").model, model)
    writer.join()


@needs_pipes
def test_a_pipe_that_nobody_writes_to_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(ridgepass.FormatError, match=rf"{name} is a pipe.* to a file first"):
            ridgepass.load(tmp_path / name)
        assert notes_of(tmp_path / name) == {}


def test_process_substitution_is_refused():
    receives, sends = os.pipe()
    try:
        os.write(sends, to_bytes(small_models()["regressor"])[:1000])
        with pytest.raises(ridgepass.FormatError, match="copy it to a file first"):
            ridgepass.load(f"/dev/fd/{receives}")
    finally:
        os.close(receives)
        os.close(sends)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs devices")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_without_end_is_refused(device):
    with pytest.raises(ridgepass.FormatError, match=f"{device} is a pipe or a device"):
        ridgepass.load(device)
    assert notes_of(device) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_notes_come_from_the_header_alone(kind, tmp_path):
    path, notes = tmp_path / "m.ridge", {"at": [1, None, "x"]}
    save(small_models()[kind], path, notes=notes)
    assert notes_of(path) == notes
    content = path.read_bytes()
    length = 8 + int.from_bytes(content[:8], "little")
    path.write_bytes(content[:length])  # no array is there
    assert notes_of(path) == notes
    for size in (length - 1, 200, 100, 8, 0):
        path.write_bytes(content[:size])
        assert notes_of(path) == {}
    assert notes_of(tmp_path) == {}
    assert notes_of(tmp_path / "nowhere") == {}


def test_saving_and_predicting_at_once(tmp_path):
    model, errors = StreamingRidge(method="fd", sketch_size=8).partial_fit(*batch(100)), []
    X = batch(10)[0]
    expected = model.predict(X)

    def work(i):
        try:
            for _ in range(10):
                model.save(tmp_path / f"{i % 2}.ridge")
                found = ridgepass.load(tmp_path / f"{i % 2}.ridge")
                np.testing.assert_array_equal(found.predict(X), expected)
                np.testing.assert_array_equal(model.at(1.0).predict(X), expected)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.ridge", "1.ridge"]
