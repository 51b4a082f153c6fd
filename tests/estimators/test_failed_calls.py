"""A call that fails changes nothing: every method, every kind of wrong argument, every model."""

import copy
import functools

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from interrupts import answers, hashed
from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.estimators import learned

N_ROWS, N_FEATURES = 30, 4
rng = np.random.default_rng(0)
X = rng.standard_normal((N_ROWS, N_FEATURES)) + np.array([1.0, 5.0, -3.0, 0.0])
Y = X @ rng.standard_normal((N_FEATURES, 2)) + rng.standard_normal((N_ROWS, 2))
KINDS = np.array(["ash", "elm", "oak"])[np.arange(N_ROWS) % 3]
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(np.zeros(3 * N_ROWS)))
NAMED = pd.DataFrame(X, columns=list("abcd"))
SMALL = {"sketch_size": 3, "method": "rfd"}


# Names that come and go, and a column of labels, are told of and no failure.
pytestmark = [
    pytest.mark.filterwarnings("ignore:X has feature names"),
    pytest.mark.filterwarnings("ignore:X does not have valid"),
]


class Kind:
    """How a model is made, and data that suits it."""

    def __init__(self, make, y=Y[:, 0], rows=X):
        self.make, self.y, self.rows = make, y, rows

    def first(self, model):
        if isinstance(model, StreamingRidgeClassifier) and self.y.ndim == 1:
            return model.partial_fit(self.rows, self.y, np.unique(self.y))
        return model.partial_fit(self.rows, self.y)


KINDS_OF_MODEL = {
    "exact": Kind(lambda: StreamingRidge(method="exact")),
    "short": Kind(lambda: StreamingRidge(dtype="float32", standardize=True, **SMALL)),
    "scaled": Kind(lambda: StreamingRidge(feature_scale=[1.0, 2.0, 3.0, 1e-3], **SMALL)),
    "two targets": Kind(lambda: StreamingRidge(fit_intercept=False, **SMALL), Y),
    "sparse": Kind(lambda: StreamingRidge(method="fd", sketch_size=3), rows=sparse.csr_array(X)),
    "named": Kind(lambda: StreamingRidge(method="tracked", sketch_size=3), rows=NAMED),
    "random": Kind(
        lambda: StreamingRidge(method="cs", sketch_size=3, random_state=np.random.RandomState(7))
    ),
    "chooser": Kind(lambda: StreamingRidgeCV([0.1, 1.0])),
    "folds": Kind(
        lambda: StreamingRidgeCV(
            cv=2, method="2lfd", sketch_size=3, random_state=np.random.RandomState(7)
        )
    ),
    "given folds": Kind(lambda: StreamingRidgeCV([1.0], cv=SPLITS, dtype="float32", **SMALL), Y),
    "two classes": Kind(lambda: StreamingRidgeClassifier(**SMALL), KINDS == "oak"),
    "classes": Kind(lambda: StreamingRidgeClassifier(dtype="float32", **SMALL), KINDS),
    "labels": Kind(lambda: StreamingRidgeClassifier(method="exact"), (Y > 0).astype(int)),
}
STATES = {
    "unfitted": lambda kind: kind.make(),
    "idle": lambda kind: idle(kind),
    "fitted": lambda kind: kind.first(kind.make()),
    "refined": lambda kind: kind.first(kind.make()).refine(kind.rows, kind.y, alphas=[1.0]),
}


def idle(kind):
    """A model whose first batch had no weight."""
    model, weights = kind.make(), np.zeros(N_ROWS)
    if isinstance(model, StreamingRidgeClassifier) and kind.y.ndim == 1:
        return model.partial_fit(kind.rows, kind.y, np.unique(kind.y), weights)
    return model.partial_fit(kind.rows, kind.y, sample_weight=weights)


def with_value(value, row=17):
    bad = X.copy()
    bad[row, 2] = value
    return bad


def objects(value):
    bad = X.astype(object)
    bad[3, 1] = value
    return bad


