"""A pod like a user's or a build's, made with dryRun, is placed."""

from typing import Final

from roost.doctor.contract import Finding, Install, Told
from roost.doctor.evidence import TRIED, admits, labels_of, namespace_of
from roost.doctor.try_pod import make_pod, try_pod
from roost_core.kube.client import ApiError
from roost_core.placement.labels import POLICY_REVISION_ANNOTATION

_UNREACHED: Final = (
    "If all above is well, the API server doesn't reach the webhook: a firewall between control plane and nodes (GKE "
    "private clusters: open the port webhook.port), or a pod network that the control plane isn't part of "
    "(webhook.hostNetwork: true). The class's match and namespaceSelector may also leave out this namespace."
)


def check(install: Install) -> Told:
    classes = [(name, one) for name, one in install.values["podClasses"].items() if name in TRIED and labels_of(one)]
    tried = classes if admits(install) else []
    has_scheduler = install.component("scheduler") is not None
    said = ", ".join(name for name, _ in tried)
    yield f"dry-run pods of class {said}" if said else "no class whose pods can be made up"
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
            trial = try_pod(install.client, namespace, make_pod({"metadata": {"labels": labels_of(one)}}))
        except ApiError as error:
            if error.status == 403:
                raise
            yield Finding("error", f"A pod of class {name} is refused: {error}", _UNREACHED)
            continue
        if not trial.revision:
            what = f"A pod of class {name}, made with dryRun, came back without {POLICY_REVISION_ANNOTATION}"
            yield Finding("error", f"{what}: nothing of Roost's reached it.", _UNREACHED)
        elif one.get("profile") and has_scheduler and trial.scheduler == "default-scheduler":
            yield Finding(
                "warning",
                f"A pod of class {name} is placed, and left to scheduler {trial.scheduler}.",
                "The webhook holds Roost's scheduler to be away: see the Lease above.",
            )
