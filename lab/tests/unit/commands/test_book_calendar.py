"""`roost book --calendar`: bookings follow a calendar, and nobody else's are touched."""

import sys
import time
from pathlib import Path

import pytest
import yaml

from generator.faults import UsageError
from lab.tests.told import cases
from lab.tests.unit.calendars.test_reader import BERLIN, WEEKLY, calendar
from lab.tests.unit.commands.test_book_command import BOOKINGS, NOW, Cluster
from roost.cli import run
from roost_lab.commands import book

Captured = pytest.CaptureFixture[str]
PEOPLE = "DESCRIPTION:people: 120"
# Berlin's time.
MONDAYS = ["DTSTART;TZID=Europe/Berlin:20261109T090000", "RRULE:FREQ=WEEKLY;UNTIL=20270131"]
HOLIDAYS = "EXDATE;TZID=Europe/Berlin:20261228T090000,20270104T090000"
LECTURE = [*MONDAYS, HOLIDAYS, PEOPLE, "SUMMARY:lecture"]
EXAM = ["DTSTART:20261209T080000Z", "DESCRIPTION:people: 90", "SUMMARY:exam"]


class Desk:
    """Where somebody books a calendar."""

    def __init__(self, folder: Path, capsys: Captured) -> None:
        self.cluster = Cluster()
        self._folder, self._capsys = folder, capsys
        # What the last command said on stderr.
        self.faults: list[str] = []

    def book(
        self, data: bytes, *arguments: str, code: int = 0, name: str = "course.ics"
    ) -> list[str]:
        """What it prints, line by line."""
        (self._folder / name).write_bytes(data)
        assert run(["book", "--calendar", name, *arguments]) == code
        captured = self._capsys.readouterr()
        self.faults = captured.err.splitlines()
        return captured.out.splitlines()

    def listed(self) -> str:
        """What `roost book` alone prints: all bookings."""
        assert run(["book"]) == 0
        return self._capsys.readouterr().out

    @property
    def names(self) -> list[str]:
        return [entry["name"] for entry in self.cluster.booked]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured) -> Desk:
    made = Desk(tmp_path, capsys)
    monkeypatch.setattr(book, "connect_as_user", lambda *_: made.cluster)
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.chdir(tmp_path)
    return made


def test_a_calendar_is_booked_with_its_holidays_and_says_what_that_brings(desk: Desk) -> None:
    (printed,) = cases("calendars", "printed")
    assert desk.book(calendar(LECTURE, EXAM)) == printed.splitlines()
    lecture, exam = desk.cluster.booked
    assert lecture["calendar"] == exam["calendar"] == "course.ics"
    assert lecture["timeZone"] == "Europe/Berlin"
    assert lecture["start"] == [
        f"{day}T09:00"
        for day in (
            "2026-11-30", "2026-12-07", "2026-12-14", "2026-12-21", "2027-01-11", "2027-01-18",
            "2027-01-25",
        )
    ]  # fmt: skip
    wanted = "lecture: 120 people, Mon 2026-11-30 09:00 CET, then 6 times until Mon 2027"
    assert wanted in desk.listed()


def test_the_same_calendar_changes_nothing(desk: Desk) -> None:
    desk.book(calendar(LECTURE, EXAM))
    desk.cluster.objects[BOOKINGS]["metadata"]["resourceVersion"] = "written again"
    printed = desk.book(calendar(LECTURE, EXAM))
    assert "course.ics: 0 booked, 0 changed, 2 as before, 0 cancelled." in printed
    assert desk.cluster.objects[BOOKINGS]["metadata"]["resourceVersion"] == "written again"


def test_bookings_follow_the_calendar_and_others_stay_as_they_are(desk: Desk) -> None:
    assert run(["book", "20", "tomorrow", "9:00", "--name", "exam", "--zone", "UTC"]) == 0
    desk.book(calendar(EXAM), name="other.ics")
    (by_hand, by_other) = desk.cluster.booked
    assert by_other["name"] == "exam 2"
    desk.book(calendar(LECTURE, EXAM))
    assert desk.names == ["exam", "exam 2", "lecture", "exam 3"]
    # Of two descriptions the first counts: 120 people, as before.
    printed = desk.book(calendar([*LECTURE, "DESCRIPTION:people: 9"], [BERLIN]))
    assert "Cancelled: exam 3, which the calendar doesn't have any more." in printed
    printed = desk.book(calendar([*LECTURE[:2], "DESCRIPTION:people: 150", "SUMMARY:lecture"]))
    assert printed[0].endswith("(course.ics) (before: 120 people, 7 times).")
    assert desk.cluster.booked[:2] == [by_hand, by_other]
    assert desk.names == ["exam", "exam 2", "lecture"]


