import json

import pytest

from ridgepass.data.columns import Columns, Feature, OneHot, Vector, as_names, check_there, select

COLUMNS = Columns(
    (Feature("a"), Vector("e", 3), OneHot("c", ("x", "y z", "=")), Feature("x[0]")),
    ("t",),
    "w",
    "mean",
    "float32",
    (0.1, 1 / 3, 0.0, 1e300, 0.0, 0.0, 0.0, -0.0),
)


def chosen(columns, features=(), exclude=(), others=(), index=()):
    return select(columns, "it", features=features, exclude=exclude, others=others, index=index)


def test_json_and_back():
    plain = json.loads(json.dumps(COLUMNS.to_json()))
    assert Columns.from_json(plain) == COLUMNS
    bare = Columns((Feature("a"),))
    assert Columns.from_json(json.loads(json.dumps(bare.to_json()))) == bare


def test_names_and_labels():
    assert COLUMNS.names == ["a", "e[0]", "e[1]", "e[2]", "c=x", "c=y z", "c==", "x[0]"]
    assert COLUMNS.width == 8
    labels = [COLUMNS.label(i) for i in range(8)]
    assert labels == ["a", "e[0]", "e[1]", "e[2]", "c", "c", "c", "x[0]"]
    assert COLUMNS.needed == ["a", "e", "c", "x[0]", "t", "w"]
    assert COLUMNS.for_prediction().needed == ["a", "e", "c", "x[0]"]


def test_mostly_categories_are_sparse():
    many = OneHot("c", tuple(map(str, range(100))))
    assert Columns((many, Feature("a"))).is_sparse
    assert Columns((many, Feature("a"))).n_filled == 4
    assert not Columns((many, Vector("e", 50))).is_sparse
    assert not Columns((OneHot("c", tuple("0123456789")),)).is_sparse


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ({}, ["x1", "x2", "y", "x[0]", "*", "a b"]),
        ({"features": ["x*"]}, ["x1", "x2", "x[0]"]),
        ({"features": ["x2", "x1"]}, ["x1", "x2"]),
        ({"features": ["x[0]"]}, ["x[0]"]),
        ({"features": ["x[12]"]}, ["x1", "x2"]),
        ({"exclude": ["x?", "a *"]}, ["y", "x[0]", "*"]),
        ({"exclude": ["*"], "features": ["x1"]}, None),
        ({"others": ["y"], "features": ["y", "x1"]}, ["x1"]),
        ({"index": ["x1"]}, ["x2", "y", "x[0]", "*", "a b"]),
        ({"index": ["x1"], "features": ["x*"]}, ["x2", "x[0]"]),
        ({"index": ["x1"], "features": ["x1"]}, ["x1"]),
    ],
)
def test_select(how, wanted):
    columns = ["x1", "x2", "y", "x[0]", "*", "a b"]
    if wanted is None:
        with pytest.raises(ValueError, match="it has no column left for features: exclude fewer"):
            chosen(columns, **how)
    else:
        assert chosen(columns, **how) == wanted


def test_patterns_that_match_nothing_are_errors():
    with pytest.raises(ValueError, match="it has no column 'z': it has 'x1', 'x2'"):
        chosen(["x1", "x2"], exclude=["z"])
    with pytest.raises(ValueError, match=r"it has no column 'q_\*': it has"):
        chosen(["x1", "x2"], features=["q_*"])
    with pytest.raises(ValueError, match="it has two columns 'a': rename one"):
        chosen(["a", "b", "a"])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Price", r"did you mean 'price'\?"),
        ("pricee", "did you mean 'price'"),
        ("zzz", "it has 'price', 'c0', 'c1', .* and 11 more"),
    ],
)
def test_near_matches(name, hint):
    columns = ["price", *(f"c{i}" for i in range(20))]
    with pytest.raises(ValueError, match=f"the file has no column '{name}': {hint}"):
        check_there(name, columns, "the file")
    check_there("price", columns, "the file")


def test_as_names(tmp_path):
    assert as_names(None) == []
    assert as_names("a") == ["a"]
    assert as_names(-1) == ["-1"]
    assert as_names(["a", 3]) == ["a", "3"]
    assert as_names(tmp_path) == [str(tmp_path)]
    assert as_names(name for name in "ab") == ["a", "b"]
