"""The controllers under faults, on a real control plane; what leaders do is read from the API
server's audit log.
"""

import base64
import contextlib
import datetime as dt
import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
import yaml

from roost_core.placement.labels import HELD, attract_label, pulled_label
from tests.e2e.pods import IMAGE, SINGLEUSER
from tests.e2e.relays import CuttableProxy
from tests.e2e.troubled_server import TroubledServer
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import own_cluster
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import Controllers, Stack

pytestmark = pytest.mark.e2e

IMAGES = {IMAGE: 1_500_000_000}
# A node that names none says nothing of any.
NO_IMAGES = {"registry.k8s.io/pause:3.10.1": 300_000}
EVICTIONS_PER_MINUTE = 2
# For a fact to become a label, through faults that are over, on a machine that does other things,
# too.
CONVERGED_SECONDS = 90.0
# A replica at rest asks for its Lease every two seconds; what is broken is tried again ever more
# seldom.
BUSY_REQUESTS_A_SECOND = 8.0
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
CREDENTIAL = "authentication.kubernetes.io/credential-id"
# As cluster.leases has it: how long a holder may be trusted after it was last heard of.
LEASE_SECONDS = 15.0


class Request(NamedTuple):
    """One request that was answered.

    `at`: seconds since the epoch, when it reached the API server.
    """

    at: float
    who: str
    verb: str
    resource: str
    subresource: str
    status: int

    @property
    def is_write(self) -> bool:
        # A review of one's own name is asked for by a `create`, and leaves nothing.
        return self.verb in WRITES and not self.resource.endswith("reviews")

    @property
    def is_lease(self) -> bool:
        return self.resource == "leases"

    @property
    def is_eviction(self) -> bool:
        return (self.resource, self.subresource, self.verb) == ("pods", "eviction", "create")


