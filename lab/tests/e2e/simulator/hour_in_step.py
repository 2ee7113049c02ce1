"""Play the hour in the simulator in step with the real control plane, and name the cause of each
decision that differs.

Left alone, the two part for good at the first decision that differs, and what follows says nothing.
Here the simulator decides each pod in the state that the real decisions made; where it decides
otherwise, the cause is named, and it then does as kube-scheduler did.
"""

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import pytest
import yaml

from generator.values.release_name import Release
from lab.tests.e2e.simulator import played_hour
from lab.tests.small_worlds import WatchedWorld
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from roost_core.scheduler.cycle import SchedulingDecision, schedule
from roost_core.scheduler.preemption import Nomination
from roost_core.scheduler.profile import Profile
from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.engine import scheduling
from roost_lab.simulator.engine.entities import Launch, SimNode, SimPod
from roost_lab.simulator.engine.hub import Hub
from roost_lab.simulator.engine.kubelets import Kubelets
from roost_lab.simulator.engine.webhook_facts import WebhookFacts
from roost_lab.simulator.setup.policy import Policy, load_policy
from roost_lab.traces.attempt import Attempt
from webhook.facts.facts import Facts

SAME: Final = "same"
# Nodes with equal scores: kube-scheduler draws one, the model takes the first.
TIE: Final = "tie of scores"
# Victims that started in the same second: kube-scheduler takes any.
VICTIM: Final = "victims of equal rank"
# A pod went a moment before the decision on one side and a moment after it on the other.
MOMENT: Final = "moment of a deletion"
UNEXPLAINED: Final = "unexplained"
# How far apart the two sides may be, compressed seconds: what requests and watches take on a loaded
# machine.
APART_SECONDS: Final = 0.5


# The webhook's facts were so old that another node was better by them.
FACTS: Final = "facts a moment old"
# A node's labels or images changed a moment before the decision on one side and a moment after it
# on the other.
REPORT: Final = "moment of a node's report"


class Outcome(NamedTuple):
    """How often the simulator would have decided so too (SAME), or why not."""

    # By launch.
    users: dict[int, str]
    placeholders: Counter[str]


def unexplained(causes: Mapping[int, str], played: played_hour.Played) -> set[int]:
    """The launches without a named cause, but for those around stalls of the machine."""
    return {number for number, cause in causes.items() if cause == UNEXPLAINED} - played.stalled


