"""What the page shows: a record, at any time of it, or a live cluster, as it is now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import sqlalchemy as sa

from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import read_story
from roost_lab.recorder.store import schema
from roost_lab.report.statistics import Span
from roost_lab.view.live import why_of
from roost_lab.view.reading import read_moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost_lab.recorder.store.database import Store
    from roost_lab.view.live import LiveCluster
    from roost_lab.view.moment import Moment


class Source(Protocol):
    """Something that knows nodes and pods. Its methods raise StoreError."""

    def moment(self, at_us: int | None) -> tuple[Moment, Span] | None:
        """The cluster at that time (None: the latest), and the time that is known; None where nothing is."""

    def why(self, uid: str) -> str | None:
        """What explains a pod; None when it isn't known."""


class RecordSource:
    """A record."""

    def __init__(self, store: Store, now_us: Callable[[], int] | None = None) -> None:
        self._store = store
        self._now_us = now_us or (lambda: time.time_ns() // 1000)

    def moment(self, at_us: int | None) -> tuple[Moment, Span] | None:
        """As `Source`."""
        return read_moment(self._store, at_us, self._now_us())

    def why(self, uid: str) -> str | None:
        """As `Source`."""
        with self._store.reading() as connection:
            pod = connection.execute(sa.select(schema.pod).where(schema.pod.c.uid == uid)).mappings().first()
        return explain(read_story(self._store, dict(pod))) if pod is not None else None


class LiveSource:
    """A live cluster: whatever time is asked for, it answers with now."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster

    def moment(self, at_us: int | None) -> tuple[Moment, Span] | None:  # noqa: ARG002 - there is no past
        """As `Source`."""
        moment = self._cluster.moment()
        return moment, Span(moment.at_us, moment.at_us)

    def why(self, uid: str) -> str | None:
        """As `Source`."""
        return why_of(self._cluster.moment(), uid)
