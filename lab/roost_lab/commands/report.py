"""`roost report`: what was recorded over a period, as a page or as numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final

import click

from roost_core.kube.process import version
from roost_lab.commands.options import database_option, format_option, read_moment, refuse
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.report.formats import to_json, to_text
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page
from roost_lab.report.query import Scope, ScopeError
from roost_lab.report.subject import Report
from roost_lab.units import DAY_US, HOUR_US, MINUTE_US

_UNIT_US: Final = {"m": MINUTE_US, "h": HOUR_US, "d": DAY_US, "w": 7 * DAY_US}

_SPANS = ", or a duration such as 90m, 2h, 7d, 2w"


@click.command("report")
@database_option()
@click.option(
    "--since",
    metavar="TIME",
    help=(
        "ISO 8601, or 90m, 2h, 7d or 2w before the end. Default: 7 days before the end of the"
        " record."
    ),
)
@click.option("--until", metavar="TIME", help="ISO 8601. Default: the end of the record.")
@format_option(
    "html", "text", "json", text="html: one self-contained file. text: its head. json: its numbers."
)
@click.option("--output", metavar="FILE", help="Default: stdout.")
@click.option(
    "--hub", metavar="HUB", help="Only pods of this hub: its release and namespace, as jhub.prod."
)
@click.option(
    "--class", "pod_class", metavar="CLASS", help="Only pods of this class, such as user or build."
)
@click.option("--image", metavar="IMAGE", help="Only pods of this image, by its full name.")
@click.option(
    "--timezone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Of the page's times, and of --since and --until; such as Europe/Berlin. JSON has UTC.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    help="For the title. Default: the API server's address, if it is a name.",
)
def command(
    *,
    database: str,
    since: str | None,
    until: str | None,
    form: str,
    output: str | None,
    hub: str | None,
    pod_class: str | None,
    image: str | None,
    timezone: str,
    cluster: str | None,
) -> int:
    """Summarize the record: start phases, warm pulls, what ran on the nodes, failures, preemptions,
    gaps.

    \b
    roost report --database roost.db --output report.html
    roost report --database roost.db --since 2h --hub jhub.prod --class user
    roost report --database roost.db --since 2026-11-01 --format json
    """
    zone = _zone(timezone)
    last_us = _span_us(since) if since else None
    since_us = read_moment("--since", since, zone, _SPANS) if since and last_us is None else None
    until_us = read_moment("--until", until, zone) if until else None
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise click.BadParameter(
            f"{until}: expected a time after --since {since}", param_hint="--until"
        )
    try:
        store = Store.open_for_reading(database)
        scope = Scope(hub, pod_class, image)
        report = gather(store, since_us, until_us, last_us=last_us, scope=scope, zone=zone)
        _write(
            replace(report, cluster=report.cluster if cluster is None else cluster),
            form,
            output or "-",
            store,
        )
    except (StoreError, ScopeError) as error:
        return refuse("report", error)
    except OSError as error:
        return refuse("report", f"{error.filename}: {error.strerror}")
    return 0


def _write(report: Report, form: str, output: str, store: Store) -> None:
    """output: a file or "-"."""
    name = re.split(r"[/\\]", store.engine.url.database or "")[-1]
    match form:
        case "json":
            text = to_json(report)
        case "text":
            text = to_text(report)
        case _:
            text = make_page(report, f"Database {name}, read by roost {version()}.")
    if output == "-":
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")


def _span_us(text: str) -> int | None:
    """Microseconds of a duration such as 2h; None of anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text, re.ASCII)
    if found is None:
        return None
    number, unit = found.groups()
    return int(number) * _UNIT_US[unit]


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - takes a tenth of any command's start

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        expected = "expected a time zone's name, such as Europe/Berlin or UTC"
        raise click.BadParameter(f"{name}: {expected}", param_hint="--timezone") from None
