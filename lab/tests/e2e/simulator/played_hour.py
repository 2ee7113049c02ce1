"""Play an hour of a real trace on the real control plane, compressed in time, with warm sets and
the image gate.

Owns the hub's side: which launches, when they come and go, on nodes of which sizes, what kubelets
do; the witnesses.
"""

import contextlib
import heapq
import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from lab.tests.e2e.recorder.witness import Witness
from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import Pod
from roost_core.objects.pod_reader import read_pod
from roost_core.placement.labels import NODE_PURPOSE_LABEL, pulled_label
from roost_lab.simulator.engine.node_images import Images, NodeImages, PullFigures
from roost_lab.simulator.engine.pods import image_reference
from roost_lab.simulator.setup.assumptions import PULLS, SESSIONS, Assumptions, Autoscaler
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.counts import InputCounts
from roost_lab.traces.reading import open_trace
from tests.harness.api import Watch
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.talk import say
from tests.harness.waiting import wait_until
from tests.recorded_data import LAUNCHES as RECORDED
from tests.stack import Stack

# 2019-05-28, 13 UTC: the busiest hour of a weekday.
HOUR_BEGIN: Final = 1_559_048_400
LAUNCHES: Final = 240
USER_BYTES: Final = 550_000_000
# Users by node. Of different sizes, so that few decisions are ties, which kube-scheduler breaks at
# random.
ROOM: Final = (10, 13, 18, 26, 40)
PLACEHOLDERS: Final = 12
USER_REQUESTS: Final = {"cpu": "10m", "memory": str(USER_BYTES)}
PLACEHOLDER_SET: Final = {
    "name": "default",
    "replicas": PLACEHOLDERS,
    "resources": {"requests": USER_REQUESTS},
}
# On each node beside users, for what pullers request.
DAEMON_BYTES: Final = 10_000_000
SETTLED_SECONDS: Final = 60.0
USER_PREFIX: Final = "jupyter-"
# In the names of placeholders.
PLACEHOLDER_PREFIX: Final = "placeholder"
# A request of that long is of a machine that stalls; the launches of so many seconds after it are
# affected, too.
STALL_SECONDS: Final = 0.5
RECOVERY_SECONDS: Final = 2.0


# An hour in three minutes.
SPEED: Final = 20.0
SEED: Final = 1
# Images that pullers bring: of half of the launches, and of one in twenty. A node pulls for eight
# seconds each.
MANAGED: Final = ("r2d.invalid/2a1f24ae2314f47d3095", "r2d.invalid/6e9c1ddfd83afa793f3e")
MANAGED_SIZES: Final = {f"{name}:1": 560_000_000 for name in MANAGED}
# On nodes that are objects only; pullers don't reach others.
PULLS_AHEAD: Final = {"pulls": "ahead"}
VALUES: Final = {
    "singleuser": {"image": {"name": MANAGED[0], "tag": "1"}},
    "prePuller": {
        "method": "noop",
        "extraImages": {"second": {"name": MANAGED[1], "tag": "1"}},
        "nodeSelector": PULLS_AHEAD,
    },
    "placeholderMover": {"enabled": False},
    "placeholders": [PLACEHOLDER_SET],
}
# What real nodes pull from the registry, together.
BYTES_PER_SECOND: Final = 600_000
# The largest node joins when the others are about to be full. Its kubelet registers it a little
# before it is ready.
LATE: Final = len(ROOM)
REGISTERED_SECONDS, READY_SECONDS = 33.0, 35.0
ALONE: Final = Assumptions(
    autoscaler=Autoscaler.NONE,
    min_nodes=len(ROOM) - 1,
    max_nodes=len(ROOM),
    quota_per_repository=0,
    node_disk_bytes=0,
    # Smaller images, as pulls are as fast as ever.
    image_median_bytes=int(1_600_000_000 / SPEED),
    preempted_gone_seconds=0.02,
    # kube-scheduler takes pods out of their back-off when it has nothing else to do
    # (SchedulerPopFromBackoffQ).
    backoff_seconds=0.0,
    max_backoff_seconds=0.0,
    bind_seconds=0.25 / SPEED,
    start_seconds=1.1 / SPEED,
    pull_overhead_seconds=1.0 / SPEED,
    status_delay_seconds=10.0 / SPEED,
)


