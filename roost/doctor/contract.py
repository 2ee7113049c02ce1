"""What a check is given, what it says of the cluster, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal, NamedTuple

from generator.values.helm_release import Release
from roost.doctor.conditions import Condition
from roost_core.kube.client import Client, list_all
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, node_or_none


@dataclass(frozen=True)
class Install:
    """One release: its merged values, what they render to, and the cluster."""

    client: Client
    release: Release
    values: Mapping[str, Any]
    # Bodies of the rendered manifests.
    rendered: Sequence[JSONObject]

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


Severity = Literal["error", "warning", "unknown"]


class Finding(NamedTuple):
    """One thing that is wrong, or that can't be told."""

    # error: Roost, or a promise of it, doesn't work. unknown: the API server didn't say.
    severity: Severity
    # What was seen, with the names of objects.
    evidence: str
    fix: str
    # What it brings about, and what it may follow from: of one cause, the rest stands below it.
    brings: frozenset[Condition] = frozenset()
    follows: frozenset[Condition] = frozenset()
    # Whether users feel it: they wait, start cold, or are refused.
    is_felt: bool = False
    # Whether it follows from the values alone, so that their own checks tell it, too.
    is_of_values: bool = False


# Findings of each severity, of evidence and fix.
error: Final = partial(Finding, "error")
warning: Final = partial(Finding, "warning")
unknown: Final = partial(Finding, "unknown")


class CheckOutcome(NamedTuple):
    """What a check looked at, and what it found; nothing found is good."""

    check: str
    looked_at: str
    findings: tuple[Finding, ...]


# First what the check looks at, for people, then each finding.
Told = Iterator[str | Finding]
# Raises ClusterError where the API server doesn't answer, and changes nothing.
Check = Callable[[Install], Told]
