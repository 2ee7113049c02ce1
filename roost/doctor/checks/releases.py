"""No other release of Roost places the same pods, and Helm's last change of this one has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

from roost.doctor.conditions import CUT_OFF
from roost.doctor.evidence import name_of, other_webhooks
from roost.doctor.findings import CheckReport, Finding, error
from roost.doctor.install import Install
from roost_core.kube.client import ClusterError, list_all
from roost_core.objects.fields import JSONObject
from roost_core.objects.selectors import read_label_selector
from roost_core.release.class_of_pod import namespace_matches

# What mends a change of Helm's that was cut off, by the status that Helm gave it.
_FIXES: Final = {
    "pending-install": "helm uninstall {release} --namespace {namespace}",
    "pending-upgrade": "helm rollback {release} --namespace {namespace}",
    "pending-rollback": "helm rollback {release} --namespace {namespace}",
}


def check(install: Install) -> CheckReport:
    yield "other releases of Roost, and Helm's last change of this one"
    yield from _find_pending(install)
    own = install.of_kind("MutatingWebhookConfiguration")
    for other in other_webhooks(install):
        shared = _shared(install, own, other)
        if shared:
            namespace = shared[0]
            yield error(
                f"{name_of(other)}, of another release of Roost, changes the same pods in namespace"
                f" {namespace}: each pod has the rules of both, in an order that nobody chose.",
                "Uninstall one of the two. One release can serve several hubs: docs/many-hubs.md.",
            )


def _find_pending(install: Install) -> Iterator[Finding]:
    """A change of Helm's that was cut off: until it is mended, Helm refuses another one."""
    release, namespace = install.release.name, install.release.namespace
    selector = f"owner=helm,name={release},status in ({','.join(_FIXES)})"
    path = f"/api/v1/namespaces/{namespace}/secrets"
    try:
        secrets = list(list_all(install.client, path, {"labelSelector": selector}))
    except ClusterError:
        # Who may not list Secrets isn't asked for that right: Helm itself says it.
        return
    for secret in secrets:
        labels: Mapping[str, str] = secret["metadata"].get("labels") or {}
        status = labels.get("status", "")
        if status in _FIXES:
            fix = _FIXES[status].format(release=release, namespace=namespace)
            yield error(
                f"Helm's revision {labels.get('version', '?')} of release {release} is {status}: it"
                ' was cut off, and Helm refuses another one ("another operation is in progress").',
                f"If no helm runs now: `{fix}`, then install or upgrade again.",
                CUT_OFF,
            )


def _shared(install: Install, own: list[JSONObject], other: JSONObject) -> list[str]:
    """Namespaces where both change pods of the same labels, by name."""
    shared: set[str] = set()
    for body, of_other in product(own, other.get("webhooks") or []):
        for entry in body["webhooks"]:
            if entry.get("objectSelector") == of_other.get("objectSelector"):
                shared |= _selected(install, entry) & _selected(install, of_other)
    return sorted(shared)


def _selected(install: Install, entry: JSONObject) -> set[str]:
    """Namespaces whose pods an entry of a webhook configuration is asked about."""
    required = read_label_selector(entry.get("namespaceSelector") or {})
    if required is None:
        return set()
    # The API server gives each namespace this label.
    labels_by_name = {
        name: {"kubernetes.io/metadata.name": name, **labels}
        for name, labels in install.namespaces.items()
    }
    return {name for name in labels_by_name if namespace_matches(required, name, labels_by_name)}
