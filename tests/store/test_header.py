"""JSON that was made to take memory is refused before it does."""

import hashlib
import json
import tracemalloc

import numpy as np
import pytest

from ridgepass import FormatError, StreamingRidge, StreamingRidgeCV
from ridgepass.snapshot import json_of
from ridgepass.store import from_bytes, layout, notes_of, save
from store.models import again, batch

N_BYTES = 4_000_000
DEPTH = 400


def repeated(unit, room=0):
    """An object with a long list; each unit takes ``room`` bytes, mostly spaces."""
    unit = unit.ljust(room)
    return '{"a":[' + unit * (N_BYTES // len(unit)) + "0]}"


def keys(room=0):
    pairs = (f'"{i:05x}":0,'.ljust(room) for i in range(N_BYTES // max(10, room)))
    return "{" + "".join(pairs) + '"z":0}'


DENSE = {
    "objects": repeated('{"":0},'),
    "lists": repeated("[],"),
    "nested lists": repeated("[" * DEPTH + "]" * DEPTH + ","),
    "nested objects": repeated('{"":' * DEPTH + "0" + "}" * DEPTH + ","),
    "keys": keys(),
    "strings": repeated('"ab",'),
}
# As many values as a file of that size may have.
ALLOWED = {
    "objects": repeated('{"":0},', 18),
    "nested lists": repeated("[" * DEPTH + "]" * DEPTH + ",", 6 * DEPTH),
    "nested objects": repeated('{"":' * DEPTH + "0" + "}" * DEPTH + ",", 12 * DEPTH),
    "keys": keys(12),
    "strings": repeated('"ab",', 6),
}


def sealed(*, model='"{}"', notes='"{}"', table="", data=b""):
    """A file with any text in the places of a header's parts, and the right checksum."""
    rest = f'","version":"1","model":{model},"notes":{notes}}}{table}}}'
    header = layout.MAGIC + layout.NO_DIGITS + rest.encode()
    content = bytearray(len(header).to_bytes(8, "little") + header + data)
    content[layout.DIGITS] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content)


def in_array(text):
    """A file with the text in an array, as the names of features are."""
    info = {"dtype": "U8", "shape": [len(text)], "data_offsets": [0, len(text)]}
    model = json.dumps('{"x":{"array":"x"}}')
    return sealed(model=model, table=f',"x":{json.dumps(info)}', data=text.encode())


PLACES = {
    "model": lambda text: sealed(model=json.dumps(text)),
    "notes": lambda text: sealed(notes=json.dumps(text)),
    "table": lambda text: sealed(table="," + text[1:-1]),
    "array": in_array,
}


@pytest.fixture
def read(monkeypatch):
    """Read a file's JSON alone; return the peak of memory, in bytes, and the error."""

    def put(tree):
        return json_of(tree["x"], "x") if "x" in tree else None

    def measured(content):
        error = None
        tracemalloc.start()
        try:
            from_bytes(content, "m")
        except FormatError as found:
            error = str(found)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return peak, error

    monkeypatch.setattr("ridgepass.store.put_model", put)
    return measured


@pytest.mark.parametrize("kind", DENSE)
@pytest.mark.parametrize("place", PLACES)
def test_dense_json_is_refused_before_it_is_read(read, kind, place):
    content = PLACES[place](DENSE[kind])
    peak, error = read(content)
    assert peak < 4 * len(content)
    assert "values that a file of this size may have" in error


def test_brackets_that_do_not_show_within_a_string_are_counted(read):
    content = sealed(notes=json.dumps(DENSE["lists"]).replace("[", "\\u005b"))
    assert sum(map(content.count, (b"{", b"[", b",", b":"))) < len(content) / 7
    assert "values that a file of this size may have" in read(content)[1]


@pytest.mark.parametrize("kind", ALLOWED)
def test_what_is_allowed_takes_a_small_multiple(read, kind):
    content = in_array(ALLOWED[kind])
    peak, error = read(content)
    assert error is None
    assert peak < 20 * len(content)


def test_dense_notes_are_not_read_from_the_header(tmp_path):
    path = tmp_path / "m.ridge"
    path.write_bytes(sealed(notes=json.dumps(DENSE["objects"])))
    assert notes_of(path) == {}


def test_notes_that_could_not_be_read_are_not_written(tmp_path):
    model, path = StreamingRidge(sketch_size=4).fit(*batch(30)), tmp_path / "m.ridge"
    save(model, path, notes={"x": [0] * 50_000})
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"values that a file of this size may have: make the n"):
        save(model, path, notes={"x": [0] * 200_000})
    assert path.read_bytes() == before
    save(model, path, notes={"x": "long " * 1_000_000})
    assert len(notes_of(path)["x"]) == 5_000_000


def test_models_with_many_small_parts_are_read():
    """They have the most values for their size."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 1))
    model = StreamingRidgeCV([1.0], cv=300, method="tracked", sketch_size=2, standardize=True)
    assert again(model.partial_fit(X, X[:, 0])).n_samples_seen_ == 600


def test_wide_tables_are_read():
    X = np.ones((4, 60_000), dtype=np.float32)
    model = StreamingRidge(method="fd", sketch_size=2, fit_intercept=False).partial_fit(X, X[:, 0])
    names = [f"x{i}=1" for i in range(60_000)]
    object.__setattr__(model._learned.origin, "names", np.array(names, dtype=object))
    model._learned.columns = {
        "kind": "table",
        "features": [{"name": name[:-2], "categories": ["1"]} for name in names],
        "targets": ["y"],
        "weight": None,
        "nulls": "mean",
        "dtype": "float32",
        "means": [0.0] * 60_000,
    }
    assert again(model)._learned.columns == model._learned.columns