class Placeholder(NamedTuple):
    """A placeholder's life on the real control plane, in seconds of the hour; infinity for
    never.
    """

    node: str
    bound_at: float
    gone_at: float
    # As its status has it, in whole seconds of the cluster's clock.
    started: float


class User(NamedTuple):
    """A user's pod there."""

    node: str
    # When its node was chosen: its binding was seen, or before that its nomination or its victim's
    # end.
    decided_at: float
    gone_at: float
    # The placeholder that was pre-empted for it.
    victim: Placeholder | None
    # Its containers ran.
    ran_at: float
    # As the webhook let it in.
    admitted: Pod | None


class Followed(NamedTuple):
    """What the real control plane did."""

    # By launch.
    users: dict[int, User]
    # Those that were bound.
    placeholders: Sequence[Placeholder]
    # Others that take room: when they came to their node.
    others: Sequence[tuple[float, Pod]]


class Played(NamedTuple):
    """What came of it: by launch the node; and how many placeholders were pre-empted."""

    nodes: dict[int, str]
    preempted: int
    # When each came and went, as it was played.
    attempts: list[Attempt]
    # Seconds since 1970 at the beginning.
    began_at: float
    # Launches while the machine stalled: who knew what when can't be told from outside then.
    stalled: frozenset[int]


class Seen(NamedTuple):
    """What was really done in the hour."""

    real: Played
    followed: Followed
    # What nodes said to be, and from which moment of the hour on.
    reports: Sequence[tuple[float, Node]]
    # Images that nodes pulled because a user came who needed them; of those that are objects only.
    pulls: int
    namespace: str


