"""When nodes are asked for and when they are taken away: Cluster Autoscaler's rules, and Karpenter's.

Machines without a clock: `look` is given the moment, the cluster and the pods that fit nowhere, and tells what to do
and when to look again. A real autoscaler looks every few seconds; between two changes it finds the same, so looking
again at the first turn of its loop (`turn_after`) behind a change, and when `look` says so, gives the same nodes at the
same moments. Both simulate with filters only; required terms about other pods are not looked at: no policy has any.
Nodes that somebody drains (cordoned ones) are no room for pods, and are left to whoever drains them; they count for the
greatest number of nodes, not for the least.
Sources: Cluster Autoscaler's FAQ and code (static_autoscaler.go, filter_out_schedulable.go, binpacking_estimator.go,
planner.go, eligibility.go), v1.34; Karpenter's documentation (Disruption, Scheduling) and code, v1.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from roost.simulator.engine.group_template import STARTUP_TAINTS, CopiedTemplate
from roost.simulator.setup.assumptions import Autoscaler
from roost_core.placement.labels import HOSTNAME_LABEL, SAFE_TO_EVICT_ANNOTATION
from roost_core.scheduler.matching import (
    is_kept_off,
    node_matches,
    node_term_matches,
    tolerates_cordon,
)
from roost_core.scheduler.objects import CPU, MEMORY, PODS
from roost_core.scheduler.pod_queries import PodQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from roost.simulator.setup.assumptions import Assumptions
    from roost_core.placement.selectors import Taint
    from roost_core.scheduler.node_rows import NodeRow
    from roost_core.scheduler.objects import NodeState, NodeTerm, PodSpec, PodState, WeightedPodTerm
    from roost_core.scheduler.state import ClusterState

# Pods below it ask for no node and hold none (--expendable-pods-priority-cutoff).
PRIORITY_CUTOFF: Final = -10
# --max-empty-bulk-delete, --max-drain-parallelism.
EMPTY_AT_ONCE: Final = 10
DRAINED_AT_ONCE: Final = 1
# --ok-total-unready-count, --max-total-unready-percentage: beyond both, nothing is done at all.
UNREADY_ALLOWED: Final = 3
UNREADY_SHARE_ALLOWED: Final = 0.45
# --initial-node-group-backoff-duration, --max-…, and --node-group-backoff-reset-timeout, seconds.
BACK_OFF_SECONDS: Final = 300.0
MAX_BACK_OFF_SECONDS: Final = 1800.0
BACK_OFF_RESET_SECONDS: Final = 10800.0
# Karpenter: pods are gathered so long before nodes are asked for (BATCH_IDLE_DURATION).
BATCH_SECONDS: Final = 1.0
# Karpenter: a move is checked a second time after so long, and is done if it still holds.
VALIDATION_SECONDS: Final = 15.0
# Karpenter: of the nodes, so many may be disrupted at once, rounded up (a NodePool's default budget).
DISRUPTED_SHARE: Final = 0.1
DO_NOT_DISRUPT_ANNOTATION: Final = "karpenter.sh/do-not-disrupt"
_DAEMON_SET: Final = "DaemonSet"
# A rounding error must not cost a whole turn of the loop.
_ROUNDING: Final = 1e-6


class Looked(NamedTuple):
    """What is to be done now."""

    # Nodes to ask the cloud for.
    request: int = 0
    # Nodes to take away at once; the pods on them are evicted and made anew by whoever owns them.
    remove: tuple[str, ...] = ()
    # Nodes on their way that never came: they are given back.
    give_up: tuple[str, ...] = ()
    # When to look again though nothing changes; None: no need.
    look_again: float | None = None


class NodeScaler(Protocol):
    """Adds and removes the nodes of one group."""

    # At the last look a node's pods would have had to move for it to go: so room on any other node matters, and the
    # next turn behind a change of any node is worth a look. Else only changes of nodes without users are.
    room_matters: bool

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """When it will see what happens now. pods_wait: it is a pod that fits nowhere."""
        ...

    def pods_changed(self, node: str, now: float) -> None:
        """A pod came to a node or left it; pods of DaemonSets aside."""
        ...

    def look(
        self, state: ClusterState, unschedulable: Iterable[PodState], booting: Mapping[str, float], now: float
    ) -> Looked:
        """One turn of its loop. booting: nodes that were asked for and haven't joined, with the moments of asking."""
        ...


