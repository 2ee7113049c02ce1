"""What the controllers know of booked events: the settings, where bookings come from, and which of
them count now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from roost_core.release.bookings import (
    MOST_IN_ALL,
    SETTLE_MINUTES,
    Event,
    Limits,
    bookable_sets,
    first_start_after,
    parse_events,
)
from roost_core.release.reader import Document, Reader
from roost_core.release.seating_pace import SEATING_START_SECONDS, seating_seconds

# Users who come in the last minutes before an event's beginning count as its people.
EARLY_SECONDS: Final = 300.0
SETTLE_SECONDS: Final = 60 * SETTLE_MINUTES
# The keys of `events`. The last two repeat limits of the hub. Controllers read only
# concurrentSpawnLimit; seating and `roost book` read both.
_KEYS: Final = (
    "enabled",
    "booked",
    "configMaps",
    "leadMinutes",
    "maxPeople",
    "maxPlaceholders",
    "concurrentSpawnLimit",
    "activeServerLimit",
)
# In seconds. The beginnings of events are looked up once a minute.
_MINUTE: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingSettings:
    """`events` of the values."""

    # Events that the values book.
    booked: tuple[Event, ...]
    # Whether ConfigMaps may book events, too.
    config_maps: bool
    # How long before an event its placeholders and images are brought.
    lead_seconds: float
    # The most placeholders for all events at one time.
    max_placeholders: int
    # How many servers the hub starts at a time; 0: it has no limit.
    concurrent_spawn_limit: int
    # Whether seating is switched on: it starts people's servers before an event.
    seats_people: bool
    # Seating reads bookings in the values and in this ConfigMap of the release's namespace.
    seated_config_map: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class BookingSource:
    """What one ConfigMap says."""

    name: str
    uid: str
    events: tuple[Event, ...]
    # For people who write the ConfigMap.
    faults: tuple[str, ...] = ()
    # The hub's namespace that it books for; "": the release's own.
    hub: str = ""
    # Whether the ConfigMap has changed since. There was no time yet to read it again.
    is_unread: bool = False


@dataclass(frozen=True, slots=True)
class Booking:
    """One occurrence of an event, while placeholders are kept for it. Times are Unix time."""

    event: Event
    start: int
    # When its placeholders go.
    until: float
    # Users who start a server from then on count as its people.
    comes_from: float
    # As in `BookingSource`.
    hub: str = ""


def read_booking_settings(read: Reader, document: Document) -> BookingSettings | None:
    """Read `events` of release.json; None while they are switched off. Faults go to the reader."""
    events = read.mapping(document.get("events"), "events")
    if not read.flag(events.get("enabled"), "events.enabled"):
        return None
    read.known(events, "events", _KEYS)
    seating = read.mapping(document.get("seating"), "seating")

    def integer(key: str) -> int:
        return read.integer(events.get(key), f"events.{key}")

    limits = Limits(bookable_sets(document), integer("maxPeople"))
    return BookingSettings(
        booked=parse_events(read, events.get("booked"), "events.booked", limits),
        config_maps=read.flag(events.get("configMaps"), "events.configMaps"),
        lead_seconds=60.0 * integer("leadMinutes"),
        max_placeholders=integer("maxPlaceholders"),
        concurrent_spawn_limit=integer("concurrentSpawnLimit"),
        seats_people=read.flag(seating.get("enabled"), "seating.enabled"),
        seated_config_map=read.text(seating.get("bookings"), "seating.bookings"),
        limits=limits,
    )


def bounded(sources: Iterable[BookingSource]) -> Iterator[BookingSource]:
    """Yield the sources. Where there are more than MOST_IN_ALL events, some lose all of theirs.

    The release's sources come first, in their order. The hubs' follow, those with the fewest events
    first: so a hub with many events takes no room from a hub with few.
    """
    own: list[BookingSource] = []
    of_hubs: list[BookingSource] = []
    for source in sources:
        if source.hub:
            of_hubs.append(source)
        else:
            own.append(source)
    of_hubs.sort(key=lambda source: (len(source.events), source.hub))
    left = MOST_IN_ALL
    for source in (*own, *of_hubs):
        if len(source.events) <= left:
            left -= len(source.events)
            yield source
        else:
            fault = (
                f"data: found {len(source.events)} events beside those of others, expected"
                f" {MOST_IN_ALL} in all."
            )
            yield replace(source, events=(), faults=(*source.faults, fault))


def reads_source(settings: BookingSettings, source: BookingSource | None) -> bool:
    """Whether seating reads the bookings of a source. None: the values."""
    if source is None:
        return True
    return not source.hub and source.name == settings.seated_config_map


def _early_seconds(settings: BookingSettings, event: Event, source: BookingSource | None) -> float:
    """How long before an event its first people come.

    If seating starts their servers, the first server counts as the first person.
    """
    is_seated = event.seated is not None and settings.seats_people
    if not is_seated or not reads_source(settings, source):
        return EARLY_SECONDS
    limit = settings.concurrent_spawn_limit
    return max(EARLY_SECONDS, seating_seconds(event.people, limit, SEATING_START_SECONDS))


def keep_seconds(
    settings: BookingSettings, event: Event, source: BookingSource | None = None
) -> float:
    """How long before an event its placeholders are brought. source: None: the values."""
    # `leadMinutes` is meant for people who come EARLY_SECONDS before the beginning.
    earlier_than_usual = _early_seconds(settings, event, source) - EARLY_SECONDS
    return settings.lead_seconds + earlier_than_usual


class CurrentBookings(NamedTuple):
    """The bookings that count at one moment."""

    # The first to begin stands first.
    bookings: Sequence[Booking]
    # When they may change, in Unix time; None: they don't.
    next_change: float | None


def bookings_at(
    settings: BookingSettings, sources: Mapping[str, BookingSource], now: float
) -> CurrentBookings:
    """Return the bookings that count now: their placeholders are kept.

    If an event begins again before its placeholders have gone, only the earlier beginning counts.
    """
    current: list[Booking] = []
    changes_at: list[float] = []
    minute = int(now) // _MINUTE * _MINUTE
    booked: list[tuple[BookingSource | None, Event]] = [(None, event) for event in settings.booked]
    booked += [(source, event) for _, source in sorted(sources.items()) for event in source.events]
    for source, event in booked:
        start = first_start_after(event, minute - SETTLE_SECONDS)
        if start is None:
            continue
        hub = source.hub if source is not None else ""
        comes_from = start - _early_seconds(settings, event, source)
        keep_from = start - keep_seconds(settings, event, source)
        keep_until = start + SETTLE_SECONDS
        if keep_until <= now:
            # The next beginning is looked up in the next minute.
            changes_at.append(float(minute + _MINUTE))
        elif now < keep_from:
            changes_at.append(keep_from)
        else:
            current.append(Booking(event, start, keep_until, comes_from, hub))
            changes_at.append(keep_until)
    current.sort(key=lambda booking: (booking.start, booking.event.name))
    return CurrentBookings(current, min(changes_at, default=None))
