"""Pulls by node, warm and cold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_lab.pages.drawing import Row, bars
from roost_lab.report.pulls import Pulls, pulls_table
from roost_lab.report.subject import MAX_BARS, Report, Section

if TYPE_CHECKING:
    from roost_lab.pages.drawing import Figure


def _counts_figure(report: Report) -> Figure | None:
    rows = [
        Row(node, f"{counts.number:,}", [counts.warm, counts.cold])
        for node, counts in list(report[Pulls].by_node.items())[:MAX_BARS]
    ]
    return bars("pull_counts", "Pulls, warm and cold.", rows, [("--warm", "warm"), ("--cold", "cold")], {})


SECTION: Final = Section(
    "pulls-by-node",
    "Pulls by node",
    Pulls,
    (pulls_table("node", lambda pulls: pulls.by_node),),
    (_counts_figure,),
    nothing="No pull was recorded in this period.",
)