def make_node_scaler(assumptions: Assumptions, template: NodeState, since: float) -> NodeScaler:
    """The autoscaler that the assumptions name. template: a node as its group has it; since: when its loop began."""
    if assumptions.autoscaler is Autoscaler.CLUSTER_AUTOSCALER:
        return ClusterAutoscaler(assumptions, template, since)
    if assumptions.autoscaler is Autoscaler.KARPENTER:
        return Karpenter(assumptions, template, since)
    return NoAutoscaler()


class NoAutoscaler:
    """The nodes stay as they are."""

    room_matters = False

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """Never."""
        del now, pods_wait
        return inf

    def pods_changed(self, node: str, now: float) -> None:
        """Nothing follows."""

    def look(
        self, state: ClusterState, unschedulable: Iterable[PodState], booting: Mapping[str, float], now: float
    ) -> Looked:
        """Nothing to do."""
        del state, unschedulable, booting, now
        return Looked()


# Rooms to try pods in


class Room:
    """A node with what is left on it, to try pods on."""

    __slots__ = ("cordoned", "free", "free_pods", "labels", "name", "pods", "taints")

    def __init__(self, name: str, node: NodeState, *, ignored_taints: tuple[str, ...] = ()) -> None:
        self.name = name
        self.labels = node.fact.labels
        self.taints: tuple[Taint, ...] = node.fact.taints
        if ignored_taints and self.taints:
            self.taints = tuple(taint for taint in self.taints if not taint.key.startswith(ignored_taints))
        self.cordoned = node.fact.unschedulable
        self.free = dict(node.allocatable)
        self.free_pods = self.free.pop(PODS, 0)
        # Those that were tried and stay.
        self.pods: list[PodState] = []

    @classmethod
    def of(cls, row: NodeRow, ignored_taints: tuple[str, ...] = ()) -> Room:
        """A node of the cluster: pods that room is being made for there take theirs already."""
        room = cls(row.name, row.node, ignored_taints=ignored_taints)
        free = room.free
        for name, amount in row.requested.items():
            free[name] = free.get(name, 0) - amount
        room.free_pods -= len(row.pods)
        for pod in row.nominated.values():
            room.take(pod)
        room.pods.clear()
        return room

    def fits(self, spec: PodSpec) -> bool:
        """Tell whether a pod with that spec has room here and may be here."""
        if self.free_pods < 1:
            return False
        free = self.free
        for name, amount in spec.requests:
            if amount and amount > free.get(name, 0):
                return False
        if self.cordoned and not tolerates_cordon(spec.tolerations):
            return False
        return not (self.taints and is_kept_off(spec.tolerations, self.taints)) and node_matches(
            spec, self.name, self.labels
        )

    def take(self, pod: PodState) -> None:
        """A pod is here from now on."""
        free = self.free
        for name, amount in pod.spec.requests:
            free[name] = free.get(name, 0) - amount
        self.free_pods -= 1
        self.pods.append(pod)

    def give_back(self, pod: PodState) -> None:
        """The opposite of `take`, for the last one taken."""
        for name, amount in pod.spec.requests:
            self.free[name] += amount
        self.free_pods += 1
        self.pods.pop()


def place(pods: Iterable[PodState], rooms: Sequence[Room]) -> list[PodState]:
    """Put each pod into the first room where it fits, and give those that fit nowhere."""
    left = []
    hopeless: set[int] = set()
    for pod in pods:
        # Of pods that ask the same, the second fits nowhere when the first didn't.
        if id(pod.spec) in hopeless:
            left.append(pod)
            continue
        for room in rooms:
            if room.fits(pod.spec):
                room.take(pod)
                break
        else:
            hopeless.add(id(pod.spec))
            left.append(pod)
    return left


