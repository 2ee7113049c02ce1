"""A Lease held by one of several, against an API server over HTTP that keeps one Lease and can fall silent."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client import ApiClient, Configuration

from cluster import leases
from cluster.client import Client
from cluster.leases import Leadership

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]
OWNER = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "hub-roost-webhook", "uid": "1"}


class Server:
    """Keeps one Lease."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        # Set: answers come again.
        self.speaks = threading.Event()
        self.speaks.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(404 if outer.lease is None else 200, outer.lease)

            def do_POST(self) -> None:
                outer.lease = self.stamped()
                self.answer(201, outer.lease)

            def do_PUT(self) -> None:
                body = self.stamped()
                if outer.lease is None:
                    self.answer(404, None)
                    return
                outer.lease = body
                self.answer(200, body)

            def stamped(self) -> Object:
                body: Object = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.version += 1
                body["metadata"]["resourceVersion"] = str(outer.version)
                return body

            def answer(self, status: int, body: Object | None) -> None:
                outer.speaks.wait(10)
                text = json.dumps(body or {"kind": "Status", "code": status, "reason": "NotFound"}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                with contextlib.suppress(ConnectionError):  # whoever asked may have given up
                    self.end_headers()
                    self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,))
        self.thread.start()
        self.connections: list[ApiClient] = []

    def client(self) -> Client:
        configuration: Any = Configuration()
        configuration.host = f"http://127.0.0.1:{self.http.server_port}"
        configuration.retries = False
        api_client: Any = ApiClient
        self.connections.append(api_client(configuration))
        return Client(self.connections[-1])

    def close(self) -> None:
        self.speaks.set()
        for connection in self.connections:
            connection.rest_client.pool_manager.clear()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def candidate(server: Server, name: str) -> Leadership:
    return Leadership(server.client(), "jhub", "hub-roost-webhook", name, owner=lambda: OWNER)


def test_of_two_one_leads_until_it_gives_the_lease_back(server: Server) -> None:
    one, other = candidate(server, "one"), candidate(server, "other")
    for _ in range(2):
        one.try_once()
        other.try_once()
    assert (one.is_leader, other.is_leader) == (True, False)
    one.release()
    other.try_once()
    assert (one.is_leader, other.is_leader) == (False, True)


def test_a_lease_is_made_with_its_owner_and_again_when_somebody_deleted_it(server: Server) -> None:
    one = candidate(server, "one")
    one.try_once()
    assert server.lease is not None
    assert server.lease["metadata"]["ownerReferences"] == [OWNER]
    assert server.lease["metadata"]["labels"] == {"app.kubernetes.io/part-of": "roost"}
    server.lease = None
    for _ in range(2):
        one.try_once()
    lease: Object | None = server.lease
    assert lease is not None
    assert lease["metadata"]["ownerReferences"] == [OWNER]
    assert lease["spec"]["holderIdentity"] == "one"
    assert one.is_leader


def test_an_api_server_that_falls_silent_holds_nobody_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "READ_SECONDS", 0.1)
    one = candidate(server, "one")
    one.try_once()
    assert one.is_leader
    server.speaks.clear()
    began_at = time.monotonic()
    one.try_once()
    assert time.monotonic() - began_at < 5
    assert one.is_leader  # it may go on until the renewal is too old
