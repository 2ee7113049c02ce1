"""Read `windows` of a placeholder set.

`roost_core.placement.headroom_windows` says when they are active.
"""

from __future__ import annotations

from typing import Final

from roost_core.placement.headroom_windows import (
    DATE_TIME,
    TIME_ZONE,
    Window,
    expected_zone,
    is_time_zone,
    start_fault,
)
from roost_core.release.reader import MAX_FAULTS, Reader

_KEYS: Final = ("name", "replicas", "timeZone", "start", "end")


def parse_windows(read: Reader, value: object, key: str) -> tuple[Window, ...]:
    """Read `windows` of a set. A window with faults is left out; `read` notes them under `key`."""
    return read.named(
        read.items(value, key),
        key,
        lambda entry, at: _parse_window(read, entry, at),
        "window of the set",
    )


def _parse_window(read: Reader, entry: object, at: str) -> Window:
    body = read.mapping(entry, at)
    read.known(body, at, _KEYS)
    name = read.text(body.get("name"), f"{at}.name")
    start = read.text(body.get("start"), f"{at}.start")
    end = read.text(body.get("end"), f"{at}.end")
    if not name:
        read.fault(f"{at}.name", body.get("name"), "a name, for logs and `roost headroom`")
    replicas = read.integer(body.get("replicas"), f"{at}.replicas")
    zone = read_time_zone(read, body.get("timeZone"), f"{at}.timeZone")
    starts_at_date = DATE_TIME.fullmatch(start) is not None
    ends_at_date = DATE_TIME.fullmatch(end) is not None
    for key, text in (("start", start), ("end", end)):
        fault = start_fault(text)
        if fault:
            read.fault(f"{at}.{key}", body.get(key), fault)
    if starts_at_date != ends_at_date:
        form = "a date" if starts_at_date else "a cron expression"
        read.fault(f"{at}.end", body.get("end"), f"the same form as start, {form}")
    elif starts_at_date and end.replace(" ", "T") <= start.replace(" ", "T"):
        read.fault(f"{at}.end", body.get("end"), "a later date-time than start")
    elif start.split() == end.split():
        read.fault(
            f"{at}.end",
            body.get("end"),
            "a time other than start: the window would never be active",
        )
    return Window(name, replicas, zone, start, end)


def read_time_zone(read: Reader, value: object, key: str) -> str:
    """`value` as the name of a time zone; "UTC" after a fault, which `read` notes under `key`."""
    name = read.text(value, key)
    if is_time_zone(name):
        return name
    # Finding a zone with a similar name takes time, and thousands of bookings may have a wrong
    # zone. Only the first faults are shown, so only these name a similar zone.
    is_shown = len(read.faults) < MAX_FAULTS
    read.fault(key, value, expected_zone(name) if is_shown else TIME_ZONE)
    return "UTC"
