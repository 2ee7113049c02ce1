"""Failed tries: how often kube-scheduler found no node for a pod, and the reasons it gave."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final, Self

import sqlalchemy as sa

from roost_lab.pages.drawing import Figure, Row, bars
from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import DecisionKind
from roost_lab.report.query import Query, total
from roost_lab.report.statistics import busiest
from roost_lab.report.subject import Field, Report, Section, TableOf

# Reasons in the table, and of these in the plot.
MAX_REASONS: Final = 20
MAX_BARS: Final = 10
NO_REASON: Final = "no reason given"


@dataclass(slots=True)
class Failure:
    """One reason why no node was found."""

    reason: str
    # Failed tries in which at least one node had this reason, and nodes that had it, summed over them.
    tries: int = 0
    nodes: int = 0


@dataclass(slots=True)
class Failures:
    """Tries that found no node."""

    tries: int = 0
    # Most tries first.
    reasons: list[Failure] = field(default_factory=list)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Tries by the reasons that were given together (JSON: reason -> nodes)."""
        decision = schema.decision.c
        tries = 0
        by_reason: dict[str, Failure] = {}
        for row in query.rows(
            sa.select(decision.reasons, total(decision.tries).label("tries"))
            .where(query.within(decision.at_us, decision.pod_uid), decision.kind == str(DecisionKind.FAIL))
            .group_by(decision.reasons)
        ):
            tries += row.tries
            nodes_by_reason: dict[str, int] = json.loads(row.reasons) or {NO_REASON: 0}
            for reason, nodes in nodes_by_reason.items():
                failure = by_reason.setdefault(reason, Failure(reason))
                failure.tries += row.tries
                failure.nodes += nodes * row.tries
        names = busiest({reason: failure.tries for reason, failure in by_reason.items()}, MAX_REASONS)
        return cls(tries, [by_reason[name] for name in names])


TABLE: Final = TableOf[Failure](
    "failures",
    "Failed scheduling attempts by reason",
    (
        Field("reason", "reason", Unit.TEXT, lambda failure: failure.reason),
        Field("tries", "attempts", Unit.COUNT, lambda failure: failure.tries),
        Field("nodes", "nodes rejected", Unit.COUNT, lambda failure: failure.nodes),
    ),
    lambda report: report[Failures].reasons,
)


def _figure(report: Report) -> Figure | None:
    rows = [
        Row(failure.reason, f"{failure.tries:,}", [failure.tries]) for failure in report[Failures].reasons[:MAX_BARS]
    ]
    caption = "Attempts in which at least one node was rejected for this reason; an attempt may have several reasons."
    return bars("failures", caption, rows, [("--cold", "attempts")], {}, legend=False)


SECTION: Final = Section(
    "failures", "Failed scheduling attempts", Failures, (TABLE,), (_figure,), nothing="Every attempt found a node."
)
