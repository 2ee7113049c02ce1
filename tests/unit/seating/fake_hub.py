"""A JupyterHub of a few lines over HTTP: users, groups, starts with their streams, and faults."""

import json
import re
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


class FakeHub:
    """Servers answer at once, unless a fault says otherwise."""

    def __init__(self, *names: str, **groups: list[str]) -> None:
        self.users: dict[str, dict[str, Any]] = {name: {} for name in names}
        self.groups = groups
        # By user: the words with which their start fails.
        self.fails: dict[str, str] = {}
        # By user: the status and words with which asking for their server is refused.
        self.refuses: dict[str, tuple[int, str]] = {}
        # Users whom the token's role doesn't reach.
        self.outside: set[str] = set()
        # For every request: status and words.
        self.broken: tuple[int, str] | None = None
        # By method and path: status and words.
        self.broken_paths: dict[tuple[str, str], tuple[int, str]] = {}
        # By user: the options of the last request for their server, which the hub stores.
        self.options: dict[str, dict[str, Any]] = {}
        self.posts: list[str] = []
        self.deletes: list[str] = []
        # No stop is answered before so many are asked for.
        self.stops_together: threading.Barrier | None = None
        self.token = "secret"

    def __enter__(self) -> Self:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                hub._answer(self, "GET")

            def do_POST(self) -> None:
                hub._answer(self, "POST")

            def do_DELETE(self) -> None:
                hub._answer(self, "DELETE")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hub/api"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def use(self, name: str, at: float) -> None:
        """Somebody opens a server."""
        self.users[name][""]["last_activity"] = stamp(at)

    def model(self, name: str) -> dict[str, Any]:
        body = {"name": name, "last_activity": None}
        # As JupyterHub does: no empty mapping, but none.
        return body if name in self.outside else {**body, "servers": self.users[name]}

    def _answer(self, request: BaseHTTPRequestHandler, method: str) -> None:
        length = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(length) or "null")
        url = urlsplit(request.path)
        path = unquote(url.path.removeprefix("/hub/api"))
        status = 404
        answer: dict[str, Any] = {"message": "Not Found"}
        headers: dict[str, str] = {}
        name = path.split("/")[2] if path.count("/") > 1 else ""
        if self.broken:
            status, answer = self.broken[0], {"message": self.broken[1]}
        elif request.headers["Authorization"] != f"token {self.token}":
            status, answer = 403, {"message": "Missing or invalid credentials."}
        elif (method, path) in self.broken_paths:
            status, words = self.broken_paths[method, path]
            answer = {"message": words}
        elif path == "/users":
            state = parse_qs(url.query).get("state")
            names = [name for name in self.users if self.users[name] or not state]
            status, answer = 200, {"items": [self.model(name) for name in names]}
        elif re.fullmatch("/groups/[^/]+", path) and name in self.groups:
            status, answer = 200, {"users": self.groups[name]}
        elif name not in self.users:
            pass
        elif path == f"/users/{name}":
            status, answer = 200, self.model(name)
        elif path.endswith("/server") and method == "POST":
            self.posts.append(name)
            self.options[name] = body
            if name in self.refuses:
                status, words = self.refuses[name]
                answer, headers = {"message": words}, {"Retry-After": "40"}
            else:
                self._begin(name, body)
                status, answer = 202, {}
        elif path.endswith("/server") and method == "DELETE":
            if self.stops_together is not None:
                self.stops_together.wait(10)
            self.deletes.append(name)
            self.users[name] = {}
            status, answer = 204, {}
        elif path.endswith("/progress"):
            event: dict[str, Any] = {"progress": 100, "ready": True}
            if name in self.fails:
                event = {"progress": 100, "failed": True, "message": self.fails[name]}
            text = f"data: {json.dumps({'progress': 0})}\n\ndata: {json.dumps(event)}\n\n"
            self._send(request, 200, text.encode(), {"Content-Type": "text/event-stream"})
            return
        self._send(request, status, json.dumps(answer).encode(), headers)

    def _begin(self, name: str, options: dict[str, Any]) -> None:
        if name in self.fails:
            return
        now = stamp(time.time())
        server = {"name": "", "started": now, "last_activity": now, "pending": None}
        self.users[name] = {"": {**server, "ready": True, "user_options": options}}

    def _send(
        self, request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]
    ) -> None:
        request.send_response(status)
        for key, value in headers.items():
            request.send_header(key, value)
        if status != 204:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if status != 204:
            request.wfile.write(body)
