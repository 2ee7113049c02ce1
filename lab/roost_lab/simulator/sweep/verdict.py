"""Say whether Roost helps a hub before it is installed: play its last weeks as they were, as
learned, and as booked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median
from typing import Any, Final, NamedTuple

from generator.faults import UsageError
from generator.importing.culling import PROPOSED_EVERY, PROPOSED_TIMEOUT, Culling
from generator.importing.profile_pools import LEARN
from generator.render.functions import complete_placeholder_set
from generator.values.merge import SetOptions
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import requested
from roost_core.placement.headroom_forecast import LEAST_DAYS
from roost_core.placement.headroom_history import DAY_MINUTES, history_of, size_in_placeholders
from roost_core.placement.headroom_windows import local_datetime
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped_policies import policy_files
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.simulator.sweep.rehearsal import USUAL_VALUES, Days, play_days
from roost_lab.traces.attempt import Attempt
from roost_lab.units import DAY_SECONDS

# Seconds, where a past doesn't say how long somebody stayed.
_USUAL_SESSION: Final = 3600
# The last so many days are played. What was before is known.
PLAYED_DAYS: Final = 14
# With fewer launches in the past nothing can be said.
LEAST_LAUNCHES: Final = 50
# Roost pays where the p95 of the waits falls by so many seconds and by this share of it, ...
LEAST_SECONDS: Final = 5.0
LEAST_SHARE: Final = 0.1
# ... for at most this share more node-hours; ...
MOST_COST: Final = 0.1
# ... or where node-hours fall by this share, and the p95 rises by so many seconds at most.
LEAST_CHEAPER: Final = 0.03
_MOST_SLOWER_SECONDS: Final = 1.0
# People who come within ten minutes come for the same thing if they are so many ...
_WAVE_SECONDS: Final = 600
_LEAST_WAVE: Final = 10
# ... and so many times as many as usual.
_TIMES_USUAL: Final = 4
_MOST_WAVES: Final = 100
# Launches in order of time, and the minutes since 1970 in which somebody looked; empty: every
# minute was looked at.
Past = tuple[Sequence[Attempt], Collection[int]]


class _Change(NamedTuple):
    """What Roost brings a hub."""

    pays: bool
    # Seconds that are saved of the p95 of the waits.
    saved_seconds: float
    # More node-hours, and their share of the node-hours without Roost.
    more_hours: float
    more_share: float


class _Answer(NamedTuple):
    """What to do, and the days that were played for it."""

    word: str
    # The people whose waits are told.
    who: str
    without: Days
    with_roost: Days
    change: _Change
    switch_on: str


@dataclass(frozen=True, slots=True)
class _Period:
    """The part of a past that is played."""

    # Launches of the days before it, which are known when it begins.
    before: Sequence[Attempt]
    played: Sequence[Attempt]
    # The attempts whose waits count.
    counted: Sequence[Attempt]
    # When the played days begin, and how long waits count, in seconds.
    begin: float
    counted_seconds: float
    # How many days the whole past has.
    days: float
    # Whether the days before it are enough to learn from.
    is_known: bool


@dataclass(frozen=True, slots=True)
class _Player:
    """Plays the period under values files."""

    period: _Period
    settings: SetOptions
    assumptions: Assumptions
    seeds: int
    # What was learned before the period: set -> the text of its history.
    known: Mapping[str, str]
    # Where keys stand in the user's files, for faults.
    places: Any

    def play(
        self, files: Sequence[str], values: Mapping[str, Any], counted: Sequence[Attempt]
    ) -> Days:
        """values: key -> what is set over the files. counted: launches whose waits count."""
        texts = [f"{key}={json.dumps(value)}" for key, value in values.items()]
        settings = self.settings._replace(json_values=(*self.settings.json_values, *texts))
        policy = load_policy(USUAL_VALUES, files, settings)
        merged = policy.merged._replace(places=self.places)
        check_policy(replace(policy, merged=merged), self.assumptions)
        numbers = frozenset(attempt.number for attempt in counted)
        days = [(self.period.played, numbers)] * self.seeds
        return play_days(policy, self.assumptions, days, self.known)


def judge(
    past: Past,
    files: Sequence[str],
    settings: SetOptions,
    assumed: Mapping[str, Any],
    seeds: int,
    *,
    culling: Culling | None = None,
) -> str:
    """What to do, with the seconds saved, the node-hours and what to switch on.

    culling: how the hub ended the servers of this past; then also what ending them earlier would
    save. Raises as `rehearse` does.
    """
    attempts, minutes_seen = past
    period = _period_of(attempts, minutes_seen)
    merged = load_policy(USUAL_VALUES, files, settings).merged
    values: Any = merged.values
    for key, holder in (("enabled", values), ("controllers.enabled", values["controllers"])):
        if not holder["enabled"]:
            raise UsageError(
                f"{key} is false in the values, so nothing would learn: set it to true"
            )
    if not values["placeholders"]:
        raise UsageError("placeholders has no entry in the values: add one, as roost import does")
    # A past doesn't say which of the sets its users belong to.
    played_set: Any = complete_placeholder_set(
        values["placeholders"][0], values["placeholder"]["defaults"]
    )
    requests = requested(played_set["resources"])
    cpu_millicores = ceil(1000 * parse_quantity(requests.get("cpu") or 0))
    memory_bytes = ceil(parse_quantity(requests.get("memory") or 0))
    sizes = {"user_cpu_millicores": cpu_millicores, "user_memory_bytes": memory_bytes}
    known_sizes = {name: size for name, size in sizes.items() if size}
    assumptions = make_assumptions({**known_sizes, **assumed}, "--assume")
    known: dict[str, str] = {}
    if period.is_known:
        seen_before = {minute for minute in minutes_seen if 60 * minute < period.begin}
        sessions = _sessions(period.before, cpu_millicores, memory_bytes)
        known[played_set["name"]] = history_of(sessions, seen_before).as_text()
    player = _Player(
        period=period,
        settings=settings,
        assumptions=assumptions,
        seeds=seeds,
        known=known,
        places=merged.places,
    )
    answer = _answer_of(player, files, values, played_set)
    others = [placeholder_set["name"] for placeholder_set in values["placeholders"][1:]]
    text = _show(answer, period, assumptions, others)
    if culling is not None:
        text += culling_line(player, values, played_set, culling, answer.without)
    return text


def _period_of(attempts: Sequence[Attempt], minutes_seen: Collection[int]) -> _Period:
    """The days to play. Raises UsageError where there are too few of them, or of launches."""
    if minutes_seen:
        first = 60.0 * min(minutes_seen)
        last = 60.0 * max(minutes_seen) + 60
    else:
        first = attempts[0].moment
        last = attempts[-1].moment
    attempts = [attempt for attempt in attempts if attempt.moment >= first]
    days = len(minutes_seen) / DAY_MINUTES if minutes_seen else (last - first) / DAY_SECONDS
    begin = max(first, last - PLAYED_DAYS * DAY_SECONDS)
    before = [attempt for attempt in attempts if attempt.moment < begin]
    played = [
        attempt._replace(number=number) for number, attempt in enumerate(attempts[len(before) :])
    ]
    # Where the past has no days before those that are played, waits count from the first day on
    # of which something may be forecast.
    is_known = days >= PLAYED_DAYS + LEAST_DAYS
    since = begin if is_known else begin + LEAST_DAYS * DAY_SECONDS
    counted = [attempt for attempt in played if attempt.moment >= since]
    if days < LEAST_DAYS or len(counted) < LEAST_LAUNCHES:
        found = f"{len(attempts)} launches in {days:.1f} days"
        raise UsageError(
            f"--past: found {found}, expected {LEAST_LAUNCHES} after the first {LEAST_DAYS} days"
        )
    return _Period(
        before=before,
        played=played,
        counted=counted,
        begin=begin,
        counted_seconds=last - since,
        days=days,
        is_known=is_known,
    )


def _sessions(
    attempts: Sequence[Attempt], cpu_millicores: int, memory_bytes: int
) -> Iterator[tuple[float, float, float]]:
    """Begin, end and size of each attempt's server; the size in placeholders of this size."""
    for attempt in attempts:
        size = size_in_placeholders(
            attempt.cpu_millicores or 0, attempt.memory_bytes or 0, cpu_millicores, memory_bytes
        )
        yield attempt.moment, attempt.moment + (attempt.session_seconds or _USUAL_SESSION), size


