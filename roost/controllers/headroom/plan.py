"""How many placeholders each set has now: by windows, bookings, what was learned, and quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import ceil, inf
from operator import attrgetter
from typing import Final, NamedTuple

from roost.controllers.contract.actions import (
    Action,
    Done,
    Notice,
    Outcome,
    PlanGauge,
    Planned,
    ScaleSet,
)
from roost.controllers.contract.notice_count import NoticeCount
from roost.controllers.contract.planner import Controller
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom.booked import booking_notices, plan_booked
from roost.controllers.headroom.learned_number import (
    NEW_LEADER_SECONDS,
    learned_number,
    seconds_until_change,
)
from roost.controllers.headroom.learning import Learned, ceiling_of, observe
from roost.controllers.headroom.quota_room import (
    Cut,
    CutElsewhere,
    Demand,
    PeopleRoom,
    counts_placeholders,
    cut_by_quotas,
    demand_of,
    joint_cut,
    room_of_all,
)
from roost.controllers.headroom.set_of_user import SetOfUser
from roost.controllers.headroom.settings import HeadroomSettings, read_headroom
from roost_core.placement.headroom_windows import MAX_REPLICAS, Period, local_time, period_at
from roost_core.release.placeholder_sets import LearnSettings, PlaceholderSet

# The most Events about bookings within a minute.
MOST_NOTICES: Final = 50
# What a quota leaves is told so often.
CUT_NOTICE_SECONDS: Final = 3600.0
GAUGES: Final[Sequence[PlanGauge]] = (
    PlanGauge(
        "headroom_replicas",
        "Placeholders that a set with windows or `learn` should have now.",
        ("set",),
    ),
    PlanGauge(
        "headroom_next_change_seconds",
        "Seconds until the next start or end of a set's window.",
        ("set",),
    ),
    PlanGauge(
        "headroom_window_active",
        "1 for each window that gives the set's number now.",
        ("set", "window"),
    ),
    PlanGauge(
        "headroom_booked", "Placeholders kept for booked events now, beside the windows'.", ("set",)
    ),
    PlanGauge(
        "headroom_bookings_unread",
        "ConfigMaps of bookings that wait to be read; they count as before.",
    ),
    PlanGauge(
        "headroom_learned_hours",
        "Hours of the last eight weeks that a set with `learn` has seen.",
        ("set",),
    ),
    PlanGauge(
        "headroom_saved_hours",
        "Hours that people didn't wait in this week and the last, because of `learn`.",
        ("set",),
    ),
    PlanGauge(
        "headroom_net_node_hours",
        "Node-hours that `learn` cost in this week and the last; below 0: saved.",
        ("set",),
    ),
    PlanGauge(
        "headroom_month_cost",
        "Money that `learn` cost in thirty days, by `prices.nodeHour`.",
        ("set",),
    ),
    PlanGauge(
        "headroom_ceiling_left",
        "Share of waiting's worth that the ceiling of cost leaves; 1: nothing is cut.",
        ("set",),
    ),
    PlanGauge(
        "headroom_cut_people",
        "People of the coming week who wait because of the ceiling of cost.",
        ("set",),
    ),
    PlanGauge(
        "headroom_quota_cut",
        "Placeholders that ResourceQuotas leave no room for, so that people find some.",
        ("set",),
    ),
)


class ComputedPeriod(NamedTuple):
    """What a set's windows give, until they give something else."""

    # Unix time.
    computed_at: float
    period: Period


class CutNotice(NamedTuple):
    """An Event about what quotas leave of a set."""

    # Steady seconds.
    at: float
    # The bookings that the set was for, in words.
    booked: str


@dataclass(frozen=True, slots=True)
class SetMemory:
    """What earlier plans found of one set."""

    # What its windows gave; None: they weren't asked yet.
    period: ComputedPeriod | None = None
    # What a set has learned; None: it doesn't learn.
    learned: Learned | None = None
    # A quota cuts its number.
    is_cut: bool = False
    # The last Event about that; None: there was none.
    cut_notice: CutNotice | None = None


@dataclass(frozen=True, slots=True)
class HeadroomMemory:
    """What earlier plans found and wrote."""

    # By name.
    sets: Mapping[str, SetMemory] = field(default_factory=dict)
    # Steady seconds of the first plan; None: there was none.
    since: float | None = None
    # What was written about booked events, and how many of these in the last minute.
    written: frozenset[Notice] = frozenset()
    notice_count: NoticeCount = field(default_factory=NoticeCount)


