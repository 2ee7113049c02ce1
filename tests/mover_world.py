"""A cluster as a model, on a clock that a test moves, with the real controllers' loop at work in
it.

Rendered values give the placeholders' template, the scheduler's profiles and the controllers'
settings. The model of kube-scheduler places pods and pre-empts; the rest (StatefulSet controller,
API server) is as little as the mover needs: an evicted placeholder is gone at once, created anew a
second later, and bound half a second after that.
"""

from __future__ import annotations

import heapq
import itertools
import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import yaml

from generator.render.manifests import render
from generator.values.release_name import Release
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Snapshot, StatefulSetState
from roost.controllers.placeholder_mover.plan import CONTROLLER as PLACEHOLDER_MOVER
from roost.controllers.placeholder_mover.settings import MoverSettings, read_mover_settings
from roost.controllers.runtime.apply import Applier
from roost.controllers.runtime.budget import MinuteBudget
from roost.controllers.runtime.events import EventWriter
from roost.controllers.runtime.loop import SETTLE_SECONDS, Loop
from roost.controllers.runtime.metrics import ControllersMetrics
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import Owner, Pod
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import attract_label, pulled_label
from roost_core.release.reader import Reader
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import read_profiles
from roost_core.scheduler.state import ClusterState
from tests.builders import (
    IMAGE,
    NAMESPACE,
    RELEASE,
    Desk,
    default_values,
    facts,
    merged,
    user_pod,
    without_mover_times,
)
from webhook.webhook_settings import parse_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


START: Final = 1_800_000_000.0
RECREATE_SECONDS: Final = 1.0
SCHEDULE_SECONDS: Final = 0.5
STRANGER: Final = "agent"
NOT_READY: Final = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
LABEL: Final = attract_label(RELEASE, NAMESPACE, "default")
PULLED: Final = pulled_label(RELEASE, NAMESPACE, IMAGE)
_NAME, _, _TAG = IMAGE.partition(":")


@dataclass
class Eviction:
    """One eviction that was carried out, and where the successor went."""

    at: float
    pod: str
    source: str
    # Of the set, when it was carried out.
    marked: str
    landed: str = ""
    landed_at: float = math.inf


class _Api:
    def __init__(self, world: MoverWorld) -> None:
        self._world = world

    def create(self, path: str, body: JSONObject) -> JSONObject:
        if path.endswith("/eviction"):
            self._world.on_eviction(
                body["metadata"]["name"], body["deleteOptions"]["preconditions"]["uid"]
            )
        else:
            self._world.said.append(f"{body['reason']}: {body['message']}")
        return {}

    def merge(self, path: str, body: JSONObject, _manager: str) -> JSONObject:
        if "/events/" in path:
            # Told again.
            return {}
        kind, _, name = path.partition("/api/v1/")[2].partition("/")
        assert kind == "nodes", path
        self._world.on_labels(name, body["metadata"]["uid"], body["metadata"]["labels"])
        return {}


