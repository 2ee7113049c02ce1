"""Work out what learning saves and costs: the real nodes and waits beside those that people would
have had without.

Where several hubs or sets share the nodes, both are of all nodes and of all people there. No node
would be right as one set's alone, because users of several sets keep it. Of the node-hours, each
set's part is then its share of what users and placeholders take. So all parts add up to the whole.
Waits are those of the set's own people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, NamedTuple

from roost.controllers.headroom.boot_clock import LONGEST_LOOK_SECONDS
from roost.controllers.headroom.pool_view import PoolUser, PoolView
from roost_core.placement.headroom_account import LATE_SECONDS, Account, LateClass, Week, Why
from roost_core.placement.headroom_history import GUESSED_BOOT_SECONDS, MINUTE_SECONDS, History
from roost_core.placement.headroom_windows import monday_of
from roost_core.placement.headroom_worth import GUESSED_IDLE_SECONDS
from roost_core.placement.pool_without import Person, PoolFacts, PoolWithout

# How many of the last nodes' empty times are kept. With fewer than LEAST_IDLE, the time is guessed.
KEPT_IDLE: Final = 10
LEAST_IDLE: Final = 3
# A node of the pool's least stands empty for days: that says nothing of others.
MOST_IDLE_SECONDS: Final = 3600.0
# Whoever waits for longer waits for something else than a node.
MOST_WAIT_SECONDS: Final = 3600.0
# Whoever waits on a node that has been ready for longer waits for something else than its first
# pulls.
NEW_NODE_SECONDS: Final = 900.0
# Whoever comes so many minutes before or after the first who is late comes together with them.
BEFORE_MINUTES: Final = 10
AFTER_MINUTES: Final = 15
# The fewest late people that are a class.
LEAST_LATE: Final = 5
# A class was known if so much of it was forecast.
KNOWN_SHARE: Final = 0.25
# It had its seats if so much of it was: not all of a class come while a node boots.
SEATED_SHARE: Final = 0.75
_HOUR_SECONDS: Final = 3600.0


class Seats(NamedTuple):
    """Seats that a forecast asks for."""

    # Within both limits.
    kept: int
    # Without the ceiling of money, up to `learn.max`.
    without_ceiling: int
    # Without both.
    without_limits: int


class Minute(NamedTuple):
    """What one minute brought."""

    minute: int
    people: int
    late: int
    # That were forecast.
    seats: Seats


@dataclass(frozen=True, slots=True)
class Accounting:
    """What is kept between two looks."""

    # None: nobody has looked yet.
    without: PoolWithout | None = None
    # Unix time.
    looked_at: float = 0.0
    # By name: since when an empty node stands empty.
    empty_since: Mapping[str, float] = field(default_factory=dict)
    # How many seconds the last empty nodes stood empty until they went.
    idle: tuple[float, ...] = ()
    # The fewest nodes of this week while none had only the set's placeholders: the pool's least.
    # None: not known.
    least_nodes: int | None = None
    # The fewest placeholders of other hubs on these nodes this week: those that they keep without
    # learning, as far as it shows. None: not known.
    least_of_neighbours: float | None = None
    # The set's share of the pool, as last known.
    share: float = 1.0
    # Users who wait and were counted as late.
    late: frozenset[str] = frozenset()
    # Since the last whole minute.
    pending: Week = field(default_factory=lambda: Week(0))
    # The last ones, and the first in which somebody of the present class was late.
    minutes: tuple[Minute, ...] = ()
    late_since: int | None = None

    @property
    def idle_seconds(self) -> float:
        """For so long an empty node stays until the autoscaler removes it, as seen."""
        return median(self.idle) if len(self.idle) >= LEAST_IDLE else GUESSED_IDLE_SECONDS


def count_since_last_look(
    before: Accounting, view: PoolView, history: History, kept_seats: int, now: float
) -> Accounting:
    """Count what happened since the last look. kept_seats: placeholders that there would be without
    learning, also those of the release's other sets on these nodes, measured in the set's.
    """
    seconds = now - before.looked_at
    if not history.per_node:
        # No node was seen yet: what others would have been like isn't known.
        return replace(before, without=None, looked_at=now)
    if before.without is None or not 0 <= seconds <= LONGEST_LOOK_SECONDS:
        return replace(_begun(view, now), idle=before.idle, minutes=before.minutes)
    pool_before = before.without
    people_before = pool_before.people()
    known = set(people_before)
    came = [person for person in _people(view, before.looked_at) if person.key not in known]
    gone = [key for key in people_before if key not in view.users and key not in view.neighbours]
    least_nodes = _least_nodes(before.least_nodes, view)
    facts = PoolFacts(
        per_node=history.per_node,
        boot_seconds=median(history.boots) if history.boots else GUESSED_BOOT_SECONDS,
        idle_seconds=before.idle_seconds,
        least_nodes=least_nodes or 0,
        kept_seats=kept_seats + round(before.least_of_neighbours or 0),
        pull_seconds=history.pull_seconds,
    )
    pool_after, waits_without = pool_before.after(now, came, gone, facts)
    share = before.share if view.share is None else view.share
    ready = sum(node.ready for name, node in view.nodes.items() if name not in view.of_others)
    waits = _waits(view, now)
    late = frozenset(key for key, wait in waits.items() if wait > LATE_SECONDS)
    # People who wait for a new node's pulls aren't late if they had a node in time.
    waits |= _waits_for_pulls(view, now)
    brought = Week(
        before.pending.begin,
        people=sum(person.counts for person in came),
        late=len(late - before.late),
        # The API server's clock may be ahead.
        waited_hours=sum(min(seconds, max(0.0, wait)) for wait in waits.values()) / _HOUR_SECONDS,
        waited_without=sum(waits_without) / _HOUR_SECONDS,
        node_hours=share * ready * seconds / _HOUR_SECONDS,
        node_hours_without=share * pool_before.count(now) * seconds / _HOUR_SECONDS,
    )
    return replace(
        before,
        without=pool_after,
        looked_at=now,
        empty_since={name: before.empty_since.get(name, now) for name in view.empty},
        idle=(*before.idle, *_idle_times(before, view, now))[-KEPT_IDLE:],
        least_nodes=least_nodes,
        least_of_neighbours=_least_of_neighbours(before.least_of_neighbours, view),
        share=share,
        late=late,
        pending=before.pending.plus(brought),
    )


def _people(view: PoolView, since: float) -> list[Person]:
    """All people of the pool: the set's own, whose waits count, and its neighbours.

    since: whoever is older came then. It is seen for the first time now.
    """
    own = [Person(key, max(user.created, since), user.size) for key, user in view.users.items()]
    neighbours = [
        Person(key, max(user.created, since), user.size, counts=False)
        for key, user in view.neighbours.items()
    ]
    return own + neighbours


def _idle_times(before: Accounting, view: PoolView, now: float) -> list[float]:
    """For how many seconds each node that went since the last look had stood empty."""
    return [
        min(MOST_IDLE_SECONDS, now - since)
        for name, since in before.empty_since.items()
        if name not in view.nodes
    ]


def _waits(view: PoolView, now: float) -> dict[str, float]:
    """For how many seconds each user who waits for a node has waited; below zero where the API
    server's clock is ahead.
    """
    return {
        key: now - user.created
        for key, user in view.users.items()
        if user.waits_since is not None and now - user.created <= MOST_WAIT_SECONDS
    }


def _waits_for_pulls(view: PoolView, now: float) -> dict[str, float]:
    """For how many seconds each user who is on a new node and has no server yet has waited."""
    waits: dict[str, float] = {}
    for key, user in view.users.items():
        if user.runs:
            continue
        ready_since = _ready_since(view, user)
        if ready_since is None or now - ready_since > NEW_NODE_SECONDS:
            continue
        if now - user.created <= MOST_WAIT_SECONDS:
            waits[key] = now - user.created
    return waits


def _ready_since(view: PoolView, user: PoolUser) -> float | None:
    """Since when the node of a user is ready; None: it isn't, or there is none."""
    node = view.nodes.get(user.node)
    return None if node is None or not node.ready else node.ready_since


