"""Roost's own programs run."""

from roost.doctor.contract import Finding, Install, Object, Told
from roost.doctor.evidence import name_of, path_of, some
from roost_core.placement.kubelet_pulls import AFTER_PULL_FAULTS, PULL_FAULTS


def check(install: Install) -> Told:
    wanted = install.of_kind("Deployment")
    others = [*install.of_kind("DaemonSet"), *install.of_kind("StatefulSet")]
    yield f"{len(wanted)} Deployments, {len(others)} other workloads"
    for body in wanted:
        found = install.client.find(path_of(body))
        if found is None:
            yield Finding("error", f"{name_of(body)} isn't there.", "See objects, above.")
            continue
        replicas, ready = found["spec"].get("replicas", 1), found.get("status", {}).get("readyReplicas", 0)
        stuck = _stuck_pods(install.pods, found["spec"]["selector"]["matchLabels"])
        if replicas != body["spec"].get("replicas", 1):
            yield Finding(
                "warning" if replicas else "error",
                f"{name_of(body)}: {replicas} replicas, the values say {body['spec'].get('replicas', 1)}.",
                "Install the values again, or write the number into them.",
            )
        which = f": {some(stuck)}" if stuck else ""
        if (held_up := _held_up(found)) and ready >= replicas:
            yield Finding(
                "error",
                f"{name_of(body)}: {held_up}, so older pods serve by older values{which}.",
                f"kubectl --namespace {install.release.namespace} describe pod and logs of its newest pods.",
            )
        if ready < replicas:
            yield Finding(
                "error" if ready == 0 else "warning",
                f"{name_of(body)}: {ready} of {replicas} pods are ready{which}.",
                "If the image can't be pulled: docs/install-helm.md#the-image. "
                f"Else: kubectl --namespace {install.release.namespace} describe pod and logs of these pods.",
            )

    for body in others:
        stuck = _stuck_pods(install.pods, body["spec"]["selector"]["matchLabels"])
        if stuck:
            yield Finding(
                "warning",
                f"{name_of(body)}: pods don't start: {some(stuck)}.",
                "An image that can't be pulled: copy it to a registry that nodes reach, with pull secrets if it "
                "asks for any (imagePullSecrets, singleuser.image.pullSecrets).",
            )


def _held_up(deployment: Object) -> str:
    """Why a rollout doesn't go on, or hasn't begun; "" where it is done, or goes on."""
    status, metadata = deployment.get("status") or {}, deployment["metadata"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return "its newest version isn't rolled out yet (observedGeneration)"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "Progressing" and condition.get("status") == "False":
            new, all_ = status.get("updatedReplicas", 0), deployment["spec"].get("replicas", 1)
            return f"its rollout stopped with {new} of {all_} pods replaced ({condition.get('reason')})"
    return ""


def _stuck_pods(pods: list[Object], selector: dict[str, str]) -> list[str]:
    """Why containers of the selected pods don't run, each pod once."""
    found = []
    for pod in pods:
        if not selector.items() <= (pod["metadata"].get("labels") or {}).items():
            continue
        status = pod.get("status") or {}
        found += [
            f"{pod['metadata']['name']} {condition.get('reason')} ({condition.get('message')})"
            for condition in status.get("conditions") or []
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
        ]
        for container in (*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])):
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in PULL_FAULTS | AFTER_PULL_FAULTS:
                found.append(f"{pod['metadata']['name']} {waiting['reason']} ({container['image']})")
                break
    return found
