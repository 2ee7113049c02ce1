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
from roost_core.release.bookings import MOST_STARTS, Limits
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


# A calendar's events list their date-times: as many as one may, and those of a long text.
LISTED = ", ".join(
    f'"{datetime.fromtimestamp(NOW, UTC) + timedelta(days=day):%Y-%m-%dT09:00}"'
    for day in range(MOST_STARTS)
)
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
    "listed": lambda number: (
        f"- {{name: e{number}, people: 9, timeZone: Europe/Berlin, start: [{LISTED}]}}"
    ),
    "keys": lambda _: "- {" + ", ".join(f"k{index}: 1" for index in range(200)) + "}",
}


def written(kind: str, count: int) -> str:
    """A text of events.yaml."""
    return "\n".join(ENTRIES[kind](number) for number in range(count))


CONFIG_MAPS = st.builds(
    lambda kind, count: {"events.yaml": written(kind, count)},
    st.sampled_from(sorted(ENTRIES)),
    st.sampled_from([1, 14, 200, 300]),
)


@settings(max_examples=40)
@example([{"events.yaml": written("never", 300)}], 10)
@example([{"events.yaml": written("listed", 14)}], 10)
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
    work, world, today, seen = Work(), World(), [NOW], [[BookingSource("", "", ())]]
    reader = ConfigMapReader(LIMITS, ReadingTime(work.seconds))

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
