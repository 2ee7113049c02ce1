"""`roost try-pod`: whether a pod with these labels would be placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from roost.doctor.try_pod import try_until_placed
from roost_core.kube import logs
from roost_core.kube.client import ClusterError
from roost_core.kube.user_account import connect_as_user

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(namespace: str, labels: Sequence[str], kubeconfig: str | None, context: str | None, wait: float) -> int:
    """Print what came back; 0 the pod is placed, 1 it isn't or the cluster can't be asked, 2 a label isn't one."""
    logs.configure("Warning")
    pairs = {}
    for text in labels:
        key, equals, value = text.partition("=")
        if not key or not equals:
            click.echo(
                f"roost try-pod: --label {text!r}: expected KEY=VALUE, such as component=singleuser-server", err=True
            )
            return 2
        pairs[key] = value
    try:
        client = connect_as_user(kubeconfig, context)
        trial = try_until_placed(client, namespace, pairs, wait)
    except ClusterError as error:
        click.echo(f"roost try-pod: no pod was tried in {namespace}: {error}", err=True)
        return 1
    said = ", ".join(labels) or "no labels"
    if trial.revision:
        click.echo(f"A pod with {said} is placed by policy {trial.revision}, scheduler {trial.scheduler}.")
        return 0
    click.echo(
        f"A pod with {said} came back untouched (scheduler {trial.scheduler}): it belongs to no class of Roost's, or "
        "the API server didn't reach the webhook. See roost doctor and docs/troubleshooting.md#is-the-webhook-healthy.",
        err=True,
    )
    return 1
