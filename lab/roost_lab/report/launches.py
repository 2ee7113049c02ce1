"""Which repositories are launched most, and how many of the images that pullers brought to nodes
were used there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Final, NamedTuple, Self

import sqlalchemy as sa

from roost.controllers.contract.pod_kinds import PULLER_WORD
from roost_core.objects.fields import JSONObject
from roost_core.objects.image_references import split_reference
from roost_lab.pages.drawing import Figure, Stack
from roost_lab.pages.table import Unit, show
from roost_lab.recorder.recording.scheduler_model import PLACEHOLDER
from roost_lab.recorder.store import schema
from roost_lab.report.pulls import MAX_IMAGES, OTHER_IMAGES
from roost_lab.report.query import Query, count
from roost_lab.report.start_phases import launched_pods
from roost_lab.report.statistics import busiest
from roost_lab.report.subject import Field, Report, Section, TableOf
from roost_lab.units import US

# In the names of pods that pull popular and booked images.
POPULAR_WORD: Final = "-popular-"
# Last parts of the names of images that pullers' pods run: a pause, Roost's own, and of a hub's
# first init container.
TOOLS: Final = frozenset({"pause", "roost", "k8s-network-tools"})


class NameShare(NamedTuple):
    """The launches of one repository or image."""

    name: str
    launches: int
    # Of all launches, 0..1.
    share: float


@dataclass(slots=True)
class Brought:
    """Nodes that an image was brought to, and of each where it was used, how long afterwards that
    was first.
    """

    nodes: int = 0
    uses_us: list[int] = field(default_factory=list)

    @property
    def used_share(self) -> float | None:
        """0 to 1; None: nothing was brought."""
        return len(self.uses_us) / self.nodes if self.nodes else None

    @property
    def half_seconds(self) -> float | None:
        """Half of the first uses came within so long; None of no uses."""
        return median(self.uses_us) / US if self.uses_us else None


@dataclass(slots=True)
class Launches:
    """Launches in the window, and what pullers brought for them, for whatever pods; most first, all
    others last.
    """

    # By repository; by image where the record knows none.
    by_name: dict[str, int] = field(default_factory=dict)
    by_image: dict[str, Brought] = field(default_factory=dict)
    brought: Brought = field(default_factory=Brought)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Launches: pods of the classes that key figures are about, without seated ones that their
        users didn't come to.

        Used: any class's pod found the image there.
        """
        pull = schema.pull.c
        pod = schema.pod.c
        known = (sa.func.nullif(pod.repo, ""), sa.func.nullif(pod.image, ""))
        repository = sa.func.coalesce(*known, "not known").label("repository")
        by_repository = launched_pods(query, repository, count()).group_by(repository)
        launches = {row.repository: row.number for row in query.rows(by_repository)}
        most = busiest(launches, MAX_IMAGES)
        numbers = cls({name: launches.pop(name) for name in most})
        if launches:
            numbers.by_name[f"{len(launches):,} others"] = sum(launches.values())
        place = (pull.node_name, pull.image)
        is_cold = sa.not_(pull.warm)
        is_puller = sa.or_(pod.name.contains(PULLER_WORD), pod.name.contains(POPULAR_WORD))
        brings = sa.and_(is_cold, pod.pod_class == "", is_puller)
        places = (
            sa.select(*place)
            .join(schema.pod, pod.uid == pull.pod_uid)
            .where(query.within(pull.at_us))
        )

        def last_us(condition: sa.ColumnElement[bool], name: str) -> sa.ColumnElement[int]:
            latest = sa.func.max(sa.case((condition, pull.at_us)))
            return latest.over(partition_by=place, order_by=pull.at_us).label(name)

        uses = sa.and_(pull.warm, pod.pod_class.not_in(("", PLACEHOLDER))).label("uses")
        columns = (pull.at_us, uses, last_us(brings, "brought_us"), last_us(is_cold, "pulled_us"))
        event = (
            places.add_columns(*columns)
            .where(sa.tuple_(*place).in_(places.where(brings)))
            .subquery()
            .c
        )
        # Who pulled it again found that the node had lost what was brought.
        finds = sa.and_(event.uses, event.brought_us == event.pulled_us)
        after_us = sa.func.min(sa.case((finds, event.at_us - event.brought_us))).label("after_us")
        rows = query.rows(sa.select(event.image, after_us).group_by(event.node_name, event.image))
        brought = [
            row for row in rows if split_reference(row.image)[0].rpartition("/")[2] not in TOOLS
        ]
        images = busiest(Counter(row.image for row in brought), MAX_IMAGES)
        numbers.by_image = {image: Brought() for image in images}
        for row in brought:
            name = row.image if row.image in images else OTHER_IMAGES
            of_image = numbers.by_image.setdefault(name, Brought())
            for counts in (of_image, numbers.brought):
                counts.nodes += 1
                if row.after_us is not None:
                    counts.uses_us.append(row.after_us)
        return numbers

    @property
    def shares(self) -> list[NameShare]:
        """The launches of each repository or image."""
        total = sum(self.by_name.values())
        return [NameShare(name, number, number / total) for name, number in self.by_name.items()]