BAD_ROWS = {
    "narrow": X[:, 1:],
    "broad": np.hstack([X, X]),
    "nan": with_value(np.nan),
    "nan in the last row": with_value(np.nan, N_ROWS - 1),
    "infinity": with_value(-np.inf),
    "overflow": with_value(1e200),
    "overflow of float32": with_value(1e15),
    "one dimension": X[0],
    "three dimensions": X[None],
    "no rows": X[:0],
    "no columns": X[:, :0],
    "number": 3.0,
    "nothing": None,
    "text": objects("x"),
    "none within": objects(None),
    "list within": objects([1.0]),
    "complex": X * 1j,
    "ragged": [[1.0, 2.0, 3.0, 4.0], [1.0]],
    "sparse by rows": sparse.csr_array(with_value(np.nan)),
    "sparse by columns": sparse.csc_array(with_value(np.inf)),
    "sparse overflow": sparse.csr_array(with_value(1e200)),
    "other names": pd.DataFrame(X, columns=list("abce")),
    "other order": NAMED[list("bacd")],
    "missing in a frame": NAMED.assign(c=[None, *X[1:, 2]]),
    "text in a frame": NAMED.assign(c="x"),
    "times in a frame": NAMED.assign(c=pd.Timestamp("2020-01-01")),
    "fewer": X[:-1],
}
BAD_TARGETS = {
    "nothing": None,
    "number": 3.0,
    "few": Y[1:, 0],
    "none": Y[:0, 0],
    "no columns": np.empty((N_ROWS, 0)),
    "three dimensions": Y[None],
    "three targets": np.c_[Y, Y[:, :1]],
    "nan": np.where(np.arange(N_ROWS) == 5, np.nan, Y[:, 0]),
    "infinity": np.where(np.arange(N_ROWS) == N_ROWS - 1, np.inf, Y[:, 0]),
    "overflow": np.where(np.arange(N_ROWS) == 5, 1e200, Y[:, 0]),
    "one bad of two": np.where(np.arange(2 * N_ROWS).reshape(-1, 2) == 41, np.nan, Y),
    "unknown label": np.where(np.arange(N_ROWS) == N_ROWS - 1, "fir", KINDS),
    "missing label": [None, *KINDS[1:]],
    "numbers for labels": np.arange(N_ROWS) + 7,
    "labels in two columns": np.c_[KINDS, KINDS],
    "bytes": KINDS.astype("S"),
}
BAD_WEIGHTS = {
    "negative": np.where(np.arange(N_ROWS) == N_ROWS - 1, -1.0, 1.0),
    "nan": np.full(N_ROWS, np.nan),
    "infinity": np.inf,
    "few": np.ones(N_ROWS - 1),
    "two dimensions": np.ones((N_ROWS, 2)),
    "text": "heavy",
    "overflow": np.where(np.arange(N_ROWS) == N_ROWS - 1, 1e300, 1.0),
    "overflow of float32": np.full(N_ROWS, 1e30),
}
BAD_ALPHAS = {"negative": -1.0, "nan": np.nan, "text": "x", "nothing": [], "tiny": 1e-305}
BAD_PARAMETERS = {
    "alpha": [-1.0, np.nan, "x", None, [1.0, 2.0]],
    "alphas": [[-1.0], [], "x", [np.nan]],
    "cv": [1, True, "x", [([0], [1])], 4, [([0, 1], [2]), ([2], [0, 1])]],
    "sketch_size": [1, 2.5, None, 5],
    "memory": ["much", -1, "1 KB"],
    "method": ["sgd", None, "isvd"],
    "fit_intercept": ["yes", None],
    "standardize": [1, "no"],
    "feature_scale": [[1.0], [0.0] * 4, "x", [1.0, np.nan, 1.0, 1.0]],
    "dtype": ["int8", np.int64, "float16"],
    "random_state": ["x", -1],
    "class_weight": ["heavy", [1.0], {"ash": -1.0}, {"fir": 1.0}, {"ash": np.nan}, "balanced"],
}


