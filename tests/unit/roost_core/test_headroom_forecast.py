"""What is learned of the growth in users, and what is forecast from it."""

import json

import pytest

from roost_core.placement.headroom_forecast import Forecast, experience_of, forecast_hour, forecast_need, next_change
from roost_core.placement.headroom_history import (
    KEPT_HOURS,
    History,
    HistoryError,
    Meter,
    Sample,
    history_of,
    read_history,
)
from roost_core.placement.headroom_windows import parse_moment

BOOT = 300
# Monday.
BEGIN = int(parse_moment("2026-03-02T00:00Z", "UTC"))
HOUR = 3600
DAY, WEEK = 24, 168


def lectures(days: int, people: int = 100) -> History:
    """Two more users in every hour, and so many on Tuesdays from 8:00 to 9:00 UTC."""
    growth = [people if hour % WEEK == DAY + 8 else 2 for hour in range(days * DAY)]
    return History(BOOT, BEGIN // HOUR, tuple(growth))


def forecast(history: History, at: str, quantile: float = 0.9) -> Forecast | None:
    return forecast_hour(experience_of(history, "UTC"), parse_moment(at, "UTC"), quantile)


def test_growth_is_the_most_by_which_users_rise_within_a_boot_time() -> None:
    # Ten come within a minute and stay; another ten half an hour later, when five have left; four in the third hour.
    first, second = BEGIN + 600.0, BEGIN + 2400.0
    sessions = [(first + second_, BEGIN + 3.0 * HOUR, 1.0) for second_ in range(10)]
    sessions += [(BEGIN + 30.0, second - 60, 1.0)] * 5
    sessions += [(second + each, BEGIN + 3 * HOUR, 1.0) for each in range(10)]
    sessions += [(BEGIN + 2 * HOUR + 60.0, BEGIN + 3 * HOUR, 4.0)]
    assert history_of(sessions, BOOT).growth[:2] == (10, 4)
    # The growth of the hour in which it began, though it came in the next.
    late = [
        (BEGIN + 1.0, BEGIN + 2.0, 1.0),
        (BEGIN + HOUR + 120.0, BEGIN + 9.0 * HOUR, 7.0),
        (BEGIN + 2.0 * HOUR, BEGIN + 3.0 * HOUR, 1.0),
    ]
    assert history_of(late, BOOT).growth[:2] == (7, 7)


def test_an_hour_of_which_little_was_seen_is_left_out() -> None:
    meter, done = Meter(BOOT), {}
    for minute in (*range(20), *range(60, 130)):
        meter, complete = meter.take(Sample(BEGIN + 60.0 * minute, float(minute)))
        done.update(complete)
    assert done == {BEGIN // HOUR + 1: 5}


def test_a_pause_is_no_growth() -> None:
    meter, _ = Meter(BOOT).take(Sample(BEGIN, 3.0))
    meter, _ = meter.take(Sample(BEGIN + 1000.0, 90.0))
    done = {}
    for minute in range(20, 80):
        meter, complete = meter.take(Sample(BEGIN + 60.0 * minute, 90.0))
        done.update(complete)
    assert done == {BEGIN // HOUR: 0}


def test_the_same_hour_of_the_week_is_expected_again_and_the_day_before_is_quiet() -> None:
    history = lectures(28)
    tuesday, monday = forecast(history, "2026-03-31T08:20"), forecast(history, "2026-03-30T08:20")
    assert tuesday is not None
    assert monday is not None
    assert tuesday.placeholders >= 80
    assert monday.placeholders < 20


def test_a_week_old_history_forecasts_by_the_hour_of_the_day() -> None:
    growth = tuple(30 if hour % DAY == 9 else 1 for hour in range(4 * DAY))
    at_nine = forecast(History(BOOT, BEGIN // HOUR, growth), "2026-03-06T09:30")
    at_ten = forecast(History(BOOT, BEGIN // HOUR, growth), "2026-03-06T10:30")
    assert at_nine is not None
    assert at_ten is not None
    assert at_nine.placeholders >= 30
    assert at_ten.placeholders <= 3


def test_with_less_than_two_days_nothing_is_forecast() -> None:
    assert forecast(lectures(0), "2026-03-03T08:00") is None
    assert forecast(lectures(1), "2026-03-03T08:00") is None
    assert forecast(lectures(2), "2026-03-04T08:00") is not None


def test_a_rise_from_week_to_week_is_followed() -> None:
    growth = tuple(10 + 3 * (hour // DAY) for hour in range(28 * DAY))
    later = forecast(History(BOOT, BEGIN // HOUR, growth), "2026-03-30T12:00")
    assert later is not None
    # The next day has 94.
    assert later.usual < 60
    assert later.placeholders >= 88


def test_what_no_longer_happens_is_forgotten() -> None:
    gone = tuple(0 if hour >= 4 * WEEK else growth or 0 for hour, growth in enumerate(lectures(56).growth))
    still = forecast(lectures(56), "2026-04-28T08:00")
    no_more = forecast(History(BOOT, BEGIN // HOUR, gone), "2026-04-28T08:00")
    assert still is not None
    assert no_more is not None
    assert no_more.placeholders < still.placeholders / 2


def test_the_hour_is_that_of_the_clock_on_the_wall() -> None:
    # Lectures at 9:00 in Berlin: 8:00 UTC before 2026-03-29, 7:00 after it.
    experience = experience_of(lectures(27), "Europe/Berlin")
    summer = forecast_hour(experience, parse_moment("2026-03-31T09:00", "Europe/Berlin"), 0.9)
    assert summer is not None
    assert summer.placeholders >= 80


def test_placeholders_are_requested_a_boot_time_early() -> None:
    experience = experience_of(lectures(28), "UTC")
    eight = parse_moment("2026-03-31T08:00", "UTC")
    needs = [forecast_need(experience, eight + offset, BOOT, 0.9) for offset in (-301, -299, 3599, 3601)]
    numbers = [0 if need is None else need.placeholders for need in needs]
    assert [number >= 80 for number in numbers] == [False, True, True, False]
    assert next_change(eight - 400, BOOT) == eight - 300
    assert next_change(eight - 300, BOOT) == eight
    assert next_change(eight, BOOT) == eight + 3300


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        '{"version": 2, "bootSeconds": 300, "firstHour": 1, "growth": []}',
        '{"version": 1, "bootSeconds": 300, "firstHour": 1}',
        '{"version": 1, "bootSeconds": 300, "firstHour": 1, "growth": [1.5]}',
        '{"version": 1, "bootSeconds": 300, "firstHour": 1, "growth": [-1]}',
        '{"version": 1, "bootSeconds": 300, "firstHour": 1, "growth": [true]}',
        '{"version": 1, "bootSeconds": 300, "firstHour": 1, "growth": [1e9]}',
        '{"version": 1, "bootSeconds": 0, "firstHour": 1, "growth": []}',
        '{"version": 1, "bootSeconds": 300, "firstHour": 99999999999999, "growth": []}',
    ],
)
def test_a_garbled_history_is_refused(text: str) -> None:
    with pytest.raises(HistoryError):
        read_history(text)


def test_a_history_is_kept_for_eight_weeks() -> None:
    history = History(BOOT).with_hours(dict.fromkeys(range(1000, 3000), 5))
    assert (history.first_hour, len(history.growth)) == (3000 - KEPT_HOURS, KEPT_HOURS)
    assert read_history(history.as_text()) == history
    longer = json.dumps({"version": 1, "bootSeconds": 300, "firstHour": 10, "growth": [1] * (KEPT_HOURS + 7)})
    assert read_history(longer).first_hour == 17
