"""Lay a sweep out as tables. Each function declares one table: its name, title, columns and rows.

Where a table stands on the page is said in sections.py; JSON has the same tables.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from roost_lab.pages.dates import US
from roost_lab.pages.phrases import show_span
from roost_lab.pages.table import Cell, Column, Table, Unit
from roost_lab.simulator.engine.results import ELSEWHERE, NOWHERE, ONLY_FULL, PARTS, TOTAL
from roost_lab.simulator.reporting.amounts import show_bound, show_change, show_value
from roost_lab.simulator.setup.checks import list_assumptions
from roost_lab.simulator.sweep.measure_registry import ALL_BOUNDS, BY_KEY, HOUR_MEASURES
from roost_lab.simulator.sweep.summary import value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_lab.simulator.reporting.context import ReportContext
    from roost_lab.simulator.sweep.summary import Summary

PART_NAMES: Final[Mapping[str, str]] = {
    "queue": "in the queue",
    "node": "for a node",
    "pull-wait": "behind other pulls",
    "pull": "pulling",
    "start": "starting",
    TOTAL: "in all",
}
# Key of a measure -> where the image of a cold start was.
WHERE_IMAGES_WERE: Final = {"cold_nowhere": NOWHERE, "cold_only_full": ONLY_FULL, "cold_elsewhere": ELSEWHERE}
SHARES: Final = (0.5, 0.9, 0.95, 0.99, 0.999)
# Measures that are shown for each world of the sweep.
SENSITIVE: Final = ("cold", "node_hours", "wait_p95")
_POLICY: Final = Column("policy", "policy", Unit.TEXT)


def side_by_side(summary: Summary) -> Table:
    """Figures as rows, policies as columns; the first world."""
    several = len(summary.seeds) > 1
    columns = (
        Column("figure", "figure", Unit.TEXT),
        *(Column(policy, policy, Unit.TEXT) for policy in summary.policies),
        Column("bound", "bound", Unit.TEXT),
    )
    rows: list[tuple[Cell, ...]] = []
    for measure in summary.occurring():
        values = [summary.value(measure.key, policy) for policy in summary.policies]
        changes = [show_change(summary.change(measure.key, policy)) for policy in summary.policies[1:]]
        cells = [
            None if value is None else f"{show_value(value, measure.unit)}{change and f', {change}'}"
            for value, change in zip(values, ("", *changes), strict=True)
        ]
        rows.append((measure.title, *cells, show_bound(measure, values)))
    title = f"Side by side, median (least to greatest) over {len(summary.seeds)} seeds" if several else "Side by side"
    if len(summary.policies) > 1:
        title += f", change against {summary.policies[0]}"
    return Table("side_by_side", title, columns, rows)


def policies(context: ReportContext) -> Table:
    """What each policy is."""
    columns = (_POLICY, Column("about", "what it is", Unit.TEXT))
    rows: list[tuple[Cell, ...]] = list(context.policies.items())
    return Table("policies", "Policies", columns, rows)


def waits(summary: Summary) -> Table:
    """How long starts took, by what they waited for."""
    names = {share: f"p{share * 100:g}" for share in SHARES}
    columns = (
        _POLICY,
        Column("part", "wait", Unit.TEXT),
        Column("starts", "starts", Unit.MEAN),
        Column("mean_seconds", "mean", Unit.SECONDS),
        *(Column(f"{name.replace('.', '')}_seconds", name, Unit.SECONDS) for name in names.values()),
    )
    rows: list[tuple[Cell, ...]] = []
    for policy in summary.policies:
        for part in (TOTAL, *PARTS):
            spans = summary.waits(policy, part)
            if spans:
                quantiles = (median(one.quantile(share) for one in spans) for share in SHARES)
                cells = (median(one.count for one in spans), median(one.mean for one in spans), *quantiles)
                rows.append((policy, PART_NAMES[part], *cells))
    return Table("waits", "Waiting, medians over seeds", columns, rows)


def why_cold(summary: Summary) -> Table:
    """Where a cold start's image was when its pod was bound."""
    columns = (
        _POLICY,
        *(Column(where.replace(" ", "_"), where, Unit.MEAN) for where in WHERE_IMAGES_WERE.values()),
    )
    rows: list[tuple[Cell, ...]] = []
    for policy in summary.policies:
        values = [summary.value(key, policy) for key in WHERE_IMAGES_WERE]
        rows.append((policy, *(None if value is None else value.median for value in values)))
    return Table("why_cold", "Where a cold start's image was, medians over seeds", columns, rows)


