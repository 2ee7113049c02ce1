"""Play a case second by second: an API server's admission, the scheduler's model, kubelets, an
autoscaler and a hub.

Owns what becomes of each pod. What the model lacks is stood in for by Kubernetes' documented rules,
as little as the cases need: built-in admission (`admission.py`), bound volumes as a required zone,
grace periods, pulls.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, cast

from roost.controllers.contract.actions import Action, ChangeNode, EvictPod, Outcome, ScaleSet
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.runtime.watching.stateful_sets import read_stateful_set
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import DEFAULT_SCHEDULER, Pod
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.quotas import read_container_defaults, read_quota
from roost_core.objects.selectors import NodeTerm, Requirement, Taint, untolerated
from roost_core.placement.beliefs import LEASE_SECONDS, WAITED_SECONDS
from roost_core.placement.headroom_history import DAY_MINUTES, History
from roost_core.placement.kubelet_pulls import PullEvent
from roost_core.placement.labels import OWN_PART, PART_OF_LABEL
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.preemption import Nomination
from roost_core.scheduler.profile import default_profile
from roost_core.scheduler.state import ClusterState
from tests.builders import NAMESPACE
from tests.e2e.pair_machines import Added, ClusterAutoscaler
from tests.harness.nodes import read_taint
from tests.judge import cases
from tests.judge.admission import Refused, admit
from tests.judge.roost_here import Release, RoostHere, copied, upgraded
from tests.scheduling import filter_nodes

EPOCH = 1_800_000_000.0
# Before anybody comes, Roost has so long to label nodes and place its own pods.
SETTLE_SECONDS = 10
# A server that hasn't started by then is deleted, and its user tries again: so often.
START_TIMEOUT, RETRIES = 40.0, 2
BACK_OFF_SECONDS, FAULT_SECONDS = 10.0, 2.0
# Users whose node was taken back click so soon.
RETURN_SECONDS = 3.0
SCAN_SECONDS = 4
NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
DAEMON_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
]
CLUSTER_PROFILE = default_profile(NEWEST_MINOR)


@lru_cache(maxsize=1024)
def stamp(now: float) -> str:
    """A moment of the world as the API writes it."""
    seconds = int(EPOCH + now)
    # The whole world lasts some minutes: the day stays.
    day, rest = divmod(seconds, 86400)
    assert day == 20833
    return f"2027-01-15T{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}Z"


@dataclass(slots=True)
class Fate:
    """What became of one pod; times are seconds since the first arrival's moment."""

    # Its profile's name, or its team's: pods of one kind are as good as each other.
    kind: str
    created: float
    is_own: bool = False
    # When it first had a node, and when it ran.
    bound: float | None = None
    running: float | None = None
    # Why it was refused at admission.
    refused: str = ""
    # When it was pre-empted, and for which pod. By Roost: that pod, as it was sent, had room beside
    # others'.
    deleted: float | None = None
    deleted_for: str = ""
    is_deleted_by_roost: bool = False
    # For how many seconds it had no node though it had had one as it was sent, beside Roost's own.
    kept_waiting: float = 0.0
    # Where it was bound against its own rules.
    misplaced: str = ""
    # What the webhook said of it that isn't so.
    misjudged: str = ""
    # How often Roost's scheduler bound it where a pull was known to fail, or a start was given up,
    # though it had room, as it was sent, where none fails; and how often it would have gone there
    # but for the room of Roost's own pods.
    lured: int = 0
    crowded: int = 0
    respawns: int = 0
    node: str = ""
    # It names a scheduler that is no longer there, from a moment when nobody could know.
    is_excused: bool = False
    # Its node was taken back while an earlier pod of this name ran there, which chance decides.
    is_again: bool = False


