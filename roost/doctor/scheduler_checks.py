"""Does Roost's kube-scheduler run with the profiles that the values name, and does a scheduler look at each pod?

kube-scheduler reads its configuration once, when it starts, and refuses it as a whole: one that runs, and that started
with this configuration, has accepted each profile in it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import yaml

from roost.doctor.evidence import age_seconds, annotation_of, label_items, some
from roost.doctor.findings import Finding
from roost.doctor.install import name_of, path_of
from roost_core.kube.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roost.doctor.install import Install, Object

_CONFIG_KEY: Final = "config.yaml"
# On the scheduler's pods: of the configuration for which they were created.
_CHECKSUM: Final = "checksum/config"
_LOG_LINES: Final = 500
# Rights that come with the install may be some seconds late: older lines are no news.
_LOG_SECONDS: Final = 600
_LINE_LENGTH: Final = 300
_SILENCE_SECONDS: Final = 15.0
# A scheduler tries a pod within a second; one that starts lists all pods first.
_PATIENCE_SECONDS: Final = 60.0


def check_profiles(install: Install) -> tuple[str, Iterator[Finding]]:
    """kube-scheduler runs with the profiles that the values render to, and has accepted each."""
    deployment = install.component("scheduler")
    rendered = _config_map_of(install, deployment)
    if deployment is None or rendered is None:
        return "no scheduler of Roost's is used", iter(())
    wanted = _read_profiles(rendered)
    base = f"/api/v1/namespaces/{install.release.namespace}/pods"

    def find() -> Iterator[Finding]:
        live = install.client.find(path_of(rendered))
        if live is None:
            return  # the check objects says so
        yield from _find_other_profiles(wanted, live)
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{install.release.namespace}/leases"
        spec = (install.client.find(f"{lease}/{deployment['metadata']['name']}") or {}).get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        for pod in _pods_of(install, deployment):
            name = pod["metadata"]["name"]
            leads = holder.startswith(f"{name}_")
            status = _container_status(pod)
            if _has_failed(status):
                yield from _find_refusal(install, f"{base}/{name}/log", name)
            elif _is_stale(pod, status, live):
                yield Finding(
                    "error" if leads or not holder else "warning",
                    f"Pod {name}{', which leads,' if leads else ''} started before {name_of(live)} was last changed: "
                    "kube-scheduler has the profiles of then.",
                    f"kubectl --namespace {install.release.namespace} rollout restart "
                    f"deployment/{deployment['metadata']['name']}",
                )
            if leads:
                yield from _find_forbidden(install, f"{base}/{name}/log", name)

    return f"{len(wanted)} profiles of {name_of(deployment)}", find()


def check_waiting(install: Install) -> tuple[str, Iterator[Finding]]:
    """Each pod that waits was looked at by the scheduler that it names."""
    own = f"{install.release.name}.{install.release.namespace}."
    rendered = _config_map_of(install, install.component("scheduler"))
    known = _read_profiles(rendered).keys() if rendered is not None else ()

    def find() -> Iterator[Finding]:
        waiting: dict[str, list[str]] = {}
        for pod in install.pods:
            if _is_ignored(pod):
                waiting.setdefault(str(pod["spec"].get("schedulerName", "")), []).append(pod["metadata"]["name"])
        for scheduler, names in sorted(waiting.items()):
            if scheduler in known:
                fix = "Does it lead, and run with that profile (leaders and profiles, above)?"
            elif known and scheduler.startswith(own):
                fix = (
                    "The values name no such profile: give it back in scheduler.profiles, or delete these pods. A new "
                    "one gets a profile that there is."
                )
            else:
                fix = "Is that scheduler there? To have Roost's take such pods, name it in replaceSchedulers."
            yield Finding(
                "error",
                f"Pods wait for scheduler {scheduler}, which has not looked at them for {_PATIENCE_SECONDS:.0f} s and "
                f"longer: {some(names)}.",
                fix,
            )

    return f"pods without a node in {install.release.namespace}", find()


def _find_other_profiles(wanted: Mapping[str, Any], live: Object) -> Iterator[Finding]:
    try:
        profiles = _read_profiles(live)
    except ValueError as error:
        yield Finding("error", f"{name_of(live)}: {error}.", "Apply the release's values again.")
        return
    lacking = [name for name in wanted if name not in profiles]
    other = [name for name, profile in wanted.items() if name in profiles and profiles[name] != profile]
    if lacking:
        yield Finding(
            "error",
            f"{name_of(live)} lacks profiles that the values name: {some(lacking)}. Their pods would wait for ever.",
            "Are these the install's values? If so, apply them again.",
        )
    if other:
        yield Finding(
            "warning",
            f"{name_of(live)} has profiles that differ from the values': {some(other)}.",
            "Are these the install's values? If so, apply them again.",
        )


def _find_refusal(install: Install, path: str, pod: str) -> Iterator[Finding]:
    """Why kube-scheduler ended, by its own last words."""
    query = {"container": "kube-scheduler", "tailLines": _LOG_LINES, "previous": True}
    try:
        lines = _read_log(install, path, query)
    except ApiError as error:
        yield _unreadable(pod, error)
        return
    # klog's E and F; kube-scheduler itself says "command failed" last.
    errors = [line for line in lines if line[:1] in ("E", "F")] or lines
    said = next((line for line in reversed(errors) if "command failed" in line), errors[-1] if errors else "nothing")
    yield Finding(
        "error",
        f"kube-scheduler of pod {pod} doesn't run with its configuration. It said: {said[:_LINE_LENGTH]}",
        "Correct scheduler.profiles, strategies or featureGates: `roost validate` names what this minor refuses.",
    )


def _find_forbidden(install: Install, path: str, pod: str) -> Iterator[Finding]:
    query = {"container": "kube-scheduler", "tailLines": _LOG_LINES, "sinceSeconds": _LOG_SECONDS}
    try:
        lines = _read_log(install, path, query)
    except ApiError as error:
        yield _unreadable(pod, error)
        return
    forbidden = [line for line in lines if "is forbidden" in line]
    if forbidden:
        yield Finding(
            "warning",
            f"The log of pod {pod}, which leads, has {len(forbidden)} refusals in the last {_LOG_SECONDS / 60:.0f} "
            f"minutes: {forbidden[-1][:_LINE_LENGTH]}",
            "Its ClusterRoleBindings are part of the release: rbac.create and clusterResources, or bind them yourself "
            "(docs/install-manifests.md#without-cluster-wide-rights).",
        )


def _unreadable(pod: str, error: ApiError) -> Finding:
    is_refused = error.status in (401, 403)
    return Finding(
        "unknown",
        f"The log of pod {pod} can't be read: {error}",
        "Run it with an account that may get pods/log, or read it yourself."
        if is_refused
        else f"kubectl logs --previous {pod} may still have what an earlier container said.",
    )


def _read_log(install: Install, path: str, query: Mapping[str, Any]) -> list[str]:
    return [line.decode(errors="replace").rstrip() for line in install.client.lines(path, query, _SILENCE_SECONDS)]


def _config_map_of(install: Install, deployment: Object | None) -> Object | None:
    name = deployment["metadata"]["name"] if deployment is not None else None
    return next((body for body in install.of_kind("ConfigMap") if body["metadata"]["name"] == name), None)


def _read_profiles(config_map: Object) -> dict[str, Any]:
    """The profiles of a scheduler's ConfigMap, by schedulerName. Raises ValueError."""
    try:
        config = yaml.safe_load(str((config_map.get("data") or {}).get(_CONFIG_KEY, "")))
        return {str(profile["schedulerName"]): profile for profile in config["profiles"]}
    except (yaml.YAMLError, KeyError, TypeError, ValueError):
        raise ValueError(f"{_CONFIG_KEY} is not a KubeSchedulerConfiguration with profiles") from None


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
    text = str((config_map.get("data") or {}).get(_CONFIG_KEY, ""))
    if annotation_of(pod, _CHECKSUM) == sha256(text.rstrip("\n").encode()).hexdigest():
        return False
    running_seconds = age_seconds(((status.get("state") or {}).get("running") or {}).get("startedAt"))
    changed = [
        age
        for entry in config_map["metadata"].get("managedFields") or []
        if "f:data" in (entry.get("fieldsV1") or {}) and (age := age_seconds(entry.get("time"))) is not None
    ]
    return running_seconds is not None and bool(changed) and min(changed) < running_seconds


def _is_ignored(pod: Object) -> bool:
    """Whether no scheduler has said anything of a pod for long; a scheduling gate is said something of, too."""
    status = pod.get("status") or {}
    return (
        status.get("phase") == "Pending"
        and not (pod.get("spec") or {}).get("nodeName")
        and not pod["metadata"].get("deletionTimestamp")
        and not any(one.get("type") == "PodScheduled" for one in status.get("conditions") or [])
        and (age_seconds(pod["metadata"].get("creationTimestamp")) or 0.0) > _PATIENCE_SECONDS
    )
