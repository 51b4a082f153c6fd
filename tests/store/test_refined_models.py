"""What further passes have found out goes through a file, too."""

import numpy as np
import pytest
from sklearn.base import clone

import ridgepass
from ridgepass import FormatError, StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.snapshot import strict_json
from ridgepass.store import from_bytes, read
from store.models import batch
from store.test_damage import opened, resealed

HOW = {"method": "rfd", "sketch_size": 3}
ESTIMATORS = {
    "ridge": StreamingRidge(2.0, **HOW),
    "standardized": StreamingRidge(2.0, standardize=True, dtype="float32", **HOW),
    "gcv": StreamingRidgeCV([1.0, 2.0], **HOW),
    "folds": StreamingRidgeCV([1.0, 2.0], cv=3, **HOW),
    "classifier": StreamingRidgeClassifier(2.0, **HOW),
}


def rows_for(kind, seed=0, n_rows=150):
    X, y, weights = batch(
        n_rows, weighted=True, seed=seed, n_targets=2 if kind == "standardized" else 0
    )
    if kind == "classifier":
        y = np.array(["ash", "elm", "oak"])[(np.abs(y) % 3).astype(int)]
    return X, y, weights


def trained(kind, passes=2, **options):
    X, y, weights = rows_for(kind)
    model = clone(ESTIMATORS[kind]).fit(X, y, weights)
    return model.refine(X, y, weights, passes=passes, **options) if passes else model


