"""Open nodes to users who wait for nothing but the gate: their pods can't be scheduled, but would
fit a node that is still pulling their image.

A pod opens one node, if resource requests show which one has room. If they don't, or if that didn't
help, it opens every node that its own rules admit and that is large enough: the gate must never be
what a user waits for, nor what an autoscaler reads from a node that it uses as a template.

Nodes are opened, too, where the only open ones can't pull an image (`open_beside_failing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Final, NamedTuple

from roost.controllers.contract.pod_kinds import gate_labels, is_gate, waits_at_gate
from roost.controllers.contract.snapshot import Moment, Sight, Snapshot
from roost.controllers.image_gate.temporary_taints import goes_by_itself
from roost_core.objects.node import Node, node_covers
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.requests import NODE_RESOURCES, PODS
from roost_core.objects.selectors import NodeTerm, node_matches, tolerates_cordon, untolerated
from roost_core.placement.beliefs import DEVICES, STARTING
from roost_core.placement.labels import OPENED

# After this many times imageGate.openAfterSeconds, the one node was the wrong one: then all are
# opened.
PATIENCE: Final = 2.0


class Openings(NamedTuple):
    """Which nodes to open to users who wait."""

    # Labels to open, by node.
    labels: Mapping[str, frozenset[str]]
    # Seconds until a pod that is waiting now has waited long enough; None: no pod is.
    wait_seconds: float | None


class GateNodes(NamedTuple):
    """What the gate knows of nodes, by name."""

    # Labels that say "pulling".
    closed: Mapping[str, frozenset[str]]
    # Nodes that schedulers may not have seen opened yet.
    just_opened: frozenset[str]
    # Labels of images whose pull fails there; such nodes come last.
    failing: Mapping[str, frozenset[str]]
    # When nodes got ready, in steady seconds.
    ready_since: Mapping[str, float]


class _Waiting(NamedTuple):
    pod: Pod
    # Its spec without what the gate requires.
    spec: PodSpec
    labels: frozenset[str]
    # In steady seconds.
    since: float


class _Candidates(NamedTuple):
    """Names of closed nodes that would admit one pod, in the order in which they are opened."""

    # Nodes that cover what the pod requests.
    due: list[str]
    # Nodes of `due` where the pod could have been bound for longer than patience lasts.
    overdue: list[str]
    # Nodes that may yet report the devices that the pod requests.
    unsure: list[str]
    # Seconds until each of the others is overdue.
    waits: list[float]


def plan_openings(
    snapshot: Snapshot,
    gate_nodes: GateNodes,
    waiting_since: Mapping[str, float],
    *,
    prefix: str,
    open_after_seconds: float,
    now: Moment,
) -> Openings:
    """Decide which nodes to open to waiting pods, the one that has waited longest first.

    waiting_since: when pods began to wait, by uid, in steady seconds. prefix: of this hub's labels.
    """
    closed = gate_nodes.closed
    if not closed:
        return Openings({}, None)
    nodes = snapshot.nodes
    pods = snapshot.pods.values()
    waiting = _find_waiting(pods, prefix, waiting_since, snapshot.claimable)
    if not waiting:
        return Openings({}, None)

    def may_admit(spec: PodSpec, node: Node) -> bool:
        return _may_admit(spec, node, snapshot.sight_of(node, now), now.steady)

    reachable = _find_reachable(snapshot, gate_nodes.just_opened, prefix, now)
    room = _Room(nodes, pods, {*closed, *reachable}, snapshot.claimable)
    by_age = sorted(closed, key=lambda name: (nodes[name].ready_since or 0.0, name))
    opened: dict[str, frozenset[str]] = {}
    waits: list[float] = []
    for pending in waiting:
        admitting = [
            nodes[name]
            for name in by_age
            if pending.labels & closed[name] and may_admit(pending.spec, nodes[name])
        ]
        if not admitting:
            continue
        # The wait counts from before the node joined or was Ready: it may have been added for this
        # very pod, an autoscaler that finds the pod kept off it adds another, and a pod that is
        # bound late waits behind all pulls requested there since.
        seconds_left = open_after_seconds - (now.steady - pending.since)
        if seconds_left > 0:
            waits.append(seconds_left)
            continue
        patience_seconds = PATIENCE * open_after_seconds
        candidates = _sort_candidates(pending, admitting, gate_nodes, patience_seconds, now)
        waits += candidates.waits
        # A node that is open to others may still be closed to this pod's image.
        open_already = (name for name in reachable if may_admit(pending.spec, nodes[name]))
        chosen = _choose(pending, candidates, open_already, room)
        for name in chosen:
            labels = pending.labels & closed.get(name, frozenset())
            if labels:
                opened[name] = opened.get(name, frozenset()) | labels
        reachable += [name for name in chosen if name not in reachable]
    return Openings(opened, min(waits, default=None))


def _find_reachable(
    snapshot: Snapshot, just_opened: Iterable[str], prefix: str, now: Moment
) -> list[str]:
    """Names of nodes that were opened, and whose pods can't be bound yet: schedulers may not have
    seen the label, or the node isn't Ready.
    """
    reachable = [name for name in just_opened if name in snapshot.nodes]
    for name, node in snapshot.nodes.items():
        if name not in reachable and _is_awaited(node, prefix, snapshot, now):
            reachable.append(name)
    return reachable


def open_beside_failing(
    opened: Mapping[str, Set[str]],
    closed: Mapping[str, frozenset[str]],
    failing: Mapping[str, frozenset[str]],
) -> Mapping[str, frozenset[str]]:
    """Return the labels of images whose pull fails on a node that is open to their users, by node
    that is closed to them, and where the pull doesn't fail.

    By node: labels that open it, labels that close it, and labels of images whose pull fails there.
    """
    drawing: set[str] = set()
    for name, labels in failing.items():
        drawing |= labels & opened[name]
    if not drawing:
        return {}
    beside = {
        name: labels & drawing - failing.get(name, frozenset()) for name, labels in closed.items()
    }
    return {name: labels for name, labels in beside.items() if labels}


def _choose(
    pending: _Waiting, candidates: _Candidates, open_already: Iterable[str], room: _Room
) -> list[str]:
    """Names of the nodes for a pod, one or many; room is taken where one has it.

    open_already: names of nodes that are open to others and would admit it.
    """
    if candidates.overdue:
        return [*candidates.overdue, *candidates.unsure]
    roomy = room.take_first((*open_already, *candidates.due), pending.pod)
    if roomy is not None:
        return [roomy]
    # How many pods a node without its devices will take is unknown, so it counts as full; if no
    # other has room, all of those are opened.
    return [*candidates.due, *candidates.unsure]


def _sort_candidates(
    pending: _Waiting,
    admitting: Iterable[Node],
    gate_nodes: GateNodes,
    patience_seconds: float,
    now: Moment,
) -> _Candidates:
    """Tell nodes that would admit a pod apart. patience_seconds: how long one of them may be Ready
    without the pod being bound.
    """
    due: list[str] = []
    overdue: list[str] = []
    unsure: list[str] = []
    waits: list[float] = []
    failing = gate_nodes.failing
    for node in sorted(
        admitting, key=lambda node: bool(pending.labels & failing.get(node.name, frozenset()))
    ):
        if not node_covers(pending.spec.requests, node.allocatable):
            unsure.append(node.name)
            continue
        due.append(node.name)
        bindable_since = max(pending.since, gate_nodes.ready_since.get(node.name, now.steady))
        bindable_seconds = now.steady - bindable_since
        patience_left = patience_seconds - bindable_seconds
        if patience_left > 0:
            waits.append(patience_left)
        else:
            overdue.append(node.name)
    return _Candidates(due, overdue, unsure, waits)


def find_since(
    pods: Iterable[Pod], before: Mapping[str, float], now: Moment, at_most: float
) -> Mapping[str, float]:
    """When each pod began to wait at the gate, by uid, in steady seconds.

    before: what the last plan found. at_most: how many seconds a pod that is new here may have
    waited by the cluster's clock. That clock may differ, so it is above 0 only in the first plan
    after a start.
    """
    since: dict[str, float] = {}
    for pod in pods:
        if pod.unschedulable_since is not None and waits_at_gate(pod):
            since[pod.uid] = before.get(pod.uid, now.began(pod.unschedulable_since, at_most))
    return since


def _find_waiting(
    pods: Iterable[Pod], prefix: str, since: Mapping[str, float], claimable: frozenset[str]
) -> list[_Waiting]:
    """Pods that wait for this hub's images, those of highest priority first, then the oldest."""
    waiting: list[_Waiting] = []
    for pod in pods:
        if pod.uid not in since:
            continue
        labels = gate_labels(pod.spec, prefix)
        if labels:
            spec = _without_gate(pod.spec, prefix, claimable)
            waiting.append(_Waiting(pod, spec, labels, since[pod.uid]))
    return sorted(
        waiting, key=lambda pending: (-pending.pod.priority, pending.since, pending.pod.key)
    )


