"""Say what isn't known of pods that were imported from Events alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from roost_lab.pages.phrases import plural
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import PodSource
from roost_lab.report.query import Query, count, total
from roost_lab.report.subject import Report


@dataclass(slots=True)
class Imported:
    """Pods created in the window that are known from Events alone, and what is missing of them."""

    pods: int = 0
    # No scheduler's binding, no start of a container, no end.
    unbound: int = 0
    unstarted: int = 0
    endless: int = 0
    # Of all cold pulls of the window; 0 when there is no such pod.
    cold_pulls: int = 0
    sizeless_pulls: int = 0

    @classmethod
    def read(cls, query: Query) -> Self:
        """Two queries; one that finds nothing in a recorder's own database."""
        pod = schema.pod.c
        start = schema.start.c
        pull = schema.pull.c

        def missing(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
            return total(sa.case((column.is_(None), 1), else_=0))

        of_pods = (
            sa.select(
                count(),
                missing(start.place_id),
                missing(start.started_us),
                missing(start.deleted_us),
            )
            .join(
                schema.start, sa.and_(start.created_us == pod.created_us, start.pod_uid == pod.uid)
            )
            .where(
                schema.IMPORTED,
                pod.source == PodSource.EVENT,
                query.within(pod.created_us, pod.uid),
            )
        )
        of_pulls = sa.select(count(), missing(pull.image_bytes)).where(
            query.within(pull.at_us, pull.pod_uid), sa.not_(pull.warm)
        )
        (found,) = query.rows(of_pods)
        return cls(*found, *next(query.rows(of_pulls))) if found.number else cls()


def notices(report: Report) -> Iterator[str]:
    """What the head of the page says of them."""
    imported = report[Imported]
    if not imported.pods:
        return
    yield (
        f"{plural(imported.pods, 'pod')} of this period {'is' if imported.pods == 1 else 'are'}"
        " known from imported Events alone. Events tell neither when a pod was created nor when it"
        " was ready: the second of its first Event and the start of its last container are used"
        " instead, and most times are exact to a second. Labels, requests and repositories are not"
        " known: names tell the class (jupyter-…, build-…)."
    )
    missing = [
        f"of {plural(number, 'pod')} {what}"
        for number, what in (
            (imported.unbound, "no binding to a node"),
            (imported.unstarted, "no start of a container"),
            (imported.endless, "no end (in the plots they stay)"),
        )
        if number
    ]
    if imported.sizeless_pulls:
        missing.append(
            f"of {imported.sizeless_pulls:,} of {imported.cold_pulls:,} cold pulls no size"
        )
    if missing:
        yield (
            "Missing, because Events expire after an hour, are dropped when they are many, or"
            f" don't tell: {'; '.join(missing)}."
        )
