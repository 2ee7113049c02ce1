"""Hold all that policies may know of the cluster at one moment, and read it from the API's objects.

Facts are never edited: whoever watches swaps in a new one. Each part has an `updated` that shares what didn't change,
so that a swap costs microseconds even with thousands of nodes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from placement.labels import HOME_TARGET_ANNOTATION
from placement.nodes import NodeFact, Nodes
from placement.selectors import Taint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from placement.pods import JSONObject

__all__ = ["Facts", "HomePod", "Homes", "NodeFact", "Nodes", "pod_key", "read_builder", "read_home_pod", "read_node"]

_FINISHED: Final = frozenset({"Succeeded", "Failed"})


class HomePod(NamedTuple):
    """One unfinished pod of a class with a home."""

    pod_class: str
    # Where it is bound, else where Roost sent it (HOME_TARGET_ANNOTATION); "" when neither is known.
    node: str


class Homes:
    """The unfinished pods of classes with a home, and how many there are on each node. Never edited."""

    __slots__ = ("_loads", "_totals", "pods")

    def __init__(self, pods: Mapping[str, HomePod] | None = None) -> None:
        # By `pod_key`.
        self.pods: Mapping[str, HomePod] = dict(pods or {})
        loads: dict[str, Counter[str]] = {}
        for pod, count in Counter(self.pods.values()).items():
            loads.setdefault(pod.pod_class, Counter())[pod.node] += count
        self._loads: Mapping[str, Mapping[str, int]] = loads
        self._totals = {pod_class: found.total() for pod_class, found in loads.items()}

    def loads(self, pod_class: str) -> Mapping[str, int]:
        """Pods of the class on each node, those still on their way to it too; under "" those without one."""
        return self._loads.get(pod_class, {})

    def total(self, pod_class: str) -> int:
        """Pods of the class, with a node and without."""
        return self._totals.get(pod_class, 0)

    def updated(self, changes: Mapping[str, HomePod | None]) -> Self:
        """The pods after `changes` (None: gone or finished); this object stays as it is."""
        pods = {**self.pods}
        for key, pod in changes.items():
            if pod is None:
                pods.pop(key, None)
            else:
                pods[key] = pod
        return type(self)(pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that policies may know of the cluster, at one moment."""

    # None: nodes can't be read.
    nodes: Nodes | None = None
    # By class with a home: nodes with a Ready builder pod. Give the same frozenset while it doesn't change.
    builder_nodes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    homes: Homes = field(default_factory=Homes)
    # Labels of namespaces, by name. None: they can't be read.
    namespaces: Mapping[str, Mapping[str, str]] | None = None


def pod_key(namespace: str, name: str) -> str:
    """How a pod is named in `Homes.pods`."""
    return f"{namespace}/{name}"


def _object(parent: JSONObject, key: str) -> JSONObject:
    """The object under `key`, an empty one when it is absent or null."""
    return parent.get(key) or {}


def _is_true(obj: JSONObject, condition_type: str) -> bool:
    conditions = _object(obj, "status").get("conditions") or ()
    return any(one.get("type") == condition_type and one.get("status") == "True" for one in conditions)


def read_node(node: JSONObject) -> NodeFact:
    """What placement needs of a Node, as the API's JSON has it."""
    metadata, spec = _object(node, "metadata"), _object(node, "spec")
    return NodeFact(
        name=metadata.get("name") or "",
        labels=_object(metadata, "labels"),
        taints=tuple(
            Taint(taint.get("key") or "", taint.get("value") or "", taint.get("effect") or "")
            for taint in spec.get("taints") or ()
        ),
        # A node that is being deleted takes no more pods, though nobody cordons it.
        unschedulable=bool(spec.get("unschedulable") or metadata.get("deletionTimestamp")),
        ready=_is_true(node, "Ready"),
    )


def read_builder(pod: JSONObject) -> str | None:
    """The node whose build cache this builder Pod serves; None while it isn't bound, Ready and there to stay.

    BinderHub itself counts pending, failed and leaving builders, and fails every build while one isn't bound.
    """
    node = _object(pod, "spec").get("nodeName")
    if not node or _object(pod, "metadata").get("deletionTimestamp") or not _is_true(pod, "Ready"):
        return None
    return str(node)


def read_home_pod(pod: JSONObject, pod_class: str) -> HomePod | None:
    """What a Pod of a class with a home adds to its node's load; None once it has finished."""
    if _object(pod, "status").get("phase") in _FINISHED:
        return None
    annotations = _object(_object(pod, "metadata"), "annotations")
    node = _object(pod, "spec").get("nodeName") or annotations.get(HOME_TARGET_ANNOTATION) or ""
    return HomePod(pod_class, str(node))
