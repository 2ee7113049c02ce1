"""Sum up the requests of a pod's containers, as kube-scheduler does.

Source: component-helpers' resource.PodRequests, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Final, NamedTuple

from roost_core.objects.fields import (
    NOTHING,
    JSONObject,
    MalformedObjectError,
    Shape,
    check_shape,
    child_objects,
)
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.remembering import ByJSON

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
# What a container may request besides huge pages and devices. Source:
# k8s.io/kubernetes/pkg/apis/core/validation, ValidateResourceRequirements.
PLAIN_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
# What each node has as soon as it registers; devices come later.
NODE_RESOURCES: Final = frozenset({*PLAIN_RESOURCES, PODS})
# What a container without a request counts as in scores: 100 millicores, 200 MiB.
DEFAULT_CPU_MILLICORES: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 2**20
_NON_ZERO_DEFAULTS: Final = {
    CPU: Fraction(DEFAULT_CPU_MILLICORES, 1000),
    MEMORY: Fraction(DEFAULT_MEMORY_BYTES),
}
# The shapes that `sum_requests` needs. It checks the quantities itself.
_RESOURCES: Final[Shape] = {"requests": {}, "limits": {}}
CONTAINER_REQUESTS: Final[dict[str, Shape]] = {"resources": _RESOURCES}
SPEC_REQUESTS: Final[dict[str, Shape]] = {"resources": _RESOURCES, "overhead": {}}
_STATUSES: Final[Shape] = [{"name": str, "resources": _RESOURCES, "allocatedResources": {}}]
STATUS_REQUESTS: Final[dict[str, Shape]] = {
    "containerStatuses": _STATUSES,
    "initContainerStatuses": _STATUSES,
    "conditions": [{}],
}
_UNBOUND_SPEC: Final[Shape] = {
    "containers": [CONTAINER_REQUESTS],
    "initContainers": [CONTAINER_REQUESTS],
    **SPEC_REQUESTS,
}

# Remembered, because most pods of a hub request the same, and summing up takes a large part of a
# review's time.
_remembered: Final[ByJSON[tuple[tuple[str, int], ...]]] = ByJSON()


def read_requests(spec: JSONObject) -> tuple[tuple[str, int], ...]:
    """Return an unbound pod's total requests by resource, sorted: in millicores, bytes or pieces.

    Raises MalformedObjectError if they can't be read.
    """
    containers = child_objects(spec, "containers", "spec")
    init_containers = child_objects(spec, "initContainers", "spec")
    of_containers = [container.get("resources") for container in containers]
    of_init_containers = [
        (container.get("resources"), container.get("restartPolicy"))
        for container in init_containers
    ]
    parts = (of_containers, of_init_containers, spec.get("resources"), spec.get("overhead"))

    def sum_up() -> tuple[tuple[str, int], ...]:
        check_shape(spec, _UNBOUND_SPEC, "spec")
        return sum_requests(spec, NOTHING, containers, init_containers).requests

    return _remembered(parts, sum_up)


def read_limits(spec: JSONObject) -> tuple[tuple[str, int], ...]:
    """Return a pod's total limits by resource, as quotas count them: summed up as requests are.

    They are sorted, in the units of `read_requests`. Raises MalformedObjectError if they can't be
    read.
    """
    containers = child_objects(spec, "containers", "spec")
    init_containers = child_objects(spec, "initContainers", "spec")
    pod_level = spec.get("resources") or NOTHING
    of_containers = [container.get("resources") for container in (*containers, *init_containers)]
    if not any((resources or NOTHING).get("limits") for resources in (pod_level, *of_containers)):
        return ()
    as_requests: JSONObject = {
        "containers": [_limits_as_requests(container) for container in containers],
        "initContainers": [
            {**_limits_as_requests(container), "restartPolicy": container.get("restartPolicy")}
            for container in init_containers
        ],
        "resources": {"requests": pod_level.get("limits")},
        "overhead": spec.get("overhead"),
    }
    return read_requests(as_requests)


def _limits_as_requests(container: JSONObject) -> JSONObject:
    return {"resources": {"requests": (container.get("resources") or NOTHING).get("limits")}}


def requested(resources: Mapping[str, Any]) -> dict[str, Any]:
    """What a container requests as the API server stores it, quantities by resource.

    A resource with only a limit is requested in the amount of the limit.
    """
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def is_sidecar(init_container: JSONObject) -> bool:
    """Whether an init container keeps running next to the main containers."""
    return init_container.get("restartPolicy") == "Always"


_Amounts = dict[str, Fraction]


class RequestSums(NamedTuple):
    """A pod's requests by resource, as kube-scheduler counts them for each of its purposes."""

    # What the pod requests.
    requests: tuple[tuple[str, int], ...]
    # CPU and memory that scores count for a bound pod: with a default for what it doesn't request.
    scored: Mapping[str, int]
    # What scores count for a pod that is being placed.
    fit: tuple[tuple[str, int], ...]


