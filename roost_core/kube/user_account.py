"""Connect as kubectl would: by the kubeconfig of who is at the terminal, or as a pod's own account.

Programs in the cluster use `account.connect`: what a shell exports mustn't lead them elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from roost_core.kube.account import HOST_VARIABLE, connect
from roost_core.kube.client import Client, ClusterError
from roost_core.kube.kubeconfig import connect_by_files


def connect_as_user(
    kubeconfig: str | None, context: str | None = None, environment: Mapping[str, str] = os.environ
) -> Client:
    """Connect by `kubeconfig`, else $KUBECONFIG, else ~/.kube/config, else in a pod as its own
    account.

    context: of the kubeconfig, instead of its current one; no pod's account then. Raises
    ClusterError.
    """
    files = kubeconfig or environment.get("KUBECONFIG", "")
    if files:
        return connect_by_files(files, context)
    usual = Path(environment.get("HOME") or Path.home(), ".kube", "config")
    if usual.exists():
        return connect_by_files(str(usual), context)
    if not environment.get(HOST_VARIABLE) or context is not None:
        raise ClusterError(
            "no cluster to ask: neither --kubeconfig nor $KUBECONFIG is given, and there is no"
            f" {usual}. Give --kubeconfig FILE."
        )
    return connect(None)
