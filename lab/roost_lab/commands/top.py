"""`roost top`: the live view of a cluster, in the terminal."""

import click
from rich.console import Console

from generator.faults import UsageError, raise_errors
from generator.pipeline import find_faults
from generator.values.files import read_values
from roost.commands.options import RenderOptions, cluster_options, values_options
from roost_core.kube import logs
from roost_core.kube.client import ClusterError
from roost_core.kube.user_account import connect_as_user
from roost_core.release.class_of_pod import Classes
from roost_core.release.pod_classes import read_pod_classes
from roost_core.release.reader import Reader, SettingsError
from roost_lab.commands.options import refuse
from roost_lab.view.live import LiveCluster, find_classes
from roost_lab.view.terminal import watch


def _classes_of_values(options: RenderOptions) -> Classes:
    """The classes of the values that the user gave. Raises the errors of rendering them."""
    merged = read_values(options.files, options.settings)
    raise_errors(find_faults(merged, options.release))
    return Classes(
        options.release.namespace, read_pod_classes(Reader(), merged.values["podClasses"])
    )


@click.command("top")
@values_options
@click.option(
    "--settings",
    "release_json",
    metavar="FILE",
    help="The release's release.json. Default: as found in the cluster.",
)
@cluster_options
@click.option("--once", is_flag=True, help="Draw once and exit.")
def command(
    *,
    options: RenderOptions,
    release_json: str | None,
    kubeconfig: str | None,
    context: str | None,
    once: bool,
) -> int:
    """Draw nodes, who waits and why, placeholders, builds and pulls live in the terminal, until
    Ctrl-C.

    It needs no recorder. Pods have the classes of the values given, else of the release that is
    installed there.

    \b
    roost top --kubeconfig ~/.kube/config
    roost top -f values.yaml -n jhub
    """
    logs.configure("Error")
    has_values = bool(options.files or any(options.settings))
    if release_json and has_values:
        raise UsageError("found --settings beside values, expected one of them")
    classes = _classes_of_values(options) if has_values else None
    try:
        client = connect_as_user(kubeconfig, context)
        if classes is None:
            found = find_classes(client, release_json)
            classes = found.classes
            if found.warning:
                click.echo(f"roost top: {found.warning}", err=True)
        reason = watch(LiveCluster(client, classes), Console(), once=once)
    except SettingsError as error:
        # A fault of the whole file names the file already.
        faults = [
            str(fault) if fault.key == release_json else f"{release_json}: {fault}"
            for fault in error.faults
        ]
        reason = "; ".join(faults)
    except ClusterError as error:
        reason = str(error)
    return refuse("top", reason) if reason else 0
