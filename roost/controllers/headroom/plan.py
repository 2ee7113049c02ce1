"""Keep the number of placeholders by the clock, and the size of those that stand for whole nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import GaugeDefinition, Notice, Outcome, Planned, ResizeSet, ScaleSet
from roost.controllers.headroom.settings import CountBy, HeadroomSet
from roost.controllers.headroom.whole_nodes import (
    Misfit,
    Pool,
    first_size_is_due,
    is_first_size,
    plan_resize,
    read_size,
)
from roost_core.placement.headroom_windows import Spell, local_time, spell_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roost.controllers.contract.actions import Action, Done
    from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState

REPLICAS: Final = "headroom_replicas"
NEXT: Final = "headroom_next_change_seconds"
WINDOW: Final = "headroom_window_active"
NODE_CPU: Final = "headroom_whole_node_cpu_cores"
NODE_MEMORY: Final = "headroom_whole_node_memory_bytes"
GAUGES: Final[Sequence[GaugeDefinition]] = (
    GaugeDefinition(
        REPLICAS, "Placeholders that a set should have now, of sets with windows or that count nodes.", ("set",)
    ),
    GaugeDefinition(NEXT, "Seconds until the next start or end of one of the set's windows.", ("set",)),
    GaugeDefinition(WINDOW, "1 for each window that gives the set's number now.", ("set", "window")),
    GaugeDefinition(NODE_CPU, "CPU that a placeholder for a whole node could ask for.", ("set",)),
    GaugeDefinition(NODE_MEMORY, "Memory that a placeholder for a whole node could ask for.", ("set",)),
)


@dataclass(frozen=True, slots=True)
class HeadroomMemory:
    """What earlier plans found, by the set's name; losing it costs time only."""

    # With the moment (wall) it was asked for.
    spells: Mapping[str, tuple[float, Spell]] = field(default_factory=dict)
    misfits: Mapping[str, Misfit] = field(default_factory=dict)
    # Steady seconds.
    resized: Mapping[str, float] = field(default_factory=dict)
    # The instance type that gives the size.
    types: Mapping[str, str] = field(default_factory=dict)
    # uids of nodes that the set's own pods waited for.
    waited_for: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Findings:
    """What is looked at, and what is gathered set by set."""

    snapshot: Snapshot
    memory: HeadroomMemory
    now: Moment
    actions: list[Action] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    spells: dict[str, tuple[float, Spell]] = field(default_factory=dict)
    misfits: dict[str, Misfit] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    waited_for: dict[str, frozenset[str]] = field(default_factory=dict)
    gauges: dict[str, dict[tuple[str, ...], float]] = field(
        default_factory=lambda: {definition.name: {} for definition in GAUGES}
    )


def plan_headroom(
    snapshot: Snapshot, memory: HeadroomMemory, sets: Sequence[HeadroomSet], now: Moment
) -> Planned[HeadroomMemory]:
    """Scale sets to what their windows say now; resize those that count nodes."""
    findings = _Findings(snapshot, memory, now)
    for one in sets:
        found = snapshot.stateful_sets.get(one.stateful_set)
        # The chart leaves the number of all these sets to us.
        _plan_number(one, found, findings)
        if one.count_by is CountBy.NODES:
            _plan_size(one, found, findings)
    return Planned(
        actions=findings.actions,
        memory=HeadroomMemory(findings.spells, findings.misfits, memory.resized, findings.types, findings.waited_for),
        # A moment later: at the very second, a clock may still show the one before.
        wake_after_seconds=max(0.0, min(findings.waits)) + 0.05 if findings.waits else None,
        gauges=findings.gauges,
    )


def note_headroom(
    memory: HeadroomMemory, done: Iterable[Done], sets: Sequence[HeadroomSet], now: Moment
) -> HeadroomMemory:
    """Remember when sets were resized."""
    resized = dict(memory.resized)
    for action, outcome in done:
        if isinstance(action, ResizeSet) and outcome in (Outcome.DONE, Outcome.FAILED):
            resized.update({one.name: now.steady for one in sets if one.stateful_set == action.name})
    return replace(memory, resized=resized)


