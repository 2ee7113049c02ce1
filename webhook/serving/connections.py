"""Read requests from connections, answer plain reviews at once, and cut whoever sends, reads or waits too long.

Owns what a connection may cost: one deadline for a whole request, whichever way it takes, and the bytes that all
connections of a listener hold together. Nothing is timed request by request: `Traffic.sweep` looks at all connections
once a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from webhook.rules.bounds import MAX_BODY_BYTES
from webhook.serving.app import JSON, REVIEW_PATH, Review, answer_review, content_type_of

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable

    import uvicorn
    from flask import Flask
    from uvicorn.server import ServerState

    from webhook.certificates.tls import ServingCertificate

# The API server drops idle connections after 90 s and does not repeat a POST: we must be the one who waits longer.
KEEP_ALIVE_SECONDS: Final = 120.0
# From the first byte of a request to the last of its answer. The API server's own limit for a webhook is 30 s: who
# takes longer has no reader left.
REQUEST_SECONDS: Final = 30.0
# Go's own limit for headers is 1 MiB; the API server sends a few hundred bytes, and a token of some thousand at most.
HEADER_BYTES: Final = 16 * 1024
MAX_HEADERS: Final = 100
# A header of two bytes takes some 130 as Python keeps it.
HEADER_COST: Final = 32
# Of all connections of a listener together, in bodies and headers that are still to be answered.
MAX_HELD_BYTES: Final = 32 * 1024 * 1024
# Requests that wait on one connection for the answer to an earlier one. kube-apiserver waits for each answer.
MAX_PIPELINED: Final = 16
_JSON: Final = JSON.encode()
_REVIEW_PATH: Final = REVIEW_PATH.encode()


class ExcessError(Exception):
    """A request is larger than any that is answered. To the parser it is malformed: 400, and the connection ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A bound socket and what answers behind it. `certificate` None: plain HTTP; `review` None: no short way."""

    bound: socket.socket
    app: Flask
    is_draining: Callable[[], bool]
    review: Review | None = None
    certificate: ServingCertificate | None = None
    # The common name that a client's certificate must have; "": any.
    client_name: str = ""
    # Connections open at once, those in a handshake included. Few are enough for probes and scrapes, and the fewer
    # there are the less a probe waits behind a flood of scrapes.
    most_connections: int = 16


def _nobody(_connection: Connection) -> None:
    """Nobody is told any more."""


class Traffic:
    """All connections of one listener that are past their handshake, and the bytes that they hold."""

    def __init__(self, most_bytes: int = MAX_HELD_BYTES) -> None:
        self._most_bytes = most_bytes
        self.held_bytes = 0
        self.connections: set[Connection] = set()

    def hold(self, count: int) -> None:
        """Count bytes that a connection took in. Beyond the bound the requests that take longest are cut.

        A request that is meant to be answered comes in milliseconds, so those are senders that dawdle.
        """
        self.held_bytes += count
        while self.held_bytes > self._most_bytes:
            holders = [one for one in self.connections if one.held_bytes]
            if not holders:
                break
            min(holders, key=lambda one: one.since).cut()

    def sweep(self, now: float) -> None:
        """Cut every connection that is past its time."""
        for connection in list(self.connections):
            connection.check(now)


class Connection(HttpToolsProtocol):
    """One connection: uvicorn's, but that a plain review takes a short way, and that all it may cost is bounded.

    The short way answers a whole review as soon as its last byte is here, in one write, without a task, ASGI or Flask:
    together they cost several times what the review itself does. It takes exactly what kube-apiserver sends; whatever
    differs in any way goes through Flask, with the same answer (a test holds both together).
    """

    def __init__(
        self,
        listener: Listener,
        config: uvicorn.Config,
        server_state: ServerState,
        traffic: Traffic,
        on_lost: Callable[[Connection], None] = _nobody,
    ) -> None:
        super().__init__(config=config, server_state=server_state, app_state={})
        self._review = listener.review
        self._is_draining = listener.is_draining
        self._client_name = listener.client_name
        self._traffic = traffic
        self._on_lost = on_lost
        # The body so far, while a review is on the short way.
        self._body: list[bytes] | None = None
        self._is_in_headers = True
        self._is_receiving = False
        self._header_bytes = 0
        # Charged to the listener for the requests under way.
        self.held_bytes = 0
        # When the request under way began; between requests, when the last one ended. The loop's clock.
        self.since = self.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the keep-alive clock at once: uvicorn begins it after the first answer only."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._traffic.connections.add(self)
        if self._client_name and self._client_name not in _common_names(transport):
            self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what was held, the transport's buffers at once: left in a circle they would wait for the collector.

        A connection that carried a large body has half a megabyte of them.
        """
        self._traffic.connections.discard(self)
        self._release()
        self._body = None
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._on_lost(self)
        self._on_lost = _nobody
        del self.transport, self.flow, self.cycle

    def check(self, now: float) -> None:
        """Cut the connection when it is past its time, whatever it waits for."""
        age_seconds = now - self.since
        if self._is_receiving or not self._is_answered() or self.transport.is_closing():
            if age_seconds > REQUEST_SECONDS:
                self.cut()
        elif age_seconds > KEEP_ALIVE_SECONDS or (
            # An answer that nobody reads.
            age_seconds > REQUEST_SECONDS and self.transport.get_write_buffer_size() > 0
        ):
            self.cut()

    def cut(self) -> None:
        """End the connection now."""
        self._release()
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; endless headers are cut off by size."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._is_receiving and self._is_in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES:
                self.transport.close()
            else:
                self._hold(len(data) * HEADER_COST)

    def on_message_begin(self) -> None:
        """Begin the request's clock."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ExcessError
        super().on_message_begin()
        self._is_in_headers, self._header_bytes = True, 0
        self._is_receiving = True
        if self._is_answered():
            self.since = self.loop.time()

    def on_headers_complete(self) -> None:
        """Choose the way."""
        self._is_in_headers = False
        size, is_plain = self._read_headers()
        if size > HEADER_BYTES or len(self.headers) > MAX_HEADERS:
            raise ExcessError
        if is_plain and self._review is not None and self._may_be_answered_at_once():
            self._body = []
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Gather the body."""
        if self._body is None:
            super().on_body(body)
        else:
            self._body.append(body)
        self._hold(len(body))

    def on_message_complete(self) -> None:
        """Answer a review on the short way."""
        self._is_receiving = False
        if self._body is None or self._review is None:
            super().on_message_complete()
            return
        status, answer = answer_review(self._review, b"".join(self._body))
        self._body = None
        self._end_request()
        closes = self._is_draining() or not self.parser.should_keep_alive()
        self.transport.write(
            b"%bcontent-type: %b\r\ncontent-length: %d\r\n%b\r\n%b"
            % (
                STATUS_LINE[status],
                content_type_of(status).encode(),
                len(answer),
                b"connection: close\r\n" if closes else b"",
                answer,
            )
        )
        if closes:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Note that a request on the long way is answered."""
        self._end_request()
        super().on_response_complete()

    def _end_request(self) -> None:
        self._release()
        self.since = self.loop.time()

    def _is_answered(self) -> bool:
        """Tell whether no request on the long way waits for its answer."""
        return self.cycle is None or self.cycle.response_complete

    def _hold(self, count: int) -> None:
        if self.held_bytes <= MAX_BODY_BYTES:
            # Whatever comes beyond it is dropped.
            self.held_bytes += count
            self._traffic.hold(count)

    def _release(self) -> None:
        self._traffic.held_bytes -= self.held_bytes
        self.held_bytes = 0

    def _read_headers(self) -> tuple[int, bool]:
        """Return the headers' size, and whether they are those of a plain review that is within the bound."""
        size = len(self.url)
        is_json = is_bounded = is_chunked = False
        for name, value in self.headers:
            size += len(name) + len(value)
            if name == b"content-type":
                is_json = value == _JSON
            elif name == b"content-length":
                is_bounded = value.isdigit() and len(value) < 10 and int(value) <= MAX_BODY_BYTES
            elif name == b"transfer-encoding":
                is_chunked = True
        return size, is_json and is_bounded and not is_chunked

    def _may_be_answered_at_once(self) -> bool:
        if self.url.partition(b"?")[0] != _REVIEW_PATH or self.parser.get_method() != b"POST":
            return False
        if self.parser.get_http_version() != "1.1" or self.parser.should_upgrade() or self.expect_100_continue:
            return False
        # Answers go out in the order of their requests, and wait for a client that doesn't read.
        return self._is_answered() and not self.flow.write_paused


def _common_names(transport: asyncio.BaseTransport) -> set[str]:
    """The common names of the certificate that a client showed; none without one."""
    shown = transport.get_extra_info("peercert") or {}
    return {value for part in shown.get("subject", ()) for key, value in part if key == "commonName"}
