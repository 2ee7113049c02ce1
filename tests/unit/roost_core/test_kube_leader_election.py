"""A Lease held by one of several, against an API server over HTTP that keeps one Lease and can fall silent."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import urllib3

from roost_core.kube import leader_election
from roost_core.kube.client import Client
from roost_core.kube.leader_election import RENEW_SECONDS, Leadership, steady_seconds
from roost_core.placement.beliefs import LEASE_SECONDS

Object = dict[str, Any]
OWNER = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "hub-roost-webhook", "uid": "1"}


class Server:
    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.on_request: Callable[[str], None] = lambda _verb: None
        # Set: answers come again.
        self.speaks = threading.Event()
        self.speaks.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.on_request("GET")
                self.answer(404 if outer.lease is None else 200, outer.lease)

            def do_POST(self) -> None:
                outer.lease, _ = self.stamped()
                self.answer(201, outer.lease)

            def do_PUT(self) -> None:
                outer.on_request("PUT")
                before = outer.lease
                body, given = self.stamped()
                if before is None:
                    self.answer(404, None)
                elif given != before["metadata"]["resourceVersion"]:
                    self.answer(409, None)
                else:
                    outer.lease = body
                    self.answer(200, body)

            def stamped(self) -> tuple[Object, object]:
                """What was sent, with a new version, and the version that it was sent with."""
                body: Object = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                given = body["metadata"].get("resourceVersion")
                outer.version += 1
                body["metadata"]["resourceVersion"] = str(outer.version)
                return body, given

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
        self.pools: list[urllib3.PoolManager] = []

    def client(self) -> Client:
        self.pools.append(urllib3.PoolManager(retries=False))
        return Client(f"http://127.0.0.1:{self.http.server_port}", self.pools[-1])

    def close(self) -> None:
        self.speaks.set()
        for pool in self.pools:
            pool.clear()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def candidate(server: Server, name: str, clock: Callable[[], float] = steady_seconds) -> Leadership:
    return Leadership(server.client(), "jhub", "hub-roost-webhook", name, owner=lambda: OWNER, clock=clock)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


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
    for turns in (1, 2):
        server.lease = None
        for _ in range(turns):
            one.try_once()
        lease: Any = server.lease
        assert lease["metadata"]["ownerReferences"] == [OWNER]
        assert lease["metadata"]["labels"] == {"app.kubernetes.io/part-of": "roost"}
        assert (lease["spec"]["holderIdentity"], one.is_leader) == ("one", True)


def test_an_api_server_that_falls_silent_holds_nobody_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_election, "READ_SECONDS", 0.1)
    one = candidate(server, "one")
    one.try_once()
    assert one.is_leader
    server.speaks.clear()
    began_at = time.monotonic()
    one.try_once()
    assert time.monotonic() - began_at < 5
    assert one.is_leader  # it may go on until the renewal is too old


def test_who_was_frozen_leads_no_more_and_another_takes_over_only_later(server: Server) -> None:
    clock = Clock()
    frozen, other = candidate(server, "frozen", clock), candidate(server, "other", clock)
    frozen.try_once()
    other.try_once()
    clock.now += RENEW_SECONDS
    assert not frozen.is_leader
    other.try_once()
    assert not other.is_leader, "it took over while the first might still have been at work"
    clock.now += LEASE_SECONDS - RENEW_SECONDS + 0.1
    other.try_once()
    assert other.is_leader
    frozen.try_once()
    assert not frozen.is_leader
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == "other"
    assert server.lease["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("written", ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z", "soon", None, 7])
def test_times_that_others_write_count_for_nothing(server: Server, written: object) -> None:
    clock = Clock()
    one, other = candidate(server, "one", clock), candidate(server, "other", clock)
    one.try_once()
    assert server.lease is not None
    server.lease["spec"] |= {"renewTime": written, "acquireTime": written}
    other.try_once()
    assert not other.is_leader
    clock.now += LEASE_SECONDS + 0.1
    other.try_once()
    assert other.is_leader


def test_who_leads_writes_without_reading(server: Server) -> None:
    one, asked = candidate(server, "one"), list[str]()
    one.try_once()
    server.on_request = asked.append
    for _ in range(3):
        one.try_once()
    assert asked == ["PUT"] * 3


@pytest.mark.parametrize(
    ("metadata", "spec", "leads"), [({"labels": {"a": "b"}}, {}, True), ({}, {"holderIdentity": "usurper"}, False)]
)
def test_a_lease_that_somebody_changed_is_read_again_and_left_to_whoever_it_names(
    metadata: Object, spec: Object, leads: bool, server: Server
) -> None:
    one = candidate(server, "one")
    one.try_once()
    assert server.lease is not None
    server.version += 1
    version = {"resourceVersion": str(server.version)}
    server.lease = {
        **server.lease,
        "metadata": {**server.lease["metadata"], **version, **metadata},
        "spec": {**server.lease["spec"], **spec},
    }
    one.try_once()
    assert one.is_leader is leads
    assert metadata.items() <= server.lease["metadata"].items()


def test_who_can_not_do_the_work_neither_asks_for_the_lease_nor_keeps_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_election, "RETRY_SECONDS", 0.01)
    fit = threading.Event()
    one = Leadership(server.client(), "hub", "lease", "one", is_fit=fit.is_set)
    stop = threading.Event()
    thread = threading.Thread(target=one.run, args=(stop,), daemon=True)
    thread.start()

    def wait_for(is_leader: bool) -> None:
        deadline = time.monotonic() + 10
        while one.is_leader != is_leader:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    time.sleep(0.1)
    assert server.lease is None
    fit.set()
    wait_for(True)
    fit.clear()
    wait_for(False)
    stop.set()
    thread.join(5)
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == ""
