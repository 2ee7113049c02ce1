"""Play launches in a world of discrete events: hub, webhook, scheduler, kubelets, autoscaler, culler, controllers.

No ticks: a heap of moments, each with what happens then. All chance is drawn by whose it is, so that two policies meet
the same sessions, sizes and boots. What decides (webhook, scheduler, controllers) is the code that runs in a cluster;
what it decides about (nodes, pulls, people) is assumed, and `Assumptions` says how.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

from roost.simulator.chance import Chance
from roost.simulator.engine.bounds import BoundsMeter, WaitMeter
from roost.simulator.engine.builds import BuildWorld
from roost.simulator.engine.controls import Controls
from roost.simulator.engine.culling import next_look
from roost.simulator.engine.kubelet import BACKGROUND, Images, NodeImages, PullFigures
from roost.simulator.engine.kubelet import USER as FOR_USER
from roost.simulator.engine.measures import Measures
from roost.simulator.engine.pods import BUILD, PLACEHOLDER, USER, PodMaker, image_reference
from roost.simulator.engine.pool import make_node, namespace_labels, node_labels
from roost.simulator.engine.results import (
    ELSEWHERE,
    NODE_WAIT,
    NOWHERE,
    ONLY_FULL,
    PULL,
    PULL_WAIT,
    QUEUE,
    START,
    TOTAL,
)
from roost.simulator.engine.scaling import Scaling
from roost.simulator.setup.assumptions import SESSIONS
from roost_core.placement.copies import Copier
from roost_core.placement.nodes import NodeFact, Nodes
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.objects import NodeState, PodState, copy_pod
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import Surroundings
from webhook.rules.facts import Facts, Homes, WarmFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from roost.simulator.engine.results import RunResult
    from roost.simulator.setup.assumptions import Assumptions
    from roost.simulator.setup.policy import PlaceholderSet, Policy, PullerSet
    from roost.simulator.trace.attempt import Attempt
    from roost_core.scheduler.cycle import Decision

USERS, SEATS, NODES = 0, 1, 2
# How long after the last attempt the world goes on at most, so that its tries are seen through.
MOST_AFTERMATH_SECONDS: Final = 7 * 86_400.0
# kube-scheduler tries everything again that has waited so long.
FLUSH_SECONDS: Final = 300.0
PROGRESS_EVERY: Final = 500
# Kinds of pods that fit nowhere; all are forgotten when there are more.
_MOST_HOPELESS: Final = 512
_copy_facts: Final = Copier(Facts)


class Launch:
    """One admitted attempt, through all its tries."""

    __slots__ = ("attempt", "image", "spent", "tries_left", "waited_for_node")

    def __init__(self, attempt: Attempt, image: str, tries_left: int) -> None:
        self.attempt = attempt
        self.image = image
        self.tries_left = tries_left
        # Seconds of the tries that failed, by part of the wait.
        self.spent = {QUEUE: 0.0, NODE_WAIT: 0.0, PULL_WAIT: 0.0, PULL: 0.0}
        self.waited_for_node = False

    def note_try(self, pod: SimPod, now: float) -> None:
        """A try ended before its server was up: remember what it waited for."""
        spent, bound = self.spent, pod.bound_at
        if bound is None:
            # No room came in all that time.
            self.waited_for_node = True
            spent[NODE_WAIT] += now - pod.created
            return
        self.waited_for_node |= pod.waited_for_node
        spent[NODE_WAIT if pod.waited_for_node else QUEUE] += bound - pod.created
        turn = min(now, max(bound, pod.pull_begins))
        spent[PULL_WAIT] += turn - bound
        spent[PULL] += now - turn


class SimPod:
    """One pod with what happened to it so far."""

    __slots__ = (
        "bound_at", "builds", "created", "failures", "has_home", "in_queue", "key", "kind", "launch", "node", "order",
        "owner", "pull_begins", "ready_at", "retries_at", "state", "tried_at", "waited_for_node", "waits_since",
        "warm_class",
    )  # fmt: skip

    def __init__(self, kind: str, state: PodState, created: float, order: int) -> None:
        self.kind = kind
        self.state = state
        # `namespace/name`.
        self.key = state.key
        self.created = created
        # Among pods of equal priority the older goes first.
        self.order = order
        self.launch: Launch | None = None
        self.owner: PlaceholderSet | None = None
        # What a build pod builds.
        self.builds: Attempt | None = None
        self.node: SimNode | None = None
        self.bound_at: float | None = None
        # When its node's kubelet turns to its image.
        self.pull_begins = 0.0
        self.ready_at: float | None = None
        # Failed tries in a row, the moment of the last, and that of the next if it is known.
        self.failures = 0
        self.tried_at = 0.0
        self.retries_at: float | None = None
        self.waits_since: float | None = None
        self.waited_for_node = False
        self.in_queue = False
        # Facts count it for its class's homes.
        self.has_home = False
        # "": none with a warm set.
        self.warm_class = ""


class SimNode:
    """One node that has joined."""

    __slots__ = (
        "collects_at", "images", "joined_at", "name", "pods", "pullers", "shows_at", "state", "users",
    )  # fmt: skip

    def __init__(self, state: NodeState, images: NodeImages, now: float) -> None:
        self.name = state.name
        self.state = state
        self.images = images
        self.joined_at = now
        self.pods: dict[str, SimPod] = {}
        self.users = 0
        # DaemonSet -> its pod here.
        self.pullers: dict[str, PodState] = {}
        self.collects_at: float | None = None
        self.shows_at: float | None = None


class World:
    """One replay, of the policy as it is in a cluster of the minor that is assumed."""

    def __init__(self, policy: Policy, assumptions: Assumptions, seed: int) -> None:
        policy = policy.in_minor(assumptions.minor)
        self.policy = policy
        self.assumed = assumptions
        self.chance = Chance(seed)
        self.measures = Measures(policy.name, seed)
        self.now = 0.0
        labels = {policy.namespace: namespace_labels(policy)}
        self.state = ClusterState(surroundings=Surroundings(namespaces=labels))
        self._node_labels = node_labels(policy)
        self.nodes: dict[str, SimNode] = {}
        # Every pod that isn't gone, as the API server has it, by `namespace/name`.
        self.pods: dict[str, PodState] = {}
        self.sim_pods: dict[str, SimPod] = {}
        self.figures = PullFigures()
        self.images = Images(assumptions, self.chance)
        # Image -> nodes that have it.
        self.holders: dict[str, set[str]] = {}
        self.maker = PodMaker(policy, assumptions, labels)
        self.bounds = BoundsMeter(
            self._pods_per_node(), assumptions.min_nodes, node_bytes=assumptions.node_memory_bytes
        )
        self.wait_bounds = WaitMeter(assumptions)
        self.controls = Controls(self)
        self.scaling: Scaling | None = None
        self.builds = BuildWorld(assumptions, self.chance)
        # Images being built now.
        self._building: set[str] = set()
        # Pods that no node fits, by key, in order of their coming.
        self.unschedulable: dict[str, SimPod] = {}
        self.placeholders: dict[str, PlaceholderSet] = {one.name: one for one in policy.placeholders}
        self.replicas: dict[str, int] = {one.name: one.replicas for one in policy.placeholders}
        self.seats: dict[str, dict[str, SimPod]] = {one.name: {} for one in policy.placeholders}
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._queue: list[tuple[int, int, SimPod]] = []
        self._events = 0
        self._made = 0
        self._nodes_made = 0
        # Grows with whatever may let a pod fit that didn't.
        self._chances = 0
        # (spec's id, priority, scheduler, nomination) -> `_chances` at which it fitted nowhere, and the spec, kept so
        # that its id stays its own.
        self._hopeless: dict[tuple[object, ...], tuple[int, object]] = {}
        self._starts: dict[str, int] = {}
        self._of_repository: dict[str, int] = {}
        self._running = 0
        # What the webhook is told of; without nodes it is told of no warm sets either.
        self._reads_nodes = policy.webhook is None or policy.webhook.reads_nodes
        self._known_nodes = Nodes()
        warm = {name: WarmFacts() for name in self.maker.warm_classes} if self._reads_nodes else {}
        told = self._known_nodes if self._reads_nodes else None
        self._facts: Facts = Facts(nodes=told, homes=Homes(), warm=warm, namespaces=labels)
        self._home_changes: dict[str, Any] = {}
        # By class, changes that the facts' warm sets don't show yet.
        self._warm_changes: dict[str, dict[str, Any]] = {name: {} for name in warm}
        self._has_homes = bool(self.maker.homes)
        self._starting = 0
        # The trace has ended; only its starts are seen through.
        self._is_over = False

    # The heap

    def at(self, moment: float, what: Callable[[Any], None], whom: Any = None) -> None:  # noqa: ANN401 - its argument
        """Let something happen at that moment, not before now."""
        self._events += 1
        heappush(self._heap, (max(moment, self.now), self._events, what, whom))

    def play(self, attempts: Iterable[Attempt], on_progress: Callable[[int, float], None] | None = None) -> RunResult:
        """Play all attempts, which come in order of their moments; and see the last of them through."""
        coming = iter(attempts)
        following = next(coming, None)
        result = self.measures.result
        if following is not None:
            self._begin(following.moment)
        last = self.now
        while following is not None:
            while self._heap and self._heap[0][0] <= following.moment:
                self._step()
            self.now = last = following.moment
            self._arrive(following)
            self._schedule()
            if on_progress is not None and result.attempts % PROGRESS_EVERY == 0:
                on_progress(result.attempts, last)
            following = next(coming, None)
        if result.attempts:
            self._close(last)
            end = last + self._aftermath_seconds()
            while self._heap and self._starting and self._heap[0][0] <= end:
                self._step()
            result.still_waiting = self._starting
        self._write()
        return result

    def _aftermath_seconds(self) -> float:
        """As long as all tries of the last launch may last, and a moment more, for sums of floats differ."""
        assumed = self.assumed
        return min(MOST_AFTERMATH_SECONDS, (assumed.retries + 1) * assumed.start_timeout_seconds + 1.0)

    def _step(self) -> None:
        moment, _, what, whom = heappop(self._heap)
        self.now = moment
        what(whom)
        if self._queue:
            self._schedule()

    def _begin(self, moment: float) -> None:
        self.now = moment
        for _ in range(self.assumed.min_nodes):
            self.join()
        self.scaling = Scaling(self)
        self.scaling.nodes_changed()
        for one in self.policy.placeholders:
            self.fill_seats(one.name)
        self.controls.begin()
        self._schedule()

    def _close(self, last: float) -> None:
        result = self.measures.result
        for pod in self.unschedulable.values():
            self._count_pending(pod)
        self._is_over = True
        self.measures.close(last)
        result.bounds = self.bounds.close(last)

    def _write(self) -> None:
        """Put what was counted beside the result into it; the aftermath counts, as its cold starts do."""
        result = self.measures.result
        figures = self.figures
        result.images_collected = figures.collected
        result.collected_then_pulled = figures.collected_then_pulled
        result.background_pulls = figures.background_pulls
        result.background_bytes = figures.background_bytes
        result.cold_bytes = figures.bytes
        result.registry_bytes = figures.bytes + figures.background_bytes
        result.greatest_disk_bytes = figures.greatest_disk_bytes
        if result.attempts:
            result.bounds |= self.bounds.counted(figures.greatest_disk_bytes)
            result.bounds |= self.wait_bounds.counted(result.waits[TOTAL].count, result.users_preempted)
        self.builds.write(result)

    # Launches

    def _arrive(self, attempt: Attempt) -> None:
        result = self.measures.result
        result.attempts += 1
        assumed, repository = self.assumed, attempt.repository
        of_repository = self._of_repository.get(repository, 0) if repository else 0
        if assumed.quota_per_repository and of_repository >= assumed.quota_per_repository:
            result.refused_by_repository += 1
            self.measures.count("refused", self.now)
            return
        if assumed.quota_total and self._running >= assumed.quota_total:
            result.refused_by_total += 1
            self.measures.count("refused", self.now)
            return
        result.admitted += 1
        self.measures.count("launches", self.now)
        self._of_repository[repository] = self._of_repository.get(repository, 0) + 1
        self._running += 1
        self._starting += 1
        image = image_reference(attempt.image)
        self.wait_bounds.asked(self.images.get(image, attempt.image_bytes), self.now)
        if assumed.with_builds and attempt.image not in self._building and self.builds.needs_build(attempt.image):
            self._post_build(attempt)
        self._post_user(Launch(attempt, image, assumed.retries))

    def _post_user(self, launch: Launch) -> None:
        self._made += 1
        self.measures.result.tries += 1
        name = f"user-{self._made}"
        made = self.maker.user(launch.attempt, name, self.now, self._current_facts())
        pod = self._post(USER, made)
        pod.launch = launch

    def _post_build(self, attempt: Attempt) -> None:
        """Build an image that was never launched before: the trace says when it was ready, so it delays nobody."""
        self._building.add(attempt.image)
        self._made += 1
        made = self.maker.build(attempt.repository, f"build-{self._made}", self.now, self._current_facts())
        self._post(BUILD, made).builds = attempt

    def _build(self, pod: SimPod, node: SimNode) -> None:
        if pod.builds is not None:
            build = self.builds.begin(pod.builds.repository, node.name, self.now)
            self.bounds.built(pod.builds.repository, self.measures.result.nodes_created)
            self.at(self.now + build.seconds, self._built, pod)

    def _built(self, pod: SimPod) -> None:
        if pod.builds is not None and self.sim_pods.get(pod.key) is pod:
            self.builds.built(pod.builds.image)
            self._building.discard(pod.builds.image)
            self._remove(pod)

    def _post(self, kind: str, state: PodState) -> SimPod:
        pod = SimPod(kind, state, self.now, self._made)
        self.sim_pods[pod.key] = pod
        self.pods[pod.key] = state
        self._note_home(pod)
        self._enqueue(pod)
        self.controls.pods_changed(pod)
        return pod

    def _note_home(self, pod: SimPod) -> None:
        if self._has_homes:
            home = self.maker.home_pod(pod.state)
            if home is not None:
                pod.has_home = True
                self._home_changes[pod.key] = home
        if self._warm_changes:
            warm = self.maker.warm_pod(pod.state)
            if warm is not None:
                pod.warm_class, self._warm_changes[warm[0]][pod.key] = warm

    def _give_up_if_late(self, pod: SimPod) -> None:
        """The spawner's patience has ended, unless the server is up."""
        if pod.ready_at is not None or pod.key not in self.sim_pods:
            return
        launch, result = pod.launch, self.measures.result
        if launch is None:
            return
        result.timeouts += 1
        self.measures.count("timeouts", self.now)
        self._end_try(pod, launch)

    def _end_try(self, pod: SimPod, launch: Launch) -> None:
        """A pod goes before its server was up: the hub tries again, or gives up."""
        result = self.measures.result
        launch.note_try(pod, self.now)
        self._remove(pod)
        if launch.tries_left > 0:
            launch.tries_left -= 1
            self._post_user(launch)
        else:
            result.given_up += 1
            result.waited_for_node += launch.waited_for_node
            # Its wait counts, or whoever serves nobody would serve them quickly.
            for part, seconds in launch.spent.items():
                result.waits[part].add(seconds)
            result.waits[TOTAL].add(self.now - launch.attempt.moment)
            self.measures.over(self.now - launch.attempt.moment)
            self._forget(launch)
            self._starting -= 1

    def _lose(self, pod: SimPod) -> None:
        """A pod is taken away from whoever has it: a user's try ends, or their session."""
        if pod.launch is not None and pod.ready_at is None:
            self._end_try(pod, pod.launch)
        elif pod.launch is not None:
            self._end(pod)
        else:
            self._remove(pod)

    def _forget(self, launch: Launch) -> None:
        repository = launch.attempt.repository
        number = self._of_repository[repository] - 1
        if number:
            self._of_repository[repository] = number
        else:
            del self._of_repository[repository]
        self._running -= 1

    # Placeholders

    def fill_seats(self, name: str) -> None:
        """Do as the StatefulSet controller: as many placeholders as wanted; the last ones go first."""
        wanted, there = self.replicas[name], self.seats[name]
        one = self.placeholders[name]
        for index in range(wanted):
            pod_name = f"{name}-{index}"
            if pod_name not in there:
                made = self.maker.placeholder(one, pod_name, self.now, self._current_facts())
                self._made += 1
                pod = self._post(PLACEHOLDER, copy_pod(made, uid=f"{pod_name}#{self._made}"))
                pod.owner = one
                there[pod_name] = pod
        for index in range(len(there) - 1, wanted - 1, -1):
            surplus = there.pop(f"{name}-{index}", None)
            if surplus is not None:
                # Nobody makes it anew.
                surplus.owner = None
                self._remove(surplus)
        if one.revision:
            self._roll(name)

    def resize_seats(self, name: str, container: str, requests: Mapping[str, str]) -> None:
        """A StatefulSet's pods are to ask for something else."""
        self.placeholders[name] = self.placeholders[name].resized(container, requests)
        self._roll(name)

    def is_rolling(self, name: str) -> bool:
        """Whether pods of another size than the set's are there."""
        revision = self.placeholders[name].revision
        return bool(revision) and any(_revision_of(pod) != revision for pod in self.seats[name].values())

    def _roll(self, name: str) -> None:
        """Do as the StatefulSet controller: from the last one on each starts anew when those after it are ready."""
        there, revision = self.seats[name], self.placeholders[name].revision
        for index in range(len(there) - 1, -1, -1):
            pod = there.get(f"{name}-{index}")
            if pod is not None and _revision_of(pod) != revision:
                self._remove(pod)
            if pod is None or pod.bound_at is None or _revision_of(pod) != revision:
                return

    def evict(self, pod: SimPod) -> None:
        """A placeholder goes; its StatefulSet makes it anew."""
        self._remove(pod)

    def _seat_gone(self, pod: SimPod) -> None:
        if pod.owner is not None:
            self.seats[pod.owner.name].pop(pod.state.name, None)
            self.fill_seats(pod.owner.name)

    # Scheduling

    def _enqueue(self, pod: SimPod) -> None:
        if not pod.in_queue:
            pod.in_queue = True
            heappush(self._queue, (-pod.state.priority, pod.order, pod))

    def _schedule(self) -> None:
        queue = self._queue
        while queue:
            _, _, pod = heappop(queue)
            pod.in_queue = False
            if pod.bound_at is not None or self.sim_pods.get(pod.key) is not pod:
                continue
            state = pod.state
            kind = (id(state.spec), state.priority, state.scheduler_name, state.nominated_node)
            if self._hopeless.get(kind, (-1, None))[0] == self._chances:
                self._unfit(pod)
                continue
            profile = self.policy.profile_of(state.scheduler_name)
            decision = schedule(state, self.state, profile, start=self._starts.get(state.scheduler_name, 0))
            self._starts[state.scheduler_name] = decision.next_start
            if decision.node is not None:
                self._bind(pod, decision.node)
            else:
                if decision.nomination is None:
                    if len(self._hopeless) > _MOST_HOPELESS:
                        self._hopeless.clear()
                    self._hopeless[kind] = self._chances, state.spec
                self._unfit(pod, decision)

    def _unfit(self, pod: SimPod, decision: Decision | None = None) -> None:
        """Note a try that failed; make room where pre-emption found some."""
        now = self.now
        pod.failures += 1
        pod.tried_at = now
        if pod.waits_since is None:
            pod.waits_since = now
            pod.state = copy_pod(pod.state, unschedulable_since=now)
            self.pods[pod.key] = pod.state
            self.at(now + FLUSH_SECONDS, self._flush, pod)
            if pod.launch is not None:
                self.at(pod.created + self.assumed.start_timeout_seconds, self._give_up_if_late, pod)
        self.unschedulable[pod.key] = pod
        nomination = decision.nomination if decision is not None else None
        if nomination is not None:
            pod.state = copy_pod(pod.state, nominated_node=nomination.node)
            self.pods[pod.key] = pod.state
            self.state.add_pod(pod.state)
            for victim in nomination.victims:
                found = self.sim_pods.get(victim.key)
                if found is not None and not found.state.leaving:
                    result = self.measures.result
                    result.placeholder_preemptions += found.kind == PLACEHOLDER
                    result.users_preempted += found.kind == USER
                    self._leave(found)
            return
        if decision is not None and pod.state.nominated_node and not self._makes_room(pod.state.nominated_node):
            self._drop_nomination(pod)
        self.controls.pod_waits(pod)
        if self.scaling is not None:
            self.scaling.pod_waits()

    def _makes_room(self, node: str) -> bool:
        row = self.state.rows.get(node)
        return row is not None and any(one.leaving for one in row.pods.values())

    def _drop_nomination(self, pod: SimPod) -> None:
        if self.state.get_pod(pod.key) is not None:
            self.state.remove_pod(pod.key)
        pod.state = copy_pod(pod.state, nominated_node="")
        self.pods[pod.key] = pod.state

    def _leave(self, pod: SimPod) -> None:
        """A victim is deleted: it keeps its room for a moment."""
        pod.state = copy_pod(pod.state, leaving=True, preempted=True)
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)
        self.at(self.now + self.assumed.preempted_gone_seconds, self._gone, pod)

    def _gone(self, pod: SimPod) -> None:
        if self.sim_pods.get(pod.key) is pod:
            self._lose(pod)

    def retry(self, node: SimNode | None = None) -> None:
        """Something changed for the better, on that node only if one is given: pods that fitted nowhere try again."""
        self._chances += 1
        assumed = self.assumed
        for pod in self.unschedulable.values():
            if pod.in_queue or pod.retries_at is not None or (node is not None and not self._might_fit(pod, node)):
                continue
            rest = min(assumed.max_backoff_seconds, assumed.backoff_seconds * 2 ** min(pod.failures - 1, 8))
            if pod.tried_at + rest > self.now:
                pod.retries_at = pod.tried_at + rest
                self.at(pod.retries_at, self._enqueue_again, pod)
            else:
                self._enqueue(pod)

    def _enqueue_again(self, pod: SimPod) -> None:
        pod.retries_at = None
        if pod.bound_at is None and self.sim_pods.get(pod.key) is pod:
            self._enqueue(pod)

    def _flush(self, pod: SimPod) -> None:
        """kube-scheduler tries again what has waited for long, whether or not anything changed."""
        if pod.bound_at is None and self.sim_pods.get(pod.key) is pod:
            self._enqueue(pod)
            self.at(self.now + FLUSH_SECONDS, self._flush, pod)

    def _might_fit(self, pod: SimPod, node: SimNode) -> bool:
        """As kube-scheduler's queueing hint: does what it asks for fit now where something went?"""
        row = self.state.rows.get(node.name)
        if row is None or pod.state.nominated_node == node.name:
            return True
        if len(row.pods) >= row.max_pods or row.node.fact.unschedulable:
            return False
        requested, allocatable = row.requested, row.allocatable
        return all(
            requested.get(name, 0) + amount <= allocatable.get(name, 0) for name, amount in pod.state.spec.requests
        )

    def _bind(self, pod: SimPod, node_name: str) -> None:
        node, now = self.nodes[node_name], self.now
        self.unschedulable.pop(pod.key, None)
        if pod.launch is not None:
            self._judge(pod.launch.image, node, pod)
        pod.state = copy_pod(pod.state, node_name=node_name, nominated_node="", unschedulable_since=None)
        pod.bound_at, pod.node = now, node
        pod.waited_for_node = pod.waits_since is not None and node.joined_at > pod.waits_since
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)
        node.pods[pod.key] = pod
        self._note_home(pod)
        if pod.kind == USER:
            self._start(pod, node)
        elif pod.kind == BUILD:
            self._build(pod, node)
        else:
            self._sit(pod)
        if self.scaling is not None:
            self.scaling.pods_changed(node)
        self.controls.pods_changed(pod)

    def _sit(self, pod: SimPod) -> None:
        """A placeholder runs; its image is on every node."""
        self._count_pending(pod)
        pod.ready_at = self.now
        pod.state = copy_pod(pod.state, phase="Running", started=self.now)
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)
        self.measures.level(SEATS, 1, self.now)
        if pod.owner is not None and pod.owner.revision:
            # Not within this pod's turn, for pods may go.
            self.at(self.now, self._roll, pod.owner.name)

    def _count_pending(self, pod: SimPod) -> None:
        """A placeholder waits no longer; what it waits after the trace's end doesn't count."""
        if pod.waits_since is not None and pod.kind == PLACEHOLDER and not self._is_over:
            self.measures.result.placeholder_pending_seconds += self.now - pod.waits_since

    # A server's start and end

    def _judge(self, image: str, node: SimNode, pod: SimPod) -> None:
        """Say where the image is, as the pod is bound without it."""
        node.images.settle(self.now)
        if node.images.has(image):
            return
        result = self.measures.result
        result.cold += 1
        self.measures.count("cold", self.now)
        holders = self.holders.get(image)
        if not holders:
            why = NOWHERE
        elif any(self._might_fit(pod, self.nodes[name]) for name in holders):
            why = ELSEWHERE
        else:
            why = ONLY_FULL
        result.cold_why[why] = result.cold_why.get(why, 0) + 1

    def _start(self, pod: SimPod, node: SimNode) -> None:
        launch = pod.launch
        if launch is None:
            return
        assumed = self.assumed
        image, asked = launch.image, self.now + assumed.bind_seconds
        self.measures.result.placed += 1
        node.users += 1
        self.measures.level(USERS, 1, self.now)
        self.bounds.started(image, self.now, launch.attempt.memory_bytes)
        self.bounds.needed(node.name, self.images.get(image).layers)
        node.images.use(image, self.now)
        pull = node.images.pull(image, asked, FOR_USER)
        pod.pull_begins = pull.begin
        if pull.is_cold:
            self.at(pull.finish, self._image_arrived, (node, image))
        up = pull.finish + assumed.start_seconds
        if up - pod.created > assumed.start_timeout_seconds:
            if pod.waits_since is None:
                self.at(pod.created + assumed.start_timeout_seconds, self._give_up_if_late, pod)
            return
        waits = dict(launch.spent)
        waits[NODE_WAIT if pod.waited_for_node else QUEUE] += self.now - pod.created
        waits[PULL_WAIT] += max(0.0, pull.begin - asked)
        waits[PULL] += max(0.0, pull.finish - max(pull.begin, asked))
        waits[START] = assumed.bind_seconds + assumed.start_seconds
        self.at(up, self._up, (pod, waits))

    def _up(self, whom: tuple[SimPod, dict[str, float]]) -> None:
        pod, waits = whom
        launch = pod.launch
        if launch is None or self.sim_pods.get(pod.key) is not pod:
            return
        pod.ready_at = self.now
        self._starting -= 1
        self.measures.started(waits, self.now)
        self.measures.result.waited_for_node += pod.waited_for_node or launch.waited_for_node
        if self.controls.reads_containers:
            self.controls.user_runs(pod, launch.image)
        self.at(self.now + self._session_seconds(launch.attempt), self._end, pod)

    def _session_seconds(self, attempt: Attempt) -> float:
        if attempt.session_seconds is not None:
            return attempt.session_seconds
        model = SESSIONS[self.assumed.sessions]
        rest = self.chance.log_normal("session", attempt.number, model.median_rest_minutes, model.sigma)
        seconds = 60.0 * (model.least_minutes + rest)
        every = self.assumed.cull_every_seconds
        return seconds if not every else next_look(self.now + seconds, every, self.chance) - self.now

    def _end(self, pod: SimPod) -> None:
        if self.sim_pods.get(pod.key) is not pod:
            # It was taken away before.
            return
        if pod.launch is not None:
            self._forget(pod.launch)
        self._remove(pod)

    def _remove(self, pod: SimPod) -> None:
        """A pod is gone."""
        key, node = pod.key, pod.node
        if node is None:
            self._count_pending(pod)
        self.sim_pods.pop(key, None)
        self.pods.pop(key, None)
        self.unschedulable.pop(key, None)
        if self.state.get_pod(key) is not None:
            self.state.remove_pod(key)
        if pod.has_home:
            self._home_changes[key] = None
        if pod.warm_class:
            self._warm_changes[pod.warm_class][key] = None
        if node is not None:
            node.pods.pop(key, None)
            if pod.launch is not None:
                node.users -= 1
                self.measures.level(USERS, -1, self.now)
                self.bounds.ended(pod.launch.image, self.now, pod.launch.attempt.memory_bytes)
                node.images.release(pod.launch.image, self.now)
            elif pod.kind == PLACEHOLDER:
                self.measures.level(SEATS, -1, self.now)
            if node.name in self.nodes:
                if self.scaling is not None:
                    self.scaling.pods_changed(node)
                self.retry(node)
        self.controls.pods_changed(pod)
        if pod.kind == PLACEHOLDER:
            self._seat_gone(pod)
        elif pod.builds is not None:
            self._building.discard(pod.builds.image)

    # Nodes

    def boot_seconds(self) -> float:
        """How long the next node takes to come: the n-th node takes as long under every policy."""
        self._nodes_made += 1
        assumed = self.assumed
        return self.chance.log_normal("boot", self._nodes_made, assumed.boot_median_seconds, assumed.boot_sigma)

    def template(self, name: str) -> NodeState:
        """A node as its group's template has it, with the labels and taints that it comes with."""
        return make_node(self.policy, self.assumed, self._node_labels, name, self.now)

    def join(self, _: object = None) -> SimNode:
        """A node is there, and ready."""
        result = self.measures.result
        result.nodes_created += 1
        name = f"node-{result.nodes_created}"
        state = self.template(name)
        node = SimNode(state, NodeImages(self.images, self.assumed, self.now, self.figures), self.now)
        self.nodes[name] = node
        # Kubelets register their nodes before they are ready: time enough for controllers to mark them.
        self._put(node, replace(state, fact=replace(state.fact, ready=False), ready_since=None))
        self.controls.node_registered()
        self._put(node, replace(node.state, fact=replace(node.state.fact, ready=True), ready_since=state.ready_since))
        self.measures.level(NODES, 1, self.now)
        for one in self.policy.pullers:
            if one.node_selector.items() <= state.fact.labels.items():
                self._begin_pulling(node, one)
        self.controls.nodes_changed()
        if self.scaling is not None:
            self.scaling.nodes_changed()
        self.retry()
        return node

    def remove_node(self, node: SimNode) -> None:
        """The autoscaler takes a node away; placeholders on it are made anew elsewhere."""
        del self.nodes[node.name]
        for name in list(self.holders):
            holders = self.holders[name]
            holders.discard(node.name)
            if not holders:
                del self.holders[name]
        for pod in list(node.pods.values()):
            if self.state.get_pod(pod.key) is not None:
                self.state.remove_pod(pod.key)
        self.state.remove_node(node.name)
        self._tell_facts(node.name, None)
        self.measures.level(NODES, -1, self.now)
        self.builds.node_left(node.name, self.now)
        self.bounds.node_left(node.name, self.figures.greatest_disk_bytes)
        self.controls.node_left(node)
        for pod in list(node.pods.values()):
            self._remove(pod)

    def change_node(self, node: SimNode, state: NodeState) -> None:
        """Labels, taints or images of a node are others now."""
        self._put(node, state)
        self.retry()

    def _put(self, node: SimNode, state: NodeState) -> None:
        if state.fact is not node.state.fact or node.name not in self.state.rows:
            self._tell_facts(node.name, state.fact)
        node.state = state
        self.state.set_node(state)

    def _tell_facts(self, name: str, fact: NodeFact | None) -> None:
        self._known_nodes = nodes = self._known_nodes.updated({name: fact})
        warm = self._facts.warm
        if fact is None:
            warm = {one: found.without_nodes((name,)) for one, found in warm.items()}
        # A builder is Ready on every node.
        builders = dict.fromkeys(self.maker.homes, nodes.names)
        told = nodes if self._reads_nodes else None
        self._facts = replace(self._facts, nodes=told, builder_nodes=builders, warm=warm)

    def _current_facts(self) -> Facts:
        if self._home_changes:
            self._facts = _copy_facts(self._facts, homes=self._facts.homes.updated(self._home_changes))
            self._home_changes = {}
        for name, changes in self._warm_changes.items():
            if changes:
                before = self._facts.warm.get(name) or WarmFacts()
                self._facts = _copy_facts(self._facts, warm={**self._facts.warm, name: before.updated(changes)})
                changes.clear()
        return self._facts

    # Images on nodes

    def background_pull(self, node: SimNode, image: str) -> float:
        """Have an image pulled that nobody waits for; returns when it will be there."""
        pull = node.images.pull(image, self.now, BACKGROUND)
        if pull.is_cold:
            self.at(pull.finish, self._image_arrived, (node, image))
        return pull.finish

    def _image_arrived(self, whom: tuple[SimNode, str]) -> None:
        node, image = whom
        if self.nodes.get(node.name) is not node:
            return
        if node.images.has(image, self.now):
            self.bounds.came(node.name, self.images.get(image))
            self.holders.setdefault(image, set()).add(node.name)
        self._show_soon(node)
        self._plan_collection(node)

    def _show_soon(self, node: SimNode) -> None:
        if node.shows_at is None:
            node.shows_at = self.now + self.assumed.status_delay_seconds
            self.at(node.shows_at, self._show_images, node)

    def _plan_collection(self, node: SimNode) -> None:
        if node.collects_at is None and self.assumed.node_disk_bytes:
            moment = node.images.next_collection(self.now)
            if moment is not None:
                node.collects_at = moment
                self.at(moment, self._collect, node)

    def _collect(self, node: SimNode) -> None:
        node.collects_at = None
        if node.name not in self.nodes:
            return
        removed = node.images.collect(self.now)
        for name in removed:
            holders = self.holders.get(name)
            if holders is not None:
                holders.discard(node.name)
                if not holders:
                    del self.holders[name]
        if removed:
            self._show_soon(node)
        self._plan_collection(node)

    def _show_images(self, node: SimNode) -> None:
        node.shows_at = None
        if node.name not in self.nodes:
            return
        images = node.images.status_images(self.now)
        if images is not node.state.images:
            self._put(node, replace(node.state, images=images, image_count=len(images)))
            self.controls.images_shown()

    def _begin_pulling(self, node: SimNode, one: PullerSet) -> None:
        """The puller's pod begins on a node: one image after the other."""
        self.controls.puller_began(node, one)
        for container, image in one.images.items():
            # Its container runs for as long as the node does, so no kubelet collects the image.
            node.images.use(image_reference(image), self.now)
            finish = self.background_pull(node, image_reference(image))
            self.at(finish, self._puller_has, (node, one, container))

    def _puller_has(self, whom: tuple[SimNode, PullerSet, str]) -> None:
        node, one, container = whom
        if self.nodes.get(node.name) is node:
            self.controls.puller_has(node, one, container)

    def _pods_per_node(self) -> int:
        assumed = self.assumed
        return max(
            1,
            min(
                assumed.node_pods,
                assumed.node_memory_bytes // max(1, assumed.user_memory_bytes),
                assumed.node_cpu_millicores // max(1, assumed.user_cpu_millicores),
            ),
        )


def _revision_of(pod: SimPod) -> int:
    return 0 if pod.owner is None else pod.owner.revision
