"""Histories: what of past sessions is in them, what is kept, and the bounds of what is read."""

import json
from array import array
from random import Random
from typing import Any

import pytest

from roost_core.placement.headroom_account import (
    KEPT_CLASSES,
    KEPT_WEEKS,
    Account,
    LateClass,
    Week,
    Why,
    read_account,
)
from roost_core.placement.headroom_history import (
    DAY_MINUTES,
    KEPT_DAYS,
    UNSEEN,
    History,
    HistoryError,
    history_of,
    read_history,
    share_of_text,
    size_in_placeholders,
)

NOW = 100_000


def of(*levels: int, first: int = NOW - 60, **more: Any) -> History:
    return History(first, array("i", levels), **more)


def test_of_sessions_each_minute_has_those_who_were_there() -> None:
    history = history_of([(60.0, 240.0, 1.0), (90.0, 180.0, 2.0), (300.0, 300.0, 5.0)])
    # From the first begin to the last; who begins within a minute is there at the next.
    assert (history.first, list(history.levels)) == (1, [1, 3])
    history = history_of([(0.0, 120.0, 1.4), (30.0, 60.0, 1.0), (600.0, 700.0, 1.0)])
    assert (history.first, list(history.levels)) == (0, [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    assert history_of([(60.0, 30.0, 1.0)]) == History()
    # Somebody who was there before anybody looked, and is still.
    seen = history_of([(0.0, 6000.0, 2.0), (360.0, 420.0, 1.0)], [5, 6, 8])
    assert (seen.first, list(seen.levels)) == (5, [2, 3, UNSEEN, 2])


def test_of_sessions_as_many_days_are_kept_as_a_history_has() -> None:
    day = 86_400.0
    history = history_of([(60.0, 100 * day, 4.0), (90 * day, 90 * day + 60, 1.0)])
    assert history.end == 90 * DAY_MINUTES + 1
    assert len(history.levels) == KEPT_DAYS * DAY_MINUTES
    assert (history.levels[0], history.levels[-1]) == (4, 5)
    assert history_of([(60.0, 120.0, 1e9)]).levels[0] == 100_000


def test_of_sessions_a_persons_mean_size_is_that_of_an_hour_of_their_time() -> None:
    # An hour of one seat, and twenty minutes of four.
    history = history_of([(600.0, 4200.0, 1.0), (1200.0, 2400.0, 4.0)])
    assert history.seats_per_person == pytest.approx((60 + 4 * 20) / 80)
    assert history_of([(600.0, 4200.0, 5000.0)]).seats_per_person == 1000


def test_a_persons_size_is_the_mean_of_the_last_twenty_thousand_minutes_of_people() -> None:
    for people, expected in ((0, 1.0), (1, 1.0002), (5000, 2.0), (20_000, 5.0), (40_000, 5.0)):
        assert History().with_people([5.0] * people).seats_per_person == pytest.approx(expected)
    mixed = History(seats_per_person=3.0).with_people([1.0, 2.0] * 5000)
    assert mixed.seats_per_person == pytest.approx(2.25)
    assert History().with_people([5000.0] * 20_000).seats_per_person == 1000


def test_a_text_of_more_days_than_are_kept_is_read_in_part() -> None:
    days = KEPT_DAYS + 9
    text = History(0, array("i", range(days)) * DAY_MINUTES).as_text()
    found = read_history(text)
    assert (found.first, len(found.levels)) == (0, (KEPT_DAYS + 1) * DAY_MINUTES)


def test_the_level_of_a_minute_that_nobody_looked_at_is_unknown() -> None:
    history = of(7, UNSEEN, 3, first=50)
    assert [history.at(minute) for minute in range(49, 54)] == [UNSEEN, 7, UNSEEN, 3, UNSEEN]
    assert history.seen_minutes == 2
    assert (history.growth(52, 5), history.growth(50, 0)) == (0, 0)
    # The minute itself and so many after it count.
    assert [of(1, 4, 9, first=50).growth(50, ahead) for ahead in (0, 1, 2, 3)] == [0, 3, 8, 8]


def test_after_a_pause_of_at_most_five_minutes_the_last_level_stayed() -> None:
    for gap, level in ((0, None), (5, 4), (6, UNSEEN)):
        history = of(4, first=50).with_level(51 + gap, 9)
        assert list(history.levels) == [4, *[level] * gap, 9]
    whole = KEPT_DAYS * DAY_MINUTES
    # A longer one than is kept, or a clock that was set back by more than a day, begins anew.
    for minute, first in ((51 + whole, 50), (52 + whole, 52 + whole)):
        assert of(4, first=50).with_level(minute, 9).first == first
    late = of(4, first=50 + DAY_MINUTES)
    assert late.with_level(51, 9) == late
    assert late.with_level(50, 9).first == 50
    assert [of(4).with_level(NOW, level).levels[-1] for level in (-3, 1.6, 10**9)] == [0, 2, 10**5]


def test_whole_days_go_once_the_last_one_is_full() -> None:
    whole = KEPT_DAYS * DAY_MINUTES
    history = History(0, array("i", [1] * (whole + DAY_MINUTES - 2)))
    history = history.with_level(history.end, 2)
    assert (history.first, len(history.levels)) == (0, whole + DAY_MINUTES - 1)
    history = history.with_level(history.end, 3)
    assert (history.first, len(history.levels)) == (DAY_MINUTES, whole)


def test_boots_and_pulls_are_told_by_enough_of_the_last_ones() -> None:
    def kept(key: str, seconds: list[int]) -> History:
        body = json.loads(of(1).as_text())
        return read_history(json.dumps({**body, key: seconds}))

    # Of the last twenty, the longest tenth doesn't count.
    assert kept("bootSeconds", [900] * 3 + [100] * 18).boot_seconds == 100
    assert kept("bootSeconds", [900] * 4 + [100] * 17).boot_seconds == 900
    assert [History(boots=(100,) * number).boot_seconds for number in (2, 3)] == [240, 100]
    # Of fewer, the longest never counts.
    assert [
        History(boots=tuple(range(1, number + 1))).boot_seconds for number in (3, 9, 10, 11, 20)
    ] == [2, 8, 9, 10, 18]
    assert [History(pulls=(60,) * number).pull_seconds for number in (2, 3)] == [0, 60]
    assert kept("pullSeconds", [3000] * 3 + [60] * 40).pull_seconds == 60
    assert kept("pullSeconds", [3000] + [60] * 39).pull_seconds > 60
    # In whole minutes, with two to spare.
    assert [History(boots=(each,) * 3).ahead_minutes for each in (60, 61, 120)] == [3, 4, 4]


def test_the_oldest_levels_go_where_a_text_may_not_be_as_long() -> None:
    chance = Random(3)
    restless = of(*(chance.randrange(10**5) for _ in range(1000)), first=10)
    whole = len(restless.as_text())
    for most in (whole, 2000, 1000, 600):
        kept = read_history(restless.as_text(most_text=most))
        assert kept.end == restless.end
        assert list(kept.levels) == list(restless.levels[-len(kept.levels) :])
        assert len(restless.as_text(most_text=most)) <= max(most + 200, 700)
    assert len(read_history(restless.as_text(most_text=whole)).levels) == 1000
    body = json.loads(restless.as_text())
    exact = len(body["levels"]) + len(json.dumps(body["account"]))
    assert [
        len(read_history(restless.as_text(most_text=exact + more)).levels) for more in (0, -1)
    ] == [1000, 750]
    # Three quarters of what was too much, again and again.
    assert len(read_history(restless.as_text(most_text=whole - 500)).levels) == 750
    assert len(read_history(restless.as_text(most_text=0)).levels) == 1
    assert read_history(History().as_text()).levels == array("i")


def test_sets_share_what_a_config_map_takes() -> None:
    assert [share_of_text(sets) for sets in (0, 1, 7, 8)] == [90_000, 90_000, 90_000, 87_500]
    assert [share_of_text(7, others) for others in (70_000, 140_000)] == [90_000, 80_000]
    assert share_of_text(1, 800_000) == 0


def test_what_is_at_the_bounds_is_read_and_what_is_beyond_is_not() -> None:
    fine = of(0, 100_000, UNSEEN, first=NOW, boots=(0, 3600), pulls=(0, 3600), per_node=100_000)
    assert read_history(fine.as_text(), NOW + 3) == fine
    # Its last minute may be a day ahead, as after a clock was set back.
    assert read_history(fine.as_text(), NOW + 3 - DAY_MINUTES) == fine
    assert read_history(of(1, first=0).as_text(), NOW).first == 0
    for size in (0.0, 0.5, 1000.0):
        assert read_history(of(1, seats_per_person=size).as_text(), NOW).seats_per_person == size
    for odd in (
        of(100_001),
        of(-2),
        of(1, boots=(3601,)),
        of(1, pulls=(3601,)),
        of(1, per_node=100_001),
        of(1, boots=(-1,)),
        of(1, pulls=(-1,)),
        of(1, per_node=-1),
        of(1, first=-1),
        of(1, seats_per_person=-0.1),
        of(1, seats_per_person=1000.1),
    ):
        with pytest.raises(HistoryError):
            read_history(odd.as_text(), NOW)
    with pytest.raises(HistoryError):
        read_history(fine.as_text(), NOW + 2 - DAY_MINUTES)


def test_a_pod_counts_by_what_it_takes_most_of() -> None:
    assert size_in_placeholders(300, 2, 100, 1) == 3
    assert size_in_placeholders(100, 4, 100, 1) == 4
    # What one of both doesn't ask for isn't compared.
    assert size_in_placeholders(0, 1, 100, 2) == 0.5
    assert size_in_placeholders(50, 9, 100, 0) == 0.5
    assert size_in_placeholders(1, 0, 0, 1) == 1


def test_an_account_at_its_bounds_is_read_and_one_beyond_is_not() -> None:
    account = Account(
        (Week(0), Week(NOW, 5, 2, 0.25, 0.5, 2, 1.5)),
        (LateClass(NOW, 40, 12, Why.CEILING),),
        month_node_hours=1 / 3,
        until=NOW,
    )
    text = account.as_json()
    # Sums of many minutes don't make it long.
    assert text["monthNodeHours"] == 0.3333
    found = read_account(text, NOW)
    assert (found.weeks, found.late_classes, found.until) == (
        account.weeks,
        account.late_classes,
        NOW,
    )
    with pytest.raises(ValueError, match="present"):
        read_account(text, NOW - 1)
    for change in (
        {"weeks": [[-1, 0, 0, 0, 0, 0, 0]]},
        {"weeks": [[0, 0, 0, 0, 0, 0]]},
        {"weeks": [[0, 0, 0, 0, 0, 0, 0, 0]]},
        {"weeks": [[0, 0, 0, 0, 0, 0, float("inf")]]},
        {"late": [[-1, 1, 1, "not known"]]},
        {"monthNodeHours": float("nan")},
        {"until": -1},
    ):
        with pytest.raises((ValueError, TypeError)):
            read_account({**text, **change}, NOW)
    # A reason of a later version.
    later = [[5, 1, 1, "something new"], [6, 1, 1, "more came"]]
    assert [late.minute for late in read_account({**text, "late": later}, NOW).late_classes] == [6]
    many = {
        "weeks": [[week, 1, 0, 0, 0, 0, 0] for week in range(20)],
        "late": [[minute, 1, 1, "not known"] for minute in range(90)],
    }
    kept = read_account({**text, **many}, NOW)
    assert [week.begin for week in kept.weeks] == list(range(20))[-KEPT_WEEKS:]
    assert [late.minute for late in kept.late_classes] == list(range(90))[-KEPT_CLASSES:]
    assert (KEPT_WEEKS, KEPT_CLASSES) == (9, 60)


def test_an_account_fades_by_the_minutes_that_passed() -> None:
    month = 30 * DAY_MINUTES
    first = Account().with_minute(Week(0, node_hours=3, node_hours_without=1), 100)
    assert (first.month_node_hours, first.until) == (2, 100)
    # A month later it counts a third; what was saved counts against it.
    later = first.with_minute(Week(0, node_hours=1, node_hours_without=2), 100 + month)
    assert later.month_node_hours == pytest.approx(2 / 2.71828 - 1, abs=1e-4)
    # After a clock was set back, nothing fades twice.
    back = first.with_minute(Week(0, waited_hours=1, waited_without=4), 50)
    assert (back.month_node_hours, back.until) == (2, 100)
    assert back.weeks[-1].saved_hours == 3
    assert Account(month_node_hours=1.0).with_minute(Week(0), 10**9).month_node_hours > 0.99
