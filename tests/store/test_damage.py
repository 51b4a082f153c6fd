"""Files that are not what was written: one error, and nothing else."""

import copy
import random
import warnings

import numpy as np
import pytest

from ridgepass import FormatError
from ridgepass.intake import SparseIntake
from ridgepass.snapshot import read_json, strict_json
from ridgepass.store import from_bytes
from ridgepass.store.layout import DIGITS, NO_DIGITS, PREFIX_BYTES, VERSION, _digest
from store.models import N_FEATURES, small_models, to_bytes

KINDS = ["regressor", "chooser", "classifier"]


@pytest.fixture(scope="module")
def files():
    return {kind: to_bytes(model, {"at": 1}) for kind, model in small_models().items()}


def refuse(content):
    with pytest.raises(FormatError) as caught:
        from_bytes(content, "some/file.ridge")
    message = str(caught.value)
    assert message.startswith("some/file.ridge ")
    assert ": " in message or "; " in message
    return message


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation(files, kind):
    content = files[kind]
    for length in range(len(content)):
        refuse(content[:length])
    assert "damaged" in refuse(content[:-1])
    assert "checksum" in refuse(content + b"\0")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_bit_of_the_header(files, kind):
    content = bytearray(files[kind])
    length = PREFIX_BYTES + int.from_bytes(content[:PREFIX_BYTES], "little")
    for place in range(length):
        for bit in range(8):
            content[place] ^= 1 << bit
            assert refuse(content)
            content[place] ^= 1 << bit
    assert from_bytes(content, "as it was").model.n_samples_seen_ > 0


def test_other_files():
    assert "is not a ridgepass model" in refuse(b"")
    assert "is not a ridgepass model" in refuse(b"PK\x03\x04" + bytes(1000))
    header = b'{"__metadata__":{"format":"pt"}}'
    assert "is not a ridgepass model" in refuse(len(header).to_bytes(8, "little") + header)