def place_all(pods: Iterable[PodState], find: Callable[[PodState], Room | None]) -> bool:
    """Put every pod into the room that is found for it; when one has none, leave the rooms as they were: False."""
    taken: list[tuple[Room, PodState]] = []
    for pod in pods:
        found = find(pod)
        if found is not None:
            found.take(pod)
            taken.append((found, pod))
        else:
            for room, one in reversed(taken):
                room.give_back(one)
            return False
    return True


def _staying(state: ClusterState) -> int:
    """How many nodes nobody drains."""
    return sum(not row.node.fact.unschedulable for row in state.rows.values())


def _is_daemon(pod: PodState) -> bool:
    return pod.owner is not None and pod.owner.kind == _DAEMON_SET


def _waiting(unschedulable: Iterable[PodState], cutoff: int) -> list[PodState]:
    """The pods that may ask for a node, the most important first.

    Not those that wait for a pre-emption to make room, those below the cut-off, and DaemonSets' pods.
    """
    found = [
        pod
        for pod in unschedulable
        if pod.priority >= cutoff and not pod.nominated_node and not pod.node_name and not _is_daemon(pod)
    ]
    found.sort(key=lambda pod: -pod.priority)
    return found


def _coming(template: NodeState, number: int, first: int = 0) -> list[Room]:
    return [Room(f"coming {first + index}", template, ignored_taints=STARTUP_TAINTS) for index in range(number)]


def plan_scale_up(
    state: ClusterState,
    unschedulable: Iterable[PodState],
    template: NodeState,
    *,
    booting: int,
    max_nodes: int,
) -> int:
    """How many nodes Cluster Autoscaler asks for now.

    Pods that fit on a node that is there or on its way don't count. The rest is packed onto new ones as the template
    has them, the largest first: a pod that requires a label which the template lacks brings none, whatever label new
    nodes get (see `group_template`). Preferred terms count for nothing; neither do startup taints.
    """
    pods = _waiting(unschedulable, PRIORITY_CUTOFF)
    room_left = max_nodes - len(state.rows) - booting
    if not pods or room_left <= 0:
        return 0
    rooms = [Room.of(row, STARTUP_TAINTS) for row in state.rows.values()]
    left = place(pods, rooms + _coming(template, booting))
    if not left:
        return 0
    left.sort(key=lambda pod: -_size(pod.spec, template))
    new: list[Room] = []
    hopeless: set[int] = set()
    for pod in left:
        if id(pod.spec) in hopeless or place([pod], new) == []:
            continue
        room = _coming(template, 1, booting + len(new))[0]
        if not room.fits(pod.spec):
            hopeless.add(id(pod.spec))
        elif len(new) == room_left:
            break
        else:
            room.take(pod)
            new.append(room)
    return len(new)


def _size(spec: PodSpec, template: NodeState) -> float:
    return sum(
        amount / template.allocatable[name]
        for name, amount in spec.requests
        if name in (CPU, MEMORY) and template.allocatable.get(name)
    )


# Cluster Autoscaler


@dataclass(slots=True)
class _NodeFacts:
    """What one node's pods decide; kept until they change."""

    # A pod that may not be moved is there.
    held: bool
    # Share of CPU or memory that is asked for, the greater.
    utilisation: float
    # To be placed elsewhere.
    movable: tuple[PodState, ...]


def _read_node(row: NodeRow) -> _NodeFacts:
    movable: list[PodState] = []
    expendable: list[PodState] = []
    for pod in row.pods.values():
        if pod.priority < PRIORITY_CUTOFF:
            # As if it weren't there.
            expendable.append(pod)
        elif _is_daemon(pod):
            continue
        elif not _is_movable(pod):
            return _NodeFacts(True, 1.0, ())
        else:
            movable.append(pod)
    utilisation = 0.0
    for name in (CPU, MEMORY):
        allocatable = row.allocatable.get(name, 0)
        if allocatable:
            spare = sum(dict(pod.spec.requests).get(name, 0) for pod in expendable)
            utilisation = max(utilisation, (row.requested.get(name, 0) - spare) / allocatable)
    return _NodeFacts(False, utilisation, tuple(movable))


