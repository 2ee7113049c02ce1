"""Make a sweep's page: what stands where in it, and the few numbers at its head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.pages.html_page import Part, Tile, render
from roost.simulator.reporting.figures import CSS, MOST_LINES, figures
from roost.simulator.reporting.tables import SENSITIVE, notices, show_amount, show_cell, tables
from roost.simulator.sweep.summary import MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roost.pages.drawing import Figure
    from roost.pages.table import Table
    from roost.simulator.reporting.tables import ReportContext
    from roost.simulator.sweep.summary import Summary

TITLE: Final = "What these values would have done"
_NOTHING: Final = "No server started in this replay."


def make_page(summary: Summary, told: ReportContext) -> str:
    """The whole page."""
    return render(
        title=TITLE,
        about=_about(summary, told),
        footer=f"Replayed by Roost {told.version}. A replay is no promise: what it assumes stands above.",
        notices=_notices(summary, told),
        tiles=_tiles(summary),
        parts=list(_parts(summary, figures(summary), {table.name: table for table in tables(summary, told)})),
        show=show_cell,
        more_css=CSS,
    )


def _about(summary: Summary, told: ReportContext) -> str:
    seeds = ", ".join(map(str, summary.seeds))
    world = summary.worlds[0]
    run = summary.runs[0, summary.policies[0]][0]
    return (
        f"{told.trace}: {run.attempts:,} attempts to launch, replayed under {_number(len(summary.policies), 'policy')} "
        f"with seed{'' if len(summary.seeds) == 1 else 's'} {seeds}; assumptions: {world.name}. All policies meet the "
        "same launches, session lengths, image sizes and boot times in each seed. Whiskers are the range over seeds."
    )


def _number(number: int, what: str) -> str:
    return f"{number} {what if number == 1 else what.removesuffix('y') + 'ies'}"


def _notices(summary: Summary, told: ReportContext) -> list[str]:
    found = notices(summary, told)
    if len(summary.policies) > MOST_LINES:
        found.append(f"Plots with lines show the first {MOST_LINES} policies; bars and tables have all.")
    return found


def _tiles(summary: Summary) -> list[Tile]:
    found = []
    for measure in MEASURES:
        if not measure.is_headline or measure.less_is_better is None:
            continue
        values = [(summary.value(measure.key, policy), policy) for policy in summary.policies]
        known = [(value.median, policy) for value, policy in values if value is not None]
        if known and any(amount for amount, _ in known):
            amount, policy = min(known)
            found.append(Tile(f"Least: {measure.title}", show_amount(amount, measure.unit), policy))
    return found


def _parts(summary: Summary, drawn: Mapping[str, Figure], by_name: Mapping[str, Table]) -> Iterator[Part]:
    def draw(*keys: str) -> list[Figure | None]:
        return [drawn.get(key) for key in keys]

    def find(*names: str) -> list[Table]:
        return [by_name[name] for name in names]

    headlines = [f"headline_{measure.key}" for measure in MEASURES if measure.is_headline]
    yield Part(
        "side-by-side",
        "Side by side",
        "Bounds are what no policy can beat; each is explained at the end.",
        draw(*headlines),
        find("side_by_side", "policies"),
        _NOTHING,
        beside=True,
    )
    yield Part("trade", "Cold starts against node-hours", "", draw("trade"), (), _NOTHING)
    yield Part("waiting", "Waiting", "", draw("distribution", "wait_parts"), find("waits"), _NOTHING)
    yield Part(
        "why-cold",
        "Why starts were cold",
        "Images on no node can only be pulled ahead; those on full nodes need room kept where they are, or a second "
        "copy in time; those elsewhere with room were missed by the placement.",
        draw("why_cold"),
        find("why_cold"),
        "No start was cold.",
    )
    yield Part("over-time", "Over time", "", draw("over_time"), find("over_time"), _NOTHING)
    for name in summary.varied():
        yield Part(
            f"by-{name.replace('_', '-')}",
            f"What {name} changes",
            "",
            draw(*(f"by_{name}_{key}" for key in SENSITIVE)),
            find(f"by_{name}"),
            _NOTHING,
            beside=True,
        )
    yield Part(
        "assumptions",
        "Assumptions",
        "Everything about the world that neither the trace nor the values say. Each can be set with --set.",
        (),
        find("assumptions"),
        _changed(summary),
    )
    yield Part("bounds", "Bounds", "", (), find("bounds"), "What each bound says, and of which figure.")
    yield Part(
        "input",
        "The trace",
        "",
        (),
        find("input", "caches", "disk_caches", "covers"),
        "What was read and skipped, and what caches could do at best with such launches.",
    )


def _changed(summary: Summary) -> str:
    setting = summary.worlds[0].setting
    return f"Not as usual: {summary.worlds[0].name}." if setting else "All as usual."
