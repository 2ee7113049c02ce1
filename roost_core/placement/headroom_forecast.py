"""Forecast how much room users will need within a node's boot time, from the same hours of earlier weeks.

What is usual for an hour is the mean growth of that hour of the week and, with less weight, of that hour of any day;
older weeks count less. How far the truth is from what is usual is learned, too: each hour of the last four weeks is
compared with what was usual before it. The forecast is what is usual plus the distance within which the wanted share of
those hours stayed. A steady rise, which leaves what is usual behind, makes that distance larger.
Pure: times are Unix time and are passed in.
Source of the distance: split conformal prediction (Vovk, Gammerman and Shafer, 2005), scaled as counts spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, sqrt
from typing import Final, NamedTuple

from roost_core.placement.headroom_history import HOUR_SECONDS, KEPT_WEEKS, MOST_GROWTH, WEEK_HOURS, History
from roost_core.placement.headroom_windows import Period, utc_offset_seconds

# What a week counts by the week after it.
WEEKLY_WEIGHT: Final = 0.8
# What the same hour of any day counts by the same hour of a week ago.
DAILY_WEIGHT: Final = 0.5
# Hours that are compared with what was usual; with fewer than a day of them, nothing is forecast.
COMPARED_HOURS: Final = 4 * WEEK_HOURS
LEAST_COMPARED: Final = 24
_DAY_HOURS: Final = 24
_WEEK_DAYS: Final = 7


class Forecast(NamedTuple):
    """The room that one hour needs, and what that rests on."""

    placeholders: int
    # The mean growth of such an hour.
    usual: float


class Experience(NamedTuple):
    """A history, prepared for forecasts in one time zone."""

    # Local hour -> growth; local hours are those since 1970 on the zone's clocks.
    growth: Mapping[int, int]
    # Distances from what was usual, in units of its square root, the least first.
    distances: Sequence[float]
    zone: str


@lru_cache(maxsize=16)
def experience_of(history: History, time_zone: str) -> Experience:
    """Prepare a history. time_zone: a name of the IANA database; "the same hour" is one of its clocks."""
    growth = {_local_hour(hour, time_zone): each for hour, each in history.seen().items()}
    end = max(growth, default=0) + 1
    distances = [
        (growth[hour] - usual) / sqrt(usual + 1)
        for hour in range(end - COMPARED_HOURS, end)
        if hour in growth and (usual := _usual(growth, hour)) is not None
    ]
    return Experience(growth, sorted(distances), time_zone)


def forecast_hour(experience: Experience, moment: float, quantile: float) -> Forecast | None:
    """Forecast the hour of a time; None with too little history.

    quantile: above 0 and below 1; the share of hours in which that many placeholders should be enough.
    """
    hour = _local_hour(int(moment // HOUR_SECONDS), experience.zone)
    usual = _usual(experience.growth, hour)
    compared = len(experience.distances)
    if usual is None or compared < LEAST_COMPARED:
        return None
    # Of n distances and the coming one, each place in their order is equally probable.
    distance = experience.distances[min(compared, ceil(quantile * (compared + 1))) - 1]
    return Forecast(placeholders=min(MOST_GROWTH, max(0, ceil(usual + distance * sqrt(usual + 1) - 1e-9))), usual=usual)


def forecast_need(experience: Experience, moment: float, boot_seconds: int, quantile: float) -> Forecast | None:
    """Forecast the placeholders to have at a time: those that hour needs, and those needed a boot time later.

    Placeholders that are missing need a node as well, so they are requested a boot time early.
    """
    forecasts = [forecast_hour(experience, at, quantile) for at in (moment, moment + boot_seconds)]
    return max((each for each in forecasts if each is not None), key=lambda each: each.placeholders, default=None)


def learned_replicas(period: Period, forecast: Forecast | None, least: int, most: int) -> int:
    """Return a set's number: the forecast within its bounds, but no less than active windows; without one, theirs."""
    if forecast is None:
        return period.replicas
    number = max(least, min(most, forecast.placeholders))
    return max(number, period.replicas) if period.windows else number


def next_change(moment: float, boot_seconds: int) -> float:
    """Return when `forecast_need` may differ at the earliest: at a full hour, or a boot time before one."""
    earlies = (0, boot_seconds % HOUR_SECONDS)
    return min(((moment + early) // HOUR_SECONDS + 1) * HOUR_SECONDS - early for early in earlies)


def _usual(growth: Mapping[int, int], hour: int) -> float | None:
    """Return the mean growth of such hours before this one."""
    daily = daily_weight = weekly = weekly_weight = 0.0
    for day in range(1, KEPT_WEEKS * _WEEK_DAYS + 1):
        each = growth.get(hour - day * _DAY_HOURS)
        if each is None:
            continue
        weight = _DAY_WEIGHTS[day]
        daily += weight * each
        daily_weight += weight
        if day % _WEEK_DAYS == 0:
            weekly += weight * each
            weekly_weight += weight
    if not daily_weight:
        return None
    return (weekly + DAILY_WEIGHT * daily / daily_weight) / (weekly_weight + DAILY_WEIGHT)


_DAY_WEIGHTS: Final = tuple(WEEKLY_WEIGHT ** (day / _WEEK_DAYS) for day in range(KEPT_WEEKS * _WEEK_DAYS + 1))


def _local_hour(hour: int, time_zone: str) -> int:
    moment = hour * HOUR_SECONDS
    return (moment + utc_offset_seconds(moment, time_zone)) // HOUR_SECONDS
