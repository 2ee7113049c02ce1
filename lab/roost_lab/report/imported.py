"""Pods that were imported rather than watched, and what is not known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.phrases import plural
from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import PodSource
from roost_lab.report.query import count, total
from roost_lab.report.subject import Field, Report, Section, TableOf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.report.query import Query

_KNOWN_FROM: Final = {
    PodSource.EVENT: "Events alone",
    PodSource.POD: "an imported object",
    PodSource.SNIFFER: "a log of scheduler-sniffer",
}


class Origin(NamedTuple):
    """The imported pods of one source, by what is missing of them."""

    source: PodSource
    pods: int
    # No scheduler's binding, no start of a container, no end.
    unbound: int
    unstarted: int
    endless: int


@dataclass(slots=True)
class Imported:
    """Imported pods that were created in the window."""

    origins: list[Origin] = field(default_factory=list)
    # Of all cold pulls of the window; 0 when no pod was imported.
    cold_pulls: int = 0
    sizeless_pulls: int = 0

    @classmethod
    def read(cls, query: Query) -> Self:
        """Two queries; one that finds nothing in a recorder's own database."""
        pod, start, pull = schema.pod.c, schema.start.c, schema.pull.c

        def missing(column: sa.ColumnElement[int], name: str) -> sa.Label[int]:
            return total(sa.case((column.is_(None), 1), else_=0)).label(name)

        rows = query.rows(
            sa.select(
                pod.source,
                count(),
                missing(start.place_id, "unbound"),
                missing(start.started_us, "unstarted"),
                missing(start.deleted_us, "endless"),
            )
            .join(schema.start, sa.and_(start.created_us == pod.created_us, start.pod_uid == pod.uid))
            .where(schema.IMPORTED, query.within(pod.created_us, pod.uid))
            .group_by(pod.source)
            .order_by(pod.source)
        )
        origins = [Origin(PodSource(row.source), row.number, row.unbound, row.unstarted, row.endless) for row in rows]
        if not origins:
            return cls()
        pulls = next(
            query.rows(
                sa.select(count(), missing(pull.image_bytes, "sizeless")).where(
                    query.within(pull.at_us, pull.pod_uid), sa.not_(pull.warm)
                )
            )
        )
        return cls(origins, pulls.number, pulls.sizeless)


def notices(report: Report) -> Iterator[str]:
    """What the head of the page says of pods that are known from Events alone."""
    imported = report[Imported]
    origin = next((one for one in imported.origins if one.source is PodSource.EVENT), None)
    if origin is None:
        return
    yield (
        f"{plural(origin.pods, 'pod')} of this period {'is' if origin.pods == 1 else 'are'} known from imported Events "
        "alone. Events tell neither when a pod was created nor when it was ready: the second of its first Event and "
        "the start of its last container are used instead, and most times are exact to a second. Labels, requests and "
        "repositories are not known: names tell the class (jupyter-…, build-…)."
    )
    missing = [
        f"of {plural(number, 'pod')} {what}"
        for number, what in (
            (origin.unbound, "no binding to a node"),
            (origin.unstarted, "no start of a container"),
            (origin.endless, "no end (in the plots they stay)"),
        )
        if number
    ]
    if imported.sizeless_pulls:
        missing.append(f"of {imported.sizeless_pulls:,} of {imported.cold_pulls:,} cold pulls no size")
    if missing:
        yield (
            f"Missing, because Events expire after an hour, are dropped when they are many, or don't tell: "
            f"{'; '.join(missing)}."
        )


TABLE: Final = TableOf[Origin](
    "imported",
    "Imported pods",
    (
        Field("source", "known from", Unit.TEXT, lambda origin: _KNOWN_FROM[origin.source]),
        Field("pods", "pods", Unit.COUNT, lambda origin: origin.pods),
        Field("unbound", "without a binding", Unit.COUNT, lambda origin: origin.unbound),
        Field("unstarted", "without a started container", Unit.COUNT, lambda origin: origin.unstarted),
        Field("endless", "without an end", Unit.COUNT, lambda origin: origin.endless),
    ),
    lambda report: report[Imported].origins,
)
SECTION: Final = Section("imported", TABLE.title, Imported, (TABLE,))
