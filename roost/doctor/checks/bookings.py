"""The largest booking, and the most who came within a minute, are within what hub, quotas and pools
allow.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

from roost.doctor.evidence import some
from roost.doctor.findings import CheckReport, Finding, could_not_read, warning
from roost.doctor.install import Install
from roost.doctor.placeholder_room import PlaceholderRoom
from roost_core.kube.client import ClusterError, list_all
from roost_core.placement.headroom_history import HistoryError, read_history
from roost_core.placement.headroom_windows import local_time
from roost_core.placement.labels import EVENTS_KEY, EVENTS_LABEL, RELEASE_KEY
from roost_core.release.bookings import (
    Event,
    Limits,
    first_start_after,
    hub_limits,
    parse_events,
    read_events,
)
from roost_core.release.reader import Reader


def check(install: Install) -> CheckReport:
    texts = [
        data[RELEASE_KEY]
        for it in install.of_kind("ConfigMap")
        if RELEASE_KEY in (data := it.get("data") or {})
    ]
    document: Mapping[str, Any] = (
        json.loads(texts[0]) if texts else {"events": {}, "placeholders": ()}
    )
    events = document["events"]
    place = f"/api/v1/namespaces/{install.release.namespace}/configmaps"
    # What may not be read, by the API server's words.
    unseen: dict[str, Finding] = {}
    # By set ("": all) and beginning.
    booked: dict[str, dict[int, list[Event]]] = {}
    for event in _seen(unseen, _booked, install, document, place) if events.get("enabled") else ():
        start = first_start_after(event, int(time.time()))
        if start is not None:
            for name in ("", event.set_name):
                booked.setdefault(name, {}).setdefault(start, []).append(event)
    yield "the hub's limits, quotas and pools, for what is booked and what was learned"
    for name, starts in booked.items():
        people, start = max(
            (sum(event.people for event in found), start) for start, found in starts.items()
        )
        shortages = hub_limits(people, events)
        is_of_values = not name
        if name:
            entry = next(entry for entry in document["placeholders"] if entry["name"] == name)
            seats = PlaceholderRoom(entry, [*_seen(unseen, lambda: install.nodes)])
            most = min(people, events["maxPlaceholders"])
            shortages = _seen(
                unseen, seats.misfits, install.client, install.release.namespace, most
            )
        who = (
            f"{some([event.name for event in starts[start]])},"
            f" {local_time(start, starts[start][0].starts.time_zone)}"
        )
        for reason, fix in shortages:
            yield warning(f"{who}: {reason}", fix, is_of_values=is_of_values)
    stored: Mapping[str, Any] | None = None
    if any(entry["learn"] for entry in document["placeholders"]):
        path = f"{place}/{document['headroomHistory']}"
        stored = next(_seen(unseen, lambda: [install.client.find(path)]), None)
    for name, text in ((stored or {}).get("data") or {}).items():
        with suppress(HistoryError):
            pairs = pairwise(read_history(text).levels)
            came = max((after - before for before, after in pairs if before >= 0), default=0)
            for reason, fix in hub_limits(came, events):
                yield warning(
                    f"Set {name}: users of {came} seats came within a minute. {reason}", fix
                )
    yield from unseen.values()


def _seen(
    unseen: dict[str, Finding], read: Callable[..., Iterable[Any]], *given: object
) -> Iterator[Any]:
    """What is read until the API server refuses: then that is unseen, and the rest is judged all
    the same.
    """
    try:
        yield from read(*given)
    except ClusterError as error:
        unseen[str(error)] = could_not_read(error)


def _booked(install: Install, document: Mapping[str, Any], place: str) -> Iterator[Event]:
    """What the values and the ConfigMaps of the release's namespace book, faults aside."""
    read = Reader()
    events = document["events"]
    bookable = Limits(
        tuple(entry["name"] for entry in document["placeholders"]), events["maxPeople"]
    )
    yield from parse_events(read, events["booked"], "", bookable)
    if not events["configMaps"]:
        return
    selected = {"labelSelector": f"{EVENTS_LABEL}={install.release.name}"}
    for body in list_all(install.client, place, selected):
        yield from read_events(read, (body.get("data") or {}).get(EVENTS_KEY, ""), bookable)
