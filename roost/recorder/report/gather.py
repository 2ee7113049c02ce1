"""Gather what a report tells: start phases, pulls, occupancy, failures, removals and the model's verdicts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost.recorder.recording.model import BUILD, PLACEHOLDER, USER
from roost.recorder.report.queries import AGE_NAMES, MOST_STEPS, Asking, Extent, asking, read_extent
from roost.recorder.report.statistics import (
    Edges,
    Span,
    Spans,
    Steps,
    busiest,
    covered,
    cut,
    edge_at,
    means,
    share,
    unite,
)
from roost.recorder.store.records import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Row

    from roost.recorder.store.database import Store

DAY_US: Final = 24 * 3600 * 1_000_000
# A report without --since reaches so far back.
USUAL_US: Final = 7 * DAY_US
# Images with a line of their own; the others share one.
MOST_IMAGES: Final = 12
# Nodes whose occupancy is told step by step; all others are told as one number each.
MOST_NODES: Final = 50
MOST_REASONS: Final = 20
# (class, scheduler) of most pods; a cluster has a handful.
MOST_PAIRS: Final = 100
OTHER: Final = "other"
OTHER_IMAGES: Final = "all other images"
NO_CLASS: Final = "no class"
NO_REASON: Final = "no reason given"
# What stands on a node, in the order in which it is stacked.
KINDS: Final = (USER, BUILD, PLACEHOLDER, OTHER)
# The span of pulls, beside those of queries.py.
PULL: Final = "pull"


class Gap(NamedTuple):
    """A stretch in which something may be missing."""

    # pods, nodes, events, or everything.
    kind: str
    span: Span
    why: str


EVERYTHING: Final = "everything"


class StartKey(NamedTuple):
    """What a histogram of starts is about."""

    span: str
    pod_class: str
    scheduler: str
    age: str


@dataclass(slots=True)
class Pulls:
    """Pulls of one image or to one node."""

    warm: int = 0
    cold: int = 0
    image_bytes: int = 0
    pull_us: int = 0
    wait_us: int = 0

    @property
    def warm_share(self) -> float | None:
        """0 to 1; None of no pulls."""
        return share(self.warm, self.cold)

    def add(self, other: Pulls) -> None:
        """Count another's too."""
        self.warm += other.warm
        self.cold += other.cold
        self.image_bytes += other.image_bytes
        self.pull_us += other.pull_us
        self.wait_us += other.wait_us


@dataclass(slots=True)
class Failure:
    """One reason why no node was found."""

    # Failed tries in which at least one node had this reason, and nodes that had it, summed over them.
    tries: int = 0
    nodes: int = 0


