"""Model when Cluster Autoscaler adds and removes nodes.

Sources: its FAQ and code (static_autoscaler.go, filter_out_schedulable.go, binpacking_estimator.go,
planner.go, eligibility.go), v1.34.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from roost_core.objects.requests import CPU, MEMORY
from roost_core.placement.labels import SAFE_TO_EVICT_ANNOTATION, STARTUP_PREFIXES
from roost_core.placement.priorities import AUTOSCALER_CUTOFF
from roost_lab.simulator.engine.free_room import (
    Room,
    is_daemon,
    place,
    place_all,
    pods_waiting,
    rooms_coming,
)
from roost_lab.simulator.engine.group_template import CopiedTemplate
from roost_lab.simulator.engine.node_scaler import (
    ROUNDING,
    NodeScaler,
    ScalingDecision,
    next_turn,
    read_booting,
)

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod, PodSpec
    from roost_core.scheduler.node_rows import NodeRow
    from roost_core.scheduler.state import ClusterState
    from roost_lab.simulator.setup.assumptions import Assumptions

# --max-empty-bulk-delete, --max-drain-parallelism.
EMPTY_AT_ONCE: Final = 10
DRAINED_AT_ONCE: Final = 1
# --ok-total-unready-count, --max-total-unready-percentage: beyond both it does nothing.
UNREADY_ALLOWED: Final = 3
UNREADY_SHARE_ALLOWED: Final = 0.45
# --initial-node-group-backoff-duration, --max-…, and --node-group-backoff-reset-timeout, seconds.
BACK_OFF_SECONDS: Final = 300.0
MAX_BACK_OFF_SECONDS: Final = 1800.0
BACK_OFF_RESET_SECONDS: Final = 10800.0
GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915")


def plan_scale_up(
    state: ClusterState, unschedulable: Iterable[Pod], template: Node, *, booting: int, allowed: int
) -> int:
    """How many nodes Cluster Autoscaler requests now.

    booting, allowed: nodes on their way, and how many more there may be. Pods that fit on a node
    that is there or on its way don't count. The rest is packed onto new ones as the template has
    them, the largest first: a pod that requires a label which the template lacks brings none,
    whatever label new nodes get (see `group_template`). Preferred terms count for nothing; neither
    do startup taints.
    """
    pods = pods_waiting(unschedulable, AUTOSCALER_CUTOFF)
    if not pods or allowed <= 0:
        return 0
    rooms = [Room.of(row, STARTUP_PREFIXES) for row in state.rows.values()]
    rooms += rooms_coming(template, booting)
    left = place(pods, rooms)
    return len(_pack(left, template, allowed)) if left else 0


def _pack(pods: Sequence[Pod], template: Node, most: int) -> list[Room]:
    """New nodes with the pods that would go there."""
    new: list[Room] = []
    hopeless: set[int] = set()
    for pod in sorted(pods, key=lambda pod: -_size(pod.spec, template)):
        if id(pod.spec) in hopeless or place([pod], new) == []:
            continue
        room = rooms_coming(template, 1, len(new))[0]
        if not room.fits(pod.spec):
            hopeless.add(id(pod.spec))
        elif len(new) >= most:
            break
        else:
            room.take(pod)
            new.append(room)
    return new


def _size(spec: PodSpec, template: Node) -> float:
    room = template.allocatable
    return sum(
        amount / room[name]
        for name, amount in spec.requests
        if name in (CPU, MEMORY) and room.get(name)
    )


@dataclass(slots=True)
class _NodeFacts:
    """What follows from one node's pods; cached until they change."""

    # It has a pod that must not be moved.
    held: bool
    # Share of CPU or memory that is requested, the greater.
    utilisation: float
    # Pods that must fit elsewhere.
    movable: tuple[Pod, ...]