def _answer_of(
    player: _Player, files: Sequence[str], values: Mapping[str, Any], played_set: Mapping[str, Any]
) -> _Answer:
    """Play as learned, and, if that doesn't pay, as booked. played_set: of placeholders."""
    period = player.period
    hub, as_now = _as_now(values, played_set)
    name = played_set["name"]
    bookings = [
        booking for booking in values["events"]["booked"] if booking.get("set", name) == name
    ]
    learning = {
        "placeholders": [{**played_set, "learn": played_set["learn"] or dict(LEARN)}],
        "events.booked": bookings,
    }
    without = player.play(hub, as_now, period.counted)
    learned = player.play(files, learning, period.counted)
    change = _change(without, learned)
    if change.pays:
        as_it_is = ", as it is" if played_set["learn"] else ""
        return _Answer(
            word="helps",
            who="people",
            without=without,
            with_roost=learned,
            change=change,
            switch_on=f"placeholders[].learn of {name}{as_it_is}",
        )
    waves = find_waves(period.counted, period.counted_seconds)
    if waves:
        of_waves = [attempt for wave in waves for attempt in wave]
        booked = {
            "placeholders": [_without_forecast(played_set)],
            "events": _booked(waves, values["events"]),
        }
        waves_without = player.play(hub, as_now, of_waves)
        waves_booked = player.play(files, booked, of_waves)
        of_booking = _change(waves_without, waves_booked)
        if of_booking.pays:
            switch_on = (
                f"events.enabled, and book: {len(waves)} times"
                f" {len(waves[0])} to {len(waves[-1])} people came"
            )
            return _Answer(
                word="booking alone helps",
                who="people who come together",
                without=waves_without,
                with_roost=waves_booked,
                change=of_booking,
                switch_on=switch_on,
            )
    return _Answer(
        word="don't install",
        who="people",
        without=without,
        with_roost=learned,
        change=change,
        switch_on="nothing",
    )


