"""Make one plan of headroom: scale each set by the clock, and resize those whose placeholders fill whole nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from roost.controllers.contract.actions import (
    GaugeDefinition,
    Notice,
    Outcome,
    Planned,
    ResizeSet,
    ScaleBuffer,
    ScaleSet,
)
from roost.controllers.contract.planner import Controller
from roost.controllers.contract.snapshot import CapacityBufferState
from roost.controllers.headroom.booked import NOTHING, Booked, BookedRules, booking_notices, plan_booked
from roost.controllers.headroom.learning import Learned, keeper_of, learned_number, new_learned, observe
from roost.controllers.headroom.settings import HeadroomSet, read_headroom_sets
from roost.controllers.headroom.whole_nodes import (
    Misfit,
    Pool,
    first_size_is_due,
    is_first_size,
    plan_resize,
    read_size,
)
from roost_core.placement.headroom_windows import MAX_REPLICAS, Period, local_time, period_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roost.controllers.contract.actions import Action, Done
    from roost.controllers.contract.release import ReleaseDocument
    from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState

# An autoscaler answers within seconds, unless it restarts.
IGNORED_SECONDS: Final = 120.0
_NEEDS: Final = (
    "cluster-autoscaler needs --capacity-buffer-controller-enabled and --capacity-buffer-pod-injection-enabled, "
    "Karpenter the feature gate CapacityBuffer"
)


def has_number(keeper: StatefulSetState | CapacityBufferState, replicas: int) -> bool:
    """Whether it keeps room for so many already. A buffer that names no PodTemplate keeps none."""
    is_complete = keeper.template == keeper.name if isinstance(keeper, CapacityBufferState) else True
    return is_complete and keeper.replicas == replicas


def scale(keeper: StatefulSetState | CapacityBufferState, replicas: int, why: str) -> Action:
    """Return what gives it that number."""
    if isinstance(keeper, CapacityBufferState):
        # Its PodTemplate has the same name.
        return ScaleBuffer(name=keeper.name, uid=keeper.uid, template=keeper.name, replicas=replicas, why=why)
    return ScaleSet(name=keeper.name, uid=keeper.uid, replicas=replicas, why=why)


def is_ignored(keeper: StatefulSetState | CapacityBufferState) -> bool:
    """Whether it is a buffer that asks for room, and no autoscaler has said that it keeps it."""
    return (
        isinstance(keeper, CapacityBufferState)
        and bool(keeper.template)
        and bool(keeper.replicas)
        and bool(keeper.unready)
    )


def ignored_notice(namespace: str, name: str, keeper: StatefulSetState | CapacityBufferState) -> Notice:
    """Say that nobody keeps the room of the set with this name."""
    unready = keeper.unready if isinstance(keeper, CapacityBufferState) else ""
    message = f"No autoscaler keeps the room for {keeper.replicas} placeholders of set {name}: {unready}. {_NEEDS}."
    return Notice.on_set(namespace, keeper, "CapacityBufferIgnored", message, warning=True)


# Of booked events, at most so many within that time: all controllers share a minute's writes, and the image gate can't
# wait for the next minute.
MOST_NOTICES: Final = 50
NOTICE_SECONDS: Final = 60.0
REPLICAS: Final = "headroom_replicas"
NEXT: Final = "headroom_next_change_seconds"
WINDOW: Final = "headroom_window_active"
BOOKED: Final = "headroom_booked"
LEARNED: Final = "headroom_learned_hours"
NODE_CPU: Final = "headroom_whole_node_cpu_cores"
NODE_MEMORY: Final = "headroom_whole_node_memory_bytes"
GAUGES: Final[Sequence[GaugeDefinition]] = (
    GaugeDefinition(
        REPLICAS,
        "Placeholders that a set should have now, of sets with windows or `learn`, or that count nodes.",
        ("set",),
    ),
    GaugeDefinition(NEXT, "Seconds until the next start or end of one of the set's windows.", ("set",)),
    GaugeDefinition(WINDOW, "1 for each window that gives the set's number now.", ("set", "window")),
    GaugeDefinition(BOOKED, "Placeholders kept for booked events now, beside the windows'.", ("set",)),
    GaugeDefinition(LEARNED, "Hours of growth that a set with `learn` has seen, of the last eight weeks.", ("set",)),
    GaugeDefinition(NODE_CPU, "CPU that a placeholder for a whole node can request.", ("set",)),
    GaugeDefinition(NODE_MEMORY, "Memory that a placeholder for a whole node can request.", ("set",)),
)


@dataclass(frozen=True, slots=True)
class HeadroomMemory:
    """What earlier plans found, by the set's name; without it, resizing only takes longer."""

    # With the Unix time at which it was computed.
    periods: Mapping[str, tuple[float, Period]] = field(default_factory=dict)
    misfits: Mapping[str, Misfit] = field(default_factory=dict)
    # Steady seconds.
    resized: Mapping[str, float] = field(default_factory=dict)
    # The instance type that gives the size.
    types: Mapping[str, str] = field(default_factory=dict)
    # uids of nodes that the set's own pods waited for.
    waited_for: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # What was said of booked events.
    told: frozenset[Notice] = frozenset()
    # Of sets that learn.
    learned: Mapping[str, Learned] = field(default_factory=dict)
    # Steady seconds since when notices are counted, and how many there were.
    telling: tuple[float, int] = (0.0, 0)
    # Steady seconds since when no autoscaler keeps the room of a set's buffer.
    ignored: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Findings:
    """What a plan reads, and what it gathers set by set."""

    snapshot: Snapshot
    memory: HeadroomMemory
    now: Moment
    booked: Booked = NOTHING
    actions: list[Action] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    periods: dict[str, tuple[float, Period]] = field(default_factory=dict)
    misfits: dict[str, Misfit] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    waited_for: dict[str, frozenset[str]] = field(default_factory=dict)
    learned: dict[str, Learned] = field(default_factory=dict)
    ignored: dict[str, float] = field(default_factory=dict)
    gauges: dict[str, dict[tuple[str, ...], float]] = field(
        default_factory=lambda: {definition.name: {} for definition in GAUGES}
    )


