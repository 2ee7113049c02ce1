"""Register the page's sections in their order: each table and figure of a sweep is named here once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_lab.pages.html_page import Part
from roost_lab.simulator.reporting import figures as draw
from roost_lab.simulator.reporting import tables as lay_out
from roost_lab.simulator.sweep.measure_registry import MEASURES

if TYPE_CHECKING:
    from roost_lab.pages.table import Table
    from roost_lab.simulator.reporting.context import ReportContext
    from roost_lab.simulator.sweep.summary import Summary

_HUBS: Final = "Hubs share the nodes; each has a release of its own, with as many placeholders as the values say."
_NOTHING: Final = "No server started in this replay."


def tables(summary: Summary, context: ReportContext) -> list[Table]:
    """Every table of the page; those without rows too."""
    return [table for part in parts(summary, context) for table in part.tables]


def parts(summary: Summary, context: ReportContext) -> list[Part]:
    """Every section of the page."""
    return [
        Part(
            "side-by-side",
            "Side by side",
            "Bounds are what no policy can beat; each is explained at the end.",
            [draw.headline(summary, measure) for measure in MEASURES if measure.is_headline],
            [lay_out.side_by_side(summary), lay_out.policies(context)],
            _NOTHING,
            beside=True,
        ),
        Part("trade", "Cold starts against node-hours", "", [draw.trade(summary)], [], _NOTHING),
        Part(
            "waiting",
            "Waiting",
            "",
            [draw.distribution(summary), draw.wait_parts(summary)],
            [lay_out.waits(summary)],
            _NOTHING,
        ),
        Part(
            "why-cold",
            "Why starts were cold",
            "Images on no node can only be pulled ahead; those on full nodes need room kept where they are, or a "
            "second copy in time; those elsewhere with room were missed by the placement.",
            [draw.why_cold(summary)],
            [lay_out.why_cold(summary)],
            "No start was cold.",
        ),
        Part("over-time", "Over time", "", [draw.over_time(summary)], [lay_out.over_time(summary)], _NOTHING),
        *(Part("hubs", "By hub", "", [], [table], _HUBS) for table in lay_out.hubs(summary)),
        *(
            Part(
                f"by-{name.replace('_', '-')}",
                f"What {name} changes",
                "",
                [draw.sensitivity(summary, name, key) for key in lay_out.SENSITIVE],
                [lay_out.sensitivity(summary, name)],
                _NOTHING,
                beside=True,
            )
            for name in summary.varied()
        ),
        Part(
            "assumptions",
            "Assumptions",
            "Everything about the world that neither the trace nor the values say. Each can be set with --set.",
            [],
            [lay_out.assumptions(summary)],
            _changed(summary),
        ),
        Part("bounds", "Bounds", "", [], [lay_out.bounds()], "What each bound says, and of which figure."),
        Part(
            "input",
            "The trace",
            "",
            [],
            [lay_out.lines_read(context)],
            "What was read and skipped.",
        ),
    ]


def _changed(summary: Summary) -> str:
    world = summary.worlds[0]
    return f"Changed from the defaults: {world.name}." if world.setting else "All at their defaults."
