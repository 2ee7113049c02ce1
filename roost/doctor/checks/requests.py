"""Pods that a class gives requests get them, and no quota or LimitRange of their namespaces stands in the way."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

from generator.importing.quantities import memory_quantity
from roost.doctor.contract import Install, Object, Told, error, warning
from roost.doctor.evidence import admits, labels_of, listed, name_of, namespace_of, some
from roost.doctor.try_pod import make_pod, opted_out, refusal_of
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import CPU, MEMORY, read_requests
from webhook.rules.pod_terms import ACROSS_NAMESPACES

# Quotas with such a scope don't count placeholders, or say which they count.
_NOT_PLACEHOLDERS: Final = {"BestEffort", "Terminating", "PriorityClass", "CrossNamespacePodAffinity"}
_COUNTED: Final = {"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}

# Of a limit, too, comes a request.
_BOUNDS: Final = ("default", "defaultRequest", "min", "max")


def check(install: Install) -> Told:
    given = {name: one for name, one in install.values["podClasses"].items() if one.get("resources") and labels_of(one)}
    yield "ResourceQuotas and LimitRanges of the classes' namespaces"
    for name, one in given.items() if admits(install) else ():
        quotas = [it for it in listed(install, one, "/api/v1", "resourcequotas") if "NotBestEffort" in _scopes(it)]
        if quotas:
            yield warning(
                f"Pods of class {name} get no requests: {_named('ResourceQuota', quotas)} could refuse them for these.",
                "Nothing need be done, they run as without Roost. For nodes to fill up, have their author give them "
                "requests (BinderHub: KubernetesBuildExecutor.resources) that the quota has room for.",
            )
        ranges = [body for body in listed(install, one, "/api/v1", "limitranges") if _bounds(body, *_BOUNDS)]
        if ranges:
            yield warning(
                f"Pods of class {name} get the requests of {_named('LimitRange', ranges)}, not those of their class.",
                "Nothing need be done if those are what such pods need.",
            )
        yield from _try(install, name, one)
    if install.values["sharedPools"].get("namespaceSelector") is not None:
        joining = [one for one in install.values["podClasses"].values() if one.get("join") or one.get("avoid")]
        quotas = [body for one in joining for body in listed(install, one, "/api/v1", "resourcequotas")]
        if guards := [body for body in quotas if ACROSS_NAMESPACES in _scopes(body)]:
            evidence = f"Pods join and avoid none of other namespaces: {_named('ResourceQuota', guards)} limits that."
            yield warning(evidence, "Nothing need be done, they run as without sharedPools (docs/placement.md).")
    yield from _find_refused(install)
    yield from _find_counted_placeholders(install)


def _find_refused(install: Install) -> Told:
    """Find pullers and placeholders that a LimitRange refuses."""
    path = f"/api/v1/namespaces/{install.release.namespace}/limitranges"
    workloads = install.of_kind("DaemonSet") + install.of_kind("StatefulSet")
    for limit_range, body in product(install.client.get(path)["items"], workloads):
        resources = body["spec"]["template"]["spec"]["containers"][0].get("resources") or {}
        limits, requests = (resources.get(part) or {} for part in ("limits", "requests"))
        # A default becomes the limit of those without one, and no request may be above its limit.
        without = {name: amount for name, amount in requests.items() if name not in limits}
        for bound, given in (("min", limits | requests), ("max", requests | limits), ("default", without)):
            for name, amount in _bounds(limit_range, bound).items():
                more = parse_quantity(given.get(name, amount)) - parse_quantity(amount)
                if more < 0 if bound == "min" else more > 0:
                    key = "prePuller" if body["kind"] == "DaemonSet" else "placeholder.defaults (or of the set's own)"
                    part = "limits" if bound == "max" and name in limits else "requests"
                    yield error(
                        f"{_named('LimitRange', [limit_range])} refuses pods of {name_of(body)}: its {bound} of {name} "
                        f"is {amount}, and theirs {given[name]}.",
                        f"Set resources.{part}.{name} of {key} to {amount}, or have its author change it.",
                    )


def _scopes(quota: Object) -> set[str]:
    selected = (quota["spec"].get("scopeSelector") or {}).get("matchExpressions") or ()
    return {*(quota["spec"].get("scopes") or ()), *(one["scopeName"] for one in selected)}


def _bounds(limit_range: Object, *keys: str) -> dict[str, Any]:
    """What a LimitRange gives containers, or holds them to, by resource."""
    items = [one.get(key) or {} for one in limit_range["spec"]["limits"] if one["type"] == "Container" for key in keys]
    return {name: amount for item in items for name, amount in item.items() if parse_quantity(amount) >= 0}


# All that is read of such objects, by kind; of malformed ones it raises what it raises.
READS: Final[Mapping[str, Callable[[Object], object]]] = {
    "ResourceQuota": lambda body: {*_scopes(body), *body["spec"].get("hard", {}).keys()},
    "LimitRange": lambda body: _bounds(body, *_BOUNDS),
}


def _named(kind: str, bodies: list[Object]) -> str:
    names = {"/".join((one["metadata"]["namespace"], one["metadata"]["name"])) for one in bodies}
    return f"{kind} {some(sorted(names))}"


def _try(install: Install, name: str, pod_class: Any) -> Told:  # noqa: ANN401 - a part of the values
    """Create a pod without requests, with dryRun: whatever is admitted without Roost is admitted with it."""
    namespace = namespace_of(install, pod_class)
    if not namespace:
        return
    pod = make_pod({"metadata": {"labels": labels_of(pod_class)}})
    for container in pod["spec"]["containers"]:
        container["resources"] = {}
    told = [refusal_of(install.client, namespace, one) for one in (pod, opted_out(pod))]
    if told[0] and not told[1]:
        fix = f"Set podClasses.{name}.resources: null. The webhook should have seen what refuses it: see its log."
        yield error(f"A pod of class {name} without requests is refused, and admitted without Roost: {told[0]}", fix)


def _find_counted_placeholders(install: Install) -> Told:
    """Find quotas that placeholders take up."""
    quotas = install.client.get(f"/api/v1/namespaces/{install.release.namespace}/resourcequotas")["items"]
    counting = [
        one for one in quotas if not _scopes(one) & _NOT_PLACEHOLDERS and one["spec"].get("hard", {}).keys() & _COUNTED
    ]
    sets = []
    entries = {one["name"]: one for one in install.values["placeholders"]}
    for body in install.of_kind("StatefulSet"):
        # The most that there may be, events aside: a StatefulSet with windows doesn't say.
        one = entries.get(name_of(body).rpartition("-placeholder-")[2], {})
        numbers = [one, *(one.get("windows") or ()), {"replicas": (one.get("learn") or {}).get("max")}]
        sets.append((max(each.get("replicas") or 0 for each in numbers), body["spec"]["template"]["spec"]))
    if counting and sets:
        cpu, memory = (sum(n * dict(read_requests(spec)).get(key, 0) for n, spec in sets) for key in (CPU, MEMORY))
        needs = f"{sum(n for n, _ in sets)} pods, CPU {cpu}m, memory {memory_quantity(memory)}"
        yield warning(
            f"{_named('ResourceQuota', counting)} counts placeholders, too: once it is used up, users are refused, and "
            "no placeholder makes room for them.",
            f"Raise it by their requests ({needs}), or have it count other pods alone (scopeSelector PriorityClass).",
        )
