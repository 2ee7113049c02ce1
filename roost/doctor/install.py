"""One install of Roost, and what `roost doctor` reads of its cluster: what each check is given.

What several checks read is a property of `Install`, and is read once. What one check alone reads is
read there, by `list_all`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generator.importing.source import HubSection
from generator.values.release_name import Release
from roost_core.kube.client import Client, list_all
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, node_or_none


@dataclass(frozen=True)
class Install:
    """One release: its merged values, what they render to, its hub, and the cluster."""

    client: Client
    release: Release
    values: Mapping[str, Any]
    # Bodies of the rendered manifests.
    rendered: Sequence[JSONObject]
    # The hub's own values, which the cluster keeps in a Secret; None: they weren't given.
    hub: HubSection | None = None

    def of_kind(self, kind: str) -> list[JSONObject]:
        """Rendered objects of a kind."""
        return [body for body in self.rendered if body["kind"] == kind]

    def component(self, name: str) -> JSONObject | None:
        """The rendered Deployment of a component: webhook, controllers, scheduler or recorder."""
        for body in self.of_kind("Deployment"):
            if body["metadata"]["labels"].get("app.kubernetes.io/component") == name:
                return body
        return None

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes."""
        read = map(node_or_none, list_all(self.client, "/api/v1/nodes"))
        return [node for node in read if node is not None]

    @cached_property
    def deployments(self) -> list[JSONObject]:
        """Deployments of all namespaces."""
        return list(list_all(self.client, "/apis/apps/v1/deployments"))

    @cached_property
    def webhook_configurations(self) -> list[JSONObject]:
        """Mutating webhook configurations of everybody."""
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        # A list's items have their apiVersion and kind from the list.
        head = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
        }
        return [{**head, **body} for body in list_all(self.client, path)]

    @cached_property
    def namespaces(self) -> dict[str, dict[str, str]]:
        """Labels of all namespaces, by name."""
        items = list_all(self.client, "/api/v1/namespaces")
        return {
            body["metadata"]["name"]: dict(body["metadata"].get("labels") or {}) for body in items
        }

    @cached_property
    def pods_everywhere(self) -> list[JSONObject]:
        """Pods of all namespaces."""
        return list(list_all(self.client, "/api/v1/pods"))

    @cached_property
    def pods(self) -> list[JSONObject]:
        """Pods of the release's namespace."""
        return list(list_all(self.client, f"/api/v1/namespaces/{self.release.namespace}/pods"))
