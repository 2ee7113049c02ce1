"""Open nodes to users who wait for nothing but the gate.

Their pods can't be scheduled, but would fit on a node that is still pulling their image.

- If resource requests show which node has room, that node is opened for a pod.
- If they don't show it, or if that didn't help, every node is opened that the pod's own rules admit
  and that is large enough. For nobody may wait because of the gate. And an autoscaler that takes a
  closed node for its template would think that new nodes are closed, too.
- If the only nodes that are open can't pull an image, others are opened (`open_beside_failing`).
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

# If a pod isn't bound to the node that was opened for it, that was the wrong node. After so many
# times imageGate.openAfterSeconds, all are opened.
PATIENCE: Final = 2.0


class Openings(NamedTuple):
    """Which nodes to open to users who wait."""

    # Labels to open, by node.
    labels: Mapping[str, frozenset[str]]
    # Seconds until another node may have to be opened; None: no pod waits for that.
    wait_seconds: float | None


class GateNodes(NamedTuple):
    """What the gate knows of nodes, by name of the node."""

    # Labels that close the node to an image's users.
    closed: Mapping[str, frozenset[str]]
    # Nodes that were opened a moment ago: schedulers may not know yet.
    just_opened: frozenset[str]
    # Labels of images whose pull fails on the node. It is opened after other nodes.
    failing: Mapping[str, frozenset[str]]
    # When the node got ready, in steady seconds.
    ready_since: Mapping[str, float]


class _Waiting(NamedTuple):
    """A pod that waits at the gate."""

    pod: Pod
    # Its spec without what the gate requires.
    spec: PodSpec
    # The gate's labels that it requires.
    labels: frozenset[str]
    # In steady seconds.
    since: float


class _Candidates(NamedTuple):
    """Names of closed nodes that would admit a pod, in the order in which they are opened."""

    # Nodes that are large enough.
    due: list[str]
    # Those of `due` that didn't help: for too long the pod could have been bound there, and wasn't.
    overdue: list[str]
    # Nodes that don't report the devices yet that the pod requests.
    unsure: list[str]
    # For each other node of `due`, the seconds until it is overdue.
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
    """Decide which nodes to open to pods that wait.

    waiting_since: when pods began to wait, by uid, in steady seconds. prefix: of the labels of this
    release's images.
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

    not_usable_yet = _find_opened_not_usable(snapshot, gate_nodes.just_opened, prefix, now)
    room = _Room(nodes, pods, {*closed, *not_usable_yet}, snapshot.claimable)
    by_age = sorted(closed, key=lambda name: (nodes[name].ready_since or 0.0, name))
    opened: dict[str, frozenset[str]] = {}
    waits: list[float] = []
    for waiter in waiting:
        admitting = [
            nodes[name]
            for name in by_age
            if waiter.labels & closed[name] and may_admit(waiter.spec, nodes[name])
        ]
        if not admitting:
            continue
        # The wait counts from its beginning, also if the node joined later. The node may have been
        # added for this very pod. An autoscaler that finds the pod kept off it adds another node.
        # And a pod that is bound late waits behind all pulls that were requested there before.
        seconds_left = open_after_seconds - (now.steady - waiter.since)
        if seconds_left > 0:
            waits.append(seconds_left)
            continue
        patience_seconds = PATIENCE * open_after_seconds
        candidates = _sort_candidates(waiter, admitting, gate_nodes, patience_seconds, now)
        waits += candidates.waits
        open_already = [name for name in not_usable_yet if may_admit(waiter.spec, nodes[name])]
        chosen = _choose(waiter, candidates, open_already, room)
        for name in chosen:
            # A node that was opened to another image's users may be closed to this pod's.
            labels = waiter.labels & closed.get(name, frozenset())
            if labels:
                opened[name] = opened.get(name, frozenset()) | labels
        not_usable_yet += [name for name in chosen if name not in not_usable_yet]
    return Openings(opened, min(waits, default=None))


def _find_opened_not_usable(
    snapshot: Snapshot, just_opened: Iterable[str], prefix: str, now: Moment
) -> list[str]:
    """Names of nodes that were opened, and to which no pod can be bound yet.

    Schedulers may not know that they were opened, or the node isn't Ready.
    """
    found = [name for name in just_opened if name in snapshot.nodes]
    for name, node in snapshot.nodes.items():
        if name not in found and _is_awaited(node, prefix, snapshot, now):
            found.append(name)
    return found


def open_beside_failing(
    opened: Mapping[str, Set[str]],
    closed: Mapping[str, frozenset[str]],
    failing: Mapping[str, frozenset[str]],
) -> Mapping[str, frozenset[str]]:
    """Return labels to open, by name of the node.

    If an image's pull fails on a node that is open to its users, they would all be sent there. So
    the nodes are opened that are closed to them and where the pull doesn't fail.

    All arguments are by name of the node: labels that open it, labels that close it, and labels of
    images whose pull fails there.
    """
    fail_where_open: set[str] = set()
    for name, labels in failing.items():
        fail_where_open |= labels & opened[name]
    if not fail_where_open:
        return {}
    to_open: dict[str, frozenset[str]] = {}
    for name, labels in closed.items():
        labels_to_open = labels & (fail_where_open - failing.get(name, frozenset()))
        if labels_to_open:
            to_open[name] = labels_to_open
    return to_open


