"""The forecast beside its plain form: what each earlier day says, without what is kept between
minutes or left out to be fast.
"""

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from roost_core.placement.headroom_forecast import (
    Day,
    Likeness,
    Outlook,
    Rises,
    earlier_minutes,
    forecast_need,
    look_ahead,
    steady_needs,
)
from roost_core.placement.headroom_history import UNSEEN, History
from roost_core.placement.headroom_windows import local_datetime
from roost_core.placement.headroom_worth import seats_worth, worth_of

DAY = 1440
# A Thursday, 0:00.
THURSDAY = 7 * 1000 * DAY


def drawn(seed: int, days: int) -> History:
    """Weeks of a hub: classes at nine, late by some minutes or missing, and people at any time."""
    chance = Random(seed)
    levels = [0] * (days * DAY)
    for day in range(days):
        if day % 7 in (0, 3, 5) and chance.random() < 0.9:
            begin = day * DAY + 540 + chance.choice([0, 0, 1, 2, 5, 10])
            people = chance.choice([20, 30, 31, 45])
            for minute in range(60):
                levels[begin + minute] += min(people, 8 * minute)
        for _ in range(15):
            begin = day * DAY + chance.randrange(DAY - 90)
            for minute in range(begin, begin + chance.randrange(5, 90)):
                levels[minute] += 1
        if chance.random() < 0.2:
            away = day * DAY + 530 + chance.randrange(20)
            levels[away : away + 4] = [UNSEEN] * 4
    boots = chance.choice([(), (100, 100, 100), (300, 500, 400)])
    return History(THURSDAY, array("i", levels), boots=boots)


def rise(history: History, minute: int) -> int:
    found = history.growth(minute, history.ahead_minutes)
    return UNSEEN if found is None else found


def earlier(history: History, minute: int) -> list[tuple[int, float, str]]:
    """That minute of at most 56 days before, what recency counts, and how the day is like today."""
    today = minute // DAY
    found = []
    for back in range(1, 57):
        kinds = [(day + 3) % 7 >= 5 for day in (today, today - back)]
        like = "same" if back % 7 == 0 else "like" if kinds[0] == kinds[1] else "other"
        found.append((minute - back * DAY, 0.8 ** (back / 7), like))
    return [one for one in found if one[0] + DAY >= history.first]


def plain_days(history: History, minute: int) -> list[tuple[float, ...]] | None:
    seen = [one for one in earlier(history, minute) if rise(history, one[0]) != UNSEEN]
    if len(seen) < 2:
        return None
    if all(rise(history, at - shift) <= 0 for at, _, _ in seen for shift in (0, 5, 10)):
        return []
    weights = {"same": 1.0, "like": 0.1, "other": 0.02}
    if any(like == "same" for _, _, like in seen):
        weights = {"same": 1.0, "like": 0.003, "other": 0.0005}
    found: list[tuple[float, ...]] = []
    for at, recency, like in seen:
        for delay, share in ((0, 1.0), (5, 0.03), (10, 0.03)):
            then = at - delay
            moments = [history.at(then - back) for back in (0, 5, 2, 7)]
            long_ago = history.at(then - 20)
            if UNSEEN in (rise(history, then), *moments) or (delay and long_ago == UNSEEN):
                continue
            in_time, late = moments[0] - moments[1], moments[2] - moments[3]
            lately = math.nan if long_ago == UNSEEN else moments[0] - long_ago
            weight = recency * weights[like] * share
            least, most = sorted((in_time, late))
            found.append((weight, rise(history, then), least, most, lately, delay > 0))
    return found


def plain_steady(history: History, minute: int, sign: int) -> Counter[float]:
    found: Counter[float] = Counter()
    weights = {"same": 1.0, "like": 0.5, "other": 0.1}
    for at, recency, like in earlier(history, minute):
        for step in (6, 12, 18, 24, 30, 36, 42, 48, 54, 60):
            need = rise(history, at + sign * step)
            if need != UNSEEN:
                found[need] += recency * weights[like]  # type: ignore[assignment] # a float
    return found


def unlike(one: float, other: float) -> float:
    return (one - other) ** 2 / (1 + abs(one) + abs(other))


def plain_needs(outlook: Outlook, came: float) -> list[tuple[float, float]]:
    """What is needed if today goes on as each of the days, and what each counts."""
    history = outlook.history
    now = history.end - 1
    before = [history.at(now - 5), history.at(now - 20)]
    lately = None if UNSEEN in before else came + before[0] - before[1]
    found = []
    lost = 0.0
    for day in outlook.days:
        nearest = min(max(came, day.fewest), day.most)
        weight = 1 + unlike(came, nearest)
        is_fewer = False
        if lately is not None and day.lately is not None:
            is_fewer = lately < day.lately and day.lately > day.coming
            if day.is_delayed or is_fewer:
                weight += unlike(lately, day.lately)
        need = max(0.0, day.coming - 0.25 * max(0.0, came - nearest))
        found.append((need, day.weight / weight))
        if not day.is_delayed and (came < day.fewest or is_fewer):
            lost += day.weight * (1 - 1 / weight)
    usual = sum(day.weight for day in outlook.days if day.is_delayed)
    more = 1 + 0.3 * lost / usual if usual else 1.0
    weighed = [
        (need, weight * more if day.is_delayed else weight)
        for day, (need, weight) in zip(outlook.days, found, strict=True)
    ]
    return weighed or [(0.0, 1.0)]


