"""ResourceQuotas and LimitRanges, as far as they count pods and change what pods ask for.

A quota counts a pod when the pod is created, whether it runs or not. Amounts are whole numbers:
CPU in millicores, all else in units. Source: the quota evaluator of pods and the LimitRanger
plugin, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any, Final, NamedTuple

from roost_core.objects.fields import NOTHING, JSONObject
from roost_core.objects.pod import Pod
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PLAIN_RESOURCES,
    PODS,
    round_up,
)

# Keys of a quota that count pods by their number. The second key counts finished pods, too.
COUNT_PODS: Final = "count/pods"
_BY_NUMBER: Final = frozenset({PODS, COUNT_PODS})
# What a key begins with, before the resource. For plain resources a key may lack `requests.`.
REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
# A pod with requests or limits of these resources isn't best effort.
_COMPUTE: Final = frozenset({CPU, MEMORY})

# How many unexpected people may come at once, before placeholders can be removed.
AT_ONCE: Final = 20

BEST_EFFORT: Final = "BestEffort"
NOT_BEST_EFFORT: Final = "NotBestEffort"
TERMINATING: Final = "Terminating"
NOT_TERMINATING: Final = "NotTerminating"
PRIORITY_CLASS: Final = "PriorityClass"
# The scope of quotas of pods whose affinities name other namespaces.
ACROSS_NAMESPACES: Final = "CrossNamespacePodAffinity"


class Scope(NamedTuple):
    """One scope of a quota. The quota counts a pod only if all its scopes fit the pod."""

    name: str
    # In, NotIn, Exists or DoesNotExist; the last two for scopes without values.
    operator: str = "Exists"
    values: frozenset[str] = frozenset()


class Counted(NamedTuple):
    """What quotas look at in a pod."""

    # Sorted by name, as `PodSpec.requests`.
    requests: Mapping[str, int]
    limits: Mapping[str, int]
    priority_class: str = ""
    has_deadline: bool = False
    names_namespaces: bool = False

    def amount(self, key: str) -> int:
        """How much of a quota's key the pod takes; 0 for keys that count other things."""
        if key in _BY_NUMBER:
            return 1
        if key.startswith(_LIMITS):
            return self.limits.get(key.removeprefix(_LIMITS), 0)
        if key.startswith(REQUESTS) or key in PLAIN_RESOURCES:
            return self.requests.get(key.removeprefix(REQUESTS), 0)
        return 0

    @property
    def is_best_effort(self) -> bool:
        """Whether it has neither requests nor limits of CPU and memory."""
        return _COMPUTE.isdisjoint(self.requests) and _COMPUTE.isdisjoint(self.limits)


@dataclass(frozen=True, slots=True)
class Quota:
    """One ResourceQuota, without keys that count other things than pods."""

    namespace: str
    name: str
    # By key, as written.
    hard: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    scopes: tuple[Scope, ...] = ()

    def counts(self, pod: Counted) -> bool:
        """Whether the quota counts a pod."""
        return all(_fits(scope, pod) for scope in self.scopes)


@dataclass(frozen=True, slots=True)
class ContainerDefaults:
    """The requests and limits that a LimitRange gives to containers without them."""

    namespace: str
    limits: Mapping[str, int]
    requests: Mapping[str, int]


def read_quota(body: JSONObject) -> Quota:
    """Read a ResourceQuota. Amounts that can't be read are left out."""
    spec = body.get("spec") or NOTHING
    status = body.get("status") or NOTHING
    scopes = [Scope(str(name)) for name in spec.get("scopes") or ()]
    for expression in (spec.get("scopeSelector") or NOTHING).get("matchExpressions") or ():
        values = frozenset(map(str, expression.get("values") or ()))
        scope = Scope(str(expression.get("scopeName")), str(expression.get("operator")), values)
        scopes.append(scope)
    return Quota(
        namespace=str(body["metadata"].get("namespace") or ""),
        name=str(body["metadata"]["name"]),
        hard=_of_pods(spec.get("hard")),
        used=_of_pods(status.get("used")),
        scopes=tuple(scopes),
    )


