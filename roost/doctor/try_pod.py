"""Create a pod with dryRun, and read what Roost made of it: what `helm test` runs."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost_core.kube.client import ApiError
from roost_core.placement.labels import OPT_OUT_ANNOTATION, POLICY_REVISION_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roost.doctor.install import Asked

# Made by the install itself, and not there before it.
_ABSENT_BEFORE: Final = frozenset(
    {"serviceAccountName", "serviceAccount", "priorityClassName", "priority", "topologySpreadConstraints"}
)
# A webhook that is not Ready yet answers within this, once its certificate is mounted.
PAUSE_SECONDS: Final = 5.0


class Trial(NamedTuple):
    """What came back: the policy's revision, "" if Roost didn't touch the pod, and the scheduler that it names."""

    revision: str
    scheduler: str


def try_pod(client: Asked, namespace: str, labels: Mapping[str, str]) -> Trial:
    """Have the API server admit a pod with these labels, without storing it. Raises ApiError, ClusterError."""
    stored = client.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", _pod(labels))
    annotations = stored["metadata"].get("annotations") or {}
    return Trial(str(annotations.get(POLICY_REVISION_ANNOTATION, "")), str(stored["spec"].get("schedulerName", "")))


def try_template(client: Asked, namespace: str, template: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Have the API server admit a pod of a workload's template: the pod that was sent, and what it would store.

    Raises ApiError, ClusterError.
    """
    spec = {key: value for key, value in template["spec"].items() if key not in _ABSENT_BEFORE}
    # Pods that a controller makes have its restartPolicy; before an install its account isn't there.
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"roost-doctor-{secrets.token_hex(4)}",
            "annotations": {OPT_OUT_ANNOTATION: "true"},
        },
        "spec": {"restartPolicy": "Always", **spec},
    }
    return pod, client.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)


def try_until_placed(
    client: Asked,
    namespace: str,
    labels: Mapping[str, str],
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:
    """`try_pod`, again every five seconds until Roost places the pod or `seconds` are over: the last trial.

    A refusal by the server (5xx) is tried again, too. Raises ApiError (the last one, or a refusal of the request
    itself) and ClusterError.
    """
    end = clock() + seconds
    while True:
        is_last = clock() + PAUSE_SECONDS > end
        try:
            trial = try_pod(client, namespace, labels)
            if trial.revision or is_last:
                return trial
        except ApiError as error:
            if is_last or error.status < 500:
                raise
        sleep(PAUSE_SECONDS)


def _pod(labels: Mapping[str, str]) -> dict[str, Any]:
    """A pod that the `restricted` Pod Security Standard takes, and OpenShift's (no user id), and quotas of requests."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"roost-trial-{secrets.token_hex(4)}", "labels": dict(labels)},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "notebook",
                    "image": "registry.k8s.io/pause:3.10.1",
                    "resources": {
                        "requests": {"cpu": "10m", "memory": "16Mi"},
                        "limits": {"cpu": "10m", "memory": "16Mi"},
                    },
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
