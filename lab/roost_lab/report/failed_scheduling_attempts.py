"""Failed scheduling attempts: how often kube-scheduler found no node for a pod, and why not.

The record calls an attempt a try, so columns and fields here are called `tries`.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import DecisionKind
from roost_lab.report.query import Query, total
from roost_lab.report.statistics import busiest
from roost_lab.report.subject import Field, Section, TableOf

# Most reasons in the table.
MAX_REASONS: Final = 20
NO_REASON: Final = "no reason given"


class ReasonCounts(NamedTuple):
    """How often a reason was given."""

    # Attempts in which at least one node had the reason.
    tries: int
    # Nodes that had the reason, summed over these attempts.
    nodes: int


@dataclass(slots=True)
class Failures:
    """Attempts that found no node."""

    tries: int = 0
    # Reason -> its counts; the reasons of the most attempts, these first.
    reasons: dict[str, ReasonCounts] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Sum up the record's failed attempts."""
        decision = schema.decision.c
        # A row for each set of reasons that were given together, as JSON: reason -> nodes.
        rows = query.rows(
            sa.select(decision.reasons, total(decision.tries).label("tries"))
            .where(
                query.within(decision.at_us, decision.pod_uid),
                decision.kind == str(DecisionKind.FAIL),
            )
            .group_by(decision.reasons)
        )
        all_tries = 0
        tries_by_reason: Counter[str] = Counter()
        nodes_by_reason: Counter[str] = Counter()
        for row in rows:
            all_tries += row.tries
            reasons_together = json.loads(row.reasons) or {NO_REASON: 0}
            for reason, nodes in reasons_together.items():
                tries_by_reason[reason] += row.tries
                nodes_by_reason[reason] += nodes * row.tries
        reasons = {
            reason: ReasonCounts(tries_by_reason[reason], nodes_by_reason[reason])
            for reason in busiest(tries_by_reason, MAX_REASONS)
        }
        return cls(all_tries, reasons)


TABLE: Final = TableOf[tuple[str, ReasonCounts]](
    "failures",
    "Failed scheduling attempts by reason",
    (
        Field("reason", "reason", Unit.TEXT, lambda row: row[0]),
        Field("tries", "attempts", Unit.COUNT, lambda row: row[1].tries),
        Field("nodes", "nodes rejected", Unit.COUNT, lambda row: row[1].nodes),
    ),
    lambda report: report[Failures].reasons.items(),
)


SECTION: Final = Section("failures", "Failed scheduling attempts", Failures, (TABLE,))
