"""Connect as kubectl would: by a kubeconfig, or in a pod by the pod's own account.

For commands that a person types. Programs that run in the cluster use `account.connect`, which
reads no $KUBECONFIG.
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
    """Connect by the first of these that is there: `kubeconfig`, $KUBECONFIG, ~/.kube/config, the
    account of the pod in which this runs.

    context: the kubeconfig's context to use; None: its current context. A pod's account has no
    contexts, so with a context it isn't tried. Raises ClusterError.
    """
    files = kubeconfig or environment.get("KUBECONFIG", "")
    if files:
        return connect_by_files(files, context)
    default_file = Path(environment.get("HOME") or Path.home(), ".kube", "config")
    if default_file.exists():
        return connect_by_files(str(default_file), context)
    is_in_pod = bool(environment.get(HOST_VARIABLE))
    if is_in_pod and context is None:
        return connect(None)
    raise ClusterError(
        "no cluster to ask: neither --kubeconfig nor $KUBECONFIG is given, and there is no"
        f" {default_file}. Give --kubeconfig FILE."
    )
