"""`roost cleanup`: take Roost's labels, taints and conditions off the nodes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from roost.controllers.cleanup import CleanupOptions, clean_up
from roost_core.kube import logs
from roost_core.kube.client import ClusterError, connect


def run(options: CleanupOptions, kubeconfig: str | None, in_cluster: bool) -> int:
    """Clean up; 0 when nothing is left, 1 when something is, with each thing named."""
    logs.configure("Warning")
    if in_cluster == (kubeconfig is not None):
        print("roost cleanup: give either --kubeconfig FILE or --in-cluster", file=sys.stderr)  # noqa: T201 - a command's talk
        return 2
    try:
        report = clean_up(connect(Path(kubeconfig) if kubeconfig else None), options)
    except ClusterError as error:
        print(f"roost cleanup: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    for action in report.actions:
        click.echo(action)
    for action in report.failed:
        click.echo(f"roost cleanup: left behind: {action}. Run it again, or mend it by hand.", err=True)
    if not report.actions:
        click.echo("nothing of this release is on any node")
    return 1 if report.failed else 0
