"""Many hubs behind one webhook, against an API server that is a dictionary of lists."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from roost_core.kube.client import ApiError, Client
from roost_core.placement.hub_documents import MAX_HUB_BYTES, TOO_LARGE, HubRules, read_hub_rules
from roost_core.placement.labels import CENTRAL_LABEL, WARM_TARGET_ANNOTATION
from roost_core.placement.lease_state import LeaseState
from tests.builders import allowed, facts, patched, policy_document, review, settings, user_pod
from tests.harness.waiting import wait_until
from webhook import hubs as hubs_module
from webhook.hubs import Hubs
from webhook.metrics import Metrics
from webhook.node_feed import STALE_SECONDS, NodeFeed
from webhook.review import Outcome, Reviewer
from webhook.watch import FactsKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from roost_core.placement.settings import Settings
    from webhook.rules.facts import Facts

Object = dict[str, Any]
CENTRAL = {"release": "roost", "namespace": "roost-system"}
PROFILES: Object = {"user": {}, "build": {}, "placeholder": {}}
SELECTOR = f"{CENTRAL_LABEL}=roost.roost-system"
BY_NAME = "metadata.name=roost-hub"


class FakeServer:
    """Serves lists; each watch ends after a moment, so a list is all there is to see."""

    def __init__(self) -> None:
        self.lists: dict[tuple[str, str], list[Object]] = {
            ("/api/v1/namespaces", SELECTOR): [],
            ("/api/v1/configmaps", BY_NAME): [],
            ("/api/v1/nodes", ""): [node("node-1")],
        }
        self.asked: dict[str, int] = {}
        self.forbidden: set[str] = set()

    def get(self, path: str, query: Mapping[str, Any]) -> Object:
        self.asked[path] = self.asked.get(path, 0) + 1
        if path in self.forbidden:
            raise ApiError(403, f"{path} is forbidden")
        selector = str(query.get("fieldSelector") or query.get("labelSelector") or "")
        return {"metadata": {"resourceVersion": "1"}, "items": self.lists.get((path, selector), [])}

    def find(self, path: str, *, read_seconds: float) -> Object | None:
        assert read_seconds, path
        return None

    def lines(self, _path: str, _query: Mapping[str, Any], _silence_seconds: float) -> Iterator[bytes]:
        time.sleep(0.02)
        raise ApiError(410, "list again")
        yield b""

    def label(self, *namespaces: str, **labels: str) -> None:
        self.lists["/api/v1/namespaces", SELECTOR] = [
            {"metadata": {"name": name, "uid": name, "labels": labels}} for name in namespaces
        ]

    def fill(self, namespace: str, node_name: str, number: int) -> None:
        """Bind so many users of a hub to a node, and none elsewhere."""
        self.lists[f"/api/v1/namespaces/{namespace}/pods", "component=singleuser-server"] = [
            {
                "metadata": {
                    "name": f"user-{place}",
                    "namespace": namespace,
                    "uid": f"{namespace}-{place}",
                    "labels": {"component": "singleuser-server"},
                },
                "spec": {"nodeName": node_name, "containers": [{"name": "main", "image": "team/x:1"}]},
                "status": {"phase": "Running"},
            }
            for place in range(number)
        ]

    def put(self, namespace: str, text: str) -> None:
        """Give a namespace its ConfigMap."""
        self.take(namespace)
        metadata = {"name": "roost-hub", "namespace": namespace, "uid": namespace}
        self.lists["/api/v1/configmaps", BY_NAME].append({"metadata": metadata, "data": {"policy.json": text}})

    def take(self, namespace: str) -> None:
        """Take a namespace's ConfigMap away."""
        kept = [one for one in self.lists["/api/v1/configmaps", BY_NAME] if one["metadata"]["namespace"] != namespace]
        self.lists["/api/v1/configmaps", BY_NAME] = kept


def node(name: str, uid: str = "first") -> Object:
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": {"name": name, "uid": uid}, "spec": {}, "status": {"conditions": [ready]}}


def rules(namespace: str, **changes: object) -> str:
    own = {"release": "hub", "namespace": namespace, "central": CENTRAL}
    return json.dumps(policy_document(**{**own, **changes}))


