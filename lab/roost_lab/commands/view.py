"""`roost view`: the cluster in a browser, recorded or live."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from urllib.parse import urlsplit

import click

from roost.commands.options import cluster_options
from roost_core.http.server import BindError, bind
from roost_core.kube import logs
from roost_core.kube.client import ClusterError
from roost_core.kube.user_account import connect_as_user
from roost_lab.commands.options import database_option, read_moment, refuse
from roost_lab.pages.dates import as_date
from roost_lab.pages.phrases import show_bytes, show_time
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.report.statistics import Span
from roost_lab.simulator.setup.shipped_policies import policy_files, title_of
from roost_lab.units import HOUR_US
from roost_lab.view.live import LiveCluster, find_classes
from roost_lab.view.reading import RecordSource
from roost_lab.view.server import MomentSource, common_time, make_app, serve
from roost_lab.view.shareable import make_file

LOOPBACK = "127.0.0.1"
_BACKLOG = 128


def _write(
    output: Path, sources: Sequence[MomentSource], names: Sequence[str], at_us: int | None
) -> int:
    """Write the hour around a time, or all that the records have in common."""
    common = common_time(sources)
    if common is None:
        return refuse(
            "view",
            "the records have no time in common" if len(sources) > 1 else "nothing is recorded yet",
        )
    span = common
    if at_us is not None:
        span = Span(
            max(common.from_us, at_us - HOUR_US // 2), min(common.to_us, at_us + HOUR_US // 2)
        )
    if span.from_us >= span.to_us:
        return refuse(
            "view",
            f"--at: expected a time from {show_time(common.from_us)} to {show_time(common.to_us)}",
        )
    try:
        text = make_file(sources, names, span)
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        return refuse("view", f"--output: {output}: {error.strerror}")
    click.echo(
        f"{output}: {show_time(span.from_us)} to {show_time(span.to_us)},"
        f" {show_bytes(len(text.encode()))}"
    )
    click.echo("It holds the names of users: share it with those who may know them.", err=True)
    return 0


def _live(kubeconfig: str | None, context: str | None, stack: contextlib.ExitStack) -> MomentSource:
    # No warnings on the terminal: if a hub's log can't be read, the page says so.
    logs.configure("Error")
    client = connect_as_user(kubeconfig, context)
    classes, warning = find_classes(client)
    if warning:
        click.echo(f"roost view: {warning}", err=True)
    live = LiveCluster(client, classes)
    stop = threading.Event()
    stack.callback(stop.set)
    fault = live.start(stop)
    if fault:
        raise ClusterError(fault)
    return live


def names_of(urls: list[str]) -> list[str]:
    """What records are called: the names of their files or databases, if these differ.

    A replay's file has its policy's name: it is called by what the policy is, in words.
    """
    names = [Path(urlsplit(url).path).stem for url in urls]
    if len(set(names)) != len(names):
        return urls
    shipped = policy_files()
    return [title_of(name) if name in shipped else name for name in names]


@click.command("view")
@database_option(required=False)
@cluster_options
@click.option(
    "--live", is_flag=True, help="The cluster as it is now, without a record; so does --kubeconfig."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8095,
    show_default=True,
    help="On 127.0.0.1; 0: any that is free.",
)
@click.option(
    "--at", metavar="TIME", help="The moment to begin with (ISO 8601, UTC). Default: now."
)
@click.option(
    "--beside",
    metavar="FILE|URL",
    help="A second record, to compare: both are shown at the same time, under one slider.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help=(
        "Write one HTML file to share, and serve nothing: of the whole record, or of the hour"
        " around --at."
    ),
)
def command(
    *,
    database: str | None,
    kubeconfig: str | None,
    context: str | None,
    live: bool,
    port: int,
    at: str | None,
    beside: str | None,
    output: Path | None,
) -> int:
    """Serve a read-only page of the nodes and their pods, live or at any time of a record, and
    print its address.

    The address holds a secret: whoever knows it, and reaches this machine's loopback interface,
    can read the page.

    \b
    roost view --database roost.db
    roost view --database postgresql://roost@db/roost --at 2026-11-17T09:00
    roost view --database replays/z2jh-placeholders-packed.db --beside replays/roost.db
    roost view --database roost.db --at 2026-11-17T09:00 --output monday.html
    roost view --kubeconfig ~/.kube/config
    """
    is_live = live or kubeconfig is not None or context is not None
    if is_live and (at or beside or output):
        raise click.UsageError(
            "a live cluster has no past and nothing beside it: leave out --at, --beside, --output"
        )
    if not is_live and database is None:
        raise click.UsageError(
            "found neither a record nor a cluster: give --database FILE, --kubeconfig FILE or"
            " --live"
        )
    at_us = read_moment("--at", at, UTC) if at else None
    with contextlib.ExitStack() as stack:
        try:
            sources: list[MomentSource]
            if is_live:
                sources = [_live(kubeconfig, context, stack)]
                names = [""]
            else:
                urls = [url for url in (database, beside) if url is not None]
                stores = [
                    stack.enter_context(contextlib.closing(Store.open_for_reading(url)))
                    for url in urls
                ]
                sources = [RecordSource(store) for store in stores]
                names = names_of([store.shown_url for store in stores])
            if output is not None:
                return _write(output, sources, names, at_us)
            bound = bind(LOOPBACK, port)
        except (StoreError, BindError, ClusterError) as error:
            return refuse("view", error)
        bound.listen(_BACKLOG)
        token = secrets.token_urlsafe(24)
        moment = f"#at={as_date(at_us).strftime('%Y-%m-%dT%H:%M:%SZ')}" if at_us is not None else ""
        server = serve(make_app(sources, token, names=names), bound)
        click.echo(f"http://{LOOPBACK}:{bound.getsockname()[1]}/?token={token}{moment}")
        click.echo("Open this address in a browser; Ctrl-C ends it.", err=True)
        server.serve_forever()
    return 0
