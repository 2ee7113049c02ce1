"""Explain a slow start in a few words: what it waited for longest, and why."""

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
# How many of kube-scheduler's reasons a cause names: those of the most nodes.
MOST_REASONS: Final = 2


class StartSpans(NamedTuple):
    """How long the parts of a start took, in µs. None: it isn't known."""

    pod_uid: str
    # When it was bound to a node, in µs since 1970.
    bound_us: int | None
    # From the pod's creation until the binding.
    node_us: int | None
    # From the binding until the containers ran.
    containers_us: int | None
    # From then on until the pod was ready, and until its server answered.
    ready_us: int | None
    answer_us: int | None


class RecordedStart(NamedTuple):
    """The rows of the record about one start."""

    # Failed attempts to find a node, the latest last.
    failures: Sequence[Row]
    phases: Sequence[Row]
    pulls: Sequence[Row]
    events: Sequence[Row]


def read_causes(query: Query, starts: Sequence[StartSpans]) -> list[str]:
    """What explains each of a few starts, in their order; "" where nothing is known of it."""
    uids = [start.pod_uid for start in starts]
    decision = schema.decision
    failed = sa.and_(decision.c.kind == str(DecisionKind.FAIL), decision.c.pod_uid.in_(uids))
    failures = query.rows_by_pod(sa.select(decision).where(failed).order_by(decision.c.at_us))
    phases, pulls, events = (
        query.rows_by_pod(sa.select(table).where(table.c.pod_uid.in_(uids)))
        for table in (schema.phase, schema.pull, schema.pod_event)
    )
    return [
        cause_of(start, RecordedStart(failures[uid], phases[uid], pulls[uid], events[uid]))
        for uid, start in zip(uids, starts, strict=True)
    ]


def cause_of(start: StartSpans, recorded: RecordedStart) -> str:
    """The longest wait of a start, with its reason where that is recorded; "" without a wait."""
    node_us = start.node_us or 0
    ready_us = start.ready_us or 0
    answer_us = start.answer_us or 0
    waits = [
        (node_us, f"no node for {show_span(node_us)}{_why_no_node(recorded.failures)}"),
        (ready_us, f"ready {show_span(ready_us)} after its containers ran"),
        (answer_us, f"its server answered {show_span(answer_us)} after its containers ran"),
    ]
    # What happened between the binding and the run of the containers.
    explained = []
    for pull in recorded.pulls:
        pull_us = pull["pull_and_wait_us"] or 0
        if not pull["warm"] and pull_us:
            explained.append((pull_us, _describe_pull(pull)))
    if start.bound_us is not None:
        after_binding = find_waits(
            recorded.phases, recorded.pulls, recorded.events, start.bound_us, None
        )
        for wait in after_binding.waits:
            why = f": {wait.cause}" if wait.cause else ""
            text = f"waited {show_span(wait.span_us)} for {wait.awaits}{why}"
            explained.append((wait.span_us, text))
    unexplained_us = (start.containers_us or 0) - sum(wait_us for wait_us, _ in explained)
    text = f"its containers took {show_span(unexplained_us)} to run; nothing recorded says why"
    waits += [*explained, (unexplained_us, text)]
    longest_us, cause = max(waits, key=lambda item: item[0])
    return cause if longest_us > 0 else ""


def _why_no_node(failures: Sequence[Row]) -> str:
    """The reasons of the last failed attempt, with a colon before them; "" where none is known."""
    if not failures:
        return ""
    reasons: Mapping[str, int] = json.loads(failures[-1]["reasons"])
    commonest = sorted(reasons.items(), key=lambda item: -item[1])[:MOST_REASONS]
    listed = ", ".join(f"{reason} ({plural(nodes, 'node')})" for reason, nodes in commonest)
    return f": {listed}" if listed else ""


def _describe_pull(pull: Row) -> str:
    """What was downloaded, for how long, and whether that was mostly a wait for other pulls."""
    image = pull["image"].rpartition("/")[2]
    pull_and_wait_us = pull["pull_and_wait_us"]
    text = f"downloaded {image} for {show_span(pull_and_wait_us)}"
    pull_us = pull["pull_us"]
    if pull_us is not None and 2 * pull_us < pull_and_wait_us:
        text += ", most of it behind another download"
    return text