@dataclass(slots=True)
class Report:
    """All numbers of a report. What isn't known is absent, never 0."""

    window: Span
    # None: the database has no records at all.
    extent: Extent | None
    steps: Steps
    gaps: list[Gap] = field(default_factory=list)
    # Rows by table, of the window.
    counts: Mapping[str, int] = field(default_factory=dict)
    # The classes that the two below are about.
    start_classes: Sequence[str] = ()
    # Name -> span -> spans; names in the order of the page.
    starts_by_image: dict[str, dict[str, Spans]] = field(default_factory=dict)
    starts_by_age: dict[str, dict[str, Spans]] = field(default_factory=dict)
    # (pod class, scheduler) -> span -> spans.
    starts_by_class: dict[tuple[str, str], dict[str, Spans]] = field(default_factory=dict)
    starts: dict[StartKey, Spans] = field(default_factory=dict)
    # Span -> spans, of new nodes.
    nodes: dict[str, Spans] = field(default_factory=dict)
    pulls_by_step: list[Pulls] = field(default_factory=list)
    pulls_by_image: dict[str, Pulls] = field(default_factory=dict)
    pulls_by_node: dict[str, Pulls] = field(default_factory=dict)
    # Kind -> pods there on average, by step.
    occupancy: dict[str, list[float]] = field(default_factory=dict)
    # Node -> the same; the busiest nodes only.
    occupancy_by_node: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    # Node -> kind -> pods there on average over the window; all nodes, busiest first.
    mean_by_node: dict[str, dict[str, float]] = field(default_factory=dict)
    # Tries that found no node.
    failed_tries: int = 0
    # Most tries first.
    failures: dict[str, Failure] = field(default_factory=dict)
    # (kind, class) -> pods, and kind -> pods by step.
    removals: Counter[tuple[str, str]] = field(default_factory=Counter)
    removals_by_step: dict[str, list[int]] = field(default_factory=dict)
    # Scheduler -> word -> bindings.
    verdicts: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all was recorded in the window."""
        return not any(self.counts.values()) and not any(any(row) for row in self.occupancy.values())

    def unseen(self, kind: str) -> list[Span]:
        """The stretches of the window in which things of a kind may be missing."""
        return unite(gap.span for gap in self.gaps if gap.kind in (kind, EVERYTHING))

    def unseen_steps(self, kind: str) -> list[bool]:
        """The steps that lie in those stretches by half or more."""
        return covered(self.steps, self.unseen(kind))

    @property
    def whole_starts(self) -> Spans:
        """From creation to ready, of the pods that the report by image is about."""
        return _total(self.starts_by_image, "whole")

    @property
    def pulls(self) -> Pulls:
        """All pulls."""
        total = Pulls()
        for pulls in self.pulls_by_node.values():
            total.add(pulls)
        return total

    @property
    def agreement(self) -> float | None:
        """The share of judged bindings that the model agrees with."""
        verdicts = sum(self.verdicts.values(), Counter())
        return agreement(verdicts)


def agreement(verdicts: Mapping[str, int]) -> float | None:
    """The share of judged bindings that agree; None when none was judged."""
    return share(verdicts.get(Verdict.AGREES, 0), verdicts.get(Verdict.DIFFERS, 0))


def gather(store: Store, since_us: int | None = None, until_us: int | None = None) -> Report:
    """Read all numbers. since_us: default a week back, as far as there are records. Raises StoreError."""
    with asking(store) as connection:
        extent = read_extent(connection)
        window = choose_window(extent, since_us, until_us)
        report = Report(window, extent, cut(window.from_us, window.to_us, MOST_STEPS))
        if extent is None:
            return report
        asked = Asking(connection, window)
        report.gaps = [*_around(window, extent), *(Gap(kind, span, why) for kind, span, why in asked.gaps())]
        kinds = list(asked.kinds())
        report.counts = asked.counts() | {"pod": sum(row.pods for row in kinds)}
        _gather_starts(report, asked, kinds)
        for row in asked.new_nodes():
            report.nodes.setdefault(row.span, Spans()).add(edge_at(row.edge), row.number, row.sum_us)
        _gather_pulls(report, asked)
        _gather_occupancy(report, asked)
        _gather_failures(report, asked)
        _gather_removals(report, asked)
        for row in asked.verdicts():
            report.verdicts.setdefault(row.scheduler, Counter())[row.model] += row.number
    return report


def choose_window(extent: Extent | None, since_us: int | None, until_us: int | None) -> Span:
    """The time to tell of."""
    if extent is None:
        to_us = until_us if until_us is not None else (since_us or 0) + 1
        return Span(since_us if since_us is not None else to_us - 1, to_us)
    to_us = until_us if until_us is not None else max(extent.to_us, (since_us or 0) + 1)
    from_us = since_us if since_us is not None else max(extent.from_us, to_us - USUAL_US)
    return Span(min(from_us, to_us - 1), to_us)


def _around(window: Span, extent: Extent) -> Iterable[Gap]:
    """What the window has before and after the record."""
    if window.from_us < extent.from_us:
        yield Gap(EVERYTHING, Span(window.from_us, min(extent.from_us, window.to_us)), "recording had not begun")
    if window.to_us > extent.to_us:
        yield Gap(EVERYTHING, Span(max(extent.to_us, window.from_us), window.to_us), "nothing was recorded since")


def _gather_starts(report: Report, asked: Asking, kinds: Sequence[Row[Any]]) -> None:
    pods: Counter[tuple[str, str]] = Counter()
    for kind in kinds:
        pods[kind.pod_class, kind.scheduler] += kind.pods
    pairs = busiest(pods, MOST_PAIRS)
    classes = sorted({pod_class for pod_class, _ in pairs})
    # Placeholders start an image of nothing; pods of no class are the cluster's own, unless there are no others.
    chosen = [name for name in classes if name not in ("", PLACEHOLDER)]
    chosen = chosen or [name for name in classes if name != PLACEHOLDER]
    report.start_classes = chosen
    by_name: Counter[str] = Counter()
    for kind in kinds:
        if kind.pod_class in chosen and kind.image:
            by_name[kind.image] += kind.pods
    images = busiest(by_name, MOST_IMAGES)
    names = [*images, OTHER_IMAGES]
    by_image = report.starts_by_image = {name: {} for name in names}
    by_age = report.starts_by_age = {name: {} for name in AGE_NAMES}
    of_kind = {kind.id: kind for kind in kinds}
    for row in asked.starts():
        kind = of_kind[row.kind_id]
        pair = (kind.pod_class, kind.scheduler)
        if pair not in pairs:
            continue
        targets = [
            report.starts_by_class.setdefault(pair, {}).setdefault(row.span, Spans()),
            report.starts.setdefault(StartKey(row.span, *pair, row.age), Spans()),
        ]
        if kind.pod_class in chosen:
            image = kind.image if kind.image in by_image else OTHER_IMAGES
            targets.append(by_image[image].setdefault(row.span, Spans()))
            targets.append(by_age[row.age].setdefault(row.span, Spans()))
        for spans in targets:
            spans.add(row.edge_us, row.number, row.sum_us)
    for pull in asked.cold_pulls(images):
        by_image[names[pull.image]].setdefault(PULL, Spans()).add(edge_at(pull.edge), pull.number, pull.sum_us)
    for named in (by_image, by_age):
        for name in [name for name, spans in named.items() if not spans]:
            del named[name]
    order = sorted(report.starts_by_class, key=lambda key: (-_count(report.starts_by_class[key]), key))
    report.starts_by_class = {key: report.starts_by_class[key] for key in order}


def _count(spans: Mapping[str, Spans]) -> int:
    return max((one.count for one in spans.values()), default=0)


def _total(named: Mapping[str, Mapping[str, Spans]], span: str) -> Spans:
    total = Spans()
    for spans in named.values():
        if span in spans:
            total.merge(spans[span])
    return total


def _gather_pulls(report: Report, asked: Asking) -> None:
    report.pulls_by_step = [Pulls() for _ in range(report.steps.number)]
    for row in asked.pulls_by_step(report.steps):
        report.pulls_by_step[row.step].add(_pulls(row.warm, row.number))
    by_image: dict[str, Pulls] = {}
    by_node: dict[str, Pulls] = {}
    for row in asked.pulls():
        one = _pulls(row.warm, row.number)
        one.image_bytes, one.pull_us, one.wait_us = row.bytes, row.pull_us, row.wait_us
        by_image.setdefault(row.image, Pulls()).add(one)
        by_node.setdefault(row.node_name, Pulls()).add(one)
    report.pulls_by_node = {name: by_node[name] for name in _most_pulled(by_node)}
    names = _most_pulled(by_image)
    report.pulls_by_image = {name: by_image[name] for name in names[:MOST_IMAGES]}
    if len(names) > MOST_IMAGES:
        rest = report.pulls_by_image[OTHER_IMAGES] = Pulls()
        for name in names[MOST_IMAGES:]:
            rest.add(by_image[name])


def _most_pulled(found: Mapping[str, Pulls]) -> list[str]:
    return busiest({name: one.warm + one.cold for name, one in found.items()}, len(found))


def _pulls(warm: bool, number: int) -> Pulls:
    return Pulls(warm=number) if warm else Pulls(cold=number)


def _gather_occupancy(report: Report, asked: Asking) -> None:
    steps = report.steps
    edges: dict[str, dict[str, Edges]] = {}
    total = {kind: Edges() for kind in KINDS}
    for row in asked.stays(steps):
        kind = row.pod_class if row.pod_class in KINDS else OTHER
        for one in (edges.setdefault(row.node_name, {}).setdefault(kind, Edges()), total[kind]):
            one.add(row.step, row.number, row.after_us)
    report.occupancy = {kind: means(total[kind], steps) for kind in KINDS}
    loads: dict[str, float] = {}
    by_node: dict[str, dict[str, float]] = {}
    for name, kinds in edges.items():
        by_node[name] = {kind: sum(means(one, steps)) / steps.number for kind, one in kinds.items()}
        # Users first: a node full of placeholders is an idle one.
        loads[name] = by_node[name].get(USER, 0.0) * 1000 + sum(by_node[name].values())
    names = busiest(loads, len(loads))
    report.mean_by_node = {name: by_node[name] for name in names if any(by_node[name].values())}
    for name in names[:MOST_NODES]:
        report.occupancy_by_node[name] = {kind: means(one, steps) for kind, one in edges[name].items()}


def _gather_failures(report: Report, asked: Asking) -> None:
    found: dict[str, Failure] = {}
    for row in asked.failures():
        report.failed_tries += row.tries
        reasons: dict[str, int] = json.loads(row.reasons) or {NO_REASON: 0}
        for reason, nodes in reasons.items():
            one = found.setdefault(reason, Failure())
            one.tries += row.tries
            one.nodes += nodes * row.tries
    names = busiest({reason: one.tries for reason, one in found.items()}, MOST_REASONS)
    report.failures = {name: found[name] for name in names}


def _gather_removals(report: Report, asked: Asking) -> None:
    for row in asked.victims(report.steps):
        report.removals[row.kind, row.pod_class] += row.number
        by_step = report.removals_by_step.setdefault(row.kind, [0] * report.steps.number)
        by_step[row.step] += row.number
    # The kind that is drawn below comes first, the same in every report.
    report.removals_by_step = dict(sorted(report.removals_by_step.items(), reverse=True))
