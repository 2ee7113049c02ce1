"""Follow which images nodes pull for pods, and in which order.

A kubelet pulls one image after the other. So a pull begins when its pod is bound, or when the pull
before it on the node is over. It is over once the kubelet reports an image ID, or runs a container
with the image.

A kubelet serves requests in the order in which they come. So each pod waits for its turn, even if
another pod's request has brought its image meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.start_notices.hold_ups import find_hold_ups
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.pod import Pod
from roost_core.placement.kubelet_pulls import PULL_FAULTS


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod on a node, while not all of its containers run. Times are Unix time."""

    key: str
    node: str
    # When its pulls may have begun: when the pod was first seen there. If that was before this
    # replica led, it is what the kubelet's clock says.
    since: float
    # Normalised references of its images that the node hasn't yet, in the order of pulls.
    lacking: tuple[str, ...]
    # The pod's number in the order in which pods ask for their images; None: it lacked none.
    place: int | None


class QueuedPull(NamedTuple):
    """A pull that is under way or waits for its turn."""

    image: str
    # When it began; while it waits for its turn, when its pod was bound. Unix time.
    begin: float
    # `BoundPod.place` of the first pod that asked for it.
    place: int


class EndedPull(NamedTuple):
    """A pull that is over."""

    image: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NodePulls:
    """The pulls of all nodes at one time."""

    # By uid of the pod.
    bound: Mapping[str, BoundPod] = field(default_factory=dict)
    # By name of the node: its pulls in their order. The first is under way. An image occurs once.
    queues: Mapping[str, tuple[QueuedPull, ...]] = field(default_factory=dict)

    def needed_by(self, pod: BoundPod) -> tuple[QueuedPull, ...]:
        """The pulls that the pod waits for: those before its turn on its node, and its own.

        None of them if the pod lacked no image.
        """
        if pod.place is None:
            return ()
        queue = self.queues.get(pod.node, ())
        return tuple(pull for pull in queue if pull.place <= pod.place or pull.image in pod.lacking)


def follow_pulls(
    snapshot: Snapshot, before: NodePulls, now: float, *, takes_over: bool
) -> tuple[NodePulls, list[EndedPull]]:
    """Return the pulls as of now, and those that ended since.

    takes_over: nothing was followed before, so pulls may have begun before now.
    """
    bound: dict[str, BoundPod] = {}
    # Images that pods have pulled, by name of the node.
    images_on_node: dict[str, set[str]] = defaultdict(set)
    # Pods that are seen on their node for the first time.
    new: list[Pod] = []
    # uids of pods whose image can't be pulled. They are left out: how long they fail says nothing
    # about pulls, and the kubelet's Events tell their users.
    failing: set[str] = set()
    # uids of pods that the kubelet pulls nothing for yet.
    held_up = find_hold_ups(snapshot, now).keys()
    for pod in snapshot.pods.values():
        if not pod.node_name or pod.phase != "Pending" or pod.leaving:
            continue
        known = before.bound.get(pod.uid)
        if known is None or known.node != pod.node_name:
            new.append(pod)
        else:
            bound[pod.uid] = known
        images_on_node[pod.node_name].update(_pulled(pod))
        if any(container.waiting_reason in PULL_FAULTS for container in pod.containers):
            failing.add(pod.uid)
        if pod.uid in held_up and pod.uid in bound:
            # The pod's pulls begin when the hold-up is over.
            bound[pod.uid] = replace(bound[pod.uid], since=now)
    if new:
        bound |= _bind_new(new, snapshot, before, now, takes_over=takes_over)
    # A pod that runs has all of its images.
    for uid, known in before.bound.items():
        pod_now = snapshot.pods.get(known.key)
        if uid in bound or pod_now is None or pod_now.uid != uid:
            continue
        if pod_now.phase == "Running":
            images_on_node[known.node].update(known.lacking)
    for uid, known in bound.items():
        came = images_on_node[known.node]
        lacking = tuple(image for image in known.lacking if image not in came)
        bound[uid] = replace(known, lacking=lacking)
    queues: dict[str, tuple[QueuedPull, ...]] = {}
    ended: list[EndedPull] = []
    # By name of the node, by image: the pulls that pods now ask for.
    wanted: dict[str, dict[str, QueuedPull]] = defaultdict(dict)
    for uid, known in sorted(bound.items(), key=lambda item: item[1].place or 0):
        if uid in failing or uid in held_up:
            continue
        for image in known.lacking:
            wanted[known.node].setdefault(image, QueuedPull(image, known.since, known.place or 0))
    for node in wanted.keys() | before.queues.keys():
        queue, over = _next_queue(
            before.queues.get(node, ()), wanted[node], images_on_node[node], now
        )
        ended += over
        if queue:
            queues[node] = queue
    return NodePulls(bound, queues), ended


