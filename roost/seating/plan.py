"""Decide which servers to start and to stop now: pure, from classes, the hub's users and the clock.

Guarantees: a server that seating did not start, or that anybody used, is never stopped. Never more
servers of a class than its booking has people, nor more at once than the hub lets run, and half of
what it starts at once stays with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from roost.seating.people import HubUser, Mark, Server, was_used
from roost_core.release.seating_pace import FIRST_SEATS, SEATS_A_SECOND, most_seating

# After this, nobody is seated any more: people come by themselves.
LATE_SECONDS: Final = 300.0
# How often one person's start is tried: a hub that restarts loses some.
MOST_TRIES: Final = 3
# After so many failures in a row, nothing is started for a while.
_FAILURES_IN_A_ROW: Final = 3
FAILURE_PAUSE_SECONDS: Final = 300.0
# A hub ends itself at the fifth failed start in a row (z2jh's consecutiveFailureLimit). After so
# many nothing is started until somebody's start succeeded.
MOST_FAILED_SPAWNS: Final = 4
# Clocks of hub and pod differ by less.
_CLOCK_SECONDS: Final = 10.0
# A person whose server was starting at one look and is ready at the next didn't use it in between,
# if the two looks are no further apart.
LOOK_SECONDS: Final = 10.0
# What is older is forgotten.
_FORGET_SECONDS: Final = 86_400.0


class ClassKey(NamedTuple):
    """One occurrence of a booking."""

    booking: str
    start: int


@dataclass(frozen=True, slots=True)
class SeatedClass:
    """A class whose listed people are seated."""

    key: ClassKey
    # As many as are booked.
    people: int
    # In the order in which they are started.
    names: Sequence[str]
    # From when on; Unix time.
    begins_at: float
    # `user_options` of each server: the profile.
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """How far seating may go; 0: the hub has no such limit."""

    concurrent_spawn_limit: int
    active_server_limit: int
    # Until an unused server is stopped, from the class's beginning on.
    grace_seconds: float

    @property
    def most_starting(self) -> int:
        """The most of seating's own servers that may be starting."""
        return most_seating(self.concurrent_spawn_limit)


@dataclass(slots=True)
class Memory:
    """What seating saw and the hub does not store. Without it less is stopped, never more."""

    # By user and by when the server started: when it was first seen to be ready.
    ready_at: dict[tuple[str, float], float] = field(default_factory=dict)
    # Servers that were seen while they started.
    starting: set[tuple[str, float]] = field(default_factory=set)
    # Servers that were used, by user and by when they started: the class that each was started for.
    used: dict[tuple[str, float], ClassKey] = field(default_factory=dict)
    # For each class: how often a person's server was asked for.
    tries: dict[ClassKey, dict[str, int]] = field(default_factory=dict)
    # For each class: who is not tried again, and why.
    skipped: dict[ClassKey, dict[str, str]] = field(default_factory=dict)
    # Seconds from a class's beginning to a person's coming.
    came: dict[str, float] = field(default_factory=dict)
    # Seconds that the last starts took.
    start_seconds: list[float] = field(default_factory=list)
    # How many servers may be starting; grows with each that answers.
    window: int = FIRST_SEATS
    failures_in_a_row: int = 0
    # As the hub counts them: starts that failed since one succeeded, and when the last did; Unix
    # time.
    failed_spawns: int = 0
    failed_at: float = 0.0
    # By user: when the last request for their server ended without one; Unix time.
    ended: dict[str, float] = field(default_factory=dict)
    # Nothing is started before; Unix time.
    paused_until: float = 0.0


class Start(NamedTuple):
    """Ask the hub for a person's server."""

    name: str
    key: ClassKey
    options: dict[str, object]


