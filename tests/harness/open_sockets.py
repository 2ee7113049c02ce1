"""Keep the open connections of a server, so that a test can break them."""

import contextlib
import socket
import threading


class OpenSockets:
    """Of one server. All methods may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

    def add(self, *sockets: socket.socket) -> None:
        with self._lock:
            self._open.update(sockets)

    def discard(self, *sockets: socket.socket) -> None:
        with self._lock:
            self._open.difference_update(sockets)

    def cut(self) -> None:
        """Hang up on all, in the midst of a message or not; their owners close them."""
        with self._lock:
            cut, self._open = self._open, set()
        for each in cut:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