def read_container_defaults(body: JSONObject) -> ContainerDefaults:
    """Read a LimitRange. The API server has already filled in the defaults that follow from its
    minima and maxima.
    """
    limits: dict[str, int] = {}
    requests: dict[str, int] = {}
    for item in (body.get("spec") or NOTHING).get("limits") or ():
        if item.get("type") == "Container":
            limits |= read_amounts(item.get("default"))
            requests |= read_amounts(item.get("defaultRequest"))
    return ContainerDefaults(str(body["metadata"].get("namespace") or ""), limits, requests)


def read_amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Amounts by resource, in the units of pods. Amounts that can't be read are left out."""
    amounts: dict[str, int] = {}
    for name, quantity in (quantities or NOTHING).items():
        try:
            amounts[name] = round_up(name, parse_quantity(quantity))
        except ValueError:
            continue
    return amounts


def counted_container(
    resources: Mapping[str, Any],
    defaults: Iterable[ContainerDefaults] = (),
    *,
    priority_class: str = "",
) -> Counted:
    """What quotas count of a pod with one container, after the defaults of its namespace.

    resources: `requests` and `limits` of the container, as written.
    """
    limits = read_amounts(resources.get("limits"))
    # A container's limits are also its requests, unless it has requests.
    requests = limits | read_amounts(resources.get("requests"))
    for container_defaults in defaults:
        limits = {**container_defaults.limits, **limits}
        requests = {**container_defaults.requests, **requests}
    return Counted(requests, limits, priority_class)


def counted_pod(pod: Pod) -> Counted:
    """What quotas count of a pod."""
    spec = pod.spec
    terms = (
        *spec.required_affinity,
        *spec.required_anti_affinity,
        *(term for _, term in spec.preferred_affinity),
        *(term for _, term in spec.preferred_anti_affinity),
    )
    return Counted(
        requests=dict(spec.requests),
        limits=dict(pod.limits),
        priority_class=pod.priority_class,
        has_deadline=pod.has_deadline,
        names_namespaces=any(
            term.namespaces or term.namespace_selector is not None for term in terms
        ),
    )


def _of_pods(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    """Amounts by key, for keys that count pods."""
    found: dict[str, int] = {}
    for key, quantity in (amounts or NOTHING).items():
        if key == f"{REQUESTS}storage":
            # It counts PersistentVolumeClaims.
            continue
        is_number = key in _BY_NUMBER
        is_resource = key in PLAIN_RESOURCES or key.startswith((REQUESTS, _LIMITS))
        if not is_number and not is_resource:
            continue
        resource = key.removeprefix(REQUESTS).removeprefix(_LIMITS)
        try:
            found[key] = round_up(resource, parse_quantity(quantity))
        except ValueError:
            continue
    return found


def _fits(scope: Scope, pod: Counted) -> bool:
    if scope.name == PRIORITY_CLASS:
        return _has_class(scope, pod.priority_class)
    fits = {
        BEST_EFFORT: pod.is_best_effort,
        NOT_BEST_EFFORT: not pod.is_best_effort,
        TERMINATING: pod.has_deadline,
        NOT_TERMINATING: not pod.has_deadline,
        ACROSS_NAMESPACES: pod.names_namespaces,
    }
    # Other scopes count volumes, or are of a newer Kubernetes: they fit no pod.
    return fits.get(scope.name, False)


def _has_class(scope: Scope, priority_class: str) -> bool:
    """Whether a scope `PriorityClass` fits a pod with this class; "": the pod has none."""
    if scope.operator == "In":
        return priority_class in scope.values
    if scope.operator == "NotIn":
        return priority_class not in scope.values
    if scope.operator == "DoesNotExist":
        return not priority_class
    return bool(priority_class)


def amount_in_words(key: str, amount: int) -> str:
    """An amount of a quota's key, written as in a quota: `1500m`, `12Gi`, `20`."""
    resource = key.removeprefix(REQUESTS).removeprefix(_LIMITS)
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource not in (MEMORY, EPHEMERAL_STORAGE):
        return str(amount)
    for suffix, size in (("Gi", 2**30), ("Mi", 2**20)):
        if amount >= size:
            # Rounded up, because less wouldn't be enough.
            return f"{ceil(Fraction(amount, size))}{suffix}"
    return str(amount)
