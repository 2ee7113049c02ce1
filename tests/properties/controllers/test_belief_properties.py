"""The controllers' table of docs/beliefs.md: evidence stops, lags, or comes twice or late, and every clock is wrong.

The real watches, the loop and the image gate run one step after the other, on a server that notes what it has told.
"""

import random
from datetime import UTC, datetime
from typing import Any, Final, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.actions import Action, ChangeNode, Done, Outcome
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.image_gate.closed_or_open import SENTENCES, Opening
from roost.controllers.image_gate.plan import CONTROLLER
from roost.controllers.runtime.loop import Loop
from roost.controllers.runtime.metrics import ControllersMetrics
from roost.controllers.runtime.watching import Watching
from roost_core.placement.beliefs import COMING, DEVICES, SNAPSHOT
from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_PART,
    OWN_PULLER,
    PART_OF_LABEL,
    PULLING,
    puller_container,
)
from roost_core.release.reader import Reader
from tests.builders import IMAGE, NAMESPACE, RELEASE, Object, expression, held, policy_document, requires_nodes
from tests.evidence import Server, hear

NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/pods"
SETS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets {PART_OF_LABEL}={OWN_PART}"
EVENTS: Final = f"/api/v1/namespaces/{NAMESPACE}/events"
KINDS: Final = (NODES, PODS, SETS, EVENTS)
NAMES: Final = ("a", "b")
# Users' pods, by what they request.
USERS: Final = ("cpu", "gpu")
DEADLINE_SECONDS: Final = 400
OPEN_AFTER_SECONDS: Final = 10
GATE: Final = {
    "mode": "requireLabel",
    "openAfterSeconds": OPEN_AFTER_SECONDS,
    "pullDeadlineSeconds": DEADLINE_SECONDS,
    "hasPuller": True,
    "pullerPods": "roost",
}
DOCUMENT: Final = policy_document(imageGate=GATE, placeholders=None)
(LABEL,) = held(IMAGE)
GPU: Final = "nvidia.com/gpu"
# A plan is made each second; one that wasn't carried out is repeated within ten.
SLACK_SECONDS: Final = 12.0
LATEST_SECONDS: Final = OPEN_AFTER_SECONDS + SLACK_SECONDS


