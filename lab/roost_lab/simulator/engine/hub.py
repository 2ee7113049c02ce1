"""Play the hub, its spawner and its culler: which launches are admitted, which tries fail, how long
servers run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Protocol

from roost_lab.simulator.engine.entities import Launch, SimNode, SimPod
from roost_lab.simulator.engine.pods import BUILD, USER, image_reference
from roost_lab.simulator.engine.results import ANSWER, NODE_WAIT, PULL, PULL_WAIT, QUEUE, START
from roost_lab.simulator.setup.assumptions import SESSIONS

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod
    from roost_lab.simulator.engine.bounds import BoundsMeter
    from roost_lab.simulator.engine.builds import BuildWorld
    from roost_lab.simulator.engine.cluster import Cluster
    from roost_lab.simulator.engine.kubelets import Kubelets
    from roost_lab.simulator.engine.node_images import Images
    from roost_lab.simulator.engine.releases import HubRelease
    from roost_lab.traces.attempt import Attempt


class PodLife(Protocol):
    """What a hub asks for: pods that come and go."""

    def next_number(self) -> int:
        """A number that no other pod has."""

    def post(self, kind: str, state: Pod) -> SimPod:
        """Create a pod."""

    def tell_pod(self, pod: SimPod) -> None:
        """A pod's containers run: tell the webhooks."""

    def remove(self, pod: SimPod) -> None:
        """Delete a pod."""

    def release_of(self, attempt: Attempt) -> HubRelease:
        """The release of a launch's hub."""


