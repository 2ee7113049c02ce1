"""Tell a proxy that got all its routes again from people who use their servers.

When the hub's proxy is replaced, the hub gives it the routes of all servers again. The proxy counts
each as active at that moment, and the hub takes this over. A person leaves another trace: whoever
opens a server that nobody opened before is sent to the hub first, which notes the visit at once. So
activity is the proxy's if it came to all unused servers at the same moment, and a look at the hub
after that moment showed no visit.

The hub notes no visit in the half minute after another activity, and takes a start for one. Whoever
came so early is known by what the proxy that was replaced had told the hub within the next minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# The hub gives routes again one after the other, for so long at most.
_SAME_MOMENT_SECONDS: Final = 10.0
# A look so long after an activity shows the visit that belongs to it: clocks of proxy and pod
# differ, and a browser takes its time to the hub.
_VISIT_SECONDS: Final = 15.0
# A server that got ready so long before may have been opened while the hub noted no visit. The old
# proxy still told of it, if it was gone for no longer than 150 s: 30 s without notes, a minute
# until the hub asked the old proxy, another one until it asks the new one.
_TOLD_SECONDS: Final = 300.0
# Fewer servers may be opened at the same moment by chance.
_FEWEST_SERVERS: Final = 3


@dataclass(frozen=True, slots=True)
class UnusedServer:
    """A server that nobody had used at the last look. Times are Unix time."""

    name: str
    started: float
    ready_at: float
    # As the hub says now.
    last_activity: float


def routed_anew(servers: Sequence[UnusedServer], seen_at: float) -> Sequence[UnusedServer]:
    """Which of all the unused servers were active only because their routes were given again.

    seen_at: when the last look began at which the hub told all, and nobody had used them.
    """
    active = [server for server in servers if server.last_activity > server.ready_at]
    first = min((server.last_activity for server in active), default=0.0)
    at_once = [server for server in active if server.last_activity <= first + _SAME_MOMENT_SECONDS]
    # A proxy that is there yet has older routes, too.
    kept = [
        server
        for server in servers
        if server.last_activity <= server.ready_at and server.ready_at < first
    ]
    if kept or len(at_once) < _FEWEST_SERVERS:
        return ()
    return [
        server
        for server in at_once
        if server.last_activity + _VISIT_SECONDS <= seen_at
        and server.last_activity - server.ready_at >= _TOLD_SECONDS
    ]
