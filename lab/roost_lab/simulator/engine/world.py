"""Play launches as discrete events: hub, webhook, scheduler, kubelets, autoscaler, culler,
controllers.

There are no ticks, only a heap of events by time. Random numbers belong to what they are drawn for,
so that two policies meet the same sessions, sizes and boots. Webhook, scheduler and controllers are
the code that runs in a cluster; nodes, pulls and people are modelled after `Assumptions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roost_lab.simulator.engine.bounds import BoundsMeter
from roost_lab.simulator.engine.builds import BuildWorld
from roost_lab.simulator.engine.cluster import Cluster
from roost_lab.simulator.engine.entities import Launch, SimNode, SimPod
from roost_lab.simulator.engine.hub import Hub
from roost_lab.simulator.engine.journal import Journal
from roost_lab.simulator.engine.kubelets import Kubelets
from roost_lab.simulator.engine.node_images import Images, NodeImages, PullFigures
from roost_lab.simulator.engine.node_template import make_node, namespace_labels, users_per_node
from roost_lab.simulator.engine.pods import BUILD, PLACEHOLDER, USER
from roost_lab.simulator.engine.releases import HubRelease, joined, policies_of
from roost_lab.simulator.engine.results import ELSEWHERE, NOWHERE, ONLY_FULL, RunResult
from roost_lab.simulator.engine.scaling import Scaling
from roost_lab.simulator.engine.scheduling import Scheduling
from roost_lab.simulator.engine.totals import Measures
from roost_lab.units import DAY_SECONDS, HOUR_SECONDS

if TYPE_CHECKING:
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod
    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.simulator.setup.policy import Policy
    from roost_lab.traces.attempt import Attempt

# The longest time after the last attempt in which its tries are played to their end.
MOST_AFTERMATH_SECONDS: Final = 7 * DAY_SECONDS


class World(Cluster):
    """One replay: a policy, rendered for the assumed minor of Kubernetes and, if there are several,
    for each hub.
    """

    # What a world that follows another has in their place.
    hub_type: type[Hub] = Hub
    kubelets_type: type[Kubelets] = Kubelets
    builds_type: type[BuildWorld] = BuildWorld

    def __init__(
        self,
        policy: Policy,
        assumptions: Assumptions,
        seed: int,
        hubs: Sequence[str] = (),
        journal: Journal | None = None,
        *,
        others: Mapping[str, Policy] | None = None,
    ) -> None:
        """hubs: the hubs of the launches, if they are several; otherwise all launches are of the
        policy's own hub.

        journal: is told what happens. others: another policy for some of the hubs, by namespace.
        """
        policies = policies_of(policy, hubs, others or {})
        policies = [own.in_minor(assumptions.minor) for own in policies]
        labels = {own.namespace: namespace_labels(own) for own in policies}
        # For what all hubs share.
        self.policy = joined(policies)
        measures = Measures(self.policy.name, seed)
        super().__init__(
            assumptions, measures, seed, Journal() if journal is None else journal, labels
        )
        self.figures = PullFigures()
        self.images = Images(assumptions, self.chance)
        self.kubelets = self.kubelets_type(self, self.put, self._images_shown)
        self.releases: Sequence[HubRelease] = [
            HubRelease(self, own, labels, kubelets=self.kubelets, pods=self) for own in policies
        ]
        # By namespace; without several hubs the first is everybody's.
        self._releases: dict[str, HubRelease] = {}
        if len(policies) > 1:
            self._releases = {release.policy.namespace: release for release in self.releases}
        self.bounds = BoundsMeter(
            users_per_node(assumptions),
            assumptions.min_nodes,
            node_bytes=assumptions.node_memory_bytes,
        )
        self.builds = self.builds_type(assumptions, self.chance)
        self.hub = self.hub_type(
            cluster=self,
            pods=self,
            releases=self.releases,
            images=self.images,
            kubelets=self.kubelets,
            bounds=self.bounds,
            builds=self.builds,
        )
        self.scheduling = Scheduling(
            self, self, profile_of=self.policy.profile_of, give_up_if_late=self.hub.give_up_if_late
        )
        # None before the first launch.
        self.scaling: Scaling | None = None
        self._made = 0
        self._nodes_made = 0
        # The trace has ended; only its starts are played to their end.
        self._is_over = False

    # From the first launch to the end

    def play(self, attempts: Iterable[Attempt]) -> RunResult:
        """Play all attempts, in order of time, until the last one has started or is given up."""
        source = iter(attempts)
        attempt = next(source, None)
        result = self.measures.result
        if attempt is not None:
            self._begin(attempt.moment)
        last = self.now
        while attempt is not None:
            while self.is_scheduled_until(attempt.moment):
                self._step()
            self.now = last = attempt.moment
            self.hub.arrive(attempt)
            self.scheduling.run()
            attempt = next(source, None)
        if result.attempts:
            self._close(last)
            end = last + self._aftermath_seconds()
            while self.hub.waiting and self.is_scheduled_until(end):
                self._step()
            result.still_waiting = self.hub.waiting
        self._write()
        self.journal.ended(self.sim_pods.values())
        return result

    def _aftermath_seconds(self) -> float:
        """The longest that all tries of the last launch take, and a second more, because sums of
        floats differ.
        """
        assumed = self.assumed
        if assumed.concurrent_spawn_limit:
            # Who is told to come again may be told so for long.
            return MOST_AFTERMATH_SECONDS
        tries_seconds = (assumed.retries + 1) * assumed.start_timeout_seconds + 1.0
        return min(MOST_AFTERMATH_SECONDS, tries_seconds)

    def _step(self) -> None:
        self.run_next()
        if self.scheduling.is_due:
            self.scheduling.run()

    def _begin(self, moment: float) -> None:
        self.now = moment
        for _ in range(self.assumed.min_nodes):
            self.join()
        self.scaling = Scaling(
            cluster=self,
            nodes=self,
            template=self.template(),
            unschedulable=self.scheduling.unschedulable,
        )
        self.scaling.nodes_joined()
        for release in self.releases:
            for placeholders in release.policy.placeholders:
                release.sets.fill(placeholders.name)
            release.controls.nodes_changed()
        self.scheduling.run()
        if self.assumed.webhook_restart_hours:
            self._plan_restart()

    def _plan_restart(self) -> None:
        self.at(self.now + HOUR_SECONDS * self.assumed.webhook_restart_hours, self._restart_webhook)

    def _restart_webhook(self, _: object) -> None:
        for release in self.releases:
            release.facts.restart()
        self._plan_restart()

    def _close(self, last: float) -> None:
        result = self.measures.result
        for pod in self.scheduling.unschedulable.values():
            self._count_pending(pod)
        self._is_over = True
        self.measures.close(last)
        result.bounds = self.bounds.close(last)

    def _write(self) -> None:
        """Copy the counts of other machines into the result; what follows the trace's end counts
        too.
        """
        result = self.measures.result
        figures = self.figures
        result.images_collected = figures.collected
        result.background_pulls = figures.background_pulls
        result.background_bytes = figures.background_bytes
        result.registry_bytes = figures.bytes + figures.background_bytes
        result.greatest_disk_bytes = figures.greatest_disk_bytes
        if result.attempts:
            result.bounds |= self.bounds.counted()
        if len(self.releases) > 1:
            result.hubs = {release.policy.namespace: release.result for release in self.releases}
        self.builds.write(result)

    # Pods

    def next_number(self) -> int:
        """A number that no other pod has."""
        self._made += 1
        return self._made

    def post(self, kind: str, state: Pod) -> SimPod:
        """Create a pod; its number was the last one given."""
        pod = SimPod(kind, state, self.now, self._made)
        self.sim_pods[pod.key] = pod
        self.pods[pod.key] = state
        self.tell_pod(pod)
        self.scheduling.enqueue(pod)
        self._pods_changed(pod)
        return pod

    def tell_pod(self, pod: SimPod) -> None:
        """A pod was created or bound, or its containers run: tell the webhooks."""
        for release in self.releases:
            release.facts.tell_pod(pod)

    def _pods_changed(self, pod: SimPod) -> None:
        for release in self.releases:
            release.controls.pods_changed(pod)

    def release_of(self, attempt: Attempt) -> HubRelease:
        """The release of a launch's hub. Raises KeyError for one that isn't of this replay."""
        if not self._releases:
            return self.releases[0]
        return self._releases[attempt.hub or self.policy.namespace]

    def evict(self, pod: SimPod) -> None:
        """A placeholder is evicted; its StatefulSet creates another."""
        self.journal.pod_removed(pod, None, self.now)
        self.remove(pod)

    def preempt(self, pod: SimPod) -> None:
        """A victim of pre-emption is deleted: it keeps its room until it has terminated."""
        pod.state = replace(pod.state, leaving=True, preempted=True)
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)
        self.at(self.now + self.assumed.preempted_gone_seconds, self._gone, pod)

    def _gone(self, pod: SimPod) -> None:
        if self.sim_pods.get(pod.key) is pod:
            if pod.launch is not None:
                self.hub.lose(pod, pod.launch)
            else:
                self.remove(pod)

    # Called by the scheduler

    def pod_waits(self, pod: SimPod) -> None:
        """No node fits a pod: tell controllers and the autoscaler."""
        for release in self.releases:
            release.controls.pod_waits(pod)
        if self.scaling is not None:
            self.scaling.pod_waits()

    def bind(self, pod: SimPod, node_name: str) -> None:
        """A pod is bound: its kubelet starts it."""
        node = self.nodes[node_name]
        now = self.now
        self.scheduling.unschedulable.pop(pod.key, None)
        if pod.launch is not None:
            self._count_cold(pod.launch, node, pod)
        pod.state = replace(
            pod.state, node_name=node_name, nominated_node="", unschedulable_since=None
        )
        pod.bound_at = now
        pod.node = node
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)
        node.pods[pod.key] = pod
        self.tell_pod(pod)
        if pod.kind == USER:
            self.hub.start(pod, node)
        elif pod.kind == BUILD:
            self.hub.build(pod, node)
        else:
            self._start_placeholder(pod)
        if self.scaling is not None:
            self.scaling.pods_changed(node)
        self._pods_changed(pod)

    def _start_placeholder(self, pod: SimPod) -> None:
        """A placeholder runs; its image is on every node."""
        self._count_pending(pod)
        pod.ready_at = self.now
        pod.state = replace(pod.state, phase="Running", started=self.now)
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)

    def _count_pending(self, pod: SimPod) -> None:
        """A placeholder's wait ends; waiting after the trace's end doesn't count."""
        if pod.waits_since is not None and pod.kind == PLACEHOLDER and not self._is_over:
            self.measures.result.placeholder_pending_seconds += self.now - pod.waits_since

    def _count_cold(self, launch: Launch, node: SimNode, pod: SimPod) -> None:
        """If the node lacks the image, count a cold start by where the image is."""
        image = launch.image
        node.images.settle(self.now)
        if node.images.has(image):
            return
        result = self.measures.result
        result.cold += 1
        self.release_of(launch.attempt).result.cold += 1
        holders = self.kubelets.holders.get(image)
        if not holders:
            why = NOWHERE
        elif any(self.scheduling.might_fit(pod, self.nodes[name]) for name in holders):
            why = ELSEWHERE
        else:
            why = ONLY_FULL
        result.cold_why[why] = result.cold_why.get(why, 0) + 1

    def remove(self, pod: SimPod) -> None:
        """A pod is gone."""
        key = pod.key
        node = pod.node
        self.journal.pod_gone(pod, self.now)
        if node is None:
            self._count_pending(pod)
        self.sim_pods.pop(key, None)
        self.pods.pop(key, None)
        self.scheduling.unschedulable.pop(key, None)
        if self.state.get_pod(key) is not None:
            self.state.remove_pod(key)
        for release in self.releases:
            release.facts.forget_pod(pod)
        if node is not None:
            node.pods.pop(key, None)
            if pod.launch is not None:
                node.users -= 1
                self.bounds.ended(pod.launch.image, self.now, pod.launch.attempt.memory_bytes)
                node.images.release(pod.launch.image, self.now)
            if node.name in self.nodes:
                if self.scaling is not None:
                    self.scaling.pods_changed(node)
                self.scheduling.retry(node)
        self._pods_changed(pod)
        if pod.kind == PLACEHOLDER:
            self._releases.get(pod.state.namespace, self.releases[0]).sets.pod_gone(pod)
        elif pod.builds is not None:
            self.hub.forget_build(pod.builds.image)

    # Nodes

    def boot_seconds(self) -> float:
        """How long the next node takes to boot: the n-th node takes equally long under every
        policy.
        """
        self._nodes_made += 1
        assumed = self.assumed
        return self.chance.log_normal(
            "boot", self._nodes_made, assumed.boot_median_seconds, assumed.boot_sigma
        )

    def template(self, name: str = "template") -> Node:
        """A new node, with the labels and taints of all."""
        return make_node(self.policy, self.assumed, name, self.now)

    def join(self) -> SimNode:
        """A node joins and is ready."""
        result = self.measures.result
        result.nodes_created += 1
        name = f"node-{result.nodes_created}"
        state = self.template(name)
        node = SimNode(name, state, NodeImages(self.images, self.assumed, self.now, self.figures))
        self.nodes[name] = node
        # Kubelets register their nodes before they are ready, so controllers can label them first.
        self.put(node, replace(state, ready=False, ready_since=None))
        for release in self.releases:
            release.controls.node_registered()
        self.put(node, replace(node.state, ready=True, ready_since=state.ready_since))
        self.measures.nodes(1, self.now)
        for release in self.releases:
            for puller in release.policy.pullers:
                if puller.node_selector.items() <= state.labels.items():
                    self.kubelets.begin_puller(node, puller, release.controls)
        self.nodes_changed()
        if self.scaling is not None:
            self.scaling.nodes_joined()
        self.scheduling.retry()
        return node

    def remove_node(self, node: SimNode) -> None:
        """The autoscaler removes a node; placeholders on it are created again elsewhere."""
        del self.nodes[node.name]
        node.has_left = True
        self.journal.node_left(node, self.now)
        self.kubelets.node_left(node)
        for pod in list(node.pods.values()):
            if self.state.get_pod(pod.key) is not None:
                self.state.remove_pod(pod.key)
        self.state.remove_node(node.name)
        for release in self.releases:
            release.facts.tell_node(node.name, None)
        self.measures.nodes(-1, self.now)
        self.builds.node_left(node.name, self.now)
        for release in self.releases:
            release.controls.node_left(node)
        for pod in list(node.pods.values()):
            self.remove(pod)

    def _images_shown(self) -> None:
        """A node reports other images: tell the controllers."""
        for release in self.releases:
            release.controls.images_shown()

    def nodes_changed(self) -> None:
        """A node came: tell the controllers."""
        for release in self.releases:
            release.controls.nodes_changed()

    def change_node(self, node: SimNode, state: Node) -> None:
        """Labels, taints or images of a node change."""
        self.put(node, state)
        self.scheduling.retry()

    def put(self, node: SimNode, state: Node) -> None:
        """Replace a node's object."""
        if state is not node.state or node.name not in self.state.rows:
            for release in self.releases:
                release.facts.tell_node(node.name, state)
        self.journal.node_changed(node, state, self.now)
        node.state = state
        self.state.set_node(state)
