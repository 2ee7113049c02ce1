"""How many users started something, and what nodes there were, in the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import NODES
from roost_lab.report.query import Query, count
from roost_lab.report.start_phases import launched_pods
from roost_lab.units import HOUR_US


@dataclass(slots=True)
class Usage:
    """Users that started something, and nodes, in the window."""

    # Different names of the leading classes' pods, without seated ones that their users didn't
    # come to.
    users: int = 0
    nodes: int = 0
    # None: no node was recorded. Gaps in the record count, as a node that is there before and after
    # one was there meanwhile.
    node_hours: float | None = None
    # Nodes that went in a gap, nobody knows when: they count until its end.
    went_in_gap: int = 0

    @classmethod
    def read(cls, query: Query) -> Self:
        """Nodes last until they were seen to go, or until the record's end."""
        pod = schema.pod.c
        node = schema.node.c
        named = launched_pods(query, pod.namespace, pod.name).distinct().subquery()
        (users,) = query.rows(sa.select(count()).select_from(named))
        numbers = cls(users.number)
        from_us = max(query.window.from_us, query.extent.from_us)
        to_us = min(query.window.to_us, query.extent.to_us)
        gone_us = sa.func.coalesce(node.gone_us, to_us)
        # Nodes without a creation are known from their pods only.
        there = sa.and_(node.created_us > 0, node.created_us < to_us, gone_us > from_us)
        lasted_us = 0
        for row in query.rows(sa.select(node.created_us, gone_us.label("gone_us")).where(there)):
            numbers.nodes += 1
            lasted_us += min(to_us, row.gone_us) - max(from_us, row.created_us)
        if numbers.nodes:
            numbers.node_hours = lasted_us / HOUR_US
        gap = schema.gap.c
        in_gap = sa.exists().where(
            gap.kind == NODES, gap.from_us < node.gone_us, gap.to_us >= node.gone_us
        )
        (unseen,) = query.rows(sa.select(count()).where(there, node.gone_us <= to_us, in_gap))
        numbers.went_in_gap = unseen.number
        return numbers
