"""Read the users of JupyterHub's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from roost.seating.people import MARK_KEY, HubUser, Mark, Server

# The hub stores options again for a start without any, so an old mark may stand on a server that
# its user started. A server is seating's if it began within these seconds of what its mark says;
# clocks differ, and hooks take their time before a start counts as begun.
_BEFORE_SECONDS: Final = 10.0
_AFTER_SECONDS: Final = 120.0
# 9999-12-31: what a date can say.
_LAST_SECOND: Final = 253_402_214_400


def read_user(model: Mapping[str, object]) -> HubUser:
    """Read a user of JupyterHub's REST API. What is missing or strange counts as not there."""
    servers = model.get("servers")
    # The hub leaves `servers` out where the token may not see any.
    shows_servers = isinstance(servers, Mapping)
    by_name = servers if isinstance(servers, Mapping) else {}
    active = [server for server in by_name.values() if _is_active(server)]
    own = by_name.get("")
    return HubUser(
        name=str(model.get("name")),
        last_activity=_time(model.get("last_activity")),
        server=_read_server(own) if isinstance(own, Mapping) and _is_active(own) else None,
        active=len(active),
        starting=sum(1 for server in active if server.get("pending") == "spawn"),
        shows_servers=shows_servers,
    )


def _is_active(server: object) -> bool:
    return isinstance(server, Mapping) and bool(server.get("ready") or server.get("pending"))


def _read_server(server: Mapping[str, object]) -> Server:
    started = _time(server.get("started"))
    mark = _read_mark(server.get("user_options"))
    if mark is not None and started is not None:
        later = started - mark.asked_at
        if not -_BEFORE_SECONDS <= later <= _AFTER_SECONDS:
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
    try:
        moment = datetime.fromisoformat(str(text))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None