def plan_headroom(
    snapshot: Snapshot,
    memory: HeadroomMemory,
    sets: Sequence[HeadroomSet],
    now: Moment,
    events: BookedRules | None = None,
) -> Planned[HeadroomMemory]:
    """Scale each set to what its windows and booked events say, or its users taught; resize those that count nodes."""
    findings = _Findings(snapshot, memory, now)
    notices: frozenset[Notice] = frozenset()
    if events is not None:
        findings.booked = plan_booked(snapshot, events, now.wall)
        notices = frozenset(booking_notices(snapshot, events.settings, now.wall))
        if findings.booked.seconds_left is not None:
            findings.waits.append(findings.booked.seconds_left)
    for headroom_set in sets:
        # The chart renders no replicas for these sets.
        _plan_number(headroom_set, findings)
        if headroom_set.fills_nodes:
            _plan_size(headroom_set, snapshot.stateful_sets.get(headroom_set.stateful_set), findings)
    # After what matters to nodes.
    news = sorted(notices - memory.told, key=lambda notice: (notice.name, notice.message))
    began, count = memory.telling
    if now.steady - began >= NOTICE_SECONDS:
        began, count = now.steady, 0
    now_told = news[: MOST_NOTICES - count]
    if len(now_told) < len(news):
        findings.waits.append(NOTICE_SECONDS - (now.steady - began))
    findings.actions.extend(now_told)
    return Planned(
        actions=findings.actions,
        memory=HeadroomMemory(
            findings.periods,
            findings.misfits,
            memory.resized,
            findings.types,
            findings.waited_for,
            (memory.told & notices) | frozenset(now_told),
            findings.learned,
            (began, count + len(now_told)),
            findings.ignored,
        ),
        # Slightly later: at that very second, a clock may still show the one before.
        wake_after_seconds=max(0.0, min(findings.waits)) + 0.05 if findings.waits else None,
        gauges=findings.gauges,
    )