def _as_now(
    values: Mapping[str, Any], played_set: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    """The files and the values of the hub as it is, without Roost."""
    files = [str(policy_files()["z2jh-placeholders-packed"])]
    return files, {
        "singleuser": values["singleuser"],
        "prePuller": values["prePuller"],
        "placeholders": [_without_forecast(played_set)],
    }


def _without_forecast(played_set: Mapping[str, Any]) -> dict[str, Any]:
    """The set with its replicas alone at all times: without learning and windows."""
    return {**played_set, "learn": None, "windows": []}


def culling_line(
    player: _Player,
    values: Mapping[str, Any],
    played_set: Mapping[str, Any],
    culling: Culling,
    without: Days,
) -> str:
    """What an earlier end of idle servers would save of the node-hours without Roost, in a line."""
    period = player.period
    if not culling.enabled:
        return "  idle servers: cull.enabled is false, so nothing tells when these were idle\n"
    if any(attempt.session_seconds is None for attempt in period.played):
        return "  idle servers: this past doesn't say how long servers ran\n"
    timeout = min(PROPOSED_TIMEOUT, culling.timeout)
    every = min(PROPOSED_EVERY, culling.every)
    if (timeout, every) == (culling.timeout, culling.every):
        return f"  idle servers: cull.timeout {timeout} and cull.every {every} stay\n"
    earlier = replace(
        player,
        assumptions=replace(
            player.assumptions,
            cull_timeout_seconds=float(timeout),
            cull_every_seconds=float(every),
            sessions_cull_timeout_seconds=float(culling.timeout),
            sessions_cull_every_seconds=float(culling.every),
        ),
    )
    files, as_now = _as_now(values, played_set)
    change = _change(without, earlier.play(files, as_now, period.counted))
    return (
        f"  idle servers: cull.timeout: {timeout} and cull.every: {every}, in place of"
        f" {culling.timeout} and {culling.every}, would change node-hours without Roost by"
        f" {100 * change.more_share:+z.0f} %; less where people stop servers that ran for more"
        f" than {culling.timeout} s\n"
    )


def _booked(waves: Sequence[Sequence[Attempt]], events: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `events` with a booking for each wave."""
    bookings = []
    for number, wave in enumerate(waves):
        start = local_datetime(int(wave[0].moment), "UTC")
        bookings.append(
            {
                "name": f"wave-{number}",
                "people": min(len(wave), events["maxPeople"]),
                "timeZone": "UTC",
                "start": start.strftime("%Y-%m-%dT%H:%M"),
            }
        )
    return {**events, "enabled": True, "booked": bookings}


def _show(answer: _Answer, period: _Period, assumptions: Assumptions, others: Sequence[str]) -> str:
    """The answer in words. others: sets that weren't played."""
    word = answer.word
    thin = ""
    if period.days < PLAYED_DAYS:
        word = "too little to say" if word == "don't install" else f"probably {word}"
        thin = "; thin: what comes once a week shows in two weeks"
    not_played = f"; not played: placeholders of {', '.join(others)}" if others else ""
    change = answer.change
    return (
        f"{word}: of {answer.who}, 95 of 100 wait {answer.with_roost.show_waits().most} at most"
        f" with Roost, {answer.without.show_waits().most} without\n"
        f"  saved at p95: {change.saved_seconds:z.1f} s\n"
        f"  node-hours: {change.more_hours:+z.1f} ({100 * change.more_share:z.0f} %)\n"
        f"  switch on: {answer.switch_on}{not_played}\n"
        f"  played: {len(period.played)} launches, the last of {period.days:.1f} days{thin}\n"
        f"  assumed: nodes of {assumptions.node_cpu_millicores}m and"
        f" {assumptions.node_memory_bytes / 1e9:.1f} GB,"
        f" ready after {assumptions.boot_median_seconds:.0f} s,"
        f" waits until {assumptions.waits_end}; say yours with --assume\n"
    )


def _change(without: Days, with_roost: Days) -> _Change:
    """By how much days with Roost are quicker and dearer."""
    p95 = median(without.p95_by_seed)
    hours = median(without.node_hours_by_seed)
    saved = p95 - median(with_roost.p95_by_seed)
    more = median(with_roost.node_hours_by_seed) - hours
    is_quicker = saved >= max(LEAST_SECONDS, LEAST_SHARE * p95) and more <= MOST_COST * hours
    is_cheaper = more <= -LEAST_CHEAPER * hours and saved >= -_MOST_SLOWER_SECONDS
    return _Change(is_quicker or is_cheaper, saved, more, more / hours)


def find_waves(attempts: Sequence[Attempt], seconds: float) -> list[list[Attempt]]:
    """The attempts that came together, the largest waves last.

    seconds: how long the whole time of the attempts is.
    """
    counts = Counter(int(attempt.moment // _WAVE_SECONDS) for attempt in attempts)
    least = max(_LEAST_WAVE, _TIMES_USUAL * len(attempts) / (seconds / _WAVE_SECONDS + 1))
    waves: list[list[Attempt]] = []
    for attempt in attempts:
        if counts[int(attempt.moment // _WAVE_SECONDS)] < least:
            continue
        if not waves or attempt.moment - waves[-1][-1].moment >= _WAVE_SECONDS:
            waves.append([])
        waves[-1].append(attempt)
    return sorted(waves, key=len)[-_MOST_WAVES:]
