"""Find values that fit the schema and yet don't do what they say: rules across keys, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generator.checks.classes import lint_classes
from generator.checks.controllers import lint_controllers
from generator.checks.events import lint_events
from generator.checks.placeholders import is_wanted, lint_placeholders, placeholder_sets
from generator.checks.reach import lint_reach
from generator.checks.recorder import lint_recorder
from generator.checks.report import Phrase, Report, at, mapping, number, text
from generator.checks.scheduler import lint_scheduler
from generator.checks.sizes import lint_sizes
from generator.faults import Fault, describe
from generator.render.functions import core_pod

if TYPE_CHECKING:
    from generator.values.merge import Merged
    from generator.values.release import Release

# MutatingAdmissionPolicy is v1 from here on.
_POLICY_MINOR: Final = (1, 36)
# cluster-autoscaler's --expendable-pods-priority-cutoff.
AUTOSCALER_CUTOFF: Final = -10
_LONG_TIMEOUT_SECONDS: Final = 10
# What may be on the host network: its key, what turns it on, its ports. `metricsPort` is of `corePods`.
_PROGRAMS: Final = (
    ("scheduler", ("scheduler", "target"), "deploy", ("port",)),
    ("webhook", ("admission", "mode"), "webhook", ("port", "metricsPort")),
    ("controllers", ("controllers", "enabled"), True, ("metricsPort",)),
    ("recorder", ("recorder", "enabled"), True, ("metricsPort",)),
)


def lint(merged: Merged, release: Release) -> list[Fault]:
    """Every fault and warning, with file and line; `merged` must fit the schema."""
    report = Report(merged.values, merged.places, merged.defaults)
    if merged.values.get("enabled") is False:
        return []
    lint_scheduler(report, release)
    lint_classes(report)
    lint_sizes(report)
    lint_controllers(report, release)
    lint_recorder(report)
    _lint_gate(report)
    lint_placeholders(report)
    lint_events(report)
    lint_reach(report)
    _lint_priorities(report)
    _lint_admission(report, release)
    _lint_webhook(report)
    _lint_ports(report)
    _lint_disruption(report)
    _lint_names(report, release)
    return report.faults


def _lint_gate(report: Report) -> None:
    mode = at(report.values, "imageGate", "mode")
    gated = [name for name, entry in mapping(report.values.get("podClasses")).items() if at(entry, "imageGate") is True]
    path = ("imageGate", "mode")
    if not gated:
        return
    if at(report.values, "imageGate", "pullerPods") == "zeroToJupyterHub" and any(
        at(report.values, "podClasses", name, "match", "namespaceSelector") is not None for name in gated
    ):
        reason = "zeroToJupyterHub with a namespaceSelector: pullers outside of the release's aren't seen."
        report.warn(("imageGate", "pullerPods"), reason, "Use roost, with prePuller.enabled, for all hubs.")
    placeholders = any(map(is_wanted, placeholder_sets(report)))
    is_pulled = at(report.values, "prePuller", "enabled") is True
    if (
        mode in {"prefer", "off"}
        and is_pulled
        and placeholders
        and at(report.values, "placeholder", "backend") == "statefulset"
    ):
        moved = ", to which placeholderMover attracts them" if at(report.values, "placeholderMover", "enabled") else ""
        reason = (
            f"{text(mode)} with placeholders: a user who pre-empts one is put on its node whether that holds the image "
            f"or not, since pre-emption ignores scores and takes the newest node{moved}."
        )
        report.warn(path, reason, "Use requireLabel.")
    if mode == "requireLabel" and at(report.values, "webhook", "readNodes") is False:
        sets = any(at(entry, "warm") for entry in mapping(report.values.get("podClasses")).values())
        also = ", and no class has a warm set" if sets else ""
        reason = f"false: the webhook doesn't know which nodes have an image, so requireLabel only prefers{also}."
        report.warn(("webhook", "readNodes"), reason, "Set it to true where a cluster role may be granted.")


def _lint_priorities(report: Report) -> None:
    priorities = mapping(report.values.get("priorityClasses"))
    user, placeholder = number(priorities.get("user")), number(priorities.get("placeholder"))
    path = ("priorityClasses", "placeholder")
    if priorities.get("enabled") is not True:
        if any(map(is_wanted, placeholder_sets(report))):
            reason = "without priority classes placeholders rank with users, and never give way."
            report.warn(("priorityClasses", "enabled"), reason, "Set it to true, or placeholders: [].")
        return
    if placeholder >= user:
        report.error(path, priorities.get("placeholder"), f"less than priorityClasses.user ({user})", "Use -10.")
    if placeholder < AUTOSCALER_CUTOFF:
        reason = f"below {AUTOSCALER_CUTOFF}, cluster-autoscaler's default cutoff: it adds no nodes for such pods."
        report.warn(path, reason, f"Use {AUTOSCALER_CUTOFF}, or lower --expendable-pods-priority-cutoff there.")


def _lint_admission(report: Report, release: Release) -> None:
    if at(report.values, "admission", "mode") != "policy":
        return
    path = ("admission", "mode")
    if release.kube_minor < _POLICY_MINOR:
        expected = f"webhook or none for Kubernetes {release.kube_version}"
        fix = "policy needs 1.36: give the cluster's version with --kube-version."
        report.error(path, Phrase('"policy"'), expected, fix)
    for name, entry in mapping(report.values.get("podClasses")).items():
        if at(entry, "home") is not None:
            reason = "admission policies have no ring: pods of this class get no home."
            report.warn(("podClasses", name, "home"), reason, "Set it to null, or use admission.mode: webhook.")
        if at(entry, "warm") is not None and not report.is_default(("podClasses", name, "warm")):
            reason = "admission policies don't know nodes: pods of this class get no warm set."
            report.warn(("podClasses", name, "warm"), reason, "Set it to null, or use admission.mode: webhook.")
        if at(entry, "imageGate") is True and at(report.values, "imageGate", "mode") == "requireLabel":
            reason = (
                "an admission policy can't see whether the controllers run: the gate only prefers nodes with the image."
            )
            report.warn(("podClasses", name, "imageGate"), reason, "Use admission.mode: webhook.")


def _lint_webhook(report: Report) -> None:
    if at(report.values, "admission", "mode") != "webhook":
        return
    webhook = mapping(report.values.get("webhook"))
    replicas = number(webhook.get("replicas"))
    if webhook.get("failurePolicy") == "Fail" and replicas <= 1:
        reason = f"Fail with {replicas:.0f} replica(s): no pod can be created while it restarts."
        fix = "Set webhook.replicas to 2 or more, or failurePolicy to Ignore."
        report.refuse(("webhook", "failurePolicy"), reason, fix)
    elif replicas == 0 and not webhook.get("url"):
        report.warn(
            ("webhook", "replicas"), "with 0 replicas nothing answers, and pods stay as they were created.", "Use 2."
        )
    if number(webhook.get("timeoutSeconds")) > _LONG_TIMEOUT_SECONDS:
        reason = "while the webhook hangs, the creation of every pod can take that long."
        report.warn(("webhook", "timeoutSeconds"), reason, "2 is enough.")
    if webhook.get("port") == of_core_pod(report, "webhook", "metricsPort"):
        path = _named_by(report, "webhook", "metricsPort")
        report.error(path, webhook.get("port"), "another port than webhook.port")
    client = mapping(webhook.get("clientCA"))
    if client.get("configMapName") and client.get("secretName"):
        reason = "set together with configMapName: only one of them can hold the CA."
        report.refuse(("webhook", "clientCA", "secretName"), reason, "Leave one empty.")
    if client.get("commonName") and not (client.get("configMapName") or client.get("secretName")):
        reason = "without a CA no client certificate is requested, so the name is not checked."
        report.refuse(
            ("webhook", "clientCA", "commonName"), reason, "Set configMapName or secretName, or leave it empty."
        )
    certificates = mapping(webhook.get("certificates"))
    if certificates.get("mode") == "self":
        _lint_own_certificates(report, certificates)
    _lint_certificates(report, certificates)


def _lint_own_certificates(report: Report, certificates: dict[str, object]) -> None:
    """Find what keeps the controllers from maintaining the webhook's certificates.

    The chart's `roost.refuse_uncertified` reports the same to Helm, in the same words.
    """
    path = ("webhook", "certificates", "mode")
    if at(report.values, "controllers", "enabled") is not True:
        reason = (
            "self with controllers.enabled: false: the controllers create the certificate, so the webhook gets none."
        )
        report.refuse(path, reason, "Use mode certManager or secret, or controllers.enabled: true.")
    elif number(at(report.values, "controllers", "replicas")) == 0:
        reason = "self with controllers.replicas: 0: the controllers create the certificate, so the webhook gets none."
        report.refuse(path, reason, "Use mode certManager or secret, or controllers.replicas: 2.")
    if report.values.get("clusterResources") is False:
        reason = (
            "self with clusterResources: false: nothing can write the caBundle, and without the admission policies an "
            "account that can create Secrets can get a token of every account in the namespace."
        )
        fix = "Use mode secret or certManager: whoever creates the webhook configuration supplies the CA bundle."
        report.refuse(path, reason, fix)
    if text(certificates.get("secretName")).endswith("-webhook-ca"):
        reason = "is the Secret with the CA's key, which the webhook would then mount."
        report.refuse(("webhook", "certificates", "secretName"), reason, "Use another name, or leave it empty.")


def _lint_certificates(report: Report, certificates: dict[str, object]) -> None:
    path = ("webhook", "certificates")
    mode = certificates.get("mode")
    if mode == "secret":
        for key in ("secretName", "caBundle"):
            if not certificates.get(key):
                report.error((*path, key), "", "a value, for mode secret")
    elif certificates.get("caBundle"):
        reason = f"is not used in mode {text(mode)}."
        report.warn((*path, "caBundle"), reason, "Remove it, or set mode: secret.")
    bundle = text(certificates.get("caBundle")).replace("\n", "")
    # "-----BEGIN CERTIFICATE-----" in base64.
    if bundle and (len(bundle) % 4 or not bundle.startswith("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t")):
        fix = "Make it with: base64 -w0 ca.pem"
        report.error(
            (*path, "caBundle"), Phrase("text that is not base64-encoded PEM"), "PEM certificates in base64", fix
        )
    if mode == "certManager" and not at(certificates, "issuerRef", "name"):
        kind = at(certificates, "issuerRef", "kind")
        if kind == "ClusterIssuer":
            reason = "a ClusterIssuer needs its name; the rendered one is an Issuer."
            report.refuse((*path, "issuerRef", "name"), reason, "Set the name, or kind: Issuer.")


def _lint_ports(report: Report) -> None:
    """Find ports that programs on the host network share: Kubernetes treats them as ports of the node."""
    first: dict[object, str] = {}
    for part, switch, on, keys in _PROGRAMS:
        if at(report.values, *switch) != on or of_core_pod(report, part, "hostNetwork") is not True:
            continue
        for key in keys:
            port = of_core_pod(report, part, key) or at(report.values, part, key)
            other = first.setdefault(port, f"{part}.{key}")
            # Two ports of one program are checked elsewhere.
            if not other.startswith(f"{part}."):
                reason = (
                    f"{other} is {describe(port)} too, and both are on the host network: no node takes a pod of each, "
                    "and where nodes are few one stays Pending."
                )
                report.warn((part, key), reason, "Use another port.")


def _lint_disruption(report: Report) -> None:
    for part in ("scheduler", "webhook", "controllers"):
        budget = mapping(of_core_pod(report, part, "pdb"))
        if budget.get("enabled") is True and budget.get("maxUnavailable") in {0, "0%"}:
            reason = f"no node with a pod of the {part} can be drained."
            report.warn((*_named_by(report, part, "pdb"), "maxUnavailable"), reason, "Use 1.")


def of_core_pod(report: Report, part: str, key: str) -> object:
    """A key of `corePods`, as it applies to one program's pods."""
    return core_pod(report.values.get("corePods"), report.values.get(part)).get(key)