class Stop(NamedTuple):
    """Stop the server that a person did not use."""

    name: str
    key: ClassKey
    started: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now."""

    starts: Sequence[Start] = ()
    stops: Sequence[Stop] = ()


@dataclass(frozen=True, slots=True)
class View:
    """What is known at one moment."""

    # Unix time.
    now: float
    # All users of the hub, by name; who is not there is not known to it.
    users: Mapping[str, HubUser]
    # People whose server the hub is being asked for just now.
    in_flight: frozenset[str] = frozenset()
    # When the hub was last looked at before, and told all, or nobody listened there; Unix time.
    looked_at: float = 0.0
    # When the last look began at which the hub told all; Unix time.
    seen_at: float = 0.0


def learned_start_seconds(memory: Memory, default: float) -> float:
    """What nine in ten of the last starts took at most; `default` until ten are known."""
    if len(memory.start_seconds) < 10:
        return default
    known = sorted(memory.start_seconds)
    return known[int(len(known) * 0.9)]


def observe(view: View, memory: Memory) -> None:
    """Remember which of the servers that seating started are used, and whether any start
    succeeded.
    """
    for user in view.users.values():
        server = user.server
        if server is None or server.started is None:
            continue
        if server.is_ready and server.started > memory.failed_at + _CLOCK_SECONDS:
            memory.failed_spawns = 0
        if server.mark is None:
            continue
        if not is_of_its_request(user.name, server.mark, server.started, memory):
            continue
        at = (user.name, server.started)
        if not server.is_ready:
            memory.starting.add(at)
        elif at in memory.starting or view.seen_at <= server.mark.asked_at:
            # It was starting at the last look, or was asked for since.
            memory.starting.discard(at)
            # Its stream broke off, as when the hub restarts.
            if view.now - view.looked_at <= LOOK_SECONDS:
                memory.ready_at.setdefault(at, view.now)
        if at not in memory.used and was_used(user, server, memory.ready_at.get(at)):
            memory.used[at] = ClassKey(server.mark.booking, server.mark.class_start)
            if at in memory.ready_at:
                last_seen = max(user.last_activity or 0.0, server.last_activity or 0.0)
                memory.came[user.name] = last_seen - server.mark.class_start


def forget(view: View, memory: Memory) -> None:
    """Forget servers and classes of days ago."""
    present = {
        (name, user.server.started)
        for name, user in view.users.items()
        if user.server and user.server.started is not None
    }
    before = view.now - _FORGET_SECONDS
    for at in [at for at in memory.ready_at if at[1] < before and at not in present]:
        del memory.ready_at[at]
    memory.used = {at: key for at, key in memory.used.items() if at[1] >= before or at in present}
    memory.starting &= present
    memory.ended = {name: at for name, at in memory.ended.items() if at >= before}
    for key in [key for key in (*memory.tries, *memory.skipped) if key.start < before]:
        memory.tries.pop(key, None)
        memory.skipped.pop(key, None)


def plan_seating(
    view: View, classes: Sequence[SeatedClass], memory: Memory, limits: Limits
) -> Plan:
    """Return what to start and to stop now. `observe` comes first."""
    starts = list(_starts(view, classes, memory, limits))
    stops = []
    for user in view.users.values():
        server = user.server
        if server is None or server.mark is None or server.started is None:
            continue
        if user.name in view.in_flight or not may_stop(view.now, user, server, memory, limits):
            continue
        if any(_still_expects(view.now, seated, user.name, limits) for seated in classes):
            continue
        key = ClassKey(server.mark.booking, server.mark.class_start)
        stops.append(Stop(user.name, key, server.started))
    return Plan(starts, stops)


def may_stop(now: float, user: HubUser, server: Server, memory: Memory, limits: Limits) -> bool:
    """Whether a server may be stopped: it is seating's, ready, unused, and its grace is over."""
    if server.mark is None or server.started is None or not server.is_ready or server.pending:
        return False
    if not is_of_its_request(user.name, server.mark, server.started, memory):
        return False
    at = (user.name, server.started)
    ready_at = memory.ready_at.get(at)
    if at in memory.used or was_used(user, server, ready_at):
        return False
    waits_from = max(float(server.mark.class_start), ready_at or server.started)
    return now >= waits_from + limits.grace_seconds


def is_of_its_request(name: str, mark: Mark, started: float, memory: Memory) -> bool:
    """Whether the request that left the mark made this server.

    The hub takes the options of a start that failed again for one without any, as its user's own.
    """
    if name in memory.skipped.get(ClassKey(mark.booking, mark.class_start), {}):
        return False
    ended_at = memory.ended.get(name)
    return ended_at is None or not mark.asked_at <= ended_at < started


def who_came(seated: SeatedClass, memory: Memory) -> set[str]:
    """Who was seated for a class and used their server; they may have stopped it since."""
    return {name for (name, _), key in memory.used.items() if key == seated.key}


def _still_expects(now: float, seated: SeatedClass, name: str, limits: Limits) -> bool:
    """Whether a class waits for a person."""
    is_current = seated.begins_at <= now < seated.key.start + limits.grace_seconds
    return is_current and name in seated.names


