"""Replay a day of classes without Roost and with it, and write the page that shows both side by
side, for `make demo`.

.venv/bin/python -m tools.demo_replay FOLDER PAGE

The day is a Monday of a made-up term, one of those of the first row of README's table. Without
Roost the hub keeps no placeholders; with Roost it is as `roost import` writes it, and Roost knows
the two weeks before. A hub of its own is replayed by `roost simulate --record FOLDER` and shown by
`roost view --beside`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import terms
from benchmarks.term_figures import NONE
from benchmarks.term_playing import KNOWN, SET_NAME, history_text, policy_of
from roost_lab.recorder.store.database import Store
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.sweep.recording import ReplayRecorder
from roost_lab.units import DAY_SECONDS
from roost_lab.view.reading import RecordSource
from roost_lab.view.server import common_time, story
from roost_lab.view.shareable import make_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_core.objects.fields import JSONObject
    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.traces.attempt import Attempt

# What each side is called on the page, and its arm in lab/benchmarks/term.py.
SIDES: Final = {"Without Roost": NONE, "With Roost": KNOWN}
# Of 20 drawn terms this one has one large class in the morning, and two in the afternoon.
SEED: Final = 20
WEEKS: Final = 5
# The Monday of the third week, counted from the first Monday: two weeks are known by then.
DAY: Final = 14
# Fewer than in a file that somebody asks for: the slow starts have moments of their own.
MOMENTS: Final = 60


def replayed(folder: Path) -> list[Store]:
    """Records of the day, one for each of SIDES."""
    term = terms.draw_term(SEED, WEEKS)
    before = [launch for launch in term.launches if launch.attempt.moment < term.begin_of_day(DAY)]
    _, attempts = the_day()
    folder.mkdir(parents=True, exist_ok=True)
    stores = []
    for arm in SIDES.values():
        policy = policy_of(term, arm)
        histories = {SET_NAME: history_text(before, policy)} if arm == KNOWN else {}
        file = folder / f"{arm}.db"
        stores.append(record_day(file, policy, histories, attempts, Assumptions()))
    return stores


def the_day() -> tuple[list[Attempt], list[Attempt]]:
    """The launches of the weeks before the day, and those of the day."""
    term = terms.draw_term(SEED, WEEKS)
    begin = term.begin_of_day(DAY)
    attempts = term.attempts
    before = [attempt for attempt in attempts if attempt.moment < begin]
    day = [attempt for attempt in attempts if begin <= attempt.moment < begin + DAY_SECONDS]
    return before, day


def record_day(
    file: Path,
    policy: Policy,
    histories: dict[str, str],
    attempts: Sequence[Attempt],
    assumed: Assumptions,
) -> Store:
    """Replay launches into a new record. histories: of placeholder sets, what they know already."""
    store = Store.open(str(file))
    store.migrate()
    world = World(policy, assumed, SEED, (), ReplayRecorder(store))
    world.histories = histories
    world.play(attempts)
    store.close()
    return Store.open_for_reading(str(file))


def write_sides(stores: Sequence[Store], sides: Sequence[str], page: Path) -> JSONObject:
    """Write records side by side as a page, and close them. What the page tells of them."""
    sources = [RecordSource(store) for store in stores]
    span = common_time(sources)
    if span is None:
        raise SystemExit("the records have no time in common")
    page.write_text(make_file(sources, sides, span, MOMENTS), encoding="utf-8")
    told = story(sources, sides, span)
    for store in stores:
        store.close()
    return told


def write_page(folder: Path, page: Path) -> str:
    """Replay, and write the page. What came of it, in a sentence. Raises OSError where that can't
    be done.
    """
    return str(write_sides(replayed(folder), list(SIDES), page)["sentence"])


if __name__ == "__main__":
    print(write_page(*map(Path, sys.argv[1:])))
