"""`roost render`: from values to manifests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from generator.faults import UsageError
from generator.pipeline import render
from generator.render.diff import compare, show
from generator.render.manifests import Manifest
from generator.render.read_manifests import read_manifests
from generator.render.summary import summarize
from generator.render.write_manifests import stream, write_folder
from generator.values.files import read_values
from roost.commands.options import RenderOptions, values_options


def manifests(options: RenderOptions) -> list[Manifest]:
    """Read, check and render the values; warnings go to stderr. Raises GeneratorError."""
    made, warnings = render(read_values(options.files, options.settings), options.release)
    sys.stderr.write("".join(f"{warning}\n" for warning in warnings))
    return made


def _check(made: Sequence[Manifest], place: str) -> int:
    changes = compare(
        read_manifests(place), {manifest.identity: manifest.body for manifest in made}
    )
    if not changes:
        return 0
    sys.stdout.write(show(changes))
    how = f"--output-dir {place}" if Path(place).is_dir() else f"`roost render … > {place}`"
    what = "object differs" if len(changes) == 1 else "objects differ"
    sys.stderr.write(
        f"{place}: {len(changes)} {what} from what the values render. Write them with {how}\n"
    )
    return 1


def _with_cluster_resources(options: RenderOptions, value: str) -> RenderOptions:
    """The options with `clusterResources`, whatever the values say there."""
    settings = options.settings
    chosen = f"clusterResources={value}"
    return options._replace(settings=settings._replace(values=(*settings.values, chosen)))


@click.command("render")
@values_options
@click.option(
    "--output-dir",
    metavar="FOLDER",
    help="Write one file per object and a kustomization; the folder is replaced.",
)
@click.option(
    "--check",
    metavar="PATH",
    help=(
        "Write nothing; exit with 1 and show the difference if the manifests of this folder or file"
        " are others."
    ),
)
@click.option(
    "--only",
    type=click.Choice(["cluster", "namespace"]),
    help=(
        "cluster: the objects without a namespace, for the cluster's operator. namespace: all"
        " others, as with clusterResources: false."
    ),
)
@click.option(
    "--summary",
    is_flag=True,
    help="Say in a dozen lines what would be created: programs, requests, rights.",
)
def command(
    *,
    options: RenderOptions,
    output_dir: str | None,
    only: str | None,
    check: str | None,
    summary: bool,
) -> int:
    """Render values to Kubernetes manifests.

    \b
    roost render -f values.yaml --release roost --namespace jhub --summary
    roost render -f values.yaml --release roost --namespace jhub | kubectl apply -f -
    roost render -f values.yaml --output-dir manifests && kubectl apply -k manifests
    roost render -f values.yaml --check manifests    # in CI: is what is committed up to date?
    roost render -f values.yaml --only cluster > for-the-clusters-operator.yaml
    """
    if check is not None and output_dir is not None:
        raise UsageError("--check and --output-dir: the one compares, the other writes. Give one.")
    if summary and (check is not None or output_dir is not None):
        raise UsageError("--summary: it writes no manifests. Leave out --check and --output-dir.")
    if only is None:
        made = manifests(options)
    else:
        made = manifests(_with_cluster_resources(options, "false"))
    if only == "cluster":
        # Rights in the namespace, too, that only the cluster's policies narrow.
        left_out = {manifest.identity for manifest in made}
        made = [
            manifest
            for manifest in manifests(_with_cluster_resources(options, "true"))
            if manifest.identity not in left_out
        ]
    if summary:
        sys.stdout.write(summarize(made))
        return 0
    if check is not None:
        return _check(made, check)
    if output_dir is None:
        sys.stdout.write(stream(made))
        return 0
    write_folder(made, output_dir)
    sys.stderr.write(
        f"{output_dir}: {len(made)} objects; apply with `kubectl apply -k {output_dir}`\n"
    )
    return 0
