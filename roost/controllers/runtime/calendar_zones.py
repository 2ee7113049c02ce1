"""Find the zone of the IANA database that a calendar's TZID means."""

from pathlib import Path
from typing import Final

from roost_core.placement.headroom_windows import is_time_zone


def _read_table() -> dict[str, str]:
    lines = Path(__file__).with_name("windows_zones.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.partition(" = ") for line in lines if not line.startswith("#"))
    return {name.lower(): zone for name, _, zone in rows}


# By Windows' name, in small letters.
WINDOWS_ZONES: Final = _read_table()


def find_zone(name: str) -> str:
    """Return the zone of the IANA database; "" if none is meant.

    name: a zone's name, Windows' name of it, or a path that ends with one, as Evolution's
    `/freeassociation.sourceforge.net/Europe/Berlin` and Exchange's `tzone://Microsoft/Utc`.
    """
    name = name.strip().strip('"')
    if is_time_zone(name):
        return name
    if zone := WINDOWS_ZONES.get(name.lower()):
        return zone
    parts = name.split("/")
    for count in (3, 2, 1):
        if len(parts) > count and is_time_zone(end := "/".join(parts[-count:])):
            return end
    return "UTC" if parts[-1].upper() in ("UTC", "Z") else ""