def plain_others(outlook: Outlook, came: float) -> list[int]:
    """What came after like waves of two weeks, where today's is larger than on half of all days."""
    if came < 3:
        return []
    lost = sum(
        day.weight * (1 - 1 / (1 + unlike(came, day.most)))
        for day in outlook.days
        if came > day.most
    )
    if outlook.days and lost < sum(day.weight for day in outlook.days) / 2:
        return []
    history = outlook.history
    levels = history.levels[-14 * DAY :]
    two = levels[-1] - levels[-3]
    found = []
    for at in range(5, len(levels) - history.ahead_minutes):
        then = levels[at], levels[at - 5], levels[at - 2]
        if UNSEEN in then:
            continue
        if unlike(came, then[0] - then[1]) <= 1 and unlike(two, then[0] - then[2]) <= 1:
            found.append(max(levels[at : at + history.ahead_minutes + 1]) - then[0])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_each_day_and_each_hour_says_what_it_says_in_plain_form(seed: int) -> None:
    days = (15, 3, 60, 22, 9, 30)[seed]
    history = drawn(seed, days)
    rises = Rises(history)
    today = history.first + days * DAY
    for moment in (530, 535, 540, 541, 545, 549, 550, 551, 556, 560, 700, 1437):
        minute = today - DAY + moment
        outlook = look_ahead(history, minute, "UTC", rises)
        plain = plain_days(history, minute)
        assert (outlook is None) == (plain is None)
        if outlook is None or plain is None:
            continue
        said = [
            (*day[:4], math.nan if day.lately is None else day.lately, day.is_delayed)
            for day in outlook.days
        ]
        assert said == [pytest.approx(one, nan_ok=True) for one in plain]
        for sign, needs in ((-1, outlook.before), (1, outlook.after)):
            assert dict(needs) == pytest.approx(plain_steady(history, minute, sign))
            assert [need for need, _ in needs] == sorted(dict(needs), reverse=True)
        assert (outlook.before, outlook.after) == steady_needs(history, minute, "UTC", rises)
        here = [rise(history, at) for at, _, _ in earlier(history, minute)]
        most = max([0, *dict(outlook.before), *dict(outlook.after), *here])
        assert outlook.most == most
        assert outlook.days_seen == sum(one != UNSEEN for one in here)
        assert outlook.floor(10**6, 10**9) == (10**6 if outlook.days_seen < 7 else 1 + most)
        assert outlook.floor(0, 10**9) == 0
        assert outlook.floor(10**6, 0) == (10**6 if outlook.days_seen < 7 else 0)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_needed_follows_from_who_came_in_plain_form(seed: int) -> None:
    days = (22, 15, 36, 9)[seed]
    whole = drawn(10 + seed, days)
    chance = Random(seed)
    for _ in range(12):
        kept = (days - 1) * DAY + 525 + chance.randrange(45)
        history = History(whole.first, whole.levels[:kept], boots=whole.boots)
        minute = history.end - 1
        outlook = look_ahead(history, minute, "UTC")
        if outlook is None:
            continue
        worth = worth_of(chance.choice([3, 10, 40]), chance.choice([1, 5, 18]), 6)
        room = chance.choice([0, 0, 4])
        steady = min(
            seats_worth(needs, worth.going_on(), room) for needs in (outlook.before, outlook.after)
        )
        for came in (0, 1, 2, 3, 8, 16, 24, 60):
            needs = plain_needs(outlook, came)
            seats = seats_worth(needs, worth, room)
            others = plain_others(outlook, came)
            if others and came >= 3:
                lost = 1.0
                if outlook.days:
                    lost = sum(
                        day.weight * (1 - 1 / (1 + unlike(came, day.most)))
                        for day in outlook.days
                        if came > day.most
                    )
                more = [(float(other), 0.3 * lost / len(others)) for other in others]
                seats = max(seats, seats_worth([*needs, *more], worth, room))
            found = forecast_need(outlook, came, worth, room)
            assert found == (max(seats, steady), steady)


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "Pacific/Auckland", "America/Los_Angeles"]
)
@pytest.mark.parametrize("moment", [0, 300, 700, 1200, 1439])
def test_earlier_days_have_the_same_time_of_the_clock_and_are_like_by_their_weekday(
    zone: str, moment: int
) -> None:
    """Sixty days around a change of clocks; some begin on another day of the UTC."""
    minute = 1_800_000_000 // 60 // DAY * DAY + 70 * DAY + moment
    history = History(minute - 60 * DAY, array("i", [0] * (60 * DAY)))
    here = local_datetime(minute * 60, zone)
    found = list(earlier_minutes(history, minute, zone))
    assert len(found) == 56
    for back, (at, recency, likeness) in enumerate(found, 1):
        there = local_datetime(at * 60, zone)
        assert (here - there).total_seconds() == back * 86_400
        assert recency == pytest.approx(0.8 ** (back / 7))
        kinds = [day.weekday() >= 5 for day in (here, there)]
        expected = Likeness.LIKE_DAY if kinds[0] == kinds[1] else Likeness.OTHER_DAY
        if here.weekday() == there.weekday():
            expected = Likeness.SAME_WEEKDAY
        assert likeness is expected


