"""Write the log: one line an event, to stderr, and nothing of any object in it.

A fault is written as its type and the places it passed, without its message: messages of faults
quote what they tripped over, and that may be a pod's environment. Warnings and errors are limited:
whoever can cause one could otherwise fill a disk with it. `roost doctor` reads these lines
(`roost/doctor/evidence.py`).
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

# The values' `corePods.logLevel`.
LEVELS: Final = {
    "Debug": logging.DEBUG,
    "Info": logging.INFO,
    "Warning": logging.WARNING,
    "Error": logging.ERROR,
}
_FRAMES: Final = 6
# An equal warning or error is written once within this time; repeats are counted.
QUIET_SECONDS: Final = 60.0
# One place in the code may say as many different things within that time, of different pods or
# nodes.
TEXTS_A_CAUSE: Final = 10
# Remembered causes: places in the code, so some dozens.
_MAX_CAUSES: Final = 256


class OneLineFormatter(logging.Formatter):
    """`2026-11-21T15:04:05.123Z INFO webhook.main message`, whatever the message holds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        message = _text(record)
        escaped = (
            message.encode("unicode_escape").decode() if not message.isprintable() else message
        )
        return f"{moment}.{int(record.msecs):03d}Z {record.levelname} {record.name} {escaped}"


def utc_time(seconds: float) -> str:
    """Return a Unix time as Kubernetes writes it: RFC 3339, UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def describe_fault(error: BaseException) -> str:
    """Return the error's type and innermost frames, without its message."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__} at {places or '?'}"


def _text(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return (
        record.getMessage()
        if error is None
        else f"{record.getMessage()} fault={describe_fault(error)}"
    )


@dataclass(slots=True)
class _Cause:
    """What one place in the code has logged since `began`."""

    began: float
    texts: set[str] = field(default_factory=set)
    left_out: int = 0


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes a warning or error once a minute for each cause and text, and afterwards how many it
    left out.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: monotonic seconds."""
        super().__init__(stream)
        self._clock = clock
        # By logger, level and template; the one that began first is first.
        self._causes: dict[tuple[str, int, str], _Cause] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, unless an equal one was written recently."""
        now = self._clock()
        self._close_before(now - QUIET_SECONDS)
        is_limited = record.levelno >= logging.WARNING
        if is_limited and not self._take_note(record, now):
            return
        super().emit(record)

    def close(self) -> None:
        """Write how many records were left out so far."""
        self._close_before(float("inf"))
        super().close()

    def _take_note(self, record: logging.LogRecord, now: float) -> bool:
        """Remember the record; return whether it is to be written, and count it as left out
        otherwise.
        """
        key = (record.name, record.levelno, str(record.msg))
        cause = self._causes.get(key)
        if cause is None:
            if len(self._causes) >= _MAX_CAUSES:
                self._close(next(iter(self._causes)))
            cause = self._causes[key] = _Cause(now)
        text = _text(record)
        if text in cause.texts or len(cause.texts) >= TEXTS_A_CAUSE:
            cause.left_out += 1
            return False
        cause.texts.add(text)
        return True

    def _close_before(self, moment: float) -> None:
        for key in [key for key, cause in self._causes.items() if cause.began <= moment]:
            self._close(key)

    def _close(self, key: tuple[str, int, str]) -> None:
        cause = self._causes.pop(key)
        if cause.left_out:
            name, level, template = key
            text = "left out %d more like: %s"
            super().emit(
                logging.LogRecord(name, level, "", 0, text, (cause.left_out, template), None)
            )


def configure(level: str) -> None:
    """Send every logger of the process through one handler, which limits warnings and errors."""
    handler = LimitedHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    # Libraries log each request, header or lease, which operators don't need.
    for name in ("kubernetes", "leaderelection", "asyncio", "werkzeug", "alembic"):
        logging.getLogger(name).setLevel(max(LEVELS[level], logging.WARNING))
    # Warns of each retry; final failures are logged by the caller.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