def over_time(summary: Summary) -> Table:
    """HOUR_MEASURES by the hour."""
    columns = (
        _POLICY,
        Column("from", "from (UTC)", Unit.TIME),
        *(Column(measure.key, measure.title, measure.unit) for measure in HOUR_MEASURES),
    )
    rows: list[tuple[Cell, ...]] = [
        (policy, begin * US, *amounts.values())
        for policy in summary.policies
        for begin, amounts in summary.over_time(policy)
    ]
    return Table("over_time", "Over time, medians over seeds", columns, rows)


def hubs(summary: Summary) -> list[Table]:
    """What each of several hubs had; none with one hub."""
    columns = (
        _POLICY,
        Column("hub", "hub", Unit.TEXT),
        Column("starts", "starts", Unit.MEAN),
        Column("cold", "cold starts", Unit.MEAN),
        Column("cold_share", "cold, of tries on a node", Unit.SHARE),
        Column("wait_p95_seconds", "wait, p95", Unit.SECONDS),
    )
    rows: list[tuple[Cell, ...]] = []
    for policy in summary.policies:
        runs = [run.hubs for run in summary.runs[0, policy] if run.hubs]
        for name in runs[0] if runs else ():
            each = [run[name] for run in runs]
            shares = [hub.cold / hub.placed for hub in each if hub.placed]
            p95 = [hub.waits.quantile(0.95) for hub in each if hub.waits.count]
            counts = median(hub.started for hub in each), median(hub.cold for hub in each)
            rows.append((policy, name, *counts, *(median(found) if found else None for found in (shares, p95))))
    return [Table("hubs", "By hub, medians over seeds", columns, rows)] if rows else []


def sensitivity(summary: Summary, name: str) -> Table:
    """What another value of the assumption `name` changes."""
    columns = (
        Column(name, name, Unit.TEXT),
        _POLICY,
        *(Column(key, BY_KEY[key].title, Unit.TEXT) for key in SENSITIVE),
    )
    rows: list[tuple[Cell, ...]] = []
    for place in summary.varied()[name]:
        for policy in summary.policies:
            values = [(summary.value(key, policy, place), BY_KEY[key].unit) for key in SENSITIVE]
            cells = [None if value is None else show_value(value, unit) for value, unit in values]
            rows.append((str(value_of(summary.worlds[place], name)), policy, *cells))
    return Table(f"by_{name}", f"What {name} changes", columns, rows)


def assumptions(summary: Summary) -> Table:
    """Every assumption of the first world."""
    columns = (
        Column("assumption", "assumption", Unit.TEXT),
        Column("value", "value", Unit.TEXT),
        Column("usual", "as usual", Unit.TEXT),
        Column("about", "what it is; [S] published, [A] assumed", Unit.TEXT),
    )
    rows: list[tuple[Cell, ...]] = [
        (row.name, row.value, "changed" if row.is_changed else "", row.about)
        for row in list_assumptions(summary.worlds[0].assumptions)
    ]
    return Table("assumptions", "Assumptions", columns, rows)


def bounds() -> Table:
    """What each bound says, and of which figure."""
    columns = (
        Column("bound", "bound", Unit.TEXT),
        Column("beside", "beside", Unit.TEXT),
        Column("says", "what it says", Unit.TEXT),
    )
    rows: list[tuple[Cell, ...]] = [(bound.key, bound.beside, bound.says) for bound in ALL_BOUNDS]
    return Table("bounds", "Bounds", columns, rows)


def lines_read(context: ReportContext) -> Table:
    """What was read of the trace, and what was skipped."""
    columns = (
        Column("what", "what", Unit.TEXT),
        Column("number", "number", Unit.COUNT),
        Column("first", "first", Unit.TEXT),
    )
    rows: list[tuple[Cell, ...]] = []
    survey = context.survey
    if survey is not None:
        counts, span = survey.counts, show_span(round(survey.window_seconds * US))
        rows += [
            ("attempts", survey.attempts, ""),
            ("distinct images", survey.images, ""),
            ("distinct repositories", survey.repositories, ""),
            (f"most attempts in {span}, while a node boots", survey.window_most, ""),
            (f"attempts in {span} but for one in a thousand", survey.window_p999, ""),
        ]
        if survey.too_large:
            rows.append(("attempts that request more than a node has", survey.too_large, survey.first_too_large))
        if counts.lines:
            rows += [("lines", counts.lines, ""), ("lines used", counts.used, "")]
        rows += [(f"lines of {name}", number, "") for name, number in counts.formats.items()]
        rows += [(f"skipped: {why}", tally.number, tally.place) for why, tally in counts.skipped.items()]
        rows += [(f"noted: {what}", tally.number, tally.place) for what, tally in counts.notes.items()]
    return Table("input", "What was read", columns, rows)