def assert_same(left, right):
    np.testing.assert_array_equal(left.coef_, right.coef_)
    np.testing.assert_array_equal(left.intercept_, right.intercept_)
    X, mine, theirs = rows_for("ridge")[0], left.certificate(), right.certificate()
    assert mine.passes == theirs.passes
    for name in ("alpha", "coef_bound", "relative", "energy_bound", "offset", "rounding"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_array_equal(mine.prediction_bound(X), theirs.prediction_bound(X))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ridge"


def through(model, path):
    model.save(path)
    return ridgepass.load(path)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_everything_is_there(kind, path):
    model = trained(kind)
    assert model.certificate().passes == 3
    assert not np.array_equal(model.coef_, trained(kind, passes=0).coef_)
    twin = through(model, path)
    assert_same(twin, model)
    if isinstance(model, StreamingRidgeCV):
        assert twin.alpha_ == model.alpha_
        np.testing.assert_array_equal(twin.scores_, model.scores_)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_further_passes(kind, path):
    data, model = rows_for(kind), trained(kind)
    twin = through(model, path)
    assert_same(twin.refine(*data, passes=2), model.refine(*data, passes=2))
    assert twin.certificate().passes == 5
    assert_same(through(twin, path), model)
    # Passes before the file and after it are as good as passes in one go.
    assert_same(twin, trained(kind, passes=4))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_further_rows(kind, path):
    X, y, weights = rows_for(kind, seed=1)
    model, plain = trained(kind), trained(kind, passes=0)
    twin = through(model, path)
    for each in (model, twin, plain):
        each.partial_fit(X, y, sample_weight=weights)
        assert each.certificate().passes == 1
    assert_same(twin, model)
    assert_same(twin, plain)
    assert read_again(twin, path) == read_again(plain, path)
    again = through(trained(kind), path).merge(trained(kind))
    assert_same(again, trained(kind, passes=0).merge(trained(kind, passes=0)))


def read_again(model, path):
    model.save(path)
    return path.read_bytes()


def test_several_alphas(path):
    model = trained("ridge", alphas=[0.0, 1.0, 2.0, 1e300])
    twin = through(model, path)
    for alpha in (0.0, 1.0, 1.5, 2.0, 1e300):
        np.testing.assert_array_equal(twin.at(alpha).coef_, model.at(alpha).coef_)
        assert twin.certificate(alpha).passes == (1 if alpha == 1.5 else 3)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_same_model_gives_the_same_bytes(kind, path):
    content = read_again(trained(kind), path)
    assert read_again(trained(kind), path) == content
    assert read_again(ridgepass.load(path), path) == content
    assert read_again(trained(kind, passes=3), path) != content


def test_alphas_in_any_order_give_the_same_bytes(path):
    one = read_again(trained("ridge", alphas=[1.0, 2.0, 30.0]), path)
    other = trained("ridge", alphas=[30.0, 2.0, 1.0])
    assert [len(one)] == [len(read_again(other, path))]
    tree, again = opened(one)[1], opened(path.read_bytes())[1]
    found = [[part["alpha"] for part in refinement_of(each)["alphas"]] for each in (tree, again)]
    assert found == [[1.0, 2.0, 30.0]] * 2


def test_an_unrefined_sibling_saves_nothing_of_it(path):
    X, y, weights = rows_for("ridge")
    model = trained("ridge", passes=0)
    sibling = model.at(2.0)
    model.refine(X, y, weights, passes=2)
    sibling.save(path)
    assert "refinement" not in strict_json(opened(path.read_bytes())[1])
    assert read(path).model.certificate().passes == 1


def refinement_of(tree):
    learned = tree["learned"]
    return learned["refinement"] if "refinement" in learned else learned["stream"]["refinement"]


def damage(content, change):
    header, tree, data = opened(content)
    change(tree, header)
    header["__metadata__"]["model"] = strict_json(tree)
    return resealed(header, data)


def put(*path, value):
    """What sets one part of the refinement."""

    def change(tree, header):
        where = refinement_of(tree)
        for key in path[:-1]:
            where = where[key]
        where[path[-1]] = value

    return change


def drop(*path):
    def change(tree, header):
        where = refinement_of(tree)
        for key in path[:-1]:
            where = where[key]
        del where[path[-1]]

    return change


def exchange(one, other):
    """What exchanges two arrays by their names."""

    def change(tree, header):
        part = refinement_of(tree)["alphas"][0]
        part[one], part[other] = part[other], part[one]

    return change


def reshaped(tree, header):
    name = refinement_of(tree)["alphas"][0]["point"]["array"]
    header[name]["shape"].reverse()


def other_type(tree, header):
    name = refinement_of(tree)["mean"]["array"]
    header[name]["dtype"] = "I64"


PARTS = ("point", "residual", "direction", "step", "power", "error", "passes", "stalled", "alpha")
MEANS = ("mean", "target_mean", "mean_error", "target_mean_error", "alphas")
DAMAGES = {
    **{f"no {name}": drop("alphas", 0, name) for name in PARTS},
    **{f"nothing in the place of {name}": put("alphas", 0, name, value=None) for name in PARTS},
    **{f"{name} missing": drop(name) for name in MEANS},
    **{f"{name} empty": put(name, value=[]) for name in MEANS},
    "one pass": put("alphas", 0, "passes", value=1),
    "half a pass": put("alphas", 0, "passes", value=2.5),
    "true passes": put("alphas", 0, "passes", value=True),
    "neither true nor false": put("alphas", 0, "stalled", value=1),
    "a negative alpha": put("alphas", 0, "alpha", value=-1.0),
    "an infinite alpha": put("alphas", 0, "alpha", value="inf"),
    "an alpha that is no number": put("alphas", 0, "alpha", value="nan"),
    "text": put("alphas", 0, value="x"),
    "no list": put("alphas", value={}),
    "another shape": reshaped,
    "another type": other_type,
    "arrays of other shapes": exchange("point", "power"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "model.ridge"
    return {kind: read_again(trained(kind), path) for kind in ("standardized", "folds")}


@pytest.mark.parametrize("kind", ["standardized", "folds"])
@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_parts(files, kind, how):
    content = files[kind]
    assert from_bytes(damage(content, lambda tree, header: None), "m").model
    with pytest.raises(FormatError, match=r"some/file.ridge .*save the model again"):
        from_bytes(damage(content, DAMAGES[how]), "some/file.ridge")


@pytest.mark.parametrize("kind", ["standardized", "folds"])
def test_flipped_bits(files, kind):
    for place in range(0, len(files[kind]), max(1, len(files[kind]) // 200)):
        content = bytearray(files[kind])
        content[place] ^= 1
        with pytest.raises(FormatError):
            from_bytes(content, "m")
