"""Find the zone of the IANA database that a calendar's TZID means."""

import re
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from roost_core.placement.headroom_windows import is_time_zone


def _read_table() -> dict[str, str]:
    lines = Path(__file__).with_name("windows_zones.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.partition(" = ") for line in lines if not line.startswith("#"))
    return {name.lower(): zone for name, _, zone in rows}


# By Windows' name, in small letters.
WINDOWS_ZONES: Final = _read_table()
# As Outlook shows one: (UTC+01:00) Amsterdam, Berlin; (UTC-05:00) Eastern Time (US & Canada); (UTC)
# Dublin, London.
_SHOWN: Final = re.compile(
    r"\((?:UTC|GMT)([+-][01][0-9]:[0-5][0-9])?\) *([^(]+?)(?: Time \(.*)?", re.ASCII
)
_MOST_PLACES: Final = 9


@cache
def _all_zones() -> list[str]:
    return sorted(available_timezones())


def _zone_shown(offset: str, places: str) -> str:
    """The zone of Windows' name, or of the first place that the database names, if it is so far
    from UTC; else "".
    """
    usual = (
        "UTC"
        if places == "Coordinated Universal Time"
        else WINDOWS_ZONES.get(f"{places} standard time".lower())
    )
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


def find_zone(name: str) -> str:
    """Return the zone of the IANA database; "" if none is meant.

    name: a zone's name, Windows' name of it, what Outlook shows, or a path that ends with one, as
    Evolution's `/freeassociation.sourceforge.net/Europe/Berlin` and Exchange's
    `tzone://Microsoft/Utc`.
    """
    name = name.strip().strip('"')
    if is_time_zone(name):
        return name
    if zone := WINDOWS_ZONES.get(name.lower()):
        return zone
    if shown := _SHOWN.fullmatch(name):
        return _zone_shown(shown[1], shown[2])
    parts = name.split("/")
    for count in (3, 2, 1):
        if len(parts) > count and is_time_zone(end := "/".join(parts[-count:])):
            return end
    return "UTC" if parts[-1].upper() in ("UTC", "Z") else ""
