"""Changes in place: complete, or known to be cut short.

A sketch is changed where it lies, since a copy for each batch would double its memory. Whatever is
raised in the middle of that (Ctrl-C, a lack of memory) would leave part of a batch behind, and a
certificate of what is left would be wrong. So it is marked until the change is complete.
"""

# What signal wraps in enums, in which a single row would spend half of its time.
import _signal  # type: ignore[import-not-found]
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeAlias

Change: TypeAlias = Callable[[], None]


class BrokenModelError(RuntimeError, AttributeError):
    """Raised by a model that was interrupted in the middle of a change and holds only part of it.

    Load the last checkpoint or saved model, or call ``fit``, which begins again. An AttributeError
    too, as scikit-learn's NotFittedError is: ``dir`` and notebooks ask for what a model has.
    """


class Guarded:
    """Something that is changed in place by `change_in_place`."""

    _broken = False

    def check_whole(
        self,
        name: str = "the model",
        remedy: str = "load the last checkpoint or saved model, or call fit to begin again",
    ) -> None:
        """Raise if a change was cut short, also within a change."""
        if self._broken:
            raise BrokenModelError(
                f"{name} was interrupted while it took in a batch or another model, so that it "
                f"holds only part of it: {remedy}"
            )


def no_change() -> None:
    """Change nothing."""


def change_in_place(owner: Guarded, change: Change) -> None:
    """Change something in place; whatever is raised meanwhile, ``owner`` is broken from then on.

    In the main thread, where Ctrl-C raises KeyboardInterrupt, it does so only when the change is
    complete. A second Ctrl-C raises at once. Other handlers, signals and threads are left alone.
    """
    global _waiting
    holds_back = False
    try:
        if _can_hold_back():
            _waiting, holds_back = False, True
            _signal.signal(signal.SIGINT, _hold_back)
        owner._broken = True
        change()
        owner._broken = False
    finally:
        if holds_back:
            # Unless another signal's handler has set one of its own meanwhile.
            if _signal.getsignal(signal.SIGINT) is _hold_back:
                _signal.signal(signal.SIGINT, signal.default_int_handler)
            if _waiting:
                raise KeyboardInterrupt


_waiting = False  # whether an interrupt was held back


def _hold_back(number: int, frame: FrameType | None) -> None:
    """Note the first interrupt; raise for the second, and where no change is under way."""
    global _waiting
    if _waiting or not _under_way(frame):
        _waiting = False
        _signal.signal(signal.SIGINT, signal.default_int_handler)
        raise KeyboardInterrupt
    _waiting = True


def _can_hold_back() -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = _signal.getsignal(signal.SIGINT)
    # Another signal may have kept an earlier change from putting the handler back.
    left_over = handler is _hold_back and not _under_way(sys._getframe(2))
    return handler is signal.default_int_handler or left_over


def _under_way(frame: FrameType | None) -> bool:
    """Whether a change is on the stack."""
    while frame is not None and frame.f_code is not change_in_place.__code__:
        frame = frame.f_back
    return frame is not None
