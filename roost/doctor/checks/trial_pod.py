"""A pod like a user's or a build's, made with dryRun, is placed, by the rules that are in the
cluster.
"""

from hashlib import sha256
from typing import Final

from roost.doctor.conditions import UNREVIEWED, Condition, State, conditions
from roost.doctor.evidence import (
    OTHER_WEBHOOK,
    TRIED,
    admits,
    advice_for_schedulers,
    is_strangers_scheduler,
    labels_of,
    name_of,
    namespace_of,
    path_of,
)
from roost.doctor.findings import CheckReport, Finding, error, warning
from roost.doctor.install import Install
from roost.doctor.quotas import EXCEEDED, quota_in_refusal
from roost.doctor.try_pod import make_pod, opted_out, refusal_of, try_pod
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import DEFAULT_SCHEDULER
from roost_core.placement.labels import POLICY_REVISION_ANNOTATION, RELEASE_KEY

_UNREACHED: Final = (
    "Mend what the checks programs and webhook find. If nothing, the API server doesn't reach it: a"
    " firewall (GKE private clusters: open the port webhook.port){network}. The class's match and"
    " namespaceSelector may also leave out this namespace."
)

# The webhook sees quotas, and adds no such term then; what the cluster's limitedResources ask for
# it can't see.
_FORBIDDEN: Final = (
    "If it names CrossNamespacePodAffinity: set sharedPools.namespaceSelector: null, or give the"
    " namespace a ResourceQuota of that scope. Otherwise set to null what it names of the class."
)
# Others than Roost refuse a pod in these words, and not for want of a right to create it.
_BY_OTHERS: Final = (EXCEEDED, "denied the request", "denied request", "violates PodSecurity")
_NETWORK: Final = (
    ", or a pod network that the control plane isn't part of (webhook.hostNetwork: true)"
)


def check(install: Install) -> CheckReport:
    classes = [
        (name, pod_class)
        for name, pod_class in install.values["podClasses"].items()
        if name in TRIED and labels_of(pod_class)
    ]
    tried = classes if admits(install) else []
    has_scheduler = install.component("scheduler") is not None
    names = ", ".join(name for name, _ in tried)
    rules, revision = _rules(install)
    yield f"dry-run pods of class {names}" if names else "no class whose pods can be made up"
    for name, pod_class in tried:
        namespace = namespace_of(install, pod_class)
        if not namespace:
            yield warning(
                f"podClasses.{name}.match.namespaceSelector selects no namespace: no pod of the"
                " class is placed.",
                "Label the hubs' namespaces as it asks (docs/many-hubs.md).",
            )
            continue
        pod = make_pod({"metadata": {"labels": labels_of(pod_class)}})
        try:
            trial = try_pod(install.client, namespace, pod)
        except ApiError as refusal:
            yield _refused(install, name, namespace, pod, refusal)
            continue
        if not trial.revision:
            what = (
                f"A pod of class {name}, made with dryRun, came back without"
                f" {POLICY_REVISION_ANNOTATION}"
            )
            fix = _unreached_fix(install)
            yield error(f"{what}: nothing of Roost's reached it.", fix, follows=UNREVIEWED)
        elif revision and trial.revision != revision:
            evidence = (
                f"The webhook places pods by revision {trial.revision}, and {rules} has {revision}."
            )
            # Of one class that is enough.
            revision = ""
            yield warning(
                evidence,
                "Kubelets take about a minute to bring a change. Longer: the webhook's log and"
                " /readyz say why it keeps the old rules"
                " (docs/troubleshooting.md#is-the-webhook-healthy).",
            )
        elif pod_class.get("profile") and has_scheduler:
            yield from _find_other_scheduler(install, name, trial.scheduler)


def _find_other_scheduler(install: Install, name: str, scheduler: str) -> CheckReport:
    """A pod of a class that came back placed, without Roost's scheduler."""
    if not is_strangers_scheduler(install, scheduler):
        return
    evidence = f"A pod of class {name} is placed, and left to scheduler {scheduler}."
    away = "The webhook holds Roost's scheduler to be away: see the check leaders."
    led = conditions(State.UNLED, "scheduler")
    # The trial names none, and the API server writes this one.
    if scheduler == DEFAULT_SCHEDULER:
        yield warning(evidence, away, follows=led)
    elif scheduler in install.values["replaceSchedulers"]:
        yield warning(evidence, f"{away} If it isn't, {OTHER_WEBHOOK}.", follows=led)
    else:
        yield warning(
            evidence, f"{OTHER_WEBHOOK.capitalize()}. {advice_for_schedulers(install, [scheduler])}"
        )


def _unreached_fix(install: Install) -> str:
    """What to do where a pod doesn't reach the webhook."""
    webhook = install.component("webhook")
    on_host = webhook is not None and webhook["spec"]["template"]["spec"].get("hostNetwork")
    return _UNREACHED.format(network="" if on_host else _NETWORK)


def _refused(
    install: Install, name: str, namespace: str, pod: JSONObject, refusal: ApiError
) -> Finding:
    """What is said of a pod that the API server refuses. Raises ApiError: nobody may create it."""
    if refusal.status != 403:
        return error(
            f"A pod of class {name} is refused: {refusal}",
            _unreached_fix(install),
            follows=UNREVIEWED,
            is_felt=True,
        )
    if not refusal_of(install.client, namespace, opted_out(pod)):
        return error(
            f"A pod of class {name} is refused, and admitted without Roost: {refusal}",
            _FORBIDDEN,
            is_felt=True,
        )
    if not any(words in str(refusal) for words in _BY_OTHERS):
        raise refusal
    return _refused_by_others(name, namespace, str(refusal))


def _refused_by_others(name: str, namespace: str, refusal: str) -> Finding:
    """What is said of a pod that is refused whether or not Roost places it."""
    quota = quota_in_refusal(refusal)
    full: frozenset[Condition] = frozenset()
    fix = "It isn't Roost that refuses it: whoever wrote the rule that it names can say why."
    if quota:
        full = conditions(State.QUOTA_FULL, quota)
        fix = (
            f"`kubectl --namespace {namespace} describe resourcequota {quota}` says what is used"
            " up: raise it, or end what uses it."
        )
    return error(
        f"A pod of class {name} is refused, with Roost and without it: {refusal}",
        fix,
        brings=full,
        follows=full,
        is_felt=True,
    )


def _rules(install: Install) -> tuple[str, str]:
    """The ConfigMap with the webhook's rules, and the revision of those in it now; "", ""
    without.
    """
    for body in install.of_kind("ConfigMap") if install.component("webhook") else ():
        if RELEASE_KEY in (body.get("data") or {}):
            text = str(
                ((install.client.find(path_of(body)) or {}).get("data") or {}).get(RELEASE_KEY, "")
            )
            return name_of(body), sha256(text.encode()).hexdigest()[:12] if text else ""
    return "", ""
