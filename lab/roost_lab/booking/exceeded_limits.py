"""Where bookings ask for more than their release keeps, or than their hub starts at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from roost_core.release.bookings import hub_limits
from roost_lab.booking.timetable import busiest


def say_beyond(
    starts: Sequence[tuple[int, int]],
    minutes: int,
    events: Mapping[str, Any],
    misfits: Iterable[tuple[str, str]],
    *,
    asks: str,
    later: str,
    when: Callable[[int], str],
) -> Iterator[str]:
    """A line for each limit that is passed.

    starts, minutes: as `busiest` takes them. events: the values' `events`. misfits: what quotas and
    pools lack, each with its fix. asks, later: who asks, and what begins later, with their verbs.
    when: shows a minute.
    """
    wanted, minute = busiest(starts, minutes)
    most = events["maxPlaceholders"]
    if wanted > most:
        asked = f"{asks} for {wanted} placeholders, and events.maxPlaceholders is {most}"
        yield f"  {when(minute)} {asked}: {later} that begin later get what is left.\n"
    at_once, _ = busiest(starts, 1)
    for reason, fix in (*hub_limits(at_once, events), *misfits):
        yield f"  {reason} {fix}\n"