class Hub:
    """The hub of one replay, or all of its hubs: each has its own quotas."""

    def __init__(
        self,
        cluster: Cluster,
        pods: PodLife,
        releases: Sequence[HubRelease],
        *,
        images: Images,
        kubelets: Kubelets,
        bounds: BoundsMeter,
        builds: BuildWorld,
    ) -> None:
        """releases: of all hubs. images: of the replay. builds: how long builds take."""
        self._cluster = cluster
        self._pods = pods
        self._releases = releases
        self._images = images
        self._kubelets = kubelets
        self._bounds = bounds
        self._builds = builds
        # Admitted launches whose servers aren't up yet.
        self.starting = 0
        # Images being built now.
        self._building: set[str] = set()

    @property
    def waiting(self) -> int:
        """Launches whose servers aren't up yet, with those that were told to come again."""
        result = self._cluster.measures.result
        refused = result.refused_by_repository + result.refused_by_total
        return result.attempts - refused - result.started - result.given_up

    def arrive(self, attempt: Attempt) -> None:
        """Somebody launches."""
        self._cluster.measures.result.attempts += 1
        self._admit(attempt)

    def _admit(self, attempt: Attempt) -> None:
        """Admit a launch within the quotas, or later."""
        result = self._cluster.measures.result
        assumed = self._cluster.assumed
        repository = attempt.repository
        if assumed.concurrent_spawn_limit and self.starting >= assumed.concurrent_spawn_limit:
            # The hub says when to come again.
            share = self._cluster.chance.uniform(
                "come again", f"{attempt.number} {self._cluster.now}"
            )
            self._cluster.at(self._cluster.now + 30.0 + 30.0 * share, self._admit, attempt)
            return
        release = self._pods.release_of(attempt)
        of_repository = release.of_repository[repository] if repository else 0
        if assumed.quota_per_repository and of_repository >= assumed.quota_per_repository:
            result.refused_by_repository += 1
            return
        if assumed.active_server_limit and release.running >= assumed.active_server_limit:
            result.refused_by_total += 1
            return
        result.admitted += 1
        release.of_repository[repository] += 1
        release.running += 1
        self.starting += 1
        image = image_reference(attempt.image)
        self._images.get(image, attempt.image_bytes)
        is_building = attempt.image in self._building
        if assumed.with_builds and not is_building and self._builds.needs_build(attempt.image):
            self._post_build(attempt)
        launch = Launch(attempt, image, assumed.retries)
        launch.spent[QUEUE] = self._cluster.now - attempt.moment
        self._post_user(launch)

    def _post_user(self, launch: Launch) -> SimPod:
        self._cluster.measures.result.tries += 1
        name = f"user-{self._pods.next_number()}"
        release = self._pods.release_of(launch.attempt)
        made = release.maker.user(launch.attempt, name, self._cluster.now, release.facts.current())
        pod = self._pods.post(USER, made)
        pod.launch = launch
        return pod

    def _post_build(self, attempt: Attempt) -> None:
        """Build an image that is launched for the first time.

        No user waits: the trace has the time after the build.
        """
        self._building.add(attempt.image)
        name = f"build-{self._pods.next_number()}"
        release = self._pods.release_of(attempt)
        made = release.maker.build(
            attempt.repository, name, self._cluster.now, release.facts.current()
        )
        self._pods.post(BUILD, made).builds = attempt

    def build(self, pod: SimPod, node: SimNode) -> None:
        """A build's pod is bound."""
        if pod.builds is not None:
            build = self._builds.begin(pod.builds.repository, node.name, self._cluster.now)
            self._bounds.built(pod.builds.repository)
            self._cluster.at(self._cluster.now + build.seconds, self._built, pod)

    def _built(self, pod: SimPod) -> None:
        if pod.builds is not None and self._cluster.sim_pods.get(pod.key) is pod:
            self._builds.built(pod.builds.image)
            self._building.discard(pod.builds.image)
            self._pods.remove(pod)

    def give_up_if_late(self, pod: SimPod) -> None:
        """The spawner's timeout is over: the try fails unless the server is up."""
        if pod.ready_at is not None or pod.key not in self._cluster.sim_pods:
            return
        launch = pod.launch
        result = self._cluster.measures.result
        if launch is None:
            return
        result.timeouts += 1
        self._end_try(pod, launch)

    def _end_try(self, pod: SimPod, launch: Launch) -> None:
        """A pod is removed before its server was up: the hub tries again, or gives up."""
        result = self._cluster.measures.result
        launch.note_try(pod, self._cluster.now)
        self._pods.remove(pod)
        if launch.tries_left > 0:
            launch.tries_left -= 1
            self._post_user(launch)
        else:
            result.given_up += 1
            self._end_wait(launch, launch.spent, is_up=False)
            self._forget(launch)

    def _end_wait(self, launch: Launch, parts: Mapping[str, float], *, is_up: bool) -> None:
        """A launch waits no longer.

        Its wait counts though no server came: a hub that starts nobody isn't quick.
        """
        measures = self._cluster.measures
        waited = measures.waited(parts)
        measures.result.waited_for_node += launch.waited_for_node
        measures.on_wait(launch.attempt.number, waited, is_up)
        self._pods.release_of(launch.attempt).result.waits.add(waited)
        self.starting -= 1

    def lose(self, pod: SimPod, launch: Launch) -> None:
        """A user's pod is pre-empted or deleted: its try ends, or its session."""
        if pod.ready_at is None:
            self._end_try(pod, launch)
        else:
            self._end(pod)

    def _forget(self, launch: Launch) -> None:
        repository = launch.attempt.repository
        release = self._pods.release_of(launch.attempt)
        release.of_repository[repository] -= 1
        if not release.of_repository[repository]:
            del release.of_repository[repository]
        release.running -= 1

    # A server's start and end

    def start(self, pod: SimPod, node: SimNode) -> None:
        """A user's pod is bound: pull, start, and run as long as the session."""
        launch = pod.launch
        if launch is None:
            return
        assumed = self._cluster.assumed
        image = launch.image
        begins = self._cluster.now + assumed.bind_seconds
        self._cluster.measures.result.placed += 1
        self._pods.release_of(launch.attempt).result.placed += 1
        node.users += 1
        self._bounds.started(image, self._cluster.now, launch.attempt.memory_bytes)
        node.images.use(image, self._cluster.now)
        pull = node.images.pull(image, begins)
        pod.pull = pull
        pod.asked_at = begins
        if pull.is_cold:
            self._cluster.at(pull.finish, self._kubelets.image_arrived, (node, image))
        up = pull.finish + assumed.start_seconds
        if up - pod.created > assumed.start_timeout_seconds:
            # Of a pod that waited, the end of the timeout is planned already.
            if pod.waits_since is None:
                self._cluster.at(
                    pod.created + assumed.start_timeout_seconds, self.give_up_if_late, pod
                )
            return
        waits = dict(launch.spent)
        waits[NODE_WAIT if pod.waited_for_node else QUEUE] += self._cluster.now - pod.created
        waits[PULL_WAIT] += max(0.0, pull.begin - begins)
        waits[PULL] += max(0.0, pull.finish - max(pull.begin, begins))
        waits[START] = assumed.bind_seconds + assumed.start_seconds
        waits[ANSWER] = self._answer_seconds(launch.attempt)
        self._cluster.at(up, self._up, (pod, waits))

    def _answer_seconds(self, attempt: Attempt) -> float:
        """How long a server takes to answer once its containers run."""
        assumed = self._cluster.assumed
        if not assumed.answer_sigma:
            return assumed.answer_seconds
        return self._cluster.chance.log_normal(
            "answer", attempt.number, assumed.answer_seconds, assumed.answer_sigma
        )

    def _up(self, argument: tuple[SimPod, dict[str, float]]) -> None:
        pod, waits = argument
        launch = pod.launch
        if launch is None or self._cluster.sim_pods.get(pod.key) is not pod:
            return
        pod.ready_at = self._cluster.now
        self._pods.tell_pod(pod)
        launch.waited_for_node |= pod.waited_for_node
        self._end_wait(launch, waits, is_up=True)
        self._cluster.measures.result.started += 1
        self._pods.release_of(launch.attempt).result.started += 1
        for release in self._releases:
            if release.controls.reads_starts:
                release.controls.user_runs(pod, launch.image)
        self._cluster.at(self._cluster.now + self._session_seconds(launch.attempt), self._end, pod)

    def _session_seconds(self, attempt: Attempt) -> float:
        """How long a server runs, at most until it is too old.

        A recorded length ends when the culler of that time ended the server, if it did. Then the
        time until this replay's culler does takes the place of the last, idle part. All other
        lengths stay: of a hub without a culler, and of servers that ended otherwise.
        """
        assumed = self._cluster.assumed
        recorded_seconds = attempt.session_seconds
        if recorded_seconds is None:
            return self._until_too_old(self._drawn_seconds(attempt))
        if not assumed.cull_timeout_seconds:
            return self._until_too_old(recorded_seconds)
        traced_cull_seconds = assumed.sessions_cull_timeout_seconds
        if recorded_seconds <= traced_cull_seconds or self._is_stopped(attempt):
            return self._until_too_old(recorded_seconds)
        # How long the culler was waited for, the trace doesn't tell.
        waited = assumed.sessions_cull_every_seconds * self._cluster.chance.uniform(
            "culler waited for", attempt.number
        )
        active = max(0.0, recorded_seconds - traced_cull_seconds - waited)
        return self._until_too_old(self._until_culled(active + assumed.cull_timeout_seconds))

    def _drawn_seconds(self, attempt: Attempt) -> float:
        """How long a server runs whose length nobody recorded. Drawn lengths, too, contain a
        culler's timeout, unless they are shorter.
        """
        assumed = self._cluster.assumed
        least_minutes, median_minutes, sigma = SESSIONS[assumed.sessions]
        more_minutes = self._cluster.chance.log_normal(
            "session", attempt.number, median_minutes, sigma
        )
        seconds = 60.0 * (least_minutes + more_minutes)
        traced_cull_seconds = assumed.sessions_cull_timeout_seconds
        if assumed.cull_timeout_seconds and seconds > traced_cull_seconds:
            active = seconds - traced_cull_seconds
            if self._is_stopped(attempt):
                return active
            seconds = active + assumed.cull_timeout_seconds
        return self._until_culled(seconds)

    def _is_stopped(self, attempt: Attempt) -> bool:
        """Whether its user stops the server, so that no culler need do it."""
        share = self._cluster.chance.uniform("stops the server", attempt.number)
        return share < self._cluster.assumed.stopped_share

    def _until_too_old(self, seconds: float) -> float:
        """`seconds`, or until the culler's first run after the greatest age if that is sooner."""
        oldest = self._cluster.assumed.cull_max_age_seconds
        return min(seconds, self._until_culled(oldest)) if oldest else seconds

    def _until_culled(self, seconds: float) -> float:
        """From now until the culler's first run after so many seconds. So servers whose users have
        gone leave in groups. The culler has one phase under all policies.
        """
        cluster = self._cluster
        every = cluster.assumed.cull_every_seconds
        if not every:
            return seconds
        phase = cluster.chance.uniform("culler", "phase") * every
        ends = cluster.now + seconds
        run = phase + ceil((ends - phase) / every) * every
        # A rounding error must not make it earlier.
        return max(ends, run) - cluster.now

    def _end(self, pod: SimPod) -> None:
        if self._cluster.sim_pods.get(pod.key) is not pod:
            # The pod was removed before its end.
            return
        if pod.launch is not None:
            self._forget(pod.launch)
        self._pods.remove(pod)

    def forget_build(self, image: str) -> None:
        """The build of an image has ended."""
        self._building.discard(image)
