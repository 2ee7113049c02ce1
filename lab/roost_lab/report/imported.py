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
    # Those of them without a binding to a node, without a start of a container, without an end.
    unbound: int = 0
    unstarted: int = 0
    endless: int = 0
    # Cold pulls in the window, of all pods, and those of them without a size. 0 when `pods` is 0.
    cold_pulls: int = 0
    sizeless_pulls: int = 0

    @classmethod
    def read(cls, query: Query) -> Self:
        """Count them. In a database that only a recorder wrote, the first query finds no pods."""
        pod = schema.pod.c
        start = schema.start.c
        pull = schema.pull.c

        def missing(column: sa.ColumnElement[int], label: str) -> sa.Label[int]:
            """The number of rows in which a column is NULL."""
            return total(sa.case((column.is_(None), 1), else_=0)).label(label)

        of_pods = (
            sa.select(
                count(),
                missing(start.place_id, "unbound"),
                missing(start.started_us, "unstarted"),
                missing(start.deleted_us, "endless"),
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
        (pods,) = query.rows(of_pods)
        if not pods.number:
            return cls()
        of_pulls = sa.select(count(), missing(pull.image_bytes, "sizeless")).where(
            query.within(pull.at_us, pull.pod_uid), sa.not_(pull.warm)
        )
        (pulls,) = query.rows(of_pulls)
        return cls(
            pods=pods.number,
            unbound=pods.unbound,
            unstarted=pods.unstarted,
            endless=pods.endless,
            cold_pulls=pulls.number,
            sizeless_pulls=pulls.sizeless,
        )


def notices(report: Report) -> Iterator[str]:
    """What the head of the page says of these pods, in paragraphs; nothing where there are none."""
    imported = report[Imported]
    if not imported.pods:
        return
    verb = "is" if imported.pods == 1 else "are"
    yield (
        f"{plural(imported.pods, 'pod')} of this period {verb}"
        " known from imported Events alone. Events tell neither when a pod was created nor when it"
        " was ready: the second of its first Event and the start of its last container are used"
        " instead, and most times are exact to a second. Labels, requests and repositories are not"
        " known: names tell the class (jupyter-…, build-…)."
    )
    missing = []
    for pods, missing_part in (
        (imported.unbound, "no binding to a node"),
        (imported.unstarted, "no start of a container"),
        (imported.endless, "no end (in the plots they stay)"),
    ):
        if pods:
            missing.append(f"of {plural(pods, 'pod')} {missing_part}")
    if imported.sizeless_pulls:
        missing.append(
            f"of {imported.sizeless_pulls:,} of {imported.cold_pulls:,} cold pulls no size"
        )
    if missing:
        yield (
            "Missing, because Events expire after an hour, are dropped when they are many, or"
            f" don't tell: {'; '.join(missing)}."
        )
