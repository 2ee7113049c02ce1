"""What is learned of the number of users, and what is forecast from it."""

import json
from array import array

import pytest

from roost_core.placement.headroom_account import Account
from roost_core.placement.headroom_cut import cut_classes
from roost_core.placement.headroom_forecast import Forecast, Rises, forecast_need, look_ahead
from roost_core.placement.headroom_history import (
    DAY_MINUTES,
    KEPT_DAYS,
    MOST_TEXT,
    UNSEEN,
    History,
    HistoryError,
    history_of,
    read_history,
)
from roost_core.placement.headroom_windows import parse_moment
from roost_core.placement.headroom_worth import Ceiling, Worth, seats_worth, worth_of
from tests.recorded_data import rows

# Monday.
BEGIN = int(parse_moment("2026-03-02T00:00Z", "UTC")) // 60
TUESDAY, WEEK = DAY_MINUTES, 7 * DAY_MINUTES
NINE = 9 * 60
# Ten node-hours for an hour of waiting, on nodes for twenty users that take four minutes to boot.
WORTH = worth_of(10, 20, 6)


def classes(
    days: int, people: int = 75, *, weekday: int = 1, holidays: tuple[int, ...] = (), zone: int = 0
) -> History:
    """So many come within eight minutes from 9:00 on one weekday, for an hour, beside ten who are
    always there.
    """
    levels = array("i", [10] * (days * DAY_MINUTES))
    for day in range(weekday, days, 7):
        if day not in holidays:
            for minute in range(68):
                levels[day * DAY_MINUTES + NINE - zone + minute] += min(
                    people, people * minute // 8
                )
    return History(BEGIN, levels)


def forecast(
    history: History, minute: int, came: float | None = None, worth: Worth = WORTH
) -> Forecast:
    outlook = look_ahead(history, BEGIN + minute, "UTC")
    assert outlook is not None
    return forecast_need(outlook, came, worth)


