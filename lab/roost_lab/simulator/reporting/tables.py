"""Make the tables of a sweep. Each function makes one: its name, title, columns and rows.

page.py says where a table stands on the page. JSON has the same tables, the terminal some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from roost_lab.pages.table import Cell, Column, Table, Unit
from roost_lab.simulator.engine.bounds import BOUNDS
from roost_lab.simulator.engine.results import HubResult
from roost_lab.simulator.reporting.amounts import show_bound, show_change, show_value
from roost_lab.simulator.reporting.context import ReportContext
from roost_lab.simulator.setup.checks import list_assumptions
from roost_lab.simulator.sweep.measures import BY_KEY
from roost_lab.simulator.sweep.summary import Summary

# Keys of the measures that are shown for each value of a varied assumption.
SENSITIVE: Final = ("cold", "node_hours", "wait_p95")
_POLICY: Final = Column("policy", "policy", Unit.TEXT)


def _text_columns(**headings: str) -> tuple[Column, ...]:
    """Columns of texts. headings: key -> heading."""
    return tuple(Column(key, heading, Unit.TEXT) for key, heading in headings.items())


def side_by_side(summary: Summary, policies: Sequence[str], *, with_changes: bool = True) -> Table:
    """The figures of the first world: a row for each figure, a column for each policy.

    with_changes: whether cells have the change against the sweep's first policy, too.
    """
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
            if value is None:
                cells.append(None)
                continue
            text = show_value(value, measure.unit)
            change = ""
            if with_changes and policy != first:
                change = show_change(summary.change(measure.key, policy))
            if change:
                text += f", {change}"
            cells.append(text)
        rows.append((measure.title, *cells, show_bound(measure, values) or ""))
    title = "Side by side"
    if len(summary.seeds) > 1:
        title += f", median (least to greatest) over {len(summary.seeds)} seeds"
    if len(policies) > 1 and with_changes:
        title += f", change against {first}"
    return Table("side_by_side", title, columns, rows)


def policies(context: ReportContext) -> Table:
    """What each policy is."""
    columns = (_POLICY, Column("about", "what it is", Unit.TEXT))
    rows: list[tuple[Cell, ...]] = list(context.policies.items())
    return Table("policies", "Policies", columns, rows)


def hubs(summary: Summary) -> list[Table]:
    """The table of each hub's figures in the first world, in a list; [] with one hub."""
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
        # A result for each seed.
        runs = [run.hubs for run in summary.runs[0, policy] if run.hubs]
        for name in runs[0] if runs else ():
            results = [run[name] for run in runs]
            rows.append((policy, name, *_hub_cells(results)))
    if not rows:
        return []
    return [Table("hubs", "By hub, medians over seeds", columns, rows)]


def _hub_cells(results: Sequence[HubResult]) -> tuple[Cell, ...]:
    """A hub's starts, cold starts, share of cold tries, and 95th percentile of waits in seconds.

    Each is the median over seeds; None where it occurs in no seed. results: one for each seed.
    """
    shares = [result.cold / result.placed for result in results if result.placed]
    waits = [result.waits.quantile(0.95) for result in results if result.waits.count]
    return (
        median(result.started for result in results),
        median(result.cold for result in results),
        median(shares) if shares else None,
        median(waits) if waits else None,
    )


def sensitivity(summary: Summary, name: str) -> Table:
    """What another value of the assumption `name` changes: a row for each value and policy."""
    figures = (Column(key, BY_KEY[key].title, Unit.MEAN) for key in SENSITIVE)
    columns = (Column(name, name, Unit.TEXT), _POLICY, *figures)
    rows: list[tuple[Cell, ...]] = []
    for place in summary.varied()[name]:
        assumed = str(getattr(summary.worlds[place].assumptions, name))
        for policy in summary.policies:
            cells: list[Cell] = []
            for key in SENSITIVE:
                value = summary.value(key, policy, place)
                cells.append(None if value is None else show_value(value, BY_KEY[key].unit))
            rows.append((assumed, policy, *cells))
    return Table(f"by_{name}", f"What {name} changes", columns, rows)


def assumptions(summary: Summary) -> Table:
    """Every assumption of the first world."""
    about = "what it is; [S] published, [A] assumed"
    columns = _text_columns(assumption="assumption", value="value", usual="as usual", about=about)
    rows: list[tuple[Cell, ...]] = [
        (row.name, row.value, "changed" if row.is_changed else "", row.about)
        for row in list_assumptions(summary.worlds[0].assumptions)
    ]
    return Table("assumptions", "Assumptions", columns, rows)


def bounds() -> Table:
    """What each bound says, and of which figure."""
    columns = _text_columns(bound="bound", beside="beside", says="what it says")
    rows: list[tuple[Cell, ...]] = [(bound.key, bound.beside, bound.says) for bound in BOUNDS]
    return Table("bounds", "Bounds", columns, rows)


def lines_read(context: ReportContext) -> Table:
    """What was read of the trace, and what was skipped."""
    columns = (
        Column("what", "what", Unit.TEXT),
        Column("number", "number", Unit.COUNT),
        Column("first", "first", Unit.TEXT),
    )
    survey = context.survey
    counts = survey.counts
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
    for name, number in counts.formats.items():
        rows.append((f"lines of {name}", number, ""))
    for reason, tally in counts.skipped.items():
        rows.append((f"skipped: {reason}", tally.number, tally.place))
    for note, tally in counts.notes.items():
        rows.append((f"noted: {note}", tally.number, tally.place))
    return Table("input", "What was read", columns, rows)
