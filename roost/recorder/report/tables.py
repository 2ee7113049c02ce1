"""Lay a report out as tables: the same for the page, JSON and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.pages import table
from roost.pages.table import Cell, Column, Table, Unit
from roost.recorder.recording.model import BUILD, PLACEHOLDER, USER
from roost.recorder.report.gather import KINDS, NO_CLASS, OTHER, PULL, agreement
from roost.recorder.report.queries import CONTAINERS, IMAGES, NODE, READY, WHOLE
from roost.recorder.store.records import EVENTS, PODS, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roost.recorder.report.gather import Report
    from roost.recorder.report.statistics import Spans

US: Final = 1_000_000
# Span -> what it is, for people.
SPAN_NAMES: Final[Mapping[str, str]] = {
    WHOLE: "whole start",
    NODE: "until it has a node",
    PULL: "pull, when cold",
    CONTAINERS: "until its containers run",
    READY: "until it is ready",
}
# Likewise of a node.
NODE_SPAN_NAMES: Final[Mapping[str, str]] = {READY: SPAN_NAMES[READY], IMAGES: "until it has all images of the hub"}
KIND_NAMES: Final[Mapping[str, str]] = {
    USER: "users",
    BUILD: "builds",
    PLACEHOLDER: "placeholders",
    OTHER: "others",
}


def show(cell: Cell, unit: Unit) -> str:
    """A cell for people."""
    if unit is Unit.PHASE and isinstance(cell, str):
        return SPAN_NAMES.get(cell) or NODE_SPAN_NAMES.get(cell, cell)
    return table.show(cell, unit)


def start_names(name: str, report: Report) -> dict[tuple[str, ...], Mapping[str, Spans]]:
    """The rows of one table of starts: what it is by -> spans."""
    if name == "starts_by_class":
        return {(key[0] or NO_CLASS, key[1]): spans for key, spans in report.starts_by_class.items()}
    chosen = report.starts_by_image if name == "starts_by_image" else report.starts_by_age
    return {(key,): spans for key, spans in chosen.items()}


def starts_table(name: str, title: str, report: Report) -> Table:
    """A row for each class and profile, image or age of node (by name), and span."""
    heads = {
        "starts_by_class": (_text("pod_class", "class"), _text("scheduler", "profile")),
        "starts_by_image": (_text("image", "image"),),
        "starts_by_node_age": (_text("node_age", "node"),),
    }
    columns = (
        *heads[name],
        *_phase_columns("pods"),
    )
    rows: list[tuple[Cell, ...]] = []
    for names, spans in start_names(name, report).items():
        rows += [(*names, *cells) for cells in _phases(spans, SPAN_NAMES)]
    return Table(name, title, columns, rows)


def new_nodes_table(report: Report) -> Table:
    """A row for each span, of nodes that joined in the window."""
    return Table("new_nodes", "New nodes", tuple(_phase_columns("nodes")), list(_phases(report.nodes, NODE_SPAN_NAMES)))


def _phase_columns(what: str) -> Iterator[Column]:
    yield Column("phase", "phase", Unit.PHASE)
    yield Column(what, what, Unit.COUNT)
    for key in ("p50", "p95", "mean"):
        yield Column(f"{key}_seconds", key, Unit.SECONDS)


def _phases(spans: Mapping[str, Spans], names: Iterable[str]) -> Iterator[tuple[Cell, ...]]:
    for span in names:
        if span in spans:
            one = spans[span]
            found = (one.percentile_us(0.5), one.percentile_us(0.95), one.mean_us)
            yield (span, one.count, *(_seconds(value) for value in found))


def pulls_over_time_table(report: Report) -> Table:
    """A row for each step; no numbers where Events may be missing."""
    columns = (
        Column("from", "from (UTC)", Unit.MOMENT),
        Column("warm", "warm", Unit.COUNT),
        Column("cold", "cold", Unit.COUNT),
        Column("warm_share", "warm share", Unit.SHARE),
        _text("record", "record"),
    )
    unseen = report.unseen_steps(EVENTS)
    rows: list[tuple[Cell, ...]] = [
        (start, None, None, None, "gap") if gap else (start, one.warm, one.cold, one.warm_share, "")
        for start, one, gap in zip(report.steps.starts(), report.pulls_by_step, unseen, strict=False)
    ]
    return Table("pulls_over_time", "Pulls over time, warm and cold", columns, rows)


def pulls_table(name: str, title: str, key: str, report: Report) -> Table:
    """A row for each image or node (key), most pulls first."""
    columns = (
        _text(key, key),
        Column("cold", "cold", Unit.COUNT),
        Column("warm", "warm", Unit.COUNT),
        Column("warm_share", "warm share", Unit.SHARE),
        Column("bytes", "bytes", Unit.BYTES),
        Column("pull_seconds", "pulling", Unit.SECONDS),
        Column("wait_seconds", "in the queue", Unit.SECONDS),
    )
    found = report.pulls_by_image if key == "image" else report.pulls_by_node
    rows = [
        (named, one.cold, one.warm, one.warm_share, one.image_bytes, one.pull_us / US, one.wait_us / US)
        for named, one in found.items()
    ]
    return Table(name, title, columns, rows)


def occupancy_over_time_table(report: Report) -> Table:
    """A row for each step; no numbers where pods may be missing."""
    columns = (Column("from", "from (UTC)", Unit.MOMENT), *_kinds(), _text("record", "record"))
    unseen = report.unseen_steps(PODS)
    rows: list[tuple[Cell, ...]] = []
    for index, start in enumerate(report.steps.starts() if report.occupancy else ()):
        gap = unseen[index]
        values = [None if gap else report.occupancy[kind][index] for kind in KINDS]
        rows.append((start, *values, "gap" if gap else ""))
    return Table("occupancy_over_time", "Pods on nodes, on average in each step", columns, rows)


def occupancy_by_node_table(report: Report) -> Table:
    """A row for each node, the busiest first."""
    rows: list[tuple[Cell, ...]] = [
        (name, *(found.get(kind, 0.0) for kind in KINDS)) for name, found in report.mean_by_node.items()
    ]
    title = "Pods on each node, on average over the whole time"
    return Table("occupancy_by_node", title, (_text("node", "node"), *_kinds()), rows)


def occupancy_of_nodes_table(report: Report) -> Table:
    """A row for each of the busiest nodes and each step in which something stood there."""
    columns = (_text("node", "node"), Column("from", "from (UTC)", Unit.MOMENT), *_kinds())
    rows: list[tuple[Cell, ...]] = []
    unseen = report.unseen_steps(PODS)
    nothing = [0.0] * report.steps.number
    for name, found in report.occupancy_by_node.items():
        series = [found.get(kind, nothing) for kind in KINDS]
        for index, start in enumerate(report.steps.starts()):
            values = [one[index] for one in series]
            if any(values) and not unseen[index]:
                rows.append((name, start, *values))
    title = "Pods on the busiest nodes, on average in each step"
    return Table("occupancy_of_nodes", title, columns, rows, only_data=True)


def failures_table(report: Report) -> Table:
    """A row for each reason, most tries first."""
    columns = (
        _text("reason", "reason"),
        Column("tries", "tries", Unit.COUNT),
        Column("nodes", "nodes refused", Unit.COUNT),
    )
    rows = [(reason, one.tries, one.nodes) for reason, one in report.failures.items()]
    return Table("failures", "Tries that found no node, by reason", columns, rows)


def removals_over_time_table(report: Report) -> Table:
    """A row for each step and kind in which pods had to go."""
    columns = (
        Column("from", "from (UTC)", Unit.MOMENT),
        _text("kind", "what"),
        Column("pods", "pods", Unit.COUNT),
    )
    starts = report.steps.starts()
    removed: Iterator[tuple[int, str, int]] = (
        (starts[index], kind, number)
        for kind, by_step in report.removals_by_step.items()
        for index, number in enumerate(by_step)
        if number
    )
    rows: list[tuple[Cell, ...]] = [*sorted(removed)]
    return Table("removals_over_time", "Pre-emptions and evictions over time", columns, rows)


def removals_by_class_table(report: Report) -> Table:
    """A row for each kind and class."""
    columns = (_text("kind", "what"), _text("pod_class", "class"), Column("pods", "pods", Unit.COUNT))
    rows = [(kind, pod_class or NO_CLASS, number) for (kind, pod_class), number in sorted(report.removals.items())]
    return Table("removals_by_class", "Pre-emptions and evictions by class", columns, rows)


def verdicts_table(report: Report) -> Table:
    """A row for each scheduler profile."""
    columns = (
        _text("scheduler", "profile"),
        Column("agrees", "agrees", Unit.COUNT),
        Column("differs", "differs", Unit.COUNT),
        Column("unknown", "not judged", Unit.COUNT),
        Column("agreement", "agreement", Unit.SHARE),
    )
    rows: list[tuple[Cell, ...]] = []
    for scheduler, words in sorted(report.verdicts.items()):
        found = [words[one] for one in Verdict]
        rows.append((scheduler, *found, agreement(words)))
    return Table("model", "The scheduler's model asked again", columns, rows)


def gaps_table(report: Report) -> Table:
    """A row for each stretch in which something may be missing."""
    columns = (
        _text("kind", "what may be missing"),
        Column("from", "from (UTC)", Unit.MOMENT),
        Column("to", "to (UTC)", Unit.MOMENT),
        Column("seconds", "length", Unit.SECONDS),
        _text("why", "why"),
    )
    rows = [
        (gap.kind, gap.span.from_us, gap.span.to_us, (gap.span.to_us - gap.span.from_us) / US, gap.why)
        for gap in report.gaps
    ]
    return Table("gaps", "Gaps in the record", columns, rows)


def _kinds() -> Iterator[Column]:
    for kind in KINDS:
        yield Column(KIND_NAMES[kind], KIND_NAMES[kind], Unit.MEAN)


def _text(key: str, heading: str) -> Column:
    return Column(key, heading, Unit.TEXT)


def _seconds(span_us: float | None) -> float | None:
    return None if span_us is None else span_us / US
