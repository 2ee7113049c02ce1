"""Facts kept from watches, against an API server that is a dictionary of lists."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.objects.fields import JSONObject
from roost_core.placement.beliefs import WAITED_SECONDS
from roost_core.placement.labels import POLICY_REVISION_ANNOTATION
from roost_core.placement.lease_state import LeaseState
from tests.builders import settings
from tests.harness.waiting import wait_until
from tests.recorded_data import object_of, rows
from webhook.facts.facts import Facts
from webhook.facts.placed_pod import FailedPull, PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.metrics import WebhookMetrics
from webhook.watching.keeper import FactsKeeper

PODS = "/api/v1/namespaces/jhub/pods"
NODES, PRIORITIES = "/api/v1/nodes", "/apis/scheduling.k8s.io/v1/priorityclasses"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
USERS, EVERYWHERE = (
    (PODS, "component=singleuser-server"),
    ("/api/v1/pods", "component=singleuser-server"),
)
IMAGE = "docker.io/team/x:latest"
WARM = {"user": {"warm": {"podsPerNode": 4}}}
SHARED = {"sharedPools": {"namespaceSelector": {"matchLabels": {"pool": "users"}}}}
LEASES = {"leases": {"scheduler": "hub-roost-scheduler"}}
SELECTED = {
    "user": {
        "match": {
            "labels": {"component": "singleuser-server"},
            "namespaceSelector": {"matchLabels": {"hub": "yes"}},
        },
        "profile": "user",
    }
}
QUOTAS, OWN_QUOTAS = "/api/v1/resourcequotas", "/api/v1/namespaces/jhub/resourcequotas"


def _failed(facts: Facts) -> set[FailedPull]:
    return {pull for pulls in facts.failed_pulls.values() for pull in pulls}


class FakeServer:
    """Serves lists by path and label selector; each watch ends after a moment, and a list is all
    there is to see.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], list[JSONObject]] = {}
        self.leases: dict[str, JSONObject] = {}
        self.forbidden: set[str] = set()
        self.broken: set[str] = set()
        self.asked: set[tuple[str, str]] = set()

    def get(self, path: str, query: Mapping[str, Any]) -> JSONObject:
        if path in self.forbidden:
            raise ApiError(403, f"{path} is forbidden")
        if path in self.broken:
            raise ClusterError(f"{path} is out of reach")
        key = (path, str(query.get("labelSelector", "")))
        self.asked.add(key)
        return {"metadata": {"resourceVersion": "1"}, "items": self.objects.get(key, [])}

    def find(self, path: str, *, read_seconds: float) -> JSONObject | None:
        assert read_seconds
        if path in self.forbidden:
            raise ApiError(403, f"{path} is forbidden")
        return self.leases.get(path.rpartition("/")[2])

    def lines(
        self, _path: str, _query: Mapping[str, Any], _silence_seconds: float
    ) -> Iterator[bytes]:
        time.sleep(0.02)
        raise ApiError(410, "list again")
        yield b""


def node(name: str, *images: str, uid: str = "first", **allocatable: str) -> JSONObject:
    ready = {"type": "Ready", "status": "True"}
    status = {
        "conditions": [ready],
        "allocatable": allocatable,
        "images": [{"names": [image]} for image in images],
    }
    return {
        "metadata": {"name": name, "uid": uid, "labels": {"a": "b"}},
        "spec": {},
        "status": status,
    }


