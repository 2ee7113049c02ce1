"""The controllers' table of docs/beliefs.md: evidence stops, lags, or comes twice or late, and
every clock is wrong.

The real watches, the loop, the image gate and headroom run one step after the other, on a server
that notes what it has told; the other parts, where nothing depends on watches, by what they plan of
it. Each row has its property: PROPERTIES.
"""

import math
import random
from array import array
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.actions import (
    Action,
    ChangeNode,
    Done,
    KeepHistory,
    Notice,
    Outcome,
    ScaleSet,
)
from roost.controllers.contract.bookings import SETTLE_SECONDS
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost.controllers.image_gate.node_labels import SENTENCES, Opening
from roost.controllers.image_gate.plan import CONTROLLER
from roost.controllers.popular_images.plan import PopularMemory, plan_popular_images
from roost.controllers.runtime.loop import Loop
from roost.controllers.runtime.metrics import ControllersMetrics
from roost.controllers.runtime.watching.watched_cluster import WatchedCluster
from roost_core.kube.client import ApiError, ClusterError
from roost_core.kube.leader_election import Leadership
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import read_node
from roost_core.placement import beliefs
from roost_core.placement.headroom_history import History
from roost_core.placement.labels import (
    EVENTS_LABEL,
    HELD,
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_PART,
    OWN_PULLER,
    PART_OF_LABEL,
    PULLING,
    puller_container,
)
from roost_core.release.image_gate import GateMode
from roost_core.release.reader import Reader
from tests.builders import (
    IMAGE,
    NAMESPACE,
    RELEASE,
    expression,
    held,
    policy_document,
    requires_nodes,
)
from tests.evidence import FAULTS, Server, hear
from tests.gate_world import GateWorld, gate_settings
from tests.mover_world import MoverWorld
from tests.popular_builders import GB, at, cluster, node_state, popular_settings, pulls, user
from tests.unit.controllers.planners import planner_from

NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/pods"
SETS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets {PART_OF_LABEL}={OWN_PART}"
EVENTS: Final = f"/api/v1/namespaces/{NAMESPACE}/events"
BOOKINGS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps {EVENTS_LABEL}={RELEASE}"
KINDS: Final = (NODES, PODS, SETS, EVENTS, BOOKINGS)
NAMES: Final = ("a", "b")
# Users' pods, by what they request.
USERS: Final = ("cpu", "gpu")
DEADLINE_SECONDS: Final = 600
OPEN_AFTER_SECONDS: Final = 10
GATE: Final = {
    "mode": "requireLabel",
    "openAfterSeconds": OPEN_AFTER_SECONDS,
    "pullDeadlineSeconds": DEADLINE_SECONDS,
    "pullerPods": "roost",
}
SET: Final = "hub-roost-placeholder-default"
BOOKS: Final[JSONObject] = {"enabled": True, "booked": [], "configMaps": True}
LEAD_SECONDS: Final = 600
LIMITS: Final = {
    "leadMinutes": 10,
    "maxPeople": 500,
    "maxPlaceholders": 1000,
    "concurrentSpawnLimit": 64,
}
PLACEHOLDERS: Final = [{"name": "default", "statefulSet": SET, "replicas": 0, "windows": []}]
DOCUMENT: Final = policy_document(
    imageGate=GATE,
    placeholders=PLACEHOLDERS,
    events={**BOOKS, **LIMITS},
    seating={"enabled": False},
)
(LABEL,) = held(IMAGE)
GPU: Final = "nvidia.com/gpu"
# A plan is made each second; one that wasn't carried out is repeated within ten.
SLACK_SECONDS: Final = 12.0
LATEST_SECONDS: Final = OPEN_AFTER_SECONDS + SLACK_SECONDS


LISTED: Final[JSONObject] = {"names": ["busybox:1"], "sizeBytes": 1}
Check = Callable[["Cluster", list[ChangeNode]], None]


