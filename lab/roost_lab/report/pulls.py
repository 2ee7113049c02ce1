"""Image pulls: warm and cold, over time, by image and by node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from operator import add
from typing import Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.drawing import Figure, Mark
from roost_lab.pages.phrases import show_span
from roost_lab.pages.table import Unit
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import EVENTS
from roost_lab.report.gaps import gap_steps
from roost_lab.report.query import Query, bounded, count, total
from roost_lab.report.statistics import busiest
from roost_lab.report.subject import Field, Report, Section, TableOf
from roost_lab.report.timeline import step_bars, time_figure
from roost_lab.units import US

# Images with a row of their own; the others share one.
MAX_IMAGES: Final = 12
OTHER_IMAGES: Final = "all other images"


@dataclass(slots=True)
class PullCounts:
    """Pulls of one image, to one node or in one step."""

    warm: int = 0
    cold: int = 0
    image_bytes: int = 0
    # Without, and only, the time in the kubelet's queue.
    pull_us: int = 0
    wait_us: int = 0

    @property
    def number(self) -> int:
        """Warm and cold."""
        return self.warm + self.cold

    @property
    def warm_share(self) -> float | None:
        """0 to 1; None of no pulls."""
        return self.warm / self.number if self.number else None

    def __add__(self, other: PullCounts) -> PullCounts:
        return PullCounts(*map(add, astuple(self), astuple(other)))


@dataclass(slots=True)
class Pulls:
    """Pulls within the window; by name: most pulls first."""

    by_step: list[PullCounts] = field(default_factory=list)
    by_image: dict[str, PullCounts] = field(default_factory=dict)
    by_node: dict[str, PullCounts] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query) -> Self:
        """Two queries: by step, and by image and node."""
        pull = schema.pull.c
        by_step = [PullCounts() for _ in range(query.steps.number)]
        step = query.step(pull.at_us)
        of_steps = (
            sa.select(step, pull.warm, count())
            .where(query.within(pull.at_us, pull.pod_uid))
            .group_by(step, pull.warm)
        )
        for row in query.rows(of_steps):
            by_step[row.step] += _counts(row)
        of_images: defaultdict[str, PullCounts] = defaultdict(PullCounts)
        by_node: defaultdict[str, PullCounts] = defaultdict(PullCounts)
        for row in query.rows(
            sa.select(
                pull.image,
                pull.node_name,
                pull.warm,
                count(),
                total(bounded(pull.image_bytes)).label("bytes"),
                total(bounded(pull.pull_us)).label("pull_us"),
                total(bounded(pull.pull_and_wait_us - pull.pull_us)).label("wait_us"),
            )
            .where(query.within(pull.at_us, pull.pod_uid))
            .group_by(pull.node_name, pull.image, pull.warm)
        ):
            counts = _counts(row)
            counts.image_bytes = row.bytes
            counts.pull_us = row.pull_us
            counts.wait_us = row.wait_us
            of_images[row.image] += counts
            by_node[row.node_name] += counts
        by_image = _most_pulled(of_images)
        others = [by_image.pop(image) for image in list(by_image)[MAX_IMAGES:]]
        if others:
            by_image[OTHER_IMAGES] = sum(others, PullCounts())
        return cls(by_step, by_image, _most_pulled(by_node))

    @property
    def total(self) -> PullCounts:
        """All pulls."""
        return sum(self.by_node.values(), PullCounts())


def _counts(row: sa.Row[tuple[object, ...]]) -> PullCounts:
    return PullCounts(warm=row.number) if row.warm else PullCounts(cold=row.number)


def _most_pulled(by_name: Mapping[str, PullCounts]) -> dict[str, PullCounts]:
    names = busiest({name: counts.number for name, counts in by_name.items()}, len(by_name))
    return {name: by_name[name] for name in names}


def pulls_table(
    kind: str, by_name: Callable[[Pulls], Mapping[str, PullCounts]]
) -> TableOf[tuple[str, PullCounts]]:
    """A row for each image or node."""
    return TableOf(
        f"pulls_by_{kind}",
        f"Pulls by {kind}",
        (
            Field(kind, kind, Unit.TEXT, lambda row: row[0]),
            Field("cold", "cold", Unit.COUNT, lambda row: row[1].cold),
            Field("warm", "warm", Unit.COUNT, lambda row: row[1].warm),
            Field("warm_share", "warm share", Unit.SHARE, lambda row: row[1].warm_share),
            Field("bytes", "bytes", Unit.BYTES, lambda row: row[1].image_bytes),
            Field("pull_seconds", "pulling", Unit.SECONDS, lambda row: row[1].pull_us / US),
            Field("wait_seconds", "in the queue", Unit.SECONDS, lambda row: row[1].wait_us / US),
        ),
        lambda report: by_name(report[Pulls]).items(),
    )


class _Step(NamedTuple):
    """A step with its pulls; None: Events may be missing."""

    from_us: int
    pulls: PullCounts | None

    @property
    def warm(self) -> int | None:
        return None if self.pulls is None else self.pulls.warm

    @property
    def cold(self) -> int | None:
        return None if self.pulls is None else self.pulls.cold

    @property
    def warm_share(self) -> float | None:
        return None if self.pulls is None else self.pulls.warm_share


def _steps(report: Report) -> list[_Step]:
    steps = zip(report.steps.starts(), _seen_steps(report), strict=False)
    return [_Step(from_us, pulls) for from_us, pulls in steps]


OVER_TIME: Final = TableOf[_Step](
    "pulls_over_time",
    "Pulls over time, warm and cold",
    (
        Field("from", "from", Unit.TIME, lambda step: step.from_us),
        Field("warm", "warm", Unit.COUNT, lambda step: step.warm),
        Field("cold", "cold", Unit.COUNT, lambda step: step.cold),
        Field("warm_share", "warm share", Unit.SHARE, lambda step: step.warm_share),
        Field("record", "record", Unit.TEXT, lambda step: "" if step.pulls else "gap"),
    ),
    _steps,
)


def _seen_steps(report: Report) -> list[PullCounts | None]:
    """Pulls in each step, None where Events may be missing; no steps of a database without
    records.
    """
    steps = zip(report[Pulls].by_step, gap_steps(report, EVENTS), strict=False)
    return [None if gap else counts for counts, gap in steps]


def _over_time_figure(report: Report) -> Figure | None:
    """Warm and cold pulls in each step."""
    if not any(counts.number for counts in report[Pulls].by_step):
        return None
    steps = _seen_steps(report)
    data = [
        step_bars(
            report, "already there", "--warm", [counts.warm if counts else None for counts in steps]
        ),
        step_bars(
            report, "downloaded", "--cold", [counts.cold if counts else None for counts in steps]
        ),
    ]
    caption = "Pulls in each step, by whether they found the image on the node."
    marks = (Mark("--warm", "already on the node"), Mark("--cold", "downloaded"))
    return time_figure(
        report,
        EVENTS,
        "pulls_over_time",
        caption,
        marks=marks,
        data=data,
        height=260,
        counted=f"pulls in {show_span(report.steps.step_us)}",
    )


SECTION: Final = Section(
    "warm-share",
    "Images: on the node, or downloaded",
    Pulls,
    (
        OVER_TIME,
        pulls_table("image", lambda pulls: pulls.by_image),
        pulls_table("node", lambda pulls: pulls.by_node),
    ),
    (_over_time_figure,),
    "Kubelets tell of each image of a pod whether the node had it (warm) or downloaded it (cold)."
    " What they didn't tell isn't counted.",
    "No pull was recorded in this period.",
)