def _is_movable(pod: PodState) -> bool:
    said = pod.annotations.get(SAFE_TO_EVICT_ANNOTATION)
    return said == "true" or (pod.owner is not None and said != "false")


class ClusterAutoscaler:
    """Cluster Autoscaler over one node group."""

    def __init__(self, assumptions: Assumptions, template: NodeState, since: float = 0.0) -> None:
        self._world = assumptions
        self._template = CopiedTemplate(template)
        self._since = since
        self.room_matters = False
        # Nodes that could go, and since when.
        self.unneeded_since: dict[str, float] = {}
        self._scaled_up_at = -inf
        # After a node that never came, none is asked for until then.
        self._backs_off_until = -inf
        self._back_off_seconds = 0.0
        # More nodes could go by now than may go at once.
        self._more_is_due = False

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """The next turn of its loop, at `now` or later."""
        del pods_wait
        loop = self._world.autoscaler_loop_seconds
        return self._since + ceil((now - self._since) / loop - _ROUNDING) * loop

    def pods_changed(self, node: str, now: float) -> None:
        """It reads that from the cluster itself."""

    def look(
        self, state: ClusterState, unschedulable: Iterable[PodState], booting: Mapping[str, float], now: float
    ) -> Looked:
        """One turn of its loop."""
        world = self._world
        late = tuple(name for name, asked in booting.items() if asked + world.give_up_boot_seconds <= now + _ROUNDING)
        if late:
            self._back_off(now)
        coming = len(booting) - len(late)
        moments = [asked + world.give_up_boot_seconds for name, asked in booting.items() if name not in late]
        if not self._is_healthy(state, now):
            return Looked(0, (), late, self._earliest([*moments, now + world.autoscaler_loop_seconds], now))
        request = 0
        template = self._template.find(state, now)
        if now >= self._backs_off_until:
            waiting = list(unschedulable)
            request = plan_scale_up(state, waiting, template, booting=coming, max_nodes=world.max_nodes)
            change = self._template.next_change(state, now, world.autoscaler_loop_seconds) if waiting else None
            if change is not None:
                moments.append(change)
        else:
            moments.append(self._backs_off_until)
        if request:
            # In such a turn nothing goes, and nobody looks what could.
            self._scaled_up_at = now
            moments += [now + world.give_up_boot_seconds, now + world.autoscaler_loop_seconds]
            return Looked(request, (), late, self._earliest(moments, now))
        removed = self._plan_scale_down(state, coming, now)
        moments += [since + world.unneeded_seconds for since in self.unneeded_since.values()]
        return Looked(0, removed, late, self._earliest(moments, now))

    def _earliest(self, moments: Iterable[float], now: float) -> float | None:
        """The first turn behind the earliest of the moments that are still to come."""
        cooled = self._scaled_up_at + self._world.after_scale_up_seconds
        later = [moment for moment in moments if moment > now + _ROUNDING]
        if self.unneeded_since and cooled > now + _ROUNDING:
            later.append(cooled)
        elif self._more_is_due:
            later.append(now + self._world.autoscaler_loop_seconds)
        return self.turn_after(min(later), pods_wait=False) if later else None

    def _back_off(self, now: float) -> None:
        fresh = now > self._backs_off_until + BACK_OFF_RESET_SECONDS
        self._back_off_seconds = BACK_OFF_SECONDS if fresh else min(2 * self._back_off_seconds, MAX_BACK_OFF_SECONDS)
        self._backs_off_until = now + self._back_off_seconds

    def _is_healthy(self, state: ClusterState, now: float) -> bool:
        """Not while too many nodes have been there long and are still not ready; a startup taint is not ready."""
        unready = sum(
            (not row.node.fact.ready or any(taint.key.startswith(STARTUP_TAINTS) for taint in row.node.fact.taints))
            and row.node.created + self._world.give_up_boot_seconds < now
            for row in state.rows.values()
            if row.node.fact.taints or not row.node.fact.ready
        )
        return unready <= UNREADY_ALLOWED or unready <= UNREADY_SHARE_ALLOWED * len(state.rows)

    def _plan_scale_down(self, state: ClusterState, coming: int, now: float) -> tuple[str, ...]:
        """Which nodes go now; keeps count of how long each could have gone."""
        unneeded = self._find_unneeded(state)
        self.unneeded_since = {name: self.unneeded_since.get(name, now) for name in unneeded}
        world = self._world
        self._more_is_due = False
        if now < self._scaled_up_at + world.after_scale_up_seconds - _ROUNDING:
            return ()
        spare = _staying(state) + coming - world.min_nodes
        removed: list[str] = []
        allowed = {True: EMPTY_AT_ONCE, False: DRAINED_AT_ONCE}
        due = [name for name, since in self.unneeded_since.items() if since + world.unneeded_seconds <= now + _ROUNDING]
        for name in sorted(due, key=lambda one: not unneeded[one]):
            is_empty = unneeded[name]
            if len(removed) >= spare:
                break
            if allowed[is_empty] and len(removed) < EMPTY_AT_ONCE:
                allowed[is_empty] -= 1
                removed.append(name)
            else:
                self._more_is_due = True
        for name in removed:
            del self.unneeded_since[name]
        return tuple(removed)

    def _find_unneeded(self, state: ClusterState) -> dict[str, bool]:
        """Nodes that could go, all of them together, and whether each is empty."""
        known = state.memo((ClusterAutoscaler, "node"))
        threshold = self._world.unneeded_utilisation
        candidates: list[tuple[NodeRow, _NodeFacts]] = []
        for name, row in state.rows.items():
            facts = known.get(name)
            if facts is None:
                facts = known[name] = _read_node(row)
            if not facts.held and facts.utilisation < threshold and not row.node.fact.unschedulable:
                candidates.append((row, facts))
        self.room_matters = any(facts.movable for _, facts in candidates)
        if not candidates:
            return {}
        # Those that were unneeded before come first, then empty ones: so the same node stays unneeded.
        candidates.sort(key=lambda one: (one[0].name not in self.unneeded_since, bool(one[1].movable)))
        rooms: dict[str, Room] | None = None
        unneeded: dict[str, bool] = {}
        for row, facts in candidates:
            # With those that it would take from nodes before it.
            given = rooms[row.name].pods if rooms is not None else []
            if facts.movable or given:
                if rooms is None:
                    rooms = {one.name: Room.of(one) for one in state.rows.values() if one.name not in unneeded}
                room = rooms.pop(row.name)
                if not place_all((*facts.movable, *given), partial(_first, tuple(rooms.values()))):
                    rooms[row.name] = room
                    continue
            elif rooms is not None:
                del rooms[row.name]
            unneeded[row.name] = not facts.movable
        return unneeded


