"""The API server can tell the webhook from an impostor, and has somewhere to send reviews."""

import base64
from datetime import UTC, datetime

from roost.doctor.contract import Install, Told, error
from roost.doctor.evidence import name_of, now_seconds, path_of, some
from roost_core.kube.pki import bundle_end_seconds
from roost_core.objects.fields import JSONObject


def check(install: Install) -> Told:
    configurations = install.of_kind("MutatingWebhookConfiguration")
    yield "the webhook's caBundle and Service" if configurations else "no webhook is used"
    for body in configurations:
        found = install.client.find(path_of(body))
        if found is None:
            yield "no webhook is there"  # and the check objects says so
            continue
        entries = found.get("webhooks") or []
        bare = [entry["name"] for entry in entries if not entry["clientConfig"].get("caBundle")]
        if bare:
            yield error(
                f"{name_of(body)}: no caBundle in {some(bare)}, so the API server trusts no"
                " webhook.",
                "The controllers' leader writes it (webhook.certificates.mode self): see their log."
                " certManager: does cert-manager's ca-injector run? secret: give"
                " webhook.certificates.caBundle.",
            )
        yield from _find_expired(name_of(body), entries, now_seconds(install))
        for service in {
            entry["clientConfig"]["service"]["name"]
            for entry in entries
            if entry["clientConfig"].get("service")
        }:
            if not _has_ready_address(install, service):
                yield error(
                    f"Service {install.release.namespace}/{service} has no ready pod, so no pod is"
                    " placed.",
                    "kubectl logs of the webhook's pods; /readyz says what a replica waits for "
                    "(docs/troubleshooting.md#is-the-webhook-healthy).",
                )


def _find_expired(name: str, entries: list[JSONObject], now: float) -> Told:
    """CA bundles by which the API server can trust no certificate."""
    wrong: dict[str, None] = {}
    for entry in entries:
        bundle = entry["clientConfig"].get("caBundle")
        ends = bundle_end_seconds(base64.b64decode(bundle)) if bundle else None
        if bundle and ends is None:
            wrong[f"{entry['name']} (not a certificate)"] = None
        elif ends is not None and ends <= now:
            wrong[f"{entry['name']} (expired {datetime.fromtimestamp(ends, UTC):%Y-%m-%d})"] = None
    if wrong:
        yield error(
            f"{name}: a caBundle by which nothing can be trusted: {some(list(wrong))}. Pods are"
            " created without Roost.",
            "The controllers' leader renews it (mode self; check leaders). certManager: does its"
            " ca-injector run? secret: give a new webhook.certificates.caBundle.",
        )


def _has_ready_address(install: Install, service: str) -> bool:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{install.release.namespace}/endpointslices"
    slices = install.client.get(path, {"labelSelector": f"kubernetes.io/service-name={service}"})[
        "items"
    ]
    endpoints = [
        endpoint for endpoint_slice in slices for endpoint in endpoint_slice.get("endpoints") or []
    ]
    return any(
        endpoint["addresses"] and (endpoint.get("conditions") or {}).get("ready", True)
        for endpoint in endpoints
    )