def mutated(content, rng):
    """A copy with some damage, somewhere."""
    damaged, n = bytearray(content), len(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        start, size = rng.randrange(n), rng.choice((1, 2, 8, 64, 300))
        run = bytes(damaged[start : start + size])
        kind = rng.randrange(7)
        if kind == 0:
            damaged[start % len(damaged)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[start % len(damaged)] = rng.randrange(256)
        elif kind == 2:
            damaged[start:start] = rng.randbytes(size)
        elif kind == 3:
            del damaged[start : start + size]
        elif kind == 4:
            damaged[start:start] = run
        elif kind == 5:
            damaged[start : start + size] = bytes(len(run))
        else:
            other = rng.randrange(n)
            there = bytes(damaged[other : other + len(run)])
            damaged[start : start + len(there)] = there
            damaged[other : other + len(run)] = run
    return bytes(damaged)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_random_damage(files, kind):
    content, rng, tried = files[kind], random.Random(0), 0
    while tried < 35_000:
        damaged = mutated(content, rng)
        if damaged != content:
            tried += 1
            with pytest.raises(FormatError):
                from_bytes(damaged, "m")


def resealed(header, data):
    """A file of any content with the right checksum."""
    body = strict_json(header).encode()
    head = len(body).to_bytes(PREFIX_BYTES, "little") + body
    content = bytearray(head + data)
    content[DIGITS] = NO_DIGITS
    content[DIGITS] = _digest(bytes(content))
    return bytes(content)


def opened(content):
    length = PREFIX_BYTES + int.from_bytes(content[:PREFIX_BYTES], "little")
    header = read_json(content[PREFIX_BYTES:length], "header")
    return header, read_json(header["__metadata__"]["model"], "model"), content[length:]


STRANGE = [
    *(None, True, False, 0, 1, 2, 3, 5, 9, -1, 10**6, 10**15, 2**62, 2**64, 10**400),
    *(0.0, -1.0, 0.5, 1e308, 5e-324, "inf", "-inf", "nan", "", "x", "float32", "float64"),
    *("exact", "fd", "rfd", "isvd", "2lfd", "rp", "cs", "tracked", "auto"),
    *("StreamingRidge", "StreamingRidgeCV", "StreamingRidgeClassifier", "O", "U", "i", "f"),
    *([], {}, [1], {"array": "x"}, {"list": [1]}, {"dict": [[1, 2]]}, {"number": "inf"}),
    *("F64", "F32", "I64", "I32", "U8", "U32", "BOOL", [0], [0, 0], [10**15, 1], [3, 10**9]),
]


def places(tree, path=()):
    """All paths within nested data."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def alter(tree, rng):
    """Change one value, take one away, exchange two, or put one elsewhere."""
    every = list(places(tree))
    *parents, key = rng.choice(every)
    where = tree
    for parent in parents:
        where = where[parent]
    what = rng.randrange(8)
    if what == 0:
        del where[key]
    elif what == 1 and isinstance(where[key], int | float) and not isinstance(where[key], bool):
        where[key] = rng.choice((-where[key], where[key] + 1, where[key] * 2, where[key] * 10**9))
    elif what == 2:
        there = tree
        *others, name = rng.choice(every)
        try:
            for parent in others:
                there = there[parent]
            where[key], there[name] = there[name], where[key]
            strict_json(tree)
        except (KeyError, IndexError, TypeError, ValueError, RecursionError):
            return False
    elif what == 3 and isinstance(where, dict):
        name = rng.choice(("x", "array", "folds", "anchor", "scaling", "probes", "start"))
        where[name] = copy.deepcopy(rng.choice(STRANGE))
    else:
        where[key] = copy.deepcopy(rng.choice(STRANGE))
    return True


def check_outcome(content):
    """Read it, and if that is possible use it."""
    X = np.ones((2, N_FEATURES))
    try:
        model = from_bytes(content, "m").model
    except FormatError:
        return False
    n_features = model.n_features_in_
    try:
        found = model.predict(X if n_features == N_FEATURES else np.ones((2, n_features)))
    except ValueError:
        return True
    assert len(found) == 2
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sound_checksums_over_nonsense(files, kind):
    rng, n_read = random.Random(1), 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(8_000):
            header, model, data = opened(files[kind])
            which = rng.random()
            if which < 0.7:
                sound = all(alter(model, rng) for _ in range(rng.choice((1, 1, 2))))
                header["__metadata__"]["model"] = strict_json(model) if sound else "{}"
            elif which < 0.85:
                table = {name: info for name, info in header.items() if name != "__metadata__"}
                if not alter(table, rng):
                    continue
                header = {"__metadata__": header["__metadata__"], **table}
            else:
                damaged = bytearray(data)
                for _ in range(rng.choice((1, 10, 200))):
                    damaged[rng.randrange(len(data))] = rng.choice(
                        (0, 255, 127, rng.randrange(256))
                    )
                data = bytes(damaged)
            n_read += check_outcome(resealed(header, data))
    assert 200 < n_read < 7_500


def test_a_newer_version(files):
    header, _, data = opened(files["regressor"])
    header["__metadata__"]["version"] = str(VERSION + 1)
    wanted = f"reads up to {VERSION}: upgrade ridgepass"
    assert refuse(resealed(header, data)).endswith(wanted)


def test_what_does_not_belong_together(files):
    for kind, path, value, message in [
        ("regressor", ("class",), "StreamingRidgeClassifier", "cannot have learned this"),
        ("classifier", ("class",), "StreamingRidge", "class_weight is unknown"),
        ("regressor", ("learned", "plan", "sketch_size"), 10**15, "not an array of shape"),
        ("regressor", ("learned", "plan", "method"), "exact", "matrix is missing"),
        ("regressor", ("learned", "origin", "n_features"), 10**15, "other features"),
        ("classifier", ("learned", "origin", "n_targets"), 2, "3 classes have 2 targets"),
        ("chooser", ("learned", "n_given"), -1, "whole number of at least 0"),
    ]:
        header, model, data = opened(files[kind])
        where = model
        for key in path[:-1]:
            where = where[key]
        where[path[-1]] = value
        header["__metadata__"]["model"] = strict_json(model)
        found = refuse(resealed(header, data))
        assert message in found
        assert found.endswith("save the model again")


def test_deep_nesting(files):
    header, _, data = opened(files["regressor"])
    for depth in (900, 100_000):
        header["__metadata__"]["model"] = '{"class":' + "[" * depth + "]" * depth + "}"
        assert refuse(resealed(header, data))


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [
        ([0, 1, 50], [0, 2, 3]),
        ([0, -1, 1], [0, 2, 3]),
        ([1, 0, 1], [0, 2, 3]),
        ([0, 0, 1], [0, 2, 3]),
    ]
    + [([0, 1, 2], cut) for cut in ([1, 2, 3], [0, 4, 3], [0, 2, 2], [0, -1, 3], [0, 3, 4])]
    + [([0, 1, 2], [0, 2**31 - 1, -(2**31), 3])],
)
def test_sparse_rows_that_point_elsewhere(indices, indptr):
    intake = SparseIntake(8, 3, 1, np.dtype(float))
    kept = intake.snapshot() | {
        "filled": len(indptr) - 1,
        "waiting_targets": np.zeros((len(indptr) - 1, 1)),
        "waiting_weights": np.ones(len(indptr) - 1),
    }
    rows = {
        "data": np.ones(3),
        "indices": np.array(indices, np.int32),
        "indptr": np.array(indptr, np.int32),
    }
    with pytest.raises(ValueError, match=r"indices has|indptr does not"):
        intake.restore(kept | {"waiting_rows": rows})
