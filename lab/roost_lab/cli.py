"""Commands that read and write records and traces of launches: why, report, view, records, traces."""

from __future__ import annotations

import os
import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from roost.commands import call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# 9999-12-31T23:59:59.999999Z, the last time that a datetime can represent.
_LAST_US: Final = 253_402_300_800 * 1_000_000 - 1
_TIME_EXPECTED: Final = "expected a time such as 2026-11-21T10:30 (UTC), from 1970 to 9999"


def _moment_us(text: str, zone: tzinfo = UTC) -> int:
    """Microseconds since 1970 of an ISO 8601 time up to 9999; of the zone unless it says another. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    at_us = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if not 0 <= at_us <= _LAST_US:
        raise ValueError(text)
    return at_us


def _database_option(command: Callable[..., int]) -> Callable[..., int]:
    """Add where the recorder's rows are."""
    return click.option(
        "--database",
        metavar="FILE|URL",
        required=True,
        envvar="ROOST_DATABASE",
        help="The recorder's: an SQLite file, or postgresql://user@host/name. Also from ROOST_DATABASE.",
    )(command)


@click.command("why", short_help="Explain where a pod was placed, and what it waited for.")
@click.argument("pod", metavar="[NAMESPACE/]POD")
@_database_option
@click.option(
    "--at", metavar="TIME", help="Of several pods with this name, the one that existed at this time (ISO 8601, UTC)."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def _why(*, pod: str, database: str, at: str | None, form: str) -> int:
    """Explain where a pod was placed, which other nodes there were, and what it waited for; of a pod that waits, what
    each node lacks for it and what would help.

    \b
    roost why jupyter-ada --database roost.db
    roost why hub/jupyter-ada --at 2026-11-21T10:30 --database postgresql://roost@db/roost
    """
    try:
        at_us = _moment_us(at) if at else None
    except ValueError:
        raise click.BadParameter(f"{at}: {_TIME_EXPECTED}") from None
    return call("why", pod, database, at_us, form)


@click.command("report", short_help="Summarize the record: an HTML page, or its numbers.")
@_database_option
@click.option(
    "--since",
    metavar="TIME",
    help="ISO 8601, or 90m, 2h, 7d or 2w before the end. Default: 7 days before the end of the record.",
)
@click.option("--until", metavar="TIME", help="ISO 8601. Default: the end of the record.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "json", "csv", "parquet", "openmetrics"]),
    default="html",
    show_default=True,
    help="html: one self-contained file. json: its numbers. csv, parquet: a folder with a file for each table. "
    "openmetrics: histograms of the start phases.",
)
@click.option("--output", metavar="FILE", help="Default: stdout. Of csv and parquet, the folder.")
@click.option("--hub", metavar="HUB", help="Only pods of this hub, by its release.")
@click.option("--class", "pod_class", metavar="CLASS", help="Only pods of this class, such as user or build.")
@click.option("--image", metavar="IMAGE", help="Only pods of this image, by its full name.")
@click.option(
    "--timezone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Of the page's times, and of --since and --until; such as Europe/Berlin. JSON, CSV and Parquet have UTC.",
)
@click.option(
    "--price",
    "prices",
    metavar="LABEL=VALUE:PRICE",
    multiple=True,
    help="What a node with this label costs for an hour; repeat it. A node has the first price that fits.",
)
@click.option("--cluster", metavar="NAME", help="For the title. Default: the API server's address, if it is a name.")
def _report(
    *,
    database: str,
    since: str | None,
    until: str | None,
    hub: str | None,
    pod_class: str | None,
    image: str | None,
    timezone: str,
    prices: tuple[str, ...],
    **rest: Any,  # noqa: ANN401 - click's
) -> int:
    """Summarize the record: start phases, warm pulls, what ran on the nodes, failures, preemptions, gaps.

    \b
    roost report --database roost.db --output report.html
    roost report --database roost.db --since 2h --hub jhub --class user
    roost report --database roost.db --since 2026-11-01 --format json
    """
    if rest["form"] in ("csv", "parquet") and rest["output"] in (None, "-"):
        raise click.UsageError(
            f"--format {rest['form']} writes a file for each table: name a folder for them, --output FOLDER"
        )
    zone = _zone(timezone)
    last_us = _span_us(since) if since else None
    since_us = _moment_option("--since", since, zone) if since and last_us is None else None
    until_us = _moment_option("--until", until, zone) if until else None
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise click.BadParameter(f"{until}: expected a time after --since {since}", param_hint="--until")
    from roost_lab.commands.report import ReportOptions  # noqa: PLC0415 - other commands needn't load the database layer
    from roost_lab.report.prices import PriceError, parse_price  # noqa: PLC0415 - as above
    from roost_lab.report.scope import Scope  # noqa: PLC0415 - as above

    try:
        known = [parse_price(text) for text in prices]
    except PriceError as error:
        raise click.BadParameter(f"{error}", param_hint="--price") from None
    scope = Scope(hub, pod_class, image)
    options = ReportOptions(
        since_us=since_us, until_us=until_us, last_us=last_us, scope=scope, zone=zone, prices=known, **rest
    )
    return call("report", database, options)


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


def _moment_option(name: str, text: str, zone: tzinfo) -> int:
    try:
        return _moment_us(text, zone)
    except ValueError:
        expected = _TIME_EXPECTED.replace("UTC", str(zone)) + (
            ", or a duration such as 90m, 2h, 7d, 2w" if name == "--since" else ""
        )
        raise click.BadParameter(f"{text}: {expected}", param_hint=name) from None


@click.command("view", short_help="Show the recorded cluster in a browser, now or at any time.")
@_database_option
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8095,
    show_default=True,
    help="On 127.0.0.1; 0: any that is free.",
)
@click.option("--at", metavar="TIME", help="The moment to begin with (ISO 8601, UTC). Default: now.")
@click.option(
    "--beside",
    metavar="FILE|URL",
    help="A second record, to compare: both are shown at the same time, under one slider.",
)
@click.option("--hub", "hubs", metavar="HUB", multiple=True, help="Only pods of this hub, by its release; repeats.")
@click.option(
    "--jupyterhub",
    "is_service",
    is_flag=True,
    help="Run as a service of a JupyterHub, which signs viewers in: admins see all, users their own pods' why.",
)
def _view(*, database: str, port: int, at: str | None, **rest: Any) -> int:  # noqa: ANN401 - click's
    """Serve a read-only page of the nodes and their pods, live or at any time of the record, and print its address.

    The address holds a secret: whoever knows it, and reaches this machine's loopback interface, can read the record.

    \b
    roost view --database roost.db
    roost view --database postgresql://roost@db/roost --at 2026-11-17T09:00
    roost view --database replays/z2jh.db --beside replays/roost.db
    """
    if rest["beside"] and rest["is_service"]:
        raise click.UsageError("--jupyterhub shows one record: leave it out, or --beside")
    return call("view", database, port, _moment_option("--at", at, UTC) if at else None, **rest)


