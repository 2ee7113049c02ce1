"""Make one plan of popular images: pull those that most users want to nodes that lack them, within every limit.

Popularity only decides which images (`wanted`). What nodes hold, what is being pulled and what failed is read from the
cluster (`pulls`), so memory is never needed for safety.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import CreatePod, DeletePod, GaugeDefinition, Outcome, Planned
from roost.controllers.contract.planner import MemoryPlanner
from roost.controllers.popular_images.booked import booked_images
from roost.controllers.popular_images.memory import PopularMemory
from roost.controllers.popular_images.node_views import disk_bytes_of
from roost.controllers.popular_images.off import OffMemory, note_popular_images_off, plan_popular_images_off
from roost.controllers.popular_images.popularity import UNCOUNTED, Launch, count_users, launch_from, users_by_use
from roost.controllers.popular_images.pulls import Pulls
from roost.controllers.popular_images.scene import Scene
from roost.controllers.popular_images.settings import (
    BOOKED_PARALLEL,
    EMPTY_NODE_SECONDS,
    NEW_NODE_SECONDS,
    read_popular_settings,
)
from roost.controllers.popular_images.wanted import find_popular, large_uses, wanted_lists
from roost_core.placement.classes import Classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from roost.controllers.contract.actions import Done
    from roost.controllers.contract.planner import Planner, Sources
    from roost.controllers.contract.snapshot import Moment, Snapshot
    from roost.controllers.popular_images.node_views import NodeView
    from roost.controllers.popular_images.popularity import Use
    from roost.controllers.popular_images.settings import PopularSettings
    from roost.controllers.popular_images.wanted import Wanted
    from roost_core.objects.pod import Pod
    from roost_core.placement.settings_reader import Reader

NAME: Final = "popular-images"
PLAN_AGAIN_SECONDS: Final = 60.0
WATCH_PULLS_SECONDS: Final = 10.0
PACE_SECONDS: Final = 10.0

GAUGES: Final = (
    GaugeDefinition("popular_images", "Images with enough users to be pulled to nodes."),
    GaugeDefinition("popular_image_users", "Users of the most wanted images, decayed.", ("image",)),
    GaugeDefinition("popular_images_missing", "Wanted images that nodes lack, summed over nodes."),
    GaugeDefinition("popular_images_held", "Wanted images that nodes hold, summed over nodes."),
    GaugeDefinition("popular_images_pulling", "Popular images being pulled, over all nodes."),
    GaugeDefinition("popular_images_backing_off", "Popular images whose pull failed and that wait for a retry."),
    GaugeDefinition("popular_images_budget_bytes", "Bytes that may be pulled right now."),
    GaugeDefinition(
        "popular_images_nodes", "Nodes by whether popular images may be pulled to them, or why not.", ("state",)
    ),
)


def plan_at_pace(
    snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment
) -> Planned[PopularMemory]:
    """Run `plan_popular_images` at most every PACE_SECONDS: the cluster changes more often, but nothing is urgent."""
    if memory.as_of is not None and 0.0 <= now.steady - memory.as_of < PACE_SECONDS:
        seconds_left = memory.as_of + PACE_SECONDS - now.steady
        return Planned(actions=(), memory=memory, wake_after_seconds=seconds_left, gauges=memory.gauges)
    return plan_popular_images(snapshot, memory, settings, now)


def plan_popular_images(
    snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment
) -> Planned[PopularMemory]:
    """Count users, follow the pulls under way, and start those that most users want, where allowed."""
    popularity = count_users(
        memory.popularity,
        snapshot.pods.values(),
        LaunchReader(settings, snapshot.namespaces),
        settings.half_life_seconds,
        now.steady,
    )
    memory = replace(memory, popularity=popularity)
    scene = Scene(snapshot, memory, settings, now)
    pulls = Pulls(scene, memory, settings, now)
    pulls.follow_pods()
    pulls.find_lost_images()
    work = _Work(scene, pulls, memory, settings, now)
    work.start_booked()
    work.start_pulls(users_by_use(popularity) if settings.counts_users else {})
    return work.planned()


def note_popular_images(memory: PopularMemory, done: Sequence[Done], _now: Moment) -> PopularMemory:
    """Drop what was certainly not carried out, and return its bytes to the budget.

    A failed request may have been carried out all the same, so its pod is expected.
    """
    started, deleted, budget = dict(memory.started), dict(memory.deleted), memory.budget
    for action, outcome in done:
        if isinstance(action, CreatePod) and outcome in (Outcome.HELD_BACK, Outcome.REFUSED):
            refused = started.pop(action.body["metadata"]["name"], None)
            budget += refused.pull.image_bytes if refused is not None else 0
        elif isinstance(action, DeletePod) and outcome not in (Outcome.DONE, Outcome.GONE):
            deleted.pop(action.uid, None)
    return replace(memory, started=started, deleted=deleted, budget=budget)


class LaunchReader:
    """Reads a pod's Launch, for `count_users`."""

    def __init__(self, settings: PopularSettings, namespaces: Mapping[str, Mapping[str, str]] | None) -> None:
        """namespaces: labels, as a Snapshot has them."""
        self._classes = Classes(settings)
        self._namespaces = namespaces
        # By id of the spec and image ids: most pods share few of them.
        self._launches: dict[tuple[int, tuple[str, ...]], Launch] = {}

    def __call__(self, pod: Pod) -> Launch | None:
        """Return None for a pod without a class, UNCOUNTED for one of a class that isn't counted."""
        pod_class = self._classes.classify(pod.labels, pod.namespace, self._namespaces)
        if pod_class is None:
            return None
        if not pod_class.is_of_users:
            return UNCOUNTED
        key = (id(pod.spec), tuple([container.image_id for container in pod.containers]))
        launch = self._launches.get(key)
        if launch is None:
            launch = self._launches[key] = launch_from(pod)
        return launch


