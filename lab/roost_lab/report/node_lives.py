"""When each recorded node was there: what node-hours, capacity and costs add up, so that they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from roost_lab.recorder.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_lab.report.query import Query

HOUR_US = 3_600_000_000


class NodeLife(NamedTuple):
    """The part of the window in which a node existed, and what was last reported of it."""

    name: str
    from_us: int
    to_us: int
    # JSON objects as text; None: not known.
    labels: str | None
    allocatable: str | None

    @property
    def hours(self) -> float:
        """How long it was there."""
        return (self.to_us - self.from_us) / HOUR_US


def node_lives(query: Query) -> Iterator[NodeLife]:
    """Nodes of the window, by name; they last until they were seen to go, or until the record's end."""
    node = schema.node.c
    from_us, to_us = query.recorded
    # Nodes without a creation are known from their pods only.
    there = sa.and_(node.created_us > 0, node.created_us < to_us, sa.func.coalesce(node.gone_us, to_us) > from_us)
    columns = (node.name, node.created_us, node.gone_us, node.labels, node.allocatable)
    for row in query.rows(sa.select(*columns).where(there).order_by(node.name, node.created_us)):
        came_us, went_us = max(from_us, row.created_us), min(to_us, to_us if row.gone_us is None else row.gone_us)
        yield NodeLife(row.name, came_us, went_us, row.labels, row.allocatable)
