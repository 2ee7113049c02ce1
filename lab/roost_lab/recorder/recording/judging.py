"""Let the model follow the cluster's changes, and add its verdicts to their records.

When the model fails, its verdict is missing but every record is kept.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

from roost_lab.recorder.recording.changes import Change, ListEnd, NodeChange, PodChange
from roost_lab.recorder.recording.reading import PodReading
from roost_lab.recorder.recording.scheduler_model import Model
from roost_lab.recorder.store.records import (
    NODES,
    PODS,
    DecisionKind,
    DecisionRecord,
    Record,
    Verdict,
)

log = logging.getLogger(__name__)


class Judging:
    """Reads each change once, in order. Owned by one thread."""

    def __init__(self, model: Model | None, on_failure: Callable[[], None] = lambda: None) -> None:
        """model: None: bindings are recorded without a verdict."""
        self._model = model
        self._on_failure = on_failure
        # Kinds that have been listed.
        self._complete: set[str] = set()
        # Pods that no node is found for, by key.
        self._waiting: dict[str, PodReading] = {}

    def follow(self, change: Change) -> list[Record]:
        """The change's records, with what the model says of the pod's binding, or of the nodes as
        they stand for a pod that fits on none.
        """
        match change:
            case PodChange():
                records = [
                    judged for record in change.records for judged in self._judged(record, change)
                ]
                # Only now: the model finds where the pod would have gone had it not been bound.
                self._update_pod(change)
                return records
            case NodeChange() if self._model is not None:
                with self._counted():
                    self._model.node_changed(change.name, change.node, change.at)
            case ListEnd(kind=kind) if kind in (PODS, NODES):
                self._complete.add(kind)
                # Pods that were waiting when recording began, or during a gap.
                waiting = [self._examined(pod, change.at) for pod in self._waiting.values()]
                return [*change.records, *chain.from_iterable(waiting)]
        return change.records

    def _update_pod(self, change: PodChange) -> None:
        if self._model is None:
            return
        self._waiting.pop(change.key, None)
        if change.pod.is_unschedulable and not change.is_gone:
            self._waiting[change.key] = change.pod
        with self._counted():
            if change.is_gone:
                self._model.pod_changed(change.key, None, "", change.observed.at)
            else:
                self._model.pod_changed(
                    change.key, change.pod, change.pod_class, change.observed.at
                )

    def _judged(self, record: Record, change: PodChange) -> list[Record]:
        """A record of a pod, with what the model adds to it."""
        match record:
            case DecisionRecord(kind=DecisionKind.BIND):
                return self._with_verdict(record, change)
            case DecisionRecord(kind=DecisionKind.FAIL) if change.observed.is_watched:
                return [record, *self._examined(change.pod, change.observed.at)]
        return [record]

    def _with_verdict(self, binding: DecisionRecord, change: PodChange) -> list[Record]:
        """A binding and the nodes as they stood; where the model can't judge, it says why."""
        if not change.observed.is_watched:
            note = "bound before it was watched"
        elif self._model is None or not self._knows_all:
            note = "bound before all pods and nodes were known"
        else:
            note = "the model failed, see the recorder's log"
            with self._counted():
                judged, candidates = self._model.judge(binding, change.pod, change.observed.at)
                return [judged] if candidates is None else [judged, candidates]
        return [replace(binding, model=Verdict.UNKNOWN, model_note=note)]

    def _examined(self, pod: PodReading, at: int) -> list[Record]:
        """The nodes as they stand for a pod that fits on none, once all nodes and pods are
        known.
        """
        if self._model is not None and self._knows_all:
            with self._counted():
                waiting = self._model.examine(pod, at)
                return [] if waiting is None else [waiting]
        return []

    @property
    def _knows_all(self) -> bool:
        return {PODS, NODES} <= self._complete

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # whatever makes the model fail, the pod's rows must be stored
            log.exception("the model failed")
            self._on_failure()
