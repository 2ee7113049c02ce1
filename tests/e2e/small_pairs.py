"""Many small drawn cases at once on one real control plane, each twice: where Roost is at work, and
where it isn't.

A side of a case has a namespace and nodes of its own, which its pods name by a label, so no pod of
one side could be on a node of another. Roost serves the namespaces and nodes with the label
`side=roost` alone. What became of each pod is judged as in the model (`tests/judge/verdicts.py`);
whether a pod had room as it was sent is asked of the model, of what really stands there. Not drawn
here: growth, volumes made late, spot nodes, several hubs, outages, troubles but cordons.
"""

import bisect
import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Self

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import Pod
from roost_core.objects.pod_reader import read_pod
from roost_core.placement.beliefs import WAITED_SECONDS
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.state import ClusterState
from tests.e2e.pair_machines import Kubelets, add_node, create_priority_classes, images_of, settle
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import NODES, FakeNodes
from tests.harness.pods import PODS
from tests.judge.cases import (
    BASE,
    BUILD,
    HOSTNAME,
    OTHER,
    TOLERATES_GPU,
    ZONE,
    Case,
    Pool,
    TroubleKind,
    build_pod,
    draw,
    other_pod,
    user_pod,
)
from tests.judge.verdicts import Victim, find_victims
from tests.judge.world import CLUSTER_PROFILE, Fate
from tests.scheduling import filter_nodes

CASE, SIDE = "example.com/case", "example.com/side"
NAME = "example.com/pod"
TEAM, DRIVER = "other-team", "gpu.example.com"
IMAGES = (BASE, OTHER, "quay.io/binder/repository:1")
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
OPEN_SECONDS = 3
# Both openings, kube-scheduler's longest back-off, and a plan and a write each time, on a machine
# that does much else.
LATE_SECONDS = 2 * OPEN_SECONDS + 10.0 + 4.0
# A server that hasn't started by then is deleted, and its user tries again: once. By then a pull
# that hangs counts.
START_SECONDS = WAITED_SECONDS + 2.0
PLAY_SECONDS = 31.0
# For the graces that are drawn; and the longest pull that ends.
GRACE_SECONDS = {0: 0, 5: 3, 60: 12}
LONG_SECONDS = 60.0
LOOK_SECONDS = 0.5
PARALLEL_REQUESTS = 8


def small(seed: int) -> Case:
    """The drawn case with twice as fast arrivals, pulls of some seconds, and no autoscaler."""
    case = draw(seed)
    return replace(
        case,
        pools=tuple(_roomy(pool) for pool in case.pools if pool.at_first),
        arrivals=tuple(
            replace(arrival, at_seconds=arrival.at_seconds / 2)
            for arrival in case.arrivals
            if arrival.at_seconds < 20.0
        ),
        others=tuple(
            replace(other, grace_seconds=GRACE_SECONDS[other.grace_seconds])
            for other in case.others
        ),
        troubles=tuple(trouble for trouble in case.troubles if trouble.what is TroubleKind.CORDON),
        pull_seconds=min(LONG_SECONDS, case.pull_seconds / 2),
        slow_pulls=frozenset(
            (image, node, seconds / 2) for image, node, seconds in case.slow_pulls
        ),
        unbound_volumes=frozenset(),
        reclaims=(),
        # A side has one namespace, so what is drawn of several hubs is one hub's.
        quotas=() if case.serves_many else case.quotas,
        volumes=tuple((f"jhub/{key.partition('/')[2]}", zone) for key, zone in case.volumes),
    )


def _roomy(pool: Pool) -> Pool:
    """With room for pullers beside users who fill it: where one needs the last thousandth of a
    node, promise 8 says.
    """
    memory = pool.memory if ".1" in pool.memory else pool.memory.replace("Gi", ".1Gi")
    return replace(pool, most=pool.at_first, cpu=f"{int(float(pool.cpu))}.1", memory=memory)


def _when(coming: tuple[float, JSONObject, str, str]) -> float:
    return coming[0]


def values_for(cases: Iterable[Case]) -> JSONObject:
    """One release for all cases: their namespaces, and placeholders for those that have some."""
    served = {"match": {"namespaceSelector": {"matchLabels": {SIDE: "roost"}}}}
    name, _, tag = BASE.rpartition(":")
    gpu = {"image": OTHER, "tolerations": [TOLERATES_GPU]}
    return {
        "podClasses": {"user": served, BUILD: served},
        "singleuser": {
            "image": {"name": name, "tag": tag},
            "profileList": [{"display_name": "gpu", "kubespawner_override": gpu}],
        },
        "prePuller": {"nodeSelector": {SIDE: "roost"}},
        "imageGate": {"openAfterSeconds": OPEN_SECONDS},
        "placeholders": [
            {"name": case.name, "replicas": 2, "nodeSelector": {CASE: f"{case.name}-roost"}}
            for case in cases
            if not case.is_imported or case.user_placeholders
        ],
    }


