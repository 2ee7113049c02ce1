"""Read the placeholder sets, and find the nodes that hold the room of CapacityBuffers.

Without placeholder pods, nothing in the cluster names these nodes. An autoscaler counts the room on nodes that stand
before it adds one. Users fill the fullest node first, so the nodes that will take as many users as the buffer has
replicas are those with the least room; a node that an autoscaler added for the buffer counts as far as the others don't
suffice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roost_core.objects.node import node_admits
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import CPU, PODS
from roost_core.objects.selectors import NodeRules, read_node_rules
from roost_core.placement.labels import attract_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost.controllers.contract.snapshot import Snapshot
    from roost_core.objects.node import Node
    from roost_core.placement.settings_reader import Document, Reader

# Cluster-autoscaler's API, which Karpenter serves too.
CAPACITY_BUFFER_API: Final = "autoscaling.x-k8s.io/v1beta1"


@dataclass(frozen=True, slots=True)
class PlaceholderSet:
    """One entry of `placeholders`."""

    name: str
    # Name of its StatefulSet; of its CapacityBuffer and PodTemplate if placeholders are no pods.
    stateful_set: str
    # The mark: on the node that attracts its pods.
    label: str
    # Which nodes its pods can use.
    rules: NodeRules


def has_buffers(document: Document) -> bool:
    """Whether autoscalers keep the room for placeholders, without any pod."""
    return document.get("placeholderBackend") == "capacityBuffer"


def read_placeholder_sets(read: Reader, document: Document, release: str, namespace: str) -> tuple[PlaceholderSet, ...]:
    """Read names and pools of `placeholders`; `headroom` reads their counts. Faults go to the reader."""
    sets = []
    for index, entry in enumerate(read.items(document.get("placeholders"), "placeholders")):
        at = f"placeholders[{index}]"
        body = read.mapping(entry, at)
        name = read.text(body.get("name"), f"{at}.name")
        if not name:
            read.fault(f"{at}.name", body.get("name"), "a name")
        terms = read.items(body.get("requiredNodeTerms"), f"{at}.requiredNodeTerms")
        rules = read_node_rules(
            read.labels(body.get("nodeSelector"), f"{at}.nodeSelector"),
            # The template renders no affinity for an empty list.
            terms or None,
            read.items(body.get("tolerations"), f"{at}.tolerations"),
        )
        stateful_set = read.text(body.get("statefulSet"), f"{at}.statefulSet")
        sets.append(PlaceholderSet(name, stateful_set, attract_label(release, namespace, name), rules))
    return tuple(sets)


@dataclass(frozen=True, slots=True)
class BufferedSet:
    """An entry of `placeholders` whose room an autoscaler keeps."""

    name: str
    # Name of its CapacityBuffer.
    buffer: str
    # Which nodes its placeholders can use.
    rules: NodeRules
    # CPU in millicores, all else in units; above 0.
    requests: Mapping[str, int]


def buffered_sets(entries: Sequence[object], sets: Sequence[PlaceholderSet]) -> tuple[BufferedSet, ...]:
    """Add to each set what its placeholders request. entries: `placeholders` of release.json."""
    return tuple(
        BufferedSet(each.name, each.stateful_set, each.rules, _requests(entry))
        for each, entry in zip(sets, entries, strict=True)
    )


def nodes_with_room(snapshot: Snapshot, sets: Sequence[BufferedSet]) -> Mapping[str, tuple[str, ...]]:
    """Return names of nodes by name of the set: as few as have room for its buffer, the fullest first."""
    buffers = {each.name: each for each in sets if _replicas(snapshot, each)}
    if not buffers:
        return {}
    taken: dict[str, Counter[str]] = {name: Counter() for name in snapshot.nodes}
    for pod in snapshot.pods.values():
        if pod.node_name in taken and not pod.is_finished:
            taken[pod.node_name].update(dict(pod.spec.requests))
            taken[pod.node_name][PODS] += 1
    found: dict[str, tuple[str, ...]] = {}
    for name, each in buffers.items():
        rooms = sorted(
            (places, node.name)
            for node in snapshot.nodes.values()
            if node.ready and not node.leaving and node_admits(each.rules, node)
            if (places := _places(each, node, taken[node.name]))
        )
        left, names = _replicas(snapshot, each), []
        for places, node_name in rooms:
            if left <= 0:
                break
            names.append(node_name)
            left -= places
        found[name] = tuple(names)
    return found


def _replicas(snapshot: Snapshot, buffered: BufferedSet) -> int:
    buffer = snapshot.capacity_buffers.get(buffered.buffer)
    return 0 if buffer is None or not buffer.template else buffer.replicas or 0


def _places(buffered: BufferedSet, node: Node, taken: Counter[str]) -> int:
    """How many of the set's placeholders would fit beside the node's pods."""
    wanted = {**buffered.requests, PODS: 1}
    return max(0, min((node.allocatable.get(key, 0) - taken[key]) // amount for key, amount in wanted.items()))


def _requests(entry: object) -> Mapping[str, int]:
    resources = entry.get("resources") if isinstance(entry, dict) else None
    requests = resources.get("requests") if isinstance(resources, dict) else None
    amounts: dict[str, int] = {}
    for key, quantity in requests.items() if isinstance(requests, dict) else ():
        try:
            amount = parse_quantity(quantity) * (1000 if key == CPU else 1)
        except ValueError:
            continue
        if amount > 0:
            amounts[str(key)] = max(1, round(amount))
    return amounts
