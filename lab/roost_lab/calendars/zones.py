"""Find the zone that a calendar's TZID means: of the IANA database, or the calendar's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

import icalendar
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from roost_core.placement.headroom_windows import is_time_zone

# Windows has them since 2026, and icalendar 7.3 doesn't.
_NEW_WINDOWS_ZONES: Final = {
    "Alberta Standard Time": "America/Edmonton",
    "British Columbia Standard Time": "America/Vancouver",
    "Manitoba Standard Time": "America/Winnipeg",
}
# By Windows' name, in small letters.
WINDOWS_ZONES: Final = {
    name.lower(): zone for name, zone in (WINDOWS_TO_OLSON | _NEW_WINDOWS_ZONES).items()
}
# As Outlook shows one: (UTC+01:00) Amsterdam, Berlin; (UTC-05:00) Eastern Time (US & Canada); (UTC)
# Dublin, London.
_SHOWN: Final = re.compile(
    r"\((?:UTC|GMT)([+-][01][0-9]:[0-5][0-9])?\) *([^(]+?)(?: Time \(.*)?", re.ASCII
)
_LINE_ENDS: Final = re.compile(r"(?:\r?\n)+")
_FOLD: Final = re.compile(r"\n[ \t]")
_MOST_PLACES: Final = 9
# A TZID is short. No pattern is tried on one that isn't.
_MOST_LETTERS: Final = 200


class Zones:
    """The zones of one calendar."""

    def __init__(self, blocks: Mapping[str, str], floating: str) -> None:
        """blocks: by TZID the lines of a VTIMEZONE. floating: of times without one; "": none."""
        self._blocks = blocks
        self._floating = floating
        self._known: dict[str, tzinfo | None] = {}

    def find(self, named: str) -> tzinfo | None:
        """The zone of a time; None: it isn't known. named: its TZID; "": it has none."""
        if named not in self._known:
            zone = find_zone(named) if named else self._floating
            self._known[named] = ZoneInfo(zone) if zone else self._own(named)
        return self._known[named]

    def _own(self, named: str) -> tzinfo | None:
        """A zone that the calendar defines, or whose program says its name in the database."""
        block = self._blocks.get(named, "")
        for line in block.split("\n"):
            key, _, value = line.partition(":")
            location = find_zone(value) if key.upper() == "X-LIC-LOCATION" else ""
            if location:
                return ZoneInfo(location)
        try:
            calendar = icalendar.Calendar.from_ical(f"BEGIN:VCALENDAR\n{block}END:VCALENDAR\n")
            return next((zone.to_tz() for zone in calendar.timezones), None)
        except Exception:  # noqa: BLE001 - a stranger's zone, in a library
            return None


def take_zones(text: str) -> tuple[str, Mapping[str, str]]:
    """A calendar's unfolded lines without its VTIMEZONEs, and these by TZID. Some are faulty, and
    few are used.
    """
    lines: list[str] = []
    blocks: dict[str, str] = {}
    block: list[str] = []
    named = ""
    is_in_event = False
    for line in _unfolded(text).split("\n"):
        word = line.upper()
        if word in ("BEGIN:VEVENT", "END:VEVENT"):
            is_in_event = word == "BEGIN:VEVENT"
        if word == "BEGIN:VTIMEZONE" and not is_in_event:
            block = [line]
            named = ""
        elif not block:
            lines.append(line)
        else:
            block.append(line)
            if word.startswith("TZID"):
                named = line.partition(":")[2].strip().strip('"')
            if word == "END:VTIMEZONE":
                blocks.setdefault(named, "\n".join([*block, ""]))
                block = []
    return "\n".join(lines), blocks


def _unfolded(text: str) -> str:
    """A calendar's lines, each whole. Only a line feed ends one: str.splitlines() would also split
    at signs that a guest may write in a description, as U+2028.
    """
    return _FOLD.sub("", _LINE_ENDS.sub("\n", text))


def find_zone(name: str) -> str:
    """Return the zone of the IANA database; "" if none is meant.

    name: a zone's name, Windows' name of it, what Outlook shows, or a path that ends with one, as
    Evolution's `/freeassociation.sourceforge.net/Europe/Berlin` and Exchange's
    `tzone://Microsoft/Utc`.
    """
    name = name.strip().strip('"')
    if len(name) > _MOST_LETTERS:
        return ""
    if is_time_zone(name):
        return name
    windows = WINDOWS_ZONES.get(name.lower())
    if windows:
        return windows
    shown = _SHOWN.fullmatch(name)
    if shown:
        return _zone_shown(shown[1], shown[2])
    parts = name.split("/")
    for count in (3, 2, 1):
        end = "/".join(parts[-count:])
        if len(parts) > count and is_time_zone(end):
            return end
    return "UTC" if parts[-1].upper() in ("UTC", "Z") else ""


def _zone_shown(offset: str, places: str) -> str:
    """The zone of Windows' name, or of the first place that the database names, if it is so far
    from UTC; else "".
    """
    usual = WINDOWS_ZONES.get(f"{places} standard time".lower())
    if places == "Coordinated Universal Time":
        usual = "UTC"
    named = [usual] if usual else []
    for city in places.split(",")[:_MOST_PLACES]:
        end = f"/{city.strip().replace(' ', '_')}"
        named += [name for name in _all_zones() if name.endswith(end)]
    # Summer is half a year from winter, wherever that is.
    days = [datetime(2026, month, 1) for month in (1, 7)]  # noqa: DTZ001 - a local time, of each zone
    for name in named:
        least = min(day.replace(tzinfo=ZoneInfo(name)).utcoffset() or timedelta() for day in days)
        if least == datetime.strptime(offset or "+00:00", "%z").utcoffset():
            return name
    return ""


@cache
def _all_zones() -> list[str]:
    return sorted(available_timezones())
