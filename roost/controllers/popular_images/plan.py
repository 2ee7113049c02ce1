"""Make one plan of popular images: pull the images with the most users to nodes that lack them.

Three limits hold: free disk, bytes a minute, and pulls at the same time. What nodes hold and what
is being pulled is read from the cluster, so a new leader, which remembers nothing, does no harm.

Pulls mustn't work against others:

- The kubelet deletes unused images when the disk is fuller than imageGCHighThresholdPercent (85).
  So pulling ends well below that, and nothing is pulled to a node under pressure.
- An image cleaner deletes images, too. BinderHub's cordons its node meanwhile, and a cordoned node
  gets nothing. A node that lost an image that was pulled there rests.
- An autoscaler removes nodes. A node that is marked for removal, or that has been empty for a
  while, gets nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from roost.controllers.contract.actions import (
    Action,
    CreatePod,
    DeletePod,
    EvictPod,
    Notice,
    PlanGauge,
    Planned,
)
from roost.controllers.contract.back_off import BackOff, backed_off
from roost.controllers.contract.bookings import bookings_at
from roost.controllers.contract.planner import Controller
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.popular_images import pull_pods
from roost.controllers.popular_images.node_disks import NodeDisk, free_disk_bytes, read_disk
from roost.controllers.popular_images.settings import (
    HALF_LIFE_SECONDS,
    PopularSettings,
    read_popular_settings,
)
from roost.controllers.popular_images.user_counts import ImageDemand, count_users, images_of
from roost_core.objects.node import node_admits
from roost_core.objects.pod import Pod
from roost_core.objects.requests import PODS
from roost_core.objects.selectors import NodeRules
from roost_core.placement.kubelet_pulls import LONGEST_PULL_SECONDS
from roost_core.placement.labels import OWN_INSTANCE_LABEL, PLACEHOLDER_SET_LABEL

NAME: Final = "popular-images"
PLAN_AGAIN_SECONDS: Final = 60.0
WATCH_PULLS_SECONDS: Final = 10.0
# The least time between two plans. The cluster changes more often, but nothing is urgent.
PACE_SECONDS: Final = 10.0
# The assumed size of an image that no node lists, in bytes as nodes report them: compressed.
# repo2docker's median image has 1.6 GB on disk, and this is its compressed size.
ASSUMED_IMAGE_BYTES: Final = 570_000_000
# Pulls of booked events' images at the same time. Without them, the event's people would cause the
# same pulls, and all at once.
BOOKED_PARALLEL: Final = 20
# An empty node that has been Ready for longer may be about to be removed by an autoscaler.
NEW_NODE_SECONDS: Final = 600.0
# While a pod starts on a node, nothing is pulled there: the pod's own images would have to wait. A
# pod that is older than this, and hasn't started, is stuck and doesn't count.
STARTING_SECONDS: Final = 600.0
# If the scheduler hasn't placed a pull's pod by then, its node has no room for one more pod.
BIND_SECONDS: Final = 120.0
# Kubelets retry by themselves. A pull that still fails after this is given up for now.
FAILING_SECONDS: Final = 60.0
# A kubelet reports a new image within 40 s as a rule, within five minutes at worst.
REPORT_SECONDS: Final = 300.0
# The first rest of an image or a node after a failed pull. Each further rest is twice as long.
FIRST_REST_SECONDS: Final = 300.0
# The first rest of a node that lost a pulled image.
LOST_REST_SECONDS: Final = 3600.0
# The longest rest.
LAST_REST_SECONDS: Final = 24 * 3600.0

GAUGES: Final = (
    PlanGauge("popular_images", "Images with enough users to be pulled to nodes."),
    PlanGauge("popular_images_missing", "Wanted images that nodes lack, summed over nodes."),
    PlanGauge("popular_images_pulling", "Popular images being pulled, over all nodes."),
    PlanGauge(
        "popular_images_backing_off", "Popular images whose pull failed and that wait for a retry."
    ),
    PlanGauge(
        "popular_images_pulled",
        "Images pulled to nodes since this replica leads, by whether a user's pod has run with them"
        " there since.",
        ("used",),
    ),
    PlanGauge(
        "popular_images_nodes",
        "Nodes by whether popular images may be pulled to them, or why not.",
        ("state",),
    ),
)


class PulledImage(NamedTuple):
    """An image that was pulled to a node."""

    # When the pull was seen to be done, in steady seconds.
    since: float
    image_bytes: int
    # Whether a user's pod has run with it on that node since.
    used: bool = False


class _NextPull(NamedTuple):
    """The most used image that a node lacks."""

    users: float
    # When the node was created, in Unix time.
    node_created: float
    node: str
    image: str

    def order(self) -> tuple[float, float, str, str]:
        """The most used first; among equals the newest node, which holds least."""
        return -self.users, -self.node_created, self.node, self.image


@dataclass(frozen=True, slots=True)
class PopularMemory:
    """What is remembered from plan to plan; times are steady seconds."""

    demand: ImageDemand = field(default_factory=ImageDemand)
    # By name of the node.
    disks: Mapping[str, NodeDisk] = field(default_factory=dict)
    # Bytes that might be pulled at `as_of`; negative after a large image.
    budget: float = 0.0
    # When this was written; None before the first plan.
    as_of: float | None = None
    # By uid of the node, by image.
    pulled: Mapping[str, Mapping[str, PulledImage]] = field(default_factory=dict)
    # Rests of images, by the image, and rests of nodes, by the uid.
    rests: Mapping[str, BackOff] = field(default_factory=dict)
    # How many images were pulled so far.
    pulled_count: int = 0
    # How many of them a user's pod has run with on that node.
    used_count: int = 0


def plan_popular_images(
    snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment
) -> Planned[PopularMemory]:
    """Count users, follow the pulls under way, and start new pulls where the limits allow it.

    If popular images and events are switched off, the controllers may not delete pods. Pods that
    still pull are then evicted, if the placeholder mover's right to evict is there. Else they end
    by themselves within an hour.
    """
    is_off = not settings.counts_users and settings.release.events is None
    if is_off:
        return Planned(actions=_evictions(snapshot, settings), memory=memory)
    plan = _Plan(snapshot, memory, settings, now)
    plan.note_used()
    plan.follow_pods()
    plan.find_lost_images()
    plan.start_booked()
    plan.start_popular()
    return plan.planned()


class _Rests:
    """What rests after failures, longer each time.

    A key is an image, or a node's uid. While it rests, the image is pulled nowhere, or nothing is
    pulled to the node.
    """

    def __init__(self, before: Mapping[str, BackOff], steady: float) -> None:
        self._steady = steady
        # Failures are forgotten some time after the rest has ended.
        self.by_key = {
            key: rest for key, rest in before.items() if steady < rest.until + LAST_REST_SECONDS
        }

    def rests(self, key: str) -> bool:
        """Whether the image or node rests now."""
        rest = self.by_key.get(key)
        return rest is not None and rest.until > self._steady

    def begin(self, key: str, first_seconds: float = FIRST_REST_SECONDS) -> None:
        """Begin a rest. If the image or node rests already, this changes nothing."""
        before = self.by_key.get(key)
        self.by_key[key] = backed_off(before, first_seconds, LAST_REST_SECONDS, self._steady)

    def suspect(self, key: str) -> None:
        """Note a failure that may have another cause. Only the second failure begins a rest."""
        if key in self.by_key:
            # As the second failure, it doubles to FIRST_REST_SECONDS.
            self.begin(key, FIRST_REST_SECONDS / 2)
        else:
            self.by_key[key] = BackOff(failures=1, until=self._steady)

    def end(self, key: str) -> None:
        """End the rest, and forget the failures."""
        self.by_key.pop(key, None)


class _Plan:
    """One plan in the making."""

    def __init__(
        self, snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment
    ) -> None:
        self.snapshot = snapshot
        self.memory = memory
        self.settings = settings
        self.now = now
        self.demand, self.started = count_users(
            memory.demand,
            snapshot.pods.values(),
            lambda pod: settings.release.is_users(pod, snapshot.namespaces),
            HALF_LIFE_SECONDS,
            now.steady,
        )
        self.disks: dict[str, NodeDisk] = {}
        for name, node in snapshot.nodes.items():
            disk = memory.disks.get(name)
            if disk is None or disk.node is not node:
                disk = read_disk(node, settings)
            self.disks[name] = disk
        self.sizes: dict[str, int] = {}
        uids = {disk.uid for disk in self.disks.values()}
        self.pulled = {uid: dict(images) for uid, images in memory.pulled.items() if uid in uids}
        self.rests = _Rests(memory.rests, now.steady)
        # By name of the node.
        self.under_way: dict[str, list[pull_pods.PopularPull]] = {}
        self.actions: list[Action] = []
        self.booked_images: frozenset[str] = frozenset()
        # Bytes that may be pulled now. The budget grows with time, up to that of a minute.
        seconds_since = 0.0 if memory.as_of is None else max(0.0, now.steady - memory.as_of)
        grown_by = seconds_since * settings.bytes_per_minute / 60.0
        self.budget = min(float(settings.bytes_per_minute), memory.budget + grown_by)
        self.pulled_count = memory.pulled_count
        self.used_count = memory.used_count
        self.gauges: dict[str, dict[tuple[str, ...], float]] = {}
        self.waits = [PLAN_AGAIN_SECONDS]
        self.pods_on = Counter(pod.node_name for pod in snapshot.pods.values())
        # Names of nodes on which a pod of a class runs. An autoscaler keeps them.
        self.occupied: set[str] = set()
        # Names of nodes on which a pod is about to start. A kubelet pulls one image after the
        # other, so a pull of ours could delay that pod.
        self.starting: set[str] = set()
        self._find_busy_nodes()

    def _find_busy_nodes(self) -> None:
        """Fill `occupied` and `starting`."""
        snapshot = self.snapshot
        for pod in snapshot.pods.values():
            if pull_pods.is_pull_pod(pod, snapshot.release, snapshot.namespace):
                continue
            if pod.phase == "Pending":
                is_stuck = pod.created <= self.now.wall - STARTING_SECONDS
                if pod.node_name and not is_stuck:
                    self.starting.add(pod.node_name)
            elif pod.node_name not in self.occupied:
                # A pod without a class, as a DaemonSet's, doesn't keep an autoscaler away.
                has_class = bool(self.settings.release.class_of(pod, snapshot.namespaces))
                if has_class:
                    self.occupied.add(pod.node_name)

    def note_used(self) -> None:
        """Count the pulled images with which a user's pod has begun to run."""
        for pod in self.started:
            disk = self.disks.get(pod.node_name)
            pulled = self.pulled.get(disk.uid, {}) if disk is not None else {}
            for image in images_of(pod.spec):
                if image in pulled and not pulled[image].used:
                    pulled[image] = pulled[image]._replace(used=True)
                    self.used_count += 1

    def follow_pods(self) -> None:
        """Read the pods that pull, and delete those that are done or have failed."""
        for pod in _pull_pods(self.snapshot):
            pull = pull_pods.read_pull(pod)
            disk = self.disks.get(pull.node)
            is_done = pull_pods.has_pulled(pod)
            if is_done:
                if disk is not None:
                    self._note_pulled(disk, pull)
                why = f"image {pull.image} is on {pull.node}"
            else:
                if disk is not None and not pod.is_finished:
                    # A pod that is being deleted counts, too: the kubelet may still be pulling.
                    self.under_way.setdefault(pull.node, []).append(pull)
                    self.waits.append(WATCH_PULLS_SECONDS)
                why = self._judge_unfinished(pod, pull, disk)
            if why and not pod.leaving:
                # Each plan asks for it again, until the pod is gone.
                self.actions.append(DeletePod.of(pod, why))

    def _note_pulled(self, disk: NodeDisk, pull: pull_pods.PopularPull) -> None:
        """Remember that an image came to a node, if no earlier plan has."""
        pulled = self.pulled.setdefault(disk.uid, {})
        if pull.image in pulled:
            return
        pulled[pull.image] = PulledImage(self.now.steady, pull.image_bytes)
        self.pulled_count += 1
        self.rests.end(pull.image)
        self.rests.end(disk.uid)
        self._tell(
            disk, "PopularImagePulled", f"Image {pull.image} was pulled here ahead of its users."
        )

    def _judge_unfinished(
        self, pod: Pod, pull: pull_pods.PopularPull, disk: NodeDisk | None
    ) -> str:
        """Return why a pod that hasn't pulled its image is deleted; "" while it has more time.

        After a failure, the image or the node begins to rest.
        """
        age = self.now.wall - pod.created
        failure = pull_pods.failure_of(pod)
        if disk is None:
            return f"node {pull.node} is gone"
        if disk.closed:
            return f"nothing is pulled to {pull.node} now: {disk.closed}"
        if pull_pods.was_ended_by_node(pod):
            self.rests.begin(disk.uid)
            return f"its kubelet ended it: {pod.reason}"
        if not pod.node_name and age >= BIND_SECONDS:
            self.rests.begin(disk.uid)
            return f"no room on {pull.node} for a pod that requests nothing"
        has_failed = bool(failure) and (age >= FAILING_SECONDS or pod.is_finished)
        if not has_failed and age < LONGEST_PULL_SECONDS:
            return ""
        failure = _cut(failure or f"not pulled within {LONGEST_PULL_SECONDS / 60:.0f} minutes")
        # Pulls of one image that started together fail together, and count as one failure. The
        # fault may be the image's or the node's: a node rests only if it fails again.
        if not self.rests.rests(pull.image):
            self.rests.begin(pull.image)
            self.rests.suspect(disk.uid)
            minutes = (self.rests.by_key[pull.image].until - self.now.steady) / 60
            message = (
                f"Image {pull.image} can't be pulled here ({failure}); it is retried in"
                f" {minutes:.0f} minutes."
            )
            self._tell(disk, "PopularImageFailed", message, warning=True)
        return f"image {pull.image} can't be pulled: {failure}"

    def find_lost_images(self) -> None:
        """Find images that were pulled to a node and are gone. Let that node rest.

        The kubelet or an image cleaner needed the room.
        """
        for disk in self.disks.values():
            lists_all = not disk.is_cut and not disk.node.has_cut_names
            if not lists_all:
                # An image that the node doesn't list may be there all the same.
                continue
            pulled = self.pulled.get(disk.uid, {})
            lost = sorted(
                image
                for image, pull in pulled.items()
                if self.now.steady - pull.since >= REPORT_SECONDS and image not in disk.holds
            )
            for image in lost:
                del pulled[image]
            if lost:
                self.rests.begin(disk.uid, LOST_REST_SECONDS)
                message = (
                    f"Image {lost[0]}, pulled here, was removed by the kubelet or a cleaner:"
                    " nothing is pulled here for a while."
                )
                self._tell(disk, "PopularImageRemoved", message)

    def start_booked(self) -> None:
        """Start the pulls of booked events' images, on nodes that keep room for these events."""
        if self.settings.release.events is None:
            return
        current = bookings_at(self.settings.release.events, self.snapshot.bookings, self.now.wall)
        if current.next_change is not None:
            self.waits.append(max(1.0, current.next_change - self.now.wall))
        # How many people are booked: by name of the placeholder set, by image.
        people_by_set: dict[str, Counter[str]] = {}
        for booking in current.bookings:
            event = booking.event
            if event.image:
                people = people_by_set.setdefault(event.set_name, Counter())
                people[event.image] += event.people
        self.booked_images = frozenset(
            image for people in people_by_set.values() for image in people
        )
        for node, sets in sorted(self._sets_by_node(people_by_set.keys()).items()):
            disk = self.disks[node]
            # By image. If several of the node's sets have an image, the largest number counts.
            most_people = Counter[str]()
            for name in sets:
                most_people |= people_by_set[name]
            by_people = sorted(most_people, key=lambda image: (-most_people[image], image))
            missing = [image for image in by_people if self._is_missing(disk, image)]
            if not missing:
                continue
            self.waits.append(WATCH_PULLS_SECONDS)
            if self._why_closed_to_all(disk):
                continue
            for image in missing:
                if self._count_pulls() < BOOKED_PARALLEL and self._may_start(disk, image):
                    self._start(disk, image)

    def _sets_by_node(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Which of these placeholder sets have placeholders on a node, by the node's name."""
        wanted = {*names}
        if not wanted:
            return {}
        sets_by_node = dict[str, set[str]]()
        for pod in self.snapshot.pods.values():
            name = pod.labels.get(PLACEHOLDER_SET_LABEL)
            is_ours = pod.labels.get(OWN_INSTANCE_LABEL) == self.snapshot.release
            if name in wanted and is_ours and pod.node_name in self.disks:
                sets_by_node.setdefault(pod.node_name, set()).add(name)
        return sets_by_node

    def start_popular(self) -> None:
        """Start the pulls of the most used images, as far as every limit allows.

        A node gets one pull at a time: the most used of the images that it lacks.
        """
        settings = self.settings
        popular = self.demand.most_used(settings.min_users) if settings.counts_users else ()
        # How many nodes are open to popular images, or closed for which reason.
        states: Counter[str] = Counter()
        missing_count = 0
        queue: list[_NextPull] = []
        for name, disk in self.disks.items():
            missing = [
                (image, users)
                for image, users in self._wanted(disk, popular)
                if self._is_missing(disk, image)
            ]
            missing_count += len(missing)
            why_closed = self._why_closed_to_all(disk) or self._why_closed_to_popular(disk)
            states[why_closed or "open"] += 1
            if why_closed:
                continue
            for image, users in missing:
                if self._may_start(disk, image):
                    queue.append(_NextPull(users, disk.node.created, name, image))
                    break
        queue.sort(key=_NextPull.order)
        pulls_left = max(0, settings.parallel - self._count_pulls())
        for pull in queue[:pulls_left]:
            image_bytes = self._image_bytes(pull.image)
            # A larger image than a minute's bytes starts with a full budget, and overdraws it.
            needed = min(image_bytes, settings.bytes_per_minute)
            if self.budget < needed:
                # The most used image waits for budget. Smaller images don't overtake it: they
                # would use up the budget again and again.
                seconds = (needed - self.budget) * 60.0 / settings.bytes_per_minute
                self.waits.append(max(1.0, seconds))
                break
            self._start(self.disks[pull.node], pull.image)
            self.budget -= image_bytes
        self.gauges["popular_images_nodes"] = {
            (state,): float(count) for state, count in states.items()
        }
        self.gauges["popular_images"] = {(): float(len(popular))}
        self.gauges["popular_images_missing"] = {(): float(missing_count)}
        self.gauges["popular_images_pulling"] = {(): float(self._count_pulls())}
        resting = sum(map(self.rests.rests, self.demand.users))
        self.gauges["popular_images_backing_off"] = {(): float(resting)}

    def _wanted(
        self, disk: NodeDisk, popular: Sequence[tuple[str, float]]
    ) -> Iterator[tuple[str, float]]:
        """Yield the images that the node should have, each with its users.

        They are the most used of the images whose pods may run on the node, `per_node` at most.
        """
        left = self.settings.per_node
        # Many images have the same rules.
        admitted: dict[NodeRules, bool] = {}
        for image, users in popular:
            if left <= 0:
                return
            if image in disk.managed:
                # The puller brings it.
                continue
            for rules in self.demand.rules[image]:
                if rules not in admitted:
                    admitted[rules] = node_admits(rules, disk.node)
                if admitted[rules]:
                    yield image, users
                    left -= 1
                    break

    def _is_missing(self, disk: NodeDisk, image: str) -> bool:
        """Whether a node neither holds an image nor is about to."""
        is_pulled = image in self.pulled.get(disk.uid, {})
        under_way = self.under_way.get(disk.node.name, ())
        is_being_pulled = any(pull.image == image for pull in under_way)
        return image not in disk.holds and not is_pulled and not is_being_pulled

    def _why_closed_to_all(self, disk: NodeDisk) -> str:
        """Return why nothing may be pulled to a node now; "" if something may be."""
        if disk.closed:
            return disk.closed
        if self.rests.rests(disk.uid):
            return "resting"
        if disk.full:
            return disk.full
        return "busy" if disk.node.name in self.starting else ""

    def _why_closed_to_popular(self, disk: NodeDisk) -> str:
        """Return why only booked events' images may be pulled to a node; "" if others may, too."""
        ready_since = self.snapshot.sight_of(disk.node, self.now).ready_since
        is_new = ready_since is None or self.now.steady - ready_since < NEW_NODE_SECONDS
        is_occupied = disk.node.name in self.occupied
        return "" if is_occupied or is_new else "empty"

    def _may_start(self, disk: NodeDisk, image: str) -> bool:
        """Whether an image may be pulled to a node that is open: now, and within its disk."""
        is_pulling = bool(self.under_way.get(disk.node.name))
        # On a node with as many pods as it may have, one more would pre-empt a placeholder.
        has_most_pods = self.pods_on[disk.node.name] >= disk.node.allocatable.get(PODS, 110)
        if is_pulling or has_most_pods or self.rests.rests(image):
            return False
        pulled = self.pulled.get(disk.uid, {})
        unreported_bytes = sum(
            pull.image_bytes for name, pull in pulled.items() if name not in disk.holds
        )
        bytes_then = disk.image_bytes + unreported_bytes + self._image_bytes(image)
        free_then = free_disk_bytes(disk.node, self.settings, bytes_then)
        return free_then is not None and free_then >= 0

    def _start(self, disk: NodeDisk, image: str) -> None:
        """Create the pod that pulls an image to a node."""
        pull = pull_pods.PopularPull(image, disk.node.name, self._image_bytes(image))
        body = pull_pods.pull_pod(self.settings, disk.node, pull)
        is_booked = image in self.booked_images
        whose = "an event is booked with" if is_booked else "many users run"
        why = f"{whose} {image}, and {pull.node} lacks it"
        self.actions.append(CreatePod(body=body, why=why))
        self.under_way.setdefault(pull.node, []).append(pull)
        self.waits.append(WATCH_PULLS_SECONDS)

    def _count_pulls(self) -> int:
        """How many pulls are under way, over all nodes."""
        return sum(map(len, self.under_way.values()))

    def _image_bytes(self, image: str) -> int:
        """The size of an image, as nodes report it."""
        if image not in self.sizes:
            listed = max((disk.holds.get(image, 0) for disk in self.disks.values()), default=0)
            self.sizes[image] = listed or ASSUMED_IMAGE_BYTES
        return self.sizes[image]

    def _tell(self, disk: NodeDisk, reason: str, message: str, *, warning: bool = False) -> None:
        self.actions.append(
            Notice.on_node(disk.node.name, disk.uid, reason, message, warning=warning)
        )

    def planned(self) -> Planned[PopularMemory]:
        """Return the finished plan."""
        unused = self.pulled_count - self.used_count
        self.gauges["popular_images_pulled"] = {
            ("yes",): float(self.used_count),
            ("no",): float(unused),
        }
        memory = PopularMemory(
            demand=self.demand,
            disks=self.disks,
            budget=self.budget,
            as_of=self.now.steady,
            pulled=self.pulled,
            rests=self.rests.by_key,
            pulled_count=self.pulled_count,
            used_count=self.used_count,
        )
        return Planned(
            actions=self.actions,
            memory=memory,
            wake_after_seconds=min(self.waits),
            gauges=self.gauges,
        )


def _pull_pods(snapshot: Snapshot) -> list[Pod]:
    pods = (
        pod
        for pod in snapshot.pods.values()
        if pull_pods.is_pull_pod(pod, snapshot.release, snapshot.namespace)
    )
    return sorted(pods, key=lambda pod: pod.name)


def _evictions(snapshot: Snapshot, settings: PopularSettings) -> Sequence[EvictPod]:
    """Evict the pods that still pull. Only the placeholder mover gives the right to evict."""
    if not settings.release.moves_placeholders:
        return ()
    why = "popular images and events are off"
    return [EvictPod.of(pod, why) for pod in _pull_pods(snapshot) if not pod.leaving]


def _cut(failure: str) -> str:
    """Shorten a kubelet's message for an Event.

    The beginning names the step that failed, and the end says why. The middle is left out.
    """
    return failure if len(failure) <= 300 else f"{failure[:60]} … {failure[-240:]}"


CONTROLLER: Final = Controller(
    name=NAME,
    # It also runs while it is switched off: it evicts the pods that still pull, if it may.
    read=read_popular_settings,
    plan=plan_popular_images,
    pace_seconds=PACE_SECONDS,
    empty=PopularMemory(),
    gauges=GAUGES,
)