def _first(rooms: Iterable[Room], pod: PodState) -> Room | None:
    spec = pod.spec
    return next((room for room in rooms if room.fits(spec)), None)


# Karpenter


class Karpenter:
    """Karpenter over one NodePool of one instance type, with consolidationPolicy WhenEmptyOrUnderutilized.

    Preferred terms are demands that are given up one by one, where nothing meets them. Nodes are only taken away, never
    replaced: there is no cheaper type. First empty ones go, all that the budget allows; else several whose pods all fit
    elsewhere; else one. A user holds its node (`do-not-disrupt`, and nothing would make the pod anew), so only nodes
    with placeholders alone are ever moved, and several at once from eleven nodes on, for the budget is a tenth of them.
    """

    def __init__(self, assumptions: Assumptions, template: NodeState, since: float = 0.0) -> None:
        self._world = assumptions
        self._template = template
        self._since = since
        self.room_matters = False
        # When a pod came to each node last, or left it.
        self._changed_at: dict[str, float] = {}

    def turn_after(self, now: float, *, pods_wait: bool) -> float:
        """Pods are gathered for a second; nodes to be taken away are looked for every loop."""
        if pods_wait:
            return now + BATCH_SECONDS
        loop = self._world.autoscaler_loop_seconds
        return self._since + ceil((now - self._since) / loop - _ROUNDING) * loop

    def pods_changed(self, node: str, now: float) -> None:
        """The node isn't consolidated until `consolidateAfter` has passed without another change."""
        self._changed_at[node] = now

    def look(
        self, state: ClusterState, unschedulable: Iterable[PodState], booting: Mapping[str, float], now: float
    ) -> Looked:
        """One turn of both loops, the provisioner's and the disruption controller's."""
        world = self._world
        patience = world.give_up_boot_seconds
        late = tuple(name for name, asked in booting.items() if asked + patience <= now + _ROUNDING)
        moments = [asked + patience for name, asked in booting.items() if name not in late]
        coming = len(booting) - len(late)
        request = self._plan_scale_up(state, unschedulable, coming)
        if request:
            moments += [now + patience, now + world.autoscaler_loop_seconds]
            return Looked(request, (), late, self.turn_after(min(moments), pods_wait=False))
        removed, due = self._plan_scale_down(state, now)
        moments += due
        if removed:
            moments.append(now + world.autoscaler_loop_seconds)
        later = [moment for moment in moments if moment > now + _ROUNDING]
        return Looked(0, removed, late, self.turn_after(min(later), pods_wait=False) if later else None)

    def _plan_scale_up(self, state: ClusterState, unschedulable: Iterable[PodState], coming: int) -> int:
        # It knows no cut-off.
        pods = _waiting(unschedulable, -(2**31))
        if not pods:
            return 0
        template = self._template
        pods.sort(key=lambda pod: tuple(-dict(pod.spec.requests).get(name, 0) for name in (CPU, MEMORY)))
        rooms = [Room.of(row, STARTUP_TAINTS) for row in state.rows.values()] + _coming(template, coming)
        allowed = self._world.max_nodes - len(rooms)
        new: list[Room] = []
        for pod in pods:
            fresh = _coming(template, 1, coming + len(new))[0]
            found = _Demands(pod, state, rooms).find([*rooms, *new], fresh if len(new) < allowed else None)
            if found is not None:
                found.take(pod)
                if found is fresh:
                    new.append(fresh)
        return len(new)

    def _plan_scale_down(self, state: ClusterState, now: float) -> tuple[tuple[str, ...], list[float]]:
        """Nodes to take away, and the moments at which others may be looked at."""
        world = self._world
        rest = world.consolidate_after_seconds + VALIDATION_SECONDS
        self._changed_at = {name: moment for name, moment in self._changed_at.items() if name in state.rows}
        known = state.memo((Karpenter, "node"))
        candidates: list[_Candidate] = []
        due: list[float] = []
        for name, row in state.rows.items():
            movable = known.get(name, _UNREAD)
            if movable is _UNREAD:
                movable = known[name] = _read_pods(row)
            fact = row.node.fact
            if movable is None or fact.unschedulable or any(one.key.startswith(STARTUP_TAINTS) for one in fact.taints):
                continue
            ripe = max(self._changed_at.get(name, row.node.created), row.node.created) + rest
            if ripe <= now + _ROUNDING:
                candidates.append((row, movable))
            else:
                due.append(ripe)
        self.room_matters = any(movable for _, movable in candidates)
        staying = _staying(state)
        # Nodes that drain use up the budget, though draining itself asks for none.
        budget = ceil(DISRUPTED_SHARE * len(state.rows)) - (len(state.rows) - staying)
        spare = min(staying - world.min_nodes, budget)
        if spare <= 0 or not candidates:
            return (), due
        empty = [row.name for row, movable in candidates if not movable]
        if empty:
            return tuple(empty[:spare]), due
        # Whom it costs least to move comes first.
        candidates.sort(key=lambda one: len(one[1]))
        if len(several := self._find_several(candidates[:spare], state)) > 1:
            return several, due
        for candidate in candidates:
            if self._fit_elsewhere([candidate], state):
                return (candidate[0].name,), due
        return (), due

    def _find_several(self, candidates: Sequence[_Candidate], state: ClusterState) -> tuple[str, ...]:
        """The most of the first nodes that can go together, by halving as Karpenter does: fewer may fit, too."""
        least, most, found = 2, len(candidates), 0
        while least <= most:
            number = (least + most) // 2
            if self._fit_elsewhere(candidates[:number], state):
                found, least = number, number + 1
            else:
                most = number - 1
        return tuple(row.name for row, _ in candidates[:found])

    def _fit_elsewhere(self, candidates: Sequence[_Candidate], state: ClusterState) -> bool:
        """Whether all pods of these nodes fit on the others, and none would rather have a new node."""
        leaving = {row.name for row, _ in candidates}
        rooms = [Room.of(one) for one in state.rows.values() if one.name not in leaving]
        fresh = _coming(self._template, 1)[0]

        def find(pod: PodState) -> Room | None:
            found = _Demands(pod, state, rooms).find(rooms, fresh)
            # One that would rather have a new node keeps the old one.
            return None if found is fresh else found

        return place_all((pod for _, movable in candidates for pod in movable), find)


