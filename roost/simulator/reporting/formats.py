"""Write a sweep for programs: JSON with everything, CSV with a line a figure."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final

from roost.pages.table import csv_cell, data_cell
from roost.simulator.reporting.tables import data, figures, notices, tables
from roost.simulator.sweep.summary import MEASURES

if TYPE_CHECKING:
    from roost.simulator.reporting.tables import ReportContext
    from roost.simulator.sweep.summary import Summary

SCHEMA: Final = "roost.hub.jupyter.org/simulation"
VERSION: Final = 1


def to_json(summary: Summary, told: ReportContext) -> str:
    """One object: schema, version, roost, trace, seeds, `worlds` with policies with figures, and the page's `tables`.

    `notices`: what must be known before the figures are believed. `needs`: policy -> assumptions that it alone has
    otherwise. Seconds, bytes, shares 0..1. `change`: as a share of the first policy's, seed by seed, less one.
    """
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "roost": told.version,
        "trace": told.trace,
        "seeds": list(summary.seeds),
        "notices": notices(summary, told),
        "needs": {policy: dict(needed) for policy, needed in summary.needs.items()},
        "worlds": [
            {
                "setting": dict(world.setting),
                "policies": {
                    policy: {
                        measure.key: found
                        for measure in MEASURES
                        if (found := {"unit": measure.unit.value} | data(summary, policy, measure.key, place)).keys()
                        > {"unit"}
                    }
                    for policy in summary.policies
                },
            }
            for place, world in enumerate(summary.worlds)
        ],
        "tables": {
            table.name: [
                {column.key: data_cell(cell, column.unit) for column, cell in zip(table.columns, row, strict=True)}
                for row in table.rows
            ]
            for table in tables(summary, told)
            if not table.only_data
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def to_csv(summary: Summary) -> str:
    """A line a world, policy and figure: median, range, bound, number of seeds, change against the first policy."""
    table = figures(summary)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    for row in table.rows:
        writer.writerow(
            [
                "" if cell is None else csv_cell(data_cell(cell, column.unit))
                for cell, column in zip(row, table.columns, strict=True)
            ]
        )
    return text.getvalue()
