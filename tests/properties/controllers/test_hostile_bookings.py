"""Whatever is booked, however much of it: a cycle does no more work than the Lease allows; lines
are counted.
"""

import sys
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roost.controllers.contract.bookings import BookingSource
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost.controllers.popular_images.plan import CONTROLLER as POPULAR
from roost.controllers.runtime.booking_sources import ConfigMapReader, ReadingTime, keep_config_map
from roost.controllers.runtime.loop import SILENT_SECONDS
from roost_core.release.events import Limits
from tests.builders import NAMESPACE, RELEASE
from tests.unit.controllers.planners import planner_from
from tests.unit.controllers.test_booked_events import events_document
from tests.unit.controllers.test_controllers_loop import World

NOW = 1_795_000_000.0
LIMITS = Limits(("default",), 500)
# Today it takes 30 to 100 ns.
SECONDS_A_LINE = 2e-5


class Work:
    """A clock that goes by the lines that are run, and not by time."""

    def __init__(self) -> None:
        self._lines = 0

    def __enter__(self) -> "Work":
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, _frame: FrameType, event: str, _argument: object) -> Any:
        self._lines += event == "line"
        return self._trace

    def seconds(self) -> float:
        """What was run so far, on a machine that is some hundred times as slow as today's."""
        return self._lines * SECONDS_A_LINE


def dates(count: int, form: str = "%Y%m%dT090000Z") -> list[str]:
    day = datetime.fromtimestamp(NOW, UTC)
    return [(day + timedelta(days=number)).strftime(form) for number in range(count)]


