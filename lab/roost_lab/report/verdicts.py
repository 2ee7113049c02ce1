"""Verdicts of kube-scheduler's model: for how many bindings it would have chosen the same node."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import sqlalchemy as sa

from roost_lab.pages.drawing import PERCENTS, Figure, Row, bars
from roost_lab.pages.table import Unit, show
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import DecisionKind, Verdict
from roost_lab.report.query import Query, count
from roost_lab.report.statistics import share
from roost_lab.report.subject import Field, Report, Section, TableOf

if TYPE_CHECKING:
    from collections.abc import Mapping

# Verdict -> its name for people.
VERDICT_NAMES: Final = {Verdict.AGREES: "agrees", Verdict.DIFFERS: "differs", Verdict.UNKNOWN: "not judged"}


@dataclass(slots=True)
class Verdicts:
    """Scheduler profile -> verdict -> bindings."""

    by_scheduler: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Bindings without a verdict are not judged."""
        decision = schema.decision.c
        model = sa.func.coalesce(decision.model, str(Verdict.UNKNOWN)).label("model")
        numbers = cls()
        for row in query.rows(
            sa.select(decision.scheduler, model, count())
            .where(query.within(decision.at_us, decision.pod_uid), decision.kind == str(DecisionKind.BIND))
            .group_by(decision.scheduler, model)
        ):
            numbers.by_scheduler.setdefault(row.scheduler, Counter())[row.model] += row.number
        return numbers

    @property
    def agreement(self) -> float | None:
        """The share of judged bindings that the model agrees with, 0 to 1; None when none was judged."""
        return agreement(sum(self.by_scheduler.values(), Counter()))


def agreement(verdicts: Mapping[str, int]) -> float | None:
    """The share of judged bindings that the model agrees with, 0 to 1; None when none was judged."""
    return share(verdicts.get(Verdict.AGREES, 0), verdicts.get(Verdict.DIFFERS, 0))


TABLE: Final = TableOf[tuple[str, Counter[str]]](
    "model",
    "Verdicts of the scheduler's model",
    (
        Field("scheduler", "profile", Unit.TEXT, lambda row: row[0]),
        Field("agrees", VERDICT_NAMES[Verdict.AGREES], Unit.COUNT, lambda row: row[1][Verdict.AGREES]),
        Field("differs", VERDICT_NAMES[Verdict.DIFFERS], Unit.COUNT, lambda row: row[1][Verdict.DIFFERS]),
        Field("unknown", VERDICT_NAMES[Verdict.UNKNOWN], Unit.COUNT, lambda row: row[1][Verdict.UNKNOWN]),
        Field("agreement", "agreement", Unit.SHARE, lambda row: agreement(row[1])),
    ),
    lambda report: sorted(report[Verdicts].by_scheduler.items()),
)


def _figure(report: Report) -> Figure | None:
    rows = []
    for scheduler, verdicts in sorted(report[Verdicts].by_scheduler.items()):
        bindings = verdicts.total()
        values = [100 * verdicts[verdict] / bindings for verdict in VERDICT_NAMES]
        share_text = f"{show(agreement(verdicts), Unit.SHARE)} of {bindings:,}"
        rows.append(Row(scheduler, share_text, values))
    marks = [(f"--{verdict}", name) for verdict, name in VERDICT_NAMES.items()]
    caption = (
        "Bindings for which the scheduler's model, run on the state that the watches delivered, chooses the same node."
    )
    return bars("model", caption, rows, marks, {"range": [0, 100], **PERCENTS})


VERDICTS: Final = Section(
    "model",
    "Does the scheduler's model agree?",
    Verdicts,
    (TABLE,),
    (_figure,),
    "For each binding, Roost's model of kube-scheduler is run on the state that the watches delivered. A binding that "
    "differs just after a change that the scheduler may not have seen is not judged. A difference is a reason to look, "
    "not proof of a fault.",
    "No binding was recorded in this period.",
)