class Cluster:
    """A cluster whose timestamps differ from the controllers' clock, which jumps, and one replica
    of them.
    """

    def __init__(self, skew: float) -> None:
        self.server = Server()
        self.wall = 1_800_000_000.0
        self.skew = skew
        self.leads = True
        self.made = 0
        self.written: list[ChangeNode] = []
        self.plans = 0
        release = ReleaseDocument(Reader(), DOCUMENT, None, 36)
        planners = [
            planner
            for one in (CONTROLLER, HEADROOM)
            if (planner := one.planner(release)) is not None
        ]
        self.metrics = ControllersMetrics(
            "test", [gauge for planner in planners for gauge in planner.gauges]
        )
        assert release.events is not None
        self.cluster = WatchedCluster(
            cast("Any", self.server),
            release,
            on_change=lambda: None,
            clock=lambda: self.server.now,
            wall=lambda: self.wall,
        )
        self.server.happen(
            SETS, SET, {"metadata": {"name": SET, "uid": "set"}, "spec": {"replicas": 0}}
        )
        self.loop = Loop(
            planners,
            self._snapshot,
            cast("Any", self),
            self.metrics,
            is_leader=lambda: self.leads,
            is_current=lambda: self.cluster.readiness().passed,
            follow=self.cluster.follow,
            wall=lambda: self.wall,
            steady=lambda: self.server.now,
        )
        # Since when, by our clock and without a gap, each of these is known and plans are made.
        self.since: dict[tuple[str, str], float] = {}
        # By uid: when it was first told. What was there when the watches began, and when this
        # replica began to lead.
        self.seen: dict[str, float] = {}
        self.at_start: set[str] | None = None
        self.before: set[str] = set()
        self.has_planned = self.has_just_planned = False
        # By node's uid: when something said last that it holds the image, until its list did; and
        # the pods that had.
        self.said: dict[str, float] = {}
        self.looked: dict[str, set[str]] = {}

    def _snapshot(self) -> Any:
        self.plans += 1
        return self.cluster.snapshot()

    # In place of the applier, which the loop asks for its budgets, too.

    evictions = writes = property(lambda self: self)
    left = per_minute = 0

    def spend_all(self) -> None:
        """There is nothing to evict."""

    def apply(self, actions: list[Action]) -> list[Done]:
        for action in actions:
            if isinstance(action, ScaleSet):
                body = {
                    "metadata": {"name": SET, "uid": "set"},
                    "spec": {"replicas": action.replicas},
                }
                self.server.happen(SETS, SET, body)
            node = self.server.kind(NODES).objects.get(getattr(action, "node", ""))
            if (
                isinstance(action, ChangeNode)
                and node is not None
                and node["metadata"]["uid"] == action.uid
            ):
                self.written.append(action)
                labels = {**node["metadata"]["labels"], **action.set_labels}
                labels = {
                    key: value for key, value in labels.items() if key not in action.remove_labels
                }
                self.server.happen(
                    NODES, action.node, {**node, "metadata": {**node["metadata"], "labels": labels}}
                )
        return [Done(action, Outcome.DONE) for action in actions]

    # What happens.

    def book(self, name: str, rng: random.Random) -> None:
        """A ConfigMap books one event, at a time or at several, or none."""
        start, people = self.wall // 60 * 60 + 60 * rng.randint(-20, 15), rng.randint(1, 90)
        begins = f"{datetime.fromtimestamp(start, UTC):%Y-%m-%dT%H:%M}"
        event = {"name": "x", "people": people, "start": begins, "timeZone": "UTC"}
        if rng.random() < 0.5:
            event |= {"start": ["2019-05-22T09:00", begins], "calendar": "course.ics"}
        body = {
            "metadata": {"name": name, "uid": name},
            "data": {"events.yaml": yaml.safe_dump([event])},
        }
        self.server.happen(BOOKINGS, name, rng.choice([body, body, None]))

    def books(self) -> list[tuple[float, int]]:
        """Beginning and people of all that is booked, as last told."""
        told = [
            yaml.safe_load(one["data"]["events.yaml"])[0]
            for one in self.server.kind(BOOKINGS).told.values()
        ]
        # Of several the last: the others are past.
        listed = [one["start"] for one in told]
        texts = [start[-1] if isinstance(start, list) else start for start in listed]
        starts = [datetime.fromisoformat(f"{text}+00:00").timestamp() for text in texts]
        return [*zip(starts, (one["people"] for one in told), strict=True)]

    def timestamp(self) -> str:
        return datetime.fromtimestamp(self.wall + self.skew, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def join(self, name: str, *, is_ready: bool = True) -> None:
        self.made += 1
        metadata = {
            "name": name,
            "uid": f"{name}-{self.made}",
            "labels": {},
            "creationTimestamp": self.timestamp(),
        }
        status = {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}, "images": [LISTED]}
        self.server.happen(NODES, name, {"metadata": metadata, "spec": {}, "status": status})
        self.change(name, conditions=self._conditions(is_ready))

    def _conditions(self, is_ready: bool) -> list[JSONObject]:
        return [{"type": "Ready", "status": str(is_ready), "lastTransitionTime": self.timestamp()}]

    def change(self, name: str, **status: Any) -> None:
        if node := self.server.kind(NODES).objects.get(name):
            self.server.happen(NODES, name, {**node, "status": {**node["status"], **status}})

    def get_ready(self, name: str) -> None:
        self.change(name, conditions=self._conditions(True))

    def _pod(self, name: str, labels: JSONObject, spec: JSONObject, status: JSONObject) -> None:
        self.made += 1
        metadata: JSONObject = {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"{name}-{self.made}",
            "labels": labels,
        }
        metadata["creationTimestamp"] = self.timestamp()
        self.server.happen(
            PODS,
            name,
            {"metadata": metadata, "spec": spec, "status": {"phase": "Pending", **status}},
        )

    def pull(self, node: str, *, is_there: bool = False) -> None:
        """A puller's pod comes, or has pulled."""
        labels = {
            PART_OF_LABEL: OWN_PART,
            OWN_COMPONENT_LABEL: OWN_PULLER,
            OWN_INSTANCE_LABEL: RELEASE,
        }
        name = puller_container(IMAGE)
        state = {"running": {}} if is_there else {"waiting": {"reason": "ContainerCreating"}}
        waiting = {"name": name, "image": IMAGE, "imageID": "1" * is_there, "state": state}
        spec = {"nodeName": node, "containers": [{"name": name, "image": IMAGE}]}
        self._pod(f"puller-{node}", labels, spec, {"containerStatuses": [waiting]})

    def come(self, kind: str) -> None:
        gate = {"matchExpressions": [expression(LABEL, PULLING, operator="NotIn")]}
        requests = {"cpu": "1", **({GPU: "1"} if kind == "gpu" else {})}
        container = {"name": "notebook", "image": IMAGE, "resources": {"requests": requests}}
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        spec = {"affinity": requires_nodes(gate), "containers": [container]}
        conditions = [{**waits, "lastTransitionTime": self.timestamp()}]
        self._pod(kind, {"component": "singleuser-server"}, spec, {"conditions": conditions})

    # Time passes.

    def pass_time(self, seconds: float, check: Check) -> None:
        for _ in range(round(seconds)):
            self.server.now += 1
            self.wall += 1
            for cache in self.cluster.caches:
                hear(cache)
            plans, written = self.plans, len(self.written)
            self.loop.turn()
            has_planned = self.plans > plans
            self.has_just_planned = has_planned
            self._note(has_planned=has_planned)
            check(self, self.written[written:])

    def is_fresh(self, seconds: float = beliefs.SNAPSHOT.age_seconds) -> bool:
        heard = [self.server.kind(key).heard_at for key in KINDS]
        return all(at is not None and self.server.now - at <= seconds for at in heard)

    def _note(self, *, has_planned: bool) -> None:
        nodes, pods = self.server.kind(NODES).told, self.server.kind(PODS).told
        users = {name: pod for name, pod in pods.items() if name in USERS}
        uids = {body["metadata"]["uid"] for body in (*nodes.values(), *pods.values())}
        if self.at_start is None and self.server.kind(NODES).heard_at is not None:
            self.at_start = uids
        self.seen = {uid: self.seen.get(uid, self.server.now) for uid in uids}
        if has_planned and not self.has_planned:
            self.before = uids
        self.has_planned = self.leads and (has_planned or self.has_planned)
        self.looked = {uid: seen for uid, seen in self.looked.items() if self.leads and uid in uids}
        for name, node in nodes.items() if has_planned else ():
            uid, puller = node["metadata"]["uid"], pods.get(f"puller-{name}")
            has_pulled = (
                puller is not None
                and "running" in puller["status"]["containerStatuses"][0]["state"]
            )
            pulled = (
                {puller["metadata"]["uid"]} if puller is not None and has_pulled else set[str]()
            )
            is_said = (
                pulled - self.looked[uid]
                if uid in self.looked
                else node["metadata"]["labels"].get(LABEL) == HELD
            )
            self.said |= {uid: self.server.now} if is_said else {}
            self.looked[uid] = pulled
            if is_listed(node):
                self.said.pop(uid, None)
        known = set[tuple[str, str]]()
        if has_planned and self.is_fresh(1):
            lacking = {
                name: node
                for name, node in nodes.items()
                if node["metadata"]["labels"].get(LABEL) != HELD
            }
            known = {
                ("missing", node["metadata"]["uid"]) for node in lacking.values() if is_ready(node)
            }
            known |= {
                ("unattended", node["metadata"]["uid"])
                for name, node in lacking.items()
                if is_ready(node) and f"puller-{name}" not in pods
            }
            known |= {("waits", pod["metadata"]["uid"]) for pod in users.values()}
            known |= {("there", node["metadata"]["uid"]) for node in nodes.values()}
            known |= {
                (f"listed {is_listed(node)}", node["metadata"]["uid"]) for node in nodes.values()
            }
            known |= {("said", uid) for uid in self.said}
        self.since = {key: self.since.get(key, self.server.now) for key in known}

    def seconds(self, what: str, item: JSONObject) -> float:
        return self.server.now - self.since.get((what, item["metadata"]["uid"]), self.server.now)

    def age(self, item: JSONObject) -> float:
        """By our clock, since it was first told."""
        return self.server.now - self.seen[item["metadata"]["uid"]]

    @property
    def closed(self) -> dict[str, JSONObject]:
        nodes = self.server.kind(NODES)
        there = {name: node for name, node in nodes.objects.items() if name in nodes.told}
        return {
            name: node
            for name, node in there.items()
            if node["metadata"]["labels"].get(LABEL) == PULLING
        }

    def opened(self, written: list[ChangeNode]) -> list[JSONObject]:
        """Nodes that were opened just now as a user waits."""
        return [
            self.server.kind(NODES).told[one.node]
            for one in written
            if SENTENCES[Opening.USER_WAITS] in one.why
        ]

    def is_of_start(self, node: JSONObject) -> bool:
        """Whether its timestamps say how young it is."""
        return self.at_start is None or node["metadata"]["uid"] in self.at_start

    def is_of_before(self, item: JSONObject) -> bool:
        """Whether it was there when this replica began to lead: then the cluster's timestamps
        count.
        """
        return item["metadata"]["uid"] in self.before


