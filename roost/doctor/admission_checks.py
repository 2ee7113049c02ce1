"""Do pods reach the webhook, and does admission take them?"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from roost.doctor.evidence import admits, label_items, labels_of, pod_templates, selects, some, users_of
from roost.doctor.findings import Finding
from roost.doctor.install import name_of, path_of
from roost.doctor.try_pod import try_pod
from roost_core.kube.client import ApiError
from roost_core.placement.labels import OPT_OUT_ANNOTATION, POLICY_REVISION_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost.doctor.install import Install, Object

_TRIED: Final = ("user", "build")
# Made by the install itself, and not there before it.
_ABSENT_BEFORE: Final = frozenset(
    {"serviceAccountName", "serviceAccount", "priorityClassName", "priority", "topologySpreadConstraints"}
)
# What a refusal says, and how to mend it.
_REFUSALS: Final = {
    "violates PodSecurity": "Pods with hostNetwork need a namespace whose label pod-security.kubernetes.io/enforce is "
    "privileged, or none: docs/threat-model.md. All others pass `restricted`.",
    "security context constraint": "OpenShift gives each namespace users of its own: set podSecurityContext: "
    "{runAsUser: null, runAsGroup: null, fsGroup: null} (docs/any-cloud.md#openshift).",
    "exceeded quota": "Raise the namespace's ResourceQuota, or lower the component's resources.",
}
_UNREACHED: Final = (
    "If all above is well, the API server doesn't reach the webhook: a firewall between control plane and nodes (GKE "
    "private clusters: open the port webhook.port), or a pod network that the control plane isn't part of "
    "(webhook.hostNetwork: true). The class's match and namespaceSelector may also leave out this namespace."
)


def check_certificate(install: Install) -> tuple[str, Iterator[Finding]]:
    """The API server can tell the webhook from an impostor, and has somewhere to send reviews."""
    configurations = install.of_kind("MutatingWebhookConfiguration")

    def find() -> Iterator[Finding]:
        for body in configurations:
            found = install.client.find(path_of(body))
            if found is None:
                yield Finding("error", f"{name_of(body)} isn't there.", "See objects, above.")
                continue
            entries = found.get("webhooks") or []
            bare = [entry["name"] for entry in entries if not entry["clientConfig"].get("caBundle")]
            if bare:
                yield Finding(
                    "error",
                    f"{name_of(body)}: no caBundle in {some(bare)}, so the API server trusts no webhook.",
                    "The controllers' leader writes it (webhook.certificates.mode self): see their log. certManager: "
                    "does cert-manager's ca-injector run? secret: give webhook.certificates.caBundle.",
                )
            for service in {entry["clientConfig"]["service"]["name"] for entry in entries if _service_of(entry)}:
                if not _ready_addresses(install, service):
                    yield Finding(
                        "error",
                        f"Service {install.release.namespace}/{service} has no ready pod, so no pod is placed.",
                        "kubectl logs of the webhook's pods; /readyz says what a replica waits for "
                        "(docs/troubleshooting.md#is-the-webhook-healthy).",
                    )

    return "the webhook's caBundle and Service" if configurations else "no webhook is used", find()


def check_admission(install: Install) -> tuple[str, Iterator[Finding]]:
    """A pod like a user's or a build's, made with dryRun, is placed."""
    classes = [(name, labels_of(one)) for name, one in install.values["podClasses"].items() if name in _TRIED]
    tried = [(name, labels) for name, labels in classes if labels] if admits(install) else []

    def find() -> Iterator[Finding]:
        for name, labels in tried:
            try:
                trial = try_pod(install.client, install.release.namespace, labels)
            except ApiError as error:
                if error.status == 403:
                    raise
                yield Finding("error", f"A pod of class {name} is refused: {error}", _UNREACHED)
                continue
            if not trial.revision:
                what = f"A pod of class {name}, made with dryRun, came back without {POLICY_REVISION_ANNOTATION}"
                yield Finding("error", f"{what}: nothing of Roost's reached it.", _UNREACHED)
            elif _lost_scheduler(install, name, trial.scheduler):
                yield Finding(
                    "warning",
                    f"A pod of class {name} is placed, and left to scheduler {trial.scheduler}.",
                    "The webhook holds Roost's scheduler to be away: see the Lease above.",
                )

    said = ", ".join(name for name, _ in tried)
    return f"dry-run pods of class {said}" if said else "no class whose pods can be made up", find()


def check_users(install: Install) -> tuple[str, Iterator[Finding]]:
    """The users that run now were placed, and wait for a scheduler that there is."""
    users = users_of(install) if admits(install) else []

    def find() -> Iterator[Finding]:
        missed = [
            pod["metadata"]["name"]
            for pod in users
            if not {POLICY_REVISION_ANNOTATION, OPT_OUT_ANNOTATION} & (pod["metadata"].get("annotations") or {}).keys()
        ]
        if missed:
            yield Finding(
                "warning",
                f"{len(missed)} of {len(users)} users' pods were made without Roost: {some(missed)}.",
                "Older than the install: nothing to do. Else the API server didn't reach the webhook then: its metric "
                "apiserver_admission_webhook_fail_open_count tells how often.",
            )

    return f"{len(users)} users' pods in {install.release.namespace}", find()


def check_security(install: Install) -> tuple[str, Iterator[Finding]]:
    """The namespace takes Roost's own pods as they are rendered: Pod Security, OpenShift's constraints, quotas."""
    templates = pod_templates(install)

    def find() -> Iterator[Finding]:
        for name, template in templates:
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
            try:
                install.client.create(f"/api/v1/namespaces/{install.release.namespace}/pods?dryRun=All", pod)
            except ApiError as error:
                reason = next((reason for reason in _REFUSALS if reason in str(error)), None)
                if reason is None:
                    raise
                yield Finding("error", f"Pods of {name} are refused: {error}", _REFUSALS[reason])

    return f"dry-run pods of {len(templates)} workloads", find()


def check_network(install: Install) -> tuple[str, Iterator[Finding]]:
    """No NetworkPolicy of the namespace keeps the API server's reviews from the webhook."""
    webhook = install.component("webhook")
    port = install.values["webhook"]["port"]

    def find() -> Iterator[Finding]:
        if webhook is None or webhook["spec"]["template"]["spec"].get("hostNetwork"):
            return
        labels = label_items(webhook["spec"]["template"])
        path = f"/apis/networking.k8s.io/v1/namespaces/{install.release.namespace}/networkpolicies"
        matching = [
            policy
            for policy in install.client.get(path)["items"]
            if selects(policy["spec"].get("podSelector") or {}, labels)
            and "Ingress" in (policy["spec"].get("policyTypes") or ["Ingress"])
        ]
        if matching and not any(_lets_all_reach(policy, port) for policy in matching):
            names = [policy["metadata"]["name"] for policy in matching]
            yield Finding(
                "warning",
                f"NetworkPolicies limit who reaches the webhook's port {port} ({some(names)}), and none lets every "
                "address do so. The API server comes from an address of the control plane.",
                "Name its addresses in networkPolicy.ingress.webhookReviews (and leave networkPolicy.enabled on), or "
                "nothing to let all reach it. The check admission tells whether it gets through.",
            )

    return "NetworkPolicies of the webhook's pods" if webhook is not None else "no webhook is used", find()


def _lets_all_reach(policy: Object, port: int) -> bool:
    for rule in policy["spec"].get("ingress") or []:
        ports = rule.get("ports")
        in_range = not ports or any(
            one.get("port") is None
            or (
                type(one["port"]) is int
                and one["port"] <= port <= one.get("endPort", one["port"])
                and one.get("protocol", "TCP") == "TCP"
            )
            for one in ports
        )
        if in_range and not rule.get("from"):
            return True
    return False


def _lost_scheduler(install: Install, pod_class: str, scheduler: str) -> bool:
    wants = bool(install.values["podClasses"][pod_class].get("profile"))
    return wants and install.component("scheduler") is not None and scheduler == "default-scheduler"


def _service_of(entry: Object) -> bool:
    return bool(entry["clientConfig"].get("service"))


def _ready_addresses(install: Install, service: str) -> list[str]:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{install.release.namespace}/endpointslices"
    slices = install.client.get(path, {"labelSelector": f"kubernetes.io/service-name={service}"})["items"]
    return [
        address
        for one in slices
        for endpoint in one.get("endpoints") or []
        if (endpoint.get("conditions") or {}).get("ready", True)
        for address in endpoint["addresses"]
    ]
