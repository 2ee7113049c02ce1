"""Disks: when nodes were under disk pressure, what kubelets removed, and what was pulled again.

All of it is in records that others need too: taints of nodes, the images that nodes report, pulls,
and evictions. A kubelet reports its 50 largest images by default: one that larger ones push out of
that list looks like a removed one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import sqlalchemy as sa

from roost_core.objects.node import DISK_PRESSURE_TAINT
from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.report.query import Query, Rows, bounded, count, total
from roost_lab.report.statistics import Span, unite
from roost_lab.report.subject import Field, Section, TableOf
from roost_lab.units import US

# As it stands among the recorded taints of a node.
_PRESSURE: Final = f"{DISK_PRESSURE_TAINT}="
# The taint comes after the kubelet's condition, and the kubelet evicts from the condition on.
_AROUND_US: Final = 60 * US


class PressureChange(NamedTuple):
    """A change of a node's taints that has to do with disk pressure."""

    at_us: int
    # Whether the node was under pressure before it, and is after it.
    before: bool
    after: bool


@dataclass(slots=True)
class NodeDisk:
    """What happened to one node's disk within the window."""

    pressure_us: int = 0
    times: int = 0
    # Names of images that were on it no longer, and their bytes.
    removed: int = 0
    removed_bytes: int = 0
    # Pulls of such an image, to the same node.
    pulled_again: int = 0
    # Pods that were evicted around that pressure.
    evicted: int = 0

    @property
    def has_news(self) -> bool:
        """Whether anything happened."""
        return bool(self.pressure_us or self.removed or self.evicted)


@dataclass(slots=True)
class Disks:
    """By node, the most pressure first."""

    by_node: dict[str, NodeDisk] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """What happened on each node whose disk has news."""
        nodes: defaultdict[str, NodeDisk] = defaultdict(NodeDisk)
        spans = _pressure(query)
        for name, united in spans.items():
            nodes[name].pressure_us = sum(span.to_us - span.from_us for span in united)
            nodes[name].times = len(united)
        for row in _removed_images(query):
            nodes[row.name].removed = row.number
            nodes[row.name].removed_bytes = row.bytes
        for row in _repeated_pulls(query):
            nodes[row.node_name].pulled_again = row.number
        for name in _evicted_around(query, spans):
            nodes[name].evicted += 1
        in_trouble = {name: disk for name, disk in nodes.items() if disk.has_news}
        names = sorted(
            in_trouble,
            key=lambda name: (-in_trouble[name].pressure_us, -in_trouble[name].removed, name),
        )
        return cls({name: in_trouble[name] for name in names})


def _pressure(query: Query) -> dict[str, list[Span]]:
    """When each node was under disk pressure, within the window."""
    change = schema.node_change.c
    node = schema.node.c
    says = sa.or_(change.old.contains(_PRESSURE), change.new.contains(_PRESSURE))
    changes: defaultdict[str, list[PressureChange]] = defaultdict(list)
    for row in query.rows(
        sa.select(change.node_uid, change.at_us, change.old, change.new)
        .where(change.field == "taints", says, change.at_us < query.window.to_us)
        .order_by(change.at_us)
    ):
        changes[row.node_uid].append(
            PressureChange(row.at_us, before=_PRESSURE in row.old, after=_PRESSURE in row.new)
        )
    under = node.taints.contains(_PRESSURE)
    spans: defaultdict[str, list[Span]] = defaultdict(list)
    for row in query.rows(
        sa.select(
            node.uid, node.name, node.created_us, node.gone_us, under.label("is_under")
        ).where(sa.or_(node.uid.in_(list(changes)), under))
    ):
        ends_us = query.window.to_us if row.gone_us is None else row.gone_us
        spans[row.name] += pressure_spans(
            changes.get(row.uid, []), row.created_us, ends_us, is_under=bool(row.is_under)
        )
    return {name: unite(_inside(query.window, of_node)) for name, of_node in spans.items()}


def _inside(window: Span, spans: Iterable[Span]) -> Iterator[Span]:
    """What of these spans lies in a window."""
    for span in spans:
        if span.from_us < window.to_us and span.to_us > window.from_us:
            yield Span(max(span.from_us, window.from_us), min(span.to_us, window.to_us))


