"""`roost top`: the live view of a cluster, in the terminal."""

import sys

import click
from rich.console import Console

from roost.commands.options import cluster_options
from roost_core.kube import logs
from roost_core.kube.client import ClusterError
from roost_core.kube.user_account import connect_as_user
from roost_core.release.reader import SettingsError
from roost_lab.view.live import LiveCluster, find_classes
from roost_lab.view.terminal import watch


def run(settings: str | None, kubeconfig: str | None, context: str | None, once: bool) -> int:
    """Draw until Ctrl-C; 1 when the cluster can't be read."""
    logs.configure("Error")
    try:
        client = connect_as_user(kubeconfig, context)
        reason = watch(LiveCluster(client, find_classes(client, settings)), Console(), once=once)
    except SettingsError as error:
        reason = "; ".join(str(fault) if fault.key == settings else f"{settings}: {fault}" for fault in error.faults)
    except ClusterError as error:
        reason = str(error)
    if reason:
        print(f"roost top: {reason}", file=sys.stderr)  # noqa: T201 - a command's talk
    return 1 if reason else 0


@click.command("top")
@click.option("--settings", metavar="FILE", help="The release's release.json. Default: as found in the cluster.")
@cluster_options
@click.option("--once", is_flag=True, help="Draw once and exit.")
def command(*, settings: str | None, kubeconfig: str | None, context: str | None, once: bool) -> int:
    """Draw nodes, who waits and why, placeholders, builds and pulls live in the terminal, until Ctrl-C.

    It needs no recorder. Pods have the classes of the release that is installed there, or those of the default values.

    \b
    roost top --kubeconfig ~/.kube/config
    """
    return run(settings, kubeconfig, context, once)
