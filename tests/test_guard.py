"""Changes in place: complete or known to be broken, and Ctrl-C waits for them."""

import contextlib
import copy
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import ridgepass
from interrupts import (
    HOME,
    CutShortError,
    after,
    answers,
    assert_broken,
    cut_short,
    duration,
    every_moment,
    left_of,
    press_ctrl_c,
)
from ridgepass import BrokenModelError, RidgeStream, guard, threads
from ridgepass.guard import Guarded, change_in_place

pytestmark = pytest.mark.usefixtures("ctrl_c")


def is_broken(what):
    try:
        what.check_whole()
    except BrokenModelError:
        return True
    return False


def test_the_error_is_public_and_names_the_remedy():
    assert ridgepass.BrokenModelError is guard.BrokenModelError
    assert issubclass(BrokenModelError, RuntimeError)
    what = Guarded()
    with pytest.raises(CutShortError):
        change_in_place(what, cut_short)
    with pytest.raises(BrokenModelError, match=r"^Some was interrupted .*: do this$"):
        what.check_whole("Some", "do this")


def test_it_is_broken_until_the_change_is_complete():
    what, during = Guarded(), []
    change_in_place(what, lambda: during.append(is_broken(what)))
    assert during == [True]
    assert not is_broken(what)


@pytest.mark.parametrize(
    "error", [ValueError, MemoryError, np.linalg.LinAlgError, KeyboardInterrupt, SystemExit]
)
def test_whatever_is_raised_breaks_it(error):
    what = Guarded()

    def change():
        raise error

    with pytest.raises(error):
        change_in_place(what, change)
    assert is_broken(what)


def test_ctrl_c_waits_for_the_change():
    what, done = Guarded(), []

    def change():
        press_ctrl_c()
        done.append(True)

    with pytest.raises(KeyboardInterrupt):
        change_in_place(what, change)
    assert done
    assert not is_broken(what)
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def test_a_second_ctrl_c_does_not_wait():
    what, done = Guarded(), []

    def change():
        press_ctrl_c()
        done.append(True)
        press_ctrl_c()
        done.append(True)

    with pytest.raises(KeyboardInterrupt) as caught:
        change_in_place(what, change)
    assert caught.value.__context__ is None  # one interrupt, told once
    assert len(done) == 1
    assert is_broken(what)


def test_ctrl_c_is_not_lost_if_the_change_fails():
    what = Guarded()

    def change():
        press_ctrl_c()
        raise MemoryError

    with pytest.raises(KeyboardInterrupt) as caught:
        change_in_place(what, change)
    assert isinstance(caught.value.__context__, MemoryError)
    assert is_broken(what)


def test_changes_within_changes_wait_for_the_outermost():
    outer, inner, done = Guarded(), Guarded(), []

    def change():
        for _ in range(2):
            change_in_place(inner, lambda: None if done else press_ctrl_c())
            done.append(is_broken(inner))

    with pytest.raises(KeyboardInterrupt):
        change_in_place(outer, change)
    assert done == [False, False]
    assert not is_broken(outer)


def test_other_handlers_are_left_alone():
    what, seen = Guarded(), []

    def handle(number, frame):
        seen.append(number)
        raise CutShortError

    signal.signal(signal.SIGINT, handle)
    try:
        with pytest.raises(CutShortError):
            change_in_place(what, press_ctrl_c)
        assert signal.getsignal(signal.SIGINT) is handle
        assert seen == [signal.SIGINT]
        assert is_broken(what)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        change_in_place(what, press_ctrl_c)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_handler_that_is_set_during_a_change_stays():
    try:
        change_in_place(Guarded(), lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_are_left_alone():
    what, seen = Guarded(), []

    def change():
        seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=change_in_place, args=(what, change))
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
    assert not is_broken(what)


def test_whatever_cuts_the_guard_itself_short_ctrl_c_works_afterwards():
    found = set()
    moments = every_moment(
        Guarded,
        lambda what: change_in_place(what, lambda: found.add("changed")),
        within=(f"{HOME}/guard.py",),
        opcodes=True,
    )
    for _, what in moments:
        found.add(is_broken(what))
        another, done = Guarded(), []

        def change(done=done):
            press_ctrl_c()
            done.append(True)

        with pytest.raises(KeyboardInterrupt):  # it waits, as if nothing had been
            change_in_place(another, change)
        assert done
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert found == {"changed", True, False}


def test_a_handler_that_was_left_behind_raises_at_once():
    signal.signal(signal.SIGINT, guard._hold_back)
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


A = np.random.default_rng(0).standard_normal((23, 3))
B = A @ [1.0, -2.0, 3.0] + np.random.default_rng(1).standard_normal(23)


