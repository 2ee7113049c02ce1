"""Keep how fast a pool's users grew in number, hour by hour, for the last weeks.

The growth of an hour is the most by which the number of users rose within a node's boot time, from any minute of that
hour on: arrivals less departures, in placeholders' sizes. With so much room free, everybody who came in that hour would
have started at once while the autoscaler booted the next node.
Pure: times are Unix time and are passed in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final, NamedTuple

HOUR_SECONDS: Final = 3600
WEEK_HOURS: Final = 168
KEPT_WEEKS: Final = 8
KEPT_HOURS: Final = KEPT_WEEKS * WEEK_HOURS
# Between two samples of the number of users; after a longer pause, what happened meanwhile is unknown.
SAMPLE_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 300.0
# An hour of which less was seen says too little.
SEEN_SECONDS: Final = 1800.0
MOST_GROWTH: Final = 100_000
# Of whole hours since 1970: far beyond any clock.
_MOST_HOUR: Final = 10_000_000
_VERSION: Final = 1
_KEYS: Final = frozenset({"version", "bootSeconds", "firstHour", "growth"})


class HistoryError(ValueError):
    """A text isn't a history; says why."""


@dataclass(frozen=True, slots=True)
class History:
    """The growth of each hour, the last eight weeks at most."""

    boot_seconds: int
    # Whole hours since 1970, of the first entry.
    first_hour: int = 0
    # None: not seen.
    growth: tuple[int | None, ...] = ()

    @property
    def end_hour(self) -> int:
        """The hour after the last entry."""
        return self.first_hour + len(self.growth)

    def at(self, hour: int) -> int | None:
        """Return the growth of an hour; None: not seen."""
        index = hour - self.first_hour
        return self.growth[index] if 0 <= index < len(self.growth) else None

    def seen(self) -> dict[int, int]:
        """The growth of each hour that was seen."""
        return {self.first_hour + index: growth for index, growth in enumerate(self.growth) if growth is not None}

    def with_hours(self, hours: Mapping[int, int]) -> History:
        """Return the history with these hours too; an hour that it has stays, and hours that are too old go."""
        known = {**hours, **self.seen()}
        if not known:
            return self
        end = max(known) + 1
        first = max(min(known), end - KEPT_HOURS)
        return replace(self, first_hour=first, growth=tuple(known.get(hour) for hour in range(first, end)))

    def as_text(self) -> str:
        """As `read_history` reads it."""
        body = {
            "version": _VERSION,
            "bootSeconds": self.boot_seconds,
            "firstHour": self.first_hour,
            "growth": self.growth,
        }
        return json.dumps(body, separators=(",", ":"))


def read_history(text: str) -> History:
    """Read a history. Raises HistoryError for anything else, saying what was found and what is expected."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise HistoryError("found invalid JSON, expected an object") from None
    if not isinstance(body, dict) or body.keys() != _KEYS or body["version"] != _VERSION:
        raise HistoryError(f"expected an object of version {_VERSION} with the keys {', '.join(sorted(_KEYS))}")
    boot_seconds, first_hour, growth = body["bootSeconds"], body["firstHour"], body["growth"]
    if not _is_whole(boot_seconds, 1, 24 * HOUR_SECONDS) or not _is_whole(first_hour, 0, _MOST_HOUR):
        raise HistoryError("expected bootSeconds from 1 to 86400, and firstHour in whole hours since 1970")
    if not isinstance(growth, list) or not all(each is None or _is_whole(each, 0, MOST_GROWTH) for each in growth):
        raise HistoryError(f"growth: expected a list of whole numbers from 0 to {MOST_GROWTH}, or null")
    return History(boot_seconds, first_hour + max(0, len(growth) - KEPT_HOURS), tuple(growth[-KEPT_HOURS:]))


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


class Sample(NamedTuple):
    """How many placeholders' sizes users took at one time."""

    at: float
    level: float


class _Hour(NamedTuple):
    """An hour that isn't over yet, or was less than a boot time ago."""

    growth: float = 0.0
    seen_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Meter:
    """Measures growth, sample by sample."""

    boot_seconds: int
    # Of the last boot time, oldest first.
    samples: tuple[Sample, ...] = ()
    hours: Mapping[int, _Hour] = field(default_factory=dict)

    def is_due(self, now: float) -> bool:
        """Whether to take a sample."""
        return not self.samples or not 0 <= now - self.samples[-1].at < SAMPLE_SECONDS

    def take(self, sample: Sample) -> tuple[Meter, dict[int, int]]:
        """Return the meter after one more sample, and the growth of the hours that it completes.

        After a pause, or when the clock goes back, it begins anew; hours of which enough was seen still complete.
        """
        hours = dict(self.hours)
        last = self.samples[-1] if self.samples else None
        is_gap = last is None or not 0 < sample.at - last.at <= PAUSE_SECONDS
        earlier = () if is_gap else self.samples
        if last is not None and not is_gap:
            hour = int(last.at // HOUR_SECONDS)
            before = hours.get(hour, _Hour())
            hours[hour] = before._replace(seen_seconds=before.seen_seconds + sample.at - last.at)
        samples = (*(each for each in earlier if sample.at - each.at <= self.boot_seconds), sample)
        for each in samples:
            hour = int(each.at // HOUR_SECONDS)
            before = hours.get(hour, _Hour())
            if sample.level - each.level > before.growth:
                hours[hour] = before._replace(growth=sample.level - each.level)
        over = [hour for hour in hours if (hour + 1) * HOUR_SECONDS + self.boot_seconds <= sample.at]
        complete = {
            hour: min(MOST_GROWTH, ceil(hours[hour].growth - 1e-9))
            for hour in over
            if hours[hour].seen_seconds >= SEEN_SECONDS
        }
        kept = {hour: each for hour, each in hours.items() if hour not in complete and hour not in over}
        return Meter(self.boot_seconds, samples, kept), complete


def size_in_placeholders(cpu: float, memory: float, placeholder_cpu: float, placeholder_memory: float) -> float:
    """Return a pod's requests in placeholders, by the scarcer of CPU and memory; 1 where nothing can be compared."""
    shares = [
        asked / own for asked, own in ((cpu, placeholder_cpu), (memory, placeholder_memory)) if asked > 0 and own > 0
    ]
    return max(shares, default=1.0)


def history_of(sessions: Iterable[tuple[float, float, float]], boot_seconds: int) -> History:
    """Make a history of past sessions: (begin, end, size in placeholders); hours from the first begin to the last."""
    changes = sorted(change for begin, end, size in sessions if end > begin for change in ((begin, size), (end, -size)))
    history, meter = History(boot_seconds), Meter(boot_seconds)
    if not changes:
        return history
    last_begin = max(at for at, size in changes if size > 0)
    moment = changes[0][0] // SAMPLE_SECONDS * SAMPLE_SECONDS
    level, index, grown = 0.0, 0, {}
    while moment <= last_begin + boot_seconds:
        while index < len(changes) and changes[index][0] <= moment:
            level += changes[index][1]
            index += 1
        meter, complete = meter.take(Sample(moment, level))
        grown.update(complete)
        moment += SAMPLE_SECONDS
    return history.with_hours(grown)