def plan_headroom(
    snapshot: Snapshot, memory: HeadroomMemory, settings: HeadroomSettings, now: Moment
) -> Planned[HeadroomMemory]:
    """Scale each set to what its windows and booked events say, or its users taught."""
    since = now.steady if memory.since is None else memory.since
    is_new = now.steady - since < NEW_LEADER_SECONDS
    plan = _Plan(snapshot, settings, memory, now, is_new=is_new)
    numbers = [
        plan.number(placeholder_set, memory.sets.get(placeholder_set.name, SetMemory()))
        for placeholder_set in settings.sets
    ]
    cuts = cut_by_quotas([number.demand for number in numbers], snapshot, settings)
    sets = {number.name: plan.scale(number, cuts.get(number.name)) for number in numbers}
    # After what matters to nodes.
    notices = frozenset(
        booking_notices(snapshot, settings.events, now.wall) if settings.events is not None else ()
    )
    unwritten = _in_turn(notices - memory.written)
    count = memory.notice_count.at(now.steady)
    written_now = unwritten[: MOST_NOTICES - count.notices]
    if len(written_now) < len(unwritten):
        plan.waits.append(count.seconds_left(now.steady))
    written = (memory.written & notices) | frozenset(written_now)
    return Planned(
        actions=[*plan.actions, *written_now],
        memory=HeadroomMemory(sets, since, written, count.plus(len(written_now))),
        # Slightly later: at that very second, a clock may still show the one before.
        wake_after_seconds=max(0.0, min(plan.waits)) + 0.05 if plan.waits else None,
        gauges=plan.gauges,
    )


def note_headroom(
    memory: HeadroomMemory, done: Iterable[Done], _settings: HeadroomSettings, _now: Moment
) -> HeadroomMemory:
    """Forget notices that weren't written."""
    unwritten = {
        action
        for action, outcome in done
        if isinstance(action, Notice) and outcome in (Outcome.HELD_BACK, Outcome.FAILED)
    }
    return replace(memory, written=memory.written - unwritten)


def _in_turn(notices: Iterable[Notice]) -> Sequence[Notice]:
    """One of each ConfigMap, then another of each: whoever books much doesn't keep others from
    their answer.
    """
    of_each: dict[tuple[str, str], list[Notice]] = {}
    for notice in sorted(notices, key=attrgetter("name", "message")):
        of_each.setdefault((notice.namespace, notice.name), []).append(notice)
    turns = zip_longest(*of_each.values())
    return [notice for turn in turns for notice in turn if notice is not None]


class _Number(NamedTuple):
    """What one set should have. Quotas of hubs' namespaces have cut it already; that of the
    placeholders' own namespace has not.
    """

    placeholder_set: PlaceholderSet
    stateful_set: StatefulSetState | None
    replicas: int
    why: str
    is_learned: bool
    demand: Demand
    # What quotas of hubs' namespaces leave no people for; None: they let all in.
    cut_elsewhere: CutElsewhere | None
    # What to remember.
    memory: SetMemory

    @property
    def name(self) -> str:
        """The set's."""
        return self.placeholder_set.name

    @property
    def wanted(self) -> int:
        """Placeholders that it would have without any quota."""
        elsewhere = 0 if self.cut_elsewhere is None else self.cut_elsewhere.placeholders
        return self.replicas + elsewhere


