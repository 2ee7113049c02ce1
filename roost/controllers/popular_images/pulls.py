"""Start pulls, follow their pods, and back off after failures.

The state is read from the cluster: a pod that pulls carries its purpose in annotations, and its name keeps a second one
from being created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import CreatePod, DeletePod, Notice
from roost.controllers.popular_images.memory import PulledImage, Rest, StartedPull
from roost.controllers.popular_images.pull_pods import (
    DELETE_SECONDS,
    Pull,
    failure_of,
    has_pulled,
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
    from roost.controllers.popular_images.node_views import NodeView
    from roost.controllers.popular_images.scene import Scene
    from roost.controllers.popular_images.settings import PopularSettings
    from roost.controllers.popular_images.wanted import Wanted
    from roost_core.objects.pod import Pod

# A requested pod appears within this time, or it was never created.
APPEAR_SECONDS: Final = 60.0
# If the scheduler hasn't found room by then, there is none.
BIND_SECONDS: Final = 120.0
# Kubelets retry by themselves; a pull that still fails after this is given up for now.
FAILING_SECONDS: Final = 60.0
# A kubelet reports a new image within 40 s as a rule, within five minutes at worst.
REPORT_SECONDS: Final = 300.0
# After a failure: the first, doubled each time, up to the last.
FIRST_BACK_OFF_SECONDS: Final = 300.0
LAST_BACK_OFF_SECONDS: Final = 6 * 3600.0
# For a node whose pulled images were garbage-collected or cleaned; doubled in the same way.
FIRST_REST_SECONDS: Final = 3600.0
LAST_REST_SECONDS: Final = 24 * 3600.0


class Pulls:
    """The pulls of one plan, and what to remember of them. Call `follow_pods` and `find_lost_images` first."""

    def __init__(self, scene: Scene, memory: PopularMemory, settings: PopularSettings, now: Moment) -> None:
        """Begin with what is remembered and still counts."""
        self._scene = scene
        self._nodes = scene.snapshot.nodes
        self._memory = memory
        self._settings = settings
        self._now = now
        # Images of booked events.
        self.booked: frozenset[str] = frozenset()
        # In the order in which they are to be done.
        self.actions: list[Action] = []
        # As in PopularMemory.
        self.started: dict[str, StartedPull] = {}
        self.deleted: dict[str, float] = {}
        self.pulled: dict[str, dict[str, PulledImage]] = {}
        self.backing_off = {image: rest for image, rest in memory.backing_off.items() if _is_remembered(rest, now)}
        self.resting = {uid: rest for uid, rest in memory.resting.items() if _is_remembered(rest, now)}
        self.failed_on = dict(memory.failed_on)
        # By name of the node.
        self._under_way: dict[str, list[Pull]] = {}

    @property
    def count(self) -> int:
        """Pulls under way, over all nodes."""
        return sum(map(len, self._under_way.values()))

    def on(self, node: str) -> list[Pull]:
        """Pulls under way on a node of that name."""
        return self._under_way.get(node, [])

    def is_resting(self, node_uid: str) -> bool:
        """Whether nothing is to be pulled to the node now."""
        rest = self.resting.get(node_uid)
        return rest is not None and rest.until > self._now.steady

    def backs_off(self, image: str) -> bool:
        """Whether the image waits for a retry, or is being retried on one node."""
        rest = self.backing_off.get(image)
        return rest is not None and (rest.until > self._now.steady or any(pull.image == image for pull in self._all()))

    def images_backing_off(self) -> list[str]:
        """Images whose back-off isn't over."""
        return [image for image, rest in self.backing_off.items() if rest.until > self._now.steady]

    def unreported_bytes(self, view: NodeView) -> int:
        """Bytes of images that were pulled to a node but aren't in its list yet."""
        return sum(
            pulled.image_bytes
            for reference, pulled in self.pulled.get(view.state.uid, {}).items()
            if reference not in view.holds and pulled.image not in view.holds
        )

    def start(self, name: str, view: NodeView, image: Wanted) -> None:
        """Have the image pulled on the node of that name."""
        pull = Pull(image.image, name, image.image_bytes, image.digest or image.image)
        body = pull_pod(self._settings, view.state, pull)
        self.actions.append(CreatePod(body=body, why=f"{self._whose(image.image)} {image.image}, and {name} lacks it"))
        self._under_way.setdefault(name, []).append(pull)
        self.started[body["metadata"]["name"]] = StartedPull(pull, view.state.uid, self._now.steady)

    def _whose(self, image: str) -> str:
        return "an event is booked with" if image in self.booked else "many users run"

    def _all(self) -> Iterator[Pull]:
        for pulls in self._under_way.values():
            yield from pulls

    def follow_pods(self) -> None:
        """Read the pods that pull, delete those that are done, and back off after failures."""
        started_before = self._memory.started
        seen: set[str] = set()
        for pod in self._scene.pull_pods:
            pull = read_pull(pod)
            seen.add(pod.name)
            state = self._nodes.get(pull.node)
            earlier = started_before.get(pod.name)
            since = earlier.since if earlier is not None else self._now.steady
            is_done, failure = has_pulled(pod), failure_of(pod)
            deleted = self._memory.deleted.get(pod.uid)
            if not is_done and not pod.is_finished and state is not None:
                # Also while it is being deleted: the kubelet may still be pulling.
                self._under_way.setdefault(pull.node, []).append(pull)
                if deleted is None and not pod.leaving:
                    self.started[pod.name] = StartedPull(pull, state.uid, since)
            if deleted is not None and self._now.steady - deleted < DELETE_SECONDS:
                self.deleted[pod.uid] = deleted
                if is_done and state is not None:
                    self._note_pulled(state.uid, pull)
                continue
            if is_done:
                self._finish(pod, pull, is_first=deleted is None and not pod.leaving)
            elif not pod.leaving:
                self._check_unfinished(pod, pull, self._now.steady - since, failure)
            elif state is not None:
                # Evicted by something that needed its room.
                self._let_rest(state.uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
        for name, earlier in started_before.items():
            if name in seen:
                continue
            state = self._nodes.get(earlier.pull.node)
            if state is None or state.uid != earlier.node_uid:
                continue
            if self._now.steady - earlier.since < APPEAR_SECONDS:
                self.started[name] = earlier
                self._under_way.setdefault(earlier.pull.node, []).append(earlier.pull)
            else:
                # Never created, or evicted before it was done: the node is short of something.
                self._let_rest(earlier.node_uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)

    def _finish(self, pod: Pod, pull: Pull, *, is_first: bool) -> None:
        state = self._nodes.get(pull.node)
        if state is not None:
            self._note_pulled(state.uid, pull)
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
                        message=f"Image {pull.image}, which {self._whose(pull.image)}, was pulled to this node.",
                    )
                )
        if not pod.leaving:
            self._delete(pod, f"image {pull.image} is on {pull.node}")

    def _check_unfinished(self, pod: Pod, pull: Pull, age: float, failure: str) -> None:
        """Give a pod whose image isn't present yet more time, or delete it. age: in seconds."""
        view = self._scene.views.get(pull.node)
        if view is None:
            self._delete(pod, f"node {pull.node} is gone")
        elif view.closed:
            self._delete(pod, f"nothing is pulled to {pull.node} now: {view.closed}")
        elif was_ended_by_node(pod):
            self._let_rest(view.state.uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
            self._delete(pod, f"its kubelet ended it: {pod.reason}")
        elif failure and (age >= FAILING_SECONDS or pod.is_finished):
            self._give_up(pod, pull, view, failure)
        elif not pod.node_name and age >= BIND_SECONDS:
            self._let_rest(view.state.uid, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
            self._delete(pod, f"no room on {pull.node} for a pod that requests nothing")
        elif age >= PULL_SECONDS:
            self._give_up(pod, pull, view, f"not pulled within {PULL_SECONDS / 60:.0f} minutes")

    def _give_up(self, pod: Pod, pull: Pull, view: NodeView, failure: str) -> None:
        rest = self.backing_off.get(pull.image)
        if rest is None or rest.until <= self._now.steady:
            failures = rest.failures if rest is not None else 0
            pause = _pause(failures, FIRST_BACK_OFF_SECONDS, LAST_BACK_OFF_SECONDS)
            rest = self.backing_off[pull.image] = Rest(failures + 1, self._now.steady + pause)
        # Pulls of one image that started together fail together, and count once.
        uid = view.state.uid
        if self.failed_on.get(uid, pull.image) != pull.image:
            # A second image, with none pulled in between: the node is at fault.
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
                f"it is retried in {(rest.until - self._now.steady) / 60:.0f} minutes at the earliest.",
                warning=True,
            )
        )
        self._delete(pod, f"image {pull.image} can't be pulled: {_cut(failure)}")

    def _delete(self, pod: Pod, why: str) -> None:
        self.actions.append(DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid, why=why))
        self.deleted[pod.uid] = self._now.steady
        self.started.pop(pod.name, None)

    def _note_pulled(self, node_uid: str, pull: Pull) -> None:
        before = self._memory.pulled.get(node_uid, {}).get(pull.reference)
        since = before.since if before is not None else self._now.steady
        self.pulled.setdefault(node_uid, {})[pull.reference] = PulledImage(since, pull.image, pull.image_bytes)

    def _let_rest(self, node_uid: str, first: float, last: float) -> None:
        rest = self.resting.get(node_uid)
        failures = rest.failures if rest is not None else 0
        if rest is not None and rest.until > self._now.steady:
            # The same failure, seen again.
            return
        self.resting[node_uid] = Rest(failures + 1, self._now.steady + _pause(failures, first, last))

    def find_lost_images(self) -> None:
        """Find images that were pulled and are gone: the kubelet or a cleaner needed the room."""
        for name, view in self._scene.views.items():
            pulled = self._memory.pulled.get(view.state.uid)
            if not pulled:
                continue
            lost: list[str] = []
            holds, remaining = view.holds, self.pulled.get(view.state.uid, {})
            for reference, image in pulled.items():
                if not (
                    reference in holds
                    or image.image in holds
                    or self._now.steady - image.since < REPORT_SECONDS
                    or image.image_bytes < view.unseen_below_bytes
                ):
                    lost.append(image.image)
                else:
                    remaining.setdefault(reference, image)
            if remaining:
                self.pulled[view.state.uid] = remaining
            if lost:
                self._let_rest(view.state.uid, FIRST_REST_SECONDS, LAST_REST_SECONDS)
                self.actions.append(
                    Notice(
                        kind="Node",
                        namespace="",
                        name=name,
                        uid=view.state.uid,
                        reason="PopularImageRemoved",
                        message=f"Image {min(lost)}, pulled to this node before, was removed by its kubelet or by a "
                        "cleaner; no popular image is pulled here for an hour or longer.",
                    )
                )


def _cut(failure: str) -> str:
    """Shorten a kubelet's message for an Event; its end says what was wrong."""
    return failure if len(failure) <= 300 else f"{failure[:60]} … {failure[-240:]}"


def _pause(failures: int, first: float, last: float) -> float:
    return min(last, first * 2.0 ** min(failures, 30))


def _is_remembered(rest: Rest, now: Moment) -> bool:
    """Whether failures still count: they expire some time after the last pause, so that the next one is short."""
    return now.steady < rest.until + LAST_REST_SECONDS
