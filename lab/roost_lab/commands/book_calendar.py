"""`roost book --calendar`: a calendar's events become bookings, and follow it when it changes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from generator.faults import UsageError, one_line, some
from roost_core.kube.client import ClusterError
from roost_core.placement.headroom_windows import local_time
from roost_core.release.bookings import SETTLE_MINUTES, Event, ListedStarts, first_start_after
from roost_lab.booking.config_map import Bookings, before_of, line_of, not_checked
from roost_lab.booking.entry import checked, read_zone
from roost_lab.booking.exceeded_limits import exceeded_limits
from roost_lab.booking.timetable import busiest
from roost_lab.calendars.reader import CalendarBooking, CalendarRules, Reading, read_calendar
from roost_lab.calendars.source import CalendarOrder


def book_calendar(
    bookings: Bookings, order: CalendarOrder, data: bytes, now: float
) -> tuple[str, Sequence[str]]:
    """Book what a calendar says; what that means, and the faults of events that are left out.

    Raises UsageError, ClusterError.
    """
    # Asked once, or each event would report that nobody reads bookings.
    bookings.require_reader()
    held = len(bookings.entries)
    # What is over isn't cancelled.
    bookings.forget_past(now)
    since, until = order.span(now)
    rules = CalendarRules(
        name=order.name,
        source=order.source.shown,
        zone=order.zone,
        since=since,
        until=until,
        limits_of=bookings.limits,
        taken=frozenset(bookings.entries) - frozenset(_names_of(bookings, order.name)),
    )
    reading = read_calendar(data, rules)
    if not (order.is_named or order.source.is_address):
        _refuse_another(bookings, reading, rules)
    is_stale = len(bookings.entries) < held
    return _replace(bookings, reading, rules, now, is_stale=is_stale), reading.faults


def _refuse_another(bookings: Bookings, reading: Reading, rules: CalendarRules) -> None:
    """Raise UsageError for a file that has nothing of what the calendar of its name had.

    Google exports each calendar as basic.ics.
    """
    before = _names_of(bookings, rules.name)
    booked = {booking.event.name for booking in reading.bookings}
    if not before or any(name in booked or _may_be_of(name, reading.faulty) for name in before):
        return
    names = some([repr(name) for name in before])
    raise UsageError(
        f"{rules.source}: found none of the bookings that a file of this name made ({names}),"
        f" expected some of them. If it is another calendar, say --name and a name of its own. If"
        f" it is to replace them, say --name {shlex.quote(rules.name)}. Nothing was changed"
    )


def _replace(
    bookings: Bookings, reading: Reading, rules: CalendarRules, now: float, *, is_stale: bool
) -> str:
    """Book what a calendar says in place of what it said before; what that means.

    Bookings that aren't this calendar's stay as they are. is_stale: the ConfigMap has others than
    `bookings`. Raises UsageError, ClusterError.
    """
    before = {name: bookings.entries[name] for name in _names_of(bookings, rules.name)}
    lines: list[str] = []
    changes = dict.fromkeys(("booked", "changed", "as before", "cancelled"), 0)
    for booking in reading.bookings:
        was = before.pop(booking.event.name, None)
        verdict = "changed"
        if was is None:
            verdict = "booked"
        elif was == booking.entry:
            verdict = "as before"
        changes[verdict] += 1
        line = line_of(booking.entry, booking.event, now).rstrip()
        more = ""
        if was is not None and verdict == "changed":
            more = before_of(was, booking.entry, now)
        lines.append(f"{verdict.capitalize()}: {line}{more}.\n")
        bookings.entries[booking.event.name] = dict(booking.entry)
    kept = [name for name in before if _may_be_of(name, reading.faulty)]
    for name in kept:
        shown = _shown(bookings, before.pop(name), now)
        lines.append(f"Kept as it was: {shown}. Its event has a fault.\n")
    for name in before:
        changes["cancelled"] += 1
        gone = one_line(name)
        lines.append(f"Cancelled: {gone}, which the calendar doesn't have any more.\n")
        del bookings.entries[name]
    has_changes = any(changes[verdict] for verdict in ("booked", "changed", "cancelled"))
    if is_stale or has_changes:
        bookings.write()
    if kept:
        changes["kept"] = len(kept)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in changes.items())
    lines.append(f"{rules.source}: {counts}.\n")
    if reading.bookings:
        lines.append(_meaning(bookings, reading.bookings))
    else:
        lines.append(_nothing(reading, rules))
    return "".join(lines)


def _may_be_of(name: str, summaries: frozenset[str]) -> bool:
    """Whether one of these events may have this booking: a number may stand behind its summary."""
    summary, _, number = name.rpartition(" ")
    return name in summaries or (number.isdecimal() and summary in summaries)


def _shown(bookings: Bookings, entry: Mapping[str, Any], now: float) -> str:
    """A booking that is there, in a line; its name alone where it isn't as it should be."""
    try:
        return line_of(entry, checked(entry, bookings.limits(entry)), now).rstrip()
    except UsageError:
        return one_line(str(entry["name"]))