class Running:
    """Hubs that follow a fake server, and a reviewer that asks them."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.metrics = Metrics("test")
        self.central: Settings = settings(**CENTRAL, schedulerProfiles=PROFILES)
        self.scheduler = LeaseState.HELD
        self.outcomes: list[Outcome] = []
        client = cast("Client", server)
        self.hubs = Hubs(
            client,
            self.metrics,
            NodeFeed(client),
            central=lambda: self.central,
            identity=("roost", "roost-system"),
            scheduler_state=lambda: self.scheduler,
        )
        self.reviewer = Reviewer(lambda: self.central, facts, lambda: 1.0, self.outcomes.append, self.hubs.hub_of)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.hubs.run, args=(self.stop,))
        self.thread.start()

    def wait(self, predicate: Callable[[], bool]) -> None:
        wait_until(predicate, 10, "hubs", explain=self.hubs.verdict)

    def serves(self, namespace: str) -> bool:
        hub = self.hubs.hub_of(namespace)
        return hub is not None and hub.facts().nodes is not None

    def scheduler_of(self, namespace: str) -> str:
        """The scheduler that a user's pod in this namespace gets."""
        body = user_pod()
        body["metadata"]["namespace"] = namespace
        placed = patched(body, allowed(self.reviewer.review(review(body, namespace))))
        return str(placed["spec"]["schedulerName"])

    def warm_node_of(self, namespace: str) -> str:
        """The node that comes first for a user's pod in this namespace, whose image no puller brings."""
        body = user_pod("team/y:1")
        body["metadata"]["namespace"] = namespace
        placed = patched(body, allowed(self.reviewer.review(review(body, namespace))))
        return str(placed["metadata"].get("annotations", {}).get(WARM_TARGET_ANNOTATION, ""))

    def metric(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr("roost_core.kube.event_stream.FIRST_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr("roost_core.kube.event_stream.LAST_BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(hubs_module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr("roost_core.kube.hub_feed.CHANGE_SECONDS", 0.02)
    server = FakeServer()
    server.label("hub-a", "hub-b")
    server.put("hub-a", rules("hub-a"))
    server.put("hub-b", rules("hub-b"))
    found = Running(server)
    yield found
    found.stop.set()
    found.thread.join()


def test_each_namespaces_pods_are_decided_by_its_own_hubs_rules(running: Running) -> None:
    running.server.put("hub-b", rules("hub-b", podClasses={"user": {"profile": ""}}))
    running.wait(lambda: running.serves("hub-a") and running.serves("hub-b"))
    assert running.scheduler_of("hub-a") == "roost.roost-system.user"
    running.wait(lambda: running.scheduler_of("hub-b") == "default-scheduler")
    assert running.scheduler_of("somewhere-else") == "default-scheduler"
    assert running.metric("roost_webhook_hubs") == 2


def test_a_hub_comes_and_goes_without_a_restart(running: Running) -> None:
    running.wait(lambda: running.serves("hub-a"))
    running.server.label("hub-a", "hub-b", "hub-c")
    running.server.put("hub-c", rules("hub-c"))
    running.wait(lambda: running.serves("hub-c"))
    assert running.scheduler_of("hub-c") == "roost.roost-system.user"
    # Either what the operator gave or what the hub gave.
    running.server.label("hub-a", "hub-b")
    running.server.take("hub-b")
    running.wait(lambda: running.hubs.hub_of("hub-c") is None and running.hubs.hub_of("hub-b") is None)
    assert running.scheduler_of("hub-c") == "default-scheduler"
    assert running.serves("hub-a")
    running.wait(lambda: running.metric("roost_webhook_hubs") == 1)


def test_a_config_map_without_the_operators_label_changes_nothing(running: Running) -> None:
    running.server.put("stranger", rules("stranger"))
    running.server.put("hub-a", rules("hub-a", podClasses={"user": {"profile": ""}}))
    running.wait(lambda: running.scheduler_of("hub-a") == "default-scheduler" and running.serves("hub-a"))
    assert running.hubs.hub_of("stranger") is None
    assert "/api/v1/namespaces/stranger/pods" not in running.server.asked


@pytest.mark.parametrize("text", ["{", "", rules("hub-b"), rules("hub-a", central=None)])
def test_a_broken_config_map_keeps_its_hubs_last_good_rules_and_touches_no_other(running: Running, text: str) -> None:
    running.wait(lambda: running.serves("hub-a") and running.serves("hub-b"))
    revision = cast("Any", running.hubs.hub_of("hub-a")).settings().revision
    running.server.put("hub-a", text)
    running.wait(lambda: running.metric("roost_webhook_hub_policy_reload_failures_total", hub="hub-a") == 1)
    assert cast("Any", running.hubs.hub_of("hub-a")).settings().revision == revision
    assert running.scheduler_of("hub-a") == running.scheduler_of("hub-b") == "roost.roost-system.user"
    assert running.metric("roost_webhook_hub_policy_reload_failures_total", hub="hub-b") is None
    assert "hub-a: " in running.hubs.verdict().detail
    running.server.put("hub-a", rules("hub-a", podClasses={"user": {"profile": ""}}))
    running.wait(lambda: running.scheduler_of("hub-a") == "default-scheduler")
    assert "hub-a: " not in running.hubs.verdict().detail


def test_nodes_are_watched_once_for_all_hubs(running: Running) -> None:
    running.wait(lambda: running.serves("hub-a") and running.serves("hub-b"))
    known = [cast("Any", running.hubs.hub_of(name)).facts().nodes for name in ("hub-a", "hub-b")]
    assert known[0] is known[1]
    running.server.lists["/api/v1/nodes", ""] = [node("node-1"), node("node-2")]
    running.wait(lambda: len(cast("Any", running.hubs.hub_of("hub-b")).facts().nodes) == 2)


def test_a_profile_that_the_central_release_drops_is_no_longer_given_to_hubs(running: Running) -> None:
    running.wait(lambda: running.serves("hub-a"))
    kept = {name: profile for name, profile in PROFILES.items() if name != "user"}
    running.central = settings(**CENTRAL, schedulerProfiles=kept)
    running.wait(lambda: running.scheduler_of("hub-a") == "default-scheduler")
    running.central = settings(**CENTRAL, schedulerProfiles=PROFILES)
    running.wait(lambda: running.scheduler_of("hub-a") == "roost.roost-system.user")


def test_while_the_central_scheduler_is_away_the_pods_of_all_hubs_keep_the_clusters(running: Running) -> None:
    running.wait(lambda: running.serves("hub-a") and running.serves("hub-b"))
    running.scheduler = LeaseState.STALE
    assert running.scheduler_of("hub-a") == running.scheduler_of("hub-b") == "default-scheduler"


def test_a_hub_whose_pods_may_not_be_read_is_served_without_them(running: Running) -> None:
    running.server.forbidden.add("/api/v1/namespaces/hub-c/pods")
    running.server.label("hub-a", "hub-b", "hub-c")
    running.server.put("hub-c", rules("hub-c"))
    running.wait(lambda: all(map(running.serves, ("hub-a", "hub-b", "hub-c"))))
    assert running.scheduler_of("hub-c") == "roost.roost-system.user"
    assert running.hubs.verdict().passed


def test_hubs_beyond_the_most_are_refused_and_those_that_are_served_stay(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.wait(lambda: running.serves("hub-a") and running.serves("hub-b"))
    monkeypatch.setattr(hubs_module, "MAX_HUBS", 2)
    running.server.label("a-late-hub", "hub-a", "hub-b")
    running.server.put("a-late-hub", rules("a-late-hub"))
    running.wait(lambda: running.metric("roost_webhook_hub_policy_reload_failures_total", hub="a-late-hub") == 1)
    assert running.hubs.hub_of("a-late-hub") is None
    assert running.serves("hub-a")
    assert running.serves("hub-b")


def test_a_hub_remembers_its_own_builds_and_no_others(running: Running) -> None:
    running.wait(lambda: running.serves("hub-a") and running.serves("hub-b"))
    first, second = (cast("Any", running.hubs.hub_of(name)) for name in ("hub-a", "hub-b"))
    assert first.memory is not second.memory


def test_no_error_of_one_hub_touches_the_others(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty(text: bytes, namespace: str, central: Settings) -> HubRules:
        if namespace == "evil" and b'"user": []' in text:
            raise TypeError("unhashable type")
        return read_hub_rules(text, namespace, central)

    monkeypatch.setattr(hubs_module, "read_hub_rules", faulty)
    running.server.label("alpha", "evil", "physics")
    for namespace in ("alpha", "evil", "physics"):
        running.server.put(namespace, rules(namespace))
    running.wait(lambda: all(map(running.serves, ("alpha", "evil", "physics"))))
    running.server.put("evil", json.dumps({"podClasses": {"user": []}}))
    running.wait(lambda: running.metric("roost_webhook_hub_policy_reload_failures_total", hub="evil") == 1)
    # Before and after it in the order of names.
    for namespace in ("alpha", "physics"):
        running.server.put(namespace, rules(namespace, podClasses={"user": {"profile": ""}}))
    running.wait(lambda: {running.scheduler_of(name) for name in ("alpha", "physics")} == {"default-scheduler"})
    assert running.scheduler_of("evil") == "roost.roost-system.user"
    assert "evil: can't be read (TypeError)" in running.hubs.verdict().detail
    assert "hub=evil: ConfigMap roost-hub refused" in caplog.text
    assert "hubs not updated" not in caplog.text


def test_a_hub_that_could_not_be_taken_in_is_tried_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    follow = FactsKeeper.follow

    def failing(keeper: FactsKeeper, wanted: Settings) -> None:
        if wanted.namespace == "evil":
            tried.append(wanted.namespace)
            if len(tried) < 3:
                raise RuntimeError("can't start new thread")
        follow(keeper, wanted)

    monkeypatch.setattr(FactsKeeper, "follow", failing)
    monkeypatch.setattr(hubs_module, "RETRY_SECONDS", 0.01)
    running.server.label("alpha", "evil", "physics")
    for namespace in ("alpha", "evil", "physics"):
        running.server.put(namespace, rules(namespace))
    running.wait(lambda: all(map(running.serves, ("alpha", "evil", "physics"))))
    assert len(tried) == 3
    threads = [thread.name for thread in threading.enumerate()]
    assert [threads.count(f"facts-{name}") for name in ("alpha", "evil", "physics")] == [1, 1, 1]
    assert running.metric("roost_webhook_hub_policy_reload_failures_total", hub="evil") == 1


def test_a_replica_is_not_ready_before_it_read_all_documents(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    running.wait(lambda: running.hubs.verdict().passed)
    server, may_read = FakeServer(), threading.Event()
    server.label("alpha")
    server.put("alpha", rules("alpha"))

    def slow(text: bytes, namespace: str, central: Settings) -> HubRules:
        may_read.wait(10)
        return read_hub_rules(text, namespace, central)

    monkeypatch.setattr(hubs_module, "read_hub_rules", slow)
    second = Running(server)
    try:
        second.wait(lambda: "first look" in second.hubs.verdict().detail)
        assert not second.hubs.verdict().passed
        may_read.set()
        second.wait(lambda: second.hubs.verdict().passed)
        assert second.serves("alpha")
    finally:
        may_read.set()
        second.stop.set()
        second.thread.join()


def test_no_more_of_a_document_is_kept_than_the_bound(running: Running) -> None:
    running.wait(lambda: running.serves("hub-a"))
    running.server.put("hub-a", " " * MAX_HUB_BYTES + rules("hub-a"))
    running.wait(lambda: f"at most {MAX_HUB_BYTES} bytes" in running.hubs.verdict().detail)
    assert running.hubs._documents.documents()["hub-a"] == TOO_LARGE
    assert running.serves("hub-a")


POOL: Object = {"matchLabels": {"pool": "users"}}
WARM: Object = {"user": {"warm": {"podsPerNode": 4}, "imageGate": False}}


def test_users_of_hubs_that_share_nodes_gather_on_the_same_ones(running: Running) -> None:
    running.server.lists["/api/v1/nodes", ""] = [node("node-1"), node("node-2")]
    for namespace in ("hub-a", "hub-b", "hub-c"):
        shared = None if namespace == "hub-c" else POOL
        running.server.put(namespace, rules(namespace, podClasses=WARM, sharedNamespaces=shared))
    running.server.label("hub-a", "hub-b", "hub-c", pool="users")
    running.wait(lambda: {running.warm_node_of(name) for name in ("hub-a", "hub-b", "hub-c")} == {"node-1"})
    # Another hub's users fill the node that this one would take for empty.
    running.server.fill("hub-b", "node-1", 4)
    running.wait(lambda: running.warm_node_of("hub-a") == "node-2")
    assert running.warm_node_of("hub-c") == "node-1"
    # The set is as large as both hubs' users need it.
    running.server.fill("hub-b", "node-1", 3)
    running.wait(lambda: running.warm_node_of("hub-a") == "node-1")
    # Only what the hub's own Role grants is read: nobody's pods are listed across namespaces.
    assert "/api/v1/pods" not in running.server.asked
    running.server.fill("hub-b", "node-1", 4)
    running.wait(lambda: running.warm_node_of("hub-a") == "node-2")
    running.server.label("hub-a", "hub-b", "hub-c")
    running.wait(lambda: running.warm_node_of("hub-a") == "node-1")


def test_users_of_two_classes_with_the_same_labels_count_for_other_hubs(running: Running) -> None:
    running.server.lists["/api/v1/nodes", ""] = [node("node-1"), node("node-2")]
    running.server.fill("hub-b", "node-1", 4)
    twin = {**WARM["user"], "match": {"labels": {"component": "singleuser-server"}}}
    running.server.put("hub-a", rules("hub-a", podClasses=WARM, sharedNamespaces=POOL))
    # One of the two has the pods, whichever comes first.
    twins = {"people": twin, **WARM, "visitors": twin}
    running.server.put("hub-b", rules("hub-b", podClasses=twins, sharedNamespaces=POOL))
    running.server.label("hub-a", "hub-b", pool="users")
    running.wait(lambda: running.warm_node_of("hub-a") == "node-2")


def test_pods_that_may_no_longer_be_read_take_no_room_in_other_hubs_sets(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.server.lists["/api/v1/nodes", ""] = [node("node-1"), node("node-2")]
    running.server.fill("hub-b", "node-1", 4)
    for namespace in ("hub-a", "hub-b"):
        running.server.put(namespace, rules(namespace, podClasses=WARM, sharedNamespaces=POOL))
    running.server.label("hub-a", "hub-b", pool="users")
    running.wait(lambda: running.warm_node_of("hub-a") == "node-2")
    # Its admins take the central webhook's rights away: what was seen before is no longer true.
    running.server.forbidden.add("/api/v1/namespaces/hub-b/pods")
    running.wait(lambda: running.warm_node_of("hub-a") == "node-1")
    running.server.forbidden.clear()
    running.wait(lambda: running.warm_node_of("hub-a") == "node-2")
    # Nor do those of which nothing was heard for minutes.
    silent = cast("Any", running.hubs._hubs["hub-b"].keeper._watches)._pods["user"]
    monkeypatch.setattr(silent, "age_seconds", lambda: STALE_SECONDS + 1)
    running.wait(lambda: running.warm_node_of("hub-a") == "node-1")


def test_a_class_that_is_renamed_again_and_again_leaves_nothing_behind(running: Running) -> None:
    running.wait(lambda: running.serves("hub-a") and running.serves("hub-b"))
    running.server.label("hub-a", "hub-b", pool="users")
    running.server.put("hub-b", rules("hub-b", podClasses=WARM, sharedNamespaces=POOL))
    match = {"labels": {"component": "singleuser-server"}}
    for number in range(5):
        name = f"people-{number}"
        people = {"user": None, name: {**WARM["user"], "match": match}}
        running.server.put("hub-a", rules("hub-a", podClasses=people, sharedNamespaces=POOL))
        running.wait(lambda wanted=name: hub_facts(running, "hub-a").warm.keys() == {wanted})  # type: ignore[misc]
        running.wait(lambda wanted=name: remembered(running, "hub-a").keys() == {wanted})  # type: ignore[misc]


def remembered(running: Running, namespace: str) -> Mapping[str, object]:
    """What is kept for a hub's classes of a common warm set, once its facts were read."""
    hub_facts(running, namespace)
    return running.hubs._hubs[namespace]._seen


def hub_facts(running: Running, namespace: str) -> Facts:
    hub = running.hubs.hub_of(namespace)
    assert hub is not None
    return hub.facts()


def test_a_document_that_is_written_again_and_again_is_taken_in_now_and_then(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.wait(lambda: running.serves("hub-a") and running.serves("hub-b"))
    monkeypatch.setattr("roost_core.kube.hub_feed.CHANGE_SECONDS", 0.5)
    follows: list[str] = []
    follow = FactsKeeper.follow

    def counted(keeper: FactsKeeper, wanted: Settings) -> None:
        follows.append(wanted.namespace)
        follow(keeper, wanted)

    monkeypatch.setattr(FactsKeeper, "follow", counted)
    began_at = time.monotonic()
    for number in range(20):
        labels = {"component": f"people-{number}"}
        running.server.put("hub-a", rules("hub-a", podClasses={"user": {"match": {"labels": labels}}}))
        time.sleep(0.05)
    # The last one is in force, though nothing changes after it.
    last = {"component": "people-19"}
    running.wait(lambda: running.hubs._hubs["hub-a"].settings.classes["user"].labels == last)
    assert 2 <= len(follows) <= 1 + (time.monotonic() - began_at) / 0.5
    # One that goes does so at once.
    monkeypatch.setattr("roost_core.kube.hub_feed.CHANGE_SECONDS", 3600.0)
    running.server.take("hub-b")
    running.wait(lambda: running.hubs.hub_of("hub-b") is None)