class CaseKubelets(Kubelets):
    """Kubelets of all cases' nodes, as slow and as helpless as their case says; other teams' pods
    take their grace.
    """

    def __init__(self, cluster: ControlPlane) -> None:
        super().__init__(cluster.api, IMAGES, 0.0)
        self.sides: dict[str, Side] = {}

    def _of(self, node: str) -> tuple[Case, str]:
        """The case, and what the node is called there."""
        side = self.sides[node]
        return side.case, node.removeprefix(f"{side.name}-")

    def seconds(self, node: str, image: str) -> float:
        case, name = self._of(node)
        # A timer can't wait for ever.
        return min(case.pull_takes(name, image), 3600.0)

    def fails(self, node: str, image: str) -> bool:
        case, name = self._of(node)
        return case.pull_fails(name, image)

    def is_bad(self, node: str, image: str) -> bool:
        """Whether a pull fails there, or takes longer than users wait where others don't."""
        case, name = self._of(node)
        hangs = case.pull_seconds <= START_SECONDS < case.pull_takes(name, image)
        return not self.holds(node, image) and (case.pull_fails(name, image) or hangs)

    def lingers(self, pod: JSONObject) -> bool:
        meta = pod["metadata"]
        seconds = meta.get("deletionGracePeriodSeconds", 0)
        if meta["namespace"] != TEAM or not seconds or pod["status"].get("phase") != "Running":
            return False
        with self._lock:
            if ("", meta["uid"]) not in self._pulls:
                self._start(("", meta["uid"]), seconds, self._end, pod)
        return True

    def _end(self, pod: JSONObject) -> None:
        self._api.delete(
            f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}", {"gracePeriodSeconds": 0}
        )