@click.group("records", short_help="Export recorded starts, or import your cluster's Events.")
def _records() -> None:
    """Export recorded starts for other programs, or import a cluster's own history."""


@_records.command("export")
@_database_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["launches", "sniffer", "chrome-trace"]),
    default="launches",
    show_default=True,
    help="launches: one JSON line a user pod, for `roost simulate`. sniffer: scheduler-sniffer's JSON lines. "
    "chrome-trace: pods on their nodes, for Perfetto (ui.perfetto.dev).",
)
@click.option("--since", metavar="TIME", help="Only pods created since (ISO 8601, UTC).")
def _records_export(*, database: str, form: str, since: str | None) -> int:
    """Print the record as JSON lines, or as a trace.

    \b
    roost records export --database roost.db --since 2026-11-01 > launches.jsonl
    roost records export --database roost.db --format chrome-trace > trace.json
    """
    try:
        since_us = _moment_us(since) if since else 0
    except ValueError:
        raise click.BadParameter(f"{since}: {_TIME_EXPECTED}") from None
    from roost_lab.commands.records import export  # noqa: PLC0415 - other commands needn't load the database layer

    return export(database, form, since_us)


@_records.command("send")
@_database_option
@click.option(
    "--to",
    metavar="URL",
    required=True,
    envvar="OTEL_EXPORTER_OTLP_ENDPOINT",
    help="The collector's address for OTLP over HTTP, such as http://localhost:4318. Also from "
    "OTEL_EXPORTER_OTLP_ENDPOINT.",
)
@click.option("--follow", is_flag=True, help="Go on: look every ten seconds, and wait while the collector is away.")
def _records_send(*, database: str, to: str, follow: bool) -> int:
    """Send starts as traces to a collector of OpenTelemetry: a start is a trace, its phases are spans.

    Begins where it stopped last, which the database keeps; a start may be sent twice, with the same ids, but none is
    left out. Headers, such as a token, come from OTEL_EXPORTER_OTLP_HEADERS.

    \b
    roost records send --database roost.db --to http://localhost:4318 --follow
    """
    from roost_lab.commands.records import send  # noqa: PLC0415 - as above

    return send(database, to, os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""), follow=follow)


