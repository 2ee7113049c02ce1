"""Make one plan of the placeholder mover: mark the newest fit node of each set's pool, and move
placeholders there.

`unneeded_nodes` finds nodes that only placeholders use and that may go. `marks` and `moves` plan
the two steps; this module gives all the same view of the cluster and fills the gauges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from roost.controllers.contract.actions import Gauges, Notice, PlanGauge, Planned
from roost.controllers.contract.planner import Controller
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.placeholder_mover.marks import NodeMark, plan_marks
from roost.controllers.placeholder_mover.move_memory import MoveMemory, note_moves
from roost.controllers.placeholder_mover.moves import Holds, plan_moves
from roost.controllers.placeholder_mover.node_fitness import NodeHistory, NodeJudge, follow_nodes
from roost.controllers.placeholder_mover.scheduler_model import SchedulerModel
from roost.controllers.placeholder_mover.settings import MoverSettings, read_mover_settings
from roost.controllers.placeholder_mover.unneeded_nodes import Unneeded, find_unneeded
from roost.controllers.placeholder_mover.view import MoverView

GAUGES: Final[Sequence[PlanGauge]] = (
    PlanGauge(
        "placeholders",
        "Placeholders: marked (on the marked node), bound, pending.",
        ("set", "state"),
    ),
    PlanGauge(
        "placeholder_moves_held",
        "Placeholders elsewhere that don't move for now, and why.",
        ("set", "reason"),
    ),
    PlanGauge(
        "placeholder_back_off_seconds",
        "Seconds until a set's placeholders may move again, after a wrong guess or a refused"
        " eviction.",
        ("set",),
    ),
    PlanGauge(
        "placeholder_marked_node_age_seconds",
        "Age of the node that attracts the set's placeholders.",
        ("set",),
    ),
)


@dataclass(frozen=True, slots=True)
class MoverMemory:
    """What earlier plans saw and did; without it, the mover is only slower."""

    nodes: NodeHistory = field(default_factory=NodeHistory)
    # By set.
    marks: Mapping[str, NodeMark] = field(default_factory=dict)
    # By set: the nodes that its pool can do without.
    unneeded: Mapping[str, Unneeded] = field(default_factory=dict)
    moves: MoveMemory = field(default_factory=MoveMemory)
    # A cache.
    model: SchedulerModel = field(default_factory=SchedulerModel, compare=False)


def plan_placeholder_mover(
    snapshot: Snapshot, memory: MoverMemory, settings: MoverSettings, now: Moment
) -> Planned[MoverMemory]:
    """Mark a node for each set; evict placeholders that the scheduler would now put there."""
    history = follow_nodes(memory.nodes, snapshot, settings, now)
    view = MoverView(snapshot, settings, now)
    judge = NodeJudge(view, history)
    unneeded = {
        placeholder_set.name: find_unneeded(
            view, judge, placeholder_set, memory.unneeded.get(placeholder_set.name, Unneeded())
        )
        for placeholder_set in settings.sets
    }
    marks, label_changes = plan_marks(view, judge, memory.marks, unneeded)
    evictions, moves, holds = plan_moves(
        view, judge, marks, memory.moves, memory.model, unneeded=unneeded
    )
    return Planned(
        actions=[*label_changes, *evictions, *_complaints(view)],
        memory=MoverMemory(
            nodes=replace(history, fitness=judge.fitness),
            marks=marks,
            unneeded=unneeded,
            moves=moves,
            model=memory.model,
        ),
        # Slightly later: at that very second, a clock may still show the one before.
        wake_after_seconds=max(0.0, min(view.waits)) + 0.1 if view.waits else None,
        gauges=_gauges(view, marks, moves, holds),
    )


def _complaints(view: MoverView) -> list[Notice]:
    """Notices of what an operator has to fix before a set's placeholders can move."""
    notices = []
    for placeholder_set in view.settings.sets:
        stateful_set = view.snapshot.stateful_sets.get(placeholder_set.stateful_set)
        fault = view.settings.profile_fault(view.by_set[placeholder_set.name].bound)
        if stateful_set is not None and fault is not None:
            message = (
                "Placeholders of this set don't move: Roost's model can't follow their scheduler"
                f" ({fault})."
            )
            at = view.snapshot.namespace
            notices.append(
                Notice.on_set(at, stateful_set, "PlaceholderMoverIdle", message, warning=True)
            )
    return notices


def _gauges(
    view: MoverView, marks: Mapping[str, NodeMark], moves: MoveMemory, holds: Mapping[str, Holds]
) -> Gauges:
    snapshot = view.snapshot
    now = view.now
    states: dict[tuple[str, ...], float] = {}
    back_offs: dict[tuple[str, ...], float] = {}
    ages: dict[tuple[str, ...], float] = {}
    for placeholder_set in view.settings.sets:
        name = placeholder_set.name
        placeholders = view.by_set[placeholder_set.name]
        mark = marks.get(placeholder_set.name)
        marked = sum(mark is not None and pod.node_name == mark.node for pod in placeholders.bound)
        states[name, "marked"] = marked
        states[name, "bound"] = len(placeholders.bound) - marked
        states[name, "pending"] = sum(not pod.node_name for pod in placeholders.unsettled)
        back_off = moves.back_offs.get(name)
        back_offs[name,] = max(0.0, back_off.until - now.steady) if back_off is not None else 0.0
        if mark is not None:
            ages[name,] = now.steady - snapshot.sight_of(snapshot.nodes[mark.node], now).created
    held: dict[tuple[str, ...], float] = {}
    for name, reasons in holds.items():
        for reason, number in reasons.items():
            held[name, reason.text] = held.get((name, reason.text), 0) + number
    return {
        "placeholders": states,
        "placeholder_moves_held": held,
        "placeholder_back_off_seconds": back_offs,
        "placeholder_marked_node_age_seconds": ages,
    }


CONTROLLER: Final = Controller(
    name="placeholder-mover",
    # Switched off, it still runs, to remove its marks.
    read=read_mover_settings,
    plan=plan_placeholder_mover,
    empty=MoverMemory(),
    # Which of the last plan's evictions were carried out.
    note=lambda memory, done, settings, now: replace(
        memory, moves=note_moves(memory.moves, done, settings, now)
    ),
    gauges=GAUGES,
)