def _named_by(report: Report, part: str, key: str) -> tuple[str, str]:
    return (part if at(report.values, part, key) is not None else "corePods", key)


def _lint_names(report: Report, release: Release) -> None:
    override = text(report.values.get("fullnameOverride"))
    if at(report.values, "admission", "mode") == "webhook" and (override or release.name)[:1].isdigit():
        name = override or release.name
        reason = f"the Service's name would begin with a digit ({name}), which the API server rejects."
        report.refuse(("fullnameOverride",), reason, "Set it to a name that begins with a letter.")
    common = mapping(report.values.get("commonLabels"))
    for key in common:
        if key.startswith("app.kubernetes.io/"):
            report.warn(("commonLabels", key), "Roost sets this label itself, and wins.", "Remove it.")
    for name, entry in mapping(report.values.get("podClasses")).items():
        labels = mapping(at(entry, "match", "labels"))
        for part in ("scheduler", "webhook", "controllers", "recorder", "prePuller"):
            given = at(report.values, part, "labels") if part == "prePuller" else of_core_pod(report, part, "labels")
            if labels and labels.items() <= {**common, **mapping(given)}.items():
                own = (part, "labels") if part == "prePuller" else _named_by(report, part, "labels")
                where = own if not labels.items() <= common.items() else ("commonLabels",)
                reason = f"Roost's own pods would belong to podClasses.{name}."
                report.refuse(where, reason, f"Remove {', '.join(labels)}.")
