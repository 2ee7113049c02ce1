"""Read the users of JupyterHub's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypeGuard

from roost.seating.people import MARK_KEY, HubUser, Mark, Server

# If a user starts a server without options, the hub uses the stored options again. So a server that
# its user started may have an old mark of seating. A server counts as started by seating if it
# began at most so long before or after the mark's time: clocks differ, and hooks delay a start.
_BEFORE_SECONDS: Final = 10.0
_AFTER_SECONDS: Final = 120.0
# 9999-12-31, the last day that Python's dates can hold; Unix time.
_LAST_SECOND: Final = 253_402_214_400


def read_user(model: Mapping[str, object]) -> HubUser:
    """Read a user of JupyterHub's REST API. What is missing or malformed counts as not there."""
    servers = model.get("servers")
    # The hub leaves `servers` out if the token may not see any.
    shows_servers = isinstance(servers, Mapping)
    by_name = servers if isinstance(servers, Mapping) else {}
    active = [server for server in by_name.values() if _is_active(server)]
    # The server without a name is the user's default server.
    default = by_name.get("")
    return HubUser(
        name=str(model.get("name")),
        last_activity=_time(model.get("last_activity")),
        server=_read_server(default) if _is_active(default) else None,
        active=len(active),
        starting=sum(1 for server in active if server.get("pending") == "spawn"),
        shows_servers=shows_servers,
    )


def _is_active(server: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a server runs, starts or stops."""
    return isinstance(server, Mapping) and bool(server.get("ready") or server.get("pending"))


def _read_server(server: Mapping[str, object]) -> Server:
    started = _time(server.get("started"))
    mark = _read_mark(server.get("user_options"))
    if mark is not None and started is not None:
        seconds_after_mark = started - mark.asked_at
        if not -_BEFORE_SECONDS <= seconds_after_mark <= _AFTER_SECONDS:
            mark = None
    return Server(
        started=started,
        last_activity=_time(server.get("last_activity")),
        pending=str(server.get("pending") or ""),
        is_ready=bool(server.get("ready")),
        mark=mark,
    )


def _read_mark(options: object) -> Mark | None:
    body = options.get(MARK_KEY) if isinstance(options, Mapping) else None
    if not isinstance(body, Mapping):
        return None
    start = body.get("start")
    asked = body.get("asked")
    if not isinstance(start, int) or not isinstance(asked, int | float):
        return None
    if not 0 <= start <= _LAST_SECOND or not 0 <= asked <= _LAST_SECOND:
        return None
    return Mark(str(body.get("booking")), start, float(asked))


def _time(text: object) -> float | None:
    """Unix time of a timestamp; None: it isn't a timestamp."""
    try:
        moment = datetime.fromisoformat(str(text))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None
