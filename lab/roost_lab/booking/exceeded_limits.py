"""Find the limits that bookings exceed: of placeholders in a release, and of starts at a hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from roost_core.release.bookings import hub_limits
from roost_lab.booking.timetable import busiest


def exceeded_limits(
    starts: Sequence[tuple[int, int]],
    minutes: int,
    events: Mapping[str, Any],
    misfits: Iterable[tuple[str, str]],
    *,
    request: str,
    later: str,
    show_minute: Callable[[int], str],
) -> Iterator[str]:
    """A line of text for each limit that is exceeded, indented by two spaces.

    starts, minutes: as `busiest` takes them.
    events: the values' `events`.
    misfits: what quotas and pools lack, each with its fix.
    request: who asks for the placeholders, with the verb: `classes ask`.
    later: who gets fewer of them, with a plural: `events` or `those`.
    show_minute: writes a minute of `starts` for people.
    """
    people, minute = busiest(starts, minutes)
    max_placeholders = events["maxPlaceholders"]
    if people > max_placeholders:
        asked = f"{request} for {people} placeholders"
        limit = f"events.maxPlaceholders is {max_placeholders}"
        less = f"{later} that begin later get what is left"
        yield f"  {show_minute(minute)} {asked}, and {limit}: {less}.\n"
    people_at_once, _ = busiest(starts, 1)
    for reason, fix in (*hub_limits(people_at_once, events), *misfits):
        yield f"  {reason} {fix}\n"
