"""Options that several of the lab's commands share, how their times are read, and how they fail."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import click

from generator.faults import one_line
from roost_lab.pages.dates import MAX_US


def database_option(*, required: bool = True) -> Callable[..., Any]:
    """An option `database`: where the recorder's rows are, a file or a URL."""
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
    """An option `form` of the command: one of `forms`, the first by default. text: the help."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help=text
    )


def refuse(command: str, why: object, code: int = 2) -> int:
    """Print on stderr why a command can't do its work, and return its exit code.

    why: an error or a text; each of its lines is printed with the command's name.
    code: 2 where something can't be read or reached; 1 where what was read is faulty, or has no
    answer.
    """
    for line in str(why).splitlines():
        click.echo(one_line(f"roost {command}: {line}"), err=True)
    return code


def read_moment(option: str, text: str, zone: tzinfo = UTC, more: str = "") -> int:
    """The microseconds since 1970 of an option's time, from 1970 to 9999.

    option: its name, such as `--at`. text: the time, in ISO 8601. zone: counts where the text has
    no zone. more: what else the option accepts, for the error. Raises click.BadParameter.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        at_us = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except ValueError:
        at_us = -1
    if 0 <= at_us <= MAX_US:
        return at_us
    expected = f"expected a time such as 2026-11-21T10:30 ({zone}), from 1970 to 9999"
    raise click.BadParameter(f"{text}: {expected}{more}", param_hint=option)
