"""Remember evictions, compare where the successors went with the prediction, and back off after a
wrong one.
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

# Evictions are counted over this long.
WINDOW_SECONDS: Final = 60.0
# By then a pod that still exists, or has no successor, won't move: the eviction came to nothing.
UNDONE_SECONDS: Final = 60.0
# By then a successor without a node is held up by something else, which isn't worth waiting for.
LOST_SECONDS: Final = 600.0


class Move(NamedTuple):
    """One eviction and its prediction."""

    set_name: str
    # namespace/name; the successor's, too.
    pod: str
    uid: str
    source: str
    target: str
    # Steady seconds.
    at: float


@dataclass(frozen=True, slots=True)
class MoveMemory:
    """What earlier plans did; times are steady seconds."""

    # Times of the last minute's evictions.
    evictions: tuple[float, ...] = ()
    # Evicted; where their successors go isn't known yet.
    in_flight: tuple[Move, ...] = ()
    # Requested by the last plan, by the pod's uid.
    requested: Mapping[str, Move] = field(default_factory=dict)
    # By set: until when no placeholder of it moves.
    back_offs: Mapping[str, BackOff] = field(default_factory=dict)
    # By set, when its moves were last planned: the set that has waited longest comes first.
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
            # Failed: it may have been carried out all the same.
            in_flight.append(move._replace(at=now.steady))
        elif outcome is Outcome.REFUSED:
            back_offs[move.set_name] = _backed_off(back_offs.get(move.set_name), settings, now)
    return MoveMemory(tuple(evictions), tuple(in_flight), {}, back_offs, memory.served)


def settle_moves(
    memory: MoveMemory, snapshot: Snapshot, settings: MoverSettings, now: Moment
) -> tuple[MoveMemory, list[Notice]]:
    """Check where the successors of evicted placeholders went; drop what is over."""
    in_flight: list[Move] = []
    notices: list[Notice] = []
    back_offs = dict(memory.back_offs)
    for move in memory.in_flight:
        pod = snapshot.pods.get(move.pod)
        age_seconds = now.steady - move.at
        # Without a successor, its set has fewer replicas by now, or the StatefulSet controller is
        # away.
        if pod is None or pod.uid == move.uid:
            if age_seconds < UNDONE_SECONDS:
                in_flight.append(move)
        elif not pod.node_name:
            if age_seconds < LOST_SECONDS:
                in_flight.append(move)
        elif pod.node_name == move.target:
            if (
                back_off_before := back_offs.get(move.set_name)
            ) and back_off_before.until <= now.steady:
                del back_offs[move.set_name]
        else:
            back_off = back_offs[move.set_name] = _backed_off(
                back_offs.get(move.set_name), settings, now
            )
            notices.append(_wrong_prediction(move, pod, back_off, now))
    evictions = tuple(at for at in memory.evictions if at > now.steady - WINDOW_SECONDS)
    set_names = {placeholder_set.name for placeholder_set in settings.sets}
    back_offs = {name: back_off for name, back_off in back_offs.items() if name in set_names}
    return MoveMemory(evictions, tuple(in_flight), {}, back_offs, memory.served), notices


def _backed_off(before: BackOff | None, settings: MoverSettings, now: Moment) -> BackOff:
    return backed_off(before, settings.back_off_seconds, settings.max_back_off_seconds, now.steady)


def _wrong_prediction(move: Move, pod: Pod, back_off: BackOff, now: Moment) -> Notice:
    outcome = "came back" if pod.node_name == move.source else f"went to {pod.node_name}"
    message = (
        f"This placeholder was to move from {move.source} to {move.target} but {outcome}; "
        f"no other of set {move.set_name} moves for {back_off.until - now.steady:.0f} s."
    )
    return Notice.on_pod(pod, "PlaceholderMovedElsewhere", message, warning=True)
