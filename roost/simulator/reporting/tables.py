"""Lay a sweep out as tables: the same for the page, JSON and CSV."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost.pages.phrases import show_bytes, show_seconds, show_span
from roost.pages.table import Cell, Column, Table, Unit
from roost.simulator.engine.results import ELSEWHERE, NOWHERE, ONLY_FULL, PARTS, TOTAL
from roost.simulator.setup.checks import list_assumptions, show_assumption
from roost.simulator.sweep.summary import ALL_BOUNDS, BY_KEY, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost.simulator.engine.results import HourRow
    from roost.simulator.sweep.summary import Measure, Summary, Value
    from roost.simulator.sweep.survey import Survey

US: Final = 1_000_000
HOUR: Final = 3600
MISSING: Final = "-"
# Between the least and the greatest.
DASH: Final = "\N{EN DASH}"
WHERES: Final = (NOWHERE, ONLY_FULL, ELSEWHERE)
PART_NAMES: Final[Mapping[str, str]] = {
    "queue": "in the queue",
    "node": "for a node",
    "pull-wait": "behind other pulls",
    "pull": "pulling",
    "start": "starting",
    TOTAL: "in all",
}
SHARES: Final = (0.5, 0.9, 0.95, 0.99, 0.999)
# Figures that are told for each world of the sweep.
SENSITIVE: Final = ("cold", "node_hours", "wait_p95")
# Rows of tables over time at most; hours are put together beyond.
MOST_STEPS: Final = 400


class ReportContext(NamedTuple):
    """What a report is made of beside the figures."""

    # Policy -> what it is, in a line.
    policies: Mapping[str, str]
    trace: str
    # None: unknown.
    survey: Survey | None
    version: str


def show_amount(amount: float, unit: Unit) -> str:
    """A figure for people: amounts of a hundred and more without decimals."""
    match unit:
        case Unit.SECONDS:
            return show_seconds(amount)
        case Unit.BYTES:
            return show_bytes(round(amount))
        case Unit.SHARE:
            return f"{amount * 100:.1f} %"
        case _:
            text = f"{amount:,.0f}" if amount >= 100 or amount == int(amount) else f"{amount:,.1f}"
            return "0" if text == "-0" else text


def show_range(least: float, greatest: float, unit: Unit) -> str:
    """From the least to the greatest; the unit once where it is the same; one amount where they look equal."""
    low, high = show_amount(least, unit), show_amount(greatest, unit)
    if low == high:
        return high
    number, _, word = low.partition(" ")
    return f"{number if word == high.partition(' ')[2] else low}{DASH}{high}"


def show_value(value: Value, unit: Unit) -> str:
    """Median and range of a figure."""
    middle, extent = show_amount(value.median, unit), show_range(value.least, value.greatest, unit)
    if DASH not in extent:
        return middle
    number, _, word = extent.partition(" ")
    return f"{middle} ({number if word == middle.partition(' ')[2] else extent})"


def show_cell(cell: Cell, unit: Unit) -> str:
    """A cell for people."""
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    if unit is Unit.MOMENT:
        return datetime.fromtimestamp(cell / US, UTC).strftime("%Y-%m-%d %H:%M")
    return show_amount(float(cell), unit)


def tables(summary: Summary, told: ReportContext) -> list[Table]:
    """Every table; those without rows too."""
    return [
        side_by_side(summary),
        _policies(summary, told),
        figures(summary),
        _waits(summary),
        _why_cold(summary),
        _hours(summary),
        *_sensitivities(summary),
        _assumptions(summary),
        _bounds(),
        _input(told),
        _caches(told),
        _disks(told),
        _covers(told),
    ]


def notices(summary: Summary, told: ReportContext) -> list[str]:
    """What must be known before the figures are believed; a sentence or two each."""
    found = []
    for place, world in enumerate(summary.worlds):
        disk_bytes = world.assumptions.node_disk_bytes
        fullest = {
            policy: max(run.greatest_disk_bytes for run in summary.runs[place, policy]) for policy in summary.policies
        }
        beyond = [policy for policy, most in fullest.items() if 0 < disk_bytes < most]
        if beyond:
            most = show_bytes(max(fullest[policy] for policy in beyond))
            found.append(
                f"Disks too small ({world.name}): the images of one node took {most} of {show_bytes(disk_bytes)} under "
                f"{', '.join(beyond)}. Images of running pods aren't collected here; real nodes would evict the pods."
            )
    if told.survey is not None and told.survey.too_large:
        found.append(
            f"{told.survey.too_large:,} attempts ask for more than a node has, and are given up; the first is of "
            f"{told.survey.first_too_large}."
        )
    if told.survey is not None and told.survey.counts.skipped_lines:
        counts = told.survey.counts
        found.append(
            f"{counts.skipped_lines:,} of {counts.lines:,} lines of the trace were skipped; why is told at the end."
        )
    if len(summary.seeds) == 1:
        found.append(
            "One seed tells nothing of chance, and small differences may be just that. --seeds 10 gives a range."
        )
    if "sessions" not in summary.varied():
        found.append("How long sessions last is assumed: --sessions short,mid,long shows what that changes.")
    return found


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
        cells = [None if value is None else show_value(value, measure.unit) for value in values]
        rows.append((measure.title, *cells, show_bound(measure, values)))
    title = f"Side by side, median (least to greatest) over {len(summary.seeds)} seeds" if several else "Side by side"
    return Table("side_by_side", title, columns, rows)


def show_bound(measure: Measure, values: Sequence[Value | None]) -> str | None:
    """The bounds of all policies: one where they are equal, else from the least to the greatest."""
    bounds = [value.bound for value in values if value is not None and value.bound is not None]
    if not bounds:
        return None
    return show_range(min(bounds), max(bounds), measure.unit)


def figures(summary: Summary) -> Table:
    """A row a world, policy and figure: for programs."""
    columns = (
        Column("world", "world", Unit.TEXT),
        Column("policy", "policy", Unit.TEXT),
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


def hour_medians(summary: Summary, policy: str) -> list[dict[str, float]]:
    """Over time, in steps of one or more hours: the median over seeds of each figure of the hour."""
    found: dict[int, list[HourRow]] = {}
    for run in summary.runs[0, policy]:
        for hour in run.hours:
            found.setdefault(hour.begin, []).append(hour)
    steps = sorted(found)
    together = -(-len(steps) // MOST_STEPS) or 1
    rows = []
    for index in range(0, len(steps), together):
        hours = [found[begin] for begin in steps[index : index + together]]
        row: dict[str, float] = {"begin": float(steps[index])}
        for name in ("launches", "cold", "refused", "timeouts", "users", "placeholders", "nodes"):
            row[name] = sum(median(getattr(one, name) for one in same) for same in hours) / len(hours)
        launches = sum(one.launches for same in hours for one in same)
        row["wait"] = sum(one.wait_seconds for same in hours for one in same) / launches if launches else 0.0
        rows.append(row)
    return rows


def _policies(summary: Summary, told: ReportContext) -> Table:
    columns: tuple[Column, ...] = (Column("policy", "policy", Unit.TEXT), Column("about", "what it is", Unit.TEXT))
    rows: list[tuple[Cell, ...]] = list(told.policies.items())
    if summary.needs:
        columns = (*columns, Column("assumes", "assumed for it alone", Unit.TEXT))
        rows = [(name, about, summary.needs_of(name)) for name, about in told.policies.items()]
    return Table("policies", "Policies", columns, rows)


def _waits(summary: Summary) -> Table:
    names = {share: f"p{share * 100:g}" for share in SHARES}
    columns = (
        Column("policy", "policy", Unit.TEXT),
        Column("part", "wait", Unit.TEXT),
        Column("starts", "starts", Unit.COUNT),
        Column("mean_seconds", "mean", Unit.SECONDS),
        *(Column(f"{name.replace('.', '')}_seconds", name, Unit.SECONDS) for name in names.values()),
    )
    rows: list[tuple[Cell, ...]] = []
    for policy in summary.policies:
        for part in (TOTAL, *PARTS):
            waits = summary.waits(policy, part)
            if waits.count:
                cells = (waits.count, waits.mean, *(waits.quantile(share) for share in SHARES))
                rows.append((policy, PART_NAMES[part], *cells))
    return Table("waits", "Waiting, all seeds together", columns, rows)


def _why_cold(summary: Summary) -> Table:
    columns = (
        Column("policy", "policy", Unit.TEXT),
        *(Column(where.replace(" ", "_"), where, Unit.MEAN) for where in WHERES),
    )
    rows: list[tuple[Cell, ...]] = []
    for policy in summary.policies:
        values = [summary.value(key, policy) for key in ("cold_nowhere", "cold_only_full", "cold_elsewhere")]
        rows.append((policy, *(None if value is None else value.median for value in values)))
    return Table("why_cold", "Where a cold start's image was, medians over seeds", columns, rows)


def _hours(summary: Summary) -> Table:
    columns = (
        Column("policy", "policy", Unit.TEXT),
        Column("from", "from (UTC)", Unit.MOMENT),
        Column("launches", "launches an hour", Unit.MEAN),
        Column("cold", "cold", Unit.MEAN),
        Column("refused", "refused", Unit.MEAN),
        Column("wait_seconds", "mean wait", Unit.SECONDS),
        Column("users", "users", Unit.MEAN),
        Column("placeholders", "placeholders", Unit.MEAN),
        Column("nodes", "nodes", Unit.MEAN),
    )
    rows: list[tuple[Cell, ...]] = []
    for policy in summary.policies:
        for row in hour_medians(summary, policy):
            names = ("launches", "cold", "refused", "wait", "users", "placeholders", "nodes")
            rows.append((policy, round(row["begin"] * US), *(row[name] for name in names)))
    return Table("over_time", "Over time, medians over seeds", columns, rows)


def _sensitivities(summary: Summary) -> list[Table]:
    found = []
    for name, places in summary.varied().items():
        columns = (
            Column(name, name, Unit.TEXT),
            Column("policy", "policy", Unit.TEXT),
            *(Column(key, BY_KEY[key].title, Unit.TEXT) for key in SENSITIVE),
        )
        rows: list[tuple[Cell, ...]] = []
        for place in places:
            for policy in summary.policies:
                cells: list[Cell] = []
                for key in SENSITIVE:
                    value = summary.value(key, policy, place)
                    cells.append(None if value is None else show_value(value, BY_KEY[key].unit))
                rows.append((str(value_of(summary.worlds[place], name)), policy, *cells))
        found.append(Table(f"by_{name}", f"What {name} changes", columns, rows))
    return found


def _assumptions(summary: Summary) -> Table:
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
    found = [f"{policy}: {show_assumption(needed[name])}" for policy, needed in summary.needs.items() if name in needed]
    return f" ({', '.join(found)})" if found else ""


def _bounds() -> Table:
    columns = (
        Column("bound", "bound", Unit.TEXT),
        Column("beside", "beside", Unit.TEXT),
        Column("says", "what it says", Unit.TEXT),
    )
    rows: list[tuple[Cell, ...]] = [(bound.key, bound.beside, bound.says) for bound in ALL_BOUNDS]
    return Table("bounds", "Bounds", columns, rows)


def _input(told: ReportContext) -> Table:
    columns = (
        Column("what", "what", Unit.TEXT),
        Column("number", "number", Unit.COUNT),
        Column("first", "first", Unit.TEXT),
    )
    rows: list[tuple[Cell, ...]] = []
    if told.survey is not None:
        counts, span = told.survey.counts, show_span(round(told.survey.window_seconds * US))
        rows += [
            ("attempts", told.survey.attempts, ""),
            ("distinct images", told.survey.images, ""),
            ("distinct repositories", told.survey.repositories, ""),
            (f"most attempts in {span}, while a node boots", told.survey.window_most, ""),
            (f"attempts in {span} but for one in a thousand", told.survey.window_p999, ""),
        ]
        if told.survey.too_large:
            rows.append(
                ("attempts that ask for more than a node has", told.survey.too_large, told.survey.first_too_large)
            )
        if counts.lines:
            rows += [("lines", counts.lines, ""), ("lines used", counts.used, "")]
        rows += [(f"lines of {name}", number, "") for name, number in counts.formats.items()]
        rows += [(f"skipped: {why}", tally.number, tally.place) for why, tally in counts.skipped.items()]
        rows += [(f"noted: {what}", tally.number, tally.place) for what, tally in counts.notes.items()]
    return Table("input", "What was read", columns, rows)


def _caches(told: ReportContext) -> Table:
    columns = (
        Column("images", "images it holds", Unit.COUNT),
        Column("lru", "least recently used goes (LRU)", Unit.SHARE),
        Column("best", "best possible (Belady's MIN)", Unit.SHARE),
    )
    rows = [] if told.survey is None else [tuple(row) for row in told.survey.caches]
    return Table("caches", "Attempts that would find their image in one shared cache", columns, rows)


def _disks(told: ReportContext) -> Table:
    columns = (
        Column("disk_bytes", "disk, without shared layers", Unit.BYTES),
        Column("lru", "least recently used goes (LRU)", Unit.SHARE),
        Column("most", "no cache finds more (PFOO-L)", Unit.SHARE),
    )
    rows = [] if told.survey is None else [tuple(row) for row in told.survey.disks]
    return Table("disk_caches", "The same by bytes, up to a node's disk", columns, rows)


def _covers(told: ReportContext) -> Table:
    columns = (
        Column("images", "yesterday's most popular images", Unit.COUNT),
        Column("share", "today's attempts of them", Unit.SHARE),
    )
    rows = [] if told.survey is None else [tuple(row) for row in told.survey.covers]
    return Table("covers", "How far pulling yesterday's popular images ahead would reach", columns, rows)


def data(summary: Summary, policy: str, key: str, world: int) -> dict[str, Any]:
    """One figure with everything known of it, for JSON."""
    value = summary.value(key, policy, world)
    if value is None:
        return {}
    change = summary.change(key, policy, world)
    return {
        "median": value.median,
        "least": value.least,
        "greatest": value.greatest,
        "by_seed": list(value.each),
        "bound": value.bound,
        "change": None if change is None else change._asdict(),
    }
