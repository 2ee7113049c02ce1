"""What users waited for over a stretch of a record: by step, in all, each slow start, and in one
sentence.

A wait lasts from a user's creation until it answers (where its hub's log doesn't tell, until its
containers run), or until its start fails, it is gone or the stretch ends. Where the watch told of
the creation too late, one that an exact time ends is up to a second shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from roost_lab.pages.phrases import plural, show_span
from roost_lab.recorder.recording.scheduler_model import USER
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.start_times import is_by_user, logged_end_us, wait_from_us, wait_to_us
from roost_lab.report.query import consistent_reads
from roost_lab.report.statistics import Edges, Span, Spans, cut, means
from roost_lab.units import HOUR_US, US
from roost_lab.view.crowds import (
    FOR_IMAGE,
    FOR_NODE,
    FOR_SERVER,
    Wait,
    begin_of,
    find_crowds,
    people_in,
    people_of,
    tell_crowd,
)

Course = dict[str, Any]
# By minute for a day and a half.
MOST_STEPS: Final = 2200
# Of a record of minutes: its steps are shorter.
LEAST_STEPS: Final = 30
# A start that takes longer is slow.
SLOW_US: Final = 30 * US
# The longest of them are listed.
MOST_SLOW: Final = 2000
# Until when users wait, if hubs' logs say of no start when its server answered, of some, or of all.
UNTIL_CONTAINERS_RAN: Final = "until containers ran"
UNTIL_SOME_ANSWERED: Final = "until servers answered, where their hub's log tells"
UNTIL_ANSWERED: Final = "until servers answered"
# The percentile of waits that the sentence tells.
SHARE: Final = 0.95


class SlowStart(NamedTuple):
    """A start that took longer than SLOW_US: an entry of a course's `slow`."""

    # When to look at it: half of its wait is over then.
    look_at_us: int
    wait_us: int
    uid: str
    name: str


def read_course(store: Store, span: Span) -> Course:
    """What happened to users in that time: lists have one entry a step. Raises StoreError.

    from, step: µs; waiting and nodes: the mean number; started, cold: starts, and those that pulled
    their image; slow: the longest starts, each as a SlowStart's fields, in order of time;
    slow_count: how many took longer than SLOW_US, which may be more than are listed; crowds: when
    many came at once, and what they waited for; count, cold_count, p95_us, node_hours: of the whole
    time, as they are shown.
    """
    minutes = (span.to_us - span.from_us) // (60 * US)
    number = max(LEAST_STEPS, min(MOST_STEPS, minutes + 2))
    steps = cut(span.from_us, span.to_us, number)
    waiting = Edges()
    present = Edges()
    spans = Spans()
    answered = 0
    started: Counter[int] = Counter()
    cold: Counter[int] = Counter()
    slow: list[SlowStart] = []
    waits: list[Wait] = []

    def stay(edges: Edges, begin_us: int, end_us: int) -> None:
        begin_step, after_us = divmod(max(begin_us - steps.from_us, 0), steps.step_us)
        edges.add(begin_step, 1, after_us)
        end_step, after_us = divmod(end_us - steps.from_us, steps.step_us)
        edges.add(end_step, -1, -after_us)

    with consistent_reads(store) as connection:
        for row in connection.execute(_starts(span)):
            wait = _wait_of(row, span)
            end_us = wait.created_us + wait.wait_us
            stay(waiting, wait.created_us, end_us)
            if wait.created_us < span.from_us:
                continue
            spans.add(wait.wait_us, 1, wait.wait_us)
            step = (wait.created_us - steps.from_us) // steps.step_us
            started[step] += 1
            answered += row.is_told
            cold[step] += bool(row.is_cold)
            waits.append(wait)
            if wait.wait_us >= SLOW_US:
                middle_us = (wait.created_us + end_us) // 2
                slow.append(SlowStart(middle_us, wait.wait_us, row.pod_uid, wait.name))
        for created_us, gone_us in connection.execute(_nodes(span)):
            stay(present, created_us, min(gone_us or span.to_us, span.to_us))
    nodes = means(present, steps)
    p95_us = spans.percentile_us(SHARE) or 0
    slow.sort(key=lambda start: -start.wait_us)
    return {
        "from": steps.from_us,
        "step": steps.step_us,
        "waiting": [round(number, 6) for number in means(waiting, steps)],
        "nodes": [round(number, 6) for number in nodes],
        "started": [started[step] for step in range(steps.number)],
        "cold": [cold[step] for step in range(steps.number)],
        # orjson writes no named tuples.
        "slow": [tuple(start) for start in sorted(slow[:MOST_SLOW])],
        "slow_count": sum(wait.wait_us > SLOW_US for wait in waits),
        "crowds": _crowds(waits, span),
        "count": spans.count,
        "cold_count": cold.total(),
        "until": _until(answered, spans.count),
        "p95_us": as_shown(p95_us),
        "node_hours": round(sum(nodes) * steps.step_us / HOUR_US, 1),
    }


def _wait_of(row: sa.Row[Any], span: Span) -> Wait:
    """A row of `_starts`: how long the user waited until the span's end, and what for most."""
    possible_us = (row.ended_us, row.deleted_us, span.to_us)
    ends_us = [moment_us for moment_us in possible_us if moment_us is not None]
    end_us = max(row.created_us, min(ends_us))
    wait_us = end_us - row.created_us
    bound_us = end_us if row.bound_us is None else min(row.bound_us, end_us)
    if 2 * (bound_us - row.created_us) > wait_us:
        reason = FOR_NODE
    else:
        reason = FOR_IMAGE if row.is_cold else FOR_SERVER
    return Wait(row.created_us, wait_us, reason, f"{row.namespace}/{row.name}")


