"""Booked events as entries of a list: what is accepted, what is refused, and when an event
begins.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from roost_core.placement.headroom_windows import parse_moment
from roost_core.release.bookings import Event, Limits, first_start_after, parse_events
from roost_core.release.reader import Reader
from tests.recorded_data import rows

LIMITS = Limits(("default", "gpu"), 200)
LECTURE = {
    "name": "lecture",
    "people": 120,
    "timeZone": "Europe/Berlin",
    "start": "2026-11-24T09:00",
}


def _parse(*entries: Any) -> tuple[tuple[Event, ...], list[str]]:
    read = Reader()
    return parse_events(read, list(entries), "events", LIMITS), [
        str(fault) for fault in read.faults
    ]


def _starts(event: Event, after: str, count: int) -> list[int]:
    moment = int(parse_moment(after, "UTC"))
    found: list[int] = []
    while len(found) < count and (start := first_start_after(event, moment)) is not None:
        found.append(start)
        moment = start
    return found


def test_an_event_has_the_first_set_and_its_image_in_the_full_form() -> None:
    (event,), faults = _parse({**LECTURE, "image": "me/course"})
    assert not faults
    assert (event.set_name, event.image) == ("default", "docker.io/me/course:latest")


@pytest.mark.parametrize(("start", "after", "starts"), rows("roost_core/event-starts"))
def test_a_date_begins_once_and_a_weekly_event_keeps_its_local_time(
    start: str, after: str, starts: list[str]
) -> None:
    (event,), _ = _parse({**LECTURE, "start": start})
    assert _starts(event, after, 2) == [parse_moment(text, "UTC") for text in starts]


@pytest.mark.parametrize(("change", "fault"), rows("roost_core/events-refused"))
def test_what_is_wrong_is_said_and_the_others_count(change: dict[str, Any], fault: str) -> None:
    events, faults = _parse({**LECTURE, **change}, {**LECTURE, "name": "other"})
    assert [event.name for event in events] == ["other"]
    assert len(faults) == 1
    assert fault in faults[0]


@pytest.mark.parametrize("entry", [None, 5, "lecture", [], [LECTURE]])
def test_anything_may_stand_in_the_list(entry: Any) -> None:
    events, faults = _parse(entry, LECTURE)
    assert [event.name for event in events] == ["lecture"]
    assert faults


def test_no_more_than_200_events_count() -> None:
    events, faults = _parse(*({**LECTURE, "name": f"e{number}"} for number in range(201)))
    assert len(events) == 200
    assert faults == ["events: found 201, expected at most 200 events; the first 200 count."]


def test_without_a_set_every_event_is_refused() -> None:
    read = Reader()
    assert parse_events(read, [LECTURE], "events", Limits((), 200)) == ()
    assert "a set of placeholders: the values have none" in str(read.faults[0])


@dataclass(frozen=True)
class CountedStarts:
    """Begins every hundred seconds until 1000, and notes what it is asked."""

    asked: list[int] = field(default_factory=list, hash=False, compare=False)
    time_zone: str = "UTC"

    def first_after(self, moment: int) -> int | None:
        self.asked.append(moment)
        return (moment // 100 + 1) * 100 if moment < 1000 else None


def test_a_beginning_is_searched_once() -> None:
    starts = CountedStarts()
    event = Event("counted", 1, starts)
    moments = {0: 100, 60: 100, 99: 100, 100: 200, 40: 100, 950: 1000, 1000: None, 5000: None}
    assert {moment: first_start_after(event, moment) for moment in moments} == moments
    assert starts.asked == [0, 100, 950, 1000]
    # Earlier than what is known is searched anew.
    assert first_start_after(event, 350) == 400