def is_listed(node: JSONObject) -> bool:
    return any(IMAGE in image["names"] for image in node["status"]["images"])


def is_ready(node: JSONObject) -> bool:
    # A watch may break off between a node's creation and its first condition.
    return any(condition["status"] == "True" for condition in node["status"].get("conditions", ()))


# What must hold at each moment, by row of the table.


def check_snapshot(cluster: Cluster, _written: list[ChangeNode]) -> None:
    assert cluster.has_just_planned is (cluster.leads and cluster.is_fresh())


def check_coming(cluster: Cluster, _written: list[ChangeNode]) -> None:
    for node in cluster.closed.values():
        assert cluster.seconds("missing", node) <= DEADLINE_SECONDS + SLACK_SECONDS
        assert cluster.seconds("unattended", node) <= beliefs.COMING.age_seconds + SLACK_SECONDS


def check_waits(cluster: Cluster, written: list[ChangeNode]) -> None:
    pods, closed = cluster.server.kind(PODS).told, cluster.closed
    open_to_be = [node for node in closed.values() if is_ready(node)]
    if "cpu" in pods and open_to_be and closed.keys() == cluster.server.kind(NODES).told.keys():
        missing = min(cluster.seconds("missing", node) for node in open_to_be)
        assert min(cluster.seconds("waits", pods["cpu"]), missing) <= LATEST_SECONDS
    if cluster.opened(written):
        users = [pod for name, pod in pods.items() if name in USERS]
        assert any(
            cluster.age(pod) >= OPEN_AFTER_SECONDS - 1 or cluster.is_of_before(pod) for pod in users
        )