def _crowds(waits: list[Wait], span: Span) -> list[dict[str, Any]]:
    """at: when the class begins, as far as it shows; from, to: the crowd's time; people; text."""
    waits.sort()
    arrivals = [wait.created_us for wait in waits]
    crowds = []
    for crowd in find_crowds(arrivals, span):
        people = people_in(arrivals, crowd)
        crowds.append(
            {
                "at": begin_of(arrivals[people]),
                "from": crowd.from_us,
                "to": crowd.to_us,
                "people": people_of(waits[people]),
                "text": tell_crowd(waits[people], SLOW_US),
            }
        )
    return crowds


def as_shown(p95_us: float) -> int:
    """From ten seconds on, whole ones are enough."""
    return round(p95_us) if p95_us < 10 * US else round(p95_us / US) * US


def _until(answered: int, starts: int) -> str:
    """Until when users waited, where the end of so many of these starts is known from hubs'
    logs.
    """
    if not answered:
        return UNTIL_CONTAINERS_RAN
    return UNTIL_ANSWERED if answered == starts else UNTIL_SOME_ANSWERED


def _starts(span: Span) -> sa.Executable:
    """Users that waited at some time of the span."""
    start = schema.start.c
    kind = schema.start_kind.c
    pod = schema.pod.c
    pull = schema.pull.c
    is_cold = sa.exists().where(pull.pod_uid == start.pod_uid, sa.not_(pull.warm))
    waits_until = sa.func.coalesce(wait_to_us, start.deleted_us, span.to_us)
    return (
        sa.select(
            start.pod_uid,
            wait_from_us.label("created_us"),
            start.bound_us,
            wait_to_us.label("ended_us"),
            logged_end_us.is_not(None).label("is_told"),
            start.deleted_us,
            is_cold.label("is_cold"),
            pod.namespace,
            pod.name,
        )
        .select_from(
            schema.start.join(schema.start_kind, kind.id == start.kind_id).join(
                schema.pod, pod.uid == start.pod_uid
            )
        )
        .where(
            kind.pod_class == USER,
            # Nobody waits for what seating asked for.
            is_by_user,
            start.created_us < span.to_us,
            waits_until >= span.from_us,
        )
    )


def _nodes(span: Span) -> sa.Executable:
    """Nodes without a creation are known from their pods only."""
    node = schema.node.c
    is_there = sa.or_(node.gone_us.is_(None), node.gone_us > span.from_us)
    return sa.select(node.created_us, node.gone_us).where(
        node.created_us > 0, node.created_us < span.to_us, is_there
    )


def tell_course(course: Course) -> str:
    """One record in a sentence."""
    if not course["count"]:
        return "No user started in this time."
    share = ""
    if course["cold_count"]:
        share = f" ({100 * course['cold_count'] / course['count']:.0f} %)"
    longest = show_span(course["p95_us"])
    return (
        f"Of {plural(course['count'], 'start')}, {course['cold_count'] or 'none'} pulled an"
        f" image{share}; 95 of 100 users waited at most {longest} {course['until']}."
    )


def tell_difference(names: Sequence[str], courses: Sequence[Course]) -> str:
    """Two records of the same launches: what the second one's users got, and for what.

    A record that is called roost is compared with the other, whichever comes first.
    """
    (before, course), (name, other) = zip(names, courses, strict=True)
    if _is_roost(before) and not _is_roost(name):
        (before, course), (name, other) = (name, other), (before, course)
    if not course["count"] or not other["count"]:
        return "No user started in this time in one of the records."
    hours = round(other["node_hours"] - course["node_hours"], 1)
    price = "for as many node-hours"
    if hours:
        share = ""
        if course["node_hours"]:
            share = f" ({100 * abs(hours) / course['node_hours']:.0f} %)"
        # Of many, nobody counts tenths.
        digits = 0 if abs(hours) >= 100 else 1
        amount = f"{abs(hours):,.{digits}f}"
        price = f"for {amount} node-hours {'more' if hours > 0 else 'fewer'}{share}"
    whose = "Roost" if name == "roost" else name.removeprefix("With ")
    return f"With {whose}, {_tell_waits(course, other)}, {price}."


def _is_roost(name: str) -> bool:
    return name.lower().removeprefix("with ").startswith("roost")


def _tell_waits(course: Course, other: Course) -> str:
    """What users wait in the other record, compared with the first: by the first of these figures
    that differs.

    slow_count is missing where only medians of several replays are known.
    """
    now = show_span(other["p95_us"])
    before = show_span(course["p95_us"])
    if course.get("slow_count") != other.get("slow_count"):
        slow = other["slow_count"]
        slow_before = str(course["slow_count"] or "none")
        if course["count"] != other["count"]:
            slow_before += f" of {course['count']:,}"
        takes = "takes" if slow < 2 else "take"
        starts = f"{slow or 'none'} of {plural(other['count'], 'start')} {takes}"
        return f"{starts} longer than {show_span(SLOW_US)} instead of {slow_before}"
    if now != before:
        return f"95 of 100 users wait at most {now} instead of {before}"
    if other["cold_count"] != course["cold_count"]:
        starts = plural(other["count"], "start")
        return f"{other['cold_count']} of {starts} pull an image instead of {course['cold_count']}"
    return f"95 of 100 users wait at most {now}, as before"
