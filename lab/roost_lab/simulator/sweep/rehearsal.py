"""Rehearse an event: play its day with and without the booking, and compare what its people wait
and what it costs.

Both days have the same launches: made-up ones, and the event's people, who come within some minutes
of its beginning.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from statistics import median
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.faults import UsageError
from generator.render.functions import complete_placeholder_set
from generator.render.managed_images import named_image, profile_seats
from generator.values.merge import SetOptions
from roost_core.objects.image_references import normalise_reference
from roost_core.release.bookings import Event, Limits, bookable_sets, first_start_after, hub_limits
from roost_lab.booking.entry import checked, with_profile
from roost_lab.pages.phrases import show_seconds
from roost_lab.simulator.engine.world import World
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.simulator.setup.shipped_policies import policy_files
from roost_lab.simulator.sweep.fit_checks import check_policy
from roost_lab.simulator.sweep.seated_days import SeatedDays, play_seated, seat, with_sessions
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.synthetic import synthetic_attempts
from roost_lab.units import DAY_SECONDS, HOUR_SECONDS

# How much of the day is played before and after the event's beginning.
BEFORE_SECONDS: Final = 6 * HOUR_SECONDS
AFTER_SECONDS: Final = 3 * HOUR_SECONDS
# Within which the event's people come.
WITHIN_SECONDS: Final = 300.0
# Without -f.
USUAL_VALUES: Final = "roost"
# An image of nobody's: its two launches begin and end the day at the same time in every replay.
_EDGE: Final = "rehearsal/edge"
# Numbers of launches until all of a day are numbered in their order.
_OF_EVENT: Final = -1
_OF_EDGE: Final = -2


class ShownWaits(NamedTuple):
    """Waits in words for people; "-": nobody waited."""

    # What half of the people wait at most.
    half: str
    # What 95 of 100 wait at most.
    most: str


@dataclass(frozen=True, slots=True)
class Days:
    """The event's day under one policy, once for each seed."""

    # Seconds, sorted: of the event's people in all seeds, and each seed's 95th percentile.
    waits: Sequence[float]
    p95_by_seed: Sequence[float]
    node_hours_by_seed: Sequence[float]
    # Cold starts of all launches.
    cold_by_seed: Sequence[int]
    # How many of the event's people, in all seeds, got no server. The hub gave their start up, and
    # their waits count until then. Or it refused the start at once, for its activeServerLimit.
    without_server: int = 0
    # Those whose start was refused at once: they have no waits.
    refused: int = 0

    def show_waits(self) -> ShownWaits:
        """What the event's people wait; who gets no server isn't taken for quick."""
        half = show_seconds(quantile(self.waits, 0.5)) if self.waits else "-"
        most = show_seconds(quantile(self.waits, 0.95)) if self.waits else "-"
        if self.without_server:
            share = self.without_server / (len(self.waits) + self.refused)
            uncounted = "; whom activeServerLimit refuses doesn't count" if self.refused else ""
            most += f" ({100 * share:.0f} % get no server{uncounted})"
        return ShownWaits(half, most)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """An event's day, with the booking and without."""

    event: Event
    booked: Days
    unbooked: Days
    # What the hub's limits do to its people, with the fix.
    limits: Sequence[str] = ()
    # As in Assumptions.
    waits_end: str = Assumptions().waits_end
    # With its people seated; None: not asked for.
    seated: SeatedDays | None = None

    @property
    def more_by_seed(self) -> list[float]:
        """Node-hours that the booking costs."""
        return _differences(self.booked.node_hours_by_seed, self.unbooked.node_hours_by_seed)

    def sentence(self) -> str:
        """What people will wait, and what it costs."""
        booked = self.booked.show_waits()
        unbooked = self.unbooked.show_waits()
        hours = _show_change(self.more_by_seed, self.unbooked.node_hours_by_seed)
        if not self.booked.waits and not self.unbooked.waits:
            return (
                f"activeServerLimit refuses all {self.event.people} people, booked or not; it costs"
                f" {hours}."
            )
        return (
            f"With the booking, half of the {self.event.people} people wait {booked.half} at most"
            f" and 95 of 100 {booked.most}, without it {unbooked.half} and {unbooked.most}; it"
            f" costs {hours}."
        )

    def seated_sentence(self) -> str:
        """What people wait whose servers run already, and what that costs beside the booking; "":
        not asked for.
        """
        if self.seated is None:
            return ""
        seated = self.seated
        booked_hours = self.booked.node_hours_by_seed
        more = _show_change(_differences(seated.node_hours_by_seed, booked_hours), booked_hours)
        fail = f"; {seated.without_server} get no server" if seated.without_server else ""
        return (
            f"Seated, 95 of 100 wait {show_seconds(quantile(seated.waits, 0.95))} at most{fail};"
            f" beside the booking it costs {more}, with {seated.absent_hours:.1f} server-hours for"
            " people who don't come.\n"
        )

    def rows(self) -> str:
        """A heading, then a row for each way of playing the day, in columns; then the hub's
        limits.
        """
        columns = ("half wait at most", "95 of 100", "node-hours", "cold starts")
        rows: list[tuple[str, ...]] = [(f"until {self.waits_end}", *columns)]
        if self.seated is not None:
            waits = self.seated.waits
            half = show_seconds(quantile(waits, 0.5))
            most = show_seconds(quantile(waits, 0.95))
            rows.append(_row("seated", ShownWaits(half, most), self.seated))
        rows.append(_row("booked", self.booked.show_waits(), self.booked))
        rows.append(_row("not booked", self.unbooked.show_waits(), self.unbooked))
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        lines: list[str] = []
        for name, *cells in rows:
            padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *padded]))
        return "".join(f"{line}\n" for line in (*lines, *self.limits))