BEGIN = "DTSTART;TZID=Europe/Berlin:19980106T090000"
# What one event of a calendar says, of about so many characters in all.
EVENTS: dict[str, Any] = {
    "counted from long ago": lambda _: [BEGIN, "RRULE:FREQ=DAILY;COUNT=9999"],
    "hardly ever": lambda _: [BEGIN, "RRULE:FREQ=MONTHLY;BYDAY=5FR;BYMONTHDAY=31;COUNT=9999"],
    "never": lambda _: [BEGIN, "RRULE:FREQ=MONTHLY;BYMONTHDAY=30;BYDAY=1MO;COUNT=9999"],
    "a long rule": lambda size: [
        BEGIN,
        f"RRULE:FREQ=MONTHLY;BYDAY={','.join(['5FR', '-5FR'] * (size // 9))}",
    ],
    "long places": lambda size: [
        BEGIN,
        f"RRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS={','.join(['-1'] * (size // 3))}",
    ],
    "seconds": lambda size: [BEGIN, f"RRULE:FREQ=DAILY;BYSECOND={','.join(['7'] * (size // 2))}"],
    "a far end": lambda _: [BEGIN, "RRULE:FREQ=WEEKLY;UNTIL=89991231T000000Z"],
    "dates taken out": lambda size: [
        "DTSTART:20261101T090000Z",
        "RRULE:FREQ=DAILY",
        f"EXDATE:{','.join(dates(size // 17))}",
    ],
    "one date again and again": lambda size: [
        BEGIN,
        f"RDATE:{','.join(['20270101T080000Z'] * (size // 17))}",
    ],
    "moved away": lambda _: ["UID:one", "RRULE:FREQ=DAILY", "DTSTART:20261101T090000Z"],
    "folded": lambda size: [
        "DTSTART:20270101T090000Z",
        "DESCRIPTION:" + "\n ".join("people: 9" * (size // 27)),
    ],
    "in it another": lambda size: ["BEGIN:VEVENT"] * (size // 13),
    "zeros": lambda size: ["DTSTART:20270101T090000Z\0", "\0" * size],
    "tags": lambda size: [
        "DTSTART:20270101T090000Z",
        f"DESCRIPTION:{'<style<!--<p' * (size // 12)}",
    ],
    "zones": lambda size: [
        "DTSTART;TZID=Nowhere:20270101T090000",
        *["X-WR-TIMEZONE:Africa/Here"] * (size // 26),
    ],
}
# Lines of events.yaml.
ENTRIES: dict[str, Any] = {
    "rare": lambda number: (
        f'- {{name: e{number}, people: 9, start: "0 0 29 2 {number % 7}", timeZone: UTC}}'
    ),
    "never": lambda number: f'- {{name: e{number}, people: 9, start: "0 0 30 2 *", timeZone: UTC}}',
    "always": lambda number: (
        f'- {{name: e{number}, people: 9, start: "* * * * *", timeZone: Europe/Berlin}}'
    ),
    "deep": lambda _: "- " + "[" * 40,
    "sixties": lambda _: f"- {{people: 1{':59' * 400}}}",
    "merged": lambda _: "- {<<: {<<: {<<: {a: 1}}}}",
    "anchors": lambda number: f"- &a{number} x",
    "keys": lambda _: "- {" + ", ".join(f"k{index}: 1" for index in range(200)) + "}",
}


def calendar(kind: str, each: int, size: int) -> str:
    event = [*EVENTS[kind](each), "DESCRIPTION:people: 9"]
    lines, length = ["BEGIN:VCALENDAR"], 0
    while length < size:
        uid = [] if event[0].startswith("UID") else [f"UID:{len(lines)}"]
        lines += ["BEGIN:VEVENT", *uid, f"SUMMARY:e{len(lines)}", *event, "END:VEVENT"]
        length = sum(map(len, lines[-200:])) * len(lines) // min(len(lines), 200)
    moved = dates(size // 60, "RECURRENCE-ID:%Y%m%dT090000Z") if kind == "moved away" else []
    lines += [line for one in moved for line in ("BEGIN:VEVENT", "UID:one", one, "END:VEVENT")]
    return "\n".join([*lines, "END:VCALENDAR"])


CALENDARS = st.builds(
    lambda kind, sizes: calendar(kind, *sizes),
    st.sampled_from(sorted(EVENTS)),
    # Many small events, fewer of some length, or a single long one.
    st.sampled_from([(20, 27_000), (20, 27_000), (900, 27_000), (17_000, 27_000), (120_000, 300)]),
)
LISTS = st.builds(
    lambda kind, count: "\n".join(ENTRIES[kind](number) for number in range(count)),
    st.sampled_from(sorted(ENTRIES)),
    st.sampled_from([1, 200, 300]),
)
CONFIG_MAPS = st.one_of(
    st.builds(lambda text: {"a.ics": text}, CALENDARS),
    st.builds(lambda text: {"events.yaml": text}, LISTS),
    st.builds(lambda text: {f"{key}.ics": text for key in "abc"}, CALENDARS),
)


@settings(max_examples=40)
@example([{"a.ics": calendar("never", 20, 27_000)}], 10)
@example([{"a.ics": calendar("a long rule", 120_000, 300)}], 1)
@given(st.lists(CONFIG_MAPS, min_size=1, max_size=2), st.sampled_from([1, 10, 10]))
@pytest.mark.slow
def test_whatever_is_booked_the_lease_is_renewed_and_gaps_are_said(
    data: list[dict[str, str]], copies: int
) -> None:
    texts = {
        f"{number:03}": keep_config_map(
            {"metadata": {"name": f"m{number:03}", "uid": str(number)}, "data": each}
        )
        for number, each in enumerate(data * copies)
    }
    work, world, today, seen = Work(), World(), [NOW], [[BookingSource("", "", "", ())]]
    reader = ConfigMapReader(LIMITS, ReadingTime(work.seconds), wall=lambda: today[0])

    def snapshot() -> Snapshot:
        seen.append([*reader.sources(texts)])
        return Snapshot(RELEASE, NAMESPACE, bookings={source.name: source for source in seen[-1]})

    loop = world.loop(
        *[planner_from(controller, events_document()) for controller in (HEADROOM, POPULAR)]
    )
    loop._snapshot, loop._steady, loop._wall = snapshot, work.seconds, lambda: today[0]
    for _ in range(2):
        with work:
            began = work.seconds()
            loop.turn()
            assert work.seconds() - began < SILENT_SECONDS
        # What was found is past: it is searched anew.
        today[0] += 60 * 86_400.0
    assert {source.name for source in seen[-1]} == {text.name for text in texts.values()}
