"""A Lease held by one of several, against a server that keeps one Lease and can fall silent."""

import copy
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from roost_core.kube import leader_election
from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.kube.leader_election import RENEW_SECONDS, Leadership, steady_seconds
from roost_core.objects.fields import JSONObject
from roost_core.placement.beliefs import LEASE_SECONDS

OWNER = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "hub-roost-webhook", "uid": "1"}


class Server:
    """Refuses a change of a Lease that somebody else has changed meanwhile, as an API server
    does.
    """

    def __init__(self) -> None:
        self.lease: JSONObject | None = None
        self.version = 0
        self.speaks = True
        self.asked: list[str] = []

    def find(self, _path: str, *, read_seconds: float) -> JSONObject | None:
        self._hear("GET", read_seconds)
        return copy.deepcopy(self.lease)

    def get(self, path: str, *, read_seconds: float) -> JSONObject:
        return self.find(path, read_seconds=read_seconds) or {}

    def create(self, _path: str, body: JSONObject) -> JSONObject:
        return self._keep(body)

    def replace(self, _path: str, body: JSONObject, *, read_seconds: float) -> JSONObject:
        self._hear("PUT", read_seconds)
        if self.lease is None:
            raise ApiError(404, "not found")
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiError(409, "changed")
        return self._keep(body)

    def _hear(self, verb: str, read_seconds: float) -> None:
        assert 2 * read_seconds < RENEW_SECONDS, "silence must leave time for a second try"
        self.asked.append(verb)
        if not self.speaks:
            raise ClusterError("no answer in time")

    def _keep(self, body: JSONObject) -> JSONObject:
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        self.lease = copy.deepcopy({**body, "metadata": metadata})
        return copy.deepcopy(self.lease)


@pytest.fixture
def server() -> Server:
    return Server()


def candidate(server: Server, name: str, clock: Callable[[], float] = steady_seconds) -> Leadership:
    client = cast("Client", server)
    return Leadership(client, "jhub", "hub-roost-webhook", name, owner=lambda: OWNER, clock=clock)


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


def test_an_api_server_that_falls_silent_costs_the_lead_only_once_the_renewal_is_too_old(
    server: Server,
) -> None:
    clock = Clock()
    one = candidate(server, "one", clock)
    one.try_once()
    server.speaks = False
    for seconds in (RENEW_SECONDS - 1, 1):
        assert one.is_leader
        clock.now += seconds
        one.try_once()
    assert not one.is_leader


@pytest.mark.parametrize(
    "written", ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z", "soon", None, 7]
)
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
    one = candidate(server, "one")
    one.try_once()
    server.asked.clear()
    for _ in range(3):
        one.try_once()
    assert server.asked == ["PUT"] * 3


@pytest.mark.parametrize(
    ("metadata", "spec", "leads"),
    [({"labels": {"a": "b"}}, {}, True), ({}, {"holderIdentity": "usurper"}, False)],
)
def test_a_lease_that_somebody_changed_is_read_again_and_left_to_whoever_it_names(
    metadata: JSONObject, spec: JSONObject, leads: bool, server: Server
) -> None:
    one = candidate(server, "one")
    one.try_once()
    assert server.lease is not None
    server.version += 1
    version = {"resourceVersion": str(server.version)}
    changed = {**server.lease["metadata"], **version, **metadata}
    server.lease = {**server.lease, "metadata": changed, "spec": {**server.lease["spec"], **spec}}
    one.try_once()
    assert one.is_leader is leads
    assert metadata.items() <= server.lease["metadata"].items()


def test_who_can_not_do_the_work_neither_asks_for_the_lease_nor_keeps_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_election, "RETRY_SECONDS", 0.01)
    fit = threading.Event()
    one = Leadership(cast("Client", server), "hub", "lease", "one", is_fit=fit.is_set)
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
