"""What late classes count, by numbers worked out by hand."""

from array import array

import pytest

from roost_core.placement.headroom_forecast import Day, Outlook, forecast_need
from roost_core.placement.headroom_history import UNSEEN, History
from roost_core.placement.headroom_worth import Worth

# A count of 1 is unlike one of 7 by (7 - 1)² / (1 + 1 + 7) = 4: of a weight 1/5 stays, 4/5 is lost.
FEW, MANY = 1, 7
# The level stayed the same for twenty minutes.
QUIET = (0,) * 21


def share_that_comes(days: list[Day], came: float, levels: tuple[int, ...] = QUIET) -> float:
    """The share of all weight that says that somebody will still come, in whole hundredths, rounded
    down.

    levels: of the minutes until now. A node has one seat and costs an hour, whoever uses it. So it
    is worth it if that share times what waiting is worth is at least 1.
    """
    outlook = Outlook(days, len(days), 0.0, (), (), History(0, array("i", levels)))

    def is_seat_had(hundredths: int) -> bool:
        worth = Worth(
            node_hours=100 / hundredths, per_node=1, wait_hours=1, unused_hours=1, used_hours=1
        )
        return forecast_need(outlook, came, worth).worth > 0

    return max((share for share in range(1, 101) if is_seat_had(share)), default=0)


def nobody(came: int, lately: int | None = None, weight: float = 1.0) -> Day:
    """A day on which so many had come, and nobody came later."""
    return Day(weight, 0, came, came, lately)


def late(came: int = FEW, lately: int | None = None, weight: float = 0.1) -> Day:
    """The same of a class that began late: somebody came later."""
    return Day(weight, 1, came, came, lately, is_delayed=True)


def test_late_classes_get_three_tenths_of_the_weight_that_days_lose_whose_people_are_missing() -> (
    None
):
    # As many came as then: the late class has its 0.1 of 1.1.
    assert share_that_comes([nobody(FEW), late()], FEW) == 9
    # The day has 0.2 left. The late class has 0.1 + 0.3 x 0.8 = 0.34 of 0.54.
    assert share_that_comes([nobody(MANY), late()], FEW) == 62
    # Two of these days: it has 0.1 + 0.3 x 1.6 = 0.58 of 0.98.
    assert share_that_comes([nobody(MANY), nobody(MANY), late()], FEW) == 59
    # Two late classes share the 0.24: together they have 0.44 of 0.64.
    assert share_that_comes([nobody(MANY), late(), late()], FEW) == 68
    # A late class that is unlike today gets a fifth of that: 0.34 / 5 = 0.068 of 0.268.
    assert share_that_comes([nobody(MANY), late(came=MANY)], FEW) == 25


def test_a_day_loses_weight_to_late_classes_only_if_people_are_missing() -> None:
    # More came than then. The day has 0.2 left, and the late class its 0.1 of 0.3.
    for lately in (None, FEW, MANY):
        assert share_that_comes([nobody(FEW, lately), late(came=MANY)], MANY) == 33
    # Of one day people are missing, of the other nobody: the late class has its 0.34 of
    # 0.2 + 1 + 0.34 = 1.54.
    assert share_that_comes([nobody(MANY), nobody(FEW), late()], FEW) == 22


# Twenty minutes ago six more were there than five minutes ago: 7 came in five, and 1 in twenty.
SIX_LEFT = (6, *[0] * 20)


def test_people_of_the_last_twenty_minutes_are_missing_too() -> None:
    # As many came in five minutes as then, but 1 in twenty minutes where 7 had come.
    assert share_that_comes([nobody(MANY, MANY), late(MANY, FEW)], MANY, SIX_LEFT) == 62
    # As many as then, or more.
    assert share_that_comes([nobody(MANY, FEW), late(MANY, FEW)], MANY, SIX_LEFT) == 9
    assert share_that_comes([nobody(MANY, 0), late(MANY, FEW)], MANY, SIX_LEFT) == 9
    # A late class to which 7 had come keeps a fifth: 0.02 of 1.02.
    assert share_that_comes([nobody(MANY, FEW), late(MANY, MANY)], MANY, SIX_LEFT) == 1


def test_who_came_before_a_class_began_is_not_missing() -> None:
    # Of the day's people 7 had come in twenty minutes and 6 were still to come: today, 6 of the 7
    # are missing. The day has 0.2 left, of 0.2 + 1.
    begun = Day(1.0, 6, MANY, MANY, MANY)
    assert share_that_comes([begun, nobody(MANY, FEW)], MANY, SIX_LEFT) == 16
    # With 7 still to come its class hadn't begun, so it has all of its weight, and the late class
    # its 0.1: 1.1 of 2.1.
    to_begin = Day(1.0, 7, MANY, MANY, MANY)
    assert share_that_comes([to_begin, nobody(MANY, FEW)], MANY, SIX_LEFT) == 50
    assert share_that_comes([to_begin, nobody(MANY, FEW), late(MANY, FEW)], MANY, SIX_LEFT) == 52


@pytest.mark.parametrize("unseen", [0, 15])
def test_where_nobody_looked_twenty_or_five_minutes_ago_nobody_is_missing(unseen: int) -> None:
    levels = [*SIX_LEFT]
    levels[unseen] = UNSEEN
    found = share_that_comes([nobody(MANY, MANY), late(MANY, FEW)], MANY, tuple(levels))
    assert found == 9


def test_without_late_classes_days_that_lose_weight_give_it_to_nobody() -> None:
    # Somebody came on the like day, of weight 1. The unlike day has 0.2 left.
    like = Day(1.0, 1, FEW, FEW, None)
    assert share_that_comes([nobody(MANY), like], FEW) == 83
