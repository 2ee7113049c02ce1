"""What every program does at its start: stop on signals, keep memory small, know its version."""

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


# Parameters of glibc's mallopt. Source: malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# Blocks from this size on are returned when they are freed.
_LARGE_BYTES: Final = 64 * 1024


def return_freed_memory() -> None:
    """Let glibc return large blocks to the system as soon as they are freed.

    glibc takes a block above its threshold from the system, and a smaller block from the heap. The
    heap's memory returns to the system only from its end, so a block in the middle stays. By
    default, glibc raises the threshold whenever a larger block is freed, up to 32 MiB. To set it
    once keeps it where it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # Other C libraries may have none.
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def version() -> str:
    """Return the installed version, "unknown" when run from a bare checkout."""
    try:
        return metadata.version("roost")
    except metadata.PackageNotFoundError:
        return "unknown"
