"""`roost rehearse`: play a booked event's day before it comes, and say what its people will wait and what it costs."""

import sys
from typing import Any

import click

from generator.values.merge import Settings
from roost_lab.booking import entry_of, event_options
from roost_lab.simulator.setup.checks import AssumptionsError, make_assumptions, read_assumption
from roost_lab.simulator.sweep.rehearsal import rehearse


@click.command("rehearse")
@event_options
@click.option("-f", "--values", "files", metavar="FILE", multiple=True, help="Values; later files win.")
@click.option("--set", "values", metavar="KEY=VALUE", multiple=True, help="As Helm's --set, one key: a.b=c.")
@click.option(
    "--launches",
    type=click.FloatRange(0, 1e6),
    default=2000,
    show_default=True,
    help="Made-up launches a day beside the event's.",
)
@click.option(
    "--assume", "assumptions", metavar="NAME=VALUE", multiple=True, help="As --set of `roost simulate`: nodes, pulls, …"
)
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True)
def command(
    *,
    people: int | None,
    when: tuple[str, ...],
    zone: str,
    placeholders: str,
    image: str,
    files: tuple[str, ...],
    values: tuple[str, ...],
    assumptions: tuple[str, ...],
    **days: Any,  # noqa: ANN401 - click's
) -> int:
    """Play the hours around an event twice, with and without the booking, and say in a sentence what comes of it.

    PEOPLE and WHEN are as for `roost book`.

    \b
    roost rehearse 120 2026-11-24 9:00 -f values.yaml --zone Europe/Berlin --image quay.io/me/course:1
    """
    try:
        assumed = make_assumptions(dict(read_assumption(text, "--assume") for text in assumptions), "--assume")
        entry = entry_of(people, when, image=image, placeholders=placeholders, zone=zone, name="rehearsal")
        found = rehearse(entry, files, Settings(values=values), assumed, **days)
    except AssumptionsError as error:
        for line in str(error).splitlines():
            print(f"roost rehearse: {line}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    sys.stdout.write(f"{found.sentence()}\n{found.rows()}")
    return 0
