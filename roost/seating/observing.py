"""What a look at the hub shows, and which of it is remembered.

Nothing is decided here: `plan.py` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from roost.seating.memory import Memory, ServerKey
from roost.seating.people import HubUser, Mark, Server, was_used

# A person whose server was starting at one look and is ready at the next didn't use it in between,
# if the two looks are no further apart.
LOOK_SECONDS: Final = 10.0
# Servers and classes that began longer ago are forgotten.
_FORGET_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class View:
    """What is known at one moment."""

    # Unix time.
    now: float
    # All users whom the hub knows, by name.
    users: Mapping[str, HubUser]
    # Names of people whose starts the hub hasn't answered yet.
    in_flight: frozenset[str] = frozenset()
    # When the last look before this one began, at which the hub listed all users or nothing
    # listened at its address; Unix time.
    looked_at: float = 0.0
    # When the last look began at which the hub listed all users; Unix time.
    seen_at: float = 0.0


def observe(view: View, memory: Memory) -> None:
    """Remember which of the servers that seating started are ready or used.

    Any user's ready server shows that the hub's starts succeed, and is remembered for the pace.
    """
    for user in view.users.values():
        server = user.server
        if server is None or server.started is None:
            continue
        if server.is_ready:
            memory.pace.saw_ready(server.started)
        if server.mark is None:
            continue
        if not memory.is_of_its_request(user.name, server.mark, server.started):
            continue
        key = ServerKey(user.name, server.started)
        _observe_readiness(view, key, server, server.mark, memory)
        _observe_use(key, user, server, server.mark, memory)


def _observe_readiness(
    view: View, key: ServerKey, server: Server, mark: Mark, memory: Memory
) -> None:
    """Remember when a server that seating started became ready, if this look shows it."""
    if not server.is_ready:
        memory.starting.add(key)
        return
    was_asked_since = view.seen_at <= mark.asked_at
    if key not in memory.starting and not was_asked_since:
        return
    memory.starting.discard(key)
    # The stream of the start didn't say it if it broke off, for example because the hub restarted.
    if view.now - view.looked_at <= LOOK_SECONDS:
        memory.ready_at.setdefault(key, view.now)


def _observe_use(key: ServerKey, user: HubUser, server: Server, mark: Mark, memory: Memory) -> None:
    """Remember that a server that seating started is used, and how long after the class began."""
    if key in memory.used or not was_used(user, server, memory.ready_at.get(key)):
        return
    memory.used[key] = mark.class_key
    if key in memory.ready_at:
        last_seen = max(user.last_activity or 0.0, server.last_activity or 0.0)
        memory.came[user.name] = last_seen - mark.class_start


def forget(view: View, memory: Memory) -> None:
    """Forget servers and classes that began more than a day ago, except servers that still run."""
    present = {
        ServerKey(name, user.server.started)
        for name, user in view.users.items()
        if user.server and user.server.started is not None
    }
    before = view.now - _FORGET_SECONDS

    def is_kept(server: ServerKey) -> bool:
        return server.started >= before or server in present

    memory.ready_at = {server: at for server, at in memory.ready_at.items() if is_kept(server)}
    memory.used = {server: key for server, key in memory.used.items() if is_kept(server)}
    memory.starting &= present
    memory.ended = {name: at for name, at in memory.ended.items() if at >= before}
    memory.tries = {key: tries for key, tries in memory.tries.items() if key.start >= before}
    memory.skipped = {key: names for key, names in memory.skipped.items() if key.start >= before}
