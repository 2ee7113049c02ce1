"""Read a timetable, a CSV with a class a line, into entries of `events`: whole, or every fault.

Knows nothing of what is booked already.
Guarantee: whatever bytes a file holds, it gives classes or a UsageError.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from operator import itemgetter
from typing import Any, Final

from generator.faults import UsageError, one_line
from roost_core.placement.headroom_windows import local_datetime, next_time, unix_time
from roost_core.release.bookings import DATE, FIRST_YEAR, LAST_YEAR, MOST_EVENTS, Event, Limits
from roost_lab.booking.entry import (
    WEEKDAYS,
    UnknownProfileError,
    read_clock,
    read_entry,
    read_weekdays,
    weekly_start,
    with_profile,
)

MOST_BYTES: Final = 2**20
# One line each; a file that isn't a timetable has thousands.
_MOST_FAULTS: Final = 50
# Characters of a cell, in a fault.
_MOST_FOUND: Final = 60
_DAY_MINUTES: Final = 24 * 60
_NEEDED: Final = ("weekday", "time", "people", "until")
_OPTIONAL: Final = ("name", "image", "profile", "placeholders")
_COLUMNS: Final = f"{', '.join(_NEEDED)}, and perhaps {', '.join(_OPTIONAL)}"
_WEEKDAY: Final = f"{', '.join(WEEKDAYS)} (or mon, tue, …), several as mon/thu"
_CLOCK: Final = "a time of day such as 8:15, 08:15 or 8:15am"
_UNTIL: Final = "the last day of the class, such as 2027-02-12"
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
# Spreadsheets write 08:15:00 for 8:15.
_CLOCK_WITH_SECONDS: Final = re.compile(r"([0-9]{1,2}:[0-9]{2}):00(am|pm)?", re.ASCII)
_BETWEEN_DAYS: Final = re.compile(r"[/,\s]+")
# The column that gives a key of an entry, where it is called otherwise.
_COLUMN_OF: Final = {"set": "placeholders"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimetableRules:
    """What a timetable is read by."""

    # The file's name, for faults.
    file: str
    # The zone of all times in the file: a name of the IANA database.
    zone: str
    # Unix time.
    now: float
    # The first day of the classes; None: they begin at once.
    first_day: date | None
    limits_of: Callable[[Mapping[str, Any]], Limits]
    # As `profile_seats` gives them; None: they can't be known.
    profiles: Sequence[Mapping[str, Any]] | None

    @property
    def after(self) -> int:
        """The Unix time after which the classes begin: now, or before the first day."""
        if self.first_day is None:
            return int(self.now)
        midnight = unix_time(datetime.combine(self.first_day, time()), self.zone)
        return max(int(self.now), midnight - 1)


@dataclass(frozen=True, slots=True)
class WeeklyClass:
    """One line of a timetable."""

    # As `events.yaml` has it.
    entry: Mapping[str, Any]
    event: Event
    # From Monday (0) on, at least one.
    weekdays: Sequence[int]
    # Since midnight.
    minute: int

    @property
    def starts(self) -> Sequence[tuple[int, int]]:
        """When it begins, in minutes from Monday's midnight on, and how many people come."""
        return [(_DAY_MINUTES * day + self.minute, self.event.people) for day in self.weekdays]


def read_first_day(text: str) -> date | None:
    """The first day of the classes; None for "". Raises UsageError."""
    day = _read_day(text)
    if text and (day is None or not FIRST_YEAR <= day.year <= LAST_YEAR):
        expected = "the first day of the classes, such as 2026-10-12"
        raise UsageError(f"--from: found {text!r}, expected {expected}")
    return day


def read_last_day(text: str) -> date | None:
    """The last day of a calendar's events that are booked; None for "". Raises UsageError."""
    day = _read_day(text)
    if text and (day is None or not FIRST_YEAR <= day.year <= LAST_YEAR):
        raise UsageError(f"--until: found {text!r}, expected a day such as 2027-02-12")
    return day


