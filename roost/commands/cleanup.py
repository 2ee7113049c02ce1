"""`roost cleanup`: take Roost's labels and taints off the nodes."""

import sys
from pathlib import Path

import click

from roost.controllers.cleanup import clean_up
from roost_core.kube import logs
from roost_core.kube.account import connect
from roost_core.kube.client import ClusterError


@click.command("cleanup")
@click.option("--release", metavar="NAME", required=True)
@click.option("-n", "--namespace", metavar="NAME", required=True)
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig of the cluster.")
@click.option(
    "--in-cluster", is_flag=True, help="Use the pod's service account instead of --kubeconfig."
)
@click.option(
    "--controllers",
    metavar="NAME",
    default="",
    help="The controllers' Deployment, scaled to 0 first: it would add the labels again.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, without doing it.")
def command(
    *,
    release: str,
    namespace: str,
    kubeconfig: str | None,
    in_cluster: bool,
    controllers: str,
    dry_run: bool,
) -> int:
    """Remove a release's labels and taints from the nodes, before or after an uninstall.

    `helm uninstall` runs this. Exit codes: 0 nothing is left, 1 something is left, 2 it couldn't be
    done.

    \b
    roost cleanup --release roost --namespace jhub --kubeconfig ~/.kube/config
    """
    logs.configure("Warning")
    if in_cluster == (kubeconfig is not None):
        print("roost cleanup: give either --kubeconfig FILE or --in-cluster", file=sys.stderr)  # noqa: T201 - a command's talk
        return 2
    try:
        client = connect(Path(kubeconfig) if kubeconfig else None)
        actions, failed = clean_up(
            client, release, namespace, controllers=controllers, dry_run=dry_run
        )
    except ClusterError as error:
        print(f"roost cleanup: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 2
    for action in actions:
        click.echo(action)
    for action in failed:
        click.echo(
            f"roost cleanup: left behind: {action}. Run it again, or mend it by hand.", err=True
        )
    if not actions:
        click.echo("nothing of this release is on any node")
    return 1 if failed else 0
