"""Where users' pods name a RuntimeClass, placeholders stand where they go, and are as large.

A RuntimeClass adds its overhead, its node selector and its tolerations to each pod that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from roost.doctor.evidence import count, name_of, show_amount, some, users_of
from roost.doctor.findings import CheckReport, Finding, warning
from roost.doctor.install import Install
from roost_core.objects.fields import JSONObject
from roost_core.objects.requests import PODS, read_requests

_PATH: Final = "/apis/node.k8s.io/v1/runtimeclasses"


def check(install: Install) -> CheckReport:
    by_name: dict[str, list[JSONObject]] = {}
    for pod in users_of(install):
        if name := (pod.get("spec") or {}).get("runtimeClassName"):
            by_name.setdefault(str(name), []).append(pod)
    yield f"RuntimeClasses of users' pods: {some(sorted(by_name)) or 'none'}"
    sets = install.of_kind("StatefulSet")
    if not sets:
        return
    for name, pods in sorted(by_name.items()):
        runtime_class = install.client.find(f"{_PATH}/{name}")
        if runtime_class is None:
            # Pods that name it are refused: these are older.
            yield warning(
                f"RuntimeClass {name}, which {count(len(pods), 'user pod')} named, is gone: new"
                " pods that name it are refused.",
                "Create it again, or take it out of singleuser.extraPodConfig and of profiles.",
            )
            continue
        misfit = _misfit_of_all(name, runtime_class, pods, sets)
        if misfit is not None:
            yield misfit


def _misfit_of_all(
    name: str, runtime_class: JSONObject, pods: list[JSONObject], sets: list[JSONObject]
) -> Finding | None:
    """Why no set keeps room for these pods, told of the first set; None: a set does.

    One set that fits is enough: the others are for other pods.
    """
    first = None
    for body in sets:
        misfit = _misfit(name, runtime_class, pods, body)
        if misfit is None:
            return None
        first = first or misfit
    return first


def _misfit(
    name: str, runtime_class: JSONObject, pods: list[JSONObject], body: JSONObject
) -> Finding | None:
    """Why placeholders of a set keep no room for these pods; None: they do."""
    template = body["spec"]["template"]["spec"]
    scheduling: Mapping[str, Any] = runtime_class.get("scheduling") or {}
    selector: Mapping[str, str] = scheduling.get("nodeSelector") or {}
    own: Mapping[str, str] = template.get("nodeSelector") or {}
    elsewhere = {key: value for key, value in selector.items() if own.get(key) != value}
    set_name = name_of(body).rpartition("-placeholder-")[2]
    if elsewhere:
        labels = ", ".join(f"{key}: {value!r}" for key, value in sorted(elsewhere.items()))
        tolerations = " and its scheduling.tolerations" if scheduling.get("tolerations") else ""
        return warning(
            f"RuntimeClass {name} sends {count(len(pods), 'user pod')} to nodes with"
            f" {labels}, and placeholders of set {set_name} may stand on others.",
            f"In that set, nodeSelector: {{{labels}}}{tolerations}; or a set of their own.",
        )
    held = dict(read_requests(template))
    needed = _largest(pods)
    lacking = {
        key: amount for key, amount in needed.items() if key != PODS and amount > held.get(key, 0)
    }
    fixed = (runtime_class.get("overhead") or {}).get("podFixed") or {}
    overhead = dict(read_requests({"containers": [], "overhead": fixed}))
    # What a placeholder lacks without the overhead, too, is told by the check of the values.
    caused = {
        key: amount
        for key, amount in lacking.items()
        if amount - overhead.get(key, 0) <= held.get(key, 0)
    }
    if not caused:
        return None
    words = ", ".join(f"{key}: {show_amount(key, caused[key])}" for key in sorted(caused))
    return warning(
        f"RuntimeClass {name} adds its overhead to users' pods ({words} with it), and placeholders"
        f" of set {set_name} keep less: no pod fits into a placeholder's room.",
        f"In that set, resources.requests: {{{words}}}.",
    )


def _largest(pods: list[JSONObject]) -> dict[str, int]:
    """The most of each resource that a pod requests, its overhead included."""
    most: dict[str, int] = {}
    for pod in pods:
        for key, amount in read_requests(pod["spec"]):
            most[key] = max(amount, most.get(key, 0))
    return most
