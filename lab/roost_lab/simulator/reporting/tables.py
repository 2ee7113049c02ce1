"""Lay a sweep out as tables. Each function declares one table: its name, title, columns and rows.

Where a table stands on the page is said in page.py; JSON and terminal have the same tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from roost_lab.pages.table import Cell, Column, Table, Unit
from roost_lab.simulator.engine.bounds import BOUNDS
from roost_lab.simulator.reporting.amounts import show_bound, show_change, show_value
from roost_lab.simulator.reporting.context import ReportContext
from roost_lab.simulator.setup.checks import list_assumptions
from roost_lab.simulator.sweep.measures import BY_KEY
from roost_lab.simulator.sweep.summary import Summary

# Measures that are shown for each world of the sweep.
SENSITIVE: Final = ("cold", "node_hours", "wait_p95")
_POLICY: Final = Column("policy", "policy", Unit.TEXT)


def _texts(**headings: str) -> tuple[Column, ...]:
    return tuple(Column(key, heading, Unit.TEXT) for key, heading in headings.items())


def side_by_side(summary: Summary, policies: Sequence[str], *, with_changes: bool = True) -> Table:
    """Figures as rows, policies as columns; the first world."""
    of_policies = (Column(policy, policy, Unit.MEAN) for policy in policies)
    columns = (
        Column("figure", "figure", Unit.TEXT),
        *of_policies,
        Column("bound", "bound", Unit.MEAN),
    )
    first = summary.policies[0]
    rows: list[tuple[Cell, ...]] = []
    for measure in summary.occurring():
        values = [summary.value(measure.key, policy) for policy in policies]
        cells: list[Cell] = []
        for policy, value in zip(policies, values, strict=True):
            is_compared = with_changes and policy != first
            change = show_change(summary.change(measure.key, policy)) if is_compared else ""
            cells.append(
                None
                if value is None
                else f"{show_value(value, measure.unit)}{change and f', {change}'}"
            )
        rows.append((measure.title, *cells, show_bound(measure, values) or ""))
    several = len(summary.seeds) > 1
    title = (
        f"Side by side, median (least to greatest) over {len(summary.seeds)} seeds"
        if several
        else "Side by side"
    )
    if len(policies) > 1 and with_changes:
        title += f", change against {first}"
    return Table("side_by_side", title, columns, rows)


def policies(context: ReportContext) -> Table:
    """What each policy is."""
    columns = (_POLICY, Column("about", "what it is", Unit.TEXT))
    rows: list[tuple[Cell, ...]] = list(context.policies.items())
    return Table("policies", "Policies", columns, rows)


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
        if runs:
            for name in runs[0]:
                of_hub = [run[name] for run in runs]
                shares = [hub.cold / hub.placed for hub in of_hub if hub.placed]
                p95 = [hub.waits.quantile(0.95) for hub in of_hub if hub.waits.count]
                counts = median(hub.started for hub in of_hub), median(hub.cold for hub in of_hub)
                rows.append(
                    (
                        policy,
                        name,
                        *counts,
                        *(median(found) if found else None for found in (shares, p95)),
                    )
                )
    return [Table("hubs", "By hub, medians over seeds", columns, rows)] if rows else []


def sensitivity(summary: Summary, name: str) -> Table:
    """What another value of the assumption `name` changes."""
    figures = (Column(key, BY_KEY[key].title, Unit.MEAN) for key in SENSITIVE)
    columns = (Column(name, name, Unit.TEXT), _POLICY, *figures)
    rows: list[tuple[Cell, ...]] = []
    for place in summary.varied()[name]:
        for policy in summary.policies:
            values = [(summary.value(key, policy, place), BY_KEY[key].unit) for key in SENSITIVE]
            cells = [None if value is None else show_value(value, unit) for value, unit in values]
            rows.append((str(getattr(summary.worlds[place].assumptions, name)), policy, *cells))
    return Table(f"by_{name}", f"What {name} changes", columns, rows)


def assumptions(summary: Summary) -> Table:
    """Every assumption of the first world."""
    about = "what it is; [S] published, [A] assumed"
    columns = _texts(assumption="assumption", value="value", usual="as usual", about=about)
    rows: list[tuple[Cell, ...]] = [
        (row.name, row.value, "changed" if row.is_changed else "", row.about)
        for row in list_assumptions(summary.worlds[0].assumptions)
    ]
    return Table("assumptions", "Assumptions", columns, rows)


def bounds() -> Table:
    """What each bound says, and of which figure."""
    columns = _texts(bound="bound", beside="beside", says="what it says")
    rows: list[tuple[Cell, ...]] = [(bound.key, bound.beside, bound.says) for bound in BOUNDS]
    return Table("bounds", "Bounds", columns, rows)


def lines_read(context: ReportContext) -> Table:
    """What was read of the trace, and what was skipped."""
    columns = (*_texts(what="what"), Column("number", "number", Unit.COUNT), *_texts(first="first"))
    survey = context.survey
    counts = context.survey.counts
    rows: list[tuple[Cell, ...]] = [
        ("attempts", survey.attempts, ""),
        ("distinct images", survey.images, ""),
        ("distinct repositories", survey.repositories, ""),
    ]
    if survey.too_large:
        rows.append(
            ("attempts that request more than a node has", survey.too_large, survey.first_too_large)
        )
    if counts.lines:
        rows += [("lines", counts.lines, ""), ("lines used", counts.used, "")]
    rows += [(f"lines of {name}", number, "") for name, number in counts.formats.items()]
    rows += [
        (f"skipped: {why}", tally.number, tally.place) for why, tally in counts.skipped.items()
    ]
    rows += [(f"noted: {what}", tally.number, tally.place) for what, tally in counts.notes.items()]
    return Table("input", "What was read", columns, rows)
