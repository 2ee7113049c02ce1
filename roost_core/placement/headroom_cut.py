"""Find which classes of the coming days will wait because of the ceiling of cost, and what seats
for all of their people would cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from roost_core.placement.headroom_forecast import Rises, forecast_need, look_ahead
from roost_core.placement.headroom_history import History
from roost_core.placement.headroom_worth import Worth, cost_between

# Minutes between two times for which the need is forecast. A boot takes longer.
STEP_MINUTES: Final = 5
# Another class begins after so many minutes without a cut.
_APART_MINUTES: Final = 20
# Another class also begins when the cut grows again after it was below this share of its largest.
_NEXT_SHARE: Final = 0.5
# A class is a wave of people, so the steady need isn't forecast.
_NO_STEADY_NEED: Final = ((), ())


class CutClass(NamedTuple):
    """A class that gets too few seats because of the ceiling."""

    # When the most seats are missing, in minutes of Unix time.
    minute: int
    # Seats that its people need, and seats that they get.
    people: int
    seats: int
    # The expected cost of the missing seats.
    node_hours: float

    @property
    def missing(self) -> int:
        """Seats that are cut."""
        return self.people - self.seats


def cut_classes(
    history: History, begin: int, minutes: int, time_zone: str, *, worth: Worth, uncut: Worth
) -> Iterator[CutClass]:
    """Yield the classes that are cut in the `minutes` from `begin` on.

    begin: in minutes of Unix time. worth: with the ceiling; uncut: without it. People who come one
    by one are no class, and are left out.
    """
    if worth == uncut:
        return
    rises = Rises(history)
    most: CutClass | None = None
    before: CutClass | None = None
    for minute in range(begin, begin + minutes, STEP_MINUTES):
        now = _cut_at(history, minute, time_zone, rises, worth=worth, uncut=uncut)
        if now is None:
            continue
        if most is not None and before is not None and _is_next(now, most, before):
            yield most
            most = None
        if most is None or now.missing > most.missing:
            most = now
        before = now
    if most is not None:
        yield most


def _cut_at(
    history: History, minute: int, time_zone: str, rises: Rises, *, worth: Worth, uncut: Worth
) -> CutClass | None:
    """What is cut at a minute; None: nothing. worth: with the ceiling; uncut: without it."""
    outlook = look_ahead(history, minute, time_zone, rises, steady=_NO_STEADY_NEED)
    if outlook is None or not outlook.days:
        return None
    seats = forecast_need(outlook, None, worth).worth
    people = forecast_need(outlook, None, uncut).worth
    if people <= seats:
        return None
    needs = [(float(day.coming), day.weight) for day in outlook.days]
    return CutClass(minute, people, seats, cost_between(needs, uncut, seats, people))


def _is_next(now: CutClass, most: CutClass, before: CutClass) -> bool:
    """Whether another class begins.

    most: the largest cut of the class so far; before: the last cut before `now`.
    """
    if now.minute - before.minute > _APART_MINUTES:
        return True
    return before.missing < _NEXT_SHARE * most.missing and now.missing > before.missing