def sum_requests(
    spec: JSONObject,
    status: JSONObject,
    containers: list[JSONObject],
    init_containers: list[JSONObject],
) -> RequestSums:
    """Sum up the requests of a pod whose spec and status have the shapes above.

    containers, init_containers: those of the spec. Raises MalformedObjectError for a text that
    isn't a quantity.
    """
    statuses = {
        container_status.get("name") or "": container_status
        for key in ("containerStatuses", "initContainerStatuses")
        for container_status in status.get(key) or ()
    }
    is_resize_infeasible = any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )
    mains = [
        _effective(container, statuses, is_resize_infeasible=is_resize_infeasible)
        for container in containers
    ]
    steps: list[_InitStep] = []
    for container in init_containers:
        stays = is_sidecar(container)
        requests = _effective(
            container, statuses if stays else {}, is_resize_infeasible=is_resize_infeasible
        )
        steps.append(_InitStep(requests, stays))
    resources = spec.get("resources") or NOTHING
    pod_level = {
        name: amount
        for name, amount in _amounts(resources, "requests", "spec.resources").items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }
    overhead = _amounts(spec, "overhead", "spec")
    total = _sum_up(mains, steps, pod_level, overhead, {})
    fit = _sum_up(mains, steps, {}, overhead, _NON_ZERO_DEFAULTS)
    counted = fit
    if pod_level:
        # With pod-level requests, only a resource that is requested nowhere gets a default.
        defaults = {
            name: amount for name, amount in _NON_ZERO_DEFAULTS.items() if name not in total
        }
        counted = _sum_up(mains, steps, pod_level, overhead, defaults)
    scored: dict[str, int] = {
        name: round_up(name, counted[name]) for name in (CPU, MEMORY) if name in counted
    }
    return RequestSums(_rounded_up(total), scored, _rounded_up(fit))


class _InitStep(NamedTuple):
    """The requests of an init container, and whether it is a sidecar."""

    requests: _Amounts
    is_sidecar: bool


def _rounded_up(amounts: _Amounts) -> tuple[tuple[str, int], ...]:
    """The resources for which kube-scheduler accounts, sorted, in its units."""
    rounded = [
        (name, round_up(name, amount)) for name, amount in amounts.items() if is_counted(name)
    ]
    return tuple(sorted(rounded))


def _sum_up(
    mains: Iterable[_Amounts],
    steps: Iterable[_InitStep],
    pod_level: _Amounts,
    overhead: _Amounts,
    defaults: Mapping[str, Fraction],
) -> _Amounts:
    """The largest requests that a pod has at any time.

    These are those of main containers and sidecars together, or those of an init container and the
    sidecars that started before it. Pod-level requests replace them, and the overhead is added.
    """
    total: _Amounts = {}
    for requests in mains:
        _add(total, {**defaults, **requests})
    sidecars: _Amounts = {}
    largest: _Amounts = {}
    for step in steps:
        step_requests = {**defaults, **step.requests}
        if step.is_sidecar:
            _add(total, step_requests)
            _add(sidecars, step_requests)
        else:
            _add(step_requests, sidecars)
            _raise_to(largest, step_requests)
    _raise_to(total, largest)
    total |= pod_level
    _add(total, overhead)
    return total


def _effective(
    container: JSONObject, statuses: Mapping[str, JSONObject], *, is_resize_infeasible: bool
) -> _Amounts:
    """A container's requests.

    During an in-place resize, the largest of the desired, allocated and actual requests count; if
    the resize is infeasible, the desired requests don't. statuses: by the container's name.
    """
    desired = _amounts(container.get("resources") or NOTHING, "requests", "resources")
    # Of a pod without statuses, the name isn't looked at: it may be anything.
    state = statuses.get(container.get("name") or "") if statuses else None
    if state is None or state.get("resources") is None:
        return desired
    effective = {} if is_resize_infeasible else dict(desired)
    _raise_to(effective, _amounts(state["resources"], "requests", "status.containerStatuses[]"))
    _raise_to(effective, _amounts(state, "allocatedResources", "status.containerStatuses[]"))
    return effective


def _amounts(parent: JSONObject, key: str, where: str) -> _Amounts:
    quantities = parent.get(key) or NOTHING
    return {
        name: read_quantity(amount, f"{where}.{key}.{name}") for name, amount in quantities.items()
    }


def _add(total: _Amounts, more: _Amounts) -> None:
    """Add amounts to `total`."""
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _raise_to(total: _Amounts, other: _Amounts) -> None:
    """Raise each amount of `total` to that of `other`, if that is larger."""
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def is_counted(resource: str) -> bool:
    """Whether kube-scheduler accounts for a resource."""
    return resource in PLAIN_RESOURCES or is_scalar(resource)


def is_scalar(resource: str) -> bool:
    """Whether it is one of kube-scheduler's scalar resources: devices, huge pages, volumes."""
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def round_up(resource: str, amount: Fraction) -> int:
    """Round an amount up to whole units, as kube-scheduler counts it.

    amount: in cores, bytes or pieces. The result is in millicores, bytes or pieces.
    """
    return ceil(amount * 1000 if resource == CPU else amount)


_parse_text: Final = lru_cache(maxsize=4096)(parse_quantity)


def read_quantity(amount: object, where: str) -> Fraction:
    """Read a quantity, in cores, bytes or pieces.

    where: the field, for the error. Raises MalformedObjectError.
    """
    try:
        return _parse_text(amount) if isinstance(amount, str) else parse_quantity(amount)
    except ValueError:
        raise MalformedObjectError(f"{where} is no quantity") from None
