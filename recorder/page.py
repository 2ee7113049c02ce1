"""Make the report's page: one HTML file with everything in it, that asks no network for anything.

Names from a cluster are escaped by the template, and a content security policy lets only the page's own two scripts
run, known by their hashes, and nothing be loaded.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jinja2 import Environment, StrictUndefined

from recorder.assembler import EVENTS, PODS
from recorder.figures import figures
from recorder.report_tables import Cell, Column, Unit, moment, show, tables
from recorder.why import show_span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recorder.figures import Figure
    from recorder.report import Report
    from recorder.report_tables import Table

US: Final = 1_000_000
TITLE: Final = "How pods started, and where they went"


class MissingPlotlyError(Exception):
    """The package that draws isn't installed; the message says how to get it."""


class Tile(NamedTuple):
    """One number at the head of the page."""

    name: str
    value: str
    about: str


class _Part(NamedTuple):
    """A section as it is planned: what is in it, by key."""

    key: str
    title: str
    about: str
    figures: Sequence[str]
    tables: Sequence[str]
    # What stands there when there is nothing to draw.
    nothing: str
    beside: bool = False


@dataclass(frozen=True, slots=True)
class _PageTable:
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[tuple[Cell, Column]]]


_STARTS_ABOUT: Final = (
    "Moments that the API server keeps in whole seconds (creation, containers running, ready) make a phase seem up to "
    "a second longer or shorter; percentiles are exact to one part in a hundred."
)
_PARTS: Final = (
    _Part(
        "starts-by-class",
        "Start phases by class and profile",
        _STARTS_ABOUT,
        ("starts_by_class",),
        ("starts_by_class",),
        "No pod started in this time.",
    ),
    _Part(
        "starts-by-image",
        "Start phases by image",
        "",
        ("starts_by_image",),
        ("starts_by_image",),
        "No pod with an image started in this time.",
    ),
    _Part(
        "starts-by-node-age",
        "Start phases by age of the node",
        "",
        ("starts_by_node_age",),
        ("starts_by_node_age",),
        "No pod started in this time.",
    ),
    _Part(
        "warm-share",
        "Warm pulls",
        "A pull is warm when the image was on the node already.",
        ("pulls_over_time", "pulls_by_image"),
        ("pulls_over_time", "pulls_by_image"),
        "No pull was recorded in this time.",
    ),
    _Part(
        "occupancy",
        "What stood on the nodes",
        "",
        ("occupancy_over_time", "occupancy_by_node"),
        ("occupancy_over_time", "occupancy_by_node"),
        "No pod was on a node in this time.",
    ),
    _Part(
        "failures",
        "Tries that found no node",
        "",
        ("failures",),
        ("failures",),
        "Every try found a node.",
    ),
    _Part(
        "pulls-by-node",
        "Pulls by node",
        "",
        ("pull_counts", "pull_bytes", "pull_waits"),
        ("pulls_by_node",),
        "No pull was recorded in this time.",
        beside=True,
    ),
    _Part(
        "removals",
        "Pre-emptions and evictions",
        "",
        ("removals_over_time",),
        ("removals_by_class", "removals_over_time"),
        "No pod had to go for another, and none was evicted.",
    ),
    _Part(
        "model",
        "Does the scheduler's model agree?",
        "The model sees what the watches told; what the scheduler saw can differ by a moment. A difference is a hint "
        "to look, no proof of a fault.",
        ("model",),
        ("model",),
        "No binding was recorded in this time.",
    ),
    _Part("gaps", "Gaps in the record", "", (), ("gaps",), ""),
)


