"""Interrupts inside calls that change a model: it is the old one, the new one, or says so.

An exception is raised at the n-th place where Python would look at signals, or where a function of
NumPy, SciPy or LAPACK is called and could fail: at the start of functions and around those of C.
So a place can be chosen at random or gone through one after the other. A timer does the same
without any such knowledge.
"""

import contextlib
import copy
import os
import signal
import sys
import time

import numpy as np
from sklearn.base import clone

import ridgepass
from fuzz.models import draw_alphas, draw_options
from fuzz.outcome import image, is_broken, restored
from fuzz.tables import draw_table
from fuzz.training import Again, arguments, complete
from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV

PLACES = 7  # interrupts of a configuration
HANGS_AFTER = 10.0  # seconds, where calls take milliseconds
PACKAGE = os.path.dirname(ridgepass.__file__)


class Stopped(KeyboardInterrupt):
    """Ctrl-C."""


class NoMemory(MemoryError):  # noqa: N818
    """An allocation that fails."""


class NoConvergence(np.linalg.LinAlgError):
    """An error of LAPACK."""


class Own(Exception):  # noqa: N818
    """What a signal handler of the user's may raise."""


class Hung(BaseException):
    """A call that does not come back."""


ERRORS = (Stopped, NoMemory, NoConvergence, Own)


class Injection:
    """Raises an error at the n-th place of what runs inside; without n it counts the places.

    ``inside`` has the places in the package itself, where its state changes, and ``edges`` those
    at the edges of context managers, where locks are taken and left.
    """

    def __init__(self, at=None, error=Stopped):
        self.at, self.error, self.count, self.fired = at, error, 0, False
        self.inside, self.edges = [], []

    def __enter__(self):
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _look(self, frame, event, argument):
        # A return is no place of its own: what follows it is the next call. Python looks at no
        # signals between the body of a with statement and the release of a lock.
        if event == "return" or frame.f_code.co_filename == __file__:
            return
        if event == "c_call" and argument.__name__ in ("__exit__", "release"):
            return
        self.count += 1
        if self.at is None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                self.inside.append(self.count)
            elif frame.f_code.co_filename == contextlib.__file__:
                self.edges.append(self.count)
        if self.count == self.at:
            self.fired = True
            sys.setprofile(None)
            raise self.error


class Timer:
    """Raises an error after some time."""

    def __init__(self, seconds, error=Stopped):
        self.seconds, self.error, self.fired = seconds, error, False

    def __enter__(self):
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, max(self.seconds, 1e-6))
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, *_):
        self.fired = True
        raise self.error


class CtrlC(Timer):
    """Sends the signal of Ctrl-C after some time; whoever handles it must put the handler back."""

    def __enter__(self):
        self._handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        return super().__enter__()

    def finish(self):
        """Put our own handler back; return whether theirs was."""
        found = signal.signal(signal.SIGINT, self._handler)
        return found is signal.default_int_handler

    def _ring(self, *_):
        self.fired = True
        signal.raise_signal(signal.SIGINT)


def run_interrupts(rng, out):
    """Interrupt one call of a model many times, each time beginning anew."""
    case = Case(rng, out)
    if not case.ready:
        return
    counter, lasts = _measured(case)
    way = str(rng.choice(["places", "timer", "Ctrl-C"], p=[0.7, 0.2, 0.1]))
    for _ in range(PLACES):
        error = ERRORS[rng.integers(len(ERRORS))]
        if way != "places":
            kind = Timer if way == "timer" else CtrlC
            # While places were counted, the call took longer than it will now.
            stop = kind(rng.uniform(0, 0.4 * lasts), error)
        else:
            kinds = counter.inside, counter.edges, np.arange(1, counter.count + 1)
            stop = Injection(int(rng.choice(kinds[rng.choice(3, p=[0.55, 0.05, 0.4])])), error)
        _interrupt(case, stop, shared=rng.random() < 0.25)
        if out.failures:
            return


def run_all_places(rng, out, step=1):
    """Interrupt one call at every place, or at every ``step``-th."""
    case = Case(rng, out)
    if not case.ready:
        return
    counter, _ = _measured(case)
    for at in range(1, counter.count + 1, step):
        _interrupt(case, Injection(at, ERRORS[at % len(ERRORS)]))


def _measured(case):
    """Return the places of a call, and how long it lasts while they are counted."""
    model, companions, counter = case.fresh(), case.companions(), Injection()
    started = time.perf_counter()
    with counter:
        case.call(model, *companions)
    return counter, time.perf_counter() - started


