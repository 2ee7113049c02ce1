"""Options that several of the lab's commands share: the record's database, and moments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

import click

from roost_lab.pages.dates import MAX_US

TIME_EXPECTED: Final = "expected a time such as 2026-11-21T10:30 (UTC), from 1970 to 9999"


def database_option(command: Callable[..., int] | None = None, *, required: bool = True) -> Callable[..., Any]:
    """Add where the recorder's rows are."""
    add = click.option(
        "--database",
        metavar="FILE|URL",
        required=required,
        envvar="ROOST_DATABASE",
        help="The recorder's: an SQLite file, or postgresql://user@host/name. Also from ROOST_DATABASE.",
    )
    return add if command is None else add(command)


def refuse(command: str, why: object) -> int:
    """Say on stderr, line by line, what keeps the command from its work; its exit code."""
    for line in str(why).splitlines():
        click.echo(f"roost {command}: {line}", err=True)
    return 1


def moment_us(text: str, zone: tzinfo = UTC) -> int:
    """Microseconds since 1970 of an ISO 8601 time up to 9999; of the zone unless it says another. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    at_us = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if not 0 <= at_us <= MAX_US:
        raise ValueError(text)
    return at_us


def moment_option(name: str, text: str, zone: tzinfo = UTC) -> int:
    """The moment that the option `name` was given. Raises click.BadParameter."""
    try:
        return moment_us(text, zone)
    except ValueError:
        expected = TIME_EXPECTED.replace("UTC", str(zone)) + (
            ", or a duration such as 90m, 2h, 7d, 2w" if name == "--since" else ""
        )
        raise click.BadParameter(f"{text}: {expected}", param_hint=name) from None
