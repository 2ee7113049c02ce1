"""Say whether Roost helps a hub before it is installed: play its last weeks as they were, as learned, and as booked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from statistics import median
from typing import Any, Final

from generator.faults import UsageError
from generator.importing.profile_pools import LEARN
from generator.render.functions import complete_placeholder_set
from generator.schema.check import validate
from generator.values.files import read_values
from generator.values.merge import Settings
from roost_core.objects.quantities import parse_quantity
from roost_core.placement.headroom_history import history_of, size_in_placeholders
from roost_core.placement.headroom_windows import local_datetime
from roost_lab.simulator.setup.checks import make_assumptions
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped import policy_files
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.simulator.sweep.rehearsal import USUAL_VALUES, Days, play_days
from roost_lab.traces.attempt import Attempt

_DAY: Final = 86_400
# The last days are played, and what was before is known; without two days of it, waits count from the third day on.
PLAYED_DAYS, LEARNING_DAYS, LEAST_LAUNCHES = 14, 2, 50
# What must be saved of the p95 (seconds, share) for what cost; or what must be saved of node-hours.
LEAST_SECONDS, LEAST_SHARE, MOST_COST, LEAST_CHEAPER = 5.0, 0.1, 0.1, 0.03
# Who come within ten minutes, so many and so many times as many as usual, come for one thing.
_WAVE_SECONDS, _LEAST_WAVE, _TIMES_USUAL, _MOST_WAVES = 600, 10, 4, 100


def judge(
    attempts: Sequence[Attempt], files: Sequence[str], settings: Settings, assumed: Mapping[str, Any], seeds: int
) -> str:
    """What to do, with the seconds saved, the node-hours and what to switch on. Raises as `rehearse` does.

    attempts: of the past, in order of time.
    """
    days = (attempts[-1].moment - attempts[0].moment) / _DAY
    begin = max(attempts[0].moment, attempts[-1].moment - PLAYED_DAYS * _DAY)
    before = [one for one in attempts if one.moment < begin]
    played = [one._replace(number=n) for n, one in enumerate(attempts[len(before) :])]
    is_known = days >= PLAYED_DAYS + LEARNING_DAYS
    counted = [one for one in played if is_known or one.moment >= begin + LEARNING_DAYS * _DAY]
    if len(counted) < LEAST_LAUNCHES:
        found = f"{len(attempts)} launches in {days:.1f} days"
        raise UsageError(f"--past: found {found}, expected {LEAST_LAUNCHES} after the first {LEARNING_DAYS} days")
    files = files or [str(policy_files()[USUAL_VALUES])]
    merged = read_values([*files], settings)
    validate(merged)
    values: Any = merged.values
    sets: Any = [complete_placeholder_set(one, values["placeholder"]["defaults"]) for one in values["placeholders"]]
    if not sets:
        raise UsageError("placeholders has no entry in the values: add one, as roost import does")
    cpu, memory = (parse_quantity(sets[0]["resources"]["requests"].get(name) or 0) for name in ("cpu", "memory"))
    sizes = {"user_cpu_millicores": ceil(1000 * cpu), "user_memory_bytes": ceil(memory)}
    assumptions = make_assumptions({name: size for name, size in sizes.items() if size} | {**assumed}, "--assume")
    sessions = (
        (one, size_in_placeholders(one.cpu_millicores or 0, one.memory_bytes or 0, *sizes.values())) for one in before
    )
    history = history_of((one.moment, one.moment + (one.session_seconds or 3600), size) for one, size in sessions)

    def play(of: Sequence[str], more: Mapping[str, Any], ours: Sequence[Attempt]) -> Days:
        texts = [f"{key}={json.dumps(value)}" for key, value in more.items()]
        policy = load_policy("past", of, settings._replace(json_values=(*settings.json_values, *texts)))
        check_policy(policy, assumptions)
        known = {sets[0]["name"]: history.as_text()} if is_known else {}
        return play_days(policy, assumptions, [(played, frozenset(one.number for one in ours))] * seeds, known)

    plain = [{**one, "learn": None, "windows": []} for one in sets]
    as_now = {"singleuser": values["singleuser"], "prePuller": values["prePuller"], "placeholders": plain}
    hub = [str(policy_files()["z2jh-placeholders-packed"])]
    learning = {"placeholders": [{**one, "learn": one["learn"] or dict(LEARN)} for one in sets]}
    now, then = play(hub, as_now, counted), play(files, learning, counted)
    word, what, who = "helps", f"placeholders[].learn of {', '.join(one['name'] for one in sets)}", "people"
    if not _pays(now, then):
        word, what = "don't install", "nothing"
        if waves := _waves(counted):
            of_waves = [one for wave in waves for one in wave]
            booked = [
                {"name": f"wave-{n}", "people": min(len(wave), values["events"]["maxPeople"]), "timeZone": "UTC"}
                | {"start": local_datetime(int(wave[0].moment), "UTC").strftime("%Y-%m-%dT%H:%M")}
                for n, wave in enumerate(waves)
            ]
            events = {**values["events"], "enabled": True, "booked": booked}
            pair = play(hub, as_now, of_waves), play(files, {"placeholders": plain, "events": events}, of_waves)
            if _pays(*pair):
                word, (now, then), who = "booking alone helps", pair, "people who come together"
                what = f"events.enabled, and book: {len(waves)} times {len(waves[0])} to {len(waves[-1])} people came"
    hours = [median(each.node_hours_by_seed) for each in (now, then)]
    (_, slow), (_, quick) = now.show_waits(), then.show_waits()
    return (
        f"{word}: of {who}, 95 of 100 wait {quick} at most with Roost, {slow} without\n"
        f"  saved at p95: {_p95(now) - _p95(then):.1f} s\n"
        f"  node-hours: {hours[1] - hours[0]:+.1f} ({100 * (hours[1] / hours[0] - 1):+.0f} %)\n"
        f"  switch on: {what}\n"
        f"  played: {len(played)} launches, the last of {days:.1f} days"
        f"{'' if days >= PLAYED_DAYS else '; thin: what comes once a week shows in two weeks'}\n"
        f"  assumed: nodes of {assumptions.node_cpu_millicores}m and {assumptions.node_memory_bytes / 1e9:.1f} GB, "
        f"ready after {assumptions.boot_median_seconds:.0f} s; say yours with --assume\n"
    )


def _p95(days: Days) -> float:
    return median(days.p95_by_seed)


def _pays(now: Days, then: Days) -> bool:
    saved, cost = _p95(now) - _p95(then), median(then.node_hours_by_seed) / median(now.node_hours_by_seed) - 1
    is_quicker = saved >= max(LEAST_SECONDS, LEAST_SHARE * _p95(now)) and cost <= MOST_COST
    return is_quicker or (cost <= -LEAST_CHEAPER and saved >= -1)


def _waves(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Those who came together, the largest waves last."""
    counts = Counter(int(one.moment // _WAVE_SECONDS) for one in attempts)
    least = max(_LEAST_WAVE, _TIMES_USUAL * len(attempts) / (max(counts) - min(counts) + 1))
    waves: list[list[Attempt]] = []
    for one in attempts:
        if counts[int(one.moment // _WAVE_SECONDS)] >= least:
            waves += [] if waves and one.moment - waves[-1][-1].moment < _WAVE_SECONDS else [[]]
            waves[-1].append(one)
    return sorted(waves, key=len)[-_MOST_WAVES:]
