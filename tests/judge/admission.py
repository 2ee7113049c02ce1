"""What an API server's built-in plugins do to a pod, as little as cases need: Priority,
LimitRanger, ResourceQuota.

By Kubernetes' documentation: priorities are resolved and limits' defaults set before webhooks are
called and again after; limits are checked, and last of all quotas charged.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from roost_core.objects.fields import JSONObject
from roost_core.objects.quantities import parse_quantity

NOT_BEST_EFFORT, BEST_EFFORT = "NotBestEffort", "BestEffort"


class Refused(Exception):  # noqa: N818 - what the API server says: 403
    """The pod is forbidden; the text says by what."""


def admit(
    body: JSONObject,
    there: Iterable[JSONObject],
    classes: Mapping[str, tuple[int, bool]],
    *,
    quotas: Iterable[JSONObject],
    limit_ranges: Iterable[JSONObject],
    change: Callable[[JSONObject], JSONObject] | None,
) -> JSONObject:
    """Return the pod as it is stored. Raises Refused.

    there: its namespace's other pods. classes: value and whether the policy is Never, by name.
    change: a webhook.
    """
    namespace = body["metadata"]["namespace"]
    limits = [
        limit
        for limit_range_ in limit_ranges
        if limit_range_["metadata"]["namespace"] == namespace
        for limit in limit_range_["spec"]["limits"]
    ]
    body["spec"].setdefault("schedulerName", "default-scheduler")
    _set_priority(body["spec"], classes)
    _set_defaults(body["spec"], limits)
    if change is not None:
        body = change(body)
        _set_defaults(body["spec"], limits)
    _check_limits(body["spec"], limits)
    for quota in quotas:
        if quota["metadata"]["namespace"] == namespace:
            _charge(body, there, quota)
    return body


def _set_priority(spec: JSONObject, classes: Mapping[str, tuple[int, bool]]) -> None:
    name = spec.get("priorityClassName", "")
    if name and name not in classes:
        raise Refused(f"no PriorityClass with name {name} was found")
    value, never = classes.get(name, (0, False))
    spec |= {"priority": value, "preemptionPolicy": "Never" if never else "PreemptLowerPriority"}


def _set_defaults(spec: JSONObject, limits: Sequence[JSONObject]) -> None:
    for container in spec["containers"]:
        resources = container.setdefault("resources", {})
        for limit in limits:
            for part, key in (("limits", "default"), ("requests", "defaultRequest")):
                for resource, amount in limit.get(key, {}).items():
                    resources.setdefault(part, {}).setdefault(resource, amount)
        for resource, amount in resources.get("limits", {}).items():
            resources.setdefault("requests", {}).setdefault(resource, amount)


def _check_limits(spec: JSONObject, limits: Sequence[JSONObject]) -> None:
    for container in spec["containers"]:
        requests, most = (container["resources"].get(part) or {} for part in ("requests", "limits"))
        for limit in limits:
            for resource, least in limit.get("min", {}).items():
                if resource not in requests or parse_quantity(requests[resource]) < parse_quantity(
                    least
                ):
                    raise Refused(f"minimum {resource} usage per Container is {least}")
            for resource, at_most in limit.get("max", {}).items():
                if resource not in most or parse_quantity(most[resource]) > parse_quantity(at_most):
                    raise Refused(f"maximum {resource} usage per Container is {at_most}")


def _charge(body: JSONObject, there: Iterable[JSONObject], quota: JSONObject) -> None:
    scopes = quota["spec"].get("scopes", ())
    if not all(_is_in(body, scope) for scope in scopes):
        return
    hard = quota["spec"]["hard"]
    used: Counter[str] = Counter()
    for one in there:
        if all(_is_in(one, scope) for scope in scopes):
            used.update(_usage(one["spec"]))
    asked = _usage(body["spec"])
    for resource, most in hard.items():
        if resource not in ("pods", *asked):
            raise Refused(f"failed quota: {quota['metadata']['name']}: must specify {resource}")
        if asked[resource] and used[resource] + asked[resource] > parse_quantity(most):
            raise Refused(
                f"exceeded quota: {quota['metadata']['name']}, {resource} is limited to {most}"
            )


def _usage(spec: JSONObject) -> Counter[str]:
    used: Counter[str] = Counter({"pods": 1, "count/pods": 1})
    for container in spec["containers"]:
        resources = container.get("resources") or {}
        for part in ("requests", "limits"):
            for resource, amount in (resources.get(part) or {}).items():
                used[f"{part}.{resource}"] += parse_quantity(amount)  # type: ignore[assignment] # a Fraction
    return used


def _is_in(body: JSONObject, scope: str) -> bool:
    spec = body["spec"]
    if scope in (BEST_EFFORT, NOT_BEST_EFFORT):
        asks = any(
            (container.get("resources") or {}).get(part)
            for container in spec["containers"]
            for part in ("requests", "limits")
        )
        return asks == (scope == NOT_BEST_EFFORT)
    affinity = spec.get("affinity") or {}
    lists = [
        one
        for part in ("podAffinity", "podAntiAffinity")
        for one in (affinity.get(part) or {}).values()
    ]
    terms = [weighted.get("podAffinityTerm", weighted) for listed in lists for weighted in listed]
    return any(
        term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms
    )