# Forty came within five minutes, sixteen of them in the last two, then twenty more.
WAVE = (8, 16, 24, 32, 40, *[60] * 29)


def seats_after(
    yesterday: Sequence[int],
    today: Sequence[int],
    days: Sequence[Day] | None = None,
    began: int = 14 * DAY + 900,
) -> int:
    """Seats where waiting is dear, for a hub where nobody came but at 15:00 yesterday and at 9:00
    today.

    yesterday, today: how many were there in each minute from then on; today's fifth is the last.
    days: what earlier days say of 9:00; None: that nobody came. began: another minute than
        yesterday's 15:00.
    """
    now = 15 * DAY + 540
    levels = [0] * now
    levels[began : began + len(yesterday)] = yesterday
    history = History(THURSDAY, array("i", [*levels, *today]))
    if days is None:
        outlook = look_ahead(history, history.end - 1, "UTC")
        assert outlook is not None
    else:
        outlook = Outlook(days, len(days), 0.0, (), (), history)
    return forecast_need(outlook, today[-1], worth_of(1000, 20, 6)).worth


@pytest.mark.parametrize(
    ("today", "is_like"),
    [
        ((0, 0, 29, 37, 45), True),
        ((0, 0, 33, 41, 49), True),
        ((0, 0, 34, 42, 50), False),
        # As many, more of them in the last two minutes.
        ((0, 0, 23, 34, 45), True),
        ((0, 0, 22, 34, 45), False),
    ],
)
def test_a_wave_counts_for_another_that_differs_by_no_more_than_chance(
    today: tuple[int, ...], is_like: bool
) -> None:
    assert (seats_after(WAVE, today) >= 20) == is_like


def test_from_three_people_on_it_may_be_the_wave_of_another_hour() -> None:
    for people, is_like in ((2, False), (3, True)):
        yesterday = [*range(people), *[people] * (6 - people), *[people + 20] * 29]
        today = [*range(1, people + 1), *[people] * (5 - people)]
        assert (seats_after(yesterday, today) >= 20) == is_like


def test_who_came_later_than_a_node_takes_to_boot_needs_no_seat_yet() -> None:
    # A node takes six minutes.
    assert seats_after((8, 16, 24, 32, *[40] * 6, 60), (0, 0, 24, 32, 40)) == 20
    # The eight who came after 32 had come.
    assert seats_after((8, 16, 24, 32, *[40] * 7, 60), (0, 0, 24, 32, 40)) == 8


def test_other_waves_count_where_half_of_what_days_say_knows_no_wave_as_large() -> None:
    # On the one day as many came, and then nobody; on the other nobody.
    for weight, do_count in ((1.0, False), (1.1, True)):
        days = [Day(1.0, 0, 0, 100, None), Day(weight, 0, 0, 0, None)]
        assert (seats_after(WAVE, (0, 0, 24, 32, 40), days) >= 20) == do_count
    # Today's 17 are unlike that day's 7 by (17 - 7)² / (1 + 17 + 7) = 4: it loses 4/5 of 1.25. That
    # is less than half of all weight, half of it, or more.
    for weight, do_count in ((0.76, False), (0.75, True), (0.74, True)):
        days = [Day(1.25, 0, 0, 7, None), Day(weight, 0, 0, 100, None)]
        seats = seats_after((3, 6, 10, 13, 17, *[37] * 29), (0, 0, 10, 13, 17), days)
        assert (seats >= 20) == do_count


def test_waves_of_other_hours_count_for_fourteen_days() -> None:
    # Today's last minute is 9:04. The last fourteen days begin at 9:05 of the second day, and five
    # minutes later is the first whose wave is known: the one to which forty had come.
    today, first = (0, 0, 24, 32, 40), DAY + 545
    days = [Day(1.0, 0, 0, 0, None)]
    assert seats_after(WAVE, today, days, began=first + 1) == 20
    assert seats_after(WAVE, today, days, began=first) == 0