def failing(batches):
    yield from batches
    raise CutOffError


class CutOffError(Exception):
    pass


def unlike(kind, **options):
    """Another model of the class, with other options, that has learned something."""
    model = kind.make()
    known = {name: value for name, value in options.items() if name in model.get_params()}
    return kind.first(model.set_params(**known)) if known else Ridge()


def other_models(kind):
    """What cannot be merged, for most models."""
    model = kind.make()
    fresh = functools.partial(type(model), **{**model.get_params(), "random_state": 0})
    two = [np.arange(45), np.arange(45, 90)]
    by_class = None if kind.y.ndim == 2 else dict.fromkeys(np.unique(kind.y).tolist(), 2.0)
    yield from {
        "nothing": None,
        "another class": Ridge(),
        "another method": unlike(kind, method="isvd"),
        "another intercept": unlike(kind, fit_intercept=not model.fit_intercept),
        "another scaling": unlike(kind, standardize=not model.standardize, feature_scale=None),
        "given scales": unlike(kind, standardize=False, feature_scale=[1.0, 1.0, 1.0, 2.0]),
        "another number of folds": unlike(kind, cv=5),
        "no folds": unlike(kind, cv=None),
        "other folds": unlike(kind, cv=[(two[0], two[1]), (two[1], two[0])]),
        "other class weights": unlike(kind, class_weight=by_class),
    }.items()
    width = {"feature_scale": None} if model.feature_scale is not None else {}
    narrow = fresh(**{**model.get_params(), **width})
    yield "other columns", narrow.fit(X[:, :3], kind.y)
    if not isinstance(model, StreamingRidgeClassifier):
        yield "other targets", fresh().fit(X, np.c_[Y, Y])
        wide = fresh().set_params(dtype="float64")
        yield "numbers too large", wide.fit(1e100 * X, kind.y)
        wide = fresh().set_params(dtype="float64")
        yield "means too large", wide.fit(X + 1e35, kind.y)
    else:
        yield "other classes", fresh().fit(X, np.arange(N_ROWS) % 5)
    yield "other names", fresh().fit(pd.DataFrame(X, columns=list("wxyz")), kind.y)