def check_devices(cluster: Cluster, written: list[ChangeNode]) -> None:
    pods = cluster.server.kind(PODS).told
    for node in cluster.closed.values() if "gpu" in pods else ():
        is_young = (
            not cluster.is_of_start(node)
            and cluster.age(node) <= beliefs.DEVICES.age_seconds - SLACK_SECONDS
        )
        if is_young and is_ready(node):
            assert (
                min(cluster.seconds("waits", pods["gpu"]), cluster.seconds("missing", node))
                <= LATEST_SECONDS
            )
    for node in cluster.opened(written) if "cpu" not in pods else ():
        assert (
            cluster.is_of_start(node)
            or not is_ready(node)
            or cluster.age(node) <= beliefs.DEVICES.age_seconds
        )


def check_starting(cluster: Cluster, written: list[ChangeNode]) -> None:
    pods = cluster.server.kind(PODS).told
    starting = [
        node
        for node in cluster.closed.values()
        if not is_ready(node) and not cluster.is_of_start(node)
    ]
    starting = [
        node
        for node in starting
        if cluster.age(node) <= beliefs.STARTING.age_seconds - SLACK_SECONDS
    ]
    if "cpu" in pods and starting and len(starting) == len(cluster.server.kind(NODES).told):
        there = min(cluster.seconds("there", node) for node in starting)
        assert min(cluster.seconds("waits", pods["cpu"]), there) <= LATEST_SECONDS
    for node in cluster.opened(written):
        assert (
            is_ready(node)
            or cluster.is_of_start(node)
            or cluster.age(node) <= beliefs.STARTING.age_seconds
        )


