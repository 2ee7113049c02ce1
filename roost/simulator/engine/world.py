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
from roost.simulator.engine.entities import Launch, SimNode, SimPod
from roost.simulator.engine.kubelet import USER as FOR_USER
from roost.simulator.engine.kubelet import Images, NodeImages, PullFigures
from roost.simulator.engine.kubelets import Kubelets
from roost.simulator.engine.measures import Measures
from roost.simulator.engine.placeholder_sets import PlaceholderSets
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
from roost.simulator.engine.scheduling import Scheduling
from roost.simulator.engine.webhook_facts import WebhookFacts
from roost.simulator.setup.assumptions import SESSIONS
from roost_core.scheduler.objects import NodeState, PodState, copy_pod
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from roost.simulator.engine.results import RunResult
    from roost.simulator.setup.assumptions import Assumptions
    from roost.simulator.setup.policy import PlaceholderSet, Policy
    from roost.simulator.trace.attempt import Attempt

USERS, SEATS, NODES = 0, 1, 2
# How long after the last attempt the world goes on at most, so that its tries are seen through.
MOST_AFTERMATH_SECONDS: Final = 7 * 86_400.0
PROGRESS_EVERY: Final = 500


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
        self.kubelets = Kubelets(self)
        self.maker = PodMaker(policy, assumptions, labels)
        self.facts = WebhookFacts(policy, self.maker, labels)
        self.bounds = BoundsMeter(
            self._pods_per_node(), assumptions.min_nodes, node_bytes=assumptions.node_memory_bytes
        )
        self.wait_bounds = WaitMeter(assumptions)
        self.controls = Controls(self)
        self.scaling: Scaling | None = None
        self.builds = BuildWorld(assumptions, self.chance)
        # Images being built now.
        self._building: set[str] = set()
        self.scheduling = Scheduling(self)
        self.sets = PlaceholderSets(self, policy.placeholders)
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._events = 0
        self._made = 0
        self._nodes_made = 0
        self._of_repository: dict[str, int] = {}
        self._running = 0
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
            self.scheduling.run()
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
        if self.scheduling.is_due:
            self.scheduling.run()

    def _begin(self, moment: float) -> None:
        self.now = moment
        for _ in range(self.assumed.min_nodes):
            self.join()
        self.scaling = Scaling(self)
        self.scaling.nodes_changed()
        for one in self.policy.placeholders:
            self.sets.fill(one.name)
        self.controls.begin()
        self.scheduling.run()

    def _close(self, last: float) -> None:
        result = self.measures.result
        for pod in self.scheduling.unschedulable.values():
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
        made = self.maker.user(launch.attempt, name, self.now, self.facts.current())
        pod = self._post(USER, made)
        pod.launch = launch

    def _post_build(self, attempt: Attempt) -> None:
        """Build an image that was never launched before: the trace says when it was ready, so it delays nobody."""
        self._building.add(attempt.image)
        self._made += 1
        made = self.maker.build(attempt.repository, f"build-{self._made}", self.now, self.facts.current())
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
            self.remove(pod)

    def _post(self, kind: str, state: PodState) -> SimPod:
        pod = SimPod(kind, state, self.now, self._made)
        self.sim_pods[pod.key] = pod
        self.pods[pod.key] = state
        self.facts.tell_pod(pod)
        self.scheduling.enqueue(pod)
        self.controls.pods_changed(pod)
        return pod

    def give_up_if_late(self, pod: SimPod) -> None:
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
        self.remove(pod)
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
            self.remove(pod)

    def _forget(self, launch: Launch) -> None:
        repository = launch.attempt.repository
        number = self._of_repository[repository] - 1
        if number:
            self._of_repository[repository] = number
        else:
            del self._of_repository[repository]
        self._running -= 1

    def post_placeholder(self, one: PlaceholderSet, name: str) -> SimPod:
        """Create a pod of a set of placeholders."""
        made = self.maker.placeholder(one, name, self.now, self.facts.current())
        self._made += 1
        return self._post(PLACEHOLDER, copy_pod(made, uid=f"{name}#{self._made}"))

    def evict(self, pod: SimPod) -> None:
        """A placeholder goes; its StatefulSet makes it anew."""
        self.remove(pod)

    def preempt(self, pod: SimPod) -> None:
        """A victim of pre-emption is deleted: it keeps its room for a moment."""
        pod.state = copy_pod(pod.state, leaving=True, preempted=True)
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)
        self.at(self.now + self.assumed.preempted_gone_seconds, self._gone, pod)

    def _gone(self, pod: SimPod) -> None:
        if self.sim_pods.get(pod.key) is pod:
            self._lose(pod)

    # What the scheduler says

    def pod_waits(self, pod: SimPod) -> None:
        """No node fits a pod: controllers and the autoscaler may help."""
        self.controls.pod_waits(pod)
        if self.scaling is not None:
            self.scaling.pod_waits()

    def bind(self, pod: SimPod, node_name: str) -> None:
        """A pod has its node: its kubelet starts it."""
        node, now = self.nodes[node_name], self.now
        self.scheduling.unschedulable.pop(pod.key, None)
        if pod.launch is not None:
            self._judge(pod.launch.image, node, pod)
        pod.state = copy_pod(pod.state, node_name=node_name, nominated_node="", unschedulable_since=None)
        pod.bound_at, pod.node = now, node
        pod.waited_for_node = pod.waits_since is not None and node.joined_at > pod.waits_since
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)
        node.pods[pod.key] = pod
        self.facts.tell_pod(pod)
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
            self.at(self.now, self.sets.roll, pod.owner.name)

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
        holders = self.kubelets.holders.get(image)
        if not holders:
            why = NOWHERE
        elif any(self.scheduling.might_fit(pod, self.nodes[name]) for name in holders):
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
            self.at(pull.finish, self.kubelets.image_arrived, (node, image))
        up = pull.finish + assumed.start_seconds
        if up - pod.created > assumed.start_timeout_seconds:
            if pod.waits_since is None:
                self.at(pod.created + assumed.start_timeout_seconds, self.give_up_if_late, pod)
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
        self.remove(pod)

    def remove(self, pod: SimPod) -> None:
        """A pod is gone."""
        key, node = pod.key, pod.node
        if node is None:
            self._count_pending(pod)
        self.sim_pods.pop(key, None)
        self.pods.pop(key, None)
        self.scheduling.unschedulable.pop(key, None)
        if self.state.get_pod(key) is not None:
            self.state.remove_pod(key)
        self.facts.forget_pod(pod)
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
                self.scheduling.retry(node)
        self.controls.pods_changed(pod)
        if pod.kind == PLACEHOLDER:
            self.sets.pod_gone(pod)
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
        self.put(node, replace(state, fact=replace(state.fact, ready=False), ready_since=None))
        self.controls.node_registered()
        self.put(node, replace(node.state, fact=replace(node.state.fact, ready=True), ready_since=state.ready_since))
        self.measures.level(NODES, 1, self.now)
        for one in self.policy.pullers:
            if one.node_selector.items() <= state.fact.labels.items():
                self.kubelets.begin_puller(node, one)
        self.controls.nodes_changed()
        if self.scaling is not None:
            self.scaling.nodes_changed()
        self.scheduling.retry()
        return node

    def remove_node(self, node: SimNode) -> None:
        """The autoscaler takes a node away; placeholders on it are made anew elsewhere."""
        del self.nodes[node.name]
        self.kubelets.node_left(node)
        for pod in list(node.pods.values()):
            if self.state.get_pod(pod.key) is not None:
                self.state.remove_pod(pod.key)
        self.state.remove_node(node.name)
        self.facts.tell_node(node.name, None)
        self.measures.level(NODES, -1, self.now)
        self.builds.node_left(node.name, self.now)
        self.bounds.node_left(node.name, self.figures.greatest_disk_bytes)
        self.controls.node_left(node)
        for pod in list(node.pods.values()):
            self.remove(pod)

    def change_node(self, node: SimNode, state: NodeState) -> None:
        """Labels, taints or images of a node are others now."""
        self.put(node, state)
        self.scheduling.retry()

    def put(self, node: SimNode, state: NodeState) -> None:
        """A node's object is another now."""
        if state.fact is not node.state.fact or node.name not in self.state.rows:
            self.facts.tell_node(node.name, state.fact)
        node.state = state
        self.state.set_node(state)

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
