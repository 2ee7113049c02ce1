"""Pods that a class gives requests get them, and no quota or LimitRange of their namespaces stands in the way."""

from typing import Any, Final

from roost.doctor.contract import Install, Object, Told, error, warning
from roost.doctor.evidence import admits, labels_of, listed, namespace_of, some
from roost.doctor.try_pod import make_pod, opted_out, refusal_of

# Quotas with such a scope don't count placeholders, or say which they count.
_NOT_PLACEHOLDERS: Final = {"BestEffort", "Terminating", "PriorityClass", "CrossNamespacePodAffinity"}
_COUNTED: Final = {"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}


def check(install: Install) -> Told:
    given = {name: one for name, one in install.values["podClasses"].items() if one.get("resources") and labels_of(one)}
    yield "ResourceQuotas and LimitRanges of the classes' namespaces"
    for name, one in given.items() if admits(install) else ():
        quotas = [
            body for body in listed(install, one, "/api/v1", "resourcequotas") if "NotBestEffort" in _scopes(body)
        ]
        if quotas:
            yield warning(
                f"Pods of class {name} get no requests: {_named('ResourceQuota', quotas)} could refuse them for these.",
                "Nothing need be done, they run as without Roost. For nodes to fill up, have their author give them "
                "requests (BinderHub: KubernetesBuildExecutor.resources) that the quota has room for.",
            )
        ranges = [body for body in listed(install, one, "/api/v1", "limitranges") if _gives_requests(body)]
        if ranges:
            yield warning(
                f"Pods of class {name} get the requests of {_named('LimitRange', ranges)}, not those of their class.",
                "Nothing need be done if those are what such pods need.",
            )
        yield from _try(install, name, one)
    yield from _find_counted_placeholders(install)


def _scopes(quota: Object) -> set[str]:
    selected = (quota["spec"].get("scopeSelector") or {}).get("matchExpressions") or ()
    return {*(quota["spec"].get("scopes") or ()), *(one["scopeName"] for one in selected)}


def _gives_requests(limit_range: Object) -> bool:
    """Whether containers without requests get some: of a limit, too, comes a request."""
    keys = ("default", "defaultRequest", "min", "max")
    return any(one["type"] == "Container" and any(map(one.get, keys)) for one in limit_range["spec"]["limits"])


def _named(kind: str, bodies: list[Object]) -> str:
    return f"{kind} {some(sorted('/'.join((one['metadata']['namespace'], one['metadata']['name'])) for one in bodies))}"


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
        yield error(
            f"A pod of class {name} without requests is refused, and admitted without Roost: {told[0]}",
            f"Set podClasses.{name}.resources: null. The webhook should have seen what refuses it: see its log.",
        )


def _find_counted_placeholders(install: Install) -> Told:
    """Find quotas that placeholders take up."""
    quotas = install.client.get(f"/api/v1/namespaces/{install.release.namespace}/resourcequotas")["items"]
    counting = [
        one for one in quotas if not _scopes(one) & _NOT_PLACEHOLDERS and one["spec"].get("hard", {}).keys() & _COUNTED
    ]
    if counting and install.of_kind("StatefulSet"):
        yield warning(
            f"{_named('ResourceQuota', counting)} counts placeholders, too: once it is used up, users are refused, and "
            "no placeholder makes room for them.",
            "Raise it by what placeholders request, or have it count other pods alone (scopeSelector PriorityClass).",
        )
