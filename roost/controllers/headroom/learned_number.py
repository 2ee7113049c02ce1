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

# So long a new leader leaves the number as it is, while it hasn't read everything: for example, the
# stored history.
NEW_LEADER_SECONDS: Final = 60.0
# An autoscaler that leaves empty nodes for less time than this also removes nodes whose
# placeholders would fit next to users.
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
    """Return how many placeholders the forecast, the windows and bookings give together, and why.

    The reason is "" if windows or the values alone give the number. extra: placeholders for
    bookings. present: the set's number now; None: there is no StatefulSet of it.
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
        # Users have the room without placeholders. Placeholders in it would push users to empty
        # nodes.
        seats = max(0, seats - view.room)
    replicas = learned_replicas(period, learned.outlook, seats, learn.min, learn.max)
    days = learned.outlook.days_seen
    if period.windows or days < FLOOR_DAYS:
        beside_bookings = period.replicas
    else:
        # A lecture that is booked may be learned, too. Its people are added to the steady need,
        # because the lecture's forecast already has them.
        beside_bookings = min(replicas, max(learn.min, forecast.steady))
    booked = extra + beside_bookings
    if extra and booked >= replicas:
        return booked, ""
    if replicas == period.replicas:
        return replicas, ""
    return replicas, f"on {days} earlier days, so many more came while a node boots"


def seconds_until_change(now: Moment) -> float:
    """Seconds until `learned_number` may differ without any event: until the next full minute."""
    return MINUTE_SECONDS - now.wall % MINUTE_SECONDS
