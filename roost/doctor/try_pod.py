"""Create a pod with dryRun, and read what Roost made of it.

`roost doctor --pod` does this, and `helm test` runs it.
"""

from __future__ import annotations

import copy
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import jsonpatch

from roost_core.kube.client import ApiError, Client
from roost_core.placement.labels import (
    HOME_TARGET_ANNOTATION,
    OPT_OUT_ANNOTATION,
    POLICY_REVISION_ANNOTATION,
    WARM_TARGET_ANNOTATION,
)

# Fields of a pod's spec that need objects which the install makes.
_ABSENT_BEFORE: Final = frozenset(
    {
        "serviceAccountName",
        "serviceAccount",
        "priorityClassName",
        "priority",
        "topologySpreadConstraints",
    }
)
# Annotations that Roost wrote if the pod was admitted before.
_WRITTEN: Final = frozenset(
    {POLICY_REVISION_ANNOTATION, HOME_TARGET_ANNOTATION, WARM_TARGET_ANNOTATION}
)
# Accepted by the `restricted` Pod Security Standard, by OpenShift's (it names no user id), and by
# quotas that demand requests.
_SPEC: Final[Mapping[str, Any]] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "notebook",
            "image": "registry.k8s.io/pause:3.10.1",
            "resources": {
                "requests": {"cpu": "10m", "memory": "16Mi"},
                "limits": {"cpu": "10m", "memory": "16Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
    ],
}
# A webhook that is starting answers within this time after its certificate is mounted.
PAUSE_SECONDS: Final = 5.0


class Trial(NamedTuple):
    """How a pod was admitted."""

    # The policy's revision; "": Roost didn't change the pod.
    revision: str
    # The scheduler that the pod names.
    scheduler: str
    # The pod as it would be stored.
    stored: Mapping[str, Any]


def make_pod(given: Mapping[str, Any]) -> dict[str, Any]:
    """A pod with the labels, annotations and spec of `given`, and a new name.

    Without a spec it gets a small container. What a cluster wrote into an existing pod (node,
    status, Roost's annotations) is left out.
    """
    metadata = given.get("metadata") or {}
    annotations = {
        key: text
        for key, text in (metadata.get("annotations") or {}).items()
        if key not in _WRITTEN
    }
    spec = {
        key: value
        for key, value in (given.get("spec") or copy.deepcopy(_SPEC)).items()
        if key != "nodeName"
    }
    # For a token, each admission would add a volume with another random name.
    spec["automountServiceAccountToken"] = False
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"roost-trial-{secrets.token_hex(4)}",
            "labels": dict(metadata.get("labels") or {}),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": spec,
    }


def try_pod(client: Client, namespace: str, pod: Mapping[str, Any]) -> Trial:
    """Have the API server admit a pod, without storing it. Raises ApiError, ClusterError."""
    stored = client.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", dict(pod))
    annotations = stored["metadata"].get("annotations") or {}
    revision = annotations.get(POLICY_REVISION_ANNOTATION, "")
    scheduler = stored["spec"].get("schedulerName", "")
    return Trial(str(revision), str(scheduler), stored)


def opted_out(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The pod with the annotation by which Roost leaves it alone."""
    annotations = {**pod["metadata"].get("annotations", {}), OPT_OUT_ANNOTATION: "true"}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def refusal_of(client: Client, namespace: str, pod: Mapping[str, Any]) -> str:
    """Why the API server forbids a pod; "": it doesn't. Raises ClusterError."""
    try:
        try_pod(client, namespace, pod)
    except ApiError as refusal:
        return str(refusal) if refusal.status == 403 else ""
    return ""


def changes_of(
    client: Client, namespace: str, pod: Mapping[str, Any], trial: Trial
) -> list[dict[str, Any]]:
    """What Roost changes in a pod, as operations of JSON Patch.

    trial: how the pod was admitted. It is compared with the same pod with the annotation that opts
    out. Raises ApiError, ClusterError.
    """
    untouched = try_pod(client, namespace, opted_out(pod)).stored
    operations: list[dict[str, Any]] = jsonpatch.make_patch(
        _admitted(untouched), _admitted(trial.stored)
    ).patch
    return operations


def _admitted(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a stored pod that admission changes, without what is new in each pod."""
    metadata = stored["metadata"]
    spec = stored["spec"]
    annotations = {
        key: text
        for key, text in (metadata.get("annotations") or {}).items()
        if key != OPT_OUT_ANNOTATION
    }
    return {
        "metadata": {"labels": metadata.get("labels") or {}, "annotations": annotations},
        "spec": spec,
    }


def try_template(client: Client, namespace: str, template: Mapping[str, Any]) -> None:
    """Have the API server admit a pod of a workload's template, before the workload is installed.

    Raises ApiError, ClusterError.
    """
    spec = {key: value for key, value in template["spec"].items() if key not in _ABSENT_BEFORE}
    # Pods of workloads have this restartPolicy.
    pod = make_pod({"spec": {"restartPolicy": "Always", **spec}})
    try_pod(client, namespace, opted_out(pod))


def try_until_placed(
    client: Client,
    namespace: str,
    pod: Mapping[str, Any],
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:
    """Try a pod every PAUSE_SECONDS until Roost places it, or `seconds` are over.

    Returns the last trial. After a fault of the server (5xx) it is tried again, too. Raises
    ApiError for the last fault of the server, or if the request is refused (4xx), and ClusterError.
    """
    end = clock() + seconds
    while True:
        is_last = clock() + PAUSE_SECONDS > end
        try:
            trial = try_pod(client, namespace, pod)
            if trial.revision or is_last:
                return trial
        except ApiError as error:
            if is_last or error.status < 500:
                raise
        sleep(PAUSE_SECONDS)