def _choose(
    waiter: _Waiting, candidates: _Candidates, open_already: Iterable[str], room: _Room
) -> list[str]:
    """Names of the nodes to open for a pod. If a single node is chosen, room is reserved there.

    open_already: names of nodes that were opened to others and would admit the pod.
    """
    if candidates.overdue:
        return [*candidates.overdue, *candidates.unsure]
    roomy = room.take_first((*open_already, *candidates.due), waiter.pod)
    if roomy is not None:
        return [roomy]
    # While a node doesn't report its devices, nobody knows how many pods it will take. So a pod
    # doesn't choose it above, but all of them are opened if no other node has room.
    return [*candidates.due, *candidates.unsure]


def _sort_candidates(
    waiter: _Waiting,
    admitting: Iterable[Node],
    gate_nodes: GateNodes,
    patience_seconds: float,
    now: Moment,
) -> _Candidates:
    """Sort out the nodes that would admit a pod.

    patience_seconds: a node is overdue after the pod could have been bound there for so long.
    """
    due: list[str] = []
    overdue: list[str] = []
    unsure: list[str] = []
    waits: list[float] = []
    failing = gate_nodes.failing

    def pull_fails(node: Node) -> bool:
        return bool(waiter.labels & failing.get(node.name, frozenset()))

    # Nodes whose pull fails come last.
    for node in sorted(admitting, key=pull_fails):
        if not node_covers(waiter.spec.requests, node.allocatable):
            unsure.append(node.name)
            continue
        due.append(node.name)
        bindable_since = max(waiter.since, gate_nodes.ready_since.get(node.name, now.steady))
        bindable_seconds = now.steady - bindable_since
        patience_left = patience_seconds - bindable_seconds
        if patience_left > 0:
            waits.append(patience_left)
        else:
            overdue.append(node.name)
    return _Candidates(due, overdue, unsure, waits)


def find_since(
    pods: Iterable[Pod], before: Mapping[str, float], now: Moment, longest_ago: float
) -> Mapping[str, float]:
    """When each pod began to wait at the gate, by uid, in steady seconds.

    before: what the last plan found. longest_ago: a pod that the last plan didn't know has waited
    for so many seconds at most. The cluster's clock says how long, but it may differ from this
    machine's. So it is trusted, up to this bound, only in the first plan after a start; else 0.
    """
    since: dict[str, float] = {}
    for pod in pods:
        if pod.unschedulable_since is not None and waits_at_gate(pod):
            since[pod.uid] = before.get(pod.uid, now.began(pod.unschedulable_since, longest_ago))
    return since


def _find_waiting(
    pods: Iterable[Pod], prefix: str, since: Mapping[str, float], claimable: frozenset[str]
) -> list[_Waiting]:
    """Pods that wait for this release's images: by priority, then those that wait longest."""
    waiting: list[_Waiting] = []
    for pod in pods:
        if pod.uid not in since:
            continue
        labels = gate_labels(pod.spec, prefix)
        if labels:
            spec = _without_gate(pod.spec, prefix, claimable)
            waiting.append(_Waiting(pod, spec, labels, since[pod.uid]))
    return sorted(waiting, key=lambda waiter: (-waiter.pod.priority, waiter.since, waiter.pod.key))


def _without_gate(spec: PodSpec, prefix: str, claimable: frozenset[str]) -> PodSpec:
    """The spec without the gate's terms, and without requests for devices that nodes don't list.

    claimable: names of these devices.
    """
    requests = tuple((name, amount) for name, amount in spec.requests if name not in claimable)
    spec = replace(spec, requests=requests)
    terms: list[NodeTerm] = []
    for term in spec.required_node_terms or ():
        others = tuple(
            expression for expression in term.expressions if not is_gate(expression, prefix)
        )
        requires_gate_only = not others and not term.fields
        if requires_gate_only:
            # One of the terms has to match. Without the gate, this term matches every node.
            return replace(spec, required_node_terms=None)
        terms.append(NodeTerm(others, term.fields))
    return replace(spec, required_node_terms=tuple(terms))


def _may_admit(spec: PodSpec, node: Node, sight: Sight, now: float) -> bool:
    """Whether a pod could be bound to a node, now or soon, if nothing else were there: no other
    pods, and no pulls.
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
    """Return a pod's requests, without those for devices that a young node may not report yet."""
    is_young = sight.ready_since is not None and now - sight.ready_since < DEVICES.age_seconds
    if not (is_young or _is_starting(node, sight, now)):
        return spec.requests
    return [
        (name, amount)
        for name, amount in spec.requests
        if name in NODE_RESOURCES or node.allocatable.get(name, 0) > 0
    ]


def _is_starting(node: Node, sight: Sight, now: float) -> bool:
    """Whether a node has just registered, and should soon be Ready."""
    return not node.ready and now - sight.created < STARTING.age_seconds


def _is_awaited(node: Node, prefix: str, snapshot: Snapshot, now: Moment) -> bool:
    """Whether a node was opened, and should soon be Ready."""
    is_opened = any(
        value == OPENED and label.startswith(prefix) for label, value in node.labels.items()
    )
    return is_opened and _is_starting(node, snapshot.sight_of(node, now), now.steady)


class _Room:
    """Room on some nodes. Pods of a lower priority don't count: they give way."""

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
        """Reserve room for the pod if there is enough. Return whether there was."""
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
            is_limited = resource not in self._claimable and amount > 0
            if is_limited and amount > allocatable.get(resource, 0):
                return False
        self._pods[name].append(pod)
        return True
