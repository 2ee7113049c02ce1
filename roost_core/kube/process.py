"""What every program needs as a process: its version, a stop on signals, freed memory returned."""

from __future__ import annotations

import ctypes
import signal
import threading
from importlib import metadata
from types import FrameType
from typing import Final


def stop_on_signals(stop: threading.Event) -> None:
    """Set `stop` on SIGTERM and SIGINT. Only the main thread may call this."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


# A parameter of glibc's mallopt. Source: malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BYTES: Final = 64 * 1024


def return_freed_memory() -> None:
    """Return large blocks to the system as soon as they are freed.

    By default, glibc raises its bound of large blocks when a block above it is freed, up to 32 MiB.
    From then on, blocks below the new bound come from the heap. The heap can't give them back while
    anything lies behind them.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # elsewhere than in glibc there may be none
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def version() -> str:
    """Return the installed version, "unknown" when run from a bare checkout."""
    try:
        return metadata.version("roost")
    except metadata.PackageNotFoundError:
        return "unknown"
