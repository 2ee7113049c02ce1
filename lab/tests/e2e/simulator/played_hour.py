"""Play an hour of a real trace on the real control plane, compressed in time, and note what came of it.

Owns the hub's side: which launches, when they come and go, on nodes of which sizes, and the witness that watches.
"""

import heapq
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

from lab.tests.e2e.recorder.witness import Witness
from lab.tests.small_worlds import WatchedWorld
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.objects.pod_reader import read_pod
from roost_core.placement.labels import NODE_PURPOSE_LABEL
from roost_lab.simulator.engine.entities import SimPod
from roost_lab.simulator.engine.pods import image_reference
from roost_lab.simulator.setup.assumptions import SESSIONS
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.counts import InputCounts
from roost_lab.traces.reading import open_trace
from tests import recorded_data
from tests.harness.api import Watch
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.talk import say
from tests.harness.waiting import wait_until
from tests.stack import Stack

# 2019-05-28, 13 UTC: the busiest hour of a weekday.
HOUR_BEGIN: Final = 1_559_048_400
LAUNCHES: Final = 240
USER_BYTES: Final = 550_000_000
# Users by node. Of different sizes, so that few decisions are ties, which kube-scheduler breaks at random.
ROOM: Final = (10, 13, 18, 26, 40)
PLACEHOLDERS: Final = 12
USER_REQUESTS: Final = {"cpu": "10m", "memory": str(USER_BYTES)}
PLACEHOLDER_SET: Final = {"name": "default", "replicas": PLACEHOLDERS, "resources": {"requests": USER_REQUESTS}}
# On each node beside users, for what pullers request.
DAEMON_BYTES: Final = 10_000_000
SETTLED_SECONDS: Final = 60.0
USER_PREFIX: Final = "jupyter-"
# In the names of placeholders.
PLACEHOLDER_PREFIX: Final = "placeholder"
# A request of that long is of a machine that stalls; the launches of so many seconds after it are affected, too.
STALL_SECONDS: Final = 0.5
RECOVERY_SECONDS: Final = 2.0


class Played(NamedTuple):
    """What came of it, by launch: the node, or "" for none; and how many placeholders were pre-empted."""

    nodes: dict[int, str]
    preempted: int
    # Placeholders by node before the first launch.
    placeholders: dict[str, int]
    # So many launches came before the first pre-emption.
    quiet: int
    # When each came and went, as it was played.
    attempts: list[Attempt]
    # Seconds since 1970 at the beginning.
    began_at: float = 0.0
    # Launches while the machine stalled: who knew what when can't be told from outside then.
    stalled: frozenset[int] = frozenset()


