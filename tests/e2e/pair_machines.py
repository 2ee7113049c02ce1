"""Stand in for machines: kubelets that pull images, and Cluster Autoscaler with a cloud of node
groups.

Owns what grows and what is pulled. Cluster Autoscaler's own binary can't be built from a Go module
proxy; what is played here are the rules that decide which pod makes it add a node, after its code
as of 1.34: static_autoscaler.go, filter_out_schedulable.go, mixed_nodeinfos_processor.go,
node_info_utils.go. As it does itself, it asks the scheduler's own filters.
"""

import contextlib
import http.client
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import Pod
from roost_core.objects.pod_reader import read_pod
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import read_profiles
from roost_core.scheduler.state import ClusterState
from tests.harness.api import STRATEGIC, Api, ApiError
from tests.harness.nodes import NODES, FakeNodes, read_taint
from tests.harness.pods import PODS, PodKeeper
from tests.harness.scheduler import scheduler_config
from tests.harness.talk import say
from tests.judge.cases import GROUP_LABEL, HOSTNAME, IMAGE_BYTES, ZONE, Case, Pool
from tests.scheduling import filter_nodes

# --scan-interval is 10 s, and machines take a minute to boot; here both are shorter.
SCAN_SECONDS = 4.0
# How long a node must be ready to be a template; a minute there, as its boots are longer, too.
STABLE_SECONDS = 6.0
# --expendable-pods-priority-cutoff. Not Roost's constant: if that is wrong, pods wait here.
PRIORITY_CUTOFF = -10
DEFAULT_PROFILE = read_profiles(
    scheduler_config({"schedulerName": "default-scheduler"}), NEWEST_MINOR
)["default-scheduler"]
# The nodes must not have changed for so long before anybody comes.
STEADY_SECONDS, STEADY_AT_MOST_SECONDS = 2.0, 25.0
# After so long a pull that doesn't succeed is told.
FAULT_SECONDS = 1.0
# What a new node's template never has: taints that say how the node is just now.
_PASSING_TAINTS = (
    "node.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ToBeDeletedByCluster",
)


class Kubelets:
    """Runs the pods of all fake nodes: each waits for its images, which take a while to come to a
    node.
    """

    def __init__(self, api: Api, images: Iterable[str], pull_seconds: float) -> None:
        """images: those that have to be pulled; all others are everywhere."""
        self._api = api
        self._nodes = FakeNodes(api)
        self._images = frozenset(images)
        self._pull_seconds = pull_seconds
        self._held: dict[str, set[str]] = {}
        self._pulls: dict[tuple[str, str], threading.Timer] = {}
        # Pods of which it was told that an image can't be pulled, by uid.
        self._told: set[tuple[str, str]] = set()
        self._lock = threading.RLock()
        self._keeper = PodKeeper(api, hold=self._lacks, leave=self.lingers, parallel_requests=8)

    def __enter__(self) -> Self:
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for timer in self._pulls.values():
                timer.cancel()
        self._keeper.stop()

    def hold(self, node: str, images: Iterable[str]) -> None:
        with self._lock:
            self._held.setdefault(node, set()).update(images)

    def holds(self, node: str, image: str) -> bool:
        with self._lock:
            return image in self._held.get(node, ())

    def seconds(self, node: str, image: str) -> float:
        del node, image
        return self._pull_seconds

    def lingers(self, pod: JSONObject) -> bool:
        """Whether a pod that is deleted is still to be there; no by default, whatever its grace."""
        del pod
        return False

    def fails(self, node: str, image: str) -> bool:
        """Whether no pull of the image succeeds there; one that doesn't is told after a second."""
        del node, image
        return False

    def _lacks(self, pod: JSONObject) -> bool:
        node = pod["spec"]["nodeName"]
        with self._lock:
            missing = (images_of(pod) & self._images) - self._held.setdefault(node, set())
            for image in missing:
                if self.fails(node, image):
                    key = (pod["metadata"]["uid"], image)
                    if key not in self._told:
                        self._told.add(key)
                        self._start(
                            ("", "/".join(key)), FAULT_SECONDS, self._tell_fault, pod, image
                        )
                elif (node, image) not in self._pulls:
                    self._start((node, image), self.seconds(node, image), self._pulled, node, image)
        return bool(missing)

    def _start(
        self, key: tuple[str, str], seconds: float, call: Callable[..., None], *given: Any
    ) -> None:
        timer = self._pulls[key] = threading.Timer(seconds, call, given)
        timer.daemon = True
        timer.start()

    def _tell_fault(self, pod: JSONObject, image: str) -> None:
        """Write what a kubelet does into the status: the containers that wait for the image in
        vain.
        """
        volumes = {
            volume["name"]: volume["image"]["reference"]
            for volume in pod["spec"].get("volumes", ())
            if "image" in volume
        }
        told = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
            }
            for container in pod["spec"]["containers"]
            if image
            in (
                container["image"],
                *(volumes.get(mount["name"]) for mount in container.get("volumeMounts", ())),
            )
        ]
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        change = {"metadata": {"uid": meta["uid"]}, "status": {"containerStatuses": told}}
        try:
            self._api.patch(path, change, content_type=STRATEGIC)
        except ApiError as error:
            if error.status not in (404, 409, 422):  # it is gone, or another has its name
                raise

    def _pulled(self, node: str, image: str) -> None:
        with self._lock:
            self._held[node].add(image)
            sizes = dict.fromkeys(sorted(self._held[node]), IMAGE_BYTES)
        try:
            self._nodes.set_images(node, sizes)
        except ApiError as error:
            if error.status != 404:  # the node has left
                raise
        self._keeper.release(self._lacks)


