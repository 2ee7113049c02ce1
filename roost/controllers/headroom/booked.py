"""Count the placeholders that booked events need now, besides those of the windows.

An event needs a placeholder for each of its people who has yet to come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Final, NamedTuple

from roost.controllers.contract.actions import Notice
from roost.controllers.contract.bookings import (
    SETTLE_SECONDS,
    Booking,
    BookingSettings,
    BookingSource,
    bookings_at,
    keep_seconds,
    reads_source,
)
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.quota_room import (
    CutElsewhere,
    PeopleRoom,
    joint_cut,
    rooms_for_people,
)
from roost.controllers.headroom.settings import HeadroomSettings
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.headroom_windows import local_time
from roost_core.release.bookings import Event, first_start_after

# So often the numbers are planned anew while people come.
FOLLOW_SECONDS: Final = 10.0
# If an event begins later than this from now, its year is probably a mistake.
FAR_SECONDS: Final = 366 * 86_400.0
_normalise = lru_cache(maxsize=4096)(normalise_reference)


@dataclass(frozen=True, slots=True)
class Booked:
    """What events need at one time."""

    # Placeholders, by name of the set.
    extra: Mapping[str, int] = field(default_factory=dict)
    # People who have yet to come to the release's namespace, by name of the set, however many
    # placeholders they get.
    people: Mapping[str, int] = field(default_factory=dict)
    # Placeholders that quotas of hubs' namespaces leave no people for, by name of the set.
    cut: Mapping[str, CutElsewhere] = field(default_factory=dict)
    # The events that they are for, by name of the set, in words.
    why: Mapping[str, str] = field(default_factory=dict)
    # When that may change although nothing in the cluster does.
    seconds_left: float | None = None


class _Coming(NamedTuple):
    """A booking, and how many of its people have yet to come."""

    booking: Booking
    yet_to_come: int


def plan_booked(snapshot: Snapshot, settings: HeadroomSettings, now: float) -> Booked:
    """Return what the bookings that count now need. now: Unix time."""
    events = settings.events
    if events is None:
        return Booked()
    current = bookings_at(events, snapshot.bookings, now)
    seconds_left = None
    if current.next_change is not None:
        seconds_left = max(0.0, current.next_change - now)
    if not current.bookings:
        return Booked(seconds_left=seconds_left)
    coming = _count_who_have_yet_to_come(current.bookings, snapshot, settings)
    limits = _find_limits(coming, snapshot, settings, events.max_placeholders)
    left = dict(limits.shares)
    extra = Counter[str]()
    people = Counter[str]()
    quota_cut: dict[str, CutElsewhere] = {}
    reasons: dict[str, list[str]] = {}
    for booking, yet_to_come in coming:
        event = booking.event
        hub = booking.hub
        set_name = event.set_name
        granted = min(left[hub], yet_to_come)
        left[hub] -= granted
        extra[set_name] += granted
        if hub in ("", snapshot.namespace):
            people[set_name] += yet_to_come
        limit = ""
        lost = yet_to_come - granted
        quota_room = limits.quota_rooms.get(hub)
        # A share that fills the quota's room: events.maxPlaceholders allows as many or more.
        if lost and quota_room is not None and limits.shares[hub] == quota_room.people:
            limit = f", as many as {quota_room.why}"
            cut = CutElsewhere(lost, quota_room.people, limits.asks[hub])
            quota_cut[set_name] = joint_cut(quota_cut.get(set_name), cut)
        elif lost:
            limit = ", as many as events.maxPlaceholders allows"
        start = local_time(booking.start, event.starts.time_zone)
        reasons.setdefault(set_name, []).append(
            f"event {event.name} at {start} with {event.people} people{limit}"
        )
    seconds_left = FOLLOW_SECONDS if seconds_left is None else min(seconds_left, FOLLOW_SECONDS)
    why = {set_name: " and ".join(texts) for set_name, texts in reasons.items()}
    return Booked(extra, people, quota_cut, why, seconds_left)


class _Limits(NamedTuple):
    """How many placeholders bookings of each hub may get. All are by the hub's namespace."""

    shares: Mapping[str, int]
    # Only hubs in other namespaces than the release's, and only those whose quotas limit people.
    quota_rooms: Mapping[str, PeopleRoom]
    # For the same hubs: the quota in the way, and what to ask for, in words.
    asks: Mapping[str, str]


