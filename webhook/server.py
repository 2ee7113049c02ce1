"""Serve the two applications from one event loop: HTTPS for reviews, HTTP for probes; drain on SIGTERM.

Reviews run on the loop itself, not in threads: they touch memory only, and a hand-over to a thread costs more than a
review (docs/decisions/0002-webhook-server.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from webhook.app import JSON, REVIEW_PATH, Review, answer_review, content_type_of
from webhook.bounds import MAX_BODY_BYTES

if TYPE_CHECKING:
    from flask import Flask
    from uvicorn.server import ServerState

    from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# The API server drops idle connections after 90 s and does not repeat a POST: we must be the one who waits longer.
KEEP_ALIVE_SECONDS: Final = 120
HANDSHAKE_SECONDS: Final = 10.0
# The API server's own limit for a webhook is 30 s; who sends slower than that has no reader left.
BODY_SECONDS: Final = 30.0
# Read, and dropped but for its beginning, so that the sender sees the answer and not a reset. kube-apiserver takes
# requests of 3 MiB at most.
DISCARD_BYTES: Final = 8 * 1024 * 1024
# Seconds for requests under way when the drain is over.
CLOSE_SECONDS: Final = 2
BACKLOG: Final = 2048
# Go's own limit for headers is 1 MiB; the API server sends a few hundred bytes.
HEADER_BYTES: Final = 64 * 1024
_JSON: Final = JSON.encode()
_REVIEW_PATH: Final = REVIEW_PATH.encode()


class Gateway:
    """An ASGI application that runs a Flask application inline, on the event loop."""

    def __init__(self, app: Flask, is_draining: Callable[[], bool]) -> None:
        self._app = app
        self._is_draining = is_draining

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request; see the ASGI specification, HTTP connection scope."""
        if scope["type"] != "http":
            return
        try:
            body = await _read_body(receive)
        except TimeoutError:
            await self._answer(send, 408, [(b"content-type", b"text/plain"), (b"connection", b"close")], b"408 slow\n")
            return
        if body is None:
            return  # the client is gone
        status, headers, answer = call_wsgi(self._app, scope, body.data)
        if not body.is_read:
            # What is still to come must not be taken for the next request.
            headers.append((b"connection", b"close"))
        await self._answer(send, status, headers, answer)

    async def _answer(self, send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        headers = [pair for pair in headers if pair[0] != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        if self._is_draining() and (b"connection", b"close") not in headers:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def call_wsgi(app: Flask, scope: Message, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Call a WSGI application (PEP 3333) with a whole request; return status, headers and the whole answer."""
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], _exc_info: object = None
    ) -> Callable[[bytes], None]:
        started.append((status, headers))
        return lambda _chunk: None

    parts: Iterable[bytes] = app.wsgi_app(_environ(scope, body), start_response)
    try:
        answer = b"".join(parts)
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()
    status, headers = started[-1]
    return (
        int(status[:3]),
        [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        answer,
    )


def _environ(scope: Message, body: bytes) -> dict[str, Any]:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "0",
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme") or "https",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").upper().replace("-", "_")
        key = name if name == "CONTENT_TYPE" else f"HTTP_{name}"
        environ[key] = raw_value.decode("latin-1")
    # The body is whole by now, whatever way it was sent.
    environ["CONTENT_LENGTH"] = str(len(body))
    environ.pop("HTTP_CONTENT_LENGTH", None)
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    return environ


class _Body(NamedTuple):
    """A request's body: whole, or its first MAX_BODY_BYTES + 1."""

    data: bytes
    # Nothing of it is left to come.
    is_read: bool = True


async def _read_body(receive: Receive) -> _Body | None:
    """Return the body as far as it is wanted, None when the client left. Raises TimeoutError when the sender stalls."""
    async with asyncio.timeout(BODY_SECONDS):
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        first: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            return _Body(first[: MAX_BODY_BYTES + 1])
        kept, seen = bytearray(first), len(first)
        while message.get("more_body", False) and seen <= DISCARD_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk: bytes = message.get("body", b"")
            seen += len(chunk)
            if len(kept) <= MAX_BODY_BYTES:
                kept += chunk
    return _Body(bytes(kept[: MAX_BODY_BYTES + 1]), is_read=not message.get("more_body", False))


class Connection(HttpToolsProtocol):
    """One connection: uvicorn's, but that a plain review takes a short way, and that silence ends it.

    The short way answers a whole review as soon as its last byte is here, in one write, without a task, ASGI or Flask:
    together they cost several times what the review itself does. It takes exactly what kube-apiserver sends; whatever
    differs in any way goes through Flask, with the same answer (a test holds both together).
    """

    def __init__(self, listener: Listener, config: uvicorn.Config, server_state: ServerState) -> None:
        super().__init__(config=config, server_state=server_state, app_state={})
        self._review = listener.review
        self._is_draining = listener.is_draining
        # The body so far, while a review is on the short way.
        self._body: list[bytes] | None = None
        self._is_in_headers = True
        self._header_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the keep-alive clock at once: uvicorn begins it after the first answer only."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; requests that never end are cut off by time, endless headers by size."""
        super().data_received(data)
        if self._is_in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES:
                self.transport.close()
        if (
            self.timeout_keep_alive_task is None
            and (self.cycle is None or self.cycle.response_complete)
            and not self.transport.is_closing()
        ):
            self._arm()

    def on_message_begin(self) -> None:
        """Note that headers come."""
        super().on_message_begin()
        self._is_in_headers, self._header_bytes = True, 0

    def on_headers_complete(self) -> None:
        """Choose the way."""
        self._is_in_headers = False
        if self._review is not None and self._is_plain_review():
            self._body = []
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Gather the body."""
        if self._body is None:
            super().on_body(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer a review on the short way."""
        if self._body is None or self._review is None:
            super().on_message_complete()
            return
        status, answer = answer_review(self._review, b"".join(self._body))
        self._body = None
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

    def _is_plain_review(self) -> bool:
        if self.url.partition(b"?")[0] != _REVIEW_PATH or self.parser.get_method() != b"POST":
            return False
        if self.parser.get_http_version() != "1.1" or self.parser.should_upgrade() or self.expect_100_continue:
            return False
        # Answers go out in the order of their requests, and wait for a client that doesn't read.
        if (self.cycle is not None and not self.cycle.response_complete) or self.flow.write_paused:
            return False
        is_json = is_bounded = False
        for name, value in self.headers:
            if name == b"content-type":
                is_json = value == _JSON
            elif name == b"content-length":
                is_bounded = value.isdigit() and int(value) <= MAX_BODY_BYTES
            elif name == b"transfer-encoding":
                return False
        return is_json and is_bounded

    def _arm(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A bound socket and what answers behind it. `certificate` None: plain HTTP; `review` None: no short way."""

    bound: socket.socket
    app: Flask
    is_draining: Callable[[], bool]
    review: Review | None = None
    certificate: ServingCertificate | None = None


class BindError(Exception):
    """An address can't be listened on; the message names it."""


def bind(host: str, port: int) -> socket.socket:
    """Bind a TCP socket; an empty host means every address, IPv6 and IPv4. Raises BindError."""
    try:
        if host == "" and socket.has_dualstack_ipv6():
            return _bind(("", port), socket.AF_INET6, dualstack=True)
        return _bind((host, port), socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise BindError(f"{host or '*'}:{port} can't be listened on: {error}") from None


def _bind(address: tuple[str, int], family: socket.AddressFamily, *, dualstack: bool = False) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # On the host's network a new replica then begins to listen while the old one drains.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if dualstack else 1)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


class Drain:
    """Whether the end has begun: set once, read from everywhere."""

    def __init__(self) -> None:
        self.is_draining = False

    def begin(self) -> None:
        """From now on answers ask their connection to close, and readiness is false."""
        self.is_draining = True


def make_config(listener: Listener) -> uvicorn.Config:
    """Return uvicorn's settings for one listener."""
    return uvicorn.Config(
        Gateway(listener.app, listener.is_draining),
        # `startup` makes the connections; this only keeps uvicorn from looking for another protocol.
        http=HttpToolsProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )


class _Server(uvicorn.Server):
    def __init__(self, listener: Listener) -> None:
        super().__init__(make_config(listener))
        self._listener = listener

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone: both servers drain together."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. Ours, because uvicorn hands no TLS options to the loop and makes its own SSLContext."""
        del sockets  # ours is bound already
        certificate = self._listener.certificate
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._listener, self.config, self.server_state),
            sock=self._listener.bound,
            ssl=None if certificate is None else certificate.context,
            ssl_handshake_timeout=None if certificate is None else HANDSHAKE_SECONDS,
            backlog=BACKLOG,
        )
        self.servers = [server]
        self.started = True


async def serve(reviews: Listener, ops: Listener, drain: Drain, drain_seconds: float) -> None:
    """Serve until SIGTERM or SIGINT, then `drain_seconds` more with `Connection: close`; a second signal ends at once.

    Reviews are listened for once there is a certificate; probes are answered from the start.
    """
    began, hurry = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if drain.is_draining:
            hurry.set()
            return
        log.info("draining seconds=%g", drain_seconds)
        drain.begin()
        began.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)

    servers = [_Server(ops)]
    tasks = [asyncio.create_task(servers[0].serve())]
    end = asyncio.create_task(began.wait())
    while reviews.certificate is not None and not reviews.certificate.is_loaded and not drain.is_draining:
        await asyncio.wait([end], timeout=0.05)
    if not drain.is_draining:
        servers.append(_Server(reviews))
        tasks.append(asyncio.create_task(servers[1].serve()))
        await asyncio.wait([end, *tasks], return_when=asyncio.FIRST_COMPLETED)
    if drain.is_draining:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), drain_seconds)
    end.cancel()
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*tasks)
