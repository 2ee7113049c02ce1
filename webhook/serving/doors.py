"""Accept connections, as many as may be open at once, before anything is spent on them: handshakes count too.

Of those who want in when all places are taken, whoever holds the most places gives way: one address that opens
connections without end shuts out itself, and the API server's come through.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from webhook.serving.connections import Connection, Listener

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 10.0
BACKLOG: Final = 2048
# Accepted in one turn of the loop.
_MOST_AT_ONCE: Final = 64
# Before another try when nothing could be accepted: mostly, the process has no file descriptor left.
_RETRY_SECONDS: Final = 0.1


class _Place:
    """One open connection. `connection` answers once the handshake is over."""

    __slots__ = ("connection", "peer", "since", "task")

    def __init__(self, peer: str, since: float) -> None:
        self.peer = peer
        self.since = since
        self.connection: Connection | None = None
        self.task: asyncio.Task[None] | None = None

    def idle_since(self) -> float:
        """When it did something last."""
        return self.since if self.connection is None else self.connection.since

    def clear(self) -> None:
        """End the connection, or its handshake."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
        elif self.connection is not None:
            self.connection.cut()


class Door:
    """The way in of one listener."""

    def __init__(self, listener: Listener, make: Callable[[Callable[[Connection], None]], Connection]) -> None:
        """make: given whom to tell of its end, returns a new connection."""
        self._listener = listener
        self._make = make
        self._places: set[_Place] = set()

    @property
    def open(self) -> int:
        """Connections open now."""
        return len(self._places)

    async def run(self) -> None:
        """Accept until cancelled; then listen no more, and leave open connections alone."""
        bound = self._listener.bound
        bound.setblocking(False)
        bound.listen(BACKLOG)
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    accepted, address = await loop.sock_accept(bound)
                except OSError:
                    await asyncio.sleep(_RETRY_SECONDS)
                    continue
                self._let_in(accepted, str(address[0]))
                self._let_in_waiting(bound)
        finally:
            bound.close()

    def _let_in_waiting(self, bound: socket.socket) -> None:
        """Accept those that wait already: one a turn of a busy loop would keep probes waiting behind a flood."""
        for _ in range(_MOST_AT_ONCE):
            try:
                accepted, address = bound.accept()
            except OSError:
                return
            accepted.settimeout(0)
            self._let_in(accepted, str(address[0]))

    def _let_in(self, accepted: socket.socket, peer: str) -> None:
        if len(self._places) >= self._listener.most_connections and not self._make_room(peer):
            accepted.close()
            return
        loop = asyncio.get_running_loop()
        place = _Place(peer, loop.time())
        self._places.add(place)
        place.task = loop.create_task(self._open(accepted, place))

    def _make_room(self, peer: str) -> bool:
        """Close the connection that was idle longest of the address that has most; False: `peer` itself has most."""
        log.warning("all %d connections are taken; the address that holds most gives way", len(self._places))
        held = Counter(place.peer for place in self._places)
        heaviest, most = held.most_common(1)[0]
        if most <= held[peer] + 1:
            return False
        place = min((one for one in self._places if one.peer == heaviest), key=_Place.idle_since)
        self._places.discard(place)
        place.clear()
        return True

    async def _open(self, accepted: socket.socket, place: _Place) -> None:
        def leave(_connection: Connection) -> None:
            self._places.discard(place)
            place.connection = None

        def make() -> Connection:
            place.connection = self._make(leave)
            return place.connection

        certificate = self._listener.certificate
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                make,
                accepted,
                ssl=None if certificate is None else certificate.context,
                ssl_handshake_timeout=None if certificate is None else HANDSHAKE_SECONDS,
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            # No handshake, so `connection_lost` may never come.
            self._places.discard(place)
