"""Options that several of the lab's commands share: the record's database, and moments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import click

from generator.faults import one_line
from roost_lab.pages.dates import MAX_US


def database_option(*, required: bool = True) -> Callable[..., Any]:
    """Add where the recorder's rows are."""
    return click.option(
        "--database",
        metavar="FILE|URL",
        required=required,
        envvar="ROOST_DATABASE",
        help=(
            "The recorder's: an SQLite file, or postgresql://user@host/name. Also from"
            " ROOST_DATABASE."
        ),
    )


def format_option(*forms: str, text: str) -> Callable[..., Any]:
    """Add in which form it is printed: the first by default. text: the help."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help=text
    )


def refuse(command: str, why: object, code: int = 2) -> int:
    """Say on stderr, line by line, what keeps the command from its work; its exit code.

    code: 2 for what can't be read or reached, 1 for what was read and is faulty or holds no answer.
    """
    for line in str(why).splitlines():
        click.echo(one_line(f"roost {command}: {line}"), err=True)
    return code


def moment_option(name: str, text: str, zone: tzinfo = UTC, more: str = "") -> int:
    """Microseconds since 1970 of an option's ISO 8601 time up to 9999, of the zone unless it says
    another.

    more: what else the option accepts. Raises click.BadParameter.
    """
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment
        at_us = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except ValueError:
        at_us = -1
    if 0 <= at_us <= MAX_US:
        return at_us
    expected = f"expected a time such as 2026-11-21T10:30 ({zone}), from 1970 to 9999"
    raise click.BadParameter(f"{text}: {expected}{more}", param_hint=name) from None
