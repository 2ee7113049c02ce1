"""Windows of local time against a calendar that looks at every single minute."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from roost_core.placement.headroom_windows import Window, changes_between, period_at
from tests.recorded_data import rows

ANY_DAY = st.sampled_from(rows("controllers/clock-changes"))
FIELD = st.integers(0, 59).map(str)
HOUR = st.integers(0, 23).map(str)
CRON = st.one_of(
    st.builds(lambda minute, hour: f"{minute} {hour} * * *", FIELD, st.integers(0, 4).map(str)),
    st.builds(
        lambda minute, hour, day: f"{minute} {hour} * * {day}",
        FIELD,
        HOUR,
        st.sampled_from(["0", "6,0", "1-5"]),
    ),
    st.builds(
        lambda minute, hour: f"{minute} {hour} * * *",
        st.sampled_from(["0,30", "*/20"]),
        st.sampled_from(["*", "1-3"]),
    ),
)


def _field_matches(field: str, value: int) -> bool:
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        if span == "*" and value % int(step or 1) == 0:
            return True
        if span != "*" and int(low) <= value <= int(high or low):
            return True
    return False


def _matches(cron: str, local: datetime) -> bool:
    minute, hour, _, _, weekday = cron.split()
    return (
        _field_matches(minute, local.minute)
        and _field_matches(hour, local.hour)
        and _field_matches(weekday, local.isoweekday() % 7)
    )


def _minute_by_minute(window: Window, begin: datetime, minutes: int) -> list[bool]:
    """Whether the window holds in each minute, by a clock that is watched: each local time counts
    once.
    """
    zone = ZoneInfo(window.time_zone)
    shown = begin.astimezone(zone).replace(tzinfo=None)
    start, end = -2, -1
    holds = []
    for tick in range(minutes):
        local = (begin + timedelta(minutes=tick)).astimezone(zone).replace(tzinfo=None)
        while shown < local:
            shown += timedelta(minutes=1)
            if _matches(window.start, shown):
                start = tick
            if _matches(window.end, shown):
                end = tick
        holds.append(start > end)
    return holds


@settings(max_examples=60, deadline=None)
@given(at=ANY_DAY, start=CRON, end=CRON)
@example(at=("Europe/Berlin", "2027-03-28"), start="0 2 * * *", end="0 3 * * *")
@example(at=("Europe/Berlin", "2027-10-31"), start="30 2 * * *", end="45 2 * * *")
@example(at=("Pacific/Chatham", "2027-09-25"), start="0 3 * * *", end="50 3 * * *")
def test_a_window_holds_in_exactly_the_minutes_that_a_watched_clock_says(
    at: tuple[str, str], start: str, end: str
) -> None:
    zone, day = at
    window = Window("w", 7, zone, start, end)
    # A week before: whatever started earlier has been seen, for every rule drawn here fires within
    # a week.
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=8)
    minutes = 10 * 24 * 60
    watched = _minute_by_minute(window, begin, minutes)
    first_asked = 8 * 24 * 60 - 600
    edges = {
        tick + step
        for tick in range(1, minutes)
        if watched[tick] != watched[tick - 1]
        for step in (-1, 0)
    }
    for tick in sorted({*edges, *range(first_asked, minutes, 29)}):
        if tick < first_asked:
            continue
        moment = (begin + timedelta(minutes=tick)).timestamp()
        assert (period_at([window], 1, moment).replicas == 7) == watched[tick], begin + timedelta(
            minutes=tick
        )


@settings(max_examples=10, deadline=None)
@given(at=ANY_DAY, start=CRON, end=CRON, other_start=CRON, other_end=CRON)
def test_the_changes_listed_are_those_that_asking_every_minute_finds(
    at: tuple[str, str], start: str, end: str, other_start: str, other_end: str
) -> None:
    zone, day = at
    windows = [Window("a", 7, zone, start, end), Window("b", 3, "UTC", other_start, other_end)]
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    until = begin + 86400
    listed = {change.at: change.replicas for change in changes_between(windows, 1, begin, until)}
    now = None
    for tick in range(24 * 60):
        moment = begin + tick * 60
        now = listed.get(moment, now)
        assert now == period_at(windows, 1, moment).replicas
    assert all(at % 60 == 0 for at in listed)
