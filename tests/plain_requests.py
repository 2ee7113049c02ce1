"""What a pod requests, by the rule as Kubernetes' documentation has it: the plain form of
`roost_core.objects.requests`.

Source: "Pod resource requests and limits" and "Sidecar containers", Kubernetes v1.36.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from roost_core.objects.quantities import parse_quantity


def of_container(container: Mapping[str, Any], resource: str) -> Fraction:
    """What a container requests, as the API server stores it: its limit, if that is all it has."""
    resources = container.get("resources") or {}
    for part in ("requests", "limits"):
        if resource in (resources.get(part) or {}):
            return parse_quantity(resources[part][resource])
    return Fraction(0)


def of_pod(spec: Mapping[str, Any], resource: str) -> Fraction:
    """The larger of what runs in the end and of the most that runs while the pod is initialised,
    and the overhead.
    """
    inits: Sequence[Mapping[str, Any]] = spec.get("initContainers") or []
    sidecars = [container for container in inits if container.get("restartPolicy") == "Always"]
    running = [*spec["containers"], *sidecars]
    moments = [sum(of_container(container, resource) for container in running)]
    for place, container in enumerate(inits):
        if container not in sidecars:
            before = [other for other in inits[:place] if other in sidecars]
            moments.append(sum(of_container(other, resource) for other in [*before, container]))
    overhead = parse_quantity((spec.get("overhead") or {}).get(resource, 0))
    return max(moments) + overhead
