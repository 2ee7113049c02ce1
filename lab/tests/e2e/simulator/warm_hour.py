"""The hour with warm sets and the image gate: play it for real, then in step and in the simulator alone."""

import contextlib
import heapq
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import yaml

from generator.values.release import Release
from lab.tests.e2e.simulator.hour_in_step import (
    Followed,
    Report,
    User,
    WebhookStepWorld,
    followed_from,
    play_in_step,
    read_report,
)
from lab.tests.e2e.simulator.played_hour import (
    PLACEHOLDER_SET,
    ROOM,
    SETTLED_SECONDS,
    USER_PREFIX,
    HourWitness,
    HourWorld,
    NodeWitness,
    Played,
    SizedNodes,
    an_hour,
    create_nodes,
    is_puller,
    node_bytes,
    play_for_real,
    wait_for_placeholders,
)
from roost_core.placement.labels import NODE_PURPOSE_LABEL, pulled_label
from roost_lab.simulator.engine.node_images import Images, NodeImages, PullFigures
from roost_lab.simulator.engine.pods import image_reference
from roost_lab.simulator.setup.assumptions import PULLS, Assumptions, Autoscaler
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until
from tests.stack import Stack

# An hour in three minutes.
SPEED: Final = 20.0
SEED: Final = 1
# Images that pullers bring: of half of the launches, and of one in twenty. A node pulls for eight seconds each.
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
# The largest node joins when the others are about to be full. Its kubelet registers it a little before it is ready.
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
    # kube-scheduler takes pods out of their back-off when it has nothing else to do (SchedulerPopFromBackoffQ).
    backoff_seconds=0.0,
    max_backoff_seconds=0.0,
    bind_seconds=0.25 / SPEED,
    start_seconds=1.1 / SPEED,
    pull_overhead_seconds=1.0 / SPEED,
    status_delay_seconds=10.0 / SPEED,
)


class FollowingWorld(SizedNodes, WebhookStepWorld):
    """The same nodes, in step with the real ones."""


class GrowingWorld(HourWorld):
    """The late node can join."""

    def join_late(self, _: None) -> None:
        self.join()


class Seen(NamedTuple):
    """What was really done in the hour."""

    real: Played
    followed: Followed
    reports: Sequence[Report]
    # Images that nodes pulled because a user came who needed them; of those that are objects only.
    pulls: int
    namespace: str


def in_step(seen: Seen, more: Mapping[str, object], folder: Path) -> FollowingWorld:
    """Play in step under the values above, with these over them."""
    values = folder / f"in-step-{len(list(folder.iterdir()))}.yaml"
    values.write_text(yaml.safe_dump({**VALUES, **more}))
    policy = load_policy("hour", [str(values)], release=Release("hub", seen.namespace))
    world = FollowingWorld(policy, ALONE, seen.followed, seen.reports)
    # Pulls take no time here: pods run when they really did.
    play_in_step([one._replace(image_bytes=1) for one in seen.real.attempts], world)
    return world


def simulate(seen: Seen, folder: Path) -> HourWorld:
    """In the simulator alone. Sessions begin when servers run, as the simulator counts them."""
    users = seen.followed.users
    attempts = [one._replace(session_seconds=_stayed(users[one.number])) for one in seen.real.attempts]
    values = folder / "alone.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    policy = load_policy("hour", [str(values)], release=Release("hub", seen.namespace))
    world = GrowingWorld(policy, ALONE, seed=SEED)
    for name, size in MANAGED_SIZES.items():
        world.images.get(name, size)
    world.at(READY_SECONDS, world.join_late)
    world.play(attempts)
    return world


def _stayed(user: User) -> float:
    """Seconds for which a user's containers ran."""
    return max(0.0, min(user.gone_at, 10_000.0) - min(user.ran_at, user.gone_at))


def joins(nodes: FakeNodes) -> list[tuple[float, Callable[[], object]]]:
    """The late node registers, and is ready."""
    name = f"node-{LATE}"

    def be_ready() -> None:
        nodes.set_ready(name, ready=True)
        nodes.set_taints(name, ())

    return [
        (REGISTERED_SECONDS, lambda: create_nodes(nodes, (LATE,), PULLS_AHEAD, ready=False)),
        (READY_SECONDS, be_ready),
    ]


def _labels(told: NodeWitness, namespace: str) -> Counter[str]:
    """How many labels of images nodes have now, by value."""
    last = {node["metadata"]["name"]: node for _, node in told.reports}
    prefix = pulled_label("hub", namespace, "any").partition("/")[0]
    return Counter(
        text for node in last.values() for key, text in node["metadata"]["labels"].items() if key.startswith(prefix)
    )


