"""`roost diff`: what changes in the cluster between two values files, or values and manifests."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from generator.faults import GeneratorError, UsageError
from generator.pipeline import render
from generator.render.diff import compare, show, sum_up
from generator.render.read_manifests import Objects, parse_manifests, read_bytes, read_folder
from generator.values.files import parse_values
from generator.values.release_name import Release
from roost.commands.options import release_options


def _objects(path: str, release: Release) -> Objects:
    """Objects of a folder, of manifests, or of values ("-" is stdin).

    Reads the path only once: it can be a pipe.
    """
    if Path(path).is_dir():
        return read_folder(path)
    data = read_bytes(path)
    given = parse_manifests(data, path)
    if given is not None:
        return given
    made, _ = render(parse_values(data, path), release)
    return {manifest.identity: manifest.body for manifest in made}


@click.command("diff")
@click.argument("before")
@click.argument("after")
@release_options
def command(*, before: str, after: str, release: Release) -> int:
    """Show what changes between BEFORE and AFTER, object by object and field by field.

    Each is a values file, a file of manifests, or a folder of them; - is stdin. Exit codes as
    with diff: 0 equal, 1 different, 2 an error (also for faulty values).

    \b
    roost diff old-values.yaml new-values.yaml --release roost --namespace jhub
    roost diff manifests/ new-values.yaml
    """
    if before == "-" and after == "-":
        raise UsageError("diff - -: stdin can be read only once. Give a file for one side.")
    try:
        changes = compare(_objects(before, release), _objects(after, release))
    except UsageError:
        raise
    except GeneratorError as error:
        raise UsageError(str(error)) from None
    if changes:
        sys.stdout.write(f"{sum_up(changes)}\n")
    sys.stdout.write(show(changes))
    return 1 if changes else 0
