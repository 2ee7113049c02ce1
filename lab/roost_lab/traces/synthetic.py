"""Generate launches that resemble mybinder.org's, for replays without a trace.

Calibrated to the published figures of 2019-05-22..31 (130,729 records): popularity, shape of day
and week, dispersion of minutes, new specs, re-use.
lab/tests/unit/simulator/test_simulator_synthetic.py compares them with the trace. Four sources make
the launches: a few steady names with most of them; classes, hundreds of launches of one name in
some hours; a long tail of rarely visited names; and names never seen before, launched once or a few
times. The five most popular are called as mybinder.org's were, whose images the shipped policies
pull; all other names are made up.

How long a server runs isn't said here: `simulator/engine/hub.py` draws it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import accumulate
from math import exp, log
from statistics import NormalDist
from typing import Final, NamedTuple

from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.units import DAY_SECONDS, HOUR_SECONDS

# 2019-05-22 00:00 UTC, a Wednesday.
BEGIN: Final = 1558483200.0
DEFAULT_DAYS: Final = 10.0
# Mean of a window of eight weekdays and two weekend days [M].
DEFAULT_LAUNCHES_PER_DAY: Final = 13_073.0
_BEFORE_HOURS: Final = 72
_THURSDAY_1970: Final = 3
_SATURDAY: Final = 5


class _Shape(NamedTuple):
    """How a day's launches lie in it: per mille by hour, on weekdays and at weekends, and a weekend
    day's part [M].
    """

    weekday: tuple[int, ...]
    weekend: tuple[int, ...]
    # Launches of a weekend day by those of a weekday.
    weekend_ratio: float


_FIRST_SHAPE: Final = _Shape(
    (
        21,
        20,
        21,
        20,
        24,
        38,
        64,
        62,
        63,
        69,
        49,
        52,
        61,
        67,
        61,
        53,
        50,
        43,
        42,
        33,
        31,
        20,
        19,
        18,
    ),
    (
        28,
        27,
        36,
        35,
        39,
        33,
        40,
        42,
        44,
        48,
        52,
        49,
        44,
        56,
        70,
        48,
        48,
        51,
        42,
        38,
        38,
        39,
        29,
        24,
    ),
    0.40,
)
_OTHERS_SHAPE: Final = _Shape(
    (
        25,
        28,
        30,
        27,
        27,
        31,
        42,
        50,
        51,
        53,
        46,
        46,
        58,
        58,
        57,
        51,
        49,
        49,
        50,
        46,
        42,
        33,
        27,
        25,
    ),
    (
        24,
        26,
        32,
        29,
        27,
        35,
        46,
        50,
        50,
        52,
        49,
        50,
        53,
        56,
        59,
        55,
        44,
        45,
        44,
        36,
        38,
        35,
        33,
        33,
    ),
    0.64,
)
# Percent of all launches, of the steady names, most popular first [M, without the classes among the
# top twenty].
_FIRST_PERCENT: Final = 46.8
_HEAD_PERCENT: Final = (
    8.39,
    4.80,
    3.59,
    2.33,
    1.42,
    1.39,
    1.27,
    1.21,
    1.03,
    0.64,
    0.61,
    0.57,
    0.50,
    0.44,
    0.38,
    0.34,
)
# What the first of them are called: as mybinder.org's own, so that values files which name its
# images fit [M].
_HEAD_NAMES: Final = (
    ("ipython/ipython-in-depth", "master"),
    ("jupyterlab/jupyterlab-demo", "master"),
    ("ines/spacy-io-binder", "live"),
    ("DS-100/textbook", "master"),
    ("bokeh/bokeh-notebooks", "master"),
)
# The first name is linked from a tutorial: part of its launches come as groups within minutes.
_GROUPED_SHARE: Final = 0.55
_GROUP_MEDIAN: Final = 9.0
_GROUP_SIGMA: Final = 0.8
_GROUP_SECONDS: Final = 90.0
# Share of the other steady names' launches that follow another, and the mean seconds between the
# two.
_HEAD_AGAIN: Final = 0.15
_HEAD_GAP_SECONDS: Final = 30.0
# Log-normal noise of days and hours.
_DAY_SIGMA: Final = 0.11
_HOUR_SIGMA: Final = 0.14
# The long tail: percent of all launches; popularity falls as (rank + offset) ** -steepness over so
# many names.
_TAIL_PERCENT: Final = 15.9
_TAIL_STEEPNESS: Final = 1.35
_TAIL_OFFSET: Final = 25.0
_TAIL_NAMES: Final = 5_000
# Visits of tail names: one launch, or several in a row.
_AGAIN: Final = 0.33
_GAP_MEDIAN_SECONDS: Final = 330.0
_GAP_SIGMA: Final = 1.9
# Classes: percent of all launches; Pareto sizes; each within some hours, some again on following
# days.
_CLASS_PERCENT: Final = 7.6
_CLASS_LEAST: Final = 8.0
_CLASS_MOST: Final = 2000.0
_CLASS_ALPHA: Final = 1.05
_CLASS_MEDIAN_SECONDS: Final = 2.0 * HOUR_SECONDS
_CLASS_SIGMA: Final = 0.9
# Share of a class's launches that come as it begins.
_CLASS_AT_ONCE: Final = 0.45
_AT_ONCE_SECONDS: Final = 150.0
_CLASS_NEXT_DAY: Final = 0.25
# Names never seen before: percent of all launches in first visits; some come back within days.
_NEW_PERCENT: Final = 1.0
_NEW_BACK: Final = 0.28
_BACK_MEDIAN_SECONDS: Final = 9 * HOUR_SECONDS
_BACK_SIGMA: Final = 1.6
# New names that are another ref of a known repository.
_NEW_REF_SHARE: Final = 0.40
_NORMAL: Final = NormalDist()
_Pending = tuple[float, int, str, str]


def synthetic_attempts(
    seed: int,
    days: float = DEFAULT_DAYS,
    launches_per_day: float = DEFAULT_LAUNCHES_PER_DAY,
    begin: float = BEGIN,
) -> Iterator[Attempt]:
    """Attempts in order of time, the same for the same arguments; fewer days are the beginning of
    more.

    launches_per_day: a mean over eight weekdays and two weekend days; all kinds of launches grow
    with it alike. begin: seconds since 1970, UTC. Raises ValueError for days or launches that
    aren't above 0.
    """
    if not 0 < days < 100_000 or not 0 < launches_per_day < 1e9:
        raise ValueError(
            f"found {days} days of {launches_per_day} launches, accepted are numbers above 0"
        )
    end = begin + days * DAY_SECONDS
    launches = _MadeUpHub(seed, launches_per_day, begin).launches(end)
    for number, (moment, _, repository, image) in enumerate(launches):
        yield Attempt(number, moment, repository, image)


class _MadeUpHub:
    """Draws the launches of one hub."""

    def __init__(self, seed: int, launches_per_day: float, begin: float) -> None:
        self._begin = begin
        self._per_second = launches_per_day / DAY_SECONDS
        self._chance = Chance(seed)
        self._draw: Callable[[], float] = self._chance.uniforms("synthetic launches").__next__
        self._heap: list[_Pending] = []
        self._pushed = 0
        self._born = 0
        self._head = list(accumulate(_HEAD_PERCENT))
        weights = ((rank + _TAIL_OFFSET) ** -_TAIL_STEEPNESS for rank in range(_TAIL_NAMES))
        self._tail = list(accumulate(weights))
        # Mean launches of what one event starts, to come to the percentages.
        self._visit_mean = 1 / (1 - _AGAIN)
        self._class_mean = _pareto_mean() / (1 - _CLASS_NEXT_DAY)
        self._new_mean = self._visit_mean / (1 - _NEW_BACK)

    def launches(self, end: float) -> Iterator[_Pending]:
        """All launches before `end`, in order.

        Memory holds those of visits and classes that have begun.
        """
        heap = self._heap
        begin = self._begin
        # Visits and classes that began earlier and go on: without them the first days would have
        # fewer launches.
        for hours in range(_BEFORE_HOURS, 0, -1):
            self._fill_lasting(begin - hours * HOUR_SECONDS, begin - (hours - 1) * HOUR_SECONDS)
        while heap and heap[0][0] < begin:
            heappop(heap)
        hour_begin = begin
        while hour_begin < end:
            # Always whole hours, so that an earlier end doesn't change what is drawn.
            hour_end = (hour_begin // HOUR_SECONDS + 1) * HOUR_SECONDS
            self._fill(hour_begin, hour_end)
            until = min(end, hour_end)
            while heap and heap[0][0] < until:
                yield heappop(heap)
            hour_begin = hour_end

    def _fill(self, begin: float, end: float) -> None:
        """Start everything of one hour."""
        first = self._rate(begin, _FIRST_SHAPE, "first") * self._per_second * _FIRST_PERCENT / 100
        others = self._others(begin)
        group_mean = _GROUP_MEDIAN * exp(_GROUP_SIGMA**2 / 2)
        self._events(begin, end, first * (1 - _GROUPED_SHARE), self._first)
        self._events(begin, end, first * _GROUPED_SHARE / group_mean, self._group)
        self._events(begin, end, others * self._head[-1] * (1 - _HEAD_AGAIN), self._steady)
        self._events(begin, end, others * _TAIL_PERCENT / self._visit_mean, self._tail_visit)
        self._fill_lasting(begin, end)

    def _fill_lasting(self, begin: float, end: float) -> None:
        """Start what lasts for days."""
        others = self._others(begin)
        self._events(begin, end, others * _CLASS_PERCENT / self._class_mean, self._class)
        self._events(begin, end, others * _NEW_PERCENT / self._new_mean, self._new)

    def _others(self, moment: float) -> float:
        """Launches a second for each percent of all launches, without the first name."""
        return self._rate(moment, _OTHERS_SHAPE, "others") * self._per_second / 100

    def _rate(self, moment: float, shape: _Shape, whose: str) -> float:
        """Launches in this hour divided by the mean."""
        day = int(moment // DAY_SECONDS)
        is_weekend = (day + _THURSDAY_1970) % 7 >= _SATURDAY
        hours = shape.weekend if is_weekend else shape.weekday
        weekday_part = 10 / (8 + 2 * shape.weekend_ratio)
        part = weekday_part * (shape.weekend_ratio if is_weekend else 1.0)
        hour = int(moment % DAY_SECONDS // HOUR_SECONDS)
        noise = self._noise(f"{whose} day", day, _DAY_SIGMA)
        noise *= self._noise(f"{whose} hour", int(moment // HOUR_SECONDS), _HOUR_SIGMA)
        return part * 24 * hours[hour] / sum(hours) * noise

    def _noise(self, purpose: str, whose: int, sigma: float) -> float:
        """Log-normal of mean 1."""
        return self._chance.log_normal(purpose, whose, exp(-(sigma**2) / 2), sigma)

    def _events(
        self, begin: float, end: float, per_second: float, start: Callable[[float], None]
    ) -> None:
        """Call `start` at the times of a Poisson process."""
        draw = self._draw
        moment = begin
        while True:
            moment -= log(draw()) / per_second
            if moment >= end:
                return
            start(moment)

    def _push(self, moment: float, repository: str, image: str) -> None:
        self._pushed += 1
        heappush(self._heap, (moment, self._pushed, repository, image))

    def _log_normal(self, median: float, sigma: float) -> float:
        return median * exp(sigma * _NORMAL.inv_cdf(self._draw()))

    def _first(self, moment: float) -> None:
        self._push(moment, *_steady_name(0))

    def _group(self, moment: float) -> None:
        names = _steady_name(0)
        for _ in range(max(1, round(self._log_normal(_GROUP_MEDIAN, _GROUP_SIGMA)))):
            self._push(moment - _GROUP_SECONDS * log(self._draw()), *names)

    def _steady(self, moment: float) -> None:
        names = _steady_name(1 + bisect_right(self._head, self._draw() * self._head[-1]))
        self._push(moment, *names)
        while self._draw() < _HEAD_AGAIN:
            moment -= _HEAD_GAP_SECONDS * log(self._draw())
            self._push(moment, *names)

    def _tail_visit(self, moment: float) -> None:
        self._visit(moment, *self._tail_name())

    def _tail_name(self) -> tuple[str, str]:
        """Repository and image of the long tail, the popular ones more often."""
        return _name("tail", bisect_right(self._tail, self._draw() * self._tail[-1]))

    def _visit(self, moment: float, repository: str, image: str) -> None:
        self._push(moment, repository, image)
        while self._draw() < _AGAIN:
            moment += min(HOUR_SECONDS, self._log_normal(_GAP_MEDIAN_SECONDS, _GAP_SIGMA))
            self._push(moment, repository, image)

    def _class(self, moment: float) -> None:
        self._born += 1
        names = _name("class", self._born)
        size = _pareto(self._draw())
        length = self._log_normal(_CLASS_MEDIAN_SECONDS, _CLASS_SIGMA) * (1 + size / 100)
        at_once_seconds = _AT_ONCE_SECONDS * (1 + size / 60)
        while True:
            for _ in range(round(size)):
                at_once = self._draw() < _CLASS_AT_ONCE
                uniform = self._draw()
                after = -at_once_seconds * log(uniform) if at_once else length * uniform
                self._push(moment + after, *names)
            if self._draw() >= _CLASS_NEXT_DAY:
                return
            moment += DAY_SECONDS

    def _new(self, moment: float) -> None:
        self._born += 1
        names = _name("new", self._born)
        if self._draw() < _NEW_REF_SHARE:
            repository, _ = self._tail_name()
            names = repository, f"{repository}/branch-{self._born}"
        self._visit(moment, *names)
        while self._draw() < _NEW_BACK:
            moment += self._log_normal(_BACK_MEDIAN_SECONDS, _BACK_SIGMA)
            self._visit(moment, *names)


def _steady_name(number: int) -> tuple[str, str]:
    """Repository and image as in the archive."""
    if number >= len(_HEAD_NAMES):
        return _name("steady", number)
    typed, ref = _HEAD_NAMES[number]
    return f"GitHub/{typed.casefold()}", f"GitHub/{typed}/{ref}"


def _name(kind: str, number: int) -> tuple[str, str]:
    repository = f"GitHub/{kind}/{kind}-{number:05}"
    return repository, f"{repository}/master"


def _pareto(uniform: float) -> float:
    """A class's launches: Pareto between least and most."""
    ratio = (_CLASS_LEAST / _CLASS_MOST) ** _CLASS_ALPHA
    return float(_CLASS_LEAST / (1 - uniform * (1 - ratio)) ** (1 / _CLASS_ALPHA))


def _pareto_mean() -> float:
    low = _CLASS_LEAST
    high = _CLASS_MOST
    alpha = _CLASS_ALPHA
    scale = alpha * low**alpha / (1 - (low / high) ** alpha)
    return float(scale * (high ** (1 - alpha) - low ** (1 - alpha)) / (1 - alpha))
