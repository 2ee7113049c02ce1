"""The bookings that `roost book` wrote, as seating reads them.

The pod mounts their ConfigMap as a file, if it exists. So no right in Kubernetes is needed to read
them. Those of the values are in `settings.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from roost_core.release.bookings import MOST_TEXT, Event, Limits, read_events
from roost_core.release.reader import Reader


class BookingFile:
    """The file of bookings, read again when it changed."""

    def __init__(self, path: Path | None, say: Callable[[str], None]) -> None:
        self._path = path
        self._limits = Limits((), 0)
        self._say = say
        # Why the file can't be read, as last said; "": it was read.
        self._fault = ""
        self._text: bytes | None = None
        self._events: tuple[Event, ...] = ()

    def events(self, limits: Limits) -> Sequence[Event]:
        """What is booked there; faults are told once, and those bookings left out."""
        text = b""
        if self._path is not None:
            try:
                text = self._path.read_bytes()
            except FileNotFoundError:
                text = b""
            except OSError as error:
                fault = f"{self._path}: can't be read ({error.strerror})"
                if fault != self._fault:
                    self._say(fault)
                    self._fault = fault
                return self._events
        self._fault = ""
        if text != self._text or limits != self._limits:
            self._text = text
            self._limits = limits
            self._events = self._read(text)
        return self._events

    def _read(self, text: bytes) -> tuple[Event, ...]:
        if len(text) > MOST_TEXT:
            self._say(f"bookings: found {len(text)} bytes, expected at most {MOST_TEXT}")
            return ()
        read = Reader()
        events = read_events(read, text.decode(errors="replace") or "[]", self._limits)
        for fault in read.faults:
            self._say(f"{fault} That booking is left out.")
        return events
