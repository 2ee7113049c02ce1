"""The pods of a class with a warm set, and the images that nodes hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from itertools import islice, repeat
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from roost_core.objects.node import MAX_IMAGES, Node
from roost_core.scheduler.node_rows import bump
from webhook.facts.placed_pod import PlacedPod

# Makes a table that may be changed of one that may not: a copy, or the table itself.
_MakeWritable = Callable[[Any], dict[Any, Any]]

_NO_IMAGES: Final[Mapping[str, int]] = MappingProxyType({})


class _Move(NamedTuple):
    """A change of what is known of a node's images."""

    image: str
    node: str
    # False: it is no longer remembered.
    came: bool


class _NodeImages(NamedTuple):
    """What is known of the images of one node."""

    # By image: how many had come when it was used last; that used last at the end.
    images: dict[str, int]
    # How many have come so far.
    brought: int


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
        "mark",
        "pods",
    )

    # By `namespace/name`.
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
        # Another object once loads, pulls or images have changed.
        self.mark = object()
        if pods:
            self._change(pods, dict)

    @property
    def loads(self) -> Mapping[str, int]:
        """`pods_on`, of the nodes that have any."""
        return self._loads

    def pods_on(self, node: str) -> int:
        """Pods of the class on a node, those still on their way to it too; for "" those without a
        node.
        """
        return self._loads.get(node, 0)

    @property
    def pulls(self) -> Mapping[str, int]:
        """Pods of the class for which a node is pulling images, as far as is known, of the nodes
        that have any: kubelets pull one by one.
        """
        return self._pulls

    def image_counts(self, nodes: Iterable[str]) -> Iterable[int]:
        """How many images each of these nodes is known to have."""
        return map(len, map(self._images.get, nodes, repeat(_NO_IMAGES)))

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
        """Whether a node has an image by the word of a pod that ran there, or of the node's report.
        `holds` also believes pods that are starting there.
        """
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
        """Take changes in as `updated` does, but in place, which is quicker: for a replay, where
        nobody reads older facts.
        """
        self._change(changes, lambda table: table)

    def without_nodes(self, names: Iterable[str]) -> Self:
        """The facts without the images of these nodes: one that comes back under its name may be a
        new machine.
        """
        gone = self._images.keys() & set(names)
        if not gone:
            return self
        new = copy(self)
        moved = [_Move(image, node, False) for node in gone for image in self._images[node]]
        new._remember(dict.fromkeys(gone, _NodeImages({}, 0)), moved, dict)
        return new

    def with_reports(self, reports: Mapping[str, tuple[Node | None, Node]]) -> Self:
        """A copy with what nodes report of their images: by node, as it was when it last reported
        any, and as it is.

        What is new in a report is on the node. A report of fewer images than before isn't cut, for
        others would have filled it: what it lacks is gone, unless a pod that isn't finished needs
        it, or names of images may be cut. A report of none says nothing: a kubelet that starts
        hasn't looked yet.
        """
        known: dict[str, _NodeImages] = {}
        moved: list[_Move] = []
        needed = self._needed_where_images_went(reports)
        unproven = self._unproven
        for node, (before, now) in reports.items():
            if before and before.images == now.images and node not in needed:
                continue
            names = now.image_names
            if not names:
                continue
            unproven = {
                (on, image): None for on, image in unproven if not (on == node and image in names)
            }
            images = self._with_report(node, before, names, needed.get(node), moved)
            if images is not None:
                known[node] = images
        is_more_proven = len(unproven) < len(self._unproven)
        if not known and not is_more_proven:
            return self
        changed = copy(self)
        changed._unproven = unproven
        changed._remember(known, moved, dict)
        return changed

    def _needed_where_images_went(
        self, reports: Mapping[str, tuple[Node | None, Node]]
    ) -> Mapping[str, set[str]]:
        """The nodes whose report says what is gone from them, each with the images that its pods
        need.
        """
        needed: dict[str, set[str]] = {
            node: set()
            for node, (before, now) in reports.items()
            if before and now.image_count < before.image_count and not now.has_cut_names
        }
        if needed:
            for pod in self.pods.values():
                if pod.node in needed:
                    needed[pod.node].update(pod.images)
        return needed

    def _with_report(
        self,
        node: str,
        before: Node | None,
        names: Sequence[str],
        needed: Set[str] | None,
        moved: list[_Move],
    ) -> _NodeImages | None:
        """What is known of a node's images after its report; None: no other than before.

        needed: images that stay although the report lacks them; None: whatever it lacks stays.
        moved: gets what changes.
        """
        known = self._images.get(node, _NO_IMAGES)
        reported = frozenset(before.image_names) if before else frozenset[str]()
        new = [image for image in names if image not in reported and image not in known]
        gone: list[str] = []
        if needed is not None:
            listed = frozenset(names)
            gone = [image for image in known if image not in listed and image not in needed]
        if not new and not gone:
            return None
        brought = self._brought.get(node, 0)
        if reported:
            # Before the first report nobody knows when images came. A digest is another name of
            # an image.
            brought += sum("@" not in image for image in new)
        # New images stand first, as if not used for long: of too many images, those that pods
        # showed are remembered.
        images = {**dict.fromkeys(new, brought), **known}
        moved += [_Move(image, node, True) for image in new]
        _drop(gone, images, node, moved)
        _drop(_surplus(images), images, node, moved)
        return _NodeImages(images, brought)

    @property
    def nodes_with_images(self) -> Set[str]:
        """Names of the nodes of which images are known."""
        return self._images.keys()

    def _change(
        self, changes: Mapping[str, PlacedPod | None], make_writable: _MakeWritable
    ) -> None:
        """Apply changes. make_writable: makes a table that may be changed; `dict` for a copy."""
        self.mark = object()
        changing = _PodChanges(
            pods=make_writable(self.pods),
            loads=make_writable(self._loads),
            in_use=make_writable(self._in_use),
            pulling=make_writable(self._pulling),
            pulls=make_writable(self._pulls),
            unproven=make_writable(self._unproven),
            known=self._images,
        )
        for key, pod in changes.items():
            changing.apply(key, pod)
        changing.forget_given_up()
        self.pods = changing.pods
        self._loads = changing.loads
        self._in_use = changing.in_use
        self._pulling = changing.pulling
        self._pulls = changing.pulls
        self._unproven = changing.unproven
        moved: list[_Move] = []
        known = {
            node: self._use(node, images, moved, make_writable)
            for node, images in changing.used_on.items()
        }
        for node, failed in changing.failed.items():
            if node not in known:
                known[node] = self._use(node, (), moved, make_writable)
            images = known[node].images
            absent = [image for image in dict.fromkeys(failed) if image in images]
            _drop(absent, images, node, moved)
        self._remember(known, moved, make_writable)

    def _use(
        self, node: str, images: Iterable[str], moved: list[_Move], make_writable: _MakeWritable
    ) -> _NodeImages:
        """What is known of a node's images once these were used last there.

        moved: gets what came and what is no longer remembered.
        """
        now = make_writable(self._images.get(node) or {})
        brought = self._brought.get(node, 0)
        for image in images:
            if now.pop(image, None) is None:
                brought += 1
                moved.append(_Move(image, node, True))
            now[image] = brought
        _drop(_surplus(now), now, node, moved)
        return _NodeImages(now, brought)

    def _remember(
        self,
        known: Mapping[str, _NodeImages],
        moved: Collection[_Move],
        make_writable: _MakeWritable,
    ) -> None:
        """Replace what is known of these nodes' images. moved: what that changes."""
        if not known:
            return
        self.mark = object()
        everywhere = make_writable(self._images)
        brought_to = make_writable(self._brought)
        for node, (images, brought) in known.items():
            if images:
                everywhere[node] = images
                brought_to[node] = brought
            else:
                everywhere.pop(node, None)
                brought_to.pop(node, None)
        self._images = everywhere
        self._brought = brought_to
        if not moved:
            # Mostly nothing has moved. Then thousands of holders needn't be copied.
            return
        holders = make_writable(self._holders)
        # By image, at once: thousands of nodes may report the same ones.
        changed: dict[str, set[str]] = {}
        for image, node, came in moved:
            names = changed.get(image)
            if names is None:
                names = set(holders.get(image, ()))
                changed[image] = names
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


