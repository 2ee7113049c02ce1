"""Limit the processor time of a block of code, whatever library it is in.

A calendar's rules are a stranger's, and a library could compute on them for ever.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

# Seconds of computing after which the exception is raised again, if it was lost.
_REPEAT_SECONDS: Final = 0.5


class OutOfTimeError(BaseException):
    """The processor time is used up.

    It isn't an Exception: a library that catches those would go on computing.
    """


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Raise OutOfTimeError in this block once the process has computed for `most` seconds.

    Time in which the process doesn't run isn't counted, so a busy machine ends nothing. Only the
    main thread of a Unix process can be interrupted; elsewhere the block has no limit.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "SIGVTALRM"):
        yield
        return

    def end_block(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTimeError

    handler_before = signal.signal(signal.SIGVTALRM, end_block)
    # The timer repeats: Python drops an exception that is raised in a finalizer.
    signal.setitimer(signal.ITIMER_VIRTUAL, most, _REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, handler_before)