def play(kubelets: int = 0) -> Seen:
    """Play the hour for real. kubelets: so many nodes, the oldest, are real; the others are objects only."""
    attempts = an_hour(SPEED)
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
        modelled = ModelledKubelets(cluster, nodes, ALONE, SEED, MANAGED_SIZES)
        keeper = PodKeeper(
            cluster.api, hold=modelled.hold, leave=lambda pod: pod["spec"].get("nodeName") in names, parallel_requests=8
        )
        exits.enter_context(keeper)
        exits.enter_context(modelled.run(keeper))
        create_nodes(nodes, range(kubelets + 1, LATE), PULLS_AHEAD)
        stack = exits.enter_context(Stack(cluster, namespace, VALUES, controllers=True, scheduler_flags=()))
        wait_for_placeholders(stack)
        labelled = (LATE - 1 - kubelets) * len(MANAGED)
        wait_until(lambda: _labels(told, namespace) == {"true": labelled}, SETTLED_SECONDS, "all labels")
        registry.bytes_per_second = BYTES_PER_SECOND
        real = play_for_real(attempts, stack, witness, joins(nodes))
    faults = [*modelled.faults, *witness.faults]
    if faults:
        raise AssertionError(f"the hour was not played as planned: {faults}")
    reports = [read_report(at - real.began_at, node) for at, node in told.reports]
    return Seen(real, followed_from(witness, real.began_at), reports, modelled.figures.pulls, namespace)


def _fill(registry: RealRegistry, attempts: Sequence[Attempt]) -> None:
    """Push the images of the hour, so large that a pull takes as long as in the model."""
    images = Images(ALONE, Chance(SEED))
    registry.push_program("pause:3.10.1")
    for reference in {*MANAGED_SIZES, *(image_reference(one.image) for one in attempts)}:
        image = images.get(reference, MANAGED_SIZES.get(reference))
        seconds = image.compressed_bytes / PULLS[ALONE.pulls][1]
        registry.push_program(reference.partition("/")[2], size_bytes=int(seconds * BYTES_PER_SECOND))


def _real_node(cluster: ControlPlane, name: str, registry: RealRegistry, memory_bytes: int) -> RealNode:
    """A node with so much memory for pods."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    total = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
    kubelet = {
        "maxPods": 110,
        "systemReserved": {"memory": str(total - memory_bytes)},
        "nodeStatusUpdateFrequency": "1s",
    }
    return RealNode(cluster, name, registry, labels={NODE_PURPOSE_LABEL: "user"}, kubelet=kubelet)


START: Final = "start"
ARRIVED: Final = "arrived"
SHOW: Final = "show"
PULLERS: Final = "app.kubernetes.io/component=puller"
BIND_SECONDS: Final = 0.2


class ModelledKubelets:
    """`hold` is for a PodKeeper, which `run` is then given.

    assumptions: with times and sizes compressed as the hour is. seed: of the simulated world, whose images are equal.
    sizes: bytes on disk of images, by reference, where they aren't drawn.
    """

    def __init__(
        self, cluster: ControlPlane, nodes: FakeNodes, assumptions: Assumptions, seed: int, sizes: Mapping[str, int]
    ) -> None:
        self.figures = PullFigures()
        self.faults: list[str] = []
        self._api = cluster.api
        self._api_nodes = nodes
        self._assumed = assumptions
        self._images = Images(assumptions, Chance(seed))
        for name, size in sizes.items():
            self._images.get(name, size)
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
                    self._pull(pod["spec"]["nodeName"], image, now, in_background=is_puller(pod)) for image in images
                )
                self._at(runs_at, START, "")
                self._runs_at[metadata["uid"]] = runs_at
        return now < runs_at

    def _pull(self, node: str, image: str, now: float, *, in_background: bool) -> float:
        """Pull an image for a pod that was just bound; returns when its container runs."""
        images = self._nodes.get(node)
        if images is None:
            images = self._nodes[node] = NodeImages(self._images, self._assumed, now, self.figures)
        images.use(image, now)
        pull = images.pull(image, now + self._assumed.bind_seconds, in_background=in_background)
        if pull.is_cold:
            self._at(pull.finish, ARRIVED, node)
        return pull.finish + self._assumed.start_seconds

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
        waiting = self._api.list("/api/v1/pods", labelSelector=PULLERS, fieldSelector="spec.nodeName=")
        for pod in waiting:
            metadata = pod["metadata"]
            affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            (node,) = affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"]
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}, "target": target}
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
                    self._at(moment + self._assumed.status_delay_seconds, SHOW, node)
        if starts:
            self._keeper.release(self.hold)
        for node, images in shown.items():
            self._api_nodes.set_images(node, images)