def _read_node(row: NodeRow) -> _NodeFacts:
    movable: list[Pod] = []
    expendable: list[Pod] = []
    for pod in row.pods.values():
        if pod.priority < AUTOSCALER_CUTOFF:
            # Ignored.
            expendable.append(pod)
        elif is_daemon(pod):
            continue
        elif not _is_movable(pod):
            return _NodeFacts(True, 1.0, ())
        else:
            movable.append(pod)
    utilisation = 0.0
    # On a node with GPUs only the first kind of these counts.
    gpus = [gpu for gpu in GPUS if row.allocatable.get(gpu)]
    for name in gpus[:1] or (CPU, MEMORY):
        allocatable = row.allocatable.get(name, 0)
        if allocatable:
            spare = sum(dict(pod.spec.requests).get(name, 0) for pod in expendable)
            utilisation = max(utilisation, (row.requested.get(name, 0) - spare) / allocatable)
    return _NodeFacts(False, utilisation, tuple(movable))


def _is_movable(pod: Pod) -> bool:
    is_safe = pod.annotations.get(SAFE_TO_EVICT_ANNOTATION)
    return is_safe == "true" or (pod.owner is not None and is_safe != "false")


class ClusterAutoscaler(NodeScaler):
    """Cluster Autoscaler over one group of nodes."""

    def __init__(self, assumptions: Assumptions, template: Node, since: float = 0.0) -> None:
        """template: a new node as the cloud describes it. since: when its loop began."""
        self._world = assumptions
        self._template = CopiedTemplate(template)
        self._since = since
        # Unneeded node -> since when.
        self.unneeded_since: dict[str, float] = {}
        self._scaled_up_at = -inf
        # After a node that never joined, none is requested until then.
        self._backs_off_until = -inf
        self._back_off_seconds = 0.0
        # More nodes are unneeded than may be removed at once.
        self._more_is_due = False

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """The next run of its loop, at `now` or later."""
        del pods_wait
        return next_turn(self._since, self._world.autoscaler_loop_seconds, now)

    def look(
        self,
        state: ClusterState,
        unschedulable: Iterable[Pod],
        booting: Mapping[str, float],
        now: float,
    ) -> ScalingDecision:
        """One run of its loop."""
        world = self._world
        late, coming, moments = read_booting(booting, world.give_up_boot_seconds, now)
        if late:
            self._back_off(now)
        if not self._is_healthy(state, now):
            moments.append(now + world.autoscaler_loop_seconds)
            return ScalingDecision(0, (), late, self._earliest(moments, now))
        waiting = list(unschedulable)
        room = world.max_nodes - len(state.rows) - len(coming)
        backs_off = now < self._backs_off_until
        request = plan_scale_up(
            state,
            waiting,
            # Each run draws the node that it copies.
            self._template.find(state, now),
            booting=len(coming),
            allowed=0 if backs_off else room,
        )
        if backs_off:
            moments.append(self._backs_off_until)
        elif waiting:
            change = self._template.next_change(state, now, world.autoscaler_loop_seconds)
            if change is not None:
                moments.append(change)
        if request:
            # In a run that adds nodes it removes none, and doesn't look for unneeded ones.
            self._scaled_up_at = now
            moments += [now + world.give_up_boot_seconds, now + world.autoscaler_loop_seconds]
            return ScalingDecision(request, (), late, self._earliest(moments, now))
        removed = self._plan_scale_down(state, coming, now)
        moments += [since + world.unneeded_seconds for since in self.unneeded_since.values()]
        return ScalingDecision(0, removed, late, self._earliest(moments, now))

    def _earliest(self, moments: Iterable[float], now: float) -> float | None:
        """The first run after the earliest of the times that are still to come."""
        cooled = self._scaled_up_at + self._world.after_scale_up_seconds
        later = [moment for moment in moments if moment > now + ROUNDING]
        if self.unneeded_since and cooled > now + ROUNDING:
            later.append(cooled)
        elif self._more_is_due:
            later.append(now + self._world.autoscaler_loop_seconds)
        return self.turn_after(min(later), pods_wait=False) if later else None

    def _back_off(self, now: float) -> None:
        is_first = now > self._backs_off_until + BACK_OFF_RESET_SECONDS
        longer = min(2 * self._back_off_seconds, MAX_BACK_OFF_SECONDS)
        self._back_off_seconds = BACK_OFF_SECONDS if is_first else longer
        self._backs_off_until = now + self._back_off_seconds

    def _is_healthy(self, state: ClusterState, now: float) -> bool:
        """False while too many old nodes aren't ready; a node with a startup taint isn't ready."""
        unready = 0
        for row in state.rows.values():
            node = row.node
            if node.ready and not _has_startup_taint(node):
                continue
            if node.created + self._world.give_up_boot_seconds < now:
                unready += 1
        return unready <= UNREADY_ALLOWED or unready <= UNREADY_SHARE_ALLOWED * len(state.rows)

    def _plan_scale_down(
        self, state: ClusterState, coming: Sequence[str], now: float
    ) -> tuple[str, ...]:
        """The nodes to remove now; notes how long each has been unneeded."""
        unneeded = self._find_unneeded(state)
        self.unneeded_since = {name: self.unneeded_since.get(name, now) for name in unneeded}
        world = self._world
        self._more_is_due = False
        if now < self._scaled_up_at + world.after_scale_up_seconds - ROUNDING:
            return ()
        spare = len(state.rows) + len(coming) - world.min_nodes
        removed: list[str] = []
        allowed = {True: EMPTY_AT_ONCE, False: DRAINED_AT_ONCE}
        due = [
            name
            for name, since in self.unneeded_since.items()
            if since + world.unneeded_seconds <= now + ROUNDING
        ]
        for name in sorted(due, key=lambda name: not unneeded[name]):
            is_empty = unneeded[name]
            if spare <= 0:
                break
            if allowed[is_empty] and len(removed) < EMPTY_AT_ONCE:
                allowed[is_empty] -= 1
                spare -= 1
                removed.append(name)
            else:
                self._more_is_due = True
        for name in removed:
            del self.unneeded_since[name]
        return tuple(removed)

    def _find_unneeded(self, state: ClusterState) -> dict[str, bool]:
        """Nodes that can be removed together, and whether each is empty."""
        by_place = state.column((ClusterAutoscaler, "node"), _read_node).values
        places = state.places
        threshold = self._world.unneeded_utilisation
        candidates: list[tuple[NodeRow, _NodeFacts]] = []
        for name, row in state.rows.items():
            facts = by_place[places[name]]
            if not facts.held and facts.utilisation < threshold:
                candidates.append((row, facts))
        self.room_matters = any(facts.movable for _, facts in candidates)
        if not candidates:
            return {}
        # Nodes that were unneeded before come first, then empty ones, so that the same nodes stay
        # unneeded.
        candidates.sort(
            key=lambda candidate: (
                candidate[0].name not in self.unneeded_since,
                bool(candidate[1].movable),
            )
        )
        rooms: dict[str, Room] | None = None
        unneeded: dict[str, bool] = {}
        for row, facts in candidates:
            # Including the pods that would move there from earlier candidates.
            moved_here = rooms[row.name].pods if rooms is not None else []
            if facts.movable or moved_here:
                if rooms is None:
                    rooms = {
                        other.name: Room.of(other)
                        for other in state.rows.values()
                        if other.name not in unneeded
                    }
                room = rooms.pop(row.name)
                find_room = partial(_first, tuple(rooms.values()))
                if not place_all((*facts.movable, *moved_here), find_room):
                    rooms[row.name] = room
                    continue
            elif rooms is not None:
                del rooms[row.name]
            unneeded[row.name] = not facts.movable
        return unneeded


def _has_startup_taint(node: Node) -> bool:
    return any(taint.key.startswith(STARTUP_PREFIXES) for taint in node.taints)


def _first(rooms: Iterable[Room], pod: Pod) -> Room | None:
    spec = pod.spec
    return next((room for room in rooms if room.fits(spec)), None)
