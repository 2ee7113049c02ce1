"""`roost render`: from values to manifests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from generator.faults import Fault, UsageError, sort_faults
from generator.pipeline import render
from generator.render.diff import compare, show
from generator.render.manifests import Manifest
from generator.render.read_manifests import read_manifests
from generator.render.summary import summarize
from generator.render.write_manifests import stream, write_folder
from generator.values.files import load_files, read_defaults, read_values
from generator.values.merge import merge_values
from roost.commands.options import RenderOptions, values_options


def render_and_warn(options: RenderOptions) -> list[Manifest]:
    """Read, check and render the values; warnings go to stderr. Raises GeneratorError."""
    made, warnings = render(read_values(options.files, options.settings), options.release)
    _print_warnings(warnings)
    return made


def _print_warnings(warnings: Sequence[Fault]) -> None:
    sys.stderr.write("".join(f"{warning}\n" for warning in warnings))


def _compare_with(made: Sequence[Manifest], path: str) -> int:
    """Print how the manifests at `path` differ from those that were made. Returns the exit code."""
    bodies = {manifest.identity: manifest.body for manifest in made}
    changes = compare(read_manifests(path), bodies)
    if not changes:
        return 0
    sys.stdout.write(show(changes))
    option = f"--output-dir {path}" if Path(path).is_dir() else f"`roost render … > {path}`"
    objects_differ = "object differs" if len(changes) == 1 else "objects differ"
    sys.stderr.write(
        f"{path}: {len(changes)} {objects_differ} from what the values render."
        f" Write them with {option}\n"
    )
    return 1


def _render_cluster_part(options: RenderOptions) -> list[Manifest]:
    """The objects that are rendered only with `clusterResources`.

    These are the objects without a namespace, and those rights in the namespace that only the
    cluster's policies narrow.
    """
    # Read once: a pipe gives its bytes only once.
    files = load_files(options.files)
    with_cluster, without_cluster = (
        merge_values(read_defaults(), files, _with_cluster_resources(options, value).settings)
        for value in ("true", "false")
    )
    of_namespace, warnings = render(without_cluster, options.release)
    everything, more_warnings = render(with_cluster, options.release)
    # Most warnings are in both lists, some only in one. Each is printed once.
    _print_warnings(sort_faults([*warnings, *more_warnings]))
    identities = {manifest.identity for manifest in of_namespace}
    return [manifest for manifest in everything if manifest.identity not in identities]


def _with_cluster_resources(options: RenderOptions, value: str) -> RenderOptions:
    """The options with `clusterResources`, whatever the values say there."""
    settings = options.settings
    last_setting = f"clusterResources={value}"
    return options._replace(settings=settings._replace(values=(*settings.values, last_setting)))


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
    if only == "cluster":
        made = _render_cluster_part(options)
    elif only == "namespace":
        made = render_and_warn(_with_cluster_resources(options, "false"))
    else:
        made = render_and_warn(options)
    if summary:
        sys.stdout.write(summarize(made))
        return 0
    if check is not None:
        return _compare_with(made, check)
    if output_dir is None:
        sys.stdout.write(stream(made))
        return 0
    write_folder(made, output_dir)
    sys.stderr.write(
        f"{output_dir}: {len(made)} objects; apply with `kubectl apply -k {output_dir}`\n"
    )
    return 0
