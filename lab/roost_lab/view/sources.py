"""What the page shows: a record, at any time of it, or a live cluster, as it is now."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import read_story
from roost_lab.report.query import Extent
from roost_lab.view.live import why_of
from roost_lab.view.reading import find_pod, read_moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost_lab.recorder.answers.pod_story import PodStory
    from roost_lab.recorder.store.database import Store
    from roost_lab.view.live import LiveCluster
    from roost_lab.view.moment import Moment


class Source(Protocol):
    """Something that knows nodes and pods. Its methods raise StoreError."""

    def moment(self, at_us: int | None) -> tuple[Moment, Extent] | None:
        """The cluster at that time (None: the latest), and the time that is known; None where nothing is."""

    def why(self, uid: str) -> str | None:
        """What explains a pod; None when it isn't known, or isn't to be shown."""


class RecordSource:
    """A record. hubs: those (releases) whose pods are shown; None: all pods."""

    def __init__(
        self, store: Store, hubs: frozenset[str] | None = None, now_us: Callable[[], int] | None = None
    ) -> None:
        self._store = store
        self._hubs = hubs
        self._now_us = now_us or (lambda: time.time_ns() // 1000)

    def moment(self, at_us: int | None) -> tuple[Moment, Extent] | None:
        """As `Source`."""
        return read_moment(self._store, at_us, self._now_us(), self._hubs)

    def why(self, uid: str) -> str | None:
        """As `Source`."""
        pod = find_pod(self._store, uid)
        if pod is None or (self._hubs is not None and pod["hub"] not in self._hubs):
            return None
        story = read_story(self._store, pod)
        return explain(story if self._hubs is None else _without_others(story))


class LiveSource:
    """A live cluster: whatever time is asked for, it answers with now."""

    def __init__(self, cluster: LiveCluster, hubs: frozenset[str] | None = None) -> None:
        self._cluster = cluster
        self._hubs = hubs

    def moment(self, at_us: int | None) -> tuple[Moment, Extent] | None:  # noqa: ARG002 - there is no past
        """As `Source`."""
        moment = self._cluster.moment(self._hubs)
        return moment, Extent(moment.at_us, moment.at_us)

    def why(self, uid: str) -> str | None:
        """As `Source`."""
        return why_of(self._cluster.moment(self._hubs), uid)


def _without_others(story: PodStory) -> PodStory:
    victims = [{**victim, "namespace": "", "name": ""} for victim in story.victims]
    return replace(story, victims=victims, preemptor=None)