def images_of(pod: JSONObject) -> set[str]:
    spec = pod["spec"]
    found = {
        container["image"] for container in (*spec["containers"], *spec.get("initContainers", ()))
    }
    return found | {
        volume["image"]["reference"] for volume in spec.get("volumes", ()) if "image" in volume
    }


def create_priority_classes(api: Api, case: Case) -> None:
    """Those of the case; an earlier one's may be there."""
    for name, value, never in case.priorities:
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
        }
        with contextlib.suppress(ApiError):
            policy = "Never" if never else "PreemptLowerPriority"
            api.create({**body, "value": value, "preemptionPolicy": policy})


def add_node(
    nodes: FakeNodes, kubelets: Kubelets, pool: Pool, index: int, name: str, **labels: str
) -> None:
    """The first, second, ... node of a pool, there from the beginning."""
    holds = pool.holds_at(index)
    kubelets.hold(name, holds)
    nodes.create(
        name,
        cpu=pool.cpu,
        memory=pool.memory,
        labels={ZONE: pool.zone_at(index), **labels, **pool.labels},
        taints=pool.taints,
        images=dict.fromkeys(holds, IMAGE_BYTES),
        extra_resources=pool.extra_resources,
    )


def settle(seen: Callable[[], object]) -> None:
    """Wait until Roost has said all that it says about the nodes, and its own pods have theirs."""
    began = changed = time.monotonic()
    before: object = None
    while (
        time.monotonic() - changed < STEADY_SECONDS
        and time.monotonic() - began < STEADY_AT_MOST_SECONDS
    ):
        now = seen()
        if now != before:
            before, changed = now, time.monotonic()
        time.sleep(0.25)


