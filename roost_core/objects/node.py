"""A Node as all programs see it, read from the API's JSON once, and which pods may be bound to it.

Programs keep thousands of nodes, so what nobody reads isn't kept. Times are Unix time. Amounts are
whole numbers as kube-scheduler counts them: CPU in millicores, all else in units (bytes, pieces).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from sys import intern
from typing import Final

from roost_core.objects.fields import (
    NOTHING,
    TEXTS,
    JSONObject,
    MalformedObjectError,
    Shape,
    check_shape,
)
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.leaving_taints import LEAVING_TAINTS
from roost_core.objects.metadata import intern_labels, kept_annotations
from roost_core.objects.requests import PODS, is_counted, read_quantity, round_up
from roost_core.objects.selectors import (
    HasNodeRules,
    Taint,
    node_matches,
    tolerates_cordon,
    untolerated,
)
from roost_core.objects.timestamps import read_moment

# Images read of a node: more than a disk usually has room for.
MAX_IMAGES: Final = 1000
# kubelet's nodeStatusMaxImages by default: a list of so many may lack some.
LISTED_IMAGES: Final = 50
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
# The taint that the node controller writes while the kubelet says DiskPressure.
DISK_PRESSURE_TAINT: Final = "node.kubernetes.io/disk-pressure"
# The longest name of an image that placement uses: pods choose them.
MAX_REFERENCE: Final = 1024
# A kubelet reports at most five names of an image, digests before tags.
# Source: MaxNamesPerImageInNodeStatus in kubernetes/pkg/kubelet/nodestatus/setters.go.
MAX_NAMES: Final = 5
# Runtimes that look for a name without a registry at Docker Hub, and nowhere else. CRI-O goes by
# the node's registries.conf.
_ALWAYS_DOCKER_HUB: Final = ("containerd://", "docker://")

# All that is read of a node.
_NODE: Final[Shape] = {
    "metadata": {"name": str, "uid": str, "labels": TEXTS, "annotations": TEXTS},
    "spec": {"taints": [{"key": str, "value": str, "effect": str}], "providerID": str},
    "status": {
        "conditions": [{"type": str, "status": str}],
        "images": [{"sizeBytes": int, "names": list}],
        "nodeInfo": {"kubeletVersion": str, "containerRuntimeVersion": str},
        "allocatable": {},
    },
}


@dataclass(frozen=True, slots=True)
class Node:
    """One node at one time."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    # It is cordoned.
    unschedulable: bool = False
    ready: bool = True
    # Differs between two nodes of one name; "": not known.
    uid: str = ""
    # 0: not known.
    created: float = 0.0
    # Empty: not known.
    allocatable: Mapping[str, int] = field(default_factory=dict)
    # Bytes by each name of an image in `status.images`. Empty: not read, or none.
    images: Mapping[str, int] = field(default_factory=dict)
    # How many images these are; kubelets cut the list, by default at 50.
    image_count: int = 0
    # "True", "False" or "Unknown", by type.
    conditions: Mapping[str, str] = field(default_factory=dict)
    # Since when it is Ready (its creation if the condition has no time); None if it isn't.
    ready_since: float | None = None
    # Only those that `kept_annotations` keeps.
    annotations: Mapping[str, str] = field(default_factory=dict)
    # It has a deletionTimestamp.
    deleting: bool = False
    # As the kubelet and its container runtime report them: v1.36.1, containerd://2.1.4.
    kubelet_version: str = ""
    runtime_version: str = ""
    # As gce://project/zone/name; "" where no cloud runs it.
    provider_id: str = ""

    @property
    def leaving(self) -> bool:
        """Whether it is being deleted, or its autoscaler takes it away for certain: nothing should
        be planned on it.

        kube-scheduler asks for taints and cordon alone, so its model does, too.
        """
        return self.deleting or any(taint.key in LEAVING_TAINTS for taint in self.taints)

    @property
    def is_usable(self) -> bool:
        """Ready, not cordoned, not leaving."""
        return self.ready and not self.unschedulable and not self.leaving

    @property
    def has_full_disk(self) -> bool:
        """Whether its kubelet says DiskPressure."""
        return any(taint.key == DISK_PRESSURE_TAINT for taint in self.taints)

    @property
    def lists_all_images(self) -> bool:
        """Whether `images` has all of its images, and all their names. An empty list says nothing:
        the kubelet hasn't queried its runtime yet, or is configured to list nothing.
        """
        return self.reports_all_images and not self.has_cut_names

    @property
    def reports_all_images(self) -> bool:
        """Whether `images` has all of its images, each by one of its names at least."""
        return bool(self.images) and (self.image_count or len(self.images)) < LISTED_IMAGES

    @property
    def cut_sizes(self) -> frozenset[int]:
        """Sizes of the images that have as many names as a kubelet reports at most."""
        if len(self.images) <= self.image_count:
            return frozenset()
        counts = Counter(self.images.values())
        return frozenset(size for size, number in counts.items() if number >= MAX_NAMES)

    @property
    def has_cut_names(self) -> bool:
        """Whether some image has as many names as a kubelet reports at most, so that another name
        of it may be missing. Names of one size count as names of one image.
        """
        return bool(self.cut_sizes)

    @property
    def resolves_short_names_elsewhere(self) -> bool:
        """Whether its runtime may take an image's name without a registry to another registry than
        Docker Hub, and list the image under that registry's name. True while the runtime isn't
        known.
        """
        return not self.runtime_version.startswith(_ALWAYS_DOCKER_HUB)

    @property
    def image_names(self) -> tuple[str, ...]:
        """Names of `images`, normalised and sorted: kubelets may list images of the same size in
        any order.
        """
        return tuple(
            sorted({_normalise(name) for name in self.images if len(name) <= MAX_REFERENCE})
        )