def make_page(report: Report, about: str) -> str:
    """The whole page. about: which database, by which version. Raises MissingPlotlyError."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["show"] = lambda cell, unit: show(cell, Unit(unit))
    template = environment.from_string(_own("page.html.j2"))
    drawn = {} if report.is_empty else figures(report)
    by_name = {table.name: table for table in tables(report)}
    sections = [] if report.is_empty else [_section(part, drawn, by_name) for part in _PARTS]
    plotly, script = (_plotly(), _own("page.js")) if sections else ("", "")
    return template.render(
        title=TITLE,
        about=_span(report),
        notices=_notices(report),
        tiles=[] if report.is_empty else _tiles(report),
        sections=[section for section in sections if section is not None],
        footer=about,
        policy=_policy(plotly, script),
        css=_own("page.css"),
        plotly=plotly,
        script=script,
        figures=_script_safe({key: figure.as_json() for key, figure in drawn.items()}),
    )


def _section(part: _Part, drawn: dict[str, Figure], by_name: dict[str, Table]) -> dict[str, Any] | None:
    found = [drawn[key] for key in part.figures if key in drawn]
    listed = [by_name[name] for name in part.tables]
    if not part.figures and not any(table.rows for table in listed):
        return None
    nothing = part.nothing or "Grey in the plots above."
    shown = [
        _PageTable(table.title, table.columns, [list(zip(row, table.columns, strict=True)) for row in table.rows])
        for table in listed
    ]
    return {**part._asdict(), "figures": found, "tables": shown, "nothing": nothing}


def _span(report: Report) -> str:
    from_us, to_us = report.window
    if report.extent is None:
        return "The database has no records."
    told = f"{_moment(from_us)} to {_moment(to_us)} UTC ({show_span(to_us - from_us)})."
    return f"{told} Plots over time are cut into steps of {show_span(report.steps.step_us)}."


def _moment(at_us: int) -> str:
    return moment(at_us)[:16].replace("T", " ")


def _notices(report: Report) -> list[str]:
    if report.extent is None:
        return ["Nothing has been recorded in this database yet. `roost record` writes it."]
    if report.is_empty:
        from_us, to_us = report.extent
        recorded = f"{_moment(from_us)} to {_moment(to_us)} UTC"
        return [f"Nothing was recorded in this time. Choose with --since and --until from {recorded}."]
    notices = []
    for kind, what in ((PODS, "Pods"), (EVENTS, "Events (pulls, failures, pre-emptions)")):
        spans = report.unseen(kind)
        if spans:
            missing_us = sum(
                min(span.to_us, report.window.to_us) - max(span.from_us, report.window.from_us) for span in spans
            )
            where = f"{len(spans)} gap{'' if len(spans) == 1 else 's'}, grey in the plots"
            notices.append(f"{what} may be missing for {show_span(missing_us)} of this time ({where}).")
    return notices


def _tiles(report: Report) -> list[Tile]:
    whole, pulls = report.whole_starts, report.pulls
    classes = ", ".join(report.start_classes) or "all"
    return [
        Tile("Starts", f"{whole.count:,}", f"that became ready; class {classes}"),
        Tile("Created to ready", _percentile(whole.percentile_us(0.5)), "half took no longer (p50)"),
        Tile("Slow ones", _percentile(whole.percentile_us(0.95)), "19 of 20 took no longer (p95)"),
        Tile("Warm pulls", show(pulls.warm_share, Unit.SHARE), f"of {pulls.warm + pulls.cold:,}"),
        Tile("Failed tries", f"{report.failed_tries:,}", "to find a node"),
        Tile("Had to go", f"{report.removals.total():,}", "pre-empted or evicted"),
        Tile("Model agrees", show(report.agreement, Unit.SHARE), "of the bindings it could judge"),
    ]


def _percentile(span_us: int | None) -> str:
    return show(None if span_us is None else span_us / US, Unit.SECONDS)


def _policy(*scripts: str) -> str:
    hashes = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts if text)
    allowed = hashes or "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"


def _script_safe(value: object) -> str:
    # JSON in a script element: no text may look like its end, or like a comment.
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _own(name: str) -> str:
    return (resources.files("recorder") / name).read_text(encoding="utf-8")


def _plotly() -> str:
    """Plotly's script, as its Python package carries it; nothing else of the package is loaded."""
    try:
        text = (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError):
        raise MissingPlotlyError("--format html needs the package plotly: pip install plotly") from None
    # The end of a script element, were it in one of its strings, would end ours.
    return text.replace("</script", "<\\/script")
