"""What several checks look at, and how they tell of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from roost.doctor.install import name_of
from roost_core.placement.settings import USER_CLASS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost.doctor.install import Install, Object
    from roost_core.objects.node import Node

# Names told of many objects.
SHOWN: Final = 3
# The images that a kubelet reports unless its nodeStatusMaxImages says otherwise.
DEFAULT_REPORTED: Final = 50


def some(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def age_seconds(time: str | None) -> float | None:
    """Seconds since a time as Kubernetes writes it; None: not known."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(time or "")).total_seconds()
    except ValueError:
        return None


def node_age_seconds(node: Node) -> float:
    """Seconds since a node was created; 0.0: not known."""
    return datetime.now(UTC).timestamp() - node.created if node.created else 0.0


def users_of(install: Install) -> list[Object]:
    """The users' pods of the release's namespace; none where their class is chosen by more than labels."""
    labels = labels_of(install.values["podClasses"].get(USER_CLASS))
    return [pod for pod in install.pods if labels and labels.items() <= (pod["metadata"].get("labels") or {}).items()]


def labels_of(pod_class: Any) -> dict[str, str]:  # noqa: ANN401 - a part of the values
    """The labels that pods of a class have; empty where a class is chosen otherwise."""
    match = (pod_class or {}).get("match") or {}
    return dict(match.get("labels") or {}) if "namespaceSelector" not in match else {}


def admits(install: Install) -> bool:
    """Whether the release changes pods at admission."""
    return bool(install.of_kind("MutatingWebhookConfiguration") or install.of_kind("MutatingAdmissionPolicy"))


def count(number: int, noun: str) -> str:
    """A number of things: 1 clock, 2 clocks."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def annotation_of(body: Object, key: str) -> str:
    """An annotation of an object; empty without."""
    return str((body["metadata"].get("annotations") or {}).get(key, ""))


def label_items(body: Object) -> dict[str, str]:
    """The labels of an object."""
    return dict(body["metadata"].get("labels") or {})


def pod_templates(install: Install) -> list[tuple[str, Object]]:
    """What the rendered workloads make pods of: (name for people, template)."""
    kinds = ("Deployment", "DaemonSet", "StatefulSet")
    return [(name_of(body), body["spec"]["template"]) for kind in kinds for body in install.of_kind(kind)]


def mounts_images(template: Object) -> bool:
    """Whether pods of a template mount images."""
    return any("image" in volume for volume in template["spec"].get("volumes") or [])
