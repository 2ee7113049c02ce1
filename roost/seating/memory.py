"""What seating saw and the hub does not store.

`observing.py` fills it from looks at the hub, `starts.py` from what was asked of the hub and how
that ended. `plan.py` only reads it. `service.py` loads it, and `memory_file.py` keeps it over a
restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from roost.seating.pace import Pace
from roost.seating.people import ClassKey, Mark


class ServerKey(NamedTuple):
    """One server of a user: stopped and started again, it is another one."""

    user: str
    # Unix time.
    started: float


@dataclass(slots=True)
class Memory:
    """All that is remembered. Without it less is stopped, never more. Times are Unix time."""

    # When each server was first seen to be ready.
    ready_at: dict[ServerKey, float] = field(default_factory=dict)
    # Servers that were seen while they started.
    starting: set[ServerKey] = field(default_factory=set)
    # Servers that were used: the class that each was started for.
    used: dict[ServerKey, ClassKey] = field(default_factory=dict)
    # For each class: how often a person's server was asked for.
    tries: dict[ClassKey, dict[str, int]] = field(default_factory=dict)
    # For each class: who is not tried again, and why.
    skipped: dict[ClassKey, dict[str, str]] = field(default_factory=dict)
    # By user: seconds from a class's beginning to their coming.
    came: dict[str, float] = field(default_factory=dict)
    # By user: when the last request for their server ended without one.
    ended: dict[str, float] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)

    def is_of_its_request(self, name: str, mark: Mark, started: float) -> bool:
        """Whether the request that left the mark made this server, which started at `started`.

        When a start failed, the hub keeps its options, the mark among them. It uses them again for
        a start without options, such as one of the user's own. So a server that started after the
        request's end isn't the request's.
        """
        if name in self.skipped.get(mark.class_key, {}):
            return False
        ended_at = self.ended.get(name)
        if ended_at is None:
            return True
        ended_before_server = mark.asked_at <= ended_at < started
        return not ended_before_server

    def who_came(self, key: ClassKey) -> set[str]:
        """Who was seated for a class and used their server; they may have stopped it since."""
        return {server.user for server, used_for in self.used.items() if used_for == key}

    def note_try(self, key: ClassKey, name: str) -> None:
        """The hub is asked for a person's server for this class."""
        tries = self.tries.setdefault(key, {})
        tries[name] = tries.get(name, 0) + 1

    def note_ready(self, server: ServerKey, at: float, seconds: float) -> None:
        """A server that was asked for answered at `at`, after `seconds`."""
        self.ready_at[server] = at
        self.pace.start_answered(seconds)

    def note_busy(self, key: ClassKey, name: str, seconds: float, now: float) -> None:
        """The hub is at its limit for `seconds`: that was no try."""
        self.tries[key][name] -= 1
        self.pace.hub_is_busy(seconds, now)

    def note_failure(
        self, key: ClassKey, name: str, why: str, now: float, *, is_refusal: bool = False
    ) -> None:
        """A person's start failed: they are skipped, and starts become fewer.

        is_refusal: the hub refused before it began, and counts no failed start.
        """
        self.skip(key, name, why, now)
        self.pace.start_failed(now, is_refusal=is_refusal)

    def skip(self, key: ClassKey, name: str, why: str, now: float) -> None:
        """Ask no more for a person's server for this class."""
        self.ended[name] = now
        self.skipped.setdefault(key, {})[name] = why