def _interrupt(case, stop, *, shared=False):
    """Make the call, stop it, and look at what is left."""
    model, companions, sibling = case.fresh(), case.companions(), None
    if shared and case.old is not None:
        sibling = model.at(3.0)
        sibling = sibling, image(sibling)
    where = f"{case.name}, {'Ctrl-C' if isinstance(stop, CtrlC) else stop.error.__name__} "
    where += f"at place {stop.at}" if isinstance(stop, Injection) else f"after {stop.seconds:.2g} s"
    # The error is kept meanwhile, as an interactive session keeps its last one: locks that wait
    # for its frames to go are never released.
    raised = None
    try:
        with stop:
            case.call(model, *companions)
    except Exception as error:
        raised = error
    except KeyboardInterrupt as error:
        raised = error
    case.out.counts["interrupts" if stop.fired else "interrupts too late"] += 1
    if isinstance(stop, CtrlC) and not stop.finish():
        case.out.fail("interrupt", f"the handler of Ctrl-C is not put back: {where}")
    try:
        with Timer(HANGS_AFTER, Hung):
            probe()
        case.check(model, companions, sibling, raised, where)
    except Hung:
        case.out.fail("hang", f"a later call does not come back: {where}")
    finally:
        del raised


def probe():
    """Do a little of everything, with another model."""
    rows = np.arange(10.0).reshape(5, 2)
    StreamingRidge(method="fd", sketch_size=2).fit(rows, rows[:, 0]).certificate()


