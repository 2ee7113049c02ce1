"""What viewers see live: one state for all of them, read every few seconds at most, and only while somebody looks."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Viewers at a time: each holds a thread and a connection.
MAX_VIEWERS: Final = 20
# The least time between two states.
PAUSE_SECONDS: Final = 2.0
# After this long the state is sent even if nothing has happened.
REFRESH_SECONDS: Final = 15.0


class TooManyViewersError(Exception):
    """MAX_VIEWERS are there already."""


class State(NamedTuple):
    """A state of the cluster."""

    # As JSON, in one line.
    line: bytes
    # Equal for states in which only the time differs.
    content: bytes


class Feed:
    """The latest state, for any number of threads."""

    def __init__(
        self, read: Callable[[], State], *, max_viewers: int = MAX_VIEWERS, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._read = read
        self._pause_seconds = pause_seconds
        self._places = threading.BoundedSemaphore(max_viewers)
        self._lock = threading.Lock()
        self._state = State(b"", b"")
        self._read_at = float("-inf")

    def watch(self) -> Viewing:
        """Server-Sent Events without end: the latest state, and each that differs. Raises TooManyViewersError."""
        if not self._places.acquire(blocking=False):
            raise TooManyViewersError
        return Viewing(self._events(), self._places.release)

    def _events(self) -> Iterator[bytes]:
        sent = b""
        sent_at = float("-inf")
        while True:
            state = self.latest()
            # Ages grow also where nothing happens; and a viewer who has gone is found out.
            if state.content != sent or time.monotonic() - sent_at >= REFRESH_SECONDS:
                yield b"data: " + state.line + b"\n\n"
                sent, sent_at = state.content, time.monotonic()
            time.sleep(self._pause_seconds)

    def latest(self) -> State:
        """The state, of PAUSE_SECONDS ago at most."""
        with self._lock:
            if time.monotonic() - self._read_at >= self._pause_seconds:
                self._state = self._read()
                self._read_at = time.monotonic()
            return self._state


class Viewing:
    """What one viewer gets. Whoever has it must close it, also if it was never begun: that frees the viewer's place."""

    def __init__(self, events: Iterator[bytes], leave: Callable[[], None]) -> None:
        self._events = events
        self._leave: Callable[[], None] | None = leave

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._events)

    def close(self) -> None:
        """Free the viewer's place."""
        if self._leave is not None:
            self._leave()
            self._leave = None
