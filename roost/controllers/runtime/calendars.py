"""Read booked events from an iCalendar file (RFC 5545): of each VEVENT with a line `people: 120` in
its description.

Supported, as Google, Outlook, Exchange and others write it: descriptions in HTML, DTSTART with TZID
or in UTC, one RRULE (DAILY, WEEKLY or MONTHLY), EXDATE, RDATE of date-times, and single occurrences
that were moved or cancelled (RECURRENCE-ID). Anything else in an event with such a line is a fault,
and that event is left out; events without such a line are none of ours. An event's end doesn't
matter: room is kept until those who come have come.

The time that a calendar takes grows with its length alone, whatever its rules say.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from roost.controllers.runtime.calendar_zones import find_zone
from roost.controllers.runtime.recurrence import LAST_DAY, DayRule, MonthRule, Rule
from roost_core.placement.headroom_windows import local_datetime, unix_time
from roost_core.release.events import FIRST_YEAR, LAST_YEAR, MOST_EVENTS, Event, Limits, make_event
from roost_core.release.reader import Reader

_WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_TIME: Final = re.compile(r"([0-9]{8}T[0-9]{6})(Z?)", re.ASCII)
# A line that begins with one of our words; more of them may follow on it.
_OUR_LINE: Final = re.compile(
    r"^[ \t*•·-]*(?=(?:people|image|set)[ \t]*:)(.*)$", re.IGNORECASE | re.MULTILINE
)
_OURS: Final = re.compile(r"(?:^|(?<=[ \t]))(people|image|set)[ \t]*:[ \t]*(\S+)", re.IGNORECASE)
# Python reads no number of thousands of digits.
_PEOPLE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
# HTML: what isn't shown, what ends a line, and other tags.
_HIDDEN: Final = re.compile(r"<(head|style|script|title)\b|<(!--)", re.IGNORECASE)
_BREAK: Final = re.compile(
    r"</?(?:address|article|blockquote|br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|section|table|td|th|tr|ul)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"</?[a-z!][^<>]*>", re.IGNORECASE)
# Spaces of other kinds, and marks without a width, which editors insert.
_SPACES: Final = {
    0xA0: " ",
    0x2007: " ",
    0x202F: " ",
    0x200B: None,
    0x200E: None,
    0x2060: None,
    0xFEFF: None,
}
_ESCAPE: Final = re.compile(r"\\([nN,;\\])")
# EXDATE and RDATE of one event.
_MOST_DATES: Final = 1000
# VEVENTs of one calendar.
_MOST_ENTRIES: Final = 20_000
_DAY: Final = timedelta(days=1)
_NEEDED: Final = frozenset(
    {
        "BEGIN",
        "END",
        "UID",
        "SUMMARY",
        "DESCRIPTION",
        "X-ALT-DESC",
        "STATUS",
        "RECURRENCE-ID",
        "DTSTART",
        "RRULE",
        "EXRULE",
        "EXDATE",
        "RDATE",
        "TZID",
        "X-LIC-LOCATION",
        "X-WR-TIMEZONE",
    }
)
_NAME: Final = re.compile(r"[ \t]*([A-Za-z-]+)[ \t]*[;:]", re.ASCII)
_RULE_PARTS: Final = {
    "DAILY": {"BYDAY"},
    "WEEKLY": {"BYDAY"},
    "MONTHLY": {"BYDAY", "BYMONTHDAY", "BYSETPOS"},
}
_RULE: Final = (
    "FREQ=DAILY, WEEKLY (BYDAY=MO,TU…) or MONTHLY (BYDAY=2TU, BYMONTHDAY=1 or BYSETPOS) with"
    " INTERVAL, COUNT or UNTIL; write other recurrences as single events"
)


class Property(NamedTuple):
    """One content line: DTSTART;TZID=Europe/Berlin:20261124T090000."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    value: str

    def parameter(self, name: str) -> str:
        """A parameter's value; "" if it is absent."""
        return dict(self.parameters).get(name, "")


