"""Read booked events: so many people at a local time, perhaps each week, perhaps with an image.

Events are booked in `events.booked` of the values and in `events.yaml` of ConfigMaps, by the same
keys. `roost book` writes ConfigMaps. Where it read the event in a calendar, `start` is a list of
date-times. Times are passed as Unix time, and nothing here reads a clock.
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

# The most events that are read from one source: the values, or a ConfigMap.
MOST_EVENTS: Final = 200
# The most events of all ConfigMaps together: each plan goes through all of them.
MOST_IN_ALL: Final = 2000
# So many minutes after an event's beginning, its last placeholders go. People who haven't come by
# then rarely come.
SETTLE_MINUTES: Final = 15
# The most date-times of one event: enough for each day of a year.
MOST_STARTS: Final = 400
# The first and last year that a date may have. Far beyond them, Python's dates end.
FIRST_YEAR = 1970
LAST_YEAR = 2199
MOST_NAME: Final = 100
# The longest text that books events, as `roost book` writes it into a ConfigMap's key.
MOST_TEXT: Final = 128 * 1024
# `calendar` names the calendar that `roost book` read the event in. When it reads the calendar
# again, it replaces the events with that name.
# `group` and `users` say whose servers are started beforehand, and `profile` with which profile.
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
        """The IANA name of the zone in which its times are shown."""

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
        if start is None or not self.until:
            return start
        # Both are written as 2027-02-12, so texts compare as days do.
        day = str(local_datetime(start, self.time_zone).date())
        return None if day > self.until else start


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
    # The image that they launch, normalised; "": none was given.
    image: str = ""
    # The placeholder set that keeps their room.
    set_name: str = ""
    # Whose servers are started beforehand; None: people start their own.
    seated: Seated | None = None
    # The last answers of `first_start_after`: the moment that was asked for, and the beginning. A
    # few are kept, because callers ask in turn for the present beginning and for the next. They are
    # kept here, so that they go with the event.
    searches: deque[tuple[int, int | None]] = field(
        default_factory=lambda: deque(maxlen=4), init=False, compare=False
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """What bookings may ask for."""

    # Names of the placeholder sets that may keep room. A booking that names none gets the first.
    sets: tuple[str, ...]
    # The most people of one event: `events.maxPeople`.
    max_people: int


def bookable_sets(document: Mapping[str, object]) -> tuple[str, ...]:
    """Names of the placeholder sets that may keep room for events, by values or by release.json."""
    entries = document.get("placeholders")
    sets = entries if isinstance(entries, list | tuple) else ()
    return tuple(str(entry.get("name")) for entry in sets if isinstance(entry, Mapping))


def parse_events(read: Reader, value: object, key: str, limits: Limits) -> tuple[Event, ...]:
    """Read a list of events, but for faulty events. Faults go to the reader under `key`."""
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
    texts_by_key = {f"{at}.group": group, f"{at}.profile": profile}
    texts_by_key |= {f"{at}.users[{index}]": name for index, name in enumerate(names)}
    for key, text in texts_by_key.items():
        if len(text) > _MOST_HUB_NAME or _CONTROL.search(text):
            read.fault(key, text, f"a name of at most {_MOST_HUB_NAME} letters")
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
        if not isinstance(text, str) or not _is_date_time(text):
            expected = f"local date-times like 2026-11-24T09:00, from {FIRST_YEAR} to {LAST_YEAR}"
            read.fault(at, text, expected)
            return ListedStarts((), zone)
        # The zone is "" if it isn't known. Then the reader has that fault already.
        moments.add(int(parse_moment(text, zone or "UTC")))
    return ListedStarts(tuple(sorted(moments)), zone)


def _is_date_time(text: str) -> bool:
    """Whether a text is a local date-time that exists, like 2026-11-24T09:00."""
    has_form = DATE_TIME.fullmatch(text) is not None
    return has_form and in_range(text) and start_fault(text) is None


def _read_start(read: Reader, body: Mapping[str, object], zone: str, at: str) -> LocalStarts:
    """Read `start` and `until`, where `start` is a text; faults go to the reader."""
    start = read.text(body.get("start"), f"{at}.start")
    fault = start_fault(start)
    if not fault and not in_range(start):
        fault = f"a year from {FIRST_YEAR} to {LAST_YEAR}"
    if fault:
        read.fault(f"{at}.start", body.get("start"), fault)
    # `str`, because YAML reads a day without quotation marks as a date, not as a text.
    until = str(body.get("until") or "")
    is_day = DATE.fullmatch(until) and start_fault(f"{until}T00:00") is None
    is_single = DATE_TIME.fullmatch(start) is not None
    if until and (not is_day or is_single):
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
    """Make an event of what was read, from whatever source. Faults go to the reader under `at`."""
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
    """Whether a date-time is from FIRST_YEAR to LAST_YEAR. True for a cron expression."""
    year, dash, _ = start.partition("-")
    is_date = bool(dash) and len(year) == 4 and year.isdigit()
    return not is_date or FIRST_YEAR <= int(year) <= LAST_YEAR


def first_start_after(event: Event, moment: int) -> int | None:
    """Return the event's first beginning later than `moment` (Unix time); None: there is none.

    To search a recurrence takes time. So an earlier answer is given again, while it is still right.
    """
    for asked, start in event.searches:
        is_still_ahead = start is None or moment < start
        if asked <= moment and is_still_ahead:
            return start
    start = event.starts.first_after(moment)
    event.searches.append((moment, start))
    return start


def hub_limits(people: int, events: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what a limit of the hub does to so many people who come at once, and its fix.

    events: `events` of the values, which repeats the hub's two limits; 0 or nothing: no limit.
    """
    concurrent = _limit(events.get("concurrentSpawnLimit"))
    active = _limit(events.get("activeServerLimit"))
    if 0 < concurrent < people:
        # JupyterHub tells the others to retry after 30 to 60 s.
        retry_seconds = 45
        rounds = -(-people // concurrent)
        last = retry_seconds * (rounds - 1)
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


def _limit(limit: object) -> int:
    """A limit of the hub; 0: there is none, or it isn't a number."""
    return limit if isinstance(limit, int) else 0
