"""Make one plan of popular images: pull the most used ones to nodes that lack them, within disk,
rate and count.

What nodes hold, what is being pulled and what failed is read from the cluster, so memory is never
needed for safety. Pulls don't work against the kubelet, which deletes unused images when the disk
is fuller than imageGCHighThresholdPercent (85): pulling ends well below that, nothing is pulled to
a node under pressure, and a node that lost an image that was pulled there rests. Nor against an
image cleaner (BinderHub's cordons its node while it deletes), nor against an autoscaler: a node
that is marked for removal, or has been empty for a while, gets nothing.
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
from roost_core.placement.kubelet_pulls import LONGEST_PULL_SECONDS
from roost_core.placement.labels import OWN_INSTANCE_LABEL, PLACEHOLDER_SET_LABEL

NAME: Final = "popular-images"
PLAN_AGAIN_SECONDS: Final = 60.0
WATCH_PULLS_SECONDS: Final = 10.0
# The cluster changes more often, but nothing is urgent.
PACE_SECONDS: Final = 10.0
# The assumed size of an image that no node lists: repo2docker's median of 1.6 GB on disk,
# compressed.
ASSUMED_IMAGE_BYTES: Final = 570_000_000
# Concurrent pulls of booked events' images: those who come would pull them all the same, and at
# once.
BOOKED_PARALLEL: Final = 20
# An empty node that has been Ready for longer may be about to be removed by an autoscaler.
NEW_NODE_SECONDS: Final = 600.0
# Pods that start on a node share its queue of pulls; one that has been stuck for longer than this
# is ignored.
STARTING_SECONDS: Final = 600.0
# If the scheduler hasn't found room by then, there is none.
BIND_SECONDS: Final = 120.0
# Kubelets retry by themselves; a pull that still fails after this is given up for now.
FAILING_SECONDS: Final = 60.0
# A kubelet reports a new image within 40 s as a rule, within five minutes at worst.
REPORT_SECONDS: Final = 300.0
# Pauses after a failure, and on a node that lost a pulled image; doubled each time, up to the last.
FIRST_REST_SECONDS: Final = 300.0
LOST_REST_SECONDS: Final = 3600.0
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
    """An image that was pulled to a node, at `since` (steady seconds)."""

    since: float
    image_bytes: int
    # A user's pod has run with it there since.
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
    # Bytes left to pull at `as_of`; may be negative after a large image.
    budget: float = 0.0
    as_of: float | None = None
    # By uid of the node, by image.
    pulled: Mapping[str, Mapping[str, PulledImage]] = field(default_factory=dict)
    # By image, and by uid of the node.
    rests: Mapping[str, BackOff] = field(default_factory=dict)
    # Images pulled so far, and those used afterwards.
    pulled_count: int = 0
    used_count: int = 0


def plan_popular_images(
    snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment
) -> Planned[PopularMemory]:
    """Count users, follow the pulls under way, and start those of the most used images, where
    allowed.

    Switched off, there is no right to delete the pods that are left: they are evicted where the
    placeholder mover has the right to. Elsewhere they end within an hour, and go with their owner,
    the controllers' ServiceAccount.
    """
    if not settings.counts_users and settings.release.events is None:
        return Planned(actions=_evictions(snapshot, settings), memory=memory)
    plan = _Plan(snapshot, memory, settings, now)
    plan.note_used()
    plan.follow_pods()
    plan.find_lost_images()
    plan.start_booked()
    plan.start_popular()
    return plan.planned()


class _Rests:
    """Images, and nodes by uid, that rest after failures: longer each time."""

    def __init__(self, before: Mapping[str, BackOff], steady: float) -> None:
        self._steady = steady
        self.by_key = {
            key: rest for key, rest in before.items() if steady < rest.until + LAST_REST_SECONDS
        }

    def holds(self, key: str) -> bool:
        """Whether it rests now."""
        rest = self.by_key.get(key)
        return rest is not None and rest.until > self._steady

    def begin(self, key: str, first_seconds: float = FIRST_REST_SECONDS) -> None:
        """Let it rest; the same failure, seen again, counts once."""
        before = self.by_key.get(key)
        self.by_key[key] = backed_off(before, first_seconds, LAST_REST_SECONDS, self._steady)

    def suspect(self, key: str) -> None:
        """Let it rest if it was suspected before: this failure may be another's fault."""
        if key in self.by_key:
            self.begin(key, FIRST_REST_SECONDS / 2)
        else:
            self.by_key[key] = BackOff(1, self._steady)

    def end(self, key: str) -> None:
        """Forget its failures."""
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
        passed = 0.0 if memory.as_of is None else max(0.0, now.steady - memory.as_of)
        self.budget = min(
            float(settings.bytes_per_minute),
            memory.budget + passed * settings.bytes_per_minute / 60.0,
        )
        self.pulled_count = memory.pulled_count
        self.used_count = memory.used_count
        self.gauges: dict[str, dict[tuple[str, ...], float]] = {}
        self.waits = [PLAN_AGAIN_SECONDS]
        self.pods_on = Counter(pod.node_name for pod in snapshot.pods.values())
        # Names of nodes where pods run, and where others' pods are about to start: kubelets pull
        # one after the other.
        self.occupied: set[str] = set()
        self.starting: set[str] = set()
        self._find_busy_nodes()

    def _find_busy_nodes(self) -> None:
        snapshot = self.snapshot
        for pod in snapshot.pods.values():
            if pull_pods.is_pull_pod(pod, snapshot.release, snapshot.namespace):
                continue
            if pod.phase != "Pending":
                # Any class: a DaemonSet's pod keeps no node.
                if pod.node_name not in self.occupied and self.settings.release.class_of(
                    pod, snapshot.namespaces
                ):
                    self.occupied.add(pod.node_name)
            elif pod.node_name and pod.created > self.now.wall - STARTING_SECONDS:
                self.starting.add(pod.node_name)

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
        """Read the pods that pull, delete those that are done, and let images and nodes rest after
        failures.
        """
        for pod in _pull_pods(self.snapshot):
            pull = pull_pods.read_pull(pod)
            disk = self.disks.get(pull.node)
            is_done = pull_pods.has_pulled(pod)
            if disk is not None and not is_done and not pod.is_finished:
                # Under way, too, while the pod is being deleted: the kubelet may still be pulling.
                self.under_way.setdefault(pull.node, []).append(pull)
                self.waits.append(WATCH_PULLS_SECONDS)
            if (
                is_done
                and disk is not None
                and pull.image not in self.pulled.setdefault(disk.uid, {})
            ):
                self.pulled[disk.uid][pull.image] = PulledImage(self.now.steady, pull.image_bytes)
                self.pulled_count += 1
                self.rests.end(pull.image)
                self.rests.end(disk.uid)
                self._tell(
                    disk,
                    "PopularImagePulled",
                    f"Image {pull.image} was pulled here ahead of its users.",
                )
            if is_done:
                why = f"image {pull.image} is on {pull.node}"
            else:
                why = self._why_end(pod, pull, disk)
            if why and not pod.leaving:
                # Asked for again with each plan until it is gone.
                self.actions.append(DeletePod.of(pod, why))

    def _why_end(self, pod: Pod, pull: pull_pods.PopularPull, disk: NodeDisk | None) -> str:
        """Return why a pod whose image isn't present yet is deleted; "" while it has more time."""
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
        # Pulls of one image that started together fail together, and count once. A node is at fault
        # if it fails again.
        if not self.rests.holds(pull.image):
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
        """Find images that were pulled and are gone: the kubelet or a cleaner needed the room."""
        for disk in self.disks.values():
            pulled = self.pulled.get(disk.uid, {})
            reported = [
                image
                for image, pull in pulled.items()
                if self.now.steady - pull.since >= REPORT_SECONDS
            ]
            is_cut = disk.is_cut or disk.node.has_cut_names
            lost = sorted(image for image in reported if image not in disk.holds and not is_cut)
            for image in lost:
                del pulled[image]
            if lost:
                self.rests.begin(disk.uid, LOST_REST_SECONDS)
                message = (
                    f"Image {lost[0]}, pulled here, was removed by the kubelet or a cleaner: none"
                    " is for an hour."
                )
                self._tell(disk, "PopularImageRemoved", message)

    def start_booked(self) -> None:
        """Start the pulls of booked events' images, on the nodes that keep room for their
        people.
        """
        if self.settings.release.events is None:
            return
        current = bookings_at(self.settings.release.events, self.snapshot.bookings, self.now.wall)
        if current.next_change is not None:
            self.waits.append(max(1.0, current.next_change - self.now.wall))
        # By name of the set, by image: people.
        by_set: dict[str, Counter[str]] = {}
        for booking in current.bookings:
            if booking.event.image:
                by_set.setdefault(booking.event.set_name, Counter())[booking.event.image] += (
                    booking.event.people
                )
        self.booked_images = frozenset(image for images in by_set.values() for image in images)
        for node, sets in sorted(self._nodes_of_sets(by_set.keys()).items()):
            disk = self.disks[node]
            # By image: the most people that one of the node's sets is booked for.
            people = Counter[str]()
            for name in sets:
                people |= by_set[name]
            by_people = sorted((-number, image) for image, number in people.items())
            lacks = [image for _, image in by_people if self._lacks(disk, image)]
            if lacks:
                self.waits.append(WATCH_PULLS_SECONDS)
            if lacks and not self._why_not(disk):
                for image in lacks:
                    if self._count() < BOOKED_PARALLEL and self._may_start(disk, image):
                        self._start(disk, image)

    def _nodes_of_sets(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Names of the sets by node that keeps their room."""
        wanted = {*names}
        sets_by_node = dict[str, set[str]]()
        if wanted:
            for pod in self.snapshot.pods.values():
                name = pod.labels.get(PLACEHOLDER_SET_LABEL)
                if name in wanted and pod.labels.get(OWN_INSTANCE_LABEL) == self.snapshot.release:
                    sets_by_node.setdefault(pod.node_name, set()).add(name)
        return {node: sets for node, sets in sets_by_node.items() if node in self.disks}

    def start_popular(self) -> None:
        """Start the pulls of the most used images, as far as every limit allows."""
        settings = self.settings
        popular = self.demand.most_used(settings.min_users) if settings.counts_users else ()
        states: Counter[str] = Counter()
        missing = 0
        queue: list[_NextPull] = []
        for name, disk in self.disks.items():
            state = self._why_not(disk) or self._why_not_popular(disk)
            states[state or "open"] += 1
            lacks = [
                (image, users)
                for image, users in self._wanted(disk, popular)
                if self._lacks(disk, image)
            ]
            missing += len(lacks)
            if state:
                continue
            for image, users in lacks:
                if self._may_start(disk, image):
                    queue.append(_NextPull(users, disk.node.created, name, image))
                    break
        queue.sort(key=_NextPull.order)
        for pull in queue[: max(0, settings.parallel - self._count())]:
            size = self._size(pull.image)
            price = min(size, settings.bytes_per_minute)
            if self.budget < price:
                # The most used image waits for budget; smaller ones don't overtake it, or it would
                # never get enough.
                self.waits.append(
                    max(1.0, (price - self.budget) * 60.0 / settings.bytes_per_minute)
                )
                break
            self._start(self.disks[pull.node], pull.image)
            self.budget -= size
        self.gauges["popular_images_nodes"] = {
            (state,): float(count) for state, count in states.items()
        }
        self.gauges["popular_images"] = {(): float(len(popular))}
        self.gauges["popular_images_missing"] = {(): float(missing)}
        self.gauges["popular_images_pulling"] = {(): float(self._count())}
        resting = sum(map(self.rests.holds, self.demand.users))
        self.gauges["popular_images_backing_off"] = {(): float(resting)}

    def _wanted(
        self, disk: NodeDisk, popular: Sequence[tuple[str, float]]
    ) -> Iterator[tuple[str, float]]:
        """Yield the images that the node should have: the most used of those whose pods may run
        there.
        """
        left = self.settings.per_node
        admitted: dict[object, bool] = {}
        for image, users in popular:
            if left <= 0:
                return
            if image in disk.managed:
                continue
            for rules in self.demand.rules[image]:
                if rules not in admitted:
                    admitted[rules] = node_admits(rules, disk.node)
                if admitted[rules]:
                    yield image, users
                    left -= 1
                    break

    def _lacks(self, disk: NodeDisk, image: str) -> bool:
        under_way = self.under_way.get(disk.node.name, ())
        is_coming = image in self.pulled.get(disk.uid, {}) or any(
            pull.image == image for pull in under_way
        )
        return image not in disk.holds and not is_coming

    def _why_not(self, disk: NodeDisk) -> str:
        """Return why nothing may be pulled to a node now; "" if something may be."""
        if disk.closed:
            return disk.closed
        if self.rests.holds(disk.uid):
            return "resting"
        if disk.full:
            return disk.full
        return "busy" if disk.node.name in self.starting else ""

    def _why_not_popular(self, disk: NodeDisk) -> str:
        """Return why only booked events' images may be pulled to a node."""
        ready_since = self.snapshot.sight_of(disk.node, self.now).ready_since
        is_new = ready_since is None or self.now.steady - ready_since < NEW_NODE_SECONDS
        return "" if disk.node.name in self.occupied or is_new else "empty"

    def _may_start(self, disk: NodeDisk, image: str) -> bool:
        under_way = self.under_way.get(disk.node.name, ())
        # On a full node, one more pod would pre-empt placeholders.
        is_full = self.pods_on[disk.node.name] >= disk.node.allocatable.get(PODS, 110)
        if under_way or is_full or self.rests.holds(image):
            return False
        pulled = self.pulled.get(disk.uid, {})
        unreported = sum(
            pull.image_bytes for name, pull in pulled.items() if name not in disk.holds
        )
        held_then = disk.image_bytes + unreported + self._size(image)
        free_then = free_disk_bytes(disk.node, self.settings, held_then)
        return free_then is not None and free_then >= 0

    def _start(self, disk: NodeDisk, image: str) -> None:
        pull = pull_pods.PopularPull(image, disk.node.name, self._size(image))
        body = pull_pods.pull_pod(self.settings, disk.node, pull)
        whose = "an event is booked with" if image in self.booked_images else "many users run"
        why = f"{whose} {image}, and {pull.node} lacks it"
        self.actions.append(CreatePod(body=body, why=why))
        self.under_way.setdefault(pull.node, []).append(pull)
        self.waits.append(WATCH_PULLS_SECONDS)

    def _count(self) -> int:
        return sum(map(len, self.under_way.values()))

    def _size(self, image: str) -> int:
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
    """Evict what is left of the time when images were pulled, by the mover's right."""
    if not settings.release.moves_placeholders:
        return ()
    why = "popular images and events are off"
    return [EvictPod.of(pod, why) for pod in _pull_pods(snapshot) if not pod.leaving]


def _cut(failure: str) -> str:
    """Shorten a kubelet's message for an Event; its end says what was wrong."""
    return failure if len(failure) <= 300 else f"{failure[:60]} … {failure[-240:]}"


CONTROLLER: Final = Controller(
    name=NAME,
    # Switched off, it still runs, so that its gauges go. Its rights over pods go with the feature:
    # pods that are left end by their deadline, and go with their ServiceAccount.
    read=read_popular_settings,
    plan=plan_popular_images,
    pace_seconds=PACE_SECONDS,
    empty=PopularMemory(),
    gauges=GAUGES,
)
