"""Write a report as JSON for programs, and its head as text."""

from __future__ import annotations

import json
from typing import Final

from roost_lab.pages.phrases import show_plain
from roost_lab.pages.table import data_rows, iso_time
from roost_lab.report.key_figures import tiles
from roost_lab.report.page import notices
from roost_lab.report.sections import tables
from roost_lab.report.sentence import sentence
from roost_lab.report.subject import Report
from roost_lab.units import US

SCHEMA: Final = "roost.hub.jupyter.org/report"
# Raised when a table or a column goes.
VERSION: Final = 4


def to_json(report: Report) -> str:
    """One object, with `tables`: name -> list of rows by column. lab/docs/recorder-report.md says
    what else it has.
    """
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "since": iso_time(report.window.from_us),
        "until": iso_time(report.window.to_us),
        "step_seconds": report.steps.step_us // US,
        "cluster": report.cluster,
        "hubs": list(report.hubs),
        "only": report.scope.chosen,
        "sentence": sentence(report),
        "tables": {table.name: data_rows(table) for table in tables(report)},
    }
    # In ASCII: names and messages may be anybody's, and some characters command a terminal.
    return json.dumps(document, indent=1) + "\n"


def to_text(report: Report) -> str:
    """The head of the page: its sentence, its key figures, its warnings."""
    head = tiles(report)
    widths = [max((len(tile[column]) for tile in head), default=0) for column in (0, 1)]
    lines = [f"{tile.name:{widths[0]}}  {tile.value:>{widths[1]}}  {tile.about}" for tile in head]
    return "".join(
        f"{show_plain(line)}\n"
        for line in filter(None, [sentence(report), *lines, *notices(report)])
    )
