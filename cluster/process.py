"""Know what every program knows of itself as a process: its version, and when it is asked to end."""

from __future__ import annotations

import signal
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from types import FrameType


def stop_on_signals(stop: threading.Event) -> None:
    """Set `stop` on SIGTERM and SIGINT. Only the main thread may ask for that."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def version() -> str:
    """Return the installed version, "unknown" when run from a bare checkout."""
    try:
        return metadata.version("roost")
    except metadata.PackageNotFoundError:
        return "unknown"
