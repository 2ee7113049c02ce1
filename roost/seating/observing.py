"""What one look at the hub tells, and what of it is remembered.

Nothing is decided here: that is `plan.py`.
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
# What is older is forgotten.
_FORGET_SECONDS: Final = 86_400.0


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


def observe(view: View, memory: Memory) -> None:
    """Remember which of the servers that seating started are used, and whether any start
    succeeded.
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
    """Remember when seating's server became ready, where a look could tell."""
    if not server.is_ready:
        memory.starting.add(key)
        return
    was_asked_since = view.seen_at <= mark.asked_at
    if key not in memory.starting and not was_asked_since:
        return
    memory.starting.discard(key)
    # No start told that it is ready: its stream broke off, as when the hub restarts.
    if view.now - view.looked_at <= LOOK_SECONDS:
        memory.ready_at.setdefault(key, view.now)


def _observe_use(key: ServerKey, user: HubUser, server: Server, mark: Mark, memory: Memory) -> None:
    """Remember that seating's server is used, and how long after the class began."""
    if key in memory.used or not was_used(user, server, memory.ready_at.get(key)):
        return
    memory.used[key] = mark.class_key
    if key in memory.ready_at:
        last_seen = max(user.last_activity or 0.0, server.last_activity or 0.0)
        memory.came[user.name] = last_seen - mark.class_start


def forget(view: View, memory: Memory) -> None:
    """Forget servers and classes of days ago."""
    present = {
        ServerKey(name, user.server.started)
        for name, user in view.users.items()
        if user.server and user.server.started is not None
    }
    before = view.now - _FORGET_SECONDS

    def is_kept(server: ServerKey) -> bool:
        return server.started >= before or server in present

    memory.ready_at = {key: at for key, at in memory.ready_at.items() if is_kept(key)}
    memory.used = {key: used_for for key, used_for in memory.used.items() if is_kept(key)}
    memory.starting &= present
    memory.ended = {name: at for name, at in memory.ended.items() if at >= before}
    memory.tries = {key: tries for key, tries in memory.tries.items() if key.start >= before}
    memory.skipped = {key: names for key, names in memory.skipped.items() if key.start >= before}