def read_timetable(data: bytes, rules: TimetableRules) -> Sequence[WeeklyClass]:
    """The classes of a file, in the order of its lines. Raises UsageError with every fault.

    data: the file's bytes, or MOST_BYTES + 1 of them. No two classes have the same name.
    """
    faults = _Faults(rules.file)
    rows = _read_rows(_decode(data, faults), faults)
    if not rows:
        faults.refuse()
        faults.add_text(0, "", f"found an empty file, expected CSV with the columns {_COLUMNS}")
        faults.refuse()
    header_number, header = rows[0]
    # Spreadsheets write empty cells beside the table.
    while not header[-1]:
        header.pop()
    rest = rows[1:]
    # What isn't CSV ends the rows, and is a fault already.
    was_cut_off = bool(faults.texts)
    places = _read_header(header_number, header, faults)
    if not rest and not was_cut_off:
        faults.add_text(0, "", "found no class below the header, expected one a line")
    if len(rest) > MOST_EVENTS:
        expected = f"at most {MOST_EVENTS}, as many as one ConfigMap holds"
        fix = "Put days with the same time in one line: mon/thu"
        faults.add_text(0, "", f"found {len(rest)} classes, expected {expected}. {fix}")
    lines: list[_Line] = []
    for number, row in rest[:MOST_EVENTS]:
        beyond = next((cell for cell in row[len(header) :] if cell), "")
        if beyond:
            expected = "no cell beyond the header's: put a text with a separator in quotation marks"
            faults.add(number, "", beyond, expected)
        cells = {column: row[place] for column, place in places.items() if place < len(row)}
        lines.append(_Line(number, cells, faults))
    drafts = [_read_draft(line) for line in lines]
    names = _names(drafts)
    read = [_read_class(draft, name, rules) for draft, name in zip(drafts, names, strict=True)]
    faults.refuse()
    return [weekly for weekly in read if weekly is not None]


def busiest(starts: Iterable[tuple[int, int]], minutes: int) -> tuple[int, int]:
    """The most people whom room is kept for at one time, and when that begins; else (0, 0).

    starts: when events begin, in minutes from any moment on, and how many people come. minutes: how
    long room is kept for an event.
    """
    most = 0
    most_at = 0
    total = 0
    kept: deque[tuple[int, int]] = deque()
    for start, people in sorted(starts):
        kept.append((start, people))
        total += people
        while kept[0][0] <= start - minutes:
            total -= kept.popleft()[1]
        if total > most:
            most = total
            most_at = start
    return most, most_at


def minute_of_week(minute: int) -> str:
    """Write a minute of the week as people do: Mon 08:15. minute: from Monday's midnight on."""
    day, minute_of_day = divmod(minute, _DAY_MINUTES)
    return f"{_short(day)} {minute_of_day // 60:02}:{minute_of_day % 60:02}"


def _short(day: int) -> str:
    return WEEKDAYS[day][:3].capitalize()


def _read_day(text: str) -> date | None:
    """A day such as 2027-02-12; None: it isn't one."""
    if not DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@dataclass(slots=True)