def _row(name: str, waits: ShownWaits, days: Days | SeatedDays) -> tuple[str, ...]:
    hours = median(days.node_hours_by_seed)
    cold = median(days.cold_by_seed)
    return (name, *waits, f"{hours:.1f}", f"{cold:.0f}")


def _differences(values: Sequence[float], before: Sequence[float]) -> list[float]:
    """How much each value is above the value of the same seed before."""
    return [value - other for value, other in zip(values, before, strict=True)]


def _show_change(more: Sequence[float], before: Sequence[float]) -> str:
    """Show the node-hours that are more in each seed than `before`: the median, as a share, and the
    range.
    """
    change = median(more)
    # A share of nothing doesn't exist.
    usual = median(before)
    parts = [f"{100 * change / usual:+.0f} %"] if usual else []
    if len(more) > 1:
        parts.append(f"{min(more):+.1f} to {max(more):+.1f} in {len(more)} seeds")
    shown = f"{abs(change):.1f} node-hours {'less' if change < 0 else 'more'}"
    return f"{shown} ({'; '.join(parts)})" if parts else shown


def quantile(waits: Sequence[float], share: float) -> float:
    """Return the least wait that so many waits, sorted, don't exceed; share: 0 to 1.

    Of nobody it is 0.
    """
    return waits[max(0, ceil(share * len(waits)) - 1)] if waits else 0.0


def rehearse(
    entry: Mapping[str, Any],
    files: Sequence[str],
    settings: SetOptions,
    assumptions: Assumptions,
    *,
    seeds: int,
    launches: float,
    absent: float | None = None,
) -> Rehearsal:
    """Play the day of an event, as `entry_of` gives it, under these values, with the booking and
    without.

    launches: made up, a day, beside the event's. absent: the share of its people who don't come;
    then it is also played with all of them seated. Raises UsageError, and as `load_policy` and
    `check_policy` do.
    """
    files = files or [str(policy_files()[USUAL_VALUES])]
    as_is = load_policy("unbooked", files, settings)
    values: Any = as_is.merged.values
    sets = [
        complete_placeholder_set(listed, values["placeholder"]["defaults"])
        for listed in values["placeholders"]
    ]
    entry = with_profile(
        entry, profile_seats(values["singleuser"], values["placeholder"]["defaults"], sets)
    )
    event = _check(entry, values)
    now = int(time.time())
    start = first_start_after(event, now) or first_start_after(event, 0)
    if start is None:
        raise UsageError(f"WHEN: found {entry['start']!r}, expected a time that occurs")
    # The event as people come to it: with an image, and without those who are absent.
    coming = event if event.image else replace(event, image=own_image(values))
    events = {**values["events"], "enabled": True, "booked": [*values["events"]["booked"], entry]}
    with_booking = load_policy("booked", files, _with_values(settings, _events(events)))
    spawn_limit = assumptions.concurrent_spawn_limit or events["concurrentSpawnLimit"]
    server_limit = assumptions.active_server_limit or events.get("activeServerLimit", 0)
    assumptions = replace(
        assumptions, concurrent_spawn_limit=spawn_limit, active_server_limit=server_limit
    )
    for policy in (with_booking, as_is):
        check_policy(policy, assumptions)
    if absent is not None:
        coming = replace(coming, people=max(1, round((1 - absent) * event.people)))
    days = make_days(coming, start, seeds=seeds, launches=launches)
    seated = None
    if absent is not None:
        days = [(list(attempts), ours) for attempts, ours in with_sessions(days, assumptions)]
        seated_entry = {**entry, "group": "all"}
        with_seats = {**events, "booked": [*values["events"]["booked"], seated_entry]}
        seated_settings = _with_values(settings, _events(with_seats), "seating.enabled=true")
        seated_days = seat(
            days,
            event,
            start,
            concurrent_spawn_limit=spawn_limit,
            grace_seconds=60.0 * values["seating"]["graceMinutes"],
            start_seconds=assumptions.start_seconds + assumptions.answer_seconds,
        )
        with_seating = load_policy("seated", files, seated_settings)
        seated = play_seated(with_seating, assumptions, seated_days)
    booked = play_days(with_booking, assumptions, days)
    unbooked = play_days(as_is, assumptions, days)
    limits = [f"{reason} {fix}" for reason, fix in hub_limits(event.people, values["events"])]
    return Rehearsal(
        event=event,
        booked=booked,
        unbooked=unbooked,
        limits=limits,
        waits_end=assumptions.waits_end,
        seated=seated,
    )