class Case:
    """A model, a call that changes it, and all that may become of it."""

    def __init__(self, rng, out):
        self.rng, self.out = rng, out
        d = int(rng.integers(1, 7))
        self.options = options = draw_options(rng, d)
        table = draw_table(rng, int(rng.integers(6, 40)), d, block=options.block, gentle=True)
        while not options.is_tame(table):
            options = self.options = draw_options(rng, d)
            table = draw_table(rng, int(rng.integers(6, 40)), d, block=options.block, gentle=True)
        self.table = table
        alphas = [max(alpha, 1e-3) for alpha in draw_alphas(rng, options, table, 2)]
        complete(rng, options, table, alphas)
        self.alphas = alphas
        names = ["partial_fit", "merge", "refine", "fit", "fit_stream", "question", "select"]
        self.name = str(rng.choice(names, p=[0.38, 0.2, 0.17, 0.07, 0.08, 0.07, 0.03]))
        if self.name == "fit_stream" and options.kind is StreamingRidgeClassifier:
            self.name = "fit"
        if self.name == "select" and options.kind is not StreamingRidgeCV:
            self.name = "partial_fit"
        if self.name == "merge" and options.folds is not None:
            self.name = "partial_fit"
        self.n_seen = int(rng.integers(1, len(table)))
        if rng.random() < 0.15 and self.name not in ("refine", "question", "select"):
            self.n_seen = 0
        if self.name == "refine":
            self.n_seen = len(table)
        self.passes = int(rng.integers(1, 4))
        out.notes += [
            f"{self.name} after {self.n_seen} rows",
            options.describe(),
            table.describe(),
        ]
        self.ready = self._prepare()

    def _prepare(self):
        """Settle the old model, the new one, and what lies between."""
        rng, _out, options, table = self.rng, self.out, self.options, self.table
        base = options.new()
        seen = table.rows(0, self.n_seen)
        self.before = seen.batches(rng) if self.n_seen else []
        for batch in self.before:
            self._learn(base, batch)
        self.old = image(base)
        if self.n_seen and self.old is None and self.name in ("refine", "question", "select"):
            return False
        self.base = base
        self.from_file = bool(self.old is not None and rng.random() < 0.4)
        rest = table if self.n_seen == len(table) else table.rows(self.n_seen, len(table))
        self.rest = rest.batches(rng, "whole")
        self.rows = rest.batches(rng)
        self.other = None
        if self.name == "merge":
            size = int(rng.integers(2, 9))
            self.other = options.new(sketch_size=size)
            for batch in self.rows:
                self._learn(self.other, batch)
        self.others = None if self.other is None else image(self.other)
        self.seed, self.asked = rng.integers(2**32), rng.random() < 0.5
        self.allowed = {}
        new = self.fresh()
        try:
            self.call(new, *self.companions())
        except ValueError:
            return False  # the same without an interrupt is for other kinds to look at
        self.allowed["the old one"] = self.old
        self.allowed["the new one"] = image(new)
        if self.name == "refine":
            # Passes that were finished count.
            for passes in range(1, self.passes):
                some = self.fresh()
                self._refine(some, passes)
                self.allowed[f"the one after {passes} passes"] = image(some)
        return True

    def _learn(self, model, batch):
        args, more = arguments(self.options, batch)
        model.partial_fit(*args, **more)

    def fresh(self):
        """Return the model as it was before the call, trained or read from a file."""
        if self.old is None:
            model = clone(self.base)
            if self.base._learned is not None:
                model = copy.deepcopy(self.base)
            return model
        model = restored(self.old) if self.from_file else copy.deepcopy(self.base)
        if self.asked:
            try:
                _ = model.coef_  # which is kept until the next row
            except ValueError:
                self.asked = False  # too few rows for its folds
        return model

    def companions(self):
        """Return the models that take part, as they were before the call."""
        return [] if self.other is None else [copy.deepcopy(self.other)]

    def call(self, model, *companions):
        """Make the call."""
        X, *answers = self.rest[0]
        if self.name == "partial_fit":
            for batch in self.rest:
                self._learn(model, batch)
        elif self.name == "merge":
            model.merge(*companions)
        elif self.name == "refine":
            self._refine(model, self.passes)
        elif self.name == "fit":
            model.fit(X, *answers)
        elif self.name == "fit_stream":
            model.fit_stream([tuple(batch) for batch in self.rows])
        elif self.name == "select":
            model.select(self.alphas, X, answers[0])
        else:
            self._ask(model)

    def _refine(self, model, passes):
        model.refine(Again(self.table, self.seed), passes=passes, alphas=self.alphas[:1])

    def _ask(self, model):
        one = model.at(self.alphas[-1])
        one.certificate().prediction_bound(self.table.X[:2])
        _ = model.coef_
        model.path(self.alphas)
        image(model)

    def check(self, model, companions, sibling, raised, where):
        """Compare what became of a model with what may."""
        for one in companions:
            if image(one) != self.others:
                self.out.fail("interrupt", f"the model that was to be merged has changed: {where}")
        if sibling is not None and image(sibling[0]) != sibling[1]:
            self.out.fail("interrupt", f"a model at another alpha has changed: {where}")
        try:
            now = image(model)
        except Exception as error:
            if is_broken(error):
                self._check_broken(model, where)
            else:
                text = f"save raises {type(error).__name__}: {error}"
                self.out.fail("interrupt", f"{text}: {where}")
            return
        if self.name == "partial_fit" and len(self.rest) > 1:
            self.allowed |= self._between()
        which = [name for name, content in self.allowed.items() if content == now]
        if not which:
            self.out.fail("interrupt", f"the model is neither the old one nor the new: {where}")
            return
        if raised is None and self.allowed["the new one"] != now:
            self.out.fail("interrupt", f"nothing was raised, and the model is not new: {where}")
        if now is not None:
            self._check_answers(model, now, f"{which[0]}, {where}")

    def _between(self):
        """Return the models after some of several batches."""
        if not hasattr(self, "_some"):
            self._some, model = {}, self.fresh()
            for i, batch in enumerate(self.rest[:-1]):
                self._learn(model, batch)
                self._some[f"the one after {i + 1} batches"] = image(model)
        return self._some

    def _check_answers(self, model, now, which):
        """What a model says, and what it learns next, must be what its bytes say."""
        again = restored(now)
        for one in (again, model):
            if isinstance(one, StreamingRidgeCV):
                try:
                    _ = one.alpha_
                except ValueError:
                    return  # too few rows for its folds
        try:
            found = [self._said(one) for one in (model, again)]
        except ValueError as error:
            if is_broken(error) or "singular" not in str(error):
                self.out.fail("interrupt", f"an answer raises {error}: {which}")
            return
        if not all(np.array_equal(*pair) for pair in zip(*found, strict=True)):
            # The last digits may depend on what was asked before, which is another fault.
            near = all(np.allclose(*pair, rtol=1e-6, atol=0) for pair in zip(*found, strict=True))
            kind = "questions" if near else "interrupt"
            self.out.fail(kind, f"answers are not those of the saved model: {which}")
        if self.options.folds is not None:
            return
        errors = []
        for one in (model, again):
            try:
                self._learn(one, self.rest[0])
            except ValueError as error:  # labels that fit did not see
                errors.append(error)
        if len(errors) == 1 or image(model) != image(again):
            self.out.fail("interrupt", f"it learns another thing than the saved model: {which}")

    def _said(self, model):
        alpha = self.alphas[0]
        certificate = model.certificate(alpha)
        return model.at(alpha).coef_, certificate.coef_bound, certificate.energy_bound

    def _check_broken(self, model, where):
        """Every later call must say so, and fit must work again."""
        self.out.counts["broken"] += 1
        X, *answers = self.rest[0]
        other = clone(model)
        self._learn(other, self.rest[0])
        calls = {
            "predict": lambda: model.predict(self.table.X[:1]),
            "coef_": lambda: model.coef_,
            "intercept_": lambda: model.intercept_,
            "certificate": lambda: model.certificate(1.0),
            "path": lambda: model.path([1.0]),
            "at": lambda: model.at(1.0),
            "partial_fit": lambda: self._learn(model, self.rest[0]),
            "merge": lambda: model.merge(other),
            "merge into another": lambda: other.merge(model),
            "refine": lambda: model.refine(X, *answers, alphas=[1.0]),
            "save": lambda: image(model),
        }
        for name, call in calls.items():
            try:
                call()
            except Exception as error:
                if not is_broken(error):
                    text = f"{name} of a broken model raises {type(error).__name__}: {error}"
                    self.out.fail("broken model", f"{text}: {where}")
            else:
                self.out.fail("broken model", f"{name} of a broken model goes through: {where}")
        fresh = clone(model)
        try:
            fresh.fit(X, *answers)
        except ValueError:  # no row of these has a weight
            return
        try:
            same = image(fresh) == image(model.fit(X, *answers))
        except RuntimeError as error:
            same = not is_broken(error)
        if not same:
            self.out.fail("broken model", f"fit does not make it as good as new: {where}")