@dataclass(frozen=True, slots=True)
class CalendarStarts:
    """When an event of a calendar begins."""

    first: datetime
    time_zone: str
    rule: Rule | None = None
    # Unix times: occurrences that don't take place, and others besides the rule's, sorted.
    without: frozenset[int] = frozenset()
    also: tuple[int, ...] = ()
    # Later occurrences don't take place; None: no limit.
    before: int | None = None

    def first_after(self, moment: int) -> int | None:
        """Return the first beginning later than `moment`; None: there is none."""
        found = next(self._regular(moment), None)
        also = next(
            (
                time
                for time in self.also[bisect_right(self.also, moment) :]
                if time not in self.without
            ),
            None,
        )
        first = min((time for time in (found, also) if time is not None), default=None)
        return (
            None if first is None or (self.before is not None and first >= self.before) else first
        )

    def _regular(self, moment: int) -> Iterator[int]:
        day, clock = self.first.toordinal(), self.first.time()
        days = iter((day,))
        if self.rule is not None:
            # A day earlier: clock changes move times a little.
            days = self.rule.days_from(local_datetime(moment, self.time_zone).toordinal() - 1)
        for each in days:
            time = unix_time(datetime.combine(date.fromordinal(each), clock), self.time_zone)
            if time > moment and time not in self.without:
                yield time


def parse_calendar(
    read: Reader,
    text: str,
    key: str,
    limits: Limits,
    *,
    since: float = 0.0,
    may_go_on: Callable[[], bool] = lambda: True,
) -> tuple[Event, ...]:
    """Read a calendar's bookings; faults go to the reader under `key`, and that event is left out.

    since: events that begin no more after this Unix time are past, and don't count. may_go_on:
    asked for each event; once it says no, the rest is left out, with a fault.
    """
    if "BEGIN:VCALENDAR" not in text.upper():
        read.fault(
            key, text.strip()[:40] or None, "an iCalendar file, which begins with BEGIN:VCALENDAR"
        )
        return ()
    entries, zones, own_zone = _split(text)
    # By UID: series, occurrences of their own, the times that these replace, and from when on a
    # series is another.
    series: list[tuple[str, Event]] = []
    single: list[Event] = []
    overridden: dict[str, set[int]] = {}
    changed_from: dict[str, tuple[int, Reading]] = {}
    for entry in entries:
        if not may_go_on():
            read.fault(
                key, "a calendar that takes too long", "less: what is left of it doesn't count"
            )
            break
        ours = _ours(entry)
        of = {prop.name: prop for prop in entry}
        uid = of["UID"].value if "UID" in of else ""
        summary = _unescaped(of["SUMMARY"].value).strip() if "SUMMARY" in of else ""
        at = f"{key}: {summary[:60] or uid[:60] or 'an event without SUMMARY'}"
        faults_before = read.count
        moved = of.get("RECURRENCE-ID")
        reading = Reading(read, at, zones, own_zone)
        if moved is not None:
            instance = _moment(moved, reading._replace(quiet="people" not in ours))
            if instance is not None and moved.parameter("RANGE"):
                if "people" in ours:
                    _refuse_range(reading)
                changed_from[uid] = (instance, reading)
                continue
            if instance is not None and uid:
                # An occurrence that was moved, changed or cancelled no longer counts in its series.
                overridden.setdefault(uid, set()).add(instance)
        if "people" not in ours or of.get("STATUS", _NONE).value.upper() == "CANCELLED":
            continue
        if len(series) + len(single) == MOST_EVENTS:
            read.fault(
                key,
                f"more than {MOST_EVENTS}",
                f"at most {MOST_EVENTS} events with people that aren't past",
            )
            continue
        # Else each of them would go without all that is moved of the others.
        if moved is None and uid and any(uid == other for other, _ in series):
            read.fault(f"{at}: UID", uid[:60], "a UID that no other event of the calendar has")
            continue
        starts = _starts(entry, reading)
        people = int(ours["people"]) if _PEOPLE.fullmatch(ours["people"]) else ours["people"]
        first = None if starts is None else starts.first_after(int(since))
        if starts is None or first is None:
            continue
        event = make_event(
            read,
            at,
            name=" ".join(summary.split())[:100] or "event",
            people=people,
            starts=starts,
            image=ours.get("image", ""),
            set_name=ours.get("set", ""),
            limits=limits,
        )
        if read.count != faults_before:
            continue
        # Plans needn't search for it again.
        event.searches.append((int(since), first))
        if moved is not None:
            single.append(event)
        else:
            series.append((uid, event))
    whole = [
        _without(event, overridden.get(uid, set()), changed_from.get(uid)) for uid, event in series
    ]
    return (*whole, *single)


