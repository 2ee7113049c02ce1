"""Booked events, whatever is booked: bounds of placeholders, and lists of date-times."""

from datetime import datetime, timedelta

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.bookings import (
    SETTLE_SECONDS,
    BookingSettings,
    bookings_at,
    keep_seconds,
)
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.booked import plan_booked
from roost.controllers.headroom.settings import HeadroomSettings
from roost.controllers.runtime.booking_sources import keep_config_map, read_config_map
from roost_core.placement.headroom_windows import unix_time
from roost_core.release.bookings import (
    Event,
    Limits,
    LocalStarts,
    Seated,
    first_start_after,
    parse_events,
)
from roost_core.release.reader import Reader
from tests.builders import NAMESPACE, RELEASE

LIMITS = Limits(("default",), 500)
ZONES = st.sampled_from(
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "America/Sao_Paulo"]
)
FIRST = st.integers(0, 4 * 365 * 86_400).map(
    lambda seconds: datetime.fromisoformat("2024-01-01") + timedelta(0, seconds)
)


EVENTS = st.lists(
    st.builds(
        Event,
        name=st.uuids().map(str),
        people=st.integers(1, 500),
        starts=st.one_of(
            st.builds(LocalStarts, FIRST.map(lambda time: time.strftime("%Y-%m-%dT%H:%M")), ZONES),
            st.builds(
                LocalStarts,
                st.sampled_from(["0 9 * * 2", "*/5 * * * *", "30 2 * * *", "0 0 29 2 *"]),
                ZONES,
            ),
        ),
        image=st.sampled_from(["", "quay.io/me/course:1"]),
        set_name=st.sampled_from(["default", "gpu"]),
        seated=st.sampled_from([None, Seated("bio101")]),
    ),
    max_size=8,
)


def _booking_settings(events: list[Event], lead: int, most: int) -> BookingSettings:
    return BookingSettings(
        booked=tuple(events),
        config_maps=True,
        lead_seconds=60.0 * lead,
        max_placeholders=most,
        concurrent_spawn_limit=64,
        seats_people=True,
        seated_config_map="roost-bookings",
        limits=LIMITS,
    )


@settings(max_examples=150)
@given(
    st.builds(_booking_settings, EVENTS, st.integers(0, 240), st.integers(0, 1000)),
    st.integers(1_700_000_000, 1_830_000_000),
)
def test_placeholders_are_within_bounds_and_change_only_when_it_was_said(
    booked_by: BookingSettings, at: int
) -> None:
    headroom = HeadroomSettings(
        events=booked_by,
        is_user=lambda _pod, _namespaces: False,
        users_namespaces=lambda _namespaces: frozenset({NAMESPACE}),
    )
    most, now = booked_by.max_placeholders, at + 0.25
    snapshot = Snapshot(RELEASE, NAMESPACE)
    booked = plan_booked(snapshot, headroom, now)
    assert 0 <= sum(booked.extra.values()) <= most
    bookings, change = bookings_at(booked_by, {}, now)
    for booking in bookings:
        lead_seconds = keep_seconds(booked_by, booking.event)
        assert lead_seconds >= booked_by.lead_seconds
        assert booking.start - lead_seconds <= now < booking.start + SETTLE_SECONDS
    assert sum(booked.extra.values()) == min(
        most, sum(booking.event.people for booking in bookings)
    )
    if change is None:
        return
    assert change > now
    for share in (0.01, 0.5, 0.99):
        between = now + share * (change - now)
        assert {each.event for each in bookings_at(booked_by, {}, between).bookings} == {
            each.event for each in bookings
        }


TEXTS = st.one_of(
    st.text(max_size=200),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["name", "people"]), inner)
        ),
        max_leaves=8,
    ).map(lambda value: str(yaml.safe_dump(value))),
)


@given(TEXTS)
def test_whatever_a_config_map_says_it_is_read(text: str) -> None:
    data = {"metadata": {"name": "a"}, "data": {"events.yaml": text}}
    source = read_config_map(keep_config_map(data), LIMITS)
    assert all(event.people <= LIMITS.max_people for event in source.events)


@given(st.lists(FIRST, min_size=1, max_size=9), ZONES, st.integers(-400, 400))
def test_listed_date_times_are_those_of_single_events(
    firsts: list[datetime], zone: str, days: int
) -> None:
    texts = [first.strftime("%Y-%m-%dT%H:%M") for first in firsts]
    entry = {"name": "a", "people": 1, "timeZone": zone, "start": texts}
    read = Reader()
    (event,) = parse_events(read, [entry], "", LIMITS)
    assert not read.faults
    moment = unix_time(firsts[0] + timedelta(days=days), zone)
    singles = [LocalStarts(text, zone).first_after(moment) for text in texts]
    expected = min((start for start in singles if start is not None), default=None)
    assert first_start_after(event, moment) == expected
