"""What `roost book` and `roost rehearse` say alike of an event: people, when, with what."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import dropwhile
from pathlib import Path
from typing import Any, Final

import click

from generator.faults import UsageError
from roost_core.placement.headroom_windows import (
    DATE_TIME,
    expected_zone,
    is_time_zone,
    local_datetime,
    start_fault,
)
from roost_core.release.bookings import Event, Limits, parse_events
from roost_core.release.reader import Document, Reader, SettingsFault

FORMS: Final = (
    "a time like tomorrow 9:00, tuesday 14:30, 2026-12-01 9:00, every monday,thursday 9am or every"
    " day 8:00"
)
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# A cron expression that `weekly_start` may have written: minute, hour, months, days of the week.
_WEEKLY: Final = re.compile(
    r"(?P<minute>[0-9]{1,2}) (?P<hour>[0-9]{1,2}) \*"
    r" (?P<months>\*|[0-9]{1,2}(?:,[0-9]{1,2})*) (?P<weekdays>\*|[0-7](?:,[0-7])*)",
    re.ASCII,
)
_CLOCK: Final = re.compile(
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?(?P<half>am|pm)?", re.ASCII
)
# Keys of an event, and the options that give them.
_OPTIONS: Final = {
    "timeZone": "--zone",
    "set": "--placeholders",
    "start": "WHEN",
    "people": "PEOPLE",
}


class UnknownProfileError(UsageError):
    """No profile has this name, or none that has it has placeholders on its nodes.

    expected: which profiles there are, in words.
    """

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"--profile: found {found!r}, expected {expected}")
        self.expected = expected


def event_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add what an event is: people, when, profile, image, placeholders, zone."""
    for add in (
        click.option(
            "--zone", metavar="ZONE", default="", help="Of WHEN. Default: this machine's, else UTC."
        ),
        click.option(
            "--placeholders",
            "set",
            metavar="NAME",
            default="",
            help="Of the values. Default: the first.",
        ),
        click.option(
            "--image", metavar="IMAGE", default="", help="What they launch, as their pods name it."
        ),
        click.option(
            "--profile",
            metavar="NAME",
            default="",
            help="What they choose: gives image and placeholders.",
        ),
        click.argument("when", nargs=-1),
        click.argument("people", type=int, required=False),
    ):
        command = add(command)
    return command


def entry_of(
    people: int | None,
    when: Sequence[str],
    *,
    zone: str,
    name: str = "",
    users: Sequence[str] = (),
    **more: str,
) -> dict[str, Any]:
    """An entry of `events`, with `profile` where one is said. more: its other keys.

    Raises UsageError.
    """
    if people is None or not when:
        raise UsageError(f"found no PEOPLE and WHEN, expected how many come, and {FORMS}")
    zone = read_zone(zone)
    start = read_when(when, zone, time.time())
    name = name or (start if DATE_TIME.fullmatch(start) else " ".join(when))
    entry: dict[str, Any] = {"name": name, "people": people, "start": start, "timeZone": zone}
    if users:
        entry["users"] = list(users)
    return entry | {key: text for key, text in more.items() if text}


