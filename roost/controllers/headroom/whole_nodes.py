"""Work out what one placeholder must request to fill a whole node, and when to change that.

The smallest node of one instance type counts, less the requests of its daemon pods. The type stays the same while the
pool has a node of it: with two types in turn, each change would recreate the set's pods. A larger type is never adopted
because of a node that a pod of the set itself waited for: an autoscaler that underestimates its nodes would add a
larger one each time. A new size recreates the set's pods, so it changes seldom: nodes of one type differ by a few MiB,
and daemon pods come and go.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.node import node_admits
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import CPU, MEMORY
from roost_core.objects.selectors import node_matches
from roost_core.placement.labels import OWN_INSTANCE_LABEL, PLACEHOLDER_SET_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roost.controllers.contract.placeholder_sets import PlaceholderSet
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod

INSTANCE_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# By then a node's daemon pods run; and a size must have been wrong for this long.
SETTLE_SECONDS: Final = 60.0
# More room must have been there for this long; also the least time between two sizes.
PATIENCE_SECONDS: Final = 600.0
# The share of the smallest node left free, so that a slightly smaller one still fits.
MARGIN: Final = 0.01
# The share of unused room that is worth a restart; more than the margin, or sizes would oscillate.
WORTH: Final = 0.05
# From this factor on, the size was never right.
FAR_OFF: Final = 2.0
_CPU_STEP: Final = 10
_MEMORY_STEP: Final = 2**20
_DAEMONS: Final = frozenset({"DaemonSet", "Node"})


class Size(NamedTuple):
    """CPU in millicores, memory in bytes."""

    cpu: int
    memory: int

    def fits(self, room: Size) -> bool:
        """Whether it is within the room."""
        return self.cpu <= room.cpu and self.memory <= room.memory

    def as_requests(self) -> dict[str, str]:
        """As `resources.requests` of a container."""
        return {CPU: f"{self.cpu}m", MEMORY: f"{self.memory // _MEMORY_STEP}Mi"}


# Whether a size is too large or too small, and since when (steady seconds).
Misfit = tuple[bool, float]


class Pool:
    """The nodes of one set in one snapshot."""

    def __init__(self, placeholder_set: PlaceholderSet, snapshot: Snapshot, now: Moment) -> None:
        self._set = placeholder_set
        self._snapshot = snapshot
        # In whatever state they are.
        self.nodes = {
            node.name: node
            for node in snapshot.nodes.values()
            if not node.deleting and node_matches(placeholder_set.rules, node.name, node.labels)
        }
        usable = [
            node
            for node in self.nodes.values()
            if node.ready_since is not None and node_admits(placeholder_set.rules, node)
        ]
        self.is_without_nodes = not usable
        self._settled = [
            node
            for node in usable
            if (since := snapshot.sight_of(node, now).ready_since) is not None and now.steady - since >= SETTLE_SECONDS
        ]

    def waited_for(self) -> frozenset[str]:
        """Return uids of nodes younger than a pod of the set on them, which was pending when they joined."""
        return frozenset(
            node.uid
            for pod in self._snapshot.pods.values()
            if pod.node_name
            and pod.labels.get(PLACEHOLDER_SET_LABEL) == self._set.name
            and pod.labels.get(OWN_INSTANCE_LABEL) == self._snapshot.release
            and pod.namespace == self._snapshot.namespace
            and (node := self.nodes.get(pod.node_name)) is not None
            and pod.created < node.created
        )

    def room(self, current: Size, in_use: str | None, waited_for: frozenset[str]) -> tuple[str, Size] | None:
        """Return the room for a placeholder on the smallest node of the instance type that counts, and that type.

        None: there is none, and the size stays.

        current: the set's size. in_use: the type that counted so far. waited_for: uids of nodes that an autoscaler
        added for the set's own pods.
        """
        if in_use is not None and any(_instance_type(node) == in_use for node in self.nodes.values()):
            return self._smallest(in_use)
        newest_first = sorted(self._settled, key=lambda node: (-node.created, node.name))
        types = list(dict.fromkeys(map(_instance_type, newest_first)))
        rooms = [room for type_ in types if (room := self._smallest(type_)) is not None]
        # A new leader infers the type from the present size.
        for type_, size in rooms:
            if current.fits(size) and not _grows(current, size):
                return type_, size
        if rooms and (is_first_size(current, self._set) or not _grows(current, rooms[0][1])):
            return rooms[0]
        others = {_instance_type(node) for node in newest_first if node.uid not in waited_for}
        return next(((type_, size) for type_, size in rooms if type_ in others or not _grows(current, size)), None)

    def _smallest(self, instance_type: str) -> tuple[str, Size] | None:
        alike = {node.name: node for node in self._settled if _instance_type(node) == instance_type}
        if not alike:
            return None
        taken = _taken_by_daemons(self._snapshot.pods.values(), alike)
        cpu = min(node.allocatable.get(CPU, 0) - taken[name].cpu for name, node in alike.items())
        memory = min(node.allocatable.get(MEMORY, 0) - taken[name].memory for name, node in alike.items())
        return (instance_type, Size(cpu, memory)) if cpu >= _CPU_STEP and memory >= _MEMORY_STEP else None


def is_first_size(current: Size, placeholder_set: PlaceholderSet) -> bool:
    """Whether the set still has its first size: nothing, or that of the values."""
    return current in (Size(0, 0), read_size(placeholder_set.requests))


def first_size_is_due(
    current: Size, placeholder_set: PlaceholderSet, pool: Pool, resized_at: float | None, now: Moment
) -> bool:
    """Whether the set should get the values' size, because it requests nothing and its pool has no node.

    resized_at: as for `plan_resize`.
    """
    return (
        current == Size(0, 0)
        and pool.is_without_nodes
        and read_size(placeholder_set.requests) != Size(0, 0)
        and (resized_at is None or now.steady - resized_at >= SETTLE_SECONDS)
    )


def read_size(requests: Mapping[str, object]) -> Size:
    """Return a container's requests; quantities that can't be parsed count as 0."""
    return Size(ceil(_amount(requests.get(CPU)) * 1000), ceil(_amount(requests.get(MEMORY))))


def plan_resize(
    current: Size, room: Size, misfit: Misfit | None, resized_at: float | None, now: Moment
) -> tuple[Size | None, Misfit | None, float | None]:
    """Compare a set's size with the room; return a size to set now, what to remember, and when to plan again.

    misfit: the last plan's. resized_at: steady seconds of the last change; None: unknown.
    """
    too_large = not current.fits(room)
    gain = _gain(current, room)
    if not too_large and gain <= 1 + WORTH:
        return None, None, None
    if misfit is None or misfit[0] != too_large:
        misfit = too_large, now.steady
    patience = SETTLE_SECONDS if too_large or gain >= FAR_OFF else PATIENCE_SECONDS
    seconds_left = misfit[1] + patience - now.steady
    if resized_at is not None:
        seconds_left = max(seconds_left, resized_at + PATIENCE_SECONDS - now.steady)
    if seconds_left > 0:
        return None, misfit, seconds_left
    return _wanted(room), None, None


def _wanted(room: Size) -> Size:
    return Size(_step(room.cpu, _CPU_STEP), _step(room.memory, _MEMORY_STEP))


def _gain(current: Size, room: Size) -> float:
    wanted = _wanted(room)
    return max(wanted.cpu / max(1, current.cpu), wanted.memory / max(1, current.memory))


def _grows(current: Size, room: Size) -> bool:
    return _gain(current, room) > 1 + WORTH


def _step(amount: int, step: int) -> int:
    return max(step, int(amount * (1 - MARGIN)) // step * step)


def _instance_type(node: Node) -> str:
    return next((node.labels[key] for key in INSTANCE_TYPE_LABELS if key in node.labels), "")


def _taken_by_daemons(pods: Iterable[Pod], nodes: Mapping[str, Node]) -> dict[str, Size]:
    """Return the requests of DaemonSets' pods and static pods, by node."""
    taken = dict.fromkeys(nodes, Size(0, 0))
    for pod in pods:
        if pod.node_name in taken and pod.owner is not None and pod.owner.kind in _DAEMONS and not pod.is_finished:
            requests = dict(pod.spec.requests)
            before = taken[pod.node_name]
            taken[pod.node_name] = Size(before.cpu + requests.get(CPU, 0), before.memory + requests.get(MEMORY, 0))
    return taken


def _amount(quantity: object) -> float:
    try:
        return float(parse_quantity(quantity))
    except ValueError:
        return 0.0
