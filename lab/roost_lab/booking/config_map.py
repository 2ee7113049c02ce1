"""The ConfigMap that `roost book` keeps bookings in: read whole, written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any, Final

import yaml

from generator.faults import UsageError, one_line
from generator.values.release_name import Release
from roost.controllers.runtime.booking_sources import MOST_EVENTS_OF_HUB, PAST_SECONDS
from roost.doctor.placeholder_room import PlaceholderRoom
from roost_core.kube.client import ApiError, Client, ClusterError, list_all
from roost_core.objects.fields import JSONObject
from roost_core.objects.foreign_yaml import load_foreign
from roost_core.objects.node import Node, node_or_none
from roost_core.placement.headroom_windows import local_datetime, local_time
from roost_core.placement.labels import (
    EVENTS_KEY,
    EVENTS_LABEL,
    HUB_BOOKINGS,
    RELEASE_KEY,
    base_name,
    object_name,
)
from roost_core.release.bookings import (
    MOST_EVENTS,
    MOST_TEXT,
    Event,
    Limits,
    ListedStarts,
    Seated,
    bookable_sets,
    first_start_after,
)
from roost_core.release.reader import SettingsError, parse_document
from roost_lab.booking.entry import checked, repeats_in_words

# For what seating says, and its lines.
_SEATING_SECONDS: Final = 5.0
_MOST_SEATING_LINES: Final = 100
# The most people of one booking where nobody knows `events.maxPeople`.
_MOST_PEOPLE: Final = 100_000


class Bookings:
    """The ConfigMap with the bookings, and what is known of the release's limits."""

    def __init__(self, client: Client, namespace: str, release: str, name: str | None) -> None:
        base = base_name(release)
        self.client = client
        self.namespace = namespace
        self.release = release
        self.name = name or object_name(base, "bookings")
        self._folder = f"/api/v1/namespaces/{namespace}/configmaps"
        settings_name = object_name(base, "release")
        try:
            settings = client.find(f"{self._folder}/{settings_name}")
        except ApiError as error:
            if error.status != 403:
                raise
            settings = {}
        # release.json; empty where it isn't known.
        self.document = _release_of(settings, f"{namespace}/{settings_name}")
        self.events: Mapping[str, Any] = self.document.get("events") or {}
        if settings is None and name is None:
            raise UsageError(
                f"found no release {release} in namespace {namespace} (no ConfigMap"
                f" {settings_name}), expected one: say --release and --namespace, or"
                f" --config-map {HUB_BOOKINGS} in a hub's own namespace"
            )
        # None: it is still to be made.
        self._stored = client.find(f"{self._folder}/{self.name}")
        stored = self._stored or {}
        labels = (stored.get("metadata") or {}).get("labels") or {}
        other = labels.get(EVENTS_LABEL, release)
        if other != release:
            raise UsageError(
                f"ConfigMap {namespace}/{self.name} books for release {other}: say --release"
                f" {other}"
            )
        text = (stored.get("data") or {}).get(EVENTS_KEY) or "[]"
        try:
            entries = load_foreign(text)
            names = {str(entry["name"]) for entry in entries}
        except (ValueError, TypeError, KeyError):
            entries = ()
            names = {""}
        if len(names) != len(entries):
            raise UsageError(
                f"ConfigMap {namespace}/{self.name}, {EVENTS_KEY}: found {text[:40]!r}, expected a"
                " list of events with names of their own. Nothing was changed: mend it, or say"
                " another --config-map"
            )
        self.entries: dict[str, dict[str, Any]] = {str(entry["name"]): entry for entry in entries}

    @property
    def placed(self) -> Release:
        """The release with its namespace."""
        return Release(self.release, self.namespace)

    def require_reader(self) -> None:
        """Raise UsageError if the release is known and reads no bookings."""
        if not self.document:
            return
        if not (self.events.get("enabled") and self.events.get("configMaps")):
            raise UsageError(
                f"release {self.release} in namespace {self.namespace} reads no bookings: the"
                " operator sets events.enabled (and events.configMaps, if it is false) to true"
            )

    def limits(self, entry: Mapping[str, Any]) -> Limits:
        """What may be booked; anything where it isn't known.

        Raises UsageError as `require_reader` does.
        """
        if not self.document:
            return Limits((str(entry.get("set") or "the first set"),), _MOST_PEOPLE)
        self.require_reader()
        return Limits(bookable_sets(self.document), int(self.events.get("maxPeople", 0)))

    def forget_past(self, now: float) -> None:
        """Leave out what began a day ago and more, and doesn't come again."""
        for name, entry in list(self.entries.items()):
            with suppress(UsageError):
                event = checked(entry, self.limits(entry))
                if first_start_after(event, int(now - PAST_SECONDS)) is None:
                    del self.entries[name]

    def write(self) -> None:
        """Store the entries, unless somebody else did meanwhile. Raises ClusterError."""
        text = yaml.safe_dump(
            list(self.entries.values()), sort_keys=False, allow_unicode=True, width=200
        )
        most = MOST_EVENTS_OF_HUB if self.name == HUB_BOOKINGS else MOST_EVENTS
        if len(self.entries) > most or len(text) > MOST_TEXT:
            raise UsageError(
                f"ConfigMap {self.namespace}/{self.name}: would hold {len(self.entries)} bookings"
                f" of {len(text)} characters, expected at most {most} of {MOST_TEXT}. Nothing was"
                " changed: cancel some first, or book a calendar up to an earlier --until"
            )
        metadata: dict[str, Any] = {"name": self.name, "labels": {EVENTS_LABEL: self.release}}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {EVENTS_KEY: text},
        }
        if self._stored is None:
            self.client.create(self._folder, body)
            return
        metadata["resourceVersion"] = self._stored["metadata"]["resourceVersion"]
        try:
            self.client.merge(f"{self._folder}/{self.name}", body, "roost-book")
        except ApiError as error:
            if error.status == 409:
                raise ClusterError(
                    f"ConfigMap {self.name} changed meanwhile; nothing was booked: try again"
                ) from None
            raise

    @property
    def has_seating(self) -> bool:
        """Whether the release starts people's servers before a class; False if it isn't known."""
        return bool((self.document.get("seating") or {}).get("enabled"))

    @property
    def seats_people(self) -> bool:
        """Whether seating starts servers for these bookings: it reads one ConfigMap alone."""
        seating = self.document.get("seating") or {}
        return self.has_seating and self.name == seating.get("bookings")

    def seating(self) -> list[str]:
        """What seating says of the present classes, where whoever asks may read it; else nothing.

        It is read through the API server, which needs the right to get services/proxy.
        """
        if not self.has_seating:
            return []
        service = object_name(base_name(self.release), "seating")
        path = f"/api/v1/namespaces/{self.namespace}/services/{service}:metrics/proxy/readyz"
        with suppress(ClusterError):
            lines = islice(self.client.lines(path, {}, _SEATING_SECONDS), _MOST_SEATING_LINES)
            return [one_line(line.decode(errors="replace").strip()) for line in lines]
        return []

    def seats(self, set_name: str) -> PlaceholderRoom:
        """The placeholders of a set on the nodes; without the right to list nodes there are
        none.
        """
        nodes: list[Node | None] = []
        with suppress(ClusterError):
            nodes = [node_or_none(item) for item in list_all(self.client, "/api/v1/nodes")]
        sets = {entry["name"]: entry for entry in self.document["placeholders"]}
        return PlaceholderRoom(sets[set_name], [node for node in nodes if node])


