"""Stand in for machines: kubelets that pull images, and Cluster Autoscaler with a cloud of node groups.

Owns what grows and what is pulled. Cluster Autoscaler's own binary can't be built from a Go module proxy; what is
played here are the rules that decide which pod makes it add a node, after its code as of 1.34: static_autoscaler.go,
filter_out_schedulable.go, mixed_nodeinfos_processor.go, node_info_utils.go. Nothing here is shared with the code that
is tested.
"""

from __future__ import annotations

import copy
import http.client
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tests.e2e.pair_cases import IMAGE_BYTES
from tests.harness.api import ApiError
from tests.harness.nodes import NODES, FakeNodes, read_taint
from tests.harness.pods import PODS, PodKeeper
from tests.harness.talk import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.e2e.pair_cases import Pool
    from tests.harness.api import Api

Object = dict[str, Any]

GROUP_LABEL = "example.com/node-group"
HOSTNAME = "kubernetes.io/hostname"
# --scan-interval is 10 s, and machines take a minute to boot; here both are shorter.
SCAN_SECONDS = 4.0
# How long a node must be ready to be a template; a minute there, as its boots are longer, too.
STABLE_SECONDS = 6.0
# --expendable-pods-priority-cutoff.
PRIORITY_CUTOFF = -10
# What a new node's template never has: taints that say how the node is just now.
_PASSING_TAINTS = ("node.kubernetes.io/", "startup-taint.cluster-autoscaler.kubernetes.io/", "ToBeDeletedByCluster")
_UNITS = {"m": 1e-3, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "k": 1e3, "M": 1e6, "G": 1e9}


class Kubelets:
    """Runs the pods of all fake nodes: each waits for its images, which take a while to come to a node."""

    def __init__(self, api: Api, images: Iterable[str], pull_seconds: float) -> None:
        """images: those that have to be pulled; all others are everywhere."""
        self._nodes = FakeNodes(api)
        self._images = frozenset(images)
        self._pull_seconds = pull_seconds
        self._held: dict[str, set[str]] = {}
        self._pulls: dict[tuple[str, str], threading.Timer] = {}
        self._lock = threading.RLock()
        self._keeper = PodKeeper(api, hold=self._lacks, parallel_requests=8)

    def __enter__(self) -> Self:
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for timer in self._pulls.values():
                timer.cancel()
        self._keeper.stop()

    def hold(self, node: str, images: Iterable[str]) -> None:
        """Say what a node holds from the start."""
        with self._lock:
            self._held.setdefault(node, set()).update(images)

    def _lacks(self, pod: Object) -> bool:
        node = pod["spec"]["nodeName"]
        with self._lock:
            missing = (images_of(pod) & self._images) - self._held.setdefault(node, set())
            for image in missing:
                if (node, image) not in self._pulls:
                    timer = threading.Timer(self._pull_seconds, self._pulled, (node, image))
                    timer.daemon = True
                    self._pulls[node, image] = timer
                    timer.start()
        return bool(missing)

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


def images_of(pod: Object) -> set[str]:
    """All that a kubelet pulls for a pod."""
    spec = pod["spec"]
    found = {one["image"] for one in (*spec["containers"], *spec.get("initContainers", ()))}
    return found | {one["image"]["reference"] for one in spec.get("volumes", ()) if "image" in one}


