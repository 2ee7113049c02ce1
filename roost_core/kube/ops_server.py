"""Serve /metrics, /livez and /readyz over plain HTTP, in a thread of their own."""

from __future__ import annotations

import threading
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

TEXT: Final = "text/plain; charset=utf-8"
METRICS_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
# A client that opens a connection and says nothing.
IDLE_SECONDS: Final = 30.0


class OpsError(Exception):
    """The port can't be had; the message says which and what to do."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    timeout = IDLE_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing: probes come every few seconds."""


class OpsServer:
    """The three pages. `start` and `stop` belong to one thread."""

    def __init__(
        self,
        address: str,
        port: int,
        *,
        metrics_text: Callable[[], bytes],
        is_alive: Callable[[], bool],
        readiness: Callable[[], tuple[bool, str]],
    ) -> None:
        """Bind. Raises OpsError."""
        self._metrics_text = metrics_text
        self._is_alive = is_alive
        self._readiness = readiness
        try:
            self._server = make_server(address, port, self._answer, _Server, _Handler)
        except OSError as error:
            where = f"{address or '*'}:{port}"
            raise OpsError(f"port {where} can't be had: {error.strerror}. Give another --port.") from None
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="ops", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        status, kind, body = self._page(environment.get("PATH_INFO", ""))
        start(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    def _page(self, path: str) -> tuple[str, str, bytes]:
        if path == "/metrics":
            return "200 OK", METRICS_TEXT, self._metrics_text()
        if path == "/livez":
            alive = self._is_alive()
            return ("200 OK" if alive else "500 Internal Server Error"), TEXT, b"ok\n" if alive else b"stuck\n"
        if path == "/readyz":
            ready, detail = self._readiness()
            return ("200 OK" if ready else "503 Service Unavailable"), TEXT, detail.encode()
        return "404 Not Found", TEXT, b"there are /metrics, /livez and /readyz\n"