def _starts(
    view: View, classes: Sequence[SeatedClass], memory: Memory, limits: Limits
) -> Iterator[Start]:
    room = _room(view, memory, limits)
    asked: set[str] = set(view.in_flight)
    for seated in sorted(classes, key=lambda seated: seated.key.start):
        if not seated.begins_at <= view.now < seated.key.start + LATE_SECONDS:
            continue
        tries = memory.tries.get(seated.key, {})
        skipped = memory.skipped.get(seated.key, {})
        # A person who was tried counts, even if nothing came of it. So does one who is marked,
        # where the memory is lost.
        counted = {name for name, count in tries.items() if count and name not in skipped}
        counted |= {user.name for user in view.users.values() if _is_marked(user, seated.key)}
        # Who stopped a server that they had used wants another one, or none.
        came = who_came(seated, memory)
        for name in seated.names:
            if room <= 0:
                return
            user = view.users.get(name)
            if user is None or not user.shows_servers or user.server is not None:
                continue
            if name in asked or name in skipped:
                continue
            if name in came or tries.get(name, 0) >= MOST_TRIES:
                continue
            if name not in counted and len(counted) >= seated.people:
                continue
            counted.add(name)
            asked.add(name)
            room -= 1
            mark = Mark(seated.key.booking, seated.key.start, view.now)
            yield Start(name, seated.key, {**seated.options, **mark.options()})


def _is_marked(user: HubUser, key: ClassKey) -> bool:
    mark = user.server.mark if user.server else None
    return mark is not None and (mark.booking, mark.class_start) == key


def _room(view: View, memory: Memory, limits: Limits) -> int:
    """How many servers may be asked for now."""
    if view.now < memory.paused_until:
        return 0
    users = view.users
    starting = {name for name, user in users.items() if _is_starting(user.server)}
    ours = {name for name in starting if _has_mark(users[name])} | view.in_flight
    others = sum(user.starting for name, user in users.items() if name not in ours)
    most = limits.most_starting
    # Where others need more than their half, they get it.
    beyond = max(0, others - most)
    room = min(memory.window, most - beyond) - len(ours)
    room = min(room, SEATS_A_SECOND)
    if memory.failed_spawns:
        # Servers that are starting may fail, too.
        room = min(room, MOST_FAILED_SPAWNS - memory.failed_spawns - len(ours))
    if limits.active_server_limit:
        unseen = [name for name in view.in_flight if not (name in users and users[name].active)]
        active = sum(user.active for user in users.values()) + len(unseen)
        room = min(room, limits.active_server_limit - active)
    return max(0, room)


def _has_mark(user: HubUser) -> bool:
    return user.server is not None and user.server.mark is not None


def _is_starting(server: Server | None) -> bool:
    return server is not None and server.pending == "spawn"


def count_ready(memory: Memory, name: str, started: float, at: float, seconds: float) -> None:
    """A server that was asked for answers."""
    memory.ready_at[name, started] = at
    memory.start_seconds.append(seconds)
    del memory.start_seconds[:-200]
    memory.failures_in_a_row = 0
    memory.failed_spawns = 0
    memory.window += 1


def count_failure(
    memory: Memory, key: ClassKey, name: str, why: str, now: float, *, is_refusal: bool = False
) -> None:
    """A person's start failed: they are skipped, and starts become fewer.

    is_refusal: the hub refused before it began, and counts no failed start.
    """
    if not is_refusal:
        memory.failed_spawns += 1
        memory.failed_at = now
    skip(memory, key, name, why, now)
    memory.failures_in_a_row += 1
    memory.window = max(1, memory.window // 2)
    if memory.failures_in_a_row >= _FAILURES_IN_A_ROW:
        memory.paused_until = now + FAILURE_PAUSE_SECONDS
        memory.window = 1
        # One more is tried then.
        memory.failures_in_a_row = _FAILURES_IN_A_ROW - 1


def skip(memory: Memory, key: ClassKey, name: str, why: str, now: float) -> None:
    """Ask no more for a person's server for this class."""
    memory.ended[name] = now
    memory.skipped.setdefault(key, {})[name] = why


def count_busy(memory: Memory, seconds: float, now: float) -> None:
    """The hub is at its limit: fewer, and later."""
    memory.window = max(1, memory.window // 2)
    memory.paused_until = max(memory.paused_until, now + seconds)
