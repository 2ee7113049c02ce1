"""Read booked events: so many people, at a local time, perhaps once a week, perhaps with an image.

Entries of `events.booked` in the values and of `events.yaml` in ConfigMaps have the same keys.
`roost book` writes the latter, and its entries of calendars list the date-times of `start`. Times
are passed as Unix time, and nothing here reads a clock.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from roost_core.objects.foreign_yaml import ForeignTextError, load_foreign
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.headroom_windows import (
    DATE_TIME,
    local_datetime,
    next_time,
    parse_moment,
    start_fault,
)
from roost_core.placement.labels import EVENTS_KEY
from roost_core.release.reader import Reader
from roost_core.release.windows import read_time_zone

# At most so many are read of one source: the values, or a ConfigMap.
MOST_EVENTS: Final = 200
# The most events of all ConfigMaps together: each plan goes through all of them.
MOST_IN_ALL: Final = 2000
# So many minutes after an event's beginning its last placeholders go: people who haven't come by
# then rarely come.
SETTLE_MINUTES: Final = 15
# Date-times of one event: a daily one's of a year, and some.
MOST_STARTS: Final = 400
# The first and last year of a date: calendars end beyond them.
FIRST_YEAR = 1970
LAST_YEAR = 2199
MOST_NAME: Final = 100
# The longest text that books events, as `roost book` writes it into a ConfigMap's key.
MOST_TEXT: Final = 128 * 1024
# `calendar` names the calendar that `roost book` read the event in, and rewrites it by.
# `group`, `users` and `profile`: whose servers are started beforehand, and of which profile.
_KEYS: Final = (
    "name",
    "people",
    "start",
    "until",
    "timeZone",
    "image",
    "set",
    "calendar",
    "group",
    "users",
    "profile",
)
# The longest name of a hub's user or group: JupyterHub's own bound.
_MOST_HUB_NAME: Final = 255
# The most users that one event names.
_MOST_USERS: Final = 2000
DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,499}", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Starts(Protocol):
    """When an event begins: once or again and again. Hashable."""

    @property
    def time_zone(self) -> str:
        """The zone that its times are told in."""

    def first_after(self, moment: int) -> int | None:
        """Return the first beginning later than `moment`; None: there is none."""


@dataclass(frozen=True, slots=True)
class LocalStarts:
    """A local date-time, or a cron expression of five fields."""

    text: str
    time_zone: str
    # The last local day of a recurrence, like 2027-02-12; "": it goes on.
    until: str = ""

    def first_after(self, moment: int) -> int | None:
        """Return the first beginning later than `moment`; None: there is none."""
        start = next_time(self.text, self.time_zone, moment)
        is_over = (
            start is not None
            and self.until
            and str(local_datetime(start, self.time_zone).date()) > self.until
        )
        return None if is_over else start


@dataclass(frozen=True, slots=True)
class ListedStarts:
    """Single date-times."""

    # Unix times, sorted.
    moments: tuple[int, ...]
    time_zone: str

    def first_after(self, moment: int) -> int | None:
        """Return the first beginning later than `moment`; None: there is none."""
        place = bisect_right(self.moments, moment)
        return self.moments[place] if place < len(self.moments) else None


@dataclass(frozen=True, slots=True)
class Seated:
    """The people whose servers are started before an event."""

    # A group of the hub; "": none.
    group: str = ""
    # Users of the hub, beside the group's.
    users: tuple[str, ...] = ()
    # The slug of the profile that they get; "": the hub's default.
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A booked event: people who come at the same time."""

    name: str
    people: int
    starts: Starts
    # What they launch, normalised; "": what others launch, too.
    image: str = ""
    # The placeholder set that keeps their room.
    set_name: str = ""
    # Whose servers are started beforehand; None: people start their own.
    seated: Seated | None = None
    # The last searches for its beginning: from when on, and what came of it. Callers ask for the
    # present and the next in turn. They go with the event: a cache would keep events that were
    # booked and taken back, of any size.
    searches: deque[tuple[int, int | None]] = field(
        default_factory=lambda: deque(maxlen=4), init=False, compare=False
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """What bookings may ask for."""

    # Names of the placeholder sets that may keep room; the first is used where a booking names
    # none.
    sets: tuple[str, ...]
    # `events.maxPeople`: of one event.
    max_people: int


def bookable_sets(document: Mapping[str, object]) -> tuple[str, ...]:
    """Names of the placeholder sets that may keep room for events, by values or by release.json."""
    entries = document.get("placeholders")
    sets = entries if isinstance(entries, list | tuple) else ()
    return tuple(str(entry.get("name")) for entry in sets if isinstance(entry, Mapping))


def parse_events(read: Reader, value: object, key: str, limits: Limits) -> tuple[Event, ...]:
    """Read a list of events; faults go to the reader under `key`, and that event is left out."""
    entries = read.items(value, key)
    if len(entries) > MOST_EVENTS:
        read.fault(
            key, len(entries), f"at most {MOST_EVENTS} events; the first {MOST_EVENTS} count"
        )
    return read.named(
        entries[:MOST_EVENTS],
        key,
        lambda entry, at: _parse_event(read, entry, at, limits),
        "event here",
    )


def read_events(read: Reader, text: str, limits: Limits) -> tuple[Event, ...]:
    """Read the text of EVENTS_KEY, whatever it holds; faults go to the reader."""
    try:
        entries = load_foreign(text)
    except ForeignTextError as error:
        expected = "a list of events, like [{name: lecture, people: 120, …}]"
        read.fault(EVENTS_KEY, str(error), expected)
        return ()
    return parse_events(read, entries, EVENTS_KEY, limits)


def _parse_event(read: Reader, entry: object, at: str, limits: Limits) -> Event:
    body = read.mapping(entry, at)
    read.known(body, at, _KEYS)
    zone = read_time_zone(read, body.get("timeZone"), f"{at}.timeZone")
    listed = body.get("start")
    if isinstance(listed, list | tuple):
        starts: Starts = _read_list(read, listed, zone, f"{at}.start")
        if body.get("until"):
            read.fault(f"{at}.until", body.get("until"), "no last day beside a list of date-times")
    else:
        starts = _read_start(read, body, zone, at)
    calendar = read.text(body.get("calendar"), f"{at}.calendar")
    if len(calendar) > MOST_NAME or _CONTROL.search(calendar):
        read.fault(f"{at}.calendar", calendar, f"a name of at most {MOST_NAME} letters")
    return make_event(
        read,
        at,
        name=read.text(body.get("name"), f"{at}.name"),
        people=body.get("people"),
        starts=starts,
        image=read.text(body.get("image"), f"{at}.image"),
        set_name=read.text(body.get("set"), f"{at}.set"),
        limits=limits,
        seated=_read_seated(read, body, at),
    )


def _read_seated(read: Reader, body: Mapping[str, object], at: str) -> Seated | None:
    """Read whose servers are started beforehand; faults go to the reader under `at`."""
    group = read.text(body.get("group"), f"{at}.group")
    profile = read.text(body.get("profile"), f"{at}.profile")
    users = read.items(body.get("users"), f"{at}.users")
    if len(users) > _MOST_USERS:
        read.fault(f"{at}.users", len(users), f"at most {_MOST_USERS} users; a group may have more")
        users = ()
    names = tuple(read.text(name, f"{at}.users[{index}]") for index, name in enumerate(users))
    places = [(f"{at}.group", group), (f"{at}.profile", profile)]
    places += [(f"{at}.users[{index}]", name) for index, name in enumerate(names)]
    for place, name in places:
        if len(name) > _MOST_HUB_NAME or _CONTROL.search(name):
            read.fault(place, name, f"a name of at most {_MOST_HUB_NAME} letters")
    if not group and not names:
        if profile:
            read.fault(f"{at}.profile", profile, "a profile only beside `group` or `users`")
        return None
    return Seated(group, tuple(name for name in names if name), profile)


def _read_list(read: Reader, listed: Sequence[object], zone: str, at: str) -> ListedStarts:
    """Read the date-times of a list; faults go to the reader under `at`."""
    if not 1 <= len(listed) <= MOST_STARTS:
        read.fault(at, len(listed), f"1 to {MOST_STARTS} date-times")
        return ListedStarts((), zone)
    moments: set[int] = set()
    for text in listed:
        is_date_time = isinstance(text, str) and DATE_TIME.fullmatch(text) and in_range(text)
        if not isinstance(text, str) or not is_date_time or start_fault(text) is not None:
            expected = f"local date-times like 2026-11-24T09:00, from {FIRST_YEAR} to {LAST_YEAR}"
            read.fault(at, text, expected)
            return ListedStarts((), zone)
        # A zone that isn't known was told already.
        moments.add(int(parse_moment(text, zone or "UTC")))
    return ListedStarts(tuple(sorted(moments)), zone)


def _read_start(read: Reader, body: Mapping[str, object], zone: str, at: str) -> LocalStarts:
    """Read `start` and `until`, where `start` is a text; faults go to the reader."""
    start = read.text(body.get("start"), f"{at}.start")
    fault = start_fault(start)
    if not fault and not in_range(start):
        fault = f"a year from {FIRST_YEAR} to {LAST_YEAR}"
    if fault:
        read.fault(f"{at}.start", body.get("start"), fault)
    # YAML reads a date without quotation marks as one.
    until = str(body.get("until") or "")
    is_day = DATE.fullmatch(until) and start_fault(f"{until}T00:00") is None
    if until and (not is_day or DATE_TIME.fullmatch(start)):
        read.fault(f"{at}.until", until, "the last day of a start that recurs, like 2027-02-12")
    return LocalStarts(start, zone, until)


def make_event(
    read: Reader,
    at: str,
    *,
    name: str,
    people: object,
    starts: Starts,
    image: str,
    set_name: str,
    limits: Limits,
    seated: Seated | None,
) -> Event:
    """Check what every kind of source gives; faults go to the reader under `at`."""
    if not name or len(name) > MOST_NAME or _CONTROL.search(name):
        read.fault(
            f"{at}.name",
            name or None,
            f"a name of at most {MOST_NAME} letters, for logs and Events",
        )
    if image and not _IMAGE.fullmatch(image):
        read.fault(f"{at}.image", image, "an image as pods name it, like quay.io/me/course:1")
        image = ""
    number = people if isinstance(people, int) and not isinstance(people, bool) else 0
    if not 1 <= number <= limits.max_people:
        read.fault(
            f"{at}.people",
            people,
            f"a whole number from 1 to {limits.max_people} (events.maxPeople)",
        )
    if not limits.sets:
        read.fault(f"{at}.set", set_name or None, "a set of placeholders: the values have none")
    elif set_name and set_name not in limits.sets:
        read.fault(
            f"{at}.set", set_name, f"{' or '.join(limits.sets)} of placeholders, or leave it out"
        )
    chosen = set_name or next(iter(limits.sets), "")
    reference = normalise_reference(image) if image else ""
    return Event(name, number, starts, reference, chosen, seated)


def in_range(start: str) -> bool:
    """Whether a date-time is of a year that can be reckoned with; cron expressions are."""
    year, dash, _ = start.partition("-")
    is_date = bool(dash) and len(year) == 4 and year.isdigit()
    return not is_date or FIRST_YEAR <= int(year) <= LAST_YEAR


def first_start_after(event: Event, moment: int) -> int | None:
    """Return the event's first beginning later than `moment` (Unix time); None: there is none.

    A beginning that was found is the answer until it is past, so a recurrence is searched once for
    each.
    """
    for asked, start in event.searches:
        if asked <= moment and (start is None or moment < start):
            return start
    start = event.starts.first_after(moment)
    event.searches.append((moment, start))
    return start


def hub_limits(people: int, events: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what the hub's limits, as `events` has them, do to so many people who come at once, and
    the fix of each.
    """
    given = (events.get(key) for key in ("concurrentSpawnLimit", "activeServerLimit"))
    concurrent, active = (limit if isinstance(limit, int) else 0 for limit in given)
    if 0 < concurrent < people:
        # JupyterHub says 30 to 60 s.
        last = 45 * (-(-people // concurrent) - 1)
        reason = (
            f"If all come at once, the hub starts {concurrent} servers at a time"
            f" (hub.concurrentSpawnLimit) and asks the others to retry: the last of {people}"
            f" waits about {last} s."
        )
        fix = f"Set it to {people} in the hub's values, and events.concurrentSpawnLimit in Roost's."
        yield reason, fix
    if 0 < active < people:
        reason = (
            f"The hub runs {active} servers at most (hub.activeServerLimit), all users' together:"
            f" of {people} people {people - active} and more are refused."
        )
        fix = (
            f"Raise it in the hub's values to {people} more than all others need, and"
            " events.activeServerLimit in Roost's."
        )
        yield reason, fix