_NONE: Final = Property("", (), "")


class Reading(NamedTuple):
    """Where faults go, and what the calendar says of zones."""

    read: Reader
    at: str
    # By TZID: the zone that the calendar's program says it is. And that of times without one; "":
    # none.
    zones: Mapping[str, str]
    zone: str
    # An event that isn't ours has no faults.
    quiet: bool = False

    def fault(self, name: str, found: object, expected: str) -> None:
        """Report a fault of a property."""
        if not self.quiet:
            self.read.fault(f"{self.at}: {name}", found, expected)


def _refuse_range(reading: Reading) -> None:
    expected = (
        "occurrences changed one by one, or a new event from there on: the series is read up to"
        " this occurrence"
    )
    reading.fault("RECURRENCE-ID;RANGE", "a change of all later occurrences", expected)


def _split(text: str) -> tuple[list[list[Property]], Mapping[str, str], str]:
    """Return the properties of each VEVENT, without those of components in it, the zones, and the
    calendar's own.
    """
    entries: list[list[Property]] = []
    zones: dict[str, str] = {}
    own_zone = tzid = ""
    # Components that are open, the innermost last.
    inside: list[str] = []
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        match = _NAME.match(line)
        if match is None or match[1].upper() not in _NEEDED or (prop := _property(line)) is None:
            continue
        name, component = prop.name, inside[-1] if inside else ""
        if name == "BEGIN":
            inside.append(prop.value.strip().upper())
            if inside[-1] == "VEVENT":
                if len(entries) == _MOST_ENTRIES:
                    break
                entries.append([])
        elif name == "END":
            if inside:
                inside.pop()
        elif component == "VEVENT":
            entries[-1].append(prop)
        elif component == "VTIMEZONE" and name == "TZID":
            tzid = prop.value.strip()
        elif component == "VTIMEZONE" and name == "X-LIC-LOCATION":
            zones[tzid] = prop.value.strip()
        elif name == "X-WR-TIMEZONE":
            own_zone = prop.value.strip()
    return entries, zones, own_zone


def _property(line: str) -> Property | None:
    head: list[str] = []
    begin, quoted = 0, False
    for index, letter in enumerate(line):
        if letter == '"':
            quoted = not quoted
        elif letter in ";:" and not quoted:
            head.append(line[begin:index].replace('"', ""))
            begin = index + 1
            if letter == ":":
                pairs = tuple(
                    (name.upper(), value)
                    for name, _, value in (part.partition("=") for part in head[1:])
                )
                return Property(head[0].strip().upper(), pairs, line[begin:])
    return None


def _ours(entry: Sequence[Property]) -> dict[str, str]:
    """Return what the descriptions say for us: people, image, set.

    Outlook writes HTML beside the plain text.
    """
    texts = [
        prop.value for name in ("DESCRIPTION", "X-ALT-DESC") for prop in entry if prop.name == name
    ]
    ours: dict[str, str] = {}
    for text in texts:
        for line in _OUR_LINE.findall(_plain(_unescaped(text))):
            for name, value in _OURS.findall(line):
                ours.setdefault(name.lower(), value.rstrip(",;."))
    return ours


