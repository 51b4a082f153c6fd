"""What a file says of columns is believed only if a source could have said it."""

import copy
import random

import numpy as np
import pandas as pd
import pytest

import ridgepass
from ridgepass import FormatError, StreamingRidge
from ridgepass.cli.models import inspect, merge
from ridgepass.cli.predict import predict
from ridgepass.store import from_bytes
from store.models import COLUMNS, again, batch, to_bytes
from store.test_damage import places

HOW = {
    "bounds": False,
    "confidence": 1 - 1e-6,
    "keep": [],
    "alpha": None,
    "nulls": None,
    "format": None,
    "output_format": None,
    "quiet": True,
}
STRANGE = [
    *(None, True, False, 0, 1, 2, -1, 10**9, 10**30, 0.5, 1e308, "", "x", "\ud800"),
    *("table", "array", "svmlight", "mean", "drop", "float32", "t", "a", "0", "4", "-1", "9999"),
    *([], {}, [1], [[]], ["x"], [None], {"name": "x"}, {"x": 1}, [0.0] * 5, ["t", "t"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of each kind and a model of each."""
    folder, rng = tmp_path_factory.mktemp("columns"), np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(60),
            "list": list(rng.standard_normal((60, 2))),
            "city": rng.choice(["x", "y", "z"], 60),
            "w": rng.random(60) + 0.1,
            "t": rng.standard_normal(60),
        }
    )
    frame.loc[3, "a"] = np.nan
    frame.to_parquet(folder / "t.parquet")
    np.save(folder / "n.npy", rng.standard_normal((60, 5)))
    numbers = rng.standard_normal((60, 3)).round(3).tolist()
    lines = [f"{y} 1:{one} 3:{three}\n" for y, one, three in numbers]
    (folder / "s.svm").write_text("".join(lines))
    options = {
        "t.parquet": {"target": "t", "weight": "w", "one_hot": ["city"], "nulls": "mean"},
        "n.npy": {"target": "-1", "nulls": "drop"},
        "s.svm": {"nulls": "zero"},
    }
    for name, how in options.items():
        model = StreamingRidge(method="fd", sketch_size=2).fit_stream(folder / name, **how)
        model.save(folder / f"{name}.ridge")
    return folder


def alter(tree, rng):
    """Change, take away, repeat, add or copy one part."""
    every = list(places(tree))
    where, there = tree, tree
    *parents, key = rng.choice(every)
    for parent in parents:
        where = where[parent]
    *others, name = rng.choice(every)
    for parent in others:
        there = there[parent]
    what = rng.randrange(7)
    if what == 0:
        del where[key]
    elif what == 1 and isinstance(where, list):
        where.insert(key, copy.deepcopy(where[key]))
    elif what == 2 and isinstance(where, dict):
        where[rng.choice(["x", "length", "name", "features"])] = rng.choice(STRANGE)
    elif what == 3:
        where[key] = copy.deepcopy(there[name])
    else:
        where[key] = copy.deepcopy(rng.choice(STRANGE))


def use(path, folder, name):
    """Do all that looks at columns; each works or raises ValueError."""
    out, own = folder / "out.ridge", f"{folder / name}.ridge"
    everything = [
        lambda: inspect([path], alpha=None, as_json=False),
        lambda: inspect([path], alpha=None, as_json=True),
        lambda: merge([own, path], str(out), as_json=False),
        lambda: merge([path, own], str(out), as_json=True),
    ]
    for data in ("t.parquet", "n.npy", "s.svm"):
        table = str(folder / data)
        everything += [
            lambda table=table: predict(path, [table], str(folder / "out.csv"), **HOW),
            lambda table=table: ridgepass.load(path).refine(table),
        ]
    n_well = 0
    for one in everything:
        try:
            one()
        except ValueError:
            continue
        n_well += 1
    return n_well


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", ["t.parquet", "n.npy", "s.svm"])
def test_any_change_is_refused_or_understood(folder, name, capsys):
    rng, n_refused, n_well = random.Random(name), 0, 0
    path = str(folder / "x.ridge")
    model = ridgepass.load(f"{folder / name}.ridge")
    columns = model._learned.columns
    assert use(f"{folder / name}.ridge", folder, name) > 3
    for _ in range(250):
        changed = copy.deepcopy(columns)
        for _ in range(rng.choice((1, 1, 2))):
            if changed:
                alter(changed, rng)
        model._learned.columns = changed
        model.save(path)
        try:
            ridgepass.load(path)
        except FormatError:
            n_refused += 1
        else:
            n_well += use(path, folder, name)
    assert n_refused > 150
    assert n_well > 10


def put(*path, value):
    def change(columns):
        where = columns
        for key in path[:-1]:
            where = where[key]
        where[path[-1]] = value

    return change


def drop(key):
    return lambda columns: columns.pop(key)


TABLE = {
    "another kind": put("kind", value="sheet"),
    "no text for a kind": put("kind", value=["table"]),
    "features that are no list": put("features", value={"name": "x"}),
    "features that are texts": put("features", value=["x"] * 9),
    "fewer features": put("features", value=COLUMNS["features"][:3]),
    "a name that is a number": put("features", 0, value={"name": 3}),
    "no name": put("features", 0, value={}),
    "more than is known of a feature": put("features", 0, value={"name": "x", "y": 1}),
    "a length that is a text": put("features", 1, "length", value="4"),
    "half a length": put("features", 1, "length", value=4.0),
    "a length of nothing": put("features", 1, "length", value=0),
    "lists of categories": put("features", 1, "categories", value=["x"] * 4),
    "a category that is a number": put("features", 2, "categories", 0, value=1),
    "a category twice": put("features", 2, "categories", 0, value="Rome"),
    "a column twice": put("features", 0, "name", value="last"),
    "a target that is a feature": put("targets", value=["last"]),
    "targets that are a text": put("targets", value="y"),
    "targets that are numbers": put("targets", value=[1]),
    "a weight that is a list": put("weight", value=["w"]),
    "half a character": put("weight", value="\ud800"),
    "nulls in an unknown way": put("nulls", value="guess"),
    "nulls as a list": put("nulls", value=["mean"]),
    "another dtype": put("dtype", value="float16"),
    "no means": put("means", value=None),
    "means for nothing": put("nulls", value="drop"),
    "fewer means": put("means", value=[0.0]),
    "means that are texts": put("means", value=["0.0"] * 9),
    "means that are whole numbers": put("means", value=[0] * 9),
    "means that are lists": put("means", value=[[]] * 9),
    "more than is known": put("more", value=1),
    **{
        f"no {key}": (lambda columns, key=key: columns.pop(key)) for key in COLUMNS if key != "kind"
    },
}
ARRAYS = {
    "kind": "array",
    "width": 12,
    "taken": list(range(9)),
    "nulls": "error",
    "dtype": "float32",
    "means": None,
    "targets": ["11"],
    "weight": "10",
}
ARRAY = {
    "a column beyond the width": put("width", value=10),
    "a width that is a text": put("width", value="12"),
    "a column from the end": put("taken", 0, value=-1),
    "a column that is a text": put("taken", 0, value="0"),
    "a column twice": put("taken", 0, value=1),
    "fewer columns": put("taken", value=[0]),
    "a target that is no number": put("targets", value=["y"]),
    "a target written in another way": put("targets", value=["011"]),
    "a target far away": put("targets", value=["9" * 100]),
    "a weight that is a feature": put("weight", value="3"),
    **{f"no {key}": drop(key) for key in ARRAYS if key != "kind"},
}
SVMLIGHTS = {"kind": "svmlight", "zero_based": True, "nulls": "error", "means": None}
SVMLIGHT = {
    "zero_based as a number": put("zero_based", value=1),
    "features of a table": put("features", value=[{"name": "x"}]),
    "no zero_based": drop("zero_based"),
    "means of another length": lambda columns: columns.update(nulls="mean", means=[0.0]),
}
CASES = [
    pytest.param(columns, change, id=f"{columns['kind']}, {name}")
    for columns, changes in ((COLUMNS, TABLE), (ARRAYS, ARRAY), (SVMLIGHTS, SVMLIGHT))
    for name, change in changes.items()
]


@pytest.fixture(scope="module")
def model():
    return StreamingRidge(method="fd", sketch_size=4).fit(*batch(30))


@pytest.mark.parametrize("columns", [COLUMNS, ARRAYS, SVMLIGHTS], ids=lambda each: each["kind"])
def test_what_sources_say_is_kept(model, columns):
    model._learned.columns = columns
    assert again(model)._learned.columns == columns


@pytest.mark.parametrize(("columns", "change"), CASES)
def test_what_no_source_says_is_refused(model, columns, change):
    changed = copy.deepcopy(columns)
    change(changed)
    model._learned.columns = changed
    with pytest.raises(FormatError, match=r"some/file.ridge holds .*: save the model again"):
        from_bytes(to_bytes(model), "some/file.ridge")


def test_columns_of_no_kind_are_kept_and_not_used(model):
    """A file of version 1 in tests/store/golden has such columns."""
    model._learned.columns = {"features": ["a", "b"], "targets": 3}
    found = again(model)  # which would write the same file once more
    assert found._learned.columns is None
    model._learned.columns = ["a"]
    with pytest.raises(FormatError, match="columns is not a group of values"):
        from_bytes(to_bytes(model), "m")
