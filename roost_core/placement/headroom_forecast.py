"""Forecast how many more users will come while a node boots, from the same minutes of earlier days.

Each earlier day says how many more came there from that minute on within the time that a node takes. Two questions are
asked of the days. *Waves*: how many of them needed so many seats at this very minute; days of the same weekday count
most, and those on which as many had come as today. *Steady need*: how many did so in both the hour before and the hour
after; where users come one by one, no minute is like another. A seat is likely to be needed if the share of days that
needed it is above a threshold. The threshold is calibrated: each minute is compared with what came of it, so that the
wanted share of the minutes had enough (adaptive conformal inference, Gibbs and Candès, 2021). Times are Unix time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, sqrt
from typing import Final, NamedTuple

from roost_core.placement.headroom_history import DAY_MINUTES, KEPT_DAYS, MINUTE_SECONDS, UNSEEN, History
from roost_core.placement.headroom_windows import Period, utc_offset_seconds

# Seats that were needed, and what that counts; the most seats first.
Needs = Sequence[tuple[float, float]]

# With fewer days, nothing is forecast; and with fewer than the second, the values' number stands.
LEAST_DAYS, FLOOR_DAYS = 2, 7
# What a week counts by the week after it; and a day of the same weekday, a like one, another: for waves, steady need.
WEEKLY_WEIGHT: Final = 0.8
_WAVE_WEIGHTS, _STEADY_WEIGHTS = (1.0, 0.1, 0.02), (1.0, 0.5, 0.1)
# Who has come since so long tells which days today is like; a wave may come so late.
WAVE_MINUTES, LATE_MINUTES = 5, 2
# Of who came more than on an earlier day, so many are missing from those still to come: of a wave that comes early
# all, of a larger one nobody.
EARLY_SHARE: Final = 0.25
# How much likelier seats must be that need a node of their own: of waves, of steady need, and of its first seat, which
# is had if anybody came in both hours.
PAID_WAVE, PAID_STEADY, PAID_FIRST = 2.0, 4.0, 0.1
# A wave is so many people at least. If one is too large for days of half of all weight, so many days of other waves
# count, with this share of the weight that these lose.
LEAST_WAVE, OTHER_DAYS, OTHER_SHARE = 3, 14, 0.3
# After each minute that counts, the threshold moves by so much of the difference.
STEP: Final = 0.005
_STEADY_MINUTES: Final = range(6, 61, 6)
_BEGUN: Final = (0, WAVE_MINUTES, LATE_MINUTES, LATE_MINUTES + WAVE_MINUTES)


class Outlook(NamedTuple):
    """What earlier days say of one minute."""

    # Each day's weight; the most who came from then on within the time ahead; the fewest and most who had come.
    days: Sequence[tuple[float, int, int, int]]
    # What was needed in the hours before and after.
    before: Needs
    after: Needs
    # In which the minute is the last.
    history: History

    def steady(self, share: float) -> float:
        """What this share of days needed in both the hour before and the hour after."""
        return min(_needed_by(self.before, share), _needed_by(self.after, share))

    def floor(self, replicas: int) -> int:
        """What stays of the values' number: one more than any day needed within an hour of this minute."""
        most = max(*(still for _, still, *_ in self.days), *(need for need, _ in (*self.before[:1], *self.after[:1])))
        return replicas if len(self.days) < FLOOR_DAYS else min(replicas, 1 + round(most))


class Forecast(NamedTuple):
    """The seats that a minute needs."""

    # As many as are likely to be needed, as calibrated.
    likely: int
    # As many as are worth a node that only they keep.
    worth: int
    # As many of these as are needed beside a wave.
    steady: int


def look_ahead(history: History, minute: int, time_zone: str) -> Outlook | None:
    """Return what earlier days say of a minute; None with too few of them.

    time_zone: a name of the IANA database; "the same minute" is one of its clocks.
    """
    ahead = history.ahead_minutes
    days: list[tuple[float, int, int, int]] = []
    near: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for at, recent, alike in earlier_minutes(history, minute, time_zone):
        still, known = history.growth(at, ahead), [history.at(at - each) for each in _BEGUN]
        if still is not None and UNSEEN not in known:
            begun = known[0] - known[1], known[2] - known[3]
            days.append((recent * _WAVE_WEIGHTS[alike], still, min(begun), max(begun)))
        for needs, sign in zip(near, (-1, 1), strict=True):
            grown = (history.growth(at + sign * step, ahead) for step in _STEADY_MINUTES)
            needs.extend((each, recent * _STEADY_WEIGHTS[alike]) for each in grown if each is not None)
    before, after = (sorted(needs, reverse=True) for needs in near)
    return None if len(days) < LEAST_DAYS else Outlook(days, before, after, history)