def check_list(cluster: Cluster, _written: list[ChangeNode]) -> None:
    for name, node in cluster.server.kind(NODES).told.items():
        labels = cluster.server.kind(NODES).objects.get(name, node)["metadata"]["labels"]
        age = cluster.server.now - cluster.said.get(node["metadata"]["uid"], -math.inf)
        if cluster.seconds("listed True", node) > SLACK_SECONDS or (
            cluster.seconds("said", node) > SLACK_SECONDS
            and age <= beliefs.LIST_LAGS.age_seconds - SLACK_SECONDS
        ):
            assert labels.get(LABEL) == HELD
        elif (
            cluster.seconds("listed False", node) > SLACK_SECONDS
            and age > beliefs.LIST_LAGS.age_seconds + SLACK_SECONDS
        ):
            assert labels.get(LABEL) != HELD


def play_silent(rng: random.Random) -> None:
    """A puller pulls, and the node's list can't show it, or shows it by another name."""
    tag = rng.choice(["1", "2026-11", "latest"])
    path = rng.choice(["team/lab", "lab", "a/b/lab"])
    digests = rng.randint(0, 5)
    names = [f"quay.io/{path}@sha256:{rng.randbytes(32).hex()}" for _ in range(digests)]
    names += [f"quay.io/{path}:old-{number}" for number in range(5 - digests)]
    by_five_names = rng.random() < 0.5
    image = f"quay.io/{path}:{tag}" if by_five_names else f"{path}:{tag}"
    shown = names if by_five_names else [f"{rng.choice(['quay.io', 'ghcr.io'])}/{path}:{tag}"]
    world = GateWorld(gate_settings(image, mode=rng.choice([*GateMode][:2])))
    world.add_node("a", runtime_version=rng.choice(["cri-o://1.34.1", "", "cri-o://1.36.0"]))
    pod = world.puller("a")
    world.turn()
    world.pulled_event(pod, image)
    body = {
        "metadata": {"name": "a"},
        "status": {"images": [{"names": shown, "sizeBytes": 5 * GB}, LISTED]},
    }
    read = read_node(body)
    messages = set[str]()
    ends = rng.random() < 0.5
    for _ in range(rng.randint(1, 20)):
        world.set_fact(images=read.images, image_count=read.image_count)
        planned = world.turn(rng.choice([1.0, 10.0, 100.0, 1000.0]))
        messages |= {act.message for act in planned.actions if isinstance(act, Notice)}
        assert set(world.labels().values()) == {HELD}
    assert not any("removed" in message for message in messages)
    assert all(f"{image} was pulled" in message for message in messages)
    if ends:
        # What a kubelet does only if the node lacks the image.
        world.fail(pod, image, f'failed to pull image "{image}": not found')
        world.events.clear()
        world.turn(beliefs.LIST_LAGS.age_seconds + 1)
        assert HELD not in world.labels().values()


