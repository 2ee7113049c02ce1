"""For sets with `learn` only: windows, bookings and the forecast as one number of placeholders.

Of a set without `learn`, `plan.py` adds bookings to what windows say.
"""

from __future__ import annotations

from typing import Final

from roost.controllers.contract.snapshot import Moment
from roost.controllers.headroom.learning import Learned
from roost_core.placement.headroom_forecast import FLOOR_DAYS, learned_replicas
from roost_core.placement.headroom_history import MINUTE_SECONDS
from roost_core.placement.headroom_windows import Period
from roost_core.release.placeholder_sets import LearnSettings

# For so long a new leader waits for what it hasn't read yet, as the stored history, and leaves the
# number as it is.
NEW_LEADER_SECONDS: Final = 60.0
# An autoscaler that leaves empty nodes for less takes nodes whose placeholders would fit beside
# users, too.
SLOW_SCALE_DOWN_SECONDS: Final = 300.0


def learned_number(
    learn: LearnSettings,
    learned: Learned,
    period: Period,
    extra: int,
    *,
    present: int | None,
    now: Moment,
) -> tuple[int, str]:
    """Return what the forecast, the windows and bookings give together, and why; "": windows or the
    values give it.

    extra: what bookings need. present: the set's number; None: there is no such set.
    """
    may_still_come = now.steady - learned.since < NEW_LEADER_SECONDS
    if not learned.is_loaded and may_still_come and present is not None:
        replicas = max(period.replicas + extra, min(present, learn.max))
        return replicas, "what was learned hasn't been read yet"
    forecast = learned.forecast
    if forecast is None or learned.view is None or learned.outlook is None:
        return period.replicas + extra, ""
    seats = forecast.worth
    view = learned.view
    leaves_empty_nodes = learned.accounting.idle_seconds >= SLOW_SCALE_DOWN_SECONDS
    if seats <= view.room + view.spare and leaves_empty_nodes:
        # Users have this room without placeholders. Placeholders there would push users to empty
        # nodes.
        seats = max(0, seats - view.room)
    replicas = learned_replicas(period, learned.outlook, seats, learn.min, learn.max)
    days = learned.outlook.days_seen
    if period.windows or days < FLOOR_DAYS:
        beside_bookings = period.replicas
    else:
        # Whoever books a lecture that is learned means the same people: they come beside the
        # steady need, not beside the lecture's.
        beside_bookings = min(replicas, max(learn.min, forecast.steady))
    booked = extra + beside_bookings
    if extra and booked >= replicas:
        return booked, ""
    if replicas == period.replicas:
        return replicas, ""
    return replicas, f"on {days} earlier days, so many more came while a node boots"


def seconds_until_change(now: Moment) -> float:
    """Seconds until `learned_number` may differ although nothing is told: the next minute."""
    return MINUTE_SECONDS - now.wall % MINUTE_SECONDS
