"""Calls cut short at any moment leave the old model, the new one, or one that says it is broken."""

import copy
import io
import threading
from contextlib import suppress

import joblib
import numpy as np
import pytest

from interrupts import (
    HOME,
    CutShortError,
    after,
    answers,
    assert_broken,
    cut_at,
    cut_short,
    duration,
    every_moment,
    left_of,
    press_ctrl_c,
)
from ridgepass import (
    BrokenModelError,
    StreamingRidge,
    StreamingRidgeClassifier,
    StreamingRidgeCV,
)
from ridgepass.estimators import learned
from ridgepass.guard import change_in_place
from ridgepass.state import State
from store.models import to_bytes

rng = np.random.default_rng(0)
X = rng.standard_normal((17, 3)) + 2.0
Y = X @ [1.0, -2.0, 3.0] + rng.standard_normal(17)
KINDS = np.array(["ash", "elm", "oak"])[np.arange(17) % 3]
OLD, NEW = slice(0, 9), slice(9, 17)
# What decides about old, new and broken: cut short at the finest.
GATES = tuple(
    f"{HOME}/{name}.py"
    for name in (
        "guard",
        "stream",
        "answers",
        "second_look",
        "estimators/base",
        "estimators/fitted",
        "estimators/learned",
        "estimators/folds",
        "estimators/cv",
        "estimators/refinable",
        "estimators/regressor",
    )
)


def regressor(rows=OLD, method="exact"):
    return StreamingRidge(method=method, sketch_size=2, standardize=True).fit(X[rows], Y[rows])


def chooser(rows=OLD, cv=2):
    return StreamingRidgeCV([0.5, 2.0], cv=cv, method="exact").fit(X[rows], Y[rows])


def selected(rows=OLD):
    return chooser(rows).select([1.0, 3.0, 9.0], X[NEW], Y[NEW])


def classifier(rows=OLD):
    return StreamingRidgeClassifier(method="exact").fit(X[rows], KINDS[rows])


def targets_of(model):
    return KINDS if isinstance(model, StreamingRidgeClassifier) else Y


def partial_fit(model):
    model.partial_fit(X[NEW], targets_of(model)[NEW])


def merge(model):
    model.merge(type(model)(**model.get_params()).fit(X[NEW], targets_of(model)[NEW]))


def refine(model):
    model.refine(X[OLD], targets_of(model)[OLD], passes=2)


def fit(model):
    model.fit(X[NEW], targets_of(model)[NEW])


def fit_stream(model):
    y = targets_of(model)
    model.fit_stream([(X[:5], y[:5]), (X[5:12], y[5:12]), (X[12:], y[12:])])


def select(model):
    model.select([0.1, 7.0], X[NEW], Y[NEW])


IN_PLACE, SWAPPED = (partial_fit, merge), (refine, fit, fit_stream, select)
# Model, call, one line in so many, one opcode of the gates in so many.
CASES = [
    (regressor, partial_fit, 1, 5),
    (regressor, merge, 3, 7),
    (regressor, refine, 11, 7),
    (regressor, fit, 5, 7),
    (regressor, fit_stream, 17, 11),
    (chooser, partial_fit, 3, 13),
    (chooser, merge, 3, 11),
    (selected, refine, 31, 31),
    (selected, fit, 13, 11),
    (selected, fit_stream, 37, 29),
    (selected, select, 5, 5),
    (classifier, partial_fit, 3, 7),
    (classifier, merge, 5, 7),
    (classifier, refine, 17, 11),
]


def outcomes(base, act, make=copy.deepcopy, **options):
    old, made = answers(make(base)), make(base)
    act(made)
    new = answers(made)
    assert old != new
    moments = every_moment(lambda: make(base), act, **options)
    return {left_of(made, old, new) for _, made in moments}