def _plain(text: str) -> str:
    """Return the text of a description that may be HTML."""
    if "<" in text:
        shown: list[str] = []
        begin = 0
        while (hidden := _HIDDEN.search(text, begin)) is not None:
            shown.append(text[begin : hidden.start()])
            end = re.compile("-->" if hidden[2] else f"</{hidden[1]}[^<>]*>", re.IGNORECASE).search(
                text, hidden.end()
            )
            begin = len(text) if end is None else end.end()
        text = _TAG.sub("", _BREAK.sub("\n", "".join([*shown, text[begin:]])))
    return (html.unescape(text) if "&" in text else text).translate(_SPACES)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], text)


def _starts(entry: Sequence[Property], reading: Reading) -> CalendarStarts | None:
    """Read DTSTART and its recurrence; None after a fault."""
    many: dict[str, list[Property]] = {}
    for prop in entry:
        many.setdefault(prop.name, []).append(prop)
    begin = _time(many.get("DTSTART", [_NONE])[0], reading)
    if begin is None:
        return None
    first, zone = begin
    rules = many.get("RRULE", [])
    if len(rules) > 1 or "EXRULE" in many:
        reading.fault(
            "RRULE", f"{len(rules)} rules", "one RRULE, and no EXRULE: make several events of it"
        )
        return None
    rule = None
    if rules and (rule := _rule(rules[0].value, first, zone, reading)) is None:
        return None
    dates: dict[str, list[int]] = {"EXDATE": [], "RDATE": []}
    for name, times in dates.items():
        for prop in many.get(name, []):
            for value in prop.value.split(",", _MOST_DATES):
                if len(times) == _MOST_DATES:
                    reading.fault(
                        name,
                        f"more than {_MOST_DATES}",
                        f"at most {_MOST_DATES} dates of one event",
                    )
                    return None
                if (time := _moment(prop._replace(value=value.partition("/")[0]), reading)) is None:
                    return None
                times.append(time)
    return CalendarStarts(
        first, zone, rule, frozenset(dates["EXDATE"]), tuple(sorted(set(dates["RDATE"])))
    )


def _moment(prop: Property, reading: Reading) -> int | None:
    time = _time(prop, reading)
    return None if time is None else unix_time(*time)


def _time(prop: Property, reading: Reading) -> tuple[datetime, str] | None:
    """Return a local time and its zone; None after a fault."""
    name = prop.name or "DTSTART"
    match = _TIME.fullmatch(prop.value.strip())
    if match is None:
        expected = "a date-time like 20261124T090000, for an event that takes all day says no time"
        reading.fault(name, prop.value or None, expected)
        return None
    named = prop.parameter("TZID").strip('"') or reading.zone
    zone = "UTC" if match[2] else find_zone(named) or find_zone(reading.zones.get(named, ""))
    if not zone:
        expected = (
            "TZID= with a zone of the IANA database, like Europe/Berlin, or Windows' name of one,"
            " or a time in UTC, which ends with Z"
        )
        reading.fault(f"{name};TZID", named or None, expected)
        return None
    try:
        local = datetime.strptime(match[1], "%Y%m%dT%H%M%S")  # noqa: DTZ007 - a local time; its zone is beside it
    except ValueError:
        reading.fault(name, prop.value, "a date-time of the calendar, like 20261124T090000")
        return None
    if not FIRST_YEAR <= local.year <= LAST_YEAR:
        reading.fault(name, prop.value, f"a year from {FIRST_YEAR} to {LAST_YEAR}")
        return None
    return local, zone


