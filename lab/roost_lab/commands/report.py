"""`roost report`: what was recorded over a period, as a page or as numbers."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from roost_core.kube.process import version
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.report.costs import unused_prices
from roost_lab.report.formats import to_csv, to_json, to_openmetrics
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page
from roost_lab.report.scope import EVERY_POD, Scope, ScopeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost_lab.report.prices import Price
    from roost_lab.report.subject import Report


class ReportOptions(NamedTuple):
    """What the report is about, and where it goes."""

    form: str
    # None: standard output. A folder for CSV and Parquet.
    output: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    # So long before the end, instead of since_us.
    last_us: int | None = None
    scope: Scope = EVERY_POD
    # Of times that people read.
    zone: tzinfo = UTC
    prices: Sequence[Price] = ()
    # For the title; None: the API server's address, if it is a name.
    cluster: str | None = None


def run(database: str, options: ReportOptions) -> int:
    """Write the report; 1 when the database can't be read, or the file can't be written."""
    if options.form == "parquet":
        # Before anything is read: its package may be missing.
        from roost_lab.report.parquet import write_parquet  # noqa: PLC0415 - an extra
    try:
        store = Store.open_for_reading(database)
        report = gather(
            store,
            options.since_us,
            options.until_us,
            last_us=options.last_us,
            scope=options.scope,
            zone=options.zone,
            prices=options.prices,
        )
    except (StoreError, ScopeError) as error:
        print(f"roost report: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    for slip in unused_prices(report):
        print(f"roost report: {slip}", file=sys.stderr)  # noqa: T201 - a command's talk
    if options.cluster is not None:
        report = replace(report, cluster=options.cluster)
    path = Path(options.output or ".")
    try:
        if options.form == "csv":
            path.mkdir(parents=True, exist_ok=True)
            for name, sheet in to_csv(report).items():
                (path / f"{name}.csv").write_text(sheet, encoding="utf-8")
        elif options.form == "parquet":
            path.mkdir(parents=True, exist_ok=True)
            write_parquet(report, path)
        else:
            text = _text(report, options.form, f"{store.engine.url.database or ''}")
            if options.output in (None, "-"):
                click.echo(text, nl=False)
            else:
                path.write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"roost report: {error.filename}: {error.strerror}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    return 0


def _text(report: Report, form: str, database: str) -> str:
    match form:
        case "json":
            return to_json(report)
        case "openmetrics":
            return to_openmetrics(report)
        case _:
            name = re.split(r"[/\\]", database)[-1]
            return make_page(report, f"Database {name}, read by roost {version()}.")
