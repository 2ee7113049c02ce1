"""Serve a WSGI application over HTTP/1.1 from an event loop, and limit what a connection may cost.

The application runs on the loop itself, so it must answer from memory. Guarantees, whatever is
sent: no 5xx and no traceback, one deadline for a complete request, a limit of connections
(including handshakes) and of memory for all requests together (docs/decisions/0013-bounds.md).
There are no timers per request: one sweep a second checks all connections.

Where the server knows how long clients wait, requests queue, one is answered in each turn of the
loop, and one whose client has hung up or will soon is dropped unread: so overload sheds evenly.
New connections queue, too, and one handshake begins in each turn: it costs as much as a review, and
hundreds at once would leave no time for a single answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import math
import select
import socket
import ssl
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication

import httptools

log = logging.getLogger(__name__)

# From the first byte of a request to the last of its answer. The API server's own limit for a
# webhook is 30 s, after which it no longer reads.
REQUEST_SECONDS: Final = 30.0
HANDSHAKE_SECONDS: Final = 10.0
SWEEP_SECONDS: Final = 1.0
# For requests in flight when serving ends.
CLOSE_SECONDS: Final = 2.0
# Go's own limit for headers is 1 MiB; the API server sends a few hundred bytes, and a token of some
# thousand at most.
HEADER_BYTES: Final = 16 * 1024
MAX_HEADERS: Final = 100
# A header of two bytes takes about 130 in Python's memory.
HEADER_COST: Final = 32
# Of a larger body, this much is read and dropped, so that the sender gets the response, not a
# reset. kube-apiserver accepts requests of at most 3 MiB.
DISCARD_BYTES: Final = 8 * 1024 * 1024
# Requests that are answered in one turn of the loop. kube-apiserver waits for each answer.
MAX_PIPELINED: Final = 16
BACKLOG: Final = 2048
# A longer request isn't answered at once.
AT_ONCE_BYTES: Final = 1024
# Of the time that a client waits, the part after which its request is late: the answer has to be
# made and to travel yet.
LATE_SHARE: Final = 0.9
# A request that begins so soon after its connection was opened has been waited for since it was
# accepted, unless its client had given up by then: a later request takes over the connection.
_OPENED_FOR_SECONDS: Final = 0.25
# Connections that are accepted in one turn of the loop.
MAX_ACCEPTED: Final = 64
# Before a retry if accepting failed: mostly, the process has no file descriptor left.
_RETRY_SECONDS: Final = 0.1
TEXT: Final = "text/plain; charset=utf-8"


class BindError(Exception):
    """An address can't be bound; the message names it."""


class _ExcessError(Exception):
    """A request is too large. Raised inside the parser, to stop it."""


class Drop(StrEnum):
    """Why a request was dropped unread."""

    # Its client would hardly be there for the answer.
    LATE = "late"
    # Its client has hung up, or it was cut.
    GONE = "gone"


