"""Tell which classes of the coming days will wait because of the ceiling of cost, and what room for all would cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from roost_core.placement.headroom_forecast import Rises, forecast_need, look_ahead
from roost_core.placement.headroom_history import History
from roost_core.placement.headroom_worth import Worth, cost_between

# Of the coming time, every so many minutes are looked at; a boot takes longer.
STEP_MINUTES: Final = 5
# What is cut within so many minutes is one class.
_APART_MINUTES: Final = 20


class CutClass(NamedTuple):
    """People for whom there would be seats but for the ceiling."""

    # When the most of them are awaited.
    minute: int
    # Seats that they need, and those that they get.
    people: int
    seats: int
    # What the other seats are expected to cost.
    node_hours: float


def cut_classes(
    history: History, begin: int, minutes: int, time_zone: str, *, worth: Worth, uncut: Worth
) -> Iterator[CutClass]:
    """Yield what is cut in so many minutes from `begin` on. worth: with the ceiling; uncut: without it."""
    if worth == uncut:
        return
    rises = Rises(history)
    found: CutClass | None = None
    last = begin
    for minute in range(begin, begin + minutes, STEP_MINUTES):
        outlook = look_ahead(history, minute, time_zone, rises)
        if outlook is None or not outlook.days:
            continue
        seats, people = (forecast_need(outlook, None, each).worth for each in (worth, uncut))
        if people <= seats:
            continue
        needs = [(float(day.still), day.weight) for day in outlook.days]
        this = CutClass(minute, people, seats, cost_between(needs, uncut, seats, people))
        if found is not None and minute - last > _APART_MINUTES:
            yield found
            found = None
        if found is None or this.people > found.people:
            found = this
        last = minute
    if found is not None:
        yield found
