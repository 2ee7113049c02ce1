"""Roost's own programs run, and if not, why: by the last words of their logs."""

import re
from collections.abc import Iterator

from roost.doctor.conditions import State, component_of, conditions
from roost.doctor.evidence import (
    LINE_LENGTH,
    labelled,
    log_lines,
    name_of,
    path_of,
    some,
    unreadable_log,
)
from roost.doctor.findings import CheckReport, Finding, error, warning
from roost.doctor.install import Install
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject
from roost_core.placement.kubelet_pulls import AFTER_PULL_FAULTS, PULL_FAULTS, image_in_message


def check(install: Install) -> CheckReport:
    rendered = install.of_kind("Deployment")
    others = [*install.of_kind("DaemonSet"), *install.of_kind("StatefulSet")]
    live = [
        (body, found)
        for body in rendered
        if (found := install.client.find(path_of(body))) is not None
    ]
    # The check objects names those that aren't there.
    some_of = f"{len(live)} of " if len(live) < len(rendered) else ""
    yield f"{some_of}{len(rendered)} Deployments, {len(others)} other workloads"
    for body, found in live:
        yield from _check_deployment(install, body, found)
    for body in others:
        yield from _check_other(install, body)


def _check_deployment(install: Install, body: JSONObject, live: JSONObject) -> Iterator[Finding]:
    """What is wrong with a Deployment. body: as the values render it; live: as it is."""
    name = name_of(body)
    broken = conditions(State.BROKEN, component_of(body))
    down = conditions(State.DOWN, component_of(body))
    replicas = live["spec"].get("replicas", 1)
    of_values = body["spec"].get("replicas", 1)
    if replicas != of_values:
        evidence = f"{name}: {replicas} replicas, the values say {of_values}."
        fix = "Install the values again, or write the number into them."
        if replicas == 0:
            yield error(evidence, fix, brings=down)
        else:
            yield warning(evidence, fix)
    ready = live.get("status", {}).get("readyReplicas", 0)
    is_short = ready < replicas
    held_up = _held_up(live)
    pods = labelled(install.pods, live["spec"]["selector"]["matchLabels"])
    stuck = _stuck_pods(pods, unplaced=bool(held_up) or is_short)
    if not held_up and not stuck and not is_short:
        return
    last_words, unreadable = _why_crashed(install, pods)
    yield from unreadable
    which = f": {some(stuck)}." if stuck else "."
    if last_words is not None:
        which += f" Its last words: {last_words}"
    fix = _fix(
        install.release.namespace, has_last_words=last_words is not None, is_stuck=bool(stuck)
    )
    if not is_short:
        why = held_up or "its newest pods don't start"
        evidence = f"{name}: {why}, so older pods serve by older values{which}"
        yield error(evidence, fix, follows=broken)
    elif ready == 0:
        evidence = f"{name}: 0 of {replicas} pods are ready{which}"
        yield error(evidence, fix, brings=down, follows=broken)
    else:
        evidence = f"{name}: {ready} of {replicas} pods are ready{which}"
        yield warning(evidence, fix, follows=broken)


def _fix(namespace: str, *, has_last_words: bool, is_stuck: bool) -> str:
    """How to mend a program whose pods don't run, by what is known of why."""
    if has_last_words:
        return "Mend what it said: `roost validate` names what the program refuses in the values."
    look = f"kubectl --namespace {namespace} describe pod and logs of these pods"
    if is_stuck:
        return f"If the image can't be pulled: docs/install-helm.md#the-image. Else: {look}."
    return f"{look}; /readyz says what a program waits for."


def _why_crashed(install: Install, pods: list[JSONObject]) -> tuple[str | None, list[Finding]]:
    """The last words of the newest pod that crashed and whose log can be read, and a finding for
    each log before that can't be.

    None: none crashed, or no log can be read.
    """
    unreadable: list[Finding] = []
    for pod, container in _crashed(pods):
        try:
            return _last_words(install, pod, container), unreadable
        except ApiError as refusal:
            unreadable.append(unreadable_log(pod, refusal))
    return None, unreadable


def _check_other(install: Install, body: JSONObject) -> Iterator[Finding]:
    """What keeps the pods of a DaemonSet or StatefulSet from running."""
    pods = labelled(install.pods, body["spec"]["selector"]["matchLabels"])
    # Placeholders wait for room at each peak: it makes an autoscaler act.
    stuck = _stuck_pods(pods, unplaced=False)
    if stuck:
        yield warning(
            f"{name_of(body)}: pods don't start: {some(stuck)}.",
            "An image that can't be pulled: copy it to a registry that nodes reach, with pull"
            " secrets if it asks for any (imagePullSecrets, singleuser.image.pullSecrets)."
            " Else: kubectl logs --previous.",
            follows=conditions(State.BROKEN, component_of(body)),
            # Images don't come. Without a placeholder users wait for a node, as they would without
            # Roost.
            is_felt=body["kind"] == "DaemonSet",
        )


def _held_up(deployment: JSONObject) -> str:
    """Why a rollout doesn't go on, or hasn't begun; "" where it is done, or goes on."""
    status = deployment.get("status") or {}
    metadata = deployment["metadata"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return "its newest version isn't rolled out yet (observedGeneration)"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "Progressing" and condition.get("status") == "False":
            new = status.get("updatedReplicas", 0)
            all_ = deployment["spec"].get("replicas", 1)
            return (
                f"its rollout stopped with {new} of {all_} pods replaced"
                f" ({condition.get('reason')})"
            )
    return ""


def _stuck_pods(pods: list[JSONObject], *, unplaced: bool = True) -> list[str]:
    """Why containers of pods don't run, each pod once."""
    found = []
    for pod in pods:
        status = pod.get("status") or {}
        found += [
            f"{pod['metadata']['name']} {condition.get('reason')} ({condition.get('message')})"
            for condition in status.get("conditions") or []
            if unplaced
            and condition.get("type") == "PodScheduled"
            and condition.get("status") == "False"
        ]
        for container in (
            *(status.get("initContainerStatuses") or []),
            *(status.get("containerStatuses") or []),
        ):
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in PULL_FAULTS | AFTER_PULL_FAULTS:
                image = image_in_message(str(waiting.get("message"))) or container["image"]
                found.append(f"{pod['metadata']['name']} {waiting['reason']} ({image})")
                break
    return found


def _crashed(pods: list[JSONObject]) -> list[tuple[str, str]]:
    """Pods, the newest first, each with a container that has ended at least once, and isn't ready
    now.
    """
    found = [
        (str(pod["metadata"].get("creationTimestamp")), pod["metadata"]["name"], status["name"])
        for pod in pods
        for status in (pod.get("status") or {}).get("containerStatuses") or []
        if status.get("restartCount") and not status.get("ready")
    ]
    return [(pod, container) for _, pod, container in sorted(found, reverse=True)]


def _last_words(install: Install, pod: str, container: str) -> str:
    """Why a program ended, in the log of its last run. Raises ApiError."""
    lines = log_lines(install, pod, container, {"previous": True}) or ["nothing"]
    # klog's E and F; kube-scheduler itself says "command failed" last.
    errors = [line for line in lines if re.match(r"[EF]\d{4} ", line)] or lines
    return next((line for line in reversed(errors) if "command failed" in line), errors[-1])[
        :LINE_LENGTH
    ]