def _with_values(settings: SetOptions, *json_values: str) -> SetOptions:
    """The settings of the command, and these after them."""
    return settings._replace(json_values=(*settings.json_values, *json_values))


def _events(events: Mapping[str, Any]) -> str:
    """`events` of the values, as `--set-json` takes it."""
    return f"events={json.dumps(events)}"


def make_days(
    event: Event, start: int, *, seeds: int, launches: float
) -> list[tuple[list[Attempt], frozenset[int]]]:
    """Return the event's day for each seed from 1 on: all attempts, and the numbers of its
    people's.

    event: with an image. The others are as for `rehearse`.
    """
    return [
        _with_people(_others(seed, start, launches), seed, event, start)
        for seed in range(1, seeds + 1)
    ]


def _check(entry: Mapping[str, Any], values: Any) -> Event:  # noqa: ANN401 - values
    if not values["controllers"]["enabled"]:
        raise UsageError(
            "controllers.enabled is false in the values: nobody would keep room for the event"
        )
    if not values["placeholders"]:
        raise UsageError(
            "placeholders has no entry in the values, so nothing can keep room for the event. "
            "Add one; replicas: 0 keeps nothing at other times."
        )
    return checked(entry, Limits(bookable_sets(values), values["events"]["maxPeople"]))


def own_image(values: Any) -> str:  # noqa: ANN401 - values
    """The image of users who choose none. Raises UsageError for values that name none."""
    image = named_image(values["singleuser"].get("image"))
    if not image:
        raise UsageError(
            "--image: found none, and the values have no singleuser.image; say --image NAME:TAG"
        )
    # As managed images are compared: a replay takes what isn't a full reference for a name.
    return normalise_reference(image)


def _others(seed: int, start: int, launches: float) -> list[Attempt]:
    """Launches beside the event's, from BEFORE_SECONDS before its beginning to AFTER_SECONDS after
    it.
    """
    if not launches:
        return []
    begin = start - BEFORE_SECONDS
    end = start + AFTER_SECONDS
    return list(synthetic_attempts(seed, (end - begin) / DAY_SECONDS, launches, begin))


def _with_people(
    others: Iterable[Attempt], seed: int, event: Event, start: int
) -> tuple[list[Attempt], frozenset[int]]:
    """Add the event's people; return all attempts, and the numbers of theirs."""
    draw = Chance(seed).uniforms("people of an event").__next__
    coming = [
        Attempt(_OF_EVENT, start + WITHIN_SECONDS * draw(), "rehearsal/event", event.image)
        for _ in range(event.people)
    ]
    edges = [
        Attempt(_OF_EDGE, float(start + seconds), _EDGE, _EDGE)
        for seconds in (-BEFORE_SECONDS, AFTER_SECONDS)
    ]
    in_order = sorted([*others, *coming, *edges], key=lambda attempt: attempt.moment)
    ours = frozenset(index for index, attempt in enumerate(in_order) if attempt.number == _OF_EVENT)
    return [attempt._replace(number=index) for index, attempt in enumerate(in_order)], ours


def _note_end(
    ended: list[tuple[int, float, bool]], number: int, seconds: float, is_up: bool
) -> None:
    ended.append((number, seconds, is_up))


def play_days(
    policy: Policy,
    assumptions: Assumptions,
    days: Sequence[tuple[Sequence[Attempt], frozenset[int]]],
    histories: Mapping[str, str] = MappingProxyType({}),
) -> Days:
    """Play a day for each seed, from 1 on. days: attempts, and the numbers of those whose waits
    count.

    histories: what sets learned before, by name.
    """
    # One repository is the whole event.
    assumptions = replace(assumptions, quota_per_repository=0)
    by_seed: list[list[float]] = []
    hours: list[float] = []
    cold: list[int] = []
    without_server = 0
    refused = 0
    for seed, (attempts, counted) in enumerate(days, 1):
        world = World(policy, assumptions, seed)
        world.histories = histories
        # Of each start that ended: the attempt's number, the seconds, and whether it got a server.
        ended: list[tuple[int, float, bool]] = []
        world.measures.on_wait = partial(_note_end, ended)
        result = world.play(attempts)
        waits = [(seconds, is_up) for number, seconds, is_up in ended if number in counted]
        without_server += len(counted) - sum(is_up for _, is_up in waits)
        refused += len(counted) - len(waits)
        by_seed.append(sorted(seconds for seconds, _ in waits))
        hours.append(result.node_hours)
        cold.append(result.cold)
    return Days(
        waits=sorted(seconds for of_seed in by_seed for seconds in of_seed),
        p95_by_seed=[quantile(of_seed, 0.95) for of_seed in by_seed],
        node_hours_by_seed=hours,
        cold_by_seed=cold,
        without_server=without_server,
        refused=refused,
    )
