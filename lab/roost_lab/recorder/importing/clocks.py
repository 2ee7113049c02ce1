"""Find nodes whose clocks are wrong, by their kubelets' Events, and give these Events the API server's time. Pure.

A kubelet dates its Event by the node's clock, and the API server the object (metadata.creationTimestamp) by its own,
when the Event comes, never before it happened. So the least difference in an hour is the clock's, to a second or two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from roost_lab.pages.dates import MAX_US
from roost_lab.recorder.recording.clocks import HOUR_US, behind_us
from roost_lab.recorder.recording.reading import micros

JSONObject = dict[str, Any]
_FIRST: Final = ("firstTimestamp", "deprecatedFirstTimestamp")
_TIMES: Final = (*_FIRST, "lastTimestamp", "deprecatedLastTimestamp")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# A node, and the hour.
_Clock = tuple[str, int]


def clocks_behind(events: Iterable[JSONObject]) -> dict[_Clock, int]:
    """How far clocks are behind the API server's, by node and hour, in µs; negative: ahead. Right ones are left out."""
    seen: dict[_Clock, list[int]] = defaultdict(list)
    for event in events:
        clock, own_us = _clock_of(event), _first_us(event)
        if clock is not None and own_us is not None:
            created_us = micros(event["metadata"]["creationTimestamp"]) or 0
            seen[clock].append(created_us - own_us)
    return {clock: behind for clock, found in seen.items() if (behind := behind_us(found))}


def corrected(event: JSONObject, behind: dict[_Clock, int]) -> tuple[JSONObject, str]:
    """The Event in the API server's time, and the node whose clock was wrong; as it is, and "", where none was."""
    clock = _clock_of(event)
    if clock is None or clock not in behind:
        return event, ""
    shift = timedelta(microseconds=behind[clock])
    moved = {
        key: (_EPOCH + timedelta(microseconds=at) + shift).isoformat().replace("+00:00", "Z")
        for key in _TIMES
        if (at := micros(event.get(key))) is not None and 0 < at + behind[clock] <= MAX_US
    }
    return {**event, **moved}, clock[0]


def _first_us(event: JSONObject) -> int | None:
    return next((at for key in _FIRST if (at := micros(event.get(key))) is not None), None)


def _clock_of(event: JSONObject) -> _Clock | None:
    """None: not a kubelet's, or it doesn't say when it came."""
    source, metadata = event.get("source") or event.get("deprecatedSource"), event.get("metadata")
    host = source.get("host") if isinstance(source, dict) else None
    created = micros(metadata.get("creationTimestamp")) if isinstance(metadata, dict) else None
    return (host, created // HOUR_US) if isinstance(host, str) and host and created is not None else None
