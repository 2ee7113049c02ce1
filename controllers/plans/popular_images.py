"""Bring images that many users run to nodes that lack them: what is missed most for its size, within every limit.

Which image next, for each node: the one of the highest expected use per byte,

    launches on this node within a half-life x seconds that each then saves / bytes to pull

launches = ln 2 x users / nodes. (Users that arrive at a rate r and count until they have decayed by half-lives h sum up
to r h / ln 2; where they land is the scheduler's business, so a node gets one share of those that its pods' rules
leave.) Seconds saved = a round trip + bytes / the rate of unpacking. Frequency x cost / size is what Greedy-Dual-Size-
Frequency keeps a cache by (Cherkasova, "Improving WWW proxies performance with GDSF caching policy", HP Labs 1998), and
filling a bounded room by value per size is Dantzig's rule for the knapsack (1957).

Popularity only says which images; all that is there, and all that may go wrong, is read from the cluster. Memory is
never needed for safety: pods that pull carry what they are for, and their names keep a second one from being made.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from controllers.plans.actions import CreatePod, DeletePod, GaugeDefinition, Notice, Outcome, Planned
from controllers.plans.popular_nodes import NodeView, NodeViews, disk_bytes_of, image_sizes
from controllers.plans.popular_pods import (
    DELETE_SECONDS,
    Pull,
    failure_of,
    has_pulled,
    is_pull_pod,
    pull_pod,
    read_pull,
    was_ended_by_node,
)
from controllers.plans.popular_settings import (
    ASSUMED_IMAGE_BYTES,
    EMPTY_NODE_SECONDS,
    NEW_NODE_SECONDS,
    PULL_BYTES_PER_SECOND,
    PULL_ROUND_TRIPS_SECONDS,
    PULL_SECONDS,
)
from controllers.plans.popularity import UNCOUNTED, Launch, Popularity, Rules, count_users, launch_from, users_by_use
from placement.classes import Classes
from placement.labels import OWN_COMPONENT_LABEL, OWN_POPULAR_PULLER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from controllers.plans.actions import Action, Done, Gauges
    from controllers.plans.popular_settings import PopularSettings
    from controllers.plans.popularity import Use
    from controllers.plans.snapshot import Moment, Snapshot
    from placement.scheduling.objects import PodState

# A pod that was asked for shows up within this, or it was never made.
APPEAR_SECONDS: Final = 60.0
# A scheduler that hasn't found room by then finds none.
BIND_SECONDS: Final = 120.0
# Kubelets try again by themselves; what still fails after this is given up for now.
FAILING_SECONDS: Final = 60.0
# A kubelet reports a new image within 40 s when all is well, at the latest after five minutes.
REPORT_SECONDS: Final = 300.0
# Pods that start on a node pull through the same queue, one image after the other; one stuck for longer is no reason.
STARTING_SECONDS: Final = 600.0
# After a failure: so long, doubled each time, up to the second.
FIRST_BACK_OFF_SECONDS: Final = 300.0
LAST_BACK_OFF_SECONDS: Final = 6 * 3600.0
# A node whose images were collected or cleaned is left alone for longer, likewise doubled.
FIRST_REST_SECONDS: Final = 3600.0
LAST_REST_SECONDS: Final = 24 * 3600.0
# Pods of one pool share one set of rules. More sets than this are users' own pins, and looking at all would take long.
MOST_RULES: Final = 64
# Names of images whose sizes are remembered.
MOST_SIZES: Final = 200_000
PLAN_AGAIN_SECONDS: Final = 60.0
WATCH_PULLS_SECONDS: Final = 10.0
PACE_SECONDS: Final = 10.0

GAUGES: Final = (
    GaugeDefinition("popular_images", "Images that enough users run to be brought to nodes."),
    GaugeDefinition("popular_image_users", "Users of the most wanted images, decayed.", ("image",)),
    GaugeDefinition("popular_images_missing", "Wanted images that nodes lack, summed over nodes."),
    GaugeDefinition("popular_images_held", "Wanted images that nodes hold, summed over nodes."),
    GaugeDefinition("popular_images_pulling", "Popular images being pulled, over all nodes."),
    GaugeDefinition(
        "popular_images_backing_off", "Popular images that failed to be pulled and wait for their next try."
    ),
    GaugeDefinition("popular_images_budget_bytes", "Bytes that may be pulled right now."),
    GaugeDefinition(
        "popular_images_nodes", "Nodes by whether popular images may be brought there, and why not.", ("state",)
    ),
)


class Rest(NamedTuple):
    """An image or a node that is left alone until then."""

    tries: int
    until: float


class Asked(NamedTuple):
    """A pull that was begun, and when it was first known of."""

    pull: Pull
    node_uid: str
    since: float


class Brought(NamedTuple):
    """An image that is on a node by our doing."""

    since: float
    image: str
    image_bytes: int


@dataclass(frozen=True, slots=True)
class PopularMemory:
    """What is remembered from plan to plan. All moments are of the steady clock."""

    popularity: Popularity = field(default_factory=Popularity)
    # The rules that the views were made for.
    rules: tuple[Rules, ...] = ()
    # By name of the node.
    views: Mapping[str, NodeView] = field(default_factory=dict)
    # Bytes by name of an image, as nodes told.
    sizes: Mapping[str, int] = field(default_factory=dict)
    # Bytes that might have been pulled by `as_of` and were not; may be below 0 after a large image.
    budget: float = 0.0
    as_of: float | None = None
    # By name of the pod.
    asked: Mapping[str, Asked] = field(default_factory=dict)
    # By uid of the pod: when its deletion was asked for.
    dismissed: Mapping[str, float] = field(default_factory=dict)
    # By uid of the node, by what was pulled: a tag that moved since names another image now.
    brought: Mapping[str, Mapping[str, Brought]] = field(default_factory=dict)
    # By image, and by uid of the node.
    backing_off: Mapping[str, Rest] = field(default_factory=dict)
    resting: Mapping[str, Rest] = field(default_factory=dict)
    # By uid of the node: the image that failed there last, while none has come since.
    failed_on: Mapping[str, str] = field(default_factory=dict)
    # By name of the node: since when it was seen without a pod of any class.
    empty_since: Mapping[str, float] = field(default_factory=dict)
    # As the last plan reported them.
    gauges: Gauges = field(default_factory=dict)


def plan_at_pace(
    snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment
) -> Planned[PopularMemory]:
    """`plan_popular_images`, a few times a minute: the cluster changes more often, and nothing here is urgent."""
    if memory.as_of is not None and 0.0 <= now.steady - memory.as_of < PACE_SECONDS:
        rest = memory.as_of + PACE_SECONDS - now.steady
        return Planned(actions=(), memory=memory, wake_after_seconds=rest, gauges=memory.gauges)
    return plan_popular_images(snapshot, memory, settings, now)


def plan_popular_images(
    snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment
) -> Planned[PopularMemory]:
    """Count users, look after the pulls under way, and begin those that are worth most and allowed."""
    popularity = count_users(
        memory.popularity,
        snapshot.pods.values(),
        LaunchReader(settings),
        settings.half_life_seconds,
        now.steady,
    )
    return plan_pulls(snapshot, replace(memory, popularity=popularity), settings, now, users_by_use(popularity))


def plan_pulls(
    snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment, users: Mapping[Use, float]
) -> Planned[PopularMemory]:
    """The same for a demand that is known: `memory.popularity` is counted, `users` is what to go by."""
    work = _Work(snapshot, memory, settings, now)
    work.look_after_pulls()
    work.look_for_lost_images()
    work.begin_pulls(users)
    return work.planned()


def note_popular_images(memory: PopularMemory, done: Sequence[Done], _now: Moment) -> PopularMemory:
    """Forget what was surely not done: its bytes may be used for something else.

    What failed may have been carried out without an answer, and is looked out for as if it were.
    """
    asked, dismissed, budget = dict(memory.asked), dict(memory.dismissed), memory.budget
    for action, outcome in done:
        if isinstance(action, CreatePod) and outcome in (Outcome.HELD_BACK, Outcome.REFUSED):
            lost = asked.pop(action.body["metadata"]["name"], None)
            budget += lost.pull.image_bytes if lost is not None else 0
        elif isinstance(action, DeletePod) and outcome not in (Outcome.DONE, Outcome.GONE):
            dismissed.pop(action.uid, None)
    return replace(memory, asked=asked, dismissed=dismissed, budget=budget)


def use_per_byte(launches: float, image_bytes: int) -> float:
    """Seconds that users are spared for each byte pulled; see the module's docstring."""
    size = max(1, image_bytes)
    return launches * (PULL_ROUND_TRIPS_SECONDS + size / PULL_BYTES_PER_SECOND) / size