def check_booked(cluster: Cluster, _written: list[ChangeNode]) -> None:
    if cluster.has_just_planned:
        assert cluster.metrics.registry.get_sample_value(
            "roost_controllers_headroom_replicas", {"set": "default"}
        ) == sum(
            people
            for start, people in cluster.books()
            if -LEAD_SECONDS <= cluster.wall - start < SETTLE_SECONDS
        )


def do(cluster: Cluster, rng: random.Random, what: str) -> None:
    name = rng.choice(NAMES)
    match what:
        case "join":
            cluster.join(name)
        case "join unready":
            cluster.join(name, is_ready=False)
        case "get ready":
            cluster.get_ready(name)
        case "leave":
            cluster.server.happen(NODES, name, None)
        case "pull" | "pulled":
            cluster.pull(name, is_there=what == "pulled")
        case "list":
            cluster.change(
                name, images=[LISTED, {"names": [IMAGE], "sizeBytes": 1}][: rng.choice([1, 1, 2])]
            )
        case "drop":
            cluster.server.happen(PODS, f"puller-{name}", None)
        case "cpu" | "gpu":
            cluster.come(what)
        case "go":
            cluster.server.happen(PODS, rng.choice(USERS), None)
        case "book":
            cluster.book(name, rng)
        case "clock":
            cluster.wall += rng.choice([-7200, -60, 60, 7200])
        case "lead":
            cluster.leads = False
            cluster.pass_time(2, check_snapshot)
            cluster.leads = True
        case "stop":
            mode = rng.choice(
                ["silent", "lags", "repeats", "out of order", "out of reach", 401, 403, 410]
            )
            cluster.server.kind(rng.choice(KINDS)).mode = cast("Any", mode)
        case "well":
            for kind in cluster.server.kinds.values():
                kind.mode = "ok"


def play(check: Check, often: str, rng: random.Random) -> None:
    """Whatever becomes of evidence and clocks. often: what happens besides."""
    cluster = Cluster(rng.choice([-7200.0, -60.0, 0.0, 60.0, 7200.0]))
    for name in NAMES:
        if rng.random() < 0.5:
            cluster.join(name)
    cluster.pass_time(2, check)
    happenings = [
        "join",
        "leave",
        "pull",
        "drop",
        "clock",
        "lead",
        "stop",
        "well",
        *6 * often.split(","),
    ]
    for _ in range(10):
        do(cluster, rng, rng.choice(happenings))
        cluster.pass_time(rng.choice([1, 3, 12, 40, 190, 310]), check)


class Leases:
    """One Lease, which two replicas are told late or not at all."""

    def __init__(self) -> None:
        self.versions: list[JSONObject] = []
        self.mode: str | int = "ok"

    def find(self, _path: str, **_: Any) -> JSONObject | None:
        if self.mode in FAULTS:
            raise FAULTS[self.mode]
        return self.versions[-2:][0 if self.mode == "lags" else -1] if self.versions else None

    get = find

    def create(self, _path: str, body: JSONObject) -> JSONObject:
        return self.replace(_path, body)

    def replace(self, _path: str, body: JSONObject, **_: Any) -> JSONObject:
        self.find("")
        if int(body["metadata"].get("resourceVersion", 0)) != len(self.versions):
            raise ApiError(409, "changed")
        self.versions.append({**body, "metadata": {"resourceVersion": str(len(self.versions) + 1)}})
        if self.mode == "answer lost":
            raise ClusterError("no answer")
        return self.versions[-1]


