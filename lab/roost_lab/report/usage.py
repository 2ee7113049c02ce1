"""How many users started a server or a build, and how many nodes there were, in the window."""

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
    """Users who started a pod, and nodes, in the window."""

    # Different names of the pods of the leading classes. Seated servers count only if their users
    # came.
    users: int = 0
    nodes: int = 0
    # None: no node was recorded. Gaps in the record count, too: a node that was there before and
    # after a gap was there in it.
    node_hours: float | None = None
    # Nodes that went during a gap. When isn't known, so they count until its end.
    went_in_gap: int = 0

    @classmethod
    def read(cls, query: Query) -> Self:
        """Count them. A node is there until the record says that it went, or until its end."""
        pod = schema.pod.c
        node = schema.node.c
        named = launched_pods(query, pod.namespace, pod.name).distinct().subquery()
        (users,) = query.rows(sa.select(count()).select_from(named))
        numbers = cls(users.number)
        from_us = max(query.window.from_us, query.extent.from_us)
        to_us = min(query.window.to_us, query.extent.to_us)
        gone_us = sa.func.coalesce(node.gone_us, to_us)
        # Nodes without a creation are known from their pods only, so nobody knows how long they
        # were there.
        in_window = sa.and_(node.created_us > 0, node.created_us < to_us, gone_us > from_us)
        lasted_us = 0
        nodes = sa.select(node.created_us, gone_us.label("gone_us")).where(in_window)
        for row in query.rows(nodes):
            numbers.nodes += 1
            lasted_us += min(to_us, row.gone_us) - max(from_us, row.created_us)
        if numbers.nodes:
            numbers.node_hours = lasted_us / HOUR_US
        gap = schema.gap.c
        in_gap = sa.exists().where(
            gap.kind == NODES, gap.from_us < node.gone_us, gap.to_us >= node.gone_us
        )
        went_in_gap = sa.select(count()).where(in_window, node.gone_us <= to_us, in_gap)
        (row,) = query.rows(went_in_gap)
        numbers.went_in_gap = row.number
        return numbers
