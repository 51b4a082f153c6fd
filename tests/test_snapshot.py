"""Plain data of what objects hold: taken, checked against a template, and put back."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from ridgepass import RidgeStream
from ridgepass.sketch import SKETCHES
from ridgepass.snapshot import check_shapes, json_bytes, json_of, like, put_each, take, take_each
from same_bits import assert_same_bits, everything
from streams import METHODS


@dataclass(frozen=True)
class Point:
    x: float
    n: int = 0


class Holder:
    KEEPS = ("rows", "turned", "n", "size", "is_on", "point")

    def __init__(self):
        self.rows = np.zeros((2, 3), np.float32)
        self.turned = np.zeros((2, 3), order="F")
        self.n, self.size, self.is_on, self.point = 0, 0.0, False, Point(0.0)


@pytest.fixture
def holder():
    found = Holder()
    found.rows[:] = 1.5
    found.turned[0, 2] = 7.0
    found.n, found.size, found.is_on, found.point = 3, np.float64(0.1), True, Point(np.inf, 2)
    return found


def test_what_is_taken_is_plain_and_not_copied(holder):
    kept = take_each(holder, holder.KEEPS)
    assert type(kept["size"]) is float
    assert kept["point"] == {"x": np.inf, "n": 2}
    assert np.shares_memory(kept["rows"], holder.rows)
    assert np.shares_memory(kept["turned"], holder.turned)
    assert kept["turned"].shape == (3, 2)
    assert kept["turned"].flags.c_contiguous
    with pytest.raises(TypeError, match="cannot hold set"):
        take({1})


def test_what_is_put_comes_from_the_snapshot(holder):
    fresh, kept = Holder(), take_each(holder, holder.KEEPS)
    put_each(fresh, fresh.KEEPS, kept)
    np.testing.assert_array_equal(fresh.turned, holder.turned)
    assert fresh.turned.flags.f_contiguous
    assert fresh.rows is kept["rows"]
    assert (fresh.n, fresh.size, fresh.is_on, fresh.point) == (3, 0.1, True, Point(np.inf, 2))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", np.zeros((2, 3))),
        ("rows", np.zeros((3, 2), np.float32)),
        ("rows", [[0.0]]),
        ("turned", np.zeros((2, 3))),
        ("n", -1),
        ("n", 2**63),
        ("n", True),
        ("n", 1.0),
        ("size", 1),
        ("size", "infinity"),
        ("size", None),
        ("is_on", 1),
        ("point", 1.0),
        ("point", {"x": 0.0}),
        ("point", {"x": 0.0, "n": "1"}),
    ],
)
def test_nothing_is_put_halfway(holder, name, value):
    fresh, kept = Holder(), take_each(holder, holder.KEEPS)
    with pytest.raises(ValueError, match=r"x|n|" + name):
        put_each(fresh, fresh.KEEPS, kept | {name: value})
    del kept[name]
    with pytest.raises(ValueError, match=f"{name} is missing"):
        put_each(fresh, fresh.KEEPS, kept)
    assert (fresh.n, fresh.size, fresh.is_on, fresh.rows.any()) == (0, 0.0, False, False)


def test_names_of_numbers_that_json_lacks():
    assert like(0.0, "-inf", "x") == -np.inf
    assert np.isnan(like(0.0, "nan", "x"))


def test_json_in_arrays():
    value = {"ä": [1, 0.1, None, "\ud800"]}
    assert json_of(json_bytes(value), "x") == value
    for content in (b'{"a":1,"a":2}', b"[NaN]", b"[1", "ä".encode(), b"1" * 5000, b"[" * 10**5):
        with pytest.raises(ValueError, match="x is not JSON"):
            json_of(np.frombuffer(content, np.uint8), "x")


def stream(method, is_sparse=False, **options):
    options = {"sketch_size": 4, "seed": 5, "standardize": True, "fit_intercept": True} | options
    rng = np.random.default_rng(0)
    A = rng.standard_normal((301, 7)) * (rng.random((301, 7)) < 0.5)
    b = A[:, :1] + rng.standard_normal((301, 4))
    return RidgeStream(method, **options), sparse.csr_array(A) if is_sparse else A, b


def copied(kept):
    if isinstance(kept, dict):
        return {name: copied(value) for name, value in kept.items()}
    return kept.copy() if isinstance(kept, np.ndarray) else kept


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_sketch_names_all_that_it_keeps(method, is_sparse):
    """Every attribute of a state is in the snapshot, or settled before the first row."""
    model, A, b = stream(method, is_sparse)
    model.update(A, b)
    kept, fresh = copied(model.snapshot()), stream(method, is_sparse)[0]
    assert fresh.restore(kept) is fresh
    assert_same_bits(model, fresh)
    model.update(A[::-1] * 3.0, b)
    fresh.update(A[::-1] * 3.0, b)
    assert_same_bits(model, fresh)


@pytest.mark.parametrize("method", METHODS)
def test_arrays_lie_in_memory_as_a_snapshot_has_them(method):
    """Else sums over them might round differently after a restart."""
    model, A, b = stream(method)
    other = stream(method)[0].update(A * 5.0, b)
    model.update(A, b).merge(other).update(A[:50], b[:50])

    def check(value, path):
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous or value.flags.f_contiguous, path
            assert value.flags.c_contiguous or path.endswith("matrix"), path
        for name, part in getattr(value, "__dict__", {}).items():
            check(part, f"{path}.{name}")

    check(model._state, method)


@pytest.mark.parametrize("method", METHODS)
def test_shapes_are_known_beforehand(method):
    model, A, b = stream(method)
    model.update(A, b)
    shapes = SKETCHES[method].shapes(7, 4)
    kept = model.snapshot()["state"]["sketch"]
    check_shapes(kept, shapes)

    def largest(value):
        if isinstance(value, np.ndarray):
            return value.size
        return max(map(largest, value.values()), default=0) if isinstance(value, dict) else 0

    # Others grow with probes and targets, and are checked when they are put.
    grow = ("rp", "cs", "tracked")
    assert max(np.prod(s) for s in flat(shapes)) >= largest(kept) or method in grow
    with pytest.raises(ValueError, match=r"not an array of shape|missing"):
        check_shapes(kept, SKETCHES[method].shapes(10**15, 10**9))


def flat(shapes):
    for shape in shapes.values():
        yield from flat(shape) if isinstance(shape, dict) else [shape]


def test_a_stream_without_rows():
    empty = RidgeStream("fd")
    assert RidgeStream("fd").restore(empty.snapshot())._state is None


def test_a_restore_that_fails_changes_nothing():
    model, A, b = stream("tracked")
    model.update(A, b)
    kept, before = copied(model.snapshot()), everything(model)
    kept["state"]["sketch"]["due_turn"] = -1
    with pytest.raises(ValueError, match="due_turn is not a whole number"):
        model.restore(kept)
    for old, new in zip(before, everything(model), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_stream_of_other_options_takes_no_snapshot():
    model, A, b = stream("fd")
    kept = model.update(A, b).snapshot()
    for method, options in (("exact", {}), ("fd", {"sketch_size": 5}), ("tracked", {})):
        with pytest.raises(ValueError, match=r"missing|shape"):
            RidgeStream(method, **{"sketch_size": 4, **options}).restore(kept)
