"""Sum up the requests of a pod's containers, as kube-scheduler does.

Source: component-helpers' resource.PodRequests, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
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
# What each node has from its first moment on; devices come later.
NODE_RESOURCES: Final = frozenset({*PLAIN_RESOURCES, PODS})
# What a container without a request counts in scores: 100 millicores, 200 MiB.
DEFAULT_CPU_MILLICORES: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 2**20
_NON_ZERO_DEFAULTS: Final = {
    CPU: Fraction(DEFAULT_CPU_MILLICORES, 1000),
    MEMORY: Fraction(DEFAULT_MEMORY_BYTES),
}
# What `sum_requests` reads, but for the quantities.
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

# Most pods of a hub request the same, and to sum that up costs a good part of a review.
_remembered: Final[ByJSON[tuple[tuple[str, int], ...]]] = ByJSON()


def read_requests(spec: JSONObject) -> tuple[tuple[str, int], ...]:
    """Return an unbound pod's total requests by resource.

    Raises MalformedObjectError when they can't be read.
    """
    containers = child_objects(spec, "containers", "spec")
    inits = child_objects(spec, "initContainers", "spec")
    mains = [container.get("resources") for container in containers]
    steps = [(container.get("resources"), container.get("restartPolicy")) for container in inits]
    parts = (mains, steps, spec.get("resources"), spec.get("overhead"))

    def sum_up() -> tuple[tuple[str, int], ...]:
        check_shape(spec, _UNBOUND_SPEC, "spec")
        return sum_requests(spec, NOTHING, containers, inits).requests

    return _remembered(parts, sum_up)


def read_limits(spec: JSONObject) -> tuple[tuple[str, int], ...]:
    """Return a pod's total limits by resource, as quotas count them: summed up as requests are.

    Raises MalformedObjectError when they can't be read.
    """
    containers = child_objects(spec, "containers", "spec")
    inits = child_objects(spec, "initContainers", "spec")
    own = spec.get("resources") or NOTHING
    parts = (own, *(container.get("resources") or NOTHING for container in (*containers, *inits)))
    if not any(part.get("limits") for part in parts):
        return ()
    as_requests: JSONObject = {
        "containers": [_limits_as_requests(container) for container in containers],
        "initContainers": [
            {**_limits_as_requests(container), "restartPolicy": container.get("restartPolicy")}
            for container in inits
        ],
        "resources": {"requests": own.get("limits")},
        "overhead": spec.get("overhead"),
    }
    return read_requests(as_requests)


def _limits_as_requests(container: JSONObject) -> JSONObject:
    return {"resources": {"requests": (container.get("resources") or NOTHING).get("limits")}}


def requested(resources: Mapping[str, Any]) -> dict[str, Any]:
    """What a container requests as the API server stores it, quantities by resource: what only has
    a limit, too.
    """
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def is_sidecar(init_container: JSONObject) -> bool:
    """Whether an init container keeps running beside the main containers."""
    return init_container.get("restartPolicy") == "Always"


_Amounts = dict[str, Fraction]


class RequestSums(NamedTuple):
    """A pod's requests by resource, as kube-scheduler counts them for each of its purposes."""

    # What the pod asks for.
    requests: tuple[tuple[str, int], ...]
    # CPU and memory that scores count of a bound pod: with a default where it asks for none.
    scored: Mapping[str, int]
    # The same of the pod that is being placed.
    fit: tuple[tuple[str, int], ...]