def note_headroom(
    memory: HeadroomMemory, done: Iterable[Done], sets: Sequence[HeadroomSet], now: Moment
) -> HeadroomMemory:
    """Remember when sets were resized, and forget notices that weren't written."""
    resized = dict(memory.resized)
    untold: set[Notice] = set()
    for action, outcome in done:
        if isinstance(action, Notice) and outcome in (Outcome.HELD_BACK, Outcome.FAILED):
            untold.add(action)
        if isinstance(action, ResizeSet) and outcome in (Outcome.DONE, Outcome.FAILED):
            resized.update({each.name: now.steady for each in sets if each.stateful_set == action.name})
    return replace(memory, resized=resized, told=memory.told - untold)


def _plan_number(headroom_set: HeadroomSet, findings: _Findings) -> None:
    snapshot, memory, now = findings.snapshot, findings.memory, findings.now
    keeper = keeper_of(headroom_set, snapshot)
    period = _period(headroom_set, memory, now)
    findings.periods[headroom_set.name] = (now.wall, period)
    extra = findings.booked.extra.get(headroom_set.name, 0)
    if headroom_set.name in findings.booked.extra:
        findings.gauges[BOOKED][headroom_set.name,] = extra
    for window in period.windows:
        findings.gauges[WINDOW][headroom_set.name, window] = 1.0
    if period.until is not None:
        findings.gauges[NEXT][headroom_set.name,] = period.until - now.wall
        findings.waits.append(period.until - now.wall)
    present = None if keeper is None or keeper.replicas is None else keeper.replicas - extra
    replicas, why = _with_learning(headroom_set, period, present, findings)
    replicas = min(MAX_REPLICAS, replicas + extra)
    findings.gauges[REPLICAS][headroom_set.name,] = replicas
    if keeper is None:
        return
    _check_buffer(headroom_set, keeper, findings)
    if has_number(keeper, replicas):
        return
    before = keeper.replicas
    booked = findings.booked.why.get(headroom_set.name)
    why = f"{booked}; else {why}" if booked else why
    findings.actions.append(scale(keeper, replicas, why))
    if booked and before is not None and replicas < before:
        # People come: too many to tell of each.
        return
    change = f"To {replicas}" if before is None else f"From {before} to {replicas}"
    message = f"{change} placeholders of set {headroom_set.name}: {why}."
    findings.actions.append(Notice.on_set(snapshot.namespace, keeper, "HeadroomChanged", message))


def _check_buffer(
    headroom_set: HeadroomSet, keeper: StatefulSetState | CapacityBufferState, findings: _Findings
) -> None:
    """Tell of a buffer whose room nobody keeps: its windows would pass without a trace."""
    if not is_ignored(keeper):
        return
    steady = findings.now.steady
    since = findings.ignored[headroom_set.name] = findings.memory.ignored.get(headroom_set.name, steady)
    left = since + IGNORED_SECONDS - steady
    if left > 0:
        findings.waits.append(left)
    else:
        findings.actions.append(ignored_notice(findings.snapshot.namespace, headroom_set.name, keeper))


def _with_learning(
    headroom_set: HeadroomSet, period: Period, present: int | None, findings: _Findings
) -> tuple[int, str]:
    """Return the number and why: what a set learned, but no less than its active windows; else what its windows say."""
    if headroom_set.learn is None:
        return period.replicas, _why(headroom_set, period)
    now = findings.now
    learned = findings.memory.learned.get(headroom_set.name) or new_learned(headroom_set.learn, now)
    learned, actions = observe(headroom_set, learned, findings.snapshot, now)
    findings.learned[headroom_set.name] = learned
    findings.actions += actions
    number = learned_number(headroom_set.learn, learned, period, present, now)
    findings.waits.append(number.until - now.wall)
    findings.gauges[LEARNED][headroom_set.name,] = sum(each is not None for each in learned.history.growth)
    return number.replicas, number.why or _why(headroom_set, period)