class _Faults:
    """Collects a file's faults, one line each."""

    file: str
    # Columns whose absence was told: a fault of the header, and no line's.
    missing: Sequence[str] = ()
    # Each with its line's number.
    texts: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, column: str, found: str, expected: str) -> None:
        """Add a fault. line: from 1 on; 0: the whole file. column: "": the whole line."""
        if column in self.missing:
            return
        shown = found if len(found) <= _MOST_FOUND else f"{found[:_MOST_FOUND]}…"
        quoted = repr(shown) if found else "nothing"
        self.add_text(line, column, f"found {quoted}, expected {expected}")

    def add_text(self, line: int, column: str, text: str) -> None:
        """Add a fault whose sentence is whole."""
        parts = [self.file, f"line {line}" if line else "", column]
        place = ", ".join(part for part in parts if part)
        self.texts.append((line, one_line(f"{place}: {text}")))

    def refuse(self) -> None:
        """Raise UsageError with all faults, from the first line on, if there are any."""
        if not self.texts:
            return
        in_order = sorted(self.texts, key=itemgetter(0))
        lines = [text for _, text in in_order[:_MOST_FAULTS]]
        if len(self.texts) > _MOST_FAULTS:
            lines.append(f"{self.file}: {len(self.texts) - _MOST_FAULTS} faults more")
        raise UsageError("\n".join(lines))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line's cells by column; those that the line lacks are empty."""

    number: int
    cells: Mapping[str, str]
    faults: _Faults

    def cell(self, column: str) -> str:
        """The text of a column; "" without it."""
        return self.cells.get(column, "")

    def fault(self, column: str, expected: str, found: str | None = None) -> None:
        """Add a fault of a cell. found: the part of it that is wrong; None: all."""
        shown = self.cell(column) if found is None else found
        self.faults.add(self.number, column, shown, expected)


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a line says by itself; Monday or 0:00 stands where a fault was told."""

    line: _Line
    weekdays: Sequence[int]
    # Hour and minute.
    clock: tuple[int, int]
    # As it is written, else of days and time; "": these are faulty.
    name: str
    has_own_name: bool


# From bytes to cells


def _decode(data: bytes, faults: _Faults) -> str:
    """The file's text. Raises UsageError."""
    if len(data) > MOST_BYTES:
        faults.add_text(0, "", "found more than 1 MiB, expected a timetable of at most 1 MiB")
        faults.refuse()
    text = ""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        expected = "CSV in UTF-8. In Excel: save it as CSV UTF-8"
        faults.add_text(line, "", f"found bytes that aren't UTF-8, expected {expected}")
    faults.refuse()
    return text


def _read_rows(text: str, faults: _Faults) -> list[tuple[int, list[str]]]:
    """The lines that aren't blank, each with its number, up to the first that isn't CSV."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    separator = ";" if head.count(";") > head.count(",") else ","
    rows: list[tuple[int, list[str]]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    # A cell in quotation marks may go on in the next line of the file.
    begin = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                rows.append((begin, cells))
            begin = reader.line_num + 1
    except csv.Error as error:
        expected = "one class a line; those below it aren't read"
        faults.add_text(begin, "", f"found no CSV ({error}), expected {expected}")
    return rows


def _read_header(number: int, header: Sequence[str], faults: _Faults) -> Mapping[str, int]:
    """The place of each column in a line, from 0 on. Raises UsageError if it is no header."""
    known = (*_NEEDED, *_OPTIONAL)
    names = [cell.casefold() for cell in header]
    if not set(names) & set(known):
        faults.add(number, "", ", ".join(header), f"a header with the columns {_COLUMNS}")
        faults.refuse()
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in places:
            faults.add(number, name, header[place], "each column once")
        elif name in known:
            places[name] = place
        else:
            faults.add(number, f"column {place + 1}", header[place], f"one of {_COLUMNS}")
    missing = [name for name in _NEEDED if name not in places]
    for name in missing:
        faults.add(number, name, "", f"a column {name} beside {', '.join(places)}")
    faults.missing = missing
    return places


# From cells to classes


def _read_draft(line: _Line) -> _Draft:
    """Read a line's days, time and name."""
    weekdays = _read_weekdays(line)
    text = "".join(line.cell("time").lower().split())
    clock = read_clock(_CLOCK_WITH_SECONDS.sub(r"\1\2", text))
    if clock is None:
        line.fault("time", _CLOCK)
    own_name = " ".join(line.cell("name").split())
    name = own_name
    if not name and weekdays and clock:
        days = "/".join(_short(day) for day in weekdays)
        name = f"{days} {clock[0]:02}:{clock[1]:02}"
    return _Draft(line, weekdays or [0], clock or (0, 0), name, bool(own_name))


