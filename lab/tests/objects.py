"""Builders of pods, nodes and Events as the API server sends them, and what the recorder reads of
them.
"""

from collections.abc import Mapping
from typing import Any

from roost_core.objects.fields import JSONObject
from roost_lab.recorder.recording.reading import NodeReading, PodReading, read_node, read_pod

CREATED = "2027-01-15T08:00:00Z"
BOUND: JSONObject = {
    "type": "PodScheduled",
    "status": "True",
    "lastTransitionTime": "2027-01-15T08:00:01Z",
}


def metadata(name: str, version: int, created: str, labels: Mapping[str, str] | None) -> JSONObject:
    found = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "labels": dict(labels or {}),
    }
    return {**found, **({"creationTimestamp": created} if created else {})}


def pod_object(
    name: str = "p",
    version: int = 1,
    *,
    on: str = "",
    cpu: str = "",
    image: str = "me/image:1",
    created: str = CREATED,
    labels: Mapping[str, str] | None = None,
    conditions: list[JSONObject] | None = None,
    status: JSONObject | None = None,
    **spec: Any,
) -> JSONObject:
    """A pod of namespace hub. cpu: also asks for 1 GiB. spec: more of it, in place of what is made
    here.
    """
    requests = {"requests": {"cpu": cpu, "memory": "1Gi"}} if cpu else {}
    containers = [{"name": "c", "image": image, "resources": requests}]
    return {
        "metadata": {**metadata(name, version, created, labels), "namespace": "hub"},
        "spec": {"containers": containers, **({"nodeName": on} if on else {}), **spec},
        "status": {"conditions": conditions or [], **(status or {})},
    }


def node_object(
    name: str = "n",
    version: int = 1,
    *,
    cpu: str = "4",
    room: str = "8",
    pods: str = "10",
    labels: Mapping[str, str] | None = None,
    images: tuple[str, ...] = (),
    ready: str = "True",
    created: str = "2027-01-15T07:00:00Z",
    **spec: Any,
) -> JSONObject:
    """A node of 8 GiB. room: CPUs in all."""
    return {
        "metadata": metadata(name, version, created, labels),
        "spec": spec,
        "status": {
            "capacity": {"cpu": room},
            "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods},
            "images": [{"names": [image], "sizeBytes": 5} for image in images],
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def event_object(
    reason: str = "", note: str = "", name: str = "p", version: int = 1, **more: Any
) -> JSONObject:
    """An Event about the pod of that name, half a second after the pod was bound."""
    return {
        "metadata": {**metadata(f"{name}.{version}", version, "", None), "namespace": "hub"},
        "eventTime": "2027-01-15T08:00:01.500000Z",
        "reason": reason,
        "note": note,
        "regarding": {"kind": "Pod", "namespace": "hub", "name": name, "uid": f"uid-{name}"},
        "reportingController": "default-scheduler",
        **more,
    }


def pod_reading(item: JSONObject) -> PodReading:
    found = read_pod(item, (), {})
    assert found is not None
    return found


def node_reading(item: JSONObject) -> NodeReading:
    found = read_node(item)
    assert found is not None
    return found
