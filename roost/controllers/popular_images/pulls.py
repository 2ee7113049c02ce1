"""Look after the pulls under way: begin them, read what became of them, and learn from those that failed.

All that is there, and all that may go wrong, is read from the cluster: pods that pull carry what they are for, and
their names keep a second one from being made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import CreatePod, DeletePod, Notice
from roost.controllers.popular_images.memory import Asked, Brought, Rest
from roost.controllers.popular_images.pods import (
    DELETE_SECONDS,
    Pull,
    failure_of,
    has_pulled,
    is_pull_pod,
    pull_pod,
    read_pull,
    was_ended_by_node,
)
from roost.controllers.popular_images.settings import PULL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost.controllers.contract.actions import Action
    from roost.controllers.contract.snapshot import Moment
    from roost.controllers.popular_images.memory import PopularMemory
    from roost.controllers.popular_images.nodes import NodeView
    from roost.controllers.popular_images.scene import Scene
    from roost.controllers.popular_images.settings import PopularSettings
    from roost.controllers.popular_images.wanted import Wanted
    from roost_core.scheduler.objects import PodState

# A pod that was asked for shows up within this, or it was never made.
APPEAR_SECONDS: Final = 60.0
# A scheduler that hasn't found room by then finds none.
BIND_SECONDS: Final = 120.0
# Kubelets try again by themselves; what still fails after this is given up for now.
FAILING_SECONDS: Final = 60.0
# A kubelet reports a new image within 40 s when all is well, at the latest after five minutes.
REPORT_SECONDS: Final = 300.0
# After a failure: so long, doubled each time, up to the second.
FIRST_BACK_OFF_SECONDS: Final = 300.0
LAST_BACK_OFF_SECONDS: Final = 6 * 3600.0
# A node whose images were collected or cleaned is left alone for longer, likewise doubled.
FIRST_REST_SECONDS: Final = 3600.0
LAST_REST_SECONDS: Final = 24 * 3600.0


class Pulls:
    """The pulls of one plan, and what to remember of them; `look_after` and `look_for_lost_images` come first."""

    def __init__(self, scene: Scene, memory: PopularMemory, settings: PopularSettings, now: Moment) -> None:
        """Begin with what is remembered and still counts."""
        self._scene = scene
        self._nodes = scene.snapshot.nodes
        self._memory = memory
        self._settings = settings
        self._now = now
        # In the order in which they are to be done.
        self.actions: list[Action] = []
        # As in PopularMemory.
        self.asked: dict[str, Asked] = {}
        self.dismissed: dict[str, float] = {}
        self.brought: dict[str, dict[str, Brought]] = {}
        self.backing_off = {image: rest for image, rest in memory.backing_off.items() if _is_remembered(rest, now)}
        self.resting = {uid: rest for uid, rest in memory.resting.items() if _is_remembered(rest, now)}
        self.failed_on = dict(memory.failed_on)
        # By name of the node.
        self._under_way: dict[str, list[Pull]] = {}

    # What is asked of them

    @property
    def count(self) -> int:
        """Pulls under way, over all nodes."""
        return sum(map(len, self._under_way.values()))

    def on(self, node: str) -> list[Pull]:
        """Pulls under way on a node of that name."""
        return self._under_way.get(node, [])

    def is_resting(self, node_uid: str) -> bool:
        """Whether the node is left alone now."""
        rest = self.resting.get(node_uid)
        return rest is not None and rest.until > self._now.steady

    def backs_off(self, image: str) -> bool:
        """Whether the image waits for its next try: also while one node tries it first."""
        rest = self.backing_off.get(image)
        return rest is not None and (rest.until > self._now.steady or any(pull.image == image for pull in self._all()))

    def images_backing_off(self) -> list[str]:
        """Images whose pause isn't over."""
        return [image for image, rest in self.backing_off.items() if rest.until > self._now.steady]

    def unreported_bytes(self, view: NodeView) -> int:
        """What was brought to a node, and isn't in its list yet."""
        return sum(
            kept.image_bytes
            for reference, kept in self.brought.get(view.state.uid, {}).items()
            if reference not in view.holds and kept.image not in view.holds
        )

    def begin(self, name: str, view: NodeView, one: Wanted) -> None:
        """Have the image pulled on the node of that name."""
        pull = Pull(one.image, name, one.image_bytes, one.digest or one.image)
        body = pull_pod(self._settings, view.state, pull)
        self.actions.append(CreatePod(body=body, why=f"many users run {one.image}, and {name} lacks it"))
        self._under_way.setdefault(name, []).append(pull)
        self.asked[body["metadata"]["name"]] = Asked(pull, view.state.uid, self._now.steady)

    def _all(self) -> Iterator[Pull]:
        for pulls in self._under_way.values():
            yield from pulls

    # What is under way

    def look_after(self) -> None:
        """Read the pods that pull, clear away those that are done, and learn from those that fail."""
        asked_before = self._memory.asked
        seen: set[str] = set()
        for pod in self._scene.pull_pods:
            if not is_pull_pod(pod, self._settings.release, self._settings.namespace):
                continue
            pull = read_pull(pod)
            seen.add(pod.name)
            state = self._nodes.get(pull.node)
            known = asked_before.get(pod.name)
            since = known.since if known is not None else self._now.steady
            is_done, failure = has_pulled(pod), failure_of(pod)
            dismissed = self._memory.dismissed.get(pod.uid)
            if not is_done and not pod.is_finished and state is not None:
                # Also while it is being deleted: the kubelet may still be at it.
                self._under_way.setdefault(pull.node, []).append(pull)
                if dismissed is None and not pod.leaving:
                    self.asked[pod.name] = Asked(pull, state.uid, since)
            if dismissed is not None and self._now.steady - dismissed < DELETE_SECONDS:
                self.dismissed[pod.uid] = dismissed
                if is_done and state is not None:
                    self._keep_brought(state.uid, pull)
                continue
            if is_done:
                self._finish(pod, pull, is_first=dismissed is None and not pod.leaving)
            elif not pod.leaving:
                self._look_at(pod, pull, self._now.steady - since, failure)
            elif state is not None:
                # Evicted, by whoever needed its place.
                self._let_rest(state.uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
        for name, asked in asked_before.items():
            if name in seen:
                continue
            state = self._nodes.get(asked.pull.node)
            if state is None or state.uid != asked.node_uid:
                continue
            if self._now.steady - asked.since < APPEAR_SECONDS:
                self.asked[name] = asked
                self._under_way.setdefault(asked.pull.node, []).append(asked.pull)
            else:
                # Never made, or evicted before it was done: that node has other worries.
                self._let_rest(asked.node_uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)

    def _finish(self, pod: PodState, pull: Pull, *, is_first: bool) -> None:
        state = self._nodes.get(pull.node)
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
        view = self._scene.views.get(pull.node)
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
        if rest is None or rest.until <= self._now.steady:
            tries = rest.tries if rest is not None else 0
            pause = _pause(tries, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
            rest = self.backing_off[pull.image] = Rest(tries + 1, self._now.steady + pause)
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
                f"it is tried again in {(rest.until - self._now.steady) / 60:.0f} minutes at the earliest.",
                warning=True,
            )
        )
        self._dismiss(pod, f"image {pull.image} can't be pulled: {_cut(failure)}")

    def _dismiss(self, pod: PodState, why: str) -> None:
        self.actions.append(DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid, why=why))
        self.dismissed[pod.uid] = self._now.steady
        self.asked.pop(pod.name, None)

    def _keep_brought(self, node_uid: str, pull: Pull) -> None:
        before = self._memory.brought.get(node_uid, {}).get(pull.reference)
        since = before.since if before is not None else self._now.steady
        self.brought.setdefault(node_uid, {})[pull.reference] = Brought(since, pull.image, pull.image_bytes)

    def _let_rest(self, node_uid: str, first: float, last: float) -> None:
        rest = self.resting.get(node_uid)
        tries = rest.tries if rest is not None else 0
        if rest is not None and rest.until > self._now.steady:
            # The same trouble, told again.
            return
        self.resting[node_uid] = Rest(tries + 1, self._now.steady + _pause(tries, first, last))

    # What was taken away again

    def look_for_lost_images(self) -> None:
        """Notice images that were brought and are gone: the kubelet or a cleaner needed the room."""
        for name, view in self._scene.views.items():
            brought = self._memory.brought.get(view.state.uid)
            if not brought:
                continue
            lost: list[str] = []
            holds, kept = view.holds, self.brought.get(view.state.uid, {})
            for reference, one in brought.items():
                if not (
                    reference in holds
                    or one.image in holds
                    or self._now.steady - one.since < REPORT_SECONDS
                    or one.image_bytes < view.unseen_below_bytes
                ):
                    lost.append(one.image)
                else:
                    kept.setdefault(reference, one)
            if kept:
                self.brought[view.state.uid] = kept
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


def _cut(failure: str) -> str:
    """The kubelet's words, short enough for an Event; their end says what was wrong."""
    return failure if len(failure) <= 300 else f"{failure[:60]} … {failure[-240:]}"


def _pause(tries: int, first: float, last: float) -> float:
    return min(last, first * 2.0 ** min(tries, 30))


def _is_remembered(rest: Rest, now: Moment) -> bool:
    """Failures are forgotten a while after the last pause ended, so that the next one begins small."""
    return now.steady < rest.until + LAST_REST_SECONDS
