"""Remember evictions of placeholders, and check the predictions.

The StatefulSet makes a pod of the same name for each placeholder that is evicted: its successor. If
the successor goes to another node than was predicted, the set's placeholders don't move for a
while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from roost.controllers.contract.actions import Done, EvictPod, Notice, Outcome
from roost.controllers.contract.back_off import BackOff, backed_off
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.placeholder_mover.settings import MoverSettings
from roost_core.objects.pod import Pod

# For so long evictions count against the limit per minute.
WINDOW_SECONDS: Final = 60.0
# If the evicted pod still exists after this time, or has no successor, the move is forgotten.
UNDONE_SECONDS: Final = 60.0
# If the successor has no node after this time, something else holds it up. The move is forgotten.
LOST_SECONDS: Final = 600.0


class Move(NamedTuple):
    """An eviction, and where the placeholder should go."""

    set_name: str
    # namespace/name; the successor has the same.
    pod: str
    # Of the pod that is evicted.
    uid: str
    # The node that it leaves.
    source: str
    # The node where the successor should go.
    target: str
    # When it was evicted, in steady seconds.
    at: float


@dataclass(frozen=True, slots=True)
class MoveMemory:
    """What earlier plans did. Times are steady seconds."""

    # When each eviction of the last minute was.
    evictions: tuple[float, ...] = ()
    # Moves whose successors have no node yet.
    in_flight: tuple[Move, ...] = ()
    # Moves that the last plan requested, by uid of the pod.
    requested: Mapping[str, Move] = field(default_factory=dict)
    # Until when no placeholder of a set moves, by name of the set.
    back_offs: Mapping[str, BackOff] = field(default_factory=dict)
    # When moves of a set were last planned, by its name. The set that has waited longest is first.
    served: Mapping[str, float] = field(default_factory=dict)


def note_moves(
    memory: MoveMemory, done: Iterable[Done], settings: MoverSettings, now: Moment
) -> MoveMemory:
    """Note which of the requested evictions were carried out."""
    evictions = list(memory.evictions)
    in_flight = list(memory.in_flight)
    back_offs = dict(memory.back_offs)
    for action, outcome in done:
        if not isinstance(action, EvictPod) or outcome is Outcome.HELD_BACK:
            continue
        evictions.append(now.steady)
        move = memory.requested.get(action.uid)
        if move is None:
            continue
        if outcome in (Outcome.DONE, Outcome.FAILED):
            # A request that failed may have been carried out all the same.
            in_flight.append(move._replace(at=now.steady))
        elif outcome is Outcome.REFUSED:
            back_offs[move.set_name] = _backed_off(back_offs.get(move.set_name), settings, now)
    return MoveMemory(tuple(evictions), tuple(in_flight), {}, back_offs, memory.served)


def settle_moves(
    memory: MoveMemory, snapshot: Snapshot, settings: MoverSettings, now: Moment
) -> tuple[MoveMemory, list[Notice]]:
    """Check where the successors of evicted placeholders went, and forget what is over.

    The notices are about wrong predictions.
    """
    in_flight: list[Move] = []
    notices: list[Notice] = []
    back_offs = dict(memory.back_offs)
    for move in memory.in_flight:
        pod = snapshot.pods.get(move.pod)
        age_seconds = now.steady - move.at
        has_successor = pod is not None and pod.uid != move.uid
        if pod is None or not has_successor:
            # The successor may still come. If it doesn't, the set has fewer replicas now, or the
            # StatefulSet controller doesn't run.
            if age_seconds < UNDONE_SECONDS:
                in_flight.append(move)
        elif not pod.node_name:
            if age_seconds < LOST_SECONDS:
                in_flight.append(move)
        elif pod.node_name == move.target:
            # The prediction was right: after the back-off, its failures are forgotten.
            back_off = back_offs.get(move.set_name)
            if back_off is not None and back_off.until <= now.steady:
                del back_offs[move.set_name]
        else:
            back_off = _backed_off(back_offs.get(move.set_name), settings, now)
            back_offs[move.set_name] = back_off
            notices.append(_wrong_prediction(move, pod, back_off, now))
    evictions = tuple(at for at in memory.evictions if at > now.steady - WINDOW_SECONDS)
    set_names = {placeholder_set.name for placeholder_set in settings.sets}
    back_offs = {name: back_off for name, back_off in back_offs.items() if name in set_names}
    return MoveMemory(evictions, tuple(in_flight), {}, back_offs, memory.served), notices


def _backed_off(before: BackOff | None, settings: MoverSettings, now: Moment) -> BackOff:
    return backed_off(before, settings.back_off_seconds, settings.max_back_off_seconds, now.steady)


def _wrong_prediction(move: Move, pod: Pod, back_off: BackOff, now: Moment) -> Notice:
    """The notice about a successor that went to another node than the target."""
    outcome = "came back" if pod.node_name == move.source else f"went to {pod.node_name}"
    message = (
        f"This placeholder was to move from {move.source} to {move.target} but {outcome}; "
        f"no other of set {move.set_name} moves for {back_off.until - now.steady:.0f} s."
    )
    return Notice.on_pod(pod, "PlaceholderMovedElsewhere", message, warning=True)
