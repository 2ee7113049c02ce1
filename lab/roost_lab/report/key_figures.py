"""The key figures at the head of the page, each beside that of the time before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from roost_lab.pages.html_page import Tile
from roost_lab.pages.phrases import plural
from roost_lab.pages.table import Cell, Unit
from roost_lab.report.failed_scheduling_attempts import Failures
from roost_lab.report.imported import Imported
from roost_lab.report.launches import Launches
from roost_lab.report.pulls import Pulls
from roost_lab.report.removals import Removals, removed_others, removed_users, room_given
from roost_lab.report.seated import Seated, seated_about
from roost_lab.report.sentence import idle_seconds, leaves_gaps_out, more_seconds
from roost_lab.report.slow_starts import StartTimes
from roost_lab.report.start_phases import WindowStarts, show, until
from roost_lab.report.statistics import FEWEST
from roost_lab.report.subject import Field, Numbers, Report, Section, TableOf
from roost_lab.report.usage import Usage
from roost_lab.units import HOUR_SECONDS, US

# The figures that the page begins with: how long people wait, what for, and what the nodes cost.
FIRST: Final = ("start_p95", "cold_starts", "node_hours")


class KeyFigure(NamedTuple):
    """One number of the whole window."""

    # In JSON.
    key: str
    name: str
    unit: Unit
    value: Callable[[Report], Cell]
    about: Callable[[Report], str]


# What they are made of.
SUBJECTS: Final[tuple[type[Numbers], ...]] = (
    WindowStarts,
    StartTimes,
    Pulls,
    Failures,
    Removals,
    Usage,
    Launches,
    Seated,
)


def tiles(report: Report) -> list[Tile]:
    """The head of the page: the figures of FIRST, then the others."""
    made = []
    rows = sorted(_rows(report), key=lambda row: _FIGURES_ORDER.get(row[0].key, len(FIRST)))
    for figure, value, previous in rows:
        about = figure.about(report)
        if previous is not None:
            about += f"; before: {show(previous, figure.unit)}"
        made.append(Tile(figure.name, show(value, figure.unit), about))
    return made


def _rows(report: Report) -> Iterator[tuple[KeyFigure, Cell, Cell]]:
    """Each figure of the report, and of the time before."""
    before = report.previous
    if report.is_empty:
        return
    are_seated = any(of_time[Seated].by_hub for of_time in (report, before or report))
    for figure in _FIGURES:
        # Few hubs seat anybody.
        if figure.key == "seated_starts" and not are_seated:
            continue
        yield figure, figure.value(report), None if before is None else figure.value(before)


def _percentile(share: float) -> Callable[[Report], Cell]:
    return lambda report: report[WindowStarts].whole.percentile_seconds(share)


def _starts_about(report: Report) -> str:
    starts = report[WindowStarts]
    about = f"{until(starts)}; class {', '.join(starts.leading) or 'all'}"
    if starts.unended and not report[Imported].pods:
        about += f"; {starts.unended:,} more didn't end"
    return about


def _failed(report: Report) -> Cell:
    starts = report[WindowStarts]
    return starts.failed if starts.answered else None


def _failed_about(report: Report) -> str:
    if not report[WindowStarts].answered:
        return "not known: no hub's log was read"
    return "given up by their hub, or gone before it answered"


def _slow_about(report: Report) -> str:
    if report[WindowStarts].whole.count < FEWEST:
        return "the slowest, of so few"
    middle_us = report[WindowStarts].whole.percentile_us(0.5)
    return f"half took {show((middle_us or 0) / US, Unit.SECONDS)} at most"


def _cold_starts(report: Report) -> Cell:
    return report[StartTimes].cold.count if report[Pulls].total.number else None


def _cold_about(report: Report) -> str:
    more = more_seconds(report)
    times = report[StartTimes]
    of = f"of {plural(times.cold.count + times.others.count, 'start')}"
    return f"{of}; {show(more, Unit.SECONDS)} more at the median" if more else of


def _brought_about(report: Report) -> str:
    brought = report[Launches].brought
    return f"{len(brought.uses_us):,} of {brought.nodes:,} that pullers brought to nodes"


def _removed_about(report: Report) -> str:
    others = removed_others(report)
    besides = f"; besides {others}" if others else ""
    return f"pre-empted or evicted{besides}"


def _only_placeholders_hours(report: Report) -> Cell:
    idle = idle_seconds(report)
    return None if idle is None else sum(idle) / HOUR_SECONDS


def _only_placeholders_about(report: Report) -> str:
    about = f"node-hours; on {plural(len(idle_seconds(report) or ()), 'node')}"
    return f"{about}; without gaps of the record" if leaves_gaps_out(report) else about


def _node_hours_about(report: Report) -> str:
    """Beside what placeholders alone took, what they saved."""
    usage = report[Usage]
    about = f"of {plural(usage.nodes, 'node')}"
    if usage.went_in_gap:
        about += f"; {usage.went_in_gap:,} gone in a gap of the record, counted to its end"
    alone = _only_placeholders_hours(report)
    if isinstance(alone, float) and alone:
        about += f"; {show(alone, Unit.MEAN)} with placeholders alone"
        if leaves_gaps_out(report):
            about += ", without gaps"
    given = room_given(report)
    return f"{about}; {plural(given, 'placeholder')} gave way to a pod" if given else about


_FIGURES: Final = (
    KeyFigure(
        "starts",
        "Starts",
        Unit.COUNT,
        lambda report: report[WindowStarts].whole.count,
        _starts_about,
    ),
    KeyFigure("failed_starts", "Failed starts", Unit.COUNT, _failed, _failed_about),
    KeyFigure(
        "seated_starts",
        "Seated before class",
        Unit.COUNT,
        lambda report: report[Seated].all.number,
        lambda report: seated_about(report) or "nobody waited for them",
    ),
    KeyFigure(
        "users",
        "Users",
        Unit.COUNT,
        lambda report: report[Usage].users,
        lambda _: "that started something, by their pods' names",
    ),
    KeyFigure(
        "start_p50", "Typical start", Unit.SECONDS, _percentile(0.5), lambda _: "the median (p50)"
    ),
    KeyFigure(
        "start_p95", "95 of 100 starts took at most", Unit.SECONDS, _percentile(0.95), _slow_about
    ),
    KeyFigure("cold_starts", "Waited for an image", Unit.COUNT, _cold_starts, _cold_about),
    KeyFigure(
        "warm_share",
        "Image was on the node",
        Unit.SHARE,
        lambda report: report[Pulls].total.warm_share,
        lambda report: f"of {report[Pulls].total.number:,} pulls that kubelets told of",
    ),
    KeyFigure(
        "pulled_ahead_used",
        "Pulled ahead, used",
        Unit.SHARE,
        lambda report: report[Launches].brought.used_share,
        _brought_about,
    ),
    KeyFigure(
        "failed_tries",
        "Failed attempts",
        Unit.COUNT,
        lambda report: report[Failures].tries,
        lambda _: "to find a node",
    ),
    KeyFigure("removed_users", "Users removed", Unit.COUNT, removed_users, _removed_about),
    KeyFigure(
        "node_hours",
        "Node-hours",
        Unit.MEAN,
        lambda report: report[Usage].node_hours,
        _node_hours_about,
    ),
    KeyFigure(
        "only_placeholders_hours",
        "Only placeholders",
        Unit.MEAN,
        _only_placeholders_hours,
        _only_placeholders_about,
    ),
)
_FIGURES_ORDER: Final = {key: place for place, key in enumerate(FIRST)}
TABLE: Final = TableOf[tuple[KeyFigure, Cell, Cell]](
    "key_figures",
    "Key figures",
    (
        Field("figure", "figure", Unit.TEXT, lambda row: row[0].key),
        Field("unit", "unit", Unit.TEXT, lambda row: row[0].unit.value),
        Field("value", "value", Unit.MEAN, lambda row: row[1]),
        Field("previous", "the time before", Unit.MEAN, lambda row: row[2]),
    ),
    _rows,
    only_data=True,
)
SECTION: Final = Section("key-figures", TABLE.title, WindowStarts, (TABLE,))
