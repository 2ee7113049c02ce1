"""`roost book`: book so many people for a time, list what is booked, change it and take it back."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

import click

from generator.faults import UsageError, one_line, some
from generator.values.files import read_file
from roost.commands.options import cluster_options
from roost.controllers.contract.bookings import EARLY_SECONDS
from roost_core.kube.client import ClusterError
from roost_core.kube.user_account import connect_as_user
from roost_core.placement.headroom_windows import local_time
from roost_core.placement.labels import base_name, object_name
from roost_core.release.bookings import (
    MOST_NAME,
    SETTLE_MINUTES,
    Event,
    first_start_after,
    hub_limits,
)
from roost_core.release.seating_pace import SEATING_START_SECONDS, seating_seconds
from roost_lab.booking.config_map import Bookings, before_of, line_of, not_checked, people_of
from roost_lab.booking.entry import (
    checked,
    entry_of,
    event_options,
    read_users,
    read_zone,
    with_profile,
)
from roost_lab.booking.exceeded_limits import exceeded_limits
from roost_lab.booking.timetable import (
    TimetableRules,
    WeeklyClass,
    busiest,
    minute_of_week,
    read_first_day,
    read_last_day,
    read_timetable,
)
from roost_lab.calendars.source import MOST_BYTES, CalendarOrder, CalendarSource, is_calendar
from roost_lab.commands.options import refuse

_Classes = Sequence[WeeklyClass]


def _meaning(bookings: Bookings, event: Event, start: int) -> str:
    """What a booking brings, and costs."""
    events = bookings.events
    zone = event.starts.time_zone
    if not events:
        return not_checked(bookings)
    lead = events["leadMinutes"]
    seats = min(event.people, events["maxPlaceholders"])
    early = 0.0
    if event.seated is not None and bookings.seats_people:
        # As the controllers reckon: there is room for the first whose server is started.
        limit = int(events.get("concurrentSpawnLimit") or 0)
        seating = seating_seconds(event.people, limit, SEATING_START_SECONDS)
        early = max(0.0, seating - EARLY_SECONDS)
    text = (
        f"  From {local_time(start - 60 * lead - early, zone)} set {event.set_name} has {seats}"
        " placeholders more"
    )
    if seats < event.people:
        text += " (events.maxPlaceholders)"
    room = bookings.seats(event.set_name)
    if room.per_node:
        nodes = -(-seats // room.per_node)
        text += f": about {nodes} nodes ({room.per_node} a node), {_node_hours(nodes, lead)}"
    # Who is seated comes to no start.
    limits = events if event.seated is None else {**events, "concurrentSpawnLimit": 0}
    misfits = [*hub_limits(event.people, limits)]
    # Whoever books may lack the right to read quotas and pools.
    with suppress(ClusterError):
        misfits += room.misfits(bookings.client, bookings.placed, seats, event.people)
    return f"{text}.\n{_seated(event, bookings)}" + "".join(
        f"  {reason} {fix}\n" for reason, fix in misfits
    )


def _node_hours(nodes: int, lead_minutes: int) -> str:
    """What these nodes cost: they leave when the class begins, or later if nobody comes."""
    if_all = nodes * lead_minutes / 60
    if_nobody = nodes * (lead_minutes + SETTLE_MINUTES) / 60
    return f"{if_all:.1f} node-hours more if all come, {if_nobody:.1f} if nobody does"


def _seated(event: Event, bookings: Bookings) -> str:
    """A sentence on whose servers are started beforehand."""
    if event.seated is None:
        return ""
    seated = event.seated
    profile = f" with profile {seated.profile}" if seated.profile else ""
    people = people_of(seated, " of the hub")
    if not bookings.seats_people:
        why = "the operator sets seating.enabled to true"
        if bookings.has_seating:
            name = bookings.document["seating"].get("bookings")
            why = f"seating reads ConfigMap {name} alone"
        return f"  Nobody's server is started before, of {people} either: {why} (docs/seated.md).\n"
    return (
        f"  Servers of {people}, at most {event.people}, are started before{profile}. Those of"
        " people who don't come are stopped.\n"
    )


@click.command("book")
@event_options
@click.option(
    "--until",
    metavar="DATE",
    default="",
    help="The last day of what recurs, or of a calendar, such as 2027-02-12.",
)
@click.option(
    "--name",
    metavar="NAME",
    default="",
    help="Of the booking; one of that name is changed. Default: WHEN. Of a calendar: its file's.",
)
@click.option(
    "--group",
    metavar="GROUP",
    default="",
    help="Start the servers of this group of the hub before WHEN.",
)
@click.option(
    "--users",
    "users_file",
    metavar="FILE",
    default="",
    help="Start these users' servers before WHEN: a name a line.",
)
@click.option("--cancel", metavar="NAME", default="", help="Take this booking back.")
@click.option(
    "--timetable",
    metavar="FILE",
    default="",
    help="Book weekly classes: CSV, one a line, or a calendar.",
)
@click.option(
    "--calendar",
    metavar="FILE|URL",
    default="",
    help="Book what an iCalendar file says, in place of what it said before.",
)
@click.option(
    "--from", "first", metavar="DATE", default="", help="The timetable's or calendar's first day."
)
@click.option(
    "--config-map",
    metavar="NAME",
    help="That has the bookings. Default: the release's, roost-bookings.",
)
@click.option(
    "--release", metavar="NAME", default="roost", show_default=True, help="Helm's release."
)
@click.option("-n", "--namespace", metavar="NAME", help="Default: the kubeconfig's, else default.")
@cluster_options
def command(
    *,
    people: int | None,
    when: tuple[str, ...],
    name: str,
    cancel: str,
    timetable: str,
    calendar: str,
    first: str,
    users_file: str,
    config_map: str | None,
    release: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    **words: str,
) -> int:
    """Book PEOPLE for WHEN: placeholders and their image are there five minutes before. Without
    them: list bookings.

    WHEN is a time in words, a date-time or a cron expression.

    \b
    roost book 120 tomorrow 9:00 --name "intro lecture" --image quay.io/me/course:1 --namespace jhub
    roost book 120 monday 9:00 --group bio101 --profile course
    roost book 30 every monday,thursday 14:00 --until 2027-02-12 --zone Europe/Berlin
    roost book
    roost book --cancel "intro lecture"
    roost book --timetable classes.csv --zone Europe/Berlin
    roost book --calendar course.ics
    """
    is_listing = people is None and not when
    is_file = bool(timetable or calendar)
    texts = {**words, "name": name, "cancel": cancel, "users": users_file}
    if is_file:
        _refuse_beside_file(timetable, calendar, texts, is_listing=is_listing)
    elif first:
        raise UsageError("found --from without --timetable or --calendar, expected both")
    if not is_listing and cancel:
        raise UsageError("found --cancel beside PEOPLE and WHEN, expected one of them")
    users = read_users(read_file(users_file, MOST_BYTES), users_file) if users_file else []
    names_users = bool(users or words["group"])
    if names_users and is_listing and not is_file:
        raise UsageError("found --group or --users without PEOPLE and WHEN, expected both")
    new = {} if is_listing else entry_of(people, when, name=name, users=users, **words)
    data = read_file(timetable, MOST_BYTES) if timetable else b""
    first_day = read_first_day(first)
    order = None
    if calendar or is_calendar(data):
        order = _calendar_order(calendar or timetable, name, words, first_day)
        data = data or order.source.read()
    now = time.time()
    try:
        client = connect_as_user(kubeconfig, context)
        bookings = Bookings(client, namespace or client.namespace, release, config_map)
        faults: Sequence[str] = ()
        if cancel:
            text = _cancel(bookings, cancel)
        elif order:
            text, faults = _book_calendar(bookings, order, data, now)
        elif timetable:
            # Asked once, or each line of the timetable would report that nobody reads bookings.
            bookings.require_reader()
            rules = TimetableRules(
                file=timetable,
                zone=read_zone(words["zone"]),
                now=now,
                first_day=first_day,
                limits_of=bookings.limits,
                profiles=bookings.document.get("profiles", ()) if bookings.document else None,
            )
            text = _book_timetable(bookings, read_timetable(data, rules), rules)
        elif is_listing:
            text = _list(bookings, now)
        else:
            text = _book(bookings, new, now, is_named=bool(name))
        sys.stdout.write(text)
    except ClusterError as error:
        return refuse("book", error)
    # What is right is booked all the same: one wrong line keeps no lecture from its room.
    return refuse("book", "\n".join(faults), code=1) if faults else 0


def _refuse_beside_file(
    timetable: str, calendar: str, texts: Mapping[str, str], *, is_listing: bool
) -> None:
    """Raises UsageError for what a timetable or a calendar says itself.

    texts: what was given by each option that takes a text; "": it wasn't.
    """
    given = {key for key, text in texts.items() if text}
    if not is_listing:
        given |= {"people", "when"}
    if calendar:
        given.add("calendar")
    if timetable and given - {"zone"}:
        raise UsageError("found --timetable beside what the file says, expected the file alone")
    if calendar and given - {"calendar", "zone", "until", "name"}:
        raise UsageError("found --calendar beside what its events say, expected the calendar alone")


def _cancel(bookings: Bookings, name: str) -> str:
    """Take a booking back. Raises UsageError when there is none of that name, ClusterError."""
    if bookings.entries.pop(name, None) is None:
        known = ", ".join(repr(entry) for entry in bookings.entries) or "none"
        raise UsageError(
            f"--cancel: found no booking {name!r}, expected one of ConfigMap {bookings.name}:"
            f" {known}"
        )
    bookings.write()
    return f"Cancelled: {name}.\n"


def _list(bookings: Bookings, now: float) -> str:
    """What is booked, a line each, and how seating does."""
    lines = []
    for entry in bookings.entries.values():
        try:
            lines.append(line_of(entry, checked(entry, bookings.limits(entry)), now))
        except UsageError as error:
            name = one_line(str(entry["name"]))
            lines.append(f"{one_line(f'{name}: refused: {error}')}\n")
    if not lines:
        lines.append(f"No bookings in ConfigMap {bookings.name}.\n")
    lines += [f"Seating: {line}\n" for line in bookings.seating()]
    return "".join(lines)


def _calendar_order(
    calendar: str, name: str, words: Mapping[str, str], first_day: date | None
) -> CalendarOrder:
    """What is asked for with --calendar. Raises UsageError."""
    source = CalendarSource(calendar)
    if len(name) > MOST_NAME or not name.isprintable():
        expected = f"a name of at most {MOST_NAME} letters"
        raise UsageError(f"--name: found {one_line(name[:MOST_NAME])!r}, expected {expected}")
    if words["zone"]:
        read_zone(words["zone"])
    last_day = read_last_day(words["until"])
    return CalendarOrder(
        source=source,
        name=name or source.name,
        zone=words["zone"],
        first_day=first_day,
        last_day=last_day,
        is_named=bool(name),
    )


def _book_calendar(
    bookings: Bookings, order: CalendarOrder, data: bytes, now: float
) -> tuple[str, Sequence[str]]:
    """What a calendar's bookings mean, and its events' faults. Raises UsageError, ClusterError."""
    try:
        from roost_lab.commands.book_calendar import book_calendar  # noqa: PLC0415 - of an extra
    except ImportError:
        needed = "the package icalendar: install roost-lab[calendar]"
        raise UsageError(f"--calendar needs {needed}") from None
    return book_calendar(bookings, order, data, now)


def _book(bookings: Bookings, entry: dict[str, Any], now: float, *, is_named: bool) -> str:
    """Add a booking or change it; what it means. Raises UsageError, ClusterError."""
    limits = bookings.limits(entry)
    if "profile" in entry and not bookings.document:
        raise UsageError(
            f"--profile: found {entry['profile']!r}, but the ConfigMap of release"
            f" {bookings.release}, which knows profiles, can't be read in namespace"
            f" {bookings.namespace}: say --image and --placeholders instead"
        )
    entry = with_profile(entry, bookings.document.get("profiles", ()))
    event = checked(entry, limits)
    start = first_start_after(event, int(now))
    if start is None:
        here = local_time(now, event.starts.time_zone)
        raise UsageError(
            f"WHEN: found {entry['start']}, which is past, expected a time to come: it is {here}"
        )
    _refuse_calendars(bookings, event.name, "--name")
    before = bookings.entries.get(event.name)
    if before is not None and not is_named:
        raise UsageError(
            f"--name: found a booking {event.name!r} already; --name {event.name!r} changes it,"
            " another name adds one"
        )
    bookings.entries[event.name] = entry
    bookings.forget_past(now)
    bookings.write()
    was = "" if before is None else before_of(before, entry, now)
    head = f"{'Changed' if before else 'Booked'}: {line_of(entry, event, now).rstrip()}{was}"
    return f"{head}.\n{_meaning(bookings, event, start)}"


def _refuse_calendars(bookings: Bookings, name: str, place: str) -> None:
    """Raise UsageError for a calendar's booking: its calendar would book it again, beside this."""
    calendar = bookings.entries.get(name, {}).get("calendar")
    if calendar:
        found = f"found booking {name!r}, which is of calendar {one_line(str(calendar))}"
        raise UsageError(f"{place}: {found}: change it there, or book under another name")


