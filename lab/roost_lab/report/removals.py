"""Removals: pods that were pre-empted or evicted.

Pods that went with their node aren't among them: their `end_reason` says so.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Self

import sqlalchemy as sa

from roost_lab.pages.phrases import plural
from roost_lab.pages.table import Unit
from roost_lab.recorder.recording.scheduler_model import BUILD, PLACEHOLDER, USER
from roost_lab.recorder.store import schema
from roost_lab.report.query import Query, count
from roost_lab.report.subject import NO_CLASS, Field, Report, Section, TableOf


@dataclass(slots=True)
class Removals:
    """How many pods were removed in the window, and how."""

    # (kind of removal: "preempted" or "evicted", class) -> pods. "": the class isn't known.
    by_class: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Count them. Pods that the record doesn't know otherwise have no class."""
        removal = schema.preemption.c
        pod = schema.pod.c
        pod_class = sa.func.coalesce(pod.pod_class, "").label("pod_class")
        removed = (
            sa.select(removal.kind, pod_class, count())
            .select_from(schema.preemption.outerjoin(schema.pod, pod.uid == removal.victim_uid))
            .where(query.within(removal.at_us, removal.victim_uid))
            .group_by(removal.kind, pod_class)
        )
        numbers = cls()
        for row in query.rows(removed):
            numbers.by_class[row.kind, row.pod_class] += row.number
        return numbers


def removed_users(report: Report) -> int:
    """How many users' pods were pre-empted or evicted."""
    return sum(
        pods for (_, pod_class), pods in report[Removals].by_class.items() if pod_class == USER
    )


def room_given(report: Report) -> int:
    """How many placeholders were pre-empted: each gave its room to a pod that found no other."""
    return report[Removals].by_class["preempted", PLACEHOLDER]


def removed_others(report: Report) -> str:
    """Pods of other classes that were removed, by class; "" when there were none."""
    by_class: Counter[str] = Counter()
    for (_, pod_class), pods in report[Removals].by_class.items():
        if pod_class != USER:
            by_class[pod_class] += pods
    texts = []
    for pod_class, pods in by_class.items():
        if pod_class in (BUILD, PLACEHOLDER):
            texts.append(plural(pods, pod_class))
        else:
            texts.append(f"{pods:,} of {pod_class or NO_CLASS}")
    return ", ".join(texts)


BY_CLASS: Final = TableOf[tuple[tuple[str, str], int]](
    "removals_by_class",
    "Pre-emptions and evictions by class",
    (
        Field("kind", "removal", Unit.TEXT, lambda row: row[0][0]),
        Field("pod_class", "class", Unit.TEXT, lambda row: row[0][1] or NO_CLASS),
        Field("pods", "pods", Unit.COUNT, lambda row: row[1]),
    ),
    lambda report: sorted(report[Removals].by_class.items()),
)
SECTION: Final = Section("removals", "Pre-emptions and evictions", Removals, (BY_CLASS,))