def sum_requests(
    spec: JSONObject, status: JSONObject, containers: list[JSONObject], inits: list[JSONObject]
) -> RequestSums:
    """Sum up the requests of a pod whose spec and status have the shapes above.

    Raises MalformedObjectError when a quantity is none.
    """
    statuses = {
        container_status.get("name") or "": container_status
        for key in ("containerStatuses", "initContainerStatuses")
        for container_status in status.get(key) or ()
    }
    infeasible = any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )
    mains = [_effective(container, statuses, infeasible=infeasible) for container in containers]
    steps = [
        (
            _effective(container, statuses if is_sidecar(container) else {}, infeasible=infeasible),
            is_sidecar(container),
        )
        for container in inits
    ]
    resources = spec.get("resources") or NOTHING
    asked = _amounts(resources, "requests", "spec.resources").items()
    pod_level = {
        name: amount
        for name, amount in asked
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }
    overhead = _amounts(spec, "overhead", "spec")
    requested = _sum_up(mains, steps, pod_level, overhead, {})
    fit = _sum_up(mains, steps, {}, overhead, _NON_ZERO_DEFAULTS)
    counted = fit
    if pod_level:
        # With pod-level requests only what is asked for nowhere gets a default.
        defaults = {
            name: amount for name, amount in _NON_ZERO_DEFAULTS.items() if name not in requested
        }
        counted = _sum_up(mains, steps, pod_level, overhead, defaults)
    scored: dict[str, int] = {
        name: round_up(name, counted[name]) for name in (CPU, MEMORY) if name in counted
    }
    return RequestSums(_rounded_up(requested), scored, _rounded_up(fit))


def _rounded_up(amounts: _Amounts) -> tuple[tuple[str, int], ...]:
    return tuple(
        sorted(
            (name, round_up(name, amount)) for name, amount in amounts.items() if is_counted(name)
        )
    )


def _sum_up(
    mains: Iterable[_Amounts],
    steps: Iterable[tuple[_Amounts, bool]],
    pod_level: _Amounts,
    overhead: _Amounts,
    defaults: Mapping[str, Fraction],
) -> _Amounts:
    """Main containers and sidecars, or the largest moment of initialising; then pod-level requests
    and overhead.
    """
    total: _Amounts = {}
    for requests in mains:
        _add(total, {**defaults, **requests})
    sidecars: _Amounts = {}
    largest: _Amounts = {}
    for requests, is_sidecar in steps:
        step = {**defaults, **requests}
        if is_sidecar:
            _add(total, step)
            _add(sidecars, step)
        else:
            _add(step, sidecars)
            _raise_to(largest, step)
    _raise_to(total, largest)
    total |= pod_level
    _add(total, overhead)
    return total


def _effective(
    container: JSONObject, statuses: Mapping[str, JSONObject], *, infeasible: bool
) -> _Amounts:
    """A container's requests; during an in-place resize, the largest of desired, allocated and
    actual.
    """
    wanted = _amounts(container.get("resources") or NOTHING, "requests", "resources")
    state = statuses.get(container.get("name") or "") if statuses else None
    if state is None or state.get("resources") is None:
        return wanted
    effective = {} if infeasible else dict(wanted)
    _raise_to(effective, _amounts(state["resources"], "requests", "status.containerStatuses[]"))
    _raise_to(effective, _amounts(state, "allocatedResources", "status.containerStatuses[]"))
    return effective


def _amounts(parent: JSONObject, key: str, where: str) -> _Amounts:
    quantities = parent.get(key) or NOTHING
    return {
        name: read_quantity(amount, f"{where}.{key}.{name}") for name, amount in quantities.items()
    }


def _add(total: _Amounts, more: _Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _raise_to(total: _Amounts, other: _Amounts) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def is_counted(resource: str) -> bool:
    """Whether kube-scheduler accounts for a resource."""
    return resource in PLAIN_RESOURCES or is_scalar(resource)


def is_scalar(resource: str) -> bool:
    """Whether kube-scheduler has it among its scalar resources: it has a domain or a family."""
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def round_up(resource: str, amount: Fraction) -> int:
    """Give the amount in whole units as kube-scheduler counts them: millicores of CPU, else bytes
    or pieces.
    """
    if resource == CPU:
        amount *= 1000
    return -(-amount.numerator // amount.denominator)


_parse_text: Final = lru_cache(maxsize=4096)(parse_quantity)


def read_quantity(amount: object, where: str) -> Fraction:
    """Read a quantity, in cores, bytes or pieces.

    Raises MalformedObjectError, which names `where`.
    """
    try:
        return _parse_text(amount) if isinstance(amount, str) else parse_quantity(amount)
    except ValueError:
        raise MalformedObjectError(f"{where} is no quantity") from None