@_records.command("import")
@_database_option
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
def _records_import(*, database: str, paths: tuple[str, ...]) -> int:
    """Store a cluster's own history, for `why`, `report` and `records export`, and say what users waited for.

    FILE is JSON, JSON lines or YAML of kubectl, or a log of Events; plain or gzip; - is standard input.
    What a file is, is recognised; a log of scheduler-sniffer too. The same file twice changes nothing.

    \b
    kubectl get events -A -o json > events.json
    kubectl get pods -A -o json > pods.json
    roost records import events.json pods.json --database history.db
    """
    from roost_lab.commands.records import take_in  # noqa: PLC0415 - as above

    return take_in(database, paths)


@click.group(
    "traces", short_help="Download public launches for `roost simulate`, or share yours.", invoke_without_command=True
)
@click.option("--from", "first", metavar="DAY", help="The first day, such as 2019-05-22.")
@click.option("--to", "last", metavar="DAY", help="The last day, included. Default: the first.")
@click.option(
    "--list", "only_list", is_flag=True, help="Print the archive's days (or the selected ones) and their launches."
)
@click.option("--folder", metavar="FOLDER", default=".", show_default=True, help="Target folder; one file per day.")
@click.option("--archive", metavar="URL", help="Default: https://archive.analytics.mybinder.org/")
@click.option(
    "--allow-http", is_flag=True, help="Also download over plain http, where anyone in between can change files."
)
@click.option(
    "--tries", type=click.IntRange(1, 100), default=5, show_default=True, help="Consecutive failures before giving up."
)
@click.option("--no-check", is_flag=True, help="Accept files whose number of launches differs from the index.")
@click.pass_context
def _traces(context: click.Context, /, **arguments: Any) -> int:  # noqa: ANN401 - click's
    """Download days of mybinder.org's public launches, for `roost simulate --trace`; prints the files' names.

    An interrupted download continues where it stopped. A file appears only when it is complete: its size, its JSON and
    its number of launches are checked. Exit codes: 0 all days are downloaded, 1 some are missing, 2 wrong usage.

    \b
    roost traces --list
    roost traces --from 2019-05-22 --to 2019-05-31 --folder traces
    """
    if context.invoked_subcommand is not None:
        given = [name for name in arguments if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
        if given:
            raise click.UsageError(
                f"the options before `{context.invoked_subcommand}` are for downloads: leave them out"
            )
        return 0
    for name in ("first", "last"):
        try:
            arguments[name] = date.fromisoformat(arguments[name]) if arguments[name] else None
        except ValueError:
            option = {"first": "--from", "last": "--to"}[name]
            message = f"{arguments[name]}: expected a day such as 2019-05-22"
            raise click.BadParameter(message, param_hint=option) from None
    if arguments["first"] is None and (arguments["last"] is not None or not arguments["only_list"]):
        raise click.UsageError("--from is missing: the first day to download, or --list for the days there are")
    if arguments["last"] is not None and arguments["last"] < arguments["first"]:
        raise click.BadParameter(f"{arguments['last']}: is before --from {arguments['first']}", param_hint="--to")
    return call("traces", **arguments)


@_traces.command("share", short_help="Print an anonymised launch trace of a record.")
@click.option("--database", metavar="FILE|URL", help="The recorder's: an SQLite file, or postgresql://user@host/name.")
@click.option("--trace", "traces", metavar="FILE", multiple=True, help="Launches instead of a record; repeats.")
@click.option(
    "--shift-weeks",
    "weeks",
    metavar="WEEKS",
    type=click.IntRange(-520, 520),
    default=0,
    help="Move all times by so many weeks: weekdays and hours stay.",
)
@click.option(
    "--rare",
    metavar="LAUNCHES",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Images and repositories launched less often get a new name at each launch.",
)
def _traces_share(*, database: str | None, traces: tuple[str, ...], weeks: int, rare: int) -> int:
    """Print a launch trace for `roost simulate --trace` that names nobody: lab/docs/shared-traces.md says what it still
    holds.

    Images and repositories become hashes whose key is thrown away, and so do hubs where there are several. Users,
    commits and results of launches are left out, sizes are rounded. Launch times, lengths of sessions and requests
    stay.

    \b
    roost traces share --database roost.db | gzip > shared.jsonl.gz
    roost traces share --trace launches.jsonl.gz --shift-weeks -26 --rare 3 > shared.jsonl
    """
    if (database is None) == (not traces):
        raise click.UsageError("give --database (a record) or --trace (launches), one of them")
    from roost_lab.commands.traces import share  # noqa: PLC0415 - other commands needn't load the simulator

    return share(database=database, traces=traces, weeks=weeks, rare=rare)


# In the order of `roost --help`.
RECORD_COMMANDS: Final[Sequence[click.Command]] = (_why, _report, _view, _records, _traces)