# A node that may go, with the pods that would have to move.
_Candidate = tuple["NodeRow", tuple["PodState", ...]]
_UNREAD: Final = object()


def _read_pods(row: NodeRow) -> tuple[PodState, ...] | None:
    """The pods that would have to move; None: one of them may not."""
    movable = [pod for pod in row.pods.values() if not _is_daemon(pod)]
    held = any(pod.owner is None or pod.annotations.get(DO_NOT_DISRUPT_ANNOTATION) == "true" for pod in movable)
    return None if held else tuple(movable)


class _Demands:
    """What one pod asks for, preferences included, as Karpenter gives them up: the heaviest of each kind first."""

    def __init__(self, pod: PodState, state: ClusterState, rooms: Sequence[Room]) -> None:
        self._pod = pod
        self._rooms = rooms
        spec = pod.spec

        def queries(terms: Sequence[WeightedPodTerm]) -> list[PodQuery]:
            # Of one group all nodes share zone and region, so only terms about single nodes tell them apart.
            near = [one for one in terms if one.term.topology_key == HOSTNAME_LABEL]
            near.sort(key=lambda one: -one.weight)
            return [PodQuery((state.condition_of(one.term, pod.namespace),)) for one in near]

        self._near = queries(spec.preferred_affinity)
        self._far = queries(spec.preferred_anti_affinity)
        self._nodes = [one.term for one in sorted(spec.preferred_node_terms, key=lambda one: -one.weight)]
        self._counts = {query: state.count_pods(query) for query in (*self._near, *self._far)}

    def find(self, rooms: Sequence[Room], fresh: Room | None) -> Room | None:
        """The first room that meets the demands, a fresh one when no other does; else with fewer demands."""
        near, far, nodes = list(self._near), list(self._far), list(self._nodes)
        while True:
            for room in rooms:
                if self._meets(room, near, far, nodes):
                    return room
            if fresh is not None and self._meets(fresh, near, far, nodes):
                return fresh
            given_up = near or far or nodes
            if not given_up:
                return None
            del given_up[0]

    def _meets(self, room: Room, near: list[PodQuery], far: list[PodQuery], nodes: list[NodeTerm]) -> bool:
        if not room.fits(self._pod.spec):
            return False
        # Of preferred node terms only the heaviest is a demand.
        if nodes and not node_term_matches(nodes[0], room.name, room.labels):
            return False
        return all(map(self._starts_or_finds(room), near)) and not any(self._number(query, room) for query in far)

    def _starts_or_finds(self, room: Room) -> Callable[[PodQuery], bool]:
        def holds(query: PodQuery) -> bool:
            if self._number(query, room):
                return True
            # The first of its kind has no company to join.
            return query.finds(self._pod) and not any(self._number(query, one) for one in self._rooms)

        return holds

    def _number(self, query: PodQuery, room: Room) -> int:
        return self._counts[query].get(room.name, 0) + sum(map(query.finds, room.pods))
