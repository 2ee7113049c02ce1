"""Model when Karpenter adds and removes nodes.

Sources: its documentation (Disruption, Scheduling) and code, v1.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.node import HOSTNAME_LABEL
from roost_core.objects.requests import CPU, MEMORY
from roost_core.objects.selectors import NodeTerm, node_term_matches
from roost_core.placement.labels import DO_NOT_DISRUPT_ANNOTATION, STARTUP_PREFIXES
from roost_core.scheduler.pod_queries import PodQuery
from roost_lab.simulator.engine.free_room import (
    Room,
    is_daemon,
    place_all,
    pods_waiting,
    rooms_coming,
)
from roost_lab.simulator.engine.node_scaler import (
    ROUNDING,
    NodeScaler,
    ScalingDecision,
    next_turn,
    read_booting,
)

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod, PodTerm
    from roost_core.scheduler.node_rows import NodeRow
    from roost_core.scheduler.state import ClusterState
    from roost_lab.simulator.setup.assumptions import Assumptions

# Seconds for which pods are batched before nodes are requested (BATCH_IDLE_DURATION).
BATCH_SECONDS: Final = 1.0
# Seconds after which a consolidation is validated again, and carried out if it still holds.
VALIDATION_SECONDS: Final = 15.0
# Share of the nodes that may be disrupted at once, rounded up (a NodePool's default budget).
DISRUPTED_SHARE: Final = 0.1


class Karpenter(NodeScaler):
    """Karpenter over a NodePool of one instance type, with consolidationPolicy
    WhenEmptyOrUnderutilized.

    Preferred terms are demands that are given up one by one, where nothing meets them. Nodes are
    only taken away, never replaced by cheaper ones. First empty ones go, all that the budget
    allows; else several whose pods all fit elsewhere; else one. A user holds its node
    (`do-not-disrupt`, and nothing would make the pod anew), so only nodes with placeholders alone
    are ever moved, and several at once from eleven nodes on, for the budget is a tenth of them.
    """

    def __init__(self, assumptions: Assumptions, template: Node, since: float = 0.0) -> None:
        """template: a new node of the NodePool. since: when its loop began."""
        self._world = assumptions
        self._template = template
        self._since = since
        # Node -> when a pod last came or left.
        self._changed_at: dict[str, float] = {}

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """Pods are batched for a second; nodes to remove are searched for in every loop."""
        if pods_wait:
            return now + BATCH_SECONDS
        return next_turn(self._since, self._world.autoscaler_loop_seconds, now)

    def pods_changed(self, node: str, now: float) -> None:
        """The node isn't consolidated until `consolidateAfter` has passed without a change."""
        self._changed_at[node] = now

    def look(
        self,
        state: ClusterState,
        unschedulable: Iterable[Pod],
        booting: Mapping[str, float],
        now: float,
    ) -> ScalingDecision:
        """One run of both loops, the provisioner's and the disruption controller's."""
        world = self._world
        patience = world.give_up_boot_seconds
        late, coming, moments = read_booting(booting, patience, now)
        request = self._plan_scale_up(state, unschedulable, coming)
        if request:
            moments += [now + patience, now + world.autoscaler_loop_seconds]
            return ScalingDecision(request, (), late, self._earliest(moments, now))
        removed, due = self._plan_scale_down(state, now)
        moments += due
        if removed:
            moments.append(now + world.autoscaler_loop_seconds)
        return ScalingDecision(0, removed, late, self._earliest(moments, now))

    def _earliest(self, moments: Iterable[float], now: float) -> float | None:
        """The first run after the earliest of the times that are still to come; None: none is."""
        later = [moment for moment in moments if moment > now + ROUNDING]
        return self.turn_after(min(later), pods_wait=False) if later else None

    def _plan_scale_up(
        self, state: ClusterState, unschedulable: Iterable[Pod], coming: Sequence[str]
    ) -> int:
        """How many nodes to request."""
        # Karpenter has no priority cutoff.
        pods = pods_waiting(unschedulable, -(2**31))
        if not pods:
            return 0
        pods.sort(key=_largest_first)
        rooms = [Room.of(row, STARTUP_PREFIXES) for row in state.rows.values()]
        rooms += rooms_coming(self._template, len(coming))
        allowed = self._world.max_nodes - len(state.rows) - len(coming)
        new: list[Room] = []
        for pod in pods:
            fresh = rooms_coming(self._template, 1)[0] if len(new) < allowed else None
            room = _Demands(pod, state, rooms).find([*rooms, *new], fresh)
            if room is not None:
                room.take(pod)
                if room is fresh:
                    new.append(room)
        return len(new)

    def _plan_scale_down(
        self, state: ClusterState, now: float
    ) -> tuple[tuple[str, ...], list[float]]:
        """Nodes to remove, and the times at which others may be considered. Sets `room_matters`."""
        quiet_seconds = self._world.consolidate_after_seconds + VALIDATION_SECONDS
        self._changed_at = {
            name: moment for name, moment in self._changed_at.items() if name in state.rows
        }
        movable_by_place = state.column((Karpenter, "node"), _read_pods).values
        places = state.places
        candidates: list[_Candidate] = []
        due: list[float] = []
        for name, row in state.rows.items():
            movable = movable_by_place[places[name]]
            node = row.node
            is_starting = any(taint.key.startswith(STARTUP_PREFIXES) for taint in node.taints)
            if movable is None or is_starting:
                continue
            ripe = max(self._changed_at.get(name, node.created), node.created) + quiet_seconds
            if ripe <= now + ROUNDING:
                candidates.append(_Candidate(row, movable))
            else:
                due.append(ripe)
        self.room_matters = any(movable for _, movable in candidates)
        spare = self._spare(state)
        if not candidates or spare <= 0:
            return (), due
        empty = [candidate for candidate in candidates if not candidate.movable]
        if empty:
            return tuple(row.name for row, _ in empty[:spare]), due
        # The cheapest to move come first.
        candidates.sort(key=lambda candidate: len(candidate.movable))
        several = self._find_several(candidates[:spare], state)
        if len(several) > 1:
            return several, due
        for candidate in candidates:
            if self._fit_elsewhere([candidate], state):
                return (candidate.row.name,), due
        return (), due

    def _spare(self, state: ClusterState) -> int:
        """How many nodes may go now."""
        nodes = len(state.rows)
        return min(nodes - self._world.min_nodes, ceil(DISRUPTED_SHARE * nodes))

    def _find_several(
        self, candidates: Sequence[_Candidate], state: ClusterState
    ) -> tuple[str, ...]:
        """The most of the first nodes that can be removed together, by bisection as in
        Karpenter.
        """
        least = 2
        most = len(candidates)
        fitting = 0
        while least <= most:
            number = (least + most) // 2
            if self._fit_elsewhere(candidates[:number], state):
                fitting = number
                least = number + 1
            else:
                most = number - 1
        return tuple(row.name for row, _ in candidates[:fitting])

    def _fit_elsewhere(self, candidates: Sequence[_Candidate], state: ClusterState) -> bool:
        """Whether all pods of these nodes fit on the others, without a new node."""
        leaving = {row.name for row, _ in candidates}
        rooms = [Room.of(row) for row in state.rows.values() if row.name not in leaving]

        def find(pod: Pod) -> Room | None:
            fresh = rooms_coming(self._template, 1)[0]
            room = _Demands(pod, state, rooms).find(rooms, fresh)
            # A pod that prefers a new node keeps the old one.
            return None if room is fresh else room

        return place_all((pod for _, movable in candidates for pod in movable), find)