def _plan_number(one: HeadroomSet, found: StatefulSetState | None, findings: _Findings) -> None:
    snapshot, memory, now = findings.snapshot, findings.memory, findings.now
    spell = _spell(one, memory, now)
    findings.spells[one.name] = (now.wall, spell)
    findings.gauges[REPLICAS][one.name,] = spell.replicas
    for window in spell.windows:
        findings.gauges[WINDOW][one.name, window] = 1.0
    if spell.until is not None:
        findings.gauges[NEXT][one.name,] = spell.until - now.wall
        findings.waits.append(spell.until - now.wall)
    if found is None or found.replicas == spell.replicas:
        return
    why = _why(one, spell)
    findings.actions.append(ScaleSet(name=found.name, uid=found.uid, replicas=spell.replicas, why=why))
    findings.actions.append(
        Notice(
            kind="StatefulSet",
            namespace=snapshot.namespace,
            name=found.name,
            uid=found.uid,
            reason="HeadroomChanged",
            message=f"From {found.replicas} to {spell.replicas} placeholders of set {one.name}: {why}.",
        )
    )


def _spell(one: HeadroomSet, memory: HeadroomMemory, now: Moment) -> Spell:
    """The spell of now; the calendar is asked only when the one before is over, or the clock went back."""
    known = memory.spells.get(one.name)
    if known is not None:
        asked_at, spell = known
        if asked_at <= now.wall and (spell.until is None or now.wall < spell.until):
            return spell
    return spell_at(one.windows, one.replicas, now.wall)


def _why(one: HeadroomSet, spell: Spell) -> str:
    if not spell.windows:
        return "no window holds" if one.windows else "the values say so"
    until = f", until {local_time(spell.until, one.windows[0].time_zone)} at least" if spell.until is not None else ""
    plural = "s" if len(spell.windows) > 1 else ""
    return f"window{plural} {' and '.join(spell.windows)}{until}"


def _plan_size(one: HeadroomSet, found: StatefulSetState | None, findings: _Findings) -> None:
    snapshot, memory, now = findings.snapshot, findings.memory, findings.now
    current = read_size(found.requests if found is not None else {})
    pool = Pool(one, snapshot, now)
    known = frozenset(node.uid for node in pool.nodes.values())
    waited_for = (memory.waited_for.get(one.name, frozenset()) & known) | pool.waited_for()
    findings.waited_for[one.name] = waited_for
    in_use = memory.types.get(one.name)
    room = pool.room(current, in_use, waited_for)
    if room is None:
        # The last size has to do until a node is there.
        if in_use is not None:
            findings.types[one.name] = in_use
        is_due = first_size_is_due(current, one, pool, memory.resized.get(one.name), now)
        if found is not None and found.container and is_due:
            first = {resource: str(amount) for resource, amount in one.first_requests.items()}
            why = f"the values say so, and set {one.name}'s pool has no node yet"
            findings.actions.append(_resize(found, first, why))
        return
    findings.types[one.name] = room.instance_type
    findings.gauges[NODE_CPU][one.name,] = room.size.cpu / 1000
    findings.gauges[NODE_MEMORY][one.name,] = float(room.size.memory)
    if found is None or not found.container:
        return
    # What it began with was never right: no reason to stay with it.
    resized_at = None if is_first_size(current, one) else memory.resized.get(one.name)
    resize = plan_resize(current, room.size, memory.misfits.get(one.name), resized_at, now)
    if resize.misfit is not None:
        findings.misfits[one.name] = resize.misfit
    if resize.seconds_left is not None:
        findings.waits.append(resize.seconds_left)
    if resize.size is not None:
        why = f"a whole node of set {one.name}'s pool has room for that, beside its daemon pods"
        findings.actions.append(_resize(found, resize.size.as_requests(), why))


def _resize(found: StatefulSetState, requests: Mapping[str, str], why: str) -> ResizeSet:
    return ResizeSet(name=found.name, uid=found.uid, container=found.container, requests=requests, why=why)
