"""Keep placeholders where they help: mark the newest fit node of each set's pool, and move placeholders there.

Marks and moves are planned by two modules of their own (`placeholder_mover_marks`, `placeholder_mover_moves`); this one
gives both the same look at the cluster, and tells what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import Done, GaugeDefinition, Notice, Planned
from roost.controllers.placeholder_mover.marks import Mark, plan_marks
from roost.controllers.placeholder_mover.model import Model
from roost.controllers.placeholder_mover.moves import MoveMemory, Moving, note_moves, plan_moves
from roost.controllers.placeholder_mover.nodes import NodeHistory, NodeJudge, follow_nodes
from roost.controllers.placeholder_mover.placeholders import SeatMap
from roost.controllers.placeholder_mover.pods import PodWatch
from roost.controllers.placeholder_mover.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roost.controllers.contract.actions import Gauges
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.placeholder_mover.settings import MoverSettings

PLACEHOLDERS: Final = "placeholders"
PLANNED: Final = "placeholder_moves_planned"
HELD: Final = "placeholder_moves_held"
BACK_OFF: Final = "placeholder_back_off_seconds"
MARK_AGE: Final = "placeholder_marked_node_age_seconds"
GAUGES: Final[Sequence[GaugeDefinition]] = (
    GaugeDefinition(
        PLACEHOLDERS, "Placeholders by set: marked (on the marked node), bound (elsewhere), pending.", ("set", "state")
    ),
    GaugeDefinition(PLANNED, "Placeholders that the last plan asked to evict.", ("set",)),
    GaugeDefinition(HELD, "Placeholders elsewhere that don't move for now, and why.", ("set", "reason")),
    GaugeDefinition(BACK_OFF, "Seconds until placeholders of the set may move again after a wrong guess.", ("set",)),
    GaugeDefinition(MARK_AGE, "Age of the node that draws the set's placeholders.", ("set",)),
)


@dataclass(frozen=True, slots=True)
class MoverMemory:
    """What earlier plans saw and did; losing it only makes the mover slower."""

    nodes: NodeHistory = field(default_factory=NodeHistory)
    # By set.
    marks: Mapping[str, Mark] = field(default_factory=dict)
    moves: MoveMemory = field(default_factory=MoveMemory)
    # Caches.
    model: Model = field(default_factory=Model, compare=False)
    pods: PodWatch = field(default_factory=PodWatch, compare=False)


def plan_placeholder_mover(
    snapshot: Snapshot, memory: MoverMemory, settings: MoverSettings, now: Moment
) -> Planned[MoverMemory]:
    """Mark a node for each set; evict placeholders that the scheduler would now put there."""
    history = follow_nodes(memory.nodes, snapshot, settings, now)
    pods = memory.pods
    pods.follow(snapshot.pods)
    judge = NodeJudge(snapshot, settings, history, pods, now)
    placeholders = SeatMap(snapshot, settings, pods)
    view = View(snapshot, settings, judge, placeholders, now)
    marking = plan_marks(view, memory.marks)
    moving = plan_moves(view, marking.marks, memory.moves, memory.model)
    waits = [*marking.waits, *moving.waits]
    return Planned(
        actions=[*marking.actions, *moving.actions, *_complaints(snapshot, settings)],
        memory=MoverMemory(replace(history, fitness=judge.fitness), marking.marks, moving.memory, memory.model, pods),
        # A moment later: at the very second, a clock may still show the one before.
        wake_after_seconds=max(0.0, min(waits)) + 0.1 if waits else None,
        gauges=_gauges(view, marking.marks, moving),
    )


def note_placeholder_mover(
    memory: MoverMemory, done: Iterable[Done], settings: MoverSettings, now: Moment
) -> MoverMemory:
    """Learn what became of the last plan's evictions."""
    return replace(memory, moves=note_moves(memory.moves, done, settings, now))


def _complaints(snapshot: Snapshot, settings: MoverSettings) -> list[Notice]:
    """What an operator has to mend before placeholders can move."""
    if not settings.profile_fault:
        return []
    message = f"Placeholders don't move: the scheduler's configuration can't be followed ({settings.profile_fault})."
    return [
        Notice(
            kind="StatefulSet",
            namespace=snapshot.namespace,
            name=found.name,
            uid=found.uid,
            reason="PlaceholderMoverIdle",
            message=message,
            warning=True,
        )
        for one in settings.sets
        if (found := snapshot.stateful_sets.get(one.stateful_set)) is not None
    ]


def _gauges(view: View, marks: Mapping[str, Mark], moving: Moving) -> Gauges:
    snapshot, now = view.snapshot, view.now
    states: dict[tuple[str, ...], float] = {}
    planned: dict[tuple[str, ...], float] = {}
    back_offs: dict[tuple[str, ...], float] = {}
    ages: dict[tuple[str, ...], float] = {}
    for one in view.settings.sets:
        name, mine, mark = one.name, view.placeholders.by_set[one.name], marks.get(one.name)
        marked = sum(mark is not None and pod.node_name == mark.node for pod in mine.bound)
        states[name, "marked"] = marked
        states[name, "bound"] = len(mine.bound) - marked
        states[name, "pending"] = sum(not pod.node_name for pod in mine.unsettled)
        planned[name,] = sum(move.set_name == name for move in moving.memory.asked.values())
        back_off = moving.memory.back_offs.get(name)
        back_offs[name,] = max(0.0, back_off.until - now.steady) if back_off is not None else 0.0
        if mark is not None:
            ages[name,] = max(0.0, now.wall - snapshot.nodes[mark.node].created)
    held: dict[tuple[str, ...], float] = {(name, one.reason): one.number for name, one in moving.held.items()}
    return {PLACEHOLDERS: states, PLANNED: planned, HELD: held, BACK_OFF: back_offs, MARK_AGE: ages}
