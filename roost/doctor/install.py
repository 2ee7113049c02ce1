"""An install as the values say that it is, and the cluster that is asked about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from roost_core.kube.client import READ_SECONDS
from roost_core.objects.node import node_or_none

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from generator.values.release import Release
    from roost_core.objects.node import Node

Object = dict[str, Any]


class Asked(Protocol):
    """The part of `roost_core.kube.client.Client` that checks use; each raises ApiError and ClusterError."""

    def get(
        self, path: str, query: Mapping[str, Any] | None = None, /, *, read_seconds: float = READ_SECONDS
    ) -> Object:
        """Read an object or a list; read_seconds: how long the server may be silent."""

    def find(self, path: str, /) -> Object | None:
        """Read an object; None if there is none."""

    def create(self, path: str, body: Object, /) -> Object:
        """Create an object in a collection."""

    def lines(self, path: str, query: Mapping[str, Any], silence_seconds: float, /) -> Iterator[bytes]:
        """Read what isn't JSON, line by line; silence_seconds: without a byte for longer, the connection is dead."""


@dataclass(frozen=True)
class Install:
    """One release: its merged values, what they render to, and the cluster."""

    client: Asked
    release: Release
    values: Mapping[str, Any]
    # Bodies of the rendered manifests.
    rendered: Sequence[Object]

    def of_kind(self, kind: str) -> list[Object]:
        """Rendered objects of a kind."""
        return [body for body in self.rendered if body["kind"] == kind]

    def component(self, name: str) -> Object | None:
        """The rendered Deployment of a component: webhook, controllers, scheduler or recorder."""
        for body in self.of_kind("Deployment"):
            if body["metadata"]["labels"].get("app.kubernetes.io/component") == name:
                return body
        return None

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes."""
        read = map(node_or_none, self.client.get("/api/v1/nodes")["items"])
        return [node for node in read if node is not None]

    @cached_property
    def namespaces(self) -> dict[str, dict[str, str]]:
        """Labels of all namespaces, by name."""
        items = self.client.get("/api/v1/namespaces")["items"]
        return {body["metadata"]["name"]: dict(body["metadata"].get("labels") or {}) for body in items}

    @cached_property
    def pods_everywhere(self) -> list[Object]:
        """Pods of all namespaces."""
        return list(self.client.get("/api/v1/pods")["items"])

    @cached_property
    def pods(self) -> list[Object]:
        """Pods of the release's namespace."""
        return list(self.client.get(f"/api/v1/namespaces/{self.release.namespace}/pods")["items"])


def path_of(body: Object) -> str:
    """The path of a rendered object, as /apis/apps/v1/namespaces/hub/deployments/roost-webhook."""
    return f"{collection_of(body)}/{body['metadata']['name']}"


def collection_of(body: Object) -> str:
    """The path of the collection that a rendered object belongs to."""
    version = body["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = body["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{plural(body['kind'])}" if namespace else f"{root}/{plural(body['kind'])}"


def plural(kind: str) -> str:
    """The resource of a kind that Roost renders: networkpolicies of NetworkPolicy."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def name_of(body: Object) -> str:
    """A rendered object for people: Deployment hub/roost-webhook."""
    metadata = body["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{body['kind']} {place}{metadata['name']}"
