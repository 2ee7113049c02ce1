"""What `roost book` and `roost rehearse` say alike of an event: people, when, with what."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from functools import reduce
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
    """Add what an event is: people, when, image, placeholders, zone."""
    return reduce(
        lambda made, add: add(made),
        (
            click.option("--zone", metavar="ZONE", default="", help="Of WHEN. Default: this machine's, else UTC."),
            click.option("--placeholders", metavar="NAME", default="", help="Of the values. Default: the first."),
            click.option("--image", metavar="IMAGE", default="", help="What they launch, as their pods name it."),
            click.argument("when", nargs=-1),
            click.argument("people", type=int, required=False),
        ),
        command,
    )


def entry_of(
    people: int | None,
    when: Sequence[str],
    *,
    image: str,
    placeholders: str,
    zone: str,
    name: str = "",
    until: str = "",
) -> dict[str, Any]:
    """An entry of `events`. Raises UsageError."""
    if people is None or not when:
        raise UsageError(f"found no PEOPLE and WHEN, expected how many come, and {FORMS}")
    zone = read_zone(zone)
    start = read_when(when, zone, time.time())
    name = name or (start if DATE_TIME.fullmatch(start) else " ".join(when))
    more = {"image": image, "set": placeholders, "until": until}
    entry = {"name": name, "people": people, "start": start, "timeZone": zone}
    return entry | {key: text for key, text in more.items() if text}


def read_zone(zone: str) -> str:
    """A zone's name; without one, this machine's. Raises UsageError."""
    if not zone:
        own = os.environ.get("TZ", "").lstrip(":") or str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
        return own if is_time_zone(own) else "UTC"
    if is_time_zone(zone):
        return zone
    near = get_close_matches(zone, available_timezones(), 1)
    raise UsageError(f"--zone: found {zone!r}, expected {near[0] if near else TIME_ZONE}")


def read_when(words: Sequence[str], zone: str, now: float) -> str:
    """Return a start as `events` reads it: a local date-time, or a cron expression. Raises UsageError."""
    text = " ".join(words)
    if start_fault(text) is None:
        return text
    *days, clock = text.lower().split() or [""]
    match = _CLOCK.fullmatch(clock)
    hour, minute = (int(match[1]), int(match[2] or 0)) if match else (24, 0)
    if match and match[3]:
        hour = hour % 12 + 12 * (match[3] == "pm") if 1 <= hour <= 12 else 24
    local = local_datetime(int(now), zone)
    numbers = [index for part in days[-1].split(",") for index in _weekdays(part)] if days else []
    if hour < 24 and minute < 60 and len(days) == 2 and days[0] == "every" and (numbers or days[1] == "day"):
        return f"{minute} {hour} * * {','.join(str((each + 1) % 7) for each in sorted(numbers)) or '*'}"
    day = None
    if len(days) == 1 and len(numbers) == 1:
        day = local.date() + timedelta((numbers[0] - local.weekday()) % 7)
        if datetime.combine(day, local.min.time()) + timedelta(hours=hour, minutes=minute) <= local:
            day += timedelta(7)
    elif days in (["today"], ["tomorrow"]):
        day = local.date() + timedelta(days == ["tomorrow"])
    elif len(days) == 1 and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", days[0], re.ASCII):
        start = f"{days[0]}T00:00"
        day = date.fromisoformat(days[0]) if start_fault(start) is None else None
    if day is None or hour > 23 or minute > 59:
        raise UsageError(f"WHEN: found {text!r}, expected {FORMS}")
    return f"{day}T{hour:02}:{minute:02}"


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
        names = [fault.key.partition(".")[2] for fault in read.faults]
        raise UsageError(
            "\n".join(
                f"{_OPTIONS.get(name, f'--{name}')}: found {fault.found}, expected {fault.expected}."
                for name, fault in zip(names, read.faults, strict=True)
            )
        )
    return events[0]