@pytest.mark.parametrize(("make", "act", "lines", "opcodes"), CASES)
def test_cut_short_at_any_line_a_model_is_old_or_new_or_broken(
    make, act, lines, opcodes, monkeypatch
):
    monkeypatch.setattr(learned, "PIECE", 7)  # targets of the classifier come in several pieces
    found = outcomes(make(), act, step=lines)
    found |= outcomes(make(), act, step=opcodes, within=GATES, opcodes=True)
    if act in IN_PLACE:
        assert found >= {"old", "broken"}
    else:
        assert found <= {"old", "new"}
        assert "old" in found


@pytest.mark.parametrize("make", [regressor, chooser, classifier])
@pytest.mark.parametrize("act", [partial_fit, merge])
def test_an_unfitted_model_is_never_broken(make, act):
    def unfitted(model):
        return type(model)(**model.get_params())

    if make is classifier:
        act = {partial_fit: first_of_classes, merge: merge}[act]
    found = outcomes(make(), act, unfitted, step=7)
    assert found <= {"old", "new"}


def first_of_classes(model):
    model.partial_fit(X[NEW], KINDS[NEW], classes=np.unique(KINDS))


@pytest.mark.parametrize("act", [partial_fit, merge, refine])
@pytest.mark.parametrize("make", [regressor, chooser])
def test_a_model_with_siblings_is_never_broken(make, act):
    base = make()
    made = copy.deepcopy(base)
    act(made)
    old, new = answers(base), answers(made)

    def share():
        model = copy.deepcopy(base)
        return model, model.at(2.0)

    theirs = answers(share()[1])
    moments = every_moment(share, lambda pair: act(pair[0]), step=29)
    for _, (model, sibling) in moments:
        assert left_of(model, old, new) in ("old", "new")
        assert answers(sibling) == theirs


def test_what_came_of_an_interrupt_is_what_comes_of_the_next_call():
    """Whatever the moment, a model that is not broken goes on as if it had not been interrupted."""
    base = chooser()
    more = X[:3], Y[:3]
    wanted = []
    for act in (lambda model: None, partial_fit):
        model = copy.deepcopy(base)
        act(model)
        wanted.append(answers(model.partial_fit(*more)))
    for _, model in every_moment(lambda: copy.deepcopy(base), partial_fit, step=19):
        with suppress(BrokenModelError):
            model.partial_fit(*more)
            assert answers(model) in wanted


def broken(make=regressor):
    model = make()
    with pytest.raises(CutShortError):
        change_in_place(model._learned, cut_short)
    return model


@pytest.mark.parametrize("make", [regressor, chooser, selected, classifier])
def test_a_broken_model_says_so_and_so_do_its_copies(make):
    model = broken(make)
    assert_broken(model)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for twin in (copy.copy(model), copy.deepcopy(model), joblib.load(file)):
        assert_broken(twin)
    assert type(model).__name__ in model._repr_html_()
    with pytest.raises(BrokenModelError, match=f"^{type(model).__name__} was interrupted while"):
        model.predict(X)


@pytest.mark.parametrize("make", [regressor, chooser, selected, classifier])
def test_fit_begins_again(make):
    model, wanted = broken(make), make()
    fit(model)
    fit(wanted)
    assert answers(model) == answers(wanted)
    if make is not classifier:
        model = broken(make)
        fit_stream(model)
        fit_stream(wanted)
        assert answers(model) == answers(wanted)


@pytest.mark.parametrize("make", [regressor, chooser, classifier])
def test_a_broken_model_is_not_merged(make):
    model, other = make(), broken(make)
    before = answers(model)
    with pytest.raises(BrokenModelError, match=f"^the other {type(model).__name__} was"):
        model.merge(other)
    assert answers(model) == before
    with pytest.raises(BrokenModelError, match=f"^{type(model).__name__} was"):
        other.merge(model)
    assert answers(model) == before