@dataclass(slots=True)
class Machine:
    """A node as its filters see it: one that is there, one on its way, or a template."""

    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, str]]
    free: dict[str, float]
    name: str = ""

    def fits(self, pod: Object) -> bool:
        """kube-scheduler's filters, as far as these pods go; nobody is pre-empted."""
        spec = pod["spec"]
        if any(self.free.get(key, 0.0) < amount for key, amount in requests_of(pod).items() if amount):
            return False
        if any(self.labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
            return False
        hard = [taint for taint in self.taints if taint["effect"] != "PreferNoSchedule"]
        if not all(_is_tolerated(taint, spec.get("tolerations", ())) for taint in hard):
            return False
        required = (
            spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        )
        return required is None or any(self._matches(term) for term in required["nodeSelectorTerms"])

    def take(self, pod: Object) -> None:
        for key, amount in requests_of(pod).items():
            self.free[key] = self.free.get(key, 0.0) - amount

    def fresh(self) -> Machine:
        return Machine(labels=self.labels, taints=self.taints, free=dict(self.free), name=self.name)

    def _matches(self, term: Object) -> bool:
        asked = [(one, self.labels.get(one["key"])) for one in term.get("matchExpressions", ())]
        asked += [(one, self.name) for one in term.get("matchFields", ())]
        return bool(asked) and all(_expression_holds(one, value) for one, value in asked)


@dataclass(slots=True)
class Added:
    """A node that was asked for."""

    at: float
    pool: str
    name: str
    is_ready: bool = False


@dataclass(slots=True)
class _Group:
    pool: Pool
    # What became of nodes that there were: kept when the last has gone.
    template: Machine | None = None
    nodes: list[str] = field(default_factory=list)


class ClusterAutoscaler:
    """Adds nodes to groups while pods are unschedulable; takes none away.

    A pod counts when the scheduler has marked it Unschedulable and it fits, without pre-empting, neither a node that is
    there nor one on its way. A group's template is a sanitised copy of a node of it that is ready and stable, labels
    included; what it remembers of one; or, at zero, the group's own labels and taints.
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
        """Count a node as of a group: one there from the beginning."""
        next(one for one in self._groups if one.pool.name == pool).nodes.append(node)

    @property
    def is_growing(self) -> bool:
        """Whether a node is on its way."""
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
                self._nodes.set_ready(one.name, ready=True)
                self._nodes.set_taints(one.name, pool.taints)
                one.is_ready = True

    def _scan(self) -> None:
        asked = self.asks_for(self._api.list(NODES), self._api.list(PODS))
        if asked is not None:
            group = next(one for one in self._groups if one.pool.name == asked[0])
            for _ in range(asked[1]):
                self._add(group)

    def asks_for(self, nodes: Sequence[Object], pods: Sequence[Object]) -> tuple[str, int] | None:
        """Say which group is to have how many more nodes; one group a scan."""
        ready = {node["metadata"]["name"]: node for node in nodes if _is_ready(node)}
        there = {name: _machine(node) for name, node in ready.items() if not node["spec"].get("unschedulable")}
        waiting = []
        for pod in pods:
            node = pod["spec"].get("nodeName") or pod.get("status", {}).get("nominatedNodeName")
            if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                continue
            if node in there:
                there[node].take(pod)
            elif not node and _is_unschedulable(pod):
                waiting.append(pod)
        templates = {one.pool.name: self._template(one, ready) for one in self._groups}
        coming = [templates[one.pool].fresh() for one in self.added if one.name not in ready]
        waiting.sort(key=lambda pod: -pod["spec"].get("priority", 0))
        helpless = [pod for pod in waiting if not _place(pod, (*there.values(), *coming))]
        for group in self._groups:
            asked = self._asked(group, templates[group.pool.name], helpless)
            if asked:
                return group.pool.name, asked
        return None

    def _template(self, group: _Group, ready: Mapping[str, Object]) -> Machine:
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
        resources = {"cpu": pool.cpu, "memory": pool.memory, "pods": "110", **pool.extra_resources}
        free = {key: quantity(value) for key, value in resources.items()}
        return Machine({GROUP_LABEL: pool.name, **pool.labels}, [read_taint(taint) for taint in pool.taints], free)

    @staticmethod
    def _asked(group: _Group, template: Machine, helpless: Sequence[Object]) -> int:
        """How many nodes the pods that would fit one of the group fill."""
        fresh: list[Machine] = []
        for pod in helpless:
            if template.fits(pod) and not _place(pod, fresh):
                fresh.append(template.fresh())
                fresh[-1].take(pod)
        return max(0, min(len(fresh), group.pool.most - len(group.nodes)))

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


def _place(pod: Object, machines: Iterable[Machine]) -> bool:
    for one in machines:
        if one.fits(pod):
            one.take(pod)
            return True
    return False


def sanitised(node: Object) -> Machine:
    """A node of the group as it would be if it came now: its labels stay, all of them."""
    found = _machine(copy.deepcopy(node))
    taints = [taint for taint in found.taints if not taint["key"].startswith(_PASSING_TAINTS)]
    return Machine({**found.labels, HOSTNAME: "template"}, taints, found.free, "template")


def _machine(node: Object) -> Machine:
    free = {key: quantity(value) for key, value in node["status"]["allocatable"].items()}
    metadata = node["metadata"]
    return Machine(metadata.get("labels", {}), node["spec"].get("taints", []), free, metadata["name"])


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _is_unschedulable(pod: Object) -> bool:
    if pod["metadata"].get("deletionTimestamp") or pod["spec"].get("priority", 0) < PRIORITY_CUTOFF:
        return False
    conditions = pod.get("status", {}).get("conditions") or []
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


def requests_of(pod: Object) -> dict[str, float]:
    """What a pod takes of a node: its containers' sum, or its greediest init container."""
    total: dict[str, float] = {"pods": 1.0}
    for one in pod["spec"]["containers"]:
        for key, value in one.get("resources", {}).get("requests", {}).items():
            total[key] = total.get(key, 0.0) + quantity(value)
    for one in pod["spec"].get("initContainers", ()):
        for key, value in one.get("resources", {}).get("requests", {}).items():
            total[key] = max(total.get(key, 0.0), quantity(value))
    return total


def quantity(value: str | float) -> float:
    """A Kubernetes quantity, of those that occur here."""
    text = str(value)
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return float(text)


def _is_tolerated(taint: Mapping[str, str], tolerations: Iterable[Mapping[str, str]]) -> bool:
    return any(
        one.get("key", taint["key"]) == taint["key"]
        and one.get("effect", taint["effect"]) == taint["effect"]
        and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""))
        for one in tolerations
    )


def _expression_holds(expression: Object, value: str | None) -> bool:
    operator, values = expression["operator"], expression.get("values", [])
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    raise ValueError(f"found operator {operator}, expected In, NotIn, Exists or DoesNotExist")