def _rule(text: str, first: datetime, zone: str, reading: Reading) -> Rule | None:
    """Read an RRULE; None after a fault."""
    parts = {
        name.strip().upper(): value.strip().upper()
        for name, _, value in (p.partition("=") for p in text.split(";"))
    }
    parts.pop("", None)
    frequency = parts.get("FREQ", "")
    interval, count = (parts.get(name, "1") for name in ("INTERVAL", "COUNT"))
    weekdays = _weekdays(parts.get("BYDAY", ""))
    numbers = [_numbers(parts.get(name, "")) for name in ("BYMONTHDAY", "BYSETPOS")]
    week_start = parts.get("WKST", "MO")
    is_readable = (
        parts.keys()
        <= {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST"} | _RULE_PARTS.get(frequency, set())
        and frequency in _RULE_PARTS
        and all(
            re.fullmatch(r"[0-9]{1,4}", number, re.ASCII) and int(number)
            for number in (interval, count)
        )
        and week_start in _WEEKDAYS
    )
    if not is_readable or weekdays is None or numbers[0] is None or numbers[1] is None:
        reading.fault("RRULE", text, _RULE)
        return None
    days = tuple(sorted({weekday for _, weekday in weekdays}))
    begin, step = first.toordinal(), int(interval)
    rule: Rule
    if frequency == "MONTHLY":
        month_days, positions = numbers[0], numbers[1]
        rule = MonthRule(
            begin, step, weekdays, month_days or (() if weekdays else (first.day,)), positions
        )
    elif any(ordinal for ordinal, _ in weekdays) or (frequency == "DAILY" and days and step != 1):
        reading.fault("RRULE", text, _RULE)
        return None
    elif frequency == "DAILY" and not days:
        rule = DayRule(begin, step, begin)
    else:
        start = _WEEKDAYS.index(week_start)
        offsets = sorted((day - start) % 7 for day in days or (first.weekday(),))
        rule = DayRule(begin, 7 * step, begin - (first.weekday() - start) % 7, tuple(offsets))
    last = LAST_DAY
    if "UNTIL" in parts:
        until = _until(parts["UNTIL"], zone)
        if until is None:
            reading.fault(
                "RRULE",
                text,
                "UNTIL with a date like 20270131 or a time in UTC like 20270131T225959Z",
            )
            return None
        last = until.toordinal() - (until.time() < first.time())
    if "COUNT" in parts:
        last = min(last, rule.last_of(int(count)))
    return replace(rule, last=last)


def _weekdays(text: str) -> tuple[tuple[int, int], ...] | None:
    """Read BYDAY, as ordinals and weekdays; None: it can't be read."""
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        ordinal = part[:-2] or "0"
        if part[-2:] not in _WEEKDAYS or not re.fullmatch(r"0|[+-]?[1-5]", ordinal, re.ASCII):
            return None
        found.append((int(ordinal), _WEEKDAYS.index(part[-2:])))
    return tuple(sorted(set(found)))


def _numbers(text: str) -> tuple[int, ...] | None:
    """Read days of a month or places among them; None: they can't be read."""
    parts = text.split(",") if text else []
    if not all(
        re.fullmatch(r"[+-]?[0-9]{1,2}", part, re.ASCII) and 1 <= abs(int(part)) <= 31
        for part in parts
    ):
        return None
    return tuple(sorted({int(part) for part in parts}))


def _until(text: str, zone: str) -> datetime | None:
    """Return the last local time of a recurrence; None: it can't be read."""
    try:
        if len(text) == 8:
            return datetime.strptime(text, "%Y%m%d") + _DAY - timedelta(seconds=1)  # noqa: DTZ007 - as above
        match = _TIME.fullmatch(text)
        if match is None or not FIRST_YEAR <= int(text[:4]) <= 9000:
            return None
        local = datetime.strptime(match[1], "%Y%m%dT%H%M%S")  # noqa: DTZ007 - as above
        return local_datetime(unix_time(local, "UTC"), zone) if match[2] else local
    except (ValueError, OverflowError):
        return None


def _without(event: Event, instances: set[int], changed: tuple[int, Reading] | None) -> Event:
    starts = event.starts
    if not isinstance(starts, CalendarStarts) or not (instances or changed):
        return event
    before = None
    if changed is not None:
        before = changed[0]
        _refuse_range(changed[1])
    return replace(event, starts=replace(starts, without=starts.without | instances, before=before))
