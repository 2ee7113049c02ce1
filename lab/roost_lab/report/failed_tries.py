"""Failed tries: how often kube-scheduler found no node for a pod, and the reasons it gave."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Self

import sqlalchemy as sa

from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import DecisionKind
from roost_lab.report.query import Query, total
from roost_lab.report.statistics import busiest
from roost_lab.report.subject import Field, Section, TableOf

# Reasons in the table.
MAX_REASONS: Final = 20
NO_REASON: Final = "no reason given"


@dataclass(slots=True)
class Failures:
    """Tries that found no node."""

    tries: int = 0
    # Reason -> failed tries in which a node had it, and nodes that had it, summed over them; most
    # tries first.
    reasons: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Tries by the reasons that were given together (JSON: reason -> nodes)."""
        decision = schema.decision.c
        tries: Counter[str] = Counter()
        nodes: Counter[str] = Counter()
        in_all = 0
        for row in query.rows(
            sa.select(decision.reasons, total(decision.tries).label("tries"))
            .where(
                query.within(decision.at_us, decision.pod_uid),
                decision.kind == str(DecisionKind.FAIL),
            )
            .group_by(decision.reasons)
        ):
            in_all += row.tries
            for reason, having in (json.loads(row.reasons) or {NO_REASON: 0}).items():
                tries[reason] += row.tries
                nodes[reason] += having * row.tries
        return cls(
            in_all,
            {reason: (tries[reason], nodes[reason]) for reason in busiest(tries, MAX_REASONS)},
        )


TABLE: Final = TableOf[tuple[str, tuple[int, int]]](
    "failures",
    "Failed scheduling attempts by reason",
    (
        Field("reason", "reason", Unit.TEXT, lambda row: row[0]),
        Field("tries", "attempts", Unit.COUNT, lambda row: row[1][0]),
        Field("nodes", "nodes rejected", Unit.COUNT, lambda row: row[1][1]),
    ),
    lambda report: report[Failures].reasons.items(),
)


SECTION: Final = Section("failures", "Failed scheduling attempts", Failures, (TABLE,))
