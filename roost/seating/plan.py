"""Decide which servers to start and to stop now: pure, from classes, the hub's users, the memory
and the clock. It changes none of them.

Guarantees: a server that seating did not start, or that anybody used, is never stopped. Never more
servers of a class than its booking has people, nor more at once than the hub lets run, and half of
what it starts at once stays with others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from roost.seating.memory import Memory, ServerKey
from roost.seating.observing import View
from roost.seating.pace import MOST_FAILED_SPAWNS
from roost.seating.people import ClassKey, HubUser, Mark, Server, was_used
from roost_core.release.seating_pace import SEATS_A_SECOND, most_seating

# After this, nobody is seated any more: people come by themselves.
LATE_SECONDS: Final = 300.0
# How often one person's start is tried: a hub that restarts loses some.
MOST_TRIES: Final = 3


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


def plan_seating(
    view: View, classes: Sequence[SeatedClass], memory: Memory, limits: Limits
) -> Plan:
    """Return what to start and to stop now. `observe` comes first."""
    starts = list(_starts(view, classes, memory, limits))
    stops = list(_stops(view, classes, memory, limits))
    return Plan(starts, stops)


def _starts(
    view: View, classes: Sequence[SeatedClass], memory: Memory, limits: Limits
) -> Iterator[Start]:
    """Yield whom to start, the earliest class first, as far as there is room."""
    room = _room(view, memory, limits)
    asked = set(view.in_flight)
    for seated in sorted(classes, key=lambda seated: seated.key.start):
        if not seated.begins_at <= view.now < seated.key.start + LATE_SECONDS:
            continue
        counted = _counted(view, seated.key, memory)
        came = memory.who_came(seated.key)
        for name in seated.names:
            if room <= 0:
                return
            if name in asked or not _wants_server(view, seated.key, name, memory, came):
                continue
            if name not in counted and len(counted) >= seated.people:
                continue
            counted.add(name)
            asked.add(name)
            room -= 1
            mark = Mark(seated.key.booking, seated.key.start, view.now)
            yield Start(name, seated.key, {**seated.options, **mark.options()})


def _counted(view: View, key: ClassKey, memory: Memory) -> set[str]:
    """The people of a class who count among those that are booked."""
    skipped = memory.skipped.get(key, {})
    # A person who was tried counts, even if nothing came of it.
    tries = memory.tries.get(key, {})
    counted = {name for name, count in tries.items() if count and name not in skipped}
    # So does one whose server is marked: the memory may be lost.
    for user in view.users.values():
        mark = user.server.mark if user.server else None
        if mark is not None and mark.class_key == key:
            counted.add(user.name)
    return counted


def _wants_server(
    view: View, key: ClassKey, name: str, memory: Memory, came: Collection[str]
) -> bool:
    """Whether a listed person has no server, may be given one, and was not tried too often.

    came: those who used their server of this class.
    """
    user = view.users.get(name)
    if user is None or not user.shows_servers or user.server is not None:
        return False
    # Who stopped a server that they had used wants another one, or none.
    if name in memory.skipped.get(key, {}) or name in came:
        return False
    return memory.tries.get(key, {}).get(name, 0) < MOST_TRIES


def _room(view: View, memory: Memory, limits: Limits) -> int:
    """How many servers may be asked for now."""
    pace = memory.pace
    if view.now < pace.paused_until:
        return 0
    ours = _starting_by_seating(view)
    others = sum(user.starting for name, user in view.users.items() if name not in ours)
    # Where others need more than their half, they get it.
    most = limits.most_starting
    beyond_their_half = max(0, others - most)
    room = min(pace.window, most - beyond_their_half) - len(ours)
    room = min(room, SEATS_A_SECOND)
    if pace.failed_spawns:
        # Servers that are starting may fail, too.
        room = min(room, MOST_FAILED_SPAWNS - pace.failed_spawns - len(ours))
    if limits.active_server_limit:
        room = min(room, limits.active_server_limit - _active_servers(view))
    return max(0, room)


def _starting_by_seating(view: View) -> set[str]:
    """Users whose server is starting because seating asked for it."""
    names = set(view.in_flight)
    for name, user in view.users.items():
        server = user.server
        if server is not None and server.pending == "spawn" and server.mark is not None:
            names.add(name)
    return names


def _active_servers(view: View) -> int:
    """The hub's active servers, and those that it was asked for and doesn't show yet."""
    unseen = 0
    for name in view.in_flight:
        user = view.users.get(name)
        if user is None or not user.active:
            unseen += 1
    return sum(user.active for user in view.users.values()) + unseen


def _stops(
    view: View, classes: Sequence[SeatedClass], memory: Memory, limits: Limits
) -> Iterator[Stop]:
    """Yield unused servers whose grace is over, unless another class waits for their users."""
    for user in view.users.values():
        server = user.server
        if server is None or server.mark is None or server.started is None:
            continue
        if user.name in view.in_flight or not may_stop(view.now, user, server, memory, limits):
            continue
        if any(_still_expects(view.now, seated, user.name, limits) for seated in classes):
            continue
        yield Stop(user.name, server.mark.class_key, server.started)


def may_stop(now: float, user: HubUser, server: Server, memory: Memory, limits: Limits) -> bool:
    """Whether a server may be stopped: it is seating's, ready, unused, and its grace is over."""
    if server.mark is None or server.started is None or not server.is_ready or server.pending:
        return False
    if not memory.is_of_its_request(user.name, server.mark, server.started):
        return False
    key = ServerKey(user.name, server.started)
    ready_at = memory.ready_at.get(key)
    if key in memory.used or was_used(user, server, ready_at):
        return False
    waits_from = max(float(server.mark.class_start), ready_at or server.started)
    return now >= waits_from + limits.grace_seconds


def _still_expects(now: float, seated: SeatedClass, name: str, limits: Limits) -> bool:
    """Whether a class waits for a person."""
    is_current = seated.begins_at <= now < seated.key.start + limits.grace_seconds
    return is_current and name in seated.names