def pulls_seen(before: PoolView, view: PoolView, now: float) -> list[int]:
    """Seconds for which nodes pulled, by everybody who came before their node was ready and has had
    a server there since the last look.
    """
    pulls: list[int] = []
    for key, user in view.users.items():
        earlier = before.users.get(key)
        if earlier is None or earlier.runs or not user.runs:
            continue
        ready_since = _ready_since(view, user)
        if ready_since is None or user.created > ready_since:
            continue
        seconds = round(now - ready_since)
        if 0 <= seconds <= NEW_NODE_SECONDS:
            pulls.append(seconds)
    return pulls


def _begun(view: PoolView, now: float) -> Accounting:
    """Begin with the pool as it is."""
    people_by_node: dict[str, list[Person]] = {}
    for key, user in (*view.users.items(), *view.neighbours.items()):
        if user.node:
            person = Person(key, user.created, user.size)
            people_by_node.setdefault(user.node, []).append(person)
    without = PoolWithout.like_real(people_by_node, len(view.empty), now)
    # People who wait would wait without placeholders as well.
    homeless = {key for key, user in view.users.items() if not user.node}
    late = frozenset(key for key in homeless if now - view.users[key].created > LATE_SECONDS)
    return Accounting(
        without=without,
        looked_at=now,
        least_nodes=_least_nodes(None, view),
        least_of_neighbours=_least_of_neighbours(None, view),
        share=1.0 if view.share is None else view.share,
        late=late,
    )