def _period(headroom_set: HeadroomSet, memory: HeadroomMemory, now: Moment) -> Period:
    """Return the present period; it is computed only when the last one is over, or the clock went back."""
    last = memory.periods.get(headroom_set.name)
    if last is not None:
        computed_at, period = last
        if computed_at <= now.wall and (period.until is None or now.wall < period.until):
            return period
    return period_at(headroom_set.windows, headroom_set.replicas, now.wall)


def _why(headroom_set: HeadroomSet, period: Period) -> str:
    if not period.windows:
        return "no window is active" if headroom_set.windows else "the values say so"
    until = (
        f", until {local_time(period.until, headroom_set.windows[0].time_zone)} at least"
        if period.until is not None
        else ""
    )
    plural = "s" if len(period.windows) > 1 else ""
    return f"window{plural} {' and '.join(period.windows)}{until}"


def _plan_size(headroom_set: HeadroomSet, stateful_set: StatefulSetState | None, findings: _Findings) -> None:
    snapshot, memory, now = findings.snapshot, findings.memory, findings.now
    current = read_size(stateful_set.requests if stateful_set is not None else {})
    pool = Pool(headroom_set, snapshot, now)
    known = frozenset(node.uid for node in pool.nodes.values())
    waited_for = (memory.waited_for.get(headroom_set.name, frozenset()) & known) | pool.waited_for()
    findings.waited_for[headroom_set.name] = waited_for
    in_use = memory.types.get(headroom_set.name)
    room = pool.room(current, in_use, waited_for)
    if room is None:
        # The last size is kept until the pool has a node.
        if in_use is not None:
            findings.types[headroom_set.name] = in_use
        is_due = first_size_is_due(current, headroom_set, pool, memory.resized.get(headroom_set.name), now)
        if stateful_set is not None and stateful_set.container and is_due:
            first = {resource: str(amount) for resource, amount in headroom_set.first_requests.items()}
            why = f"the values say so, and set {headroom_set.name}'s pool has no node yet"
            findings.actions.append(_resize(stateful_set, first, why))
        return
    findings.types[headroom_set.name] = room.instance_type
    findings.gauges[NODE_CPU][headroom_set.name,] = room.size.cpu / 1000
    findings.gauges[NODE_MEMORY][headroom_set.name,] = float(room.size.memory)
    if stateful_set is None or not stateful_set.container:
        return
    # Its first size is only a guess, so it may change at once.
    resized_at = None if is_first_size(current, headroom_set) else memory.resized.get(headroom_set.name)
    resize = plan_resize(current, room.size, memory.misfits.get(headroom_set.name), resized_at, now)
    if resize.misfit is not None:
        findings.misfits[headroom_set.name] = resize.misfit
    if resize.seconds_left is not None:
        findings.waits.append(resize.seconds_left)
    if resize.size is not None:
        why = f"a whole node of set {headroom_set.name}'s pool has room for that, beside its daemon pods"
        findings.actions.append(_resize(stateful_set, resize.size.as_requests(), why))


def _resize(stateful_set: StatefulSetState, requests: Mapping[str, str], why: str) -> ResizeSet:
    return ResizeSet(
        name=stateful_set.name, uid=stateful_set.uid, container=stateful_set.container, requests=requests, why=why
    )


class HeadroomSettings(NamedTuple):
    """What headroom reads of release.json."""

    sets: tuple[HeadroomSet, ...]
    # None: no events can be booked.
    events: BookedRules | None


def read_headroom(release: ReleaseDocument) -> HeadroomSettings | None:
    """Read release.json; None if no set has windows, learns, counts nodes or can be booked."""
    sets = read_headroom_sets(release)
    if not sets:
        return None
    return HeadroomSettings(sets, None if release.events is None else BookedRules(release.events, release.is_users))


CONTROLLER: Final = Controller(
    name="headroom",
    read=read_headroom,
    plan=lambda snapshot, memory, settings, now: plan_headroom(snapshot, memory, settings.sets, now, settings.events),
    empty=HeadroomMemory(),
    note=lambda memory, done, settings, now: note_headroom(memory, done, settings.sets, now),
    gauges=GAUGES,
)