class Room:
    """Nodes with what they hold, by kube-scheduler's filters (its model, which a test holds against
    the real one).

    Nobody is pre-empted.
    """

    def __init__(self, nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> None:
        self._state = ClusterState(nodes, pods)

    def add(self, node: Node) -> None:
        self._state.set_node(node)

    def place(self, pod: Pod) -> bool:
        """Put a pod on the first node that takes it, if there is one."""
        for name, verdict in filter_nodes(pod, self._state, DEFAULT_PROFILE).items():
            if verdict is None:
                self._state.add_pod(replace(pod, node_name=name))
                return True
        return False


@dataclass(slots=True)
class Added:
    at: float
    pool: str
    name: str
    is_ready: bool = False


@dataclass(slots=True)
class _Group:
    pool: Pool
    # What became of nodes that there were: kept when the last has gone.
    template: Node | None = None
    nodes: list[str] = field(default_factory=list)


class ClusterAutoscaler:
    """Adds nodes to groups while pods are unschedulable; takes none away.

    A pod counts when the scheduler has marked it Unschedulable and it fits, without pre-empting,
    neither a node that is there nor one on its way. A group's template is a sanitised copy of a
    node of it that is ready and stable, labels included; what it remembers of one; or, at zero, the
    group's own labels and taints.
    """

    def __init__(
        self,
        api: Api,
        pools: Iterable[Pool],
        prefix: str,
        boot_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._now = now
        self._nodes = FakeNodes(api)
        self._groups = [_Group(pool) for pool in pools]
        self._prefix = prefix
        self._boot_seconds = boot_seconds
        self._ready_since: dict[str, float] = {}
        self.added: list[Added] = []
        self._stopping = threading.Event()
        self.faults: list[Exception] = []
        self._thread = threading.Thread(target=self._work, name="cluster-autoscaler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._nodes.delete_all()
        if self.faults:
            raise self.faults[0]

    def adopt(self, pool: str, node: str) -> None:
        next(group for group in self._groups if group.pool.name == pool).nodes.append(node)

    def lose(self, node: str) -> None:
        """A cloud took the node back: its group may have another in its place."""
        for group in self._groups:
            if node in group.nodes:
                group.nodes.remove(node)

    @property
    def is_growing(self) -> bool:
        return any(not one.is_ready for one in self.added)

    def _work(self) -> None:
        scan_at = self._now() + SCAN_SECONDS
        while not self._stopping.wait(0.5):
            try:
                self._boot()
                if self._now() >= scan_at:
                    scan_at = self._now() + SCAN_SECONDS
                    self._scan()
            except (OSError, http.client.HTTPException) as error:
                say(f"cluster autoscaler: connection broke, going on: {error!r}")
            except Exception as error:  # noqa: BLE001 - a node that never comes must not look like Roost's doing
                self.faults.append(error)
                return

    def _boot(self) -> None:
        for one in self.added:
            if not one.is_ready and self._now() - one.at >= self._boot_seconds:
                pool = next(group.pool for group in self._groups if group.pool.name == one.pool)
                self._nodes.set_ready(one.name)
                self._nodes.set_taints(one.name, pool.taints)
                one.is_ready = True

    def _scan(self) -> None:
        asked = self.asks_for(
            map(read_node, self._api.list(NODES)), map(read_pod, self._api.list(PODS))
        )
        if asked is not None:
            group = next(one for one in self._groups if one.pool.name == asked[0])
            for _ in range(asked[1]):
                self._add(group)

    def asks_for(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> tuple[str, int] | None:
        """Say which group is to have how many more nodes; one group a scan."""
        ready = {node.name: node for node in nodes if node.ready}
        pods = list(pods)
        room = Room(ready.values(), pods)
        templates = {one.pool.name: self._template(one, ready) for one in self._groups}
        for one in self.added:
            if one.name not in ready:
                room.add(replace(templates[one.pool], name=one.name))
        waiting = [
            pod
            for pod in pods
            if pod.unschedulable_since is not None
            and not pod.leaving
            and pod.priority >= PRIORITY_CUTOFF
        ]
        waiting.sort(key=lambda pod: -pod.priority)
        helpless = [pod for pod in waiting if not pod.nominated_node and not room.place(pod)]
        for group in self._groups:
            if asked := self._asked(group, templates[group.pool.name], helpless):
                return group.pool.name, asked
        return None

    def _template(self, group: _Group, ready: Mapping[str, Node]) -> Node:
        now = self._now()
        for name in group.nodes:
            if name not in ready:
                self._ready_since.pop(name, None)
                continue
            if now - self._ready_since.setdefault(name, now) >= STABLE_SECONDS:
                group.template = sanitised(ready[name])
                return group.template
        if group.template is not None:
            return group.template
        pool = group.pool
        return read_node(
            {
                "metadata": {"name": "template", "labels": {GROUP_LABEL: pool.name, **pool.labels}},
                "spec": {"taints": [read_taint(taint) for taint in pool.taints]},
                "status": {
                    "allocatable": {
                        "cpu": pool.cpu,
                        "memory": pool.memory,
                        "pods": "110",
                        **pool.extra_resources,
                    }
                },
            }
        )

    @staticmethod
    def _asked(group: _Group, template: Node, helpless: Sequence[Pod]) -> int:
        """How many nodes the pods that would fit one of the group fill."""
        filled, count = Room(), 0
        for pod in helpless:
            if not filled.place(pod) and Room([template]).place(pod):
                count += 1
                filled.add(replace(template, name=f"template-{count}"))
                filled.place(pod)
        return max(0, min(count, group.pool.most - len(group.nodes)))

    def _add(self, group: _Group) -> None:
        pool = group.pool
        name = f"{self._prefix}-{pool.name}-added-{len(self.added)}"
        self._nodes.create(
            name,
            cpu=pool.cpu,
            memory=pool.memory,
            labels={GROUP_LABEL: pool.name, **pool.labels},
            taints=pool.taints,
            extra_resources=pool.extra_resources,
            ready=False,
        )
        group.nodes.append(name)
        self.added.append(Added(self._now(), pool.name, name))


def sanitised(node: Node) -> Node:
    """A node of the group as it would be if it came now: its labels stay, all of them."""
    taints = tuple(taint for taint in node.taints if not taint.key.startswith(_PASSING_TAINTS))
    return replace(
        node,
        name="template",
        labels={**node.labels, HOSTNAME: "template"},
        taints=taints,
        unschedulable=False,
    )