class MoverWorld:
    """Nodes, users and one set of placeholders.

    `run` moves the clock; `at` does something at a moment.
    """

    def __init__(self, placeholders: int = 5, **mover: object) -> None:
        changes, times = without_mover_times(
            {"placeholderMover": mover, "singleuser": {"image": {"name": _NAME, "tag": _TAG}}}
        )
        values = merged(default_values(), changes)
        values["placeholders"][0]["replicas"] = placeholders
        self.values = values
        manifests = [one.body for one in render(values, Release(RELEASE, NAMESPACE))]
        self.document = json.loads(_data(manifests, "release.json"))
        self.document["placeholderMover"] |= times
        self.configuration: JSONObject = yaml.safe_load(_data(manifests, ".yaml"))
        self._template: Any = next(
            manifest for manifest in manifests if manifest["kind"] == "StatefulSet"
        )
        self._rules = parse_settings(json.loads(_data(manifests, "release.json")), "revision0001")
        self._profiles = read_profiles(self.configuration, NEWEST_MINOR)
        self.placeholders = placeholders
        self.now = START
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self._state = ClusterState()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._turn_at = math.inf
        self.evictions: list[Eviction] = []
        self.touched_users = 0
        self.preempted = 0
        self.said: list[str] = []
        # Evictions are refused, as a PodDisruptionBudget does.
        self.refuses = False
        # False: nobody places pods.
        self.schedules = True
        self.turns = 0
        self.start_leader()

    # The controllers

    def mover_settings(self) -> MoverSettings:
        """What the mover is set to."""
        read = Reader()
        settings = read_mover_settings(
            ReleaseDocument(read, self.document, self.configuration, NEWEST_MINOR)
        )
        assert not read.faults
        return settings

    def start_leader(self) -> None:
        """A replica that knows nothing takes over."""
        read = Reader()
        planner = PLACEHOLDER_MOVER.planner(
            ReleaseDocument(read, self.document, self.configuration, NEWEST_MINOR)
        )
        assert planner is not None
        assert not read.faults
        api: Any = _Api(self)
        self.budget = MinuteBudget(
            self.document["placeholderMover"]["evictionsPerMinute"], self.clock
        )
        budgets: dict[str, Any] = {
            "writes": MinuteBudget(600, self.clock),
            "evictions": self.budget,
        }
        events = EventWriter(api, "me", self.clock)
        self.applier = Applier(api, NAMESPACE, **budgets, events=events, may_write=lambda: True)
        self.metrics = ControllersMetrics("test", planner.gauges)
        self.planner = planner
        world: dict[str, Any] = {"wall": self.clock, "steady": self.clock}
        world |= {"is_leader": lambda: True, "is_current": lambda: True}
        self._loop = Loop([planner], self.snapshot, self.applier, self.metrics, **world)
        self._wake(0.0)

    def clock(self) -> float:
        return self.now

    def snapshot(self) -> Snapshot:
        """The cluster as watches would have it."""
        name = self._template["metadata"]["name"]
        sets = {name: StatefulSetState(name, "uid-set", self.placeholders)}
        return Snapshot(RELEASE, NAMESPACE, self.nodes, self.pods, sets)

    def gauge(self, name: str, *labels: str) -> float:
        found = [
            line
            for line in self.metrics.text().decode().splitlines()
            if line.startswith(f"roost_controllers_{name}")
        ]
        return sum(
            float(line.rpartition(" ")[2])
            for line in found
            if all(f'"{label}"' in line for label in labels)
        )

    def _wake(self, seconds: float) -> None:
        self._turn_at = min(self._turn_at, self.now + seconds)

    # Time

    def at(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._count), do))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while True:
            event_at = self._events[0][0] if self._events else math.inf
            upcoming = min(event_at, self._turn_at)
            if upcoming > until:
                break
            self.now = max(self.now, upcoming)
            if event_at <= self._turn_at:
                heapq.heappop(self._events)[2]()
                self._wake(SETTLE_SECONDS)
            else:
                self._turn_at = math.inf
                self.turns += 1
                self._wake(max(SETTLE_SECONDS, self._loop.turn()))
        self.now = until

    # Nodes

    def add_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        pods: int = 110,
        imaged: bool = True,
        in_use: bool = True,
        **metadata: object,
    ) -> None:
        """A node joins, Ready; `imaged`: its images are there; `in_use`: a pod of somebody else
        runs there, so the mover doesn't empty it.
        """
        labels = {"kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": "m"}
        labels["kubernetes.io/os"] = "linux"
        labels |= {PULLED: "true"} if imaged else {}
        allocatable = {"cpu": cpu, "memory": "10Gi", "pods": str(pods)}
        status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
        uid = f"uid-{name}-{next(self._count)}"
        node = read_node(
            {"metadata": {"name": name, "uid": uid, "labels": labels, **metadata}, "status": status}
        )
        self._set_node(replace(node, created=self.now, ready_since=self.now))
        if in_use:
            self._add_strangers_pod(name)
        self.place()
        self._wake(SETTLE_SECONDS)

    def change_node(
        self,
        name: str,
        *,
        ready: bool | None = None,
        cordoned: bool | None = None,
        leaving: bool | None = None,
        labels: Mapping[str, str] | None = None,
        taints: tuple[Taint, ...] | None = None,
    ) -> None:
        """Change what is given of a node; labels are set."""
        node = self.nodes[name]
        if labels is not None:
            node = replace(node, labels={**node.labels, **labels})
        if taints is not None:
            node = replace(node, taints=taints)
        if cordoned is not None:
            node = replace(node, unschedulable=cordoned)
        if ready is not None:
            kept = tuple(taint for taint in node.taints if taint != NOT_READY)
            node = replace(node, ready=ready, taints=kept if ready else (*kept, NOT_READY))
            node = replace(node, ready_since=self.now if ready else None)
        self._set_node(replace(node, deleting=node.deleting if leaving is None else leaving))
        self.place()
        self._wake(SETTLE_SECONDS)

    def remove_label(self, name: str, label: str) -> None:
        node = self.nodes[name]
        labels = {key: value for key, value in node.labels.items() if key != label}
        self._set_node(replace(node, labels=labels))
        self._wake(SETTLE_SECONDS)

    def remove_node(self, name: str) -> None:
        for pod in self.pods_on(name):
            self.remove_pod(pod.key)
        self._state.remove_node(name)
        del self.nodes[name]
        self._wake(SETTLE_SECONDS)

    def _set_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        self._state.set_node(node)

    def marked(self, label: str = LABEL) -> list[str]:
        return sorted(name for name, node in self.nodes.items() if label in node.labels)

    def marked_after(self, seconds: float) -> list[str]:
        self.run(seconds)
        return self.marked()

    # Pods

    def _add_strangers_pod(self, node: str) -> None:
        """A pod of a Deployment, which requests nothing."""
        name = f"{STRANGER}-{node}"
        body = {
            "metadata": {"name": name, "namespace": "kube-system", "uid": f"uid-{name}"},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "agent"}]},
        }
        owner = Owner("ReplicaSet", STRANGER, "uid-agent")
        self._add_pod(replace(read_pod(body), created=self.now, phase="Running", owner=owner))

    def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node_name == node]

    def count_placeholders(self, node: str) -> int:
        return sum(pod.priority < 0 for pod in self.pods_on(node))

    def count_users(self, node: str) -> int:
        return sum(pod.priority >= 0 and pod.namespace == NAMESPACE for pod in self.pods_on(node))

    def add_user(self, name: str, node: str = "") -> None:
        """A user comes, through the webhook's rules; bound to `node` at once when it is given."""
        known = facts(*(one for one in self.nodes.values()))
        body = Desk(self._rules, known).place(user_pod())
        body["metadata"] |= {"name": name, "uid": f"uid-{name}"}
        pod = read_pod(body, specs=None)
        self._add_pod(
            replace(pod, created=self.now, node_name=node, phase="Running" if node else "Pending")
        )
        self.at(SCHEDULE_SECONDS, self.place)

    def remove_pod(self, key: str) -> None:
        """A pod goes; a placeholder's successor comes a second later."""
        pod = self.pods.pop(key)
        self._state.add_pod(pod)
        if pod.node_name or pod.nominated_node:
            self._state.remove_pod(key)
        self.at(RECREATE_SECONDS, self.fill_placeholders)

    def fill_placeholders(self) -> None:
        name = self._template["metadata"]["name"]
        for ordinal in range(self.placeholders):
            if f"{NAMESPACE}/{name}-{ordinal}" in self.pods:
                continue
            template = self._template["spec"]["template"]
            metadata = {**template["metadata"], "name": f"{name}-{ordinal}", "namespace": NAMESPACE}
            metadata["uid"] = f"uid-{name}-{ordinal}-{next(self._count)}"
            pod = read_pod({"metadata": metadata, "spec": template["spec"]})
            owner = Owner("StatefulSet", name, "uid-set")
            self._add_pod(replace(pod, created=self.now, priority=-10, owner=owner))
            self.at(SCHEDULE_SECONDS, self.place)

    def _add_pod(self, pod: Pod) -> None:
        self.pods[pod.key] = pod
        if pod.node_name or pod.nominated_node:
            self._state.add_pod(pod)
        self._wake(SETTLE_SECONDS)

    def place(self) -> None:
        """Let the scheduler go through what is pending, the most important first."""
        if not self.schedules:
            return
        pending = [pod for pod in self.pods.values() if not pod.node_name]
        for pod in sorted(pending, key=lambda pod: (-pod.priority, pod.created, pod.name)):
            decision = schedule(pod, self._state, self._profiles[pod.scheduler_name])
            if decision.node is not None:
                self.land(pod, decision.node)
            elif decision.nomination is not None:
                for victim in decision.nomination.victims:
                    assert victim.priority < 0, "a user was pre-empted"
                    self.preempted += 1
                    self.remove_pod(victim.key)
                self._add_pod(replace(pod, nominated_node=decision.nomination.node))
                self.at(SCHEDULE_SECONDS, self.place)

    def land(self, pod: Pod, node: str) -> None:
        pod = replace(pod, node_name=node, nominated_node="", phase="Running", started=self.now)
        self._state.add_pod(pod)
        self._add_pod(pod)
        for eviction in self.evictions:
            if eviction.pod == pod.name and not eviction.landed:
                eviction.landed, eviction.landed_at = pod.node_name, self.now

    # What the controllers ask for

    def on_eviction(self, name: str, uid: str) -> None:
        pod = self.pods.get(f"{NAMESPACE}/{name}")
        if pod is None or pod.uid != uid:
            raise ApiError(404, "not found")
        if self.refuses:
            raise ApiError(429, "Cannot evict pod as it would violate the pod's disruption budget.")
        if pod.priority >= 0:
            self.touched_users += 1
        self.evictions.append(Eviction(self.now, name, pod.node_name, ",".join(self.marked())))
        self.remove_pod(pod.key)

    def on_labels(self, name: str, uid: str, labels: Mapping[str, str | None]) -> None:
        node = self.nodes.get(name)
        if node is None or node.uid != uid:
            raise ApiError(409, "uid")
        changed = {
            key: value for key, value in {**node.labels, **labels}.items() if value is not None
        }
        self._set_node(replace(node, labels=changed))
        self._wake(SETTLE_SECONDS)


def settled_world(placeholders: int = 6, users: int = 2, **mover: object) -> MoverWorld:
    """Node `old` with users and all placeholders, marked; a minute has passed since."""
    world = MoverWorld(placeholders, **mover)
    world.add_node("old")
    world.fill_placeholders()
    world.run(5)
    for index in range(users):
        world.add_user(f"user-{index}", node="old")
    world.run(600)
    assert world.marked() == ["old"]
    assert world.count_placeholders("old") == min(placeholders, 10 - users)
    return world


def most_within_a_minute(moments: list[float]) -> int:
    most = first = 0
    for index, moment in enumerate(moments):
        while moments[first] <= moment - 60.0:
            first += 1
        most = max(most, index - first + 1)
    return most


def _data(manifests: list[Any], ending: str) -> str:
    maps = [manifest["data"] for manifest in manifests if manifest["kind"] == "ConfigMap"]
    (found,) = [text for data in maps for key, text in data.items() if key.endswith(ending)]
    return str(found)