def _without_gate(spec: PodSpec, prefix: str, claimable: frozenset[str]) -> PodSpec:
    """Leave out the gate's terms, and devices that nodes don't list."""
    spec = replace(
        spec, requests=tuple(request for request in spec.requests if request[0] not in claimable)
    )
    terms: list[NodeTerm] = []
    for term in spec.required_node_terms or ():
        others = tuple(
            expression for expression in term.expressions if not is_gate(expression, prefix)
        )
        if not (others or term.fields):
            # Terms are ORed, and this one requires nothing else.
            return replace(spec, required_node_terms=None)
        terms.append(NodeTerm(others, term.fields))
    return replace(spec, required_node_terms=tuple(terms))


def _may_admit(spec: PodSpec, node: Node, sight: Sight, now: float) -> bool:
    """Whether the pod could be bound to the node, now or soon, if no other pods and no pulls were
    there.
    """
    is_starting = _is_starting(node, sight, now)
    taints = (
        [taint for taint in node.taints if not goes_by_itself(taint)]
        if is_starting
        else node.taints
    )
    return (
        (node.ready or is_starting)
        and not node.leaving
        and (not node.unschedulable or tolerates_cordon(spec.tolerations))
        and untolerated(taints, spec.tolerations) is None
        and node_matches(spec, node.name, node.labels)
        and node_covers(_certain_requests(spec, node, sight, now), node.allocatable)
    )