def credential_of(kubeconfig: Path) -> str:
    """What the audit log calls the token of a kubeconfig: each token has an id of its own."""
    config = yaml.safe_load(kubeconfig.read_text())
    payload = config["users"][0]["user"]["token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"


def requests_of(cluster: ControlPlane, names: Mapping[str, str]) -> list[Request]:
    """What the holders of these credentials asked, in order; `names` gives each credential a
    name.
    """
    found = []
    for event in cluster.audit_events():
        at = dt.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        who = next(
            (
                names[one]
                for one in event["user"].get("extra", {}).get(CREDENTIAL, ())
                if one in names
            ),
            None,
        )
        about = event.get("objectRef")
        if who is None or about is None:
            continue
        what = (event["verb"], about.get("resource", ""), about.get("subresource", ""))
        found.append(Request(at, who, *what, event.get("responseStatus", {}).get("code", 0)))
    return sorted(found, key=lambda request: request.at)


def most_in_a_minute(requests: Iterable[Request]) -> int:
    times = [request.at for request in requests]
    return max((sum(start <= at < start + 60.0 for at in times) for start in times), default=0)


def writes_without_the_lease(requests: Sequence[Request]) -> list[Request]:
    """Writes by somebody who wasn't the last to have written the Lease, or had written it too long
    ago.
    """
    holder, since, wrong = "", 0.0, []
    for request in requests:
        if request.is_lease:
            if request.is_write and request.status < 300:
                holder, since = request.who, request.at
        elif request.is_write and (request.who != holder or request.at - since > LEASE_SECONDS):
            wrong.append(request)
    return wrong


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of our own: it is restarted here, and writes an audit log."""
    yield from own_cluster(request, audit_level="Metadata")


class Hub:
    """One hub whose controllers can be failed: each replica has a token and a way to the API server
    of its own.
    """

    def __init__(self, cluster: ControlPlane, *, placeholders: int = 0) -> None:
        self.cluster = cluster
        self.namespace = cluster.create_namespace()
        self.pool = {"pool": self.namespace}
        resources = {"requests": {"cpu": "100m", "memory": "1Gi"}}
        default = {
            "name": "default",
            "replicas": placeholders,
            "resources": resources,
            "nodeSelector": self.pool,
        }
        times = {"markAfterSeconds": 2, "keepMarkSeconds": 5, "flapSeconds": 5}
        mover = {"enabled": placeholders > 0, "evictionsPerMinute": EVICTIONS_PER_MINUTE, **times}
        singleuser = {**SINGLEUSER, "nodeSelector": self.pool}
        values = {"singleuser": singleuser, "placeholders": [default], "placeholderMover": mover}
        self.stack = Stack(
            cluster, self.namespace, values, webhook=False, scheduler=placeholders > 0
        )
        self.nodes = FakeNodes(cluster.api)
        self.keeper = PodKeeper(cluster.api)
        self.has_placeholders = placeholders > 0
        self.credentials: dict[str, str] = {}
        self.proxies: dict[str, CuttableProxy] = {}
        self.replicas: dict[str, Controllers] = {}
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._exits.enter_context(self.nodes)
        if self.has_placeholders:
            self._exits.enter_context(self.keeper)
        self._exits.enter_context(self.stack)
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()
        self.cluster.api.delete(f"/api/v1/namespaces/{self.namespace}")

    def start(self, name: str, way: TroubledServer | None = None) -> Controllers:
        """way: instead of a proxy that can be cut."""
        account = self.stack.find("ServiceAccount", "hub-roost-controllers")["metadata"]["name"]
        direct = self.cluster.service_account_kubeconfig(self.namespace, account)
        self.credentials[credential_of(direct)] = name
        if way is None:
            proxy = self.proxies[name] = self._exits.enter_context(CuttableProxy(self.cluster))
        kubeconfig = (way or proxy).kubeconfig(direct)
        replica = self.stack.start_controllers(f"--kubeconfig={kubeconfig}", f"--identity={name}")
        self.replicas[name] = replica
        return replica

    def lead(self) -> str:
        """Have the replica `one` lead over a node with its image."""
        node = self.add_node("node")
        self.start("one").wait_leading()
        self.wait_for_label(node)
        return node

    def leader(self) -> str:
        """The replica that says it leads; "" while none does."""
        leading = [
            name
            for name, replica in self.replicas.items()
            if replica.process.is_running and replica.metric("roost_controllers_leader") == 1.0
        ]
        assert len(leading) < 2, f"{leading} lead at once"
        return leading[0] if leading else ""

    def add_node(self, name: str, **details: Any) -> str:
        full = f"{name}-{self.namespace}"
        self.nodes.create(full, labels=self.pool, **{"memory": "12Gi", "images": IMAGES, **details})
        return full

    @property
    def label(self) -> str:
        return pulled_label("hub", self.namespace, IMAGE)

    def has_label(self, node: str) -> bool:
        """Whether the node is said to hold the image; "pulling" and "open" say that it doesn't."""
        labels = self.cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]
        return bool(labels.get(self.label) == HELD)

    def wait_for_label(self, node: str, *, on: bool = True) -> None:
        def explain() -> object:
            return {
                name: (one.get("/readyz"), one.process.tail())
                for name, one in self.replicas.items()
            }

        what = f"{node} to {'get' if on else 'lose'} its label"
        wait_until(lambda: self.has_label(node) == on, CONVERGED_SECONDS, what, explain=explain)

    def check_follows_facts(self, node: str) -> None:
        self.nodes.set_images(node, NO_IMAGES)
        self.wait_for_label(node, on=False)
        self.nodes.set_images(node, IMAGES)
        self.wait_for_label(node)

    def requests(self) -> list[Request]:
        return requests_of(self.cluster, self.credentials)

    def own_count(self, name: str) -> float:
        """Requests that a replica sent, by its own count: also those that never arrived."""
        return self.replicas[name].metric("roost_controllers_api_requests_total")


def wait_for(what: str, rule: Callable[[], object], seconds: float = CONVERGED_SECONDS) -> None:
    wait_until(rule, seconds, what)


@contextlib.contextmanager
def meddler(hub: Hub, node: str) -> Iterator[list[int]]:
    """Take Roost's label off a node and write its labels, again and again, as a writer that knows
    better; its turns.
    """
    over, turns = threading.Event(), [0]

    def work() -> None:
        while not over.wait(0.2):
            with contextlib.suppress(OSError):
                change = {"metadata": {"labels": {hub.label: None, "meddled": str(turns[0])}}}
                hub.cluster.api.patch(f"/api/v1/nodes/{node}", change)
                turns[0] += 1

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield turns
    finally:
        over.set()
        thread.join()


