"""Say whether Roost helps a hub before it is installed: play its last weeks as they were, as
learned, and as booked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import ceil
from statistics import median
from typing import Any, Final

from generator.faults import UsageError
from generator.importing.profile_pools import LEARN
from generator.render.functions import complete_placeholder_set
from generator.values.merge import Settings
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import requested
from roost_core.placement.headroom_history import DAY_MINUTES, history_of, size_in_placeholders
from roost_core.placement.headroom_windows import local_datetime
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped import policy_files
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.simulator.sweep.rehearsal import USUAL_VALUES, Days, play_days
from roost_lab.traces.attempt import Attempt

_DAY: Final = 86_400
# The last so many days are played. What was before is known.
PLAYED_DAYS: Final = 14
# Waits count from the third day on where the past has no days before those that are played.
LEARNING_DAYS: Final = 2
# With fewer launches in the past nothing can be said.
LEAST_LAUNCHES: Final = 50
# Roost pays where the p95 of the waits falls by so many seconds and by this share of it, ...
LEAST_SECONDS: Final = 5.0
LEAST_SHARE: Final = 0.1
# ... for at most this share more node-hours; ...
MOST_COST: Final = 0.1
# ... or where node-hours fall by this share.
LEAST_CHEAPER: Final = 0.03
# Who come within ten minutes come for one thing, if they are so many ...
_WAVE_SECONDS: Final = 600
_LEAST_WAVE: Final = 10
# ... and so many times as many as usual.
_TIMES_USUAL: Final = 4
_MOST_WAVES: Final = 100
# Launches in order of time, and the minutes since 1970 in which somebody looked; none: all of them.
Past = tuple[Sequence[Attempt], Collection[int]]


def judge(
    past: Past, files: Sequence[str], settings: Settings, assumed: Mapping[str, Any], seeds: int
) -> str:
    """What to do, with the seconds saved, the node-hours and what to switch on.

    Raises as `rehearse` does.
    """
    attempts, seen = past
    first, last = (
        (60.0 * min(seen), 60.0 * max(seen) + 60)
        if seen
        else (attempts[0].moment, attempts[-1].moment)
    )
    attempts = [attempt for attempt in attempts if attempt.moment >= first]
    days = len(seen) / DAY_MINUTES if seen else (last - first) / _DAY
    begin = max(first, last - PLAYED_DAYS * _DAY)
    before = [attempt for attempt in attempts if attempt.moment < begin]
    played = [attempt._replace(number=n) for n, attempt in enumerate(attempts[len(before) :])]
    is_known = days >= PLAYED_DAYS + LEARNING_DAYS
    since = begin if is_known else begin + LEARNING_DAYS * _DAY
    counted = [attempt for attempt in played if attempt.moment >= since]
    if days < LEARNING_DAYS or len(counted) < LEAST_LAUNCHES:
        found = f"{len(attempts)} launches in {days:.1f} days"
        raise UsageError(
            f"--past: found {found}, expected {LEAST_LAUNCHES} after the first {LEARNING_DAYS} days"
        )
    merged = load_policy(USUAL_VALUES, files, settings).merged
    values: Any = merged.values
    if not (values["enabled"] and values["controllers"]["enabled"]):
        off = "controllers." if values["enabled"] else ""
        raise UsageError(
            f"{off}enabled is false in the values, so nothing would learn: set it to true"
        )
    if not values["placeholders"]:
        raise UsageError("placeholders has no entry in the values: add one, as roost import does")
    # A past doesn't say which of the sets are whose.
    ours: Any = complete_placeholder_set(
        values["placeholders"][0], values["placeholder"]["defaults"]
    )
    others = ",".join(
        f" {placeholder_set['name']}" for placeholder_set in values["placeholders"][1:]
    )
    requests = requested(ours["resources"])
    cpu, memory = (parse_quantity(requests.get(name) or 0) for name in ("cpu", "memory"))
    sizes = {"user_cpu_millicores": ceil(1000 * cpu), "user_memory_bytes": ceil(memory)}
    assumptions = make_assumptions(
        {name: size for name, size in sizes.items() if size} | {**assumed}, "--assume"
    )
    asked = [
        size_in_placeholders(
            attempt.cpu_millicores or 0, attempt.memory_bytes or 0, *sizes.values()
        )
        for attempt in before
    ]
    times = (
        (attempt.moment, attempt.moment + (attempt.session_seconds or 3600), n)
        for attempt, n in zip(before, asked, strict=True)
    )
    known = (
        {ours["name"]: history_of(times, {n for n in seen if 60 * n < begin}).as_text()}
        if is_known
        else {}
    )

    def play(of: Sequence[str], more: Mapping[str, Any], whose: Sequence[Attempt]) -> Days:
        texts = [f"{key}={json.dumps(value)}" for key, value in more.items()]
        policy = load_policy(
            USUAL_VALUES, of, settings._replace(json_values=(*settings.json_values, *texts))
        )
        # Faults name the user's files.
        check_policy(
            replace(policy, merged=policy.merged._replace(places=merged.places)), assumptions
        )
        return play_days(
            policy,
            assumptions,
            [(played, frozenset(attempt.number for attempt in whose))] * seeds,
            known,
        )

    plain = [{**ours, "learn": None, "windows": []}]
    as_now = {
        "singleuser": values["singleuser"],
        "prePuller": values["prePuller"],
        "placeholders": plain,
    }
    hub = [str(policy_files()["z2jh-placeholders-packed"])]
    kept = [
        booking
        for booking in values["events"]["booked"]
        if booking.get("set", ours["name"]) == ours["name"]
    ]
    learning = {
        "placeholders": [{**ours, "learn": ours["learn"] or dict(LEARN)}],
        "events.booked": kept,
    }
    now = play(hub, as_now, counted)
    then = play(files, learning, counted)
    what = f"placeholders[].learn of {ours['name']}{', as it is' if ours['learn'] else ''}"
    word = "helps"
    who = "people"
    change = _change(now, then)
    if not change[0]:
        word = "don't install"
        what = "nothing"
        if waves := _waves(counted, last - since):
            of_waves = [attempt for wave in waves for attempt in wave]
            booked = [
                {
                    "name": f"wave-{n}",
                    "people": min(len(wave), values["events"]["maxPeople"]),
                    "timeZone": "UTC",
                }
                | {"start": local_datetime(int(wave[0].moment), "UTC").strftime("%Y-%m-%dT%H:%M")}
                for n, wave in enumerate(waves)
            ]
            events = {**values["events"], "enabled": True, "booked": booked}
            pair = (
                play(hub, as_now, of_waves),
                play(files, {"placeholders": plain, "events": events}, of_waves),
            )
            if (booking := _change(*pair))[0]:
                word = "booking alone helps"
                who = "people who come together"
                now, then = pair
                change = booking
                what = (
                    f"events.enabled, and book: {len(waves)} times {len(waves[0])} to"
                    f" {len(waves[-1])} people came"
                )
    if is_thin := days < PLAYED_DAYS:
        word = "too little to say" if word == "don't install" else f"probably {word}"
    return (
        f"{word}: of {who}, 95 of 100 wait {then.show_waits()[1]} at most with Roost,"
        f" {now.show_waits()[1]} without\n  saved at p95: {change[1]:z.1f} s\n  node-hours:"
        f" {change[2]:+z.1f} ({100 * change[3]:z.0f} %)\n  switch on:"
        f" {what}{others and '; not played: placeholders of'}{others}\n  played: {len(played)}"
        f" launches, the last of {days:.1f}"
        f" days{'; thin: what comes once a week shows in two weeks' if is_thin else ''}\n  assumed:"
        f" nodes of {assumptions.node_cpu_millicores}m and"
        f" {assumptions.node_memory_bytes / 1e9:.1f} GB, ready after"
        f" {assumptions.boot_median_seconds:.0f} s, waits until {assumptions.waits_end}; say yours"
        " with --assume\n"
    )


def _change(now: Days, then: Days) -> tuple[bool, float, float, float]:
    """Whether it pays; the seconds saved at the p95, the node-hours more, and their share."""
    p95 = median(now.p95_by_seed)
    hours = median(now.node_hours_by_seed)
    saved = p95 - median(then.p95_by_seed)
    more = median(then.node_hours_by_seed) - hours
    is_quicker = saved >= max(LEAST_SECONDS, LEAST_SHARE * p95) and more <= MOST_COST * hours
    return is_quicker or (more <= -LEAST_CHEAPER * hours and saved >= -1), saved, more, more / hours


def _waves(attempts: Sequence[Attempt], seconds: float) -> list[list[Attempt]]:
    """Those who came together in so many seconds, the largest waves last."""
    counts = Counter(int(attempt.moment // _WAVE_SECONDS) for attempt in attempts)
    least = max(_LEAST_WAVE, _TIMES_USUAL * len(attempts) / (seconds / _WAVE_SECONDS + 1))
    waves: list[list[Attempt]] = []
    for attempt in attempts:
        if counts[int(attempt.moment // _WAVE_SECONDS)] >= least:
            waves += [] if waves and attempt.moment - waves[-1][-1].moment < _WAVE_SECONDS else [[]]
            waves[-1].append(attempt)
    return sorted(waves, key=len)[-_MOST_WAVES:]