def _book_timetable(bookings: Bookings, classes: _Classes, rules: TimetableRules) -> str:
    """Book all classes of a file; what they mean. Raises UsageError, ClusterError."""
    lines: list[str] = []
    for weekly in classes:
        _refuse_calendars(bookings, weekly.event.name, one_line(rules.file))
    booked = 0
    changed = 0
    for weekly in classes:
        before = bookings.entries.get(weekly.event.name)
        verdict = "As before"
        was = ""
        if before is None:
            verdict = "Booked"
            booked += 1
        elif before != weekly.entry:
            verdict = "Changed"
            was = before_of(before, weekly.entry, rules.now)
            changed += 1
        line = line_of(weekly.entry, weekly.event, rules.now).rstrip()
        lines.append(f"{verdict}: {line}{was}.\n")
        bookings.entries[weekly.event.name] = dict(weekly.entry)
    bookings.forget_past(rules.now)
    if booked or changed:
        bookings.write()
    same = len(classes) - booked - changed
    file = one_line(rules.file)
    lines.append(f"{file}: {booked} booked, {changed} changed, {same} as before.\n")
    lines.append(_week(bookings, classes))
    lines.append(_too_early(classes, rules))
    lines.append(_others(bookings, classes, file))
    return "".join(lines)


def _week(bookings: Bookings, classes: _Classes) -> str:
    """What a week of classes brings, set by set, and costs."""
    events = bookings.events
    if not events:
        return not_checked(bookings)
    lead = events["leadMinutes"]
    most = events["maxPlaceholders"]
    lines: list[str] = []
    misfits: list[tuple[str, str]] = []
    for set_name in sorted({weekly.event.set_name for weekly in classes}):
        of_set = [weekly for weekly in classes if weekly.event.set_name == set_name]
        wanted, minute = busiest(_starts(of_set), lead + SETTLE_MINUTES)
        seats = min(wanted, most)
        head = f"  Set {set_name} has at most {seats} placeholders more at one time"
        room = bookings.seats(set_name)
        cost = ""
        if room.per_node:
            nodes = -(-seats // room.per_node)
            node_turns = 0
            for weekly in of_set:
                class_seats = min(weekly.event.people, most)
                node_turns += -(-class_seats // room.per_node) * len(weekly.weekdays)
            hours = _node_hours(node_turns, lead)
            cost = f": about {nodes} nodes ({room.per_node} a node). A week takes {hours}"
        lines.append(f"{head}, {minute_of_week(minute)}{cost}.\n")
        # Whoever books may lack the right to read quotas and pools.
        with suppress(ClusterError):
            misfits += room.misfits(bookings.client, bookings.placed, seats)
    lines += exceeded_limits(
        _starts(classes),
        lead + SETTLE_MINUTES,
        events,
        misfits,
        request="classes ask",
        later="those",
        show_minute=minute_of_week,
    )
    return "".join(lines)


def _starts(classes: _Classes) -> Sequence[tuple[int, int]]:
    return [start for weekly in classes for start in weekly.starts]


def _too_early(classes: _Classes, rules: TimetableRules) -> str:
    """Which classes begin before the first day: a booking has months, and no first day."""
    starts = [first_start_after(weekly.event, int(rules.now)) for weekly in classes]
    early = [start for start in starts if start is not None and start <= rules.after]
    if not early:
        return ""
    first = local_time(min(early), rules.zone)
    notice = (
        f"Classes that begin before {rules.first_day} (--from): {len(early)}, the first {first}"
    )
    why = "A booking has months, and no first day"
    fix = "To keep no room then, cancel them, and book the file in the week before"
    return f"  {notice}. {why}. {fix}.\n"


def _others(bookings: Bookings, classes: _Classes, file: str) -> str:
    """What stays booked beside the file's classes, and how to take it back."""
    names = {weekly.event.name for weekly in classes}
    others = [name for name in bookings.entries if name not in names]
    if not others:
        return ""
    words = ["roost", "book", "--cancel", others[0], "-n", bookings.namespace]
    if bookings.release != "roost":
        words += ["--release", bookings.release]
    if bookings.name != object_name(base_name(bookings.release), "bookings"):
        words += ["--config-map", bookings.name]
    listed = some([repr(name) for name in others], 10)
    return f"  Not in {file}, and still booked: {listed}. To cancel one: {shlex.join(words)}\n"