def _certain_requests(
    spec: PodSpec, node: Node, sight: Sight, now: float
) -> Iterable[tuple[str, int]]:
    """Return the pod's requests without devices that a young node may not report yet."""
    is_young = sight.ready_since is not None and now - sight.ready_since < DEVICES.age_seconds
    if not (is_young or _is_starting(node, sight, now)):
        return spec.requests
    has = node.allocatable
    return [
        (name, amount)
        for name, amount in spec.requests
        if name in NODE_RESOURCES or has.get(name, 0) > 0
    ]


def _is_starting(node: Node, sight: Sight, now: float) -> bool:
    """Whether a node has just registered, and should soon be Ready."""
    return not node.ready and now - sight.created < STARTING.age_seconds


def _is_awaited(node: Node, prefix: str, snapshot: Snapshot, now: Moment) -> bool:
    return _is_starting(node, snapshot.sight_of(node, now), now.steady) and any(
        value == OPENED and label.startswith(prefix) for label, value in node.labels.items()
    )


class _Room:
    """Room on some nodes for a pod; pods of lower priority give way."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        pods: Iterable[Pod],
        names: Iterable[str],
        claimable: frozenset[str],
    ) -> None:
        self._claimable = claimable
        self._allocatable = {name: nodes[name].allocatable for name in names if name in nodes}
        self._pods: dict[str, list[Pod]] = {name: [] for name in self._allocatable}
        for pod in pods:
            node_pods = self._pods.get(pod.node_name)
            if node_pods is not None and not pod.is_finished:
                node_pods.append(pod)

    def take_first(self, names: Iterable[str], pod: Pod) -> str | None:
        """Reserve room for the pod on the first node that has enough; None: no node has."""
        return next((name for name in names if self._take(name, pod)), None)

    def _take(self, name: str, pod: Pod) -> bool:
        """Reserve room for the pod if there is enough; return whether there was."""
        allocatable = self._allocatable.get(name)
        if allocatable is None:
            return False
        used: Counter[str] = Counter()
        for other in (*self._pods[name], pod):
            gives_way = pod.preempts and other.priority < pod.priority
            if not gives_way:
                used[PODS] += 1
                used.update(dict(other.spec.requests))
        for resource, amount in used.items():
            counts = amount > 0 and resource not in self._claimable
            if counts and amount > allocatable.get(resource, 0):
                return False
        self._pods[name].append(pod)
        return True
