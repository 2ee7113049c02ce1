"""Stand in for an API server: keep objects, list them, and tell watches what changes. Nothing is
checked or admitted.

Enough for `roost webhook` and `roost record` to watch a cluster that exists only in this process.
"""

from __future__ import annotations

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, Self

from roost_core.objects.fields import JSONObject
from roost_core.scheduler.plugins import NEWEST_MINOR

if TYPE_CHECKING:
    from pathlib import Path


VERSION: Final = {"major": "1", "minor": str(NEWEST_MINOR), "gitVersion": f"v1.{NEWEST_MINOR}.2"}
LOOPBACK: Final = "127.0.0.1"


class StandInApi:
    """`with StandInApi(folder) as api: api.put("/api/v1/nodes", node)`; hand `api.kubeconfig` to a
    program.
    """

    def __init__(self, folder: Path) -> None:
        # (version, collection, what happened, the object then), oldest first.
        self._changes: list[tuple[int, str, str, JSONObject]] = []
        self._objects: dict[tuple[str, str, str], JSONObject] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._server = ThreadingHTTPServer((LOOPBACK, 0), self._handler())
        self._server.daemon_threads = True
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "demo",
            "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "demo"}}],
            "clusters": [
                {
                    "name": "demo",
                    "cluster": {"server": f"http://{LOOPBACK}:{self._server.server_port}"},
                }
            ],
            "users": [{"name": "demo", "user": {}}],
        }
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(config))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def put(self, collection: str, item: JSONObject) -> None:
        """Add an object to a collection, as /api/v1/pods, or replace the one of its namespace and
        name.
        """
        metadata = item["metadata"]
        key = collection, metadata.get("namespace", ""), metadata["name"]
        with self._changed:
            version = len(self._changes) + 1
            kept = json.loads(
                json.dumps({**item, "metadata": {**metadata, "resourceVersion": str(version)}})
            )
            change = "MODIFIED" if key in self._objects else "ADDED"
            self._objects[key] = kept
            self._changes.append((version, collection, change, kept))
            self._changed.notify_all()

    def _list(self, collection: str, namespace: str) -> JSONObject:
        with self._changed:
            items = [
                item
                for (where, space, _), item in self._objects.items()
                if where == collection and namespace in ("", space)
            ]
            return {"metadata": {"resourceVersion": str(len(self._changes))}, "items": items}

    def _find(self, collection: str, namespace: str, name: str) -> JSONObject | None:
        return self._objects.get((collection, namespace, name))

    def _next(self, after: int) -> tuple[int, str, str, JSONObject] | None:
        """The first change after a version, once there is one; None: the server ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._changes) > after)
            return None if self._ended else self._changes[after]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path, _, text = self.path.partition("?")
                query = dict(urllib.parse.parse_qsl(text))
                collection, namespace, name = _parse(path)
                if path == "/version":
                    self._answer(200, VERSION)
                elif name:
                    item = api._find(collection, namespace, name)
                    self._answer(
                        200 if item else 404, item or {"kind": "Status", "reason": "NotFound"}
                    )
                elif "watch" in query:
                    self._watch(collection, namespace, int(query.get("resourceVersion") or 0))
                else:
                    self._answer(200, api._list(collection, namespace))

            def _answer(self, status: int, body: JSONObject) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def _watch(self, collection: str, namespace: str, version: int) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.flush()
                self.close_connection = True
                try:
                    while (change := api._next(version)) is not None:
                        version, where, what, item = change
                        if where == collection and namespace in (
                            "",
                            item["metadata"].get("namespace", ""),
                        ):
                            # As the API server writes it: no spaces.
                            line = (
                                json.dumps(
                                    {"type": what, "object": item}, separators=(",", ":")
                                ).encode()
                                + b"\n"
                            )
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                            self.wfile.flush()
                except OSError:
                    # The program that watched has ended.
                    return

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def _parse(path: str) -> tuple[str, str, str]:
    """The collection over all namespaces, the namespace and the name that a path is about; "" where
    it names none.
    """
    head, namespaces, rest = path.partition("/namespaces/")
    if not namespaces:
        return path, "", ""
    namespace, _, tail = rest.partition("/")
    kind, _, name = tail.partition("/")
    return f"{head}/{kind}", namespace, name