class RememberedFacts(WebhookFacts):
    """Facts that tell how they were a moment ago."""

    def __init__(self, world: "FollowingWorld", labels: Mapping[str, Mapping[str, str]]) -> None:
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
        """The facts of the last moments, the newest first, and for how many seconds they have been
        replaced.
        """
        now = self._world.now
        return [
            (now - until, facts)
            for (_, facts), (until, _) in zip(
                list(self._past)[-2::-1], list(self._past)[::-1], strict=False
            )
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
                self._facts = replace(
                    self._facts, warm={**known, name: known[name].updated(changes)}
                )
                self._warm_changes[name] = {}
        super()._apply()


class SilentKubelets(Kubelets):
    """Nodes report what they really reported."""

    def _show_soon(self, node: SimNode) -> None:
        pass


class FollowingHub(Hub):
    """Lets users in as they were let in, and starts and ends them when they really started and
    ended.
    """

    def _user(self, attempt: Attempt) -> played_hour.User | None:
        return cast("FollowingWorld", self._cluster).followed.users.get(attempt.number)

    def _session_seconds(self, attempt: Attempt) -> float:
        user = self._user(attempt)
        return max(0.0, (math.inf if user is None else min(user.gone_at, 1e6)) - self._cluster.now)

    def _post_user(self, launch: Launch) -> SimPod:
        pod = super()._post_user(launch)
        cast("FollowingWorld", self._cluster).let_in(pod, launch.attempt)
        return pod

    def _up(self, argument: tuple[SimPod, dict[str, float]]) -> None:
        pod, world = argument[0], self._cluster
        assert pod.launch is not None
        user = self._user(pod.launch.attempt)
        runs_at = 0.0 if user is None else user.ran_at
        if runs_at <= world.now:
            super()._up(argument)
        elif user is not None and runs_at < user.gone_at:
            world.at(runs_at, self._up, argument)
        elif user is not None and user.gone_at < 1e6:
            # It went before it ran.
            world.at(user.gone_at, self._end, pod)


class SizedNodes(WatchedWorld):
    """Nodes of the hour's sizes."""

    def template(self, name: str = "template") -> Node:
        node = super().template(name)
        number = name.removeprefix("node-")
        if not number.isdecimal():
            return node
        return replace(
            node, allocatable={**node.allocatable, "memory": played_hour.node_bytes(int(number))}
        )


class FollowingWorld(SizedNodes):
    """A world that follows: every pod comes, is let in, is bound and goes when and as it really did
    so.
    """

    hub_type: type[Hub] = FollowingHub
    kubelets_type = SilentKubelets
    hub: Any

    def __init__(self, policy: Policy, seen: played_hour.Seen) -> None:
        # What the controllers write is among the reports.
        super().__init__(replace(policy, controllers=None), played_hour.ALONE)
        self._remembered = RememberedFacts(self, self.state.surroundings.namespaces)
        self.releases[0].facts = self._remembered
        self.followed, self.reports = seen.followed, seen.reports
        self.outcome = Outcome({}, Counter())
        # By launch: SAME, FACTS or UNEXPLAINED; and how old the facts were at least, where that is
        # known.
        self.admissions: dict[int, str] = {}
        self.ages: list[float] = []
        # Real placeholders that no pod of this world stands for yet, in order of binding.
        self._unbound = sorted(
            seen.followed.placeholders, key=lambda placeholder: placeholder.bound_at
        )
        # By the pod's number.
        self._stands_for: dict[int, played_hour.Placeholder] = {}
        # (when, pod) of those that went.
        self._went: list[tuple[float, Pod]] = []
        # Nodes as they were before their reports, and pods on nodes that haven't joined yet.
        self._changed: list[tuple[float, Node]] = []
        self._early: dict[str, list[Pod]] = {}
        # By pod: what this world's webhook made of it, where that differs.
        self._otherwise: dict[str, Pod] = {}

    def _begin(self, moment: float) -> None:
        for at, said in self.reports:
            self.at(max(moment, at), self._report, said)
        for at, other in self.followed.others:
            self.at(max(moment, at), self._take_room, other)
        for placeholder in self.followed.placeholders:
            self.at(max(moment, placeholder.bound_at), self._wake)
        for user in self.followed.users.values():
            self.at(max(moment, user.decided_at), self._wake)
        super()._begin(moment)

    def _wake(self, _: None) -> None:
        self.scheduling.retry()

    def _start_placeholder(self, pod: SimPod) -> None:
        super()._start_placeholder(pod)
        real = self._stands_for[pod.order]
        pod.state = replace(pod.state, started=real.started)
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)
        if real.gone_at < math.inf:
            self.at(real.gone_at, self._gone, pod)

    def preempt(self, pod: SimPod) -> None:
        """It keeps its room until it really went."""
        pod.state = replace(pod.state, leaving=True, preempted=True)
        self.pods[pod.key] = pod.state
        self.state.add_pod(pod.state)

    def remove(self, pod: SimPod) -> None:
        if pod.bound_at is not None:
            self._went.append((self.now, pod.state))
        super().remove(pod)

    def decide(
        self, pod: Pod, state: ClusterState, profile: Profile, *, start: int = 0
    ) -> SchedulingDecision:
        """What was really done, at its time; notes whether the model would have done so, or why
        not.
        """
        mine = self.sim_pods[pod.key]
        waits = SchedulingDecision(None, message="not yet", next_start=start)
        if mine.launch is None:
            return self._place(mine, state, profile, waits)
        number = mine.launch.attempt.number
        user = self.followed.users.get(number)
        if user is None or user.decided_at > self.now + 1e-6:
            return waits
        decision = schedule(pod, state, profile, start=start)
        if number not in self.outcome.users:
            self.outcome.users[number] = self._cause(pod, state, profile, decision, user.node)
        if decision.node == user.node:
            return decision
        if decision.node is not None and user.node not in decision.rejections:
            return replace(decision, node=user.node)
        victim = next(
            (
                sim_pod
                for sim_pod in self.sim_pods.values()
                if self._stands_for.get(sim_pod.order) == user.victim and sim_pod.node
            ),
            None,
        )
        if user.victim is None or victim is None or victim.state.leaving:
            # It gets the room as soon as that is free.
            return waits
        return replace(decision, node=None, nomination=Nomination(user.node, (victim.state,)))

    def _place(
        self, mine: SimPod, state: ClusterState, profile: Profile, waits: SchedulingDecision
    ) -> SchedulingDecision:
        """A placeholder waits until a real one was bound, and takes its node."""
        due = [pod for pod in self._unbound if pod.bound_at <= self.now + 1e-6]
        if not due:
            return waits
        decision = schedule(mine.state, state, profile)
        for pod in due:
            if decision.node is None or pod.node in decision.rejections:
                continue
            # Those before the hour come all at once, in an order that isn't recorded.
            if pod.bound_at >= 0:
                self.outcome.placeholders[
                    self._cause(mine.state, state, profile, decision, pod.node)
                ] += 1
            self._unbound.remove(pod)
            self._stands_for[mine.order] = pod
            return replace(decision, node=pod.node)
        return waits

    def _cause_as_let_in(
        self,
        pod: Pod,
        state: ClusterState,
        profile: Profile,
        decision: SchedulingDecision,
        wanted: str,
    ) -> str:
        cause = agrees(decision, wanted)
        if cause is not None:
            return cause
        if any(
            agrees(other, wanted) is not None for other in self._a_moment_apart(pod, state, profile)
        ):
            return MOMENT
        others = (
            self._with_node(pod, state, profile, other) for other in self._reported_a_moment_apart()
        )
        return REPORT if any(agrees(other, wanted) is not None for other in others) else UNEXPLAINED

    def _a_moment_apart(
        self, pod: Pod, state: ClusterState, profile: Profile
    ) -> Iterator[SchedulingDecision]:
        """What would be decided if pods had gone a moment earlier, or later."""
        soon = self.now + APART_SECONDS
        going = [
            sim_pod.state
            for sim_pod in self.sim_pods.values()
            if sim_pod.node is not None and self._goes_at(sim_pod) <= soon
        ]
        gone = [
            one
            for at, one in self._went
            if at >= self.now - APART_SECONDS and one.node_name in state.rows
        ]
        for less, more in ((going, []), ([], gone), (going, gone)):
            yield self._with(pod, state, profile, less, more)
        for one in going:
            yield self._with(pod, state, profile, [one], [])
        for one in gone:
            yield self._with(pod, state, profile, [], [one])

    def _goes_at(self, pod: SimPod) -> float:
        if pod.launch is None:
            return self._stands_for[pod.order].gone_at
        user = self.followed.users.get(pod.launch.attempt.number)
        return math.inf if user is None else user.gone_at

    def _with(
        self,
        pod: Pod,
        state: ClusterState,
        profile: Profile,
        less: Sequence[Pod],
        more: Sequence[Pod],
    ) -> SchedulingDecision:
        less = [one for one in less if state.get_pod(one.key) is not None]
        more = [one for one in more if state.get_pod(one.key) is None]
        kept = [state.get_pod(one.key) for one in less]
        for one in less:
            state.remove_pod(one.key)
        for one in more:
            state.add_pod(one)
        try:
            return schedule(pod, state, profile)
        finally:
            for one in more:
                state.remove_pod(one.key)
            for other in kept:
                assert other is not None
                state.add_pod(other)

    def _report(self, said: Node) -> None:
        """A node says what it holds; its labels and room, too.

        The first time that it is ready it joins.
        """
        node = self.nodes.get(said.name)
        if node is None:
            if not said.ready or said.taints:
                return
            node = self.join()
            assert node.name == said.name
            for other in self._early.pop(node.name, ()):
                self.state.add_pod(other)
        before = node.state
        if (said.images, said.labels, said.allocatable) == (
            before.images,
            before.labels,
            before.allocatable,
        ):
            return
        self._changed.append((self.now, before))
        state = replace(
            before,
            labels=said.labels,
            images=said.images,
            image_count=said.image_count,
            allocatable=said.allocatable,
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
                if _asks(self.releases[0].maker.user(attempt, mine.name, self.now, facts)) == _asks(
                    real
                ):
                    cause = FACTS
                    self.ages.append(age)
                    break
        self.admissions[attempt.number] = cause
        # A spec of its own: of pods that are alike only the first would be tried where it doesn't
        # fit.
        spec = replace(
            mine.spec,
            required_node_terms=real.spec.required_node_terms,
            preferred_node_terms=real.spec.preferred_node_terms,
        )
        kept = {
            key: text for key, text in mine.annotations.items() if key != WARM_TARGET_ANNOTATION
        }
        sent = {
            key: text for key, text in real.annotations.items() if key == WARM_TARGET_ANNOTATION
        }
        pod.state = replace(mine, spec=spec, annotations={**kept, **sent})
        self.pods[pod.key] = pod.state
        self.tell_pod(pod)

    def _cause(
        self,
        pod: Pod,
        state: ClusterState,
        profile: Profile,
        decision: SchedulingDecision,
        wanted: str,
    ) -> str:
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

    def _reported_a_moment_apart(self) -> Iterator[Node]:
        """Nodes as they were a moment ago, or are in a moment."""
        for at, before in self._changed:
            if at >= self.now - APART_SECONDS:
                yield before
        for at, said in self.reports:
            node = self.nodes.get(said.name)
            if node is not None and self.now < at <= self.now + APART_SECONDS:
                yield replace(
                    node.state, labels=said.labels, images=said.images, image_count=said.image_count
                )

    def _with_node(
        self, pod: Pod, state: ClusterState, profile: Profile, other: Node
    ) -> SchedulingDecision:
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


def agrees(decision: SchedulingDecision, wanted: str) -> str | None:
    """SAME, TIE or VICTIM if kube-scheduler might have decided so in this state, else None."""
    if decision.node is not None:
        if decision.node == wanted:
            return SAME
        return TIE if decision.table is not None and wanted in decision.table.best else None
    nomination = decision.nomination
    if nomination is None:
        return None
    if nomination.node == wanted:
        return SAME
    return VICTIM if wanted in nomination.equals else None


def _asks(pod: Pod) -> tuple[object, ...]:
    """What the webhook's rules about nodes add to a pod."""
    spec = pod.spec
    return (
        spec.required_node_terms,
        spec.preferred_node_terms,
        pod.annotations.get(WARM_TARGET_ANNOTATION),
    )


class GrowingWorld(SizedNodes):
    """The late node can join."""

    def join_late(self, _: None) -> None:
        self.join()


def in_step(seen: played_hour.Seen, more: Mapping[str, object], folder: Path) -> FollowingWorld:
    """Play in step under the values above, with these over them."""
    values = folder / f"in-step-{len(list(folder.iterdir()))}.yaml"
    values.write_text(yaml.safe_dump({**played_hour.VALUES, **more}))
    policy = load_policy("hour", [str(values)], release=Release("hub", seen.namespace))
    world = FollowingWorld(policy, seen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduling, "schedule", world.decide)
        # Pulls take no time here: pods run when they really did.
        world.play([attempt._replace(image_bytes=1) for attempt in seen.real.attempts])
    return world


def simulate(seen: played_hour.Seen, folder: Path) -> GrowingWorld:
    """In the simulator alone. Sessions begin when servers run, as the simulator counts them."""
    users = seen.followed.users
    # For so long their containers ran.
    stayed = {
        number: min(pod.gone_at, 10_000.0) - min(pod.ran_at, pod.gone_at)
        for number, pod in users.items()
    }
    attempts = [
        attempt._replace(session_seconds=max(0.0, stayed[attempt.number]))
        for attempt in seen.real.attempts
    ]
    values = folder / "alone.yaml"
    values.write_text(yaml.safe_dump(played_hour.VALUES))
    policy = load_policy("hour", [str(values)], release=Release("hub", seen.namespace))
    world = GrowingWorld(policy, played_hour.ALONE, seed=played_hour.SEED)
    for name, size in played_hour.MANAGED_SIZES.items():
        world.images.get(name, size)
    world.at(played_hour.READY_SECONDS, world.join_late)
    world.play(attempts)
    return world