def with_profile(entry: Mapping[str, Any], profiles: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """An entry of `events`: image and set are its profile's, where it names none. The profile stays
    where people are seated.

    Raises UnknownProfileError. profiles: as `profile_seats` gives them. A profile has two names, in
    any case and with any signs between words.
    """
    event = dict(entry)
    name = event.pop("profile", "")
    if not name:
        return event
    bookable = [profile for profile in profiles if profile["set"] or "set" in event]
    by_slug: dict[str, Mapping[str, Any]] = {}
    for profile in bookable:
        by_slug |= {_slug(str(own_name)): profile for own_name in profile["names"] if own_name}
    chosen = by_slug.get(_slug(name))
    if chosen is None:
        known = ", ".join(repr(profile["names"][0] or profile["names"][1]) for profile in bookable)
        known = known or "singleuser.profileList of Roost's values shows none"
        raise UnknownProfileError(name, f"one whose nodes have placeholders: {known}")
    for key in ("image", "set"):
        if chosen[key]:
            event.setdefault(key, chosen[key])
    if event.get("group") or event.get("users"):
        event["profile"] = _slug_of(chosen["names"])
    return event


def _slug_of(names: Sequence[object]) -> str:
    """The name by which the hub is asked for a profile. Raises UsageError.

    names: display name and slug. Without a slug KubeSpawner makes one of the display name, in a way
    that is certain for ASCII letters only.
    """
    display_name, slug = names
    if slug:
        return str(slug)
    if not str(display_name).isascii():
        raise UsageError(
            f"--profile: found {display_name!r}, which has no slug: give it one in"
            " singleuser.profileList, so that servers can be started with it"
        )
    return _slug(str(display_name))


def read_users(data: bytes, file: str) -> list[str]:
    """The users of a file: a name a line; empty lines and those that begin with # don't count.

    Raises UsageError.
    """
    try:
        lines = [line.strip() for line in data.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise UsageError(f"{file}: found no UTF-8, expected a user's name a line") from None
    names = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not names:
        raise UsageError(f"{file}: found no names, expected a user's name a line")
    for number, line in enumerate(lines, start=1):
        if line in names and re.search(r"[,;\t]", line):
            raise UsageError(f"{file}:{number}: found {line[:60]!r}, expected one user's name")
    return names


def _slug(name: str) -> str:
    return re.sub(r"[\W_]+", "-", name.casefold()).strip("-")


def read_zone(zone: str) -> str:
    """A zone's name; without one, this machine's. Raises UsageError."""
    if not zone:
        for place in (os.environ.get("TZ", "").lstrip(":"), str(Path("/etc/localtime").resolve())):
            name = re.sub(".*/zoneinfo[^/]*/", "", place)
            if is_time_zone(name):
                return name
        return "UTC"
    if is_time_zone(zone):
        return zone
    raise UsageError(f"--zone: found {zone!r}, expected {expected_zone(zone)}")


def read_when(words: Sequence[str], zone: str, now: float) -> str:
    """Return a start as `events` reads it: a local date-time, or a cron expression.

    Raises UsageError.
    """
    text = " ".join(words)
    if start_fault(text) is None:
        return text
    start = _read_spoken(text.lower().split(), local_datetime(int(now), zone))
    if start is None or start_fault(start) is not None:
        raise UsageError(f"WHEN: found {text!r}, expected {FORMS}")
    return start


def _read_spoken(words: Sequence[str], now: datetime) -> str | None:
    """A start such as `tomorrow 9:00` or `every monday 9am`, as `events` reads it.

    None: the words aren't a day and a time. A day that isn't known stays as it is written.
    """
    if len(words) < 2:
        return None
    *leading, day, time_of_day = words
    clock = read_clock(time_of_day)
    if clock is None:
        return None
    hour, minute = clock
    weekdays = [index for name in day.split(",") for index in read_weekdays(name)]
    if leading == ["every"] and (weekdays or day == "day"):
        return weekly_start(weekdays, hour, minute)
    if leading:
        return None
    if day == "today":
        day = f"{now.date()}"
    elif day == "tomorrow":
        day = f"{now.date() + timedelta(days=1)}"
    elif len(weekdays) == 1:
        time_has_passed = (hour, minute) <= (now.hour, now.minute)
        days = _days_until(weekdays[0], now, time_has_passed=time_has_passed)
        day = f"{now.date() + timedelta(days)}"
    return f"{day}T{hour:02}:{minute:02}"


def _days_until(weekday: int, now: datetime, *, time_has_passed: bool) -> int:
    """How many days it is to the next such weekday; today's counts until its time has passed."""
    days = (weekday - now.weekday()) % 7
    if days == 0 and time_has_passed:
        days = 7
    return days


def read_clock(text: str) -> tuple[int, int] | None:
    """Hour and minute of a time of day such as 8:15, 08:15, 8 or 8:15pm; None: it isn't one."""
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return None
    hour = int(clock["hour"])
    minute = int(clock["minute"] or 0)
    if clock["half"]:
        if hour > 12:
            return None
        # 12am is midnight, 12pm noon.
        hour = hour % 12 + (12 if clock["half"] == "pm" else 0)
    return (hour, minute) if hour < 24 and minute < 60 else None


def read_weekdays(text: str) -> list[int]:
    """The days that a word means, from Monday (0) on: `mon` is [0], `weekday` all five.

    A day's name needs three letters or more; of any other word it is [].
    """
    if text == "weekday":
        return [0, 1, 2, 3, 4]
    if len(text) < 3:
        return []
    return [index for index, name in enumerate(WEEKDAYS) if name.startswith(text)]


def weekly_start(weekdays: Iterable[int], hour: int, minute: int, months: str = "*") -> str:
    """A cron expression of these days of the week, from Monday (0) on; none: of each day.

    months: the expression's field of months.
    """
    days = ",".join(str((day + 1) % 7) for day in sorted(weekdays)) or "*"
    return f"{minute} {hour} * {months} {days}"


def repeats_in_words(start: str, until: str, today: date) -> str:
    """When a booking comes again: `every Monday 08:15 until 2027-02-12`.

    start: a cron expression. Where its months leave out some weeks until then, or where it isn't
    weekly, it stays as it is written. until: the last day; "": it goes on.
    """
    weekly = _WEEKLY.fullmatch(start)
    text = start
    if weekly is not None and _has_no_gap(weekly["months"], until, today):
        clock = f"{int(weekly['hour']):02}:{int(weekly['minute']):02}"
        text = f"every {_days_in_words(weekly['weekdays'])} {clock}"
    return f"{text} until {until}" if until else text


def _days_in_words(field: str) -> str:
    """Cron's field of weekdays: `Monday and Thursday`, `weekday` or `day`."""
    # In cron Sunday is 0, or 7.
    days = sorted({(int(day) - 1) % 7 for day in field.split(",")}) if field != "*" else []
    if days == [0, 1, 2, 3, 4]:
        return "weekday"
    if len(days) in (0, 7):
        return "day"
    *names, last = [WEEKDAYS[day].capitalize() for day in days]
    return f"{', '.join(names)} and {last}" if names else last


def _has_no_gap(months: str, until: str, today: date) -> bool:
    """Whether cron's field of months has every month from its next one to that of the last day."""
    if months == "*":
        return True
    try:
        last = date.fromisoformat(until)
    except ValueError:
        return False
    listed = {int(month) for month in months.split(",")}
    # Months since the year 0.
    this_month = 12 * today.year + today.month - 1
    last_month = 12 * last.year + last.month - 1
    is_listed = [month % 12 + 1 in listed for month in range(this_month, last_month + 1)]
    from_next_on = list(dropwhile(lambda has_it: not has_it, is_listed))
    return bool(from_next_on) and all(from_next_on)


def checked(entry: Mapping[str, Any], limits: Limits) -> Event:
    """The event of an entry of `events`.

    Raises UsageError with every fault, by the option that gives it.
    """
    event, faults = read_entry(entry, limits)
    if event is None:
        by_option = [
            replace(fault, key=_OPTIONS.get(fault.key, f"--{fault.key}")) for fault in faults
        ]
        raise UsageError("\n".join(str(fault) for fault in by_option))
    return event


def read_entry(entry: Document, limits: Limits) -> tuple[Event | None, list[SettingsFault]]:
    """The event of an entry of `events`; None beside its faults, whose keys are the entry's."""
    read = Reader()
    events = parse_events(read, [dict(entry)], "", limits)
    faults = [replace(fault, key=fault.key.partition(".")[2]) for fault in read.faults]
    return (None if faults else events[0]), faults