def pod(name: str, component: str, *, node_name: str = "", **metadata: Any) -> JSONObject:
    labels = {"component": component, "app": "binder"}
    return {
        "metadata": {
            "name": name,
            "namespace": "jhub",
            "uid": f"uid-{name}",
            "labels": labels,
            **metadata,
        },
        "spec": {"nodeName": node_name, "schedulerName": "default-scheduler", "containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def user(name: str, node_name: str, image: str, namespace: str = "jhub") -> JSONObject:
    body = pod(name, "singleuser-server", node_name=node_name, namespace=namespace)
    body["spec"]["containers"] = [{"name": "notebook", "image": image}]
    return body


def namespace(name: str, **labels: str) -> JSONObject:
    return {"metadata": {"name": name, "labels": labels}}


class Kept:
    """A keeper on a fake server."""

    def __init__(self, server: FakeServer) -> None:
        self.metrics = WebhookMetrics("test")
        self.seconds = 0.0
        self.keeper = FactsKeeper(cast("Client", server), self.metrics, clock=lambda: self.seconds)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.keeper.run, args=(self.stop,))
        self.thread.start()

    def wait(self, predicate: Callable[[], bool]) -> None:
        wait_until(
            predicate, 10, "facts", explain=lambda: (self.keeper.facts, self.keeper.readiness())
        )

    def wait_for_holders(self, *names: str) -> None:
        """Until nodes are known, and of the image's holders these."""
        self.wait(lambda: self.keeper.facts.nodes is not None and self.holders() == set(names))

    def holders(self, image: str = IMAGE) -> frozenset[str]:
        return self.keeper.facts.warm["user"].holders(image)

    def starting_pods(self) -> Mapping[str, object]:
        cluster = self.keeper._cluster
        assert cluster is not None
        return cluster.pods.failed_pulls._starting

    def metric(self, name: str, pod_class: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, {"class": pod_class})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    monkeypatch.setattr("roost_core.kube.event_stream.FIRST_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr("roost_core.kube.event_stream.LAST_BACKOFF_SECONDS", 0.02)
    return FakeServer()


@pytest.fixture
def kept(server: FakeServer) -> Iterator[Kept]:
    running = Kept(server)
    yield running
    running.stop.set()
    running.thread.join()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost_core.kube.lease_watch.LOOK_SECONDS", 0.02)


def test_only_what_the_rules_need_is_watched(server: FakeServer, kept: Kept) -> None:
    assert not kept.keeper.readiness().passed
    kept.keeper.follow(settings(webhook={"readNodes": False}))
    kept.wait(lambda: kept.keeper.readiness().passed)
    assert server.asked == {
        (PODS, "component=image-builder"),
        (PODS, "component=binderhub-build"),
        (PODS, "component=singleuser-server"),
        (PODS, "component=user-placeholder"),
        (OWN_QUOTAS, ""),
    }


def test_facts_hold_nodes_builders_and_the_pods_of_each_node(
    server: FakeServer, kept: Kept
) -> None:
    server.objects[NODES, ""] = [node("a"), node("b")]
    server.objects[PODS, "component=image-builder"] = [
        pod("dind-a", "image-builder", node_name="a")
    ]
    server.objects[PODS, "component=singleuser-server"] = [
        user("one", "a", IMAGE),
        user("two", "a", IMAGE),
    ]
    kept.keeper.follow(settings())
    kept.wait(lambda: kept.keeper.facts.nodes is not None)
    facts = kept.keeper.facts
    assert facts.nodes is not None
    assert set(facts.nodes) == {"a", "b"}
    assert facts.builder_nodes == {"build": frozenset({"a"})}
    assert facts.warm["user"].pods_on("a") == 2


def test_refused_nodes_leave_facts_made_of_pods_and_are_told(
    server: FakeServer, kept: Kept
) -> None:
    server.forbidden.add(NODES)
    server.objects[PODS, "component=image-builder"] = [
        pod("dind-a", "image-builder", node_name="a")
    ]
    kept.keeper.follow(settings())
    kept.wait(lambda: kept.keeper.facts.builder_nodes == {"build": frozenset({"a"})})
    assert kept.keeper.facts.nodes is None
    passed, detail = kept.keeper.readiness()
    assert passed
    assert "/api/v1/nodes is forbidden" in detail
    server.objects[NODES, ""] = [node("a")]
    server.forbidden.clear()
    kept.wait(lambda: kept.keeper.facts.nodes is not None)


def test_a_fault_while_facts_are_made_loses_no_change(
    server: FakeServer,
    kept: Kept,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("webhook.watching.keeper.RETRY_SECONDS", 0.01)
    kept.keeper.follow(settings())
    kept.wait(lambda: kept.keeper.readiness().passed)
    faults = [RuntimeError("once")]
    whole = WarmFacts.updated

    def updated(warm: WarmFacts, changes: Mapping[str, PlacedPod | None]) -> WarmFacts:
        if faults:
            raise faults.pop()
        return whole(warm, changes)

    monkeypatch.setattr(WarmFacts, "updated", updated)
    server.objects[PODS, "component=singleuser-server"] = [user("one", "a", IMAGE)]
    kept.wait(lambda: kept.keeper.facts.warm["user"].pods_on("a") == 1)
    assert "facts not updated" in caplog.text


def test_unplaced_pods_are_counted_once_and_leave_the_gauge_when_they_go(
    server: FakeServer, kept: Kept
) -> None:
    placed = {POLICY_REVISION_ANNOTATION: "1"}
    opted_out = {"roost.hub.jupyter.org/opt-out": "true"}
    users = [
        pod("missed", "singleuser-server"),
        pod("placed", "singleuser-server", annotations=placed),
        pod("own", "singleuser-server", annotations=opted_out),
    ]
    server.objects[PODS, "component=singleuser-server"] = users
    kept.keeper.follow(settings())
    kept.wait(lambda: kept.metric("roost_webhook_unplaced_pods", "user") == 1)
    assert kept.metric("roost_webhook_unplaced_pods_seen_total", "user") == 1
    server.objects[PODS, "component=singleuser-server"] = users[1:]
    kept.wait(lambda: kept.metric("roost_webhook_unplaced_pods", "user") == 0)
    assert kept.metric("roost_webhook_unplaced_pods_seen_total", "user") == 1


def test_of_pods_with_our_scheduler_own_placeholders_alone_count_as_placed(
    server: FakeServer, kept: Kept
) -> None:
    own = {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": "placeholder"}
    placeholder, old, alien = (
        pod(name, "user-placeholder") for name in ("placeholder", "old-placeholder", "alien")
    )
    missed = pod("missed", "singleuser-server")
    missed["spec"]["schedulerName"] = "hub.jhub.user"
    for body in (placeholder, alien):
        body["spec"]["schedulerName"] = "hub.jhub.placeholder"
    for body in (placeholder, old):
        body["metadata"]["labels"] |= own
    server.objects[PODS, "component=user-placeholder"], server.objects[USERS] = (
        [placeholder, old, alien],
        [missed],
    )
    kept.keeper.follow(settings())
    kept.wait(lambda: kept.metric("roost_webhook_unplaced_pods", "placeholder") == 2)
    kept.wait(lambda: kept.metric("roost_webhook_unplaced_pods", "user") == 1)


def test_users_of_a_namespace_count_once_selected(
    server: FakeServer, kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "webhook.watching.keeper")
    server.objects["/api/v1/namespaces", ""] = [namespace("other")]
    server.objects[EVERYWHERE] = [pod("out", "singleuser-server", namespace="other")]
    kept.keeper.follow(settings(podClasses=SELECTED))
    kept.wait(lambda: kept.keeper.facts.namespaces is not None)
    assert kept.metric("roost_webhook_unplaced_pods", "user") == 0
    for labels in ({"hub": "yes"}, {"hub": "yes", "any": "other"}):
        server.objects["/api/v1/namespaces", ""] = [namespace("other", **labels)]
        kept.wait(lambda wanted=labels: (kept.keeper.facts.namespaces or {}).get("other") == wanted)  # type: ignore[misc]
        kept.wait(lambda: kept.metric("roost_webhook_unplaced_pods", "user") == 1)
    assert [record.message for record in caplog.records].count(
        "other namespaces are selected now: pods are listed anew"
    ) == 1


def test_pods_that_were_listed_while_namespaces_might_not_be_read_are_listed_anew_when_they_may(
    server: FakeServer, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, again = threading.Event(), server.lines

    def lines(path: str, *given: Any) -> Iterator[bytes]:
        """Watches of pods are quiet, so that nothing else has them listed once more."""
        if path.endswith("/pods"):
            over.wait(10)
        return again(path, *given)

    monkeypatch.setattr(server, "lines", lines)
    server.forbidden.add("/api/v1/namespaces")
    server.objects["/api/v1/namespaces", ""] = [namespace("other", hub="yes")]
    server.objects[EVERYWHERE] = [pod("in", "singleuser-server", namespace="other")]
    kept.keeper.follow(settings(podClasses=SELECTED))
    kept.wait(lambda: EVERYWHERE in server.asked)
    assert kept.metric("roost_webhook_unplaced_pods", "user") == 0
    server.forbidden.clear()
    kept.wait(lambda: kept.metric("roost_webhook_unplaced_pods", "user") == 1)
    over.set()


def test_builders_of_all_selected_namespaces_make_one_ring(server: FakeServer, kept: Kept) -> None:
    namespaces = [namespace("jhub"), namespace("physics", hub="yes"), namespace("stranger")]
    server.objects["/api/v1/namespaces", ""] = namespaces
    server.objects["/api/v1/pods", "component=image-builder"] = [
        pod(f"dind-{name}", "image-builder", node_name=name, namespace=namespace)
        for name, namespace in (("a", "jhub"), ("b", "physics"), ("c", "stranger"))
    ]
    hubs = {"build": {"match": {"namespaceSelector": {"matchLabels": {"hub": "yes"}}}}}
    kept.keeper.follow(settings(podClasses=hubs))
    kept.wait(lambda: kept.keeper.facts.builder_nodes.get("build", frozenset()) == {"a", "b"})


def test_rules_that_need_the_same_watches_keep_them(server: FakeServer, kept: Kept) -> None:
    kept.keeper.follow(settings(imageGate={"mode": "prefer"}))
    kept.wait(lambda: kept.keeper.readiness().passed)
    before = threading.active_count()
    kept.keeper.follow(settings(imageGate={"mode": "off"}))
    assert threading.active_count() == before


@pytest.mark.usefixtures("hasty")
def test_quotas_that_could_refuse_what_rules_add_are_known_by_namespace(
    server: FakeServer, kept: Kept
) -> None:
    quotas = object_of("quotas")
    server.objects[QUOTAS, ""], server.objects[OWN_QUOTAS, ""] = quotas, quotas[-1:]
    kept.keeper.follow(settings(podClasses={"build": None}))
    kept.wait(lambda: kept.keeper.readiness().passed)
    assert not {(QUOTAS, ""), (OWN_QUOTAS, "")} & server.asked
    kept.keeper.follow(settings())
    kept.wait(lambda: kept.keeper.facts.quotas == {"d": frozenset({"NotBestEffort"})})
    assert (QUOTAS, "") not in server.asked
    kept.keeper.follow(settings(**SHARED))
    guard, of_a = (
        frozenset({"CrossNamespacePodAffinity"}),
        frozenset({"requests.ephemeral-storage"}),
    )
    every = {"a": guard | of_a, "b": guard, "d": frozenset({"NotBestEffort"})}
    kept.wait(lambda: kept.keeper.facts.quotas == every)
    server.forbidden.add(QUOTAS)
    kept.wait(lambda: kept.keeper.facts.quotas is None)


@pytest.mark.usefixtures("hasty")
def test_what_device_classes_map_is_known_until_they_can_not_be_read(
    server: FakeServer, kept: Kept
) -> None:
    by_name = [
        {"metadata": {"name": name}, "spec": spec}
        for name, spec in (("a", {"extendedResourceName": "x/g"}), ("b", {}))
    ]
    server.objects[DEVICE_CLASSES, ""] = by_name
    kept.keeper.follow(settings())
    mapped = {"x/g", *(f"deviceclass.resource.kubernetes.io/{name}" for name in "ab")}
    kept.wait(lambda: kept.keeper.facts.claimable == mapped)
    server.forbidden.add(DEVICE_CLASSES)
    kept.wait(lambda: not kept.keeper.facts.claimable)


def priority_class(name: str, value: object, part_of: str = "") -> JSONObject:
    return {
        "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": part_of}},
        "value": value,
    }


@pytest.mark.usefixtures("hasty")
def test_the_lowest_priority_is_that_of_others_as_our_own_give_way(
    server: FakeServer, kept: Kept
) -> None:
    own = [
        priority_class("hub.jhub.roost-placeholder", -10, "roost"),
        priority_class("b.b.roost-puller", -5, "roost"),
    ]
    server.objects[PRIORITIES, ""] = [*own, priority_class("system-node-critical", 2_000_001_000)]
    kept.keeper.follow(settings())
    kept.wait(lambda: kept.keeper.readiness().passed)
    assert kept.keeper.facts.lowest_priority == 0
    batch = [priority_class("batch", -3), priority_class("hub.jhub.roost-puller", -1, "another")]
    server.objects[PRIORITIES, ""] = [*own, *batch]
    kept.wait(lambda: kept.keeper.facts.lowest_priority == -3)
    server.forbidden.add(PRIORITIES)
    kept.wait(lambda: kept.keeper.facts.lowest_priority == -(2**31))
    server.forbidden.clear()
    server.objects[PRIORITIES, ""] = own
    kept.wait(lambda: kept.keeper.facts.lowest_priority == 0)


def test_of_a_warm_class_the_facts_hold_pods_images_and_the_nodes_room(
    server: FakeServer, kept: Kept
) -> None:
    server.objects[NODES, ""] = [node("a", cpu="2", pods="10"), node("b")]
    server.objects[USERS] = [
        user("one", "a", "team/x"),
        user("two", "b", "team/y"),
        user("three", "", "team/z"),
    ]
    kept.keeper.follow(settings(podClasses={"user": {"warm": {"spare": 1}}}))
    kept.wait(
        lambda: (
            kept.keeper.facts.nodes is not None and len(kept.keeper.facts.warm["user"].pods) == 3
        )
    )
    facts = kept.keeper.facts
    assert facts.nodes is not None
    assert facts.nodes["a"].allocatable == {"cpu": 2000, "pods": 10}
    warm = facts.warm["user"]
    assert (warm.pods_on("a"), warm.pods_on("b"), warm.pods_on("")) == (1, 1, 1)
    assert warm.holds("a", IMAGE)
    assert not any(warm.holds(name, "docker.io/team/z:latest") for name in "ab")


@pytest.mark.parametrize(
    ("seconds", "fails"), [(WAITED_SECONDS - 1, False), (WAITED_SECONDS, True)]
)
def test_a_pod_gone_before_it_started_shows_no_image_and_after_seconds_that_the_pull_fails(
    seconds: float, fails: bool, server: FakeServer, kept: Kept
) -> None:
    starting, running = user("one", "a", "team/x"), user("two", "a", "team/y")
    starting["spec"]["containers"] += running["spec"]["containers"]
    # All pods may have this one.
    starting["spec"]["initContainers"] = [{"name": "init", "image": "team/shared"}]
    starting["status"]["phase"] = "Pending"
    server.objects[NODES, ""], server.objects[USERS] = [node("a")], [starting, running]
    kept.keeper.follow(settings(podClasses={"user": {"warm": {"spare": 1}}}))
    kept.wait_for_holders("a")
    kept.seconds, server.objects[USERS] = seconds, [running]
    kept.wait_for_holders()
    assert _failed(kept.keeper.facts) == ({FailedPull("a", IMAGE)} if fails else set())
    server.objects[NODES, ""] = [node("a", IMAGE)]
    kept.wait_for_holders("a")
    assert kept.keeper.facts.failed_pulls == {}


@pytest.mark.parametrize(
    ("policy", "listed", "verdict"),
    [
        # The node says that it has it: what failed is the registry, or a secret.
        ("Always", ["team/x:latest"], "holds"),
        ("IfNotPresent", ["team/x:latest"], "holds"),
        # It says all that it has, and lacks it.
        ("Always", ["team/z:latest"], "fails"),
        ("IfNotPresent", ["team/z:latest"], "fails"),
        # It may say only a part.
        ("Always", [f"team/z:{number}" for number in range(50)], ""),
        ("IfNotPresent", [f"team/z:{number}" for number in range(50)], "fails"),
    ],
)
def test_a_failed_pull_speaks_against_a_node_that_lacks_the_image(
    policy: str, listed: list[str], verdict: str, server: FakeServer, kept: Kept
) -> None:
    server.objects[NODES, ""] = [node("a", *listed)]
    kept.keeper.follow(settings(podClasses={"user": {"warm": {"spare": 1}}}))
    kept.wait(lambda: kept.keeper.facts.nodes is not None)
    server.objects[USERS] = [failing_user("bob", policy)]
    kept.wait(lambda: kept.keeper.facts.warm["user"].pods_on("a") == 1)
    assert _failed(kept.keeper.facts) == ({FailedPull("a", IMAGE)} if verdict == "fails" else set())
    assert kept.holders() == ({"a"} if verdict == "holds" else set())


def failing_user(name: str, policy: str) -> JSONObject:
    body = user(name, "a", "team/x")
    body["spec"]["containers"][0]["imagePullPolicy"] = policy
    waiting = {"name": "notebook", "state": {"waiting": {"reason": "ErrImagePull"}}}
    body["status"] = {"phase": "Pending", "containerStatuses": [waiting]}
    return body


def test_a_node_where_a_pod_runs_holds_its_image_whoever_fails_to_pull_it(
    server: FakeServer, kept: Kept
) -> None:
    server.objects[NODES, ""] = [node("a")]
    server.objects[USERS] = [user("ada", "a", "team/x"), failing_user("bob", "IfNotPresent")]
    kept.keeper.follow(settings(podClasses={"user": {"warm": {"spare": 1}}}))
    kept.wait_for_holders("a")
    assert kept.keeper.facts.failed_pulls == {}


@pytest.mark.parametrize("changes", [{}, {"webhook": {"readNodes": False}}])
def test_without_a_warm_set_a_start_given_up_is_no_failed_pull_where_the_image_has_run(
    changes: JSONObject, server: FakeServer, kept: Kept
) -> None:
    server.objects[NODES, ""], server.objects[USERS] = (
        [node("a"), node("b")],
        [user("one", "a", "team/x")],
    )
    kept.keeper.follow(settings(podClasses={"user": {"warm": None}}, **changes))
    kept.wait(lambda: kept.keeper.readiness().passed)
    starting = [user(f"start-{name}", name, "team/x") for name in "ab"]
    for pod in starting:
        pod["status"]["phase"] = "Pending"
    server.objects[USERS] += starting
    kept.wait(lambda: len(kept.starting_pods()) == 2)
    kept.seconds, server.objects[USERS] = WAITED_SECONDS, [user("one", "a", "team/x")]
    kept.wait(lambda: not kept.starting_pods())
    assert _failed(kept.keeper.facts) == {FailedPull("b", IMAGE)}


def test_a_webhook_that_starts_knows_the_images_that_nodes_report(
    server: FakeServer, kept: Kept
) -> None:
    holding = node("a", "team/x:latest", "team/y:latest")
    server.objects[NODES, ""] = [holding, node("b")]
    kept.keeper.follow(settings(podClasses=WARM))
    kept.wait_for_holders("a")
    # It pulls one while the webhook runs; the kubelet of the other removes one.
    server.objects[NODES, ""] = [holding, node("b", "team/x:latest")]
    kept.wait_for_holders("a", "b")
    server.objects[NODES, ""] = [node("a", "team/y:latest"), node("b", "team/x:latest")]
    kept.wait_for_holders("b")


@pytest.mark.parametrize("changes", rows("webhook/no-images-kept"))
def test_without_warm_sets_or_nodes_no_images_are_kept(
    changes: JSONObject, server: FakeServer, kept: Kept
) -> None:
    server.objects[NODES, ""] = [node("a", "team/x:1", cpu="2")]
    server.objects[USERS] = [user("one", "a", "team/x")]
    kept.keeper.follow(settings(**changes))
    kept.wait(lambda: kept.keeper.readiness().passed)
    facts = kept.keeper.facts
    assert facts.warm == {}
    if not changes:
        assert facts.nodes is not None
        assert (facts.nodes["a"].allocatable, facts.nodes["a"].images) == ({"cpu": 2000}, {})


@pytest.mark.usefixtures("hasty")
def test_a_lease_that_may_not_be_read_leaves_the_facts_without_it_and_is_told(
    server: FakeServer, kept: Kept
) -> None:
    server.forbidden.add("/apis/coordination.k8s.io/v1/namespaces/jhub/leases/hub-roost-scheduler")
    kept.keeper.follow(settings(**LEASES))
    kept.wait(lambda: kept.keeper.readiness().passed)
    assert kept.keeper.facts.leases == {"scheduler": LeaseState.UNKNOWN}
    assert "leases/hub-roost-scheduler is forbidden" in kept.keeper.readiness().detail


def test_without_a_scheduler_of_roosts_its_lease_is_nobodys_concern(kept: Kept) -> None:
    kept.keeper.follow(settings(scheduler={"target": "none"}, **LEASES))
    kept.wait(lambda: kept.keeper.readiness().passed)
    assert kept.keeper.facts.leases == {}


def test_pods_that_wait_for_roosts_scheduler_are_counted(server: FakeServer, kept: Kept) -> None:
    def user_of(scheduler: str, name: str, node_name: str = "", **metadata: Any) -> JSONObject:
        body = pod(name, "singleuser-server", node_name=node_name, **metadata)
        body["spec"]["schedulerName"] = scheduler
        return body

    server.objects[USERS] = [
        user_of("hub.jhub.user", "waits"),
        user_of("hub.jhub.user_strict", "waits-too"),
        user_of("hub.jhub.user", "bound", "a"),
        user_of("hub.jhub.user", "leaves", deletionTimestamp="2026-01-01T00:00:00Z"),
        user_of("default-scheduler", "another's"),
    ]
    kept.keeper.follow(settings())
    kept.wait(lambda: kept.metric("roost_webhook_pods_waiting_for_scheduler", "user") == 2)
    server.objects[USERS] = [user_of("hub.jhub.user", "waits", "a")]
    kept.wait(lambda: kept.metric("roost_webhook_pods_waiting_for_scheduler", "user") == 0)
    assert kept.metric("roost_webhook_pods_waiting_for_scheduler", "build") == 0


def share(server: FakeServer, *pods: JSONObject) -> None:
    server.objects[NODES, ""] = [node("a"), node("b")]
    namespaces = [namespace("jhub"), namespace("hub-b", pool="users"), namespace("stranger")]
    server.objects["/api/v1/namespaces", ""] = namespaces
    server.objects[EVERYWHERE] = list(pods)


def test_pods_of_hubs_that_share_the_nodes_count_in_warm_sets(
    server: FakeServer, kept: Kept
) -> None:
    share(
        server,
        user("one", "a", "team/x"),
        user("one", "b", "team/x", "hub-b"),
        user("on-its-way", "", "team/x", "hub-b"),
        user("one", "a", "team/y", "stranger"),
    )
    kept.keeper.follow(settings(podClasses=WARM, **SHARED))
    kept.wait(
        lambda: kept.keeper.facts.nodes is not None and bool(kept.keeper.facts.warm["user"].pods)
    )
    warm = kept.keeper.facts.warm["user"]
    assert (len(warm.pods), warm.pods_on("a"), warm.pods_on("b"), warm.pods_on("")) == (2, 1, 1, 0)
    assert warm.holders(IMAGE) == {"a", "b"}
    assert not warm.holders("docker.io/team/y:latest")
    # Only our own pods are ours to place: those two came without the webhook, and so did one of
    # ours.
    assert kept.metric("roost_webhook_unplaced_pods", "user") == 1
    server.objects[EVERYWHERE] = [user("one", "a", "team/x")]
    kept.wait(lambda: len(kept.keeper.facts.warm["user"].pods) == 1)
    assert kept.holders() == {"a", "b"}


def test_pods_of_other_hubs_are_read_for_warm_sets_alone(server: FakeServer, kept: Kept) -> None:
    share(server)
    kept.keeper.follow(settings(podClasses={"user": {"warm": None}}, **SHARED))
    kept.wait(lambda: kept.keeper.readiness().passed)
    paths = {path for path, _ in server.asked}
    assert paths == {NODES, DEVICE_CLASSES, PRIORITIES, QUOTAS, PODS}


def test_a_pod_of_another_hub_counts_in_the_class_that_it_would_have_here(
    server: FakeServer, kept: Kept
) -> None:
    other = user("one", "b", "team/x", "hub-b")
    other["metadata"]["labels"]["special"] = "yes"
    share(server, other, user("two", "b", "team/x", "hub-b"))
    special = {"match": {"labels": {"component": "singleuser-server", "special": "yes"}}}
    kept.keeper.follow(settings(podClasses={**WARM, "special": special}, **SHARED))
    kept.wait(
        lambda: kept.keeper.facts.nodes is not None and bool(kept.keeper.facts.warm["user"].pods)
    )
    assert set(kept.keeper.facts.warm["user"].pods) == {"hub-b/two"}
