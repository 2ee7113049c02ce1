"""Lay a sweep out as tables. Each function declares one table: its name, title, columns and rows.

Where a table stands on the page is said in sections.py; JSON has the same tables.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from roost_lab.pages.dates import US
from roost_lab.pages.phrases import show_span
from roost_lab.pages.table import Cell, Column, Table, Unit
from roost_lab.simulator.engine.costs import BY_HUB, BY_IMAGE, BY_POOL, BY_USE, OTHERS
from roost_lab.simulator.engine.results import ELSEWHERE, NOWHERE, ONLY_FULL, PARTS, TOTAL
from roost_lab.simulator.reporting.amounts import show_bound, show_change, show_value
from roost_lab.simulator.setup.checks import list_assumptions, show_assumption
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
# Table of a result's costs -> how its names are told.
COST_TABLES: Final = {BY_USE: "use", BY_POOL: "pool", BY_HUB: "users of hub", BY_IMAGE: "users of image"}
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


def every_measure(summary: Summary) -> Table:
    """For programs: a row for each world, policy and figure."""
    columns = (
        Column("world", "world", Unit.TEXT),
        _POLICY,
        Column("figure", "figure", Unit.TEXT),
        Column("unit", "unit", Unit.TEXT),
        Column("median", "median", Unit.MEAN),
        Column("least", "least", Unit.MEAN),
        Column("greatest", "greatest", Unit.MEAN),
        Column("bound", "bound", Unit.MEAN),
        Column("seeds", "seeds", Unit.COUNT),
        Column("change", "against the first policy", Unit.MEAN),
        Column("assumes", "which alone has", Unit.TEXT),
    )
    rows: list[tuple[Cell, ...]] = []
    for place, world in enumerate(summary.worlds):
        for policy in summary.policies:
            for measure in summary.occurring(place):
                value = summary.value(measure.key, policy, place)
                if value is not None:
                    change = summary.change(measure.key, policy, place)
                    head = (world.name, policy, measure.key, measure.unit.value)
                    numbers = (value.median, value.least, value.greatest, value.bound, len(value.each))
                    rows.append((*head, *numbers, None if change is None else change.median, summary.needs_of(policy)))
    return Table("figures", "All figures of all worlds", columns, rows, only_data=True)


def policies(summary: Summary, context: ReportContext) -> Table:
    """What each policy is."""
    columns: tuple[Column, ...] = (_POLICY, Column("about", "what it is", Unit.TEXT))
    rows: list[tuple[Cell, ...]] = list(context.policies.items())
    if summary.needs:
        columns = (*columns, Column("assumes", "assumed for it alone", Unit.TEXT))
        rows = [(name, about, summary.needs_of(name)) for name, about in context.policies.items()]
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


def costs(summary: Summary) -> list[Table]:
    """What the nodes cost, by use and pool, and of users by hub and image; none without pools."""
    pools = summary.worlds[0].assumptions.pools
    if pools is None:
        return []
    unit = f", {pools.currency}" if pools.currency else ""
    columns = (
        _POLICY,
        Column("by", "by", Unit.TEXT),
        Column("name", "what", Unit.TEXT),
        Column("cost", f"cost{unit}", Unit.MEAN),
        Column("share", "of all", Unit.SHARE),
    )
    rows: list[tuple[Cell, ...]] = []
    for policy in summary.policies:
        runs = [run.costs for run in summary.runs[0, policy] if run.costs]
        wholes = [sum(run[BY_USE].values()) for run in runs]
        for table, title in COST_TABLES.items():
            names = dict.fromkeys(name for run in runs for name in run[table])
            each = {name: [run[table].get(name, 0.0) for run in runs] for name in names}
            middles = {name: median(costs) for name, costs in each.items()}
            # Names by use are in order; others have the costliest first.
            listed = list(each) if table == BY_USE else sorted(each, key=lambda name: (name == OTHERS, -middles[name]))
            for name in listed:
                shares = [cost / whole for cost, whole in zip(each[name], wholes, strict=True) if whole]
                rows.append((policy, title, name, middles[name], median(shares) if shares else None))
    return [Table("costs", "What the nodes cost, medians over seeds", columns, rows)]


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
        (row.name, row.value + _otherwise(summary, row.name), "changed" if row.is_changed else "", row.about)
        for row in list_assumptions(summary.worlds[0].assumptions)
    ]
    return Table("assumptions", "Assumptions", columns, rows)


def _otherwise(summary: Summary, name: str) -> str:
    """Where single policies have another value."""
    others = [f"{policy}: {show_assumption(needs[name])}" for policy, needs in summary.needs.items() if name in needs]
    return f" ({', '.join(others)})" if others else ""


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


def caches(context: ReportContext) -> Table:
    """What one cache of so many images would hold at best."""
    columns = (
        Column("images", "images it holds", Unit.COUNT),
        Column("lru", "least recently used goes (LRU)", Unit.SHARE),
        Column("best", "best possible (Belady's MIN)", Unit.SHARE),
    )
    rows = [] if context.survey is None else [tuple(row) for row in context.survey.caches]
    return Table("caches", "Attempts that would find their image in one shared cache", columns, rows)


def disk_caches(context: ReportContext) -> Table:
    """What one cache of so many bytes would hold at best."""
    columns = (
        Column("disk_bytes", "disk, without shared layers", Unit.BYTES),
        Column("lru", "least recently used goes (LRU)", Unit.SHARE),
        Column("most", "no cache finds more (PFOO-L)", Unit.SHARE),
    )
    rows = [] if context.survey is None else [tuple(row) for row in context.survey.disks]
    return Table("disk_caches", "The same by bytes, up to a node's disk", columns, rows)


def covers(context: ReportContext) -> Table:
    """How much of a day's launches the images cover that were popular the day before."""
    columns = (
        Column("images", "yesterday's most popular images", Unit.COUNT),
        Column("share", "today's attempts of them", Unit.SHARE),
    )
    rows = [] if context.survey is None else [tuple(row) for row in context.survey.covers]
    return Table("covers", "How far pulling yesterday's popular images ahead would reach", columns, rows)