# Nodes report the same images again and again.
_normalise: Final = lru_cache(maxsize=65536)(normalise_reference)


def node_admits(rules: HasNodeRules, node: Node) -> bool:
    """Whether a pod with these rules may be bound to the node, room and readiness aside.

    nodeSelector and required node affinity (terms are ORed), NoSchedule and NoExecute taints,
    cordon. A leaving node counts as cordoned, though nobody cordons it.
    """
    return node_matches(rules, node.name, node.labels) and node_is_tolerated(rules, node)


def node_is_tolerated(rules: HasNodeRules, node: Node) -> bool:
    """Whether the tolerations admit the node's NoSchedule and NoExecute taints, and its cordon."""
    if node.taints and untolerated(node.taints, rules.tolerations) is not None:
        return False
    return not (node.unschedulable or node.leaving) or tolerates_cordon(rules.tolerations)


def node_covers(requests: Iterable[tuple[str, int]], allocatable: Mapping[str, int]) -> bool:
    """Whether a node with this allocatable could take these requests if it were empty.

    If nothing is allocatable, its size is unknown, and it could.
    """
    return not allocatable or all(
        amount <= allocatable.get(name, 0) for name, amount in requests if amount
    )


def read_node(body: object, *, with_images: bool = True) -> Node:
    """Read a Node as the API's JSON has it. with_images: its images, too, which are most of it.

    Raises MalformedObjectError, and nothing else, when it has no name or its parts aren't of a
    Node's shape.
    """
    check_shape(body, _NODE, "node")
    if not isinstance(body, dict):
        raise MalformedObjectError("the object is not a JSON object")
    metadata = body.get("metadata") or NOTHING
    spec = body.get("spec") or NOTHING
    status = body.get("status") or NOTHING
    name = metadata.get("name")
    if not name:
        raise MalformedObjectError("metadata.name is absent")
    conditions: dict[str, str] = {}
    created = read_moment(metadata.get("creationTimestamp")) or 0.0
    ready_since = None
    for condition in status.get("conditions") or ():
        kind = intern(condition.get("type") or "")
        value = intern(condition.get("status") or "")
        conditions[kind] = value
        if kind == "Ready" and value == "True":
            ready_since = read_moment(condition.get("lastTransitionTime")) or created
    listed = (status.get("images") or []) if with_images else []
    info = status.get("nodeInfo") or NOTHING
    return Node(
        # The string object that the node's pods have: thousands of names are looked up quicker.
        name=intern(name),
        labels=intern_labels(metadata.get("labels") or NOTHING),
        taints=tuple(
            Taint(taint.get("key") or "", taint.get("value") or "", taint["effect"])
            for taint in spec.get("taints") or ()
            if taint.get("effect")
        ),
        unschedulable=spec.get("unschedulable") is True,
        ready=conditions.get("Ready") == "True",
        uid=metadata.get("uid") or "",
        created=created,
        allocatable=_read_allocatable(status.get("allocatable") or NOTHING),
        images=_read_images(listed),
        image_count=len(listed),
        conditions=conditions,
        ready_since=ready_since,
        annotations=kept_annotations(metadata.get("annotations") or NOTHING),
        deleting=metadata.get("deletionTimestamp") is not None,
        kubelet_version=intern(info.get("kubeletVersion") or ""),
        runtime_version=intern(info.get("containerRuntimeVersion") or ""),
        provider_id=spec.get("providerID") or "",
    )


def node_or_none(body: object, *, with_images: bool = True) -> Node | None:
    """Read a Node as `read_node` does; None when it is malformed."""
    try:
        return read_node(body, with_images=with_images)
    except MalformedObjectError:
        return None


def _read_images(listed: Iterable[JSONObject]) -> dict[str, int]:
    images: dict[str, int] = {}
    for image in islice(listed, MAX_IMAGES):
        size = image.get("sizeBytes") or 0
        for name in islice(image.get("names") or (), MAX_NAMES):
            if isinstance(name, str) and name:
                images[intern(name)] = size
    return images


def _read_allocatable(amounts: JSONObject) -> dict[str, int]:
    return {
        intern(resource): round_up(
            resource, read_quantity(amount, f"status.allocatable.{resource}")
        )
        for resource, amount in amounts.items()
        if resource == PODS or is_counted(resource)
    }