def _bind_new(
    new: Sequence[Pod], snapshot: Snapshot, before: NodePulls, now: float, *, takes_over: bool
) -> dict[str, BoundPod]:
    """By uid: pods that are seen on their nodes for the first time, with the images that they lack
    there.
    """
    images_on = _images_in_use(snapshot.pods.values(), {pod.node_name for pod in new})
    # Creation times have whole seconds. Sorting is stable, so pods of the same second keep the
    # order in which they were seen.
    next_place = 1 + max((pod.place or 0 for pod in before.bound.values()), default=0)
    bound = {}
    for place, pod in enumerate(sorted(new, key=lambda pod: pod.created), next_place):
        node = snapshot.nodes.get(pod.node_name)
        listed = node.images if node is not None else ()
        held = images_on[pod.node_name] | {normalise_reference(name) for name in listed}
        lacking = tuple(image for image in _images_of(pod) if image not in held)
        since = _began(pod, snapshot, now) if takes_over else now
        bound[pod.uid] = BoundPod(
            pod.key, pod.node_name, since, lacking, place if lacking else None
        )
    return bound


def _began(pod: Pod, snapshot: Snapshot, now: float) -> float:
    """When the pull that is under way for a pod may have begun.

    Not before the kubelet saw the pod, and not before the node's last pull ended.
    """
    ended = [event.at for event in snapshot.pull_events.values() if event.node == pod.node_name]
    return min(now, max((pod.started or now, *ended)))


def _next_queue(
    before: tuple[QueuedPull, ...],
    wanted: Mapping[str, QueuedPull],
    images_on_node: set[str],
    now: float,
) -> tuple[tuple[QueuedPull, ...], list[EndedPull]]:
    """Return a node's queue as of now, and its pulls that ended since `before`.

    wanted: by image. images_on_node: images that pods have pulled.
    """
    ended: list[EndedPull] = []
    queue: list[QueuedPull] = []
    # When the last pull was over: the next pull began then.
    free_at = 0.0
    for pull in before:
        begin = max(pull.begin, free_at)
        if pull.image in images_on_node:
            ended.append(EndedPull(pull.image, now - begin))
            free_at = now
        elif pull.image in wanted:
            queue.append(pull)
        else:
            # Its pods are gone. The kubelet ends the pull, but nobody waits for it.
            free_at = now
    if queue:
        queue[0] = queue[0]._replace(begin=max(queue[0].begin, free_at))
    known = {pull.image for pull in before}
    queue += [
        pull for image, pull in wanted.items() if image not in known and image not in images_on_node
    ]
    return tuple(queue), ended


def _images_of(pod: Pod) -> list[str]:
    """A pod's images, normalised, in the order in which the kubelet pulls them.

    Images of init containers come first.
    """
    main_first = [
        normalise_reference(image) for image in (*pod.spec.images, *pod.spec.volume_images) if image
    ]
    init = {
        normalise_reference(container.image)
        for container in pod.containers
        if container.init and container.image
    }
    return sorted(dict.fromkeys(main_first), key=lambda image: image not in init)


def _pulled(pod: Pod) -> set[str]:
    """A pod's images that its node has, as the statuses of its containers show."""
    begun = (
        container
        for container in pod.containers
        if container.image_id or container.running or container.terminated
    )
    return {normalise_reference(container.image) for container in begun if container.image}


def _images_in_use(pods: Iterable[Pod], nodes: set[str]) -> dict[str, set[str]]:
    """Images of pods on these nodes, by name of the node. Nodes don't list all that they hold."""
    images: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        if pod.node_name in nodes and pod.phase == "Running":
            images[pod.node_name].update(_images_of(pod))
        elif pod.node_name in nodes and pod.phase == "Pending":
            images[pod.node_name].update(_pulled(pod))
    return images
