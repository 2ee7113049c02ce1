"""Replay a few hours of a long trace instead of all of it: enough to rank candidates, not to believe their figures.

A replay of a window begins with the last launch of each image until then, so that nodes hold what a longer replay would
have pulled, and with all launches of some hours before, so that users are there. Only what comes after that counts.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from roost_lab.pages.dates import US, as_date
from roost_lab.simulator.engine.costs import BY_USE
from roost_lab.simulator.engine.histogram import Histogram
from roost_lab.simulator.engine.results import TOTAL, RunResult
from roost_lab.simulator.engine.totals import NODES
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.sweep.survey import Window
from roost_lab.traces.chance import Chance
from roost_lab.traces.pushes import with_pushes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.simulator.sweep.survey import Trace
    from roost_lab.traces.attempt import Attempt

HOUR: Final = 3600
DAY: Final = 24 * HOUR
# Whole hours: node-hours are counted by the hour.
WINDOW_SECONDS: Final = 12 * HOUR
WARM_UP_SECONDS: Final = 6 * HOUR
# Images that nobody launched for so long aren't brought to the nodes of a window.
HISTORY_SECONDS: Final = 10 * DAY
# A shorter trace is replayed whole: windows would save little.
LEAST_SECONDS: Final = 3 * DAY
# Halves of a day begin so long after midnight, UTC.
MORNING_SECONDS: Final = 6 * HOUR
# What the windows' cost, in a result that has no more details of it.
ALL: Final = "all"


def choose_windows(moments: Sequence[float]) -> tuple[Window, ...]:
    """The windows of launches at these times, ascending: none where the trace is too short, else a day and a night.

    The busiest of all is one, so that the greatest load is seen; of the other half of the day it is the one that the
    median launch is in. None is in the first day, for then caches are cold.
    """
    if not moments or moments[-1] - moments[0] < LEAST_SECONDS:
        return ()
    load = Counter(int((moment - MORNING_SECONDS) // WINDOW_SECONDS) for moment in moments)
    first = int((moments[0] + DAY - MORNING_SECONDS) // WINDOW_SECONDS) + 1
    # The trace ends in the last one.
    whole = range(first, int((moments[-1] - MORNING_SECONDS) // WINDOW_SECONDS))
    busiest = max(whole, key=lambda place: load[place])
    others = sorted((place for place in whole if (place - busiest) % 2), key=lambda place: (load[place], place))
    up_to = list(accumulate(load[place] for place in others))
    median = others[bisect_left(up_to, up_to[-1] / 2)]
    begins = [place * WINDOW_SECONDS + MORNING_SECONDS for place in sorted((busiest, median)) if load[place]]
    return tuple(Window(begin, begin + WINDOW_SECONDS) for begin in begins)


def with_windows(trace: Trace) -> tuple[Trace, int]:
    """The trace with its windows, if it is long enough for them, and how many launches are replayed for these.

    Made-up launches of all seeds have the windows of the first. Raises TraceError.
    """
    windows = choose_windows(array("d", (attempt.moment for attempt in trace.open(1))))
    return replace(trace, windows=windows), sum(map(len, cut(trace.open(1), windows)))


def show_windows(windows: Sequence[Window]) -> str:
    """Windows for people."""
    shown = (f"{as_date(window.begin * US):%Y-%m-%d %H:%M} to {as_date(window.end * US):%H:%M}" for window in windows)
    return f"{' and '.join(shown)} UTC"


def cut(attempts: Iterable[Attempt], windows: Sequence[Window]) -> list[list[Attempt]]:
    """What is replayed for each window. attempts, and windows by their beginning, in order of time."""
    stretches: list[list[Attempt]] = [[] for _ in windows]
    latest: dict[str, Attempt] = {}
    begun = 0
    for attempt in attempts:
        while begun < len(windows) and attempt.moment >= windows[begun].begin - WARM_UP_SECONDS:
            since = attempt.moment - HISTORY_SECONDS
            stretches[begun] += sorted(kept for kept in latest.values() if kept.moment >= since)
            begun += 1
        for place in range(begun):
            if attempt.moment < windows[place].end:
                stretches[place].append(attempt)
        latest[attempt.image] = attempt
    return stretches


def replay_windows(
    policy: Policy, assumptions: Assumptions, seed: int, trace: Trace, on_progress: Callable[[int, float], None] | None
) -> RunResult:
    """Replay the windows of a trace, and return what counts: waits, cold starts, node-hours and costs."""
    began = time.process_time()
    pushed = with_pushes(trace.open(seed), Chance(seed), assumptions.pushes_per_day)
    result = RunResult(policy=policy.name, seed=seed, waits={TOTAL: Histogram()})
    for window, attempts in zip(trace.windows, cut(pushed, trace.windows), strict=True):
        _replay(window, attempts, World(policy, assumptions, seed, trace.hubs), result, on_progress)
    result.cpu_seconds = time.process_time() - began
    return result


def _replay(
    window: Window,
    attempts: Sequence[Attempt],
    world: World,
    into: RunResult,
    on_progress: Callable[[int, float], None] | None,
) -> None:
    """Replay one window, and add what counts."""
    counted = frozenset(attempt.number for attempt in attempts if attempt.moment >= window.begin)
    if not counted:
        return
    # Cold starts, node-hours and costs of what came before.
    before = (0, 0.0, 0.0)

    def note_wait(number: int, seconds: float, _is_up: bool) -> None:
        if number in counted:
            into.waits[TOTAL].add(seconds)

    def note_progress(number: int, moment: float) -> None:
        if on_progress is not None:
            on_progress(into.attempts + number, moment)

    def note_before(_: object) -> None:
        nonlocal before
        # Node-hours are those of whole hours, once something is counted in the next one.
        world.measures.level(NODES, 0, world.now)
        spent = 0.0 if world.costs is None else world.costs.spent(world.now)
        before = (world.measures.result.cold, world.measures.result.node_hours, spent)

    world.measures.on_wait = note_wait
    world.at(window.begin, note_before)
    played = world.play(attempts, note_progress, window.end)
    into.attempts += len(attempts)
    into.cold += played.cold - before[0]
    into.node_hours += played.node_hours - before[1]
    if played.costs:
        costs = into.costs.setdefault(BY_USE, {ALL: 0.0})
        costs[ALL] += sum(played.costs[BY_USE].values()) - before[2]