class _Plan:
    """One plan in the making."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: HeadroomSettings,
        memory: HeadroomMemory,
        now: Moment,
        *,
        is_new: bool,
    ) -> None:
        """is_new: these controllers began just now, so quotas may yet have to be listed."""
        self._snapshot = snapshot
        # A set that grew before its quota was read would be cut seconds later.
        self._waits_for_quotas = is_new and (snapshot.quotas is None or snapshot.awaits_hub_quotas)
        self._counts_placeholders = counts_placeholders(snapshot)
        self._settings = settings
        self._now = now
        learning = [
            placeholder_set
            for placeholder_set in settings.sets
            if placeholder_set.learn is not None
        ]
        self._set_of_user = SetOfUser(learning, snapshot)
        self._booked = plan_booked(snapshot, settings, now.wall)
        self._periods = {
            placeholder_set.name: _period(
                placeholder_set, memory.sets.get(placeholder_set.name, SetMemory()).period, now
            )
            for placeholder_set in settings.sets
        }
        # Placeholders of each set without what was learned.
        self._kept_seats = {
            name: computed.period.replicas + self._booked.extra.get(name, 0)
            for name, computed in self._periods.items()
        }
        self._room_of_hubs = room_of_all(snapshot, settings) if learning else None
        self.actions: list[Action] = []
        self.waits: list[float] = (
            [] if self._booked.seconds_left is None else [self._booked.seconds_left]
        )
        self.gauges: dict[str, dict[tuple[str, ...], float]] = {
            definition.name: {} for definition in GAUGES
        }
        self.gauges["headroom_bookings_unread"][()] = sum(
            booking.is_unread for booking in snapshot.bookings.values()
        )

    def number(self, placeholder_set: PlaceholderSet, before: SetMemory) -> _Number:
        """Find one set's number, as windows, bookings and what was learned have it."""
        name = placeholder_set.name
        stateful_set = self._snapshot.stateful_sets.get(placeholder_set.stateful_set)
        computed = self._periods[name]
        period = computed.period
        extra = self._booked.extra.get(name, 0)
        self._show_period(name, period)
        replicas = self._kept_seats[name]
        why = ""
        learned = None
        learn = placeholder_set.learn
        if learn is not None:
            learned = self._learn(placeholder_set, learn, before)
            present = None if stateful_set is None else stateful_set.replicas
            replicas, why = learned_number(
                learn, learned, period, extra, present=present, now=self._now
            )
        is_learned = bool(why)
        why = why or _why(placeholder_set, period)
        replicas = min(MAX_REPLICAS, replicas)
        cut_elsewhere = self._booked.cut.get(name)
        room = None if learn is None else self._room_of_hubs
        if room is not None and replicas > room.people:
            cut_elsewhere = joint_cut(cut_elsewhere, _cut_to(room, replicas))
            replicas = room.people
            why = f"{why}; no more people than {room.why}"
        # Each placeholder stands for somebody who may come. Bookings bring people even where no
        # placeholder is kept for them.
        people = replicas - extra + self._booked.people.get(name, 0)
        if learned is not None:
            people = max(people, _people_ahead(learned))
        demand = demand_of(
            name, stateful_set, placeholder_set.requests, replicas=replicas, people=people
        )
        return _Number(
            placeholder_set,
            stateful_set,
            replicas=replicas,
            why=why,
            is_learned=is_learned,
            demand=demand,
            cut_elsewhere=cut_elsewhere,
            memory=replace(before, period=computed, learned=learned),
        )

    def _show_period(self, name: str, period: Period) -> None:
        """Show what windows and bookings give a set, and plan again when its windows change."""
        if name in self._booked.extra:
            self.gauges["headroom_booked"][name,] = self._booked.extra[name]
        for window in period.windows:
            self.gauges["headroom_window_active"][name, window] = 1.0
        if period.until is not None:
            seconds_left = period.until - self._now.wall
            self.gauges["headroom_next_change_seconds"][name,] = seconds_left
            self.waits.append(seconds_left)

    def _learn(
        self, placeholder_set: PlaceholderSet, learn: LearnSettings, before: SetMemory
    ) -> Learned:
        """Look at a set that learns."""
        learned, actions = observe(
            placeholder_set,
            learn,
            before.learned or Learned(self._now.steady),
            self._snapshot,
            self._settings,
            kept_seats=self._kept_seats,
            set_of_user=self._set_of_user,
            now=self._now,
        )
        self.actions += actions
        self.waits.append(seconds_until_change(self._now))
        self._show_learned(placeholder_set.name, learn, learned)
        return learned

    def scale(self, number: _Number, cut: Cut | None) -> SetMemory:
        """Scale one set to its number, or what quotas leave of it; return what to remember."""
        name = number.name
        before = number.memory
        stateful_set = number.stateful_set
        allowed = number.replicas if cut is None else cut.replicas
        why = number.why
        after = replace(before, is_cut=cut is not None)
        lost = number.wanted - allowed
        if cut is not None:
            why = f"{why}; {cut.why}"
        if lost:
            self.gauges["headroom_quota_cut"][name,] = lost
        is_scaled = name in self._settings.scaled
        if is_scaled:
            self.gauges["headroom_replicas"][name,] = allowed
        if stateful_set is None:
            return after
        replicas = min(allowed, stateful_set.replicas) if self._waits_for_quotas else allowed
        # Any other set keeps the values' number, unless a quota may cut it, or controllers wrote
        # its number: perhaps for a quota, or by windows, that are gone now.
        is_ours = (
            is_scaled or self._counts_placeholders or before.is_cut or stateful_set.is_scaled_by_us
        )
        if is_ours:
            self._scale(name, stateful_set, replicas, why, is_learned=number.is_learned)
        reasons = []
        if cut is not None:
            reasons.append(f"so that nobody is refused for them: {cut.why}")
        if number.cut_elsewhere is not None:
            reasons.append(f"no more than people whom {number.cut_elsewhere.why}")
        if lost:
            after = self._tell_of_cut(number, stateful_set, allowed, reasons, after)
        return after

    def _tell_of_cut(
        self,
        number: _Number,
        stateful_set: StatefulSetState,
        allowed: int,
        reasons: Sequence[str],
        before: SetMemory,
    ) -> SetMemory:
        """Say what quotas leave and what to ask for: once an hour, and for each other reason."""
        booked = self._booked.why.get(number.name, "")
        last = before.cut_notice
        due_at = -inf
        if last is not None and last.booked == booked:
            due_at = last.at + CUT_NOTICE_SECONDS
        if self._now.steady < due_at:
            return before
        purpose = f" ({booked})" if booked else ""
        message = (
            f"{allowed} of {number.wanted} placeholders of set {number.name}{purpose},"
            f" {'; and '.join(reasons)}."
        )
        self.actions.append(
            Notice.on_set(
                self._snapshot.namespace, stateful_set, "HeadroomQuota", message, warning=True
            )
        )
        return replace(before, cut_notice=CutNotice(self._now.steady, booked))

    def _show_learned(self, name: str, learn: LearnSettings, learned: Learned) -> None:
        """Show what was learned, and what that saved and cost."""
        account = learned.history.account
        ceiling = ceiling_of(learn, learned)
        self.gauges["headroom_learned_hours"][name,] = learned.history.seen_minutes / 60
        self.gauges["headroom_saved_hours"][name,] = sum(
            week.saved_hours for week in account.weeks[-2:]
        )
        self.gauges["headroom_net_node_hours"][name,] = sum(
            week.net_node_hours for week in account.weeks[-2:]
        )
        self.gauges["headroom_month_cost"][name,] = ceiling.spent
        self.gauges["headroom_ceiling_left"][name,] = ceiling.left
        self.gauges["headroom_cut_people"][name,] = learned.cut_people

    def _scale(
        self,
        name: str,
        stateful_set: StatefulSetState,
        replicas: int,
        why: str,
        *,
        is_learned: bool,
    ) -> None:
        if stateful_set.replicas == replicas:
            return
        booked = self._booked.why.get(name)
        reason = f"{booked}; else {why}" if booked else why
        self.actions.append(
            ScaleSet(name=stateful_set.name, uid=stateful_set.uid, replicas=replicas, why=reason)
        )
        if booked and replicas < stateful_set.replicas:
            # The booking's people come, one after another: too many to tell of each.
            return
        if is_learned and replicas <= 2 * stateful_set.replicas:
            # What is learned changes often: only a number that more than doubles is told.
            return
        message = (
            f"From {stateful_set.replicas} to {replicas} placeholders of set {name}: {reason}."
        )
        self.actions.append(
            Notice.on_set(self._snapshot.namespace, stateful_set, "HeadroomChanged", message)
        )