def test_two_leaders_one_killed_the_other_frozen_never_write_at_once_nor_evict_beyond_the_budget(
    cluster: ControlPlane,
) -> None:
    placeholders = 6
    with Hub(cluster, placeholders=placeholders) as hub:
        # Without room for half as many again: its placeholders would stay there.
        old = hub.add_node("old", memory="8Gi")
        first, second = hub.start("one"), hub.start("two")
        first.wait_ready()
        second.wait_ready()
        wait_for("a leader", hub.leader)

        def placeholders_on(node: str) -> int:
            pods = cluster.api.list(
                f"/api/v1/namespaces/{hub.namespace}/pods",
                labelSelector="component=user-placeholder",
            )
            return sum(pod["spec"].get("nodeName") == node for pod in pods)

        wait_for("all placeholders on the only node", lambda: placeholders_on(old) == placeholders)
        new = hub.add_node("new")

        def evictions() -> list[Request]:
            return [one for one in hub.requests() if one.is_eviction]

        wait_for("evictions", evictions, 180)
        killed = hub.leader()
        hub.replicas[killed].process.kill()
        wait_for("another leader", lambda: hub.leader() not in ("", killed), 60)

        # The second one is frozen in the midst of its work, with a third to take over.
        frozen = hub.leader()
        hub.start("three").wait_ready()
        before = len(evictions())
        wait_for("evictions by the second leader", lambda: len(evictions()) > before, 180)
        hub.replicas[frozen].process.freeze()
        replica = hub.replicas["three"]
        wait_for("the third to lead", lambda: replica.metric("roost_controllers_leader") == 1.0, 60)
        woken_at = time.time()
        hub.replicas[frozen].process.resume()

        wait_for(
            "all placeholders on the new node", lambda: placeholders_on(new) == placeholders, 400
        )
        requests = hub.requests()
        assert {request.who for request in requests if request.is_eviction} >= {killed, frozen}
        assert (
            most_in_a_minute(request for request in requests if request.is_eviction)
            <= EVICTIONS_PER_MINUTE
        )
        assert writes_without_the_lease(requests) == []
        late = [one for one in requests if one.who == frozen and one.at > woken_at and one.is_write]
        assert [one for one in late if not one.is_lease] == []
        label = attract_label("hub", hub.namespace, "default")
        marked = [
            node["metadata"]["name"]
            for node in cluster.api.list("/api/v1/nodes", labelSelector=label)
        ]
        assert marked == [new]


def test_a_writer_that_takes_the_label_away_is_met_at_the_budgets_pace_and_loses_in_the_end(
    cluster: ControlPlane,
) -> None:
    with Hub(cluster) as hub:
        node, other = hub.add_node("node"), hub.add_node("other")
        hub.start("one").wait_leading()
        hub.start("two").wait_ready()
        for one in (node, other):
            hub.wait_for_label(one)
        began_at = time.time()
        with meddler(hub, node) as turns:
            time.sleep(20)
            frozen = hub.leader()
            hub.replicas[frozen].process.freeze()
            rest = next(name for name in hub.replicas if name != frozen)
            wait_for(
                "the other to lead",
                lambda: hub.replicas[rest].metric("roost_controllers_leader") == 1.0,
                60,
            )
            hub.replicas[frozen].process.resume()
            time.sleep(10)
            hub.check_follows_facts(other)
        assert turns[0] > 50
        hub.wait_for_label(node)
        requests = [request for request in hub.requests() if request.at >= began_at]
        writes = [request for request in requests if request.is_write and not request.is_lease]
        assert {write.who for write in writes} == {"one", "two"}
        assert writes_without_the_lease(hub.requests()) == []
        elapsed = requests[-1].at - began_at
        assert len(requests) < elapsed * BUSY_REQUESTS_A_SECOND
        # Two wrote different labels of one node at once, and neither overwrote the other.
        assert cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]["meddled"] == str(
            turns[0] - 1
        )


def test_an_api_server_that_restarts_and_forgets_is_followed_again_without_a_restart_of_ours(
    cluster: ControlPlane,
) -> None:
    with Hub(cluster) as hub:
        node = hub.lead()
        replica = hub.replicas["one"]
        before, began_at = hub.own_count("one"), time.monotonic()
        proxy = hub.proxies["one"]
        cluster.apiserver.kill()
        try:
            time.sleep(20)
            sent, elapsed = hub.own_count("one") - before, time.monotonic() - began_at
            led_on = hub.leader()
        finally:
            # While we are away things change, and the server that comes back knows nothing of
            # before.
            proxy.refuse()
            cluster.start_apiserver()
        assert sent < elapsed * BUSY_REQUESTS_A_SECOND
        assert led_on == "", (
            "it leads though its Lease could not be renewed for more than ten seconds"
        )
        hub.nodes.set_images(node, NO_IMAGES)
        for _ in range(3):
            hub.nodes.set_labels(node, {"changed": "meanwhile"})
            hub.nodes.set_labels(node, {"changed": None})
        proxy.refuse(on=False)
        hub.wait_for_label(node, on=False)
        hub.check_follows_facts(node)
        assert replica.process.is_running
        assert replica.process.log_lines("watch ended: Expired"), (
            "the server still knew where we stood"
        )
        assert "Traceback" not in replica.process.log()