def _release_of(config_map: JSONObject | None, name: str) -> Mapping[str, Any]:
    """What release.json says; nothing without its ConfigMap. Raises UsageError.

    In a hub's namespace the ConfigMap may be the hub's own, and say anything.
    """
    if not config_map:
        return {}
    text = str((config_map.get("data") or {}).get(RELEASE_KEY) or "")
    try:
        document = parse_document(text.encode(), RELEASE_KEY)
    except SettingsError as error:
        raise UsageError(f"ConfigMap {name}, {error}") from None
    events = document.get("events") or {}
    if not isinstance(events, Mapping) or not isinstance(document.get("seating") or {}, Mapping):
        raise UsageError(f"ConfigMap {name}, {RELEASE_KEY}: found no settings of a release")
    most = events.get("maxPeople", 0)
    if not isinstance(most, int | float) or not 0 <= most <= _MOST_PEOPLE:
        raise UsageError(f"ConfigMap {name}, {RELEASE_KEY}: found no number of events.maxPeople")
    return document


def not_checked(bookings: Bookings) -> str:
    """What is said where the release's limits can't be known."""
    return (
        "  Not checked: what the release allows (its ConfigMap can't be read from here). The"
        f" controllers answer with an Event: kubectl describe configmap {bookings.name}\n"
    )


def line_of(entry: Mapping[str, Any], event: Event, now: float) -> str:
    """A booking in a line: how many people, when, and how often again."""
    start = first_start_after(event, int(now))
    zone = event.starts.time_zone
    when = "over" if start is None else local_time(start, zone)
    often = ""
    if isinstance(event.starts, ListedStarts):
        later = [moment for moment in event.starts.moments if start and moment > start]
        if later:
            often = f", then {len(later)} times until {local_time(later[-1], zone)}"
    elif start is not None and first_start_after(event, start) is not None:
        often = f", then {_repeats(entry, local_datetime(int(now), zone).date())}"
    image = f", {event.image}" if event.image else ""
    calendar = f" ({entry['calendar']})" if entry.get("calendar") else ""
    seated = ""
    if event.seated is not None:
        seated = f", servers of {people_of(event.seated)} started before"
    return f"{event.name}: {event.people} people, {when}{often}{image}{seated}{calendar}\n"


def people_of(seated: Seated, whose: str = "") -> str:
    """Whose servers are started before, in words. whose: what is said after the group's name."""
    listed = [f"group {seated.group}{whose}"] if seated.group else []
    if seated.users:
        listed.append(f"{len(seated.users)} users")
    return " and ".join(listed)


def _repeats(entry: Mapping[str, Any], today: date) -> str:
    """When an entry comes again, in words; its one time, if it doesn't."""
    return repeats_in_words(str(entry.get("start")), str(entry.get("until") or ""), today)


def before_of(entry: Mapping[str, Any], changed: Mapping[str, Any], now: float) -> str:
    """What a booking was before it was changed. now: Unix time."""
    start = entry.get("start")
    if isinstance(start, list):
        when = f"{len(start)} times"
    else:
        today = datetime.fromtimestamp(now, UTC).date()
        when = _repeats(entry, today)
        # The words leave out in which month it begins, which may be all that changed.
        if start != changed.get("start") and when == _repeats(changed, today):
            when = f"{start} until {entry.get('until')}"
    # The ConfigMap may say anything there.
    return one_line(f" (before: {entry.get('people')} people, {when})")
