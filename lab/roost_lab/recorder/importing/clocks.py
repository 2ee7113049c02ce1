"""Find nodes whose clocks are wrong, by their kubelets' Events, and convert the kubelets' times to
the API server's clock. Pure.

An Event has two times: the kubelet's, by the node's clock, and metadata.creationTimestamp, by the
API server's clock when the Event comes. It never comes before it happened. So the least difference
in an hour is the clock's, to a second or two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_lab.pages.dates import MAX_US
from roost_lab.recorder.recording.clocks import behind_us, pod_in_server_time
from roost_lab.recorder.recording.reading import PodReading, micros
from roost_lab.units import HOUR_US

_FIRST: Final = ("firstTimestamp", "deprecatedFirstTimestamp")
_TIMES: Final = (*_FIRST, "lastTimestamp", "deprecatedLastTimestamp")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# Where no Event tells of the clock in a pod's hour, the nearest hour does.
_HOURS_AWAY: Final = sorted(range(-24, 25), key=abs)

# A node, and the hour.
_Clock = tuple[str, int]
# How far clocks are behind the API server's, in µs; negative: ahead.
Clocks = dict[_Clock, int]


def clocks_behind(events: Iterable[JSONObject]) -> Clocks:
    """The clocks that these Events tell of, right ones too."""
    differences_us: dict[_Clock, list[int]] = defaultdict(list)
    for event in events:
        clock = _clock_of(event)
        own_times = [micros(event.get(key)) for key in _FIRST]
        known_times = [at for at in own_times if at is not None]
        if clock is not None and known_times:
            created_us = micros(event["metadata"]["creationTimestamp"]) or 0
            differences_us[clock].append(created_us - known_times[0])
    return {clock: behind_us(found) for clock, found in differences_us.items()}


def corrected(event: JSONObject, clocks: Clocks) -> JSONObject:
    """The Event, with its kubelet's times converted to the API server's clock."""
    clock = _clock_of(event)
    behind = clocks.get(clock, 0) if clock is not None else 0
    if not behind:
        return event
    moved = {}
    for key in _TIMES:
        at = micros(event.get(key))
        if at is not None and 0 < at + behind <= MAX_US:
            moment = _EPOCH + timedelta(microseconds=at + behind)
            moved[key] = moment.isoformat().replace("+00:00", "Z")
    return {**event, **moved}


def pod_corrected(pod: PodReading, clocks: Clocks) -> PodReading:
    """The pod, with its kubelet's times converted to the API server's clock."""
    node = pod.state.node_name
    hour = pod.created_us // HOUR_US
    known = (clocks[node, hour + away] for away in _HOURS_AWAY if (node, hour + away) in clocks)
    return pod_in_server_time(pod, next(known, 0))


def _clock_of(event: JSONObject) -> _Clock | None:
    """None: not a kubelet's, or it doesn't say when it came."""
    source = event.get("source") or event.get("deprecatedSource")
    metadata = event.get("metadata")
    host = source.get("host") if isinstance(source, dict) else None
    created = micros(metadata.get("creationTimestamp")) if isinstance(metadata, dict) else None
    if not isinstance(host, str) or not host or created is None:
        return None
    return host, created // HOUR_US