def _read_weekdays(line: _Line) -> Sequence[int]:
    """A line's days, from Monday (0) on; none after a fault."""
    words = [word for word in _BETWEEN_DAYS.split(line.cell("weekday")) if word]
    unknown = [word for word in words if not read_weekdays(word.lower())]
    if unknown or not words:
        line.fault("weekday", _WEEKDAY, unknown[0] if unknown else "")
        return []
    return sorted({day for word in words for day in read_weekdays(word.lower())})


def _names(drafts: Sequence[_Draft]) -> Sequence[str]:
    """The booking's name of each line: what is launched is in it where days and time are shared."""
    shared = Counter(draft.name for draft in drafts if draft.name and not draft.has_own_name)
    names: list[str] = []
    number_of: dict[str, int] = {}
    for draft in drafts:
        line = draft.line
        name = draft.name
        if shared[name] > 1 and not draft.has_own_name:
            launched = [line.cell(column) for column in ("profile", "placeholders", "image")]
            name = " ".join(part for part in (name, *launched) if part)
        first = number_of.setdefault(name, line.number)
        if name and first != line.number:
            line.fault("name", f"another than line {first} has: write one in column name", name)
        names.append(name)
    return names


def _read_class(draft: _Draft, name: str, rules: TimetableRules) -> WeeklyClass | None:
    """Check a line as a booking; None after a fault."""
    line = draft.line
    hour, minute = draft.clock
    until = _read_day(line.cell("until"))
    start = weekly_start(draft.weekdays, hour, minute, _months(rules.first_day, until))
    if until is None:
        line.fault("until", _UNTIL)
    else:
        _refuse_past(line, start, until, rules)
    people = line.cell("people")
    entry: dict[str, Any] = {
        # Any name will do where its own can't be known.
        "name": name or "class",
        "people": int(people) if _NUMBER.fullmatch(people) else people,
        "start": start,
        "timeZone": rules.zone,
    }
    optional = {
        "until": "" if until is None else str(until),
        "set": line.cell("placeholders"),
        "image": line.cell("image"),
    }
    entry |= {key: text for key, text in optional.items() if text}
    entry = _with_profile(line, entry, rules)
    event, faults = read_entry(entry, rules.limits_of(entry))
    for fault in faults:
        column = _COLUMN_OF.get(fault.key, fault.key)
        # What comes of a profile has no cell.
        found = line.cell(column) or str(entry.get(fault.key, ""))
        line.fault(column, fault.expected, found)
    if event is None:
        return None
    return WeeklyClass(entry, event, draft.weekdays, 60 * hour + minute)


def _months(first: date | None, last: date | None) -> str:
    """A cron expression's months from the first day's to the last day's; all from a year on."""
    if first is None or last is None:
        return "*"
    count = 12 * (last.year - first.year) + last.month - first.month + 1
    if not 0 < count < 12:
        return "*"
    months = sorted((first.month - 1 + index) % 12 + 1 for index in range(count))
    return ",".join(str(month) for month in months)


def _refuse_past(line: _Line, start: str, until: date, rules: TimetableRules) -> None:
    """Add a fault for a class that doesn't take place any more."""
    today = local_datetime(int(rules.now), rules.zone).date()
    following = next_time(start, rules.zone, rules.after)
    day = None if following is None else local_datetime(following, rules.zone).date()
    if until < today:
        line.fault("until", f"{today} or later: this is a class in the past")
    elif rules.first_day is not None and until < rules.first_day:
        line.fault("until", f"{rules.first_day} (--from) or later")
    elif day is None or day > until:
        line.fault("until", f"{day}, when the class is next, or later")


def _with_profile(line: _Line, entry: dict[str, Any], rules: TimetableRules) -> dict[str, Any]:
    """The entry with its profile's image and set."""
    profile = line.cell("profile")
    if not profile:
        return entry
    if rules.profiles is None:
        unread = "the release's ConfigMap, which knows profiles, can't be read"
        line.fault("profile", f"image and placeholders in its place: {unread}")
        return entry
    try:
        return with_profile({**entry, "profile": profile}, rules.profiles)
    except UnknownProfileError as error:
        line.fault("profile", error.expected)
        return entry
