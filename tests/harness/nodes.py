"""Keep Node objects that no kubelet stands behind.

Owns fake nodes: what they hold, that they stay Ready, and that they are gone afterwards.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from roost_core.objects.fields import JSONObject
from tests.harness.api import STRATEGIC, Api

NODES = "/api/v1/nodes"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
PARALLEL_REQUESTS = 8


class FakeNodes:
    """Nodes for one test: `with FakeNodes(cluster.api) as nodes: nodes.create("node-a", cpu="4")`.

    Images map a reference to its size in bytes. Taints are `key=value:Effect`, or mappings as in a
    manifest.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._names: set[str] = set()

    @property
    def names(self) -> list[str]:
        return sorted(self._names)

    def create(
        self,
        name: str,
        *,
        cpu: str = "4",
        memory: str = "16Gi",
        pods: int = 110,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[str | Mapping[str, str]] = (),
        images: Mapping[str, int] | None = None,
        ready: bool = True,
        extra_resources: Mapping[str, str] | None = None,
    ) -> JSONObject:
        """Create a node, Ready and without the not-ready taint by default; returns it as it stands
        then.

        A label `kubernetes.io/hostname` with the node's name is added, as kubelets do, unless
        given.
        """
        resources = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "100Gi"}
        resources |= extra_resources or {}
        all_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **(labels or {})}
        self._names.add(name)
        conditions = [_ready_condition(ready=ready)]
        status = {"capacity": resources, "allocatable": resources, "conditions": conditions}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": all_labels},
        }
        spec = {"taints": [read_taint(taint) for taint in taints]}
        self._api.create(
            {**node, "spec": spec, "status": {**status, "images": _images(images or {})}}
        )
        # The API server taints every new node as not ready, whatever its status says.
        return self.set_taints(name, taints) if ready else self.get(name)

    def create_many(self, names: Iterable[str], **details: Any) -> None:
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            for _ in pool.map(lambda name: self.create(name, **details), names):
                pass

    def get(self, name: str) -> JSONObject:
        return self._api.get(f"{NODES}/{name}")

    def set_labels(self, name: str, labels: Mapping[str, str | None]) -> JSONObject:
        return self._api.patch(f"{NODES}/{name}", {"metadata": {"labels": dict(labels)}})

    def set_taints(self, name: str, taints: Sequence[str | Mapping[str, str]]) -> JSONObject:
        return self._api.patch(
            f"{NODES}/{name}", {"spec": {"taints": [read_taint(taint) for taint in taints]}}
        )

    def cordon(self, name: str, *, on: bool = True) -> JSONObject:
        return self._api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": on}})

    def set_images(self, name: str, images: Mapping[str, int]) -> JSONObject:
        return self._api.patch(f"{NODES}/{name}/status", {"status": {"images": _images(images)}})

    def set_ready(self, name: str) -> JSONObject:
        """Say that the node is Ready; nobody takes a taint off for it."""
        change = {"status": {"conditions": [_ready_condition(ready=True)]}}
        return self._api.patch(f"{NODES}/{name}/status", change, content_type=STRATEGIC)

    def delete(self, name: str) -> None:
        """Remove a node and, as pod garbage collection would after a while, its pods."""
        self._api.delete(f"{NODES}/{name}")
        self._names.discard(name)
        for pod in self._api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={name}"):
            meta = pod["metadata"]
            self._api.delete(
                f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", gracePeriodSeconds=0
            )

    def delete_all(self) -> None:
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            for _ in pool.map(self.delete, self.names):
                pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete_all()


def _ready_condition(*, ready: bool) -> JSONObject:
    moment = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "FakeNode",
        "message": "kept by a test",
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }


def _images(images: Mapping[str, int]) -> list[JSONObject]:
    return [{"names": [name], "sizeBytes": size_bytes} for name, size_bytes in images.items()]


def read_taint(taint: str | Mapping[str, str]) -> dict[str, str]:
    """A taint in a manifest's form, from that or from `key=value:Effect`."""
    if not isinstance(taint, str):
        return dict(taint)
    key_and_value, colon, effect = taint.rpartition(":")
    if not colon:
        raise ValueError(f"found taint {taint!r}, expected KEY=VALUE:EFFECT or KEY:EFFECT")
    key, _, value = key_and_value.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