class Cluster:
    """A cluster whose timestamps differ from the controllers' clock, which jumps, and one replica of them."""

    def __init__(self, skew: float) -> None:
        self.server = Server()
        self.wall = 1_800_000_000.0
        self.skew = skew
        self.leads = True
        self.made = 0
        self.written: list[ChangeNode] = []
        self.plans = 0
        release = ReleaseDocument(Reader(), DOCUMENT, None, 36)
        planner = CONTROLLER.planner(release)
        assert planner is not None
        self.watching = Watching(
            cast("Any", self.server),
            release,
            on_change=lambda: None,
            clock=lambda: self.server.now,
            wall=lambda: self.wall,
        )
        self.loop = Loop(
            [planner],
            self._snapshot,
            cast("Any", self),
            ControllersMetrics("test", planner.gauges),
            is_leader=lambda: self.leads,
            is_synced=lambda: self.watching.verdict().passed,
            follow=self.watching.follow,
            wall=lambda: self.wall,
            steady=lambda: self.server.now,
        )
        # Since when, by our clock and without a gap, each of these is known and plans are made.
        self.since: dict[tuple[str, str], float] = {}
        # By uid: when it was first told. What was there when the watches began, and when this replica began to lead.
        self.seen: dict[str, float] = {}
        self.at_start: set[str] | None = None
        self.before: set[str] = set()
        self.has_planned = False

    def _snapshot(self) -> Any:
        self.plans += 1
        return self.watching.snapshot()

    # In place of the applier, which the loop asks for its budgets, too.

    evictions = writes = property(lambda self: self)
    left = per_minute = 0

    def spend_all(self) -> None:
        """There is nothing to evict."""

    def apply(self, actions: list[Action]) -> list[Done]:
        for action in actions:
            node = self.server.kind(NODES).objects.get(getattr(action, "node", ""))
            if isinstance(action, ChangeNode) and node is not None and node["metadata"]["uid"] == action.uid:
                self.written.append(action)
                labels = {**node["metadata"]["labels"], **action.set_labels}
                labels = {key: value for key, value in labels.items() if key not in action.remove_labels}
                self.server.happen(NODES, action.node, {**node, "metadata": {**node["metadata"], "labels": labels}})
        return [Done(action, Outcome.DONE) for action in actions]

    # What happens.

    def timestamp(self) -> str:
        return datetime.fromtimestamp(self.wall + self.skew, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def join(self, name: str) -> None:
        self.made += 1
        metadata = {"name": name, "uid": f"{name}-{self.made}", "labels": {}, "creationTimestamp": self.timestamp()}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": self.timestamp()}
        status = {
            "conditions": [ready],
            "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
            "images": [{"names": ["busybox:1"], "sizeBytes": 1}],
        }
        self.server.happen(NODES, name, {"metadata": metadata, "spec": {}, "status": status})

    def _pod(self, name: str, labels: Object, spec: Object, status: Object) -> None:
        self.made += 1
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"{name}-{self.made}",
            "labels": labels,
            "creationTimestamp": self.timestamp(),
        }
        self.server.happen(PODS, name, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending", **status}})

    def pull(self, node: str) -> None:
        labels = {PART_OF_LABEL: OWN_PART, OWN_COMPONENT_LABEL: OWN_PULLER, OWN_INSTANCE_LABEL: RELEASE}
        name = puller_container(IMAGE)
        waiting = {"name": name, "image": IMAGE, "state": {"waiting": {"reason": "ContainerCreating"}}}
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

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.server.now += 1
            self.wall += 1
            for cache in self.watching.caches:
                hear(cache)
            plans, written = self.plans, len(self.written)
            self.loop.turn()
            has_planned = self.plans > plans
            assert has_planned is (self.leads and self.is_fresh())
            self._note(has_planned=has_planned)
            self._check(self.written[written:])

    def is_fresh(self, seconds: float = SNAPSHOT.age_seconds) -> bool:
        heard = [self.server.kind(key).heard_at for key in KINDS]
        return all(at is not None and self.server.now - at <= seconds for at in heard)

    def _note(self, *, has_planned: bool) -> None:
        nodes, pods = self.server.kind(NODES).told, self.server.kind(PODS).told
        users = {name: pod for name, pod in pods.items() if name in USERS}
        uids = {one["metadata"]["uid"] for one in (*nodes.values(), *pods.values())}
        if self.at_start is None and self.server.kind(NODES).heard_at is not None:
            self.at_start = uids
        self.seen = {uid: self.seen.get(uid, self.server.now) for uid in uids}
        if has_planned and not self.has_planned:
            self.before = uids
        self.has_planned = self.leads and (has_planned or self.has_planned)
        known = set[tuple[str, str]]()
        if has_planned and self.is_fresh(1):
            known = {("missing", node["metadata"]["uid"]) for node in nodes.values()}
            known |= {
                ("unattended", node["metadata"]["uid"]) for name, node in nodes.items() if f"puller-{name}" not in pods
            }
            known |= {("waits", pod["metadata"]["uid"]) for pod in users.values()}
        self.since = {key: self.since.get(key, self.server.now) for key in known}

    def seconds(self, what: str, item: Object) -> float:
        return self.server.now - self.since.get((what, item["metadata"]["uid"]), self.server.now)

    def age(self, item: Object) -> float:
        """By our clock, since it was first told."""
        return self.server.now - self.seen[item["metadata"]["uid"]]

    def _check(self, written: list[ChangeNode]) -> None:
        nodes, pods = self.server.kind(NODES), self.server.kind(PODS).told
        closed = {
            name: node
            for name, node in nodes.objects.items()
            if node["metadata"]["labels"].get(LABEL) == PULLING and name in nodes.told
        }
        for node in closed.values():
            assert self.seconds("missing", node) <= DEADLINE_SECONDS + SLACK_SECONDS
            assert self.seconds("unattended", node) <= COMING.age_seconds + SLACK_SECONDS
            if "gpu" in pods and not self._is_of_start(node) and self.age(node) <= DEVICES.age_seconds - SLACK_SECONDS:
                assert min(self.seconds("waits", pods["gpu"]), self.seconds("missing", node)) <= LATEST_SECONDS
        if "cpu" in pods and closed and closed.keys() == nodes.told.keys():
            missing = min(self.seconds("missing", node) for node in closed.values())
            assert min(self.seconds("waits", pods["cpu"]), missing) <= LATEST_SECONDS
        for action in written:
            if SENTENCES[Opening.USER_WAITS] in action.why:
                users = [pod for name, pod in pods.items() if name in USERS]
                assert any(self.age(pod) >= OPEN_AFTER_SECONDS - 1 or self._is_of_before(pod) for pod in users)
                node = nodes.told[action.node]
                if "cpu" not in pods and not self._is_of_start(node):
                    assert self.age(node) <= DEVICES.age_seconds

    def _is_of_start(self, node: Object) -> bool:
        """Whether its timestamps say how young it is."""
        return self.at_start is None or node["metadata"]["uid"] in self.at_start

    def _is_of_before(self, item: Object) -> bool:
        """Whether it was there when this replica began to lead: then the cluster's timestamps count."""
        return item["metadata"]["uid"] in self.before


def do(cluster: Cluster, rng: random.Random) -> None:
    name = rng.choice(NAMES)
    match rng.choice(["join", "leave", "pull", "pull", "drop", "come", "come", "go", "clock", "lead", "stop", "well"]):
        case "join":
            cluster.join(name)
        case "leave":
            cluster.server.happen(NODES, name, None)
        case "pull":
            cluster.pull(name)
        case "drop":
            cluster.server.happen(PODS, f"puller-{name}", None)
        case "come":
            cluster.come(rng.choice(USERS))
        case "go":
            cluster.server.happen(PODS, rng.choice(USERS), None)
        case "clock":
            cluster.wall += rng.choice([-7200, -60, 60, 7200])
        case "lead":
            cluster.leads = False
            cluster.pass_time(2)
            cluster.leads = True
        case "stop":
            mode = rng.choice(["silent", "lags", "repeats", "out of order", "out of reach", 401, 403, 410])
            cluster.server.kind(rng.choice(KINDS)).mode = cast("Any", mode)
        case "well":
            for kind in cluster.server.kinds.values():
                kind.mode = "ok"


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_whatever_becomes_of_evidence_and_clocks_nodes_are_open_in_time_and_not_before(seed: int) -> None:
    rng = random.Random(seed)
    cluster = Cluster(rng.choice([-7200.0, -60.0, 0.0, 60.0, 7200.0]))
    for name in NAMES:
        if rng.random() < 0.5:
            cluster.join(name)
    cluster.pass_time(2)
    for _ in range(10):
        do(cluster, rng)
        cluster.pass_time(rng.choice([1, 3, 12, 40, 190, 310]))
