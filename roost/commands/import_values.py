"""`roost import`: zero-to-jupyterhub's or BinderHub's values to Roost's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from generator.faults import UsageError
from generator.importing.hub_folders import find_hubs_in, hubs_of_files
from generator.importing.importer import import_layers
from generator.importing.many_hubs import import_many
from generator.importing.money import set_node_price
from generator.importing.proposals import pointer, print_proposals, propose
from generator.importing.seating import HUB_LINES
from generator.values.files import parse_values, read_file
from generator.values.release_name import Release
from roost.commands.hub_trial import try_import


def run_many(files: Sequence[str], folders: Sequence[Path]) -> int:
    """Print one release's values for many hubs, and the report to stderr; 1 if Roost wouldn't take
    them.

    folders: of hubs' values; files are then common to all of these hubs. Without folders each file
    is a hub of its own.
    """
    layers = [(file, read_file(file)) for file in files]
    hubs = [] if folders else hubs_of_files(layers)
    left_out = []
    for folder in folders:
        found, others = find_hubs_in(folder, layers)
        hubs += found
        left_out += others
    many = import_many(hubs, try_import)
    many.left_out += left_out
    sys.stdout.write(many.to_yaml())
    sys.stderr.write(many.report())
    return 0 if many.is_valid else 1


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1)
@click.option(
    "--folder",
    "folders",
    type=click.Path(path_type=Path),
    multiple=True,
    help=(
        "Of many hubs' values, for one release of all: HUB.values.yaml, HUB/values.yaml; FILE is"
        " then common to them."
    ),
)
@click.option("--many", is_flag=True, help="Each FILE is a hub of its own, for one release of all.")
@click.option(
    "--hub-release",
    "release",
    metavar="NAME",
    default="",
    help="The hub's Helm release. Default: as FILE names it, else hub.",
)
@click.option(
    "--hub",
    metavar="KEY",
    help="The key of the hub's values, like basehub.jupyterhub. Default: the only one.",
)
@click.option(
    "--quotas",
    metavar="PATH",
    help="Say what ResourceQuotas and LimitRanges of this file or folder refuse.",
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default="default",
    help="With --quotas: where Roost will be.",
)
@click.option(
    "--seating",
    is_flag=True,
    help="Print the lines of the hub's values with which people can be seated before class.",
)
@click.option(
    "--price",
    metavar="MONEY",
    type=click.FloatRange(0, min_open=True),
    help=(
        "Of a node-hour: it is written to prices.nodeHour, and node-hours are said in money. If"
        " that isn't dollars or euros, set prices.waitingHour in the same money."
    ),
)
@click.option("--details", is_flag=True, help="Say all of it, not the first 12 lines.")
def command(
    *,
    files: tuple[str, ...],
    folders: tuple[Path, ...],
    many: bool,
    release: str,
    hub: str | None,
    quotas: str | None,
    namespace: str,
    seating: bool,
    price: float | None,
    details: bool,
) -> int:
    """Convert zero-to-jupyterhub's or BinderHub's values to Roost's. FILE can be - for stdin;
    later files win.

    stderr says what Roost will do for the hub and what to switch off there, then what could not
    be mapped.

    \b
    roost import hub-values.yaml > values.yaml
    roost import common.yaml staging.yaml > values.yaml
    roost import --folder hubs/ > values.yaml
    """
    if seating:
        sys.stdout.write(HUB_LINES)
        return 0
    if folders or many:
        if hub or quotas or price:
            raise UsageError(
                "--folder and --many are for many hubs: leave out --hub, --quotas and --price"
            )
        if not folders and not files:
            raise UsageError("--many: found no FILE, expected one for each hub")
        return run_many(files, folders)
    if not files:
        raise UsageError(
            "found neither FILE nor --folder, expected a hub's values: roost import hub-values.yaml"
        )
    layers = [(file, read_file(file)) for file in files]
    result = import_layers(layers, release, hub, node_hour_price=price)
    try_import(result)
    proposals = propose(result, layers, release, hub)
    report = result.report(pointer(proposals), details=details)
    if price:
        set_node_price(result.values, price)
    sys.stdout.write(result.to_yaml() + print_proposals(proposals))
    sys.stderr.write(report)
    if quotas:
        from roost.doctor.quotas_option import find_faults  # noqa: PLC0415 - loads all checks of the doctor

        values = parse_values(result.to_yaml().encode(), "values.yaml").values
        sys.stderr.writelines(
            f"{fault}\n" for fault in find_faults(quotas, values, Release("roost", namespace))
        )
    return 0
