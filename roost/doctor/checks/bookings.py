"""The largest booking, and the most who came within a minute, are within what hub, quotas and pools
allow.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

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


class _Crowd(NamedTuple):
    """Events that begin at the same time, and the people of all."""

    people: int
    # Unix time.
    start: int
    events: Sequence[Event]

    def __str__(self) -> str:
        names = some([event.name for event in self.events])
        return f"{names}, {local_time(self.start, self.events[0].starts.time_zone)}"


def check(install: Install) -> CheckReport:
    document = _release_document(install)
    limits = document["events"]
    # What may not be read, by the API server's words.
    unseen: dict[str, Finding] = {}
    of_values: list[Event] = []
    of_config_maps: list[Event] = []
    if limits.get("enabled"):
        bookable = Limits(
            tuple(entry["name"] for entry in document["placeholders"]), limits["maxPeople"]
        )
        of_values += parse_events(Reader(), limits["booked"], "", bookable)
        if limits["configMaps"]:
            of_config_maps += _seen(unseen, _of_config_maps, install, bookable)
    booked = of_values + of_config_maps
    yield "the hub's limits, quotas and pools, for what is booked and what was learned"
    crowd = _largest_crowd(booked)
    if crowd:
        # The values' own checks judge each of their events, but neither sums nor ConfigMaps.
        is_of_values = len(crowd.events) == 1 and crowd.events[0] in of_values
        for reason, fix in hub_limits(crowd.people, limits):
            yield warning(f"{crowd}: {reason}", fix, is_of_values=is_of_values)
    for entry in document["placeholders"]:
        crowd = _largest_crowd([event for event in booked if event.set_name == entry["name"]])
        if crowd:
            room = PlaceholderRoom(entry, [*_seen(unseen, lambda: install.nodes)])
            most = min(crowd.people, limits["maxPlaceholders"])
            misfits = _seen(unseen, room.misfits, install.client, install.release, most)
            for reason, fix in misfits:
                yield warning(f"{crowd}: {reason}", fix)
    for name, text in _seen(unseen, _histories, install, document):
        try:
            levels = read_history(text).levels
        except HistoryError:
            continue
        came = max((after - before for before, after in pairwise(levels) if before >= 0), default=0)
        for reason, fix in hub_limits(came, limits):
            yield warning(f"Set {name}: users of {came} seats came within a minute. {reason}", fix)
    yield from unseen.values()


def _release_document(install: Install) -> Mapping[str, Any]:
    """What the values' release.json says; without one, that nothing is booked."""
    for body in install.of_kind("ConfigMap"):
        text = (body.get("data") or {}).get(RELEASE_KEY)
        if text is not None:
            document: Mapping[str, Any] = json.loads(text)
            return document
    return {"events": {}, "placeholders": ()}


def _largest_crowd(events: Iterable[Event]) -> _Crowd | None:
    """The most people whose events begin at the same time; None: no event is still to come."""
    now = int(time.time())
    starts: dict[int, list[Event]] = {}
    for event in events:
        start = first_start_after(event, now)
        if start is not None:
            starts.setdefault(start, []).append(event)
    crowds = (
        _Crowd(sum(event.people for event in together), start, together)
        for start, together in starts.items()
    )
    return max(crowds, key=lambda crowd: (crowd.people, crowd.start), default=None)


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


def _of_config_maps(install: Install, bookable: Limits) -> Iterator[Event]:
    """What the ConfigMaps of the release's namespace book, faults aside. Raises ClusterError."""
    selected = {"labelSelector": f"{EVENTS_LABEL}={install.release.name}"}
    for body in list_all(install.client, _config_maps(install), selected):
        yield from read_events(Reader(), (body.get("data") or {}).get(EVENTS_KEY, ""), bookable)


def _histories(install: Install, document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """How many users there were, as learning keeps it, with the placeholder set's name. Raises
    ClusterError.
    """
    if not any(entry["learn"] for entry in document["placeholders"]):
        return ()
    stored = install.client.find(f"{_config_maps(install)}/{document['headroomHistory']}")
    return ((stored or {}).get("data") or {}).items()


def _config_maps(install: Install) -> str:
    return f"/api/v1/namespaces/{install.release.namespace}/configmaps"
