"""Calls that are cut short at any moment, and what is then left of a model."""

import dis
import signal
import sys
import time
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np

import ridgepass
from ridgepass import BrokenModelError, RidgeStream, StreamingRidgeCV
from store.models import to_bytes

HOME = str(Path(ridgepass.__file__).parent)


class CutShortError(BaseException):
    """Like KeyboardInterrupt: nobody expects it, and nobody swallows it."""


def cut_at(moment, call, error=CutShortError, *, within=(HOME,), opcodes=False):
    """Raise in the given line or opcode that the package runs; tell whether it came that far."""
    left, reached = moment, False

    def trace(frame, event, argument):
        nonlocal left, reached
        if not frame.f_code.co_filename.startswith(within):
            return None
        frame.f_trace_opcodes = opcodes
        wanted = event == ("opcode" if opcodes else "line")
        if wanted and frame.f_lasti not in leaving(frame.f_code):
            left -= 1
            if left < 0:
                reached = True
                raise error
        return trace

    sys.settrace(trace)
    try:
        call()
    except error:
        assert reached
    finally:
        sys.settrace(None)
    return reached


@cache
def leaving(code):
    """Where a ``with`` calls ``__exit__``: Python runs no signal handler between these opcodes."""
    found, run, before = set(), [], []  # what is returned from within is put below first: SWAP
    for step in dis.get_instructions(code):
        none = step.opname == "LOAD_CONST" and step.argval is None
        if none and len(run) < 3:
            run.append(step.offset)
        elif len(run) >= 3 and step.opname in ("PRECALL", "CALL") and step.arg == 2:
            run.append(step.offset)
            found.update(before + run)
        else:
            run = [step.offset] if none else []
            before = [step.offset] if step.opname == "SWAP" else []
    return found


def every_moment(make, call, step=1, **options):
    """Yield what ``make`` returns after ``call`` was cut short at each of its lines in turn."""
    for moment in count(0, step):
        made = make()
        if not cut_at(moment, lambda made=made: call(made), **options):
            return
        yield moment, made


@contextmanager
def after(seconds, act):
    """Do something after a while, in the middle of whatever the main thread does then."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: act())
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def duration(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


def cut_short():
    raise CutShortError


def hashed(value):
    """Numbers and arrays, nested in whatever way, as something to compare."""
    if isinstance(value, dict):
        return tuple((name, hashed(part)) for name, part in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(hashed, value))
    return value.tobytes() if isinstance(value, np.ndarray) else value


def answers(model):
    """All that a model has learned, and what it says of it, as something to compare."""
    if isinstance(model, RidgeStream):
        if not model.n_rows:
            return hashed(model.snapshot())
        proof = model.certificate(1.0)
        return (
            hashed(model.snapshot()),
            model.solve(1.0).tobytes(),
            hashed(proof.relative),
            proof.passes,
        )
    if model._learned is None:
        return None
    if not model._learned.n_rows:
        return "settled", hashed(model._learned.snapshot())
    proof = model.certificate()
    chosen = hashed([model.alphas_, model.scores_]) if isinstance(model, StreamingRidgeCV) else None
    return (
        to_bytes(model),
        model.coef_.tobytes(),
        np.asarray(model.intercept_).tobytes(),
        np.asarray(proof.relative).tobytes(),
        proof.passes,
        model.n_samples_seen_,
        chosen,
    )


def left_of(model, old, new):
    """Tell whether a model is the old one, the new one, or knows that it is broken."""
    try:
        found = answers(model)
    except BrokenModelError:
        assert_broken(model)
        return "broken"
    if found == new:
        return "new"
    assert found == old, "it is neither the old nor the new model"
    return "old"


def assert_broken(model):
    """Nothing can be asked of it, and it says so every time."""
    X, y = np.ones((2, 3)), np.ones(2)
    if isinstance(model, RidgeStream):
        asked = {
            "n_rows": lambda: model.n_rows,
            "weight": lambda: model.weight,
            "shape": lambda: model.shape,
            "nbytes": lambda: model.nbytes,
            "update": lambda: model.update(X, y),
            "check": lambda: model.check(X, y),
            "merge": lambda: model.merge(RidgeStream(model.method)),
            "merge into another": lambda: RidgeStream(**options_of(model)).merge(model),
            "copy": model.copy,
            "snapshot": model.snapshot,
            "refine": lambda: model.refine([(X, y)], 1.0),
            "refinement": lambda: model.refinement,
            "solve": lambda: model.solve(1.0),
            "certificate": lambda: model.certificate(1.0),
            "passes": lambda: model.passes(1.0),
            "generalised_error": lambda: model.generalised_error([1.0]),
            "training_r_squared": lambda: model.training_r_squared(1.0),
            "largest_eigenvalue": model.largest_eigenvalue,
        }
        assert "broken" in repr(model)
    else:
        asked = {
            "coef_": lambda: model.coef_,
            "intercept_": lambda: model.intercept_,
            "n_samples_seen_": lambda: model.n_samples_seen_,
            "n_features_in_": lambda: model.n_features_in_,
            "scale_": lambda: model.scale_,
            "predict": lambda: model.predict(X),
            "score": lambda: model.score(X, y),
            "certificate": model.certificate,
            "path": lambda: model.path([1.0]),
            "at": lambda: model.at(1.0),
            "partial_fit": lambda: model.partial_fit(X, y),
            "refine": lambda: model.refine(X, y),
            "save": lambda: model.save("nowhere/at/all"),
            "merge": lambda: model.merge(type(model)()),
            "merge into another": lambda: type(model)(**model.get_params()).merge(model),
            "to_sklearn": model.to_sklearn,
        }
        for name in ("alpha_", "alphas_", "scores_", "classes_"):
            if hasattr(type(model), name):
                asked[name] = lambda name=name: getattr(model, name)
        if hasattr(model, "training_score"):
            asked["training_score"] = model.training_score
        if hasattr(model, "select"):
            asked["select"] = lambda: model.select([1.0], X, y)
        assert type(model).__name__ in repr(model)
    for name, ask in asked.items():
        assert refuses(ask), f"{name} gave an answer"


def refuses(ask):
    try:
        ask()
    except BrokenModelError as error:
        return "holds only part of it: " in str(error)
    return False


def options_of(stream):
    names = ("method", "sketch_size", "fit_intercept", "standardize", "feature_scale")
    return {name: getattr(stream, name) for name in names}