@dataclass(slots=True)
class _PodChanges:
    """Applies changes of pods to tables, and notes what they tell of nodes' images."""

    # These may be changed; WarmFacts says what they are.
    pods: dict[str, PlacedPod]
    loads: dict[str, int]
    in_use: dict[str, int]
    pulling: dict[str, str]
    pulls: dict[str, int]
    unproven: dict[tuple[str, str], None]
    # The images of nodes before the changes: `WarmFacts._images`.
    known: Mapping[str, Mapping[str, int]]
    # By node: images that its pods use or have just used, in that order.
    used_on: dict[str, dict[str, None]] = field(default_factory=dict)
    # By node: images that can't be pulled there, or may never have come.
    failed: dict[str, list[str]] = field(default_factory=dict)
    # (node, image) of pods that went while they were starting.
    _given_up: set[tuple[str, str]] = field(default_factory=set)

    def apply(self, key: str, pod: PlacedPod | None) -> None:
        """Take in one pod's change; None: it is gone or finished."""
        before = self.pods.pop(key, None)
        was_pulling = key in self.pulling
        if was_pulling:
            bump(self.pulls, self.pulling.pop(key), -1)
        if before is not None:
            self._take_out(before, pod)
        if pod is not None:
            self._put_in(key, pod, was_pulling=was_pulling)

    def forget_given_up(self) -> None:
        """After all changes: an image of a start that was given up may never have come."""
        for node, image in self._given_up & self.unproven.keys():
            del self.unproven[node, image]
            self.failed.setdefault(node, []).append(image)

    def _take_out(self, before: PlacedPod, now: PlacedPod | None) -> None:
        bump(self.loads, before.node, -1)
        for image in before.images:
            bump(self.in_use, image, -1)
        if before.is_starting:
            kept = now.images if now is not None and now.node == before.node else ()
            for image in before.images:
                if image not in kept:
                    self._given_up.add((before.node, image))
        if now is None and before.images:
            # As kubelets count: used until now. But the node may be a new machine under the old
            # one's name.
            known = self.known.get(before.node, _NO_IMAGES)
            used = [image for image in before.images if image in known]
            self.used_on.setdefault(before.node, {}).update(dict.fromkeys(used))

    def _put_in(self, key: str, pod: PlacedPod, *, was_pulling: bool) -> None:
        # Noted at first sight, too, as after a list: what ran there before may be gone.
        if pod.failing:
            self.failed.setdefault(pod.node, []).extend(pod.failing)
        self.pods[key] = pod
        bump(self.loads, pod.node, 1)
        for image in pod.images:
            bump(self.in_use, image, 1)
        if not pod.node or not pod.images:
            return
        known = self.known.get(pod.node, _NO_IMAGES)
        on_node = self.used_on.setdefault(pod.node, {})
        if pod.is_starting:
            missing = [image for image in pod.images if image not in known and image not in on_node]
            if was_pulling or missing:
                self.pulling[key] = pod.node
                bump(self.pulls, pod.node, 1)
                for image in missing:
                    self.unproven[pod.node, image] = None
        else:
            for image in pod.images:
                self.unproven.pop((pod.node, image), None)
        on_node.update(dict.fromkeys(pod.images))


def _surplus(images: Mapping[str, int]) -> list[str]:
    """The oldest of more images than are remembered."""
    return list(islice(images, max(0, len(images) - MAX_IMAGES)))


def _drop(gone: Iterable[str], images: dict[str, int], node: str, moved: list[_Move]) -> None:
    for image in gone:
        del images[image]
        moved.append(_Move(image, node, False))