class Side:
    """One of the two. Times are seconds since users began to come."""

    def __init__(
        self, cluster: ControlPlane, nodes: FakeNodes, kubelets: CaseKubelets, case: Case, name: str
    ) -> None:
        self.cluster, self.nodes, self.kubelets, self.case = cluster, nodes, kubelets, case
        self.name = f"{case.name}-{name}"
        self.fates: dict[str, Fate] = {}
        self.journal: list[str] = []
        # Pods as they are stored: where Roost isn't, as they were sent, with the API server's
        # defaults.
        self.stored: dict[str, JSONObject] = {}
        self._failed: dict[tuple[str, str], float] = {}
        self._bound_at: dict[str, float] = {}
        # Those that were given up, until they come again.
        self._away: set[str] = set()
        self._cordoned: set[str] = set()
        # Servers that are given up unless they have started by then.
        self._again: list[tuple[float, JSONObject, str]] = []
        # What stood here at the last look.
        self._before = ClusterState()
        self._looked = 0.0
        self._placed: set[tuple[str, str]] = set()
        self._waited: dict[str, Pod] = {}
        self._due = sorted(self._plan(), key=_when)

    # What comes

    def prepare(self) -> None:
        """Create the namespace, the nodes and those who are there from the beginning."""
        side = {SIDE: self.name.rpartition("-")[2]}
        self.cluster.create_namespace(self.name, labels=side)
        for kind, given in (
            ("ResourceQuota", self.case.quotas),
            ("LimitRange", self.case.limit_ranges),
        ):
            for body in given:
                metadata = {"name": body["metadata"]["name"]}
                self.cluster.api.create(
                    {"apiVersion": "v1", "kind": kind, **body, "metadata": metadata}, self.name
                )
                if kind == "ResourceQuota":
                    # As its controller does first of all: without a status it refuses nobody.
                    hard = body["spec"]["hard"]
                    path = (
                        f"/api/v1/namespaces/{self.name}/resourcequotas/{metadata['name']}/status"
                    )
                    self.cluster.api.patch(
                        path, {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
                    )
        for key, zone in self.case.volumes:
            self._bind_volume(key.partition("/")[2], zone)
        for pool in self.case.pools:
            for index in range(pool.at_first):
                name = f"{self.name}-{pool.name}-{index}"
                self.kubelets.sides[name] = self
                add_node(self.nodes, self.kubelets, pool, index, name, **{CASE: self.name}, **side)
                for count in pool.devices.values():
                    self._add_devices(name, count)
        for other in self.case.others:
            if other.at_seconds is None:
                body = other_pod(other)
                body["spec"]["nodeSelector"] = {HOSTNAME: f"{self.name}-{other.node}"}
                self._send(body, other.kind, other.name, 0.0, TEAM)

    def _plan(self) -> Iterator[tuple[float, JSONObject, str, str]]:
        """When who comes: time, body, kind, namespace."""
        for index, arrival in enumerate(self.case.arrivals):
            body = user_pod(f"{arrival.profile}-{index}", self.case.profile(arrival.profile))
            if dict(self.case.volumes).get(f"jhub/{body['metadata']['name']}"):
                claim = {"claimName": body["metadata"]["name"]}
                body["spec"]["volumes"] = [{"name": "home", "persistentVolumeClaim": claim}]
            yield arrival.at_seconds, body, arrival.profile, self.name
        for other in self.case.others:
            if other.at_seconds is not None:
                yield other.at_seconds, other_pod(other), other.kind, TEAM
        for index, at in enumerate(self.case.builds):
            yield at, build_pod(f"build-{index}"), BUILD, self.name

    def _bind_volume(self, name: str, zone: str) -> None:
        size = {"storage": "1Gi"}
        spec: JSONObject = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        metadata = {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        volume = f"{self.name}-{name}"
        stored = self.cluster.api.create(
            {**claim, "spec": {**spec, "resources": {"requests": size}, "volumeName": volume}},
            self.name,
        )
        reference = {"namespace": self.name, "name": name, "uid": stored["metadata"]["uid"]}
        here = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
        spec |= {
            "capacity": size,
            "claimRef": reference,
            "csi": {"driver": "csi.example.com", "volumeHandle": volume},
        }
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": here}}
        body = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": spec,
        }
        self.cluster.api.create(body)

    def _add_devices(self, node: str, count: int) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": DRIVER,
            "nodeName": node,
            "pool": pool,
            "devices": [{"name": f"d{i}"} for i in range(count)],
        }
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": node},
        }
        self.cluster.api.create({**body, "spec": spec})

    def _send(self, body: JSONObject, kind: str, name: str, now: float, namespace: str) -> None:
        fate = self.fates.setdefault(name, Fate(kind, now))
        fate.created = now
        self._away.discard(name)
        body = {**body, "spec": {**body["spec"]}, "metadata": {**body["metadata"]}}
        body["spec"]["nodeSelector"] = {**body["spec"].get("nodeSelector", {}), CASE: self.name}
        body["spec"].setdefault(
            "tolerations", [] if namespace == self.name else [{"operator": "Exists"}]
        )
        if namespace == TEAM:
            body["metadata"]["name"] = f"{self.name}-{name}"
        body["metadata"]["labels"] = {
            **body["metadata"].get("labels", {}),
            CASE: self.name,
            NAME: name,
        }
        try:
            self.stored[name] = self.cluster.create_pod(body, namespace)
        except ApiError as error:
            if error.status != 403:
                raise
            fate.refused = str(error)
            self._say(now, f"{name} is refused: {error}")

    def send_due(self, now: float) -> None:
        """Let those come whose time it is, and those again who wait for a start in vain."""
        while self._due and self._due[0][0] <= now:
            _, body, kind, namespace = self._due.pop(0)
            self._send(body, kind, body["metadata"]["name"], now, namespace)
            if (
                kind != BUILD
                and namespace != TEAM
                and not self.fates[body["metadata"]["name"]].respawns
            ):
                self._again.append((now + START_SECONDS, body, kind))

    def try_again(self, now: float) -> None:
        """Give up servers that haven't started in time; their users come again a second later."""
        for when, body, kind in list(self._again):
            name = body["metadata"]["name"]
            fate = self.fates[name]
            if when > now or name not in self.stored:
                continue
            self._again.remove((when, body, kind))
            if fate.running is not None or fate.deleted is not None or not fate.node:
                continue
            self._say(now, f"{name} is given up on {fate.node} and comes again")
            fate.respawns += 1
            if now - self._bound_at[name] > WAITED_SECONDS + 1.0:
                self._failed = {(fate.node, image): now for image in images_of(body)} | self._failed
            path = f"/api/v1/namespaces/{self.name}/pods/{name}"
            self.cluster.api.delete(path, {"gracePeriodSeconds": 0})
            fate.node = ""
            self._waited.pop(name, None)
            self._away.add(name)
            bisect.insort(self._due, (now + 1.0, body, kind, self.name), key=_when)

    def strike(self, now: float) -> None:
        for trouble in self.case.troubles:
            name = f"{self.name}-{trouble.target}"
            if (
                trouble.at_seconds <= now
                and name in self.nodes.names
                and name not in self._cordoned
            ):
                self._cordoned.add(name)
                self.nodes.cordon(name)

    def _say(self, now: float, what: str) -> None:
        self.journal.append(f"{now:5.1f} s  {what}")

    # What becomes of them

    def look(
        self, nodes: Sequence[Node], bodies: Sequence[JSONObject], now: float, twin: "Side | None"
    ) -> None:
        """Note what is new. twin: the side without Roost, for the one with it."""
        mine = {one["metadata"]["labels"][NAME]: one for one in bodies if self._is_mine(one)}
        pods = {name: read_pod(one, keep_containers=True) for name, one in mine.items()}
        pods |= {
            one.key: one for one in (read_pod(body) for body in bodies if not self._is_mine(body))
        }
        sent = {name: self._as_sent(name, twin) for name in mine} if twin is not None else {}
        own = [pod.key for name, pod in pods.items() if name not in self.fates]
        placed = {(pod.uid, pod.node_name) for pod in pods.values() if pod.node_name}
        # Of several that came or went at once nobody can say what the scheduler saw.
        is_alone = len(placed ^ self._placed) == 1
        state = ClusterState((self._with_devices(node) for node in nodes), pods.values())
        for name, fate in self.fates.items():
            there, pod = mine.get(name), pods.get(name)
            lives = (
                name in self.stored
                and name not in self._away
                and fate.deleted is None
                and not fate.refused
            )
            if lives and (there is None or there["metadata"].get("deletionTimestamp")):
                self._note_deleted(name, now, sent, pods, own)
                continue
            if there is None or pod is None or fate.deleted is not None:
                continue
            if pod.node_name and fate.node != pod.node_name:
                fate.node, self._bound_at[name] = pod.node_name, now
                fate.bound = now if fate.bound is None else fate.bound
                self._say(now, f"{name} is bound to {pod.node_name}")
                if twin is not None:
                    self._question(sent[name], pod, state, fate, is_alone=is_alone)
            status = there["status"]
            if fate.running is None and status.get("phase") == "Running":
                fate.running = now
                self._say(now, f"{name} runs")
            if any("waiting" in one["state"] for one in status.get("containerStatuses", ())):
                for image in pod.spec.images:
                    if self.kubelets.fails(pod.node_name, image):
                        self._failed.setdefault((pod.node_name, image), now)
            if (
                twin is not None
                and not pod.node_name
                and self._has_room(sent[name], pod, state, own)
            ):
                fate.kept_waiting += now - self._looked
        self._before, self._looked, self._placed = state, now, placed
        self._waited = {name: pod for name, pod in pods.items() if not pod.node_name}

    def _is_mine(self, body: JSONObject) -> bool:
        labels = body["metadata"].get("labels", {})
        return NAME in labels and labels.get(CASE) == self.name

    def _with_devices(self, node: Node) -> Node:
        """The scheduler finds devices of DRA, which `allocatable` doesn't list."""
        pool = node.name.removeprefix(f"{self.name}-").rpartition("-")[0]
        devices = next(one.devices for one in self.case.pools if one.name == pool)
        return replace(node, allocatable={**node.allocatable, **devices})

    def _as_sent(self, name: str, twin: "Side") -> Pod:
        """The pod as it was sent, by its twin, with its volume's zone, which binds as a required
        term does.
        """
        body = twin.stored.get(name) or self.stored[name]
        mine = self.stored.get(name, body)
        spec = {key: value for key, value in body["spec"].items() if key != "nodeName"}
        spec["nodeSelector"] = {**spec["nodeSelector"], CASE: self.name}
        if zone := dict(self.case.volumes).get(f"jhub/{name}"):
            spec["nodeSelector"] |= {ZONE: zone}
        return read_pod(
            {"metadata": mine["metadata"], "spec": spec, "status": {}}, keep_containers=True
        )

    def _has_room(self, sent: Pod, pod: Pod, state: ClusterState, own: Sequence[str]) -> bool:
        with state.without(pod.key, *own):
            return schedule(sent, state, CLUSTER_PROFILE, with_preemption=False).node is not None

    def _question(
        self, sent: Pod, pod: Pod, state: ClusterState, fate: Fate, *, is_alone: bool
    ) -> None:
        """What speaks against a node by the pod as it was sent, both before and after it was
        bound.
        """
        failing = [
            one
            for one in sent.spec.images
            if self._failed.get((pod.node_name, one), fate.created) < fate.created
            and self.kubelets.is_bad(pod.node_name, one)
        ]
        if not failing and not sent.spec.spread_constraints:
            return
        seen = []
        for at in (self._before, state):
            with at.without(*([pod.key] if at.get_pod(pod.key) is not None else [])):
                seen.append(filter_nodes(sent, at, CLUSTER_PROFILE))
        against = [str(verdicts.get(pod.node_name)) for verdicts in seen]
        # Room that victims had is another matter.
        if is_alone and all("topology spread" in one for one in against):
            fate.misplaced = f"{sent.name} on {pod.node_name}: {against[1]}"
        fate.lured += bool(failing) and any(
            all(name in one and one[name] is None for one in seen)
            and not any(self.kubelets.is_bad(name, image) for image in failing)
            for name in seen[1]
        )

    def _note_deleted(
        self,
        name: str,
        now: float,
        sent: Mapping[str, Pod],
        pods: Mapping[str, Pod],
        own: Sequence[str],
    ) -> None:
        fate = self.fates[name]
        fate.deleted = now
        # Who was nominated, or has had no node before, comes first by its name.
        seen = {**self._waited, **pods}
        causes = [one for one in seen if seen[one].nominated_node == fate.node]
        causes = causes or [
            one for one in self._waited if one in pods and pods[one].node_name == fate.node
        ]
        fate.deleted_for = min(causes, default="")
        fate.is_deleted_by_roost = any(
            cause not in sent or self._has_room(sent[cause], seen[cause], self._before, own)
            for cause in causes
        )
        self._say(now, f"{name} is deleted on {fate.node} for {fate.deleted_for}")


