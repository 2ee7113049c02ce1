"""An immutable snapshot of everything that rules can read of the cluster, and how it is read from
API objects.

Facts are replaced, never changed. Each part has an `updated` that shares what didn't change, so
that a replacement takes microseconds even with thousands of nodes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Set
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from roost_core.objects.fields import JSONObject
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import MAX_IMAGES, MAX_REFERENCE, Node
from roost_core.placement.kubelet_pulls import PULL_FAULTS
from roost_core.placement.labels import HOME_TARGET_ANNOTATION, WARM_TARGET_ANNOTATION
from roost_core.placement.lease_state import LeaseState
from roost_core.placement.nodes import Nodes
from roost_core.scheduler.node_rows import bump

# Of a table, one that may be changed: a copy, or the table itself.
_ToChange = Callable[[Any], dict[Any, Any]]

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_NO_IMAGES: Final[Mapping[str, int]] = MappingProxyType({})
# The longest name that a node can have.
_MAX_NODE_NAME: Final = 253


class PlacedPod(NamedTuple):
    """One unfinished pod of a class whose pods the facts count."""

    pod_class: str
    # Where it is bound, else where Roost sent it (WARM_TARGET_ANNOTATION, HOME_TARGET_ANNOTATION);
    # "" when neither is known.
    node: str
    # Normalised; none before it is bound: until then no node has them because of it.
    images: tuple[str, ...] = ()
    # It is bound and none of its containers runs yet.
    is_starting: bool = False
    # Images, normalised and not among `images`, that its node can't pull now.
    failing: tuple[str, ...] = ()


_made = itertools.count()


class Homes:
    """The unfinished pods of classes with a home, and how many there are on each node.

    Immutable.
    """

    __slots__ = ("_loads", "_totals", "made", "pods")

    def __init__(self, pods: Mapping[str, PlacedPod] | None = None) -> None:
        # Greater in what was made later.
        self.made = next(_made)
        # By `pod_key`.
        self.pods: Mapping[str, PlacedPod] = dict(pods or {})
        loads: dict[str, Counter[str]] = {}
        for pod, count in Counter(self.pods.values()).items():
            loads.setdefault(pod.pod_class, Counter())[pod.node] += count
        self._loads: Mapping[str, Mapping[str, int]] = loads
        self._totals = {pod_class: counts.total() for pod_class, counts in loads.items()}

    def loads(self, pod_class: str) -> Mapping[str, int]:
        """Pods of the class on each node, those still on their way to it too; under "" those
        without one.
        """
        return self._loads.get(pod_class, {})

    def total(self, pod_class: str) -> int:
        """Pods of the class, with a node and without."""
        return self._totals.get(pod_class, 0)

    def updated(self, changes: Mapping[str, PlacedPod | None]) -> Self:
        """A copy with `changes` (None: gone or finished)."""
        merged = {**self.pods, **changes}
        return type(self)({key: pod for key, pod in merged.items() if pod is not None})


# An image, a node, and whether the image came there or is no longer remembered.
_Move = tuple[str, str, bool]


class WarmFacts:
    """The unfinished pods of one class with a warm set, and the images that their nodes hold.
    Immutable.

    Pods show an image as soon as they are bound; nodes report the others, such as those of pods
    that ended before this process started. Images are remembered when their pods are gone, until
    their node goes: a report is cut to the largest images, so what it lacks may still be there.
    Kubelets remove the least recently used image first, so the number of images pulled since then
    says how likely that is.
    """

    __slots__ = (
        "_brought",
        "_holders",
        "_images",
        "_in_use",
        "_loads",
        "_pulling",
        "_pulls",
        "_unproven",
        "pods",
    )

    # By `pod_key`.
    pods: Mapping[str, PlacedPod]

    def __init__(self, pods: Mapping[str, PlacedPod] | None = None) -> None:
        self.pods = {}
        # Pods by node; under "" those without one.
        self._loads: Mapping[str, int] = {}
        # Pods by image, of those that are bound.
        self._in_use: Mapping[str, int] = {}
        # Starting pods, by key, whose images weren't known on their node, and how many each node
        # has.
        self._pulling: Mapping[str, str] = {}
        self._pulls: Mapping[str, int] = {}
        # By node: how many images had come to it when this one was used last; that used last at the
        # end.
        self._images: Mapping[str, Mapping[str, int]] = {}
        # By node: how many have come to it so far.
        self._brought: Mapping[str, int] = {}
        self._holders: Mapping[str, frozenset[str]] = {}
        # Node and image, where nothing but starting pods says that it is there: none has run, nor
        # was it reported.
        self._unproven: Mapping[tuple[str, str], None] = {}
        if pods:
            self._change(pods, dict)

    @property
    def running(self) -> int:
        """Pods of the class, with a node and without."""
        return len(self.pods)

    def pods_on(self, node: str) -> int:
        """Pods of the class on a node, those still on their way to it too; for "" those without a
        node.
        """
        return self._loads.get(node, 0)

    def pulls_on(self, node: str) -> int:
        """Pods of the class for which a node is pulling images, as far as is known: kubelets pull
        one by one.
        """
        return self._pulls.get(node, 0)

    def images_on(self, node: str) -> int:
        """How many images a node is known to have."""
        return len(self._images.get(node, _NO_IMAGES))

    def uses_only(self, references: Container[str]) -> bool:
        """Whether the bound pods of the class use no other images than these; `references` are
        normalised.
        """
        return all(image in references for image in self._in_use)

    def holders(self, reference: str) -> frozenset[str]:
        """The nodes that are known to have an image; `reference` is normalised."""
        return self._holders.get(reference, frozenset())

    def holds(self, node: str, reference: str) -> bool:
        """Whether a node is known to have an image; `reference` is normalised."""
        return node in self._holders.get(reference, ())

    def proves(self, node: str, reference: str) -> bool:
        """Whether a pod that ran there, or the node's report, says that a node has an image."""
        return self.holds(node, reference) and (node, reference) not in self._unproven

    def images_since(self, node: str, reference: str) -> int:
        """How many images have come to a node since a pod with this one was bound or ended there.

        When none was: since the node reported it; 0 for an image that isn't known.
        """
        at = self._images.get(node, _NO_IMAGES).get(reference)
        return 0 if at is None else self._brought[node] - at

    def updated(self, changes: Mapping[str, PlacedPod | None]) -> Self:
        """A copy with `changes` (None: gone or finished). Cheaper with many changes at once."""
        new = copy(self)
        new._change(changes, dict)
        return new

    def take_in(self, changes: Mapping[str, PlacedPod | None]) -> None:
        """As `updated`, but in place, which is quicker: for a replay, where nobody reads older
        facts.
        """
        self._change(changes, lambda table: table)

    def without_nodes(self, names: Iterable[str]) -> Self:
        """The facts without the images of these nodes: one that comes back under its name may be a
        new machine.
        """
        if not (gone := self._images.keys() & set(names)):
            return self
        new = copy(self)
        moved = [(image, node, False) for node in gone for image in self._images[node]]
        new._remember(dict.fromkeys(gone, ({}, 0)), moved, dict)
        return new

    def with_reports(self, reports: Mapping[str, tuple[Node | None, Node]]) -> Self:
        """A copy with what nodes report of their images: by node, as it was when it last reported
        any, and as it is.

        What is new in a report is on the node. A report of fewer images than before isn't cut, for
        others would have filled it: what it lacks is gone, unless a pod that isn't finished needs
        it. A report of none says nothing: a kubelet that starts hasn't looked yet.
        """
        images_of_nodes: dict[str, tuple[dict[str, int], int]] = {}
        moved: list[_Move] = []
        needed: dict[str, set[str]] = {
            node: set()
            for node, (before, now) in reports.items()
            if before and now.image_count < before.image_count
        }
        unproven = self._unproven
        for pod in self.pods.values() if needed else ():
            if pod.node in needed:
                needed[pod.node].update(pod.images)
        for node, (before, now) in reports.items():
            if before and before.images == now.images and node not in needed:
                continue
            known = self._images.get(node, _NO_IMAGES)
            if not (names := now.image_names):
                continue
            unproven = {
                (on, image): None for on, image in unproven if on != node or image not in names
            }
            reported = frozenset(before.image_names) if before else frozenset[str]()
            new = [image for image in names if image not in reported and image not in known]
            gone: list[str] = []
            if node in needed:
                listed = frozenset(names)
                gone = [
                    image for image in known if image not in listed and image not in needed[node]
                ]
            if not new and not gone:
                continue
            brought = self._brought.get(node, 0)
            if reported:
                # Before the first report nobody knows when images came. A digest is another name of
                # an image.
                brought += sum("@" not in image for image in new)
            # First, as if not used for long: of too many, those that pods showed are remembered.
            images = {**dict.fromkeys(new, brought), **known}
            moved += [(image, node, True) for image in new]
            _drop(gone, images, node, moved)
            _drop(_surplus(images), images, node, moved)
            images_of_nodes[node] = images, brought
        if not images_of_nodes and len(unproven) == len(self._unproven):
            return self
        changed = copy(self)
        changed._unproven = unproven
        changed._remember(images_of_nodes, moved, dict)
        return changed

    @property
    def nodes_with_images(self) -> Set[str]:
        """Names of the nodes of which images are known."""
        return self._images.keys()

    def _change(self, changes: Mapping[str, PlacedPod | None], to_change: _ToChange) -> None:
        """Apply changes. to_change: gives a table that may be changed; `dict` for a copy."""
        pods, loads, unproven = (
            to_change(self.pods),
            to_change(self._loads),
            to_change(self._unproven),
        )
        pulling, pulls, in_use = (
            to_change(self._pulling),
            to_change(self._pulls),
            to_change(self._in_use),
        )
        given_up: set[tuple[str, str]] = set()
        used_on: dict[str, dict[str, None]] = {}
        failed: dict[str, list[str]] = {}
        for key, pod in changes.items():
            before = pods.pop(key, None)
            if was_pulling := key in pulling:
                bump(pulls, pulling.pop(key), -1)
            if before is not None:
                bump(loads, before.node, -1)
                for image in before.images:
                    bump(in_use, image, -1)
                if before.is_starting:
                    still = pod.images if pod is not None and pod.node == before.node else ()
                    given_up |= {
                        (before.node, image) for image in before.images if image not in still
                    }
                if pod is None and before.images:
                    # As kubelets count: used until now. But the node may be a new machine under the
                    # old one's name.
                    known = self._images.get(before.node, _NO_IMAGES)
                    used = [image for image in before.images if image in known]
                    used_on.setdefault(before.node, {}).update(dict.fromkeys(used))
            if pod is not None:
                # Also at first sight, as after a list: what ran there before may be gone.
                if pod.failing:
                    failed.setdefault(pod.node, []).extend(pod.failing)
                pods[key] = pod
                bump(loads, pod.node, 1)
                for image in pod.images:
                    bump(in_use, image, 1)
                if pod.node and pod.images:
                    known = self._images.get(pod.node, _NO_IMAGES)
                    on_node = used_on.setdefault(pod.node, {})
                    missing = [
                        image for image in pod.images if image not in known and image not in on_node
                    ]
                    if pod.is_starting and (was_pulling or missing):
                        pulling[key] = pod.node
                        bump(pulls, pod.node, 1)
                        unproven.update(dict.fromkeys((pod.node, image) for image in missing))
                    for image in () if pod.is_starting else pod.images:
                        unproven.pop((pod.node, image), None)
                    on_node.update(dict.fromkeys(pod.images))
        for node, image in given_up & unproven.keys():
            # It may never have come.
            del unproven[node, image]
            failed.setdefault(node, []).append(image)
        self.pods, self._loads, self._unproven = pods, loads, unproven
        self._pulling, self._pulls, self._in_use = pulling, pulls, in_use
        moved: list[_Move] = []
        images_of_nodes = {
            node: self._use(node, images, moved, to_change) for node, images in used_on.items()
        }
        for node, images in failed.items():
            known, brought = images_of_nodes.get(node) or self._use(node, (), moved, to_change)
            _drop([image for image in dict.fromkeys(images) if image in known], known, node, moved)
            images_of_nodes[node] = known, brought
        self._remember(images_of_nodes, moved, to_change)

    def _use(
        self, node: str, images: Iterable[str], moved: list[_Move], to_change: _ToChange
    ) -> tuple[dict[str, int], int]:
        """What is known of a node's images once these were used last there; how many have come to
        it by then.

        moved: gets what came and what is no longer remembered.
        """
        now = to_change(self._images.get(node) or {})
        brought = self._brought.get(node, 0)
        for image in images:
            if now.pop(image, None) is None:
                brought += 1
                moved.append((image, node, True))
            now[image] = brought
        _drop(_surplus(now), now, node, moved)
        return now, brought

    def _remember(
        self,
        known: Mapping[str, tuple[dict[str, int], int]],
        moved: Iterable[_Move],
        to_change: _ToChange,
    ) -> None:
        """Replace what is known of these nodes' images, and how many have come to each. moved: what
        that changes.
        """
        if not known:
            return
        everywhere, brought_to = to_change(self._images), to_change(self._brought)
        for node, (images, brought) in known.items():
            if images:
                everywhere[node], brought_to[node] = images, brought
            else:
                everywhere.pop(node, None)
                brought_to.pop(node, None)
        self._images, self._brought = everywhere, brought_to
        if not moved:
            # Mostly: thousands of holders needn't be copied then.
            return
        holders = to_change(self._holders)
        # By image, at once: thousands of nodes may report the same ones.
        changed: dict[str, set[str]] = {}
        for image, node, came in moved:
            if (names := changed.get(image)) is None:
                names = changed[image] = set(holders.get(image, ()))
            if came:
                names.add(node)
            else:
                names.discard(node)
        for image, names in changed.items():
            if names:
                holders[image] = frozenset(names)
            else:
                holders.pop(image, None)
        self._holders = holders


