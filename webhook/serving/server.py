"""Serve the two applications, each from an event loop of its own: HTTPS for reviews, HTTP for probes; drain on SIGTERM.

Reviews run on their loop itself, not in threads: they touch memory only, and a hand-over to a thread costs more than a
review (docs/decisions/0002-webhook-server.md). Probes and metrics have one other thread, with a loop of the same kind:
neither can hold up the other, and one thread more is one more to wait for the interpreter, however many scrape.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from webhook.rules.bounds import MAX_BODY_BYTES
from webhook.serving.connections import KEEP_ALIVE_SECONDS, Connection, Listener, Traffic
from webhook.serving.doors import Door

if TYPE_CHECKING:
    from flask import Flask

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Read, and dropped but for its beginning, so that the sender sees the answer and not a reset. kube-apiserver takes
# requests of 3 MiB at most.
DISCARD_BYTES: Final = 8 * 1024 * 1024
# Seconds for requests under way when the drain is over.
CLOSE_SECONDS: Final = 2
# A loop that hasn't turned for so long is stuck: each review is bounded far below it.
STUCK_SECONDS: Final = 30.0
# Of uvicorn's ticks: one a second.
_SWEEP_TICKS: Final = 10


class Gateway:
    """An ASGI application that runs a Flask application inline, on the event loop."""

    def __init__(self, app: Flask, is_draining: Callable[[], bool]) -> None:
        self._app = app
        self._is_draining = is_draining

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request; see the ASGI specification, HTTP connection scope."""
        if scope["type"] != "http":
            return
        body = await _read_body(receive)
        if body is None:
            return  # the client is gone, or was cut for being slow
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
    """Return the body as far as it is wanted, None when the client left."""
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
        timeout_keep_alive=int(KEEP_ALIVE_SECONDS),
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )


class Pulse:
    """Whether a loop turns: it beats each second, another thread looks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()

    def beat(self) -> None:
        """The loop turned."""
        self._at = self._clock()

    def is_beating(self) -> bool:
        """Tell whether the loop turned lately."""
        return self._clock() - self._at < STUCK_SECONDS


class _Server(uvicorn.Server):
    def __init__(self, listener: Listener, on_second: Callable[[], None] = lambda: None) -> None:
        super().__init__(make_config(listener))
        self._traffic = Traffic()
        self._on_second = on_second
        self._door = Door(
            listener, lambda on_lost: Connection(listener, self.config, self.server_state, self._traffic, on_lost)
        )
        self._accepting: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone: both servers drain together."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. Ours, because uvicorn hands no TLS options to the loop, and accepts without end."""
        del sockets  # ours is bound already
        self._accepting = asyncio.create_task(self._door.run())
        self.servers = []
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections once a second; end when nothing is accepted any more."""
        if counter % _SWEEP_TICKS == 0:
            self._traffic.sweep(asyncio.get_running_loop().time())
            self._on_second()
        return await super().on_tick(counter) or (self._accepting is not None and self._accepting.done())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and let the connections end."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        await super().shutdown(sockets)


class _OwnThread:
    """A server in a thread of its own, with its own loop."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._thread = threading.Thread(target=self._run, name="ops", daemon=True)

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no more."""
        self._server.should_exit = True
        self._thread.join(CLOSE_SECONDS + 1)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._server.serve())


async def serve(reviews: Listener, ops: Listener, drain: Drain, drain_seconds: float, pulse: Pulse) -> None:
    """Serve until SIGTERM or SIGINT, then `drain_seconds` more with `Connection: close`; a second signal ends at once.

    Reviews are listened for once there is a certificate; probes are answered from the start, by another thread, which
    is told by `pulse` that this one goes on.
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

    probes = _OwnThread(_Server(ops))
    probes.start()
    end = asyncio.create_task(began.wait())
    while reviews.certificate is not None and not reviews.certificate.is_loaded and not drain.is_draining:
        await asyncio.wait([end], timeout=0.05)
        pulse.beat()
    server = _Server(reviews, pulse.beat)
    serving = None
    if not drain.is_draining:
        serving = asyncio.create_task(server.serve())
        await asyncio.wait([end, serving], return_when=asyncio.FIRST_COMPLETED)
    if drain.is_draining:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), drain_seconds)
    end.cancel()
    server.should_exit = True
    if serving is not None:
        await serving
    await asyncio.to_thread(probes.stop)
