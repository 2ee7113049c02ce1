"""Stand in for an API server that only lists: enough for a program that watches a cluster in which nothing happens.

Owns a loopback server and the kubeconfig that leads to it. A watch stays open, and says nothing.
"""

from __future__ import annotations

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from tests.harness.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Object = dict[str, Any]


class ListingApi:
    """`with ListingApi(folder, {"/api/v1/nodes": nodes}) as api:` and hand `api.kubeconfig` to a program."""

    def __init__(self, folder: Path, objects: Mapping[str, list[Object]]) -> None:
        self.kubeconfig = folder / "kubeconfig"
        ended = self._ended = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                if "watch" in urllib.parse.parse_qs(query):
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.flush()
                    ended.wait(60)
                    self.close_connection = True
                    return
                items = objects.get(path, [])
                text = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._server.daemon_threads = True
        url = f"http://{LOOPBACK}:{self._server.server_port}"
        context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
        clusters = [{"name": "c", "cluster": {"server": url}}]
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [context]}
        self.kubeconfig.write_text(json.dumps({**config, "clusters": clusters, "users": [{"name": "c", "user": {}}]}))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


def node(name: str, **labels: str) -> Object:
    """A Ready node."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