def calls(kind):
    """Yield names and calls that fail for one model or another."""
    rows, y = kind.rows, kind.y
    yield "half a source", lambda model: model.fit_stream(failing([(X, y), (X, y)]))
    yield "a source with a bad end", lambda model: model.fit_stream([(X, y), (X[:, 1:], y)])
    yield "a source of scraps", lambda model: model.fit_stream([(X, y), (X,)])
    yield "an empty source", lambda model: model.fit_stream([])
    yield "a source without weight", lambda model: model.fit_stream([(X, y, np.zeros(N_ROWS))])
    yield "a missing file", lambda model: model.fit_stream("no/such.parquet", target="y")
    yield "an unknown option", lambda model: model.fit_stream([(X, y)], colour="red")
    yield "too late a target", lambda model: model.fit_stream([(X, y)], target="y")
    yield "no weight at all", lambda model: model.fit(X, y, np.zeros(N_ROWS))
    many = np.tile(X, (4, 1)), np.concatenate([y] * 4)
    yield "too many rows", lambda model: model.partial_fit(*many)
    yield "a save to nowhere", lambda model: model.save("no/such/folder/model.ridge")
    yield "an attribute", lambda model: model.feature_names_out_
    yield "other scales", lambda model: model.scale_
    for name, bad in BAD_ROWS.items():
        yield f"fit: {name}", lambda model, bad=bad: model.fit(bad, y)
        yield f"partial_fit: {name}", lambda model, bad=bad: model.partial_fit(bad, y)
        yield f"predict: {name}", lambda model, bad=bad: model.predict(bad)
        yield f"score: {name}", lambda model, bad=bad: model.score(bad, y)
        yield f"refine: {name}", lambda model, bad=bad: model.refine(bad, y)
        yield f"bound: {name}", lambda model, bad=bad: model.certificate().prediction_bound(bad)
        yield f"select: {name}", lambda model, bad=bad: model.select([1.0], bad, y)
    for name, bad in BAD_TARGETS.items():
        yield f"fit y: {name}", lambda model, bad=bad: model.fit(rows, bad)
        yield f"partial_fit y: {name}", lambda model, bad=bad: model.partial_fit(rows, bad)
        yield f"refine y: {name}", lambda model, bad=bad: model.refine(rows, bad)
        yield f"select y: {name}", lambda model, bad=bad: model.select([1.0], rows, bad)
        yield f"classes: {name}", lambda model, bad=bad: model.partial_fit(rows, y, classes=bad)
    for name, bad in {**BAD_WEIGHTS, "nothing": np.zeros(N_ROWS)}.items():
        how = {"sample_weight": bad}
        yield f"fit weights: {name}", lambda model, how=how: model.fit(rows, y, **how)
        yield f"refine weights: {name}", lambda model, how=how: model.refine(rows, y, **how)
        yield f"select weights: {name}", lambda model, how=how: model.select(None, rows, y, **how)
        if name != "nothing":  # which is allowed here
            yield f"weights: {name}", lambda model, how=how: model.partial_fit(rows, y, **how)
    for name, bad in BAD_ALPHAS.items():
        yield f"at: {name}", lambda model, bad=bad: model.at(bad)
        yield f"path: {name}", lambda model, bad=bad: model.path(bad)
        yield f"certificate: {name}", lambda model, bad=bad: model.certificate(bad)
        yield f"refine alphas: {name}", lambda model, bad=bad: model.refine(rows, y, alphas=bad)
        yield f"select alphas: {name}", lambda model, bad=bad: model.select(bad, rows, y)
    for how in ({"passes": 0}, {"passes": 1.5}, {"tol": -1.0}, {"tol": "x"}, {"progress": 3}):
        yield f"refine with {how}", lambda model, how=how: model.refine(rows, y, **how)
    for name, source in {
        "one row less": lambda: [(X[1:], y[1:])],
        "one row more": lambda: [(X, y), (X[:1], y[:1])],
        "other rows": lambda: [(X + 1.0, y)],
        "other order": lambda: [(X, y[::-1])],
        "half": lambda: failing([(X[:9], y[:9])]),
        "read once": lambda: iter([(X, y)]),
        "scraps": lambda: [(X,)],
        "nothing": list,
        "bad end": lambda: [(X[:9], y[:9]), (X[9:, 1:], y[9:])],
        "bad last row": lambda: [(X[:9], y[:9]), (with_value(np.nan)[9:], y[9:])],
    }.items():
        passes = 2 if name == "read once" else 1
        yield (
            f"refine: {name}",
            lambda model, source=source, passes=passes: model.refine(source(), passes=passes),
        )


def memory(model):
    """All that a model is: parameters with their generators, attributes, what it has learned."""
    known = model._learned
    content = None if known is None else hashed(known.snapshot())
    chosen = getattr(model, "_selected", None)
    return (
        joblib.hash(model.get_params()),
        sorted(vars(model)),
        content,
        None if chosen is None else hashed([chosen.alphas, chosen.scores]),
    )


