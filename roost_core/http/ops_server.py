"""Serve /metrics, /livez and /readyz over plain HTTP, from an event loop in a separate thread.

There is one thread, however many clients scrape: each thread that wants to run makes the program's
own work wait for the interpreter.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

import uvloop

from roost_core.http.server import CLOSE_SECONDS, TEXT, Limits, Server

# Far more than are accepted in one turn of the loop, so each is read before it may be cut. A small
# number would let a flood of unfinished requests cut a probe before its request is there.
MAX_CONNECTIONS: Final = 512
# Idle connections are closed soon: there are few slots, and a kubelet's probe must always get one.
IDLE_SECONDS: Final = 10.0
# A probe or a scrape is one packet, and its answer is read at once.
REQUEST_SECONDS: Final = 2.0
# As kubelets ask: a connection each, without a body.
_PROBE: Final = re.compile(
    rb"GET (/livez|/readyz) HTTP/1\.1\r\n(?=(?:[^\0]*\r\n)?connection: *close\r\n)"
    rb"(?:[^\r\n]+\r\n)*\r\n",
    re.IGNORECASE,
)
_OK: Final = "200 OK"
_UNAVAILABLE: Final = "503 Service Unavailable"
# Prometheus' text format and its version.
METRICS_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


class _Page(NamedTuple):
    status: str
    content_type: str
    body: bytes


class OpsServer:
    """The three pages of one program. `start` and `stop` belong to one thread."""

    def __init__(
        self,
        bound: socket.socket,
        *,
        metrics_text: Callable[[], bytes],
        readiness: Callable[[], tuple[bool, str]],
        is_alive: Callable[[], bool] = lambda: True,
    ) -> None:
        """readiness: returns whether the program is ready, and a text that says why or why not."""
        self._metrics_text = metrics_text
        self._is_alive = is_alive
        self._readiness = readiness
        self._bound = bound
        self._loop = uvloop.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="ops", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        port: int = self._bound.getsockname()[1]
        return port

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(CLOSE_SECONDS + 1)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            server = Server(
                self.answer,
                limits=Limits(
                    connections=MAX_CONNECTIONS,
                    idle_seconds=IDLE_SECONDS,
                    request_seconds=REQUEST_SECONDS,
                ),
                answer_at_once=self.answer_probe,
            )
            runner.run(server.serve(self._bound, self._end))

    def answer_probe(self, sent: bytes) -> bytes:
        """The response to a probe that is complete, after which its connection is closed; b"" for
        anything else.
        """
        probe = _PROBE.fullmatch(sent)
        if probe is None:
            return b""
        page = self._page(probe[1].decode())
        head = f"HTTP/1.1 {page.status}\r\nContent-Type: {page.content_type}\r\n"
        head += f"Content-Length: {len(page.body)}\r\nConnection: close\r\n\r\n"
        return head.encode() + page.body

    def answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The WSGI application."""
        page = self._page(environ["PATH_INFO"])
        start_response(page.status, [("Content-Type", page.content_type)])
        return [page.body]

    def _page(self, path: str) -> _Page:
        if path == "/metrics":
            return _Page(_OK, METRICS_TEXT, self._metrics_text())
        if path == "/livez":
            if self._is_alive():
                return _Page(_OK, TEXT, b"ok\n")
            return _Page(_UNAVAILABLE, TEXT, b"stuck\n")
        if path == "/readyz":
            is_ready, detail = self._readiness()
            return _Page(_OK if is_ready else _UNAVAILABLE, TEXT, detail.encode())
        return _Page("404 Not Found", TEXT, b"there are /metrics, /livez and /readyz\n")
