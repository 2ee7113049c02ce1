"""What explains a slow start: the longest of what it waited for, in a few words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from roost_lab.pages.phrases import plural, show_span
from roost_lab.recorder.answers.after_binding import find_waits
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import DecisionKind
from roost_lab.report.query import Query

Row = Mapping[str, Any]
# Reasons of kube-scheduler that a cause names, those of the most nodes.
MOST_REASONS: Final = 2


class StartSpans(NamedTuple):
    """How long one start waited for what every start waits for, in µs; None: not known."""

    pod_uid: str
    bound_us: int | None
    node_us: int | None
    containers_us: int | None
    ready_us: int | None
    answer_us: int | None


class Known(NamedTuple):
    """What is recorded of one start."""

    # Failed tries to find a node, the latest last.
    failures: Sequence[Row]
    phases: Sequence[Row]
    pulls: Sequence[Row]
    events: Sequence[Row]


def read_causes(query: Query, starts: Sequence[StartSpans]) -> list[str]:
    """What explains each of these starts; "" where nothing is known of it. A handful of starts."""
    uids = [start.pod_uid for start in starts]
    decision = schema.decision
    failed = sa.and_(decision.c.kind == str(DecisionKind.FAIL), decision.c.pod_uid.in_(uids))
    failures = query.rows_by_pod(sa.select(decision).where(failed).order_by(decision.c.at_us))
    phases, pulls, events = (
        query.rows_by_pod(sa.select(table).where(table.c.pod_uid.in_(uids)))
        for table in (schema.phase, schema.pull, schema.pod_event)
    )
    return [
        cause_of(start, Known(failures[uid], phases[uid], pulls[uid], events[uid]))
        for uid, start in zip(uids, starts, strict=True)
    ]


def cause_of(start: StartSpans, known: Known) -> str:
    """The longest wait of a start, with why, where that is recorded."""
    causes = [
        (start.node_us or 0, f"no node for {show_span(start.node_us or 0)}{_why_no_node(known)}"),
        (start.ready_us or 0, f"ready {show_span(start.ready_us or 0)} after its containers ran"),
        (start.answer_us or 0, f"its server answered {show_span(start.answer_us or 0)} later"),
    ]
    explained_us = 0
    for pull in known.pulls:
        span_us = pull["pull_and_wait_us"] or 0
        if not pull["warm"] and span_us:
            explained_us += span_us
            causes.append((span_us, f"downloaded {_short(pull['image'])} for {_pulled(pull)}"))
    if start.bound_us is not None:
        after = find_waits(known.phases, known.pulls, known.events, start.bound_us, None)
        for wait in after.waits:
            why = f": {wait.cause}" if wait.cause else ""
            explained_us += wait.span_us
            text = f"waited {show_span(wait.span_us)} for {wait.awaits}{why}"
            causes.append((wait.span_us, text))
    unexplained_us = (start.containers_us or 0) - explained_us
    text = f"its containers took {show_span(unexplained_us)} to run; nothing recorded says why"
    causes.append((unexplained_us, text))
    longest_us, cause = max(causes, key=lambda item: item[0])
    return cause if longest_us > 0 else ""


def _why_no_node(known: Known) -> str:
    if not known.failures:
        return ""
    reasons: Mapping[str, int] = json.loads(known.failures[-1]["reasons"])
    most = sorted(reasons.items(), key=lambda item: -item[1])[:MOST_REASONS]
    listed = ", ".join(f"{reason} ({plural(nodes, 'node')})" for reason, nodes in most)
    return f": {listed}" if listed else ""


def _short(image: str) -> str:
    return image.rpartition("/")[2]


def _pulled(pull: Row) -> str:
    """How long a pull took; with the time behind other pulls, where that is most of it."""
    whole_us = pull["pull_and_wait_us"]
    own_us = pull["pull_us"]
    if own_us is not None and 2 * own_us < whole_us:
        return f"{show_span(whole_us)}, most of it behind another download"
    return show_span(whole_us)