def _period(
    placeholder_set: PlaceholderSet, before: ComputedPeriod | None, now: Moment
) -> ComputedPeriod:
    """The present period. It is computed only when the last one is over, or the clock went back."""
    if before is not None:
        until = before.period.until
        is_over = until is not None and now.wall >= until
        if before.computed_at <= now.wall and not is_over:
            return before
    period = period_at(placeholder_set.windows, placeholder_set.replicas, now.wall)
    return ComputedPeriod(now.wall, period)


def _cut_to(room: PeopleRoom, replicas: int) -> CutElsewhere:
    """The cut of a number of placeholders to the people whom quotas of hubs' namespaces let in."""
    lost = replicas - room.people
    return CutElsewhere(placeholders=lost, people=room.people, why=room.why_and_ask(lost))


def _people_ahead(learned: Learned) -> int:
    """How many more people may come, counted in placeholders.

    They are the people up to the most ever seen, or the forecast, whichever is more.
    """
    # A history that was brought in by hand may have no level.
    most = max(learned.history.levels, default=0)
    level = 0.0 if learned.view is None else learned.view.level
    return max(learned.seats_without_ceiling, ceil(most - level))


def _why(placeholder_set: PlaceholderSet, period: Period) -> str:
    if not period.windows:
        return "no window is active" if placeholder_set.windows else "the values say so"
    until = ""
    if period.until is not None:
        until = f", until {local_time(period.until, placeholder_set.windows[0].time_zone)} at least"
    plural = "s" if len(period.windows) > 1 else ""
    return f"window{plural} {' and '.join(period.windows)}{until}"


CONTROLLER: Final = Controller(
    name="headroom",
    read=read_headroom,
    plan=plan_headroom,
    empty=HeadroomMemory(),
    note=note_headroom,
    gauges=GAUGES,
)
