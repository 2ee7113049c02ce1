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

# Windows has had these since 2026; icalendar 7.3 lacks them.
_NEW_WINDOWS_ZONES: Final = {
    "Alberta Standard Time": "America/Edmonton",
    "British Columbia Standard Time": "America/Vancouver",
    "Manitoba Standard Time": "America/Winnipeg",
}
# Windows' name of a zone, in small letters -> its name in the IANA database.
WINDOWS_ZONES: Final = {
    name.lower(): zone for name, zone in (WINDOWS_TO_OLSON | _NEW_WINDOWS_ZONES).items()
}
# How Outlook shows a zone, in three forms: "(UTC+01:00) Amsterdam, Berlin",
# "(UTC-05:00) Eastern Time (US & Canada)" and "(UTC) Dublin, London".
_OUTLOOK_ZONE: Final = re.compile(
    r"\((?:UTC|GMT)([+-][01][0-9]:[0-5][0-9])?\) *([^(]+?)(?: Time \(.*)?", re.ASCII
)
_LINE_ENDS: Final = re.compile(r"(?:\r?\n)+")
# A line that begins with a space or a tab continues the line before.
_FOLD: Final = re.compile(r"\n[ \t]")
# Places that are looked up of a zone as Outlook shows it.
_MOST_PLACES: Final = 9
# Names of zones are short. No pattern is tried on a longer text.
_MOST_CHARACTERS: Final = 200


class Zones:
    """The zones of one calendar."""

    def __init__(self, blocks: Mapping[str, str], floating: str) -> None:
        """Set the zones that the calendar itself has.

        blocks: TZID -> the lines of its VTIMEZONE.
        floating: the zone of times without a TZID, of the IANA database; "": none.
        """
        self._blocks = blocks
        self._floating = floating
        self._known: dict[str, tzinfo | None] = {}

    def find(self, tzid: str) -> tzinfo | None:
        """The zone of a time; None where it isn't known. tzid: the time's; "": it has none."""
        if tzid not in self._known:
            name = find_zone(tzid) if tzid else self._floating
            self._known[tzid] = ZoneInfo(name) if name else self._defined_by_calendar(tzid)
        return self._known[tzid]

    def _defined_by_calendar(self, tzid: str) -> tzinfo | None:
        """The zone that the calendar's VTIMEZONE names or defines; None where it has none."""
        block = self._blocks.get(tzid, "")
        for line in block.split("\n"):
            key, _, value = line.partition(":")
            # Some programs write the zone's name of the IANA database here.
            if key.upper() == "X-LIC-LOCATION":
                name = find_zone(value)
                if name:
                    return ZoneInfo(name)
        try:
            calendar = icalendar.Calendar.from_ical(f"BEGIN:VCALENDAR\n{block}END:VCALENDAR\n")
            return next((zone.to_tz() for zone in calendar.timezones), None)
        except Exception:  # noqa: BLE001 - a library reads a stranger's zone, and may fail anyhow
            return None


def take_zones(text: str) -> tuple[str, Mapping[str, str]]:
    """Split a calendar into its unfolded lines without VTIMEZONEs, and TZID -> VTIMEZONE's lines.

    Some VTIMEZONEs are faulty, and few are used. So only those that a time names are parsed later.
    """
    lines: list[str] = []
    blocks: dict[str, str] = {}
    # The lines of the VTIMEZONE that is being read; empty outside one.
    block: list[str] = []
    tzid = ""
    is_in_event = False
    for line in _unfolded(text).split("\n"):
        word = line.upper()
        if word in ("BEGIN:VEVENT", "END:VEVENT"):
            is_in_event = word == "BEGIN:VEVENT"
        if word == "BEGIN:VTIMEZONE" and not is_in_event:
            block = [line]
            tzid = ""
        elif not block:
            lines.append(line)
        else:
            block.append(line)
            if word.startswith("TZID"):
                tzid = line.partition(":")[2].strip().strip('"')
            if word == "END:VTIMEZONE":
                blocks.setdefault(tzid, "\n".join([*block, ""]))
                block = []
    return "\n".join(lines), blocks


def _unfolded(text: str) -> str:
    """A calendar's text with one property on each line.

    Only a line feed ends a line: str.splitlines() would also split at characters that a guest may
    write in a description, such as U+2028.
    """
    return _FOLD.sub("", _LINE_ENDS.sub("\n", text))


def find_zone(name: str) -> str:
    """The name in the IANA database of the zone that is meant; "" where none is.

    name: a zone's name there, Windows' name of it, what Outlook shows, or a path that ends with the
    name. Evolution writes `/freeassociation.sourceforge.net/Europe/Berlin`, and Exchange
    `tzone://Microsoft/Utc`.
    """
    name = name.strip().strip('"')
    if len(name) > _MOST_CHARACTERS:
        return ""
    if is_time_zone(name):
        return name
    windows = WINDOWS_ZONES.get(name.lower())
    if windows:
        return windows
    outlook = _OUTLOOK_ZONE.fullmatch(name)
    if outlook:
        return _zone_of_outlook(outlook[1], outlook[2])
    parts = name.split("/")
    for count in (3, 2, 1):
        end = "/".join(parts[-count:])
        if len(parts) > count and is_time_zone(end):
            return end
    return "UTC" if parts[-1].upper() in ("UTC", "Z") else ""


def _zone_of_outlook(offset: str | None, places: str) -> str:
    """The zone that Outlook shows by its offset from UTC and its places; "" where none has both.

    offset: in winter, such as +01:00; None: zero. places: Windows' name of the zone, without
    "Standard Time", or cities.
    """
    candidates: list[str] = []
    if places == "Coordinated Universal Time":
        candidates.append("UTC")
    windows = WINDOWS_ZONES.get(f"{places} standard time".lower())
    if windows:
        candidates.append(windows)
    for city in places.split(",")[:_MOST_PLACES]:
        end = f"/{city.strip().replace(' ', '_')}"
        candidates += [name for name in _all_zones() if name.endswith(end)]
    shown_offset = datetime.strptime(offset or "+00:00", "%z").utcoffset()
    for name in candidates:
        if _winter_offset(ZoneInfo(name)) == shown_offset:
            return name
    return ""


def _winter_offset(zone: tzinfo) -> timedelta:
    """How far a zone's standard time is from UTC."""
    # One of these two days is in winter, north or south of the equator.
    days = [datetime(2026, month, 1, tzinfo=zone) for month in (1, 7)]
    return min(day.utcoffset() or timedelta() for day in days)


@cache
def _all_zones() -> list[str]:
    return sorted(available_timezones())