def test_with_a_name_a_calendar_may_move(desk: Desk) -> None:
    desk.book(calendar(LECTURE), "--name", "physics", name="a.ics")
    printed = desk.book(calendar(LECTURE), "--name", "physics", name="b.ics")
    assert "b.ics: 0 booked, 0 changed, 1 as before, 0 cancelled." in printed
    assert [entry["calendar"] for entry in desk.cluster.booked] == ["physics"]


def test_a_faulty_event_is_told_and_the_others_are_booked(desk: Desk) -> None:
    desk.book(calendar(LECTURE, [BERLIN, "RRULE:FREQ=SECONDLY", PEOPLE], EXAM), code=1)
    assert desk.names == ["lecture", "exam"]
    (fault,) = desk.faults
    assert fault.startswith("roost book: course.ics: event 2 (event 1, UID 1), RRULE: found ")


TYPING_ERRORS = {
    "people": "DESCRIPTION:people: 12O",
    "rule": "RRULE:FREQ=HOURLY",
    "dates": "EXDATE;TZID=Nowhere:20261207T090000",
    "zone": "DTSTART;TZID=Europe/Berlni:20261109T090000",
}


@pytest.mark.parametrize("error", TYPING_ERRORS.values(), ids=TYPING_ERRORS)
def test_a_typing_error_keeps_no_lecture_from_its_room(error: str, desk: Desk) -> None:
    second = ["DTSTART:20261210T080000Z", "DESCRIPTION:people: 30", "SUMMARY:lecture"]
    gone = ["DTSTART:20261211T080000Z", "DESCRIPTION:people: 30", "SUMMARY:seminar"]
    desk.book(calendar(LECTURE, second, gone))
    before = desk.cluster.booked
    changed = error.partition(":")[0].partition(";")[0]
    others = [line for line in LECTURE if not line.startswith(changed)]
    printed = desk.book(calendar([*others, error], second), code=1)
    assert desk.cluster.booked == before[:2]
    assert printed[0].startswith("As before: lecture 2: 30 people")
    kept = "Kept as it was: lecture: 120 people, Mon 2026-11-30 09:00 CET, then 6 times until"
    assert printed[1].startswith(kept)
    assert printed[1].endswith("(course.ics). Its event has a fault.")
    assert printed[2] == "Cancelled: seminar, which the calendar doesn't have any more."
    assert "course.ics: 0 booked, 0 changed, 1 as before, 1 cancelled, 1 kept." in printed
    assert len(desk.faults) == 1


def test_what_a_config_map_says_reaches_no_terminal_as_it_is(desk: Desk) -> None:
    desk.book(calendar(LECTURE, EXAM))
    text = desk.cluster.objects[BOOKINGS]["data"]["events.yaml"]
    entries = yaml.safe_load(text)
    entries[0]["people"] = "\x1b[2J"
    entries[1]["name"] = "exam\x1b[2J"
    # What isn't a booking is refused by name.
    entries[1]["people"] = "many"
    desk.cluster.objects[BOOKINGS]["data"]["events.yaml"] = yaml.safe_dump(entries)
    listed = desk.listed()
    assert "exam\\x1b[2J: refused: " in listed
    printed = "\n".join(desk.book(calendar(LECTURE)))
    assert "(before: \\x1b[2J people, 7 times)." in printed
    assert "Cancelled: exam\\x1b[2J, which" in printed
    assert "\x1b" not in listed + printed


def test_of_a_calendar_that_can_not_be_read_nothing_changes(desk: Desk) -> None:
    desk.book(calendar(LECTURE))
    before = desk.cluster.booked
    with pytest.raises(UsageError, match="expected an iCalendar file"):
        desk.book(b"<html>sign in</html>")
    assert desk.cluster.booked == before


def test_days_between_from_and_until_are_booked(desk: Desk) -> None:
    desk.book(calendar(LECTURE), "--from", "2026-12-10", "--until", "2026-12-21")
    assert desk.cluster.booked[0]["start"] == ["2026-12-14T09:00", "2026-12-21T09:00"]
    with pytest.raises(UsageError, match="--until: found 2026-11-01, expected a day to come"):
        desk.book(calendar(LECTURE), "--until", "2026-11-01")
    with pytest.raises(UsageError, match="--until: found 'soon', expected a day such as"):
        desk.book(calendar(LECTURE), "--until", "soon")


def test_a_timetable_may_be_a_calendar(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "term.ics").write_bytes(calendar(LECTURE))
    assert run(["book", "--timetable", "term.ics"]) == 0
    assert [(entry["name"], entry["calendar"]) for entry in desk.cluster.booked] == [
        ("lecture", "term.ics")
    ]