def test_a_broken_model_is_not_saved(tmp_path):
    path = tmp_path / "model.ridge"
    model = regressor()
    model.save(path)
    content = path.read_bytes()
    with pytest.raises(BrokenModelError):
        broken().save(path)
    assert path.read_bytes() == content


def wide(make):
    values = np.random.default_rng(1)
    rows = values.standard_normal((400, 60)) + 2.0
    targets = rows @ values.standard_normal(60) + values.standard_normal(400)
    if make is StreamingRidgeClassifier:
        targets = np.digitize(targets - targets.mean(), [-5.0, 5.0])
    options = {"cv": 3, "alphas": [1.0, 9.0]} if make is StreamingRidgeCV else {}
    model = make(method="rfd", sketch_size=8, **options).fit(rows[:200], targets[:200])
    return model, rows[200:], targets[200:]


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("call", ["partial_fit", "merge"])
@pytest.mark.parametrize("make", [StreamingRidge, StreamingRidgeCV, StreamingRidgeClassifier])
def test_timed_interrupts(make, call, monkeypatch):
    monkeypatch.setattr(learned, "PIECE", 60)
    base, rows, targets = wide(make)
    other = make(**base.get_params()).fit(rows, targets)

    def act(model):
        if call == "merge":
            model.merge(other)
        else:
            model.partial_fit(rows, targets)

    made = copy.deepcopy(base)
    length = duration(lambda: act(made))
    old, new = answers(base), answers(made)
    for moment in np.random.default_rng(2).uniform(0, 1.2, 25):
        model = copy.deepcopy(base)
        with suppress(CutShortError), after(moment * length, cut_short):
            act(model)
        left_of(model, old, new)
        model = copy.deepcopy(base)
        with suppress(KeyboardInterrupt), after(moment * length, press_ctrl_c):
            act(model)
        assert left_of(model, old, new) != "broken"  # Ctrl-C waits


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_loop_with_a_whole_batch(monkeypatch):
    """As in a notebook: the batch in hand is taken in, the next one is not."""
    model, taken, absorb = regressor(), [], State.absorb

    def absorb_slowly(state, batch):
        taken.append(batch)
        if len(taken) == 3:
            press_ctrl_c()
        absorb(state, batch)

    def loop():
        for start in range(0, 17, 4):
            model.partial_fit(X[start : start + 4], Y[start : start + 4])

    monkeypatch.setattr(State, "absorb", absorb_slowly)
    with pytest.raises(KeyboardInterrupt):
        loop()
    assert len(taken) == 3
    assert model.n_samples_seen_ == 9 + 12
    wanted = regressor()
    assert answers(model) == answers(wanted.partial_fit(X[:12], Y[:12]))


def test_fit_does_not_make_ctrl_c_wait(ctrl_c):
    """What is built beside the old model can be dropped at once."""
    model = regressor()
    before = answers(model)
    cut = cut_at(300, lambda: fit(model), KeyboardInterrupt)
    assert cut
    assert answers(model) == before

    def press(*_):
        press_ctrl_c()
        raise AssertionError("Ctrl-C waits for fit")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(State, "absorb", press)
        with pytest.raises(KeyboardInterrupt):
            fit(model)
    assert answers(model) == before


def test_others_wait_for_a_change_and_see_no_broken_model():
    model = regressor(method="rfd")
    failures, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            try:
                model.n_samples_seen_  # noqa: B018
                model.coef_  # noqa: B018
                model.certificate()
                to_bytes(model)
                model.at(2.0).predict(X)
                copy.copy(model)
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        partial_fit(model)
        merge(model)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_two_that_merge_crosswise_do_not_wait_for_each_other():
    left, right = regressor(OLD, "rfd"), regressor(NEW, "rfd")

    def keep_merging(one, other):
        for _ in range(30):
            one.merge(other)

    threads = [
        threading.Thread(target=keep_merging, args=pair, daemon=True)
        for pair in ((left, right), (right, left))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert left.n_samples_seen_ > 9
