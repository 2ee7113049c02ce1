"""End what runs too long, wherever it is: a library that works through a stranger's rules."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_AGAIN_SECONDS: Final = 0.5


class OutOfTimeError(BaseException):
    """The time is over. Not an Exception: a library that catches those would go on."""


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Raise OutOfTimeError in this block once the process has computed for so many seconds.

    It counts computing, so a busy machine ends nothing. Only the main thread of a Unix process can
    be interrupted; elsewhere the block has no limit.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "SIGVTALRM"):
        yield
        return

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, end)
    # Again and again: where an exception can only be ignored, as in a finalizer, the first is lost.
    signal.setitimer(signal.ITIMER_VIRTUAL, most, _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