class _Work:
    """One plan in the making."""

    def __init__(
        self, scene: Scene, pulls: Pulls, memory: PopularMemory, settings: PopularSettings, now: Moment
    ) -> None:
        self.scene = scene
        self.pulls = pulls
        self.memory = memory
        self.settings = settings
        self.now = now
        passed = 0.0 if memory.as_of is None else max(0.0, now.steady - memory.as_of)
        self.budget = min(float(settings.bytes_per_minute), memory.budget + passed * settings.bytes_per_minute / 60.0)
        self.gauges: dict[str, dict[tuple[str, ...], float]] = {}
        self.wait_for_budget: float | None = None
        self.wait_for_event: float | None = None

    def start_booked(self) -> None:
        """Start the pulls of booked events' images, on the nodes that keep room for their people."""
        if self.settings.events is None:
            return
        booked, self.wait_for_event = booked_images(self.scene, self.settings.events, self.now.wall)
        self.pulls.booked = frozenset(image.image for images in booked.values() for image in images)
        for name, images in sorted(booked.items()):
            view = self.scene.views[name]
            lacks = self._lacks(name, view, images)
            if lacks:
                self.wait_for_event = WATCH_PULLS_SECONDS
            if not lacks or self._why_not(name, view):
                continue
            for image in lacks:
                if self.pulls.count < BOOKED_PARALLEL and self._may_start(name, view, image):
                    self.pulls.start(name, view, image)

    def start_pulls(self, users: Mapping[Use, float]) -> None:
        """Start the pulls that most users want, as far as every limit allows."""
        users = large_uses(users, self.settings.min_users)
        popular = find_popular(users, self.settings.min_users)
        self._gauge("popular_images", len(popular))
        top = sorted(popular, key=lambda image: (-popular[image], image))[: self.settings.per_node]
        self.gauges["popular_image_users"] = {(image,): popular[image] for image in top}
        lists = wanted_lists(users, popular, self.scene, self.settings, self.memory.popularity.digests)
        queue: list[tuple[float, float, str, int]] = []
        # By node in the queue: the images that it lacks, best first.
        lacking: dict[str, list[Wanted]] = {}
        states: Counter[str] = Counter()
        missing = held = 0
        for name, view in self.scene.views.items():
            wanted = lists.get((view.admits, view.pullers), ())
            lacks = self._lacks(name, view, wanted)
            missing += len(lacks)
            held += len(wanted) - len(lacks)
            state = self._why_not(name, view)
            states[state or "open"] += 1
            if state or not lacks:
                continue
            lacking[name] = lacks
            heapq.heappush(queue, self._turn(name, view, lacks, 0))
        self._gauge("popular_images_missing", missing)
        self._gauge("popular_images_held", held)
        self.gauges["popular_images_nodes"] = {(state,): float(count) for state, count in states.items()}
        slots = self.settings.parallel_per_cluster - self.pulls.count
        while queue and slots > 0:
            _, _, name, index = heapq.heappop(queue)
            view, image = self.scene.views[name], lacking[name][index]
            if index + 1 < len(lacking[name]):
                heapq.heappush(queue, self._turn(name, view, lacking[name], index + 1))
            if not self._may_start(name, view, image):
                continue
            price = min(image.image_bytes, self.settings.bytes_per_minute)
            if self.budget < price:
                # The most wanted image waits for budget; smaller ones don't overtake it, or it would never get enough.
                self.wait_for_budget = (price - self.budget) * 60.0 / self.settings.bytes_per_minute
                break
            self.pulls.start(name, view, image)
            self.budget -= image.image_bytes
            slots -= 1
        self._gauge("popular_images_pulling", self.pulls.count)
        self._gauge("popular_images_backing_off", len(self.pulls.images_backing_off()))
        self._gauge("popular_images_budget_bytes", max(0.0, self.budget))

    def _lacks(self, name: str, view: NodeView, wanted: Iterable[Wanted]) -> list[Wanted]:
        pulled = self.pulls.pulled.get(view.state.uid, {})
        under_way = [pull.reference for pull in self.pulls.on(name)]
        present = (view.holds, pulled, under_way)
        return [
            image for image in wanted if not any(image.image in names or image.digest in names for names in present)
        ]

    def _why_not(self, name: str, view: NodeView) -> str:
        """Return why nothing may be pulled to a node now; "" if something may be."""
        if view.closed:
            return view.closed
        state = view.state
        if self.pulls.is_resting(state.uid):
            return "resting"
        ready_seconds = math.inf if state.ready_since is None else self.now.wall - state.ready_since
        if not view.is_managed_complete and ready_seconds < self.settings.managed.pull_deadline_seconds:
            return "starting"
        if view.disk_bytes is None:
            return "disk-unknown"
        if disk_bytes_of(view.image_bytes) >= view.disk_bytes:
            return "full"
        if view.is_cut:
            # Any number of smaller images may fill the remaining disk.
            return "disk-unknown"
        if name in self.scene.starting:
            return "busy"
        empty_since = self.scene.empty_since.get(name)
        if (
            empty_since is not None
            and name not in self.scene.kept
            and ready_seconds >= NEW_NODE_SECONDS
            and self.now.steady - empty_since < EMPTY_NODE_SECONDS
        ):
            # An autoscaler may be waiting to remove it.
            return "empty"
        return ""

    def _turn(self, name: str, view: NodeView, lacks: Sequence[Wanted], index: int) -> tuple[float, float, str, int]:
        """Return a place in the queue: the most wanted first; among equals the newest node, which holds least."""
        return -lacks[index].users, -view.state.created, name, index

    def _may_start(self, name: str, view: NodeView, image: Wanted) -> bool:
        under_way = self.pulls.on(name)
        if len(under_way) >= self.settings.parallel_per_node or self.pulls.backs_off(image.image):
            return False
        # Requested pods that aren't bound yet count, too. On a full node, one more pod would pre-empt placeholders.
        if self.scene.pods_on[name] + len(under_way) >= view.most_pods:
            return False
        unreported = self.pulls.unreported_bytes(view)
        coming = sum(pull.image_bytes for pull in under_way)
        room = (view.disk_bytes or 0) - disk_bytes_of(view.image_bytes + unreported + coming)
        return disk_bytes_of(image.image_bytes) <= room

    def _gauge(self, name: str, value: float) -> None:
        self.gauges[name] = {(): float(value)}

    def planned(self) -> Planned[PopularMemory]:
        """Return the finished plan."""
        uids = {view.state.uid for view in self.scene.views.values()}
        waits = list(self._waits())
        return Planned(
            actions=self.pulls.actions,
            memory=PopularMemory(
                popularity=self.memory.popularity,
                rules=self.scene.rules,
                views=self.scene.views,
                sizes=self.scene.sizes,
                budget=self.budget,
                as_of=self.now.steady,
                started=self.pulls.started,
                deleted=self.pulls.deleted,
                pulled={uid: images for uid, images in self.pulls.pulled.items() if uid in uids},
                backing_off=self.pulls.backing_off,
                resting={uid: rest for uid, rest in self.pulls.resting.items() if uid in uids},
                failed_on={uid: image for uid, image in self.pulls.failed_on.items() if uid in uids},
                empty_since=self.scene.empty_since,
                gauges=self.gauges,
            ),
            wake_after_seconds=min(waits),
            gauges=self.gauges,
        )

    def _waits(self) -> Iterator[float]:
        yield PLAN_AGAIN_SECONDS
        if self.pulls.started or self.pulls.deleted:
            yield WATCH_PULLS_SECONDS
        if self.wait_for_budget is not None:
            yield max(1.0, self.wait_for_budget)
        if self.wait_for_event is not None:
            yield self.wait_for_event


def make_popular_images(read: Reader, sources: Sources) -> Planner:
    """Read its settings; faults go to the reader. Switched off, it still runs, to delete its pods."""
    settings = read_popular_settings(read, sources.document)
    if settings is None:
        return MemoryPlanner(NAME, plan_popular_images_off, OffMemory(), note=note_popular_images_off)
    return MemoryPlanner(
        NAME,
        lambda snapshot, memory, now: plan_at_pace(snapshot, memory, settings, now),
        PopularMemory(),
        note=note_popular_images,
        gauges=GAUGES,
    )