def _find_limits(
    coming: Sequence[_Coming], snapshot: Snapshot, settings: HeadroomSettings, max_placeholders: int
) -> _Limits:
    needs = Counter[str]()
    for booking, yet_to_come in coming:
        needs[booking.hub] += yet_to_come
    # Quotas of the release's own namespace count for all of its placeholders: `plan.py` applies
    # them.
    elsewhere = needs.keys() - {"", snapshot.namespace}
    quota_rooms = rooms_for_people(elsewhere, snapshot, settings)
    asks: dict[str, str] = {}
    for hub, room in quota_rooms.items():
        asks[hub] = room.why_and_ask(needs[hub] - room.people)
        needs[hub] = min(needs[hub], room.people)
    return _Limits(share_out(needs, max_placeholders), quota_rooms, asks)


def share_out(needs: Mapping[str, int], total: int) -> dict[str, int]:
    """Divide `total` placeholders among hubs.

    A hub gets what it needs, or as much as each hub that needs more. needs: by hub; so is what is
    returned.
    """
    shares: dict[str, int] = {}
    left = total
    hubs = sorted(needs, key=lambda hub: (needs[hub], hub))
    for number, hub in enumerate(hubs):
        equal_share = left // (len(hubs) - number)
        shares[hub] = min(needs[hub], equal_share)
        left -= shares[hub]
    return shares


def _count_who_have_yet_to_come(
    bookings: Sequence[Booking], snapshot: Snapshot, settings: HeadroomSettings
) -> list[_Coming]:
    """Pair each booking with how many of its people have yet to come.

    A user counts for one booking: if possible, for a booking of the user's image.
    """
    arrived = [0] * len(bookings)
    order = sorted(range(len(bookings)), key=lambda index: (not bookings[index].event.image, index))
    since = min(booking.comes_from for booking in bookings)
    for pod in snapshot.pods.values():
        if pod.created < since or pod.leaving or not settings.is_user(pod, snapshot.namespaces):
            continue
        image = _normalise(pod.spec.images[0]) if pod.spec.images else ""
        for index in order:
            booking = bookings[index]
            if (
                pod.created >= booking.comes_from
                and arrived[index] < booking.event.people
                and booking.event.image in ("", image)
                and booking.hub in ("", pod.namespace)
            ):
                arrived[index] += 1
                break
    return [
        _Coming(booking, booking.event.people - have_come)
        for booking, have_come in zip(bookings, arrived, strict=True)
    ]


def booking_notices(snapshot: Snapshot, settings: BookingSettings, now: float) -> Iterator[Notice]:
    """Events of each ConfigMap with bookings, which tell its writer what became of each booking.

    now: Unix time.
    """
    for _, source in sorted(snapshot.bookings.items()):
        notice = partial(
            Notice, "ConfigMap", source.hub or snapshot.namespace, source.name, source.uid
        )
        if source.is_unread:
            text = (
                "Reading bookings took too long of the last minute. This one counts as it was, and"
                " is read later."
            )
            yield notice("EventsNotRead", text, warning=True)
        for fault in source.faults:
            text = f"{fault} It is left out; other bookings count."
            yield notice("EventRefused", text, warning=True)
        for event in source.events:
            start = first_start_after(event, int(now) // 3600 * 3600)
            if start is None:
                continue
            if start - now > FAR_SECONDS:
                when = local_time(start, event.starts.time_zone)
                text = (
                    f"Booking {event.name} begins on {when} only, in more than a year: is the year"
                    " right?"
                )
                yield notice("EventFarAway", text, warning=True)
            else:
                yield notice("EventBooked", _confirmation(event, start, settings, source))


def _confirmation(
    event: Event, start: int, settings: BookingSettings, source: BookingSource
) -> str:
    """The text that tells a person that their event is booked. start: Unix time."""
    zone = event.starts.time_zone
    begin = local_time(start - keep_seconds(settings, event, source), zone)
    end = local_time(start + SETTLE_SECONDS, zone)
    image = f" Image {event.image} is brought to their nodes." if event.image else ""
    why_not_seated = ""
    if event.seated is not None:
        if source.hub:
            why_not_seated = "this isn't a booking of the release itself"
        elif not settings.seats_people:
            why_not_seated = "seating.enabled is false"
        elif not reads_source(settings, source):
            why_not_seated = f"seating reads ConfigMap {settings.seated_config_map} alone"
    seated = f" Nobody's server is started before: {why_not_seated}." if why_not_seated else ""
    return (
        f"Booking {event.name} at {local_time(start, zone)}: from {begin} to {end} set"
        f" {event.set_name} has up to {event.people} placeholders more, fewer as people"
        f" come.{image}{seated}"
    )
