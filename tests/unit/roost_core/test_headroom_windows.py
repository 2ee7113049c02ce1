"""Windows of headroom: what can be read, and what holds when clocks change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_core.placement.headroom_windows import (
    Window,
    changes_between,
    local_time,
    longest_and_hours,
    never_holds,
    parse_moment,
    period_at,
    replica_hours,
)
from roost_core.release.reader import Reader
from roost_core.release.windows import parse_windows
from tests.recorded_data import rows


def _window(
    start: str, end: str, *, replicas: int = 30, zone: str = "Europe/Berlin", name: str = "lecture"
) -> Window:
    return Window(name, replicas, zone, start, end)


def _changes(
    windows: list[Window], begin: str, end: str, zone: str, otherwise: int = 3
) -> list[tuple[str, int]]:
    span = (parse_moment(begin, zone), parse_moment(end, zone))
    return [
        (local_time(change.at, zone)[4:], change.replicas)
        for change in changes_between(windows, otherwise, *span)
    ]


def _faults(**changed: object) -> list[str]:
    times = {"timeZone": "Europe/Berlin", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5"}
    entry = {"name": "lecture", "replicas": 30, **times}
    read = Reader()
    found = parse_windows(read, [{**entry, **changed}], "windows")
    assert bool(found) != bool(read.faults)
    return [str(fault) for fault in read.faults]


# What it costs


@given(
    begin=st.integers(0, 20),
    hours=st.integers(1, 3),
    last_day=st.integers(1, 5),
    replicas=st.integers(1, 200),
)
def test_a_weeks_hours_are_the_longest_times_the_days(
    begin: int, hours: int, last_day: int, replicas: int
) -> None:
    window = _window(
        f"0 {begin} * * 1-{last_day}",
        f"0 {begin + hours} * * 1-{last_day}",
        replicas=replicas,
        zone="UTC",
    )
    longest, in_a_week = longest_and_hours(window)
    assert longest == hours
    assert in_a_week == pytest.approx(hours * last_day * replicas)


def test_a_weeks_longest_time_is_that_of_the_day_whose_end_is_a_day_later() -> None:
    # Monday 9:00 to Tuesday 11:00, and Thursday 9:00 to 11:00.
    window = _window("0 9 * * 1,4", "0 11 * * 2,4", replicas=1, zone="UTC")
    longest, in_a_week = longest_and_hours(window)
    assert longest == 26
    assert in_a_week == pytest.approx(28)


def test_a_window_of_each_week_is_measured_without_the_nights_in_which_clocks_change() -> None:
    for start, end, longest in (("0 0 * * 0", "0 6 * * 0", 6), ("0 0 1-31 * 0", "0 6 * * *", 7)):
        assert longest_and_hours(_window(start, end))[0] == longest


def test_a_start_that_is_an_end_hides_no_later_start_of_the_day() -> None:
    longest, in_a_week = longest_and_hours(
        _window("0 8,9 * * *", "0 8,18 * * *", replicas=2, zone="UTC")
    )
    assert longest == 9
    assert in_a_week == pytest.approx(9 * 7 * 2)


def test_a_window_by_dates_comes_once_and_has_no_hours_a_week() -> None:
    assert longest_and_hours(_window("2024-01-24T09:00", "2024-01-24T11:00")) == (0, 0)


def test_a_window_that_never_holds_has_no_hours() -> None:
    assert longest_and_hours(_window("0 9 * * *", "0 9 * * *")) == (0, 0)


# What can be read


@pytest.mark.parametrize("changed", rows("roost_core/windows-accepted"))
def test_a_window_is_cron_texts_or_dates_in_a_zone(changed: dict[str, object]) -> None:
    assert _faults(**changed) == []


@pytest.mark.parametrize(("changed", "said"), rows("windows-refused"))
def test_what_is_wrong_with_a_window_is_said_with_its_key(
    changed: dict[str, object], said: str
) -> None:
    assert said in "\n".join(_faults(**changed))


def test_two_windows_of_one_name_are_a_fault() -> None:
    entry = {
        "name": "a",
        "replicas": 1,
        "timeZone": "UTC",
        "start": "0 8 * * *",
        "end": "0 9 * * *",
    }
    read = Reader()
    parse_windows(read, [entry, entry], "placeholders[0].windows")
    assert [fault.key for fault in read.faults] == ["placeholders[0].windows[1].name"]


# What holds


def test_where_windows_overlap_the_most_replicas_win_also_below_the_sets_own_number() -> None:
    night = _window("0 20 * * *", "0 6 * * *", replicas=0, name="night")
    exam = _window("2026-10-02T22:00", "2026-10-03T02:00", replicas=50, name="exam")
    found = _changes(
        [night, exam], "2026-10-02T12:00", "2026-10-03T12:00", "Europe/Berlin", otherwise=5
    )
    wanted = {"02 12": 5, "02 20": 0, "02 22": 50, "03 02": 0, "03 06": 5}
    assert found == [(f"2026-10-{at}:00 CEST", replicas) for at, replicas in wanted.items()]


def test_changes_are_listed_before_the_end_and_none_at_it() -> None:
    night = _window("0 20 * * *", "0 6 * * *", replicas=0, zone="UTC")
    for end, number in (("19:59", 1), ("20:00", 1), ("20:01", 2)):
        assert len(_changes([night], "2026-10-02T12:00", f"2026-10-02T{end}", "UTC")) == number


@pytest.mark.parametrize(("zone", "text", "utc"), rows("roost_core/local-times"))
def test_a_local_time_is_one_moment(zone: str, text: str, utc: str) -> None:
    assert local_time(parse_moment(text, zone), "UTC")[4:] == f"{utc.replace('T', ' ')} UTC"


def test_a_moment_may_be_given_with_its_offset() -> None:
    assert parse_moment("2027-01-01T08:00+05:30", "Europe/Berlin") == parse_moment(
        "2027-01-01T02:30Z", "Asia/Kolkata"
    )


def test_a_spell_ends_with_the_next_edge_of_any_window_and_never_without_windows() -> None:
    now = parse_moment("2026-10-05T12:00", "UTC")
    day, date = (
        _window("0 8 * * *", "0 18 * * *", zone="UTC"),
        _window("2020-01-01T00:00", "2020-01-02T00:00"),
    )
    period = period_at([day, date], 3, now)
    assert (period.replicas, period.windows, period.until) == (30, ("lecture",), now + 6 * 3600)
    assert period_at([date], 3, now).until is None
    assert period_at([], 3, now) == (3, (), None)


def test_nodes_are_rounded_up_at_each_change() -> None:
    day = _window("0 8 * * *", "0 18 * * *", zone="UTC", replicas=25)
    begin = parse_moment("2026-10-05T00:00", "UTC")
    changes = list(changes_between([day], 3, begin, begin + 86400))
    assert replica_hours(changes, begin + 86400) == 25 * 10 + 3 * 14
    assert replica_hours(changes, begin + 86400, per=12) == 3 * 10 + 1 * 14


@pytest.mark.parametrize(("start", "end", "never"), rows("roost_core/windows-never"))
def test_a_window_whose_every_start_is_an_end_never_holds(
    start: str, end: str, never: bool
) -> None:
    assert never_holds(Window("w", 1, "Europe/Berlin", start, end)) is never