def test_after_an_api_server_that_refuses_and_cuts_watches_all_is_right_within_a_minute(
    cluster: ControlPlane,
) -> None:
    chance = random.Random(1)

    def some(_method: str, _path: str) -> int:
        return chance.choice([0, 0, 429, 500, 503])

    def all_but_leases(_method: str, path: str) -> int:
        return 0 if "/leases/" in path else 500

    with Hub(cluster) as hub, TroubledServer(cluster) as server:
        node, other = (hub.add_node(name, images=NO_IMAGES) for name in ("node", "other"))
        replica = hub.start("one", server)
        replica.wait_leading()
        # After 80 s, writes that rest twice as long each time would rest for longer than a minute.
        for rule, seconds in ((some, 40.0), (all_but_leases, 80.0)):
            before = hub.own_count("one")
            began_at = time.monotonic()
            server.rule = rule
            # Who has just begun to lead believes a list at once that has the image, but not yet one
            # that lacks it.
            hub.nodes.set_images(node, IMAGES)
            while (elapsed := time.monotonic() - began_at) < seconds:
                time.sleep(2.0)
                server.cut()
            assert hub.own_count("one") - before < elapsed * BUSY_REQUESTS_A_SECOND
            hub.nodes.set_images(other, IMAGES)
            server.rule = lambda _method, _path: 0
            wait_for("both labels", lambda: hub.has_label(node) and hub.has_label(other), 60)
            for one in (node, other):
                hub.nodes.set_images(one, NO_IMAGES)
                hub.wait_for_label(one, on=False)
        assert server.refused.keys() == {429, 500, 503}
        assert replica.process.is_running
        assert "Traceback" not in replica.process.log()
        assert writes_without_the_lease(hub.requests()) == []


def test_a_network_that_falls_silent_costs_the_lead_and_gives_it_back(
    cluster: ControlPlane,
) -> None:
    with Hub(cluster) as hub:
        node = hub.lead()
        hub.start("two").wait_ready()
        hub.proxies["one"].hush()
        wait_for(
            "the other to lead",
            lambda: hub.replicas["two"].metric("roost_controllers_leader") == 1.0,
            60,
        )
        assert hub.leader() == "two"
        hub.check_follows_facts(node)
        hub.proxies["one"].hush(on=False)
        time.sleep(5)
        hub.replicas["two"].process.stop()
        wait_for("the first to lead again", lambda: hub.leader() == "one", 30)
        hub.check_follows_facts(node)
        assert writes_without_the_lease(hub.requests()) == []


def test_rights_taken_away_and_given_back_are_noticed_without_a_restart_and_without_a_storm(
    cluster: ControlPlane,
) -> None:
    with Hub(cluster) as hub:
        node = hub.lead()
        replica = hub.replicas["one"]
        bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        path = f"{bindings}/hub.{hub.namespace}.roost-controllers"
        binding = cluster.api.get(path)
        cluster.api.delete(path)
        hub.nodes.set_images(node, NO_IMAGES)
        wait_for("a refused write", lambda: replica.process.log_lines("403 Forbidden"))
        before, began_at = hub.own_count("one"), time.monotonic()
        hub.proxies["one"].cut()
        time.sleep(30)
        elapsed = time.monotonic() - began_at
        assert hub.own_count("one") - before < elapsed * BUSY_REQUESTS_A_SECOND
        assert hub.has_label(node)
        assert replica.process.is_running
        metadata = {key: binding["metadata"][key] for key in ("name", "labels")}
        kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
        cluster.api.create({**kind, **binding, "metadata": metadata})
        hub.wait_for_label(node, on=False)
        hub.check_follows_facts(node)
        assert "Traceback" not in replica.process.log()


def test_reading_the_log_finds_writes_without_the_lease_and_minutes_with_too_many() -> None:
    def lease(at: float, who: str) -> Request:
        return Request(at, who, "update", "leases", "", 200)

    def evict(at: float, who: str) -> Request:
        return Request(at, who, "create", "pods", "eviction", 201)

    good = [lease(0, "one"), evict(5, "one"), lease(20, "two"), evict(21, "two")]
    assert writes_without_the_lease(good) == []
    by_another, too_late = evict(22, "one"), evict(40, "two")
    assert writes_without_the_lease([*good, by_another, too_late]) == [by_another, too_late]
    assert (
        most_in_a_minute([evict(0, "one"), evict(59, "two"), evict(60, "two"), evict(130, "two")])
        == 2
    )