class Wave:
    """`with Wave(cluster, cases) as wave: wave.play()`: all cases at once, Roost at work
    already.
    """

    def __init__(self, cluster: ControlPlane, cases: Sequence[Case]) -> None:
        self.cluster, self.api, self.cases = cluster, cluster.api, cases
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as exits:
            exits.callback(self._remove)
            nodes = exits.enter_context(FakeNodes(self.api))
            kubelets = exits.enter_context(CaseKubelets(self.cluster))
            self.pairs = [
                tuple(
                    Side(self.cluster, nodes, kubelets, case, name) for name in ("plain", "roost")
                )
                for case in self.cases
            ]
            self.sides = [side for pair in self.pairs for side in pair]
            create_priority_classes(self.api, self.cases[0])
            with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
                list(pool.map(Side.prepare, self.sides))
            settle(self._standing)
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _remove(self) -> None:
        for side in self.sides:
            self.api.delete(f"/api/v1/namespaces/{side.name}")
        for path in (f"/api/v1/namespaces/{TEAM}/pods", "/api/v1/persistentvolumes", SLICES):
            self.api.request("DELETE", path, {"gracePeriodSeconds": 0})

    def _standing(self) -> object:
        pods = [
            (pod["metadata"]["name"], pod["spec"].get("nodeName")) for pod in self.api.list(PODS)
        ]
        return [node["metadata"]["labels"] for node in self.api.list(NODES)], sorted(pods, key=str)

    def play(self) -> dict[str, list[Victim]]:
        began = time.monotonic()
        last = max(arrival.at_seconds for case in self.cases for arrival in case.arrivals)
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            while (now := time.monotonic() - began) < last + PLAY_SECONDS:
                for act in (Side.strike, Side.send_due, Side.try_again):
                    list(pool.map(act, self.sides, [now] * len(self.sides)))
                self._look(time.monotonic() - began)
                time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began - now)))
        played = zip(self.cases, self.pairs, strict=True)
        return {
            case.name: list(find_victims(case, *pair, late_seconds=LATE_SECONDS))
            for case, pair in played
        }

    def _look(self, now: float) -> None:
        nodes: dict[str, list[Node]] = {}
        for node in map(read_node, self.api.list(NODES)):
            nodes.setdefault(node.labels.get(CASE, ""), []).append(node)
        of_node = {node.name: name for name, found in nodes.items() for node in found}
        bodies: dict[str, list[JSONObject]] = {}
        for body in self.api.list(PODS):
            name = body["metadata"].get("labels", {}).get(CASE) or of_node.get(
                body["spec"].get("nodeName", ""), ""
            )
            bodies.setdefault(name, []).append(body)
        for plain, roost in self.pairs:
            for side, twin in ((plain, None), (roost, plain)):
                side.look(nodes.get(side.name, []), bodies.get(side.name, []), now, twin)
