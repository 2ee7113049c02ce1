"""What is said of a booking that comes again is true on each day until its last one."""

import re
from datetime import date, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from roost_core.placement.headroom_windows import local_datetime, unix_time
from roost_core.release.bookings import LocalStarts
from roost_lab.booking.entry import WEEKDAYS, repeats_in_words, weekly_start

DATES = st.dates(date(2026, 1, 1), date(2028, 12, 31))
MONTHS = st.just("*") | st.lists(st.integers(1, 12), min_size=1, unique=True).map(
    lambda months: ",".join(map(str, sorted(months)))
)


@given(weekdays=st.sets(st.integers(0, 6)), months=MONTHS, today=DATES, days=st.integers(0, 400))
@example(weekdays={0}, months="1,2,10,11,12", today=date(2026, 9, 28), days=137)
def test_words_are_said_of_bookings_that_leave_out_no_week(
    weekdays: set[int], months: str, today: date, days: int
) -> None:
    until = today + timedelta(days)
    start = weekly_start(weekdays, 8, 15, months)
    said = repeats_in_words(start, str(until), today)
    held: list[date] = []
    moment = unix_time(datetime(today.year, today.month, today.day), "UTC") - 1  # noqa: DTZ001
    starts = LocalStarts(start, "UTC", str(until))
    while (following := starts.first_after(moment)) is not None:
        held.append(local_datetime(following, "UTC").date())
        moment = following
    if said == f"{start} until {until}":
        # A month of them is left out, or none is to come.
        assert months != "*"
        return
    spoken = re.fullmatch(r"every (.+) 08:15 until [0-9-]{10}", said)
    assert spoken
    names = set(re.split(", | and ", spoken[1].lower()))
    if names == {"day"}:
        names = set(WEEKDAYS)
    if names == {"weekday"}:
        names = set(WEEKDAYS[:5])
    # The first one is told with its date.
    first = held[0] if held else until + timedelta(1)
    span = [first + timedelta(day) for day in range((until - first).days + 1)]
    assert held == [day for day in span if WEEKDAYS[day.weekday()] in names]


@given(months=MONTHS, today=DATES)
def test_months_are_told_where_a_booking_never_ends(months: str, today: date) -> None:
    start = weekly_start([0, 3], 14, 0, months)
    said = "every Monday and Thursday 14:00" if months == "*" else start
    assert repeats_in_words(start, "", today) == said


def test_other_expressions_and_times_stay_as_they_are_written() -> None:
    today = date(2026, 11, 26)
    for start in ("0 9 1 * *", "0 9 * * MON#2", "*/5 9 * * 1", "2026-12-01T09:00", "None"):
        assert repeats_in_words(start, "", today) == start
        assert repeats_in_words(start, "2027-02-12", today) == f"{start} until 2027-02-12"
