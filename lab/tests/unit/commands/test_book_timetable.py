"""`roost book --timetable`: a term's classes are booked whole or not at all, and once."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from generator.faults import UsageError
from lab.tests.told import cases
from lab.tests.unit.commands.test_book_command import BOOKINGS, NOW, RELEASE, Cluster
from roost.cli import run
from roost_lab.booking.config_map import before_of
from roost_lab.commands import book

Captured = pytest.CaptureFixture[str]
HEADER = "weekday,time,people,until"
MONDAY = "mon,8:15,30,2027-02-12"
TUESDAY = "tue,8:15,30,2027-02-12"


def table(*lines: str, more: str = "") -> str:
    """A file of classes. more: columns beside those that are needed."""
    return "\n".join([HEADER + more, *lines])


class Desk:
    """Where somebody books a timetable."""

    def __init__(self, folder: Path, capsys: Captured) -> None:
        self.cluster = Cluster()
        self._folder, self._capsys = folder, capsys

    def book(self, text: str | bytes, *arguments: str) -> Sequence[str]:
        """What it prints, line by line."""
        data = text.encode() if isinstance(text, str) else text
        (self._folder / "classes.csv").write_bytes(data)
        command = ["book", "--timetable", "classes.csv", "--zone", "Europe/Berlin"]
        assert run([*command, *arguments]) == 0
        return self._capsys.readouterr().out.splitlines()

    def refused(self, text: str | bytes, *arguments: str) -> Sequence[str]:
        """The faults, line by line; nothing may be written."""
        before = json.dumps(self.cluster.objects)
        with pytest.raises(UsageError) as error:
            self.book(text, *arguments)
        assert json.dumps(self.cluster.objects) == before
        return str(error.value).splitlines()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured) -> Desk:
    made = Desk(tmp_path, capsys)
    monkeypatch.setattr(book, "connect_as_user", lambda *_: made.cluster)
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.parametrize(("weekday", "clock", "name", "start"), cases("booking", "lines"))
def test_days_and_times_are_read_as_people_and_spreadsheets_write_them(
    weekday: str, clock: str, name: str, start: str, desk: Desk
) -> None:
    desk.book(table(f'"{weekday}",{clock},30,2027-02-12'))
    assert [(event["name"], event["start"]) for event in desk.cluster.booked] == [(name, start)]


@pytest.mark.parametrize(("text", "faults"), cases("booking", "faults"))
def test_faults_name_line_column_and_what_is_accepted(text: str, faults: str, desk: Desk) -> None:
    assert desk.refused(text) == faults.splitlines()


def test_a_line_is_booked_as_its_words_would_be(desk: Desk) -> None:
    desk.book(table("monday,8:15,30,2027-02-12,gpu", more=",profile"))
    (by_file,) = desk.cluster.booked
    words = "book 30 every monday 8:15 --until 2027-02-12 --zone Europe/Berlin --profile gpu"
    assert run([*words.split(), "--name", "by words"]) == 0
    assert desk.cluster.booked[1] == {**by_file, "name": "by words"}


@pytest.mark.parametrize(("text", "printed"), cases("booking", "terms"))
def test_a_term_is_booked_with_what_a_week_of_it_costs(text: str, printed: str, desk: Desk) -> None:
    assert desk.book(text) == printed.splitlines()
    assert [event.get("set") for event in desk.cluster.booked] == [None, "gpu", None]


@pytest.mark.parametrize(("text", "printed"), cases("booking", "terms"))
def test_the_same_file_changes_nothing(text: str, printed: str, desk: Desk) -> None:
    desk.book(text)
    # Whatever is written raises.
    desk.cluster.merge = None  # type: ignore[assignment, method-assign]
    again = desk.book(text)
    assert "classes.csv: 0 booked, 0 changed, 3 as before." in again
    booked = [line.replace("Booked:", "As before:") for line in printed.splitlines()[:3]]
    assert again[:3] == booked


def test_a_line_that_changed_changes_its_booking_and_one_taken_out_stays(desk: Desk) -> None:
    desk.book(table(MONDAY, TUESDAY))
    told = desk.book(table(MONDAY.replace("30", "60"), "wed,9:00,5,2027-02-12"))
    assert told[0].startswith("Changed: Mon 08:15: 60 people, ")
    assert told[0].endswith(" (before: 30 people, every Monday 08:15 until 2027-02-12).")
    assert told[1].startswith("Booked: Wed 09:00: 5 people, ")
    assert told[2] == "classes.csv: 1 booked, 1 changed, 0 as before."
    still_booked = "  Not in classes.csv, and still booked: 'Tue 08:15'. To cancel one: "
    assert told[-1] == f"{still_booked}roost book --cancel 'Tue 08:15' -n hub"
    people = {event["name"]: event["people"] for event in desk.cluster.booked}
    assert people == {"Mon 08:15": 60, "Tue 08:15": 30, "Wed 09:00": 5}


def test_the_command_that_cancels_names_release_and_config_map(desk: Desk) -> None:
    objects = desk.cluster.objects
    objects[RELEASE.replace("roost-", "binder-roost-")] = objects[RELEASE]
    arguments = ["--config-map", "course", "--release", "binder"]
    desk.book(table(MONDAY, TUESDAY), *arguments)
    *_, told = desk.book(table(MONDAY), *arguments)
    command = told.partition("To cancel one: ")[2]
    expected = "roost book --cancel 'Tue 08:15' -n hub --release binder --config-map course"
    assert command == expected
    data = objects[BOOKINGS.replace("roost-bookings", "course")]["data"]
    assert len(yaml.safe_load(data["events.yaml"])) == 2


def test_a_spreadsheet_is_read_with_its_mark_semicolons_and_empty_cells(desk: Desk) -> None:
    head = "\ufeffUntil;People;name;Weekday;Time;;\r\n"
    desk.book(f'{head}2027-02-12;30;"Logic; part 1";Mon;08:15:00;;\r\n;;;;;;\r\n')
    (event,) = desk.cluster.booked
    assert (event["name"], event["people"], event["start"]) == ("Logic; part 1", 30, "15 8 * * 1")


def test_with_a_first_day_classes_begin_in_its_month_and_earlier_ones_are_told(desk: Desk) -> None:
    lines = table("mon,8:15,30,2027-02-26")
    told = desk.book(lines, "--from", "2027-01-11")
    assert desk.cluster.booked[0]["start"] == "15 8 * 1,2 1"
    early = "Classes that begin before 2027-01-11 (--from): 1, the first Mon 2027-01-04 08:15 CET."
    assert told[-1].startswith(f"  {early} A booking has months, and no first day. To keep no ")
    told = desk.book(lines, "--from", "2026-11-30")
    assert desk.cluster.booked[0]["start"] == "15 8 * 1,2,11,12 1"
    assert "--from" not in told[-1]


def test_months_of_a_year_and_more_are_all_months(desk: Desk) -> None:
    desk.book(table("mon,8:15,30,2027-10-29"), "--from", "2026-11-30")
    assert desk.cluster.booked[0]["start"] == "15 8 * * 1"


def test_a_class_that_ends_before_the_first_day_is_refused(desk: Desk) -> None:
    assert desk.refused(table("mon,8:15,30,2026-12-12"), "--from", "2027-01-11") == [
        "classes.csv, line 2, until: found '2026-12-12', expected 2027-01-11 (--from) or later"
    ]
    assert desk.refused(table(MONDAY), "--from", "soon") == [
        "--from: found 'soon', expected the first day of the classes, such as 2026-10-12"
    ]


def test_bytes_that_are_no_text_are_refused_with_the_fix(desk: Desk) -> None:
    (told,) = desk.refused(table(MONDAY, "fr\xfc,9:00").encode("latin-1"))
    found = "classes.csv, line 3: found bytes that aren't UTF-8, expected CSV in UTF-8."
    assert told == f"{found} In Excel: save it as CSV UTF-8"
    assert desk.refused(b"a" * (2**20 + 1)) == [
        "classes.csv: found more than 1 MiB, expected a timetable of at most 1 MiB"
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    # A folder, and nothing.
    [(".", "Is a directory"), ("nowhere", "No such file or directory")],
)
@pytest.mark.usefixtures("desk")
def test_what_is_no_file_is_refused(name: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        run(["book", "--timetable", name])
    assert str(error.value) == f"{name}: can't be read ({why}). Give the path of a file."


def test_more_than_one_config_map_holds_is_refused_whole(desk: Desk) -> None:
    lines = [f"mon,{hour}:{minute}0,5,2027-02-12" for hour in range(24) for minute in range(6)]
    most = "expected at most 200, as many as one ConfigMap holds."
    assert desk.refused(table(*lines, *(line.replace("mon", "tue") for line in lines))) == [
        f"classes.csv: found 288 classes, {most} Put days with the same time in one line: mon/thu"
    ]
    (told,) = desk.refused(table(*lines[:51]), "--config-map", "roost-events")
    assert told.startswith("ConfigMap hub/roost-events: would hold 51 bookings of")


def test_faults_beyond_fifty_are_counted_and_lines_beyond_200_not_read(desk: Desk) -> None:
    # Nobody comes to any of them, and all but the first have the first one's name.
    told = desk.refused(table(*["mon,8:15,0,2027-02-12"] * 300))
    assert len(told) == 51
    assert told[0].startswith("classes.csv: found 300 classes, expected at most 200")
    assert told[-1] == f"classes.csv: {1 + 200 + 199 - 50} faults more"


@pytest.mark.parametrize("others", ["30 monday 8:15", "--cancel x", "--image a/b:1", "--name x"])
@pytest.mark.usefixtures("desk")
def test_a_timetable_stands_alone(others: str) -> None:
    with pytest.raises(UsageError, match="found --timetable beside what the file says"):
        run(["book", *others.split(), "--timetable", "classes.csv"])
    with pytest.raises(UsageError, match="found --from without --timetable"):
        run(["book", *others.split(), "--from", "2026-12-01"])


def test_what_classes_ask_for_at_one_time_beyond_the_limit_is_told(desk: Desk) -> None:
    desk.cluster = Cluster(maxPlaceholders=100)
    # Room for the first is kept until half past eight.
    lines = ["mon,8:15,80,2027-02-12", "mon,8:40,60,2027-02-12", "mon,8:45,30,2027-02-12"]
    told = desk.book(table(*lines))
    head = "  Set default has at most 100 placeholders more at one time, Mon 08:40: about 6 nodes"
    assert told[4].startswith(head)
    asked = "  Mon 08:40 classes ask for 140 placeholders, and events.maxPlaceholders is 100"
    assert told[5] == f"{asked}: those that begin later get what is left."
    # No more than 80 begin at one time.
    assert "the last of 80 waits" in told[6]


def test_without_the_right_to_read_the_release_one_books_all_the_same(desk: Desk) -> None:
    desk.cluster.forbidden = {RELEASE}
    unread = "the release's ConfigMap, which knows profiles, can't be read"
    expected = f"expected image and placeholders in its place: {unread}"
    assert desk.refused(table(f"{MONDAY},gpu", more=",profile")) == [
        f"classes.csv, line 2, profile: found 'gpu', {expected}"
    ]
    told = desk.book(table(f"{MONDAY},any", more=",placeholders"))
    assert told[-1].startswith("  Not checked: what the release allows")
    assert desk.cluster.booked[0]["set"] == "any"


def test_a_release_that_reads_no_bookings_says_so_once(desk: Desk) -> None:
    desk.cluster = Cluster(enabled=False)
    (told,) = desk.refused(table(MONDAY, TUESDAY))
    assert told.startswith("release roost in namespace hub reads no bookings")


def test_what_a_booking_was_never_reads_as_what_it_is() -> None:
    was = {"people": 30, "start": "0 9 * 11,12 1", "until": "2026-12-31"}
    changed = {**was, "start": "0 9 * 9,10,11,12 1"}
    now = datetime(2026, 9, 10, tzinfo=UTC).timestamp()
    assert before_of(was, changed, now) == (" (before: 30 people, 0 9 * 11,12 1 until 2026-12-31)")
    assert before_of(was, {**was, "people": 60}, now) == (
        " (before: 30 people, every Monday 09:00 until 2026-12-31)"
    )