def stream(method="exact", rows=slice(0, 11), **options):
    made = RidgeStream(method, sketch_size=2, fit_intercept=True, **options)
    return made.update(A[rows], B[rows])


def broken_stream():
    made = stream()
    with pytest.raises(CutShortError):
        change_in_place(made, cut_short)
    return made


def test_a_broken_stream_says_so_and_starts_again_from_a_snapshot():
    made = broken_stream()
    assert_broken(made)
    for copied in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        assert_broken(copied(made))
    fine = stream()
    before = answers(fine)
    with pytest.raises(BrokenModelError, match="the other RidgeStream was interrupted"):
        fine.merge(made)
    assert answers(fine) == before
    made.restore(copy.deepcopy(fine.snapshot()))
    assert answers(made) == before
    assert made.update(A[11:], B[11:]).n_rows == 23


CHANGES = {
    "update": lambda made: made.update(A[11:20], B[11:20]),
    "merge": lambda made: made.merge(stream(made.method, slice(11, 20))),
    "refine": lambda made: made.refine([(A[:5], B[:5]), (A[5:11], B[5:11])], 1.0, passes=2),
}
EVERY = {"exact": 1, "rfd": 11, "2lfd": 11, "cs": 7, "tracked": 29}  # one line in so many


def outcomes(make, change, **options):
    """Return all that comes about if a change is cut short at one moment after the other."""
    old, made = answers(make()), make()
    change(made)
    new = answers(made)
    assert old != new
    return {left_of(made, old, new) for _, made in every_moment(make, change, **options)}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", EVERY)
def test_a_stream_cut_short_at_any_line_is_old_or_new_or_broken(method, change):
    base, step = stream(method), EVERY[method]
    found = outcomes(
        lambda: copy.deepcopy(base), CHANGES[change], step=step if change == "update" else 3 * step
    )
    if change == "refine":
        assert found <= {"old", "new"}  # nothing is changed in place
    else:
        assert found >= {"old", "broken"}


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("change", ["update", "merge"])
@pytest.mark.parametrize("method", ["exact", "rfd"])
def test_a_stream_without_rows_is_never_broken(method, change, begun):
    def make():
        made = RidgeStream(method, sketch_size=2, fit_intercept=True)
        return made.begin(A, B) if begun else made

    assert outcomes(make, CHANGES[change], step=EVERY[method]) <= {"old", "new"}


def long_stream():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((600, 60)) + 3.0
    targets = rows @ rng.standard_normal(60) + rng.standard_normal(600)
    made = RidgeStream("rfd", sketch_size=8, fit_intercept=True, standardize=True)
    return made.update(rows[:300], targets[:300]), rows[300:], targets[300:]


@pytest.mark.parametrize("change", ["update", "merge"])
def test_timed_interrupts(change):
    base, rows, targets = long_stream()
    other = RidgeStream("rfd", sketch_size=8, fit_intercept=True, standardize=True)
    other.update(rows, targets)

    def act(made):
        if change == "update":
            made.update(rows, targets)
        else:
            made.merge(other)

    made = base.copy()
    length = duration(lambda: act(made))
    old, new, theirs = answers(base), answers(made), answers(other)
    rng = np.random.default_rng(3)
    for moment in rng.uniform(0, 1.2, 100):
        made = base.copy()
        with suppress(CutShortError), after(moment * length, cut_short):
            act(made)
        left_of(made, old, new)
        made = base.copy()
        with suppress(KeyboardInterrupt), after(moment * length, press_ctrl_c):
            act(made)
        assert left_of(made, old, new) != "broken"  # Ctrl-C waits
    assert answers(other) == theirs


def test_no_lock_stays_with_an_interrupt_that_is_kept():
    """As notebooks keep the last error, with all that its frames hold on to."""
    base, kept = stream("rfd"), []
    base.solve(1.0)

    def ask(made):
        made._answers = None
        try:
            made.solve(1.0)
        except CutShortError as error:
            kept.append(error)
            raise

    def is_free():
        free = threads._lock.acquire(blocking=False)
        if free:
            threads._lock.release()
        return free

    # Not within threads.py: no signal is handled between the end of a `with` and its exit.
    within = f"{HOME}/kernels.py", contextlib.__file__
    with ThreadPoolExecutor(1) as other:  # the lock of a thread is free to itself
        for _ in every_moment(base.copy, ask, within=within, opcodes=True, step=3):
            assert other.submit(is_free).result()
        assert kept
        rng = np.random.default_rng(0)
        for seconds in rng.uniform(0, 1e-3, 200):
            with suppress(CutShortError), after(seconds, cut_short):
                while True:
                    threads.alone(lambda: threads.each(abs, range(4)))
            assert other.submit(is_free).result()
