"""Stand before an API server on loopback as one in trouble: it refuses requests, and cuts watches.

It ends TLS, to read what is asked; clients come by plain HTTP with their own tokens.
"""

import contextlib
import http.client
import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.e2e.relays import kubeconfig_by
from tests.harness.controlplane import ControlPlane
from tests.harness.open_sockets import OpenSockets
from tests.harness.ports import LOOPBACK

# Of a method and a path: the status with which it is refused; 0: it is passed on.
Rule = Callable[[str, str], int]
_KEPT = ("Accept", "Authorization", "Content-Type", "User-Agent")


class TroubledServer:
    """`with TroubledServer(cluster) as server:`, then `server.rule = ...` and `server.cut()`."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.rule: Rule = lambda _method, _path: 0
        # How often each status was given.
        self.refused: Counter[int] = Counter()
        self._direct = cluster.server
        self._context = ssl.create_default_context(cafile=str(cluster.ca_path))
        self._lock = threading.Lock()
        self._watches = OpenSockets()
        self._server = ThreadingHTTPServer((LOOPBACK, 0), self._handler())
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.cut()

    def kubeconfig(self, direct: Path) -> Path:
        """The same kubeconfig, through us."""
        own = f"http://{LOOPBACK}:{self._server.server_address[1]}"
        return kubeconfig_by(direct, self._direct, own)

    def cut(self) -> None:
        """Break all watches, in the midst of a line or not."""
        self._watches.cut()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        troubled = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else None
                status = troubled.rule(self.command, self.path)
                with contextlib.suppress(OSError, http.client.HTTPException):
                    if status:
                        self._refuse(status)
                    else:
                        self._pass_on(body)

            def _refuse(self, status: int) -> None:
                with troubled._lock:
                    troubled.refused[status] += 1
                text = json.dumps(
                    {"kind": "Status", "code": status, "reason": "Trouble", "message": "try later"}
                ).encode()
                self.send_response(status)
                if status == http.HTTPStatus.TOO_MANY_REQUESTS:
                    self.send_header("Retry-After", "1")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def _pass_on(self, body: bytes | None) -> None:
                address = urlsplit(troubled._direct)
                direct = http.client.HTTPSConnection(
                    str(address.hostname), address.port, context=troubled._context
                )
                headers = {name: self.headers[name] for name in _KEPT if name in self.headers}
                with contextlib.closing(direct):
                    direct.request(self.command, self.path, body, headers)
                    answer = direct.getresponse()
                    self.send_response(answer.status)
                    for name in ("Content-Type", "Retry-After"):
                        if value := answer.headers.get(name):
                            self.send_header(name, value)
                    if "watch=true" not in self.path:
                        text = answer.read()
                        self.send_header("Content-Length", str(len(text)))
                        self.end_headers()
                        self.wfile.write(text)
                        return
                    # Clients read other streams by 64 KiB.
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.close_connection = True
                    troubled._watches.add(self.connection)
                    while data := answer.read1(65536):
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                    self.wfile.write(b"0\r\n\r\n")
                    troubled._watches.discard(self.connection)

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the library's

        return Handler
