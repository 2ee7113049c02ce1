"""`roost report`: what was recorded over a period, as a page or as numbers."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roost.recorder.report.formats import to_csv, to_json, to_openmetrics
from roost.recorder.report.gather import gather
from roost.recorder.report.page import make_page
from roost.recorder.store.database import Store, StoreError
from roost_core.kube.process import version

if TYPE_CHECKING:
    from roost.recorder.report.subject import Report


def run(database: str, since_us: int | None, until_us: int | None, form: str, output: str | None) -> int:
    """Write the report; 1 when the database can't be read, or the file can't be written."""
    try:
        store = Store.open_for_reading(database)
        report = gather(store, since_us, until_us)
        text = _write(report, form, f"{store.engine.url.database or ''}")
    except StoreError as error:
        print(f"roost report: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    if output is None or output == "-":
        click.echo(text, nl=False)
        return 0
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"roost report: {output}: {error.strerror}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    return 0


def _write(report: Report, form: str, database: str) -> str:
    match form:
        case "json":
            return to_json(report)
        case "csv":
            return to_csv(report)
        case "openmetrics":
            return to_openmetrics(report)
        case _:
            name = re.split(r"[/\\]", database)[-1]
            return make_page(report, f"Database {name}, read by roost {version()}.")