def an_hour(speed: float) -> list[Attempt]:
    """Every n-th launch of a busy hour, in compressed seconds from 0, with its compressed session."""
    attempts = open_trace([recorded_data.LAUNCHES], seed=1, counts=InputCounts())
    hour = [
        one
        for one in itertools.takewhile(lambda one: one.moment < HOUR_BEGIN + 3600, attempts)
        if one.moment >= HOUR_BEGIN
    ]
    chosen = hour[:: max(1, len(hour) // LAUNCHES)][:LAUNCHES]
    chance, (least, median, sigma) = Chance(1), SESSIONS["short"]
    return [
        one._replace(
            number=number,
            moment=(one.moment - HOUR_BEGIN) / speed,
            session_seconds=60 * (least + chance.log_normal("session", number, median, sigma)) / speed,
        )
        for number, one in enumerate(chosen)
    ]


class SizedNodes(WatchedWorld):
    """Nodes of the sizes above."""

    def template(self, name: str = "template") -> Node:
        node = super().template(name)
        number = name.removeprefix("node-")
        if not number.isdecimal():
            return node
        return replace(node, allocatable={**node.allocatable, "memory": node_bytes(int(number))})


class HourWorld(SizedNodes):
    """Notes how many launches came before the first pre-emption."""

    quiet = LAUNCHES

    def preempt(self, pod: SimPod) -> None:
        self.quiet = min(self.quiet, self.measures.result.admitted - 1)
        super().preempt(pod)


class HourWitness(Witness):
    """Also notes nominations, users as they were admitted, and when they ran; moments are seconds since 1970."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        # Of pods other than users and placeholders: when each was bound, and how it then was.
        self.others: dict[str, tuple[float, Pod]] = {}
        # By pod: (when, node).
        self.nominations: dict[str, list[tuple[float, str]]] = {}
        self.admitted: dict[str, Pod] = {}
        self.ran: dict[str, float] = {}
        super().__init__(cluster, namespace)

    def _see(self, kind: str, pod: dict[str, Any]) -> None:
        super()._see(kind, pod)
        name, status = pod["metadata"]["name"], pod.get("status", {})
        if status.get("nominatedNodeName"):
            self.nominations.setdefault(name, []).append((time.time(), status["nominatedNodeName"]))
        if name.startswith(USER_PREFIX):
            if name not in self.admitted:
                self.admitted[name] = read_pod(pod)
            if status.get("phase") == "Running":
                self.ran.setdefault(name, time.time())
        elif is_puller(pod) and pod["spec"].get("nodeName"):
            self.others.setdefault(name, (time.time(), read_pod(pod)))


class NodeWitness:
    """Watches what nodes report. `reports`: (seconds since 1970, Node as the API has it)."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.reports: list[tuple[float, dict[str, Any]]] = []
        listed = cluster.api.get("/api/v1/nodes")
        self._watch: Watch = cluster.api.watch(
            "/api/v1/nodes", timeout_seconds=3600, resourceVersion=listed["metadata"]["resourceVersion"]
        )
        self._thread = threading.Thread(target=self._follow, name="node-witness", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close()
        self._thread.join()

    def _follow(self) -> None:
        for kind, node in self._watch:
            if kind in ("ADDED", "MODIFIED"):
                self.reports.append((time.time(), node))


def is_puller(pod: Mapping[str, Any]) -> bool:
    """Whether it is of the DaemonSet that pulls images ahead."""
    return (pod["metadata"].get("labels") or {}).get("app.kubernetes.io/component") == "puller"


def node_bytes(number: int) -> int:
    """Memory of a node, counted from 1."""
    return ROOM[number - 1] * USER_BYTES + DAEMON_BYTES


def create_nodes(
    nodes: FakeNodes, numbers: Iterable[int], more: Mapping[str, str] | None = None, *, ready: bool = True
) -> None:
    """Nodes of the sizes above, in order of age; more: labels."""
    labels = {NODE_PURPOSE_LABEL: "user", **(more or {})}
    for number in numbers:
        nodes.create(f"node-{number}", cpu="7910m", memory=str(node_bytes(number)), labels=labels, ready=ready)


def wait_for_placeholders(stack: Stack) -> None:
    """Return when all placeholders run, and another second of theirs has begun."""
    path = f"/api/v1/namespaces/{stack.namespace}/pods"

    def placeholders_run() -> bool:
        pods = stack.cluster.api.list(path, labelSelector="component=user-placeholder")
        return [one["status"]["phase"] for one in pods] == ["Running"] * PLACEHOLDERS

    wait_until(placeholders_run, SETTLED_SECONDS, "placeholders to run")
    # Pre-emption looks at starts, in whole seconds.
    time.sleep(1.1)


def play_for_real(
    attempts: list[Attempt], stack: Stack, witness: Witness, more: Sequence[tuple[float, Callable[[], object]]] = ()
) -> Played:
    """On the control plane: one after the other, as the trace says or as soon as the machine gets there.

    more: what else happens, and in which second.
    """
    cluster, namespace = stack.cluster, stack.namespace
    priority = next(m["metadata"]["name"] for m in stack.manifests if m["kind"] == "PriorityClass" and m["value"] == 0)
    due: list[tuple[float, int, int]] = [(one.moment, 1, one.number) for one in attempts]
    due += [(moment, 2, place) for place, (moment, _) in enumerate(more)]
    heapq.heapify(due)
    placeholders = Counter(one.node for one in list(witness.pods.values()) if PLACEHOLDER_PREFIX in one.name)
    created: dict[int, float] = {}
    stalls: list[tuple[float, float]] = []
    deleted: dict[int, float] = {}
    began, began_at, latest = time.monotonic(), time.time(), 0.0
    last = attempts[-1].moment
    while due and due[0][0] <= last:
        moment, kind, number = heapq.heappop(due)
        now = time.monotonic() - began
        if moment > now:
            time.sleep(moment - now)
        latest = max(latest, now - moment)
        name = f"{USER_PREFIX}{number}"
        if kind == 2:
            more[number][1]()
        elif kind:
            asked = time.monotonic() - began
            cluster.create_pod(_user(name, attempts[number], priority), namespace)
            created[number] = time.monotonic() - began
            if created[number] - asked > STALL_SECONDS:
                stalls.append((asked, created[number]))
            stays = attempts[number].session_seconds
            assert stays is not None
            heapq.heappush(due, (created[number] + stays, 0, number))
        else:
            cluster.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")
            deleted[number] = time.monotonic() - began
    stalled = frozenset(
        number
        for number, at in created.items()
        if any(begin - STALL_SECONDS <= at <= end + RECOVERY_SECONDS for begin, end in stalls)
    )
    say(
        f"played in {time.monotonic() - began:.0f} s, at most {latest:.2f} s late; "
        f"{len(stalls)} requests took over {STALL_SECONDS} s, {len(stalled)} launches came around them"
    )
    time.sleep(3.0)
    seen = list(witness.pods.values())
    nodes = {
        int(one.name.removeprefix(USER_PREFIX)): one.node
        for one in seen
        if one.name.startswith(USER_PREFIX) and one.node
    }
    gone = [one for one in seen if PLACEHOLDER_PREFIX in one.name and one.node and one.gone_seen is not None]
    # A loaded machine is late: what is simulated is what was played.
    played = [
        one._replace(
            moment=created[one.number], session_seconds=deleted.get(one.number, 10_000.0) - created[one.number]
        )
        for one in attempts
    ]
    # A victim is gone a moment after it was chosen.
    first_gone = min((one.gone_seen - began_at for one in gone if one.gone_seen is not None), default=last + 100.0)
    quiet = sum(one.moment < first_gone - 1.0 for one in played)
    return Played(nodes, len(gone), dict(placeholders), quiet, played, began_at, stalled)


def _user(name: str, attempt: Attempt, priority: str) -> dict[str, Any]:
    labels = {"component": "singleuser-server", "app": "jupyterhub"}
    prefers = {"key": NODE_PURPOSE_LABEL, "operator": "In", "values": ["user"]}
    terms = [{"weight": 100, "preference": {"matchExpressions": [prefers]}}]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}},
            "containers": [
                {"name": "notebook", "image": image_reference(attempt.image), "resources": {"requests": USER_REQUESTS}}
            ],
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }
