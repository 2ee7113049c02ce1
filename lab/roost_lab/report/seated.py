"""Servers that seating asked for before a class: how many, and whether their users came to them.

Nobody waited for them, so they are in no other table of starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

import sqlalchemy as sa

from roost_lab.pages.phrases import plural
from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.start_times import is_by_user, is_failed, start_from_us, start_to_us
from roost_lab.report.query import Query, bounded, count, step_index, total
from roost_lab.report.statistics import Spans, edge_at
from roost_lab.report.subject import Field, Report, Section, TableOf, percentile_fields


@dataclass(slots=True)
class SeatedOfHub:
    """Seated servers of one hub."""

    number: int = 0
    answered: int = 0
    failed: int = 0
    # Their users came to them.
    opened: int = 0
    # Seating stopped them, as nobody had used them.
    unused: int = 0
    # How long they took, from seating's request until they answered.
    whole: Spans = field(default_factory=Spans)

    @property
    def unknown(self) -> int:
        """Of which the log tells neither: the class may be to come, or the hub culled them."""
        return self.number - self.failed - self.opened - self.unused


@dataclass(slots=True)
class Seated:
    """Seated servers whose pods were created in the window, by hub."""

    by_hub: Mapping[str, SeatedOfHub] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Two queries; both find nothing where nobody is seated."""
        start = schema.start.c
        pod = schema.pod.c
        chosen = (query.within(start.created_us, start.pod_uid), sa.not_(is_by_user))
        # A server counts once, whatever its hub's log says of it.
        is_opened = sa.and_(start.opened_us.is_not(None), sa.not_(is_failed))
        is_unused = sa.and_(
            start.unused_us.is_not(None), start.opened_us.is_(None), sa.not_(is_failed)
        )
        by_hub: dict[str, SeatedOfHub] = {}
        of_pods = schema.start.join(schema.pod, pod.uid == start.pod_uid)
        for row in query.rows(
            sa.select(
                pod.hub,
                count(),
                sa.func.count(start.answered_us).label("answered"),
                *(
                    sa.func.count(sa.case((condition, 1))).label(name)
                    for name, condition in (
                        ("failed", is_failed),
                        ("opened", is_opened),
                        ("unused", is_unused),
                    )
                ),
            )
            .select_from(of_pods)
            .where(*chosen)
            .group_by(pod.hub)
            .order_by(pod.hub)
        ):
            by_hub[row.hub] = SeatedOfHub(
                row.number, row.answered, row.failed, row.opened, row.unused
            )
        span_us = start_to_us - start_from_us
        index = step_index(span_us).label("step_index")
        for row in query.rows(
            sa.select(pod.hub, index, count(), total(bounded(span_us)).label("sum_us"))
            .select_from(of_pods)
            .where(*chosen, span_us.is_not(None))
            .group_by(pod.hub, index)
        ):
            by_hub[row.hub].whole.add(edge_at(row.step_index), row.number, row.sum_us)
        return cls(by_hub)

    @property
    def all(self) -> SeatedOfHub:
        """The counts of all hubs together, without how long starts took."""
        hubs = self.by_hub.values()
        return SeatedOfHub(
            sum(hub.number for hub in hubs),
            sum(hub.answered for hub in hubs),
            sum(hub.failed for hub in hubs),
            sum(hub.opened for hub in hubs),
            sum(hub.unused for hub in hubs),
        )


def seated_about(report: Report) -> str:
    """What became of them, in words; "" where nobody is seated."""
    seated = report[Seated].all
    parts = [f"{seated.opened:,} opened", f"{seated.unused:,} stopped unused"]
    if seated.failed:
        parts.append(f"{seated.failed:,} failed")
    if seated.unknown:
        parts.append(f"of {seated.unknown:,} it isn't known")
    return ", ".join(parts) if seated.number else ""


def seated_sentence(report: Report) -> str:
    """The sentence at the head of a report; "" where nobody is seated."""
    about = seated_about(report)
    if not about:
        return ""
    number = report[Seated].all.number
    return f"Before classes {plural(number, 'server')} started with nobody waiting: {about}."


SECTION: Final = Section(
    "seated",
    "Seated before class",
    Seated,
    (
        TableOf[tuple[str, SeatedOfHub]](
            "seated",
            "Seated before class",
            (
                Field("hub", "hub", Unit.TEXT, lambda row: row[0]),
                Field("servers", "servers", Unit.COUNT, lambda row: row[1].number),
                Field("opened", "opened", Unit.COUNT, lambda row: row[1].opened),
                Field("unused", "stopped unused", Unit.COUNT, lambda row: row[1].unused),
                Field("failed", "failed", Unit.COUNT, lambda row: row[1].failed),
                Field("unknown", "not known", Unit.COUNT, lambda row: row[1].unknown),
                *percentile_fields(lambda row: row[1].whole),
            ),
            lambda report: report[Seated].by_hub.items(),
        ),
    ),
    about=(
        "Servers that Roost's seating asked for, by the hub's log. Nobody waited for them: they are"
        " in no other table of starts. Opened: their user came to them."
    ),
)
