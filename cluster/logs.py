"""Write the log: one line an event, to stderr, and nothing of any object in it.

A fault is written as its type and the places it passed, without its message: messages of faults quote what they tripped
over, and that may be a pod's environment.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

# The values' `webhook.logLevel`.
LEVELS: Final = {
    "Debug": logging.DEBUG,
    "Info": logging.INFO,
    "Warning": logging.WARNING,
    "Error": logging.ERROR,
}
_FRAMES: Final = 6


class OneLineFormatter(logging.Formatter):
    """`2026-11-21T15:04:05.123Z INFO webhook.main message`, whatever the message holds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        message = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            message += f" fault={describe_fault(record.exc_info[1])}"
        escaped = message.encode("unicode_escape").decode() if not message.isprintable() else message
        return f"{moment}.{int(record.msecs):03d}Z {record.levelname} {record.name} {escaped}"


def describe_fault(error: BaseException) -> str:
    """Return the error's type and its innermost places, without its message."""
    return f"{type(error).__name__} at {_places(error.__traceback__)}"


def _places(trace: TracebackType | None) -> str:
    frames = traceback.extract_tb(trace)[-_FRAMES:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames)) or "?"


def configure(level: str) -> None:
    """Send every logger of the process through one handler."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    # Libraries tell of each request, header or lease: none of it is an operator's business.
    for name in ("kubernetes", "leaderelection", "uvicorn", "asyncio", "werkzeug", "alembic"):
        logging.getLogger(name).setLevel(max(LEVELS[level], logging.WARNING))
    # Warns of each retry; what fails for good is told by whoever asked.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