@pytest.mark.parametrize("others", ["30 monday 8:15", "--cancel x", "--image a/b:1"])
def test_a_calendar_stands_alone(others: str, desk: Desk) -> None:
    with pytest.raises(UsageError, match="found --calendar beside what its events say"):
        desk.book(calendar(LECTURE), *others.split())
    with pytest.raises(UsageError, match="found --timetable beside what the file says"):
        desk.book(calendar(LECTURE), "--timetable", "classes.csv")


def test_a_calendar_without_people_is_told_how_to_write_them(desk: Desk) -> None:
    printed = desk.book(calendar(WEEKLY))
    assert printed[-1].endswith("Write a line such as people: 120 there.")
    assert BOOKINGS not in desk.cluster.objects


def test_people_outside_the_days_that_count_are_told(desk: Desk) -> None:
    past = ["DTSTART:20251101T080000Z", "DESCRIPTION:people: 9"]
    later = ["DTSTART:20281101T080000Z", "DESCRIPTION:people: 9"]
    printed = desk.book(calendar(past, later), "--zone", "Europe/Berlin")
    begin = "  2 events have people, none begins between Wed 2026-11-25 "
    assert printed[-1].startswith(begin)
    assert " and Fri 2027-11-26 " in printed[-1]
    printed = desk.book(calendar([*MONDAYS, "DESCRIPTION:people: many"]), code=1)
    assert printed[-1] == "  1 event has people, and none is booked: see the faults."
    printed = desk.book(calendar([BERLIN, PEOPLE, "STATUS:CANCELLED"]))
    assert printed[-1].startswith("  No event of course.ics that takes place has people")


def test_another_file_of_the_same_name_is_refused_unless_a_name_is_said(desk: Desk) -> None:
    desk.book(calendar(LECTURE), name="basic.ics")
    before = desk.cluster.booked
    with pytest.raises(UsageError, match="found none of the bookings that a file of this") as said:
        desk.book(calendar(EXAM), name="basic.ics")
    assert "('lecture')" in str(said.value)
    assert "say --name basic.ics. Nothing was changed" in str(said.value)
    assert desk.cluster.booked == before
    desk.book(calendar(EXAM), "--name", "math", name="basic.ics")
    assert desk.names == ["lecture", "exam"]
    desk.book(calendar(), "--name", "basic.ics", name="basic.ics")
    assert desk.names == ["exam"]


def test_a_new_term_follows_the_one_that_is_over(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.book(calendar(LECTURE))
    monkeypatch.setattr(time, "time", lambda: NOW + 100 * 86_400)
    printed = desk.book(calendar(["DTSTART:20270401T080000Z", PEOPLE]))
    assert "course.ics: 1 booked, 0 changed, 0 as before, 0 cancelled." in printed
    assert desk.names == ["event 0"]
    # What is over goes away alone, too.
    monkeypatch.setattr(time, "time", lambda: NOW + 200 * 86_400)
    desk.book(calendar())
    assert desk.names == []


def test_a_calendars_booking_is_changed_in_the_calendar(desk: Desk, tmp_path: Path) -> None:
    desk.book(calendar(LECTURE))
    before = desk.cluster.booked
    with pytest.raises(UsageError, match=r"which is of calendar course.ics: change it there"):
        run(["book", "150", "2026-11-30", "9:00", "--zone", "Europe/Berlin", "--name", "lecture"])
    lines = "name,weekday,time,people,until\nlecture,monday,9:00,20,2027-02-12\n"
    (tmp_path / "classes.csv").write_text(lines)
    with pytest.raises(UsageError, match=r"classes.csv: found booking 'lecture', which is of"):
        run(["book", "--timetable", "classes.csv"])
    assert desk.cluster.booked == before


def test_without_the_package_the_extra_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("roost_lab.commands.book_calen")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "roost_lab.calendars.reader")
    monkeypatch.setitem(sys.modules, "icalendar", None)
    with pytest.raises(UsageError, match=r"needs the package icalendar: install roost-lab\[calen"):
        desk.book(calendar(LECTURE))


def test_more_than_a_config_map_holds_is_refused_and_nothing_changes(desk: Desk) -> None:
    entries = [
        {"name": str(number), "people": 1, "start": "2026-12-01T09:00", "timeZone": "UTC"}
        for number in range(200)
    ]
    text = yaml.safe_dump(entries)
    desk.cluster.objects[BOOKINGS] = {
        "metadata": {"resourceVersion": "7"},
        "data": {"events.yaml": text},
    }
    with pytest.raises(UsageError, match="would hold 201 bookings of"):
        desk.book(calendar(LECTURE))
    assert desk.cluster.objects[BOOKINGS]["data"]["events.yaml"] == text
