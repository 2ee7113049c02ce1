"""Play the hour in step with the webhook, too: what it made of each user's pod, and from which facts.

As scheduling in hour_in_step.py: the simulator's webhook decides on each pod in the state that the real decisions made,
the cause of a difference is named, and the pod then goes on as it really was let in. Starts and what nodes report are
followed, not judged.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from lab.tests.e2e.simulator.hour_in_step import (
    APART_SECONDS,
    SAME,
    UNEXPLAINED,
    Followed,
    PunctualHub,
    StepWorld,
    agrees,
)
from roost_core.objects.node import Node, read_node
from roost_core.objects.pod import Pod
from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from roost_core.scheduler.cycle import SchedulingDecision, schedule
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.engine.entities import Launch, SimNode, SimPod
from roost_lab.simulator.engine.kubelets import Kubelets
from roost_lab.simulator.engine.webhook_facts import WebhookFacts
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.policy import Policy
from roost_lab.traces.attempt import Attempt
from webhook.facts import Facts

# The webhook's facts were so old that another node was better by them.
FACTS: Final = "facts a moment old"
# A node's labels or images changed a moment before the decision on one side and a moment after it on the other.
REPORT: Final = "moment of a node's report"


class Report(NamedTuple):
    """A node as it said to be, from some moment of the hour on."""

    at: float
    state: Node


def read_report(at: float, node: dict[str, Any]) -> Report:
    """From a Node as the API has it."""
    return Report(at, read_node(node))


class RememberedFacts(WebhookFacts):
    """Facts that tell how they were a moment ago."""

    def __init__(self, world: "WebhookStepWorld", labels: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(world.policy, world.releases[0].maker, labels)
        self._world = world
        # (since when, facts), the newest last.
        self._past: deque[tuple[float, Facts]] = deque()

    def tell_pod(self, pod: SimPod) -> None:
        super().tell_pod(pod)
        self._remember()

    def forget_pod(self, pod: SimPod) -> None:
        super().forget_pod(pod)
        self._remember()

    def tell_node(self, name: str, node: Node | None) -> None:
        super().tell_node(name, node)
        self._remember()

    def older(self) -> list[tuple[float, Facts]]:
        """The facts of the last moments, the newest first, and for how many seconds they have been replaced."""
        now = self._world.now
        return [
            (now - until, facts)
            for (_, facts), (until, _) in zip(list(self._past)[-2::-1], list(self._past)[::-1], strict=False)
        ]

    def _remember(self) -> None:
        now = self._world.now
        self._past.append((now, self.current()))
        # The last of those that are too old held until the next came.
        while len(self._past) > 1 and self._past[1][0] < now - APART_SECONDS:
            self._past.popleft()

    def _apply(self) -> None:
        """Not in place: older facts are read."""
        for name, changes in self._warm_changes.items():
            if changes:
                known = self._facts.warm
                self._facts = replace(self._facts, warm={**known, name: known[name].updated(changes)})
                self._warm_changes[name] = {}
        super()._apply()


class SilentKubelets(Kubelets):
    """Nodes report what they really reported."""

    def _show_soon(self, node: SimNode) -> None:
        pass


class AdmittingHub(PunctualHub):
    """Lets users in as they were let in, and starts and ends them when they really started and ended."""

    def _post_user(self, launch: Launch) -> SimPod:
        pod = super()._post_user(launch)
        cast("WebhookStepWorld", self._world).let_in(pod, launch.attempt)
        return pod

    def _up(self, argument: tuple[SimPod, dict[str, float]]) -> None:
        pod = argument[0]
        assert pod.launch is not None
        world = cast("WebhookStepWorld", self._world)
        user = world.followed.users.get(pod.launch.attempt.number)
        runs_at = 0.0 if user is None else user.ran_at
        if runs_at <= world.now:
            super()._up(argument)
        elif user is not None and runs_at < user.gone_at:
            world.at(runs_at, self._up, argument)
        elif user is not None and user.gone_at < 1e6:
            # It went before it ran.
            world.at(user.gone_at, self._end, pod)


class WebhookStepWorld(StepWorld):
    """A world that follows the webhook, too."""

    def __init__(
        self, policy: Policy, assumptions: Assumptions, followed: Followed, reports: Sequence[Report] = ()
    ) -> None:
        # What the controllers write is among the reports.
        super().__init__(replace(policy, controllers=None), assumptions, followed)
        self.hub = AdmittingHub(self)
        self.kubelets = SilentKubelets(cast("Any", self))
        self._remembered = RememberedFacts(self, self.state.surroundings.namespaces)
        self.releases[0].facts = self._remembered
        self.reports = reports
        # By launch: SAME, FACTS or UNEXPLAINED; and how old the facts were at least, where that is known.
        self.admissions: dict[int, str] = {}
        self.ages: list[float] = []
        # Nodes as they were before their reports, and pods on nodes that haven't joined yet.
        self._changed: list[tuple[float, Node]] = []
        self._early: dict[str, list[Pod]] = {}
        # By pod: what this world's webhook made of it, where that differs.
        self._otherwise: dict[str, Pod] = {}

    def _begin(self, moment: float) -> None:
        for report in self.reports:
            self.at(max(moment, report.at), self._report, report)
        for at, other in self.followed.others:
            self.at(max(moment, at), self._take_room, other)
        super()._begin(moment)

    def _report(self, report: Report) -> None:
        """A node says what it holds; its labels and room, too. The first time that it is ready it joins."""
        node = self.nodes.get(report.state.name)
        if node is None:
            if not report.state.ready or report.state.taints:
                return
            node = self.join()
            assert node.name == report.state.name
            for other in self._early.pop(node.name, ()):
                self.state.add_pod(other)
        before, said = node.state, report.state
        if (said.images, said.labels, said.allocatable) == (before.images, before.labels, before.allocatable):
            return
        self._changed.append((self.now, before))
        state = replace(
            before, labels=said.labels, images=said.images, image_count=said.image_count, allocatable=said.allocatable
        )
        self.change_node(node, state)

    def _take_room(self, other: Pod) -> None:
        """A pod that nobody here decides on came to its node."""
        if other.node_name in self.nodes:
            self.state.add_pod(other)
        else:
            self._early.setdefault(other.node_name, []).append(other)

    def let_in(self, pod: SimPod, attempt: Attempt) -> None:
        """Note whether the webhook did so with the pod, or why not; then it is as it really was."""
        user = self.followed.users.get(attempt.number)
        if user is None or user.admitted is None:
            return
        mine, real = pod.state, user.admitted
        cause = SAME
        if _asks(mine) != _asks(real):
            self._otherwise[pod.key] = mine
            cause = UNEXPLAINED
            for age, facts in self._remembered.older():
                if _asks(self.releases[0].maker.user(attempt, mine.name, self.now, facts)) == _asks(real):
                    cause = FACTS
                    self.ages.append(age)
                    break
        self.admissions[attempt.number] = cause
        # A spec of its own: of pods that are alike only the first would be tried where it doesn't fit.
        spec = replace(
            mine.spec,
            required_node_terms=real.spec.required_node_terms,
            preferred_node_terms=real.spec.preferred_node_terms,
        )
        kept = {key: text for key, text in mine.annotations.items() if key != WARM_TARGET_ANNOTATION}
        sent = {key: text for key, text in real.annotations.items() if key == WARM_TARGET_ANNOTATION}
        pod.state = replace(mine, spec=spec, annotations={**kept, **sent})
        self.pods[pod.key] = pod.state
        self.tell_pod(pod)

    def _cause(self, pod: Pod, state: ClusterState, profile: Profile, decision: SchedulingDecision, wanted: str) -> str:
        otherwise = self._otherwise.get(pod.key)
        if otherwise is None:
            return self._cause_as_let_in(pod, state, profile, decision, wanted)
        # What this world's webhook and scheduler would have done together.
        mine = agrees(schedule(replace(pod, spec=otherwise.spec), state, profile), wanted)
        if mine is not None:
            return mine
        launch = self.sim_pods[pod.key].launch
        assert launch is not None
        cause = self._cause_as_let_in(pod, state, profile, decision, wanted)
        return cause if cause == UNEXPLAINED else self.admissions[launch.attempt.number]

    def _cause_as_let_in(
        self, pod: Pod, state: ClusterState, profile: Profile, decision: SchedulingDecision, wanted: str
    ) -> str:
        cause = super()._cause(pod, state, profile, decision, wanted)
        if cause != UNEXPLAINED:
            return cause
        others = (self._with_node(pod, state, profile, other) for other in self._reported_a_moment_apart())
        return REPORT if any(agrees(other, wanted) is not None for other in others) else UNEXPLAINED

    def _reported_a_moment_apart(self) -> Iterator[Node]:
        """Nodes as they were a moment ago, or are in a moment."""
        for at, before in self._changed:
            if at >= self.now - APART_SECONDS:
                yield before
        for report in self.reports:
            node = self.nodes.get(report.state.name)
            if node is not None and self.now < report.at <= self.now + APART_SECONDS:
                said = report.state
                yield replace(node.state, labels=said.labels, images=said.images, image_count=said.image_count)

    def _with_node(self, pod: Pod, state: ClusterState, profile: Profile, other: Node) -> SchedulingDecision:
        now = self.nodes[other.name].state
        state.set_node(other)
        try:
            return schedule(pod, state, profile)
        finally:
            state.set_node(now)

    @property
    def admission_counts(self) -> Counter[str]:
        """How often the webhook did as this world's, or why not."""
        return Counter(self.admissions.values())


def _asks(pod: Pod) -> tuple[object, ...]:
    """What the webhook's rules about nodes add to a pod."""
    spec = pod.spec
    return spec.required_node_terms, spec.preferred_node_terms, pod.annotations.get(WARM_TARGET_ANNOTATION)
