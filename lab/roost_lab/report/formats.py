"""Write a report for programs: as JSON, as CSV, and as OpenMetrics histograms of the start phases."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CollectorRegistry, HistogramMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from roost_lab.pages.dates import US
from roost_lab.pages.table import csv_cell, data_cell, iso_time
from roost_lab.report.sections import tables
from roost_lab.report.starts import Starts
from roost_lab.report.statistics import BOUNDS_SECONDS, Spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
        "tables": {
            table.name: [
                {column.key: data_cell(cell, column.unit) for column, cell in zip(table.columns, row, strict=True)}
                for row in table.rows
            ]
            for table in tables(report)
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def to_csv(report: Report) -> dict[str, str]:
    """A sheet for each table, by its name: the columns' keys, then a line for each row. Unknown cells are empty."""
    sheets = {}
    for table in tables(report):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(column.key for column in table.columns)
        for row in table.rows:
            cells = zip(table.columns, row, strict=True)
            writer.writerow(csv_cell(data_cell(cell, column.unit)) for column, cell in cells)
        sheets[table.name] = text.getvalue()
    return sheets


def to_openmetrics(report: Report) -> str:
    """Histograms in OpenMetrics' text format: start phases by class, profile and node's age, by image; new nodes."""
    registry = CollectorRegistry()
    registry.register(_Histograms(report))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # prometheus_client gives no types here
    return text.decode()


class _Histograms:
    """Collects the report's histograms."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterator[HistogramMetricFamily]:
        starts = self._report[Starts]
        yield _family(
            "roost_start_phase_seconds",
            "Time that pods took for a phase of their start.",
            ("phase", "pod_class", "scheduler", "node_age"),
            sorted(starts.histograms.items()),
        )
        yield _family(
            "roost_image_start_phase_seconds",
            "Time that pods took for a phase of their start, by image, without placeholders. Phase pull: images that "
            "were not on the node.",
            ("phase", "image"),
            (((phase, *image), spans) for image, phases in starts.by_image.items() for phase, spans in phases.items()),
        )
        yield _family(
            "roost_node_phase_seconds",
            "Time that new nodes took until they were ready, and from then until they had all images of the hub.",
            ("phase",),
            (((phase,), spans) for phase, spans in starts.new_nodes.items()),
        )


def _family(
    name: str, text: str, labels: tuple[str, ...], histograms: Iterable[tuple[tuple[str, ...], Spans]]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, text, labels=labels, unit="seconds")
    bounds = [*(str(bound) for bound in BOUNDS_SECONDS), "+Inf"]
    for values, spans in histograms:
        counts = [*spans.at_most(), spans.count]
        family.add_metric(values, list(zip(bounds, counts, strict=True)), sum_value=spans.sum_us / US)
    return family