def play_lease(rng: random.Random) -> None:
    now, leases = 0.0, Leases()
    starts = [0.0, rng.choice([0.0, 9e6])]
    replicas = [
        Leadership(
            cast("Any", leases),
            NAMESPACE,
            "lease",
            name,
            clock=partial(lambda start: start + now, start),
        )
        for name, start in zip(NAMES, starts, strict=True)
    ]
    renewed = dict.fromkeys(NAMES, -math.inf)
    well_since = 0.0
    for _ in range(60):
        leases.mode = cast(
            "str", rng.choice(["ok", "ok", "ok", "lags", "answer lost", "out of reach", 401, 403])
        )
        hung = rng.choice(["", "", *NAMES])
        for _ in range(rng.choice([1, 5, 20])):
            now += rng.choice([1.0, 2.0])
            for replica, name in zip(replicas, NAMES, strict=True):
                before = len(leases.versions)
                if name != hung:
                    replica.try_once()
                if len(leases.versions) > before:
                    renewed[name] = now
            well_since = well_since if leases.mode == "ok" and not hung else now
            leading = [
                name for replica, name in zip(replicas, NAMES, strict=True) if replica.is_leader
            ]
            assert len(leading) <= 1
            assert all(now - renewed[name] < beliefs.LEADS.age_seconds for name in leading)
            assert leading or now - well_since <= beliefs.LEADS.age_seconds + 2 * 2.0


def play_mover(rng: random.Random) -> None:
    """The model of the scheduler is wrong, or right, and it is long seen or soon where a
    placeholder went.
    """
    world = MoverWorld(placeholders=5, evictionsPerMinute=60)
    world.add_node("old")
    world.fill_placeholders()
    world.run(3600)
    world.add_node("new")
    world.schedules = False
    began, until, failures = 0.0, 0.0, 0
    for _ in range(400):
        world.run(rng.choice([1.0, 5.0, 30.0]))
        assert not any(began <= eviction.at < until for eviction in world.evictions)
        for pod in [pod for pod in world.pods.values() if not pod.node_name]:
            # Which plan sees it, the last of a pause or the next one, is a matter of a second.
            is_at_pauses_end = abs(world.now - until) < 4.0
            if rng.random() < 0.5 and not is_at_pauses_end:
                is_right = rng.random() < 0.4
                (target,) = world.marked()
                world.land(pod, target if is_right else "old")
                world.run(1.0)
                if not is_right and world.now >= until:
                    failures += 1
                    began, until = (
                        world.now,
                        world.now + min(900.0, 60.0 * 2 ** (failures - 1)) - 2.0,
                    )
                elif is_right and world.now >= until:
                    failures = 0
    assert world.evictions


