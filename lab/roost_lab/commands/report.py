"""`roost report`: what was recorded over a period, as a page or as numbers."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from roost_core.kube.process import version
from roost_lab.commands.options import database_option, moment_option
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.report.formats import to_csv, to_json
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page
from roost_lab.report.query import EVERY_POD, Scope, ScopeError

if TYPE_CHECKING:
    from roost_lab.report.subject import Report


class ReportOptions(NamedTuple):
    """What the report is about, and where it goes."""

    form: str
    # None: standard output. A folder for CSV.
    output: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    # So long before the end, instead of since_us.
    last_us: int | None = None
    scope: Scope = EVERY_POD
    # Of times that people read.
    zone: tzinfo = UTC
    # For the title; None: the API server's address, if it is a name.
    cluster: str | None = None


def run(database: str, options: ReportOptions) -> int:
    """Write the report; 1 when the database can't be read, or the file can't be written."""
    try:
        store = Store.open_for_reading(database)
        report = gather(
            store,
            options.since_us,
            options.until_us,
            last_us=options.last_us,
            scope=options.scope,
            zone=options.zone,
        )
    except (StoreError, ScopeError) as error:
        print(f"roost report: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    if options.cluster is not None:
        report = replace(report, cluster=options.cluster)
    path = Path(options.output or ".")
    try:
        if options.form == "csv":
            path.mkdir(parents=True, exist_ok=True)
            for name, sheet in to_csv(report).items():
                (path / f"{name}.csv").write_text(sheet, encoding="utf-8")
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
        case _:
            name = re.split(r"[/\\]", database)[-1]
            return make_page(report, f"Database {name}, read by roost {version()}.")


@click.command("report")
@database_option
@click.option(
    "--since",
    metavar="TIME",
    help="ISO 8601, or 90m, 2h, 7d or 2w before the end. Default: 7 days before the end of the record.",
)
@click.option("--until", metavar="TIME", help="ISO 8601. Default: the end of the record.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "json", "csv"]),
    default="html",
    show_default=True,
    help="html: one self-contained file. json: its numbers. csv: a folder with a file for each table.",
)
@click.option("--output", metavar="FILE", help="Default: stdout. Of csv, the folder.")
@click.option("--hub", metavar="HUB", help="Only pods of this hub: its release and namespace, as jhub.prod.")
@click.option("--class", "pod_class", metavar="CLASS", help="Only pods of this class, such as user or build.")
@click.option("--image", metavar="IMAGE", help="Only pods of this image, by its full name.")
@click.option(
    "--timezone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Of the page's times, and of --since and --until; such as Europe/Berlin. JSON and CSV have UTC.",
)
@click.option("--cluster", metavar="NAME", help="For the title. Default: the API server's address, if it is a name.")
def _command(
    *,
    database: str,
    since: str | None,
    until: str | None,
    hub: str | None,
    pod_class: str | None,
    image: str | None,
    timezone: str,
    **rest: Any,  # noqa: ANN401 - click's
) -> int:
    """Summarize the record: start phases, warm pulls, what ran on the nodes, failures, preemptions, gaps.

    \b
    roost report --database roost.db --output report.html
    roost report --database roost.db --since 2h --hub jhub.prod --class user
    roost report --database roost.db --since 2026-11-01 --format json
    """
    if rest["form"] == "csv" and rest["output"] in (None, "-"):
        raise click.UsageError("--format csv writes a file for each table: name a folder for them, --output FOLDER")
    zone = _zone(timezone)
    last_us = _span_us(since) if since else None
    since_us = moment_option("--since", since, zone) if since and last_us is None else None
    until_us = moment_option("--until", until, zone) if until else None
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise click.BadParameter(f"{until}: expected a time after --since {since}", param_hint="--until")

    scope = Scope(hub, pod_class, image)
    options = ReportOptions(since_us=since_us, until_us=until_us, last_us=last_us, scope=scope, zone=zone, **rest)
    return run(database, options)


def _span_us(text: str) -> int | None:
    """Microseconds of a duration such as 2h; None of anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text, re.ASCII)
    if found is None:
        return None
    seconds = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}[found[2]]
    return int(found[1]) * seconds * 1_000_000


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - takes a tenth of any command's start

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        expected = "expected a time zone's name, such as Europe/Berlin or UTC"
        raise click.BadParameter(f"{name}: {expected}", param_hint="--timezone") from None


COMMAND: Final = _command
