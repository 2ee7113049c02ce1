"""Timetables: whatever a file holds is classes or faults, and what is written is read again."""

import csv
import io
from datetime import date

from hypothesis import example, given
from hypothesis import strategies as st

from generator.faults import UsageError
from roost_core.placement.headroom_windows import parse_moment
from roost_core.release.bookings import Limits
from roost_lab.booking.entry import WEEKDAYS, checked
from roost_lab.booking.timetable import TimetableRules, read_timetable

LIMITS = Limits(("default", "gpu"), 500)
NOW = parse_moment("2026-11-26T10:00", "Europe/Berlin")
PROFILES = ({"names": ["GPU, large", "gpu"], "image": "quay.io/me/gpu:1", "set": "gpu"},)
HEADER = b"weekday,time,people,until\n"
COLUMNS = ("weekday", "time", "people", "until", "name", "image", "profile", "placeholders")
# Cells that are read, and others; both kinds in any column.
CELLS = (
    *("mon", "Thursday", "tue/fri", "weekday", "mo", "8:15", "08:15:00", "8:15 pm", "24:00"),
    *("1", "30", "500", "501", "-1", "0x1e", "٣", "gpu", "quay.io/me/x:1", "x" * 101),
    *("2027-02-12", "2026-11-26", "2026-11-01", "0000-01-01", "9999-12-31", "12.02.2027"),
    *("a\nb", 'said "so"', "", " ", ",", ";", "\u2028", "\0"),
)


def rules(first_day: date | None = None) -> TimetableRules:
    return TimetableRules(
        file="classes.csv",
        zone="Europe/Berlin",
        now=NOW,
        first_day=first_day,
        limits_of=lambda _: LIMITS,
        profiles=PROFILES,
    )


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """A file with a header as it should be, or nearly, and cells of all kinds."""
    columns = draw(st.lists(st.sampled_from((*COLUMNS, "room", "")), min_size=1, max_size=9))
    if draw(st.booleans()):
        columns = list(draw(st.permutations(COLUMNS)))
    cell = st.sampled_from(CELLS) | st.text(max_size=10)
    lines = draw(st.lists(st.lists(cell, max_size=10), max_size=5))
    text = io.StringIO()
    separator = draw(st.sampled_from(",;"))
    csv.writer(text, delimiter=separator).writerows([columns, *lines])
    return text.getvalue().encode("utf-8", "surrogatepass")


def check(data: bytes, first_day: date | None) -> None:
    try:
        classes = read_timetable(data, rules(first_day))
    except UsageError as error:
        lines = str(error).splitlines()
        assert lines
        assert len(lines) <= 51
        assert all(line.startswith("classes.csv") and ": " in line for line in lines)
        assert all(line.isprintable() and len(line) < 1000 for line in lines)
        return
    names = [weekly.event.name for weekly in classes]
    assert names
    assert len(set(names)) == len(names)
    for weekly in classes:
        assert checked(weekly.entry, LIMITS) == weekly.event


ANY_TEXT = st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))


@given(data=st.binary(max_size=200) | ANY_TEXT, header=st.sampled_from([b"", HEADER]))
@example(data=b"\xef\xbb\xbf", header=b"")
@example(data=b'mon,"8:15', header=HEADER)
@example(data=b"mon,8:15,1,2027-02-12\r\rtue,8:15,1,2027-02-12", header=HEADER)
@example(data=b"x" * 140_000, header=HEADER)
def test_any_bytes_are_classes_or_faults(data: bytes, header: bytes) -> None:
    check(header + data, None)


@given(data=tables(), first_day=st.none() | st.dates(date(1970, 1, 1), date(2199, 12, 31)))
def test_any_table_is_classes_or_faults(data: bytes, first_day: date | None) -> None:
    check(data, first_day)


CLOCKS = st.tuples(st.integers(0, 23), st.integers(0, 59)).map(lambda of: f"{of[0]}:{of[1]:02}")
DAYS = st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3, unique=True).map("/".join)
VISIBLE = st.characters(exclude_categories=["C", "Z"])
LINE = {
    "weekday": DAYS,
    "time": CLOCKS,
    "people": st.integers(1, 500).map(str),
    "until": st.dates(date(2026, 12, 10), date(2199, 12, 31)).map(str),
    "name": st.text(VISIBLE, min_size=1, max_size=20),
    "placeholders": st.sampled_from(["", "default", "gpu"]),
}
LINES = st.lists(
    st.fixed_dictionaries(LINE),
    min_size=1,
    max_size=8,
    # Two lines of one name are a fault.
    unique_by=lambda line: line["name"],
)


@given(
    lines=LINES,
    columns=st.permutations(tuple(LINE)),
    separator=st.sampled_from(",;"),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_what_is_written_is_read_again_in_any_order_of_columns(
    lines: list[dict[str, str]], columns: list[str], separator: str, mark: str
) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, delimiter=separator)
    writer.writeheader()
    writer.writerows(lines)
    classes = read_timetable((mark + text.getvalue()).encode(), rules())
    for line, weekly in zip(lines, classes, strict=True):
        hour, minute = divmod(weekly.minute, 60)
        read = {
            "weekday": {WEEKDAYS[day] for day in weekly.weekdays},
            "time": f"{hour}:{minute:02}",
            "people": str(weekly.entry["people"]),
            "until": weekly.entry["until"],
            "name": weekly.event.name,
            "placeholders": weekly.entry.get("set", ""),
        }
        assert read == {**line, "weekday": {*line["weekday"].split("/")}}
