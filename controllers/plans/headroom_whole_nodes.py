"""Work out what one placeholder must ask for to fill a whole node, and when its set should be told.

The smallest node of the newest node's instance type counts: an autoscaler's next node is most likely of that type. What
daemon pods ask for there is left to them. A set's pods start anew when their size changes, so it changes seldom: nodes
of one type differ by a few MiB, and daemon pods come and go.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from placement.nodes import node_admits
from placement.quantities import parse_quantity
from placement.scheduling.objects import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controllers.plans.headroom_settings import HeadroomSet
    from controllers.plans.snapshot import Moment, Snapshot
    from placement.scheduling.objects import NodeState, PodState

INSTANCE_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# A node's daemon pods are there by then; and a size must have been wrong for so long.
SETTLE_SECONDS: Final = 60.0
# Room for that much more must have been there for so long, and sizes are so far apart in time.
PATIENCE_SECONDS: Final = 600.0
# Left free on the smallest node, so that one that is a little smaller still will do.
MARGIN: Final = 0.01
# Unused room that is worth a restart; more than the margin, or sizes would swing.
WORTH: Final = 0.05
# More than that, and the size was never right.
FAR_OFF: Final = 2.0
_CPU_STEP: Final = 10
_MEMORY_STEP: Final = 2**20
_DAEMONS: Final = frozenset({"DaemonSet", "Node"})


class Size(NamedTuple):
    """CPU in millicores, memory in bytes."""

    cpu: int
    memory: int

    def fits(self, room: Size) -> bool:
        """Whether it is within that room."""
        return self.cpu <= room.cpu and self.memory <= room.memory

    def as_requests(self) -> dict[str, str]:
        """As a container writes it."""
        return {CPU: f"{self.cpu}m", MEMORY: f"{self.memory // _MEMORY_STEP}Mi"}


class Misfit(NamedTuple):
    """A size that is wrong, and since when (steady seconds)."""

    too_large: bool
    since: float


class Resize(NamedTuple):
    """A size to be set now (None: not now), what to remember, and when to look again."""

    size: Size | None
    misfit: Misfit | None
    seconds_left: float | None


def whole_node_room(one: HeadroomSet, snapshot: Snapshot, now: Moment) -> Size | None:
    """What is free for a placeholder on the smallest node of the newest type; None while the pool has no node."""
    pool = [
        node
        for node in snapshot.nodes.values()
        if node.ready_since is not None
        and now.wall - node.ready_since >= SETTLE_SECONDS
        and not node.leaving
        and node_admits(one.rules, node.fact)
    ]
    newest = max(pool, key=lambda node: (node.created, node.name), default=None)
    if newest is None:
        return None
    alike = {node.name: node for node in pool if _instance_type(node) == _instance_type(newest)}
    taken = _taken_by_daemons(snapshot.pods.values(), alike)
    rooms = [
        Size(
            node.allocatable.get(CPU, 0) - taken[name].cpu,
            node.allocatable.get(MEMORY, 0) - taken[name].memory,
        )
        for name, node in alike.items()
    ]
    smallest = Size(min(room.cpu for room in rooms), min(room.memory for room in rooms))
    return smallest if smallest.cpu >= _CPU_STEP and smallest.memory >= _MEMORY_STEP else None


def read_size(requests: Mapping[str, object]) -> Size:
    """What a container asks for; what can't be read counts as nothing."""
    return Size(ceil(_amount(requests.get(CPU)) * 1000), ceil(_amount(requests.get(MEMORY))))


def plan_resize(current: Size, room: Size, misfit: Misfit | None, resized_at: float | None, now: Moment) -> Resize:
    """Compare the size that a set has with the room there is.

    misfit: as the plan before found it. resized_at: steady seconds of the last change; None: not known.
    """
    wanted = Size(_step(room.cpu, _CPU_STEP), _step(room.memory, _MEMORY_STEP))
    too_large = not current.fits(room)
    gain = max(wanted.cpu / max(1, current.cpu), wanted.memory / max(1, current.memory))
    if not too_large and gain <= 1 + WORTH:
        return Resize(None, None, None)
    if misfit is None or misfit.too_large != too_large:
        misfit = Misfit(too_large, now.steady)
    patience = SETTLE_SECONDS if too_large or gain >= FAR_OFF else PATIENCE_SECONDS
    left = misfit.since + patience - now.steady
    if resized_at is not None:
        left = max(left, resized_at + PATIENCE_SECONDS - now.steady)
    if left > 0:
        return Resize(None, misfit, left)
    return Resize(wanted, None, None)


def _step(amount: int, step: int) -> int:
    return max(step, int(amount * (1 - MARGIN)) // step * step)


def _instance_type(node: NodeState) -> str:
    return next((node.fact.labels[key] for key in INSTANCE_TYPE_LABELS if key in node.fact.labels), "")


def _taken_by_daemons(pods: Iterable[PodState], nodes: Mapping[str, NodeState]) -> dict[str, Size]:
    """What pods of DaemonSets and of the nodes themselves (static ones) ask for, by node."""
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
