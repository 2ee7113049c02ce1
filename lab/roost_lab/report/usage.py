"""Who used the cluster, and how much of it there was: users, nodes, node-hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import sqlalchemy as sa

from roost_lab.recorder.store import schema
from roost_lab.report.query import count
from roost_lab.report.starts import leading_classes

if TYPE_CHECKING:
    from roost_lab.report.query import Query

HOUR_US: Final = 3_600_000_000


@dataclass(slots=True)
class Usage:
    """Users that started something, and nodes, in the window."""

    # Different names of the leading classes' pods.
    users: int = 0
    nodes: int = 0
    # None: no node was recorded.
    node_hours: float | None = None

    @classmethod
    def read(cls, query: Query) -> Self:
        """Nodes last until they were seen to go, or until the record's end."""
        pod, node = schema.pod.c, schema.node.c
        named = (
            sa.select(pod.namespace, pod.name)
            .where(query.within(pod.created_us, pod.uid), pod.pod_class.in_(leading_classes(query)))
            .distinct()
            .subquery()
        )
        (users,) = query.rows(sa.select(count()).select_from(named))
        numbers = cls(users.number)
        from_us, to_us = query.recorded
        gone_us = sa.func.coalesce(node.gone_us, to_us)
        # Nodes without a creation are known from their pods only.
        there = sa.and_(node.created_us > 0, node.created_us < to_us, gone_us > from_us)
        lasted_us = 0
        for row in query.rows(sa.select(node.created_us, gone_us.label("gone_us")).where(there)):
            numbers.nodes += 1
            lasted_us += min(to_us, row.gone_us) - max(from_us, row.created_us)
        if numbers.nodes:
            numbers.node_hours = lasted_us / HOUR_US
        return numbers
