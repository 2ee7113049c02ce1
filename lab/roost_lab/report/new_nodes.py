"""Nodes that joined: how long each took until it was ready, and until it had the hub's images."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

import sqlalchemy as sa

from roost_lab.recorder.store import schema
from roost_lab.recorder.store.phases import READY
from roost_lab.report.query import Query, bounded, count, step_index, total
from roost_lab.report.start_phases import IMAGES, phase_fields, phase_rows
from roost_lab.report.statistics import Spans, edge_at
from roost_lab.report.subject import Section, TableOf


@dataclass(slots=True)
class NewNodes:
    """Nodes created in the window of which the record says when they had all images."""

    # READY: from the node's creation until it was ready. IMAGES: from then on, until it had them.
    by_phase: dict[str, Spans] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Count them by phase and length."""
        node = schema.node.c
        by_phase: dict[str, Spans] = {}
        for phase, span_us in (
            (READY, node.ready_us - node.created_us),
            (IMAGES, node.images_ready_us - node.ready_us),
        ):
            index = step_index(span_us).label("step_index")
            lengths = (
                sa.select(index, count(), total(bounded(span_us)).label("sum_us"))
                .where(
                    query.within(node.created_us),
                    node.ready_us.is_not(None),
                    node.images_ready_us.is_not(None),
                )
                .group_by(index)
            )
            for row in query.rows(lengths):
                spans = by_phase.setdefault(phase, Spans())
                spans.add(edge_at(row.step_index), row.number, row.sum_us)
        return cls(by_phase)


SECTION: Final = Section(
    "new-nodes",
    "New nodes",
    NewNodes,
    (
        TableOf(
            "new_nodes",
            "New nodes",
            phase_fields("nodes"),
            lambda report: phase_rows(report[NewNodes].by_phase, (READY, IMAGES)),
        ),
    ),
    about=(
        "Nodes that joined in this period and got every image that the hub's image gate requires."
        " Nodes have whole seconds: the time until the images is up to a second shorter than shown."
    ),
)
