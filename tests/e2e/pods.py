"""Pods as hubs and others send them, for tests that say of each only what they are about."""

from collections.abc import Mapping
from typing import Any

from roost_core.objects.fields import JSONObject

IMAGE = "quay.io/jupyter/scipy-notebook:2026-11-03"
# The values of a hub whose users all run that image.
SINGLEUSER: JSONObject = {
    "image": {"name": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]}
}
USER = "singleuser-server"


def pod(
    name: str,
    component: str = USER,
    *,
    image: str = IMAGE,
    requests: Mapping[str, str] | None = None,
    node: str = "",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> JSONObject:
    """A pod of one class; `node` ties it there by its own selector, so that it still passes through
    admission.
    """
    resources: JSONObject = {"requests": dict(requests or {})}
    # Of extended resources Kubernetes wants equal limits.
    resources["limits"] = {
        key: amount for key, amount in resources["requests"].items() if "/" in key
    }
    selector = {
        **spec.pop("nodeSelector", {}),
        **({"kubernetes.io/hostname": node} if node else {}),
    }
    container = {"name": "main", "image": image, "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"component": component},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": selector,
            "containers": [container],
            **spec,
        },
    }