def test_a_class_is_expected_a_boot_time_early_and_who_has_come_needs_no_seat() -> None:
    history, monday, tuesday = (
        classes(28),
        28 * DAY_MINUTES + NINE,
        28 * DAY_MINUTES + TUESDAY + NINE,
    )
    assert forecast(history, tuesday - 10, 0).worth == 0
    assert forecast(history, tuesday - 2, 0).worth == 37
    assert forecast(history, tuesday, 0).worth >= 56
    # Half have come, as on the days before; all have come, the last of them late: no class is still
    # to begin.
    assert 30 <= forecast(history, tuesday + 4, 37).worth <= 40
    late = [
        *(10 + 65 * minute // 8 for minute in range(9)),
        *(75 + 2 * minute for minute in range(1, 6)),
    ]
    levels = array("i", [*history.levels, *[10] * (TUESDAY + NINE), *late])
    assert forecast(History(BEGIN, levels), tuesday + 13, 10).worth == 0
    # Nobody came: up to ten minutes late they may be, then what stands by goes.
    assert [forecast(history, tuesday + minute, 0).worth >= 40 for minute in (2, 4, 8)] == [
        True
    ] * 3
    assert forecast(history, tuesday + 20, 0).worth == 0
    # All came early, but for a few minutes.
    assert forecast(history, tuesday + 5, 75).worth <= 28
    # Other days of the week hardly count, and a holiday doesn't make up for three weeks with the
    # class.
    assert forecast(history, monday, 0) == Forecast(worth=0, steady=0)
    assert forecast(classes(28, holidays=(22,)), tuesday, 0).worth >= 56


def test_a_class_at_a_new_hour_or_larger_than_any_gets_seats_as_soon_as_it_begins() -> None:
    history, tuesday = classes(28), 28 * DAY_MINUTES + TUESDAY + NINE
    # So many within three minutes; all at once. The end of a wave isn't its beginning. A third node
    # for the last seven of 47 is worth less than it costs.
    for at, came, seats in (
        (240, [9, 18, 28], 40),
        (1, [9, 18, 28], 40),
        (240, [1, 1, 2], 0),
        (240, [28, 28, 28], 0),
    ):
        levels = array(
            "i", [*history.levels, *[10] * (TUESDAY + NINE + at), *(10 + each for each in came)]
        )
        assert (
            seats <= forecast(History(BEGIN, levels), tuesday + at + 2, came[-1]).worth <= 2 * seats
        )


def test_with_less_than_two_days_nothing_is_forecast_and_then_days_are_alike() -> None:
    assert look_ahead(classes(1, weekday=0), BEGIN + DAY_MINUTES, "UTC") is None
    assert forecast(classes(2, weekday=0), 2 * DAY_MINUTES + NINE, 0).worth >= 56


def test_the_minute_is_that_of_the_clock_on_the_wall() -> None:
    # Classes at 9:00 in Berlin: 8:00 UTC before 2026-03-29, 7:00 after it.
    history = classes(27, zone=60)
    summer = int(parse_moment("2026-03-31T09:00", "Europe/Berlin")) // 60
    outlook = look_ahead(history, summer, "Europe/Berlin")
    assert outlook is not None
    assert forecast_need(outlook, 0, WORTH).worth >= 56


def test_users_who_come_one_by_one_need_the_same_at_all_minutes() -> None:
    # Somebody each four minutes for half an hour, at other minutes each day.
    sessions = [
        (60.0 * (BEGIN + at), 60.0 * (BEGIN + at + 30), 1.0)
        for day in range(7)
        for at in range(day * DAY_MINUTES + day % 4, (day + 1) * DAY_MINUTES, 4)
        if (at * 7919) % 11 < 6
    ]
    history = history_of(sessions)
    dear = worth_of(100, 20, 6)
    found = [forecast(history, 7 * DAY_MINUTES + minute, 0, dear) for minute in range(600, 640, 5)]
    assert {each.worth for each in found} <= {1, 2}
    # Where few come, at 12:30 or 13:20, one seat is had between the two.
    begins = [60.0 * (BEGIN + day * DAY_MINUTES + 750 + day % 2 * 50) for day in range(14)]
    few = history_of((begin, begin + 1800, 1.0) for begin in begins)
    assert [
        forecast(few, 14 * DAY_MINUTES + minute, 0, worth_of(100, 1, 6)).worth
        for minute in (600, 780, 900)
    ] == [0, 1, 0]


def test_a_class_of_every_second_week_and_one_after_two_empty_weeks_have_their_seats() -> None:
    fortnightly = classes(35, holidays=(8, 22))
    assert forecast(fortnightly, 35 * DAY_MINUTES + TUESDAY + NINE, 0).worth >= 56
    begun = classes(21, holidays=(1, 8))
    assert forecast(begun, 21 * DAY_MINUTES + TUESDAY + NINE, 0).worth >= 56


def test_nodes_are_taken_while_the_waiting_that_they_save_is_worth_them() -> None:
    # One of four weeks had thirty more.
    levels = array("i", classes(28).levels)
    levels[22 * DAY_MINUTES + NINE + 3 : 22 * DAY_MINUTES + NINE + 60] = array("i", [115] * 57)
    history, minute = History(BEGIN, levels), 28 * DAY_MINUTES + TUESDAY + NINE
    prices = (100.0, 10.0, 1.0, 0.5, 0.0)
    seats = [forecast(history, minute, 0, worth_of(price, 20, 6)).worth for price in prices]
    assert seats == sorted(seats, reverse=True)
    assert seats[0] > 75 >= seats[2] > seats[-1] == 0
    # Beside users there is room for all: no node is kept for anybody.
    outlook = look_ahead(history, BEGIN + minute, "UTC")
    assert outlook is not None
    assert forecast_need(outlook, 0, WORTH, room=200).worth == 0


def test_a_node_for_one_is_the_first_to_go_and_a_class_that_always_comes_the_last() -> None:
    always, now_and_then = [(140.0, 4.0)], [(1.0, 1.0), (0.0, 3.0)]
    for price, has_class, has_one in (
        (0.2, False, False),
        (1.0, True, False),
        (10.0, True, False),
        (100.0, True, True),
    ):
        worth = worth_of(price, 18, 6)
        assert (seats_worth(always, worth) == 140, seats_worth(now_and_then, worth) == 1) == (
            has_class,
            has_one,
        )


def test_where_a_user_fills_a_node_it_costs_less_than_one_that_others_keep() -> None:
    needs = [(12.0, 0.7), (0.0, 0.3)]
    assert seats_worth(needs, worth_of(3, 1, 6)) == 12
    assert worth_of(3, 1, 6).shared_cost == 1
    assert worth_of(3, 18, 6).shared_cost > worth_of(3, 2, 6).shared_cost > 1


def test_where_nodes_boot_for_long_people_must_be_somewhat_more_certain() -> None:
    def least_percent(ahead_minutes: int, per_node: int) -> int:
        """Of how certain people, at least, a whole node is had."""
        worth = worth_of(10, per_node, ahead_minutes)
        return next(
            percent
            for percent in range(1, 101)
            if seats_worth([(per_node, percent), (0.0, 100 - percent)], worth)
        )

    # The factor is measured from four minutes to fifteen.
    assert worth_of(10, 18, 2).shared_cost == worth_of(10, 18, 4).shared_cost
    assert worth_of(10, 18, 4).shared_cost < worth_of(10, 18, 9).shared_cost
    assert worth_of(10, 18, 60).shared_cost == worth_of(10, 18, 15).shared_cost
    least = [least_percent(ahead_minutes, 18) for ahead_minutes in range(4, 16)]
    assert least == sorted(least)
    assert least[-1] <= 1.6 * least[0]
    # A user who fills a node alone is worth the more, the longer the wait.
    assert worth_of(10, 1, 60).shared_cost == 1
    assert least_percent(60, 1) <= least_percent(7, 1)


def test_who_takes_two_seats_waits_once() -> None:
    once = [(18.0, 0.2), (0.0, 0.8)]
    assert seats_worth(once, worth_of(8, 18, 6)) == 18
    assert seats_worth(once, worth_of(8, 18, 6, seats_per_person=2.0)) == 0
    assert worth_of(8, 18, 6, seats_per_person=2.0) == worth_of(4, 18, 6)
    # What small users add was never measured.
    assert worth_of(8, 18, 6, seats_per_person=0.5) == worth_of(8, 18, 6)


def test_the_ceiling_cuts_from_half_of_it_on_a_little_at_a_time() -> None:
    assert [Ceiling(spent, 100).left for spent in (-5, 0, 50, 75, 100, 300)] == [
        1,
        1,
        1,
        0.25,
        0,
        0,
    ]
    assert Ceiling(0, 0).left == 0
    worth = Ceiling(97, 100).cut(WORTH)
    history, begin = classes(28), BEGIN + 28 * DAY_MINUTES
    (cut,) = cut_classes(history, begin, WEEK, "UTC", worth=worth, uncut=WORTH)
    twice = History(
        BEGIN,
        array(
            "i",
            [
                max(each, later)
                for each, later in zip(
                    history.levels, [*history.levels[120:], *[10] * 120], strict=True
                )
            ],
        ),
    )
    assert len(list(cut_classes(twice, begin, WEEK, "UTC", worth=worth, uncut=WORTH))) == 2
    assert abs(cut.minute - (begin + TUESDAY + NINE)) <= 5
    assert cut.people >= 56 > cut.seats
    assert 0 < cut.node_hours < 4
    assert list(cut_classes(history, begin, WEEK, "UTC", worth=WORTH, uncut=WORTH)) == []


def test_of_classes_that_nobody_can_foresee_none_is_cut() -> None:
    worth = Ceiling(100, 100).cut(WORTH)
    for days in (0, 1):
        begin = BEGIN + days * DAY_MINUTES
        assert list(cut_classes(classes(days), begin, WEEK, "UTC", worth=worth, uncut=WORTH)) == []


def test_what_rises_are_known_stays_true_as_the_history_grows() -> None:
    history = classes(3)
    rises = Rises(history)
    for level in (10, 12, 11, 30, 10, 10, 10, 10, 10, 10, 40):
        history = history.with_level(history.end, level)
        for minute in (history.first, *range(history.end - 12, history.end)):
            assert rises.at(history, minute) == history.growth(minute, history.ahead_minutes)
    for unseen in (history.first - 1, history.end):
        assert rises.at(history, unseen) == UNSEEN
    assert rises.fits(history)
    assert not rises.fits(History(history.first, history.levels, boots=(900, 900, 900)))


def test_levels_are_kept_over_a_short_pause_and_unknown_after_a_long_one() -> None:
    history = History().with_level(BEGIN, 3.2).with_level(BEGIN + 3, 8).with_level(BEGIN + 60, 1)
    assert [history.at(BEGIN + each) for each in (0, 2, 3, 4, 59, 60)] == [
        3,
        3,
        8,
        UNSEEN,
        UNSEEN,
        1,
    ]
    assert history.growth(BEGIN, 3) == 5
    assert history.growth(BEGIN + 10, 3) is None
    # The clock goes back: nothing is lost, and nothing counts twice.
    assert history.with_level(BEGIN + 50, 9) == history


def test_a_history_is_kept_for_eight_weeks_and_its_text_is_bounded() -> None:
    history = classes(KEPT_DAYS + 3)
    history = history.with_level(history.end, 10)
    assert KEPT_DAYS <= len(history.levels) / DAY_MINUTES <= KEPT_DAYS + 1
    assert len(history.as_text()) < 10_000
    kept = read_history(history.as_text())
    assert [kept.at(minute) for minute in range(kept.end - WEEK, kept.end)] == list(
        history.levels[-WEEK:]
    )
    # As much as a day can hold goes in part.
    restless = History(
        0, array("i", [(index * 7919) % 99_991 for index in range(KEPT_DAYS * DAY_MINUTES)])
    )
    assert len(restless.as_text()) < MOST_TEXT + 1000
    assert read_history(restless.as_text()).end == restless.end


def test_a_node_is_awaited_as_long_as_most_took() -> None:
    assert History().ahead_minutes == 6
    assert History(boots=(100, 900)).ahead_minutes == 6
    assert History(boots=(100,) * 9 + (900,)).ahead_minutes == 4


@pytest.mark.parametrize("changes", rows("roost_core/histories-refused"))
def test_a_garbled_history_is_refused(changes: dict[str, object]) -> None:
    body = json.loads(classes(2).as_text())
    assert read_history(json.dumps(body)).seen_minutes == 2 * DAY_MINUTES
    with pytest.raises(HistoryError):
        read_history(json.dumps({**body, **changes}), set_name="default")


@pytest.mark.parametrize(
    "changes",
    [
        [],
        {"weeks": 5},
        {"weeks": [[1, 2, 3]]},
        {"weeks": [[1, 2, 3, 0, 0, 0, float("nan")]]},
        {"late": [[1, 2, 3, "tired"]]},
        {"late": [[10**15, 2, 1, "not known"]]},
        {"monthNodeHours": float("inf")},
        {"until": -1},
    ],
)
def test_a_garbled_account_is_left_out_and_the_weeks_of_people_stay(changes: object) -> None:
    body = json.loads(classes(2).as_text())
    account = {**body["account"], **changes} if isinstance(changes, dict) else changes
    found = read_history(json.dumps({**body, "account": account}))
    assert (found.account, found.seen_minutes) == (Account(), 2 * DAY_MINUTES)


def test_a_history_of_the_version_before_keeps_its_weeks() -> None:
    body = json.loads(classes(9).as_text())
    del body["account"]
    earlier = {**body, "version": 2, "threshold": 0.1, "nodeHours": [1.0, 9.0]}
    found = read_history(json.dumps(earlier))
    assert (found.seen_minutes, found.account) == (9 * DAY_MINUTES, Account())


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(HistoryError):
        read_history(text)