def _figure(report: Report) -> Figure | None:
    """A bar for each repository, and one for all others."""
    rows = report[Launches].shares
    stack = Stack()
    places = []
    for row in rows:
        stack.name(row.name, show(row.share, Unit.SHARE))
        places.append(stack.bar())
        stack.end()
    highest = max((row.share for row in rows), default=1.0)
    bars: JSONObject = {
        "type": "bar",
        "orientation": "h",
        "y": places,
        "width": 12,
        "marker": {"color": "--user"},
    }
    bars["x"] = [row.share for row in rows]
    bars["hovertext"] = [f"{row.name}\n{row.launches:,} launches" for row in rows]
    axis = {
        "range": [0, highest * 1.05],
        "nticks": 5,
        "tickformat": ".0%",
        "title": "share of launches",
    }
    caption = (
        "The share of launches of each repository; of an image, where the record knows no"
        " repository. A seated server is one if its user came."
    )
    return stack.figure(TABLE.name, caption, (), [bars], axis) if rows else None


TABLE: Final = TableOf[NameShare](
    "launches_by_repository",
    "Launches by repository",
    (
        Field("repository", "repository or image", Unit.TEXT, lambda row: row.name),
        Field("launches", "launches", Unit.COUNT, lambda row: row.launches),
        Field("share", "share", Unit.SHARE, lambda row: row.share),
    ),
    lambda report: report[Launches].shares,
)
BY_REPOSITORY: Final = Section(
    "launches-by-repository", TABLE.title, Launches, (TABLE,), (_figure,)
)
AHEAD_TABLE: Final = TableOf[tuple[str, Brought]](
    "pulled_ahead",
    "Images pulled ahead",
    (
        Field("image", "image", Unit.TEXT, lambda row: row[0]),
        Field("nodes", "brought to nodes", Unit.COUNT, lambda row: row[1].nodes),
        Field("used", "used there", Unit.COUNT, lambda row: len(row[1].uses_us)),
        Field("used_share", "share", Unit.SHARE, lambda row: row[1].used_share),
        Field(
            "half_within_seconds",
            "half of these within",
            Unit.SECONDS,
            lambda row: row[1].half_seconds,
        ),
    ),
    lambda report: report[Launches].by_image.items(),
)
AHEAD: Final = Section(
    "pulled-ahead",
    AHEAD_TABLE.title,
    Launches,
    (AHEAD_TABLE,),
    about=(
        "Brought by pullers (popular and booked images, too); used: a user's pod found it there"
        " afterwards, before the period's end. Of the whole cluster, whatever pods the report is"
        " about."
    ),
)
