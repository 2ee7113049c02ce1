"""`roost view`: the recorded cluster in a browser."""

from __future__ import annotations

import secrets
import sys
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from roost_core.http.server import BindError, bind
from roost_lab.commands.options import database_option, moment_option
from roost_lab.pages.dates import as_date
from roost_lab.recorder.store.database import Store, StoreError
from roost_lab.view.access import Access, AccessError, TokenAccess
from roost_lab.view.reading import read_hubs
from roost_lab.view.server import make_app, serve

if TYPE_CHECKING:
    from socket import socket

    from roost_lab.view.hub_sign_in import HubAccess

LOOPBACK = "127.0.0.1"
_BACKLOG = 128


def run(
    database: str,
    port: int,
    at_us: int | None,
    *,
    beside: str | None = None,
    hubs: tuple[str, ...] = (),
    is_service: bool = False,
) -> int:
    """Serve until Ctrl-C. beside: a second database, shown beside the first. hubs: empty for all pods.

    1 when a database can't be read, the port is taken, or a service's record has several hubs and none is named.
    """
    stores = []
    try:
        hub_access = _hub_access() if is_service else None
        stores += [Store.open_for_reading(url) for url in (database, beside) if url is not None]
        if hub_access is not None and not hubs:
            _refuse_several_hubs(stores[0])
        moment = f"#at={as_date(at_us).strftime('%Y-%m-%dT%H:%M:%SZ')}" if at_us is not None else ""
        access, bound, address = _alone(port, moment) if hub_access is None else _as_service(hub_access)
    except (StoreError, BindError, AccessError) as error:
        print(f"roost view: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        for store in stores:
            store.close()
        return 1
    app = make_app(
        stores[0],
        access,
        beside=stores[1] if len(stores) > 1 else None,
        names=names_of([store.shown_url for store in stores]),
        hubs=frozenset(hubs) if hubs else None,
    )
    server = serve(app, bound)
    click.echo(address)
    click.echo("Open this address in a browser; Ctrl-C ends it.", err=True)
    server.serve_forever()
    for store in stores:
        store.close()
    return 0


def names_of(urls: list[str]) -> list[str]:
    """What records are called: the names of their files or databases, if these differ."""
    names = [Path(urlsplit(url).path).stem for url in urls]
    return names if len(set(names)) == len(names) else urls


def _alone(port: int, moment: str) -> tuple[Access, socket, str]:
    bound = bind(LOOPBACK, port)
    bound.listen(_BACKLOG)
    token = secrets.token_urlsafe(24)
    return TokenAccess(token), bound, f"http://{LOOPBACK}:{bound.getsockname()[1]}/?token={token}{moment}"


def _hub_access() -> HubAccess:
    from roost_lab.view.hub_sign_in import HubAccess  # noqa: PLC0415 - needs the extra [hub]

    return HubAccess()


def _refuse_several_hubs(store: Store) -> None:
    found = read_hubs(store)
    if len(found) > 1:
        raise AccessError(
            f"--jupyterhub: the record has users of {len(found)} hubs ({', '.join(found)}), and an admin of one would "
            f"see those of all: name the hub whose service this is, such as --hub {found[0]}"
        )


def _as_service(access: HubAccess) -> tuple[Access, socket, str]:
    parts = urlsplit(access.url)
    bound = bind(parts.hostname or LOOPBACK, parts.port or 80)
    bound.listen(_BACKLOG)
    return access, bound, access.url


@click.command("view")
@database_option
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
def _command(*, database: str, port: int, at: str | None, **rest: Any) -> int:  # noqa: ANN401 - click's
    """Serve a read-only page of the nodes and their pods, live or at any time of the record, and print its address.

    The address holds a secret: whoever knows it, and reaches this machine's loopback interface, can read the record.

    \b
    roost view --database roost.db
    roost view --database postgresql://roost@db/roost --at 2026-11-17T09:00
    roost view --database replays/z2jh.db --beside replays/roost.db
    """
    if rest["beside"] and rest["is_service"]:
        raise click.UsageError("--jupyterhub shows one record: leave it out, or --beside")
    return run(database, port, moment_option("--at", at, UTC) if at else None, **rest)


COMMAND: Final = _command
