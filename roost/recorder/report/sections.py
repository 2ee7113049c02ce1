"""Register the report's tables and figures: in which section each stands, in the order of the page.

A new table is a line here, a function of tables.py, and what it needs of gather.py and queries.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from roost.pages.html_page import Part
from roost.recorder.report import figures as draw
from roost.recorder.report import tables as lay_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roost.pages.drawing import Figure
    from roost.pages.table import Table
    from roost.recorder.report.gather import Report


class Section(NamedTuple):
    """One section of the report."""

    key: str
    title: str
    about: str
    # What stands there when there is nothing to draw.
    nothing: str
    tables: Sequence[Callable[[Report], Table]]
    figures: Sequence[Callable[[Report], Figure | None]] = ()
    beside: bool = False


SECTIONS: Final = (
    Section(
        "starts-by-class",
        "Start phases by class and profile",
        "Moments that the API server keeps in whole seconds (creation, containers running, ready) make a phase seem up "
        "to a second longer or shorter; percentiles are exact to one part in a hundred.",
        "No pod started in this time.",
        (partial(lay_out.starts_table, "starts_by_class", "Start phases by class and scheduler profile"),),
        (partial(draw.starts_figure, "starts_by_class"),),
    ),
    Section(
        "starts-by-image",
        "Start phases by image",
        "",
        "No pod with an image started in this time.",
        (partial(lay_out.starts_table, "starts_by_image", "Start phases by image"),),
        (partial(draw.starts_figure, "starts_by_image"),),
    ),
    Section(
        "starts-by-node-age",
        "Start phases by age of the node",
        "",
        "No pod started in this time.",
        (partial(lay_out.starts_table, "starts_by_node_age", "Start phases by age of the node"),),
        (partial(draw.starts_figure, "starts_by_node_age"),),
    ),
    Section(
        "new-nodes",
        "New nodes",
        "",
        "Of nodes that joined in this time and were seen to get every image that the hub's image gate puts on them.",
        (lay_out.new_nodes_table,),
    ),
    Section(
        "warm-share",
        "Warm pulls",
        "A pull is warm when the image was on the node already.",
        "No pull was recorded in this time.",
        (
            lay_out.pulls_over_time_table,
            partial(lay_out.pulls_table, "pulls_by_image", "Pulls by image", "image"),
        ),
        (draw.pulls_over_time_figure, draw.pulls_by_image_figure),
    ),
    Section(
        "occupancy",
        "What stood on the nodes",
        "",
        "No pod was on a node in this time.",
        (
            lay_out.occupancy_over_time_table,
            lay_out.occupancy_by_node_table,
            lay_out.occupancy_of_nodes_table,
        ),
        (draw.occupancy_over_time_figure, draw.occupancy_by_node_figure),
    ),
    Section(
        "failures",
        "Tries that found no node",
        "",
        "Every try found a node.",
        (lay_out.failures_table,),
        (draw.failures_figure,),
    ),
    Section(
        "pulls-by-node",
        "Pulls by node",
        "",
        "No pull was recorded in this time.",
        (partial(lay_out.pulls_table, "pulls_by_node", "Pulls by node", "node"),),
        (draw.pull_counts_figure, draw.pull_bytes_figure, draw.pull_waits_figure),
        beside=True,
    ),
    Section(
        "removals",
        "Pre-emptions and evictions",
        "",
        "No pod had to go for another, and none was evicted.",
        (lay_out.removals_by_class_table, lay_out.removals_over_time_table),
        (draw.removals_figure,),
    ),
    Section(
        "model",
        "Does the scheduler's model agree?",
        "The model is asked on what the watches told. Where it differs just after a change that the scheduler may not "
        "have seen, the binding isn't judged. A difference is a hint to look, not proof of a fault.",
        "No binding was recorded in this time.",
        (lay_out.verdicts_table,),
        (draw.verdicts_figure,),
    ),
    Section("gaps", "Gaps in the record", "", "Grey in the plots above.", (lay_out.gaps_table,)),
)


def tables(report: Report) -> list[Table]:
    """Every table of the report; those without rows too."""
    return [make(report) for section in SECTIONS for make in section.tables]


def parts(report: Report) -> list[Part]:
    """Every section of the page, with what stands in it."""
    return [
        Part(
            section.key,
            section.title,
            section.about,
            [make(report) for make in section.figures],
            [make(report) for make in section.tables],
            section.nothing,
            section.beside,
        )
        for section in SECTIONS
    ]
