"""How many placeholders booked events need now, beside those of the windows: as many as people have
yet to come.
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
from roost.controllers.headroom.quota_room import CutElsewhere, joint_cut, rooms_for_people
from roost.controllers.headroom.settings import HeadroomSettings
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.headroom_windows import local_time
from roost_core.release.bookings import Event, first_start_after

# While people come, their placeholders follow so fast.
FOLLOW_SECONDS: Final = 10.0
# The year of an event that begins later is a mistake, more likely than not.
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
    bookings = current.bookings
    seconds_left = None
    if current.next_change is not None:
        seconds_left = max(0.0, current.next_change - now)
    if not bookings:
        return Booked(seconds_left=seconds_left)
    coming = [
        _Coming(booking, booking.event.people - arrived)
        for booking, arrived in zip(bookings, _arrived(bookings, snapshot, settings), strict=True)
    ]
    extra: dict[str, int] = {}
    people = Counter[str]()
    why: dict[str, list[str]] = {}
    # Placeholders that the people of each hub need, as far as quotas let them come.
    needs = Counter[str]()
    for booking, yet_to_come in coming:
        needs[booking.hub] += yet_to_come
    # What the release's own namespace leaves is looked at with all that is there.
    elsewhere = needs.keys() - {"", snapshot.namespace}
    rooms = rooms_for_people(elsewhere, snapshot, settings)
    asks: dict[str, str] = {}
    for hub, room in sorted(rooms.items()):
        asks[hub] = room.why_and_ask(needs[hub] - room.people)
        needs[hub] = min(needs[hub], room.people)
    shares = share_out(needs, events.max_placeholders)
    left = dict(shares)
    quota_cut: dict[str, CutElsewhere] = {}
    for booking, yet_to_come in coming:
        event = booking.event
        granted = min(left[booking.hub], yet_to_come)
        left[booking.hub] -= granted
        extra[event.set_name] = extra.get(event.set_name, 0) + granted
        if booking.hub in ("", snapshot.namespace):
            people[event.set_name] += yet_to_come
        cut = ""
        lost = yet_to_come - granted
        if lost:
            cut = ", as many as events.maxPlaceholders allows"
            hub = booking.hub
            # A share that fills the quota's room: events.maxPlaceholders allows as many or more.
            is_cut_by_quota = hub in rooms and shares[hub] == rooms[hub].people
            if is_cut_by_quota:
                quotas_room = rooms[hub]
                cut = f", as many as {quotas_room.why}"
                quota_cut[event.set_name] = joint_cut(
                    quota_cut.get(event.set_name), CutElsewhere(lost, quotas_room.people, asks[hub])
                )
        at = local_time(booking.start, event.starts.time_zone)
        why.setdefault(event.set_name, []).append(
            f"event {event.name} at {at} with {event.people} people{cut}"
        )
    seconds_left = FOLLOW_SECONDS if seconds_left is None else min(seconds_left, FOLLOW_SECONDS)
    texts = {name: " and ".join(reasons) for name, reasons in why.items()}
    return Booked(extra, people, quota_cut, texts, seconds_left)


def share_out(needs: Mapping[str, int], total: int) -> dict[str, int]:
    """Divide so many placeholders among hubs: each gets what it needs, or as much as any other that
    needs more.
    """
    shares: dict[str, int] = {}
    for number, (hub, need) in enumerate(
        sorted(needs.items(), key=lambda item: (item[1], item[0]))
    ):
        shares[hub] = min(need, total // (len(needs) - number))
        total -= shares[hub]
    return shares


def _arrived(
    bookings: Sequence[Booking], snapshot: Snapshot, settings: HeadroomSettings
) -> list[int]:
    """How many people of each booking have come; nobody counts twice, and those with its image
    count first.
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
    return arrived


def booking_notices(snapshot: Snapshot, settings: BookingSettings, now: float) -> Iterator[Notice]:
    """Tell who wrote a ConfigMap what became of each of its events."""
    for _, source in sorted(snapshot.bookings.items()):
        tell = partial(
            Notice, "ConfigMap", source.hub or snapshot.namespace, source.name, source.uid
        )
        if source.is_unread:
            text = (
                "Reading bookings took too long of the last minute. This one counts as it was, and"
                " is read later."
            )
            yield tell("EventsNotRead", text, warning=True)
        for fault in source.faults:
            text = f"{fault} It is left out; other bookings count."
            yield tell("EventRefused", text, warning=True)
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
                yield tell("EventFarAway", text, warning=True)
            else:
                yield tell("EventBooked", _confirmation(event, start, settings, source))


def _confirmation(
    event: Event, start: int, settings: BookingSettings, source: BookingSource
) -> str:
    """What whoever booked an event reads of it."""
    zone = event.starts.time_zone
    begin = local_time(start - keep_seconds(settings, event, source), zone)
    end = local_time(start + SETTLE_SECONDS, zone)
    image = f" Image {event.image} is brought to their nodes." if event.image else ""
    seated = ""
    if event.seated is not None:
        why = ""
        if source.hub:
            why = "this isn't a booking of the release itself"
        elif not settings.seats_people:
            why = "seating.enabled is false"
        elif not reads_source(settings, source):
            why = f"seating reads ConfigMap {settings.seated_config_map} alone"
        seated = f" Nobody's server is started before: {why}." if why else ""
    return (
        f"Booking {event.name} at {local_time(start, zone)}: from {begin} to {end} set"
        f" {event.set_name} has up to {event.people} placeholders more, fewer as people"
        f" come.{image}{seated}"
    )
