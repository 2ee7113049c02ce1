"""`roost view`: the recorded cluster in a browser."""

from __future__ import annotations

import secrets
import sys

import click

from roost.pages.dates import as_date
from roost.recorder.store.database import Store, StoreError
from roost.recorder.view.server import make_app, serve
from roost_core.http.server import BindError, bind

LOOPBACK = "127.0.0.1"
_BACKLOG = 128


def run(database: str, port: int, at_us: int | None) -> int:
    """Serve until Ctrl-C; 1 when the database can't be read, or the port is taken."""
    try:
        store = Store.open_for_reading(database)
        bound = bind(LOOPBACK, port)
    except (StoreError, BindError) as error:
        print(f"roost view: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    bound.listen(_BACKLOG)
    token = secrets.token_urlsafe(24)
    server = serve(make_app(store, token), bound)
    moment = f"#at={as_date(at_us).strftime('%Y-%m-%dT%H:%M:%SZ')}" if at_us is not None else ""
    click.echo(f"http://{LOOPBACK}:{server.port}/?token={token}{moment}")
    click.echo("Open this address in a browser of this machine; Ctrl-C ends it.", err=True)
    server.serve_forever()
    store.close()
    return 0