def bind(host: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """Bind a TCP socket; an empty host means every address, IPv6 and IPv4. Raises BindError.

    shares_port: others may listen on it too, as a new replica on the host's network does while the
    old one drains.
    """
    is_dual = host == "" and socket.has_dualstack_ipv6()
    bound = socket.socket(socket.AF_INET6 if is_dual or ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if bound.family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not is_dual)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise BindError(f"{host or '*'}:{port} can't be listened on: {error}") from None
    return bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What connections and requests may cost."""

    # Connections that are open at once, including those in a handshake or before it.
    connections: int
    # Of a longer body, only this much and one byte more is kept for the application.
    body_bytes: int = 0
    # In unfinished requests of all connections together.
    held_bytes: int = 32 * 1024 * 1024
    # How long a connection may be idle. The API server closes its own after 90 s and doesn't retry
    # a POST, so we must wait longer.
    idle_seconds: float = 120.0
    # How long a request, and reading its answer, may take.
    request_seconds: float = REQUEST_SECONDS


class Server:
    """One listener, its connections and the bytes that their unfinished requests hold."""

    def __init__(
        self,
        app: WSGIApplication,
        *,
        is_draining: Callable[[], bool] = lambda: False,
        tls: ssl.SSLContext | None = None,
        client_name: str = "",
        limits: Limits,
        client_waits: Callable[[bytes], float] | None = None,
        on_drop: Callable[[Drop], None] = lambda _: None,
        answer_at_once: Callable[[bytes], bytes] = lambda _: b"",
    ) -> None:
        """is_draining: whether responses ask clients to close their connections.

        tls: None for plain HTTP. client_name: the common name that a client's certificate must
        have; "": any.

        client_waits: for how many seconds a client waits, by its request's target; None: every
        request is answered as soon as it is complete. on_drop: called for each request that is
        dropped unread.

        answer_at_once: without TLS, the whole response to what a connection has sent by the time it
        is accepted; b"": nothing that is answered at once. Such a connection takes no slot.
        """
        self.app = app
        self.is_draining = is_draining
        self.client_name = client_name
        self.limits = limits
        self.held_bytes = 0
        self.connections: set[Connection] = set()
        self.is_listening = False
        self._tls = tls
        self.client_waits = client_waits
        self.on_drop = on_drop
        self._answer_at_once = answer_at_once
        # Complete requests, the oldest first.
        self._queue: deque[Connection] = deque()
        self._is_answering = False
        # Accepted, their handshakes not begun yet, the oldest first.
        self.arrived: dict[Connection, socket.socket] = {}
        self._is_beginning = False

    def enqueue(self, connection: Connection) -> None:
        """Answer a connection's complete request in its turn."""
        self._queue.append(connection)
        if not self._is_answering:
            self._is_answering = True
            asyncio.get_running_loop().call_soon(self._answer_next)

    def _answer_next(self) -> None:
        """Answer one request. Between two, the loop sees who hangs up and reads what comes."""
        now = asyncio.get_running_loop().time()
        while self._queue:
            if self._queue.popleft().answer_unless_late(now):
                break
        if self._queue:
            asyncio.get_running_loop().call_soon(self._answer_next)
        else:
            self._is_answering = False

    async def serve(
        self, bound: socket.socket, end: asyncio.Event, on_sweep: Callable[[], None] = lambda: None
    ) -> None:
        """Listen on a bound socket until `end`, then let requests under way finish; closes the
        socket.

        on_sweep: called once a second, as a sign that the loop is alive.
        """
        loop = asyncio.get_running_loop()
        bound.setblocking(False)
        bound.listen(BACKLOG)
        self.is_listening = True
        loop.add_reader(bound, self._accept, bound)
        try:
            while not end.is_set():
                self.sweep(loop.time())
                on_sweep()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(end.wait(), SWEEP_SECONDS)
        finally:
            self.is_listening = False
            loop.remove_reader(bound)
            bound.close()
        for connection in list(self.connections):
            connection.finish()
        deadline = loop.time() + CLOSE_SECONDS
        while self.connections and loop.time() < deadline:
            await asyncio.sleep(0.05)
        for connection in list(self.connections):
            connection.cut()

    def sweep(self, now: float) -> None:
        """Close every connection that has timed out."""
        for connection in list(self.connections):
            connection.check(now)

    def hold(self, count: int) -> None:
        """Count bytes that a connection took in. Beyond the bound the requests that take longest
        are cut.

        A request that is meant to be answered comes in milliseconds, so those are senders that
        dawdle.
        """
        self.held_bytes += count
        while self.held_bytes > self.limits.held_bytes:
            holders = [connection for connection in self.connections if connection.held_bytes]
            if not holders:
                break
            min(holders, key=lambda holder: holder.since).cut()

    def _accept(self, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(MAX_ACCEPTED):
            try:
                accepted, address = bound.accept()
            except BlockingIOError:
                return
            except OSError:
                loop.remove_reader(bound)
                loop.call_later(_RETRY_SECONDS, self._accept_again, bound)
                return
            accepted.setblocking(False)
            if self._tls is not None or not self._answer_first(accepted):
                self._admit(accepted, str(address[0]))

    def _answer_first(self, accepted: socket.socket) -> bool:
        """Answer what is there already and close, without a slot; False: it is to be admitted."""
        try:
            answer = self._answer_at_once(accepted.recv(AT_ONCE_BYTES, socket.MSG_PEEK))
            if not answer:
                return False
            # A socket that is closed with unread bytes sends a reset, which overtakes the answer.
            accepted.recv(AT_ONCE_BYTES)
            accepted.send(answer)
        except BlockingIOError:
            return False
        except OSError:
            log.debug("a client hung up before its answer")
        accepted.close()
        return True

    def _accept_again(self, bound: socket.socket) -> None:
        if bound.fileno() >= 0:
            asyncio.get_running_loop().add_reader(bound, self._accept, bound)

    def _admit(self, accepted: socket.socket, peer: str) -> None:
        if len(self.connections) >= self.limits.connections:
            self._make_room()
        loop = asyncio.get_running_loop()
        connection = Connection(self, peer, loop.time())
        self.connections.add(connection)
        if self.client_waits is None:
            self._begin(connection, accepted)
            return
        self.arrived[connection] = accepted
        if not self._is_beginning:
            self._is_beginning = True
            loop.call_soon(self._begin_next)

    def _begin_next(self) -> None:
        """Begin one handshake, of a client who is still there."""
        while self.arrived:
            connection = next(iter(self.arrived))
            accepted = self.arrived.pop(connection)
            if not _has_hung_up(accepted):
                self._begin(connection, accepted)
                break
            # A load balancer that looks whether somebody listens sends nothing.
            if _has_sent(accepted):
                self.on_drop(Drop.GONE)
            accepted.close()
            self.connections.discard(connection)
        if self.arrived:
            asyncio.get_running_loop().call_soon(self._begin_next)
        else:
            self._is_beginning = False

    def _begin(self, connection: Connection, accepted: socket.socket) -> None:
        handshake = asyncio.get_running_loop().create_task(self._shake_hands(accepted, connection))
        # Cut before its first step, the task never has the socket.
        handshake.add_done_callback(lambda task: accepted.close() if task.cancelled() else None)
        connection.handshake = handshake

    def _make_room(self) -> None:
        """Cut the connection that waits longest, for a request or in one, of the addresses that
        have most.

        So an address that opens connections without end shuts out itself, and of many addresses
        with one connection each those that dawdle give way to a probe.
        """
        log.warning(
            "all %d connections are taken; the address that holds most gives way",
            len(self.connections),
        )
        counts = Counter(connection.peer for connection in self.connections)
        most = max(counts.values())
        heaviest = (
            connection for connection in self.connections if counts[connection.peer] == most
        )
        min(heaviest, key=lambda connection: connection.since).cut()

    async def _shake_hands(self, accepted: socket.socket, connection: Connection) -> None:
        try:
            loop = asyncio.get_running_loop()
            seconds = None if self._tls is None else HANDSHAKE_SECONDS
            await loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            # Without a handshake, `connection_lost` may never be called.
            self.connections.discard(connection)
        connection.handshake = None


class Connection(asyncio.Protocol):
    """One connection: gathers a request, calls the application, writes the answer.

    Also the parser's callbacks.
    """

    def __init__(self, server: Server, peer: str, now: float) -> None:
        """Before the handshake. peer: the client's address."""
        self.peer = peer
        # When the request under way began; between requests, when the last one ended. The loop's
        # clock.
        self.since = now
        # Charged to the server for the request under way.
        self.held_bytes = 0
        self.handshake: asyncio.Task[None] | None = None
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._is_receiving = False
        self._accepted_at = self._opened_at = now
        # Since when the client has waited for the request under way.
        self._awaited_since = now
        # The request is complete and waits for its turn.
        self._is_queued = False
        self._closes_after = False
        self._left_this_turn = 0
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._header_bytes = 0
        self._unfinished_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0

    # The transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or end at once if the client's certificate has another name."""
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self._opened_at = self._loop.time()
        self._parser = httptools.HttpRequestParser(self)
        name = self._server.client_name
        if name and name not in _common_names(transport):
            self.cut()

    def connection_lost(self, _error: Exception | None) -> None:
        """Give back what was held, and break the circles: the collector would leave large buffers
        for long.
        """
        self._server.connections.discard(self)
        if self._is_queued:
            self._drop(Drop.GONE)
        self._release()
        self._body = []
        del self._transport, self._parser

    def pause_writing(self) -> None:
        """Stop reading from a client that doesn't read its responses."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Resume reading."""
        if self._transport is not None:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Feed the parser, which calls back; endless headers are cut off by size."""
        transport = cast("asyncio.Transport", self._transport)
        if transport.is_closing():
            return
        self._left_this_turn = MAX_PIPELINED
        body_bytes_before = self._body_bytes
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._answer_queued()
            # Unless the request was answered already; what follows it is dropped.
            if not transport.is_closing():
                self._write(
                    "400 Bad Request", [("Content-Type", TEXT)], b"400 Bad Request\n", closes=True
                )
        has_grown = self._body_bytes != body_bytes_before
        if self._is_receiving and not self._is_queued and not has_grown:
            # If no body came, these bytes were headers or trailers that haven't ended: the parser
            # calls for those that have.
            self._unfinished_bytes += len(data)
            if self._unfinished_bytes > HEADER_BYTES:
                transport.close()
            else:
                self._hold(len(data) * HEADER_COST)

    # The parser's calls

    def on_message_begin(self) -> None:
        """Begin a request, and its clock."""
        transport = cast("asyncio.Transport", self._transport)
        # Whoever sends on without waiting gets the answers in order.
        self._answer_queued()
        # Who doesn't read one answer gets no other: they would lie in memory.
        if (
            not self._left_this_turn
            or transport.is_closing()
            or transport.get_write_buffer_size() > HEADER_BYTES
        ):
            raise _ExcessError
        self._left_this_turn -= 1
        self._is_receiving = True
        self.since = self._awaited_since = self._loop.time()
        if self.since - self._opened_at < _OPENED_FOR_SECONDS:
            self._awaited_since = self._accepted_at
        # Later requests haven't waited for the handshake, however soon they come.
        self._opened_at = -math.inf
        self._url = b""
        self._headers = []
        self._header_bytes = 0
        self._unfinished_bytes = 0
        self._body = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Collect the request's target, which may arrive in parts."""
        self._url += url
        if len(self._url) > HEADER_BYTES:
            raise _ExcessError

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect headers."""
        self._headers.append((name, value))
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > HEADER_BYTES or len(self._headers) > MAX_HEADERS:
            raise _ExcessError

    def on_headers_complete(self) -> None:
        """The headers are complete: answer `Expect: 100-continue`."""
        if any(
            name.lower() == b"expect" and value.lower() == b"100-continue"
            for name, value in self._headers
        ):
            cast("asyncio.Transport", self._transport).write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Collect the body, up to its limit."""
        if self._body_bytes <= self._server.limits.body_bytes:
            self._body.append(body)
            self._hold(len(body))
        self._body_bytes += len(body)
        if self._body_bytes > DISCARD_BYTES:
            self._answer(closes=True)
            raise _ExcessError

    def on_message_complete(self) -> None:
        """Answer, at once or in turn."""
        parser = self._parser
        # HTTP/1.0 keeps connections by a header of its own; no other protocol is spoken after an
        # Upgrade.
        is_kept = (
            parser.should_keep_alive()
            and parser.get_http_version() == "1.1"
            and not parser.should_upgrade()
        )
        if self._server.client_waits is None:
            self._answer(closes=not is_kept or self._server.is_draining())
            return
        self._is_queued = True
        self._closes_after = not is_kept
        self._server.enqueue(self)

    # What they come to

    def answer_unless_late(self, now: float) -> bool:
        """Answer the request that was queued; False if it was dropped, or answered before."""
        if not self._is_queued:
            return False
        if self._transport is None or self._transport.is_closing():
            self._drop(Drop.GONE)
            return False
        waits = self._server.client_waits
        seconds = self._server.limits.request_seconds if waits is None else waits(self._url)
        is_taken_over = self.since - self._awaited_since >= seconds
        begun = self.since if is_taken_over else self._awaited_since
        if now - begun < LATE_SHARE * seconds:
            self._answer_queued()
            return True
        self._drop(Drop.LATE)
        # Whoever is still there needn't wait for nothing.
        self._write(
            "429 Too Many Requests",
            [("Content-Type", TEXT)],
            b"429 Too Many Requests: the answer would come too late\n",
            closes=self._closes_after,
        )
        return False

    def _answer_queued(self) -> None:
        if self._is_queued:
            self._is_queued = False
            self._answer(closes=self._closes_after or self._server.is_draining())

    def _drop(self, why: Drop) -> None:
        self._is_queued = False
        self._server.on_drop(why)

    def check(self, now: float) -> None:
        """Cut the connection when it is past its time, whatever it waits for; handshakes have a
        limit of their own.
        """
        transport = self._transport
        if transport is None:
            return
        # A whole request, or an answer that nobody reads.
        is_busy = (
            self._is_receiving or transport.is_closing() or transport.get_write_buffer_size() > 0
        )
        if now - self.since > (
            self._server.limits.request_seconds if is_busy else self._server.limits.idle_seconds
        ):
            self.cut()

    def finish(self) -> None:
        """Close the connection as soon as no request is in flight."""
        if self._transport is None:
            self.cut()
        elif not self._is_receiving:
            self._transport.close()

    def cut(self) -> None:
        """Close the connection, or its handshake, now."""
        self._release()
        self._server.connections.discard(self)
        accepted = self._server.arrived.pop(self, None)
        if accepted is not None:
            accepted.close()
        elif self._transport is not None:
            self._transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def _hold(self, count: int) -> None:
        self.held_bytes += count
        self._server.hold(count)

    def _release(self) -> None:
        self._server.held_bytes -= self.held_bytes
        self.held_bytes = 0

    def _answer(self, *, closes: bool) -> None:
        if cast("asyncio.Transport", self._transport).is_closing():
            return  # cut for what it holds: nobody would read the answer
        environ = self._environ()
        try:
            status, headers, body = call_wsgi(self._server.app, environ)
        except Exception:  # the edge: see the module's guarantees
            log.exception("request failed")
            # 4xx, not 5xx: the API server treats both alike, and a 5xx would raise alerts about a
            # request that can't be fixed.
            status = "400 Bad Request"
            headers = [("Content-Type", TEXT)]
            body = b"400 the request could not be handled, see the program's log\n"
        self._write(status, headers, body, closes=closes)

    def _write(
        self, status: str, headers: Iterable[tuple[str, str]], body: bytes, *, closes: bool
    ) -> None:
        self._is_receiving = False
        self._release()
        self._body = []
        self.since = self._loop.time()
        lines = [f"HTTP/1.1 {status}\r\n"]
        lines += [
            f"{name}: {value}\r\n" for name, value in headers if name.lower() != "content-length"
        ]
        lines.append(
            f"Content-Length: {len(body)}\r\n" + ("Connection: close\r\n\r\n" if closes else "\r\n")
        )
        transport = cast("asyncio.Transport", self._transport)
        transport.write("".join(lines).encode("latin-1") + body)
        if closes:
            transport.close()

    def _environ(self) -> dict[str, Any]:
        """The request's WSGI environ (PEP 3333); Content-Length is that of the collected body."""
        url = httptools.parse_url(self._url)
        body = b"".join(self._body)[: self._server.limits.body_bytes + 1]
        environ: dict[str, Any] = {
            **_SAME_FOR_ALL,
            "REQUEST_METHOD": self._parser.get_method().decode("ascii"),
            "PATH_INFO": unquote_to_bytes(url.path or b"/").decode("latin-1"),
            "QUERY_STRING": (url.query or b"").decode("latin-1"),
            "SERVER_PROTOCOL": f"HTTP/{self._parser.get_http_version()}",
            "REMOTE_ADDR": self.peer,
            "wsgi.input": io.BytesIO(body),
        }
        for name, value in self._headers:
            key = name.decode("latin-1").upper().replace("-", "_")
            environ["CONTENT_TYPE" if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value.decode(
                "latin-1"
            )
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_CONTENT_LENGTH", None)
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        return environ


_SAME_FOR_ALL: Final[dict[str, Any]] = {
    "SCRIPT_NAME": "",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "0",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": False,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
}


def call_wsgi(
    app: WSGIApplication, environ: dict[str, Any]
) -> tuple[str, list[tuple[str, str]], bytes]:
    """Call a WSGI application; return the status line, the headers and the whole body."""
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], _error: object = None
    ) -> Callable[[bytes], None]:
        started.append((status, headers))
        return lambda _chunk: None

    parts = app(environ, start_response)
    try:
        body = b"".join(parts)
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()
    status, headers = started[-1]
    return status, headers, b"" if environ["REQUEST_METHOD"] == "HEAD" else body


def _has_hung_up(accepted: socket.socket) -> bool:
    """Whether a client closed its connection, though what it sent before isn't read yet."""
    # No system but Linux tells.
    hang_up = getattr(select, "POLLRDHUP", 0)
    poll = select.poll()
    poll.register(accepted, hang_up)
    return bool(poll.poll(0))


def _has_sent(accepted: socket.socket) -> bool:
    """Whether anything is there to read."""
    try:
        return bool(accepted.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def _common_names(transport: asyncio.BaseTransport) -> set[str]:
    """Return the common names of the client's certificate; none without one."""
    shown = transport.get_extra_info("peercert") or {}
    return {
        value for part in shown.get("subject", ()) for key, value in part if key == "commonName"
    }