class _Candidate(NamedTuple):
    """A node that may be removed, with the pods that would have to move."""

    row: NodeRow
    movable: tuple[Pod, ...]


def _largest_first(pod: Pod) -> tuple[int, int]:
    """Orders pods by CPU, then by memory."""
    requests = dict(pod.spec.requests)
    return -requests.get(CPU, 0), -requests.get(MEMORY, 0)


def _read_pods(row: NodeRow) -> tuple[Pod, ...] | None:
    """The pods that would have to move; None: one of them must not."""
    movable = [pod for pod in row.pods.values() if not is_daemon(pod)]
    is_held = any(
        pod.owner is None or pod.annotations.get(DO_NOT_DISRUPT_ANNOTATION) == "true"
        for pod in movable
    )
    return None if is_held else tuple(movable)


class _Demands:
    """One pod's requirements and preferences; Karpenter treats preferences as required, and drops
    them one by one.
    """

    def __init__(self, pod: Pod, state: ClusterState, rooms: Sequence[Room]) -> None:
        self._pod = pod
        self._rooms = rooms
        spec = pod.spec

        def queries(terms: Sequence[tuple[int, PodTerm]]) -> list[PodQuery]:
            # All nodes share zone and region, so only terms about single nodes matter.
            near = [(weight, term) for weight, term in terms if term.topology_key == HOSTNAME_LABEL]
            near.sort(key=lambda weighted: -weighted[0])
            return [PodQuery((state.condition_of(term, pod.namespace),)) for _, term in near]

        self._near = queries(spec.preferred_affinity)
        self._far = queries(spec.preferred_anti_affinity)
        self._nodes = [
            term for _, term in sorted(spec.preferred_node_terms, key=lambda weighted: -weighted[0])
        ]
        self._counts = {query: state.count_pods(query) for query in (*self._near, *self._far)}

    def find(self, rooms: Sequence[Room], fresh: Room | None) -> Room | None:
        """The first room that meets the demands, otherwise a new node; then again with fewer
        demands.
        """
        near = list(self._near)
        far = list(self._far)
        nodes = list(self._nodes)
        candidates = rooms if fresh is None else (*rooms, fresh)

        while True:
            for room in candidates:
                if self._meets(room, near, far, nodes):
                    return room
            # A demand is given up: the heaviest of the first kind that has demands.
            demands = next((kind for kind in (near, far, nodes) if kind), None)
            if demands is None:
                return None
            demands.pop(0)

    def _meets(
        self, room: Room, near: list[PodQuery], far: list[PodQuery], nodes: list[NodeTerm]
    ) -> bool:
        if not room.fits(self._pod.spec):
            return False
        # Only the heaviest preferred node term is a demand.
        if nodes and not node_term_matches(nodes[0], room.name, room.labels):
            return False
        if any(self._number(query, room) for query in far):
            return False
        return all(self._starts_or_finds(query, room) for query in near)

    def _starts_or_finds(self, query: PodQuery, room: Room) -> bool:
        if self._number(query, room):
            return True
        # The first pod of its kind has no pods to join.
        return query.finds(self._pod) and not any(
            self._number(query, other) for other in self._rooms
        )

    def _number(self, query: PodQuery, room: Room) -> int:
        return self._counts[query].get(room.name, 0) + sum(query.finds(pod) for pod in room.pods)
