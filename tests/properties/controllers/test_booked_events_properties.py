"""Booked events, whatever is booked: calendars against python-dateutil, and bounds of
placeholders.
"""

from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.contract.bookings import BookingSettings, bookings_at
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.booked import plan_booked
from roost.controllers.headroom.settings import HeadroomSettings
from roost.controllers.runtime.booking_sources import keep_config_map, read_config_map
from roost.controllers.runtime.calendars import parse_calendar
from roost_core.placement.headroom_windows import unix_time
from roost_core.release.events import Event, Limits, LocalStarts, first_start_after
from roost_core.release.reader import Reader
from tests.builders import NAMESPACE, RELEASE

# It carries no types. The Kubernetes client needs it, so it is there.
RRULE: Any = import_module("dateutil.rrule")
LIMITS = Limits(("default",), 500)
ZONES = st.sampled_from(
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "America/Sao_Paulo"]
)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FIRST = st.integers(0, 4 * 365 * 86_400).map(
    lambda seconds: datetime.fromisoformat("2024-01-01") + timedelta(0, seconds)
)


@st.composite
def _rules(draw: st.DrawFn, first: datetime) -> str:
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY"]))
    weekly = frequency == "WEEKLY"
    parts = [f"FREQ={frequency}"]
    if draw(st.booleans()):
        parts.append(f"INTERVAL={draw(st.integers(1, 5))}")
    # On some days alone only every day can be.
    if (weekly or parts == ["FREQ=DAILY"]) and draw(st.booleans()):
        # The first must be one of its own days: RFC 5545 leaves open what else it means.
        days = draw(st.sets(st.integers(0, 6))) | {first.weekday()}
        parts.append(f"BYDAY={','.join(DAYS[day] for day in days)}")
    if frequency == "MONTHLY":
        dates = draw(st.lists(st.integers(-31, 31).filter(bool), max_size=3))
        parts += [f"BYMONTHDAY={','.join(map(str, dates))}"] if dates else []
        # RFC 5545 leaves open what both together mean.
        ordinals = draw(st.sampled_from([st.just(0), st.integers(-5, 5).filter(bool)]))
        weekdays = draw(st.lists(st.tuples(ordinals, st.sampled_from(DAYS)), max_size=3))
        parts += (
            [f"BYDAY={','.join(f'{number or str()}{day}' for number, day in weekdays)}"]
            if weekdays
            else []
        )
        places = draw(st.lists(st.integers(-4, 4).filter(bool), max_size=2))
        parts += (
            [f"BYSETPOS={','.join(map(str, places))}"] if places and (dates or weekdays) else []
        )
    if weekly and draw(st.booleans()):
        parts.append(f"WKST={draw(st.sampled_from(DAYS))}")
    end = draw(st.sampled_from(["", "COUNT", "UNTIL"]))
    if end == "COUNT":
        parts.append(f"COUNT={draw(st.integers(1, 40))}")
    if end == "UNTIL":
        parts.append(f"UNTIL={first + timedelta(days=draw(st.integers(0, 300))):%Y%m%dT%H%M%S}")
    return ";".join(parts)


def _calendar(first: datetime, zone: str, rule: str) -> Event:
    lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:lecture", "DESCRIPTION:people: 9"]
    lines += [
        f"DTSTART;TZID={zone}:{first:%Y%m%dT%H%M%S}",
        f"RRULE:{rule}",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    read = Reader()
    events = parse_calendar(read, "\r\n".join(lines), "a.ics", LIMITS)
    assert not read.faults
    # One that never begins is none.
    return events[0] if events else Event("never", 9, LocalStarts("1970-01-01T00:00", "UTC"))


@settings(max_examples=150)
@given(st.data(), FIRST, ZONES, st.integers(-40, 900))
def test_recurrences_are_dateutils_in_local_time(
    data: st.DataObject, first: datetime, zone: str, days: int
) -> None:
    rule = data.draw(_rules(first))
    event = _calendar(first, zone, rule)
    after = unix_time(first + timedelta(days=days), zone)
    found = []
    moment = after
    for _ in range(6):
        if (start := first_start_after(event, moment)) is None:
            break
        found.append(start)
        moment = start
    expected = []
    for local in RRULE.rrulestr(rule, dtstart=first):
        # Two times of one clock change count once.
        if (time := unix_time(local, zone)) > after and time not in expected:
            expected.append(time)
        if len(expected) == 6:
            break
    assert found == expected


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
    ),
    max_size=8,
)


def _booking_settings(events: list[Event], lead: int, settle: int, most: int) -> BookingSettings:
    return BookingSettings(
        booked=tuple(events),
        config_maps=True,
        calendar_url="",
        lead_seconds=60.0 * lead,
        settle_seconds=60.0 * settle,
        max_placeholders=most,
        limits=LIMITS,
    )


@settings(max_examples=150)
@given(
    st.builds(
        _booking_settings, EVENTS, st.integers(0, 240), st.integers(1, 240), st.integers(0, 1000)
    ),
    st.integers(1_700_000_000, 1_830_000_000),
)
def test_placeholders_are_within_bounds_and_change_only_when_it_was_said(
    booked_by: BookingSettings, at: int
) -> None:
    headroom = HeadroomSettings(events=booked_by, is_user=lambda _pod, _namespaces: False)
    most, now = booked_by.max_placeholders, at + 0.25
    snapshot = Snapshot(RELEASE, NAMESPACE)
    booked = plan_booked(snapshot, headroom, now)
    assert 0 <= sum(booked.extra.values()) <= most
    bookings, change = bookings_at(booked_by, {}, now)
    for booking in bookings:
        assert (
            booking.start - booked_by.lead_seconds <= now < booking.start + booked_by.settle_seconds
        )
    assert sum(booked.extra.values()) == min(
        most, sum(booking.event.people for booking in bookings)
    )
    if change is None:
        return
    assert change > now
    for share in (0.01, 0.5, 0.99):
        between = now + share * (change - now)
        assert {each.event for each in bookings_at(booked_by, {}, between)[0]} == {
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


@given(TEXTS, st.sampled_from(["events.yaml", "a.ics"]))
def test_whatever_a_config_map_says_it_is_read_and_the_rest_counts(text: str, key: str) -> None:
    good = '[{name: lecture, people: 9, start: "2026-11-24T09:00", timeZone: UTC}]'
    calendar = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDESCRIPTION:people: 9\nDTSTART:20261124T090000Z\n"
    data = {"events.yaml": good, "z.ics": f"{calendar}{text}\nEND:VEVENT\nEND:VCALENDAR", key: text}
    source = read_config_map(keep_config_map({"metadata": {"name": "a"}, "data": data}), LIMITS)
    # What is beside the text counts, and a text that is no list of events or no calendar is told.
    if key == "a.ics":
        assert "lecture" in [event.name for event in source.events]
        assert source.faults
