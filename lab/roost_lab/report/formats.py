"""Write a report for programs: as JSON, and as CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Final

from roost_lab.pages.dates import US
from roost_lab.pages.table import csv_cell, data_rows, iso_time
from roost_lab.report.sections import tables
from roost_lab.report.subject import Report

SCHEMA: Final = "roost.hub.jupyter.org/report"
# Raised when a table or a column goes.
VERSION: Final = 3


def to_json(report: Report) -> str:
    """One object, with `tables`: name -> list of rows by column. lab/docs/recorder-report.md says what else it has."""
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "since": iso_time(report.window.from_us),
        "until": iso_time(report.window.to_us),
        "step_seconds": report.steps.step_us // US,
        "cluster": report.cluster,
        "hubs": list(report.hubs),
        "only": report.scope.chosen,
        "tables": {table.name: data_rows(table) for table in tables(report)},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def to_csv(report: Report) -> dict[str, str]:
    """A sheet for each table, by its name: the columns' keys, then a line for each row. Unknown cells are empty."""
    sheets = {}
    for table in tables(report):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(column.key for column in table.columns)
        writer.writerows(map(csv_cell, row.values()) for row in data_rows(table))
        sheets[table.name] = text.getvalue()
    return sheets
