"""Read the placeholder sets, and find the nodes that hold the room of CapacityBuffers.

Without placeholder pods, nothing in the cluster names these nodes. An autoscaler counts the room on nodes that stand
before it adds one. Users fill the fullest node first, so the nodes that will take as many users as the buffer has
replicas are those with the least room; a node that an autoscaler added for the buffer counts as far as the others don't
suffice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from roost.controllers.contract.snapshot import Snapshot
from roost_core.objects.node import Node, node_admits
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import CPU, PODS
from roost_core.objects.selectors import NodeRules, read_node_rules
from roost_core.placement.headroom_windows import MAX_REPLICAS, Window
from roost_core.placement.labels import attract_label
from roost_core.release.reader import Reader
from roost_core.release.settings import ReleaseSettings
from roost_core.release.windows import parse_windows, read_time_zone

# Cluster-autoscaler's API, which Karpenter serves too.
CAPACITY_BUFFER_API: Final = "autoscaling.x-k8s.io/v1beta1"
_LEARN_KEYS: Final = ("quantile", "min", "max", "bootSeconds", "timeZone")
# As with hours of growth: a longer boot would be no boot.
_MOST_BOOT_SECONDS: Final = 3600


class CountBy(StrEnum):
    """`placeholders[].countBy`: what one replica is."""

    PODS = "pods"
    NODES = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """`placeholders[].learn`."""

    # The share of hours in which the placeholders should be enough, above 0 and below 1.
    quantile: float
    min: int
    max: int
    # From the request of a node until users start there.
    boot_seconds: int
    # A name of the IANA database.
    time_zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderSet:
    """One entry of `placeholders`."""

    name: str
    # Name of its StatefulSet; of its CapacityBuffer and PodTemplate if placeholders are no pods.
    stateful_set: str
    # The mark: on the node that attracts its pods.
    label: str
    # Which nodes its pods can use.
    rules: NodeRules
    # Outside all windows.
    replicas: int
    count_by: CountBy = CountBy.PODS
    windows: tuple[Window, ...] = ()
    # `resources.requests`: resource -> quantity as written.
    requests: Mapping[str, object] = field(default_factory=dict)
    # None: the number isn't learned.
    learn: LearnSettings | None = None
    # An autoscaler keeps the room, without pods; their size is always the values'.
    has_buffer: bool = False

    @property
    def fills_nodes(self) -> bool:
        """Whether a replica is a whole node, of the size that nodes turn out to have."""
        return self.count_by is CountBy.NODES and not self.has_buffer


def read_placeholder_sets(release: ReleaseSettings) -> tuple[PlaceholderSet, ...]:
    """Read `placeholders`. Faults go to the release's reader."""
    read = release.read
    has_buffer = release.document.get("placeholderBackend") == "capacityBuffer"
    sets = []
    for index, entry in enumerate(read.items(release.document.get("placeholders"), "placeholders")):
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
        resources = read.mapping(body.get("resources"), f"{at}.resources")
        placeholder_set = PlaceholderSet(
            name=name,
            stateful_set=read.text(body.get("statefulSet"), f"{at}.statefulSet"),
            label=attract_label(release.name, release.namespace, name),
            rules=rules,
            replicas=read.whole(body.get("replicas"), f"{at}.replicas", 0, MAX_REPLICAS),
            count_by=read.choice(body.get("countBy", CountBy.PODS.value), f"{at}.countBy", CountBy),
            windows=parse_windows(read, body.get("windows"), f"{at}.windows"),
            requests=read.mapping(resources.get("requests"), f"{at}.resources.requests"),
            learn=_read_learn(read, body.get("learn"), f"{at}.learn"),
            has_buffer=has_buffer,
        )
        if placeholder_set.learn is not None and placeholder_set.count_by is CountBy.NODES:
            read.fault(f"{at}.learn", body.get("learn"), "countBy: pods; what is learned are placeholders, not nodes")
        sets.append(placeholder_set)
    return tuple(sets)


def _read_learn(read: Reader, value: object, key: str) -> LearnSettings | None:
    if value is None:
        return None
    body = read.mapping(value, key)
    read.known(body, key, _LEARN_KEYS)
    quantile = body.get("quantile")
    if isinstance(quantile, bool) or not isinstance(quantile, int | float) or not 0 < quantile < 1:
        read.fault(f"{key}.quantile", quantile, "a number above 0 and below 1, like 0.9")
        quantile = 0.9
    zone = read_time_zone(read, body.get("timeZone"), f"{key}.timeZone")
    low = read.whole(body.get("min"), f"{key}.min", 0, MAX_REPLICAS)
    high = read.whole(body.get("max"), f"{key}.max", 0, MAX_REPLICAS)
    if low > high:
        read.fault(f"{key}.min", low, f"a number up to max, which is {high}")
    boot_seconds = read.whole(body.get("bootSeconds"), f"{key}.bootSeconds", 60, _MOST_BOOT_SECONDS)
    return LearnSettings(quantile=float(quantile), min=low, max=high, boot_seconds=boot_seconds, time_zone=zone)


def nodes_with_room(snapshot: Snapshot, sets: Sequence[PlaceholderSet]) -> Mapping[str, tuple[str, ...]]:
    """Return names of nodes by name of a set with a buffer: as few as have its room, the fullest first."""
    buffers = {each.name: each for each in sets if each.has_buffer and _replicas(snapshot, each)}
    if not buffers:
        return {}
    taken: dict[str, Counter[str]] = {name: Counter() for name in snapshot.nodes}
    for pod in snapshot.pods.values():
        if pod.node_name in taken and not pod.is_finished:
            taken[pod.node_name].update(dict(pod.spec.requests))
            taken[pod.node_name][PODS] += 1
    found: dict[str, tuple[str, ...]] = {}
    for name, each in buffers.items():
        amounts = _amounts(each.requests).items()
        wanted = {**{name: amount for name, amount in amounts if name not in snapshot.claimable}, PODS: 1}
        rooms = sorted(
            (places, node.name)
            for node in snapshot.nodes.values()
            if node.ready and not node.leaving and node_admits(each.rules, node)
            if (places := _places(wanted, node, taken[node.name]))
        )
        left, names = _replicas(snapshot, each), []
        for places, node_name in rooms:
            if left <= 0:
                break
            names.append(node_name)
            left -= places
        found[name] = tuple(names)
    return found


def _replicas(snapshot: Snapshot, placeholder_set: PlaceholderSet) -> int:
    buffer = snapshot.capacity_buffers.get(placeholder_set.stateful_set)
    return 0 if buffer is None or not buffer.template else buffer.replicas or 0


def _places(wanted: Mapping[str, int], node: Node, taken: Counter[str]) -> int:
    """How many placeholders with these requests would fit beside the node's pods."""
    return max(0, min((node.allocatable.get(key, 0) - taken[key]) // amount for key, amount in wanted.items()))


def _amounts(requests: Mapping[str, object]) -> Mapping[str, int]:
    """CPU in millicores, all else in units; above 0."""
    amounts: dict[str, int] = {}
    for key, quantity in requests.items():
        try:
            amount = parse_quantity(quantity) * (1000 if key == CPU else 1)
        except ValueError:
            continue
        if amount > 0:
            amounts[key] = max(1, round(amount))
    return amounts
