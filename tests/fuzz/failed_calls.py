"""Calls that must fail, and must leave everything as it was."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone

from fuzz.models import draw_alphas, draw_options
from fuzz.outcome import image, restored
from fuzz.tables import draw_table
from fuzz.training import arguments, complete
from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV, verify

CALLS = 14  # of a configuration
CLEAR = (ValueError, TypeError, OSError)  # what bad input may raise


class StoppedError(Exception):
    """A source that fails while it is read."""


def run_failed_calls(rng, out):
    """Make calls that fail; go on afterwards as if they had never been."""
    case = Case(rng, out)
    before, twin = image(case.model), _twin(rng, case)
    answers = _answers(case.model)
    siblings = [case.model.at(3.0)] if before is not None and rng.random() < 0.4 else []
    others = [image(one) for one in siblings]
    catalogue = [*case.batches(), *case.questions(), *case.merges(), *case.refines()]
    for place in rng.permutation(len(catalogue))[:CALLS]:
        name, call = catalogue[place]
        out.counts["failed calls"] += 1
        try:
            call()
        except CLEAR:
            pass
        except StoppedError:
            pass
        except Exception as error:
            text = f"{name}: {type(error).__name__}: {str(error)[:200]}"
            out.fail("unclear error", text)
        else:
            out.fail("bad call is taken", name)
            return
        if image(case.model) != before:
            out.fail("failed call changed the model", name)
            return
    if _answers(case.model) != answers:
        out.fail("failed call changed the model", "answers are others after all calls")
    if [image(one) for one in siblings] != others:
        out.fail("failed call changed the model", "a model at another alpha has changed")
    case.check_goes_on(twin)


def _twin(rng, case):
    content = image(case.model)
    if content is None:
        return clone(case.model)
    return restored(content)


def _answers(model):
    """Return coefficients and bounds as bytes, whether cached or not."""
    if not model.__sklearn_is_fitted__():
        return None
    try:
        if isinstance(model, StreamingRidgeCV):
            _ = model.alpha_  # which leaves another decomposition to solve with
        certificate = model.certificate(1.0)
        return [np.asarray(v).tobytes() for v in (model.coef_, certificate.coef_bound)]
    except ValueError:
        return None


class Case:
    """A model in some state, and rows that are fine."""

    def __init__(self, rng, out):
        self.rng, self.out = rng, out
        self.d = d = int(rng.integers(1, 6))
        self.options = options = draw_options(rng, d)
        if rng.random() < 0.3:
            options.kind = (StreamingRidgeCV, StreamingRidgeClassifier)[rng.integers(2)]
        n = int(rng.integers(4, 30))
        kind = options.kind
        table = draw_table(rng, n, d, block=options.block, gentle=True)
        while not options.is_tame(table):
            options = self.options = draw_options(rng, d, kind=kind)
            table = draw_table(rng, n, d, block=options.block, gentle=True)
        self.table = table
        alphas = [max(alpha, 1e-3) for alpha in draw_alphas(rng, options, table, 2)]
        complete(rng, options, table, alphas)
        self.is_classifier, self.is_cv = (
            kind is StreamingRidgeClassifier,
            kind is StreamingRidgeCV,
        )
        self.model = options.new()
        self.n_seen = 0
        self.state = str(
            rng.choice(["fresh", "fitted", "loaded", "refined"], p=[0.15, 0.45, 0.2, 0.2])
        )
        out.notes += [self.state, options.describe(), table.describe()]
        if self.state != "fresh":
            self._train()

    def _train(self):
        rng, table = self.rng, self.table
        # Rows are left for later, unless folds were dealt for all of them.
        self.n_seen = int(rng.integers(2, len(table)))
        part = table.rows(0, self.n_seen)
        for batch in part.batches(rng, "some"):
            args, more = arguments(self.options, batch)
            self.model.partial_fit(*args, **more)
        if not self.model.__sklearn_is_fitted__():
            self.state = "idle"
        elif self.state == "loaded":
            self.model = restored(image(self.model))
        elif self.state == "refined" and len(part.runs) == 1:
            try:
                self.model.refine(*part.batches(rng, "whole")[0], alphas=[1.0])
            except ValueError:
                self.state = "not refined"  # which another kind of configuration looks at

    @property
    def fitted(self):
        return self.model.__sklearn_is_fitted__()

    def check_goes_on(self, twin):
        """Train both on the rows that are left: the same bytes."""
        if self.n_seen >= len(self.table):
            return
        rest = self.table.rows(self.n_seen, len(self.table))
        for batch in rest.batches(self.rng, "whole"):
            args, more = arguments(self.options, batch)
            for one in (self.model, twin):
                one.partial_fit(*args, **more)
        if image(self.model) != image(twin):
            self.out.fail("failed call changed the model", "it learns another thing afterwards")

    def good(self, n=6):
        """Return n rows that would be fine, dense, in float64."""
        order = self.rng.integers(0, len(self.table), n)
        table = self.table.taken(order)
        weights = np.ones(n) if table.weights is None else np.maximum(table.weights, 1e-3)
        return table.X.copy(), table.answers.copy(), weights.copy()

    def learn(self, X, y, weights=None, *, how="partial_fit", model=None, **more):
        """Call partial_fit or fit, whichever way the class takes weights."""
        model = self.model if model is None else model
        if self.is_classifier and how == "partial_fit":
            more.setdefault("classes", self.options.labels)
        return getattr(model, how)(X, y, sample_weight=weights, **more)

    def batches(self):
        """Return calls with bad batches."""
        rng = self.rng
        how = str(rng.choice(["partial_fit", "fit"]))
        bad = [(f"{how} of {name}", make) for name, make in self._bad_batches(how)]
        streams = []
        if not self.is_classifier:
            streams = [(f"fit_stream of {name}", make) for name, make in self._bad_streams()]
        return bad + streams + self._bad_parameters()

    def _bad_batches(self, how):
        X, y, w = self.good()
        d = self.d
        last = (len(X) - 1, d - 1)

        def put(values, place, value):
            changed = np.array(values, dtype=float)
            changed[place] = value
            return changed

        def call(*args, **more):
            return lambda: self.learn(*args, how=how, **more)

        yield "one dimension", call(X[0], y)
        yield "three dimensions", call(X[None], y)
        yield "no rows", call(X[:0], y[:0])
        yield "no columns", call(X[:, :0], y)
        yield "NaN", call(put(X, last, np.nan), y)
        yield "infinity", call(put(X, last, np.inf), y, w)
        yield "minus infinity in sparse rows", call(sparse.csr_array(put(X, last, -np.inf)), y)
        yield "NaN in float32", call(put(X, last, np.nan).astype(np.float32), y)
        yield "a number that overflows", call(put(X, last, 1e300), y)
        yield "no y", call(X, None)
        yield "too few targets", call(X, y[:-1])
        yield "too many targets", call(X, np.concatenate([y, y]))
        yield "a single target", call(X, 1.0)
        yield "targets of three dimensions", call(X, np.zeros((len(X), 2, 2)))
        yield "text for X", call(np.full(X.shape, "x"), y)
        yield "ragged lists", call([[1.0] * d, [1.0] * (d + 1)], y[:2])
        yield "complex numbers", call(X * 1j, y)
        yield "None for X", call(None, y)
        yield "negative weights", call(X, y, put(w, -1, -1.0))
        yield "NaN for a weight", call(X, y, put(w, -1, np.nan))
        yield "infinite weights", call(X, y, put(w, -1, np.inf))
        yield "too few weights", call(X, y, w[:-1])
        yield "text for weights", call(X, y, np.full(len(X), "x"))
        yield "weights in two columns", call(X, y, np.c_[w, w])
        yield "rows that overflow by their weights", call(put(X, last, 1e60), y, put(w, -1, 1e300))
        if how == "fit":
            yield "weights of zero", call(X, y, 0 * w)
        if not self.is_classifier:
            yield "NaN for a target", call(X, put(y, -1, np.nan))
            yield "infinity for a target", call(X, put(y, -1, np.inf))
            yield "text for y", call(X, np.full(len(X), "x"))
            table = np.zeros((len(X), 3)) if y.ndim == 1 else y
            where = (len(X) - 1, table.shape[1] - 1)
            if how == "fit" or (y.ndim == 2 and y.shape[1] > 1):
                yield "one bad target of several", call(X, put(table, where, np.nan))
                yield "one huge target of several", call(X, put(table, where, 1e300))
        else:
            yield "NaN for a label", call(X, np.full(len(X), np.nan))
            yield "numbers that are no labels", call(X, _floats(self.rng, len(X)), classes=None)
            if how == "partial_fit":
                yield "an unknown label", call(X, np.full(len(X), 77))
                yield "an unknown label of its kind", call(X, np.append(y[:-1], self._unknown()))
        if how == "partial_fit" and self.state != "fresh":
            wide = np.c_[X, X]
            yield "rows that are too wide", call(wide, y)
            yield "rows that are too wide, sparse", call(sparse.csr_array(wide), y)
            if not self.is_classifier:
                more = np.c_[y, y]
                yield "more targets than before", call(X, more)
            else:
                yield "other classes", call(X, y, classes=[5, 6, 7, 8, 9])
            if self.options.folds is not None:
                many = len(self.table) + 1
                yield (
                    "more rows than there are folds",
                    call(np.zeros((many, d)), np.resize(y, (many, *y.shape[1:]))),
                )
        if d > 1:
            names = [f"x{i}" for i in range(d)]
            yield "names that are no strings", call(pd.DataFrame(X, columns=[*names[:-1], 3]), y)
        if self.state != "fresh" and how == "partial_fit" and self.fitted and self._is_float32():
            yield "a number that overflows float32", call(put(X, last, 1e30), y)

    def _unknown(self):
        return "zzz" if self.options.labels.dtype.kind == "U" else 99

    def _bad_streams(self):
        X, y, w = self.good()
        bad = X.copy()
        bad[-1, -1] = np.nan
        stream = self.model.fit_stream

        def failing():
            yield X, y
            raise StoppedError

        yield "a source that fails", lambda: stream(failing())
        yield "a bad second batch", lambda: stream([(X, y), (bad, y)])
        yield "a second batch that is too wide", lambda: stream([(X, y), (np.c_[X, X], y)])
        yield "no batches", lambda: stream([])
        yield "an empty stream", lambda: stream(iter([]))
        yield "an array", lambda: stream(X)
        yield "a batch without targets", lambda: stream([(X,)])
        yield "weights of zero", lambda: stream([(X, y, 0 * w)])
        yield "options for arrays", lambda: stream([(X, y)], target="y")
        yield "a file that is not there", lambda: stream("no-such-file.csv", target="y")

    def _bad_parameters(self):
        """Return calls after a parameter was changed; it is set back."""
        X, y, _ = self.good()
        parameters = self.options.parameters
        wrong = {
            "method": "none of them",
            "sketch_size": 1,
            "fit_intercept": "yes",
            "standardize": 2,
            "feature_scale": -np.ones(self.d),
            "dtype": "float16",
            "memory": "much",
        }
        if not self.is_cv:
            wrong["alpha"] = float("nan")
        else:
            wrong["alphas"], wrong["cv"] = [-1.0], 1
        changes = [(name, value, "wrong") for name, value in wrong.items()]
        if self.state != "fresh":
            other = {
                "sketch_size": parameters["sketch_size"] + 1,
                "fit_intercept": not parameters["fit_intercept"],
                "dtype": "float32" if parameters["dtype"] != "float32" else "float64",
                "method": "fd" if parameters["method"] != "fd" else "rfd",
            }
            if self.is_cv:
                other["cv"] = 5 if parameters["cv"] is None else None
            changes += [(name, value, "another") for name, value in other.items()]
        if parameters["feature_scale"] is None and not parameters["standardize"]:
            changes.append(("feature_scale", np.ones(self.d + 1), "a longer"))

        def call(name, value):
            before = self.model.get_params(deep=False)[name]
            try:
                self.model.set_params(**{name: value})
                self.learn(X, y)
            finally:
                self.model.set_params(**{name: before})

        return [
            (f"partial_fit with {which} {name}", lambda n=name, v=value: call(n, v))
            for name, value, which in changes
        ]

    def questions(self):
        """Return questions that make no sense."""
        X, y, w = self.good(3)
        model = self.model
        nan = X.copy()
        nan[-1, -1] = np.nan
        wide = np.c_[X, X]
        asked = [
            ("predict of rows that are too wide", lambda: model.predict(wide)),
            ("predict of NaN", lambda: model.predict(nan)),
            ("predict of text", lambda: model.predict(np.full(X.shape, "x"))),
            ("predict of one dimension", lambda: model.predict(X[0])),
            ("at of -1", lambda: model.at(-1.0)),
            ("at of NaN", lambda: model.at(np.nan)),
            ("at of text", lambda: model.at("one")),
            ("at of two", lambda: model.at([1.0, 2.0])),
            ("at of next to nothing", lambda: model.at(1e-310)),
            ("path of -1", lambda: model.path([1.0, -1.0])),
            ("path of nothing", lambda: model.path([])),
            ("certificate of -1", lambda: model.certificate(-1.0)),
            ("certificate of text", lambda: model.certificate("one")),
            ("save in no folder", lambda: model.save("/no/such/folder/model.ridge")),
            ("save nowhere", lambda: model.save(None)),
            ("score of rows that are too wide", lambda: model.score(wide, y)),
        ]
        if self.fitted:

            def bound(rows):
                return model.certificate(1.0).prediction_bound(rows)

            coef = np.zeros(self.d)
            asked += [
                ("prediction_bound of NaN", lambda: bound(nan)),
                ("prediction_bound of wide rows", lambda: bound(wide)),
                ("verify at alpha 0", lambda: verify(coef, 0.0, (X, y), 0.0)),
                ("verify of rows too wide", lambda: verify(coef, 0.0, (wide, y), 1.0)),
                ("verify of NaN", lambda: verify(coef * np.nan, 0.0, (X, y), 1.0)),
            ]
        if self.is_cv:
            select = model.select
            other = np.c_[y, y]
            asked += [
                ("select of wrong alphas", lambda: select([-1.0], X, y)),
                ("select of no alphas", lambda: select([], X, y)),
                ("select of NaN", lambda: select([1.0], nan, y)),
                ("select of rows that are too wide", lambda: select([1.0], wide, y)),
                ("select of other targets", lambda: select([1.0], X, np.c_[other, other])),
                ("select of negative weights", lambda: select([1.0], X, y, -w)),
                ("select of too few targets", lambda: select([1.0], X, y[:-1])),
            ]
        return asked

    def merges(self):
        """Return mergers with what does not fit."""
        model, options = self.model, self.options
        merge = model.merge
        calls = [
            ("merge with itself", lambda: merge(model)),
            ("merge with nothing", lambda: merge(None)),
            ("merge with text", lambda: merge("model")),
            ("merge with another class", lambda: merge(self._another_class())),
        ]
        if not self.fitted or options.folds is not None:
            return calls
        X, y, _ = self.good()
        parameters = options.parameters

        def trained(X=X, y=y, classes=None, **changes):
            other = options.new(**changes)
            known = options.labels if classes is None else classes
            more = {"classes": known} if self.is_classifier else {}
            return other.partial_fit(X, y, **more)

        def other(name, **how):
            calls.append((f"merge with {name}", lambda: self._merge(trained(**how))))

        other("other features", X=np.c_[X, X], feature_scale=_doubled(parameters["feature_scale"]))
        other("another intercept", fit_intercept=not parameters["fit_intercept"])
        method = "fd" if model.method_ != "fd" else "rfd"
        other("another method", method=method)
        if parameters["feature_scale"] is None:
            other("another scaling", standardize=not parameters["standardize"])
        else:
            other("another scale", feature_scale=parameters["feature_scale"] * 2)
        if self.is_classifier:
            other("other classes", y=np.resize([5, 6, 7, 8, 9], len(X)), classes=[5, 6, 7, 8, 9])
        else:
            other("more targets", y=np.c_[y, y])
        if self.is_cv:
            folds = parameters["cv"]
            if folds is not None:
                other("other folds", cv=folds + 1)
                other("no folds", cv=None)
                splits = [(np.arange(3), np.arange(3, 6)), (np.arange(3, 6), np.arange(3))]
                own = [splits[i % 2] for i in range(2)]
                if folds != 2:
                    other("folds by row numbers", cv=own)
        if self._is_float32() and not parameters["standardize"]:
            huge = X.copy()
            huge[-1] = 1e60
            other("numbers that overflow float32", X=huge, dtype="float64")
        return calls

    def _is_float32(self):
        """Whether the sketch is float32, which `exact` never is."""
        if self.model.method_ == "exact" or self.options.parameters["feature_scale"] is not None:
            return False
        given = self.options.parameters["dtype"]
        first = self.table.runs[0].dtype in ("float16", "float32")
        return given == "float32" or (given is None and first)

    def _merge(self, other):
        before = image(other)
        try:
            self.model.merge(other)
        finally:
            if image(other) != before:
                self.out.fail("failed call changed the model", "the other of a failed merge")

    def _another_class(self):
        if self.is_classifier:
            return StreamingRidge().fit(*self.good()[:1], np.arange(6.0))
        return StreamingRidgeClassifier().fit(self.good()[0], np.arange(6) % 2)

    def refines(self):
        """Return further passes over what is no training data."""
        X, y, w = self.good()
        refine = self.model.refine
        nan = X.copy()
        nan[-1, -1] = np.nan
        alphas = {"alphas": [2.5]}  # not those of a model that is refined as far as can be
        many, more = np.resize(X, (200, self.d)), np.resize(y, (200, *y.shape[1:]))
        return [
            ("refine with no passes", lambda: refine(X, y, passes=0)),
            ("refine with half a pass", lambda: refine(X, y, passes=0.5)),
            ("refine with tol=0", lambda: refine(X, y, tol=0.0)),
            ("refine with tol=-1", lambda: refine(X, y, tol=-1)),
            ("refine with text for tol", lambda: refine(X, y, tol="x")),
            ("refine at no alphas", lambda: refine(X, y, alphas=[])),
            ("refine at -1", lambda: refine(X, y, alphas=[-1.0])),
            ("refine at 0 with tol", lambda: refine(X, y, alphas=[0.0], tol=0.1)),
            ("refine without y", lambda: refine(X, **alphas)),
            ("refine of NaN", lambda: refine(nan, y, **alphas)),
            ("refine of wide rows", lambda: refine(np.c_[X, X], y, **alphas)),
            ("refine of too many rows", lambda: refine(many, more, **alphas)),
            ("refine with an unknown option", lambda: refine(X, y, alpha=1.0)),
            ("refine of y and target", lambda: refine(X, y, target="y")),
            ("refine of an iterator twice", lambda: refine(iter([(X, y)]), passes=2, **alphas)),
            ("refine of a bad batch", lambda: refine([(X, y), (nan, y)], **alphas)),
            ("refine with weights of a list", lambda: refine([(X, y)], None, w, **alphas)),
            ("refine of a source that fails", lambda: refine(_Failing(X, y), **alphas)),
            ("refine of no file", lambda: refine("no-such-file.csv", target="y", **alphas)),
        ]


class _Failing:
    def __init__(self, X, y):
        self.batch = X, y

    def __iter__(self):
        yield self.batch
        raise StoppedError


def _doubled(scale):
    return None if scale is None else np.concatenate([scale, scale])


def _floats(rng, n):
    """Return numbers that a classifier cannot take for labels."""
    return rng.standard_normal(n) + 0.5