def an_hour() -> list[Attempt]:
    """Every n-th launch of a busy hour, in compressed seconds from 0, with its compressed
    session.
    """
    attempts = open_trace([RECORDED], seed=1, counts=InputCounts())
    until_its_end = itertools.takewhile(lambda one: one.moment < HOUR_BEGIN + 3600, attempts)
    hour = [one for one in until_its_end if one.moment >= HOUR_BEGIN]
    chosen = hour[:: max(1, len(hour) // LAUNCHES)][:LAUNCHES]
    chance, (least, median, sigma) = Chance(1), SESSIONS["short"]
    return [
        one._replace(
            number=number,
            moment=(one.moment - HOUR_BEGIN) / SPEED,
            session_seconds=60
            * (least + chance.log_normal("session", number, median, sigma))
            / SPEED,
        )
        for number, one in enumerate(chosen)
    ]


class HourWitness(Witness):
    """Also notes nominations, users as they were admitted, and when they ran; moments are seconds
    since 1970.
    """

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

    def followed(self, began_at: float) -> Followed:
        """Put together what was seen. began_at: seconds since 1970."""
        pods = list(self.pods.values())

        def moment(at: float | None) -> float:
            return math.inf if at is None else at - began_at

        placeholders = [
            Placeholder(
                one.node,
                moment(one.bound_seen),
                moment(one.gone_seen),
                # Pre-empted before its start was told, it counts as started last.
                min(
                    (
                        at_us / 1e6 - began_at
                        for (step, _), at_us in one.steps.items()
                        if step == "accepted"
                    ),
                    default=math.inf,
                ),
            )
            for one in pods
            if PLACEHOLDER_PREFIX in one.name and one.node
        ]
        free = sorted(
            (placeholder for placeholder in placeholders if placeholder.gone_at < math.inf),
            key=lambda one: one.gone_at,
        )
        users: dict[int, User] = {}
        bound = [one for one in pods if one.name.startswith(USER_PREFIX) and one.node]
        for one in sorted(bound, key=lambda one: moment(one.bound_seen)):
            nominated = [
                at - began_at for at, node in self.nominations.get(one.name, ()) if node == one.node
            ]
            decided_at, victim = moment(one.bound_seen), None
            if nominated:
                decided_at = min(decided_at, nominated[0])
                # Victims are deleted before the nomination is written.
                victim = next(
                    (
                        lost
                        for lost in free
                        if lost.node == one.node and lost.gone_at <= decided_at + 0.2
                    ),
                    None,
                )
                if victim is not None:
                    free.remove(victim)
                    decided_at = min(decided_at, victim.gone_at)
            number = int(one.name.removeprefix(USER_PREFIX))
            ran_at, admitted = moment(self.ran.get(one.name)), self.admitted.get(one.name)
            users[number] = User(
                one.node, decided_at, moment(one.gone_seen), victim, ran_at, admitted
            )
        others = sorted(
            ((at - began_at, pod) for at, pod in self.others.values()), key=lambda one: one[0]
        )
        return Followed(users, placeholders, others)


class NodeWitness:
    """Watches what nodes report. `reports`: (seconds since 1970, Node as the API has it)."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.reports: list[tuple[float, dict[str, Any]]] = []
        listed = cluster.api.get("/api/v1/nodes")
        self._watch: Watch = cluster.api.watch(
            "/api/v1/nodes",
            timeout_seconds=3600,
            resourceVersion=listed["metadata"]["resourceVersion"],
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


def create_nodes(nodes: FakeNodes, numbers: Iterable[int], *, ready: bool = True) -> None:
    """Nodes of the sizes above, in order of age."""
    labels = {NODE_PURPOSE_LABEL: "user", **PULLS_AHEAD}
    for number in numbers:
        nodes.create(
            f"node-{number}",
            cpu="7910m",
            memory=str(node_bytes(number)),
            labels=labels,
            ready=ready,
        )


def wait_for_placeholders(stack: Stack) -> None:
    """Return when all placeholders run, and another second of theirs has begun."""
    path = f"/api/v1/namespaces/{stack.namespace}/pods"

    def placeholders_run() -> bool:
        pods = stack.cluster.api.list(path, labelSelector="component=user-placeholder")
        return [pod["status"]["phase"] for pod in pods] == ["Running"] * PLACEHOLDERS

    wait_until(placeholders_run, SETTLED_SECONDS, "placeholders to run")
    # Pre-emption looks at starts, in whole seconds.
    time.sleep(1.1)


def play_for_real(
    attempts: list[Attempt],
    stack: Stack,
    witness: Witness,
    more: Sequence[tuple[float, Callable[[], object]]],
) -> Played:
    """On the control plane: one after the other, as the trace says or as soon as the machine gets
    there.

    more: what else happens, and in which second.
    """
    cluster, namespace = stack.cluster, stack.namespace
    priority = next(
        m["metadata"]["name"]
        for m in stack.manifests
        if m["kind"] == "PriorityClass" and m["value"] == 0
    )
    due: list[tuple[float, int, int]] = [
        (attempt.moment, 1, attempt.number) for attempt in attempts
    ]
    due += [(moment, 2, place) for place, (moment, _) in enumerate(more)]
    heapq.heapify(due)
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
        asked = time.monotonic() - began
        if kind == 2:
            more[number][1]()
        elif kind:
            cluster.create_pod(_user(name, attempts[number], priority), namespace)
            created[number] = time.monotonic() - began
            stays = attempts[number].session_seconds
            assert stays is not None
            heapq.heappush(due, (created[number] + stays, 0, number))
        else:
            cluster.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")
            deleted[number] = time.monotonic() - began
        answered = time.monotonic() - began
        if answered - asked > STALL_SECONDS:
            stalls.append((asked, answered))
    stalled = frozenset(
        number
        for number, at in created.items()
        if any(begin - STALL_SECONDS <= at <= end + RECOVERY_SECONDS for begin, end in stalls)
    )
    say(
        f"played in {time.monotonic() - began:.0f} s, at most {latest:.2f} s late; {len(stalls)}"
        f" requests took over {STALL_SECONDS} s, {len(stalled)} launches came around them"
    )
    time.sleep(3.0)
    seen = list(witness.pods.values())
    nodes = {
        int(one.name.removeprefix(USER_PREFIX)): one.node
        for one in seen
        if one.name.startswith(USER_PREFIX) and one.node
    }
    gone = [
        one
        for one in seen
        if PLACEHOLDER_PREFIX in one.name and one.node and one.gone_seen is not None
    ]
    # A loaded machine is late: what is simulated is what was played.
    played = [
        attempt._replace(
            moment=created[attempt.number],
            session_seconds=deleted.get(attempt.number, 10_000.0) - created[attempt.number],
        )
        for attempt in attempts
    ]
    return Played(nodes, len(gone), played, began_at, stalled)


def _user(name: str, attempt: Attempt, priority: str) -> dict[str, Any]:
    labels = {"component": "singleuser-server", "app": "jupyterhub"}
    prefers = {"key": NODE_PURPOSE_LABEL, "operator": "In", "values": ["user"]}
    terms = [{"weight": 100, "preference": {"matchExpressions": [prefers]}}]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}
            },
            "containers": [
                {
                    "name": "notebook",
                    "image": image_reference(attempt.image),
                    "resources": {"requests": USER_REQUESTS},
                }
            ],
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }


def joins(nodes: FakeNodes) -> list[tuple[float, Callable[[], object]]]:
    """The late node registers, and is ready."""
    name = f"node-{LATE}"

    def be_ready() -> None:
        nodes.set_ready(name)
        nodes.set_taints(name, ())

    return [
        (REGISTERED_SECONDS, lambda: create_nodes(nodes, (LATE,), ready=False)),
        (READY_SECONDS, be_ready),
    ]


def _labels(told: NodeWitness, namespace: str) -> Counter[str]:
    """How many labels of images nodes have now, by value."""
    last = {node["metadata"]["name"]: node for _, node in told.reports}
    prefix = pulled_label("hub", namespace, "any").partition("/")[0]
    return Counter(
        text
        for node in last.values()
        for key, text in node["metadata"]["labels"].items()
        if key.startswith(prefix)
    )


def play(kubelets: int = 0) -> Seen:
    """Play the hour for real. kubelets: so many nodes, the oldest, are real; the others are objects
    only.
    """
    attempts = an_hour()
    names = [f"node-{number}" for number in range(1, kubelets + 1)]
    with ControlPlane() as cluster, contextlib.ExitStack() as exits:
        namespace = cluster.create_namespace()
        nodes = exits.enter_context(FakeNodes(cluster.api))
        witness = exits.enter_context(HourWitness(cluster, namespace))
        told = exits.enter_context(NodeWitness(cluster))
        registry = RealRegistry()
        if kubelets:
            exits.enter_context(registry)
            _fill(registry, attempts)
        for number, name in enumerate(names, 1):
            exits.enter_context(_real_node(cluster, name, registry, node_bytes(number)))
        modelled = ModelledKubelets(cluster, nodes)
        keeper = PodKeeper(
            cluster.api,
            hold=modelled.hold,
            leave=lambda pod: pod["spec"].get("nodeName") in names,
            parallel_requests=8,
        )
        exits.enter_context(keeper)
        exits.enter_context(modelled.run(keeper))
        create_nodes(nodes, range(kubelets + 1, LATE))
        stack = exits.enter_context(
            Stack(cluster, namespace, VALUES, controllers=True, scheduler_flags=())
        )
        wait_for_placeholders(stack)
        labelled = (LATE - 1 - kubelets) * len(MANAGED)
        wait_until(
            lambda: _labels(told, namespace) == {"true": labelled}, SETTLED_SECONDS, "all labels"
        )
        registry.bytes_per_second = BYTES_PER_SECOND
        real = play_for_real(attempts, stack, witness, joins(nodes))
    faults = [*modelled.faults, *witness.faults]
    if faults:
        raise AssertionError(f"the hour was not played as planned: {faults}")
    reports = [(at - real.began_at, read_node(node)) for at, node in told.reports]
    return Seen(real, witness.followed(real.began_at), reports, modelled.figures.pulls, namespace)


def hours_images() -> Images:
    """As the simulated world has them."""
    images = Images(ALONE, Chance(SEED))
    for name, size in MANAGED_SIZES.items():
        images.get(name, size)
    return images


def _fill(registry: RealRegistry, attempts: Sequence[Attempt]) -> None:
    """Push the images of the hour, so large that a pull takes as long as in the model."""
    images = hours_images()
    registry.push_program("pause:3.10.1")
    for reference in {*MANAGED_SIZES, *(image_reference(attempt.image) for attempt in attempts)}:
        seconds = images.get(reference).compressed_bytes / PULLS[ALONE.pulls][1]
        registry.push_program(
            reference.partition("/")[2], size_bytes=int(seconds * BYTES_PER_SECOND)
        )


def _real_node(
    cluster: ControlPlane, name: str, registry: RealRegistry, memory_bytes: int
) -> RealNode:
    """A node with so much memory for pods."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    total = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
    reserved = {"memory": str(total - memory_bytes)}
    kubelet = {"maxPods": 110, "systemReserved": reserved, "nodeStatusUpdateFrequency": "1s"}
    return RealNode(cluster, name, registry, labels={NODE_PURPOSE_LABEL: "user"}, kubelet=kubelet)


START: Final = "start"
ARRIVED: Final = "arrived"
SHOW: Final = "show"
PULLERS: Final = "app.kubernetes.io/component=puller"
BIND_SECONDS: Final = 0.2


class ModelledKubelets:
    """Pull as the simulator's do. `hold` is for a PodKeeper, which `run` is then given."""

    def __init__(self, cluster: ControlPlane, nodes: FakeNodes) -> None:
        self.figures = PullFigures()
        self.faults: list[str] = []
        self._api = cluster.api
        self._api_nodes = nodes
        self._images = hours_images()
        self._nodes: dict[str, NodeImages] = {}
        # By the pod's uid: when it runs.
        self._runs_at: dict[str, float] = {}
        self._showing: set[str] = set()
        self._due: list[tuple[float, int, str, str]] = []
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._over = threading.Event()

    def hold(self, pod: dict[str, Any]) -> bool:
        """Whether a bound pod doesn't run yet: its images are still being pulled."""
        metadata, now = pod["metadata"], time.monotonic()
        if not metadata["name"].startswith(USER_PREFIX) and not is_puller(pod):
            return False
        with self._lock:
            runs_at = self._runs_at.get(metadata["uid"])
            if runs_at is None:
                images = [container["image"] for container in pod["spec"]["containers"]]
                runs_at = max(
                    self._pull(pod["spec"]["nodeName"], image, now, in_background=is_puller(pod))
                    for image in images
                )
                self._at(runs_at, START, "")
                self._runs_at[metadata["uid"]] = runs_at
        return now < runs_at

    def _pull(self, node: str, image: str, now: float, *, in_background: bool) -> float:
        """Pull an image for a pod that was just bound; returns when its container runs."""
        images = self._nodes.get(node)
        if images is None:
            images = self._nodes[node] = NodeImages(self._images, ALONE, now, self.figures)
        images.use(image, now)
        pull = images.pull(image, now + ALONE.bind_seconds, in_background=in_background)
        if pull.is_cold:
            self._at(pull.finish, ARRIVED, node)
        return pull.finish + ALONE.start_seconds

    def _at(self, moment: float, what: str, node: str) -> None:
        heapq.heappush(self._due, (moment, next(self._order), what, node))

    def run(self, keeper: PodKeeper) -> Self:
        """Begin; `with kubelets.run(keeper): ...` ends it."""
        self._keeper = keeper
        self._thread = threading.Thread(target=self._work, name="modelled-kubelets", daemon=True)
        self._thread.start()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        next_look = 0.0
        try:
            while not self._over.wait(0.005):
                self._step()
                if time.monotonic() >= next_look:
                    self._bind_pullers()
                    next_look = time.monotonic() + BIND_SECONDS
        except Exception as error:  # noqa: BLE001 - a thread's end is told of by whoever compares
            self.faults.append(repr(error))

    def _bind_pullers(self) -> None:
        """Each to its node."""
        waiting = self._api.list(
            "/api/v1/pods", labelSelector=PULLERS, fieldSelector="spec.nodeName="
        )
        for pod in waiting:
            metadata = pod["metadata"]
            affinity = pod["spec"]["affinity"]["nodeAffinity"][
                "requiredDuringSchedulingIgnoredDuringExecution"
            ]
            (node,) = affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"]
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": metadata["name"]},
                "target": target,
            }
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
            self._api.request("POST", path, binding)

    def _step(self) -> None:
        now, starts = time.monotonic(), False
        shown: dict[str, dict[str, int]] = {}
        with self._lock:
            while self._due and self._due[0][0] <= now:
                moment, _, what, node = heapq.heappop(self._due)
                if what == START:
                    starts = True
                elif what == SHOW:
                    self._showing.discard(node)
                    shown[node] = dict(self._nodes[node].status_images(now))
                elif node not in self._showing:
                    self._showing.add(node)
                    self._at(moment + ALONE.status_delay_seconds, SHOW, node)
        if starts:
            self._keeper.release(self.hold)
        for node, images in shown.items():
            self._api_nodes.set_images(node, images)