def forecast_need(
    outlook: Outlook, came: float | None, threshold: float, quantile: float, strictness: float = 1.0
) -> Forecast:
    """Forecast the seats to have now.

    came: who came in the last WAVE_MINUTES; None: as on each day. threshold: from which share of days on a seat is
    likely to be needed; what is worth a node is no rarer, nor than quantile says. strictness: how much likelier a
    seat must be to be worth a node.
    """
    of_days = sorted((_as_today(day, came) for day in outlook.days), reverse=True)
    of_all = sorted((*of_days, *_other_waves(outlook, came)), reverse=True)
    likely = max(_needed_by(of_days, threshold), _needed_by(of_all, threshold), outlook.steady(threshold))
    # Below 0: all days together had too little, so there's some more.
    likely *= 1 + max(0.0, -threshold)
    least, worth = min(max(0.01, threshold), 1 - quantile), 0.0
    if (rare := least * strictness) < 2:
        steady = max(outlook.steady(PAID_STEADY * rare), min(1.0, outlook.steady(PAID_FIRST * rare)))
        worth = max(_needed_by(of_days, PAID_WAVE * rare), _needed_by(of_all, PAID_WAVE * rare), steady)
    return Forecast(*(ceil(each - 1e-9) for each in (likely, worth, outlook.steady(PAID_STEADY * least))))


def threshold_of(history: History, quantile: float) -> float:
    """From which share of days on a seat is likely to be needed."""
    return 1 - quantile if history.threshold is None else history.threshold


def calibrated(threshold: float, quantile: float, *, was_enough: bool) -> float:
    """Return the threshold after one more minute in which seats were forecast or needed."""
    return min(0.9, max(-1.0, threshold + STEP * ((1 - quantile) - (not was_enough))))


def learned_replicas(period: Period, outlook: Outlook | None, seats: int, least: int, most: int) -> int:
    """Return a set's number: the seats within bounds, but no less than active windows and what stays of the values'."""
    floor = period.replicas if outlook is None or period.windows else outlook.floor(period.replicas)
    return floor if outlook is None else max(least, min(most, seats), floor)


def earlier_minutes(history: History, minute: int, time_zone: str) -> Iterator[tuple[int, float, int]]:
    """Yield that minute of earlier days, what recency counts, and 0 for the same weekday, 1 for a like day, else 2."""
    offset = utc_offset_seconds(minute * MINUTE_SECONDS, time_zone) // MINUTE_SECONDS
    # 1970 began on a Thursday.
    weekday = ((minute + offset) // DAY_MINUTES + 3) % 7
    for back in range(1, KEPT_DAYS + 1):
        at = minute - back * DAY_MINUTES
        if at + DAY_MINUTES < history.first:
            return
        at += offset - utc_offset_seconds(at * MINUTE_SECONDS, time_zone) // MINUTE_SECONDS
        is_alike = ((weekday - back) % 7 >= 5) == (weekday >= 5)
        yield at, WEEKLY_WEIGHT ** (back / 7), 0 if back % 7 == 0 else 1 if is_alike else 2


def _as_today(day: tuple[float, int, int, int], came: float | None) -> tuple[float, float]:
    """What would come if today were that day, and what the day counts: the less, the fewer or more had come then."""
    weight, still, fewest, most = day
    if came is None:
        return still, weight
    nearest = min(max(came, fewest), most)
    return still - EARLY_SHARE * max(0.0, came - nearest), weight / (1 + _unlikeness(came, nearest))


def _other_waves(outlook: Outlook, came: float | None) -> Needs:
    """What came after like minutes of other waves, if too many have come for the days' same minutes."""
    if came is None or came < LEAST_WAVE:
        return ()
    lost = sum(day[0] - _as_today(day, came)[1] for day in outlook.days if came > day[3])
    if lost < sum(day[0] for day in outlook.days) / 2:
        return ()
    levels, ahead = outlook.history.levels[-OTHER_DAYS * DAY_MINUTES :], outlook.history.ahead_minutes
    lately = levels[-1] - levels[-1 - LATE_MINUTES]
    known = zip(levels, levels[WAVE_MINUTES - LATE_MINUTES :], levels[WAVE_MINUTES:-ahead], strict=False)
    # Fewer are too unlike. Most minutes have fewer, and the rest costs ten times as much: each plan asks for this.
    least = came - sqrt(1 + 2 * came)
    found = [
        max(levels[at : at + ahead + 1]) - level
        for at, (before, later, level) in enumerate(known, WAVE_MINUTES)
        if level - before >= least
        and UNSEEN not in (before, later)
        and max(_unlikeness(came, level - before), _unlikeness(lately, level - later)) <= 1
    ]
    return [(still, OTHER_SHARE * lost / len(found)) for still in found]


def _unlikeness(count: float, other: float) -> float:
    """By how much more than noise two counts differ, of which each has its root."""
    return (count - other) ** 2 / (1 + abs(count) + abs(other))


def _needed_by(needs: Needs, share: float) -> float:
    """Return the most seats that at least this share needed."""
    left = min(share, 0.99) * sum(weight for _, weight in needs)
    for need, weight in needs:
        left -= weight
        if left <= 1e-9:
            return max(0.0, need)
    return 0.0
