"""What the hub says of its users' servers, and which of these were started by seating.

Times are Unix time. The mark that seating leaves on a server is in its `user_options`, which the
hub stores: so nothing is forgotten when seating or the hub restarts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

# A key of `user_options`, beside the profile's.
MARK_KEY: Final = "roost.hub.jupyter.org/seated"
# The hub stores one time as a server's start and as both activities; what comes later is later by
# more than this.
_SAME_SECONDS: Final = 1.0


class ClassKey(NamedTuple):
    """One occurrence of a booking."""

    booking: str
    start: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Left on a server that seating started."""

    booking: str
    # When the class begins.
    class_start: int
    # When the hub was asked for the server.
    asked_at: float

    @property
    def class_key(self) -> ClassKey:
        """The class that the server was started for."""
        return ClassKey(self.booking, self.class_start)

    def options(self) -> dict[str, object]:
        """The mark as it stands in `user_options`."""
        body = {"booking": self.booking, "start": self.class_start, "asked": self.asked_at}
        return {MARK_KEY: body}


@dataclass(frozen=True, slots=True)
class Server:
    """A user's default server, while it is active."""

    # None: the hub has not begun yet.
    started: float | None
    last_activity: float | None
    # spawn, stop or check; "": nothing is pending.
    pending: str
    is_ready: bool
    # None: none was left, or it cannot be this start's.
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class HubUser:
    """A user of the hub."""

    name: str
    # None: never, or the token may not read it.
    last_activity: float | None = None
    server: Server | None = None
    # Active servers, named ones too; and those of them that are starting.
    active: int = 0
    starting: int = 0
    # False: the token's role doesn't reach this user's servers, as with `servers!group=…`.
    shows_servers: bool = True


def was_used(user: HubUser, server: Server, ready_at: float | None) -> bool:
    """Whether anybody used a server that seating started, or was at the hub since; in doubt, yes.

    ready_at: when the hub said that the server is ready; None: not seen. Until then only the hub's
    proxy and the server itself were active. Afterwards each activity is a person's. A visit to the
    hub counts for the user, and not for the server.
    """
    if server.started is None:
        return True
    at_server = server.last_activity or server.started
    if ready_at is None:
        if at_server > server.started + _SAME_SECONDS:
            return True
    elif at_server > ready_at:
        return True
    at_hub = user.last_activity or at_server
    return at_hub > max(at_server, server.started) + _SAME_SECONDS
