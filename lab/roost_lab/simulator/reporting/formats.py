"""Write a sweep for programs: JSON with everything."""

from __future__ import annotations

import json
from typing import Any, Final

from roost_lab.pages.table import data_rows
from roost_lab.simulator.reporting.context import ReportContext, notices
from roost_lab.simulator.reporting.page import parts
from roost_lab.simulator.sweep.measures import MEASURES
from roost_lab.simulator.sweep.summary import Summary

SCHEMA: Final = "roost.hub.jupyter.org/simulation"
VERSION: Final = 1


def to_json(summary: Summary, context: ReportContext) -> str:
    """A sweep as one JSON object, with a line end.

    Its keys are `schema`, `version`, `roost` (Roost's version), `trace`, `seeds`, `notices`
    (warnings about the figures), `worlds` and `tables` (those of the page). A world has `setting`
    and `policies`: policy -> key of a figure -> its values. They are in the `unit` that the figure
    names: seconds, bytes, numbers, or shares from 0 to 1. `change` is what the figure is more than
    the first policy's, as a share of that, seed by seed.
    """
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "roost": context.version,
        "trace": context.trace,
        "seeds": list(summary.seeds),
        "notices": notices(summary, context),
        "worlds": [
            {
                "setting": dict(world.setting),
                "policies": {
                    policy: _figures(summary, policy, place) for policy in summary.policies
                },
            }
            for place, world in enumerate(summary.worlds)
        ],
        "tables": {
            table.name: data_rows(table)
            for part in parts(summary, context)
            for table in part.tables
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _figures(summary: Summary, policy: str, world: int) -> dict[str, Any]:
    """The figures of a policy in a world, by key, without those that don't occur."""
    figures: dict[str, Any] = {}
    for measure in MEASURES:
        value = summary.value(measure.key, policy, world)
        if value is None:
            continue
        change = summary.change(measure.key, policy, world)
        figures[measure.key] = {
            "unit": measure.unit.value,
            "median": value.median,
            "least": value.least,
            "greatest": value.greatest,
            "by_seed": list(value.by_seed),
            "bound": value.bound,
            "change": None if change is None else change._asdict(),
        }
    return figures
