"""What `roost book` and `roost rehearse` say alike of an event: people, when, with what."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from zoneinfo import available_timezones

import click

from generator.faults import UsageError
from roost_core.placement.headroom_windows import DATE_TIME, TIME_ZONE, is_time_zone, local_datetime, start_fault
from roost_core.release.events import Event, Limits, parse_events
from roost_core.release.reader import Reader

FORMS: Final = "a time like tomorrow 9:00, tuesday 14:30, 2026-12-01 9:00, every monday,thursday 9am or every day 8:00"
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK: Final = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?(am|pm)?", re.ASCII)
# Keys of an event, and the options that give them.
_OPTIONS: Final = {"timeZone": "--zone", "set": "--placeholders", "start": "WHEN", "people": "PEOPLE"}


def event_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add what an event is: people, when, profile, image, placeholders, zone."""
    for add in (
        click.option("--zone", metavar="ZONE", default="", help="Of WHEN. Default: this machine's, else UTC."),
        click.option("--placeholders", "set", metavar="NAME", default="", help="Of the values. Default: the first."),
        click.option("--image", metavar="IMAGE", default="", help="What they launch, as their pods name it."),
        click.option("--profile", metavar="NAME", default="", help="What they choose: gives image and placeholders."),
        click.argument("when", nargs=-1),
        click.argument("people", type=int, required=False),
    ):
        command = add(command)
    return command


def entry_of(people: int | None, when: Sequence[str], *, zone: str, name: str = "", **more: str) -> dict[str, Any]:
    """An entry of `events`, with `profile` where one is said. more: its other keys. Raises UsageError."""
    if people is None or not when:
        raise UsageError(f"found no PEOPLE and WHEN, expected how many come, and {FORMS}")
    zone = read_zone(zone)
    start = read_when(when, zone, time.time())
    name = name or (start if DATE_TIME.fullmatch(start) else " ".join(when))
    entry = {"name": name, "people": people, "start": start, "timeZone": zone}
    return entry | {key: text for key, text in more.items() if text}


def with_profile(entry: Mapping[str, Any], profiles: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """An entry of `events`: image and set are its profile's, where it names none. Raises UsageError.

    profiles: as `profile_seats` gives them. A profile has two names, in any case and with any signs between words.
    """
    event = dict(entry)
    if wanted := event.pop("profile", ""):
        fit = [one for one in profiles if one["set"] or "set" in event]
        found = {_slug(str(name)): one for one in fit for name in one["names"] if name}.get(_slug(wanted))
        if found is None:
            known = ", ".join(repr(one["names"][0] or one["names"][1]) for one in fit)
            known = known or "singleuser.profileList of Roost's values shows none"
            raise UsageError(f"--profile: found {wanted!r}, expected one whose nodes have placeholders: {known}")
        event |= {key: found[key] for key in ("image", "set") if found[key] and key not in event}
    return event


def _slug(name: str) -> str:
    return re.sub(r"[\W_]+", "-", name.casefold()).strip("-")


def read_zone(zone: str) -> str:
    """A zone's name; without one, this machine's. Raises UsageError."""
    if not zone:
        own = (os.environ.get("TZ", "").lstrip(":"), str(Path("/etc/localtime").resolve()))
        return next(filter(is_time_zone, (re.sub(".*/zoneinfo[^/]*/", "", each) for each in own)), "UTC")
    if is_time_zone(zone):
        return zone
    near = get_close_matches(zone, available_timezones(), 1)
    raise UsageError(f"--zone: found {zone!r}, expected {near[0] if near else TIME_ZONE}")


def read_when(words: Sequence[str], zone: str, now: float) -> str:
    """Return a start as `events` reads it: a local date-time, or a cron expression. Raises UsageError."""
    text = " ".join(words)
    if start_fault(text) is None:
        return text
    *rest, day, last = ["", "", *text.lower().split()]
    clock = _CLOCK.fullmatch(last)
    hour, minute = (int(clock[1]), int(clock[2] or 0)) if clock else (99, 0)
    if clock and clock[3]:
        hour = hour % 12 + 12 * (clock[3] == "pm") if hour <= 12 else 99
    local = local_datetime(int(now), zone)
    numbers = [index for part in day.split(",") for index in _weekdays(part)]
    if rest == ["", "", "every"] and (numbers or day == "day"):
        start = f"{minute} {hour} * * {','.join(str((each + 1) % 7) for each in sorted(numbers)) or '*'}"
    else:
        days = {"today": 0, "tomorrow": 1}.get(day)
        if len(numbers) == 1:
            days = (numbers[0] - local.weekday()) % 7 or 7 * (f"{hour:02}:{minute:02}" <= f"{local:%H:%M}")
        start = f"{day if days is None else local.date() + timedelta(days)}T{hour:02}:{minute:02}"
    if start_fault(start) is not None or len(rest) - (" " in start) > 2:
        raise UsageError(f"WHEN: found {text!r}, expected {FORMS}")
    return start


def _weekdays(text: str) -> list[int]:
    """The day that a word of three letters or more begins, as a number from Monday on; weekday: all five."""
    if text == "weekday":
        return [0, 1, 2, 3, 4]
    return [index for index, name in enumerate(_DAYS) if len(text) >= 3 and name.startswith(text)]


def checked(entry: Mapping[str, Any], limits: Limits) -> Event:
    """The event of an entry of `events`. Raises UsageError with every fault, by the option that gives it."""
    read = Reader()
    events = parse_events(read, [dict(entry)], "", limits)
    if read.faults:
        said = (
            (fault.key.partition(".")[2], f"found {fault.found}, expected {fault.expected}") for fault in read.faults
        )
        raise UsageError("\n".join(f"{_OPTIONS.get(name, f'--{name}')}: {text}." for name, text in said))
    return events[0]
