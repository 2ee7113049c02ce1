"""What a set that learns has: the forecast, its windows, its bookings and its bounds together."""

from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.snapshot import Moment
from roost.controllers.headroom.accounting import Accounting
from roost.controllers.headroom.learned_number import learned_number, seconds_until_change
from roost.controllers.headroom.learning import Learned
from roost.controllers.headroom.pool_view import PoolView
from roost_core.placement.headroom_forecast import Forecast, Outlook
from roost_core.placement.headroom_history import History
from roost_core.placement.headroom_windows import Period
from roost_core.release.placeholder_sets import LearnSettings

LEARN = LearnSettings(
    min=2,
    max=60,
    time_zone="UTC",
    waiting_hour_price=4.0,
    node_hour_price=0.4,
    monthly_ceiling=200.0,
)
NOT_READ = "what was learned hasn't been read yet"
FORECAST = "on {} earlier days, so many more came while a node boots"


def view(room: int = 0, spare: int = 0) -> PoolView:
    none: frozenset[str] = frozenset()
    return PoolView({}, {}, 0.0, room, spare, 10, (), none, none, none, (0, 0))


def known(
    worth: int, *, steady: int = 0, days: int = 14, most: float = 0.0, **more: Any
) -> Learned:
    """A set that has seen so many days, of which the busiest needed `most`."""
    given: dict[str, Any] = {
        "since": 0.0,
        "is_loaded": True,
        "forecast": Forecast(worth, steady),
        "outlook": Outlook((), days, most, (), (), History()),
        "view": view(),
        **more,
    }
    return Learned(**given)


def number(
    learned: Learned,
    *,
    values: int = 5,
    window: int | None = None,
    extra: int = 0,
    present: int | None = 9,
    steady: float = 1000.0,
) -> tuple[int, str]:
    """What the set has. values: its `replicas`; window: the number of its active window."""
    period = Period(values, (), None) if window is None else Period(window, ("w",), None)
    return learned_number(LEARN, learned, period, extra, present=present, now=Moment(1e9, steady))


@pytest.mark.parametrize(
    ("seconds", "is_loaded", "present", "extra", "expected"),
    [
        # What is there stays, but for bookings, the values' number and `max`.
        (0.0, False, 9, 0, (9, NOT_READ)),
        (59.5, False, 9, 0, (9, NOT_READ)),
        (0.0, False, 3, 0, (5, NOT_READ)),
        (0.0, False, 9, 7, (12, NOT_READ)),
        (0.0, False, 90, 0, (60, NOT_READ)),
        # After a minute, what the values and bookings say; so without a set.
        (60.0, False, 9, 0, (5, "")),
        (60.0, False, 9, 7, (12, "")),
        (0.0, False, None, 0, (5, "")),
        (0.0, True, 9, 0, (5, "")),
    ],
)
def test_a_new_leader_waits_a_minute_for_what_was_learned(
    seconds: float, *, is_loaded: bool, present: int | None, extra: int, expected: tuple[int, str]
) -> None:
    learned = Learned(100.0, is_loaded=is_loaded)
    found = number(learned, extra=extra, present=present, steady=100.0 + seconds)
    assert found == expected


@pytest.mark.parametrize("lacks", ["forecast", "view", "outlook"])
def test_without_a_forecast_the_values_and_bookings_stand(lacks: str) -> None:
    lacking: dict[str, Any] = {lacks: None}
    assert number(known(30, **lacking), extra=7) == (12, "")


@pytest.mark.parametrize(
    ("worth", "room", "spare", "idle", "expected"),
    [
        (20, 0, 0, 600.0, 20),
        # There is room for all on nodes that are there: only who finds none beside users counts.
        (20, 8, 12, 600.0, 12),
        (20, 8, 12, 300.0, 12),
        # A node has to come: then all are asked for.
        (20, 8, 11, 600.0, 20),
        # Where empty nodes go at once, those beside users count as well.
        (20, 8, 12, 299.0, 20),
        # No less than `min`.
        (20, 20, 0, 600.0, 2),
        (20, 40, 0, 600.0, 2),
        (100, 0, 0, 600.0, 60),
    ],
)
def test_room_beside_users_is_taken_off_where_no_node_has_to_come(
    worth: int, room: int, spare: int, idle: float, expected: int
) -> None:
    learned = known(worth, view=view(room, spare), accounting=Accounting(idle=(idle,) * 3))
    assert number(learned, values=0)[0] == expected


@pytest.mark.parametrize("worth", [8, 7])
def test_where_all_find_room_beside_users_there_is_no_placeholder_but_those_of_min(
    worth: int,
) -> None:
    for least in (0, 1):
        learn = replace(LEARN, min=least)
        learned = known(worth, view=view(room=8))
        none = Period(0, (), None)
        now = Moment(1e9, 1000.0)
        assert learned_number(learn, learned, none, 0, present=9, now=now)[0] == least


@pytest.mark.parametrize(
    ("learned", "given", "expected"),
    [
        # The values' number stays for a week, then one more than any day needed.
        (known(2, days=6), {"values": 9}, (9, "")),
        (known(2, days=7), {"values": 9}, (2, FORECAST.format(7))),
        (known(2, days=7, most=4.0), {"values": 9}, (5, FORECAST.format(7))),
        (known(20), {}, (20, FORECAST.format(14))),
        (known(5), {}, (5, "")),
        # A window is never undercut.
        (known(2), {"window": 30}, (30, "")),
        (known(40), {"window": 30}, (40, FORECAST.format(14))),
        # A booking means the people who are forecast: the larger number counts, and bookings come
        # beside the steady need, no less than `min`.
        (known(40, steady=4), {"extra": 30}, (40, FORECAST.format(14))),
        (known(40, steady=10), {"extra": 30}, (40, "")),
        (known(40, steady=11), {"extra": 30}, (41, "")),
        (known(20, steady=4), {"extra": 30}, (34, "")),
        (known(20), {"extra": 30}, (32, "")),
        # They come beside a window, and in the first week beside the values' number.
        (known(20, steady=4), {"extra": 30, "window": 10}, (40, "")),
        (known(20, steady=4, days=6), {"extra": 30}, (35, "")),
        (known(20, steady=4, days=7), {"extra": 30}, (34, "")),
        # The values have as many as are forecast, and more than are booked.
        (known(30), {"extra": 5, "values": 30}, (30, "")),
    ],
)
def test_the_forecast_windows_and_bookings_make_one_number(
    learned: Learned, given: dict[str, int], expected: tuple[int, str]
) -> None:
    assert number(learned, **given) == expected


def test_the_next_number_is_due_as_the_next_minute_begins() -> None:
    for wall, seconds in ((120.0, 60.0), (120.5, 59.5), (179.0, 1.0)):
        assert seconds_until_change(Moment(wall, 0.0)) == seconds