def attempt(call, model):
    """Tell whether it failed; whatever it failed with."""
    try:
        call(model)
    except Exception:
        return True
    return False


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(learned, "PIECE", 12)  # labels of a batch come in several pieces


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_a_call_that_fails_changes_nothing(name, state):
    kind = KINDS_OF_MODEL[name]
    base = STATES[state](kind)
    failed, changed = 0, []
    model = copy.deepcopy(base)
    before, identity = memory(model), model._learned
    for what, call in calls(kind):
        if not attempt(call, model):  # it is no failure for this model
            model = copy.deepcopy(base)
            identity = model._learned
            continue
        failed += 1
        if memory(model) != before or model._learned is not identity:
            changed.append(what)
            model = copy.deepcopy(base)
            identity = model._learned
    assert changed == []
    assert failed > 150
    # Nor does it show later.
    assert answers(kind.first(model)) == answers(kind.first(base))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_a_merger_that_fails_changes_neither(name, state):
    kind = KINDS_OF_MODEL[name]
    base, failed = STATES[state](kind), []
    for what, other in [*other_models(kind), ("itself", None)]:
        model = copy.deepcopy(base)
        other = model if what == "itself" else other
        ours, identity = memory(model), model._learned
        theirs = memory(other) if hasattr(other, "_learned") else None
        if not attempt(lambda model, other=other: model.merge(other), model):
            continue
        failed.append(what)
        assert memory(model) == ours, what
        assert model._learned is identity, what
        assert theirs is None or memory(other) == theirs, what
        assert answers(kind.first(model)) == answers(kind.first(copy.deepcopy(base))), what
    assert {"nothing", "another class", "itself"} <= set(failed)
    assert state == "unfitted" or {"another method", "other columns"} <= set(failed)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_parameters_that_do_not_fit_change_nothing_else(name, state):
    kind = KINDS_OF_MODEL[name]
    model = STATES[state](kind)
    before, identity, failed = memory(model), model._learned, set()
    acts = {
        "partial_fit": kind.first,
        "fit": lambda model: model.fit(kind.rows, kind.y),
        "coef_": lambda model: model.coef_,
        "predict": lambda model: model.predict(kind.rows),
        "certificate": lambda model: model.certificate(),
        "refine": lambda model: model.refine(kind.rows, kind.y),
        "fit_stream": lambda model: model.fit_stream([(kind.rows, kind.y)]),
        "merge": lambda model: model.merge(kind.first(kind.make())),
    }
    for parameter, values in BAD_PARAMETERS.items():
        if parameter not in model.get_params():
            continue
        good = model.get_params()[parameter]
        for value in values:
            for act, call in acts.items():
                twin = copy.deepcopy(model)
                identity = twin._learned
                if attempt(call, twin.set_params(**{parameter: value})):
                    failed.add(act)
                    twin.set_params(**{parameter: copy.deepcopy(good)})
                    assert memory(twin) == before, (parameter, value, act)
                    assert twin._learned is identity
    assert {"partial_fit", "fit"} <= failed


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_a_choice_outlives_calls_that_fail(name):
    kind = KINDS_OF_MODEL[name]
    model = kind.first(kind.make())
    if not isinstance(model, StreamingRidgeCV):
        return
    model.select([1.0, 7.0], kind.rows, kind.y)
    before = memory(model)
    for what, call in calls(kind):
        twin = copy.deepcopy(model)
        if attempt(call, twin):
            assert memory(twin) == before, what


def test_a_bad_last_piece_stops_the_first():
    """A weight that is too large, in the last piece."""
    kind = KINDS_OF_MODEL["classes"]
    model = StreamingRidgeClassifier(method="exact").fit(1e-10 * X, kind.y)
    before = memory(model)
    weights = np.where(np.arange(N_ROWS) == N_ROWS - 1, 1e300, 1.0)
    with pytest.raises(ValueError, match="sums of such weights overflow"):
        model.partial_fit(1e-10 * X, kind.y, sample_weight=weights)
    assert memory(model) == before


def test_siblings_stay_siblings_if_a_call_fails():
    model = StreamingRidge(**SMALL).fit(X, Y)
    sibling = model.at(2.0)
    with pytest.raises(ValueError, match="NaN"):
        sibling.partial_fit(with_value(np.nan), Y)
    assert sibling._learned is model._learned
    with pytest.raises(ValueError, match="rows would count twice"):
        model.merge(sibling)
    assert sibling._learned is model._learned
    assert model.n_samples_seen_ == N_ROWS
