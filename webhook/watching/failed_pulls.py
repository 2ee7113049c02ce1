"""Which images nodes can't pull, and couldn't lately."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from roost_core.placement.beliefs import FAILED_PULL, WAITED_SECONDS
from webhook.facts.placed_pod import FailedPull, PlacedPod

# Whether the node isn't at fault for a pull that failed, of a pod and an image.
Excuses = Callable[[PlacedPod, str], bool]


class _Start(NamedTuple):
    """A pod that is bound and of which no container runs yet."""

    since: float
    pod: PlacedPod


class FailedPulls:
    """What pods tell of pulls that fail, until a container with the image starts on the node.

    Where a node holds the image, it is the registry or the pull secret that failed, not the node.

    A pull that hangs raises no error. It shows when its pod goes without having started.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # When each node last couldn't pull an image. Inf: a pod says so now. Replaced, never
        # changed.
        self.last_failed: Mapping[FailedPull, float] = {}
        # The same, by image.
        self.by_image: Mapping[str, Mapping[FailedPull, float]] = {}
        # Those of `last_failed` that no pod reported.
        self.given_up: frozenset[FailedPull] = frozenset()
        # What can't be pulled now, by key of the pod that says so.
        self._failing: dict[str, set[FailedPull]] = {}
        # By key of the pod.
        self._starting: dict[str, _Start] = {}

    def update(
        self,
        changes: Mapping[str, PlacedPod | None],
        *,
        excuses_failure: Excuses,
        excuses_lost_start: Excuses,
    ) -> None:
        """Take in the changes of pods, by key.

        excuses_failure: of a pull that a pod says failed. excuses_lost_start: of a start that was
        given up.
        """
        last_failed = dict(self.last_failed)
        now = self._clock()
        for key, pod in changes.items():
            for pull in self._failing.pop(key, ()):
                last_failed[pull] = now
            if pod is not None and pod.failing:
                self._failing[key] = {
                    FailedPull(pod.node, image, pod.secrets)
                    for image in pod.failing
                    if not excuses_failure(pod, image)
                }
            start = self._end_start(key, pod, now)
            for pull in _pulls_given_up(start, now, excuses_lost_start):
                if pull not in last_failed:
                    self.given_up |= {pull}
                last_failed[pull] = now
        if last_failed or self._failing:
            last_failed = self._without_started(last_failed, changes, now)
        self._replace(last_failed)

    def drop_proven(self, proves: Callable[[str, str], bool]) -> None:
        """Forget the pulls of images that nodes certainly have now."""
        self._replace(
            {pull: at for pull, at in self.last_failed.items() if not proves(pull.node, pull.image)}
        )

    def _replace(self, last_failed: Mapping[FailedPull, float]) -> None:
        """Keep what failed, for reviews by image: each asks for few of many."""
        if last_failed == self.last_failed:
            return
        self.last_failed = last_failed
        by_image: dict[str, dict[FailedPull, float]] = {}
        for pull, at in last_failed.items():
            by_image.setdefault(pull.image, {})[pull] = at
        self.by_image = by_image

    def _end_start(self, key: str, pod: PlacedPod | None, now: float) -> _Start | None:
        """Note whether a pod is starting; return its earlier start if it went from that node."""
        start = self._starting.pop(key, None)
        stays = start is not None and pod is not None and pod.node == start.pod.node
        if pod is not None and pod.is_starting:
            since = start.since if start is not None and stays else now
            self._starting[key] = _Start(since, pod)
        return None if stays else start

    def _without_started(
        self,
        last_failed: dict[FailedPull, float],
        changes: Mapping[str, PlacedPod | None],
        now: float,
    ) -> dict[FailedPull, float]:
        """`last_failed` with what pods say now, and without what is over: an image has started on
        the node, or the failure is too old.
        """
        running = [pod for pod in changes.values() if pod is not None and not pod.is_starting]
        started = {(pod.node, image) for pod in running for image in pod.images}
        self._failing = {
            key: {pull for pull in pulls if (pull.node, pull.image) not in started}
            for key, pulls in self._failing.items()
        }
        # A pull fails for as long as its pod says so: the pod's status need not change meanwhile.
        failing_now = frozenset[FailedPull]().union(*self._failing.values())
        last_failed |= dict.fromkeys(failing_now, math.inf)
        recent = {
            pull: at
            for pull, at in last_failed.items()
            if (pull.node, pull.image) not in started and now - at < FAILED_PULL.age_seconds
        }
        # What a pod reports now is no longer only given up.
        self.given_up = (self.given_up & recent.keys()) - failing_now
        return recent


def _pulls_given_up(
    start: _Start | None, now: float, excuses_lost_start: Excuses
) -> list[FailedPull]:
    """What the node can't have pulled for a pod that went without having started there."""
    if start is None or now - start.since < WAITED_SECONDS:
        return []
    if start.pod.failing:
        # The pod itself said which image fails.
        return []
    # The first is its main container's; all pods may share the others.
    return [
        FailedPull(start.pod.node, image, start.pod.secrets)
        for image in start.pod.images[:1]
        if not excuses_lost_start(start.pod, image)
    ]
