"""`roost top`: the live view of a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from roost.commands.options import cluster_options
from roost_core.kube import logs
from roost_core.kube.client import ClusterError
from roost_core.kube.user_account import connect_as_user
from roost_core.placement.settings_reader import SettingsError
from roost_lab.recorder.answers.live_view import watch
from roost_lab.recorder.recording.settings import load_settings


def run(settings: str, kubeconfig: str | None, context: str | None, once: bool) -> int:
    """Draw until Ctrl-C; 1 when the cluster can't be read."""
    logs.configure("Error")
    try:
        read = load_settings(Path(settings))
        reason = watch(connect_as_user(kubeconfig, context), read, Console(), once=once)
    except SettingsError as error:
        for fault in error.faults:
            where = "" if fault.key == settings else f"{settings}: "
            print(f"roost top: {where}{fault}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    except ClusterError as error:
        reason = str(error)
    if reason:
        print(f"roost top: {reason}", file=sys.stderr)  # noqa: T201 - a command's talk
    return 1 if reason else 0


@click.command("top")
@click.option("--settings", metavar="FILE", required=True, help="recorder.json of the rendered ConfigMap.")
@cluster_options
@click.option("--once", is_flag=True, help="Draw once and exit.")
def _command(*, settings: str, kubeconfig: str | None, context: str | None, once: bool) -> int:
    """Draw nodes, users, placeholders, builds and pulls live in the terminal, until q.

    s sorts, / filters, arrows scroll.

    \b
    roost top --settings recorder.json --kubeconfig ~/.kube/config
    """
    return run(settings, kubeconfig, context, once)


COMMAND: Final = _command
