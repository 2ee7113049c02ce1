"""kube-scheduler runs with the profiles that the values render to, and has accepted each.

kube-scheduler reads its configuration once, when it starts, and refuses it as a whole: one that runs, and that started
with this configuration, has accepted each profile in it.
"""

from hashlib import sha256
from typing import Any, Final

from roost.doctor.contract import Finding, Install, Object, Told
from roost.doctor.evidence import (
    CONFIG_KEY,
    age_seconds,
    annotation_of,
    config_map_of,
    label_items,
    name_of,
    path_of,
    read_profiles,
    some,
)
from roost_core.kube.client import ApiError

# On the scheduler's pods: of the configuration for which they were created.
_CHECKSUM: Final = "checksum/config"
_LOG_LINES: Final = 500
# Rights that come with the install may be some seconds late: older lines are no news.
_LOG_SECONDS: Final = 600
_LAST_RUN: Final = {"previous": True}
_LINE_LENGTH: Final = 300
_SILENCE_SECONDS: Final = 15.0


def check(install: Install) -> Told:
    deployment = install.component("scheduler")
    rendered = config_map_of(install, deployment)
    if deployment is None or rendered is None:
        yield "no scheduler of Roost's is used"
        return
    wanted = read_profiles(rendered)
    yield f"{len(wanted)} profiles of {name_of(deployment)}"
    live = install.client.find(path_of(rendered))
    if live is None:
        return  # the check objects says so
    yield from _find_other_profiles(wanted, live)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{install.release.namespace}/leases"
    spec = (install.client.find(f"{lease}/{deployment['metadata']['name']}") or {}).get("spec") or {}
    holder = str(spec.get("holderIdentity") or "")
    for pod in _pods_of(install, deployment):
        name = pod["metadata"]["name"]
        # Its host's name, which tells its profiles: several pods that have the same ones may be the one that leads.
        leads = holder.startswith(f"{pod['spec'].get('hostname') or name}_")
        status = _container_status(pod)
        if _has_failed(status):
            yield from _find_in_log(install, name, _LAST_RUN)
        elif _is_stale(pod, status, live):
            yield Finding(
                "error" if leads or not holder else "warning",
                f"Pod {name}{', which leads,' if leads else ''} started before {name_of(live)} was last changed: "
                "kube-scheduler has the profiles of then.",
                f"kubectl --namespace {install.release.namespace} rollout restart "
                f"deployment/{deployment['metadata']['name']}",
            )
        if leads:
            yield from _find_in_log(install, name, {"sinceSeconds": _LOG_SECONDS})


def _find_other_profiles(wanted: dict[str, Any], live: Object) -> Told:
    try:
        profiles = read_profiles(live)
    except ValueError as error:
        yield Finding("error", f"{name_of(live)}: {error}.", "Apply the release's values again.")
        return
    lacking = [name for name in wanted if name not in profiles]
    if lacking:
        yield Finding(
            "error",
            f"{name_of(live)} lacks profiles that the values name: {some(lacking)}. Their pods would wait for ever.",
            "Are these the install's values? If so, apply them again.",
        )


def _find_in_log(install: Install, pod: str, span: dict[str, Any]) -> Told:
    """By its own words: why kube-scheduler ended, in the log of its last run, or else what it is refused now."""
    path = f"/api/v1/namespaces/{install.release.namespace}/pods/{pod}/log"
    query = {"container": "kube-scheduler", "tailLines": _LOG_LINES, **span}
    try:
        lines = [line.decode(errors="replace").rstrip() for line in install.client.lines(path, query, _SILENCE_SECONDS)]
    except ApiError as error:
        yield Finding(
            "unknown",
            f"The log of pod {pod} can't be read: {error}",
            "Run it with an account that may get pods/log, or read it yourself."
            if error.status in (401, 403)
            else f"kubectl logs --previous {pod} may still have what an earlier container said.",
        )
        return
    if span == _LAST_RUN:
        # klog's E and F; kube-scheduler itself says "command failed" last.
        errors = [line for line in lines if line[:1] in ("E", "F")] or lines or ["nothing"]
        said = next((line for line in reversed(errors) if "command failed" in line), errors[-1])
        yield Finding(
            "error",
            f"kube-scheduler of pod {pod} doesn't run with its configuration. It said: {said[:_LINE_LENGTH]}",
            "Correct scheduler.profiles, strategies or featureGates: `roost validate` names what this minor refuses.",
        )
    elif forbidden := [line for line in lines if "is forbidden" in line]:
        yield Finding(
            "warning",
            f"The log of pod {pod}, which leads, has {len(forbidden)} refusals in the last {_LOG_SECONDS / 60:.0f} "
            f"minutes: {forbidden[-1][:_LINE_LENGTH]}",
            "Its ClusterRoleBindings are part of the release: rbac.create and clusterResources, or bind them yourself "
            "(docs/install-manifests.md#without-cluster-wide-rights).",
        )


def _pods_of(install: Install, deployment: Object) -> list[Object]:
    selector = deployment["spec"]["selector"]["matchLabels"]
    return [
        pod
        for pod in install.pods
        if selector.items() <= label_items(pod).items() and not pod["metadata"].get("deletionTimestamp")
    ]


def _container_status(pod: Object) -> Object:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return dict(next((one for one in statuses if one.get("name") == "kube-scheduler"), statuses[0]))


def _has_failed(status: Object) -> bool:
    """Whether its container has ended at least once, and isn't ready now."""
    return bool(status.get("restartCount")) and not status.get("ready")


def _is_stale(pod: Object, status: Object, config_map: Object) -> bool:
    """Whether it started with another configuration than the ConfigMap's.

    The checksum on the pod says for which one it was created; a container that started after the last change of the
    data read that, whatever the pod was created for.
    """
    text = str((config_map.get("data") or {}).get(CONFIG_KEY, ""))
    if annotation_of(pod, _CHECKSUM) == sha256(text.rstrip("\n").encode()).hexdigest():
        return False
    running_seconds = age_seconds(((status.get("state") or {}).get("running") or {}).get("startedAt"))
    changed = [
        age
        for entry in config_map["metadata"].get("managedFields") or []
        if "f:data" in (entry.get("fieldsV1") or {}) and (age := age_seconds(entry.get("time"))) is not None
    ]
    return running_seconds is not None and bool(changed) and min(changed) < running_seconds