def _surplus(images: Mapping[str, int]) -> list[str]:
    """The oldest of more images than are remembered."""
    return list(islice(images, max(0, len(images) - MAX_IMAGES)))


def _drop(gone: Iterable[str], images: dict[str, int], node: str, moved: list[_Move]) -> None:
    for image in gone:
        del images[image]
        moved.append((image, node, False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that rules can read of the cluster, at one time."""

    # None: nodes can't be read.
    nodes: Nodes | None = None
    # By class with a home: nodes with a Ready builder pod. The same frozenset object while it
    # doesn't change.
    builder_nodes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    homes: Homes = field(default_factory=Homes)
    # False: the watch of these pods is broken, so pods that aren't among them may exist.
    shows_new_pods: bool = True
    # Labels of namespaces, by name. None: they can't be read.
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    # By class with a warm set.
    warm: Mapping[str, WarmFacts] = field(default_factory=dict)
    # When a node (first) last couldn't pull an image (normalised), on the clock of reviews.
    failed_pulls: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # Of these, those that no pod said: a start was given up, and the pull may only have been slow.
    given_up: Collection[tuple[str, str]] = frozenset()
    # Scopes and resources of ResourceQuotas, by namespace, as far as rules look for them. None:
    # quotas can't be read.
    quotas: Mapping[str, frozenset[str]] | None = field(default_factory=dict)
    # Extended resources that nodes may have without listing them.
    claimable: frozenset[str] = frozenset()
    # The lowest priority that pods can have, but for Roost's placeholders and pullers; 0: of pods
    # without a class.
    lowest_priority: int = 0
    # The Leases of Roost's other parts, by part (CONTROLLERS, SCHEDULER), as far as they are
    # watched.
    leases: Mapping[str, LeaseState] = field(default_factory=dict)
    # The host's name that the scheduler's Lease was looked at for. None: it wasn't looked at.
    scheduler_host: str | None = None


def pod_key(namespace: str, name: str) -> str:
    """The key of a pod in `Homes.pods` and in the ledger."""
    return f"{namespace}/{name}"


def _object(parent: JSONObject, key: str) -> JSONObject:
    """The object under `key`, an empty one when it is absent or null."""
    return parent.get(key) or {}


def read_builder(pod: JSONObject) -> str | None:
    """The node whose build cache this builder Pod serves; None while it isn't bound, Ready and
    there to stay.

    BinderHub itself counts pending, failed and leaving builders, and fails every build while one
    isn't bound.
    """
    node = _object(pod, "spec").get("nodeName")
    if not node or _object(pod, "metadata").get("deletionTimestamp"):
        return None
    conditions = _object(pod, "status").get("conditions") or ()
    is_ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in conditions
    )
    return str(node) if is_ready else None


def read_placed_pod(pod: JSONObject, pod_class: str) -> PlacedPod | None:
    """What a Pod of this class adds to its node; None once it has finished."""
    phase = _object(pod, "status").get("phase")
    if phase in _FINISHED:
        return None
    spec = _object(pod, "spec")
    if not (bound := spec.get("nodeName")):
        annotations = _object(_object(pod, "metadata"), "annotations")
        target = str(
            annotations.get(WARM_TARGET_ANNOTATION) or annotations.get(HOME_TARGET_ANNOTATION) or ""
        )
        # Pods may write anything: no node is called so.
        return PlacedPod(pod_class, target if len(target) <= _MAX_NODE_NAME else "")
    failing = _failing_containers(_object(pod, "status"))
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    written: dict[str, bool] = {}
    for container in containers:
        image = str(container.get("image") or "")
        if image and len(image) <= MAX_REFERENCE and len(written) < MAX_IMAGES:
            written[image] = written.get(image, False) or container.get("name") in failing
    return PlacedPod(
        pod_class,
        str(bound),
        tuple(normalise_reference(image) for image, fails in written.items() if not fails),
        phase == "Pending",
        tuple(normalise_reference(image) for image, fails in written.items() if fails),
    )


def _failing_containers(status: JSONObject) -> set[str]:
    """Names of containers whose image can't be pulled now."""
    containers = (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    )
    reasons = (
        (container.get("name"), _object(_object(container, "state"), "waiting").get("reason"))
        for container in containers
    )
    return {str(name) for name, reason in reasons if reason in PULL_FAULTS}