def _histories(foreseen: cases.Foreseen | None) -> dict[str, str]:
    """What the placeholders learned: so many people came at this time on earlier days."""
    if foreseen is None or not foreseen.learned:
        return {}
    now = int(EPOCH // 60)
    days = 15
    levels = array("i", [0] * (days * DAY_MINUTES))
    for day in range(1, days):
        begin = day * DAY_MINUTES
        levels[begin : begin + 60] = array("i", [foreseen.learned] * 60)
    return {"default": History(now - days * DAY_MINUTES, levels).as_text()}


class World:
    """`World(case, release).play()`; release: None: Roost isn't there. beside: a second release."""

    def __init__(
        self, case: cases.Case, release: Release | None, beside: Release | None = None
    ) -> None:
        self.case = case
        self.now = -float(SETTLE_SECONDS)
        self.fates: dict[str, Fate] = {}
        # What happened, in words, for a report.
        self.journal: list[str] = []
        self.nodes: dict[str, Node] = {}
        self.bodies: dict[str, JSONObject] = {}
        self.pods: dict[str, Pod] = {}
        self._namespaces = {
            profile.namespace: profile.namespace_labels for profile in case.profiles
        }
        releases = [one for one in (release, beside) if one is not None]
        self._roosts = [RoostHere(one, self._namespaces) for one in releases]
        # Whom faults and troubles strike.
        self._roost = self._roosts[0] if self._roosts else None
        self._release = release
        self._profiles = {name: one.profiles[name] for one in releases for name in one.profiles}
        self._profiles[DEFAULT_SCHEDULER] = CLUSTER_PROFILE
        self._state = ClusterState()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._version = 0
        self._kept = self._scanned = -1
        # What each pod was tried in, by uid; a pod that is bound changes it for those that are
        # spread.
        self._tried: dict[str, tuple[int, int]] = {}
        self._binds = 0
        # The users that came: how their pods are sent, by key.
        self._arrived: dict[str, tuple[JSONObject, cases.Profile]] = {}
        # Pods as they were sent, and by uid at which version of the world each had room, or hadn't.
        self._sent: dict[str, Pod] = {}
        self._had_room: dict[str, tuple[int, bool]] = {}
        self._held: dict[str, set[str]] = {}
        # What nodes held when the controllers were killed: labels stay as they were then.
        self._held_at_kill: dict[str, set[str]] = {}
        # By node, image and pull secret: why it fails now; "": it doesn't.
        self._pulls: dict[tuple[str, str, str], str] = {}
        # Images of pods that pull in any case, by the pod's uid: answered, and asked for again.
        self._answered: set[tuple[str, str]] = set()
        self._asking: set[tuple[str, str]] = set()
        # Since when another than Roost's own pods saw a pull fail, or was given up as it waited, by
        # watcher, node, image and secret; and since when one saw a registry fail, by watcher, image
        # and secret.
        self._failed: dict[tuple[str, str, str, str], float] = {}
        self._refused: dict[tuple[str, str, str], float] = {}
        self._bound_at: dict[str, float] = {}
        self._events: dict[str, PullEvent] = {}
        # Where a set learns, the controllers say its number.
        self._sets = {
            one["metadata"]["name"]: {**one, "spec": {"replicas": 0, **one["spec"]}}
            for one in _of_kind(releases, "StatefulSet")
        }
        self._histories = {
            NAMESPACE: _histories(case.foreseen),
            cases.BESIDE: _histories(case.beside),
        }
        self._daemons = _of_kind(releases, "DaemonSet")
        self._classes = {name: (value, never) for name, value, never in case.priorities}
        for body in _of_kind(releases, "PriorityClass"):
            never = body.get("preemptionPolicy") == "Never"
            self._classes[body["metadata"]["name"]] = body["value"], never
        self._zones: dict[str, str] = dict(case.volumes)
        self._scaler = ClusterAutoscaler(
            cast("Any", None), case.pools, "", case.boot_seconds, lambda: self.now
        )
        self._begin()

    @property
    def did(self) -> Counter[str]:
        """What Roost did with users' pods."""
        return sum((roost.did for roost in self._roosts), Counter())

    # Time

    def play(self) -> "World":
        """Until nothing more comes, and everybody has had time."""
        last = self.case.arrivals[-1].at_seconds if self.case.arrivals else 0.0
        end = last + self.case.plays_seconds
        while self.now < end:
            self._second()
            self.now += 1.0
        return self

    def at(self, when: float, what: Callable[[], None]) -> None:
        heappush(self._due, (when, next(self._number), what))

    def _second(self) -> None:
        while self._due and self._due[0][0] <= self.now:
            heappop(self._due)[2]()
        self._keep_sets()
        self._schedule()
        self._count_waits()
        for roost in self._roosts:
            if self.now % 2 == 0:
                self._renew_leases(roost)
            roost.look(self.now)
            roost.plan(self._snapshot(roost), EPOCH, self._apply)
        if self.now >= 0 and self.now % SCAN_SECONDS == 0:
            self._scan()

    def _renew_leases(self, roost: RoostHere) -> None:
        rules = roost.release.rules
        if roost.controllers_run:
            roost.renew("controllers", "a", stamp(self.now))
        if "scheduler" in rules.leases and self._scheduler_runs:
            roost.renew("scheduler", f"{rules.scheduler_host}_a", stamp(self.now))

    def _roost_of(self, namespace: str) -> RoostHere | None:
        """Whose webhook is called for a pod of this namespace."""
        own = (roost for roost in self._roosts[1:] if roost.namespace == namespace)
        return next(own, self._roost)

    # The beginning

    def _begin(self) -> None:
        case = self.case
        self._scheduler_runs = True
        for roost in self._roosts:
            classes = [
                {"metadata": {"name": name}, "value": value} for name, value, _ in case.priorities
            ]
            classes += _of_kind([one.release for one in self._roosts], "PriorityClass")
            devices = {name for pool in case.pools for name in pool.devices}
            mapped = [
                {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": name}}
                for name in devices
            ]
            roost.tell_cluster(classes, case.quotas, mapped)
            self._renew_leases(roost)
            roost.look(self.now)
        for pool in case.pools:
            for index in range(pool.at_first):
                self._scaler.adopt(pool.name, f"{pool.name}-{index}")
                self._add_node(pool, f"{pool.name}-{index}", ready=True, holds=pool.holds_at(index))
        for other in case.others:
            come = partial(
                self._create,
                cases.other_pod(other),
                other.kind,
                namespace=cases.TEAM,
                node=other.node,
            )
            if other.at_seconds is None:
                come()
            else:
                self.at(other.at_seconds, come)
        for index, arrival in enumerate(case.arrivals):
            self.at(
                arrival.at_seconds, partial(self._arrive, f"{arrival.profile}-{index}", arrival)
            )
        for index, at in enumerate(case.builds):
            self.at(at, partial(self._create, cases.build_pod(f"build-{index}"), cases.BUILD))
        if case.fault is cases.Fault.KILLED:
            self.at(case.fault_at_seconds, self._kill_controllers)
        for trouble in case.troubles:
            self.at(trouble.at_seconds, partial(self._strike, trouble))
        for writing in case.writings:
            self.at(writing.at_seconds, partial(self._write, writing))
        for reclaim in case.reclaims:
            self.at(reclaim.at_seconds, partial(self._announce, reclaim))

    def _kill_controllers(self) -> None:
        self._say("controllers are killed")
        if self._roost is None:
            return
        self._roost.controllers_run = False
        self._held_at_kill = {name: set(held) for name, held in self._held.items()}
        if self.case.has_standby:
            self.at(self.now + LEASE_SECONDS, self._roost.take_over)

    def _strike(self, trouble: cases.Trouble) -> None:
        self._say(f"{trouble.what} {trouble.target}")
        if trouble.what is cases.TroubleKind.CORDON and trouble.target in self.nodes:
            self._set_node(replace(self.nodes[trouble.target], unschedulable=True))
        if (roost := self._roost) is None:
            return
        if trouble.what is cases.TroubleKind.CLOCK:
            roost.clock_off = float(trouble.target)
        elif trouble.what is cases.TroubleKind.SCHEDULER_DIES_UNSEEN:
            roost.refuses_leases = int(trouble.target)
            self._scheduler_runs = False
            self._profiles = {DEFAULT_SCHEDULER: CLUSTER_PROFILE}
            for key, pod in self.pods.items():
                self.fates[key].is_excused = (
                    not pod.node_name and pod.scheduler_name != DEFAULT_SCHEDULER
                )
        elif trouble.what is cases.TroubleKind.UPGRADE:
            roost.upgrade(upgraded(self.case))

    def _write(self, writing: cases.Writing) -> None:
        """Somebody books, or takes it back."""
        if self._roost is not None:
            self._say(f"{writing.namespace} books {writing.text or 'nothing more'}")
            self._roost.tell_booking(writing.namespace, writing.text)

    def _announce(self, reclaim: cases.Reclaim) -> None:
        """A node is to be taken back."""
        self._say(f"{reclaim.node} is taken back in {reclaim.notice_seconds:.0f} s")
        if reclaim.notice_seconds:
            node = self.nodes[reclaim.node]
            taints = [Taint(reclaim.taint, "", "NoSchedule")] if reclaim.taint else []
            self._set_node(replace(node, unschedulable=True, taints=(*node.taints, *taints)))
        self.at(self.now + reclaim.notice_seconds, partial(self._take_back, reclaim.node))

    def _take_back(self, name: str) -> None:
        """The node goes, and its pods with it; the users among them start their servers again."""
        self._say(f"{name} is taken back")
        del self.nodes[name]
        self._state.remove_node(name)
        self._scaler.lose(name)
        self._held[name].clear()
        for roost in self._roosts:
            roost.tell_node(name, None)
        self._version += 1
        for key, pod in list(self.pods.items()):
            if pod.node_name == name:
                self._remove(key)
                if key in self._arrived:
                    self.at(self.now + RETURN_SECONDS, partial(self._return, key))

    def _return(self, key: str) -> None:
        """A user whose node is gone starts a server again. If an earlier one ran, that start is
        judged apart: who was on that node is chance.
        """
        body, profile = self._arrived[key]
        earlier = self.fates[key]
        if earlier.running is not None:
            kind = f"{earlier.kind} again"
            self.fates[f"{key} before {self.now:.0f} s"] = earlier
            self.fates[key] = Fate(kind, self.now, is_again=True)
        self._start_server(body, profile, self.fates[key].kind)

    # Nodes

    def _add_node(
        self, pool: cases.Pool, name: str, *, ready: bool, holds: Iterable[str] = ()
    ) -> None:
        zone = pool.zone_at(
            sum(node.labels[cases.GROUP_LABEL] == pool.name for node in self.nodes.values())
        )
        of_pool = {cases.GROUP_LABEL: pool.name, **pool.labels}
        taints = [read_taint(taint) for taint in pool.taints]
        body = {
            "metadata": {
                "name": name,
                "uid": f"{name}-{self.now}",
                "labels": {
                    cases.HOSTNAME: name,
                    "kubernetes.io/os": "linux",
                    cases.ZONE: zone,
                    **of_pool,
                },
                "creationTimestamp": stamp(self.now),
            },
            "spec": {"taints": taints if ready else [*taints, NOT_READY._asdict()]},
            "status": {
                "allocatable": {
                    "cpu": pool.cpu,
                    "memory": pool.memory,
                    "pods": "110",
                    **pool.extra_resources,
                },
                "conditions": [
                    {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(self.now)}
                ],
            },
        }
        self._held[name] = set(holds)
        self._set_node(self._with_images(read_node(body)))

    def _with_images(self, node: Node) -> Node:
        images = dict.fromkeys(sorted(self._held[node.name]), cases.IMAGE_BYTES)
        return replace(
            node, images={"registry.k8s.io/pause:3.10.1": 1, **images}, image_count=len(images) + 1
        )

    def _set_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        self._version += 1
        self._state.set_node(self._with_devices(node))
        for roost in self._roosts:
            roost.tell_node(node.name, node)

    def _with_devices(self, node: Node) -> Node:
        """Devices of DRA aren't in `allocatable`; the scheduler finds them all the same."""
        pool = next(pool for pool in self.case.pools if pool.name == node.labels[cases.GROUP_LABEL])
        return (
            replace(node, allocatable={**node.allocatable, **pool.devices})
            if pool.devices
            else node
        )

    # Pods

    def _arrive(self, name: str, arrival: cases.Arrival) -> None:
        profile = self.case.profile(arrival.profile)
        body = cases.user_pod(name, profile)
        self._arrived[f"{profile.namespace}/{body['metadata']['name']}"] = body, profile
        self._start_server(body, profile, profile.name)

    def _start_server(
        self, body: JSONObject, profile: cases.Profile, kind: str, tries: int = 1
    ) -> None:
        self._create(body, kind, namespace=profile.namespace)
        pod = self.pods.get(f"{profile.namespace}/{body['metadata']['name']}")
        if pod is not None:
            self.at(self.now + START_TIMEOUT, lambda: self._retry(body, profile, pod.uid, tries))

    def _retry(self, body: JSONObject, profile: cases.Profile, uid: str, tries: int) -> None:
        """The hub gives a server up that hasn't started, and its user tries again."""
        key = f"{profile.namespace}/{body['metadata']['name']}"
        if key not in self.pods or self.pods[key].uid != uid:
            return
        fate = self.fates[key]
        if fate.running is not None or fate.refused or fate.deleted is not None or tries > RETRIES:
            return
        # Nobody takes a pod for broken that waits for room, or for a node that its author names and
        # that isn't here.
        if key not in self._bound_at or not self.pods[key].node_name:
            return
        self._say(f"{key} is given up on {fate.node} and comes again")
        fate.respawns += 1
        if self.now - self._bound_at[key] > WAITED_SECONDS + 1.0:
            secret = _secret_of(body)
            for image in set(self.pods[key].spec.images) - self._held[fate.node]:
                self._failed.setdefault((self._watcher(key), fate.node, image, secret), self.now)
        self._remove(key)
        self._start_server(body, profile, fate.kind, tries + 1)

    def _create(
        self, body: JSONObject, kind: str, *, namespace: str = NAMESPACE, node: str = ""
    ) -> None:
        name = body["metadata"]["name"]
        key = f"{namespace}/{name}"
        is_own = body["metadata"].get("labels", {}).get(PART_OF_LABEL) == OWN_PART
        fate = self.fates.setdefault(key, Fate(kind, self.now, is_own=is_own))
        body = copied(body)
        uid = f"{name}-{next(self._number)}"
        body["metadata"] |= {
            "namespace": namespace,
            "uid": uid,
            "creationTimestamp": stamp(self.now),
        }
        there = [one for one in self.bodies.values() if one["metadata"]["namespace"] == namespace]
        change = None
        roost = self._roost_of(namespace)
        if roost is not None and not node:

            def change(sent: JSONObject) -> JSONObject:
                self._sent[key] = pod = read_pod(sent)
                patched = roost.review(sent, namespace)
                fate.misjudged = fate.misjudged or self._misjudges(pod, roost.said)
                return patched

        limits = {"quotas": self.case.quotas, "limit_ranges": self.case.limit_ranges}
        try:
            body = admit(body, there, self._classes, **limits, change=change)
        except Refused as error:
            self._say(f"{key} is refused: {error}")
            fate.refused = str(error)
            return
        body["status"] = {"phase": "Pending", "conditions": []}
        is_known = body["spec"].get("schedulerName") in self._profiles
        if self._roost is not None and not self._scheduler_runs and not is_known:
            fate.is_excused = self.now < self._knows_at
        if node:
            body["spec"]["nodeName"] = node
        self._set_pod(key, body)
        if node:
            self._bound(key, node)

    def _misjudges(self, pod: Pod, notes: Iterable[str]) -> str:
        """What the webhook said: that no node is large enough, though one that holds all is. "":
        nothing such.
        """
        if not (said := [note for note in notes if "large enough" in note]):
            return ""
        images = self.case.images.intersection(pod.spec.images)
        able = [
            node
            for node in self.nodes.values()
            if node.ready and self._labelled(node.name) >= images
        ]
        fits = filter_nodes(pod, ClusterState(map(self._with_devices, able)), CLUSTER_PROFILE)
        return next(
            (
                f"{pod.key} fits {name}: {said[0]}"
                for name, verdict in fits.items()
                if verdict is None
            ),
            "",
        )

    def _labelled(self, node: str) -> set[str]:
        """Images that a node holds and whose labels controllers may have written."""
        held = self._held[node]
        if self._roost is None or self._roost.controllers_run:
            return held
        return held & self._held_at_kill.get(node, set())

    @property
    def _knows_at(self) -> float:
        died_at = next(
            trouble.at_seconds
            for trouble in self.case.troubles
            if trouble.what is cases.TroubleKind.SCHEDULER_DIES_UNSEEN
        )
        return died_at + 32.0

    def _set_pod(self, key: str, body: JSONObject) -> None:
        self.bodies[key] = body
        pod = self.pods[key] = read_pod(body, keep_containers=True)
        self._state.add_pod(pod)
        for roost in self._roosts:
            roost.tell_pod(key, body, pod.labels)

    def _remove(self, key: str) -> None:
        if (pod := self.pods.pop(key, None)) is None:
            return
        self._version += 1
        del self.bodies[key]
        if self._state.get_pod(key) is not None:
            self._state.remove_pod(key)
        for roost in self._roosts:
            roost.tell_pod(key, None, pod.labels)

    # The scheduler

    def _schedule(self) -> None:
        waiting = [pod for pod in self.pods.values() if not pod.node_name and not pod.leaving]
        for pod in sorted(waiting, key=lambda pod: (-pod.priority, pod.created, pod.key)):
            profile = self._profiles.get(pod.scheduler_name)
            known = self._version, self._binds if pod.spec.spread_constraints else 0
            if profile is None or pod.key not in self.pods or self._tried.get(pod.uid) == known:
                continue
            decision = schedule(self._as_scheduled(pod), self._state, profile)
            self._tried[pod.uid] = known
            if decision.node is not None:
                self._question(pod, decision.node)
                self.bodies[pod.key]["spec"]["nodeName"] = decision.node
                self.bodies[pod.key]["status"] |= {"conditions": [], "nominatedNodeName": ""}
                self._set_pod(pod.key, self.bodies[pod.key])
                self._bound(pod.key, decision.node)
                continue
            self._mark_unschedulable(pod.key)
            self._scanned = -1
            if decision.nomination is not None:
                self._preempt(pod, decision.nomination)

    def _count_waits(self) -> None:
        # What is closed stays closed while no controllers lead: promise 8's own exception.
        if self._roost is None or not self._roost.controllers_run:
            return
        for key, pod in self.pods.items():
            if not pod.node_name and not self.fates[key].is_own and self._has_room_as_sent(pod):
                self.fates[key].kept_waiting += 1.0

    def _has_room_as_sent(self, pod: Pod) -> bool:
        """Whether the pod as it was sent would fit now, if Roost's own pods weren't there."""
        version, had_room = self._had_room.get(pod.uid, (-1, False))
        if version != self._version:
            own = [key for key in self.pods if self.fates[key].is_own]
            with self._state.without(pod.key, *own):
                sent = self._as_scheduled(self._sent[pod.key])
                had_room = (
                    schedule(sent, self._state, CLUSTER_PROFILE, with_preemption=False).node
                    is not None
                )
            self._had_room[pod.uid] = self._version, had_room
        return had_room

    def _question(self, pod: Pod, node: str) -> None:
        """Note what speaks against a node by the pod as it was sent: its own rules, and pulls known
        to fail there.
        """
        created = pod.created - EPOCH
        secret = _secret_of(self.bodies[pod.key])
        failing = [
            image
            for image in pod.spec.images
            if self._fails(node, image, secret)
            and self._is_known(pod.key, node, image, secret, created)
        ]
        if pod.scheduler_name == DEFAULT_SCHEDULER and self._release and self._release.profiles:
            # Roost's scheduler is away, and the cluster's weighs older users' terms otherwise.
            failing = []
        if pod.nominated_node == node:
            # It was chosen when the victims were, and what they leave elsewhere is for others.
            failing = []
        if pod.key not in self._sent or not (failing or pod.spec.spread_constraints):
            return
        fate = self.fates[pod.key]
        sent = self._as_scheduled(self._sent[pod.key])
        verdicts = filter_nodes(sent, self._state, CLUSTER_PROFILE)
        if (verdict := verdicts[node]) is not None:
            fate.misplaced = f"{pod.key} on {node}: {', '.join(verdict.reasons)}"
        if not failing:
            return

        def is_better(name: str) -> bool:
            return not any(self._fails(name, image, secret) for image in failing)

        # By the cluster's scheduler others may go to a bad node, too: where would it have sent this
        # one?
        here = schedule(sent, self._state, CLUSTER_PROFILE, with_preemption=False).node
        better = [name for name, verdict in verdicts.items() if verdict is None and is_better(name)]
        if (pod.scheduler_name != DEFAULT_SCHEDULER and better) or here in better:
            fate.lured += 1
            return
        with self._state.without(*(key for key in self.pods if self.fates[key].is_own)):
            there = schedule(sent, self._state, CLUSTER_PROFILE, with_preemption=False).node
        fate.crowded += there is not None and is_better(there)

    def _as_scheduled(self, pod: Pod) -> Pod:
        """With its volume's zone, which is as binding as a required term."""
        if not (zone := self._zones.get(pod.key)):
            return pod
        here = Requirement(cases.ZONE, "In", frozenset({zone}))
        terms = pod.spec.required_node_terms
        zoned = [
            NodeTerm((*term.expressions, here), term.fields)
            for term in terms or (NodeTerm((), ()),)
        ]
        return replace(pod, spec=replace(pod.spec, required_node_terms=tuple(zoned)))

    def _mark_unschedulable(self, key: str) -> None:
        status = self.bodies[key]["status"]
        if not status["conditions"]:
            told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            status["conditions"] = [{**told, "lastTransitionTime": stamp(self.now)}]
            self._set_pod(key, self.bodies[key])

    def _preempt(self, pod: Pod, nomination: Nomination) -> None:
        self.bodies[pod.key]["status"]["nominatedNodeName"] = nomination.node
        self._set_pod(pod.key, self.bodies[pod.key])
        for victim in nomination.victims:
            self._say(f"{victim.key} is deleted on {nomination.node} for {pod.key}")
            fate = self.fates[victim.key]
            fate.deleted, fate.deleted_for = self.now, pod.key
            if self._roost is not None:
                fate.is_deleted_by_roost = self.fates[pod.key].is_own or self._has_room_as_sent(pod)
            self._end(victim.key)
        self._version += 1

    def _end(self, key: str) -> None:
        """Delete with the pod's grace: one whose containers haven't started goes at once."""
        body = self.bodies[key]
        grace = (
            body["spec"].get("terminationGracePeriodSeconds", 30)
            if self.fates[key].running is not None
            else 0
        )
        uid = body["metadata"]["uid"]
        body["metadata"]["deletionTimestamp"] = stamp(self.now)
        disrupted = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
        }
        body["status"]["conditions"] = [*body["status"]["conditions"], disrupted]
        self._set_pod(key, self.bodies[key])
        self.at(self.now + max(1.0, grace), lambda: self._gone(key, uid))

    def _gone(self, key: str, uid: str) -> None:
        if key in self.pods and self.pods[key].uid == uid:
            self._remove(key)

    # Kubelets

    def _bound(self, key: str, node: str) -> None:
        self._say(f"{key} is bound to {node}")
        self._binds += 1
        self._bound_at[key] = self.now
        fate = self.fates[key]
        fate.bound, fate.node = self.now if fate.bound is None else fate.bound, node
        if key in self.case.unbound_volumes:
            self._zones.setdefault(key, self.nodes[node].labels[cases.ZONE])
        self._sync(key)

    def _images(self, body: JSONObject) -> Mapping[str, frozenset[str]]:
        """What each container waits for: its image and those that it mounts."""
        volumes = {
            volume["name"]: volume["image"]["reference"]
            for volume in body["spec"].get("volumes", ())
            if "image" in volume
        }
        return {
            container["name"]: frozenset(
                image
                for image in (
                    container["image"],
                    *(volumes.get(m["name"], "") for m in container.get("volumeMounts", ())),
                )
                if image in self.case.images
            )
            for container in body["spec"]["containers"]
        }

    def _sync(self, key: str) -> None:
        """A kubelet looks at one of its pods: it pulls what is missing, and starts what can
        start.
        """
        body = self.bodies.get(key)
        if body is None or body["metadata"].get("deletionTimestamp"):
            return
        node, secret = body["spec"]["nodeName"], _secret_of(body)
        asks = {
            container["name"]
            for container in body["spec"]["containers"]
            if container.get("imagePullPolicy") == "Always"
        }
        states, runs = [], True
        for name, images in self._images(body).items():
            missing = [image for image in images if image not in self._held[node]]
            refused = [] if name not in asks else self._ask(key, images - {*missing})
            for image in missing:
                self._pull(node, image, secret)
                if self._pulls[node, image, secret] and not self.fates[key].is_own:
                    watcher = self._watcher(key)
                    self._failed.setdefault((watcher, node, image, secret), self.now)
                    if self.case.is_out(image, secret, self.now):
                        self._refused.setdefault((watcher, image, secret), self.now)
            faults = [self._pulls[node, image, secret] for image in missing]
            faults += ["ErrImagePull"] * len(refused)
            missing += refused
            fault = next(filter(None, faults), "")
            runs = runs and not missing
            waiting = {"reason": fault or "ContainerCreating", "message": ""}
            state = {"waiting": waiting} if missing else {"running": {}}
            image_id = "" if missing else "sha256:1"
            states.append({"name": name, "imageID": image_id, "ready": not missing, "state": state})
        status = body["status"]
        if status.get("containerStatuses") == states:
            return
        status["containerStatuses"] = states
        if runs:
            status |= {"phase": "Running", "startTime": stamp(self.now)}
            self.fates[key].running = self.now
        self._set_pod(key, self.bodies[key])

    def _ask(self, key: str, images: Iterable[str]) -> list[str]:
        """A kubelet asks the registry for what its node holds; return what is refused for now."""
        uid, secret = self.bodies[key]["metadata"]["uid"], _secret_of(self.bodies[key])
        refused = []
        for image in images:
            asked = uid, image
            if asked in self._answered:
                continue
            if not self.case.is_out(image, secret, self.now):
                self._answered.add(asked)
                continue
            refused.append(image)
            self._refused.setdefault((self._watcher(key), image, secret), self.now)
            if asked not in self._asking:
                self._asking.add(asked)
                self.at(self.now + BACK_OFF_SECONDS, partial(self._ask_again, key, asked))
        return refused

    def _ask_again(self, key: str, asked: tuple[str, str]) -> None:
        self._asking.discard(asked)
        if key in self.pods and self.pods[key].uid == asked[0]:
            self._sync(key)

    def _watcher(self, key: str) -> str:
        """The namespace of the release that watches a pod, of each release its own; "": there is
        none.
        """
        roost = self._roost_of(key.partition("/")[0])
        return "" if roost is None else roost.namespace

    def _is_known(self, key: str, node: str, image: str, secret: str, before: float) -> bool:
        """Whether whoever places the pod had seen that the pull fails: there, or anywhere as its
        registry does.
        """
        roost = self._roost_of(key.partition("/")[0])
        if roost is not None and roost.watches_other_hubs:
            watchers = [one.namespace for one in self._roosts]
        else:
            watchers = [self._watcher(key)]
        seen = [self._failed.get((watcher, node, image, secret), before) for watcher in watchers]
        if self.case.is_out(image, secret, self.now):
            seen += [self._refused.get((watcher, image, secret), before) for watcher in watchers]
        return min(seen) < before

    def _fails(self, node: str, image: str, secret: str) -> bool:
        # Where each pull takes longer than a hub waits, a start that was given up says nothing of
        # the node.
        takes_too_long = self.case.pull_seconds <= START_TIMEOUT < self.case.pull_takes(node, image)
        return image not in self._held[node] and (
            self.case.pull_fails(node, image)
            or takes_too_long
            or self.case.is_out(image, secret, self.now)
        )

    def _pull(self, node: str, image: str, secret: str) -> None:
        if (node, image, secret) not in self._pulls:
            self._try_pull(node, image, secret)

    def _try_pull(self, node: str, image: str, secret: str) -> None:
        """Ask the registry: at once it refuses, or all of the image comes."""
        before = self._pulls.setdefault((node, image, secret), "")
        if node not in self.nodes:
            return
        if self._is_refused(node, image, secret):
            seconds = 0.0 if before else FAULT_SECONDS
            self.at(self.now + seconds, lambda: self._refuse(node, image, secret))
        else:
            self._pulls[node, image, secret] = ""
            # What others pulled meanwhile is there.
            is_there = image in self._held[node]
            seconds = 0.0 if is_there else self.case.pull_takes(node, image)
            self.at(self.now + seconds, lambda: self._pulled(node, image, secret))

    def _is_refused(self, node: str, image: str, secret: str) -> bool:
        is_out = self.case.is_out(image, secret, self.now)
        return self.case.pull_fails(node, image) or is_out

    def _refuse(self, node: str, image: str, secret: str) -> None:
        if node not in self.nodes:
            return
        if not self._pulls[node, image, secret]:
            self._say(f"the pull of {image} fails on {node}")
        self._pulls[node, image, secret] = "ErrImagePull"
        self.at(self.now + BACK_OFF_SECONDS, lambda: self._try_pull(node, image, secret))
        self._sync_all(node, image, secret)

    def _pulled(self, node: str, image: str, secret: str) -> None:
        if node not in self.nodes:
            return
        if image not in self._held[node] and self._is_refused(node, image, secret):
            self._refuse(node, image, secret)
            return
        self._pulls[node, image, secret] = ""
        self._say(f"{image} is on {node}")
        self._held[node].add(image)
        self._set_node(self._with_images(self.nodes[node]))
        self._sync_all(node, image, secret)

    def _sync_all(self, node: str, image: str, secret: str) -> None:
        """The kubelet looks at all its pods, as a pull ended."""
        for key, pod in list(self.pods.items()):
            if pod.node_name == node:
                if image in self._held[node] and _secret_of(self.bodies[key]) == secret:
                    self._answered.add((pod.uid, image))
                self._tell_of_pull(key, pod, image)
                self._sync(key)

    def _tell_of_pull(self, key: str, pod: Pod, image: str) -> None:
        wants = any(image in images for images in self._images(self.bodies[key]).values())
        if wants and image in self._held[pod.node_name]:
            event = PullEvent(
                pod.name, pod.uid, pod.node_name, image, "Pulled", "", EPOCH + self.now
            )
            self._events[f"{pod.name}.{image}"] = event

    # What keeps Roost's own pods

    def _keep_sets(self) -> None:
        if self._kept == self._version:
            return
        self._kept = self._version
        for name, body in self._sets.items():
            template = body["spec"]["template"]
            namespace = body["metadata"]["namespace"]
            # A StatefulSet takes those with the highest numbers away.
            for key in [key for key in self.pods if key.startswith(f"{namespace}/{name}-")]:
                number = key.rpartition("-")[2]
                is_beyond = number.isdigit() and int(number) >= body["spec"].get("replicas", 1)
                if is_beyond and not self.pods[key].leaving:
                    self._end(key)
            for ordinal in range(body["spec"].get("replicas", 1)):
                if f"{namespace}/{name}-{ordinal}" not in self.pods:
                    metadata = _owned(template, "StatefulSet", name, str(ordinal))
                    own = {"metadata": metadata, "spec": template["spec"]}
                    self._create(own, "own", namespace=namespace)
        for body in self._daemons:
            name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
            for node in self.nodes.values():
                if f"{namespace}/{name}-{node.name}" not in self.pods:
                    self._create_daemon_pod(name, namespace, body["spec"]["template"], node)

    def _create_daemon_pod(
        self, name: str, namespace: str, template: JSONObject, node: Node
    ) -> None:
        spec = copied(template["spec"])
        spec["tolerations"] = [*spec.get("tolerations", ()), *DAEMON_TOLERATIONS]
        field = {"key": "metadata.name", "operator": "In", "values": [node.name]}
        pinned = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pinned}
        }
        body = {"metadata": _owned(template, "DaemonSet", name, node.name), "spec": spec}
        rules = read_pod(body).spec
        # The controller looks at taints without those of a node that starts; NoSchedule keeps the
        # pod pending.
        if untolerated(node.taints, rules.tolerations) is None and all(
            node.labels.get(key) == value for key, value in rules.node_selector
        ):
            self._create(body, "own", namespace=namespace)

    # What controllers read and write

    def _snapshot(self, roost: RoostHere) -> Snapshot:
        sets = {
            name: read_stateful_set(body)
            for name, body in self._sets.items()
            if body["metadata"]["namespace"] == roost.namespace
        }
        seen = {
            "nodes": self.nodes,
            "pods": self.pods,
            "stateful_sets": sets,
            "pull_events": self._events,
        }
        return Snapshot(
            roost.release.rules.name,
            roost.namespace,
            **cast("Any", seen),
            histories=self._histories.get(roost.namespace, {}),
            bookings=roost.bookings.by_name,
            namespaces=self._namespaces,
            quotas={
                f"{quota['metadata']['namespace']}/{quota['metadata']['name']}": read_quota(quota)
                for quota in self.case.quotas
            },
            container_defaults={
                limits["metadata"]["name"]: read_container_defaults(limits)
                for limits in self.case.limit_ranges
                if limits["metadata"]["namespace"] == roost.namespace
            },
        )

    def _apply(self, action: Action) -> Outcome:
        match action:
            case ChangeNode():
                node = self.nodes[action.node]
                self._say(str(action))
                labels = {
                    key: value
                    for key, value in node.labels.items()
                    if key not in action.remove_labels
                }
                taints = tuple(
                    taint for taint in node.taints if taint.key not in action.remove_taints
                )
                self._set_node(replace(node, labels={**labels, **action.set_labels}, taints=taints))
            case EvictPod():
                self._say(str(action))
                self._end(f"{action.namespace}/{action.name}")
            case ScaleSet():
                self._say(str(action))
                self._kept = -1
                self._sets[action.name] = copied(self._sets[action.name])
                self._sets[action.name]["spec"]["replicas"] = action.replicas
            case _:
                pass
        return Outcome.DONE

    # The autoscaler

    def _scan(self) -> None:
        """As pairs' stand-in for Cluster Autoscaler does on the real control plane."""
        waits = any(
            pod.unschedulable_since is not None and not pod.node_name for pod in self.pods.values()
        )
        if not waits or self._scanned == self._version:
            return
        self._scanned = self._version
        asked = self._scaler.asks_for(self.nodes.values(), self.pods.values())
        name, number = asked or (self.case.pools[0].name, 0)
        pool = next(pool for pool in self.case.pools if pool.name == name)
        for _ in range(number):
            name = f"{pool.name}-added-{len(self._scaler.added)}"
            added = Added(self.now, pool.name, name)
            self._scaler.added.append(added)
            self._scaler.adopt(pool.name, name)
            self._say(f"node {name} is asked for")
            self._add_node(pool, name, ready=False)
            self.at(self.now + self.case.boot_seconds, partial(self._boot, added))

    def _boot(self, added: Added) -> None:
        added.is_ready = True
        node = self.nodes[added.name]
        taints = tuple(taint for taint in node.taints if taint != NOT_READY)
        since = EPOCH + self.now
        self._set_node(
            replace(
                node, ready=True, ready_since=since, conditions={"Ready": "True"}, taints=taints
            )
        )

    def _say(self, what: str) -> None:
        self.journal.append(f"{self.now:4.0f} s  {what}")


def _of_kind(releases: Iterable[Release], kind: str) -> list[JSONObject]:
    return [body for release in releases for body in release.of_kind(kind)]


def _secret_of(body: JSONObject) -> str:
    """The pull secret that a pod's kubelet uses; "": none."""
    return "".join(secret["name"] for secret in body["spec"].get("imagePullSecrets", ()))


def _owned(template: JSONObject, kind: str, name: str, part: str) -> JSONObject:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}
    return {**template["metadata"], "name": f"{name}-{part}", "ownerReferences": [owner]}
