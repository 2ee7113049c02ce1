"""Open nodes to users who wait for nothing but the gate: pods that their scheduler can't place, though a node that is
pulling their image would take them.

Owns which nodes those are. One pod opens one node, as far as requests tell where it fits; where they tell nothing, or
where that didn't help, it opens every node that its own rules admit and that is large enough for it: the gate must
never be what a user waits for, nor what an autoscaler reads of a node that it copies.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from roost.controllers.contract.gated_pods import gate_labels, is_gate, waits_at_gate
from roost.controllers.image_gate.marks import is_startup_taint
from roost_core.placement.labels import OPENED
from roost_core.placement.nodes import node_covers
from roost_core.scheduler.matching import is_kept_off, node_matches, tolerates_cordon
from roost_core.scheduler.objects import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, NodeTerm, PodSpec, copy_spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roost_core.scheduler.objects import NodeState, PodState

# After so many times imageGate.openAfterSeconds one node may have been the wrong one: then all are opened.
PATIENCE: Final = 2.0
# Nodes are ready some seconds after they have registered; one that isn't by then may never be.
STARTING_SECONDS: Final = 120.0
# A device plugin starts once its node is there, often after it is Ready and, where it installs a driver first, minutes
# later; only then does the node say what devices it has. Karpenter counts on them meanwhile, so the gate must, too.
DEVICES_SECONDS: Final = 300.0
_PLAIN_RESOURCES: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})


class Openings(NamedTuple):
    """What to open, and when to look again."""

    # Labels by node.
    labels: Mapping[str, frozenset[str]]
    # Seconds until a pod that waits by now has waited long enough; None: there is none.
    wait_seconds: float | None


class _Waiting(NamedTuple):
    pod: PodState
    # Its spec without what the gate requires.
    spec: PodSpec
    labels: frozenset[str]


def plan_openings(
    nodes: Mapping[str, NodeState],
    pods: Mapping[str, PodState],
    closed: Mapping[str, frozenset[str]],
    just_opened: Iterable[str],
    *,
    prefix: str,
    open_after_seconds: float,
    now: float,
) -> Openings:
    """Say which nodes to open to waiting pods, the one that waits longest first.

    closed: labels that say "pulling", by node. just_opened: nodes that schedulers may not have looked at since. prefix:
    of this hub's labels. now: seconds since 1970, as the cluster writes them.
    """
    if not closed:
        return Openings({}, None)
    waiting = _find_waiting(pods.values(), prefix)
    if not waiting:
        return Openings({}, None)
    reachable = [name for name in just_opened if name in nodes]
    # Opened before they were ready, and still not ready: those whom they were opened for can't be there yet.
    reachable += [name for name, node in nodes.items() if name not in reachable and _is_awaited(node, prefix, now)]
    room = _Room(nodes, pods.values(), {*closed, *reachable})
    by_age = sorted(closed, key=lambda name: (nodes[name].ready_since or 0.0, name))
    opened: dict[str, frozenset[str]] = {}
    waits: list[float] = []
    for one in waiting:
        since = one.pod.unschedulable_since or 0.0
        due: list[str] = []
        # Those that may yet get what the pod asks for.
        unsure: list[str] = []
        overdue: list[str] = []
        for name in by_age:
            node = nodes[name]
            if not (one.labels & closed[name]) or not _may_admit(one.spec, node, now):
                continue
            # Also while the node was on its way, which it may be for this very pod, and before it is ready: an
            # autoscaler that sees the pod kept off it adds another, and a pod that is bound in the middle of a pull
            # waits behind all pulls that others' pods there have asked for since.
            waited = now - since
            if waited < open_after_seconds:
                waits.append(open_after_seconds - waited)
                continue
            if not node_covers(one.spec.requests, node.allocatable):
                unsure.append(name)
                continue
            due.append(name)
            # From when the pod could have been bound there.
            stood = now - max(since, now if node.ready_since is None else node.ready_since)
            if stood >= PATIENCE * open_after_seconds:
                overdue.append(name)
            else:
                waits.append(PATIENCE * open_after_seconds - stood)
        if not (due or unsure):
            continue
        chosen = [*overdue, *unsure]
        if not overdue:
            open_ones = [name for name in reachable if _may_admit(one.spec, nodes[name], now)]
            # A node that is open may still be closed to this pod's image. Of those that may yet get a device nobody
            # knows how many pods they will take: they have no room, so where no other has, all of them are opened.
            chosen = next(([name] for name in (*open_ones, *due) if room.take(name, one.pod)), [*due, *unsure])
        for name in chosen:
            if labels := one.labels & closed.get(name, frozenset()):
                opened[name] = opened.get(name, frozenset()) | labels
            if name not in reachable:
                reachable.append(name)
    return Openings(opened, min(waits, default=None))


def _find_waiting(pods: Iterable[PodState], prefix: str) -> list[_Waiting]:
    found = [
        _Waiting(pod, _without_gate(pod.spec, prefix), labels)
        for pod in pods
        if pod.unschedulable_since is not None and waits_at_gate(pod) and (labels := gate_labels(pod.spec, prefix))
    ]
    return sorted(found, key=lambda one: (-one.pod.priority, one.pod.unschedulable_since or 0.0, one.pod.key))


def _without_gate(spec: PodSpec, prefix: str) -> PodSpec:
    terms: list[NodeTerm] = []
    for term in spec.required_node_terms or ():
        kept = tuple(one for one in term.expressions if not is_gate(one, prefix))
        if not (kept or term.fields):
            # Terms are ORed, and this one asked for nothing else.
            return copy_spec(spec, required_node_terms=None)
        terms.append(NodeTerm(kept, term.fields))
    return copy_spec(spec, required_node_terms=tuple(terms))


def _may_admit(spec: PodSpec, node: NodeState, now: float) -> bool:
    """Tell whether the pod could be bound to the node, now or soon, if nothing else were there and nothing pulled."""
    fact = node.fact
    is_starting = _is_starting(node, now)
    taints = [taint for taint in fact.taints if not is_startup_taint(taint)] if is_starting else fact.taints
    return (
        (fact.ready or is_starting)
        and not node.leaving
        and (not fact.unschedulable or tolerates_cordon(spec.tolerations))
        and not is_kept_off(spec.tolerations, taints)
        and node_matches(spec, fact.name, fact.labels)
        and node_covers(_asked_for_sure(spec, node, now), node.allocatable)
    )


def _asked_for_sure(spec: PodSpec, node: NodeState, now: float) -> Iterable[tuple[str, int]]:
    """What the pod asks for without the devices that a young node may yet get."""
    is_young = node.ready_since is not None and now - node.ready_since < DEVICES_SECONDS
    if not (is_young or _is_starting(node, now)):
        return spec.requests
    return [
        (name, amount)
        for name, amount in spec.requests
        if name in _PLAIN_RESOURCES or node.allocatable.get(name, 0) > 0
    ]


def _is_starting(node: NodeState, now: float) -> bool:
    """Tell whether a node has just registered, and will soon be ready."""
    return not node.fact.ready and now - node.created < STARTING_SECONDS


def _is_awaited(node: NodeState, prefix: str, now: float) -> bool:
    return _is_starting(node, now) and any(
        value == OPENED and label.startswith(prefix) for label, value in node.fact.labels.items()
    )


class _Room:
    """What is left on some nodes for pods of one priority or a higher one: those below give way."""

    def __init__(self, nodes: Mapping[str, NodeState], pods: Iterable[PodState], names: Iterable[str]) -> None:
        self._allocatable = {name: nodes[name].allocatable for name in names if name in nodes}
        self._pods: dict[str, list[PodState]] = {name: [] for name in self._allocatable}
        for pod in pods:
            there = self._pods.get(pod.node_name)
            if there is not None and not pod.is_finished:
                there.append(pod)

    def take(self, name: str, pod: PodState) -> bool:
        """Take room for the pod, if there is enough; a pod that has its place already keeps it."""
        allocatable = self._allocatable.get(name)
        if allocatable is None:
            return False
        used: Counter[str] = Counter()
        for other in (*self._pods[name], pod):
            if other.priority >= pod.priority or not pod.preempts:
                used[PODS] += 1
                used.update(dict(other.spec.requests))
        if any(amount > allocatable.get(resource, 0) for resource, amount in used.items() if amount):
            return False
        self._pods[name].append(pod)
        return True