def _was_removed(query: Query) -> sa.ColumnElement[bool]:
    """Whether an image left a node within the window. What left with its node wasn't removed."""
    image = schema.image_on_node.c
    node = schema.node.c
    left_before = sa.or_(node.gone_us.is_(None), image.gone_us < node.gone_us)
    return sa.and_(query.within(image.gone_us), left_before)


def _images_on_nodes() -> sa.Join:
    return schema.image_on_node.join(
        schema.node, schema.node.c.uid == schema.image_on_node.c.node_uid
    )


def _removed_images(query: Query) -> Rows:
    """By node: how many names of images were removed, and their bytes."""
    image = schema.image_on_node.c
    name = schema.node.c.name
    return query.rows(
        sa.select(name, count(), total(bounded(image.image_bytes)).label("bytes"))
        .select_from(_images_on_nodes())
        .where(_was_removed(query), ~image.image.contains("@"))
        .group_by(name)
    )


def _repeated_pulls(query: Query) -> Rows:
    """By node: how many pulls brought an image that had been removed there."""
    pull = schema.pull.c
    image = schema.image_on_node.c
    removed_before = (
        sa.select(1)
        .select_from(_images_on_nodes())
        .where(
            _was_removed(query),
            schema.node.c.name == pull.node_name,
            image.image == pull.image,
            image.gone_us <= pull.at_us,
        )
    )
    return query.rows(
        sa.select(pull.node_name, count())
        .where(query.within(pull.at_us), pull.warm.is_(False), removed_before.exists())
        .group_by(pull.node_name)
    )


def _evicted_around(query: Query, spans: Mapping[str, Sequence[Span]]) -> Iterator[str]:
    """The node of each pod that was evicted there around such a span."""
    removal = schema.preemption.c
    for row in query.rows(
        sa.select(removal.node_name, removal.at_us).where(
            query.within(removal.at_us), removal.kind == "evicted"
        )
    ):
        if any(
            span.from_us - _AROUND_US <= row.at_us < span.to_us + _AROUND_US
            for span in spans.get(row.node_name, ())
        ):
            yield row.node_name


def pressure_spans(
    changes: Sequence[PressureChange], from_us: int, to_us: int, *, is_under: bool
) -> list[Span]:
    """When one node was under pressure, by its changes.

    is_under: whether it is now, which counts where nothing changed.
    """
    # What held before the first change held from the node's beginning.
    was_under = changes[0].before if changes else is_under
    begun_us = from_us if was_under else None
    spans: list[Span] = []
    for change in changes:
        if change.after and begun_us is None:
            begun_us = change.at_us
        elif not change.after and begun_us is not None:
            spans.append(Span(begun_us, change.at_us))
            begun_us = None
    if begun_us is not None:
        spans.append(Span(begun_us, to_us))
    return spans


BY_NODE: Final = TableOf[tuple[str, NodeDisk]](
    "disks_by_node",
    "Disks by node",
    (
        Field("node", "node", Unit.TEXT, lambda row: row[0]),
        Field(
            "pressure_seconds",
            "under disk pressure",
            Unit.SECONDS,
            lambda row: row[1].pressure_us / US,
        ),
        Field("pressures", "times", Unit.COUNT, lambda row: row[1].times),
        Field("evicted", "pods evicted then", Unit.COUNT, lambda row: row[1].evicted),
        Field("removed", "images removed", Unit.COUNT, lambda row: row[1].removed),
        Field("removed_bytes", "bytes removed", Unit.BYTES, lambda row: row[1].removed_bytes),
        Field("pulled_again", "pulled again", Unit.COUNT, lambda row: row[1].pulled_again),
    ),
    lambda report: report[Disks].by_node.items(),
)
SECTION: Final = Section(
    "disks",
    "Disks",
    Disks,
    (BY_NODE,),
    (),
    about=(
        "Disk pressure, images that kubelets removed, and how often the same node pulled one of"
        " them again. What to set: docs/faster-starts.md#disks."
    ),
    nothing="No disk was under pressure, and no image was removed.",
)