class LaunchReader:
    """Tells what a pod counts for: asked as `count_users` asks."""

    def __init__(self, settings: PopularSettings) -> None:
        """Prepare."""
        self._classes = Classes(settings)
        self._counted = settings.counted
        # Most pods share few specs and images.
        self._launches: dict[tuple[int, tuple[str, ...]], Launch] = {}

    def __call__(self, pod: PodState) -> Launch | None:
        """None for a pod without a class, UNCOUNTED for one of a class that doesn't count."""
        # The labels of namespaces aren't watched: classes can name namespaces, not describe them.
        found = self._classes.classify(pod.labels, pod.namespace, None)
        if found is None:
            return None
        if found.name not in self._counted:
            return UNCOUNTED
        key = (id(pod.spec), tuple([container.image_id for container in pod.containers]))
        launch = self._launches.get(key)
        if launch is None:
            launch = self._launches[key] = launch_from(pod)
        return launch


class _Wanted(NamedTuple):
    """An image for the nodes of one group, the best first."""

    use_per_byte: float
    image: str
    image_bytes: int
    # The other name under which a node may hold it; "" when it isn't known.
    digest: str


class _Work:
    """One plan in the making."""

    def __init__(self, snapshot: Snapshot, memory: PopularMemory, settings: PopularSettings, now: Moment) -> None:
        self.snapshot = snapshot
        self.memory = memory
        self.settings = settings
        self.now = now
        self.actions: list[Action] = []
        self.asked: dict[str, Asked] = {}
        self.dismissed: dict[str, float] = {}
        self.brought: dict[str, dict[str, Brought]] = {}
        self.backing_off = {image: rest for image, rest in memory.backing_off.items() if _is_remembered(rest, now)}
        self.resting = {uid: rest for uid, rest in memory.resting.items() if _is_remembered(rest, now)}
        self.failed_on = dict(memory.failed_on)
        passed = 0.0 if memory.as_of is None else max(0.0, now.steady - memory.as_of)
        self.budget = min(float(settings.bytes_per_minute), memory.budget + passed * settings.bytes_per_minute / 60.0)
        # Pulls under way by name of the node.
        self.under_way: dict[str, list[Pull]] = {}
        self.gauges: dict[str, dict[tuple[str, ...], float]] = {}
        self.wait_for_budget: float | None = None
        self._see_pods()
        self._see_nodes()

    # What there is

    def _see_pods(self) -> None:
        running = self.memory.popularity.running
        self.pull_pods: list[PodState] = []
        # Nodes with pods of any class that run.
        self.occupied: set[str] = set()
        # Where pods of others are about to start.
        self.starting: set[str] = set()
        lately = self.now.wall - STARTING_SECONDS
        for pod in self.snapshot.pods.values():
            is_pending = pod.phase == "Pending"
            if not is_pending and running.get(pod.uid) is not None:
                self.occupied.add(pod.node_name)
            elif pod.labels.get(OWN_COMPONENT_LABEL) == OWN_POPULAR_PULLER:
                self.pull_pods.append(pod)
            elif is_pending and pod.node_name and pod.created > lately:
                self.starting.add(pod.node_name)
        self.pull_pods.sort(key=lambda pod: pod.name)

    @cached_property
    def pods_on(self) -> Counter[str]:
        """Pods by name of the node."""
        return Counter([pod.node_name for pod in self.snapshot.pods.values()])

    def _see_nodes(self) -> None:
        uses = self.memory.popularity
        self.rules = self._rules_of(uses)
        makes = NodeViews(
            self.settings, [one.as_node_rules() for one in self.rules], same_rules=self.rules is self.memory.rules
        )
        before = self.memory.views
        self.views = {name: makes.view(state, before.get(name)) for name, state in self.snapshot.nodes.items()}
        sizes = dict(self.memory.sizes)
        for name, view in self.views.items():
            known = before.get(name)
            if known is not None and known.holds is view.holds:
                continue
            for image, size in image_sizes(view.state.images):
                if size > sizes.get(image, 0):
                    sizes[image] = size
        if len(sizes) > MOST_SIZES:
            sizes = {image: size for view in self.views.values() for image, size in image_sizes(view.state.images)}
        self.sizes = sizes
        empty = self.memory.empty_since
        self.empty_since = {name: empty.get(name, self.now.steady) for name in self.views if name not in self.occupied}

    def _rules_of(self, popularity: Popularity) -> tuple[Rules, ...]:
        weights: Counter[Rules] = Counter()
        for launch, pods in popularity.launches.items():
            weights[launch.rules] += pods
        for use in popularity.gone:
            weights.setdefault(use.rules, 0)
        rules = sorted(weights, key=lambda one: (-weights[one], repr(one)))[:MOST_RULES]
        # The same object: views made for it stay good.
        return self.memory.rules if set(rules) == set(self.memory.rules) else tuple(rules)

    # What is under way

    def look_after_pulls(self) -> None:
        """Read the pods that pull, clear away those that are done, and learn from those that fail."""
        asked_before = self.memory.asked
        seen: set[str] = set()
        for pod in self.pull_pods:
            if not is_pull_pod(pod, self.settings.release, self.settings.namespace):
                continue
            pull = read_pull(pod)
            seen.add(pod.name)
            state = self.snapshot.nodes.get(pull.node)
            known = asked_before.get(pod.name)
            since = known.since if known is not None else self.now.steady
            is_done, failure = has_pulled(pod), failure_of(pod)
            dismissed = self.memory.dismissed.get(pod.uid)
            if not is_done and not pod.is_finished and state is not None:
                # Also while it is being deleted: the kubelet may still be at it.
                self.under_way.setdefault(pull.node, []).append(pull)
                if dismissed is None and not pod.leaving:
                    self.asked[pod.name] = Asked(pull, state.uid, since)
            if dismissed is not None and self.now.steady - dismissed < DELETE_SECONDS:
                self.dismissed[pod.uid] = dismissed
                if is_done and state is not None:
                    self._keep_brought(state.uid, pull)
                continue
            if is_done:
                self._finish(pod, pull, is_first=dismissed is None and not pod.leaving)
            elif not pod.leaving:
                self._look_at(pod, pull, self.now.steady - since, failure)
            elif state is not None:
                # Evicted, by whoever needed its place.
                self._let_rest(state.uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
        for name, asked in asked_before.items():
            if name in seen:
                continue
            state = self.snapshot.nodes.get(asked.pull.node)
            if state is None or state.uid != asked.node_uid:
                continue
            if self.now.steady - asked.since < APPEAR_SECONDS:
                self.asked[name] = asked
                self.under_way.setdefault(asked.pull.node, []).append(asked.pull)
            else:
                # Never made, or evicted before it was done: that node has other worries.
                self._let_rest(asked.node_uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)

    def _finish(self, pod: PodState, pull: Pull, *, is_first: bool) -> None:
        state = self.snapshot.nodes.get(pull.node)
        if state is not None:
            self._keep_brought(state.uid, pull)
            self.failed_on.pop(state.uid, None)
            if is_first:
                self.backing_off.pop(pull.image, None)
                self.actions.append(
                    Notice(
                        kind="Node",
                        namespace="",
                        name=pull.node,
                        uid=state.uid,
                        reason="PopularImagePulled",
                        message=f"Image {pull.image}, which many users run, was brought to this node.",
                    )
                )
        if not pod.leaving:
            self._dismiss(pod, f"image {pull.image} is on {pull.node}")

    def _look_at(self, pod: PodState, pull: Pull, age: float, failure: str) -> None:
        """A pod whose image isn't there yet: give it time, or give it up."""
        view = self.views.get(pull.node)
        if view is None:
            self._dismiss(pod, f"node {pull.node} is gone")
        elif view.closed:
            self._dismiss(pod, f"nothing is brought to {pull.node} now: {view.closed}")
        elif was_ended_by_node(pod):
            self._let_rest(view.state.uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
            self._dismiss(pod, f"its kubelet ended it: {pod.reason}")
        elif failure and (age >= FAILING_SECONDS or pod.is_finished):
            self._give_up(pod, pull, view, failure)
        elif not pod.node_name and age >= BIND_SECONDS:
            self._let_rest(view.state.uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
            self._dismiss(pod, f"no room on {pull.node} for a pod that asks for nothing")
        elif age >= PULL_SECONDS:
            self._give_up(pod, pull, view, f"not pulled within {PULL_SECONDS / 60:.0f} minutes")

    def _give_up(self, pod: PodState, pull: Pull, view: NodeView, failure: str) -> None:
        rest = self.backing_off.get(pull.image)
        if rest is None or rest.until <= self.now.steady:
            tries = rest.tries if rest is not None else 0
            pause = _pause(tries, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
            rest = self.backing_off[pull.image] = Rest(tries + 1, self.now.steady + pause)
        # Pulls of it that began together fail together, and count once.
        uid = view.state.uid
        if self.failed_on.get(uid, pull.image) != pull.image:
            # A second image, and none has come in between: the fault is the node's.
            self._let_rest(uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
        self.failed_on[uid] = pull.image
        self.actions.append(
            Notice(
                kind="Node",
                namespace="",
                name=pull.node,
                uid=view.state.uid,
                reason="PopularImageFailed",
                message=f"Image {pull.image}, which many users run, can't be pulled here ({_cut(failure)}); "
                f"it is tried again in {(rest.until - self.now.steady) / 60:.0f} minutes at the earliest.",
                warning=True,
            )
        )
        self._dismiss(pod, f"image {pull.image} can't be pulled: {_cut(failure)}")

    def _dismiss(self, pod: PodState, why: str) -> None:
        self.actions.append(DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid, why=why))
        self.dismissed[pod.uid] = self.now.steady
        self.asked.pop(pod.name, None)

    def _keep_brought(self, node_uid: str, pull: Pull) -> None:
        before = self.memory.brought.get(node_uid, {}).get(pull.reference)
        since = before.since if before is not None else self.now.steady
        self.brought.setdefault(node_uid, {})[pull.reference] = Brought(since, pull.image, pull.image_bytes)

    def _let_rest(self, node_uid: str, first: float, last: float) -> None:
        rest = self.resting.get(node_uid)
        tries = rest.tries if rest is not None else 0
        if rest is not None and rest.until > self.now.steady:
            # The same trouble, told again.
            return
        self.resting[node_uid] = Rest(tries + 1, self.now.steady + _pause(tries, first, last))

    # What was taken away again

    def look_for_lost_images(self) -> None:
        """Notice images that were brought and are gone: the kubelet or a cleaner needed the room."""
        for name, view in self.views.items():
            brought = self.memory.brought.get(view.state.uid)
            if not brought:
                continue
            lost: list[str] = []
            for reference, one in brought.items():
                if view.holds.isdisjoint((reference, one.image)) and not (
                    self.now.steady - one.since < REPORT_SECONDS or one.image_bytes < view.unseen_below_bytes
                ):
                    lost.append(one.image)
                else:
                    self.brought.setdefault(view.state.uid, {}).setdefault(reference, one)
            if lost:
                self._let_rest(view.state.uid, FIRST_REST_SECONDS, LAST_REST_SECONDS)
                self.actions.append(
                    Notice(
                        kind="Node",
                        namespace="",
                        name=name,
                        uid=view.state.uid,
                        reason="PopularImageRemoved",
                        message=f"Image {min(lost)}, brought to this node before, was removed by its kubelet or by a "
                        "cleaner; no popular image is brought here for an hour or longer.",
                    )
                )

    # What to begin

    def begin_pulls(self, users: Mapping[Use, float]) -> None:
        """Begin what is worth most, as far as every limit allows."""
        popular = {image: total for image, total in _totals(users).items() if total >= self.settings.min_users}
        self._gauge("popular_images", len(popular))
        top = sorted(popular, key=lambda image: (-popular[image], image))[: self.settings.per_node]
        self.gauges["popular_image_users"] = {(image,): popular[image] for image in top}
        lists = self._wanted_lists(users, popular)
        queue: list[tuple[float, float, str, int]] = []
        # Of a node that has its turn: what it lacks, best first.
        lacking: dict[str, list[_Wanted]] = {}
        states: Counter[str] = Counter()
        missing = held = 0
        for name, view in self.views.items():
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
        slots = self.settings.parallel_per_cluster - sum(map(len, self.under_way.values()))
        while queue and slots > 0:
            _, _, name, index = heapq.heappop(queue)
            view, one = self.views[name], lacking[name][index]
            if index + 1 < len(lacking[name]):
                heapq.heappush(queue, self._turn(name, view, lacking[name], index + 1))
            if not self._may_begin(name, view, one):
                continue
            price = min(one.image_bytes, self.settings.bytes_per_minute)
            if self.budget < price:
                # What is worth most waits for its bytes; lesser ones don't overtake it, or it would never get them.
                self.wait_for_budget = (price - self.budget) * 60.0 / self.settings.bytes_per_minute
                break
            self._begin(name, view, one)
            slots -= 1
        self._gauge("popular_images_pulling", sum(map(len, self.under_way.values())))
        self._gauge("popular_images_backing_off", len(self._off()))
        self._gauge("popular_images_budget_bytes", max(0.0, self.budget))

    def _wanted_lists(
        self, users: Mapping[Use, float], popular: Mapping[str, float]
    ) -> dict[tuple[int, int], tuple[_Wanted, ...]]:
        """The images that nodes should have, by what nodes have in common."""
        groups = Counter((view.admits, view.pullers) for view in self.views.values())
        # How many nodes the pods of each set of rules may use.
        shared_by: Counter[int] = Counter()
        for view_admits, count in Counter(view.admits for view in self.views.values() if not view.closed).items():
            for bit in range(len(self.rules)):
                if view_admits >> bit & 1:
                    shared_by[bit] += count
        bits = {rules: bit for bit, rules in enumerate(self.rules)}
        digests = self.memory.popularity.digests
        by_image: dict[str, list[tuple[int, float]]] = {}
        for use, amount in users.items():
            if use.image not in popular:
                continue
            bit = bits.get(use.rules, -1)
            if bit >= 0 and shared_by[bit]:
                by_image.setdefault(use.image, []).append((bit, math.log(2) * amount / shared_by[bit]))
        lists: dict[tuple[int, int], tuple[_Wanted, ...]] = {}
        for admits, pullers in groups:
            managed = frozenset().union(
                *(one.images for bit, one in enumerate(self.settings.managed) if pullers >> bit & 1)
            )
            found = []
            for image, parts in by_image.items():
                launches = math.fsum(amount for bit, amount in parts if admits >> bit & 1)
                if launches <= 0.0 or image in managed:
                    continue
                digest = digests.get(image, "")
                size = self.sizes.get(digest) or self.sizes.get(image) or ASSUMED_IMAGE_BYTES
                found.append(_Wanted(use_per_byte(launches, size), image, size, digest))
            lists[admits, pullers] = tuple(
                heapq.nsmallest(self.settings.per_node, found, key=lambda one: (-one.use_per_byte, one.image))
            )
        return lists

    def _lacks(self, name: str, view: NodeView, wanted: Iterable[_Wanted]) -> list[_Wanted]:
        brought = self.brought.get(view.state.uid, {})
        comes = [pull.reference for pull in self.under_way.get(name, ())]
        holds = view.holds
        return [
            one
            for one in wanted
            if one.image not in holds
            and one.digest not in holds
            and one.image not in brought
            and one.digest not in brought
            and one.image not in comes
            and one.digest not in comes
        ]

    def _why_not(self, name: str, view: NodeView) -> str:
        """Why nothing is brought to a node now; "" when something may be."""
        if view.closed:
            return view.closed
        state = view.state
        rest = self.resting.get(state.uid)
        if rest is not None and rest.until > self.now.steady:
            return "resting"
        ready_seconds = math.inf if state.ready_since is None else self.now.wall - state.ready_since
        if not view.is_managed_complete and ready_seconds < self.settings.managed_deadline_seconds:
            return "starting"
        if view.disk_bytes is None:
            return "disk-unknown"
        if disk_bytes_of(view.image_bytes) >= view.disk_bytes:
            return "full"
        if view.is_cut:
            # Any number of smaller images may fill the rest.
            return "disk-unknown"
        if name in self.starting:
            return "busy"
        empty_since = self.empty_since.get(name)
        if (
            empty_since is not None
            and ready_seconds >= NEW_NODE_SECONDS
            and self.now.steady - empty_since < EMPTY_NODE_SECONDS
        ):
            # An autoscaler may be waiting for it to stay without pods.
            return "empty"
        return ""

    def _turn(self, name: str, view: NodeView, lacks: Sequence[_Wanted], index: int) -> tuple[float, float, str, int]:
        """A place in the queue: what is worth most first; among equals the newest node, for it holds least."""
        return -lacks[index].use_per_byte, -view.state.created, name, index

    def _off(self) -> list[str]:
        return [image for image, rest in self.backing_off.items() if rest.until > self.now.steady]

    def _may_begin(self, name: str, view: NodeView, one: _Wanted) -> bool:
        rest = self.backing_off.get(one.image)
        if rest is not None and rest.until > self.now.steady:
            return False
        under_way = self.under_way.get(name, [])
        if len(under_way) >= self.settings.parallel_per_node:
            return False
        if rest is not None and any(pull.image == one.image for pulls in self.under_way.values() for pull in pulls):
            # It failed before: one node tries first.
            return False
        # Those that were asked for and aren't bound yet count, too. Without a place, a pod pushes out placeholders.
        if self.pods_on[name] + len(under_way) >= view.most_pods:
            return False
        unreported = sum(
            kept.image_bytes
            for reference, kept in self.brought.get(view.state.uid, {}).items()
            if reference not in view.holds and kept.image not in view.holds
        )
        coming = sum(pull.image_bytes for pull in under_way)
        room = (view.disk_bytes or 0) - disk_bytes_of(view.image_bytes + unreported + coming)
        return disk_bytes_of(one.image_bytes) <= room

    def _begin(self, name: str, view: NodeView, one: _Wanted) -> None:
        pull = Pull(one.image, name, one.image_bytes, one.digest or one.image)
        body = pull_pod(self.settings, view.state, pull)
        self.actions.append(CreatePod(body=body, why=f"many users run {one.image}, and {name} lacks it"))
        self.under_way.setdefault(name, []).append(pull)
        self.asked[body["metadata"]["name"]] = Asked(pull, view.state.uid, self.now.steady)
        self.budget -= one.image_bytes

    # What comes of it

    def _gauge(self, name: str, value: float) -> None:
        self.gauges[name] = {(): float(value)}

    def planned(self) -> Planned[PopularMemory]:
        """All of it as a plan."""
        uids = {view.state.uid for view in self.views.values()}
        waits = list(self._waits())
        gauges: Gauges = self.gauges
        return Planned(
            actions=self.actions,
            memory=PopularMemory(
                popularity=self.memory.popularity,
                rules=self.rules,
                views=self.views,
                sizes=self.sizes,
                budget=self.budget,
                as_of=self.now.steady,
                asked=self.asked,
                dismissed=self.dismissed,
                brought={uid: found for uid, found in self.brought.items() if uid in uids},
                backing_off=self.backing_off,
                resting={uid: rest for uid, rest in self.resting.items() if uid in uids},
                failed_on={uid: image for uid, image in self.failed_on.items() if uid in uids},
                empty_since=self.empty_since,
                gauges=gauges,
            ),
            wake_after_seconds=min(waits),
            gauges=gauges,
        )

    def _waits(self) -> Iterator[float]:
        yield PLAN_AGAIN_SECONDS
        if self.asked or self.dismissed:
            yield WATCH_PULLS_SECONDS
        if self.wait_for_budget is not None:
            yield max(1.0, self.wait_for_budget)


def _totals(users: Mapping[Use, float]) -> dict[str, float]:
    """Users by image; the order in which they are listed means nothing, not even to the last digit."""
    totals: dict[str, float] = {}
    several: dict[str, list[float]] = {}
    for use, amount in users.items():
        image = use.image
        if image in totals:
            several.setdefault(image, [totals[image]]).append(amount)
        else:
            totals[image] = amount
    return totals | {image: math.fsum(parts) for image, parts in several.items()}


def _cut(failure: str) -> str:
    """The kubelet's words, short enough for an Event; their end says what was wrong."""
    return failure if len(failure) <= 300 else f"{failure[:60]} … {failure[-240:]}"


def _pause(tries: int, first: float, last: float) -> float:
    return min(last, first * 2.0 ** min(tries, 30))


def _is_remembered(rest: Rest, now: Moment) -> bool:
    """Failures are forgotten a while after the last pause ended, so that the next one begins small."""
    return now.steady < rest.until + LAST_REST_SECONDS
