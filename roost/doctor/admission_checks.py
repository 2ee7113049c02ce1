"""Do pods reach the webhook, and does admission take them?"""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from roost.doctor.evidence import (
    admits,
    annotation_of,
    label_items,
    labels_of,
    namespace_of,
    pod_templates,
    pods_of,
    some,
    users_of,
)
from roost.doctor.findings import Finding
from roost.doctor.install import name_of, path_of
from roost.doctor.platform_checks import GKE_SCHEDULER
from roost.doctor.try_pod import make_pod, try_pod, try_template
from roost_core.kube.client import ApiError
from roost_core.kube.pki import bundle_end_seconds
from roost_core.objects.selectors import read_label_selector, selector_matches
from roost_core.placement.labels import (
    HOME_TARGET_ANNOTATION,
    OPT_OUT_ANNOTATION,
    POLICY_REVISION_ANNOTATION,
    RELEASE_KEY,
)
from roost_core.placement.settings import USER_CLASS, read_settings
from roost_core.placement.settings_reader import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roost.doctor.install import Install, Object
    from roost_core.placement.settings import Settings

_TRIED: Final = (USER_CLASS, "build")
# What a refusal says, and how to mend it.
_REFUSALS: Final = {
    "violates PodSecurity": "Pods with hostNetwork need a namespace whose label pod-security.kubernetes.io/enforce is "
    "privileged, or none: docs/threat-model.md. All others pass `restricted`.",
    "security context constraint": "OpenShift gives each namespace users of its own: set podSecurityContext: "
    "{runAsUser: null, runAsGroup: null, fsGroup: null} (docs/how-to/openshift.md).",
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
            yield from _find_expired(name_of(body), entries)
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
    classes = [(name, one) for name, one in install.values["podClasses"].items() if name in _TRIED and labels_of(one)]
    tried = classes if admits(install) else []

    def find() -> Iterator[Finding]:
        for name, one in tried:
            namespace = namespace_of(install, one)
            if not namespace:
                yield Finding(
                    "warning",
                    f"podClasses.{name}.match.namespaceSelector selects no namespace: no pod of the class is placed.",
                    "Label the hubs' namespaces as it asks (docs/many-hubs.md).",
                )
                continue
            try:
                trial = try_pod(install.client, namespace, _pod_with(labels_of(one)))
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


def _pod_with(labels: Mapping[str, str]) -> dict[str, Any]:
    return make_pod({"metadata": {"labels": labels}})


def check_policy(install: Install) -> tuple[str, Iterator[Finding]]:
    """The webhook places pods by the rules of these values."""
    rendered = next((body for body in install.of_kind("ConfigMap") if RELEASE_KEY in (body.get("data") or {})), None)
    if rendered is None or install.component("webhook") is None:
        return "no webhook is used", iter(())
    classes = [one for name, one in install.values["podClasses"].items() if name in _TRIED and labels_of(one)]

    def find() -> Iterator[Finding]:
        live = install.client.find(path_of(rendered))
        if live is None:
            return  # the check objects says so
        try:
            settings = _settings_of(live)
        except SettingsError as error:
            yield Finding(
                "error",
                f"{name_of(live)} is refused, so the webhook keeps the rules that it had: {error.one_line()}",
                "Correct in the values what is named, and apply them again.",
            )
            return
        if replace(settings, revision="") != replace(_settings_of(rendered), revision=""):
            yield Finding(
                "warning",
                f"{name_of(live)} has other rules than the values render to.",
                "Are these the install's values? If so, apply them again.",
            )
        for one in classes:
            namespace = namespace_of(install, one)
            try:
                pod = _pod_with(labels_of(one))
                revision = try_pod(install.client, namespace, pod).revision if namespace else ""
            except ApiError:
                continue  # the same request as that of the check admission, which tells of it
            if revision and revision != settings.revision:
                yield Finding(
                    "warning",
                    f"The webhook places pods by revision {revision}, and {name_of(live)} has {settings.revision}.",
                    "Kubelets take about a minute to bring a change. Longer: the webhook's log and /readyz say why it "
                    "keeps the old rules (docs/troubleshooting.md#is-the-webhook-healthy).",
                )
                return

    return f"rules in {name_of(rendered)}", find()


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

        yield from _find_other_schedulers(install, users)

    return f"{len(users)} users' pods in {install.release.namespace}", find()


def check_security(install: Install) -> tuple[str, Iterator[Finding]]:
    """The namespace takes Roost's own pods as they are rendered: Pod Security, OpenShift's constraints, quotas."""
    templates = pod_templates(install)

    def find() -> Iterator[Finding]:
        for name, template in templates:
            try:
                try_template(install.client, install.release.namespace, template)
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
            if selector_matches(read_label_selector(policy["spec"].get("podSelector") or {}), labels)
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


def check_builds(install: Install) -> tuple[str, Iterator[Finding]]:
    """Builds that run now have a home, chosen among the nodes that have builders."""
    entry = install.values["podClasses"].get("build") or {}
    labels, home = labels_of(entry), entry.get("home")
    pods = pods_of(install, entry) if home else []
    builds = [pod for pod in pods if labels and home and labels.items() <= label_items(pod).items()]

    def find() -> Iterator[Finding]:
        wanted = ((home or {}).get("builders") or {}).get("labels") or {}
        if builds and wanted and not any(wanted.items() <= label_items(pod).items() for pod in (*pods, *install.pods)):
            said = ", ".join(f"{key}={value}" for key, value in wanted.items())
            yield Finding(
                "warning",
                f"Builds run, and no pod beside them has the builders' labels ({said}): homes are "
                "chosen among all nodes, whether they have build caches or not.",
                "Set podClasses.build.home.builders.labels to the builder pods' labels: binderhub-service has others.",
            )
        homeless = [
            pod["metadata"]["name"]
            for pod in builds
            if annotation_of(pod, POLICY_REVISION_ANNOTATION) and not annotation_of(pod, HOME_TARGET_ANNOTATION)
        ]
        if homeless:
            yield Finding(
                "warning",
                f"{len(homeless)} of {len(builds)} builds have no home: {some(homeless)}.",
                "Say in podClasses.build.home.key where a build names its repository; or no node was known then.",
            )

    return f"{len(builds)} builds in {install.release.namespace}", find()


def _find_other_schedulers(install: Install, users: list[Object]) -> Iterator[Finding]:
    """Users that Roost placed, and whose scheduler isn't Roost's."""
    if install.component("scheduler") is None or not (install.values["podClasses"].get(USER_CLASS) or {}).get(
        "profile"
    ):
        return
    own = f"{install.release.name}.{install.release.namespace}."
    # That GKE changes it on its own is told by the check platform.
    others: dict[str, list[str]] = {}
    for pod in users:
        scheduler = str((pod.get("spec") or {}).get("schedulerName", own))
        if annotation_of(pod, POLICY_REVISION_ANNOTATION) and not scheduler.startswith((own, GKE_SCHEDULER)):
            others.setdefault(scheduler, []).append(pod["metadata"]["name"])
    for scheduler, names in sorted(others.items()):
        yield Finding(
            "warning",
            f"{len(names)} of {len(users)} users' pods were placed and left to scheduler {scheduler}: {some(names)}.",
            "Roost's scheduler was away when they were created (programs and leaders, above), or not yet there."
            if scheduler == "default-scheduler"
            else f"Their author chose it. To have Roost's schedule such pods: replaceSchedulers: [{scheduler}].",
        )


def _find_expired(name: str, entries: list[Object]) -> Iterator[Finding]:
    """CA bundles by which the API server can trust no certificate."""
    wrong: dict[str, None] = {}
    for entry in entries:
        bundle = entry["clientConfig"].get("caBundle")
        ends = bundle_end_seconds(base64.b64decode(bundle)) if bundle else None
        if bundle and ends is None:
            wrong[f"{entry['name']} (not a certificate)"] = None
        elif ends is not None and ends <= datetime.now(UTC).timestamp():
            wrong[f"{entry['name']} (expired {datetime.fromtimestamp(ends, UTC):%Y-%m-%d})"] = None
    if wrong:
        yield Finding(
            "error",
            f"{name}: a caBundle by which nothing can be trusted: {some(list(wrong))}. Pods are created without Roost.",
            "The controllers' leader renews it (mode self): see leaders, above. certManager: does its ca-injector run? "
            "secret: give a new webhook.certificates.caBundle.",
        )


def _settings_of(config_map: Object) -> Settings:
    """The rules in a ConfigMap. Raises SettingsError."""
    return read_settings(str((config_map.get("data") or {}).get(RELEASE_KEY) or "").encode())


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