def _least_nodes(before: int | None, view: PoolView) -> int | None:
    """The pool's least as far as it shows: a node that has only placeholders, some of them of sets
    that learn or of other hubs, may be there for these alone.
    """
    if view.kept_by_learning:
        return before
    now = len(view.nodes) - len(view.of_others)
    return now if before is None else min(before, now)


def _least_of_neighbours(before: float | None, view: PoolView) -> float:
    now = view.placeholders_of_neighbours
    return now if before is None else min(before, now)


def after_minute(
    before: Accounting, account: Account, minute: int, seats: Seats, time_zone: str
) -> tuple[Accounting, Account]:
    """Book a whole minute, and a class of which people were late once it is over.

    seats: that are forecast now.
    """
    begin = week_begin(minute, time_zone)
    pending = before.pending._replace(begin=begin)
    account = account.with_minute(pending, minute)
    now = Minute(minute, pending.people, pending.late, seats)
    since = minute - BEFORE_MINUTES - AFTER_MINUTES
    # After a clock was set back, none of the minutes to come.
    minutes = (*(past for past in before.minutes if since <= past.minute < minute), now)
    late_since = minute if before.late_since is None and now.late else before.late_since
    if late_since is not None and minute >= late_since + AFTER_MINUTES:
        late_class = _late_class(minutes, late_since)
        if late_class.late >= LEAST_LATE:
            account = account.with_late_class(late_class)
        late_since = None
    is_new_week = bool(before.minutes) and week_begin(before.minutes[-1].minute, time_zone) != begin
    after = replace(
        before,
        pending=Week(begin),
        minutes=minutes,
        late_since=late_since,
        least_nodes=None if is_new_week else before.least_nodes,
        least_of_neighbours=None if is_new_week else before.least_of_neighbours,
    )
    return after, account


def _late_class(minutes: Sequence[Minute], first: int) -> LateClass:
    """Sum a class up. first: the minute in which somebody of it was late."""
    of_class = [minute for minute in minutes if minute.minute >= first - BEFORE_MINUTES]
    people = sum(minute.people for minute in of_class)
    late = sum(minute.late for minute in of_class)
    # What is forecast from then on follows from those who have come.
    before = [minute.seats for minute in of_class if minute.minute < first]
    kept = max((seats.kept for seats in before), default=0)
    without_ceiling = max((seats.without_ceiling for seats in before), default=0)
    without_limits = max((seats.without_limits for seats in before), default=0)
    if kept >= SEATED_SHARE * people:
        why = Why.NODE_LATE
    elif without_ceiling >= SEATED_SHARE * people:
        why = Why.CEILING
    elif without_limits >= SEATED_SHARE * people:
        why = Why.MOST
    elif kept >= KNOWN_SHARE * people:
        why = Why.MORE_CAME
    else:
        why = Why.NOT_KNOWN
    return LateClass(first, people, late, why)


def week_begin(minute: int, time_zone: str) -> int:
    """Return the minute of the week's Monday, 0:00 in the zone."""
    return monday_of(minute * MINUTE_SECONDS, time_zone) // MINUTE_SECONDS