def _names_of(bookings: Bookings, calendar: str) -> Sequence[str]:
    """Names of the bookings that a calendar of this name made."""
    return [name for name, entry in bookings.entries.items() if entry.get("calendar") == calendar]


def _nothing(reading: Reading, rules: CalendarRules) -> str:
    """Why a calendar books nothing."""
    if not reading.with_people:
        none = f"No event of {rules.source} that takes place has people in its description"
        return f"  {none}. Write a line such as people: 120 there.\n"
    have = "event has" if reading.with_people == 1 else "events have"
    if reading.faults:
        return f"  {reading.with_people} {have} people, and none is booked: see the faults.\n"
    zone = read_zone(rules.zone)
    since = local_time(rules.since, zone)
    until = local_time(rules.until, zone)
    return f"  {reading.with_people} {have} people, none begins between {since} and {until}.\n"


def _meaning(bookings: Bookings, booked: Sequence[CalendarBooking]) -> str:
    """What a calendar's bookings bring, set by set."""
    events = bookings.events
    if not events:
        return not_checked(bookings)
    minutes = events["leadMinutes"] + SETTLE_MINUTES
    most = events["maxPlaceholders"]
    zone = booked[0].event.starts.time_zone
    lines: list[str] = []
    misfits: list[tuple[str, str]] = []
    for set_name in sorted({booking.event.set_name for booking in booked}):
        of_set = [booking.event for booking in booked if booking.event.set_name == set_name]
        wanted, minute = busiest(_minutes(of_set), minutes)
        seats = min(wanted, most)
        room = bookings.seats(set_name)
        nodes = ""
        if room.per_node:
            nodes = f": about {-(-seats // room.per_node)} nodes ({room.per_node} a node)"
        when = local_time(60 * minute, zone)
        lines.append(
            f"  Set {set_name} has at most {seats} placeholders more at one time, {when}{nodes}.\n"
        )
        # Whoever books may lack the right to read quotas and pools.
        with suppress(ClusterError):
            misfits += room.misfits(bookings.client, bookings.placed, seats)
    every = [booking.event for booking in booked]
    lines += exceeded_limits(
        _minutes(every),
        minutes,
        events,
        misfits,
        request="the calendar asks",
        later="events",
        show_minute=lambda minute: local_time(60 * minute, zone),
    )
    return "".join(lines)


def _minutes(events: Sequence[Event]) -> Sequence[tuple[int, int]]:
    """When events begin, in minutes since 1970, and how many people come."""
    starts: list[tuple[int, int]] = []
    for event in events:
        single = first_start_after(event, 0)
        listed = event.starts.moments if isinstance(event.starts, ListedStarts) else (single,)
        starts += [(moment // 60, event.people) for moment in listed if moment is not None]
    return starts