def play_learning(rng: random.Random) -> None:
    """Stored days come late, again, or older ones after newer; nobody looks for some minutes."""
    noon = 1_800_000_000.0 + 4 * 3600
    days, gap = rng.choice([1, 1, 2, 7, 30, 70]), rng.choice([0, 0, 1, 20, 50, 54, 55, 60])
    levels = array("i", [0] * 60 + ([0, *[50] * 59] + [0] * 1380) * days)
    stored = History(int(noon // 60) - (days + gap) * 1440 - 60, levels).as_text() if days else ""
    learn = {"min": 1, "max": 60, "timeZone": "UTC"}
    resources = {"requests": {"cpu": "100m", "memory": "1Gi"}}
    prices = {"waitingHour": 4, "nodeHour": 0.4, "monthlyCeiling": 200}
    entry = {
        **PLACEHOLDERS[0],
        "replicas": 3,
        "learn": learn,
        "prices": prices,
        "resources": resources,
    }
    changed = {"placeholders": [entry], "events": {"enabled": False}}
    document = {**DOCUMENT, **changed, "headroomHistory": "history"}
    planner = planner_from(HEADROOM, document)
    sets = {SET: StatefulSetState(SET, "uid", 7)}
    now, histories = 0.0, cast("Mapping[str, str] | None", None)

    def number() -> float:
        snapshot = Snapshot(RELEASE, NAMESPACE, stateful_sets=sets, histories=histories)
        planned = planner.plan(snapshot, Moment(noon - 120 + now, now))
        hours.append(planned.gauges["headroom_learned_hours"]["default",])
        written.extend(
            action.data["default"] for action in planned.actions if isinstance(action, KeepHistory)
        )
        return planned.gauges["headroom_replicas"]["default",]

    hours: list[float] = []
    written: list[str] = []
    for now in (0.0, rng.choice([10.0, 50.0]), rng.choice([70.0, 100.0])):
        assert number() == (7 if now < 60 else 3)
    now, histories = 120.0, {"default": stored}
    known = sum(day <= 56 for day in range(gap + 1, gap + days + 1))
    if known < 2:
        assert number() == 3
    else:
        assert number() >= (20 if known >= 7 else 3)
    minutes = round(60 * hours[-1])
    for _ in range(20 if days + gap < 55 else 0):
        pause = rng.choice([1, 5, 6, 7, 60 - int(now // 60 - 2) % 60])
        now += 60.0 * pause
        if written and rng.random() < 0.2:
            histories = {"default": written[-1]}
        number()
        minutes += pause if pause - 1 <= 5 else 1
        assert round(60 * hours[-1]) == minutes


def play_popular(rng: random.Random) -> None:
    """Users run, end and are seen late, by one leader or another."""
    images = [f"quay.io/lab/image-{number}:1" for number in range(3)]
    nodes = [
        node_state("holder", images=dict.fromkeys(images, GB), unschedulable=True),
        node_state("a"),
    ]
    planning, memory = popular_settings(), PopularMemory()
    here: dict[str, str] = {}
    told: dict[str, str] = {}
    ended: list[tuple[str, float]] = []
    held: dict[str, int] = {}
    now = 0.0
    for number in range(40):
        now += rng.choice([30.0, 120.0, 3600.0, 43_200.0, 86_400.0])
        match rng.choice(["come", "come", "go", "lead", "collect"]):
            case "come":
                here |= {
                    f"user-{number}-{index}": rng.choice(images)
                    for index in range(rng.randint(1, 2))
                }
            case "go":
                here = {name: image for name, image in here.items() if rng.random() < 0.5}
            case "lead":
                memory, ended, told = PopularMemory(), [], {}
            case "collect":
                held = {}
        if rng.random() < 0.7:
            ended += [(image, now) for name, image in told.items() if name not in here]
            told = dict(here)
        pods = [user(name, image) for name, image in told.items()]
        rng.shuffle(pods)
        planned = plan_popular_images(
            cluster([nodes[0], replace(nodes[1], images=held)], pods), memory, planning, at(now)
        )
        memory = planned.memory
        users = {
            image: sum(one == image for one in told.values())
            + sum(0.5 ** ((now - when) / 86_400) for one, when in ended if one == image)
            for image in images
        }
        assert all(
            abs(memory.demand.users.get(image, 0.0) - users[image]) < 0.05 for image in images
        )
        for _, image in pulls(planned):
            assert users[image] >= 2 - 1e-6
            held |= {image: GB}


# How the evidence of each row of the table is played with.
PROPERTIES: Final[dict[beliefs.Belief, Callable[[random.Random], None]]] = {
    beliefs.SNAPSHOT: partial(play, check_snapshot, "stop,well"),
    beliefs.LEADS: play_lease,
    beliefs.COMING: partial(play, check_coming, "pull,drop"),
    beliefs.WAITS: partial(play, check_waits, "cpu,cpu,gpu,go"),
    beliefs.LIST_LAGS: partial(play, check_list, "pulled,list"),
    beliefs.LIST_SILENT: play_silent,
    beliefs.STARTING: partial(play, check_starting, "join unready,cpu,get ready,leave"),
    beliefs.DEVICES: partial(play, check_devices, "gpu,gpu,pull,join"),
    beliefs.MOVED: play_mover,
    beliefs.BOOKED: partial(play, check_booked, "book,book,book"),
    beliefs.LEARNED: play_learning,
    beliefs.POPULAR: play_popular,
}


@pytest.mark.parametrize("belief", beliefs.CONTROLLERS, ids=lambda belief: belief.name)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_each_belief_ends_with_its_age_and_is_used_until_then(
    belief: beliefs.Belief, seed: int
) -> None:
    PROPERTIES[belief](random.Random(seed))
